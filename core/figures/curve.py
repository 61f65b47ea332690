"""One image against the threshold: how coverage and area grow as it falls, and where each method puts it.

`coverage_curve` draws both curves with the methods' thresholds as labelled lines; `curve_arrays` counts the curves of one
score map. The scores themselves are drawn in `scores`. The sets are {score >= threshold}.
"""

from __future__ import annotations

import math

import numpy as np

from core.figures.altair_figure import Figure
from core.figures.frame import (
    INK,
    Part,
    chance,
    checked_methods,
    figure,
    layer,
    legend,
    logit_axis,
    percent,
    promised,
    quantity,
    same_length,
    share_axis,
    titled,
    within,
    word,
)
from core.figures.marks import mark_layers, placed_labels, right_end
from core.figures.palette import COLOURS, SHAPES
from core.figures.scores import score_histogram

__all__ = ["coverage_curve", "curve_arrays", "score_histogram"]

ROW = 0.085
"""Height of one row of labels above the curves, in the share axis' units."""


def curve_arrays(
    logits: np.ndarray, mask: np.ndarray | None, marks: dict[str, float], points: int = 240
) -> tuple[np.ndarray, np.ndarray | None, np.ndarray]:
    """Count coverage and area of one score map over a grid of thresholds that holds every mark exactly.

    Args:
        logits: `(H, W)` scores.
        mask: `(H, W)` bool truth; None or without a lesion gives no coverage.
        marks: Method -> threshold in logits; infinite ones need no grid point.
        points: Grid points between the lowest and the highest score.

    Returns:
        Thresholds `(S,)` rising, coverage `(S,)` or None, area `(S,)`.
    """
    everything = np.sort(np.asarray(logits, np.float32).ravel())
    grid = np.linspace(everything[0] - 0.2, everything[-1] + 0.2, points)
    at = np.unique(np.concatenate([grid, [t for t in marks.values() if math.isfinite(t)]]))

    def share(scores: np.ndarray) -> np.ndarray:
        return 1.0 - np.searchsorted(scores, at.astype(np.float32), side="left") / len(scores)

    lesion = None if mask is None or not mask.any() else np.sort(np.asarray(logits, np.float32)[mask])
    return at, None if lesion is None else share(lesion), share(everything)


def coverage_curve(
    thresholds: np.ndarray,
    coverage: np.ndarray | None,
    area: np.ndarray,
    marks: dict[str, float],
    alpha: float,
    *,
    height: int = 430,
) -> Figure:
    """Coverage and area of one image against the threshold, with the methods' thresholds marked.

    Args:
        thresholds: `(S,)` logits, rising; include the marks for exact numbers (as `curve_arrays` does).
        coverage: `(S,)` share of the lesion with scores at or above, 0 to 1; None without a mask, NaN without a lesion.
        area: `(S,)` share of the image with scores at or above, 0 to 1.
        marks: Method (CRC, COAT, plug-in, AT, oracle) -> threshold in logits; -inf is the whole image and is drawn at the left edge.
        alpha: Share of a lesion that may be missed on average.
        height: Height of everything in pixels.

    Raises:
        ValueError: Lengths differ, thresholds do not rise, an unknown method, or a mark that is NaN.
    """
    t, a = np.asarray(thresholds, float), np.asarray(area, float)
    c = None if coverage is None or np.isnan(coverage).all() else np.asarray(coverage, float)
    same_length(thresholds=t, area=a, **({} if c is None else {"coverage": c}))
    if (np.diff(t) <= 0).any():
        raise ValueError("Thresholds must rise from the first to the last.")
    checked_methods(marks)
    at = _marked(t, c, a, marks)
    sentence, said = _curve_words(at, alpha, c is not None)

    inside = [within(v) for v in marks.values()]
    ends = (max(min(t[0], *inside), -15.0), min(max(t[-1], *inside), 15.0))
    ends = (ends[0], right_end(at, *ends))
    x = logit_axis(ends, "threshold, as a probability", grid=False)
    low, high = x["scale"]["domain"]
    labels, rows = placed_labels(at, (low, high))
    line = {f"promise {promised(alpha)}": 1 - alpha} if c is not None else None
    of = "share of the lesion, of the image" if c is not None else "share of the image"
    y = {
        "scale": {"domain": [0, 1.03 + ROW * rows], "nice": False},
        "axis": share_axis(of, named=line),
    }
    curves = {"image marked": a} if c is None else {"lesion inside": c, "image marked": a}
    lines = [
        {"threshold": t[k], "share": v[k], "what": kind}
        for kind, v in curves.items()
        for k in np.flatnonzero((t >= low) & (t <= high))
    ]
    key = legend(symbolType="stroke", symbolStrokeColor=INK, symbolStrokeWidth=3) | {"symbolSize": 500}
    what = word("what", scale={"domain": list(curves), "range": [[1, 0], [3, 4]][-len(curves) :]}, legend=key)
    where, share = quantity("threshold", **x), quantity("share", **y)
    parts = [
        layer(
            lines,
            {"type": "line", "color": INK, "strokeWidth": 2.5},
            {"x": where, "y": share, "strokeDash": what},
        )
    ]
    if c is not None:
        promise = {"type": "rule", "color": INK, "strokeWidth": 1.2, "opacity": 0.75}
        parts.append(layer([{"share": 1 - alpha}], promise, {"y": share}))
    for row in labels:
        top = 1.03 + ROW * (rows - row["level"] - 0.5)
        parts += [*mark_layers(row | {"top": top, "floor": 0.0}, x, y), _points(row, x, y)]
    return figure(parts, titled(sentence), said, height)


