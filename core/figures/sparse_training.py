"""How training turns λ: every layer's λ over the steps, animated, with the phases of the schedule; sparsity and error by epoch."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from core.figures.frame import listed
from core.figures.sparse_look import (
    NAMED,
    SHADE,
    checked_lambda,
    checked_layers,
    checked_shape,
    checked_shares,
    chosen_frames,
    depth_bar,
    depth_colours,
    known,
    lambda_axis,
    lambda_span,
    legend_above,
    moving,
    plain_axis,
    player,
    rising,
)
from core.figures.sparse_words import moves_words, number, rate
from core.figures.temperature_frame import GREY, finished, plotly

GHOST = 240
"""Points at most of the thin line that shows the whole way."""


def lambda_training(
    layers: Sequence[str],
    steps: Sequence[float],
    threshold: np.ndarray,
    *,
    phases: Sequence[tuple[str, float, float]] = (),
    per_epoch: float | None = None,
    frames: int = 36,
    compact: bool = False,
    height: int = 0,
) -> Any:
    """λ of all layers over training, played from the start; the still shows the end.

    Args:
        layers: L names in words, in order of depth.
        steps: S rising steps of training at which λ was recorded.
        threshold: `(S, L)` λ there, > 0.
        phases: `(words, first step, last step)` of each phase of the schedule, shaded in turn and named above, e.g. `("high rate", 0, 1200)`.
        per_epoch: Steps of an epoch: the axis then counts epochs. None counts steps.
        frames: Frames at most (60 is the limit).
        compact: For about 420 px.
        height: Height in pixels; 0 takes 430.

    Returns:
        A Plotly figure with a play button and a slider.

    Raises:
        ValueError: No layer, no step, unlike lengths, steps that do not rise, or a λ not above 0.
    """
    go, _ = plotly()

    names = checked_layers(layers)
    at = np.array(rising(steps, "steps"))
    lam = checked_lambda(threshold, (len(at), len(names)), "λ over training")
    x = at / (per_epoch or 1.0)
    unit = "epoch" if per_epoch else "step"
    tall, top, axis = height or 430, 40 if phases or len(names) <= NAMED else 14, 48
    colours = depth_colours(len(names))
    figure = go.Figure()
    whole = np.unique(np.linspace(0, len(x) - 1, min(GHOST, len(x))).round().astype(int))
    for name, colour, values in zip(names, colours, lam.T, strict=True):
        figure.add_trace(
            go.Scatter(
                x=known(x[whole]), y=known(values[whole]), mode="lines", line={"color": colour, "width": 1}, opacity=0.4, showlegend=False,
                name=name, hoverinfo="skip",
            )
        )  # fmt: skip
    ticks = chosen_frames(len(x), frames) if len(x) > 1 else np.array([0])
    figure.add_traces(_so_far(go, names, colours, x[ticks], lam[ticks], unit))
    figure.frames = [
        go.Frame(
            name=f"{k}",
            data=[
                moving(go, t)
                for t in _so_far(go, names, colours, x[ticks[: k + 1]], lam[ticks[: k + 1]], unit)
            ],
            traces=list(range(len(names), 2 * len(names) + 1)),
        )
        for k in range(len(ticks) if len(ticks) > 1 else 0)
    ]
    if len(names) > NAMED:
        figure.add_trace(depth_bar(go, len(names), compact))
    for k, (words, first, last) in enumerate(phases):
        _phase(figure, words, first / (per_epoch or 1.0), last / (per_epoch or 1.0), k)
    bottom = axis + (56 if len(ticks) > 1 else 0)
    end = max(float(x[-1]), max([float(p[2]) / (per_epoch or 1.0) for p in phases], default=0.0))
    if end <= x[0]:
        end = float(x[0]) + 1
    labels = [f"{v:.1f}" if per_epoch else f"{v:,.0f}" for v in x[ticks]]
    play = player(
        labels,
        f"{unit} ",
        active=len(ticks) - 1,
        pace=max(50, 5000 // len(ticks)),
        below=axis,
        compact=compact,
    )
    said = (
        f"Animated lines of λ over training, {_layers(names)}, on a logarithmic axis, from {unit} {x[0]:,.3g} to {x[-1]:,.4g}. "
        f"{_ends(names, lam)}.{_phase_words(phases, at, names, lam)}"
    )
    return finished(
        figure, said, tall, _sentence(names, lam, unit, float(x[-1] - x[0])),
        xaxis=plain_axis(unit, range=[float(x[0]), end], showgrid=False),
        yaxis=lambda_axis(lambda_span(lam.ravel().tolist(), 1.15), "λ", 7) | {"showgrid": True, "gridcolor": "rgba(138,143,150,0.2)"},
        margin={"l": 48, "r": 8, "t": top, "b": bottom}, hovermode="closest", showlegend=1 < len(names) <= NAMED,
        legend=legend_above(22 if phases else 4, tall - top - bottom), **play,
    )  # fmt: skip


def _so_far(
    go: Any, names: Sequence[str], colours: Sequence[str], x: np.ndarray, lam: np.ndarray, unit: str
) -> list[Any]:
    """Each layer's line up to here, and the heads of all."""
    lines = [
        go.Scatter(
            x=known(x), y=known(values), mode="lines", line={"color": colour, "width": 2.5}, name=name,
            hovertemplate=f"{name}, {unit} %{{x:.3~g}}: λ = %{{y:.3g}}<extra></extra>",
        )
        for name, colour, values in zip(names, colours, lam.T, strict=True)
    ]  # fmt: skip
    heads = go.Scatter(
        x=known(np.repeat(x[-1:], len(names))), y=known(lam[-1]), mode="markers", marker={"size": 9, "color": list(colours)}, name="now",
        hoverinfo="skip", showlegend=False, cliponaxis=False,
    )  # fmt: skip
    return [*lines, heads]


