"""The one-dimensional picture of adaptation: R/(λ + ε) against λ for several K, the ball's way, the shallow minimum and the runaway (METHODS 4.9)."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from core.figures.sparse_curve import Curve, checked, dip, local_minimum, sentence_for, words
from core.figures.sparse_look import (
    AFTER,
    BEFORE,
    SHADE,
    checked_lambda,
    known,
    lambda_axis,
    legend_above,
    moving,
    plain_axis,
    player,
)
from core.figures.sparse_words import number
from core.figures.temperature_frame import GREY, finished, plotly

__all__ = ["Curve", "local_minimum", "objective"]

HIGHEST = 2.2
"""The axis ends at so many times the objective at the trained λ; what is higher leaves the picture."""
LOOKS = (
    ("#56B4E9", "2px,2px"),
    ("#D55E00", "solid"),
    ("#009E73", "8px,4px"),
    ("#CC79A7", "10px,3px,2px,3px"),
    (GREY, "4px,2px"),
)


def objective(
    curves: Mapping[int, Curve],
    trained: float,
    *,
    chosen: int | None = None,
    way: Sequence[float] | None = None,
    reach: float | None = 10.0,
    compact: bool = False,
    height: int = 0,
) -> Any:
    """The objective against λ on a logarithmic axis, each K relative to its own value at the trained λ, with R and sparsity of the chosen K below.

    Relative values make all K pass through 1 at the trained λ, so that one sees at once which way is down.

    Args:
        curves: K -> its curve, e.g. for 1, 2, 4 and 8.
        trained: λ after training, within every curve.
        chosen: K of the ball and of the lower panel; 2 if it is there, else the smallest.
        way: `(S + 1,)` λ of the ball before the first and after each step; it is played. None draws no ball.
        reach: Clamp, shaded; None shades nothing.
        compact: For about 420 px.
        height: Height in pixels; 0 takes 500.

    Returns:
        A Plotly figure; `sentence_of` says where the local minimum of the chosen K is, or that there is none, and which way is down.

    Raises:
        ValueError: No curve, unlike lengths, λ that do not rise, or values that are no numbers.
    """
    go, make_subplots = plotly()

    found = {k: checked(k, c, trained) for k, c in sorted(curves.items())}
    if not found:
        raise ValueError("There is no curve to draw.")
    own = chosen if chosen is not None else 2 if 2 in found else min(found)
    if own not in found:
        raise ValueError(f"K = {own} is not among {', '.join(map(str, found))}.")
    curve = found[own]
    relative = {k: c.objective / c.at(c.objective, trained) for k, c in found.items()}
    ball = None
    if way is not None and len(way):
        ball = checked_lambda(np.array(way), (None,), "the ball's way").clip(*curve.threshold[[0, -1]])
    tall, below = height or 500, 46
    plays = ball is not None and len(ball) > 1
    top, bottom = 44, below + (56 if plays else 0)
    figure = make_subplots(
        rows=2,
        shared_xaxes=True,
        row_heights=[0.68, 0.32],
        vertical_spacing=42 / max(tall - top - bottom, 60),
    )
    span = (
        float(min(c.threshold[0] for c in found.values())),
        float(max(c.threshold[-1] for c in found.values())),
    )
    figure.add_traces([_curve(go, k, c, relative[k], n, k == own) for n, (k, c) in enumerate(found.items())])
    figure.add_traces(_minima(go, found, relative))
    for name, values, dash in (("R", curve.error, "solid"), ("sparsity", curve.sparsity, "dash")):
        figure.add_trace(
            go.Scatter(
                x=known(curve.threshold), y=known(100 * values), mode="lines", line={"color": GREY, "width": 2, "dash": dash}, name=name,
                showlegend=False, hovertemplate=f"λ = %{{x:.3g}}: {name} %{{y:.1f}} %<extra></extra>",
            ), 2, 1,
        )  # fmt: skip
    still = len(figure.data)
    if ball is not None:
        figure.add_traces(_ball(go, curve, relative[own], ball, len(ball) - 1))
        figure.frames = [
            go.Frame(
                name=f"{k}",
                data=[moving(go, t, "marker", "text") for t in _ball(go, curve, relative[own], ball, k)],
                traces=list(range(still, still + 3)),
            )
            for k in range(len(ball) if plays else 0)
        ]
    if reach is not None and reach > 1:
        for row in (1, 2):
            figure.add_vrect(
                x0=max(trained / reach, span[0]), x1=min(trained * reach, span[1]), fillcolor=SHADE, line={"width": 0}, layer="below", row=row, col=1
            )  # fmt: skip
    for row in (1, 2):
        figure.add_vline(x=trained, line={"color": BEFORE, "width": 2, "dash": "dot"}, row=row, col=1)
    highest = _highest(found, relative, own, ball)
    _names(figure, curve, relative[own], own, trained, span)
    figure.update_xaxes(lambda_axis(span, "", 5 if compact else 8) | {"title": {"text": ""}})
    figure.update_xaxes({"title": {"text": "λ", "standoff": 4}}, row=2, col=1)
    title = "R/(λ + ε), relative" if compact else "R/(λ + ε), trained λ = 1"
    figure.update_yaxes(plain_axis(title, range=[0, highest], nticks=6), row=1, col=1)
    figure.update_yaxes(plain_axis("", range=[0, 104], nticks=4, ticksuffix="\u00a0%"), row=2, col=1)
    if plays and ball is not None:
        figure.update_layout(
            **player(
                [f"{k}" for k in range(len(ball))], "step ", active=len(ball) - 1, pace=max(60, 3000 // len(ball)), below=below,
                word="▶ let it roll", compact=compact,
            )
        )  # fmt: skip
    sentence = sentence_for(own, curve, trained)
    return finished(
        figure, words(found, trained, own, ball, sentence), tall, sentence, margin={"l": 50, "r": 10, "t": top, "b": bottom},
        legend=legend_above(8, tall - top - bottom, itemclick=False, itemdoubleclick=False), hovermode="closest",
    )  # fmt: skip


def _curve(go: Any, k: int, curve: Curve, relative: np.ndarray, n: int, own: bool) -> Any:
    colour, dash = LOOKS[min(n, len(LOOKS) - 1)]
    return go.Scatter(
        x=known(curve.threshold), y=known(relative), mode="lines", line={"color": colour, "dash": dash, "width": 3.5 if own else 2}, name=f"K = {k}",
        customdata=known(curve.objective), hovertemplate=f"K = {k}, λ = %{{x:.3g}}: R/(λ + ε) = %{{customdata:.3g}}<extra></extra>",
        opacity=1 if own else 0.85,
    )  # fmt: skip


def _minima(go: Any, found: Mapping[int, Curve], relative: Mapping[int, np.ndarray]) -> list[Any]:
    traces = []
    for n, (k, c) in enumerate(found.items()):
        if (low := dip(c.objective)) is None:
            continue
        colour = LOOKS[min(n, len(LOOKS) - 1)][0]
        traces.append(
            go.Scatter(
                x=[float(c.threshold[low[0]])], y=[float(relative[k][low[0]])], mode="markers", showlegend=False, name=f"minimum, K = {k}",
                marker={"symbol": "diamond-open", "size": 14, "color": colour, "line": {"width": 2.5, "color": colour}}, hoverinfo="text",
                text=[f"K = {k}: local minimum at λ = {c.threshold[low[0]]:.3g}"],
            )
        )  # fmt: skip
    return traces


def _ball(go: Any, curve: Curve, relative: np.ndarray, way: np.ndarray, k: int) -> list[Any]:
    """The way so far, the ball, and its place on R and sparsity."""
    so_far, here = way[: k + 1], way[k : k + 1]
    edge = {"color": "#FFFFFF", "width": 1.5}
    return [
        go.Scatter(
            x=known(so_far), y=known(curve.at(relative, so_far)), mode="markers", marker={"size": 6, "color": AFTER, "opacity": 0.55},
            showlegend=False, hoverinfo="skip", name="steps",
        ),
        go.Scatter(
            x=known(here), y=known(curve.at(relative, here)), mode="markers", name="ball", hoverinfo="text", text=[f"step {k}: λ = {here[0]:.3g}"],
            marker={"size": 18, "color": AFTER if k else BEFORE, "line": edge}, showlegend=False, cliponaxis=False,
        ),
        go.Scatter(
            x=known(here.repeat(2)), y=known(100 * np.concatenate([curve.at(curve.error, here), curve.at(curve.sparsity, here)])), mode="markers",
            marker={"size": 10, "color": AFTER}, showlegend=False, hoverinfo="skip", name="place", xaxis="x2", yaxis="y2",
        ),
    ]  # fmt: skip


def _highest(
    found: Mapping[int, Curve], relative: Mapping[int, np.ndarray], own: int, ball: np.ndarray | None
) -> float:
    """Where the upper axis ends: what matters is inside, what runs away upwards is not."""
    low = dip(found[own].objective)
    need = [1.3, *([] if low is None else [min(1.15 * float(relative[own][low[1]]), HIGHEST)])]
    if ball is not None:
        need.append(1.1 * float(found[own].at(relative[own], ball).max()))
    most = 1.04 * max(float(r.max()) for r in relative.values())
    return min(max(HIGHEST, min(max(need), 2 * HIGHEST)), max(most, max(need)))


def _names(
    figure: Any, curve: Curve, relative: np.ndarray, own: int, trained: float, span: tuple[float, float]
) -> None:
    """Trained λ, minimum or none, and the runaway at the right end."""
    low = dip(curve.objective)
    said = (
        f"K = {own}: local minimum at λ = {number(curve.threshold[low[0]])}"
        if low
        else f"K = {own}: no local minimum"
    )
    late = math.log10(trained / span[0]) > 0.6 * math.log10(span[1] / span[0])
    place = {
        "x": math.log10(trained),
        "xref": "x",
        "y": 0,
        "yref": "y domain",
        "xanchor": "right" if late else "left",
        "yanchor": "bottom",
    }
    notes = [
        _note(f"<b>{said}</b>", {"x": 1, "xref": "x domain", "y": 1, "yref": "y domain", "xanchor": "right", "yanchor": "top"}),
        _note(f"trained λ = {number(trained)}", place | {"xshift": -4 if late else 4}),
        _note(
            f"R (solid) and sparsity (dashed), K = {own}",
            {"x": 0, "xref": "x2 domain", "y": 1, "yref": "y2 domain", "xanchor": "left", "yanchor": "bottom", "yshift": 3},
        ),
    ]  # fmt: skip
    if relative[-1] < relative[-2]:
        end = {
            "x": 1,
            "xref": "x domain",
            "y": float(relative[-1]),
            "yref": "y",
            "xanchor": "right",
            "yanchor": "bottom",
            "yshift": 26,
        }
        notes.append(_note("runaway: nothing is left →", end))
    for note in notes:
        figure.add_annotation(note)


def _note(text: str, place: dict[str, Any]) -> dict[str, Any]:
    return {"text": text, "showarrow": False, "font": {"size": 13}} | place
