"""Where the logit distances lie: one row of histogram for each loss, the margin as a line through all of them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from core.figures.altair_figure import Figure
from core.figures.frame import INK, Part, count, figure, layer, listed, percent, quantity, titled, word
from core.figures.margin_look import LOSS_TITLES, checked_losses
from core.figures.palette import LOSS_COLOURS, LOSS_DASHES

ROW = 66
"""Height of a row in pixels."""
FULL = 0.7
"""Height of the tallest bin of a row, as a share of the row."""


def distance_histogram(
    edges: np.ndarray,
    counts: Mapping[str, np.ndarray],
    margin: float,
    *,
    scope: str = "",
    titles: Mapping[str, str] | None = None,
    height: int | None = None,
) -> Figure:
    """Histograms of logit distances, one row a loss, with m drawn in and the share beyond it in words.

    Rows have the same scale, so that areas compare.

    Args:
        edges: `(B + 1,)` rising edges in logits, from 0; the last bin is open and holds everything beyond its left edge.
        counts: Loss -> `(B,)` pixels times classes other than the predicted one. One to seven losses, drawn in this order.
        margin: m in logits. Bins that m cuts count by the part beyond it.
        scope: What was counted, in words, under the title.
        titles: Loss -> words instead of `LOSS_TITLES`.
        height: Height of everything in pixels; grows with the number of losses when None.

    Raises:
        ValueError: Lengths differ, edges do not rise, a count is negative, or a loss has no distances at all.
    """
    losses = checked_losses(counts, "A histogram of distances")
    e = _edges(edges)
    values = {x: _counted(x, e, counts[x]) for x in losses}
    words = {x: (titles or {}).get(x, LOSS_TITLES[x]) for x in losses}
    beyond = {x: share_beyond(e, values[x], margin) for x in losses}
    tallest = max(float((v / v.sum()).max()) for v in values.values())
    top, n = float(e[-1]), len(losses)
    x = {"scale": {"domain": [float(e[0]), top], "nice": False}, "axis": _axis(e)}
    y = {"scale": {"domain": [0, n], "nice": False}, "axis": None}
    where, tall = quantity("low", **x), quantity("high", **y)
    ends = {"x": where, "x2": {"field": "to"}, "y": quantity("base", **y), "y2": {"field": "high"}}
    parts: list[Part] = []
    if e[0] < margin < top:
        shade = [{"low": margin, "to": top, "base": 0.0, "high": float(n)}]
        parts.append(layer(shade, {"type": "rect", "color": INK, "opacity": 0.07}, ends))
    for k, loss in enumerate(losses):
        parts += _row(loss, words[loss], e, values[loss], n - 1 - k, tallest, ends, where, tall)
        text = f"{percent(beyond[loss])} beyond m"
        at = {"low": top, "high": n - k - 0.06}
        mark = {
            "type": "text",
            "align": "right",
            "baseline": "top",
            "color": INK,
            "fontWeight": 600,
            "dx": -2,
        }
        parts.append(layer([at | {"t": text}], mark, {"x": where, "y": tall, "text": word("t")}))
    if e[0] <= margin <= top:
        line = [{"low": margin, "base": 0.0, "high": float(n)}]
        rule = {"type": "rule", "color": LOSS_COLOURS["margin"], "strokeWidth": 3}
        parts.append(layer(line, rule, {"x": where, "y": quantity("base", **y), "y2": {"field": "high"}}))
        right = margin < e[0] + 0.8 * (top - e[0])
        tag = {
            "type": "text", "align": "left" if right else "right", "baseline": "bottom", "dx": 0, "dy": -4, "color": INK, "fontWeight": 600,
            "clip": False,
        }  # fmt: skip
        parts.append(
            layer(
                [{"low": margin, "high": float(n), "t": f"m = {margin:g}"}],
                tag,
                {"x": where, "y": tall, "text": word("t")},
            )
        )
    named = losses if len(losses) <= 3 else [losses[0], "margin" if "margin" in losses[1:] else losses[-1]]
    sentence = f"Beyond m = {margin:g} lie " + listed(
        [
            f"{percent(beyond[v])} {'' if i else 'of the logit distances '}under {words[v]}"
            for i, v in enumerate(named)
        ]
    )
    told = listed(
        [
            f"{percent(beyond[v])} of {count(int(values[v].sum()), 'distance')} under {words[v]}, median {_median(e, values[v])}"
            for v in losses
        ]
    )
    said = f"Histograms of logit distances from {e[0]:g} to {e[-2]:g} and above, one row a loss. Beyond the margin m = {margin:g} lie {told}."
    under = f"Counted: {scope}." if scope else ""
    return figure(parts, titled(sentence + ".", under), said, height or 130 + ROW * n)


def share_beyond(edges: np.ndarray, counts: Any, margin: float) -> float:
    """Share of distances beyond m; of the bin that m cuts, the part to its right. NaN when there are none.

    Args:
        edges: `(B + 1,)`, the last bin open: once m lies in it or beyond, all of it counts as beyond, for nobody knows where its distances lie.
        counts: `(B,)`.
        margin: m in logits.
    """
    e, v = np.asarray(edges, float), np.asarray(counts, float)
    if v.sum() <= 0:
        return float("nan")
    part = np.clip((e[1:] - margin) / np.diff(e), 0.0, 1.0)
    part[-1] = 1.0
    return float((v * part).sum() / v.sum())


def _edges(edges: np.ndarray) -> np.ndarray:
    e = np.asarray(edges, float)
    if e.ndim != 1 or len(e) < 3 or not (np.diff(e) > 0).all():
        raise ValueError("The edges of the distances must rise, and there must be three at least.")
    return e


def _counted(loss: str, edges: np.ndarray, values: np.ndarray) -> np.ndarray:
    v = np.asarray(values, float)
    if v.shape != (len(edges) - 1,):
        raise ValueError(
            f"{len(edges)} edges make {len(edges) - 1} bins; the counts of {loss} are {v.shape}."
        )
    if not (v >= 0).all():
        raise ValueError(f"A count of {loss} is negative or not a number.")
    if v.sum() == 0:
        raise ValueError(f"There are no distances under {loss}, so there is nothing to draw.")
    return v


def _row(
    loss: str,
    words: str,
    e: np.ndarray,
    v: np.ndarray,
    base: int,
    tallest: float,
    ends: Part,
    where: Part,
    tall: Part,
) -> list[Part]:
    """Bars of one loss over its own base line, its step line and its name."""
    share = v / v.sum()
    bars = [
        {
            "low": e[i], "to": e[i + 1], "base": float(base), "high": base + FULL * share[i] / tallest, "share": share[i],
            "bin": f"{e[i]:g} to {e[i + 1]:g}" if i + 1 < len(v) else f"{e[i]:g} and above", "loss": words,
        }
        for i in range(len(v))
    ]  # fmt: skip
    hover = [word("loss"), word("bin", title="distance"), quantity("share", title="share", format=".2%")]
    steps = [{"low": b["low"], "high": b["high"]} for b in bars] + [{"low": e[-1], "high": bars[-1]["high"]}]
    line = {
        "type": "line", "interpolate": "step-after", "color": LOSS_COLOURS[loss], "strokeWidth": 2, "strokeDash": LOSS_DASHES[loss],
    }  # fmt: skip
    name = {"type": "text", "align": "left", "baseline": "top", "color": INK, "fontWeight": 600, "dx": 4}
    floor = {"type": "rule", "color": INK, "opacity": 0.4}
    foot = [{"low": e[0], "to": e[-1], "base": float(base), "high": float(base)}]
    return [
        layer(bars, {"type": "rect", "color": LOSS_COLOURS[loss], "opacity": 0.6}, ends | {"tooltip": hover}),
        layer(steps, line, {"x": where, "y": tall}),
        layer(foot, floor, {"x": where, "x2": {"field": "to"}, "y": ends["y"]}),
        layer(
            [{"low": float(e[0]), "high": base + 1 - 0.06, "t": words}],
            name,
            {"x": where, "y": tall, "text": word("t")},
        ),
    ]


def _median(e: np.ndarray, v: np.ndarray) -> str:
    i = int(np.searchsorted(np.cumsum(v), v.sum() / 2))
    if i >= len(v) - 1:
        return f"above {e[-2]:g}"
    before = float(v[:i].sum())
    return f"{e[i] + (e[i + 1] - e[i]) * (v.sum() / 2 - before) / max(v[i], 1e-12):.1f}"


def _axis(e: np.ndarray) -> Part:
    """Round ticks; the open bin's own left edge says that it is open."""
    span = float(e[-1] - e[0])
    step = next((s for s in (0.5, 1, 2, 5, 10, 20) if span / s <= 8), 50)
    ticks = [round(k * step, 6) for k in range(int(np.ceil(e[0] / step)), int(e[-2] / step) + 1)]
    last = round(float(e[-2]), 6)
    ticks = [
        *(t for t in ticks if last - t > 0.6 * step or t == last),
        *([last] if last not in ticks else []),
    ]
    return {
        "title": "logit distance: how far a class lies below the predicted one", "values": ticks, "grid": False,
        "labelExpr": f"datum.value === {last!r} ? '≥ ' + format(datum.value, '~g') : format(datum.value, '~g')", "labelOverlap": False,
    }  # fmt: skip
