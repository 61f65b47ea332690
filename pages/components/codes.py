"""Logits and thresholds as whole numbers that a browser compares exactly as Python compares floats, to within one step.

A code is floor((logit + 15) / 30 * 65535). Rounding is down for scores and for thresholds alike, and rounding down keeps order:
a score >= threshold stays so. The browser's set therefore holds Python's set, and what it holds beyond that lies less than one
step (0.00046) under the threshold. It is never smaller, so no promise is broken by the drawing of it.
"""

from __future__ import annotations

import base64
import math

import numpy as np

LIMIT = 15.0
"""Logits are clamped to +-LIMIT."""
TOP = 65535
"""Code of LIMIT and above."""
STEP = 2 * LIMIT / TOP
"""One quantisation step, in logits."""
NOTHING = TOP + 1
"""Code of a threshold above every score: the empty set."""


def encode_scores(logits: np.ndarray) -> np.ndarray:
    """Scores as codes.

    Args:
        logits: `(H, W)` float; values beyond +-15 are clamped.

    Returns:
        `(H, W)` uint16.

    Raises:
        ValueError: Not two axes, or NaN among the values.
    """
    values = np.asarray(logits, np.float64)
    if values.ndim != 2 or values.size == 0:
        raise ValueError(f"The logit map must be (H, W), not {values.shape}.")
    if np.isnan(values).any():
        raise ValueError("The logit map holds NaN; mend it before it is shown.")
    return np.floor((np.clip(values, -LIMIT, LIMIT) + LIMIT) * (TOP / (2 * LIMIT))).astype(np.uint16)


def encode_threshold(tau: float) -> int:
    """A threshold as a code: 0 (-inf, or at most -15) is the whole image, `NOTHING` (above 15) the empty set.

    Args:
        tau: Effective threshold in logits; may be infinite.

    Raises:
        ValueError: NaN.
    """
    tau = float(tau)
    if math.isnan(tau):
        raise ValueError("A threshold is NaN; a picture cannot show it.")
    if tau <= -LIMIT:
        return 0
    if tau > LIMIT:
        return NOTHING
    return math.floor((tau + LIMIT) * (TOP / (2 * LIMIT)))


def to_base64(array: np.ndarray) -> str:
    """Little-endian bytes of an array, as base64."""
    return base64.b64encode(np.ascontiguousarray(array, array.dtype.newbyteorder("<")).tobytes()).decode(
        "ascii"
    )
