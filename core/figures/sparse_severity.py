"""λ that adaptation finds, against severity: lines by layer, played over corruptions or severities, and a heat map for one layer."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from core.figures.frame import listed
from core.figures.sparse_look import (
    BEFORE,
    NAMED,
    checked_lambda,
    checked_layers,
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
from core.figures.sparse_words import moves_words, number
from core.figures.temperature_frame import GREY, finished, plotly

DARK = "#16191D"
"""Ink on cells: their colours are light on every page, so their ink is dark on every page."""
APART = [[0.0, "#B79BD3"], [0.25, "#DACDE9"], [0.5, "#F4F4F1"], [0.75, "#C4E3C4"], [1.0, "#7FBF86"]]
"""Below the trained λ purple, above it green."""

ALIKE = 1.1
"""Up to this ratio the largest and the smallest adapted λ of a map are called alike."""


def lambda_severity(
    layers: Sequence[str],
    severities: Sequence[int],
    adapted: Mapping[str, np.ndarray],
    *,
    trained: np.ndarray | None = None,
    relative: bool = False,
    compact: bool = False,
    height: int = 0,
) -> Any:
    """Adapted λ of each layer against severity. Several corruptions: frames by corruption, lines that morph. One: the lines grow by severity.

    Args:
        layers: L names in words, in order of depth.
        severities: R rising severities, e.g. 0 (clean) to 5.
        adapted: Corruption in words -> `(R, L)` λ after adaptation, NaN where not measured. The first is the still.
        trained: `(L,)` λ after training, as rings at the left edge; needed for `relative`.
        relative: Draw λ as a multiple of the trained one, so that layers compare.
        compact: For about 420 px.
        height: Height in pixels; 0 takes 430.

    Returns:
        A Plotly figure with a play button and a slider.

    Raises:
        ValueError: No layer or corruption, unlike shapes, `relative` without `trained`, or a λ not above 0.
    """
    go, _ = plotly()

    names = checked_layers(layers)
    levels = [int(s) for s in rising(severities, "severities")]
    if not adapted:
        raise ValueError("There is no corruption to draw.")
    found = {c: checked_lambda(v, (len(levels), len(names)), f"λ under {c}", holes=True) for c, v in adapted.items()}  # fmt: skip
    start = None if trained is None else checked_lambda(trained, (len(names),), "λ after training")
    if relative and start is None:
        raise ValueError("Multiples of the trained λ need the trained λ.")
    unit = start if relative and start is not None else np.ones(len(names))
    drawn = {c: v / unit for c, v in found.items()}
    first = next(iter(drawn))
    many = len(drawn) > 1
    colours = depth_colours(len(names))

    def lines(values: np.ndarray, upto: int) -> list[Any]:
        shown = upto + 1
        return [
            go.Scatter(
                x=levels[:shown], y=known(v[:shown]), mode="lines+markers", name=name, line={"color": colour, "width": 2.2},
                marker={"color": colour, "size": 6}, cliponaxis=False, hovertemplate=f"{name}, severity %{{x}}: %{{y:.3g}}<extra></extra>",
            )
            for name, colour, v in zip(names, colours, values.T, strict=True)
        ]  # fmt: skip

    figure = go.Figure(lines(drawn[first], len(levels) - 1))
    states = [(v, len(levels) - 1) for v in drawn.values()] if many else [(drawn[first], k) for k in range(len(levels))]  # fmt: skip
    figure.frames = [
        go.Frame(name=f"{k}", data=[moving(go, t) for t in lines(v, upto)], traces=list(range(len(names))))
        for k, (v, upto) in enumerate(states if len(states) > 1 else [])
    ]
    left = levels[0] - 0.25
    ticks: dict[str, list[Any]] = {"tickvals": levels, "ticktext": [f"{s}" for s in levels]}
    if relative:
        figure.add_hline(y=1, line={"color": GREY, "width": 1.5, "dash": "dot"})
    elif start is not None:
        left = levels[0] - 0.95
        ring = {"color": BEFORE, "size": 10, "symbol": "circle-open", "line": {"width": 2.2, "color": BEFORE}}
        figure.add_trace(
            go.Scatter(
                x=[levels[0] - 0.7] * len(names), y=known(start), mode="markers", marker=ring, name="after training", hoverinfo="text",
                text=[f"{n} after training: λ = {v:.3g}" for n, v in zip(names, start, strict=True)], showlegend=False,
            )
        )  # fmt: skip
        ticks = {"tickvals": [levels[0] - 0.7, *levels], "ticktext": ["trained", *ticks["ticktext"]]}
    if len(names) > NAMED:
        figure.add_trace(depth_bar(go, len(names), compact))
    every = [*np.concatenate([v.ravel() for v in drawn.values()]).tolist()]
    every += [1.0] if relative else [] if start is None else start.tolist()
    named = 1 < len(names) <= NAMED
    tall, top, below = height or 430, 40 if named else 14, 48
    plays = len(states) > 1
    bottom = below + (56 if plays else 0)
    labels = list(drawn) if many else [f"{s}" for s in levels]
    play = player(
        labels, "" if many else "severity ", active=0 if many else len(levels) - 1, pace=1100 if many else 700, morph=600 if many else 0,
        below=below, compact=compact,
    )  # fmt: skip
    what = "λ, times the trained one" if relative else "λ"
    sentence = _sentence(first, names, levels, found[first])
    said = (
        f"Animated lines of adapted λ against severity {levels[0]} to {levels[-1]}, one for each of {len(names)} layers, on a logarithmic axis, "
        f"{'played over ' + listed(list(drawn)) if many else 'under ' + first}. {_means(found, levels)} {sentence}"
    )
    return finished(
        figure, said, tall, sentence,
        xaxis=plain_axis("severity", range=[left, levels[-1] + 0.25], showgrid=False) | ticks,
        yaxis=lambda_axis(lambda_span(every, 1.12), what, 7) | {"showgrid": True, "gridcolor": "rgba(138,143,150,0.2)"},
        margin={"l": 50, "r": 8, "t": top, "b": bottom}, showlegend=named, legend=legend_above(4, tall - top - bottom), hovermode="closest", **play,
    )  # fmt: skip


def _sentence(corruption: str, names: Sequence[str], levels: Sequence[int], lam: np.ndarray) -> str:
    rows = np.flatnonzero(np.isfinite(lam).any(1))
    if len(rows) < 2:
        return f"Under {corruption} λ was measured at fewer than two severities."
    a, b = int(rows[0]), int(rows[-1])
    with np.errstate(invalid="ignore"):
        return (
            f"From severity {levels[a]} to {levels[b]} of {corruption} {moves_words(names, lam[a], lam[b])}."
        )


def _means(found: Mapping[str, np.ndarray], levels: Sequence[int]) -> str:
    told = []
    for c, lam in found.items():
        ends = [row[np.isfinite(row)] for row in (lam[0], lam[-1])]
        if all(len(e) for e in ends):
            a, b = (number(float(np.exp(np.log(e).mean()))) for e in ends)
            told.append(f"{c} from {a} to {b}")
    if not told:
        return ""
    return f"Geometric mean over layers from severity {levels[0]} to {levels[-1]}: {'; '.join(told)}."


def lambda_map(
    corruptions: Sequence[str],
    severities: Sequence[int],
    adapted: np.ndarray,
    *,
    trained: float,
    layer: str,
    families: Sequence[str] | None = None,
    compact: bool = False,
    height: int = 0,
) -> Any:
    """One layer's adapted λ over corruption × severity as a heat map: purple below the trained λ, green above it, the number in each cell.

    Args:
        corruptions: C names in words.
        severities: R severities.
        adapted: `(C, R)` λ, NaN where not measured (the cell stays empty).
        trained: λ after training.
        layer: The layer in words.
        families: `(C,)` family of each corruption (`sparse_look.FAMILIES`, or "clean"); a line parts neighbours of unlike families. None draws none.
        compact: For about 420 px.
        height: Height in pixels; 0 follows the number of rows.

    Returns:
        A Plotly figure.

    Raises:
        ValueError: Nothing to draw, unlike shapes, or a λ not above 0.
    """
    go, _ = plotly()

    levels = [int(s) for s in rising(severities, "severities")]
    rows = [str(c) for c in corruptions]
    lam = checked_lambda(adapted, (len(rows), len(levels)), "adapted λ", holes=True)
    base = float(checked_lambda(np.array([trained]), (1,), "the trained λ")[0])
    if not rows or not np.isfinite(lam).any():
        raise ValueError("There is no adapted λ to draw.")
    if families is not None and len(families) != len(rows):
        raise ValueError(f"There are {len(rows)} corruptions and {len(families)} families.")
    log = np.log2(lam / base)
    top = max(float(np.nanmax(np.abs(log))), math.log2(1.25))
    step = next(s for s in (0.25, 0.5, 1, 2, 4) if top / s <= 2.5 or s == 4)
    marks = [k * step for k in range(-int(top / step), int(top / step) + 1)]
    bar = {
        "title": {"text": "" if compact else "times the trained λ", "side": "right"}, "thickness": 10, "xpad": 4, "outlinewidth": 0,
        "tickvals": marks, "ticktext": [f"×{2.0**m:.2g}" for m in marks],
    }  # fmt: skip
    texts = [[number(v) if math.isfinite(v) else "" for v in row] for row in lam]
    figure = go.Figure(
        go.Heatmap(
            z=[known(row) for row in log], x=levels, y=list(range(len(rows))), text=texts, texttemplate="%{text}", colorscale=APART,
            zmin=-top, zmax=top,
            textfont={"color": DARK, "size": 12 if compact else 13}, xgap=2, ygap=2, colorbar=bar, hoverongaps=False,
            customdata=[[f"{rows[i]}, severity {s}: λ = {v:.3g}" for s, v in zip(levels, row, strict=True)] for i, row in enumerate(lam)],
            hovertemplate="%{customdata}<extra></extra>",
        )
    )  # fmt: skip
    for k in range(1, len(rows)):
        if families is not None and families[k] != families[k - 1]:
            figure.add_hline(y=k - 0.5, line={"color": GREY, "width": 2})
    flat = [(float(v), rows[i], levels[j]) for i, row in enumerate(lam) for j, v in enumerate(row) if math.isfinite(v)]  # fmt: skip
    low, high = min(flat), max(flat)
    if high[0] < ALIKE * low[0]:
        sentence = (
            f"In the {layer} adaptation moves λ from {number(base)} to {number(high[0])} whatever the corruption and its severity "
            f"({low[0]:.3g} to {high[0]:.3g})."
        )
    else:
        sentence = (
            f"In the {layer} adaptation moves λ from {number(base)} to between {number(low[0])} ({low[1]}, severity {low[2]}) and "
            f"{number(high[0])} ({high[1]}, severity {high[2]})."
        )
    each = "; ".join(
        f"{c} {', '.join(t or 'unknown' for t in line)}" for c, line in zip(rows, texts, strict=True)
    )
    said = f"Heat map of λ after adaptation over {len(rows)} corruptions and severities {listed([str(s) for s in levels])}. {sentence} {each}."
    return finished(
        figure, said, height or 60 + 27 * len(rows), sentence, margin={"l": 8, "r": 8, "t": 8, "b": 44},
        xaxis=plain_axis("severity", showgrid=False, tickvals=levels),
        yaxis=plain_axis(
            range=[len(rows) - 0.5, -0.5], showgrid=False, tickvals=list(range(len(rows))), ticktext=rows, ticks="outside", ticklen=4,
            tickcolor="rgba(0,0,0,0)",
        ),
    )  # fmt: skip
