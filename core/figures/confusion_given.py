"""What charts of a confusion matrix are given beside its counts: singular values, the top pair and the streams of errors, as plain arrays.

Described by structure, so that a chart knows no method: `core.car.spectrum.Spectrum` fits, and whoever draws a chart decomposes first.
Nothing is computed or drawn here.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple, Protocol

import numpy as np


class Stream(Protocol):
    """One stream of errors from a true to a predicted class."""

    @property
    def true(self) -> int:
        """Class whose samples are lost."""

    @property
    def predicted(self) -> int:
        """Class that they are called."""

    @property
    def rate(self) -> float:
        """Share of the true class's samples that go this way."""

    @property
    def weighted(self) -> float:
        """The same times the class's weight."""

    @property
    def in_pair(self) -> float:
        """What the top pair says of it."""


class Decomposed(Protocol):
    """A confusion matrix, decomposed. K classes, rows predicted, columns true."""

    @property
    def values(self) -> np.ndarray:
        """Singular values, falling: `(K,)`, or the first alone where K is large."""

    @property
    def u(self) -> np.ndarray:
        """`(K,)` weight of each predicted class in the top pair, not below 0."""

    @property
    def v(self) -> np.ndarray:
        """`(K,)` weight of each true class."""

    @property
    def weights(self) -> np.ndarray:
        """`(K,)` factors of the columns (Λ), ones without."""

    @property
    def recall(self) -> np.ndarray:
        """`(K,)`, NaN for a class without a sample."""

    @property
    def sigma(self) -> float:
        """The largest singular value."""

    @property
    def share(self) -> float:
        """Share of the squared error rates that the top pair holds; NaN where there are no errors."""

    def flows(self, top: int = 10) -> Sequence[Stream]:
        """The heaviest streams of the top pair, at most so many."""


def is_weighted(given: Decomposed) -> bool:
    """Whether Λ is in it."""
    return bool((np.asarray(given.weights) != 1).any())


class Panel(NamedTuple):
    """One of several charts that stand beside one another where there is room, and under one another where there is none.

    Attributes:
        title: What it shows, for the line over it.
        figure: The chart, with its own alt text and legend.
    """

    title: str
    figure: Any