def _phase(figure: Any, words: str, first: float, last: float, k: int) -> None:
    shade = SHADE if k % 2 == 0 else "rgba(138,143,150,0.06)"
    figure.add_vrect(x0=first, x1=last, fillcolor=shade, line={"width": 0}, layer="below")
    figure.add_annotation(
        x=(first + last) / 2, y=1, yref="paper", yanchor="bottom", xanchor="center", text=words, showarrow=False, font={"size": 13}
    )  # fmt: skip


def _layers(names: Sequence[str]) -> str:
    return f"one for each of {len(names)} layers" if len(names) > 1 else names[0]


def _ends(names: Sequence[str], lam: np.ndarray) -> str:
    return "; ".join(
        f"{n} {number(a)} to {number(b)}" for n, a, b in zip(names, lam[0], lam[-1], strict=True)
    )


def _sentence(names: Sequence[str], lam: np.ndarray, unit: str, length: float) -> str:
    if length <= 0:
        return f"Training starts with λ at {number(lam[-1].min())}."
    low, high = int(lam[-1].argmin()), int(lam[-1].argmax())
    over = f"Over one {unit}" if math.isclose(length, 1.0) else f"Over {length:,.4g} {unit}s"
    said = f"{over} {moves_words(names, lam[0], lam[-1])}"
    if len(names) == 1 or names[low] == names[high]:
        return f"{said}."
    return f"{said}; at the end it lies between {number(lam[-1, low])} ({names[low]}) and {number(lam[-1, high])} ({names[high]})."


def _phase_words(
    phases: Sequence[tuple[str, float, float]], at: np.ndarray, names: Sequence[str], lam: np.ndarray
) -> str:
    """What λ does in each phase, as its mean in logarithms."""
    told = []
    for words, first, last in phases:
        i, j = (int(np.abs(at - v).argmin()) for v in (first, last))
        a, b = (float(np.exp(np.log(lam[k]).mean())) for k in (i, j))
        told.append(f"{words} from {number(a)} to {number(b)}")
    return f" The layers' geometric mean goes, by phase: {'; '.join(told)}." if told else ""


