"""The exact shift: calibration of any per-image threshold by one weighted quantile.

Lesion pixel j of image i enters the set exactly when t >= v_ij = tau_hat_i - score_ij. With weight 1/m_i
for each such pixel, the smallest shift with sum_i TPR_i(t) >= (n + 1)(1 - alpha) is a weighted quantile of
v: one sort serves every alpha (METHODS 1.3, 1.4). CRC (Angelopoulos et al., 2024) is the case tau_hat =
const. The plug-in threshold, AT and COAT only change tau_hat. When n < 1/alpha - 1 no finite shift can keep
the promise and t is +inf: the whole image.

The clip of thresholds to [0, 1] exists only for probabilities; that variant is in `probability.py`.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import torch

from core.conformal.curves import CoverageCurves
from core.conformal.words import guarantee_sentence

TOLERANCE = 1e-9
"""Slack of the comparison sum TPR >= (n + 1)(1 - alpha): rounding must not ask for one pixel more."""


def crc_target(n: int, alpha: float, bound: float = 1.0) -> float:
    """Sum of per-image coverages that CRC asks of n calibration images.

    From n/(n+1) R + B/(n+1) <= alpha with R the mean loss: sum TPR >= (n + 1)(1 - alpha) + (B - 1).

    Args:
        n: Calibration images with a lesion.
        alpha: Share of a lesion that may be missed on average, in (0, 1).
        bound: Largest possible loss B; 1 for a share of missed pixels.

    Raises:
        ValueError: alpha is not strictly between 0 and 1.
    """
    if not 0.0 < alpha < 1.0:
        raise ValueError(f"alpha is {alpha}; it must lie strictly between 0 and 1.")
    return (1.0 - alpha) * (n + 1) + (bound - 1.0)


@dataclass(frozen=True)
class ShiftTable:
    """The sorted shifts v of a set of images: made once, asked for every alpha and every calibration half.

    Attributes:
        v: `(P,)` float32, rising.
        image: `(P,)` int32, the image of each entry.
        weight: `(P,)` float64, its count / m_i.
        has_lesion: `(N,)` bool.
    """

    v: torch.Tensor
    image: torch.Tensor
    weight: torch.Tensor
    has_lesion: torch.Tensor

    @cached_property
    def cumulative(self) -> torch.Tensor:
        """`(P,)` float64: sum of TPR over all images at each v."""
        return self.weight.cumsum(0)

    def shifts(self, alphas: torch.Tensor) -> torch.Tensor:
        """Shifts for many alphas from the one sort, all images calibrating.

        Args:
            alphas: `(A,)` in (0, 1).

        Returns:
            `(A,)` float32; +inf where n is too small.
        """
        n = int(self.has_lesion.sum())
        target = torch.tensor([crc_target(n, float(a)) for a in alphas], dtype=torch.float64) - TOLERANCE
        at = torch.searchsorted(self.cumulative, target).clamp(max=max(len(self.v) - 1, 0))
        infinite = torch.full((len(target),), torch.inf)
        return infinite if n == 0 else torch.where(target > n, infinite, self.v[at])

    @cached_property
    def _ends(self) -> np.ndarray:
        """For each entry, one past the last entry with the same v, `(P,)`."""
        v = self.v.numpy()
        last = np.append(np.flatnonzero(v[1:] != v[:-1]), len(v) - 1) if len(v) else np.zeros(0, np.int64)
        return np.repeat(last + 1, np.diff(last, prepend=-1))

    @cached_property
    def _segments(self) -> tuple[np.ndarray, np.ndarray]:
        """Borders (G + 1,) of runs of the sort, never between ties, and each image's TPR up to each border (G + 1, N)."""
        n, p = len(self.has_lesion), len(self.v)
        even = np.linspace(0, p, max(1, min(256, p // 64)) + 1).astype(np.int64)[1:]
        border = np.unique(np.concatenate([[0], self._ends[even - 1]])) if p else np.array([0, 0])
        g = len(border) - 1
        segment = torch.from_numpy(np.repeat(np.arange(g), np.diff(border)))
        flat = segment * n + self.image.long()
        mass = torch.bincount(flat, weights=self.weight, minlength=g * n).reshape(g, n)
        return border, np.concatenate([np.zeros((1, n)), mass.cumsum(0).numpy()])


def shift_table(curves: CoverageCurves, tau_hat: torch.Tensor) -> ShiftTable:
    """Sort the shifts of all lesion pixels once.

    Args:
        curves: N images.
        tau_hat: `(N,)` float, thresholds in the units of the scores.

    Raises:
        ValueError: tau_hat has another length or is not finite.
    """
    v, weight = _entries(curves, tau_hat, curves.has_lesion)
    v, order = v.sort()
    return ShiftTable(v, curves.lesion.image_of()[order], weight[order], curves.has_lesion)


@dataclass(frozen=True)
class Calibration:
    """A calibrated method: its shift and what may be said of it.

    Attributes:
        method: Name of the method.
        alpha: Share of a lesion that may be missed on average.
        shift: t in score units; the set of an image is {score : tau_hat - score <= t}. +inf is the whole image.
        n: Calibration images with a lesion.
        n_empty: Images left out because they show no lesion.
        feasible: Whether n is large enough for anything but the whole image.
        coverage: Mean coverage of the calibration images at the shift (NaN without images).
        guarantee: The promise and its assumptions in one sentence.
    """

    method: str
    alpha: float
    shift: float
    n: int
    n_empty: int
    feasible: bool
    coverage: float
    guarantee: str


def subset_flags(n: int, subset: np.ndarray | torch.Tensor | None) -> torch.Tensor:
    """Images that take part, `(n,)` bool, from flags, indices, or None for all."""
    if subset is None:
        return torch.ones(n, dtype=torch.bool)
    chosen = subset if isinstance(subset, torch.Tensor) else torch.as_tensor(np.array(subset))
    if chosen.dtype == torch.bool:
        return chosen
    flags = torch.zeros(n, dtype=torch.bool)
    flags[chosen.long()] = True
    return flags


def calibrate(
    curves: CoverageCurves,
    tau_hat: torch.Tensor,
    alpha: float,
    subset: np.ndarray | torch.Tensor | None = None,
    method: str = "CRC",
    table: ShiftTable | None = None,
) -> Calibration:
    """Find the smallest shift that keeps the promise on average.

    Args:
        curves: N images.
        tau_hat: `(N,)` thresholds in score units; a constant gives plain CRC.
        alpha: Share of a lesion that may be missed on average, in (0, 1).
        subset: Images that calibrate, as `(N,)` bool or indices; None takes all.
        method: Name for the result.
        table: `shift_table(curves, tau_hat)`, when it is already there.

    Returns:
        A `Calibration`. Images without lesion are left out and counted.

    Raises:
        ValueError: alpha outside (0, 1), or thresholds that do not fit the images.
    """
    tau_hat = _checked(curves, tau_hat)
    chosen = subset_flags(len(curves), subset)
    used = chosen & curves.has_lesion
    n = int(used.sum())
    target = crc_target(n, alpha) - TOLERANCE
    if n == 0 or target > n:
        shift, reached = math.inf, (1.0 if n else math.nan)
    else:
        if table is None:
            v, weight = _entries(curves, tau_hat, used)
            shift = _weighted_quantile(v, weight, target)
        else:
            v, weight = table.v, table.weight * used[table.image.long()]
            shift = float(v[min(int(torch.searchsorted(weight.cumsum(0), target)), len(v) - 1)])
        reached = float(weight[v <= shift].sum()) / n
        if reached * n < target:
            raise ArithmeticError("The calibrated set misses its own target on the calibration images.")
    n_empty = int((chosen & ~curves.has_lesion).sum())
    feasible = math.isfinite(shift)
    return Calibration(
        method, alpha, shift, n, n_empty, feasible, reached, guarantee_sentence(alpha, n, n_empty)
    )


def _checked(curves: CoverageCurves, tau_hat: torch.Tensor) -> torch.Tensor:
    tau_hat = torch.as_tensor(tau_hat).float()
    if tau_hat.shape != (len(curves),):
        raise ValueError(f"There are {len(curves)} images and thresholds of shape {tuple(tau_hat.shape)}.")
    if not torch.isfinite(tau_hat).all():
        raise ValueError("A predicted threshold is not a finite number.")
    return tau_hat


def _entries(
    curves: CoverageCurves, tau_hat: torch.Tensor, used: torch.Tensor
) -> tuple[torch.Tensor, torch.Tensor]:
    """Unsorted shifts `(P,)` float32 of all lesion pixels and their weights `(P,)` float64 (0 where not used)."""
    tau_hat, lesion = _checked(curves, tau_hat), curves.lesion
    constant = bool((tau_hat == tau_hat[0]).all())
    v = (tau_hat[0] if constant else torch.repeat_interleave(tau_hat, lesion.lengths)) - lesion.value
    each = used.double() / curves.lesion_size.clamp(min=1)
    weight = torch.repeat_interleave(each, lesion.lengths)
    return v, weight if lesion.count is None else weight * lesion.count


def _weighted_quantile(v: torch.Tensor, weight: torch.Tensor, target: float, runs: int = 4096) -> float:
    """Smallest v whose cumulative weight reaches the target; a histogram finds the run of values, only that run is sorted."""
    low, high = float(v.min()), float(v.max())
    if 1e-30 < high - low < 1e38:  # otherwise the scale of the runs leaves float32: sort everything
        run = ((v - low) * (runs / (high - low))).to(torch.int32).clamp_(0, runs - 1)
        mass = torch.bincount(run, weights=weight, minlength=runs).cumsum(0)
        g = min(int(torch.searchsorted(mass, target)), runs - 1)
        inside = run == g
        while g < runs - 1 and not bool(inside.any()):
            g += 1
            inside = run == g
        before = float(mass[g - 1]) if g else 0.0
        v, weight = v[inside], weight[inside]
    else:
        before = 0.0
    v, order = v.sort()
    return float(v[min(int(torch.searchsorted(weight[order].cumsum(0) + before, target)), len(v) - 1)])
