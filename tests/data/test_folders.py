"""Data sets as folders: pairs by stem, masks as booleans, and a clear word where something is absent."""

from __future__ import annotations

import numpy as np
import pytest
from PIL import Image

from core.data.folders import DataAbsent, list_pairs, read_all


def write(folder, images: dict[str, np.ndarray], masks: dict[str, np.ndarray]) -> None:
    for name, files in (("images", images), ("masks", masks)):
        (folder / name).mkdir(parents=True, exist_ok=True)
        for file, pixels in files.items():
            Image.fromarray(pixels).save(folder / name / file)


RGB = np.arange(4 * 5 * 3, dtype=np.uint8).reshape(4, 5, 3)
GREY = np.array([[0, 127, 128, 255, 0]] * 4, np.uint8)


def test_pairs_are_found_by_stem_and_sorted(tmp_path):
    write(
        tmp_path,
        {"b.png": RGB, "a.jpg": RGB, "alone.png": RGB},
        {"a.png": GREY, "b.png": GREY, "other.png": GREY},
    )
    (tmp_path / "images" / "folder").mkdir()
    pairs = list_pairs(tmp_path)
    assert [p.name for p in pairs] == ["a", "b"]
    assert [p.image.name for p in pairs] == ["a.jpg", "b.png"]
    assert [p.mask.name for p in pairs] == ["a.png", "b.png"]
    assert list_pairs(str(tmp_path)) == pairs


def test_a_mask_may_carry_a_suffix(tmp_path):
    write(tmp_path, {"x.png": RGB}, {"x_segmentation.png": GREY, "x.png": GREY})
    assert list_pairs(tmp_path, "_segmentation")[0].mask.name == "x_segmentation.png"


def test_an_image_is_rgb_and_a_mask_is_true_above_half(tmp_path):
    one_bit = np.array([[True, False, True, False, True]] * 4)
    colour = np.repeat(GREY[..., None], 3, 2)
    write(
        tmp_path,
        {"a.png": RGB, "b.png": GREY, "c.png": RGB},
        {"a.png": GREY, "b.png": one_bit, "c.png": colour},
    )
    found = {name: (rgb, mask) for name, rgb, mask in read_all(list_pairs(tmp_path))}
    assert list(found) == ["a", "b", "c"]
    assert np.array_equal(found["a"][0], RGB)
    assert np.array_equal(found["b"][0], np.repeat(GREY[..., None], 3, 2))
    wanted = np.array([[False, False, True, True, False]] * 4)
    assert np.array_equal(found["a"][1], wanted)
    assert np.array_equal(found["c"][1], wanted)
    assert np.array_equal(found["b"][1], one_bit)
    assert found["a"][1].dtype == bool


def test_an_absent_set_is_named_with_its_place_and_what_it_must_hold(tmp_path):
    with pytest.raises(DataAbsent, match=r"nowhere.*'images' and 'masks'.*--data"):
        list_pairs(tmp_path / "nowhere")
    (tmp_path / "half" / "images").mkdir(parents=True)
    with pytest.raises(DataAbsent, match="half"):
        list_pairs(tmp_path / "half")
    write(tmp_path / "other", {"a.png": RGB}, {"b.png": GREY})
    with pytest.raises(DataAbsent, match="no image whose mask has the same name"):
        list_pairs(tmp_path / "other")


@pytest.mark.data
def test_the_shared_polyp_set_is_read(shared_data):
    folder = shared_data / "kvasir_seg"
    if not folder.is_dir():
        pytest.skip(f"no polyp set at {folder}")
    pairs = list_pairs(folder)
    assert len(pairs) == 1000
    for name, rgb, mask in read_all(pairs[::250]):
        assert rgb.shape == (*mask.shape, 3), name
        assert 0 < mask.mean() < 1, name
