"""What the confusion page reads from recorded long-tail runs: one method at one epoch, its course over epochs, and what a memory over
batches and the weights Λ make of a class's column.

Matrices are counts with rows predicted and columns true; here classes always stand from the most to the least frequent in training.
Nothing is trained, drawn or put into words (`tail_words`).
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from functools import lru_cache

import numpy as np
import torch

from core.car.ema import presence, replay
from core.car.metrics import Figures, figures_of, recalls
from core.car.spectrum import Spectrum, error_rates
from core.car.weights import class_weights
from core.figures.confusion_bound import SigmaLine
from core.lab.tail_shelf import TailRecord
from core.settings.car import FREQUENCIES, MEMORIES

BATCH = 128
"""Samples in a batch of the recorded trainings."""

WEIGHTS = ("none", *FREQUENCIES)
"""Λ: left out, or with frequencies divided by the sum or by the largest."""


@dataclass(frozen=True, eq=False)
class Moment:
    """One method at one epoch. K classes, the most frequent first.

    Attributes:
        data: The set.
        method: Key of the method.
        title: Its name on the screen.
        epoch: From 0; the last one is `epochs - 1`.
        epochs: How many the training had.
        classes: K names.
        counts: `(K,)` training images of each class.
        test: `(K, K)` counts on the test images.
        train: `(K, K)` counts on the training images, in eval mode.
        train_epoch: The recorded epoch that `train` belongs to: the nearest one.
        figures: What the test matrix says.
        train_recall: `(K,)` share of the training images that is found.
        spectrum: Of the test matrix as error rates, without weights.
    """

    data: str
    method: str
    title: str
    epoch: int
    epochs: int
    classes: tuple[str, ...]
    counts: np.ndarray
    test: np.ndarray = field(repr=False)
    train: np.ndarray = field(repr=False)
    train_epoch: int
    figures: Figures
    train_recall: np.ndarray = field(repr=False)
    spectrum: Spectrum

    @property
    def recall(self) -> np.ndarray:
        """`(K,)` share of the test images that is found; NaN for a class without one."""
        return self.figures.recall

    @property
    def tested(self) -> np.ndarray:
        """`(K,)` test images of each class."""
        return self.test.sum(0)

    @property
    def rates(self) -> np.ndarray:
        """`(K, K)` shares of each true class's test images, diagonal included; zero columns where there is none."""
        return self.test / np.maximum(self.test.sum(0), 1)

    def error_of(self, k: int) -> float:
        """Standard error of a class's test recall: its images taken as drawn independently. At least that of half an image."""
        n, r = float(self.tested[k]), float(self.recall[k])
        if not n or math.isnan(r):
            return math.nan
        return math.sqrt(max(r * (1 - r), 0.25 / n) / n)


def frequency_order(counts: np.ndarray) -> np.ndarray:
    """Classes from the most to the least frequent; equal ones keep their order. `(K,)` int64."""
    return np.argsort(-np.asarray(counts), kind="stable")


@lru_cache(maxsize=128)
def head_first(record: TailRecord) -> TailRecord:
    """The same run with its classes from the most to the least frequent."""
    order = frequency_order(record.counts)
    rows, columns = np.ix_(order, order)
    return replace(
        record,
        counts=np.asarray(record.counts)[order],
        classes=tuple(record.classes[k] for k in order),
        test=record.test[:, rows, columns],
        train=record.train[:, rows, columns],
    )


@lru_cache(maxsize=512)
def moment(record: TailRecord, epoch: int) -> Moment:
    """A run at the kept epoch that lies nearest to the asked one, with the training matrix last recorded by then.

    Args:
        record: The run, its classes in any order.
        epoch: From 0.

    Raises:
        ValueError: The record keeps no matrix.
    """
    if not len(record.epochs) or not len(record.train_epochs):
        raise ValueError(f"The record of {record.title} on {record.data} keeps no confusion matrix.")
    run = head_first(record)
    at = int(np.abs(run.epochs - epoch).argmin())
    beside = max(int(np.searchsorted(run.train_epochs, run.epochs[at], side="right")) - 1, 0)
    test, train = run.test[at].astype(np.int64), run.train[beside].astype(np.int64)
    return Moment(
        data=run.data,
        method=run.method,
        title=run.title,
        epoch=int(run.epochs[at]),
        epochs=len(run.singular),
        classes=run.classes,
        counts=run.counts,
        test=test,
        train=train,
        train_epoch=int(run.train_epochs[beside]),
        figures=figures_of(test, run.counts),
        train_recall=recalls(train),
        spectrum=Spectrum.of(test),
    )


@lru_cache(maxsize=32)
def spectra_of(record: TailRecord, weights: str = "none") -> tuple[Spectrum, ...]:
    """The test matrix of each kept epoch, decomposed, classes from the most to the least frequent.

    Args:
        record: The run.
        weights: One of `WEIGHTS`.
    """
    run = head_first(record)
    factors = lambda_of(run.counts, weights)
    return tuple(Spectrum.of(m, factors) for m in run.test)


