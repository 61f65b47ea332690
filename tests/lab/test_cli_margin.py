"""`reliability` from the shell, with files as people have them."""

from __future__ import annotations

import argparse
import csv
import json
from pathlib import Path

import numpy as np
import pytest

from core.lab.cli_margin import add_reliability, reliability


def main(*words: str) -> None:
    root = argparse.ArgumentParser()
    add_reliability(root.add_subparsers(dest="command"))
    reliability(root.parse_args(["reliability", *words]))


@pytest.fixture
def files(tmp_path: Path) -> Path:
    """`mine.npz`, the same as a folder of NPY files with labels apart, and `rows.csv`."""
    rng = np.random.default_rng(0)
    z = rng.normal(0, 1.5, (8, 3, 12, 12))
    p = np.exp(z) / np.exp(z).sum(1, keepdims=True)
    labels = (rng.random((8, 1, 12, 12)) > p.cumsum(1)).sum(1).clip(0, 2)
    np.savez(tmp_path / "mine.npz", logits=2 * z, labels=labels)
    for folder in ("values", "truth"):
        (tmp_path / folder).mkdir()
    for k in range(8):
        np.save(tmp_path / "values" / f"case{k}.npy", 2 * z[k])
        np.save(tmp_path / "truth" / f"case{k}.npy", labels[k])
    flat = np.moveaxis(p, 1, -1).reshape(-1, 3)
    lines = [
        "label,p_0,p_1,p_2",
        *(f"{y},{a:.6f},{b:.6f},{c:.6f}" for y, (a, b, c) in zip(labels.reshape(-1), flat, strict=True)),
    ]
    (tmp_path / "rows.csv").write_text("\n".join(lines))
    return tmp_path


def pooled(out: Path) -> dict[tuple[str, str, str], str]:
    rows = csv.DictReader((out / "metrics.csv").open(encoding="utf-8"))
    return {(r["part"], r["scope"], r["metric"]): r["pooled"] for r in rows}


def test_everything_is_written_and_a_folder_with_labels_apart_says_the_same(
    files: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    main(str(files / "mine.npz"), "--classes", "bg, cell, rim", "--out", str(files / "a"))
    said = capsys.readouterr().out
    assert "surer than it is right" in said and "With T =" in said and "mean over 8 images" in said
    wanted = {"reliability.json", "metrics.csv", "images.csv", "overlap.csv", "report.html"}
    wanted |= {f"{stem}.{kind}" for stem in ("reliability", "temperature") for kind in ("svg", "png")}
    assert {f.name for f in (files / "a").iterdir()} == wanted
    kept = json.loads((files / "a" / "reliability.json").read_text(encoding="utf-8"))
    assert kept["settings"]["classes"] == ["bg", "cell", "rim"] and kept["temperature"][
        "value"
    ] == pytest.approx(2, rel=0.2)
    assert (files / "a" / "reliability.png").read_bytes()[:4] == b"\x89PNG"
    assert b"<svg" in (files / "a" / "temperature.svg").read_bytes()[:200]
    main(str(files / "values"), "--labels", str(files / "truth"), "--logits", "--out", str(files / "b"))
    one, two = pooled(files / "a"), pooled(files / "b")
    assert one == two and len(one) == 30


def test_rows_have_no_overlap_and_the_scope_can_be_chosen(
    files: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    main(str(files / "rows.csv"), "--scope", "foreground", "--seed", "2", "--out", str(files / "r"))
    said = capsys.readouterr().out
    assert "rows whose truth is not class 0" in said and "seed 2" in said and "mean over" not in said
    assert not (files / "r" / "overlap.csv").exists()


def test_a_question_ends_the_command_with_the_flag_that_answers_it(files: Path) -> None:
    with np.load(files / "mine.npz") as z:
        np.savez(files / "odd.npz", values=z["logits"], labels=np.where(z["labels"] == 2, 255, z["labels"]))
    with pytest.raises(ValueError, match="--answer labels=ignore"):
        main(str(files / "odd.npz"), "--out", str(files / "q"))
    with pytest.raises(ValueError, match="--answer scale=logits"):
        main(str(files / "odd.npz"), "--answer", "labels=ignore", "--out", str(files / "q"))
    main(str(files / "odd.npz"), "--answer", "labels=ignore", "--logits", "--out", str(files / "q"))
    kept = json.loads((files / "q" / "reliability.json").read_text(encoding="utf-8"))
    assert kept["settings"]["reading"] == {"labels": "ignore", "scale": "logits"}


@pytest.mark.parametrize(
    ("words", "says"),
    [
        (["absent.npz"], "no file or folder absent.npz"),
        (["empty"], "The folder empty is empty"),
        (["mine.npz", "--classes", "a,b"], "3 classes"),
        (["mine.npz", "--probabilities"], "Are they logits"),
        (["mine.npz", "--answer", "scale"], "QUESTION=CHOICE"),
    ],
)
def test_what_cannot_be_done_is_one_sentence(
    files: Path, monkeypatch: pytest.MonkeyPatch, words: list[str], says: str
) -> None:
    monkeypatch.chdir(files)
    (files / "empty").mkdir()
    with pytest.raises((ValueError, FileNotFoundError)) as caught:
        main(*words, "--out", "o")
    assert says in str(caught.value) and "\n" not in str(caught.value) and not (files / "o").exists()
