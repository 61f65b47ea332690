"""Sparsity against reconstruction error of each layer over training: what a layer throws away, what it still can rebuild.

The reading as an information bottleneck (λ beside β) is an analogy that such figures support; it is no proof, and the chart says so.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from core.figures.sparse_look import (
    NAMED,
    checked_layers,
    checked_shape,
    checked_shares,
    depth_bar,
    depth_colours,
    known,
    legend_above,
    moving,
    plain_axis,
    player,
    rising,
)
from core.figures.sparse_words import number, rate
from core.figures.temperature_frame import finished, plotly

SMALL, LARGE = 9.0, 24.0
"""Sizes of a dot at accuracy 0 and 1."""


def plane(
    layers: Sequence[str],
    epochs: Sequence[int],
    sparsity: np.ndarray,
    error: np.ndarray,
    *,
    accuracy: Sequence[float] | None = None,
    threshold: np.ndarray | None = None,
    at: int | None = None,
    compact: bool = False,
    height: int = 0,
) -> Any:
    """One dot a layer, moving epoch by epoch with its trail; the dots grow with the network's accuracy.

    Args:
        layers: L names in words, in order of depth.
        epochs: E rising numbers of epochs, as they are to be read (1 first).
        sparsity: `(E, L)` share of zero codes, 0 to 1; NaN leaves a dot out.
        error: `(E, L)` relative reconstruction error R.
        accuracy: `(E,)` share of right answers; None keeps the dots' size.
        threshold: `(E, L)` λ, for the words over a dot.
        at: Epoch of the still; the last when None.
        compact: For about 420 px.
        height: Height in pixels; 0 takes 470.

    Returns:
        A Plotly figure with a play button and a slider.

    Raises:
        ValueError: No layer or epoch, or unlike shapes.
    """
    go, _ = plotly()

    names = checked_layers(layers)
    times = [int(e) for e in rising(epochs, "epochs")]
    shape = (len(times), len(names))
    zeros, rest = checked_shares(sparsity, shape, "sparsity"), checked_shape(error, shape, "the error")
    right = None if accuracy is None else checked_shares(list(accuracy), (len(times),), "accuracy")
    lam = None if threshold is None else checked_shape(threshold, shape, "λ")
    if at is not None and at not in times:
        raise ValueError(f"Epoch {at} is not among {', '.join(map(str, times))}.")
    here = len(times) - 1 if at is None else times.index(at)
    colours = depth_colours(len(names))
    figure = go.Figure(
        [
            go.Scatter(
                x=known(100 * zeros[:, i]), y=known(100 * rest[:, i]), mode="lines", line={"color": colours[i], "width": 1}, opacity=0.35,
                hoverinfo="skip", showlegend=False, name=name,
            )
            for i, name in enumerate(names)
        ]
    )  # fmt: skip

    def state(k: int) -> list[Any]:
        size = (
            LARGE - 8
            if right is None or not np.isfinite(right[k])
            else SMALL + (LARGE - SMALL) * float(right[k])
        )
        return [
            go.Scatter(
                x=known(100 * zeros[: k + 1, i]), y=known(100 * rest[: k + 1, i]), mode="lines+markers", line={"color": colours[i], "width": 2.2},
                marker={"size": [0] * k + [round(size, 1)], "color": colours[i], "opacity": 0.9, "line": {"width": 1, "color": "#FFFFFF"}},
                name=name, hoverinfo="text", text=[_hover(name, times[j], zeros[j, i], rest[j, i], lam, j, i) for j in range(k + 1)],
                cliponaxis=False,
            )
            for i, name in enumerate(names)
        ]  # fmt: skip

    still = len(figure.data)
    figure.add_traces(state(here))
    if len(names) > NAMED:
        figure.add_trace(depth_bar(go, len(names), compact))
    plays = len(times) > 1
    figure.frames = [
        go.Frame(
            name=f"{k}",
            data=[moving(go, t, "marker", "text") for t in state(k)],
            traces=list(range(still, still + len(names))),
        )
        for k in range(len(times) if plays else 0)
    ]
    named = 1 < len(names) <= NAMED
    tall, top, below = height or 470, 40 if named else 14, 50
    bottom = below + (56 if plays else 0)
    labels = [
        f"{t}" if right is None else f"{t}, accuracy {100 * right[k]:.0f}\u00a0%" for k, t in enumerate(times)
    ]
    play = player(
        labels, "epoch ", active=here, pace=max(150, 6000 // len(times)), below=below, compact=compact
    )
    sentence = _sentence(names, times, zeros, rest, right, here)
    return finished(
        figure, _words(names, times, zeros, rest, right, here, sentence), tall, sentence,
        xaxis=plain_axis("sparsity, % zeros", range=_span(100 * zeros)), yaxis=plain_axis("error R, %", range=_span(100 * rest)),
        margin={"l": 50, "r": 12, "t": top, "b": bottom}, showlegend=named, legend=legend_above(4, tall - top - bottom), hovermode="closest", **play,
    )  # fmt: skip


def _span(values: np.ndarray) -> list[float]:
    """All values with room for the dots; never below 0 by more than that room."""
    there = values[np.isfinite(values)]
    if not len(there):
        return [0.0, 100.0]
    low, high = float(there.min()), float(there.max())
    room = max(0.07 * (high - low), 1.5)
    return [max(low - room, -room), high + room]


def _hover(name: str, epoch: int, zero: float, rest: float, lam: np.ndarray | None, j: int, i: int) -> str:
    said = f"{name}, epoch {epoch}<br>{rate(float(zero))} zeros, R {rate(float(rest))}"
    return said if lam is None else f"{said}, λ = {number(float(lam[j, i]))}"


def _sentence(
    names: Sequence[str], times: Sequence[int], zeros: np.ndarray, rest: np.ndarray, right: np.ndarray | None, here: int
) -> str:  # fmt: skip
    ok = np.isfinite(zeros[here]) & np.isfinite(rest[here])
    if not ok.any():
        return f"At epoch {times[here]} nothing was measured."
    z, r = float(zeros[here][ok].mean()), float(rest[here][ok].mean())
    many = len(names) > 1
    who = (
        f"the {len(names)} layers throw away {rate(z)} of their codes and leave"
        if many
        else f"λ throws away {rate(z)} of the codes and leaves"
    )
    end = (
        ""
        if right is None or not np.isfinite(right[here])
        else f"; the network has {rate(float(right[here]))} right"
    )
    return f"After epoch {times[here]} {who} {rate(r)} of {'their' if many else 'the'} input's energy unexplained{end}."


def _words(
    names: Sequence[str], times: Sequence[int], zeros: np.ndarray, rest: np.ndarray, right: np.ndarray | None, here: int, sentence: str
) -> str:  # fmt: skip
    each = "; ".join(
        f"{n} {rate(float(a))} zeros and R {rate(float(b))}"
        for n, a, b in zip(names, zeros[here], rest[here], strict=True)
    )
    sizes = "" if right is None else " Dots grow with accuracy."
    return (
        f"Animated dots, one a layer, of sparsity against reconstruction error over {len(times)} epoch{'s' if len(times) > 1 else ''}.{sizes} "
        f"At epoch {times[here]}: {each}. {sentence} Reading this as an information bottleneck, λ beside β, is an analogy and no proof."
    )
