"""A promise under damage: mean coverage of each method against severity, with the promised line. It computes nothing.

Methods keep their own colours here (`sparse_coverage` colours before and after adaptation instead).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from core.figures.altair_figure import Figure
from core.figures.frame import (
    INK,
    by_method,
    checked_methods,
    figure,
    layer,
    legend,
    listed,
    percent,
    promised,
    quantity,
    same_length,
    share_axis,
    titled,
    word,
)


def coverage_under_shift(
    severities: Sequence[int],
    coverage: Mapping[str, np.ndarray],
    area: Mapping[str, np.ndarray],
    alpha: float,
    at: int,
    damage: str,
    *,
    height: int = 340,
) -> Figure:
    """One line a method, one point a severity; severity 0 is clean.

    Args:
        severities: S rising severities.
        coverage: Method -> `(S,)` mean coverage, 0 to 1.
        area: Method -> `(S,)` mean set area, for the tooltip.
        alpha: Share of a lesion that may be missed on average, by the promise on clean pictures.
        at: The severity on the screen.
        damage: The corruption in words.
        height: Height of everything in pixels.

    Raises:
        ValueError: Lengths differ, a method is not known, `at` is not among the severities, or coverage is no share.
    """
    methods = checked_methods(coverage)
    same_length(
        severities=severities,
        **{m: coverage[m] for m in methods},
        **{f"area of {m}": area[m] for m in methods},
    )
    values = {m: np.asarray(coverage[m], float) for m in methods}
    every = np.stack(list(values.values()))
    if at not in severities or not ((every >= 0) & (every <= 1)).all():
        raise ValueError(
            "Coverage is a share from 0 to 1 at every severity, and the one on the screen is among them."
        )
    goal = 1 - alpha
    low = min(0.5, float(every.min()) - 0.05)
    rows = [
        {"severity": s, "method": m, "coverage": values[m][k], "area": float(area[m][k]), "here": s == at}
        for m in methods
        for k, s in enumerate(severities)
    ]
    ticks = [t / 10 for t in range(11) if t / 10 >= low]
    x = quantity(
        "severity",
        scale={"domain": [min(severities) - 0.25, max(severities) + 0.25], "nice": False, "zero": False},
        axis={"title": f"severity of {damage}; 0 is clean", "values": list(severities), "format": "d", "grid": False},
    )  # fmt: skip
    y = quantity(
        "coverage",
        scale={"domain": [max(low, 0), 1.02], "nice": False, "zero": False},
        axis=share_axis("lesion inside the set, mean", ticks, {f"promise {promised(alpha)}": goal}),
    )
    hover = [
        word("method"),
        quantity("severity"),
        quantity("coverage", format=".1%"),
        quantity("area", title="set area", format=".1%"),
    ]
    colour, dash = by_method("color", methods, legend(symbolStrokeWidth=0)), by_method("strokeDash", methods)
    marks = {"type": "point", "filled": True, "opacity": 1}
    size = {"condition": {"test": "datum.here", "value": 220}, "value": 70}
    parts = [
        layer([{"coverage": goal}], {"type": "rule", "color": INK, "strokeWidth": 2}, {"y": y}),
        layer([{"severity": at}], {"type": "rule", "color": INK, "opacity": 0.35, "strokeDash": [3, 3]}, {"x": x}),
        layer(rows, {"type": "line", "strokeWidth": 2.5}, {"x": x, "y": y, "color": colour, "strokeDash": dash}),
        layer(
            rows,
            marks,
            {"x": x, "y": y, "color": colour, "shape": by_method("shape", methods), "size": size, "tooltip": hover},
        ),
    ]  # fmt: skip
    k = list(severities).index(at)
    now = listed([f"{m} {percent(values[m][k])}" for m in methods])
    when = f"Under {damage} of severity {at}" if at else "On clean pictures"
    sentence = f"{when} coverage is {now}; promised were {promised(alpha)}."
    each = "; ".join(
        f"{m} " + ", ".join(f"{percent(v)} at {s}" for v, s in zip(values[m], severities, strict=True)) for m in methods
    )  # fmt: skip
    said = f"Line chart of mean coverage against severity, one line a method, with the promise as a line. {sentence} {each}."
    return figure(parts, titled(sentence), said, height)
