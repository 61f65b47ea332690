"""Thresholds that need no training: the oracle of each image and the plug-in threshold.

Oracle (METHODS 1.5): the largest threshold at which at least 1 - alpha of the lesion is inside; it needs
the mask, is the target of AT and the lower bound of every gap. Plug-in: the largest threshold at which the
share of the *expected* lesion, sum of p over the set / sum of p, reaches 1 - alpha; the coverage that the
model itself expects. It needs neither mask nor training, and it is right exactly as far as the
probabilities are. Neither is conformal by itself: both go through `core.conformal` like every other
threshold.
"""

from __future__ import annotations

import torch

from core.conformal.curves import CoverageCurves

ALPHA_KNOTS = torch.tensor([0.02, 0.03, 0.05, 0.08, 0.1, 0.15, 0.2, 0.3, 0.4, 0.5])
"""The grid of alpha on which thresholds are predicted and stored; between its points they are interpolated on the scale of logit(alpha)."""


def between_knots(values: torch.Tensor, alpha: float | torch.Tensor) -> torch.Tensor:
    """Interpolate per-image thresholds between the knots of alpha.

    Args:
        values: `(N, A)` thresholds at `ALPHA_KNOTS`.
        alpha: A number, or `(N,)` one for each image; outside the knots the outermost value holds.

    Returns:
        `(N,)`, linear in logit(alpha), rising in alpha where the knots rise.
    """
    knots = torch.logit(ALPHA_KNOTS)
    u = torch.logit(torch.as_tensor(alpha, dtype=torch.float32)).clamp(float(knots[0]), float(knots[-1]))
    u = u.expand(len(values)).contiguous()
    right = torch.searchsorted(knots, u).clamp(1, len(knots) - 1)
    left = right - 1
    w = (u - knots[left]) / (knots[right] - knots[left])
    low, high = values.gather(1, left[:, None])[:, 0], values.gather(1, right[:, None])[:, 0]
    return low + w * (high - low)


def oracle_thresholds(curves: CoverageCurves, alpha: float) -> torch.Tensor:
    """Largest threshold of each image with coverage >= 1 - alpha.

    Args:
        curves: N images.
        alpha: Share that may be missed, in (0, 1).

    Returns:
        `(N,)` float32, the k-th largest lesion score with k = ceil((1 - alpha) m); NaN where there is no lesion.
    """
    rows, total = curves.lesion.dense
    m = curves.lesion_size
    k = torch.ceil((1 - alpha) * m.double() - 1e-9).clamp(min=1)
    if total is None:
        at = (k - 1).long()
    else:
        at = torch.searchsorted(total[:, 1:].contiguous(), (k - 1e-6)[:, None])[:, 0]
    value = rows.gather(1, at.clamp(max=rows.shape[1] - 1)[:, None])[:, 0]
    return torch.where(curves.has_lesion, value, torch.nan)


def plug_in_thresholds(curves: CoverageCurves, alphas: torch.Tensor) -> torch.Tensor:
    """Largest threshold of each image at which the model itself expects coverage 1 - alpha.

    Args:
        curves: N images whose scores are logits.
        alphas: `(A,)` in (0, 1).

    Returns:
        `(N, A)` float32 logits, rising in alpha. No mask is used.
    """
    rows, total = curves.pixels.dense
    return plug_in_of_sorted(rows, alphas, None if total is None else total.diff(dim=1))


def plug_in_of_sorted(
    rows: torch.Tensor, alphas: torch.Tensor, counts: torch.Tensor | None = None
) -> torch.Tensor:
    """The plug-in thresholds of logits sorted by falling value.

    Args:
        rows: `(N, P)` logits, falling, padded with -inf.
        alphas: `(A,)`.
        counts: `(N, P)` pixels of each value, or None for ones.

    Returns:
        `(N, A)` float32.
    """
    p = torch.sigmoid(rows.double())
    mass = (p if counts is None else p * counts).cumsum(1)
    share = mass / mass[:, -1:]
    wanted = (1 - alphas.double() - 1e-9).expand(len(rows), -1).contiguous()
    return rows.gather(1, torch.searchsorted(share, wanted).clamp(max=rows.shape[1] - 1))
