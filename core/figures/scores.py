"""The scores of one image as a histogram, lesion and background, with the methods' thresholds marked.

For images of a pool whose picture is not there: the score table still knows how many pixels have which score.
"""

from __future__ import annotations

import numpy as np

from core.figures.altair_figure import Figure
from core.figures.frame import (
    INK,
    PERCENT,
    chance,
    checked_methods,
    count,
    figure,
    layer,
    legend,
    listed,
    logit_axis,
    percent,
    quantity,
    same_length,
    titled,
    within,
    word,
)
from core.figures.marks import mark_layers, placed_labels, right_end

LESION, BACKGROUND = INK, "#8a8f96"
ROW = 0.085
"""Height of one row of labels as a share of the bars' room."""


def score_histogram(
    edges: np.ndarray,
    lesion_counts: np.ndarray,
    background_counts: np.ndarray,
    marks: dict[str, float],
    *,
    height: int = 430,
) -> Figure:
    """Scores of one image: lesion pixels upwards, background pixels downwards, each as shares of their own.

    Args:
        edges: `(B + 1,)` rising bin edges in logits.
        lesion_counts: `(B,)` lesion pixels a bin. In bins of 1/20 logit and finer all scores of a bin count as its
            left edge, as in the shipped tables; wider bins that a threshold cuts are shared out, and the title says *about*.
        background_counts: `(B,)` background pixels a bin.
        marks: Method -> threshold in logits.
        height: Height of everything in pixels.

    Raises:
        ValueError: Lengths differ, edges do not rise, there is no pixel at all, or an unknown method.
    """
    e = np.asarray(edges, float)
    counts = {"lesion": np.asarray(lesion_counts, float), "background": np.asarray(background_counts, float)}
    same_length(edges_less_one=e[1:], lesion_counts=counts["lesion"], background_counts=counts["background"])
    if (
        (np.diff(e) <= 0).any()
        or any((c < 0).any() for c in counts.values())
        or not sum(c.sum() for c in counts.values())
    ):
        raise ValueError("A histogram needs rising edges, counts from 0 up and at least one pixel.")
    methods = checked_methods(marks)
    totals = {k: max(float(c.sum()), 1.0) for k, c in counts.items()}
    above = {m: {k: _above(e, c, marks[m]) / totals[k] for k, c in counts.items()} for m in methods}
    about = bool(np.diff(e).max() > 0.05) and any(not np.isclose(e, marks[m]).any() for m in methods)
    filled = np.flatnonzero(sum(counts.values()) > 0)
    first, last = int(filled[0]), int(filled[-1]) + 1
    step = max(1, -(-(last - first) // 60))
    rows = []
    for sign, (kind, c) in zip((1, -1), counts.items(), strict=True):
        for k in range(first, last, step):
            stop = min(k + step, last)
            share = float(c[k:stop].sum()) / totals[kind]
            rows.append(
                {
                    "what": kind,
                    "low": e[k],
                    "high": e[stop],
                    "share": sign * share,
                    "zero": 0.0,
                    "part": share,
                }
            )
    has = counts["lesion"].sum() > 0
    sentence, said = _histogram_words(above, counts, has, about)

    tallest = max(r["part"] for r in rows)
    at = [
        {
            "method": m,
            "threshold": within(marks[m]),
            "own": chance(marks[m]),
            "label": f"{m} {chance(marks[m])}",
        }
        for m in methods
    ]
    inside = [e[first], e[last], *(r["threshold"] for r in at)]
    ends = (min(inside), right_end(at, min(inside), max(inside)))
    x = logit_axis(ends, "score, as a probability", grid=False)
    ceiling = 1.1 * tallest
    labels, deep = placed_labels(at, tuple(x["scale"]["domain"]))
    unit = 2.0 * tallest * ROW
    y = {
        "scale": {"domain": [-ceiling, ceiling + unit * deep], "nice": False},
        "axis": {
            "title": "share: ← background, lesion →",
            "labelExpr": PERCENT.replace("datum.value", "abs(datum.value)"),
            "tickCount": 6,
        },
    }
    colours = {"domain": ["lesion", "background"], "range": [LESION, BACKGROUND]}
    key = legend(symbolType="square", symbolStrokeColor="transparent")
    bars = layer(
        rows,
        {"type": "bar", "opacity": 0.7, "binSpacing": 0.5},
        {
            "x": quantity("low", **x),
            "x2": {"field": "high"},
            "y": quantity("share", **y),
            "y2": {"field": "zero"},
            "color": word("what", scale=colours, legend=key),
            "tooltip": [word("what"), quantity("part", title="share of its pixels", format=".1%")],
        },
    )
    thin = {"type": "rule", "color": INK, "strokeWidth": 1, "opacity": 0.6}
    parts = [bars, layer([{"share": 0.0}], thin, {"y": quantity("share", **y)})]
    for row in labels:
        top = ceiling + unit * (deep - row["level"] - 0.5)
        parts += mark_layers(row | {"top": top, "floor": -ceiling}, x, y)
    return figure(parts, titled(sentence), said, height)


def _above(edges: np.ndarray, counts: np.ndarray, tau: float) -> float:
    """Pixels at or above a threshold; of a wide bin that it cuts, the share to its right."""
    part = np.clip((edges[1:] - tau) / np.diff(edges), 0.0, 1.0)
    fine = np.diff(edges) <= 0.05
    return float((counts * np.where(fine, edges[:-1] >= tau - 1e-9, part)).sum())


def _histogram_words(
    above: dict[str, dict[str, float]], counts: dict[str, np.ndarray], has: bool, about: bool
) -> tuple[str, str]:
    kind = "lesion" if has else "background"
    pixels = "lesion's pixels" if has else "image's pixels"
    told, held = [], []
    for k, (m, share) in enumerate(above.items()):
        told.append(
            f"{percent(share[kind])} {'lie at or above the threshold of' if k == 0 else 'above that of'} {m}"
        )
        lesion, background = percent(share["lesion"]), percent(share["background"])
        held.append(
            f"{lesion} of the lesion and {background} of the background lie at or above the threshold of {m}"
        )
    sentence = f"Of this {pixels}, {'about ' if about else ''}{listed(told)}."
    said = (
        f"Histogram of the scores of {count(int(counts['lesion'].sum()), 'lesion pixel')}, drawn upwards, and "
        f"{count(int(counts['background'].sum()), 'background pixel')}, drawn downwards. {'; '.join(held)}."
    )
    return sentence, said
