"""Where a study's images come from, how they are divided once and for all, and which network looks at them.

A study's name is a domain (`phantom`, `polyp`, `skin`, `fire`), or a domain and a base network (`skin-deeplab`); the bare domain means the
U-Net. All networks of a domain share its parts. Parts never cut through what belongs together: near-duplicate frames, a lesion's
photos, a fire's video.
"""

from __future__ import annotations

import csv
from collections.abc import Callable
from pathlib import Path

import numpy as np

from core.data.folders import DataAbsent, Pair, list_pairs
from core.data.splits import Parts, find_twins, make_parts, thumbnail_code
from core.lab.pool import draw_named
from core.nets.build import KINDS, SPECS, Spec
from core.nets.train import TrainSettings
from core.nets.weights import ASSETS

Reader = Callable[[str], tuple[np.ndarray, np.ndarray]]
"""Name of an image -> picture `(H, W, 3)` uint8 and mask `(H, W)` bool."""

DOMAINS = ("phantom", "polyp", "skin", "fire")
NAMES = (*DOMAINS, *(f"{d}-{k}" for d in DOMAINS for k in KINDS if k != "unet"))
"""Every study that can be made."""

SIZES = {"polyp": (360, 40, 300, 300), "phantom": (400, 40, 300, 300), "skin": (500, 60, 440, 600)}
"""Images in D1, D1's validation part, D2 and the pool; the fire study is divided by blocks instead."""

FIRE_BLOCKS = (6, 1, 4, 6)
"""Blocks (videos) in D1, D1's validation part, D2 and the pool."""

EPOCHS = {"polyp": 70, "phantom": 40, "skin": 30, "skin-pspnet": 50, "fire": 60}
"""Epochs of a study's base network; its domain's where it has no line of its own."""

_NETS = {
    "unet": Spec(side=128),
    "deeplab": Spec("deeplab", decoder=(64,), side=128),
    "pspnet": Spec("pspnet", decoder=(128,), side=128),
    "sinet": Spec("sinet", decoder=(24, 24), side=128),
}


def domain_of(name: str) -> str:
    """`"skin-deeplab"` -> `"skin"`.

    Raises:
        ValueError: The study is not one of `NAMES`.
    """
    if name not in NAMES:
        raise ValueError(f"The study {name!r} is not known; known: {', '.join(NAMES)}.")
    return name.split("-")[0]


def spec_of(name: str) -> Spec:
    """The base network of a study."""
    domain = domain_of(name)
    return SPECS[name] if name in SPECS else _NETS[name.removeprefix(domain).lstrip("-") or "unet"]


def training_of(name: str) -> TrainSettings:
    """How a study's base network is trained."""
    return TrainSettings(epochs=EPOCHS.get(name, EPOCHS[domain_of(name)]))


def source(name: str, data: Path | None, seed: int = 0, splits: Path | None = None) -> tuple[Parts, Reader]:
    """Parts and reader of a study.

    Args:
        name: One of `NAMES`.
        data: Folder of the real data set; unused for phantoms.
        seed: Draw of the parts, where they are not yet written down.
        splits: Folder of the written parts; the project's when None.

    Raises:
        DataAbsent: The folder does not hold the set, or lacks images of the written parts.
        ValueError: The study is not known, or no folder was given for real data.
    """
    domain = domain_of(name)
    if domain == "phantom":
        return phantom_parts(), draw_named
    if data is None:
        raise ValueError(f"The study {name!r} is made from real images: give their folder with --data.")
    pairs = {p.name: p for p in list_pairs(data, "_segmentation" if domain == "skin" else "")}
    known = (splits or ASSETS / "splits") / f"{domain}.json"
    if known.exists():
        parts = Parts.load(known)
    else:
        draw = {"polyp": _polyp_parts, "skin": _skin_parts, "fire": _fire_parts}[domain]
        parts = draw(pairs, data, np.random.default_rng(seed))
    missing = [n for n in (*parts.d1, *parts.d1_val, *parts.d2, *parts.pool) if n not in pairs]
    if missing:
        raise DataAbsent(
            f"{data} lacks {len(missing)} images of the {domain} study, {missing[0]} among them."
        )
    return parts, lambda key: pairs[key].read()


def phantom_parts() -> Parts:
    """The phantom study's parts: seeds by the thousand, and twelve pictures without a lesion in the pool."""
    d1, val, d2, pool = SIZES["phantom"]
    name = "phantom-{}".format
    return Parts(
        tuple(name(10_000 + k) for k in range(d1)),
        tuple(name(15_000 + k) for k in range(val)),
        tuple(name(20_000 + k) for k in range(d2)),
        (*(name(30_000 + k) for k in range(pool)), *(f"empty-{39_000 + k}" for k in range(12))),
    )


def _polyp_parts(pairs: dict[str, Pair], data: Path, rng: np.random.Generator) -> Parts:
    codes = np.stack([thumbnail_code(p.read()[0]) for p in pairs.values()])
    return make_parts(list(pairs), SIZES["polyp"], rng, find_twins(list(pairs), codes))


def _column(path: Path, key: str, value: str) -> dict[str, str]:
    if not path.exists():
        raise DataAbsent(
            f"The table {path.name} is not in {path.parent}: it says which images belong together."
        )
    with path.open(newline="", encoding="utf-8") as file:
        return {row[key]: row[value] for row in csv.DictReader(file)}


def _skin_parts(pairs: dict[str, Pair], data: Path, rng: np.random.Generator) -> Parts:
    """One photo of each of 1,600 lesions, so that no lesion is on two sides."""
    lesion = _column(data / "HAM10000_metadata.csv", "image_id", "lesion_id")
    first = {lesion[name]: name for name in sorted(pairs, reverse=True) if name in lesion}
    images = sorted(first.values())
    if len(images) < sum(SIZES["skin"]):
        raise DataAbsent(f"{data} holds {len(images)} lesions; the skin study needs {sum(SIZES['skin'])}.")
    chosen = rng.choice(len(images), sum(SIZES["skin"]), replace=False)
    return make_parts([images[i] for i in chosen], SIZES["skin"], rng)


def _fire_parts(pairs: dict[str, Pair], data: Path, rng: np.random.Generator) -> Parts:
    """Whole videos in each part. The pool is re-split by frame later, and promises only further frames of its videos."""
    block = _column(data / "groups.csv", "name", "block")
    blocks = sorted({block[name] for name in pairs if name in block})
    if len(blocks) < sum(FIRE_BLOCKS):
        raise DataAbsent(f"{data} holds {len(blocks)} videos; the fire study needs {sum(FIRE_BLOCKS)}.")
    order = [blocks[i] for i in rng.permutation(len(blocks))]
    parts, start = [], 0
    for count in FIRE_BLOCKS:
        mine = set(order[start : start + count])
        parts.append(tuple(sorted(n for n in pairs if block.get(n) in mine)))
        start += count
    d1, d1_val, d2, pool = parts
    return Parts(d1, d1_val, d2, pool)
