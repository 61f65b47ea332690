"""Which file is whose mask, by name: `case1_mask.png` or `masks/case1.png` belongs to `case1.jpg`.

It pairs what was read already and decides nothing about pixels (`masks.py` does).
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import PurePath

from core.images.errors import BadImage
from core.images.masks import Mask, mask_from_array
from core.images.picture import Picture

_ENDING = re.compile(r"[-_ .](mask|masks|segmentation|seg|label|labels|gt|truth)$", re.IGNORECASE)
_FOLDER = re.compile(r"^(mask|masks|segmentation|segmentations|labels?|labelstr|gt|truth)$", re.IGNORECASE)


def bare_stem(name: str) -> str:
    """Name without folders and ending, in small letters: `Archive.zip/Case 1.nii.gz` -> `case 1`."""
    base = PurePath(name).name.lower()
    for ending in (".nii.gz", ".nii"):
        base = base.removesuffix(ending)
    return base.rsplit(".", 1)[0] if "." in base else base


def mask_stem(name: str) -> str:
    """What a mask and its image share: the bare stem without a mask's suffix."""
    return _ENDING.sub("", bare_stem(name))


def looks_like_mask(name: str) -> bool:
    """Whether a name says that the file is a mask, by its suffix or its folder."""
    return bool(_ENDING.search(bare_stem(name))) or any(
        _FOLDER.match(part) for part in PurePath(name).parts[:-1]
    )


def pair_masks(pictures: Sequence[Picture]) -> list[tuple[Picture, Picture | None]]:
    """Give each picture its mask, where one of the others is that by name.

    Args:
        pictures: Everything that was read, in order.

    Returns:
        `(picture, mask or None)` in order. A file that looks like a mask and has no image of its name stays a picture: nothing is lost.
    """
    images = {mask_stem(p.name): p for p in pictures if not looks_like_mask(p.name)}
    masks = {
        mask_stem(p.name): p for p in pictures if looks_like_mask(p.name) and mask_stem(p.name) in images
    }
    used = {id(p) for p in masks.values()}
    return [
        (p, masks.get(mask_stem(p.name)) if not looks_like_mask(p.name) else None)
        for p in pictures
        if id(p) not in used
    ]


def mask_of_picture(
    mask: Picture, shape: tuple[int, int], slice_index: int = 0, resize: bool = False
) -> Mask:
    """One slice of a picture as truth mask.

    Args:
        mask: The picture that is a mask.
        shape: (H, W) of its image.
        slice_index: Slice; a mask of one slice serves every slice.
        resize: Whether another size may be scaled to the image's.

    Raises:
        MaskSizeMismatch: The sizes differ and `resize` is False.
        BadImage: The mask has fewer slices than are needed.
    """
    k = 0 if mask.slices == 1 else slice_index
    if k >= mask.slices:
        raise BadImage(f"The mask {mask.name} has {mask.slices} slices; there is none of number {k}.")
    return mask_from_array(mask.pixels[k], mask.name, shape=shape, resize=resize)
