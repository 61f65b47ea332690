"""The spectrum of a confusion matrix: singular values, the top pair, the flow of errors that it describes, and what it bounds.

METHODS 3.5. M = E diag(w), E the matrix of error rates (column j: shares of class j's samples that were called i; zero diagonal).
sigma_1 is the largest singular value of M, u and v its vectors. M has no negative entry, so |u|' M |v| >= u' M v = sigma_1: the absolute
values are a top pair as well, and that is the pair given here. sigma_1 u v' is the flow from true classes (v) into predicted ones (u).

The bound: a column's sum is at most sqrt(K) times its length, and its length at most sigma_1, so the error of class j is at
most sqrt(K) sigma_1 / w_j. It is often above 1 and then says nothing; `Bound` gives it beside the truth.
"""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
import torch

from core.car.metrics import recalls
from core.car.spectral_norm import even, top_pair

FULL = 1024
"""Up to so many classes the whole spectrum is computed; beyond, the top pair alone (by power iteration)."""


def _checked(matrix: np.ndarray) -> np.ndarray:
    """The matrix in float64, or a sentence that says why it is none."""
    try:
        counted = np.asarray(matrix, np.float64)
    except (TypeError, ValueError) as error:
        raise ValueError("A confusion matrix holds numbers; this one holds something else.") from error
    if counted.ndim != 2 or counted.shape[0] != counted.shape[1] or counted.shape[0] == 0:
        raise ValueError(
            f"A confusion matrix is square, one row and one column a class; this one has the shape {counted.shape}."
        )
    if not np.isfinite(counted).all():
        i, j = np.argwhere(~np.isfinite(counted))[0]
        raise ValueError(f"The confusion matrix has no number in row {i}, column {j}.")
    if (counted < 0).any():
        i, j = np.argwhere(counted < 0)[0]
        raise ValueError(
            f"The confusion matrix has {counted[i, j]} in row {i}, column {j}; counts are not below 0."
        )
    return counted


def error_rates(matrix: np.ndarray) -> np.ndarray:
    """E `(K, K)`: shares of each true class's samples that were called another one. The column of a class without a sample is zero.

    Args:
        matrix: `(K, K)` counts, or rates whose columns sum to 1, rows predicted, columns true, diagonal included. Each column is
            divided by its own sum. (For a soft confusion matrix, which has no diagonal, see `Spectrum.of_rates`.)

    Raises:
        ValueError: Not square, negative, or not numbers.
    """
    counted = _checked(matrix)
    rates = counted / np.maximum(counted.sum(0), np.finfo(float).tiny)
    np.fill_diagonal(rates, 0.0)
    return rates


@dataclass(frozen=True)
class Bound:
    """What sigma_1 promises of the errors, and the truth.

    Attributes:
        per_class: `(K,)` sqrt(K) sigma_1 / w_j, an upper limit of the class's error; not cut at 1.
        error: `(K,)` true error of each class; NaN without a sample.
        worst_bound: The largest entry of `per_class` over classes with a sample: no class, whichever is worst, errs more often. With Λ it is
            the bound of the class of the smallest weight.
        worst_error: The largest error.
        worst: The class that has it, the first of several; -1 where no class has a sample.
        of_worst: Its entry of `per_class`: what sigma_1 allows that class.
        vacuous: Whether `of_worst` is 1 or more and thus says nothing.
    """

    per_class: np.ndarray
    error: np.ndarray
    worst_bound: float
    worst_error: float
    worst: int
    of_worst: float
    vacuous: bool


@dataclass(frozen=True)
class Flow:
    """One stream of errors.

    Attributes:
        true: Class whose samples are lost.
        predicted: Class that they are called.
        rate: Share of the true class's samples that go this way.
        weighted: The same times w of the true class: the entry of M.
        in_pair: Its entry in sigma_1 u v', what the top pair says of it.
    """

    true: int
    predicted: int
    rate: float
    weighted: float
    in_pair: float