@lru_cache(maxsize=64)
def sigma_line(record: TailRecord, weights: str = "none") -> SigmaLine:
    """sigma_1 over the epochs, what it bounds, and the truth. Arguments as in `spectra_of`."""
    found = spectra_of(record, weights)
    bounds = [s.bound() for s in found]
    return SigmaLine(
        record.epochs,
        np.array([s.sigma for s in found]),
        np.array([b.of_worst for b in bounds]),
        np.array([b.worst_error for b in bounds]),
    )


def epochs_of(records: Sequence[TailRecord]) -> tuple[int, ...]:
    """Kept epochs that all records share, ascending; those of the first where they share none."""
    shared = set.intersection(*(set(map(int, r.epochs)) for r in records))
    return tuple(sorted(shared or map(int, records[0].epochs)))


def lambda_of(counts: np.ndarray, weights: str, r0: float = 0.2) -> np.ndarray:
    """Diagonal of Λ, `(K,)`; ones for `"none"`.

    Raises:
        ValueError: The weights are not known, or r0 is below 0.
    """
    if weights not in WEIGHTS:
        raise ValueError(f"The weights {weights!r} are not known; known: {', '.join(WEIGHTS)}.")
    if weights == "none":
        return np.ones(len(counts))
    return class_weights(counts, r0, weights).numpy()


@dataclass(frozen=True, eq=False)
class Remembered:
    """What a memory over batches holds of one class's errors. T batches, K classes.

    Attributes:
        column: The class.
        batch: Samples in a batch.
        beta: Share that is kept from batch to batch.
        seen: `(T,)` samples of the class in each batch.
        held: Memory -> `(T, K)` column of the class as the memory holds it after each batch.
        truth: `(K,)` the column of the recorded error rates.
        presence: Chance that a batch holds the class.
        presence_head: The same of the most frequent class.
        weights: Name of Λ -> `(K,)` its diagonal.
    """

    column: int
    batch: int
    beta: float
    seen: np.ndarray
    held: dict[str, np.ndarray]
    truth: np.ndarray
    presence: float
    presence_head: float
    weights: dict[str, np.ndarray]

    @property
    def error(self) -> float:
        """The class's true error."""
        return float(self.truth.sum())

    def forgets(self, memory: str) -> bool:
        """Whether a batch that lacks the class counts as one in which it made no error."""
        return memory == "naive" or self.beta == 0

    def scale(self, memory: str, weights: str = "none") -> float:
        """What the regularizer sees of this class's errors beside those of the most frequent class, as a multiple of the truth.

        In closed form: the naive memory holds `presence` times a column, the other two hold all of it, once they are filled. Without a
        memory (beta 0) all three are the naive one.
        """
        w = self.weights[weights]
        seen = self.presence / self.presence_head if self.forgets(memory) else 1.0
        return float(seen * w[self.column] / w[0])

    def settled(self, memory: str) -> float:
        """The class's error as a memory holds it on average over the second half of these batches."""
        return float(self.held[memory][len(self.seen) // 2 :].sum(1).mean())

    def expected(self, memory: str) -> float:
        """The same in expectation, in closed form."""
        return self.error * (self.presence if self.forgets(memory) else 1.0)


@lru_cache(maxsize=64)
def remembered(
    now: Moment,
    column: int,
    beta: float = 0.5,
    r0: float = 0.2,
    steps: int = 400,
    batch: int = BATCH,
    seed: int = 0,
) -> Remembered:
    """Draw batches with the classes' training frequencies, let each sample err as the recorded network does on new images, and
    replay every memory over them.

    Args:
        now: The method and epoch whose test matrix errs.
        column: The class that is followed.
        beta: Share that is kept.
        r0: Of Λ.
        steps: T.
        batch: Samples in a batch, drawn with replacement.
        seed: Of the draws.

    Raises:
        ValueError: The class is not there or has no test image, or beta or r0 is not allowed.
    """
    k = len(now.classes)
    if not 0 <= column < k:
        raise ValueError(f"Class {column} is not there; there are {k}, numbered from 0.")
    if not now.tested[column]:
        raise ValueError(f"{now.classes[column]} has no test image, so its errors are not known.")
    # Memories move each column by itself, so that one class's column is enough.
    rng = np.random.default_rng(seed)
    seen = rng.binomial(batch, now.counts[column] / now.counts.sum(), steps)
    shares = now.rates[:, column] / now.rates[:, column].sum()
    drawn = np.stack([rng.multinomial(n, shares) for n in seen]) / np.maximum(seen, 1)[:, None]
    drawn[:, column] = 0
    matrices = torch.zeros(steps, k, k)
    matrices[:, :, column] = torch.from_numpy(drawn)
    counts = torch.zeros(steps, k, dtype=torch.int64)
    counts[:, column] = torch.from_numpy(seen)
    held = {m: replay(matrices, counts, m, beta)[:, :, column].double().numpy() for m in MEMORIES}
    chance = presence(torch.from_numpy(now.counts.astype(np.float64)), batch).numpy()
    return Remembered(
        column=column,
        batch=batch,
        beta=beta,
        seen=seen,
        held=held,
        truth=error_rates(now.test)[:, column],
        presence=float(chance[column]),
        presence_head=float(chance[0]),
        weights={w: lambda_of(now.counts, w, r0) for w in WEIGHTS},
    )
