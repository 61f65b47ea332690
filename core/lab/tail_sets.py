"""The four long-tailed sets: which images train, which are looked at to choose, which test.

The division is drawn once from a fixed seed, so that runs of different seeds share it; every method sees the same images. 15 % of each
class's training images (at least one) are the validation part: hyperparameters are chosen there and nowhere else, and no run trains on it.
`ham10000` is long-tailed by nature and divided by lesion; `pbc` and `cifar10` are made long-tailed (imbalance 100); `tiny` comes
long-tailed.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
import torch

from core.data.longtail import hold_out, make_longtail, subsample
from core.data.splits import content_hash
from core.data.tar_images import LabelledImages, read_set

SETS = ("ham10000", "pbc", "cifar10", "tiny")
"""Names of the sets."""

SIDE = 32
"""Side of the pictures in pixels."""

IMBALANCE = 100.0
"""Largest over smallest class of the sets that are made long-tailed."""

PBC_TEST, PBC_LARGEST = 250, 2000
"""Test images of each blood cell type, and training images of the most frequent one (its validation part included)."""

HAM_TEST = 0.3
"""Share of each diagnosis's photos that test, by lesion."""

VALIDATION = 0.15
"""Share of each class's training images that is looked at to choose."""

MOST_TWINS = 0.001
"""Share of the test pictures that may also be, under another name, among the training pictures."""

DRAW = 2024
"""Seed of every division."""


@dataclass(frozen=True)
class Part:
    """Images and their classes: `(N, S, S, 3)` uint8 and `(N,)` int64."""

    images: torch.Tensor = field(repr=False)
    labels: torch.Tensor = field(repr=False)

    def __len__(self) -> int:
        return len(self.labels)


@dataclass(frozen=True)
class TailSet:
    """A set, divided.

    Attributes:
        name: One of `SETS`, or any name for a set of one's own.
        classes: K names.
        train: What networks are trained on.
        val: The validation part of the training images.
        test: What figures are made of.
        counts: `(K,)` training images of each class.
        mean: `(3,)` mean colour of the training images in [0, 1].
        std: `(3,)` its deviation.
        twins: Test pictures whose very pixels are in the training or validation part too, under another name.
    """

    name: str
    classes: tuple[str, ...]
    train: Part
    val: Part
    test: Part
    counts: np.ndarray
    mean: torch.Tensor
    std: torch.Tensor
    twins: int = 0


def divide(
    name: str,
    read: LabelledImages,
    train: np.ndarray,
    test: np.ndarray,
    rng: np.random.Generator,
    share: float = VALIDATION,
) -> TailSet:
    """Take the validation part off the training images and measure the colours of the rest.

    Args:
        name: What the set is called.
        read: All images.
        train: Indices of the training images.
        test: Indices of the test images.
        rng: The draw.
        share: Share of each class that validates.

    Raises:
        ValueError: An image, or a photo of the same lesion, is on both sides; or more than `MOST_TWINS` of the test pictures have the very
            pixels of a training picture. Fewer are counted in `twins`: published sets hold a few.
    """
    shared = np.intersect1d(read.groups[train], read.groups[test])
    if len(shared):
        raise ValueError(f"{len(shared)} image(s) or lesions of {name} are in both training and test.")
    seen = {content_hash(read.images[i]) for i in train}
    twins = sum(content_hash(read.images[i]) in seen for i in test)
    if twins > MOST_TWINS * len(test):
        raise ValueError(
            f"{twins} of {len(test)} test pictures of {name} are, pixel for pixel, among the training pictures. Figures would flatter."
        )
    stay, out = hold_out(read.labels[train], share, rng, read.groups[train])

    def part(index: np.ndarray) -> Part:
        return Part(torch.from_numpy(read.images[index]), torch.from_numpy(read.labels[index]))

    kept = part(train[stay])
    colours = kept.images.double().div(255).reshape(-1, 3)
    return TailSet(
        name,
        read.classes,
        kept,
        part(train[out]),
        part(test),
        np.bincount(read.labels[train[stay]], minlength=len(read.classes)),
        colours.mean(0).float(),
        colours.std(0).clamp(min=1e-3).float(),
        twins,
    )


def tail_set(name: str, data: str | Path, cache: Path | None = None) -> TailSet:
    """Read a set and divide it.

    Args:
        name: One of `SETS`.
        data: Folder with the archives and the folder `ham10000`.
        cache: Folder for the arrays that were read; None keeps nothing.

    Raises:
        DataAbsent: The set is not there.
        ValueError: The name is not known, or the set is damaged.
    """
    if name not in SETS:
        raise ValueError(f"The set {name!r} is not known; known: {', '.join(SETS)}.")
    read = read_set(name, data, cache, SIDE)
    rng = np.random.default_rng(DRAW)
    every = np.arange(len(read))
    if name == "ham10000":
        train, test = hold_out(read.labels, HAM_TEST, rng, read.groups)
    elif name == "pbc":
        test = subsample(read.labels, [PBC_TEST] * len(read.classes), rng)
        rest = np.setdiff1d(every, test)
        order = np.argsort(-np.bincount(read.labels[rest]), kind="stable")
        train = rest[make_longtail(read.labels[rest], IMBALANCE, rng, PBC_LARGEST, order.tolist())]
    else:
        test, train = np.flatnonzero(read.test), np.flatnonzero(~read.test)
        if name == "cifar10":
            train = train[make_longtail(read.labels[train], IMBALANCE, rng)]
    return divide(name, read, train, test, rng)
