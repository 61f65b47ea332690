"""One pixel's logits rolling from the same start under each loss: balls over the plane of two distances, and the confidence over the steps.

An animated chart: frames, a play button and a slider, all in the browser. The steps come in as arrays.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from core.figures.frame import listed
from core.figures.margin_ground import INK, Ground, checked_ground, has_floor, label, resting, square
from core.figures.margin_look import LOSS_TITLES, checked_losses, exact, line_of_loss, marker_of_loss
from core.figures.margin_picture import picture
from core.figures.temperature_frame import GREY, LEGEND, finished, plotly
from core.figures.temperature_needles import BUTTON

FRAMES = 60
PANELS = ("where the logits go", "how sure that is")
_NINES = (0.5, 0.9, 0.99, 0.999, 0.9999, 0.99999, 0.999999)
_TOP = 6.3
"""The axis of confidence ends a little above 99.9999 %."""


@dataclass(frozen=True)
class Roll:
    """How one pixel rolls under one loss.

    Attributes:
        distances: `(S, 2)` the two logit distances at each step, the start first.
        confidence: `(S,)` probability of the true class at each step, 0 to 1.
    """

    distances: np.ndarray
    confidence: np.ndarray


def paths(
    rolls: Mapping[str, Roll],
    steps: Sequence[float],
    *,
    ground: Ground | None = None,
    beside: bool = True,
    frames: int = 48,
    height: int = 430,
) -> Any:
    """Animated paths of all losses from the same start.

    Args:
        rolls: Loss -> its roll; all of the same length S. At most seven.
        steps: `(S,)` rising numbers of descent steps (0 first); need not be evenly spaced. A logarithmic spacing shows the end best.
        ground: A plane drawn under the balls, with its floor and fixed point; its arrows are left out.
        beside: Draw confidence against steps in a second panel.
        frames: Frames at most (60 is the limit); chosen evenly out of S.
        height: Height in pixels.

    Returns:
        A Plotly figure; the still shows the end, *play* starts at the start.

    Raises:
        ValueError: No roll, unlike lengths or starts, fewer than two steps, NaN, or an unknown loss.
    """
    go, make_subplots = plotly()

    losses = _checked(rolls, steps)
    at = np.unique(
        np.linspace(0, len(steps) - 1, max(2, min(frames, FRAMES, len(steps)))).round().astype(int)
    )
    drawn = {x: _thinned(rolls[x], at) for x in losses}
    ticks = [float(steps[i]) for i in at]
    figure = (
        make_subplots(cols=2, horizontal_spacing=0.2, column_widths=[0.46, 0.54], subplot_titles=PANELS)
        if beside
        else make_subplots()
    )
    plane = _plane(rolls) if ground is None else checked_ground(ground)
    if ground is not None:
        figure.add_layout_image(picture(ground))
        figure.add_traces(resting(go, ground))
    _still(go, figure, drawn, ticks, beside)
    own = len(figure.data)
    moving = [(1, t) for t in _positions(go, drawn, len(at) - 1)]
    if beside:
        moving.append((2, _needle(go, drawn, ticks, len(at) - 1)))
    for col, trace in moving:
        figure.add_trace(trace, 1, col)
    where = list(range(own, own + len(moving)))
    figure.frames = [
        go.Frame(
            name=f"{k}",
            traces=where,
            data=[*_positions(go, drawn, k), *([_needle(go, drawn, ticks, k)] if beside else [])],
        )
        for k in range(len(at))
    ]
    start = next(iter(drawn.values())).distances[0]
    side = ("bottom", 9) if float(start.mean()) < float(plane.axis[0] + plane.axis[-1]) / 2 else ("top", -9)
    figure.add_annotation(label(float(start[0]), float(start[1]), "start", "left", side[0], 0, side[1]))
    if ground is not None and (ground.margin or 0) >= 8 and has_floor(ground):
        low = float(ground.axis[0])
        figure.add_annotation(label(low, low, "flat floor", "left", "bottom", 3, 3))
    square(figure, plane)
    if beside:
        _confidence_axes(figure, ticks)
        room, key = {"l": 52, "r": 10, "t": 62, "b": 86}, LEGEND | {"y": 1.1}
    else:
        figure.update_xaxes({"constraintoward": "left"})
        room, key = (
            {"l": 52, "r": 0, "t": 6, "b": 66},
            {"x": 1, "y": 1, "font": {"size": 14}, "title": {"text": ""}},
        )
    return finished(
        figure, _words(rolls, steps, ground), height, _sentence(rolls, steps), margin=room, legend=key, **_controls(ticks, beside)
    )  # fmt: skip


def _checked(rolls: Mapping[str, Roll], steps: Sequence[float]) -> list[str]:
    losses = checked_losses(rolls, "A chart of paths")
    n = len(steps)
    for x in losses:
        d, p = np.asarray(rolls[x].distances, float), np.asarray(rolls[x].confidence, float)
        if d.shape != (n, 2) or p.shape != (n,):
            raise ValueError(
                f"{n} steps need distances of ({n}, 2) and a confidence of ({n},); those of {x} are {d.shape} and {p.shape}."
            )
        if not (np.isfinite(d).all() and np.isfinite(p).all()):
            raise ValueError(
                f"The path of {x} holds values that are not finite; take smaller steps of descent."
            )
    if n < 2 or not (np.diff(np.asarray(steps, float)) > 0).all():
        raise ValueError("A path needs two steps at least, and their numbers must rise.")
    first = [np.asarray(rolls[x].distances, float)[0] for x in losses]
    if any(not np.allclose(f, first[0], atol=1e-6) for f in first):
        raise ValueError("All paths must begin at the same start; these do not.")
    return losses


def _thinned(roll: Roll, at: np.ndarray) -> Roll:
    return Roll(
        np.round(np.asarray(roll.distances, float)[at], 2), _nines(np.asarray(roll.confidence, float)[at])
    )


def _nines(p: np.ndarray) -> np.ndarray:
    """-log10(1 - p), cut at the axis's end: equal steps for 90 %, 99 %, 99.9 %."""
    return np.round(np.minimum(-np.log10(np.maximum(1 - p, 1e-12)), _TOP), 3)


