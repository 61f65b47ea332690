"""Accuracy over λ, had labels chosen it: where the best λ lies for each severity, and where adaptation without labels went."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from core.figures.frame import listed
from core.figures.sparse_look import (
    AFTER,
    checked_lambda,
    checked_shares,
    depth_colours,
    known,
    lambda_axis,
    lambda_span,
    legend_above,
    plain_axis,
    rising,
)
from core.figures.sparse_words import number, points, rate
from core.figures.temperature_frame import GREY, finished, plotly

TITLES = ("statistics of training", "statistics refreshed (BN)")
DASHES = ("dot", "solid", "8px,4px", "10px,3px,2px,3px")


def lambda_sweep(
    factors: Sequence[float],
    stored: Mapping[str, Sequence[float]],
    refreshed: Mapping[str, Sequence[float]],
    *,
    adapted: Mapping[str, float] | None = None,
    lead: str = "",
    network: str = "TA-CSC-18",
    compact: bool = False,
    height: int = 0,
) -> Any:
    """Two panels: accuracy by λ as a multiple of the trained one, with batch normalisation as trained and refreshed; a line a condition.

    Args:
        factors: F multiples of the trained λ, rising.
        stored: Condition in words (`"clean"`, `"severity 3"`) -> `(F,)` accuracy with the statistics of training, 0 to 1.
        refreshed: The same conditions after the statistics were refreshed at each λ.
        adapted: Condition -> the multiple that adaptation without labels chose; NaN or absent is not drawn.
        lead: Condition of the sentence; the last one when empty.
        network: In words.
        compact: For about 420 px, panels under one another.
        height: Height in pixels of all; 0 takes what the panels need.

    Returns:
        A Plotly figure; `sentence_of` says what the best λ would have gained and where adaptation went.

    Raises:
        ValueError: No condition, other conditions in the second panel, unlike lengths, multiples that do not rise from above 0.
    """
    go, make_subplots = plotly()

    at = checked_lambda(np.array(rising(factors, "multiples of λ")), (None,), "a multiple of λ")
    names = list(stored)
    if not names or names != list(refreshed):
        raise ValueError("Both panels need the same conditions, at least one.")
    lead = lead or names[-1]
    if lead not in names:
        raise ValueError(f"The sentence speaks of {lead!r}, which is not among {listed(names)}.")
    panels = [
        {name: checked_shares(table[name], (len(at),), f"accuracy, {name}") for name in names}
        for table in (stored, refreshed)
    ]
    marks = {n: float(v) for n, v in (adapted or {}).items() if n in names and np.isfinite(v)}
    top, bottom = (100, 46) if compact else (76, 46)
    tall = height or (top + bottom + 520 if compact else 400)
    figure = make_subplots(
        rows=2 if compact else 1, cols=1 if compact else 2, subplot_titles=TITLES, horizontal_spacing=0.07, shared_yaxes=not compact,
        vertical_spacing=64 / (tall - top - bottom) if compact else 0,
    )  # fmt: skip
    colours = depth_colours(len(names))
    span = lambda_span([*at, *marks.values()], room=1.05)
    for i, table in enumerate(panels):
        row, col = (i + 1, 1) if compact else (1, i + 1)
        for k, (name, v) in enumerate(table.items()):
            figure.add_trace(
                go.Scatter(
                    x=known(at), y=known(100 * v), mode="lines", name=name, legendgroup=name, showlegend=i == 0, cliponaxis=False,
                    line={"color": colours[k], "width": 2.4, "dash": DASHES[k % len(DASHES)]}, hoverinfo="text",
                    text=[f"{name}, λ × {number(f)}: {rate(float(x))}" for f, x in zip(at, v, strict=True)],
                ), row, col,
            )  # fmt: skip
        tops = [_best(at, v) for v in table.values()]
        figure.add_trace(
            _dots(go, [t[0] for t in tops], [t[1] for t in tops], "best λ, chosen by labels", GREY, "star", i == 0,
                  [f"{n}: best at λ × {number(t[0])}, {rate(t[1])}" for n, t in zip(names, tops, strict=True)]), row, col,
        )  # fmt: skip
        if marks:
            figure.add_trace(
                _dots(go, list(marks.values()), [_at(at, table[n], f) for n, f in marks.items()], "λ that adaptation chose", AFTER, "circle", i == 0,
                      [f"{n}: adaptation goes to λ × {number(f)}, {rate(_at(at, table[n], f))}" for n, f in marks.items()]), row, col,
            )  # fmt: skip
        figure.add_vline(x=1, line={"color": GREY, "width": 1, "dash": "dot"}, row=row, col=col)
        figure.update_xaxes(lambda_axis(span, "λ, as a multiple of the trained one"), row=row, col=col)
        figure.update_yaxes(plain_axis("accuracy, %" if compact or i == 0 else ""), row=row, col=col)
    figure.update_annotations(font={"size": 14})
    sentence = sweep_sentence(at, panels[0][lead], panels[1][lead], marks.get(lead, np.nan), lead, network)
    told = []
    for title, table in zip(TITLES, panels, strict=True):
        each = [
            f"{n}: {rate(_at(at, v, 1.0))} at the trained λ, at best {rate(_best(at, v)[1])} at {number(_best(at, v)[0])} times it"
            for n, v in table.items()
        ]
        told.append(f"With {title}: {'; '.join(each)}.")
    return finished(
        figure, f"Line charts of accuracy of {network} over multiples of its trained λ. {' '.join(told)} {sentence}", tall, sentence,
        margin={"l": 48, "r": 10, "t": top, "b": bottom}, hovermode="closest", legend=legend_above(30, tall - top - bottom),
    )  # fmt: skip


def _best(at: np.ndarray, values: np.ndarray) -> tuple[float, float]:
    """The multiple with the highest accuracy, of equals the nearest to 1, and that accuracy."""
    tops = np.flatnonzero(values == np.nanmax(values))
    k = min(tops, key=lambda k: abs(np.log(at[k])))
    return float(at[k]), float(values[k])


def _at(at: np.ndarray, values: np.ndarray, factor: float) -> float:
    if not at[0] <= factor <= at[-1]:
        return float("nan")
    return float(np.interp(np.log(factor), np.log(at), values))


def _dots(
    go: Any,
    x: list[float],
    y: list[float],
    name: str,
    colour: str,
    symbol: str,
    legend: bool,
    text: list[str],
) -> Any:
    return go.Scatter(
        x=known(x), y=known([100 * v for v in y]), mode="markers", name=name, legendgroup=name, showlegend=legend, cliponaxis=False,
        marker={"color": colour, "symbol": symbol, "size": 13}, hoverinfo="text", text=text,
    )  # fmt: skip


def sweep_sentence(
    factors: np.ndarray, stored: np.ndarray, refreshed: np.ndarray, adapted: float, name: str, network: str
) -> str:
    """What the best λ would have gained by itself and after BN, and what the λ that adaptation chose does."""
    base, after = _at(factors, stored, 1.0), _at(factors, refreshed, 1.0)
    (where, top), (beside, over) = _best(factors, stored), _best(factors, refreshed)
    said = (
        f"{name[0].upper()}{name[1:]}: had labels chosen one multiple of λ, the best for {network} would be {number(where)} times the trained λ"
        f"{', the largest that was tried' if where == factors[-1] else ''} ({points(top - base)} above it)"
    )
    if np.isfinite(adapted):
        here = _at(factors, stored, adapted)
        if np.isfinite(here):
            way = f"{points(here - base)} above" if here >= base else f"{points(base - here)} below"
            said += f"; adaptation without labels goes to {number(adapted)} times it ({way})"
    return (
        f"{said}. Refreshing BN alone brings {_signed(after - base)}, and the best λ on top of it, at {number(beside)} times the trained one, "
        f"{_signed(over - after)} more."
    )


def _signed(share: float) -> str:
    return f"{'+' if share >= 0 else '−'}{points(abs(share))}"
