"""A conformal promise under shift, before and after adaptation: coverage, area and Dice against severity (U-Nets with a sparse first layer)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from core.figures.frame import checked_methods, listed, promised
from core.figures.margin_look import PLOTLY_SHAPES
from core.figures.palette import SHAPES
from core.figures.sparse_look import AFTER, BEFORE, checked_shares, known, legend_above, plain_axis, rising
from core.figures.sparse_words import rate
from core.figures.temperature_frame import GREY, dash_of, finished, plotly

PANELS = ("coverage", "marked area", "Dice")


def coverage_lines(
    severities: Sequence[int],
    before: Mapping[str, np.ndarray],
    after: Mapping[str, np.ndarray] | None = None,
    *,
    target: float,
    dice: tuple[Sequence[float], Sequence[float] | None] | None = None,
    corruption: str = "",
    compact: bool = False,
    height: int = 0,
) -> Any:
    """Panels against severity: coverage with the target line, marked area, and Dice.

    Args:
        severities: R rising severities, 0 is clean.
        before: Method (`"CRC"`, `"COAT"`, `"plug-in"`, ...; keys of `palette.COLOURS`) -> `(2, R)` coverage and area, 0 to 1, NaN where not measured.
        after: The same after adaptation; None draws only before.
        target: 1 - alpha.
        dice: `(R,)` mean Dice before and, or None, after; None leaves the panel out.
        corruption: In words.
        compact: Panels under one another.
        height: Height in pixels of all; 0 takes what the panels need.

    Returns:
        A Plotly figure. Colour says before or after, dash and marker say the method.

    Raises:
        ValueError: No method or severity, an unknown method, unlike shapes, or a share outside [0, 1].
    """
    go, make_subplots = plotly()

    levels = [int(s) for s in rising(severities, "severities")]
    methods = checked_methods(dict.fromkeys([*before, *(after or {})]))
    sides = [(BEFORE, "before", _checked(before, levels, "before"))]
    if after is not None:
        sides.append((AFTER, "after", _checked(after, levels, "after")))
    overlap = (
        []
        if dice is None
        else [None if d is None else checked_shares(list(d), (len(levels),), "Dice") for d in dice]
    )
    n = 2 + bool(overlap)
    top, bottom = 92 if compact else 62, 44
    tall = height or (top + bottom + 190 * n if compact else 370)
    figure = make_subplots(
        rows=n if compact else 1, cols=1 if compact else n, subplot_titles=PANELS[:n], horizontal_spacing=0.07, shared_xaxes=compact,
        vertical_spacing=36 / (tall - top - bottom) if compact else 0,
    )  # fmt: skip

    def place(k: int) -> tuple[int, int]:
        return (k + 1, 1) if compact else (1, k + 1)

    for colour, side, values in sides:
        for method, table in values.items():
            for k in range(2):
                figure.add_trace(_line(go, levels, table[k], colour, method, side, PANELS[k]), *place(k))
    for (colour, side, _), d in zip(sides, overlap, strict=False):
        if d is not None:
            figure.add_trace(_line(go, levels, d, colour, "", side, "Dice"), *place(2))
    row, col = place(0)
    figure.add_hline(y=100 * target, line={"color": GREY, "width": 2.5, "dash": "dot"}, row=row, col=col)
    figure.add_traces(_keys(go, [(c, s) for c, s, _ in sides], methods))
    figure.update_annotations(font={"size": 14})
    plain = plain_axis(showgrid=False, tickvals=levels, range=[levels[0] - 0.3, levels[-1] + 0.3])
    figure.update_xaxes(plain)
    figure.update_xaxes({"title": {"text": "severity", "standoff": 4}}, row=n if compact else 1)
    figure.update_yaxes(plain_axis(nticks=5, ticksuffix="\u00a0%"))
    figure.update_yaxes({"rangemode": "tozero"}, row=place(1)[0], col=place(1)[1])
    sentence = _sentence(levels, sides, methods, target, corruption)
    return finished(
        figure, f"{_words(levels, sides, overlap, target, corruption)} {sentence}", tall, sentence, hovermode="closest",
        margin={"l": 44, "r": 10, "t": top, "b": bottom}, legend=legend_above(26, tall - top - bottom, itemclick=False, itemdoubleclick=False),
    )  # fmt: skip


def _checked(table: Mapping[str, np.ndarray], levels: Sequence[int], side: str) -> dict[str, np.ndarray]:
    return {m: checked_shares(v, (2, len(levels)), f"{m} {side} adaptation") for m, v in table.items()}


def _line(
    go: Any, levels: Sequence[int], values: np.ndarray, colour: str, method: str, side: str, what: str
) -> Any:
    words = f"{method}, {side}" if method else side
    shape = PLOTLY_SHAPES.get(SHAPES.get(method, "circle"), "circle")
    return go.Scatter(
        x=list(levels), y=known(100 * values), mode="lines+markers", name=words,
        line={"color": colour, "width": 2.4, "dash": dash_of(method) if method else "solid"},
        marker={"symbol": shape + ("-open" if side == "before" else ""), "size": 9, "color": colour, "line": {"width": 2, "color": colour}},
        showlegend=False, hovertemplate=f"{words}, severity %{{x}}: {what} %{{y:.1f}} %<extra></extra>", cliponaxis=False,
    )  # fmt: skip


def _keys(go: Any, sides: Sequence[tuple[str, str]], methods: Sequence[str]) -> list[Any]:
    """Entries of the legend: colours of before and after, dashes and markers of methods."""
    keys: list[tuple[str, str, str, str | None]] = [
        (f"{side} adaptation", colour, "solid", None) for colour, side in sides
    ]
    keys += [(m, GREY, dash_of(m), PLOTLY_SHAPES.get(SHAPES[m], "circle")) for m in methods]
    return [
        go.Scatter(
            x=[None], y=[None], mode="lines+markers" if shape else "lines", line={"color": colour, "dash": dash, "width": 3}, name=name,
            marker={"symbol": shape or "circle", "size": 9, "color": colour},
        )
        for name, colour, dash, shape in keys
    ]  # fmt: skip


def _sentence(
    levels: Sequence[int], sides: Sequence[tuple[str, str, dict[str, np.ndarray]]], methods: Sequence[str], target: float, corruption: str
) -> str:  # fmt: skip
    def told(k: int) -> str:
        each = []
        for m in methods:
            values = [
                f"{rate(float(t[m][0, k]))} {side}"
                for _, side, t in sides
                if m in t and np.isfinite(t[m][0, k])
            ]
            each += [f"{m} {listed(values)}"] if values else []
        return "; ".join(each)

    if not told(-1):
        return f"Coverage at severity {levels[-1]} was not measured."
    of = f" of {corruption}" if corruption else ""
    said = f"Coverage at severity {levels[-1]}{of}, before and after adaptation: {told(-1)}"
    if levels[0] == 0 and told(0):
        said += f". On clean images: {told(0)}"
    return f"{said}. Promised are {promised(1 - target)}, for images without shift."


def _words(
    levels: Sequence[int], sides: Sequence[tuple[str, str, dict[str, np.ndarray]]], overlap: Sequence[np.ndarray | None], target: float,
    corruption: str,
) -> str:  # fmt: skip
    told = []
    for _, side, values in sides:
        for m, t in values.items():
            told.append(
                f"{m} {side}: coverage {rate(float(t[0, 0]))} to {rate(float(t[0, -1]))}, area {rate(float(t[1, 0]))} to {rate(float(t[1, -1]))}"
            )
    for (_, side, _), d in zip(sides, overlap, strict=False):
        if d is not None:
            told.append(f"Dice {side}: {rate(float(d[0]))} to {rate(float(d[-1]))}")
    return (
        f"Line charts against severity {levels[0]} to {levels[-1]}{f' of {corruption}' if corruption else ''}, target {promised(1 - target)}. "
        f"{'; '.join(told)}."
    )
