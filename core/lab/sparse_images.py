"""Pictures for live work on sparse layers: crops of a person's own image, drawn phantoms, or images of a data folder.

Every source gives uint8 arrays of one size; what cannot be used is refused in a sentence. Nothing is damaged here
(`core.data.corruptions`) and no network runs.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field, replace
from functools import lru_cache
from pathlib import Path

import numpy as np
import torch
from numpy.random import Generator

from core.data.phantoms import draw
from core.data.tar_images import read_set
from core.images.grid import mask_to_square, to_grid, to_square
from core.lab.sources import source
from core.tacsc.inputs import crops

SIDE = 32
"""Side of a crop: what the classifiers were trained on."""

LARGE_SIDE = 96
"""Side of the pictures of the U-Nets."""

MOST = 100
"""Crops or pictures of one live run at most."""

LONGEST = {SIDE: 128, LARGE_SIDE: 192}
"""Side of a crop -> the long side to which an image is scaled down before it is cut, so that a crop shows something."""

FIRST_SEED = 950_000
"""Of drawn pictures; no shipped set uses these."""

CIFAR_CLASSES = ("airplane", "automobile", "bird", "cat", "deer", "dog", "frog", "horse", "ship", "truck")
"""What the classifiers' ten logits mean."""


@dataclass(frozen=True, eq=False)
class Pictures:
    """Images of one size for a live run.

    Attributes:
        name: Where they come from: `"upload"`, `"phantom"`, `"cifar10"` or `"polyp"`.
        images: `(N, S, S, 3)` uint8.
        words: What they are, a sentence.
        masks: `(N, S, S)` bool where the truth of a segmentation is known.
        labels: `(N,)` int64 where the class is known.
        whole: `(H, W, 3)` uint8, the image that crops were cut from, as it was cut.
    """

    name: str
    images: np.ndarray = field(repr=False)
    words: str
    masks: np.ndarray | None = field(default=None, repr=False)
    labels: np.ndarray | None = field(default=None, repr=False)
    whole: np.ndarray | None = field(default=None, repr=False)

    def first(self, count: int) -> Pictures:
        """The first `count` of them."""
        masks = None if self.masks is None else self.masks[:count]
        labels = None if self.labels is None else self.labels[:count]
        return replace(self, images=self.images[:count], masks=masks, labels=labels)


def crops_of(rgb: np.ndarray, count: int, rng: Generator, side: int = SIDE) -> np.ndarray:
    """Square crops of one image at random places, every other one mirrored.

    Args:
        rgb: `(H, W, 3)` uint8; float arrays in [0, 255] are taken too, and must hold numbers.
        count: 2 to `MOST`.
        rng: Source of the places.
        side: Side of a crop.

    Returns:
        `(count, side, side, 3)` uint8.

    Raises:
        ValueError: The image is smaller than a crop, one flat colour, or holds values that are no numbers; or the count is out of range.
    """
    if not 2 <= count <= MOST:
        raise ValueError(f"{count} crops were asked for; between 2 and {MOST} can be cut.")
    picture = eight_bit(rgb)
    if picture.ndim != 3:
        raise ValueError(f"Crops are cut from one image of shape (H, W, 3), not from {picture.shape}.")
    height, width = picture.shape[:2]
    if min(height, width) < side:
        raise ValueError(
            f"The image has {width} × {height} pixels, and crops have {side} × {side}. Bring an image of at least {side} pixels on each side."
        )
    if (picture == picture[:1, :1]).all():
        raise ValueError("The image is one flat colour: there is nothing in it that λ could follow.")
    drawn = torch.Generator().manual_seed(int(rng.integers(2**31)))
    cut = crops(torch.from_numpy(picture.copy()).permute(2, 0, 1), count, side, drawn)
    return np.ascontiguousarray(cut.permute(0, 2, 3, 1).numpy())


def eight_bit(images: np.ndarray) -> np.ndarray:
    """`(..., 3)` uint8 as they are, or float values in [0, 255] rounded.

    Raises:
        ValueError: Another type or another number of channels, values that are no numbers, or values outside [0, 255].
    """
    if images.ndim < 3 or images.shape[-1] != 3:
        raise ValueError(
            f"Images in colour are wanted, with 3 values a pixel; these have the shape {images.shape}."
        )
    if images.dtype == np.uint8:
        return images
    if images.dtype.kind != "f":
        raise ValueError(
            f"Images in 8 bits are wanted, not in {images.dtype}. Bring them through `to_display` first."
        )
    bad = int((~np.isfinite(images)).any(-1).sum())
    if bad:
        raise ValueError(
            f"{bad:,} pixels hold values that are no numbers (NaN or infinity). Leave the image out, or fill them."
        )
    if images.min() < 0 or images.max() > 255:
        raise ValueError(
            f"Values run from {images.min():.3g} to {images.max():.3g}; they must lie in 0 to 255."
        )
    return np.rint(images).astype(np.uint8)


