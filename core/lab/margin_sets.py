"""The four sets on which losses are compared: drawn phantoms, skin lesions, polyps, and nuclei in three classes.

Everything happens on the network's own grid of 96 x 96 pixels: images are scaled with their aspect kept, padding is ignored in losses and in
metrics. Phantoms, skin and polyps keep the parts of their studies (`sources`), a subset of D1 where that is larger. Nuclei are made here: the
image is scaled to a long side of 160, its centre is cut out, and the outermost pixel of each nucleus is a class of its own, the rim.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import torch

from core.data.folders import DataAbsent, list_pairs
from core.data.splits import Parts, find_twins, make_parts, thumbnail_code
from core.images.grid import mask_to_square, to_square
from core.lab.sources import source
from core.nets.weights import ASSETS

SIDE = 96
"""Side of the square that the networks see, in pixels."""

MARGIN_SETS = ("phantom", "skin", "polyp", "nuclei")
"""Sets that losses are compared on."""

REAL_SETS = MARGIN_SETS[1:]

CLASSES = {
    "phantom": ("background", "lesion"),
    "skin": ("background", "lesion"),
    "polyp": ("background", "polyp"),
    "nuclei": ("background", "nucleus", "rim"),
}
"""Names of the classes, in the order of the labels."""

TRAIN = 300
"""Images of D1 that train a network, the first ones; fewer images make the overconfidence that losses differ in easier to see."""

NUCLEI_PARTS = (300, 64, 150, 150)
NUCLEI_SIDE = 160
FOLDERS = {"skin": "ham10000", "polyp": "kvasir_seg", "nuclei": "nuclei_dsb2018"}
"""Folder of each set inside a folder that holds them all."""

Read = Callable[[str], tuple[np.ndarray, np.ndarray]]


@dataclass(frozen=True)
class Labelled:
    """Images of one part, ready for a network.

    Attributes:
        names: N names.
        images: `(N, 3, 96, 96)` float32 in [-1, 1], 0 where padded.
        labels: `(N, 96, 96)` int64, 0 where padded.
        ignore: `(N, 96, 96)` bool, True where padded.
    """

    names: tuple[str, ...]
    images: torch.Tensor
    labels: torch.Tensor
    ignore: torch.Tensor

    def __len__(self) -> int:
        return len(self.names)


def parts_of(name: str, data: Path | None) -> tuple[Parts, Read]:
    """Parts and reader of a set.

    Args:
        name: One of `MARGIN_SETS`.
        data: Folder that holds the real sets' folders (`FOLDERS`), or the set's own folder; unused for phantoms.

    Raises:
        DataAbsent: The set is not there.
        ValueError: The set is not known.
    """
    if name not in MARGIN_SETS:
        raise ValueError(f"The set {name!r} is not known; known: {', '.join(MARGIN_SETS)}.")
    if name == "phantom":
        return source("phantom", None)
    if data is None:
        raise DataAbsent(f"The set {name!r} is made from real images: give their folder with --data.")
    folder = data / FOLDERS[name] if (data / FOLDERS[name]).is_dir() else data
    return source(name, folder) if name != "nuclei" else _nuclei(folder)


def _nuclei(folder: Path) -> tuple[Parts, Read]:
    pairs = {p.name: p for p in list_pairs(folder)}
    known = ASSETS / "splits" / "nuclei.json"
    if known.exists():
        parts = Parts.load(known)
        wanted = (*parts.d1, *parts.d1_val, *parts.d2, *parts.pool)
        if missing := [n for n in wanted if n not in pairs]:
            raise DataAbsent(
                f"{folder} lacks {len(missing)} images of the nuclei set, {missing[0]} among them."
            )
    else:
        codes = np.stack([thumbnail_code(p.read()[0]) for p in pairs.values()])
        twins = find_twins(list(pairs), codes)
        parts = make_parts(list(pairs), NUCLEI_PARTS, np.random.default_rng(0), twins)
    return parts, lambda key: pairs[key].read()


def square_of(
    name: str, rgb: np.ndarray, mask: np.ndarray
) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    """One image as its network sees it.

    Args:
        name: The set.
        rgb: `(H, W, 3)` uint8.
        mask: `(H, W)` bool, the foreground.

    Returns:
        Image `(3, 96, 96)` float32, labels `(96, 96)` int64 and ignore `(96, 96)` bool.
    """
    side = NUCLEI_SIDE if name == "nuclei" else SIDE
    image, frame = to_square(rgb, side)
    inside = mask_to_square(mask, side)
    ignore = torch.ones(side, side, dtype=torch.bool)
    ignore[: frame.height, : frame.width] = False
    labels = inside.long()
    if name == "nuclei":
        labels = with_rim(inside)
        top, left = max(0, (frame.height - SIDE) // 2), max(0, (frame.width - SIDE) // 2)
        at = (slice(top, top + SIDE), slice(left, left + SIDE))
        image, labels, ignore = image[:, at[0], at[1]], labels[at], ignore[at]
    return image, labels, ignore


def with_rim(mask: torch.Tensor) -> torch.Tensor:
    """Background 0, nucleus 1, and 2 for its outermost pixels (those with background among their eight neighbours).

    Args:
        mask: `(H, W)` bool.

    Returns:
        `(H, W)` int64. A nucleus that touches the image's edge has no rim there.
    """
    from scipy.ndimage import binary_erosion

    inner = binary_erosion(mask.numpy(), np.ones((3, 3), bool), border_value=1)
    return mask.long() + (mask & ~torch.from_numpy(inner)).long()


def load_set(name: str, data: Path | None, work: Path | None = None) -> dict[str, Labelled]:
    """Read a set.

    Args:
        name: One of `MARGIN_SETS`.
        data: As in `parts_of`.
        work: Folder for a cache of what was read; None keeps nothing.

    Returns:
        `"train"`, `"val"`, `"d2"` and `"pool"`.

    Raises:
        DataAbsent, ValueError: As in `parts_of`.
    """
    parts, read = parts_of(name, data)
    lists = {"train": parts.d1[:TRAIN], "val": parts.d1_val, "d2": parts.d2, "pool": parts.pool}
    cache = None if work is None else work / f"{name}.npz"
    if cache is not None and cache.exists():
        with np.load(cache, allow_pickle=False) as z:
            raw = {key: z[key] for key in z.files}
    else:
        raw = {}
        for part, names in lists.items():
            squares = [square_of(name, *read(key)) for key in names]
            images, labels, ignore = (torch.stack(x) for x in zip(*squares, strict=True))
            raw[f"{part}.images"] = ((images + 1) * 127.5).round().to(torch.uint8).numpy()
            raw[f"{part}.labels"] = labels.to(torch.uint8).numpy()
            raw[f"{part}.ignore"] = ignore.numpy()
        if cache is not None:
            work.mkdir(parents=True, exist_ok=True)  # type: ignore[union-attr]
            part_file = cache.with_suffix(".part.npz")
            np.savez(part_file, **raw)
            part_file.replace(cache)
    return {
        part: Labelled(
            tuple(names),
            torch.from_numpy(raw[f"{part}.images"]).float() / 127.5 - 1,
            torch.from_numpy(raw[f"{part}.labels"]).long(),
            torch.from_numpy(raw[f"{part}.ignore"]),
        )
        for part, names in lists.items()
    }


def write_nuclei_parts(data: Path) -> Path:
    """Write the nuclei set's parts down, once and for all.

    Returns:
        The file.
    """
    path = ASSETS / "splits" / "nuclei.json"
    parts_of("nuclei", data)[0].save(path)
    return path