def _points(row: Part, x: Part, y: Part) -> Part:
    """Where one method's line meets the curves."""
    m = row["method"]
    hover = [word("method"), word("own", title="threshold")]
    if "inside" in row:
        hover.append(quantity("inside", title="lesion inside", format=".1%"))
    hover.append(quantity("area", title="image marked", format=".1%"))
    dot = {"type": "point", "filled": True, "shape": SHAPES[m], "size": 150, "color": COLOURS[m]}
    return layer(
        [{**row, "share": row[k]} for k in ("inside", "area") if k in row],
        dot | {"stroke": COLOURS[m], "strokeWidth": 2, "opacity": 1},
        {"x": quantity("threshold", **x), "y": quantity("share", **y), "tooltip": hover},
    )


def _marked(t: np.ndarray, c: np.ndarray | None, a: np.ndarray, marks: dict[str, float]) -> list[Part]:
    """What each method's threshold gives; between grid points the next higher one counts, which never flatters."""
    found = []
    for m, tau in marks.items():
        if math.isnan(tau):
            raise ValueError(f"The threshold of {m} is not a number (NaN); -inf stands for the whole image.")
        k = int(np.searchsorted(t, tau - 1e-9))
        whole, beyond = tau == -math.inf, k >= len(t)
        row: Part = {
            "method": m,
            "threshold": within(tau),
            "own": "0 (whole image)" if whole else chance(tau),
        }
        row["area"] = 1.0 if whole else (float(a[-1]) if beyond else float(a[k]))
        if c is not None:
            row["inside"] = 1.0 if whole else (float(c[-1]) if beyond else float(c[k]))
        found.append(row | {"label": f"{m} {chance(tau)}"})
    return found


def _curve_words(at: list[Part], alpha: float, with_mask: bool) -> tuple[str, str]:
    def tells(row: Part, first: bool = False) -> str:
        lesion = (
            f"holds {percent(row['inside'])} of {'this' if first else 'the'} lesion and " if with_mask else ""
        )
        return f"{row['method']}'s {'threshold ' if first else ''}{row['own']} {lesion}marks {percent(row['area'])}{' of the image' if first else ''}"

    chosen = [r for m in ("CRC", "COAT") for r in at if r["method"] == m] or at[:2]
    sentence = "; ".join(tells(r, k == 0) for k, r in enumerate(chosen)) + "."
    what = (
        "Coverage of the lesion and marked share of the image" if with_mask else "Marked share of the image"
    )
    said = f"{what} against the threshold. {'; '.join(tells(r, k == 0) for k, r in enumerate(at))}."
    return sentence, said + (f" {promised(alpha)} is promised on average." if with_mask else "")
