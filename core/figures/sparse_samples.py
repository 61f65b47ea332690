"""How many unlabelled images adaptation needs, and what K does: accuracy against both, as lines by what adapts."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from core.figures.sparse_look import (
    ADAPT_COLOURS,
    ADAPT_DASHES,
    ADAPT_SHAPES,
    ADAPT_WORDS,
    checked_adaptations,
    checked_shares,
    known,
    legend_above,
    plain_axis,
    rising,
)
from core.figures.sparse_words import points, rate
from core.figures.temperature_frame import finished, plotly

TITLES = ("by unlabelled images", "by K, steps of FISTA")


def samples(
    counts: Sequence[int],
    by_count: Mapping[str, Sequence[float]],
    ks: Sequence[int],
    by_k: Mapping[str, Sequence[float]],
    *,
    under: str = "the four noises",
    compact: bool = False,
    height: int = 0,
) -> Any:
    """Two panels: accuracy by number of unlabelled images, and by K.

    Args:
        counts: Numbers of images, rising, e.g. 50, 100, 500; empty leaves the panel out.
        by_count: `"none"`, `"bn"`, `"lambda"`, `"both"` -> accuracy at each, 0 to 1, NaN where not measured. `"none"` may hold one value.
        ks: Values of K, rising, e.g. 2, 4, 8; empty leaves the panel out.
        by_k: As `by_count`, at each K.
        under: Under what, for the words.
        compact: Panels under one another.
        height: Height in pixels of all; 0 takes what the panels need.

    Returns:
        A Plotly figure.

    Raises:
        ValueError: Both panels empty, unlike lengths, an unknown adaptation, or a share outside [0, 1].
    """
    go, make_subplots = plotly()

    panels = [
        (title, [int(v) for v in rising(at, title)], _values(table, len(at)))
        for title, at, table in zip(TITLES, (counts, ks), (by_count, by_k), strict=True)
        if len(at)
    ]
    if not panels:
        raise ValueError("There is neither a number of images nor a K to draw.")
    n = len(panels)
    top, bottom = 72 if compact else 58, 44
    tall = height or (top + bottom + 210 * n if compact else 350)
    figure = make_subplots(
        rows=n if compact else 1, cols=1 if compact else n, subplot_titles=[p[0] for p in panels], horizontal_spacing=0.09,
        shared_yaxes=not compact, vertical_spacing=64 / (tall - top - bottom) if compact and n > 1 else 0,
    )  # fmt: skip
    seen: set[str] = set()
    for i, (_, at, values) in enumerate(panels):
        row, col = (i + 1, 1) if compact else (1, i + 1)
        for a, v in values.items():
            mark = {
                "symbol": ADAPT_SHAPES[a],
                "size": 11,
                "line": {"width": 2 if a == "none" else 0, "color": ADAPT_COLOURS[a]},
            }
            figure.add_trace(
                go.Scatter(
                    x=list(range(len(at))), y=known(100 * v), mode="lines+markers", name=ADAPT_WORDS[a], legendgroup=a, showlegend=a not in seen,
                    line={"color": ADAPT_COLOURS[a], "width": 2.2, "dash": ADAPT_DASHES[a]}, marker=mark | {"color": ADAPT_COLOURS[a]},
                    text=[f"{ADAPT_WORDS[a]}, {_at(panels[i][0], t)}: {rate(float(x))}" for t, x in zip(at, v, strict=True)], hoverinfo="text",
                    cliponaxis=False,
                ), row, col,
            )  # fmt: skip
            seen.add(a)
        ticks = {
            "tickvals": list(range(len(at))),
            "ticktext": [f"{t:,}" for t in at],
            "range": [-0.35, len(at) - 0.65],
        }
        name = "images" if panels[i][0] == TITLES[0] else "K"
        figure.update_xaxes(plain_axis(name, showgrid=False) | ticks, row=row, col=col)
        figure.update_yaxes(
            plain_axis("accuracy, %" if compact or i == 0 else "", nticks=5), row=row, col=col
        )
    figure.update_annotations(font={"size": 14})
    told = [_panel_words(title, at, values) for title, at, values in panels]
    sentence = _sentence(panels, under)
    return finished(
        figure, f"Line charts of accuracy under {under}. {' '.join(told)} {sentence}".strip(), tall, sentence,
        margin={"l": 48, "r": 10, "t": top, "b": bottom}, hovermode="closest", legend=legend_above(26, tall - top - bottom),
    )  # fmt: skip


def _values(table: Mapping[str, Sequence[float]], count: int) -> dict[str, np.ndarray]:
    full = {a: list(v) * count if a == "none" and len(v) == 1 else list(v) for a, v in table.items()}
    return {a: checked_shares(full[a], (count,), f"accuracy with {a}") for a in checked_adaptations(full)}


def _at(title: str, value: int) -> str:
    return f"{value:,} images" if title == TITLES[0] else f"K = {value}"


def _panel_words(title: str, at: Sequence[int], values: Mapping[str, np.ndarray]) -> str:
    each = [
        f"{ADAPT_WORDS[a]} {', '.join(f'{rate(float(x))} at {t:,}' for t, x in zip(at, v, strict=True))}"
        for a, v in values.items()
    ]
    return f"{title[0].upper()}{title[1:]}: {'; '.join(each)}."


def _sentence(panels: Sequence[tuple[str, list[int], dict[str, np.ndarray]]], under: str) -> str:
    said = ""
    for title, at, values in panels:
        v = values.get("both", values["bn"])
        words = ADAPT_WORDS["both" if "both" in values else "bn"]
        there = np.flatnonzero(np.isfinite(v))
        if len(there) < 2:
            continue
        a, b = int(there[0]), int(there[-1])
        if title == TITLES[0]:
            said = f"Under {under}, {at[a]:,} images give {rate(float(v[a]))} with {words}; {at[b]:,} give {points(float(v[b] - v[a]))} more."
            if v[b] < v[a]:
                said = f"Under {under}, {at[a]:,} images give {rate(float(v[a]))} with {words}; {at[b]:,} give {points(float(v[a] - v[b]))} less."
        else:
            said += f" With K = {at[a]} it is {rate(float(v[a]))}, with K = {at[b]} {rate(float(v[b]))}."
    return said.strip()
