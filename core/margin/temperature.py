"""Temperature scaling: one number T that divides all logits, fitted to the negative log-likelihood.

What it is not: a training loss, and no cure for what ranks wrong: the predicted class stays. Source: Guo and others, *On calibration of modern
neural networks* (2017), section 4.2. In b = 1/T the mean NLL is convex, with slope mean(E_p[l] - l_y) and curvature mean(Var_p[l]), so one
root of the slope is the minimum: Newton steps inside a bracket, always the same answer.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import torch

from core.margin.pixels import EMPTY, SCOPES, flat

LOWEST, HIGHEST = 0.01, 100.0
"""Ends of T. An answer at an end means that NLL still falls beyond it: logits that say nothing (T high) or are always right (T low)."""
_CHUNK = 1 << 18


def scaled(logits: torch.Tensor, temperature: float) -> torch.Tensor:
    """Logits divided by T, in float32 at least.

    Args:
        logits: Any shape.
        temperature: T > 0; above 1 softens, below 1 sharpens.

    Raises:
        ValueError: T is not above 0.
    """
    _check(temperature)
    wide = logits if logits.dtype == torch.float64 else logits.float()
    return wide / temperature


def fit_temperature(logits: Any, target: Any, ignore: Any = None, scope: str = "all") -> float:
    """The T with the smallest NLL. Fit it on images that are neither trained on nor tested.

    Args:
        logits: `(N, K, *)`, array or tensor.
        target: `(N, *)` labels 0 .. K-1.
        ignore: `(N, *)` bool, True leaves a pixel out.
        scope: "all" or "foreground" (pixels whose truth is not class 0).

    Returns:
        T in [0.01, 100]; 1 where every T gives the same NLL.

    Raises:
        ValueError: No pixel is left, shapes do not fit, a label is outside the classes, or logits are not finite.
    """
    x, y = _flat(logits, target, ignore, scope)
    low, high = 1 / HIGHEST, 1 / LOWEST
    b = 1.0
    slope, curvature = _slopes(x, y, b)
    if slope == 0 and curvature == 0:
        return 1.0
    if _slopes(x, y, high)[0] <= 0:
        return LOWEST
    if _slopes(x, y, low)[0] >= 0:
        return HIGHEST
    for _ in range(200):
        low, high = (low, b) if slope > 0 else (b, high)
        newton = b - slope / curvature if curvature > 0 else 0.0
        if slope == 0 or abs(newton - b) <= 1e-14 * b or high <= low * (1 + 1e-14):
            break
        b = newton if low < newton < high else (low * high) ** 0.5
        slope, curvature = _slopes(x, y, b)
    return float(1 / b)


def nll_at(logits: Any, target: Any, temperature: float, ignore: Any = None, scope: str = "all") -> float:
    """Mean NLL in nats after division by T; arguments and errors as in `fit_temperature` and `scaled`."""
    _check(temperature)
    x, y = _flat(logits, target, ignore, scope)
    total = 0.0
    for at in range(0, len(y), _CHUNK):
        z, t = x[:, at : at + _CHUNK] / temperature, y[at : at + _CHUNK]
        top = z.max(0)
        total += float((np.log(np.exp(z - top).sum(0)) + top - z[t, np.arange(len(t))]).sum())
    return total / len(y)


def _slopes(x: np.ndarray, y: np.ndarray, b: float) -> tuple[float, float]:
    """First and second derivative in b = 1/T of the mean NLL of logits `(K, P)`."""
    first = second = 0.0
    for at in range(0, len(y), _CHUNK):
        part, t = x[:, at : at + _CHUNK], y[at : at + _CHUNK]
        below = part - part.max(0)  # a shift of a pixel changes nothing
        p = np.exp(b * below)
        p /= p.sum(0)
        mean = (p * below).sum(0)
        first += float((mean - below[t, np.arange(len(t))]).sum())
        second += float((p * (below - mean) ** 2).sum())
    return first / len(y), second / len(y)


def _flat(logits: Any, target: Any, ignore: Any, scope: str) -> tuple[np.ndarray, np.ndarray]:
    if scope not in SCOPES:
        raise ValueError(f"The scope is {scope!r}; choose 'foreground' (truth other than 0) or 'all'.")
    moved = (
        logits.transpose(0, 1) if isinstance(logits, torch.Tensor) else np.swapaxes(np.asarray(logits), 0, 1)
    )
    x, y, _ = flat(moved, target, ignore)
    if scope == "foreground":
        keep = np.flatnonzero(y)
        x, y = np.take(x, keep, axis=1), y[keep]
    if not len(y):
        raise ValueError(EMPTY)
    bad = int((~np.isfinite(x).all(0)).sum())
    if bad:
        raise ValueError(
            f"The logits hold NaN or infinity at {bad} of {len(y)} pixels. Find out what made them, or leave these pixels out with `ignore`."
        )
    return x, y


def _check(temperature: float) -> None:
    if not temperature > 0:
        raise ValueError(f"The temperature must be above 0; it is {temperature}.")
