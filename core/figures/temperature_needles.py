"""Under a soft threshold: two needles, soft and hard, on a scale from 0 to 100 %, and the button that plays T from fog to knife.

What it is not: a chart. `temperature_knife` puts these under its pictures.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from core.figures.frame import percent, promised
from core.figures.temperature_frame import GREY, plotly

SOFT, HARD = "#1C8CCD", GREY
"""The soft needle has the colour of the shading, the hard one that of no method."""

TOP, BOTTOM = 36, 20
MARGIN = {"l": 0, "r": 0, "t": TOP, "b": BOTTOM}
BUTTON = {
    "bgcolor": "#E8EEF4",
    "font": {"color": "#16191D", "size": 14},
    "bordercolor": "#8a8f96",
    "borderwidth": 1,
}
"""Plotly's own hover colour is light whatever the theme, so the button is light too."""


@dataclass(frozen=True)
class Needles:
    """What the two needles show.

    Attributes:
        temperatures: `(S,)` T of the frames, from fog to knife.
        soft: `(S,)` share that counts as inside at each.
        here: T of the still.
        soft_here: Share that counts as inside there.
        hard: Share that is inside.
        alpha: Share that may be missed.
        known: False where no mask says what the lesion is and both shares are the model's own expectation.
    """

    temperatures: tuple[float, ...]
    soft: tuple[float, ...]
    here: float
    soft_here: float
    hard: float
    alpha: float
    known: bool = True


def checked(frames: np.ndarray, needles: Needles) -> None:
    """Refuse frames that do not belong to the needles.

    Raises:
        ValueError: Their numbers differ.
    """
    if not len(frames) == len(needles.temperatures) == len(needles.soft):
        raise ValueError(
            f"There are {len(frames)} frames, {len(needles.temperatures)} temperatures and {len(needles.soft)} shares; they belong together."
        )


def stage(height: int, under: int) -> Any:
    """Room for the picture (or the scores), and below it a strip of fixed height for the needles; `under` pixels lie between them."""
    _, make_subplots = plotly()
    inner = height - TOP - BOTTOM
    strip, gap = 34 / inner, under / inner
    return make_subplots(rows=2, row_heights=[1 - strip - gap, strip], vertical_spacing=gap)


def _needle(go: Any, n: Needles, soft: float) -> Any:
    """The soft needle: a triangle that points down at its share, with its number."""
    return go.Scatter(
        x=[100 * soft], y=[0.55], mode="markers+text", marker={"symbol": "triangle-down", "size": 20, "color": SOFT},
        text=[f"<b>{'soft' if n.known else 'soft, expected'} {percent(soft)}</b>"], textposition="top center", textfont={"size": 14},
        hoverinfo="skip", cliponaxis=False,
    )  # fmt: skip


def add_needles(go: Any, figure: Any, n: Needles) -> None:
    """Put scale, promise and both needles into the strip; the soft one must be the figure's second trace."""
    figure.add_trace(_needle(go, n, n.soft_here), 2, 1)
    figure.add_trace(
        go.Scatter(
            x=[100 * n.hard], y=[-0.55], mode="markers+text", marker={"symbol": "triangle-up", "size": 20, "color": HARD},
            text=[f"<b>{'hard' if n.known else 'hard, expected'} {percent(n.hard)}</b>"], textposition="bottom center", textfont={"size": 14},
            hoverinfo="skip", cliponaxis=False,
        ), 2, 1,
    )  # fmt: skip
    target = 100 * (1 - n.alpha)
    figure.add_shape(
        {"type": "line", "x0": 0, "x1": 100, "y0": 0, "y1": 0, "line": {"color": GREY, "width": 3}},
        row=2,
        col=1,
    )
    figure.add_shape(
        {
            "type": "line",
            "x0": target,
            "x1": target,
            "y0": -1.3,
            "y1": 1.3,
            "line": {"color": GREY, "width": 2, "dash": "dot"},
        },
        row=2,
        col=1,
    )
    for x, text, anchor in ((0, "0 %", "right"), (100, "100 %", "left")):
        figure.add_annotation(
            {
                "x": x,
                "y": 0,
                "text": text,
                "showarrow": False,
                "xanchor": anchor,
                "xshift": -6 if anchor == "right" else 6,
            },
            row=2,
            col=1,
        )
    figure.update_xaxes({"visible": False, "range": [-14, 116], "fixedrange": True}, row=2, col=1)
    figure.update_yaxes({"visible": False, "range": [-1.9, 1.9], "fixedrange": True}, row=2, col=1)


def _title(t: float) -> dict[str, Any]:
    return {
        "text": f"T = {t:g}", "x": 0, "xref": "paper", "xanchor": "left", "y": 1, "yref": "container", "yanchor": "top", "pad": {"t": 8},
        "font": {"size": 18, "weight": 600},
    }  # fmt: skip


def play(go: Any, figure: Any, n: Needles, first: Sequence[Any]) -> None:
    """Frames from fog to knife and back to the still, and the button that plays them. Trace 0 is the shading, trace 1 the soft needle."""
    still = [figure.data[0], figure.data[1]]
    figure.frames = [
        go.Frame(name=f"{k}", data=[trace, _needle(go, n, soft)], traces=[0, 1], layout={"title": _title(t)})
        for k, (trace, soft, t) in enumerate(zip(first, n.soft, n.temperatures, strict=True))
    ] + [go.Frame(name="still", data=still, traces=[0, 1], layout={"title": _title(n.here)})]
    order = [f.name for f in figure.frames]
    step = {
        "frame": {"duration": 450, "redraw": True},
        "transition": {"duration": 0},
        "mode": "immediate",
        "fromcurrent": False,
    }
    play = {"label": "▶ from fog to knife", "method": "animate", "args": [order, step]}
    figure.update_layout(
        title=_title(n.here),
        updatemenus=[
            {
                "type": "buttons", "showactive": False, "buttons": [play], "x": 1, "xanchor": "right", "y": 1.0, "yanchor": "bottom",
                "pad": {"b": 6, "t": 0, "l": 0, "r": 0}, **BUTTON,
            }
        ],
    )  # fmt: skip


def in_words(n: Needles) -> str:
    """The needles for people who do not see them."""
    expected = "" if n.known else " No mask is known; both are what the model itself expects."
    return (
        f"At T = {n.here:g}, {percent(n.soft_here)} counts as inside (soft) and {percent(n.hard)} is inside (hard); promised on average is "
        f"{promised(n.alpha)}.{expected} The button plays T from {n.temperatures[0]:g} to {n.temperatures[-1]:g}: the soft share goes from "
        f"{percent(n.soft[0])} to {percent(n.soft[-1])}."
    )
