"""`calibrate` and `predict --with` from the shell, with files as people have them."""

from __future__ import annotations

import csv
import json
import zipfile
from pathlib import Path

import numpy as np
import pytest
import torch
from PIL import Image

from core.lab.cli import main
from tests.lab.made_study import made_maps

N = 40


@pytest.fixture
def files(tmp_path: Path) -> Path:
    """A folder `set` with maps, masks and groups, the same as a zip, and new maps that nobody calibrated on."""
    logits, masks = made_maps(2 * N, 20, 0)
    p = torch.sigmoid(logits).numpy()
    for k in range(2 * N):
        folder = tmp_path / ("set" if k < N else "new")
        for what in ("maps", "masks"):
            (folder / what).mkdir(parents=True, exist_ok=True)
        np.save(folder / "maps" / f"case{k}.npy", p[k])
        Image.fromarray(masks[k].numpy().astype(np.uint8) * 255).save(folder / "masks" / f"case{k}.png")
    lines = ["name,site", *(f"case{k},{'left' if k % 2 else 'right'}" for k in range(2 * N))]
    (tmp_path / "groups.csv").write_text("\n".join(lines))
    with zipfile.ZipFile(tmp_path / "set.zip", "w") as z:
        for path in (tmp_path / "set").rglob("*.*"):
            z.write(path, path.relative_to(tmp_path))
    np.savez(tmp_path / "raw.npz", maps=logits[:N].numpy(), masks=masks[:N].numpy())
    return tmp_path


def rows(path: Path) -> list[dict[str, str]]:
    return list(csv.DictReader(path.open(encoding="utf-8")))


def test_calibrate_and_predict_from_end_to_end(files: Path, capsys: pytest.CaptureFixture[str]) -> None:
    out = files / "out"
    groups = ["--groups", str(files / "groups.csv")]
    assert (
        main(
            [
                "calibrate",
                str(files / "set.zip"),
                *groups,
                "--group",
                "site",
                "--alpha",
                "0.2",
                "--out",
                str(out),
            ]
        )
        == 0
    )
    said = capsys.readouterr().out
    assert "Promised: 80" in said and "drawn alike" in said and "whole image" in said
    assert {p.name for p in out.iterdir()} == {
        "calibration.json",
        "report.html",
        "images.csv",
        "methods.csv",
        "apply.py",
    }
    assert [r["method"] for r in rows(out / "methods.csv")] == [
        "CRC",
        "CRC by group",
        "plug-in",
        "oracle",
        "whole image",
    ]
    command = [
        "predict",
        str(files / "new"),
        *groups,
        "--with",
        str(out / "calibration.json"),
        "--out",
        str(files / "p"),
    ]
    assert main(command) == 0
    found = rows(files / "p" / "predictions.csv")
    assert len(found) == N and {r["group"] for r in found} == {"left", "right"}
    mean = np.mean([float(r["coverage_CRC"]) for r in found])
    assert mean > 0.6
    marked = np.asarray(Image.open(files / "p" / f"{found[0]['image']}-crc-set.png").convert("L")) > 127
    assert marked.mean() == pytest.approx(float(found[0]["area_CRC"]), abs=1e-5)
    facts = json.loads((files / "p" / "predictions.json").read_text(encoding="utf-8"))
    assert facts["alike"]["differs"] is False and "no proof" in " ".join(facts["sentences"])


def test_a_folder_with_masks_elsewhere_gives_the_same_calibration_as_the_zip(files: Path) -> None:
    for name, command in {
        "zip": [str(files / "set.zip")],
        "apart": [str(files / "set" / "maps"), "--masks", str(files / "set" / "masks")],
    }.items():
        assert main(["calibrate", *command, "--seed", "3", "--out", str(files / name)]) == 0
    one, two = (
        json.loads((files / n / "calibration.json").read_text(encoding="utf-8")) for n in ("zip", "apart")
    )
    assert one["methods"] == two["methods"] and one["images"] == two["images"]


def test_logits_are_asked_about_and_the_flag_answers(files: Path, capsys: pytest.CaptureFixture[str]) -> None:
    command = ["calibrate", str(files / "raw.npz"), "--out", str(files / "o")]
    assert main(command) == 2
    said = capsys.readouterr().err
    assert "look like logits" in said and "--answer scale=logits" in said and "Traceback" not in said
    assert main([*command, "--logits"]) == 0
    capsys.readouterr()
    assert main([*command, "--answer", "scale=logits"]) == 0
    with pytest.raises(SystemExit):
        main([*command, "--logits", "--probabilities"])


def test_with_confidence_marks_more_than_on_average(files: Path) -> None:
    shifts = []
    for name, more in {"a": [], "b": ["--delta", "0.1"]}.items():
        assert (
            main(["calibrate", str(files / "set.zip"), "--alpha", "0.2", *more, "--out", str(files / name)])
            == 0
        )
        shifts.append(
            json.loads((files / name / "calibration.json").read_text(encoding="utf-8"))["methods"]["CRC"][
                "shift"
            ]
        )
    assert shifts[1] is None or shifts[1] > shifts[0]


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["calibrate", "absent.zip"], "absent.zip"),
        (["calibrate", "empty"], "empty"),
        (["calibrate", "set.zip", "--alpha", "7"], "cannot be above"),
        (["calibrate", "set.zip", "--group", "colour"], "no column 'colour'"),
        (["calibrate", "set.zip", "--foreground", "9"], "No mask holds the value 9"),
        (["calibrate", "set.zip", "--answer", "size"], "QUESTION=CHOICE"),
        (["predict", "new", "--with", "absent.json"], "no calibration at absent.json"),
        (["predict", "new", "--with", "bad.json"], "no readable JSON"),
    ],
)
def test_what_cannot_be_done_is_one_sentence_and_exit_code_two(
    files: Path,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
    arguments: list[str],
    words: str,
) -> None:
    monkeypatch.chdir(files)
    (files / "empty").mkdir()
    (files / "bad.json").write_text("{")
    assert main([*arguments, "--out", "o"]) == 2
    said = capsys.readouterr().err.strip()
    assert words in said and "Traceback" not in said and "\n" not in said


def test_maps_that_contradict_the_calibration_are_refused(
    files: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["calibrate", str(files / "set.zip"), "--out", str(files / "o")]) == 0
    assert (
        main(
            [
                "predict",
                str(files / "raw.npz"),
                "--with",
                str(files / "o" / "calibration.json"),
                "--out",
                str(files / "p"),
            ]
        )
        == 2
    )
    assert "to be read as probabilities" in capsys.readouterr().err
