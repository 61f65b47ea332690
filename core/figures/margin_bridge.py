"""Does calibration help a conformal set? ECE of each loss against the gap and the set area that conformal methods reach with its scores.

One dot a loss, one column a method. A gap can be bought with area, so both rows are always there, with *oracle* and *whole image* as lines.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from core.figures.frame import listed, percent
from core.figures.margin_look import LOSS_TITLES, checked_losses, line_of_loss, marker_of_loss
from core.figures.palette import COLOURS
from core.figures.temperature_frame import GREY, LEGEND, dash_of, finished, plotly

ANCHORS = ("oracle", "whole image")
ROWS = {"gap": "gap, in points", "area": "marked area, %"}
_AREAS = (0.5, 1, 2, 5, 10, 20, 50, 100)


def dots(
    rows: Sequence[Mapping[str, Any]],
    *,
    ece: str = "ece_all",
    methods: Sequence[str] = ("CRC", "plug-in", "COAT"),
    height: int = 480,
) -> Any:
    """Gap (above) and set area (below) against ECE.

    Args:
        rows: One for each loss and method with `loss`, `method`, `alpha`, `gap`, `area`, the column named by `ece`, and where known `gap_sd`,
            `area_sd` and that column's `_sd` (error bars). All of one data set and one alpha. Rows of the methods "oracle" and "whole image"
            give the lines (their mean over losses); both must be there.
        ece: Column of the horizontal axis: `"ece_all"` or `"ece_fg"`.
        methods: Columns of the figure; one without rows is left out.
        height: Height in pixels.

    Returns:
        A Plotly figure; `sentence_of` says for each method whether the gap goes with ECE (Spearman's rank correlation over losses).

    Raises:
        ValueError: An anchor is missing, more than one alpha or data set, an unknown loss, or no method has a row.
    """
    go, make_subplots = plotly()

    there, anchors, alpha = _checked(rows, ece, methods)
    shown = list(there)
    losses = checked_losses(
        dict.fromkeys(str(r["loss"]) for m in shown for r in there[m]), "The bridge from calibration"
    )
    figure = make_subplots(
        rows=2,
        cols=len(shown),
        shared_xaxes=True,
        shared_yaxes=True,
        horizontal_spacing=0.04,
        vertical_spacing=0.08,
        subplot_titles=shown,
    )
    for col, method in enumerate(shown, 1):
        for row, key in enumerate(ROWS, 1):
            for r in there[method]:
                figure.add_trace(_dot(go, r, key, ece, method, row == col == 1), row, col)
    for name in ANCHORS:
        look = {"color": COLOURS[name], "dash": dash_of(name), "width": 1.8}
        figure.add_trace(go.Scatter(x=[None], y=[None], mode="lines", line=look, name=name), 1, 1)
        for row, key in enumerate(ROWS, 1):
            for col in range(1, len(shown) + 1):
                figure.add_hline(y=100 * anchors[name][key], line=look, layer="below", row=row, col=col)
    span = _span([float(r[ece]) for m in shown for r in there[m]])
    figure.update_xaxes(
        {"range": span, "fixedrange": True, "zeroline": False, "gridcolor": "rgba(138,143,150,0.18)", "nticks": 5, "automargin": True}
    )  # fmt: skip
    scope = "all pixels" if ece == "ece_all" else "foreground pixels"
    figure.update_xaxes({"title": {"text": "ECE, %", "standoff": 4}}, row=2)
    axis = {"fixedrange": True, "zeroline": False, "gridcolor": "rgba(138,143,150,0.25)", "automargin": True}
    figure.update_yaxes({**axis, "range": [0, _top(there, anchors)], "nticks": 5}, row=1)
    areas = [100 * float(r["area"]) for m in shown for r in there[m]] + [
        100 * anchors[a]["area"] for a in ANCHORS
    ]
    low = min(areas)
    figure.update_yaxes(
        {
            **axis, "type": "log", "range": [math.log10(low / 1.4), math.log10(170)], "tickvals": [t for t in _AREAS if t >= low / 1.4],
            "ticktext": [f"{t:g}" for t in _AREAS if t >= low / 1.4],
        }, row=2,
    )  # fmt: skip
    for row, title in enumerate(ROWS.values(), 1):
        figure.update_yaxes({"title": {"text": title, "standoff": 4}}, row=row, col=1)
    said = _words(there, anchors, ece, scope, alpha, losses)
    return finished(
        figure, said, height, _sentence(there, ece, scope), margin={"l": 56, "r": 8, "t": 70, "b": 46}, legend=LEGEND | {"y": 1.09},
        hovermode="closest",
    )  # fmt: skip


def _checked(
    rows: Sequence[Mapping[str, Any]], ece: str, methods: Sequence[str]
) -> tuple[dict[str, list[Mapping[str, Any]]], dict[str, dict[str, float]], float]:
    missing = [a for a in ANCHORS if not any(r["method"] == a for r in rows)]
    if missing:
        raise ValueError(
            f"A gap is never shown without oracle and whole image beside it; {listed(missing)} is missing."
        )
    for key, word in (("alpha", "level alpha"), ("data", "data set")):
        found = sorted({str(r[key]) for r in rows if key in r})
        if len(found) > 1:
            raise ValueError(f"The dots belong to one {word}; these rows hold {listed(found)}.")
    if ece not in ("ece_all", "ece_fg"):
        raise ValueError(f"The horizontal axis is 'ece_all' or 'ece_fg', not {ece!r}.")
    there = {m: [r for r in rows if r["method"] == m] for m in methods}
    there = {m: found for m, found in there.items() if found}
    if not there:
        raise ValueError(f"There is no row of {listed(list(methods))}.")
    anchors = {
        a: {k: float(np.mean([float(r[k]) for r in rows if r["method"] == a])) for k in ROWS} for a in ANCHORS
    }
    return there, anchors, float(rows[0]["alpha"])


def _dot(go: Any, r: Mapping[str, Any], key: str, ece: str, method: str, legend: bool) -> Any:
    loss = str(r["loss"])
    bars = {
        axis: {"type": "data", "array": [100 * sd], "color": line_of_loss(loss)["color"], "thickness": 1.8, "width": 4}
        for axis, name in (("error_x", ece), ("error_y", key))
        if (sd := _number(r.get(f"{name}_sd"))) > 0
    }  # fmt: skip
    words = (
        f"{LOSS_TITLES[loss]}, {method}<br>ECE {percent(float(r[ece]))}<br>gap {100 * float(r['gap']):.1f} points, "
        f"marks {percent(float(r['area']))}"
    )
    return go.Scatter(
        x=[100 * float(r[ece])], y=[100 * float(r[key])], mode="markers", name=LOSS_TITLES[loss], legendgroup=loss, showlegend=legend,
        marker=marker_of_loss(loss, 14) | {"line": {"color": GREY, "width": 1}}, text=[words], hoverinfo="text", **bars,
    )  # fmt: skip


def _number(value: Any) -> float:
    return 0.0 if value is None or math.isnan(float(value)) else float(value)


def _span(values: list[float]) -> list[float]:
    low, high = 100 * min(values), 100 * max(values)
    room = max(0.12 * (high - low), 0.2)
    return [max(0.0, low - room) if low < 3 * room else low - room, high + room]


def _top(there: Mapping[str, list[Mapping[str, Any]]], anchors: Mapping[str, Mapping[str, float]]) -> float:
    every = [float(r["gap"]) + _number(r.get("gap_sd")) for found in there.values() for r in found]
    return 118 * max(*every, *(a["gap"] for a in anchors.values()), 0.01)


def rank_correlation(first: Sequence[float], second: Sequence[float]) -> float:
    """Spearman's rank correlation; NaN for fewer than three pairs or where one side is constant."""
    if len(first) < 3:
        return float("nan")

    def ranks(values: Sequence[float]) -> np.ndarray:
        v = np.asarray(values, float)
        return np.array([(v < x).sum() + ((v == x).sum() - 1) / 2 for x in v])

    a, b = ranks(first), ranks(second)
    if a.std() == 0 or b.std() == 0:
        return float("nan")
    return float(np.corrcoef(a, b)[0, 1])


def _sentence(there: Mapping[str, list[Mapping[str, Any]]], ece: str, scope: str) -> str:
    """Whether the gap goes with ECE, and whether the area does; ranks over so few losses are a hint, no proof."""
    told: dict[str, list[str]] = {key: [] for key in ROWS}
    n = max(len(found) for found in there.values())
    for key, some in told.items():
        for method, found in there.items():
            link = rank_correlation([float(r[ece]) for r in found], [float(r[key]) for r in found])
            if not math.isnan(link):
                some.append(f"{link:+.1f} for {method}")
    if not told["gap"]:
        return ""
    area = f", with the area {listed(told['area'])}" if told["area"] else ""
    return (
        f"Over {n} losses the rank correlation of ECE on {scope} with the gap is {listed(told['gap'])}{area} "
        "(+1: both rise together, 0: no link)."
    )


def _words(
    there: Mapping[str, list[Mapping[str, Any]]],
    anchors: Mapping[str, Mapping[str, float]],
    ece: str,
    scope: str,
    alpha: float,
    losses: Sequence[str],
) -> str:
    def tells(r: Mapping[str, Any]) -> str:
        numbers = f"ECE {100 * float(r[ece]):.1f}\u00a0%, gap {100 * float(r['gap']):.1f} points"
        return f"{LOSS_TITLES[str(r['loss'])]} {numbers}, area {percent(float(r['area']))}"

    each = [f"{m}: {', '.join(tells(r) for r in found)}" for m, found in there.items()]
    lines = [
        f"{a} has a gap of {100 * v['gap']:.1f} points and marks {percent(v['area'])}"
        for a, v in anchors.items()
    ]
    return (
        f"Dots of {len(losses)} losses, ECE on {scope} against gap and against marked area at alpha = {alpha:g}. {'. '.join(each)}. "
        f"{listed(lines)[0].upper()}{listed(lines)[1:]}."
    )