def _plane(rolls: Mapping[str, Roll]) -> Ground:
    every = np.concatenate([np.asarray(r.distances, float).ravel() for r in rolls.values()])
    low, high = float(every.min()) - 1.5, float(every.max()) + 1.5
    return Ground(next(iter(rolls)), np.array([low, high]), np.zeros((2, 2)))


def _still(go: Any, figure: Any, drawn: Mapping[str, Roll], ticks: list[float], beside: bool) -> None:
    """Whole paths, thin, and on the right the curves of confidence, which also carry the legend."""
    for loss, roll in drawn.items():
        thin = line_of_loss(loss, 1.2)
        common = {"legendgroup": loss, "name": LOSS_TITLES[loss]}
        figure.add_trace(
            go.Scatter(
                x=roll.distances[:, 0], y=roll.distances[:, 1], mode="lines", line=thin, opacity=0.45, hoverinfo="skip", showlegend=False,
                **common,
            ), 1, 1,
        )  # fmt: skip
        legend = marker_of_loss(loss, 11) | {"line": {"color": INK, "width": 1}}
        figure.add_trace(
            go.Scatter(
                x=[None], y=[None], mode="lines+markers", line=line_of_loss(loss), marker=legend, **common
            ),
            1,
            1,
        )
        if not beside:
            continue
        figure.add_trace(
            go.Scatter(
                x=[t + 1 for t in ticks], y=roll.confidence, mode="lines", line=line_of_loss(loss, 2.5), showlegend=False,
                customdata=[exact(1 - 10.0**-v) for v in roll.confidence], hovertemplate="%{customdata}", **common,
            ), 1, 2,
        )  # fmt: skip


def _positions(go: Any, drawn: Mapping[str, Roll], k: int) -> list[Any]:
    """The way so far of each loss with its ball at the end, one trace a loss."""
    traces = []
    for loss, roll in drawn.items():
        so_far = roll.distances[: k + 1]
        mark = marker_of_loss(loss, 1) | {"line": {"color": INK, "width": 1.5}}
        mark |= {"size": [0] * k + [16], "opacity": 1}
        traces.append(
            go.Scatter(
                x=so_far[:, 0].tolist(), y=so_far[:, 1].tolist(), mode="lines+markers", line=line_of_loss(loss, 3), marker=mark,
                name=LOSS_TITLES[loss], legendgroup=loss, hoverinfo="name", showlegend=False,
            )
        )  # fmt: skip
    return traces


def _needle(go: Any, drawn: Mapping[str, Roll], ticks: list[float], k: int) -> Any:
    """All losses' confidences at one step."""
    marks = [marker_of_loss(x) for x in drawn]
    return go.Scatter(
        x=[ticks[k] + 1] * len(drawn), y=[float(r.confidence[k]) for r in drawn.values()], mode="markers", showlegend=False, hoverinfo="skip",
        marker={
            "color": [m["color"] for m in marks], "symbol": [m["symbol"] for m in marks], "size": 13, "line": {"color": INK, "width": 1.5},
        }, cliponaxis=False,
    )  # fmt: skip