def epoch_lines(
    layers: Sequence[str],
    sparsity: np.ndarray,
    error: np.ndarray,
    *,
    accuracy: Sequence[float] | None = None,
    compact: bool = False,
    height: int = 0,
) -> Any:
    """Sparsity and reconstruction error of every layer, and accuracy of the network, by epoch.

    Args:
        layers: L names in words, in order of depth.
        sparsity: `(E, L)` share of zero codes after each epoch, 0 to 1, may hold NaN; E may be 0 ("nothing yet").
        error: `(E, L)` relative squared reconstruction error R.
        accuracy: `(E,)` share of right answers in training; None leaves that panel out.
        compact: Panels under one another, for about 420 px.
        height: Height in pixels of all; 0 takes what the panels need.

    Returns:
        A Plotly figure.

    Raises:
        ValueError: No layer, or unlike shapes.
    """
    go, make_subplots = plotly()

    names = checked_layers(layers)
    zeros = checked_shares(_table(sparsity, names), (None, len(names)), "sparsity")
    rest = checked_shape(_table(error, names), (len(zeros), len(names)), "the error")
    right = None if accuracy is None else checked_shares(list(accuracy), (len(zeros),), "accuracy")
    titles = ["sparsity, % zeros", "error R, %"] + ([] if right is None else ["accuracy, %"])
    n = len(titles)
    tall = height or (60 + 190 * n if compact else 300)
    figure = make_subplots(
        rows=n if compact else 1, cols=1 if compact else n, subplot_titles=titles, shared_xaxes=compact, horizontal_spacing=0.07,
        vertical_spacing=34 / tall if compact and n > 1 else 0,
    )  # fmt: skip
    x = list(range(1, len(zeros) + 1))

    def place(k: int) -> tuple[int, int]:
        return (k + 1, 1) if compact else (1, k + 1)

    for k, values in enumerate((zeros, rest)):
        for name, colour, line in zip(names, depth_colours(len(names)), values.T, strict=True):
            figure.add_trace(
                go.Scatter(
                    x=x, y=known(100 * line), mode="lines+markers" if len(x) < 3 else "lines", line={"color": colour, "width": 2}, name=name,
                    legendgroup=name, showlegend=k == 0, hovertemplate=f"{name}, epoch %{{x}}: %{{y:.1f}} %<extra></extra>",
                ), *place(k),
            )  # fmt: skip
    if right is not None:
        figure.add_trace(
            go.Scatter(
                x=x, y=known(100 * right), mode="lines+markers" if len(x) < 3 else "lines", line={"color": GREY, "width": 3}, name="accuracy",
                showlegend=False, hovertemplate="epoch %{x}: %{y:.1f} %<extra></extra>",
            ), *place(2),
        )  # fmt: skip
    if len(names) > NAMED and x:
        figure.add_trace(depth_bar(go, len(names), compact), 1, 1)
    figure.update_annotations(font={"size": 14})
    figure.update_xaxes(plain_axis(range=[1, max(len(x), 2)], showgrid=False, tickformat="d"))
    figure.update_xaxes({"title": {"text": "epoch", "standoff": 4}}, row=n if compact else 1)
    figure.update_yaxes(plain_axis(rangemode="tozero", nticks=5))
    figure.update_yaxes({"range": [0, 102]}, **dict(zip(("row", "col"), place(0), strict=True)))
    named = 1 < len(names) <= NAMED
    top = 56 if named else 30
    told = _epoch_words(names, zeros, rest, right)
    panels = listed([t.split(",")[0] for t in titles])
    return finished(
        figure, f"Line charts by epoch of {panels}, {len(names)} layer{'s' if len(names) > 1 else ''}. {told}", tall, told if x else "",
        margin={"l": 40, "r": 10, "t": top, "b": 44}, showlegend=named, legend=legend_above(24, tall - top - 44), hovermode="closest",
    )  # fmt: skip


def _table(values: Any, names: Sequence[str]) -> Any:
    """Values by epoch and layer, with the right shape where there is no epoch yet."""
    return values if len(values) else np.zeros((0, len(names)))


def _epoch_words(names: Sequence[str], zeros: np.ndarray, rest: np.ndarray, right: np.ndarray | None) -> str:
    if not len(zeros):
        return "Nothing yet."
    last = [
        f"{n} {rate(float(z))} zeros and an error of {rate(float(r))}"
        for n, z, r in zip(names, zeros[-1], rest[-1], strict=True)
    ]
    ends = "" if right is None else f" Of the augmented training images {rate(float(right[-1]))} are right."
    return (
        f"After epoch {len(zeros)}: {'; '.join(last if len(last) <= NAMED else [last[0], last[-1]])}.{ends}"
    )
