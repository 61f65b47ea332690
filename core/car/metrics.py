"""Confusion counts and what is read from them: overall, head, medium and tail recall, the worst class, the mean of the worst, macro F1,
and how much of the training recall survives on new images.

METHODS 3.6. A class without a test sample has no recall: it is left out of every figure and counted. Rows are predicted classes,
columns true ones.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np
import torch

from core.car.weights import Counts, as_counts

FEW_CLASSES = 10
"""Up to so many classes, groups are thirds of the ranking by training count; beyond, they are cut at `MANY` and `FEW` images."""

MANY, FEW = 100, 20
"""More training images than `MANY`: head. Fewer than `FEW`: tail (METHODS 3.6)."""


def _as_integers(values: np.ndarray | torch.Tensor | Sequence[int], what: str) -> np.ndarray:
    array = values.detach().cpu().numpy() if isinstance(values, torch.Tensor) else np.asarray(values)
    if array.ndim != 1:
        raise ValueError(f"{what} must have the shape (N,), not {array.shape}.")
    if array.dtype.kind == "f":
        bad = np.flatnonzero(~np.isfinite(array) | (array != np.round(array)))
        if len(bad):
            raise ValueError(
                f"{what} must be whole numbers; entry {bad[0]} is {array[bad[0]]}. Give class numbers, or logits of shape (N, K)."
            )
    elif array.dtype.kind not in "iub":
        raise ValueError(f"{what} must be whole numbers, not values like {array.ravel()[0]!r}.")
    return array.astype(np.int64)


def predictions_of(logits: np.ndarray | torch.Tensor) -> np.ndarray:
    """The largest logit's class, `(N,)` int64.

    Args:
        logits: `(N, K)`.

    Raises:
        ValueError: Another shape, or values that are no numbers; names the first such row.
    """
    array = logits.detach().float().cpu().numpy() if isinstance(logits, torch.Tensor) else np.asarray(logits)
    if array.ndim != 2 or array.shape[1] < 1:
        raise ValueError(f"Logits must have the shape (N, K), not {array.shape}.")
    bad = np.flatnonzero(np.isnan(array).any(1))
    if len(bad):
        raise ValueError(
            f"The logits of {len(bad)} of {len(array)} samples are no numbers (NaN), first in row {bad[0]}. Remove or repair these rows."
        )
    return array.argmax(1).astype(np.int64)


def confusion(
    labels: np.ndarray | torch.Tensor | Sequence[int],
    predicted: np.ndarray | torch.Tensor | Sequence[int],
    classes: int,
) -> np.ndarray:
    """Count hard decisions.

    Args:
        labels: `(N,)` true classes.
        predicted: `(N,)` predicted classes.
        classes: K.

    Returns:
        `(K, K)` int64; entry [i, j] counts samples of class j that were called i.

    Raises:
        ValueError: Lengths differ, or a class is outside [0, K); names the first such sample.
    """
    true, said = _as_integers(labels, "True labels"), _as_integers(predicted, "Predicted labels")
    if len(true) != len(said):
        raise ValueError(
            f"There are {len(true)} true and {len(said)} predicted labels; each sample needs one of both."
        )
    for what, values in (("True", true), ("Predicted", said)):
        bad = np.flatnonzero((values < 0) | (values >= classes))
        if len(bad):
            raise ValueError(
                f"{what} label {values[bad[0]]} of sample {bad[0]} is outside 0..{classes - 1} ({len(bad)} such labels). "
                "Number the classes from 0, or say how many classes there are."
            )
    return np.bincount(said * classes + true, minlength=classes * classes).reshape(classes, classes)


def recalls(matrix: np.ndarray) -> np.ndarray:
    """Recall of each class, `(K,)` float64; NaN for a class without a sample. `matrix` as from `confusion`."""
    counted = np.asarray(matrix, np.float64)
    total = counted.sum(0)
    return np.divide(np.diag(counted), total, out=np.full(len(total), np.nan), where=total > 0)


@dataclass(frozen=True)
class Groups:
    """Classes by how many training samples they have.

    Attributes:
        head: Indices of the frequent classes.
        medium: Those between.
        tail: The rare ones.
    """

    head: np.ndarray
    medium: np.ndarray
    tail: np.ndarray


def groups_of(counts: Counts) -> Groups:
    """Divide classes into head, medium and tail.

    Up to ten classes: the third with most samples, the third with fewest (rounded, at least one class; ties by class number) and the rest.
    More: above 100 training samples, 20 to 100, below 20, as is usual for CIFAR-100-LT.

    Args:
        counts: `(K,)` training samples of each class.
    """
    values = as_counts(counts).numpy()
    k = len(values)
    if k > FEW_CLASSES:
        return Groups(
            np.flatnonzero(values > MANY),
            np.flatnonzero((values >= FEW) & (values <= MANY)),
            np.flatnonzero(values < FEW),
        )
    order = np.argsort(-values, kind="stable")
    third = max(1, round(k / 3))
    cut = max(third, k - third)
    return Groups(np.sort(order[:third]), np.sort(order[third:cut]), np.sort(order[cut:]))


def mean_of(values: np.ndarray, index: np.ndarray) -> float:
    """Mean over the chosen classes that have a value; NaN where none has."""
    chosen = np.asarray(values, np.float64)[index]
    there = chosen[~np.isnan(chosen)]
    return float(there.mean()) if len(there) else float("nan")


@dataclass(frozen=True)
class Figures:
    """What one confusion matrix says. All shares in [0, 1], NaN where nothing can be said.

    Attributes:
        overall: Share of samples that are right.
        mean_recall: Mean recall over classes (balanced accuracy).
        head: Mean recall of the head group.
        medium: Of the medium group.
        tail: Of the tail group.
        worst: Recall of the worst class.
        worst_class: Its number, -1 where no class has a sample (ties: the smallest number).
        worst_classes: Mean recall of the worst two for up to ten classes; of the tail group for more.
        worst_ten: Mean recall of the ten worst classes (of all, if there are fewer): less noisy than the minimum.
        macro_f1: Mean F1 over classes that have a sample.
        left_out: Number of classes without a sample.
        recall: `(K,)`, NaN where there is no sample.
    """

    overall: float
    mean_recall: float
    head: float
    medium: float
    tail: float
    worst: float
    worst_class: int
    worst_classes: float
    worst_ten: float
    macro_f1: float
    left_out: int
    recall: np.ndarray = field(repr=False)


def figures_of(matrix: np.ndarray, counts: Counts) -> Figures:
    """Read the figures of a confusion matrix.

    Args:
        matrix: `(K, K)` counts, rows predicted, columns true.
        counts: `(K,)` training samples of each class, for the groups.

    Raises:
        ValueError: Shapes do not fit, or an entry is negative or no number.
    """
    counted = np.asarray(matrix, np.float64)
    k = len(as_counts(counts))
    if counted.shape != (k, k):
        raise ValueError(f"The matrix has the shape {counted.shape}, and there are {k} classes with counts.")
    if not np.isfinite(counted).all() or (counted < 0).any():
        raise ValueError("A confusion matrix holds numbers of samples: none below 0, none missing.")
    recall, total = recalls(counted), counted.sum()
    there = ~np.isnan(recall)
    ranked = np.sort(recall[there])
    groups = groups_of(counts)
    hits, said = np.diag(counted), counted.sum(1)
    f1 = 2 * hits[there] / (said + counted.sum(0))[there]
    every = np.arange(k)
    tail = mean_of(recall, groups.tail)
    few = float(ranked[:2].mean()) if len(ranked) else float("nan")
    return Figures(
        overall=float(hits.sum() / total) if total else float("nan"),
        mean_recall=mean_of(recall, every),
        head=mean_of(recall, groups.head),
        medium=mean_of(recall, groups.medium),
        tail=tail,
        worst=float(ranked[0]) if len(ranked) else float("nan"),
        worst_class=int(np.nanargmin(recall)) if there.any() else -1,
        worst_classes=few if k <= FEW_CLASSES else tail,
        worst_ten=float(ranked[:10].mean()) if len(ranked) else float("nan"),
        macro_f1=float(f1.mean()) if len(f1) else float("nan"),
        left_out=int((~there).sum()),
        recall=recall,
    )


@dataclass(frozen=True)
class Survival:
    """How much of the training recall survives on new images (METHODS 3.6 defines WR; the ratio of minima is given beside it).

    Attributes:
        class_index: j*, the worst class on the test images; -1 where there is none.
        test: Its recall on the test images.
        train: Its recall on the training images, in eval mode and without augmentation.
        wr: test / train; NaN where the training recall is 0 or not known.
        ratio_of_minima: Worst test recall over worst training recall, possibly of different classes.
    """

    class_index: int
    test: float
    train: float
    wr: float
    ratio_of_minima: float


def survival(test: np.ndarray, train: np.ndarray) -> Survival:
    """WR from two confusion matrices `(K, K)` of the same network."""
    on_test, on_train = recalls(test), recalls(train)
    if on_test.shape != on_train.shape:
        raise ValueError(f"The two matrices have {len(on_test)} and {len(on_train)} classes.")
    if np.isnan(on_test).all():
        nan = float("nan")
        return Survival(-1, nan, nan, nan, nan)
    j = int(np.nanargmin(on_test))
    lowest = float(np.nanmin(on_train)) if not np.isnan(on_train).all() else float("nan")

    def ratio(a: float, b: float) -> float:
        return a / b if b > 0 else float("nan")

    t, r = float(on_test[j]), float(on_train[j])
    return Survival(j, t, r, ratio(t, r), ratio(t, lowest))
