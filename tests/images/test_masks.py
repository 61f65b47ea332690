"""Masks: every way of writing one is mapped and reported; none is stretched unless somebody said so."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp
from PIL import Image

from core.images import BadImage, MaskSizeMismatch, mask_from_array, read_mask
from tests.images.makers import nifti, pil, png, rng, tiff, zipped

BLOB = np.zeros((40, 60), bool)
BLOB[10:25, 20:45] = True


@given(hnp.arrays(bool, hnp.array_shapes(min_dims=2, max_dims=2, max_side=12)), st.sampled_from([1, 255]))
@settings(max_examples=30, deadline=None)
def test_0_1_and_0_255_mean_the_same(truth: np.ndarray, high: int) -> None:
    mask = read_mask(png(truth.astype(np.uint8) * np.uint8(high)), "m.png", shape=truth.shape)  # type: ignore[arg-type]
    assert np.array_equal(mask.array, truth)
    assert mask.empty == (not truth.any())
    assert mask.full == bool(truth.all())
    assert set(mask.values) <= {0.0, float(high)}


def test_boolean_16_bit_float_and_nifti_masks_are_read() -> None:
    for data in (
        pil(Image.fromarray(BLOB), "PNG"),
        tiff(BLOB.astype(np.uint16) * 65535),
        tiff(BLOB.astype(np.float32)),
        nifti(
            BLOB.T[::-1, ::-1, None].astype(np.uint8), np.diag([-1.0, -1, 1, 1]) @ np.diag([-1.0, -1, 1, 1])
        ),
    ):
        assert np.array_equal(read_mask(data, "m").array, BLOB)


def test_labels_0_to_k_are_taken_together_and_reported_or_chosen() -> None:
    labels = np.zeros((5, 6), np.uint8)
    labels[0], labels[1], labels[2] = 1, 2, 3
    mask = read_mask(png(labels), "m.png")
    assert np.array_equal(mask.array, labels > 0)
    assert mask.values == (0, 1, 2, 3)
    assert any("values 0, 1, 2, 3" in note for note in mask.notes)
    assert np.array_equal(read_mask(png(labels), "m.png", foreground=2).array, labels == 2)
    with pytest.raises(BadImage, match=r"no pixel of value 7; it holds 0, 1, 2, 3"):
        read_mask(png(labels), "m.png", foreground=7)


def test_two_values_that_are_not_0_are_background_and_lesion() -> None:
    mask = read_mask(png(np.where(BLOB, 9, 4).astype(np.uint8)), "m.png")
    assert np.array_equal(mask.array, BLOB)
    assert any("lower value" in note for note in mask.notes)


def test_a_palette_mask_gives_its_numbers_unless_the_palette_is_grey() -> None:
    image = Image.fromarray(BLOB.astype(np.uint8))
    image.putpalette([0, 0, 0, 128, 0, 0])
    mask = read_mask(pil(image, "PNG"), "m.png")
    assert np.array_equal(mask.array, BLOB)
    assert mask.values == (0, 1)
    image.putpalette([255, 255, 255, 0, 0, 0])  # number 0 is white: the colours are the truth
    assert np.array_equal(read_mask(pil(image, "PNG"), "m.png").array, ~BLOB)


def test_a_coloured_mask_is_every_colour_but_black() -> None:
    colour = np.zeros((*BLOB.shape, 3), np.uint8)
    colour[BLOB] = (0, 0, 40)
    mask = read_mask(png(colour), "m.png")
    assert np.array_equal(mask.array, BLOB)
    assert any("coloured" in note for note in mask.notes)
    grey = np.repeat((BLOB * np.uint8(255))[..., None], 3, axis=2)
    assert np.array_equal(read_mask(png(grey), "m.png").array, BLOB)


def test_a_jpeg_mask_is_cut_at_half_and_said() -> None:
    mask = read_mask(pil(Image.fromarray(BLOB * np.uint8(255)), "JPEG", quality=60), "m.jpg")
    assert (mask.array != BLOB).mean() < 0.02
    assert any("JPEG smears" in note for note in mask.notes)
    nearly_black = read_mask(
        pil(Image.fromarray(rng().integers(0, 9, (16, 16), dtype=np.uint8)), "JPEG"), "m.jpg"
    )
    assert nearly_black.empty


def test_another_size_is_asked_about_with_both_sizes_and_never_stretched() -> None:
    data = png(BLOB * np.uint8(255))
    with pytest.raises(MaskSizeMismatch, match=r"60 × 40 pixels.*picture is 120 × 80") as caught:
        read_mask(data, "m.png", shape=(80, 120))
    assert caught.value.found == (40, 60)
    assert caught.value.wanted == (80, 120)
    with pytest.raises(MaskSizeMismatch, match="turned by 90"):
        read_mask(data, "m.png", shape=(60, 40))
    with pytest.raises(MaskSizeMismatch, match="proportions"):
        read_mask(data, "m.png", shape=(100, 500))


def test_resizing_when_asked_is_nearest_and_reported() -> None:
    mask = read_mask(png(BLOB * np.uint8(255)), "m.png", shape=(80, 120), resize=True)
    assert np.array_equal(mask.array, np.kron(BLOB, np.ones((2, 2), bool)))
    assert any("Resized from 60 × 40 to 120 × 80" in note for note in mask.notes)
    same = read_mask(png(BLOB * np.uint8(255)), "m.png", shape=(40, 60), resize=True)
    assert not any("Resized" in note for note in same.notes)


def test_a_lesion_that_vanishes_in_resizing_is_reported() -> None:
    speck = np.zeros((40, 40), np.uint8)
    speck[3, 3] = 255
    mask = read_mask(png(speck), "m.png", shape=(4, 4), resize=True)
    assert mask.empty
    assert mask.vanished
    assert any("vanished" in note for note in mask.notes)
    assert not read_mask(png(speck), "m.png").vanished


def test_empty_full_and_large_masks_are_reported() -> None:
    empty = mask_from_array(np.zeros((4, 5), np.uint8))
    full = mask_from_array(np.full((4, 5), 255, np.uint8))
    most = mask_from_array(np.arange(20).reshape(4, 5) > 3)
    assert (empty.empty, empty.full, full.empty, full.full) == (True, False, False, True)
    assert any("empty" in note for note in empty.notes)
    assert any("full" in note for note in full.notes)
    assert any("80.0 %" in note and "swapped" in note for note in most.notes)


def test_missing_values_are_background() -> None:
    mask = mask_from_array(np.array([[np.nan, 1.0, 0.0]], np.float32))
    assert mask.array.tolist() == [[False, True, False]]
    assert any("missing" in note for note in mask.notes)


def test_a_soft_mask_is_cut_at_half_and_said() -> None:
    soft = np.linspace(0, 1, 100, dtype=np.float32).reshape(10, 10)
    mask = mask_from_array(soft)
    assert np.array_equal(mask.array, soft > 0.5)
    assert any("soft mask" in note for note in mask.notes)


def test_a_slice_of_a_volume_is_chosen_and_one_that_is_not_there_is_refused() -> None:
    stack = np.stack([BLOB, ~BLOB]) * np.uint8(255)
    data = tiff(stack, photometric="minisblack")
    assert np.array_equal(read_mask(data, "m.tif", slice_index=1).array, ~BLOB)
    assert read_mask(data, "m.tif").slices == 2
    with pytest.raises(BadImage, match="has 2 slices; there is no slice number 3"):
        read_mask(data, "m.tif", slice_index=2)


def test_a_zip_is_no_mask_and_a_bad_file_is_named() -> None:
    with pytest.raises(BadImage, match="archive"):
        read_mask(zipped({"m.png": png(BLOB * np.uint8(255))}), "m.zip")
    with pytest.raises(BadImage, match=r"m\.png"):
        read_mask(b"hello", "m.png")
    with pytest.raises(BadImage, match="one plane"):
        mask_from_array(np.zeros((2, 3, 4, 5), np.uint8))


@given(
    hnp.arrays(
        st.sampled_from([np.bool_, np.uint8, np.int16, np.float32, np.float64]),
        hnp.array_shapes(min_dims=2, max_dims=2, max_side=8),
    )
)
@settings(max_examples=50, deadline=None)
def test_any_plane_becomes_a_boolean_mask_of_its_own_size(array: np.ndarray) -> None:
    mask = mask_from_array(array)
    assert mask.array.dtype == bool
    assert mask.array.shape == array.shape
    assert mask.empty == (not mask.array.any())
