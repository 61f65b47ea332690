"""A sample for people without data at hand: labels and logits of a made-up classifier that was trained on a long tail, as one NPZ.

Nobody's data: eight shapes of invented names, logits drawn so that rare classes are called like their frequent neighbours on new samples and are
known by heart on the training samples. The NPZ shows the layout that uploads like best.
"""

from __future__ import annotations

import io
from functools import lru_cache

import numpy as np

CLASSES = ("circle", "square", "triangle", "star", "ring", "cross", "crescent", "spiral")
COUNTS = (600, 340, 190, 110, 60, 34, 19, 11)
"""Training samples, from head to tail."""

NEIGHBOURS = (
    (4, 0, 1.6),
    (6, 0, 2.2),
    (6, 4, 1.0),
    (7, 4, 2.0),
    (5, 3, 1.8),
    (3, 5, 0.6),
    (2, 1, 0.8),
    (7, 0, 0.8),
)
"""(true class, the one it is taken for, by how many logits)."""

TEST = 80
"""Test samples of each class."""

FILE = "plumbline-classifier-sample.npz"


def logits_of(labels: np.ndarray, sure: float, rng: np.random.Generator) -> np.ndarray:
    """Made-up logits `(N, K)`: the true class ahead by `sure`, its neighbours and the frequent classes drawn up.

    Args:
        labels: `(N,)`.
        sure: How far ahead the true class is, in logits.
        rng: The draw.
    """
    k = len(CLASSES)
    pull = np.zeros((k, k))
    for true, other, by in NEIGHBOURS:
        pull[true, other] = by
    prior = np.log(np.array(COUNTS) / max(COUNTS))
    x = rng.normal(0, 1.0, (len(labels), k)) + 0.45 * prior + pull[labels]
    x[np.arange(len(labels)), labels] += sure
    return x.astype(np.float32)


@lru_cache(maxsize=1)
def sample_npz() -> bytes:
    """The sample; made once a process."""
    rng = np.random.default_rng(20_261_130)
    labels = np.repeat(np.arange(len(CLASSES)), TEST)
    learned = np.repeat(np.arange(len(CLASSES)), COUNTS)
    out = io.BytesIO()
    np.savez_compressed(
        out,
        labels=labels.astype(np.int16),
        logits=logits_of(labels, 3.2, rng),
        train_labels=learned.astype(np.int16),
        train_logits=logits_of(learned, 6.5, rng),
        counts=np.array(COUNTS),
        classes=np.array(CLASSES),
    )
    return out.getvalue()
