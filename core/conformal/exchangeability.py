"""Are new images drawn like the calibration images? A check on their score maps, without masks, in words.

Every promise here assumes it, and nothing can prove it. A few numbers are taken from each map (expected area, highest logit, entropy,
areas at fixed logits); a two-sample Kolmogorov-Smirnov test compares each between the two sets, and Holm's correction keeps the chance
of a false alarm over all of them at the level. A difference that the test finds is a reason not to believe the promise; finding
none is no reason to believe it. What cannot be seen without masks (the same scores over other lesions) it cannot see.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
import torch
import torch.nn.functional as F

STATISTICS = (
    "expected area",
    "highest logit",
    "uncertainty",
    "area above probability 0.5",
    "area above logit −3",
    "99th percentile of the logits",
)
"""Names of what is taken from each map, in order; *uncertainty* is the mean entropy of its pixels."""


def map_statistics(scores: torch.Tensor) -> np.ndarray:
    """What the check looks at in one map.

    Args:
        scores: `(H, W)` float32 logits.

    Returns:
        `(len(STATISTICS),)` float64: shares in [0, 1], logits, and mean entropy in nats.
    """
    flat = scores.reshape(-1).double()
    p = torch.sigmoid(flat)
    entropy = -(p * F.logsigmoid(flat) + (1 - p) * F.logsigmoid(-flat)).mean()
    k = max(1, round(0.01 * len(flat)))
    high = flat.topk(k).values
    found = [p.mean(), high[0], entropy, (flat >= 0).double().mean(), (flat >= -3).double().mean(), high[-1]]
    return np.array([float(v) for v in found])


@dataclass(frozen=True)
class Comparison:
    """What the check found.

    Attributes:
        p_value: Smallest p-value after Holm's correction, in [0, 1]; below the level, the two sets differ.
        statistic: The statistic that differs most.
        p_values: Statistic -> p-value after the correction.
        medians: Statistic -> (median of the calibration images, median of the new ones).
        n_calibration: Calibration images.
        n_new: New images.
        level: Chance of a false alarm that is accepted, over all statistics together.
        differs: Whether a difference was found.
        sentence: The finding in words.
    """

    p_value: float
    statistic: str
    p_values: dict[str, float]
    medians: dict[str, tuple[float, float]]
    n_calibration: int
    n_new: int
    level: float
    differs: bool
    sentence: str


def holm(p: np.ndarray) -> np.ndarray:
    """P-values after Holm's step-down correction, `(S,)` in [0, 1]: rejecting those at or below a level keeps the familywise error there."""
    order = np.argsort(p, kind="stable")
    stepped = np.maximum.accumulate((len(p) - np.arange(len(p))) * p[order])
    out = np.empty(len(p))
    out[order] = np.minimum(stepped, 1.0)
    return out


def compare(
    calibration: np.ndarray, new: np.ndarray, level: float = 0.05, names: tuple[str, ...] = STATISTICS
) -> Comparison:
    """Compare two sets of images by their maps' statistics.

    Args:
        calibration: `(N, S)` from `map_statistics`.
        new: `(M, S)` of the new images.
        level: Chance of a false alarm that is accepted.
        names: S names.

    Raises:
        ValueError: A set is empty, numbers are not finite, or the two have different statistics.
    """
    from scipy.stats import ks_2samp

    first, second = np.asarray(calibration, float), np.asarray(new, float)
    if first.ndim != 2 or second.ndim != 2 or first.shape[1] != len(names) or second.shape[1] != len(names):
        raise ValueError(
            f"Each image needs {len(names)} statistics; the sets have the shapes {first.shape} and {second.shape}."
        )
    if not len(first) or not len(second) or not np.isfinite(first).all() or not np.isfinite(second).all():
        raise ValueError("Both sets need at least one image, and every statistic must be a finite number.")
    exact = "exact" if len(first) * len(second) <= 250_000 else "asymp"
    raw = np.array(
        [float(ks_2samp(first[:, s], second[:, s], method=exact).pvalue) for s in range(len(names))]
    )
    corrected = holm(np.clip(raw, 0, 1))
    at = int(np.argmin(raw))
    p_value = float(corrected.min())
    medians = {
        name: (float(np.median(first[:, s])), float(np.median(second[:, s]))) for s, name in enumerate(names)
    }
    sizes = len(first), len(second)
    differs = p_value <= level
    return Comparison(
        p_value, names[at], dict(zip(names, map(float, corrected), strict=True)), medians, *sizes, level, differs,
        _sentence(names[at], p_value, medians[names[at]], sizes, level, differs, len(names)),
    )  # fmt: skip


def _sentence(
    name: str,
    p: float,
    medians: tuple[float, float],
    sizes: tuple[int, int],
    level: float,
    differs: bool,
    s: int,
) -> str:
    n, m = sizes
    if differs:
        said = "p < 0.001" if p < 0.001 else f"p = {p:.2g}"
        return (
            f"The new images' {name} differs from the calibration images' ({said}; median {medians[1]:.3g} against {medians[0]:.3g}): the promise "
            "assumes that both are drawn alike, so do not rely on it here before you know why."
        )
    images = "image" if m == 1 else "images"
    if least_p(n, m) * s > level:
        return (
            f"{m} new {images} are too few to tell whether they are drawn like the {n} calibration images: the promise assumes it, and this check "
            "cannot say."
        )
    return (
        f"No sign that the {m} new {images} differ from the {n} calibration images in {s} properties of their maps (smallest p = {p:.2g}). That is "
        "no proof that they are drawn alike."
    )


def least_p(n: int, m: int) -> float:
    """The smallest p-value that the test can give for n and m images: two orders out of all, (n + m choose n)."""
    return min(1.0, 2.0 / math.comb(n + m, min(n, m))) if n + m < 1000 else 0.0


SPLIT_SENTENCE = (
    "Calibration and test images were drawn at random from one upload, so they are exchangeable by construction: here the assumption holds, and "
    "no check is needed. It is about the next images that you must ask."
)
"""What is said of the calibration and test parts of one upload."""
