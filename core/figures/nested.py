"""One predictor for every alpha: the thresholds of one image against alpha, as calibrated and as nested. It calibrates nothing."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from core.figures.altair_figure import Figure
from core.figures.frame import (
    INK,
    Part,
    chance,
    checked_methods,
    figure,
    layer,
    legend,
    logit_axis,
    quantity,
    same_length,
    titled,
    within,
    word,
)
from core.figures.palette import COLOURS

KINDS = ("as calibrated, τ′", "nested, τ″")


def nested_chart(
    alphas: Any, tau: Any, nested: Any, alpha: float, *, method: str = "COAT", height: int = 380
) -> Figure:
    """Both thresholds of one image at every alpha, with the alpha of the page marked.

    Args:
        alphas: `(A,)` rising.
        tau: `(A,)` calibrated thresholds in logits; -inf is the whole image and is drawn at the edge.
        nested: `(A,)` nested thresholds, nowhere above `tau`.
        alpha: The page's alpha.
        method: Whose thresholds these are.
        height: Height of everything in pixels.

    Raises:
        ValueError: Lengths differ, alphas do not rise, or a nested threshold lies above its calibrated one.
    """
    a, t, n = (np.asarray(v, float) for v in (alphas, tau, nested))
    same_length(alphas=a, tau=t, nested=n)
    checked_methods([method])
    if (np.diff(a) <= 0).any() or (n > t).any() or np.isnan(t).any():
        raise ValueError("Alphas must rise, and a nested threshold never lies above the calibrated one.")
    x_axis = {"title": "α, share that may be missed", "format": ".2~f", "tickCount": 6, "grid": False}
    x = quantity(
        "alpha", scale={"domain": [float(a[0]) - 0.005, float(a[-1]) + 0.005], "nice": False}, axis=x_axis
    )
    y = quantity("threshold", **logit_axis([*t, *n], "threshold, as a probability"))
    rows = [
        {"alpha": a[k], "threshold": within(v[k]), "kind": kind, "own": chance(v[k])}
        for kind, v in zip(KINDS, (t, n), strict=True)
        for k in range(len(a))
    ]
    key = legend(symbolType="stroke", symbolStrokeColor=COLOURS[method]) | {"symbolSize": 500}
    dash = word("kind", scale={"domain": list(KINDS), "range": [[4, 4], [1, 0]]}, legend=key)
    width = word("kind", scale={"domain": list(KINDS), "range": [5, 2.5]}, legend=key)
    hover = [quantity("alpha", title="α"), word("kind"), word("own", title="threshold")]
    line: Part = {"type": "line", "color": COLOURS[method]}
    parts = [
        layer(
            [{"alpha": alpha}], {"type": "rule", "color": INK, "strokeWidth": 1.5, "opacity": 0.75}, {"x": x}
        ),
        layer(rows, line, {"x": x, "y": y, "strokeDash": dash, "strokeWidth": width}),
        layer(rows, {"type": "point", "size": 200, "opacity": 0}, {"x": x, "y": y, "tooltip": hover}),
    ]
    sentence, said = _words(a, t, n, alpha, method)
    return figure(parts, titled(sentence, "The upright line is the α of this page."), said, height)


def _words(a: np.ndarray, t: np.ndarray, n: np.ndarray, alpha: float, method: str) -> tuple[str, str]:
    lower = n < t
    if lower.any():
        k = int(np.nanargmax(np.where(lower & np.isfinite(n), t - n, -math.inf)))
        sentence = (
            f"This image's {method} sets cross: nesting lowers its threshold at {int(lower.sum())} of {len(a)} values of α, most at "
            f"α\u00a0=\u00a0{a[k]:.2g}, from {chance(t[k])} to {chance(n[k])}."
        )
    else:
        sentence = f"This image's {method} sets nest as they are: a larger α never marks more."
    here = int(np.abs(a - alpha).argmin())
    said = (
        f"Lines of this image's {method} threshold, as a probability, against alpha from {a[0]:.2g} to {a[-1]:.2g}, as calibrated and as nested. "
        f"{sentence} At alpha = {a[here]:.2g} they are {chance(t[here])} and {chance(n[here])}."
    )
    return sentence, said
