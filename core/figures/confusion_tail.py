"""What Λ and the memory over batches do to one tail column of the running confusion matrix, beside its true value (METHODS 3.4).

One chart has the column's sum over the batches: the naive memory fades whenever the class is absent and settles at its presence times the truth.
The other has the column's entries on average over the second half of the batches, with and without the class's weight.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from core.figures.confusion_given import Panel
from core.figures.confusion_look import short
from core.figures.frame import listed, percent
from core.figures.temperature_frame import GREY, LEGEND, finished, plotly

LOOKS = {
    "naive": ("#E69F00", "square", "6px,3px"),
    "present only": ("#009E73", "diamond", "12px,4px"),
    "count": ("#0072B2", "circle", "solid"),
}
"""Colour, shape and dash of each memory."""

PLAIN = {"fixedrange": True, "zeroline": False, "automargin": True, "tickfont": {"size": 13}}
GRID = {
    "gridcolor": "rgba(138,143,150,0.25)",
    "rangemode": "tozero",
    "ticksuffix": "\u00a0%",
    "nticks": 5,
}


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

    @property
    def lift(self) -> float:
        """How many times as much as the most frequent class Λ weighs this one."""
        return self.weight / self.head_weight if self.head_weight > 0 else 1.0


def tail_column(
    column: TailColumn, *, shown: int = 120, entries: int = 6, height: int = 340
) -> tuple[Panel, Panel]:
    """Draw the column: what each memory holds over the batches, and into which classes it says the errors go.

    Args:
        column: See `TailColumn`.
        shown: Last batches that are drawn.
        entries: Predicted classes at most, those with the largest true entries.
        height: Height in pixels of each.

    Returns:
        Two Plotly figures; the first one's `sentence_of` says how much of the column each memory sees, and what Λ adds.

    Raises:
        ValueError: No memory or an unknown one, or shapes that differ.
    """
    go, make_subplots = plotly()

    t = _checked(column)
    over, into = make_subplots(), make_subplots()
    _over_batches(go, over, column, t, shown)
    order = np.argsort(-np.asarray(column.truth, float), kind="stable")[:entries]
    order = np.sort(order[np.asarray(column.truth)[order] > 0])
    _entries(go, into, column, order)
    over.update_xaxes(PLAIN | {"title": {"text": "batch", "standoff": 4}, "showgrid": False})
    over.update_yaxes(PLAIN | GRID)
    furthest = max(
        float(np.max(column.truth)),
        *(float(_mean(v).max()) * max(column.lift, 1.0) for v in column.memories.values()),
    )
    into.update_xaxes(PLAIN | GRID | {"range": [-4 * furthest, 108 * furthest]})
    into.update_yaxes(
        PLAIN | {
            "tickvals": list(range(len(order))), "ticktext": [short(column.classes[i]) for i in order], "range": [len(order) - 0.5, -0.5],
            "gridcolor": "rgba(138,143,150,0.18)",
        },
    )  # fmt: skip
    alike: dict[str, Any] = {"margin": {"l": 8, "r": 12, "t": 8, "b": 8}, "legend": LEGEND | {"y": 1.02}}
    said, also, sentence = _words(column)
    return (
        Panel(
            f"Errors of {column.name} that the memory holds", finished(over, said, height, sentence, **alike)
        ),
        Panel("Into which classes, on average", finished(into, also, height, **alike)),
    )


def _over_batches(go: Any, figure: Any, column: TailColumn, t: int, shown: int) -> None:
    """Lines over the last batches, the truth, presence times the truth, and a tick for each batch that has the class."""
    true = float(np.sum(column.truth))
    first = max(0, t - shown)
    batches = list(range(first + 1, t + 1))
    for name, values in column.memories.items():
        colour, _, dash = LOOKS[name]
        sums = np.asarray(values, float).sum(1)[first:]
        figure.add_trace(
            go.Scatter(
                x=batches, y=_short(100 * sums), mode="lines", line={"color": colour, "dash": dash, "width": 2.5, "shape": "hv"},
                name=f"{name} memory", hovertemplate=f"{name}, batch %{{x}}: %{{y:.1f}} %<extra></extra>",
            )
        )  # fmt: skip
    ends = [batches[0], batches[-1]]
    for level, dash, name in (
        (true, "solid", "true errors"),
        (true * column.presence, "dot", "presence × truth"),
    ):
        figure.add_trace(
            go.Scatter(
                x=ends, y=[round(100 * level, 3)] * 2, mode="lines", line={"color": GREY, "width": 2, "dash": dash}, name=name,
                hovertemplate=f"{name}: %{{y:.1f}} %<extra></extra>",
            )
        )  # fmt: skip
    there = [b for b in batches if column.present[b - 1]]
    figure.add_trace(
        go.Scatter(
            x=there, y=[0] * len(there), mode="markers", marker={"symbol": "line-ns-open", "size": 9, "color": GREY, "line": {"width": 1.5}},
            name="batch has the class", hoverinfo="skip", cliponaxis=False,
        )
    )  # fmt: skip


def _entries(go: Any, figure: Any, column: TailColumn, order: np.ndarray) -> None:
    """Dots for each memory's mean column; with Λ an open dot shows what it counts beside the most frequent class. A bar is the truth."""
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
        )
    figure.add_trace(
        go.Scatter(
            x=[None], y=[None], mode="lines", line={"color": GREY, "width": 4}, name="true errors",
        )
    )  # fmt: skip
    n = len(column.memories)
    shift = np.linspace(-0.22, 0.22, n) if n > 1 else np.zeros(1)
    weighted = abs(column.lift - 1) > 1e-9
    for (name, values), up in zip(column.memories.items(), shift, strict=True):
        colour, shape, _ = LOOKS[name]
        held = _mean(values)[order]
        common: dict[str, Any] = {
            "y": _short(rows + up),
            "mode": "markers",
            "cliponaxis": False,
        }
        figure.add_trace(
            go.Scatter(
                x=_short(100 * held), marker={"color": colour, "symbol": shape, "size": 11}, name=f"{name} memory",
                hovertemplate=f"{name}: %{{x:.1f}} %<extra></extra>", **common,
            )
        )  # fmt: skip
        if weighted:
            figure.add_trace(
                go.Scatter(
                    x=_short(100 * column.lift * held), name=f"{name}, with Λ", showlegend=False,
                    marker={"color": colour, "symbol": f"{shape}-open", "size": 13, "line": {"width": 2, "color": colour}},
                    hovertemplate=f"{name} × {column.lift:.2f}: %{{x:.1f}} %<extra></extra>", **common,
                )
            )  # fmt: skip
    if weighted:
        figure.add_trace(
            go.Scatter(
                x=[None], y=[None], mode="markers", name="× Λ (no share any more)",
                marker={"color": GREY, "symbol": "circle-open", "size": 13, "line": {"width": 2}},
            )
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


def _words(column: TailColumn) -> tuple[str, str, str]:
    true = float(np.sum(column.truth))
    seen = seen_by(column)
    held = listed(
        [f"{percent(min(v, 9.99)) if v == v else 'unknown'} with the {m} memory" for m, v in seen.items()]
    )
    who = f"{column.name[:1].upper()}{column.name[1:]}"
    sentence = (
        f"{who} is in {percent(float(_mean(np.asarray(column.present))))} of the drawn batches ({percent(column.presence)} in expectation). Of its "
        f"errors the matrix holds {held} (β = {column.beta:g})."
    )  # fmt: skip
    if abs(column.lift - 1) > 1e-9:
        sentence += f" Λ weighs it {column.lift:.2f} times as much as the most frequent class."
    said = (
        f"Lines over batches: the errors of {column.name} that each memory holds, beside the true {percent(true)} and the "
        f"{percent(true * column.presence)} that presence times truth gives. {sentence}"
    )
    largest = int(np.argmax(column.truth))
    means = [f"{m} {percent(float(_mean(v)[largest]))}" for m, v in column.memories.items()]
    also = (
        f"Dots, a row for each class that {column.name} is taken for, on average over the second half of the batches, beside the truth as bars. "
        f"The largest: {column.classes[largest]}, in truth {percent(float(column.truth[largest]))}, by memory {listed(means)}."
    )
    return said, also, sentence
