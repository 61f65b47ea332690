"""Rows of layers with a dot before and a dot after, still or moving, and beside them sparsity and error as two thin lines. For `sparse_dots`.

What it is not: a checked chart. `sparse_dots` checks what it is given and finds the words.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from core.figures.frame import listed
from core.figures.sparse_look import (
    AFTER,
    BEFORE,
    SHADE,
    known,
    lambda_axis,
    lambda_span,
    legend_above,
    moving,
    plain_axis,
    player,
)
from core.figures.temperature_frame import GREY, finished, plotly

ROW, ROW_COMPACT = 24, 21
_CHANGES = ("marker", "text", "textposition")
LINES = {"sparsity": "solid", "error": "dash"}


@dataclass(frozen=True)
class Film:
    """What moves.

    Attributes:
        layers: L names.
        before: `(L,)` λ after training.
        states: F states of `(L,)` λ after adaptation; empty draws `before` alone.
        stopped: Of each state: layer -> why it stopped.
        labels: Of each state, on the slider.
        prefix: Before a label.
        here: State of the still.
        title: Under the lines.
        at: `(N,)` places of the lines.
        lines: "sparsity" and "error" -> `(N,)` shares; may be empty.
        pace: Milliseconds a frame.
        morph: Of these, for moving.
    """

    layers: list[str]
    before: np.ndarray
    states: list[np.ndarray] = field(default_factory=list)
    stopped: Sequence[Mapping[str, str]] = field(default_factory=list)
    labels: list[str] = field(default_factory=list)
    prefix: str = ""
    here: int = 0
    title: str = ""
    at: np.ndarray = field(default_factory=lambda: np.zeros(0))
    lines: Mapping[str, np.ndarray] = field(default_factory=dict)
    pace: int = 90
    morph: int = 0


def draw(
    film: Film,
    said: str,
    sentence: str,
    *,
    reach: float | None,
    whole: bool,
    compact: bool,
    height: int,
) -> Any:
    """The figure of a film; without a state only the dots before."""
    go, _ = plotly()

    drawn = [film.before, *film.states]
    if whole and reach:
        drawn += [film.before * reach, film.before / reach]
    span = lambda_span(np.concatenate(drawn).tolist())
    layout, tall, row = _layout(film, span, compact, height)
    size = min(max(0.55 * row, 5.0), 12.0)
    figure = go.Figure()
    if reach is not None and reach > 1:
        figure.add_trace(_band(go, film, span, reach, min(0.62 * row, 15.0)))
    figure.add_trace(_dots(go, film.before, "after training", BEFORE, film.layers, size, is_open=True))
    still = len(figure.data)
    if film.states:
        figure.add_traces(_state(go, film, film.here, span, size))
    if film.lines:
        for key, dash in LINES.items():
            if key in film.lines:
                figure.add_trace(_line(go, film, key, dash))
    figure.frames = [
        go.Frame(
            name=f"{k}",
            data=[moving(go, t, *_CHANGES) for t in _state(go, film, k, span, size)],
            traces=list(range(still, still + 3 + bool(film.lines))),
        )
        for k in range(len(film.states) if len(film.states) > 1 else 0)
    ]
    return finished(figure, said, tall, sentence, hovermode="closest", **layout)


def _band(go: Any, film: Film, span: tuple[float, float], reach: float, width: float) -> Any:
    x: list[float | None] = []
    y: list[float | None] = []
    for k, v in enumerate(film.before):
        x += [max(v / reach, span[0]), min(v * reach, span[1]), None]
        y += [k, k, None]
    return go.Scatter(
        x=x, y=y, mode="lines", line={"color": SHADE, "width": width}, name="within reach", hoverinfo="skip"
    )


def _dots(
    go: Any,
    values: np.ndarray,
    name: str,
    colour: str,
    layers: Sequence[str],
    size: float,
    is_open: bool = False,
) -> Any:
    mark: dict[str, Any] = {
        "color": colour,
        "size": round(size, 1),
        "symbol": "circle-open" if is_open else "circle",
        "line": {"width": 2.5, "color": colour},
    }
    return go.Scatter(
        x=known(values), y=list(range(len(values))), mode="markers", name=name, marker=mark, cliponaxis=False,
        text=[f"{layer}, {name}: λ = {v:.3g}" for layer, v in zip(layers, values, strict=True)], hoverinfo="text",
    )  # fmt: skip


def _state(go: Any, film: Film, k: int, span: tuple[float, float], size: float) -> list[Any]:
    """Joins, dots after, the word of stopped layers, and the place on the lines: one trace each, at every state."""
    after, stopped = film.states[k], film.stopped[k]
    x: list[float | None] = []
    y: list[float | None] = []
    for i, (a, b) in enumerate(zip(film.before, after, strict=True)):
        x += [float(a), float(b) if math.isfinite(b) else float(a), None]
        y += [i, i, None]
    joins = go.Scatter(x=x, y=y, mode="lines", line={"color": GREY, "width": 1.6}, hoverinfo="skip", showlegend=False, name="moves")  # fmt: skip
    dots = _dots(go, after, "after adaptation", AFTER, film.layers, size)
    ended = [name in stopped for name in film.layers]
    dots.marker.line.width = 0
    dots.text = [
        f"{words}<br>stopped: {stopped[name]}" if e and stopped[name] else words
        for words, name, e in zip(dots.text, film.layers, ended, strict=True)
    ]
    late = math.log10(span[0]) + 0.85 * math.log10(span[1] / span[0])
    far = [bool(e and math.isfinite(v) and math.log10(v) > late) for e, v in zip(ended, after, strict=True)]
    ring = {
        "symbol": "square-open",
        "size": [round(size + 8) if e else 0 for e in ended],
        "color": AFTER,
        "line": {"width": 2, "color": AFTER},
    }
    words = go.Scatter(
        x=known(after), y=list(range(len(after))), mode="markers+text", marker=ring, text=["stopped" if e else "" for e in ended],
        textposition=["middle left" if f else "middle right" for f in far], textfont={"size": 12}, showlegend=False, cliponaxis=False,
        hoverinfo="skip", name="stopped",
    )  # fmt: skip
    words.text = [f"\u00a0\u00a0{t}\u00a0\u00a0" if t else "" for t in words.text]
    found = [joins, dots, words]
    if film.lines:
        at = float(film.labels[k])
        i = int(np.abs(film.at - at).argmin())
        found.append(
            go.Scatter(
                x=[at] * len(film.lines), y=known(np.array([100 * v[i] for v in film.lines.values()])), mode="markers", hoverinfo="skip",
                marker={"color": AFTER, "size": 10}, showlegend=False, name="now", xaxis="x2", yaxis="y2", cliponaxis=False,
            )
        )  # fmt: skip
    return found


def _line(go: Any, film: Film, key: str, dash: str) -> Any:
    values = 100 * film.lines[key]
    return go.Scatter(
        x=film.at.tolist(), y=known(values), mode="lines", name=key, line={"color": GREY, "width": 2, "dash": dash}, showlegend=False,
        hovertemplate=f"{film.prefix}%{{x:g}}: {key} %{{y:.1f}} %<extra></extra>", xaxis="x2", yaxis="y2",
    )  # fmt: skip


def _layout(
    film: Film, span: tuple[float, float], compact: bool, height: int
) -> tuple[dict[str, Any], int, float]:
    """Axes, margins, legend and player, the height of all, and that of a row."""
    top, plays = 36, len(film.states) > 1
    axis, second, between = 48, 130, 76
    bottom = axis + (56 if plays else 0)
    beside = bool(film.lines) and not compact
    under = bool(film.lines) and compact
    n = len(film.layers)
    extra = between + second if under else 0
    inner = extra + max(n * (ROW_COMPACT if compact else ROW), 150 if beside else 56)
    if height:
        inner = max(height - top - bottom, extra + 40)
    row = (inner - extra) / n
    low = (between + second) / inner if under else 0.0
    right = 0.62 if beside else 1.0
    plain = {"showgrid": False, "zeroline": False, "fixedrange": True, "automargin": True}
    layout: dict[str, Any] = {
        "xaxis": lambda_axis(span, "λ", 5 if compact or beside else 7) | {"domain": [0, right], "anchor": "y"},
        "yaxis": plain | {
            "range": [len(film.layers) - 0.5, -0.5], "tickvals": list(range(len(film.layers))), "ticktext": film.layers, "domain": [low, 1],
            "anchor": "x", "ticklen": 4, "tickcolor": "rgba(0,0,0,0)", "ticks": "outside", "tickfont": {"size": round(min(max(row - 2, 8), 12))},
        },
        "margin": {"l": 8, "r": 12, "t": top, "b": bottom},
        "legend": legend_above(6, inner, itemclick=False, itemdoubleclick=False),
    }  # fmt: skip
    if film.lines:
        most = max([100.0, *(100 * float(np.nanmax(v)) for v in film.lines.values())])
        name = listed(
            [f"{k} ({'solid' if d == 'solid' else 'dashed'})" for k, d in LINES.items() if k in film.lines]
        )
        layout |= {
            "xaxis2": plain_axis(film.title, domain=[0.74 if beside else 0, 1], anchor="y2", showgrid=False, nticks=6),
            "yaxis2": plain_axis(
                domain=[0, 1] if beside else [0, second / inner], anchor="x2", range=[0, most * 1.03], nticks=5, ticksuffix="\u00a0%"
            ),
            "annotations": [
                {
                    "text": name, "x": 0.74 if beside else 0, "xref": "paper", "y": 1 if beside else second / inner, "yref": "paper",
                    "xanchor": "left", "yanchor": "bottom", "showarrow": False, "yshift": 4,
                }
            ],
        }  # fmt: skip
    if plays:
        layout |= player(
            film.labels, film.prefix, active=film.here, pace=film.pace, morph=film.morph, below=axis, compact=compact
        )  # fmt: skip
    return layout, round(top + inner + bottom), row
