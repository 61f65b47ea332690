"""How soft a threshold is at temperature T: soft coverage, its slope, and where it can reach no target. No fit, no file.

Soft coverage of an image is mean_j sigmoid((s_j - tau)/T) over its lesion pixels (METHODS 1.5). In logits s_j - tau is unbounded and
every target can be reached. In the probability form s_j = p_j and tau lie in [0, 1], so no pixel counts more than sigmoid(1/T): above
T = 1/log((1 - alpha)/alpha) no threshold at all reaches 1 - alpha. As T falls, soft coverage becomes the hard one and its slope, at most
1/(4T), comes from ever fewer pixels.
"""

from __future__ import annotations

import math

import torch

from core.conformal.curves import CoverageCurves

UNITS = ("logit", "probability")

SILENT = 0.01
"""An image is silent when less than this share of its lesion moves with the threshold: its gradient is below 1 % of 1/(4T)."""


def _checked(unit: str, temperature: float) -> None:
    if unit not in UNITS:
        raise ValueError(f"T divides distances of 'logit' or of 'probability', not of {unit!r}.")
    if not temperature > 0:
        raise ValueError(f"T is {temperature}; it must be above 0.")


def in_unit(logits: torch.Tensor, unit: str) -> torch.Tensor:
    """Scores or thresholds in the unit that T divides."""
    return torch.sigmoid(logits) if unit == "probability" else logits


def soft_mask(
    logits: torch.Tensor, tau: torch.Tensor | float, temperature: float, unit: str = "logit"
) -> torch.Tensor:
    """How much each pixel counts as inside.

    Args:
        logits: Scores of any shape.
        tau: Threshold in logits, broadcastable; -inf marks everything.
        temperature: T > 0 in the unit.
        unit: `"logit"` or `"probability"`.

    Returns:
        sigmoid of the distance to the threshold over T, in [0, 1], of the shape of `logits`.

    Raises:
        ValueError: T is not above 0, or the unit is unknown.
    """
    _checked(unit, temperature)
    at = in_unit(torch.as_tensor(tau, dtype=torch.float32), unit)
    return torch.sigmoid((in_unit(logits.float(), unit) - at) / temperature)


def soft_coverage_of(
    curves: CoverageCurves, tau: torch.Tensor, temperature: float, unit: str = "logit"
) -> torch.Tensor:
    """Soft coverage of every image at its own threshold, from its score table.

    Args:
        curves: N images; binned scores are rounded down by 1/40 logit at most.
        tau: `(N,)` thresholds in logits.
        temperature: T > 0 in the unit.
        unit: `"logit"` or `"probability"`.

    Returns:
        `(N,)` float64 in [0, 1]; NaN without a lesion.
    """
    return _mean(curves, soft_mask(curves.lesion.value, _each(curves, tau), temperature, unit))


def slope_of(
    curves: CoverageCurves, tau: torch.Tensor, temperature: float, unit: str = "logit"
) -> torch.Tensor:
    """How fast soft coverage falls as the threshold rises, |d soft / d tau| in the unit of T.

    Arguments and shape as in `soft_coverage_of`; never above 1/(4T), the slope if every lesion pixel lay on the threshold.
    """
    inside = soft_mask(curves.lesion.value, _each(curves, tau), temperature, unit)
    return _mean(curves, inside * (1 - inside)) / temperature


def speaking(
    curves: CoverageCurves, tau: torch.Tensor, temperature: float, unit: str = "logit"
) -> torch.Tensor:
    """Share of each lesion that moves with the threshold: the slope over its largest possible value 1/(4T), `(N,)` in [0, 1]."""
    return slope_of(curves, tau, temperature, unit) * 4 * temperature


def _each(curves: CoverageCurves, tau: torch.Tensor) -> torch.Tensor:
    return torch.repeat_interleave(torch.as_tensor(tau).float(), curves.lesion.lengths)


def _mean(curves: CoverageCurves, value: torch.Tensor) -> torch.Tensor:
    weight = value.double() if curves.lesion.count is None else value.double() * curves.lesion.count
    total = torch.zeros(len(curves), dtype=torch.float64)
    total.index_add_(0, curves.lesion.image_of().long(), weight)
    return torch.where(curves.has_lesion, total / curves.lesion_size.clamp(min=1), torch.nan)


def ceiling(temperature: float, unit: str = "probability") -> float:
    """Highest soft coverage that any threshold can give any image: sigmoid(1/T) in probabilities, 1 in logits."""
    _checked(unit, temperature)
    return 1.0 if unit == "logit" else 1.0 / (1.0 + math.exp(-1.0 / temperature))


def highest_temperature(alpha: float) -> float:
    """The T above which the probability form cannot reach 1 - alpha, 1/log((1 - alpha)/alpha); +inf from alpha = 1/2 on.

    Raises:
        ValueError: alpha is not in (0, 1).
    """
    if not 0 < alpha < 1:
        raise ValueError(f"alpha is {alpha}; it must lie strictly between 0 and 1.")
    return math.inf if alpha >= 0.5 else 1.0 / math.log((1 - alpha) / alpha)


def unreachable(temperature: float, alpha: float, unit: str = "probability") -> bool:
    """Whether no threshold reaches the target 1 - alpha at this T."""
    return ceiling(temperature, unit) < 1 - alpha


def silent_share(
    curves: CoverageCurves,
    tau: torch.Tensor,
    temperature: float,
    unit: str = "logit",
    below: float = SILENT,
) -> float:
    """Share of the images with a lesion in which less than `below` of the lesion moves with the threshold."""
    return float((speaking(curves, tau, temperature, unit)[curves.has_lesion] < below).double().mean())


def quiet_temperature(
    curves: CoverageCurves,
    tau: torch.Tensor,
    unit: str = "logit",
    low: float = 1e-3,
    high: float = 30.0,
    steps: int = 18,
) -> float:
    """The T below which the gradient is gone in most images: at least half of them are silent. Bisection on log T.

    Args:
        curves: N images.
        tau: `(N,)` thresholds in logits at which a fit starts.
        unit: `"logit"` or `"probability"`.
        low: Returned when even there most images speak.
        high: Returned when even there most are silent.
        steps: Halvings.
    """
    if silent_share(curves, tau, low, unit) < 0.5:
        return low
    a, b = math.log(low), math.log(high)
    for _ in range(steps):
        middle = (a + b) / 2
        if silent_share(curves, tau, math.exp(middle), unit) >= 0.5:
            a = middle
        else:
            b = middle
    return math.exp(b)
