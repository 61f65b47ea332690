"""`sparse` and `adapt` from the shell, with a tiny plan and files as people have them."""

from __future__ import annotations

import argparse
import csv
import json
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from core.lab import sparse_look, sparse_queue
from core.lab.cli import main as whole
from core.lab.cli_sparse import adapt, add_adapt, add_sparse, sparse
from core.lab.sparse_shelf import keys, table
from core.settings.tacsc import AdaptSettings
from tests.lab import made_sparse as made


def main(*words: object) -> None:
    root = argparse.ArgumentParser()
    commands = root.add_subparsers(dest="command")
    add_sparse(commands)
    add_adapt(commands)
    args = root.parse_args([str(w) for w in words])
    {"sparse": sparse, "adapt": adapt}[args.command](args)


def picture(path: Path, side: int = 80) -> Path:
    y, x = np.mgrid[:side, :side]
    grey = 128 + 60 * np.sin(x / 5) + 40 * np.cos(y / 9)
    Image.fromarray(np.stack([grey, grey, 255 - grey], -1).astype(np.uint8)).save(path)
    return path


# sparse ------------------------------------------------------------------------


def test_it_trains_what_is_missing_records_it_and_says_what_is_left(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(sparse_queue, "read_cifar", lambda *_: (made.pictures(130), made.pictures(60, 2)))
    monkeypatch.setattr(sparse_queue, "Plan", lambda: made.SMALL)
    plan = tmp_path / "plan.txt"
    plan.write_text("tacsc 2 0\n")
    words = (
        "sparse",
        "--work",
        tmp_path / "w",
        "--out",
        tmp_path / "o",
        "--plan",
        plan,
        "--width",
        4,
        "--epochs",
        1,
    )
    main(*words, "--status")
    assert capsys.readouterr().out.splitlines()[1:] == ["tacsc-k2-w4-s0 waiting"]
    with pytest.raises(ValueError, match="--data"):
        main(*words)
    with pytest.raises(FileNotFoundError, match="No finished run"):
        main(*words, "--record-only")
    main(*words, "--data", tmp_path, "--train-only")
    assert "1 runs finished here; 0 of 1" in capsys.readouterr().out and not (tmp_path / "o").exists()
    main(*words, "--record-only")
    assert "Written: tacsc-k2-w4-s0.json" in capsys.readouterr().out
    assert keys(tmp_path / "o") == ("tacsc-k2-w4-s0",)
    assert {r["corruption"] for r in table(tmp_path / "o")} == {"clean", "gaussian_noise", "fog"}
    main(*words, "--data", tmp_path)
    assert "0 runs finished here" in capsys.readouterr().out


def test_the_plan_of_the_comparison_and_missing_ones(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    main("sparse", "--work", tmp_path, "--status")
    told = capsys.readouterr().out.splitlines()
    assert told[0] == f"In {tmp_path}:" and told[1].endswith("waiting (recorded in the project's assets)")
    assert [line.split()[0] for line in told[1:]] == [
        "resnet-w16-s0",
        "fixed-k2-w16-s0",
        "tacsc-k2-w16-s0",
        "tacsc_all-k2-w16-s0",
        "tacsc-k4-w16-s0",
        "tacsc-k8-w16-s0",
    ]
    with pytest.raises(FileNotFoundError, match="no plan"):
        main("sparse", "--plan", tmp_path / "no.txt", "--status")
    assert whole(["sparse", "--data", str(tmp_path), "--work", str(tmp_path)]) == 2
    assert "cifar10.tar.xz" in capsys.readouterr().err


# adapt -------------------------------------------------------------------------


def test_everything_of_a_persons_image_is_written_and_said(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(sparse_look, "network", lambda key: made.network())
    out = tmp_path / "out"
    main("adapt", picture(tmp_path / "mine.png"), "--severity", 4, "--crops", 12, "--steps", 3, "--out", out)
    said = capsys.readouterr().out
    assert {p.name for p in out.iterdir()} == {"lambda.csv", "pictures.png", "adapt.json"}
    kept = json.loads((out / "adapt.json").read_text(encoding="utf-8"))
    assert (
        kept["severity"] == 4
        and kept["settings"]["steps"] == 3
        and (kept["seen"], kept["held_back"]) == (9, 3)
    )
    assert kept["answers"]["both"]["right"] is None and 0 <= kept["answers"]["both"]["same"] <= 1
    rows = list(csv.DictReader((out / "lambda.csv").open(encoding="utf-8")))
    assert [r["step"] for r in rows] == ["0", "1", "2", "3"] and {r["layer"] for r in rows} == {"first layer"}
    assert [float(rows[t]["lambda"]) for t in (0, -1)] == pytest.approx(
        [kept["trained"][0], kept["adapted"][0]], abs=1e-5
    )
    with Image.open(out / "pictures.png") as sheet:
        assert sheet.size == (4 * 96, 8 * 96)
    assert "mine.png, as 12 crops of 32 × 32 pixels: one image alone" in said and all(
        s in said for s in kept["sentences"]
    )


def test_what_cannot_be_adapted_ends_in_one_sentence(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sparse_look, "network", lambda key: made.network())
    out = tmp_path / "out"
    with pytest.raises(FileNotFoundError, match=r"no file lost\.png"):
        main("adapt", tmp_path / "lost.png", "--out", out)
    with pytest.raises(ValueError, match="20 × 20 pixels, and crops have 32 × 32"):
        main("adapt", picture(tmp_path / "small.png", 20), "--out", out)
    Image.fromarray(np.full((40, 40), 9, np.uint8)).save(tmp_path / "flat.png")
    with pytest.raises(ValueError, match="one flat colour"):
        main("adapt", tmp_path / "flat.png", "--out", out)
    with pytest.raises(ValueError, match="steps"):
        main("adapt", picture(tmp_path / "fine.png"), "--steps", 0, "--out", out)
    holes = np.random.default_rng(0).random((40, 40)).astype(np.float32)
    holes[3, 4] = np.nan
    Image.fromarray(holes).save(tmp_path / "holes.tiff")
    with pytest.raises(ValueError, match="1 pixels without a value"):
        main("adapt", tmp_path / "holes.tiff", "--out", out)
    assert not out.exists() and AdaptSettings().steps == 20
