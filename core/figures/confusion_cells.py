"""Parts of a confusion map: cells of errors, the diagonal apart, numbers, and the top singular pair as strips and ribbons along the edges.

Traces only; `confusion_maps` and `confusion_story` put them together. Columns (x) are true classes, rows (y, downwards) predicted ones.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from core.figures.confusion_given import Decomposed, Stream
from core.figures.confusion_look import (
    APART,
    DARK,
    ERRORS,
    ERRORS_ROOT,
    NAMED,
    NUMBERED,
    RIGHT,
    in_cell,
    rank_axis,
    recall_of,
    shares_of,
    short,
)
from core.figures.temperature_frame import GREY

STRIP = 0.9
"""Length of a strip of u or v whose entry is 1, in cells."""

RIBBON = 0.18
"""Width of the heaviest ribbon, in cells."""

ASIDE = 0.38
"""How far a ribbon runs beside the middle of its column and row, in cells: the numbers stand there."""


def places(k: int) -> list[int]:
    """Where classes stand on an axis: from 0 where they have names, from 1 (their rank) where there are many."""
    return list(range(k)) if k <= NAMED else list(range(1, k + 1))


def off_diagonal(values: np.ndarray) -> np.ndarray:
    """A copy with NaN on the diagonal."""
    z = np.array(values, float)
    np.fill_diagonal(z, np.nan)
    return z


def diagonal_alone(values: np.ndarray) -> np.ndarray:
    """`(K, K)` NaN with these `(K,)` values on the diagonal."""
    z = np.full((len(values), len(values)), np.nan)
    np.fill_diagonal(z, values)
    return z


def nested(z: np.ndarray, digits: int = 1) -> list[list[float | None]]:
    """Rows of short numbers, None for NaN: what a frame can carry."""
    return [[None if math.isnan(v) else round(float(v), digits) for v in row] for row in z]


def largest_error(matrices: Sequence[np.ndarray]) -> float:
    """The largest error rate in some matrices, at least 0.01: the top of a scale that they share."""
    most = 0.01
    for m in matrices:
        z = off_diagonal(shares_of(m))
        if not np.isnan(z).all():
            most = max(most, float(np.nanmax(z)))
    return most


def cells(
    go: Any,
    matrix: np.ndarray,
    classes: Sequence[str],
    top: float,
    bar: dict[str, Any] | None,
    root: bool | None = None,
) -> list[Any]:
    """Errors and the diagonal of one matrix, two traces.

    Args:
        go: Plotly's graph objects.
        matrix: `(K, K)` counts.
        classes: K names, for the hover text.
        top: Error rate of the darkest colour.
        bar: Colour bar of the errors; None draws none.
        root: Colours in steps of the root; None does so beyond `NUMBERED` classes.
    """
    share, k = shares_of(matrix), len(classes)
    few = k <= NUMBERED
    look = {"xgap": 1, "ygap": 1} if few else {}
    z: Any = (
        nested(off_diagonal(100 * share)) if few else np.round(100 * np.nan_to_num(share)).astype(np.uint8)
    )
    if not few:
        np.fill_diagonal(z, 0)
    rooted = not few if root is None else root
    common = "%{x} called %{y}<br>" if k <= NAMED else "class %{x} called class %{y}<br>"
    errors = go.Heatmap(
        z=z, x=places(k), y=places(k), zmin=0, zmax=100 * top, colorscale=ERRORS_ROOT if rooted else ERRORS,
        showscale=bar is not None, colorbar=bar or {}, name="errors",
        hovertemplate=f"{common}%{{z}} % of the true class<extra></extra>", hoverongaps=False, **look,
    )  # fmt: skip
    recall = recall_of(matrix, classes)
    if few:
        right = go.Heatmap(
            z=nested(diagonal_alone(100 * recall)), x=places(k), y=places(k), zmin=0, zmax=100, colorscale=RIGHT, showscale=False,
            name="right", hoverongaps=False, hovertemplate="%{x}: %{z} % right<extra></extra>", **look,
        )  # fmt: skip
        return [errors, right]
    there = np.flatnonzero(~np.isnan(recall))
    values = [round(100 * float(recall[i]), 1) for i in there]
    right = go.Scatter(
        x=[places(k)[i] for i in there], y=[places(k)[i] for i in there], mode="markers", name="right",
        customdata=[[classes[int(i)], v] for i, v in zip(there, values, strict=True)],
        marker={"symbol": "square", "size": 3, "color": values, "cmin": 0, "cmax": 100, "colorscale": [[0, "#9CC9E4"], [1, "#0072B2"]]},
        hovertemplate="%{customdata[0]}: %{customdata[1]} % right<extra></extra>", showlegend=False,
    )  # fmt: skip
    return [errors, right]


def apart(go: Any, difference: np.ndarray, top: float, bar: dict[str, Any] | None) -> list[Any]:
    """Cells of a difference, two traces: errors by their own sign, the diagonal turned round, so that blue is better in both.

    Args:
        go: Plotly's graph objects.
        difference: `(K, K)` second minus first, as shares.
        top: Difference of the strongest colour.
        bar: Colour bar; None draws none.
    """
    few = len(difference) <= NUMBERED
    look: dict[str, Any] = {"xgap": 1, "ygap": 1} if few else {}
    look |= {"x": places(len(difference)), "y": places(len(difference))}
    span = {"zmin": -100 * top, "zmax": 100 * top, "colorscale": APART, "hoverongaps": False}
    z: Any = np.array(100 * difference, float)
    gains = -np.diag(z)
    z = off_diagonal(z)
    if not few:
        z = np.clip(np.round(np.nan_to_num(z)), -100, 100).astype(np.int8)
    errors = go.Heatmap(
        z=nested(z) if few else z, showscale=bar is not None, colorbar=bar or {}, name="errors", hovertemplate="%{z:+} points<extra></extra>",
        **span, **look,
    )  # fmt: skip
    if few:
        right = go.Heatmap(
            z=nested(diagonal_alone(gains)), showscale=False, name="right", hovertemplate="recall, turned round: %{z:+} points<extra></extra>",
            **span, **look,
        )  # fmt: skip
        return [errors, right]
    at = np.flatnonzero(~np.isnan(gains))
    right = go.Scatter(
        x=[look["x"][i] for i in at], y=[look["x"][i] for i in at], mode="markers", name="right", showlegend=False, hoverinfo="skip",
        marker={
            "symbol": "square", "size": 3, "color": [round(float(gains[i]), 1) for i in at], "cmin": span["zmin"], "cmax": span["zmax"],
            "colorscale": APART,
        },
    )  # fmt: skip
    return [errors, right]


def numbers(go: Any, texts: list[list[str]], size: int = 13) -> Any:
    """Texts in the middle of cells, one trace; the diagonal in bold."""
    k = len(texts)
    flat = [
        f"<b>{texts[i][j]}</b>" if i == j and texts[i][j] else texts[i][j] for i in range(k) for j in range(k)
    ]
    at = [(i, j) for i in range(k) for j in range(k)]
    return go.Scatter(
        x=[j for _, j in at], y=[i for i, _ in at], mode="text", text=flat, textfont={"color": DARK, "size": size}, hoverinfo="skip",
        showlegend=False, name="numbers",
    )  # fmt: skip


def texts_of(matrix: np.ndarray) -> list[list[str]]:
    """Shares of a matrix as they stand in cells; 0 on the diagonal is said, elsewhere it is empty."""
    share = shares_of(matrix)
    out = [[in_cell(float(v)) for v in row] for row in share]
    for i, v in enumerate(np.diag(share)):
        out[i][i] = "" if math.isnan(v) else f"{100 * v:.0f}"
    return out


def apart_texts(difference: np.ndarray) -> list[list[str]]:
    """Differences in points with their sign; the diagonal is the change of recall."""

    def told(v: float) -> str:
        points = round(100 * v)
        return "" if math.isnan(v) or points == 0 else f"{points:+d}".replace("-", "−")

    out = [[told(float(v)) if not math.isnan(v) else "" for v in row] for row in difference]
    for i, v in enumerate(np.diag(difference)):
        out[i][i] = out[i][i] or ("" if math.isnan(v) else "0")
    return out


def strips(go: Any, s: Decomposed) -> Any:
    """The top pair along the edges: v under the columns it loses from, u left of the rows it flows into. One trace."""
    xs: list[float | None] = []
    ys: list[float | None] = []
    k = len(s.u)
    for j in range(k):
        if s.v[j] > 0.01:
            foot, to = k - 0.42, k - 0.42 + STRIP * float(s.v[j])
            xs += [j - 0.3, j + 0.3, j + 0.3, j - 0.3, j - 0.3, None]
            ys += [foot, foot, to, to, foot, None]
    for i in range(k):
        if s.u[i] > 0.01:
            foot, to = -0.58, -0.58 - STRIP * float(s.u[i])
            xs += [foot, foot, to, to, foot, None]
            ys += [i - 0.3, i + 0.3, i + 0.3, i - 0.3, i - 0.3, None]
    return _polygons(go, xs, ys, GREY, "top pair")


def ribbons(go: Any, flows: Sequence[Stream], k: int) -> Any:
    """Streams as bands from the strip of the true class up into the cell and left to the predicted class, with a head. One trace."""
    xs: list[float | None] = []
    ys: list[float | None] = []
    most = max((f.weighted for f in flows), default=1.0)
    for f in flows:
        x, y = _band(f.true, f.predicted, k, RIBBON * f.weighted / most)
        xs += [*x, None]
        ys += [*y, None]
    return _polygons(
        go, xs, ys, "rgba(22,25,29,0.35)", "streams", {"width": 1, "color": "rgba(22,25,29,0.6)"}
    )


def _polygons(
    go: Any,
    xs: list[float | None],
    ys: list[float | None],
    colour: str,
    name: str,
    line: dict[str, Any] | None = None,
) -> Any:
    def rounded(values: list[float | None]) -> list[float | None]:
        return [None if v is None else round(v, 3) for v in values] or [None]

    return go.Scatter(
        x=rounded(xs), y=rounded(ys), mode="lines", fill="toself", fillcolor=colour, line=line or {"width": 0, "color": colour}, hoverinfo="skip",
        showlegend=False, name=name,
    )  # fmt: skip


def _band(j: int, i: int, k: int, width: float) -> tuple[list[float], list[float]]:
    """Outline of a band from below column j up to row i and left to its edge: a quarter circle at the cell, an arrow head at the end.

    It runs beside the middle of column and row, where the numbers of the cells stand.
    """
    half, foot, end, turn = width / 2, k - 0.45, -0.5, 0.2
    angle = np.linspace(0, math.pi / 2, 7)
    outer, inner = turn + half, max(turn - half, 0.0)
    head = half + 0.08
    x0, y0 = j + ASIDE, i - ASIDE
    centre_x, centre_y = x0 - turn, y0 + turn
    x = [x0 + half, *(centre_x + outer * np.cos(angle)), end + 0.3, end + 0.3, end, end + 0.3, end + 0.3]
    y = [foot, *(centre_y - outer * np.sin(angle)), y0 - half, y0 - head, y0, y0 + head, y0 + half]
    x += [*(centre_x + inner * np.cos(angle[::-1])), x0 - half]
    y += [*(centre_y - inner * np.sin(angle[::-1])), foot]
    return [float(v) for v in x], [float(v) for v in y]


def axes(classes: Sequence[str], edge: bool) -> tuple[dict[str, Any], dict[str, Any]]:
    """Settings of the axes of a map.

    Args:
        classes: K names.
        edge: Leave room for the strips.
    """
    k, room = len(classes), STRIP + 0.2 if edge else 0.0
    plain = {"showgrid": False, "zeroline": False, "fixedrange": True, "ticks": "", "automargin": False}
    ticks = rank_axis(classes)
    named = k <= NAMED
    low = -0.5 if named else 0.5
    x = plain | ticks | {
        "range": [low - room, low + k], "tickangle": -40 if named else 0, "tickfont": {"size": 13},
        "title": {"text": "true class" if named else "true class, from head to tail"},
    }  # fmt: skip
    y = plain | ticks | {
        "range": [low + k + room, low], "tickfont": {"size": 13},
        "title": {"text": "called" if named else "called, from head to tail"},
    }  # fmt: skip
    if named:
        x["ticktext"] = [short(c, 14) for c in classes]
    return x, y
