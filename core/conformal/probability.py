"""The probability-domain variant, for teaching and comparison: thresholds clipped to [0, 1], shifts in [-1,
1].

In logits the shift is unbounded and nothing is clipped. On probabilities the effective threshold is
clip(tau_hat - t, 0, 1), a pixel with p = 1 is always in the set, and an infeasible n gives t = 1: every
threshold clips to 0 and the set is the whole image (METHODS 1.3). Probabilities of a trained network pile
up at 0 and 1, which is why Plumbline itself works on logits.
"""

from __future__ import annotations

import warnings

import torch

from core.conformal.control import TOLERANCE, crc_target
from core.conformal.curves import CoverageCurves


def in_set(p: torch.Tensor, tau_hat: torch.Tensor | float, shift: float, clip: bool = True) -> torch.Tensor:
    """Which pixels are in the set {p >= clip(tau_hat - t, 0, 1)}, in score form.

    Args:
        p: Probabilities of any shape.
        tau_hat: Threshold, broadcastable to p.
        shift: t in [-1, 1].
        clip: False leaves the effective threshold unclipped.
    """
    inside = (torch.as_tensor(tau_hat).float() - p.float()) <= shift
    return inside | (p >= 1.0) if clip else inside


def calibrate_probability(
    curves: CoverageCurves, tau_hat: torch.Tensor, alpha: float, clip: bool = True
) -> float:
    """Smallest shift in [-1, 1] with sum TPR >= (n + 1)(1 - alpha), scores being probabilities.

    Args:
        curves: Exact curves whose scores are probabilities in [0, 1].
        tau_hat: `(N,)` in [0, 1].
        alpha: Share that may be missed on average.
        clip: Whether thresholds are clipped to [0, 1].

    Returns:
        t; 1.0 with a warning when n < 1/alpha - 1.

    Raises:
        ValueError: A score lies outside [0, 1].
    """
    p = curves.lesion.value
    if p.numel() and (p.min() < 0 or p.max() > 1):
        raise ValueError(
            "These scores are no probabilities: some lie outside [0, 1]. Logits go through core.conformal.control."
        )
    n = int(curves.has_lesion.sum())
    target = crc_target(n, alpha) - TOLERANCE
    if target > n:
        warnings.warn(
            f"{n} images cannot carry alpha = {alpha}: the whole image is returned (t = 1).", stacklevel=2
        )
        return 1.0
    v = torch.repeat_interleave(tau_hat.float(), curves.lesion.lengths) - p
    if clip:
        v = torch.where(p >= 1.0, torch.full_like(v, -1.0), v)
    v, order = v.sort()
    weight = torch.repeat_interleave(1.0 / curves.lesion_size.clamp(min=1).double(), curves.lesion.lengths)
    weight = (weight if curves.lesion.count is None else weight * curves.lesion.count)[order]
    return float(v[min(int(torch.searchsorted(weight.cumsum(0), target)), len(v) - 1)])
