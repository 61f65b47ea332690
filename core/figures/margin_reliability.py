"""Reliability diagrams of losses side by side: how often a network is right where it says how sure it is.

What it is not: a metric; bins are counted elsewhere, and only ECE follows from them here (Guo and others, 2017, equation 3).
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from core.figures.altair_figure import Figure
from core.figures.frame import INK, PERCENT, Part, figure, layer, percent, quantity, titled, word
from core.figures.margin_bins import Bins, Table, panels_of, read_at, start_of, words_of
from core.figures.margin_look import GAP

BETWEEN = 0.13
"""Room between two panels, as a share of a panel."""
STRIP = 0.24
"""Height of the strip of counts under a panel, as a share of a panel."""
KEY = "Bars: how often it is right, wider with more pixels. Yellow: the gap to what it says."
QUIET = {"fontSize": 14, "fontWeight": 400, "lineHeight": 18}
"""A title that is no sentence."""
HEAD = 46
"""Pixels over a panel for its name and its ECE."""
LEVELS = (0, 0.2, 0.4, 0.6, 0.8, 1.0)
THIN = 0.5
"""Width of a bar with hardly a pixel, as a share of the widest."""


def reliability_diagram(
    tables: Mapping[str, Table | Mapping[str, Any]],
    scope: str,
    *,
    at: float | None = 0.9,
    titles: Mapping[str, str] | None = None,
    sentence: bool = True,
    height: int = 430,
) -> Figure:
    """Reliability of one to four losses, one panel each, with the share of pixels of each bin under it.

    A bar is as high as the share that is right, and the wider the more pixels it holds (by the root of their number); yellow is what lies
    between it and what it says. Bins without pixels are absent. Where no network says less than about one half, as with two classes, the axis
    begins there.

    Args:
        tables: Loss -> table with `count`, `mean_confidence` and `accuracy` as attributes (a `Reliability`) or as keys. An empty table is
            drawn as an empty panel that says so.
        scope: Which pixels were counted, as words that follow "Counted: ", e.g. "pixels whose truth is lesion, 212 images".
        at: Confidence that is read off in the title and marked in each panel (the nearest bin that every loss fills); None marks nothing.
        titles: Loss -> words instead of `LOSS_TITLES`. Keys that are no loss (a person's own network) are allowed with a title here.
        sentence: False leaves the title's sentence out, for pages whose headline says it already; the scope stays.
        height: Height of everything in pixels.

    Returns:
        A layered chart for `st.altair_chart`; the title is a computed sentence.

    Raises:
        ValueError: No loss or more than four, arrays of different length, a share outside [0, 1], or no pixel in any table.
    """
    panels = panels_of(tables, titles)
    start = start_of(panels)
    read = None if at is None else read_at(panels, at)
    headline, said = words_of(panels, scope, read)
    under = f"Counted: {scope}." if scope else ""
    title = (
        titled(headline, under, KEY)
        if sentence
        else titled(under or KEY, KEY if under else "", width=55) | QUIET
    )
    x, y = _axes(
        len(panels), start, height - 20 * len(title["text"]) - 18 * len(title.get("subtitle", [])) - 75
    )
    parts: list[Part] = []
    for k, p in enumerate(panels):
        parts += _panel(p, k, start, x, y, read)
    return figure(parts, title, said, height)


def reliability_mini(tables: Mapping[str, Table | Mapping[str, Any]], *, height: int = 150) -> Figure:
    """Reliability curves as a miniature for a card: one line a loss over the diagonal, no title, few ticks.

    Args:
        tables: As in `reliability_diagram`; one to three losses.
        height: Height in pixels.

    Raises:
        ValueError: As in `reliability_diagram`.
    """
    panels = panels_of(tables, None)
    start = start_of(panels)
    ticks = [t for t in (0.0, 0.5, 1.0) if t >= start - 0.05]
    span = {"domain": [start, 1.0], "nice": False, "zero": False}
    x = {"scale": span, "axis": {"title": "it says", "values": ticks, "labelExpr": PERCENT, "grid": False}}
    y = {
        "scale": {
            "domain": [min(start, *(float(p.right.min()) for p in panels if p.pixels)), 1.0],
            "nice": False,
            "zero": False,
        }
    }
    y["axis"] = {"title": "it is right", "values": ticks, "labelExpr": PERCENT}
    ends = [{"said": start, "right": start}, {"said": 1.0, "right": 1.0}]
    place = {"x": quantity("said", **x), "y": quantity("right", **y)}
    parts = [layer(ends, {"type": "line", "color": INK, "opacity": 0.5, "strokeDash": [3, 3]}, place)]
    for p in panels:
        rows = [{"said": s, "right": r} for s, r in zip(p.said, p.right, strict=True)]
        line = {"type": "line", "color": p.colour, "strokeWidth": 2.5, "strokeDash": p.dash}
        dot = {"type": "point", "filled": True, "color": p.colour, "shape": p.shape, "size": 55, "opacity": 1}
        parts += [layer(rows, line, place), layer(rows, dot, place)]
    _, said = words_of(panels, "", None)
    return figure(parts, None, said, height)


def _axes(n: int, start: float, inner: int) -> tuple[Part, Part]:
    """All panels on one horizontal axis: panel k goes from k (1 + BETWEEN) to that plus one. Above 0 accuracy, below it the strip."""
    ticks = [0.0, 0.5, 1.0] if start == 0 else [t for t in (0.5, 0.75, 1.0) if t >= start]
    step, width = 1 + BETWEEN, 1 - start
    at = [round(k * step + (t - start) / width, 5) for k in range(n) for t in ticks]
    share = f"{start} + (datum.value - floor((datum.value + 1e-6) / {step}) * {step}) * {width}"
    text = f"format(round(100 * ({share})), 'd') + '\u00a0%'"
    ends = [" || ".join(f"datum.value === {v!r}" for v in at[i :: len(ticks)]) for i in (0, len(ticks) - 1)]
    inward = [{"test": test, "value": side} for test, side in zip(ends, ("left", "right"), strict=True)]
    common = {"labelOverlap": False, "labelFlush": False, "grid": False}
    x = {
        "scale": {"domain": [-0.02, (n - 1) * step + 1.02], "nice": False, "zero": False},
        "axis": common
        | {"title": "how sure it says it is", "values": at, "labelExpr": text, "labelAlign": {"condition": inward, "value": "center"}},
    }  # fmt: skip
    y = {
        "scale": {
            "domain": [-STRIP - 0.06, 1 + HEAD * (1.06 + STRIP) / max(inner - HEAD, 80)],
            "nice": False,
            "zero": False,
        },
        "axis": common | {"title": "how often it is right", "values": [*LEVELS], "labelExpr": PERCENT},
    }
    return x, y


def _panel(
    p: Bins, k: int, start: float, x: Part, y: Part, read: dict[str, tuple[float, float]] | None
) -> list[Part]:
    """One loss: its name and ECE, bars and gaps, the strip, the diagonal, and the reading."""
    left, foot = k * (1 + BETWEEN), -0.05 - STRIP
    place = {"x": quantity("x", **x), "y": quantity("y", **y)}
    box = {**place, "x2": {"field": "x2"}, "y2": {"field": "y2"}}

    def text(at_x: float, at_y: float, words: str, **more: Any) -> Part:
        mark = {"type": "text", "align": "left", "color": INK} | more
        return layer([{"x": at_x, "y": at_y, "t": words}], mark, {**place, "text": word("t")})

    def line(ends: tuple[float, float, float, float], **more: Any) -> Part:
        row = dict(zip(("x", "y", "x2", "y2"), ends, strict=True))
        return layer([row], {"type": "rule", "color": INK} | more, box)

    ece = "no pixel counted" if not p.pixels else f"ECE {100 * p.ece:.1f}\u00a0%"
    parts = [
        *(line((left, v, left + 1, v), opacity=0.16) for v in LEVELS),
        text(left, 1.0, p.title, baseline="bottom", dy=-24, fontWeight=600, fontSize=15),
        text(left, 1.0, ece, baseline="bottom", dy=-6, fontSize=15),
    ]
    if p.pixels:
        parts += _bars(p, left, start, foot, x, y)
    parts += [
        line((left, start, left + 1, 1.0), strokeWidth=2, strokeDash=[5, 4]),
        line((left, foot, left + 1, foot), opacity=0.5),
        text(left, -0.055, "share of pixels", baseline="top", fontSize=13, opacity=0.9),
    ]
    if read and p.title in read:
        said, right = read[p.title]
        n = int(np.abs(p.said - said).argmin())
        spot = [{"x": left + ((p.number[n] + 0.5) / p.bins - start) / (1 - start), "y": right}]
        parts += [
            layer(spot, {"type": "point", "filled": True, "size": 80, "color": INK, "opacity": 1}, place),
            text(left, 1.0, f"says {percent(said)}", baseline="top", dx=4, dy=5, fontSize=13),
            text(
                left, 1.0, f"right {percent(right)}", baseline="top", dx=4, dy=22, fontSize=14, fontWeight=700
            ),
        ]
    return parts


def _bars(p: Bins, left: float, start: float, foot: float, x: Part, y: Part) -> list[Part]:
    """A bar for each filled bin, the gap to what it says, and its share of the pixels in the strip."""
    scale = 1 / (1 - start)
    half = 0.46 / p.bins * scale * (THIN + (1 - THIN) * np.sqrt(p.share / p.share.max()))
    middle = np.clip(left + ((p.number + 0.5) / p.bins - start) * scale, left + half, left + 1 - half)
    rows = [
        {
            "x": middle[i] - half[i], "x2": middle[i] + half[i], "said": p.said[i], "right": p.right[i], "share": p.share[i],
            "bin": f"{percent(p.number[i] / p.bins)} to {percent((p.number[i] + 1) / p.bins)}", "zero": 0.0,
            "foot": foot, "top": foot + STRIP * p.share[i],
        }
        for i in range(len(p.number))
    ]  # fmt: skip
    hover = [
        word("bin", title="it says"),
        quantity("said", title="mean confidence", format=".1%"),
        quantity("right", title="right", format=".1%"),
        quantity("share", title="share of the pixels", format=".2%"),
    ]
    wide = {"x": quantity("x", **x), "x2": {"field": "x2"}, "tooltip": hover}

    def bars(low: str, high: str, **look: Any) -> Part:
        return layer(rows, {"type": "rect"} | look, {**wide, "y": quantity(low, **y), "y2": {"field": high}})

    return [
        bars("zero", "right", color=p.colour, opacity=0.95),
        bars("right", "said", color=GAP, opacity=0.85, stroke=INK, strokeWidth=0.7),
        bars("foot", "top", color=p.colour, opacity=0.95),
    ]
