"""Four ways of adaptation beside one another, and ResNet's two: none, BN, λ, both, as dots by corruption family."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from core.figures.frame import listed
from core.figures.sparse_look import (
    ADAPT_COLOURS,
    ADAPT_SHAPES,
    ADAPT_WORDS,
    checked_adaptations,
    checked_shares,
    known,
    legend_above,
    plain_axis,
)
from core.figures.sparse_words import points, rate
from core.figures.temperature_frame import GREY, finished, plotly

ROW = 62
APART = 0.2
"""Of a row, how far the two networks stand from its middle."""


def ablation(
    groups: Sequence[str],
    accuracy: Mapping[str, Sequence[float]],
    *,
    resnet: Mapping[str, Sequence[float]],
    network: str = "TA-CSC-18",
    lead: int = 0,
    compact: bool = False,
    height: int = 0,
) -> Any:
    """Accuracy of one network with none, BN, λ and both, and below it in each group that of ResNet with none and BN.

    Args:
        groups: G groups in words, e.g. `("four noises", "blurs", "weather", "digital", "clean")`; clean belongs here too.
        accuracy: `"none"`, `"bn"`, `"lambda"`, `"both"` -> `(G,)` accuracy, 0 to 1; NaN was not measured. A network without λ may lack the last two.
        resnet: `"none"`, `"bn"` -> `(G,)`. Required: a gain is never shown without it.
        network: The network in words.
        lead: Group of the sentence.
        compact: For about 420 px.
        height: Height in pixels; 0 follows the number of groups.

    Returns:
        A Plotly figure; `sentence_of` says how much BN alone explains.

    Raises:
        ValueError: No group, unlike lengths, an unknown adaptation, no `"none"` or `"bn"`, or a share outside [0, 1].
    """
    go, _ = plotly()

    rows = [str(g) for g in groups]
    if not rows or not 0 <= lead < len(rows):
        raise ValueError(f"The ablation needs a group to speak of; there are {len(rows)}.")
    own = {
        a: checked_shares(list(accuracy[a]), (len(rows),), f"accuracy with {a}")
        for a in checked_adaptations(accuracy)
    }
    other = {
        a: checked_shares(list(resnet[a]), (len(rows),), f"ResNet's accuracy with {a}")
        for a in checked_adaptations(resnet)
    }
    other = {a: v for a, v in other.items() if a in ("none", "bn")}
    figure = go.Figure()
    for values, shift in ((own, -APART), (other, APART)):
        figure.add_trace(_spans(go, values, shift))
    for rank, (a, v) in enumerate(other.items(), 10):
        shape = "square-open" if a == "none" else "square"
        figure.add_trace(_dots(go, rows, v, APART, f"ResNet-18, {ADAPT_WORDS[a]}", GREY, shape, rank))
    for a in sorted(own, key=("lambda", "bn", "none", "both").index):
        name = f"{network}, {ADAPT_WORDS[a]}"
        figure.add_trace(
            _dots(go, rows, own[a], -APART, name, ADAPT_COLOURS[a], ADAPT_SHAPES[a], list(own).index(a))
        )
    for k in range(1, len(rows)):
        figure.add_hline(y=k - 0.5, line={"color": "rgba(138,143,150,0.3)", "width": 1})
    every = np.concatenate([*own.values(), *other.values()])
    every = every[np.isfinite(every)]
    span = (
        [100 * max(0.0, float(every.min()) - 0.03), 100 * min(1.0, float(every.max()) + 0.03)]
        if len(every)
        else [0, 100]
    )
    sentence = _sentence(
        rows[lead],
        {a: float(v[lead]) for a, v in own.items()},
        {a: float(v[lead]) for a, v in other.items()},
        network,
    )
    keys = len(own) + len(other)
    top = 12 + 22 * (-(-keys // (1 if compact else 3)))
    tall = height or top + ROW * len(rows) + 46
    return finished(
        figure, f"{_words(rows, own, other, network)} {sentence}", tall, sentence, margin={"l": 8, "r": 12, "t": top, "b": 46}, hovermode="closest",
        legend=legend_above(8, tall - top - 46, font={"size": 13}),
        xaxis=plain_axis("accuracy, %", range=span),
        yaxis=plain_axis(
            range=[len(rows) - 0.5, -0.5], showgrid=False, tickvals=list(range(len(rows))), ticktext=rows, ticks="outside", ticklen=4,
            tickcolor="rgba(0,0,0,0)",
        ),
    )  # fmt: skip


def _spans(go: Any, values: Mapping[str, np.ndarray], shift: float) -> Any:
    """A thin line in each row from the worst to the best."""
    x: list[float | None] = []
    y: list[float | None] = []
    table = np.array(list(values.values()))
    for k, column in enumerate(table.T):
        there = column[np.isfinite(column)]
        if len(there):
            x += [100 * float(there.min()), 100 * float(there.max()), None]
            y += [k + shift, k + shift, None]
    return go.Scatter(
        x=x,
        y=y,
        mode="lines",
        line={"color": GREY, "width": 1.5},
        hoverinfo="skip",
        showlegend=False,
        name="span",
    )


def _dots(
    go: Any,
    rows: Sequence[str],
    values: np.ndarray,
    shift: float,
    name: str,
    colour: str,
    symbol: str,
    rank: int,
) -> Any:
    mark = {
        "color": colour,
        "symbol": symbol,
        "size": 13,
        "line": {"width": 2.5 if "open" in symbol else 0, "color": colour},
    }
    return go.Scatter(
        x=known(100 * values), y=[k + shift for k in range(len(rows))], mode="markers", name=name, marker=mark, cliponaxis=False, hoverinfo="text",
        legendrank=1000 + rank, text=[f"{row}<br>{name}: {rate(float(v))}" for row, v in zip(rows, values, strict=True)],
    )  # fmt: skip


def _sentence(group: str, own: Mapping[str, float], other: Mapping[str, float], network: str) -> str:
    """What BN alone explains, what λ alone and both add, and what the ResNet does with BN."""
    if not np.isfinite([own["none"], own["bn"]]).all():
        return f"{group[0].upper()}{group[1:]}: not measured for {network}."
    gain = own["bn"] - own["none"]
    said = f"{group[0].upper()}{group[1:]}: {network} goes from {rate(own['none'])} to {rate(own['bn'])} with BN alone ({_signed(gain)})"
    more = [
        f"{rate(own[a])} with {words}"
        for a, words in (("lambda", "λ alone"), ("both", "BN and λ"))
        if np.isfinite(own.get(a, np.nan))
    ]
    if more:
        said += f", and has {listed(more)}"
    if np.isfinite(own.get("both", np.nan)):
        said += f"; λ adds {_signed(own['both'] - own['bn'])} to BN"
    if np.isfinite([other["none"], other["bn"]]).all():
        said += f". ResNet-18 goes from {rate(other['none'])} to {rate(other['bn'])} with BN alone"
    return f"{said}."


def _signed(gain: float) -> str:
    return f"{'+' if gain >= 0 else '−'}{points(abs(gain))}"


def _words(
    rows: Sequence[str], own: Mapping[str, np.ndarray], other: Mapping[str, np.ndarray], network: str
) -> str:
    told = []
    for k, row in enumerate(rows):
        mine = ", ".join(f"{ADAPT_WORDS[a]} {rate(float(v[k]))}" for a, v in own.items())
        theirs = ", ".join(f"{ADAPT_WORDS[a]} {rate(float(v[k]))}" for a, v in other.items())
        told.append(f"{row}: {mine}; ResNet-18 {theirs}")
    return f"Dots of accuracy by corruption family, {network} above and ResNet-18 below in each. {'. '.join(told)}."
