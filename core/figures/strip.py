"""One dot an image: how well each image of a study is served, and where its threshold lies.

`strip_chart` shows each image's coverage under two or more methods around the promised line; `thresholds_chart` shows each image's own threshold
beside the one threshold of CRC, in the same order. In both a click picks an image (selection `picked` on the field `image`); which image is
emphasised is an argument, so that the page has one truth about it. Nothing is computed here but an order, counts and means.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from core.figures.altair_figure import Figure
from core.figures.frame import (
    INK,
    Part,
    by_method,
    chance,
    checked_methods,
    count,
    figure,
    layer,
    legend,
    logit_axis,
    promised,
    quantity,
    same_length,
    share_axis,
    titled,
    within,
    word,
)
from core.figures.palette import COLOURS
from core.figures.strip_words import price, strip_words, threshold_words

PARTS = ("calibration", "test")
SMALL = 260
"""Height in pixels below which the strip is a miniature."""
_PALE = {"condition": {"test": "datum.part === 'calibration'", "value": 0.4}, "value": 0.95}


def strip_chart(
    names: Sequence[str],
    parts: Sequence[str],
    coverage: dict[str, np.ndarray],
    alpha: float,
    picked: str | None = None,
    *,
    show: str = "both",
    area: dict[str, float] | None = None,
    height: int = 430,
) -> Figure:
    """Coverage of every image under several methods, sorted by the first of them, around the promise 1 - alpha.

    Args:
        names: N names of images.
        parts: N times `"calibration"` (drawn pale) or `"test"`.
        coverage: Method -> `(N,)` share of the lesion inside the set, 0 to 1; NaN (no lesion) is left out and counted. At least two methods;
            the first one sorts.
        alpha: Share of a lesion that may be missed on average.
        picked: Name of the image to emphasise.
        show: `"both"` parts, or `"test"` images only.
        area: Method -> mean set area over the test images, 0 to 1: the price, said under the title.
        height: Height of everything in pixels; below 260 a miniature without title, legend and axis titles.

    Returns:
        A layered chart with the point selection `picked` on the field `image`.

    Raises:
        ValueError: Lengths differ, fewer than two methods, an unknown part, or no image with a lesion.
    """
    methods = checked_methods(coverage)
    if len(methods) < 2:
        raise ValueError(f"The strip compares methods; it got {methods[0]} alone.")
    same_length(names=names, parts=parts, **coverage)
    values = {m: np.asarray(coverage[m], float) for m in methods}
    part = np.asarray(parts)
    kept, empty = _kept(part, ~np.isnan(np.stack(list(values.values()))).any(0), show)
    order = kept[np.lexsort([np.round(values[m][kept], 9) for m in reversed(methods)])]
    rows = [
        {"image": str(names[i]), "part": str(part[i]), "rank": rank} | {m: values[m][i] for m in methods}
        for rank, i in enumerate(order, 1)
    ]
    sentence, said = strip_words(values, order, part, alpha, area, empty)

    small = height < SMALL
    x = _rank(len(order), f"worst under {methods[0]} on the left", rows, small)
    span = {"domain": [0, 1.02], "nice": False}
    ticks = (0, 1) if small else (0, 0.2, 0.4, 0.6, 0.8, 1)
    promise_tick = {f"promise {promised(alpha)}": 1 - alpha}
    axis = share_axis(None if small else "lesion inside the set", ticks, promise_tick)
    y = quantity("coverage", scale=span, axis=axis)
    key = None if small else legend()
    look = {"color": by_method("color", methods, key), "shape": by_method("shape", methods, key)}
    hover = [word("image"), word("part"), *(quantity(m, title=f"inside, {m}", format=".1%") for m in methods)]
    size = _dot(len(order))
    ends = ", ".join(f"datum['{m}']" for m in methods)
    fold = [{"fold": methods, "as": ["method", "coverage"]}]
    joined = layer(
        rows,
        {"type": "rule", "color": "#8a8f96", "strokeWidth": 1},
        {"x": x, "y": quantity("low", scale=span, axis=axis), "y2": {"field": "high"}, "opacity": _PALE},
        transform=[{"calculate": f"min({ends})", "as": "low"}, {"calculate": f"max({ends})", "as": "high"}],
    )
    dots = layer(
        rows,
        {"type": "point", "filled": True, "size": size},
        {"x": x, "y": y, **look, "opacity": _PALE, "tooltip": hover},
        transform=fold,
        name="dots",
    )
    promise = layer([{"coverage": 1 - alpha}], {"type": "rule", "color": INK, "strokeWidth": 2}, {"y": y})
    ringed = _emphasis(
        rows, picked, {"x": x, "y": y, "color": look["color"], "shape": look["shape"]}, size, fold
    )
    return figure(
        [joined, promise, dots, *ringed],
        None if small else titled(sentence, price(area, methods)),
        said,
        height,
        params=[_pick("dots")],
    )


def thresholds_chart(
    names: Sequence[str],
    tau_coat: np.ndarray,
    tau_crc: float,
    lesion_share: np.ndarray,
    picked: str | None = None,
    *,
    crc_coverage: np.ndarray | None = None,
    parts: Sequence[str] | None = None,
    show: str = "both",
    height: int = 430,
) -> Figure:
    """Each image's own COAT threshold as a dot over the one CRC threshold, in the order of the strip; large dots are large lesions.

    Args:
        names: N names of images.
        tau_coat: `(N,)` effective thresholds in logits; -inf (the whole image) is drawn at the lower edge.
        tau_crc: CRC's threshold in logits; -inf likewise.
        lesion_share: `(N,)` share of the image that is lesion, 0 to 1; images without a lesion (0 or NaN) are left out and counted.
        picked: Name of the image to emphasise.
        crc_coverage: `(N,)` coverage under CRC, which puts the dots into the strip's order; without it they are sorted by threshold.
        parts: N times `"calibration"` (pale) or `"test"`; all count as test when absent.
        show: `"both"` parts, or `"test"` images only.
        height: Height of everything in pixels.

    Returns:
        A layered chart with the point selection `picked` on the field `image`.

    Raises:
        ValueError: Lengths differ, a threshold is NaN, or no image has a lesion.
    """
    tau, share = np.asarray(tau_coat, float), np.asarray(lesion_share, float)
    part = np.full(len(names), "test") if parts is None else np.asarray(parts)
    key = tau if crc_coverage is None else np.asarray(crc_coverage, float)
    same_length(names=names, tau_coat=tau, lesion_share=share, crc_coverage=key, parts=part)
    if np.isnan(tau).any() or math.isnan(tau_crc):
        raise ValueError("A threshold is not a number (NaN); -inf stands for the whole image.")
    kept, empty = _kept(part, (share > 0) & ~np.isnan(key), show)
    order = kept[np.lexsort([np.round(tau[kept], 9), np.round(key[kept], 9)])]
    rows = [
        {
            "image": str(names[i]),
            "part": str(part[i]),
            "rank": rank,
            "threshold": within(tau[i]),
            "own": chance(tau[i]),
            "lesion": share[i],
        }
        for rank, i in enumerate(order, 1)
    ]
    sentence, said = threshold_words(tau[order], tau_crc, empty)

    x = _rank(
        len(order),
        "worst under CRC on the left" if crc_coverage is not None else "lowest threshold on the left",
        rows,
    )
    y = quantity(
        "threshold",
        **logit_axis(
            [*tau[order], tau_crc], "threshold, as a probability", {f"CRC {chance(tau_crc)}": tau_crc}
        ),
    )
    small = _dot(len(order))
    size = quantity(
        "lesion",
        scale={"type": "sqrt", "range": [0.4 * small, 3.4 * small], "zero": True},
        legend=_sizes(share[order]),
    )
    hover = [
        word("image"),
        word("part"),
        word("own", title="threshold, COAT"),
        quantity("lesion", title="lesion, share of the image", format=".1%"),
    ]
    dots = layer(
        rows,
        {"type": "point", "filled": True, "color": COLOURS["COAT"], "shape": "circle"},
        {"x": x, "y": y, "size": size, "opacity": _PALE, "tooltip": hover},
        name="dots",
    )
    line = layer(
        [{"threshold": within(tau_crc)}],
        {"type": "rule", "color": COLOURS["CRC"], "strokeWidth": 3, "strokeDash": [8, 4]},
        {"y": y},
    )
    ringed = _emphasis(rows, picked, {"x": x, "y": y, "color": {"value": COLOURS["COAT"]}}, small, [])
    return figure([line, dots, *ringed], titled(sentence), said, height, params=[_pick("dots")])


def _rank(n: int, order: str, rows: list[Part], small: bool = False) -> Part:
    pale = "; pale: calibration" if any(r["part"] == "calibration" for r in rows) else ""
    axis: Part = {
        "title": None if small else f"{count(n, 'image')}, {order}{pale}",
        "labels": False,
        "grid": False,
        "values": [],
    }
    return quantity("rank", scale={"domain": [0, n + 1], "nice": False}, axis=axis)


def _sizes(share: np.ndarray) -> Part:
    ticks = [t for t in (0.01, 0.05, 0.1, 0.2, 0.4) if share.min() <= t <= share.max()][-3:]
    made = legend(
        "lesion's share of the image",
        values=ticks or [float(share.max())],
        labelExpr="format(100 * datum.value, '.2~f') + '\u00a0%'",
    )
    made |= {"symbolFillColor": COLOURS["COAT"], "symbolStrokeColor": COLOURS["COAT"]}
    del made["symbolSize"]
    return made


def _kept(part: np.ndarray, has_lesion: np.ndarray, show: str) -> tuple[np.ndarray, int]:
    """Indices to draw, and how many images of the shown parts are left out for want of a lesion."""
    strange = sorted(set(part.tolist()) - set(PARTS))
    if strange or show not in ("both", "test"):
        raise ValueError(
            f"Parts are {' and '.join(PARTS)}, shown 'both' or 'test'; here are {', '.join(map(str, strange)) or show}."
        )
    shown = part == "test" if show == "test" else np.ones(len(part), bool)
    kept = np.flatnonzero(shown & has_lesion)
    if not len(kept):
        raise ValueError(
            "None of these images has a lesion: coverage is not defined there. Bring images with a lesion."
        )
    return kept, int((shown & ~has_lesion).sum())


def _dot(n: int) -> float:
    """Area of a dot in square pixels: large for a handful of images, still to be hit for 300."""
    return float(np.clip(9000 / max(n, 1), 40, 140))


def _pick(view: str) -> Part:
    select = {"type": "point", "fields": ["image"], "on": "click", "nearest": True, "toggle": False}
    return {"name": "picked", "select": select, "views": [view]}


def _emphasis(
    rows: list[Part], picked: str | None, encoding: Part, size: float, transform: list[Part]
) -> list[Part]:
    """The picked image's dots again, larger, in rings and on a dotted line; drawn last."""
    chosen = [r for r in rows if r["image"] == picked]
    if not chosen:
        return []
    where = {"x": encoding["x"], "y": encoding["y"]}
    line = {"type": "rule", "color": INK, "strokeWidth": 1.5, "strokeDash": [2, 3], "opacity": 0.7}
    dot = {"type": "point", "filled": True, "size": max(2.2 * size, 120), "opacity": 1}
    ring = {
        "type": "point",
        "filled": False,
        "shape": "circle",
        "size": max(7 * size, 420),
        "color": INK,
        "strokeWidth": 2.5,
        "opacity": 1,
    }
    return [
        layer(chosen, line, {"x": encoding["x"]}),
        layer(chosen, dot, encoding, transform=transform),
        layer(chosen, ring, where, transform=transform),
    ]
