"""What the worst classes cost: overall accuracy against the mean recall of the worst classes, one dot a method, one chart a set."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

from core.figures.confusion_given import Panel
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


DUST = 0.005
"""A recall below this is nothing found."""


def dots(
    rows: Sequence[Mapping[str, Any]],
    *,
    x: str = "overall",
    y: str = "worst_classes",
    set_titles: Mapping[str, str] | None = None,
    reference: str = "ce",
    height: int = 380,
) -> tuple[Panel, ...]:
    """Draw the table.

    Args:
        rows: As `core.lab.tail_shelf.table` gives them: `data`, `name` (method key), `method` (label), `seeds`, the two figures and their `_sd`
            (None or NaN for one seed: no bar).
        x: Column of the horizontal axis, one of `WORDS`.
        y: Column of the vertical axis.
        set_titles: Set -> words over its panel.
        reference: Method whose position is drawn as thin lines: up and to the right of them is better in both.
        height: Height in pixels of each.

    Returns:
        A Plotly figure a set; the first one's `sentence_of` counts the sets where each CAR lies above the reference on y.

    Raises:
        ValueError: No rows, an unknown axis, or a row without its figures.
    """
    go, make_subplots = plotly()

    found: list[Panel] = []
    sets = _checked(rows, x, y)
    thin = {"color": GREY, "width": 1.4, "dash": "dot"}
    plain = {
        "fixedrange": True,
        "zeroline": False,
        "gridcolor": "rgba(138,143,150,0.18)",
        "nticks": 5,
        "automargin": True,
        "tickfont": {"size": 13},
    }
    for name in sets:
        mine = [r for r in rows if r["data"] == name]
        figure = make_subplots()
        figure.add_traces([_dot(go, r, x, y) for r in mine])
        base = next((r for r in mine if r["name"] == reference), None)
        if base is not None:
            figure.add_vline(x=100 * float(base[x]), line=thin, layer="below")
            figure.add_hline(y=100 * float(base[y]), line=thin, layer="below")
        for update, key in ((figure.update_xaxes, x), (figure.update_yaxes, y)):
            update(plain | {"range": _span(mine, key), "title": {"text": WORDS[key], "standoff": 4}})
        title = (set_titles or {}).get(name, name)
        done = finished(
            figure, _words(mine, title, x, y), height, _counted(rows, y, reference) if not found else "",
            margin={"l": 8, "r": 12, "t": 8, "b": 8}, hovermode="closest", legend=LEGEND | {"y": 1.02, "font": {"size": 13}},
        )  # fmt: skip
        found.append(Panel(title, done))
    return tuple(found)


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


def _dot(go: Any, r: Mapping[str, Any], x: str, y: str) -> Any:
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
        x=[round(100 * float(r[x]), 3)], y=[round(100 * float(r[y]), 3)], mode="markers", name=_title(r),
        marker=marker_of_method(method, 14), text=[words], hoverinfo="text", cliponaxis=False, **bars,
    )  # fmt: skip


def _plain(key: str) -> str:
    return WORDS[key].removesuffix(", %")


def _span(rows: Sequence[Mapping[str, Any]], key: str) -> list[float]:
    low = min(100 * (float(r[key]) - _deviation(r, key)) for r in rows)
    high = max(100 * (float(r[key]) + _deviation(r, key)) for r in rows)
    room = max(0.1 * (high - low), 0.6)
    return [low - room, high + room]


def _words(rows: Sequence[Mapping[str, Any]], title: str, x: str, y: str) -> str:
    each = [f"{_title(r)} {percent(float(r[x]))} and {percent(float(r[y]))}" for r in rows]
    return f"Dots on {title}, one a method, {_plain(x)} and {_plain(y)}: {', '.join(each)}."


def _counted(rows: Sequence[Mapping[str, Any]], y: str, reference: str) -> str:
    """On how many sets each CAR lies above the reference; empty where none can be compared."""
    counted = []
    base = {r["data"]: float(r[y]) for r in rows if r["name"] == reference}
    for method in dict.fromkeys(str(r["name"]) for r in rows if r["name"] in ("car-paper", "car-count")):
        mine = [
            r
            for r in rows
            if r["name"] == method
            and r["data"] in base
            and max(float(r[y]), base[r["data"]]) >= DUST  # where neither finds anything nothing is compared
        ]
        won = sum(float(r[y]) > base[r["data"]] for r in mine)
        if mine:
            counted.append(f"{_title(mine[0])} in {won} of {len(mine)} sets")
    return f"In {_plain(y)}, above {title_of(reference)}: {listed(counted)}." if counted else ""
