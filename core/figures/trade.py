"""The gap against its price: how far single images lie from the promise, and how much of them is marked for it.

A gap can be bought with area: marking the whole image gives exactly alpha. So this chart refuses to be drawn without *oracle* and *whole image*.
A line behind each mark says what the method's gap would be at another area, by one common extra shift; the mark alone carries a promise.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from core.figures.altair_figure import Figure
from core.figures.frame import (
    INK,
    PERCENT,
    Part,
    by_method,
    checked_methods,
    figure,
    layer,
    listed,
    percent,
    quantity,
    same_length,
    titled,
    word,
)

ANCHORS = ("oracle", "whole image")
_FLOOR = 0.002
_AREAS = (0.01, 0.02, 0.05, 0.1, 0.15, 0.2, 0.3, 0.5, 1.0)


def gap_against_area(
    rows: Mapping[str, tuple[float, float]] | Sequence[Mapping[str, Any]],
    *,
    alpha: float | None = None,
    curves: Mapping[str, tuple[Any, Any]] | None = None,
    height: int = 430,
) -> Figure:
    """Mean gap of each method against its mean set area, with the two anchors *oracle* and *whole image*.

    Args:
        rows: Method -> (area, gap), both 0 to 1; or rows with the keys `method`, `area` and `gap` (the table of methods).
        alpha: Share that may be missed; named in the alt text when given.
        curves: Method -> (areas, gaps), each `(S,)` and 0 to 1, along one common extra shift from tight to wide; drawn behind the marks.
        height: Height of everything in pixels.

    Raises:
        ValueError: An anchor is missing, a method is unknown, a number lies outside [0, 1], or a curve has no mark or unlike lengths.
    """
    table = (
        dict(rows)
        if isinstance(rows, Mapping)
        else {str(r["method"]): (float(r["area"]), float(r["gap"])) for r in rows}
    )
    missing = [a for a in ANCHORS if a not in table]
    if missing:
        raise ValueError(
            f"A gap is never shown without oracle and whole image beside it; {listed(missing)} is missing."
        )
    methods = checked_methods(table)
    for m, (area, gap) in table.items():
        if not (0 <= area <= 1 and 0 <= gap <= 1):
            raise ValueError(f"Area and gap are shares from 0 to 1; {m} has {area} and {gap}.")
    walks = {m: _walk(m, table, *curve) for m, curve in (curves or {}).items()}
    sentence, said = _words(table, alpha)

    top = 1.12 * max(max(g for _, g in table.values()), 0.02)
    low = max(_FLOOR, 0.75 * min(max(a, _FLOOR) for a, _ in table.values()))
    least = 21.0 / max(height - 150, 80) * top
    points = [{"method": m, "area": a, "drawn": max(a, _FLOOR), "gap": g} for m, (a, g) in table.items()]
    placed = _dodged(points, least)
    top = max([top, *(p["label_at"] + 0.7 * least for p in placed)])
    x_axis = {
        "title": "marked share of the image (the price)",
        "values": [t for t in _AREAS if t >= low],
        "labelExpr": PERCENT,
    }
    x = quantity(
        "drawn",
        scale={"type": "log", "domain": [low, 1.35], "nice": False},
        axis=x_axis | {"labelOverlap": False},
    )
    y_axis = {
        "title": "gap: mean distance from the promise, in points",
        "labelExpr": "format(100 * datum.value, '.2~f')",
        "tickCount": 5,
    }
    y = quantity("gap", scale={"domain": [-0.05 * top, top], "nice": False}, axis=y_axis)
    hover = [
        word("method"),
        quantity("area", title="marked share of the image", format=".1%"),
        quantity("gap", title="gap", format=".3f"),
    ]
    look = {"color": by_method("color", methods), "shape": by_method("shape", methods)}
    dots = layer(
        points,
        {"type": "point", "filled": True, "size": 260, "opacity": 1, "strokeWidth": 3},
        {"x": x, "y": y, **look, "tooltip": hover},
    )
    edges = layer(
        points,
        {"type": "point", "filled": False, "size": 260, "opacity": 1, "strokeWidth": 3},
        {"x": x, "y": y, **look},
    )
    name = {
        "x": quantity("label_x", scale=x["scale"], axis=x["axis"]),
        "y": quantity("label_at", scale=y["scale"], axis=y["axis"]),
    }
    ends = {"x": x, "y": y, "x2": {"field": "label_x"}, "y2": {"field": "label_at"}}
    lines = layer(
        [p for p in placed if p["align"] == "left"],
        {"type": "rule", "color": INK, "opacity": 0.45, "strokeWidth": 1},
        ends,
    )
    parts = [*_walks(walks, methods, x, y), lines, dots, edges]
    for align, dx in (("left", 6), ("right", -15)):
        some = [p for p in placed if p["align"] == align]
        mark = {
            "type": "text",
            "align": align,
            "baseline": "middle",
            "dx": dx,
            "fontWeight": 600,
            "color": INK,
        }
        parts.append(layer(some, mark, name | {"text": word("method")}))
    under = ["Lower left is better: evenly served, little marked."]
    if walks:
        under.append("Lines: the same thresholds with a common extra shift. Only the marks carry a promise.")
        said += f" Behind the marks of {listed(list(walks))} a line each: the gap at other areas, by one common extra shift, without any promise."
    return figure(parts, titled(sentence, *under), said, height)


def _walk(m: str, table: Mapping[str, tuple[float, float]], areas: Any, gaps: Any) -> list[Part]:
    """Rows of one line, by rising area."""
    same_length(areas=areas, gaps=gaps)
    if m not in table:
        raise ValueError(f"There is a curve of {m} and no mark of it.")
    pairs = sorted((float(a), float(g)) for a, g in zip(areas, gaps, strict=True))
    if not all(0 <= a <= 1 + 1e-9 and 0 <= g <= 1 for a, g in pairs):
        raise ValueError(f"Area and gap are shares from 0 to 1; the curve of {m} leaves them.")
    return [{"method": m, "drawn": max(a, _FLOOR), "gap": g} for a, g in pairs]


def _walks(walks: Mapping[str, list[Part]], methods: Sequence[str], x: Part, y: Part) -> list[Part]:
    """The lines; their colours and dashes are those of all methods of the chart, for layers share their scales."""
    rows = [row for walk in walks.values() for row in walk]
    if not rows:
        return []
    look = {"color": by_method("color", methods), "strokeDash": by_method("strokeDash", methods)}
    line = {"type": "line", "strokeWidth": 2, "opacity": 0.6, "clip": True}
    return [layer(rows, line, {"x": x, "y": y, **look})]


def _dodged(points: list[Part], least: float) -> list[Part]:
    """Where the labels go: below their cluster on thin lines, where no curve runs; above it where there is no room; beside an anchor."""
    placed: list[Part] = []
    close: list[Part] = []
    for p in sorted(points, key=lambda p: -p["gap"]):
        if p["drawn"] > 0.7:
            placed.append(p | {"label_at": p["gap"] - least, "label_x": 1.1 * p["drawn"], "align": "right"})
        elif p["method"] in ANCHORS:
            placed.append(p | {"label_at": p["gap"], "label_x": 1.09 * p["drawn"], "align": "left"})
        else:
            close.append(p)
    if not close:
        return placed
    right = 1.12 * max(p["drawn"] for p in close)
    floor = max([p["gap"] for p in placed if p["align"] == "left"], default=0.0) + least
    first = min(p["gap"] for p in close) - 0.9 * least
    if first - (len(close) - 1) * least >= floor:
        at = [first - k * least for k in range(len(close))]
    else:
        at = []
        for p in reversed(close):
            at.insert(0, max([p["gap"], *(v + least for v in at[:1])]))
        if at[-1] < floor:
            at = [v + floor - at[-1] for v in at]
    return [
        *placed,
        *(p | {"label_at": v, "label_x": right, "align": "left"} for p, v in zip(close, at, strict=True)),
    ]


def _words(table: Mapping[str, tuple[float, float]], alpha: float | None) -> tuple[str, str]:
    def tells(m: str) -> str:
        area, gap = table[m]
        return f"{100 * gap:.1f} points and marks {percent(area)} of the image"

    pair = (
        [m for m in ("CRC", "COAT") if m in table]
        or [m for m in table if m not in ANCHORS][:2]
        or list(ANCHORS)
    )
    first, *others = [
        f"{m} {'misses ' if k == 0 else ''}by {100 * table[m][1]:.1f} points for {percent(table[m][0])}"
        for k, m in enumerate(pair)
    ]
    sentence = listed([f"{first} of the image", *others]) + "."
    level = f" at alpha = {alpha:g}" if alpha is not None else ""
    each = "; ".join(f"{m} misses by {tells(m)}" for m in table)
    said = f"Scatter chart of gap against set area{level}, one mark a method. {each}. Oracle knows the truth; whole image marks everything."
    return sentence, said
