"""Segmentation data sets as their owners publish them: a folder `images`, a folder `masks`, the same stems.

It lists and reads; it does not split (`splits.py`) and does not resize (`core.images.grid`). The sets
themselves are never part of this project: where one is absent the error says what was looked for and where.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from PIL import Image


class DataAbsent(FileNotFoundError):
    """A data set is not where it was looked for. The message says where and what the folder must hold."""


@dataclass(frozen=True)
class Pair:
    """One image on disk with its mask.

    Attributes:
        name: Stem of the file, the identity of the image in split files.
        image: Path of the image.
        mask: Path of the mask.
    """

    name: str
    image: Path
    mask: Path

    def read(self) -> tuple[np.ndarray, np.ndarray]:
        """Read the pair.

        Returns:
            The image `(H, W, 3)` uint8 and the mask `(H, W)` bool (values above half of full scale).
        """
        rgb = np.asarray(Image.open(self.image).convert("RGB"))
        mask = np.asarray(Image.open(self.mask).convert("L")) > 127
        return rgb, mask


def list_pairs(folder: str | Path, mask_suffix: str = "") -> list[Pair]:
    """List the images of a set that have a mask, sorted by name.

    Args:
        folder: Folder that holds `images/` and `masks/`.
        mask_suffix: What a mask's stem has behind the image's, `"_segmentation"` for HAM10000.

    Raises:
        DataAbsent: The folder, one of its two sub-folders, or every pair is missing.
    """
    folder = Path(folder)
    images, masks = folder / "images", folder / "masks"
    if not images.is_dir() or not masks.is_dir():
        raise DataAbsent(
            f"No data set at {folder}: it must hold the folders 'images' and 'masks' with files of the same names. "
            "Give the folder with --data."
        )
    by_stem = {p.stem: p for p in sorted(masks.iterdir()) if p.is_file()}
    pairs = [
        Pair(p.stem, p, by_stem[p.stem + mask_suffix])
        for p in sorted(images.iterdir())
        if p.is_file() and p.stem + mask_suffix in by_stem
    ]
    if not pairs:
        raise DataAbsent(
            f"{folder} holds no image whose mask has the same name (with {mask_suffix!r} behind it)."
        )
    return pairs


def read_all(pairs: list[Pair]) -> Iterator[tuple[str, np.ndarray, np.ndarray]]:
    """Yield `(name, image (H, W, 3) uint8, mask (H, W) bool)` one after the other."""
    for pair in pairs:
        yield (pair.name, *pair.read())
