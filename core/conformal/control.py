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


def images_needed(alpha: float) -> int:
    """Smallest number of calibration images with which a set smaller than the whole image can be promised.

    n >= 1/alpha - 1, computed so that 1/alpha - 1 = 9 for alpha = 0.1.
    """
    return max(1, math.ceil(1.0 / alpha - 1.0 - 1e-9))


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


def percent(share: float) -> str:
    """A share as a person reads it: 0.9 -> "90 %", with a no-break space; small ones keep one digit: 0.004 -> "0.4 %"."""
    value = 100 * share
    digits = 1 if 0 < abs(value) < 0.95 or (99.05 < value < 100) else 0
    return f"{value:.{digits}f}\u00a0%"


def promised(alpha: float) -> str:
    """The promise 1 - alpha as a person reads it, never rounded up: 97.5 % does not become 98 %."""
    return f"{100 * (1 - alpha):.6g}\u00a0%"


def guarantee_sentence(alpha: float, n: int, n_empty: int = 0) -> str:
    """What a calibration on n images promises, on what assumption, in plain words."""
    were = "image without a lesion was" if n_empty == 1 else "images without a lesion were"
    empty = f" ({n_empty} {were} left out: nothing can be missed there.)" if n_empty else ""
    need = images_needed(alpha)
    share = promised(alpha)
    if n < need:
        more = need - n
        return (
            f"{n} calibration image{'' if n == 1 else 's'} cannot carry a promise of {share}: the only honest set is the whole image. "
            f"Bring {more} more with a lesion; from {need} on, a smaller set can be promised.{empty}"
        )
    return (
        f"If these {n} images and the next one are drawn alike, then on average over both draws at least {share} of its lesion is "
        f"inside; with this one calibration set it may be a little less.{empty}"
    )


def _subset(n: int, subset: np.ndarray | torch.Tensor | None) -> torch.Tensor:
    if subset is None:
        return torch.ones(n, dtype=torch.bool)
    chosen = torch.as_tensor(np.array(subset))
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
    chosen = _subset(len(curves), subset)
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


def calibrate_many(table: ShiftTable, alpha: float, subsets: np.ndarray) -> np.ndarray:
    """Exact shifts of many calibration halves from one sort.

    A coarse pass over runs of the sort finds, for all halves at once, the run in which the target is reached; a fine pass
    walks only that run.

    Args:
        table: From `shift_table`.
        alpha: Share that may be missed.
        subsets: `(S, N)` bool, images that calibrate in each draw.

    Returns:
        `(S,)` float32; +inf where a draw has too few images.
    """
    return calibrate_and_test_many(table, alpha, subsets)[0]


def _product(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    """A matrix product by torch: NumPy's own threads and torch's would wait for one another (measured: up to 100 ms)."""
    return (torch.from_numpy(a) @ torch.from_numpy(b)).numpy()


def calibrate_and_test_many(table: ShiftTable, alpha: float, subsets: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Shifts of many calibration halves and the mean coverage of the images that are left, from the same walk.

    At any shift the coverages of the tested images sum to those of all images less those of the calibrating ones, and both
    are cumulative weights of the sort; so coverage costs next to nothing once the shift is found.

    Args:
        table: From `shift_table`.
        alpha: Share that may be missed.
        subsets: `(S, N)` bool, images that calibrate in each draw; the others are tested.

    Returns:
        `(S,)` float32 shifts as in `calibrate_many`, and `(S,)` float64 mean test coverage; NaN where none with a lesion is left.
    """
    has = table.has_lesion.numpy()
    used = (subsets & has[None]).astype(np.float64)
    n = used.sum(1)
    left = has.sum() - n
    target = np.array([crc_target(int(k), alpha) for k in n]) - TOLERANCE
    border, mass = table._segments
    reached = _product(used, mass.T)
    v, image, weight = table.v.numpy(), table.image.numpy(), table.weight.numpy()
    everybody = table.cumulative.numpy()
    shifts, covered = np.full(len(subsets), np.inf, np.float32), left.astype(np.float64)
    feasible = np.flatnonzero((target <= n) & (n > 0))
    run = np.array([np.searchsorted(reached[s], target[s] - 1e-12) for s in feasible], np.int64)
    run = np.clip(run, 1, len(border) - 1)
    for g in np.unique(run):  # all draws whose target lies in one run walk it together
        draws, entries = feasible[run == g], slice(border[g - 1], border[g])
        last = np.flatnonzero(np.append(np.diff(v[entries]) != 0, True))  # the last entry of each tie
        if len(last) * len(has) < 8 * len(image[entries]):  # few ties: add them up image by image first
            tie = np.repeat(np.arange(len(last)), np.diff(last, prepend=-1))
            flat = np.bincount(tie * len(has) + image[entries], weight[entries], len(last) * len(has))
            walk = _product(used[draws], flat.reshape(len(last), len(has)).T)
            walk = walk.cumsum(1) + reached[draws, g - 1, None]
        else:
            walk = (used[np.ix_(draws, image[entries])] * weight[entries]).cumsum(1) + reached[draws, g - 1, None]
            walk = walk[:, last]
        at = np.minimum((walk < target[draws, None] - 1e-12).sum(1), len(last) - 1)
        shifts[draws] = v[entries][last[at]]
        covered[draws] = everybody[border[g - 1] + last[at]] - walk[np.arange(len(draws)), at]
    return shifts, np.where(left > 0, np.clip(covered / np.maximum(left, 1), 0, 1), np.nan)
