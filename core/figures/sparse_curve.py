"""One layer's adaptation objective over λ: its local minimum if it has one, which way is down, and the words for both. For `sparse_objective`.

What it is not: a chart, or the computation of the objective. R is the squared relative reconstruction error (METHODS 4.9).
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from core.figures.sparse_look import checked_lambda, checked_shape, rising
from core.figures.sparse_words import number, rate

DUST = 1e-3
"""A dip of a smaller share is numerical dust."""


@dataclass(frozen=True)
class Curve:
    """One layer's objective over λ at one K (what `core.tacsc.adapt.objective_curve` gives).

    Attributes:
        threshold: `(M,)` rising λ > 0, best evenly spaced in log λ, 40 points or more.
        objective: `(M,)` R/(λ + ε).
        error: `(M,)` R.
        sparsity: `(M,)` share of zero codes.
    """

    threshold: np.ndarray
    objective: np.ndarray
    error: np.ndarray
    sparsity: np.ndarray

    def at(self, values: np.ndarray, lam: Any) -> np.ndarray:
        """One of the curves at any λ, straight between its points in log λ."""
        return np.interp(np.log(np.asarray(lam, float)), np.log(self.threshold), values)


def dip(objective: np.ndarray) -> tuple[int, int] | None:
    """Places of the deepest interior local minimum and of the top of the barrier behind it, or None."""
    y = np.asarray(objective, float)
    best: tuple[int, int] | None = None
    for k in range(1, len(y) - 1):
        if not (y[k] <= y[k - 1] and y[k] < y[k + 1]):
            continue
        lower = np.flatnonzero(y[k + 1 :] < y[k])
        right = k + 1 + int(y[k + 1 : k + 1 + (lower[0] if len(lower) else len(y))].argmax())
        lower = np.flatnonzero(y[:k] < y[k])
        left = float(y[(lower[-1] + 1 if len(lower) else 0) : k].max(initial=-math.inf))
        if min(left, y[right]) < y[k] * (1 + DUST) + 1e-12:
            continue
        if best is None or y[k] < y[best[0]]:
            best = (k, right)
    return best


def local_minimum(threshold: np.ndarray, objective: np.ndarray) -> float | None:
    """The interior local minimum of an objective, None where there is none; dips of less than a thousandth are numerical dust.

    Of several, the deepest. The ends of the range do not count.

    Args:
        threshold: `(M,)` rising λ.
        objective: `(M,)` R/(λ + ε) there.
    """
    found = dip(objective)
    return None if found is None else float(threshold[found[0]])


def checked(k: int, curve: Curve, trained: float) -> Curve:
    """A curve in float64, if its parts belong together and hold the trained λ.

    Raises:
        ValueError: Lengths differ, λ does not rise, a value is no number, or the trained λ lies outside.
    """
    lam = checked_lambda(
        np.array(rising(curve.threshold.tolist(), f"λ of K = {k}")), (None,), f"λ of K = {k}"
    )
    parts = [
        checked_shape(v, (len(lam),), f"a curve of K = {k}")
        for v in (curve.objective, curve.error, curve.sparsity)
    ]
    if not all(np.isfinite(p).all() for p in parts) or len(lam) < 3:
        raise ValueError(f"The curve of K = {k} needs three points at least, and all of them numbers.")
    if not lam[0] <= trained <= lam[-1]:
        raise ValueError(
            f"The trained λ of {trained:g} lies outside the curve of K = {k}, {lam[0]:g} to {lam[-1]:g}."
        )
    return Curve(lam, *parts)


def down(curve: Curve, trained: float) -> str:
    """Which way the objective falls at the trained λ."""
    near = curve.at(
        curve.objective,
        np.array([trained / 1.1, trained * 1.1]).clip(curve.threshold[0], curve.threshold[-1]),
    )
    return "larger" if near[1] < near[0] else "smaller"


def sentence_for(k: int, curve: Curve, trained: float) -> str:
    """Which way the objective falls at the trained λ, where its local minimum is, and how high the barrier behind it."""
    way = f"With K = {k} the objective at the trained λ = {number(trained)} falls towards {down(curve, trained)} λ"
    low = dip(curve.objective)
    if low is None:
        end = "it has no local minimum on the way"
        return f"{way}; {end} to {number(curve.threshold[-1 if down(curve, trained) == 'larger' else 0])}."
    if trained > curve.threshold[low[1]] and down(curve, trained) == "larger":
        return f"{way} without end: it lies beyond the barrier of the local minimum at {number(curve.threshold[low[0]])}."
    ratio = float(curve.objective[low[1]]) / max(float(curve.objective[low[0]]), 1e-12)
    barrier = f"of {100 * (ratio - 1):.1f}\u00a0%" if ratio < 2 else f"{number(ratio)} times as high"
    return (
        f"{way}; its local minimum lies at {number(curve.threshold[low[0]])}, behind a barrier {barrier}, "
        "beyond which it falls without end."
    )


def words(
    found: Mapping[int, Curve], trained: float, own: int, ball: np.ndarray | None, sentence: str
) -> str:
    """Alt text: every K's minimum and slope, what the right end leaves, and the ball's way."""
    each = []
    for k, c in found.items():
        low = local_minimum(c.threshold, c.objective)
        where = "no local minimum" if low is None else f"a local minimum at {number(low)}"
        at = float(c.at(c.error, trained))
        each.append(f"K = {k}: {where}, R {rate(at)} at the trained λ, down is towards {down(c, trained)} λ")
    ends = found[own].error[-1], found[own].sparsity[-1]
    rolled = (
        ""
        if ball is None
        else f" The ball goes from {number(ball[0])} to {number(ball[-1])} in {len(ball) - 1} steps."
    )
    return (
        f"Line chart of the objective R/(λ + ε) against λ on a logarithmic axis, relative to the trained λ = {number(trained)}. {'; '.join(each)}. "
        f"At the right end, λ = {number(found[own].threshold[-1])}, K = {own} leaves an error of {rate(float(ends[0]))} with {rate(float(ends[1]))} "
        f"zeros: the global minimum lies at infinity, where nothing of the image is left.{rolled} {sentence}"
    )
