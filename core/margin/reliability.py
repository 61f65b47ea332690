"""How far stated probabilities lie from observed frequencies: reliability tables, ECE, classwise ECE, ACE, Brier score and NLL.

What it is not: a chart (`core.figures`), or a repair (`core.margin.temperature`). ECE: Guo and others, *On calibration of modern neural networks*
(2017), equation 3. Classwise ECE: Kull and others, *Beyond temperature scaling* (2019), over a fixed set of classes. Brier score: sum over
classes. ACE lives in `core.margin.adaptive`.

Two scopes. "foreground" counts pixels whose truth is not class 0, as the paper of the margin loss does. It conditions on the label, so even a
perfectly calibrated model has an error there; "all" counts every pixel. Tables merge: pooled figures come from `Reliability.merge`, the mean
of per-image figures from `per_image`. They differ, so say which.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, fields
from typing import Any

import numpy as np

from core.margin.adaptive import ace
from core.margin.pixels import BINS, EMPTY, SCOPES, Pixels, bin_of, choose_classes, read_pixels

Metric = Callable[["Reliability"], float]

__all__ = [
    "METRICS",
    "PerImage",
    "Reliability",
    "ace",
    "brier",
    "classwise_ece",
    "ece",
    "nll",
    "per_image",
    "tabulate",
    "tabulate_scopes",
]


@dataclass(frozen=True, eq=False)
class Reliability:
    """Sums over pixels from which every binned figure follows. B bins (lo, hi] of equal width, K classes.

    Attributes:
        count: `(B,)` pixels whose confidence (largest probability) falls in each bin.
        confidence: `(B,)` float64, sum of their confidences.
        correct: `(B,)` how many of them are predicted right.
        class_count: `(K, B)` pixels by the probability of each class.
        class_confidence: `(K, B)` float64, sum of these probabilities.
        class_correct: `(K, B)` how many of them have that class as truth.
        brier_sum: Sum over pixels of sum_k (p_k - [k is true])^2.
        nll_sum: Sum over pixels of -log p of the true class, in nats.
        pixels: Pixels counted.
        floored: Pixels whose true class had a given probability below 1e-12, which NLL takes as 1e-12; 0 where logits were given.
    """

    count: np.ndarray
    confidence: np.ndarray
    correct: np.ndarray
    class_count: np.ndarray = field(repr=False)
    class_confidence: np.ndarray = field(repr=False)
    class_correct: np.ndarray = field(repr=False)
    brier_sum: float
    nll_sum: float
    pixels: int
    floored: int = 0

    @property
    def bins(self) -> int:
        """B."""
        return len(self.count)

    @property
    def classes(self) -> int:
        """K."""
        return len(self.class_count)

    @property
    def edges(self) -> np.ndarray:
        """`(B + 1,)` edges of the bins."""
        return np.arange(self.bins + 1) / self.bins

    @property
    def mean_confidence(self) -> np.ndarray:
        """`(B,)` mean confidence in each bin; NaN where it is empty."""
        return _ratio(self.confidence, self.count)

    @property
    def accuracy(self) -> np.ndarray:
        """`(B,)` share of right pixels in each bin; NaN where it is empty."""
        return _ratio(self.correct, self.count)

    @property
    def overall_confidence(self) -> float:
        """Mean confidence over all counted pixels. ValueError when there are none."""
        return float(self.confidence.sum() / _pixels(self))

    @property
    def overall_accuracy(self) -> float:
        """Share of counted pixels that are right. ValueError when there are none."""
        return float(self.correct.sum() / _pixels(self))

    @staticmethod
    def merge(tables: Iterable[Reliability]) -> Reliability:
        """Pool tables of several images: every pixel counts the same. Empty ones add nothing.

        Raises:
            ValueError: No table, or tables of different numbers of bins or classes.
        """
        tables = list(tables)
        shapes = {t.class_count.shape for t in tables}
        if len(shapes) != 1:
            raise ValueError(
                "There is no table to merge."
                if not tables
                else f"Tables of different shapes (classes, bins) do not merge: {sorted(shapes)}. "
                "Tabulate all images with the same classes and bins."
            )
        return Reliability(**{f.name: sum(getattr(t, f.name) for t in tables) for f in fields(Reliability)})

    def to_arrays(self) -> dict[str, np.ndarray]:
        """Everything as arrays, for `np.savez`."""
        return {f.name: np.asarray(getattr(self, f.name)) for f in fields(self)}

    @staticmethod
    def from_arrays(arrays: Mapping[str, np.ndarray]) -> Reliability:
        """Back from `to_arrays` or an opened NPZ; other entries are passed over.

        Raises:
            ValueError: An entry is missing, or shapes or counts do not belong together.
        """
        missing = [f.name for f in fields(Reliability) if f.name not in arrays]
        if missing:
            raise ValueError(f"A reliability table lacks {', '.join(missing)}; write it with `to_arrays`.")
        got = {f.name: np.asarray(arrays[f.name]) for f in fields(Reliability)}
        numbers = {n: got.pop(n).item() for n in ("brier_sum", "nll_sum", "pixels", "floored")}
        b, shape = got["count"].shape, got["class_count"].shape
        if (
            len(b) != 1
            or len(shape) != 2
            or shape[1:] != b
            or {got[n].shape for n in ("confidence", "correct")} != {b}
            or {got[n].shape for n in ("class_confidence", "class_correct")} != {shape}
            or got["count"].sum() != numbers["pixels"]
            or (got["class_count"].sum(1) != numbers["pixels"]).any()
        ):
            raise ValueError(
                "The entries of this reliability table do not belong together; write it anew with `to_arrays`."
            )
        return Reliability(**got, **numbers)  # type: ignore[arg-type]


def tabulate(
    values: Any,
    target: Any,
    ignore: Any = None,
    scope: str = "foreground",
    bins: int = BINS,
    of: str = "logits",
) -> Reliability:
    """Count one image.

    Args:
        values: `(K, *)` logits or probabilities of one image, array or tensor.
        target: `(*)` labels 0 .. K-1.
        ignore: `(*)` bool, True leaves a pixel out.
        scope: "foreground" (truth other than 0) or "all".
        bins: Equal bins of [0, 1].
        of: "logits" or "probabilities". Probabilities are used as they are and may miss a sum of one by 0.01.

    Returns:
        The table; `pixels` is 0 when no pixel is in the scope.

    Raises:
        ValueError: See `core.margin.pixels.read_pixels`.
    """
    return _table(read_pixels(values, target, ignore, of).within(scope), bins)


def tabulate_scopes(
    values: Any, target: Any, ignore: Any = None, bins: int = BINS, of: str = "logits"
) -> dict[str, Reliability]:
    """`tabulate` in every scope, with the softmax computed once. Keys "foreground" and "all"."""
    pixels = read_pixels(values, target, ignore, of)
    return {scope: _table(pixels.within(scope), bins) for scope in SCOPES}


def _table(px: Pixels, bins: int) -> Reliability:
    if bins < 1:
        raise ValueError(f"A reliability table needs at least one bin, not {bins}.")
    p, y = px.probability, px.target
    k, n = p.shape
    pixel = np.arange(n)
    every = bin_of(p, bins)
    at, confidence = every[px.predicted, pixel], p[px.predicted, pixel]
    every += bins * np.arange(k)[:, None]
    cells, of_truth = every.reshape(-1), p[y, pixel]
    brier = np.einsum("kp,kp->", p, p) - 2 * of_truth.sum() + n
    return Reliability(
        count=np.bincount(at, minlength=bins),
        confidence=np.bincount(at, confidence, bins),
        correct=np.bincount(at[px.predicted == y], minlength=bins),
        class_count=np.bincount(cells, minlength=k * bins).reshape(k, bins),
        class_confidence=np.bincount(cells, p.reshape(-1), k * bins).reshape(k, bins),
        class_correct=np.bincount(every[y, pixel], minlength=k * bins).reshape(k, bins),
        brier_sum=max(float(brier), 0.0),
        nll_sum=float(-px.log_likelihood.sum()) + 0.0,
        pixels=n,
        floored=int(px.floored.sum()),
    )


def ece(table: Reliability) -> float:
    """Expected calibration error: mean over pixels of |mean confidence - accuracy| of their bin, in [0, 1].

    Raises:
        ValueError: No pixel was counted.
    """
    return float(np.abs(table.confidence - table.correct).sum() / _pixels(table))


def classwise_ece(table: Reliability, classes: Sequence[int] | None = None, background: bool = True) -> float:
    """Mean over a fixed set of classes of the calibration error of p_k, whether or not a class occurs in the image.

    Args:
        table: What `tabulate` counted.
        classes: The set; None takes all K.
        background: False leaves class 0 out.

    Raises:
        ValueError: No pixel was counted, or no such class.
    """
    chosen = choose_classes(table.classes, classes, background)
    gap = np.abs(table.class_confidence - table.class_correct).sum(1) / _pixels(table)
    return float(gap[chosen].mean())


def brier(table: Reliability) -> float:
    """Brier score, mean over pixels of the sum over classes, in [0, 2]. ValueError when no pixel was counted."""
    return table.brier_sum / _pixels(table)


def nll(table: Reliability) -> float:
    """Negative log-likelihood, mean over pixels, in nats. ValueError when no pixel was counted."""
    return table.nll_sum / _pixels(table)


METRICS: dict[str, Metric] = {"ece": ece, "cece": classwise_ece, "brier": brier, "nll": nll}


@dataclass(frozen=True, eq=False)
class PerImage:
    """A figure of each image, and their plain mean.

    Attributes:
        values: `(N,)` one for each image; NaN where no pixel was in the scope.
        mean: Mean over the n images that have a value.
        sd: Standard deviation over them (n - 1); NaN for one image.
        n: Images with a value.
        n_empty: Images left out.
    """

    values: np.ndarray
    mean: float
    sd: float
    n: int
    n_empty: int


def per_image(tables: Sequence[Reliability], metric: Metric = ece) -> PerImage:
    """Measure each image and average; images with an empty scope are left out and counted.

    Args:
        tables: One table for each image.
        metric: `ece`, `classwise_ece`, `brier`, `nll`, or any function of a table.

    Raises:
        ValueError: Every image is empty in the scope, or there is none.
    """
    values = np.array([metric(t) if t.pixels else np.nan for t in tables], dtype=np.float64)
    there = values[[t.pixels > 0 for t in tables]] if tables else values
    if not len(there):
        raise ValueError(EMPTY)
    sd = float(there.std(ddof=1)) if len(there) > 1 else float("nan")
    return PerImage(values, float(there.mean()), sd, len(there), len(values) - len(there))


def _pixels(table: Reliability) -> int:
    if table.pixels == 0:
        raise ValueError(EMPTY)
    return table.pixels


def _ratio(sums: np.ndarray, count: np.ndarray) -> np.ndarray:
    return np.divide(sums, count, out=np.full(len(count), np.nan), where=count > 0)
