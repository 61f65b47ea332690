"""Names of networks, layers and ways of adaptation, as charts and sentences call them, and what every view reads of a record first."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np

from core.lab.sparse_record import SparseRecord
from core.lab.sparse_train import Run

TITLES = {
    "resnet": "ResNet-18",
    "fixed": "fixed λ",
    "tacsc": "TA-CSC-18",
    "tacsc_all": "TA-CSC-18all",
}
"""Models as a chart calls them."""

ADAPT_TITLES = {"none": "none", "bn": "BN", "lambda": "λ", "both": "λ and BN"}
"""What adapts, as a chart calls it."""

SAMPLES = 100
"""Unlabelled images that adaptation saw wherever nothing else is said."""


def layer_words(name: str) -> str:
    """A sparse layer's name in words: `conv1` -> "first layer", `blocks.2.conv1` -> "block 3, first", `conv_0.conv_0.conv` -> "first layer"."""
    parts = name.split(".")
    if parts[0] == "blocks":
        return f"block {int(parts[1]) + 1}, {'first' if parts[2] == 'conv1' else 'second'}"
    return "pooling layer" if parts[0] == "pool" else "first layer"


def title_of(record: SparseRecord) -> str:
    """A run on the screen: "TA-CSC-18, K = 4"; K is said where it is not 2, seed and epochs where the seed is not 0."""
    title = TITLES[record.model]
    if record.model != "resnet" and record.settings.iterations != 2:
        title += f", K = {record.settings.iterations}"
    return title + (f", seed {record.seed}, {epochs_of(record)} epochs" if record.seed else "")


def epochs_of(record: SparseRecord) -> int:
    """Passes over the training images."""
    return int(record.schedule.get("epochs", 0))


def beside(
    records: Iterable[SparseRecord], record: SparseRecord, model: str = "resnet"
) -> SparseRecord | None:
    """The run of another model that was trained alike: the same width, seed and epochs. None where it is not recorded."""
    mine = (record.width, record.seed, epochs_of(record))
    return next((r for r in records if r.model == model and (r.width, r.seed, epochs_of(r)) == mine), None)


def key_of(record: SparseRecord) -> str:
    """The key of a record's files."""
    return Run(record.model, record.settings, record.width, record.seed).key


def trained_of(record: SparseRecord) -> np.ndarray:
    """`(L,)` λ after training; empty for the ResNet."""
    rows = record.history.get("threshold") or [[]]
    return np.asarray(rows[-1], float)
