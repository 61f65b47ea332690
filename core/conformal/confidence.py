"""Control with high probability instead of on average: Hoeffding-Bentkus, as a choice beside CRC.

CRC promises 1 - alpha on average over draws of the calibration set. Here, with probability at least 1 - delta over that draw, the mean
coverage of all future images is at least 1 - alpha (learn then test, Angelopoulos and others, 2021; METHODS 1.9). The p-value of
"mean miss > alpha" is min(exp(-n h(min(r, alpha), alpha)), e P(Bin(n, alpha) <= ceil(n r))) with r the mean miss observed and h the
Bernoulli divergence; the miss falls as the shift grows, so fixed-sequence testing from the whole image downwards ends at the smallest
shift whose r is small enough, which is one look into the same sort as CRC.
"""

from __future__ import annotations

import math

import numpy as np
import torch

from core.conformal.control import TOLERANCE, Calibration, ShiftTable, shift_table, subset_flags
from core.conformal.curves import CoverageCurves
from core.conformal.words import promised


def hoeffding_bentkus(risk: float, n: int, alpha: float) -> float:
    """P-value of the hypothesis that the mean of a loss in [0, 1] exceeds alpha.

    Args:
        risk: Mean loss observed, in [0, 1].
        n: Observations.
        alpha: Level, in (0, 1).

    Returns:
        A p-value in [0, 1], rising with the risk.
    """
    from scipy.stats import binom

    r = min(risk, alpha)
    divergence = (r * math.log(r / alpha) if r > 0 else 0.0) + (1 - r) * math.log((1 - r) / (1 - alpha))
    bentkus = math.e * float(binom.cdf(math.ceil(n * risk - 1e-9), n, alpha))
    return min(1.0, math.exp(-n * divergence), bentkus)


def largest_risk(n: int, alpha: float, delta: float) -> float:
    """Largest observed mean miss with a p-value of at most delta; negative when even 0 is not small enough."""
    if hoeffding_bentkus(0.0, n, alpha) > delta:
        return -1.0
    low, high = 0.0, alpha
    for _ in range(60):
        middle = (low + high) / 2
        if hoeffding_bentkus(middle, n, alpha) <= delta:
            low = middle
        else:
            high = middle
    return low


def images_needed_with_confidence(alpha: float, delta: float) -> int:
    """Smallest n with which anything but the whole image can be promised: (1 - alpha)^n <= delta."""
    return max(1, math.ceil(math.log(delta) / math.log(1 - alpha) - 1e-9))


def calibrate_with_confidence(
    curves: CoverageCurves,
    tau_hat: torch.Tensor,
    alpha: float,
    delta: float = 0.1,
    subset: np.ndarray | torch.Tensor | None = None,
    method: str = "CRC",
    table: ShiftTable | None = None,
) -> Calibration:
    """Find the smallest shift whose mean coverage is at least 1 - alpha with probability at least 1 - delta.

    Args:
        curves: N images.
        tau_hat: `(N,)` thresholds in score units.
        alpha: Share of a lesion that may be missed on average over future images, in (0, 1).
        delta: Probability that the calibration set misleads, in (0, 1).
        subset: Images that calibrate, as `(N,)` bool or indices; None takes all.
        method: Name for the result.
        table: `shift_table(curves, tau_hat)`, when it is already there.

    Raises:
        ValueError: alpha or delta outside (0, 1), or thresholds that do not fit the images.
    """
    if not 0 < alpha < 1 or not 0 < delta < 1:
        raise ValueError(f"alpha is {alpha} and delta {delta}; both must lie strictly between 0 and 1.")
    chosen = subset_flags(len(curves), subset)
    table = shift_table(curves, tau_hat) if table is None else table
    used = chosen & curves.has_lesion
    n, n_empty = int(used.sum()), int((chosen & ~curves.has_lesion).sum())
    allowed = largest_risk(n, alpha, delta) if n else -1.0
    shift, covered = math.inf, 1.0 if n else math.nan
    if allowed >= 0:
        weight = table.weight * used[table.image.long()]
        target = n * (1 - allowed) - TOLERANCE
        shift = float(table.v[min(int(torch.searchsorted(weight.cumsum(0), target)), len(table.v) - 1)])
        covered = float(weight[table.v <= shift].sum()) / n
    feasible = math.isfinite(shift)
    return Calibration(
        method, alpha, shift, n, n_empty, feasible, covered, _sentence(alpha, delta, n, feasible)
    )


def _sentence(alpha: float, delta: float, n: int, feasible: bool) -> str:
    if not feasible:
        need = images_needed_with_confidence(alpha, delta)
        return (
            f"{n} calibration images cannot carry {promised(alpha)} with a confidence of {promised(delta)}: the only honest set is the "
            f"whole image. At least {need} with a lesion are needed."
        )
    return (
        f"If these {n} images were drawn like those to come, then with a probability of at least {promised(delta)} over that draw, the images "
        f"to come have on average at least {promised(alpha)} of their lesion inside."
    )
