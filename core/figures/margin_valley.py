"""The valley: what a loss adds to cross-entropy over two logit distances, as a map with arrows, as small multiples, and as a surface.

Arrays in, charts out. The margin's valley has a flat floor where nothing pushes; label smoothing, focal and the entropy penalty have none.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from core.figures.frame import percent
from core.figures.margin_ground import (
    HEIGHTS,
    INK,
    Ground,
    arrows,
    checked_ground,
    ground_words,
    has_floor,
    heat,
    label,
    resting,
    resting_name,
    square,
    starting,
)
from core.figures.margin_look import exact
from core.figures.temperature_frame import finished, plotly


def valley(ground: Ground, *, start: tuple[float, float] | None = None, height: int = 430) -> Any:
    """One loss's penalty as a map of heights: arrows, flat floor outlined and named, fixed point and start marked; m in the title.

    Args:
        ground: The plane.
        start: Two distances where a pixel starts, marked as a ring.
        height: Height in pixels.

    Returns:
        A Plotly figure; `core.figures.temperature_frame.description` has its alt text and `sentence_of` the sentence over it.

    Raises:
        ValueError: Shapes that do not belong together, NaN, or an unknown loss.
    """
    go, make_subplots = plotly()

    checked_ground(ground)
    figure = make_subplots()
    _panel(go, figure, ground, bar=True)
    if start is not None:
        figure.add_trace(starting(go, start))
        figure.add_annotation(label(*start, "start", "left", "middle", 11, 0))
    for words in resting_name(ground):
        figure.add_annotation(words)
    if has_floor(ground) and ground.margin is not None:
        figure.add_annotation(_floor_name(ground))
    square(figure, ground)
    figure.update_layout(title=_title(f"Penalty of {ground.title}"))
    sentence = _sentence(ground)
    return finished(
        figure,
        ground_words(ground),
        height,
        sentence,
        margin={"l": 52, "r": 0, "t": 36, "b": 46},
        showlegend=False,
    )


def valleys(grounds: Sequence[Ground], *, shared: bool = False, height: int | None = None) -> Any:
    """All losses' valleys as small multiples, two or three in a row.

    Args:
        grounds: One to six planes.
        shared: One colour scale for all, so that heights compare; otherwise each panel runs from its own lowest to its own highest point,
            so that shapes compare, and its title says how high.
        height: Height in pixels; follows the number of rows when None.

    Returns:
        A Plotly figure.

    Raises:
        ValueError: As in `valley`, or none or more than six planes.
    """
    go, make_subplots = plotly()

    if not 1 <= len(grounds) <= 6:
        raise ValueError(f"Small multiples hold one to six valleys, not {len(grounds)}.")
    for ground in grounds:
        checked_ground(ground)
    cols = len(grounds) if len(grounds) <= 3 else 2 if len(grounds) == 4 else 3
    rows = -(-len(grounds) // cols)
    tops = [float(g.heights.max()) for g in grounds]
    names = [f"{g.title}<br><sup>up to {top:.2g}</sup>" for g, top in zip(grounds, tops, strict=True)]
    tall = height or 60 + 320 * rows
    figure = make_subplots(
        rows=rows,
        cols=cols,
        subplot_titles=names,
        horizontal_spacing=0.07,
        vertical_spacing=90 / (tall - 60) if rows > 1 else 0,
    )
    for n, ground in enumerate(grounds):
        row, col = n // cols + 1, n % cols + 1
        top = max(tops) if shared else None
        _panel(go, figure, ground, row, col, top=top, bar=shared and n == 0, small=True)
        square(figure, ground, row, col, n + 1, titles=False)
        if row == rows:
            figure.update_xaxes({"title": {"text": "first distance", "standoff": 2}}, row=row, col=col)
        if col == 1:
            figure.update_yaxes({"title": {"text": "second distance", "standoff": 2}}, row=row, col=col)
    said = f"{len(grounds)} maps side by side. " + " ".join(ground_words(g) for g in grounds)
    return finished(
        figure,
        said,
        tall,
        _all_sentence(grounds),
        margin={"l": 44, "r": 0, "t": 56, "b": 40},
        showlegend=False,
    )


def surface(ground: Ground, *, start: tuple[float, float] | None = None, height: int = 430) -> Any:
    """The same valley as a surface that can be turned.

    Args:
        ground: The plane.
        start: As in `valley`.
        height: Height in pixels.

    Returns:
        A Plotly figure.

    Raises:
        ValueError: As in `valley`.
    """
    go, _ = plotly()

    checked_ground(ground)
    z = ground.heights
    axis = np.asarray(ground.axis, float)
    top = max(float(z.max()), 1e-9)
    lines = {"show": True, "start": top / 8, "end": top, "size": top / 8, "color": "#5b7a92"}
    mesh = {
        "show": True,
        "start": float(axis[0]),
        "end": float(axis[-1]),
        "size": 2,
        "color": "rgba(22,25,29,0.16)",
    }
    figure = go.Figure(
        go.Surface(
            x=np.round(axis, 3), y=np.round(axis, 3), z=np.round(z, 5), colorscale=HEIGHTS, cmin=-0.35 * top, cmax=top, showscale=False,
            contours={"z": lines, "x": mesh, "y": mesh}, lighting={"ambient": 0.75, "diffuse": 0.5, "specular": 0.05},
            hovertemplate="distances %{x:.1f} and %{y:.1f}: penalty %{z:.3f}<extra></extra>",
        )
    )  # fmt: skip

    def at(d: tuple[float, float]) -> float:
        i, j = (int(np.abs(axis - v).argmin()) for v in d)
        return float(z[j, i])

    points = [] if start is None else [(start, "start", "circle", "#FFFFFF")]
    if ground.fixed is not None and axis[0] <= ground.fixed <= axis[-1]:
        points.append(((ground.fixed, ground.fixed), f"d* = {ground.fixed:.2f}", "diamond", "#F0E442"))
    names = []
    for where, words, symbol, colour in points:
        spot = {"x": where[0], "y": where[1], "z": at(where) + 0.05 * top}
        figure.add_trace(
            go.Scatter3d(
                x=[spot["x"]], y=[spot["y"]], z=[spot["z"]], mode="markers", hoverinfo="skip",
                marker={"symbol": symbol, "size": 7, "color": colour, "line": {"color": INK, "width": 2}},
            )
        )  # fmt: skip
        names.append(
            {"text": f"<b>{words}</b>", "showarrow": False, "yshift": 18, "font": {"color": INK, "size": 14}, "bgcolor": "rgba(247,250,252,0.82)"}
            | spot
        )  # fmt: skip
    flat = {"showbackground": False, "zeroline": False, "gridcolor": "rgba(138,143,150,0.35)"}
    figure.update_layout(
        title=_title(f"Penalty of {ground.title}"),
        scene={
            "xaxis": {**flat, "title": {"text": "first distance"}},
            "yaxis": {**flat, "title": {"text": "second distance"}},
            "zaxis": {**flat, "title": {"text": "penalty"}, "nticks": 4},
            "aspectratio": {"x": 1.15, "y": 1.15, "z": 0.6},
            "camera": {"eye": {"x": -1.5, "y": -1.28, "z": 1.05}, "center": {"x": 0, "y": 0, "z": -0.18}},
            "dragmode": "turntable",
            "annotations": names,
        },
    )
    said = "A surface that can be turned. " + ground_words(ground)
    return finished(
        figure,
        said,
        height,
        _sentence(ground),
        margin={"l": 0, "r": 0, "t": 36, "b": 0},
        showlegend=False,
    )


def _panel(
    go: Any,
    figure: Any,
    ground: Ground,
    row: int = 1,
    col: int = 1,
    *,
    top: float | None = None,
    bar: bool = False,
    small: bool = False,
) -> None:
    traces = [
        *heat(go, ground, top, bar),
        *(arrows(go, ground, 8, 6) if small else arrows(go, ground)),
        *resting(go, ground, 13 if small else 17),
    ]
    for trace in traces:
        figure.add_trace(trace, row, col)


def _title(text: str) -> dict[str, Any]:
    return {
        "text": text, "x": 0, "xref": "paper", "xanchor": "left", "y": 1, "yref": "container", "yanchor": "top", "pad": {"t": 8},
        "font": {"size": 17, "weight": 600},
    }  # fmt: skip


def _floor_name(ground: Ground) -> dict[str, Any]:
    """The words on the floor, at its lower edge where neither start nor point of rest lies."""
    low = max(float(ground.axis[0]), 0.0)
    return label(low, low, "flat floor: nothing pushes", "left", "bottom", 8, 4)


def _sentence(ground: Ground) -> str:
    if float(ground.heights.max()) <= 1e-9:
        return f"{ground.title} adds nothing to cross-entropy: the distances grow without end."
    rest = ""
    if ground.fixed is not None:
        sure = "" if ground.confidence is None else f", at a confidence of {exact(ground.confidence)}"
        rest = f" A perfectly fitted pixel comes to rest at a distance of {ground.fixed:.1f}{sure}."
    if has_floor(ground) and ground.margin is not None:
        return f"Closer than m = {ground.margin:g} is fine: there the margin does not push.{rest}"
    if ground.margin is not None:
        return f"With m = {ground.margin:g} the flat floor {'is gone' if ground.margin <= 0 else 'fills the plane'}.{rest}"
    return (
        f"{ground.title[0].upper()}{ground.title[1:]} pushes everywhere; its valley has no flat floor.{rest}"
    )


def _all_sentence(grounds: Sequence[Ground]) -> str:
    if len(grounds) == 1:
        return _sentence(grounds[0])
    flat = [g for g in grounds if has_floor(g)]
    if len(flat) != 1 or flat[0].margin is None:
        return "What each loss adds to cross-entropy, over two logit distances."
    return f"Only {flat[0].title} has a flat floor with walls: on {percent(flat[0].flat_share)} of this plane nothing pushes."
