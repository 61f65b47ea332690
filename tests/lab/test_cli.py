"""The library from the shell, with files as people have them."""

from __future__ import annotations

import json
import zipfile

import numpy as np
import pytest
from PIL import Image

from core.data.phantoms import draw
from core.lab.cli import main


@pytest.fixture
def files(tmp_path):
    phantom = draw(31337)
    Image.fromarray(phantom.image).save(tmp_path / "one.png")
    Image.fromarray(phantom.mask.astype(np.uint8) * 255).save(tmp_path / "one_mask.png")
    return tmp_path


def test_predict_writes_outlines_sets_and_numbers(files, capsys) -> None:
    out = files / "out"
    command = [
        "predict",
        str(files / "one.png"),
        "--mask",
        str(files / "one_mask.png"),
        "--model",
        "phantom",
        "--out",
        str(out),
    ]
    assert main(command) == 0
    facts = json.loads((out / "one.json").read_text())
    assert set(facts["coverage"]) == {"CRC", "AA-CRC", "plug-in", "AT", "COAT"}
    for method in ("crc", "coat"):
        inside = np.asarray(Image.open(out / f"one-{method}-set.png").convert("L")) > 127
        assert inside.mean() == pytest.approx(facts["set_area"][method.upper()], abs=1e-3)
    assert Image.open(out / "one-outlines.png").size == (512, 512)
    assert "drawn alike" in capsys.readouterr().out


def test_a_smaller_alpha_lowers_the_threshold(files) -> None:
    taus = []
    for alpha in ("0.05", "0.3"):
        assert (
            main(
                [
                    "predict",
                    str(files / "one.png"),
                    "--alpha",
                    alpha,
                    "--model",
                    "phantom",
                    "--out",
                    str(files / alpha),
                ]
            )
            == 0
        )
        taus.append(json.loads((files / alpha / "one.json").read_text())["threshold_logit"]["CRC"])
    assert taus[0] < taus[1]


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["missing.png"], "missing.png"),
        (["notes.txt"], "notes.txt"),
        (["one.png", "--mask", "small.png"], "small.png"),
        (["one.png", "--alpha", "1.5"], "alpha"),
        (["one.png", "--slice", "3"], "no slice 3"),
    ],
)
def test_what_cannot_be_done_is_one_sentence_and_exit_code_two(
    files, capsys, arguments: list[str], words: str
) -> None:
    (files / "notes.txt").write_text("this is no image at all")
    Image.fromarray(np.zeros((10, 10), np.uint8)).save(files / "small.png")
    paths = [str(files / a) if a.endswith((".png", ".txt")) else a for a in arguments]
    assert main(["predict", *paths, "--model", "phantom", "--out", str(files / "out")]) == 2
    said = capsys.readouterr().err.strip()
    assert words in said and "Traceback" not in said


def test_help_can_be_asked_for(capsys) -> None:
    with pytest.raises(SystemExit) as end:
        main(["predict", "--help"])
    assert end.value.code == 0
    assert "90 % is inside" in " ".join(capsys.readouterr().out.split())


def test_every_picture_of_a_zip_gets_files_of_its_own_and_masks_are_masks(files) -> None:
    with zipfile.ZipFile(files / "some.zip", "w") as z:
        for folder in ("a", "b"):
            z.write(files / "one.png", f"{folder}/one.png")
        z.write(files / "one.png", "images/two.png")
        z.write(files / "one_mask.png", "masks/two.png")
    assert main(["predict", str(files / "some.zip"), "--model", "phantom", "--out", str(files / "out")]) == 0
    found = {p.name: json.loads(p.read_text()) for p in (files / "out").glob("*.json")}
    assert len(found) == 3
    assert [f["coverage"] is not None for f in sorted(found.values(), key=lambda f: f["image"])] == [
        False,
        False,
        True,
    ]


def test_a_mask_of_another_size_is_scaled_only_when_asked(files) -> None:
    Image.open(files / "one_mask.png").resize((128, 128)).save(files / "half.png")
    command = [
        "predict",
        str(files / "one.png"),
        "--mask",
        str(files / "half.png"),
        "--model",
        "phantom",
        "--out",
        str(files / "o"),
    ]
    assert main(command) == 2
    assert main([*command, "--resize-mask"]) == 0