def _confidence_axes(figure: Any, ticks: list[float]) -> None:
    shown = [p for p in _NINES if -math.log10(1 - p) <= _TOP]
    figure.update_yaxes(
        {
            "range": [-0.1, _TOP], "tickvals": [-math.log10(1 - p) for p in shown], "ticktext": [f"{100 * p:.6g}\u00a0%" for p in shown],
            "zeroline": False, "fixedrange": True, "automargin": True,
            "gridcolor": "rgba(138,143,150,0.25)",
        }, row=1, col=2,
    )  # fmt: skip
    last = ticks[-1]
    marks = [0, *(10**k for k in range(1, 8) if 10**k <= last)]
    figure.update_xaxes(
        {
            "type": "log", "range": [0, math.log10(last + 1) * 1.03], "tickvals": [m + 1 for m in marks], "ticktext": [f"{m:,}" for m in marks],
            "title": {"text": "steps of descent", "standoff": 4}, "zeroline": False, "showgrid": False, "fixedrange": True, "automargin": True,
        }, row=1, col=2,
    )  # fmt: skip


def _controls(ticks: list[float], beside: bool) -> dict[str, Any]:
    """The play button and the slider; beside one panel alone the button stands under the legend, else left of the slider."""
    order = [f"{k}" for k in range(len(ticks))]
    step = {"frame": {"duration": 70, "redraw": False}, "transition": {"duration": 0}, "mode": "immediate"}
    play = {"label": "▶ let them roll", "method": "animate", "args": [order, step | {"fromcurrent": False}]}
    still = step | {"frame": {"duration": 0, "redraw": False}}
    slide = [
        {"label": f"{t:,.0f}", "method": "animate", "args": [[name], still]}
        for t, name in zip(ticks, order, strict=True)
    ]
    under = {"x": 0, "xanchor": "left", "y": 0, "yanchor": "top", "pad": {"t": 40, "b": 0, "l": 0, "r": 0}}
    right = {"x": 1, "xanchor": "left", "y": 0, "yanchor": "bottom", "pad": {"t": 0, "b": 0, "l": 12, "r": 0}}
    where = {"x": 0.34, "len": 0.66} if beside else {"x": 0, "len": 1}
    return {
        "updatemenus": [
            {
                "type": "buttons", "showactive": False, "buttons": [play], **(under if beside else right), **BUTTON,
            }
        ],
        "sliders": [
            {
                "active": len(ticks) - 1, "steps": slide, "y": 0, "yanchor": "top", "pad": {"t": 34 if beside else 22, "b": 0}, "ticklen": 0, **where,
                "minorticklen": 0, "font": {"size": 1, "color": "rgba(0,0,0,0)"}, "bordercolor": GREY, "bgcolor": "rgba(138,143,150,0.35)",
                "currentvalue": {"prefix": "step ", "font": {"size": 14, "color": GREY}, "xanchor": "right", "offset": 2},
            }
        ],
    }  # fmt: skip


def _ends(rolls: Mapping[str, Roll]) -> list[str]:
    return [
        f"{exact(float(np.asarray(r.confidence)[-1]))} under {LOSS_TITLES[x]}"
        for x, r in rolls.items()
    ]  # fmt: skip


def _sentence(rolls: Mapping[str, Roll], steps: Sequence[float]) -> str:
    first = float(np.asarray(next(iter(rolls.values())).confidence)[0])
    return f"From {exact(first)}, after {float(steps[-1]):,.0f} steps this pixel's confidence is {listed(_ends(rolls))}."


def _words(rolls: Mapping[str, Roll], steps: Sequence[float], ground: Ground | None) -> str:
    start = np.asarray(next(iter(rolls.values())).distances, float)[0]
    ends = [
        f"({d[0]:.1f}, {d[1]:.1f}) under {LOSS_TITLES[x]}"
        for x, d in ((x, np.asarray(r.distances, float)[-1]) for x, r in rolls.items())
    ]
    over = "" if ground is None else f" They roll over the penalty of {ground.title}."
    return (
        f"Animated paths of one pixel's two logit distances from ({start[0]:.1f}, {start[1]:.1f}), {len(rolls)} losses.{over} "
        f"After {float(steps[-1]):,.0f} steps they lie at {listed(ends)}. {_sentence(rolls, steps)}"
    )