def upload(
    rgb: np.ndarray, count: int = MOST, seed: int = 0, name: str = "Your image", side: int = SIDE
) -> Pictures:
    """A person's own image, scaled down to `LONGEST` and cut into crops.

    Raises:
        ValueError: As in `crops_of`.
    """
    picture = eight_bit(rgb)
    height, width = picture.shape[:2]
    longest = max(LONGEST[side], math.ceil(side * max(height, width) / max(1, min(height, width))))
    whole = to_grid(picture, longest) if min(height, width) >= side else picture
    cut = crops_of(whole, count, np.random.default_rng([seed, side]), side)
    h, w = whole.shape[:2]
    scaled = "" if whole.shape == picture.shape else f", scaled to {w} × {h}"
    words = (
        f"{name}{scaled}, as {count} crops of {side} × {side} pixels: one image alone is one draw and no statistics, so λ follows its crops. They "
        "overlap and are alike, which {}."
    )
    few = (h - side + 1) * (w - side + 1) < count // 2
    how = (
        "here means nearly the same: the image is hardly larger than a crop"
        if few
        else "many images would not be"
    )
    return Pictures("upload", cut, words.format(how), whole=whole)


def phantoms(count: int = 32, seed: int = 0, side: int = LARGE_SIDE) -> Pictures:
    """Drawn phantoms with their masks; no shipped set uses these seeds. Cached."""
    first = FIRST_SEED + 1000 * seed
    drawn = [_phantom(first + k, side) for k in range(count)]
    words = f"{count} drawn pictures of {side} × {side} pixels with their lesions, from seeds that no network was trained on."
    return Pictures("phantom", np.stack([p for p, _ in drawn]), words, masks=np.stack([m for _, m in drawn]))


@lru_cache(maxsize=512)
def _phantom(seed: int, side: int) -> tuple[np.ndarray, np.ndarray]:
    """A phantom on a network's square, drawn as the recorded sets are (256 pixels), or smaller where the square is small."""
    one = draw(seed, size=256 if side > 64 else 64)
    return _square(one.image, one.mask, side)


def _square(rgb: np.ndarray, mask: np.ndarray, side: int) -> tuple[np.ndarray, np.ndarray]:
    """An image and its mask on a network's square, `(side, side, 3)` uint8 and `(side, side)` bool."""
    square = (to_square(rgb, side)[0].permute(1, 2, 0).numpy() + 1) * 127.5
    return np.rint(square).astype(np.uint8), mask_to_square(mask, side).numpy()


def cifar(data: Path, count: int = MOST, seed: int = 0, cache: Path | None = None) -> Pictures:
    """Test images of CIFAR-10 with their classes, drawn by the seed, where this server has the archive.

    Raises:
        DataAbsent: The archive is not in the folder.
    """
    read = read_set("cifar10", data, cache)
    pick = np.random.default_rng([seed, 7]).permutation(np.flatnonzero(read.test))[:count]
    words = f"{len(pick)} test images of CIFAR-10 (32 × 32 pixels), with their classes."
    return Pictures("cifar10", read.images[pick], words, labels=read.labels[pick])


def polyps(folder: Path, count: int = 32, seed: int = 0, side: int = LARGE_SIDE) -> Pictures:
    """Images of a folder with `images/` and `masks/` (Kvasir-SEG's layout) with their masks: the pool's images only, which no network was trained on.

    Raises:
        DataAbsent: The folder does not hold them.
    """
    parts, read = source("polyp", folder)
    names = np.random.default_rng([seed, 8]).permutation(np.array(parts.pool))[:count]
    squares = [_square(*read(str(name)), side) for name in names]
    words = f"{len(squares)} endoscopy images of this server's folder, {side} × {side} pixels, none of them in any network's training."
    return Pictures(
        "polyp", np.stack([p for p, _ in squares]), words, masks=np.stack([m for _, m in squares])
    )
