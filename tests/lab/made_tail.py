"""A made-up long-tailed set of tiny pictures: three classes by colour and pattern, the rare one like the frequent one."""

from __future__ import annotations

import numpy as np

from core.data.tar_images import LabelledImages
from core.lab.tail_schedule import Schedule
from core.lab.tail_sets import TailSet, divide

QUICK = Schedule(width=4, depth=8, epochs=2, batch=16, bfloat16=False, train_every=5)


def made_set(seed: int = 0, side: int = 32) -> TailSet:
    rng = np.random.default_rng(seed)
    counts, test = (40, 20, 6), 8
    labels = np.repeat(np.arange(3), [n + test for n in counts])
    colour = np.array([[150, 60, 60], [60, 150, 60], [140, 70, 60]])
    images = colour[labels][:, None, None] + rng.normal(0, 25, (len(labels), side, side, 3))
    read = LabelledImages(
        images.clip(0, 255).astype(np.uint8),
        labels.astype(np.int64),
        ("red", "green", "rust"),
        np.arange(len(labels)),
        np.zeros(len(labels), bool),
    )
    chosen = np.concatenate([np.flatnonzero(labels == k)[:test] for k in range(3)])
    rest = np.setdiff1d(np.arange(len(labels)), chosen)
    return divide("made", read, rest, chosen, np.random.default_rng(1))
