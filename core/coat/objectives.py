"""What COAT and AT minimise. All in logit units.

COAT (METHODS 1.5): the distance between an image's *soft* coverage mean_j sigmoid((s_j - tau)/T) over
lesion pixels and 1 - alpha, squared or absolute. AT: smooth L1 between the predicted and the oracle
threshold. Images without lesion give no loss: nothing can be missed there. The probability form of soft
coverage has a ceiling sigma(1/T); logits have none.
"""

from __future__ import annotations

import torch
import torch.nn.functional as F


def soft_coverage(
    scores: torch.Tensor, tau: torch.Tensor, temperature: float, weight: torch.Tensor | None = None
) -> torch.Tensor:
    """Soft share of a lesion above a threshold.

    Args:
        scores: `(N, Q)` lesion scores of each image (all of them, or quantiles).
        tau: `(N,)` thresholds.
        temperature: T > 0 in the units of the scores.
        weight: `(N, Q)`, 1 for a pixel and 0 for padding; None counts all.

    Returns:
        `(N,)` in (0, 1), falling in tau, with |slope| <= 1/(4T).
    """
    inside = torch.sigmoid((scores - tau[:, None]) / temperature)
    if weight is None:
        return inside.mean(1)
    return (inside * weight).sum(1) / weight.sum(1).clamp(min=1)


def coat_loss(
    scores: torch.Tensor,
    tau: torch.Tensor,
    alpha: torch.Tensor,
    temperature: float,
    miss: str = "squared",
    weight: torch.Tensor | None = None,
) -> torch.Tensor:
    """Mean over images with a lesion of the miss between soft coverage and 1 - alpha.

    Args:
        scores: `(N, Q)` lesion scores.
        tau: `(N,)` predicted thresholds.
        alpha: `(N,)` or a number.
        temperature: T > 0.
        miss: `"squared"` (the paper) or `"absolute"`.
        weight: `(N, Q)` as in `soft_coverage`; a row of zeros is an image without lesion and counts nowhere.

    Raises:
        ValueError: The miss is neither squared nor absolute.
    """
    if miss not in ("squared", "absolute"):
        raise ValueError(f"A miss counts 'squared' or 'absolute', not {miss!r}.")
    difference = soft_coverage(scores, tau, temperature, weight) - (1 - alpha)
    each = difference.square() if miss == "squared" else difference.abs()
    if weight is None:
        return each.mean()
    there = weight.any(1)
    return (each * there).sum() / there.sum().clamp(min=1)


def at_loss(tau: torch.Tensor, oracle: torch.Tensor) -> torch.Tensor:
    """Smooth L1 between predicted and oracle thresholds, `(N,)` each; NaN oracles (no lesion) count nowhere."""
    there = ~torch.isnan(oracle)
    if not bool(there.any()):
        return tau.sum() * 0
    return F.smooth_l1_loss(tau[there], oracle[there])


def temperature_at(step: int, steps: int, start: float, end: float) -> float:
    """Geometric annealing from `start` to `end` over `steps`; the first step has `start`, the last `end`."""
    if steps <= 1:
        return end
    return float(start * (end / start) ** (step / (steps - 1)))
