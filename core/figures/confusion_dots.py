"""What the worst classes cost: overall accuracy against the mean recall of the worst classes, one dot a method, one panel a set."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

from core.figures.confusion_look import line_of_method, marker_of_method, title_of
from core.figures.frame import listed, percent
from core.figures.temperature_frame import GREY, LEGEND, finished, plotly

WORDS = {
    "overall": "overall accuracy, %",
    "mean_recall": "mean recall, %",
    "worst": "recall of the worst class, %",
    "worst_classes": "mean recall of the worst classes, %",
    "worst_ten": "mean recall of the worst ten, %",
    "tail": "recall of the tail, %",
    "macro_f1": "macro F1, %",
    "wr": "share of training recall that survives, %",
}
"""Figures that can be an axis."""


def dots(
    rows: Sequence[Mapping[str, Any]],
    *,
    x: str = "overall",
    y: str = "worst_classes",
    set_titles: Mapping[str, str] | None = None,
    reference: str = "ce",
    height: int = 430,
) -> Any:
    """Draw the table.

    Args:
        rows: As `core.lab.tail_shelf.table` gives them: `data`, `name` (method key), `method` (label), `seeds`, the two figures and their `_sd`
            (None or NaN for one seed: no bar).
        x: Column of the horizontal axis, one of `WORDS`.
        y: Column of the vertical axis.
        set_titles: Set -> words over its panel.
        reference: Method whose position is drawn as thin lines: up and to the right of them is better in both.
        height: Height in pixels of one row of panels (two panels a row).

    Returns:
        A Plotly figure; `sentence_of` counts the sets where each CAR lies above the reference on y.

    Raises:
        ValueError: No rows, an unknown axis, or a row without its figures.
    """
    go, make_subplots = plotly()

    sets = _checked(rows, x, y)
    per_row = 1 if len(sets) == 1 else 2
    lines = math.ceil(len(sets) / per_row)
    names = [(set_titles or {}).get(s, s) for s in sets]
    figure = make_subplots(
        rows=lines, cols=per_row, horizontal_spacing=0.1, vertical_spacing=0.16 / max(lines - 1, 1) if lines > 1 else 0.1, subplot_titles=names
    )  # fmt: skip
    seen: set[str] = set()
    for k, name in enumerate(sets):
        row, col = k // per_row + 1, k % per_row + 1
        mine = [r for r in rows if r["data"] == name]
        for r in mine:
            method = str(r["name"])
            figure.add_trace(_dot(go, r, x, y, method not in seen), row, col)
            seen.add(method)
        base = next((r for r in mine if r["name"] == reference), None)
        if base is not None:
            thin = {"color": GREY, "width": 1.4, "dash": "dot"}
            figure.add_vline(x=100 * float(base[x]), line=thin, layer="below", row=row, col=col)
            figure.add_hline(y=100 * float(base[y]), line=thin, layer="below", row=row, col=col)
        plain = {
            "fixedrange": True,
            "zeroline": False,
            "gridcolor": "rgba(138,143,150,0.18)",
            "nticks": 5,
            "automargin": True,
            "tickfont": {"size": 13},
        }
        figure.update_xaxes(plain | {"range": _span(mine, x)}, row=row, col=col)
        figure.update_yaxes(plain | {"range": _span(mine, y)}, row=row, col=col)
        figure.update_xaxes({"title": {"text": WORDS[x], "standoff": 4}}, row=row, col=col)
        if col == 1:
            figure.update_yaxes({"title": {"text": WORDS[y], "standoff": 4}}, row=row, col=col)
    said, sentence = _words(rows, sets, names, x, y, reference)
    return finished(
        figure, said, height * lines + 30, sentence, margin={"l": 8, "r": 12, "t": 34, "b": 8}, hovermode="closest",
        legend=LEGEND | {"y": -0.13 / lines, "yanchor": "top"},
    )  # fmt: skip


def _checked(rows: Sequence[Mapping[str, Any]], x: str, y: str) -> list[str]:
    """Sets in the order in which they come."""
    for axis in (x, y):
        if axis not in WORDS:
            raise ValueError(f"An axis is one of {', '.join(WORDS)}, not {axis!r}.")
    if not rows:
        raise ValueError("There is no row to draw.")
    for r in rows:
        gone = [key for key in (x, y) if r.get(key) is None or math.isnan(float(r[key]))]
        if gone:
            raise ValueError(f"The row of {r.get('method', r['name'])} on {r['data']} lacks {listed(gone)}.")
    return list(dict.fromkeys(str(r["data"]) for r in rows))


def _deviation(row: Mapping[str, Any], key: str) -> float:
    value = row.get(f"{key}_sd")
    return 0.0 if value is None or math.isnan(float(value)) else float(value)


def _title(row: Mapping[str, Any]) -> str:
    return str(row.get("method") or title_of(str(row["name"])))


def _dot(go: Any, r: Mapping[str, Any], x: str, y: str, legend: bool) -> Any:
    method = str(r["name"])
    bars = {
        axis: {"type": "data", "array": [100 * sd], "color": line_of_method(method)["color"], "thickness": 1.8, "width": 4}
        for axis, key in (("error_x", x), ("error_y", y))
        if (sd := _deviation(r, key)) > 0
    }  # fmt: skip
    seeds = r.get("seeds") or []
    over = f"<br>mean of {len(seeds)} seeds" if len(seeds) > 1 else "<br>one seed"
    words = f"{_title(r)}<br>{_plain(x)} {percent(float(r[x]))}<br>{_plain(y)} {percent(float(r[y]))}{over if seeds else ''}"
    return go.Scatter(
        x=[round(100 * float(r[x]), 3)], y=[round(100 * float(r[y]), 3)], mode="markers", name=_title(r), legendgroup=method, showlegend=legend,
        marker=marker_of_method(method, 14), text=[words], hoverinfo="text", cliponaxis=False, **bars,
    )  # fmt: skip


def _plain(key: str) -> str:
    return WORDS[key].removesuffix(", %")


def _span(rows: Sequence[Mapping[str, Any]], key: str) -> list[float]:
    low = min(100 * (float(r[key]) - _deviation(r, key)) for r in rows)
    high = max(100 * (float(r[key]) + _deviation(r, key)) for r in rows)
    room = max(0.1 * (high - low), 0.6)
    return [low - room, high + room]


def _words(
    rows: Sequence[Mapping[str, Any]],
    sets: Sequence[str],
    names: Sequence[str],
    x: str,
    y: str,
    reference: str,
) -> tuple[str, str]:
    told = []
    for s, name in zip(sets, names, strict=True):
        each = [
            f"{_title(r)} {percent(float(r[x]))} and {percent(float(r[y]))}" for r in rows if r["data"] == s
        ]
        told.append(f"{name}: {', '.join(each)}")
    counted = []
    base = {r["data"]: float(r[y]) for r in rows if r["name"] == reference}
    for method in dict.fromkeys(str(r["name"]) for r in rows if r["name"] in ("car-paper", "car-count")):
        mine = [r for r in rows if r["name"] == method and r["data"] in base]
        won = sum(float(r[y]) > base[r["data"]] for r in mine)
        if mine:
            counted.append(f"{_title(mine[0])} in {won} of {len(mine)} sets")
    sentence = ""
    if counted:
        sentence = f"In {_plain(y)}, above {title_of(reference)}: {listed(counted)}."
    said = (
        f"Dots, one a method, {len(sets)} set{'s' if len(sets) > 1 else ''}; {_plain(x)} and {_plain(y)}. {'. '.join(told)}. {sentence}"
    )  # fmt: skip
    return said.strip(), sentence
