"""Long-tailed subsets of a labelled set: exponentially falling class counts, and a seeded draw of that many samples of each class.

METHODS 3.6. n_j = int(n_max · (1/IF)^(j/(K-1))) for rank j from 0 (head) to K - 1 (tail); for CIFAR-100 with n_max = 500 and IF = 100 they
sum to 10,847. Also here: a stratified part that is held out, with groups that stay together. It reads no files.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np


def longtail_counts(classes: int, largest: int, imbalance: float) -> np.ndarray:
    """Class counts from head to tail, `(K,)` int64, never below 1.

    Args:
        classes: K.
        largest: n_max, samples of the most frequent class.
        imbalance: IF >= 1, largest over smallest count.

    Raises:
        ValueError: A number is out of range.
    """
    if classes < 1 or largest < 1 or not imbalance >= 1:
        raise ValueError(
            f"A long tail needs at least one class, one sample and an imbalance of 1 or more, not {classes}, {largest} and {imbalance}."
        )
    j = np.arange(classes) / max(classes - 1, 1)
    # 1e-9: a power that should be whole may come out a hair below it
    return np.maximum((largest * (1 / imbalance) ** j + 1e-9).astype(np.int64), 1)


def subsample(labels: np.ndarray, counts: Sequence[int] | np.ndarray, rng: np.random.Generator) -> np.ndarray:
    """Draw a given number of samples of each class.

    Args:
        labels: `(N,)` classes in [0, K).
        counts: `(K,)` wanted samples of each class.
        rng: The draw.

    Returns:
        Sorted indices into `labels`.

    Raises:
        ValueError: A class has fewer samples than are wanted; names it.
    """
    wanted = np.asarray(counts)
    chosen = []
    for k, n in enumerate(wanted):
        there = np.flatnonzero(labels == k)
        if len(there) < n:
            raise ValueError(
                f"Class {k} has {len(there)} samples, and {n} are wanted. Make the largest count smaller."
            )
        chosen.append(rng.permutation(there)[:n])
    return np.sort(np.concatenate(chosen)) if chosen else np.zeros(0, np.int64)


def make_longtail(
    labels: np.ndarray,
    imbalance: float,
    rng: np.random.Generator,
    largest: int | None = None,
    order: Sequence[int] | None = None,
) -> np.ndarray:
    """Make any labelled set long-tailed.

    Args:
        labels: `(N,)` classes in [0, K), each with at least one sample.
        imbalance: IF, largest over smallest count.
        rng: The draw.
        largest: n_max; None takes as many as the classes allow.
        order: Classes from head to tail; None takes them as they are numbered.

    Returns:
        Sorted indices into `labels`.

    Raises:
        ValueError: The order is no permutation of the classes, or a class has too few samples.
    """
    available = np.bincount(labels)
    k = len(available)
    ranks = np.arange(k) if order is None else np.asarray(order)
    if sorted(ranks.tolist()) != list(range(k)):
        raise ValueError(f"The order from head to tail must name each of the {k} classes once.")
    if largest is None:
        shape = (1 / imbalance) ** (np.arange(k) / max(k - 1, 1))
        largest = max(int((available[ranks] / shape).min()), 1)
    counts = np.zeros(k, np.int64)
    counts[ranks] = longtail_counts(k, largest, imbalance)
    return subsample(labels, counts, rng)


def hold_out(
    labels: np.ndarray, share: float, rng: np.random.Generator, groups: np.ndarray | None = None
) -> tuple[np.ndarray, np.ndarray]:
    """Divide a set in two, class by class.

    Args:
        labels: `(N,)` classes.
        share: Share of each class that is held out, in (0, 1); at least one sample and never the whole class, where it has two groups.
        rng: The draw.
        groups: `(N,)` samples with the same number stay together (photos of one lesion); None: each sample by itself. A group
            belongs to one class.

    Returns:
        Sorted indices of the samples that stay and of those held out.

    Raises:
        ValueError: The share is out of range, or a group has samples of two classes.
    """
    if not 0 < share < 1:
        raise ValueError(f"The share held out is {share}; it must lie between 0 and 1.")
    group = np.arange(len(labels)) if groups is None else np.asarray(groups)
    pairs = np.unique(np.stack([group, labels]), axis=1)
    names, times = np.unique(pairs[0], return_counts=True)
    if (times > 1).any():
        raise ValueError(
            f"Group {names[times > 1][0]} has samples of more than one class; a group belongs to one class."
        )
    out = np.zeros(len(labels), bool)
    for k in np.unique(labels):
        mine = np.flatnonzero(labels == k)
        _, which, size = np.unique(group[mine], return_inverse=True, return_counts=True)
        order = rng.permutation(len(size))
        before = np.cumsum(size[order]) - size[order]
        taken = order[:-1][before[:-1] < max(share * len(mine), 1) - 0.5]  # one group always stays
        out[mine[np.isin(which, taken)]] = True
    return np.flatnonzero(~out), np.flatnonzero(out)
