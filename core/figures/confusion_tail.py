"""What Λ and the memory over batches do to one tail column of the running confusion matrix, beside its true value (METHODS 3.4).

Left the column's sum over the batches: the naive memory fades whenever the class is absent and settles at its presence times the truth.
Right the column's entries on average over the second half of the batches, with and without the class's weight.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from core.figures.confusion_look import short
from core.figures.frame import listed, percent
from core.figures.temperature_frame import GREY, LEGEND, finished, plotly

LOOKS = {
    "naive": ("#E69F00", "square", "6px,3px"),
    "present only": ("#009E73", "diamond", "12px,4px"),
    "count": ("#0072B2", "circle", "solid"),
}
"""Colour, shape and dash of each memory."""

HOLLOW = "rgba(0,0,0,0)"


@dataclass(frozen=True)
class TailColumn:
    """Column j of the running matrix under each memory, `core.car.ema.replay(...)[:, :, j]`.

    Attributes:
        name: Class j.
        classes: K names, head first.
        truth: `(K,)` its true column (expectation over samples), zero at j.
        present: `(T,)` bool, whether batch t holds the class.
        memories: Memory ("naive", "present only", "count") -> `(T, K)` column after each batch.
        presence: Chance that a batch holds the class (`core.car.ema.presence`).
        beta: Share that a memory keeps.
        weight: w_j of Λ, 1 where Λ is off.
        head_weight: w of the most frequent class, to compare.
    """

    name: str
    classes: Sequence[str]
    truth: np.ndarray
    present: np.ndarray
    memories: Mapping[str, np.ndarray]
    presence: float
    beta: float
    weight: float = 1.0
    head_weight: float = 1.0


def tail_column(column: TailColumn, *, shown: int = 120, entries: int = 6, height: int = 360) -> Any:
    """Draw the column.

    Args:
        column: See `TailColumn`.
        shown: Last batches that are drawn on the left.
        entries: Predicted classes at the right at most, those with the largest true entries.
        height: Height in pixels.

    Returns:
        A Plotly figure; `sentence_of` says how much of the column each memory sees, and what Λ adds.

    Raises:
        ValueError: No memory or an unknown one, or shapes that differ.
    """
    go, make_subplots = plotly()

    t = _checked(column)
    figure = make_subplots(
        cols=2, column_widths=[0.58, 0.42], horizontal_spacing=0.16,
        subplot_titles=[f"errors of {short(column.name, 20)} that the memory holds", "into which classes, on average"],
    )  # fmt: skip
    true = float(np.sum(column.truth))
    first = max(0, t - shown)
    batches = list(range(first + 1, t + 1))
    for name, values in column.memories.items():
        colour, shape, dash = LOOKS[name]
        sums = np.asarray(values, float).sum(1)[first:]
        figure.add_trace(
            go.Scatter(
                x=batches, y=_short(100 * sums), mode="lines", line={"color": colour, "dash": dash, "width": 2.5, "shape": "hv"},
                name=f"{name} memory",
                legendgroup=name, hovertemplate=f"{name}, batch %{{x}}: %{{y:.1f}} %<extra></extra>", showlegend=False,
            ), 1, 1,
        )  # fmt: skip
        figure.add_trace(
            go.Scatter(
                x=[None], y=[None], mode="lines+markers", line={"color": colour, "dash": dash, "width": 2.5},
                marker={"color": colour, "symbol": shape, "size": 11}, name=f"{name} memory", legendgroup=name,
            ), 1, 1,
        )  # fmt: skip
    ends = [batches[0], batches[-1]]
    for level, dash, name in (
        (true, "solid", "true errors"),
        (true * column.presence, "dot", "presence × truth"),
    ):
        figure.add_trace(
            go.Scatter(
                x=ends, y=[round(100 * level, 3)] * 2, mode="lines", line={"color": GREY, "width": 2, "dash": dash}, name=name, legendgroup=name,
                hovertemplate=f"{name}: %{{y:.1f}} %<extra></extra>",
            ), 1, 1,
        )  # fmt: skip
    there = [b for b in batches if column.present[b - 1]]
    figure.add_trace(
        go.Scatter(
            x=there, y=[0] * len(there), mode="markers", marker={"symbol": "line-ns-open", "size": 9, "color": GREY, "line": {"width": 1.5}},
            name="batch has the class", hoverinfo="skip", cliponaxis=False,
        ), 1, 1,
    )  # fmt: skip
    order = np.argsort(-np.asarray(column.truth, float), kind="stable")[:entries]
    order = np.sort(order[np.asarray(column.truth)[order] > 0])
    _entries(go, figure, column, order)
    plain = {"fixedrange": True, "zeroline": False, "automargin": True, "tickfont": {"size": 13}}
    grid = {
        "gridcolor": "rgba(138,143,150,0.25)",
        "rangemode": "tozero",
        "ticksuffix": "\u00a0%",
        "nticks": 5,
    }
    figure.update_xaxes(plain | {"title": {"text": "batch", "standoff": 4}, "showgrid": False}, row=1, col=1)
    figure.update_yaxes(plain | grid, row=1, col=1)
    furthest = max(
        float(np.max(column.truth)),
        *(float(_mean(v).max()) * max(column.weight, 1.0) for v in column.memories.values()),
    )
    figure.update_xaxes(plain | grid | {"range": [-4 * furthest, 108 * furthest]}, row=1, col=2)
    figure.update_yaxes(
        plain | {
            "tickvals": list(range(len(order))), "ticktext": [short(column.classes[i]) for i in order], "range": [len(order) - 0.5, -0.5],
            "gridcolor": "rgba(138,143,150,0.18)",
        }, row=1, col=2,
    )  # fmt: skip
    said, sentence = _words(column, true)
    return finished(
        figure, said, height, sentence, margin={"l": 8, "r": 12, "t": 84, "b": 8}, legend=LEGEND | {"y": 1.13}
    )


def _entries(go: Any, figure: Any, column: TailColumn, order: np.ndarray) -> None:
    """Dots for each memory's mean column; with Λ an open dot shows what the class's weight makes of it. A bar is the truth."""
    truth = np.asarray(column.truth, float)[order]
    rows = np.arange(len(order))
    for y, value in zip(rows.tolist(), truth, strict=True):
        x = round(100 * float(value), 3)
        figure.add_shape(
            type="line",
            x0=x,
            x1=x,
            y0=y - 0.38,
            y1=y + 0.38,
            line={"color": GREY, "width": 4},
            layer="below",
            row=1,
            col=2,
        )
    n = len(column.memories)
    shift = np.linspace(-0.22, 0.22, n) if n > 1 else np.zeros(1)
    weighted = abs(column.weight - 1) > 1e-9
    for (name, values), up in zip(column.memories.items(), shift, strict=True):
        colour, shape, _ = LOOKS[name]
        held = _mean(values)[order]
        common: dict[str, Any] = {
            "y": _short(rows + up),
            "mode": "markers",
            "legendgroup": name,
            "showlegend": False,
            "cliponaxis": False,
        }
        figure.add_trace(
            go.Scatter(
                x=_short(100 * held), marker={"color": colour, "symbol": shape, "size": 11}, name=name,
                hovertemplate=f"{name}: %{{x:.1f}} %<extra></extra>", **common,
            ), 1, 2,
        )  # fmt: skip
        if weighted:
            figure.add_trace(
                go.Scatter(
                    x=_short(100 * column.weight * held), name=f"{name}, with Λ",
                    marker={"color": colour, "symbol": f"{shape}-open", "size": 13, "line": {"width": 2, "color": colour}},
                    hovertemplate=f"{name} × w = {column.weight:.2f}: %{{x:.1f}} %<extra></extra>", **common,
                ), 1, 2,
            )  # fmt: skip
    if weighted:
        figure.add_trace(
            go.Scatter(
                x=[None], y=[None], mode="markers", marker={"color": GREY, "symbol": "circle-open", "size": 13, "line": {"width": 2}}, name="with Λ",
            ), 1, 2,
        )  # fmt: skip


def _mean(values: np.ndarray) -> np.ndarray:
    """A column's mean over the second half of the batches: the last batch alone is chance."""
    return np.asarray(values, float)[len(values) // 2 :].mean(0)


def _checked(column: TailColumn) -> int:
    """Number of batches."""
    unknown = [m for m in column.memories if m not in LOOKS]
    if unknown or not column.memories:
        raise ValueError(f"The memories are {', '.join(LOOKS)}; given: {', '.join(unknown) or 'none'}.")
    k, t = len(column.classes), len(column.present)
    if np.shape(column.truth) != (k,):
        raise ValueError(f"There are {k} classes and a true column of shape {np.shape(column.truth)}.")
    for name, values in column.memories.items():
        if np.shape(values) != (t, k) or t == 0:
            raise ValueError(
                f"{t} batches of {k} classes need a column of ({t}, {k}); that of the {name} memory is {np.shape(values)}."
            )
    return t


def seen_by(column: TailColumn) -> dict[str, float]:
    """Memory -> mean of its column's sum over the second half of the batches, as a share of the true sum; NaN where there is no true error."""
    true = float(np.sum(column.truth))
    return {m: float(_mean(v).sum()) / true if true > 0 else float("nan") for m, v in column.memories.items()}


def _short(values: np.ndarray) -> list[float]:
    return [round(float(v), 3) for v in values]


def _words(column: TailColumn, true: float) -> tuple[str, str]:
    seen = seen_by(column)
    held = listed(
        [f"{percent(min(v, 9.99)) if v == v else 'unknown'} with the {m} memory" for m, v in seen.items()]
    )
    who = f"{column.name[:1].upper()}{column.name[1:]}"
    sentence = (
        f"{who} is in {percent(float(np.mean(column.present)))} of the batches. Of its errors the matrix holds {held} (β = {column.beta:g})."
    )  # fmt: skip
    if abs(column.weight - 1) > 1e-9:
        ratio = column.weight / column.head_weight if column.head_weight > 0 else float("nan")
        sentence += f" Λ weighs it {ratio:.2f} times as much as the most frequent class."
    said = (
        f"Left, lines over batches: the errors of {column.name} that each memory holds, beside the true {percent(true)} and the "
        f"{percent(true * column.presence)} that presence times truth gives. Right, its entries on average over the second half. {sentence}"
    )
    return said, sentence
