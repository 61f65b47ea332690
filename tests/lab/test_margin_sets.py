"""The sets on which losses are compared: squares, rims, padding, the cache, and clear words where data is absent."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from PIL import Image

from core.data.folders import DataAbsent
from core.lab import margin_sets as ms


def test_padding_is_ignored_and_the_rest_is_not():
    rgb = np.full((150, 200, 3), 200, np.uint8)
    mask = np.zeros((150, 200), bool)
    mask[40:110, 50:150] = True
    image, labels, ignore = ms.square_of("skin", rgb, mask)
    assert image.shape == (3, 96, 96)
    assert labels.shape == ignore.shape == (96, 96)
    assert not ignore[:72].any()
    assert ignore[72:].all()
    assert float(labels[~ignore].float().mean()) == pytest.approx(70 * 100 / (150 * 200), abs=0.01)
    assert not labels[ignore].any()
    assert (image[:, ignore] == 0).all()


def test_the_rim_is_the_outermost_pixel_of_a_nucleus_and_not_of_the_picture():
    mask = torch.zeros(12, 12, dtype=torch.bool)
    mask[3:9, 3:9] = True
    mask[0:2, 10:12] = True  # at the corner: its inner edges are rim, the picture's border is not
    labels = ms.with_rim(mask)
    assert int((labels == 1).sum()) == 16 + 1
    assert int((labels == 2).sum()) == 20 + 3
    assert labels[0, 11] == 1
    assert ((labels > 0) == mask).all()


def test_nuclei_are_cut_from_the_centre_without_padding():
    rgb = np.random.default_rng(0).integers(0, 255, (256, 320, 3), np.uint8)
    image, labels, ignore = ms.square_of("nuclei", rgb, rgb[..., 0] > 128)
    assert image.shape == (3, 96, 96)
    assert not ignore.any()
    assert set(labels.unique().tolist()) <= {0, 1, 2}


def test_phantoms_need_no_folder_and_real_sets_say_what_they_want(tmp_path):
    parts, read = ms.parts_of("phantom", None)
    assert len(parts.pool) == 312
    assert read(parts.d1[0])[0].shape == (256, 256, 3)
    with pytest.raises(DataAbsent, match="--data"):
        ms.parts_of("polyp", None)
    with pytest.raises(DataAbsent, match="images"):
        ms.parts_of("nuclei", tmp_path)
    with pytest.raises(ValueError, match="not known"):
        ms.parts_of("cats", None)


def test_what_was_read_is_kept_and_read_again_the_same(tmp_path, monkeypatch):
    monkeypatch.setattr(ms, "NUCLEI_PARTS", (3, 2, 2, 2))
    monkeypatch.setattr(ms, "ASSETS", tmp_path / "assets")
    rng = np.random.default_rng(1)
    folder = tmp_path / "nuclei_dsb2018"
    for sub in ("images", "masks"):
        (folder / sub).mkdir(parents=True)
    for i in range(9):
        Image.fromarray(rng.integers(0, 255, (64, 64, 3), np.uint8)).save(folder / "images" / f"n{i}.png")
        mask = np.zeros((64, 64), np.uint8)
        mask[10 : 30 + i, 10:40] = 255
        Image.fromarray(mask).save(folder / "masks" / f"n{i}.png")
    first = ms.load_set("nuclei", tmp_path, tmp_path / "work")
    again = ms.load_set("nuclei", tmp_path, tmp_path / "work")
    assert {k: len(v) for k, v in first.items()} == {"train": 3, "val": 2, "d2": 2, "pool": 2}
    for part in first:
        assert first[part].names == again[part].names
        assert torch.equal(first[part].images, again[part].images)
        assert torch.equal(first[part].labels, again[part].labels)
    names = [n for part in first.values() for n in part.names]
    assert len(set(names)) == len(names)