@dataclass(frozen=True)
class Spectrum:
    """Singular values and top pair of a confusion matrix.

    Attributes:
        values: Singular values, descending: `(K,)`, or `(1,)` for more than `FULL` classes.
        u: `(K,)` >= 0, unit length: weight of each predicted class in the top pair (what errors flow into).
        v: `(K,)` >= 0, unit length: weight of each true class (where they come from).
        rates: `(K, K)` E, rows predicted, columns true, zero diagonal.
        weights: `(K,)` w, the factors of the columns.
        recall: `(K,)`, NaN for a class without a sample.
    """

    values: np.ndarray
    u: np.ndarray
    v: np.ndarray
    rates: np.ndarray = field(repr=False)
    weights: np.ndarray = field(repr=False)
    recall: np.ndarray = field(repr=False)

    @staticmethod
    def of(matrix: np.ndarray | torch.Tensor, weights: np.ndarray | torch.Tensor | None = None) -> Spectrum:
        """Decompose a confusion matrix.

        Args:
            matrix: `(K, K)` counts or rates, rows predicted, columns true, diagonal included.
            weights: `(K,)` factors >= 0 of the columns (Λ); None takes ones.

        Raises:
            ValueError: As in `error_rates`, or the weights do not fit.
        """
        raw = matrix.detach().double().cpu().numpy() if isinstance(matrix, torch.Tensor) else matrix
        return Spectrum._decompose(error_rates(raw), weights, recalls(np.asarray(raw, np.float64)))

    @staticmethod
    def of_rates(
        rates: np.ndarray | torch.Tensor, weights: np.ndarray | torch.Tensor | None = None
    ) -> Spectrum:
        """Decompose a matrix of rates that has no diagonal: a soft confusion matrix, or error rates.

        Args:
            rates: `(K, K)`, rows predicted, columns true, entries in [0, 1]; the diagonal is ignored.
            weights: As in `of`.

        Raises:
            ValueError: Not square, negative, not numbers, or the weights do not fit.
        """
        raw = rates.detach().double().cpu().numpy() if isinstance(rates, torch.Tensor) else rates
        kept = _checked(raw).copy()
        np.fill_diagonal(kept, 0.0)
        return Spectrum._decompose(kept, weights, 1 - kept.sum(0))

    @staticmethod
    def _decompose(
        rates: np.ndarray, weights: np.ndarray | torch.Tensor | None, recall: np.ndarray
    ) -> Spectrum:
        k = len(rates)
        if isinstance(weights, torch.Tensor):
            weights = weights.detach().double().cpu().numpy()
        w = np.ones(k) if weights is None else np.asarray(weights, np.float64)
        if w.shape != (k,) or not np.isfinite(w).all() or (w < 0).any():
            raise ValueError(f"Weights are {k} numbers that are not below 0, one a class.")
        if k <= FULL:
            left, values, right = np.linalg.svd(rates * w)
            u, v = np.abs(left[:, 0]), np.abs(right[0])
        else:
            columns = torch.from_numpy(np.ascontiguousarray(rates.T))
            sigma, tu, tv = top_pair(columns, torch.from_numpy(w), even(k, columns), 200, 0.0)
            values, u, v = sigma.numpy()[None], tu.numpy(), tv.numpy()
        if values[0] == 0:  # no errors: no direction
            u, v = np.zeros(k), np.zeros(k)
        return Spectrum(values, u, v, rates, w, recall)

    @property
    def sigma(self) -> float:
        """The largest singular value."""
        return float(self.values[0])

    @property
    def classes(self) -> int:
        """K."""
        return len(self.u)

    @property
    def share(self) -> float:
        """Share of the squared error rates that the top pair holds, in [0, 1]; NaN where there are no errors."""
        total = float(((self.rates * self.weights) ** 2).sum())
        return self.sigma**2 / total if total > 0 else float("nan")

    @property
    def pair(self) -> np.ndarray:
        """sigma_1 u v', `(K, K)`: the part of M that the top pair describes."""
        return self.sigma * np.outer(self.u, self.v)

    def flows(self, top: int = 10) -> tuple[Flow, ...]:
        """The streams that weigh most in the top pair and do exist, heaviest first.

        Streams are ranked by u_i M_ij v_j: these products sum to sigma_1.

        Args:
            top: At most so many.
        """
        m = self.rates * self.weights
        part = self.u[:, None] * m * self.v[None]
        order = np.argsort(-part, axis=None, kind="stable")[:top]
        found = []
        for position in order:
            i, j = np.unravel_index(position, part.shape)
            if part[i, j] <= 0:
                break
            found.append(
                Flow(
                    int(j),
                    int(i),
                    float(self.rates[i, j]),
                    float(m[i, j]),
                    float(self.sigma * self.u[i] * self.v[j]),
                )
            )
        return tuple(found)

    def bound(self) -> Bound:
        """What sigma_1 promises of the worst class, beside the truth."""
        with np.errstate(divide="ignore", invalid="ignore"):
            per_class = np.where(self.weights > 0, np.sqrt(self.classes) * self.sigma / self.weights, np.inf)
        error = 1 - self.recall
        there = ~np.isnan(error)
        if not there.any():
            return Bound(per_class, error, float("nan"), float("nan"), -1, float("nan"), True)
        worst = int(np.nanargmax(error))
        own = float(per_class[worst])
        return Bound(
            per_class, error, float(per_class[there].max()), float(error[worst]), worst, own, own >= 1
        )
