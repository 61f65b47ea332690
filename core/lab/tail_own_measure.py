"""What a person's own confusion matrix says: recalls, the worst class and what feeds it, the spectrum of its errors, the bound, and WR.

Everything is `core.car`'s; here it is put in order from head to tail and read. The interval of a recall is Wilson's, for one class chosen
beforehand; the worst of many looks worse than it is, and the words say so.
"""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from core.car.metrics import Figures, Survival, figures_of, recalls, survival
from core.car.spectrum import Bound, Flow, Spectrum
from core.car.weights import class_weights
from core.lab.tail_own import OwnMatrix

WEIGHTINGS = ("none", "sum", "max")
"""Λ: none, or CAR's with frequencies divided by the sum of the counts or by the largest."""

Z = 1.959963984540054
"""Two-sided 95 %."""


@dataclass(frozen=True)
class Stream:
    """Where samples go: another class, the share of the samples, and how many (NaN where only shares are known)."""

    other: int
    share: float
    samples: float


@dataclass(frozen=True, eq=False)
class OwnAnswer:
    """Everything that was measured. Classes are in the order head to tail where counts are known, else as they were brought.

    Attributes:
        own: What was brought.
        weighting: One of `WEIGHTINGS`.
        classes: K names in this order.
        test: `(K, K)` rows predicted, columns true, in this order.
        train: The same on the training samples, or None.
        counts: `(K,)` training samples in this order, or None.
        figures: Of the test matrix; head, medium and tail mean something only with counts.
        spectrum: With the weights of `weighting`.
        plain: Without weights.
        bound: What sigma_1 promises, of `spectrum`.
        survival: WR, or None without training predictions.
        train_recall: `(K,)`, NaN where unknown.
        interval: `(K, 2)` 95 % interval of each recall; NaN where samples are not known.
        lost: Where the worst class's samples go, most first.
        gained: Which classes' samples the worst class takes, most first.
    """

    own: OwnMatrix = field(repr=False)
    weighting: str
    classes: tuple[str, ...]
    test: np.ndarray = field(repr=False)
    train: np.ndarray | None = field(repr=False)
    counts: np.ndarray | None = field(repr=False)
    figures: Figures
    spectrum: Spectrum
    plain: Spectrum
    bound: Bound
    survival: Survival | None
    train_recall: np.ndarray = field(repr=False)
    interval: np.ndarray = field(repr=False)
    lost: tuple[Stream, ...]
    gained: tuple[Stream, ...]

    @property
    def worst(self) -> int:
        """Number of the worst class in this order."""
        return self.figures.worst_class

    @property
    def samples(self) -> np.ndarray:
        """`(K,)` test samples of each class; NaN where only shares are known."""
        total = self.test.sum(0)
        return np.full(len(total), np.nan) if self.own.shares else total

    @property
    def perfect(self) -> bool:
        """Whether there is no error at all."""
        return self.plain.sigma == 0

    def flows(self, top: int = 8) -> tuple[Flow, ...]:
        """Streams that weigh most in the top singular pair."""
        return self.spectrum.flows(top)


def measure_matrix(own: OwnMatrix, weighting: str = "none", r0: float = 0.2) -> OwnAnswer:
    """Measure what was brought.

    Args:
        own: Ready, from `core.lab.tail_own`.
        weighting: One of `WEIGHTINGS`; "sum" and "max" need training counts.
        r0: Of CAR's weights.

    Raises:
        ValueError: A question is open, or weights are asked for without counts.
    """
    if not own.ready:
        raise ValueError(own.questions[0].text if own.questions else "There is nothing to measure yet.")
    if weighting not in WEIGHTINGS:
        raise ValueError(f"Weights are {', '.join(WEIGHTINGS)}, not {weighting!r}.")
    if weighting != "none" and own.counts is None:
        raise ValueError(
            "Weights of classes need the number of training samples of each class. Bring them, or go without Λ."
        )
    k = len(own.classes)
    order = np.arange(k) if own.counts is None else np.argsort(-own.counts, kind="stable")
    turn = np.ix_(order, order)
    test = own.test[turn]
    train = None if own.train is None else own.train[turn]
    counts = None if own.counts is None else own.counts[order]
    figures = figures_of(test, np.ones(k) if counts is None else counts)
    plain = Spectrum.of(test)
    weights = None if weighting == "none" or counts is None else class_weights(counts, r0, weighting)
    spectrum = plain if weights is None else Spectrum.of(test, weights)
    worst = figures.worst_class
    return OwnAnswer(
        own, weighting, tuple(own.classes[i] for i in order), test, train, counts, figures, spectrum, plain, spectrum.bound(),
        None if train is None else survival(test, train),
        np.full(k, np.nan) if train is None else recalls(train),
        _interval(test, own.shares),
        _streams(test[:, worst], worst, test[:, worst].sum(), own.shares),
        _streams(test[worst], worst, test[worst].sum(), own.shares),
    )  # fmt: skip


def _streams(entries: np.ndarray, own: int, total: float, shares: bool) -> tuple[Stream, ...]:
    """Other classes with their shares of a row or column, most first."""
    order = [int(k) for k in np.argsort(-entries, kind="stable") if k != own and entries[k] > 0]
    return tuple(
        Stream(k, float(entries[k] / total), float("nan") if shares else float(entries[k])) for k in order
    )


def _interval(matrix: np.ndarray, shares: bool) -> np.ndarray:
    """`(K, 2)` Wilson intervals of the recalls; NaN without samples."""
    out = np.full((len(matrix), 2), np.nan)
    if shares:
        return out
    for k, (hit, n) in enumerate(zip(np.diag(matrix), matrix.sum(0), strict=True)):
        if n > 0:
            out[k] = wilson(float(hit), float(n))
    return out


def wilson(hits: float, n: float) -> tuple[float, float]:
    """Wilson's 95 % interval of a share (Wilson 1927).

    Args:
        hits: Successes.
        n: Trials, above 0.
    """
    p = hits / n
    middle = (p + Z**2 / (2 * n)) / (1 + Z**2 / n)
    half = Z / (1 + Z**2 / n) * (p * (1 - p) / n + Z**2 / (4 * n**2)) ** 0.5
    return max(0.0, middle - half), min(1.0, middle + half)
