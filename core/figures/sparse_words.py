"""Numbers and moves of λ in words, for the charts of the page Sparse and their alt texts."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from core.figures.frame import listed


def number(value: float) -> str:
    """A λ, an objective or a score to two digits, without powers of ten: 0.031, 0.31, 3.1, 310."""
    x = float(value)
    if not math.isfinite(x):
        return "unknown"
    if x == 0 or abs(x) < 5e-6:
        return "0"
    digits = max(0, 1 - int(f"{x:.1e}".split("e")[1]))
    return f"{x:,.{digits}f}"


def points(share: float) -> str:
    """A difference of shares in points: 3.2 points."""
    return f"{100 * share:.1f} points"


def rate(share: float) -> str:
    """An accuracy in percent to a tenth: 84.3 %; unknown for NaN."""
    return f"{100 * share:.1f}\u00a0%" if math.isfinite(share) else "unknown"


def moved(before: float, after: float) -> str:
    """`0.12 to 0.31`, or `0.12` for what stays, or `0.12 to unknown`."""
    if not math.isfinite(after):
        return f"{number(before)} to unknown"
    if abs(math.log(after / before)) < 0.005:
        return number(before)
    text = number(before), number(after)
    return f"{before:.3g} to {after:.3g}" if text[0] == text[1] else f"{text[0]} to {text[1]}"


def moves_words(layers: Sequence[str], before: np.ndarray, after: np.ndarray) -> str:
    """Which way λ went, with the layer that moved most: a sentence without its dot, beginning with λ."""
    ratio = np.log(after / before)
    known = np.isfinite(ratio)
    if not known.any():
        return "λ was not measured after adaptation"
    most = int(np.nanargmax(np.abs(ratio)))
    if len(layers) == 1:
        return f"λ {_verb(ratio[0])} {_from(before[0], after[0])}"
    up, down = int((ratio[known] > 0.005).sum()), int((ratio[known] < -0.005).sum())
    if not up + down:
        return f"λ stays where it was in all {int(known.sum())} layers"
    parts = [f"rises in {up}" if up else "", f"falls in {down}" if down else ""]
    way = listed([p for p in parts if p])
    return f"λ {way} of {int(known.sum())} layers, most in {layers[most]}: from {moved(before[most], after[most])}"


def _verb(ratio: float) -> str:
    return "stays at" if abs(ratio) < 0.005 else "rises from" if ratio > 0 else "falls from"


def _from(before: float, after: float) -> str:
    return number(before) if abs(math.log(after / before)) < 0.005 else moved(before, after)
