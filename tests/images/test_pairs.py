"""Masks find their images by name, and nothing is lost when they do not."""

from __future__ import annotations

import numpy as np
import pytest

from core.images import BadImage, MaskSizeMismatch, pair_masks, png_bytes, read
from core.images.pairs import looks_like_mask, mask_of_picture, mask_stem


def picture(name: str, value: int = 0):
    pixels = np.zeros((4, 5, 3), np.uint8)
    pixels[:2] = value
    return read(png_bytes(pixels), name)[0]


@pytest.mark.parametrize(
    ("image", "mask"),
    [
        ("a.png", "a_mask.png"),
        ("Case 1.JPG", "case 1_segmentation.png"),
        ("scan.nii.gz", "scan-label.nii"),
        ("zip.zip/images/b.png", "zip.zip/masks/b.png"),
    ],
)
def test_a_mask_and_its_image_share_a_stem(image: str, mask: str) -> None:
    assert mask_stem(image) == mask_stem(mask)
    assert looks_like_mask(mask) and not looks_like_mask(image)


@pytest.mark.parametrize("name", ["unmasked.png", "masking/x.png", "label.png", "truthful.png"])
def test_a_word_that_only_begins_like_a_mask_is_none(name: str) -> None:
    assert not looks_like_mask(name)


def test_pairs_keep_their_order_and_lonely_masks_stay_pictures() -> None:
    files = [picture(n) for n in ("b.png", "a_mask.png", "a.png", "c_mask.png")]
    pairs = pair_masks(files)
    assert [(p.name, m.name if m else None) for p, m in pairs] == [
        ("b.png", None),
        ("a.png", "a_mask.png"),
        ("c_mask.png", None),
    ]


def test_a_picture_serves_as_mask_and_another_size_is_asked_about() -> None:
    mask = picture("a_mask.png", 255)
    assert mask_of_picture(mask, (4, 5)).array.sum() == 10
    with pytest.raises(MaskSizeMismatch):
        mask_of_picture(mask, (8, 10))
    assert mask_of_picture(mask, (8, 10), resize=True).array.sum() == 40


def test_a_mask_of_one_slice_serves_every_slice() -> None:
    assert mask_of_picture(picture("a_mask.png", 255), (4, 5), 7).array.any()
    volume = read(_volume(), "v_mask.nii")[0]
    with pytest.raises(BadImage, match="slices"):
        mask_of_picture(volume, (4, 5), 9)


def _volume() -> bytes:
    import nibabel

    return nibabel.Nifti1Image(np.ones((4, 5, 3), np.uint8), np.eye(4)).to_bytes()
