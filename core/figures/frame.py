"""What all charts share: text that takes the page's colour, titles that wrap, probability axes in logits, one look for each method.

No chart is drawn here. Text and grid use `currentColor`, so that one chart is right on a light page, on a dark one and in a printed report; only
methods have colours of their own (`palette`). Thresholds come in logits, the unit in which they are computed, and are shown as probabilities.
Layers and encodings are plain Vega-Lite dictionaries (see `altair_figure` for why).
"""

from __future__ import annotations

import math
import textwrap
from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np

from core.figures.altair_figure import Figure
from core.figures.palette import COLOURS, DASHES, SHAPES

Part = dict[str, Any]
"""A piece of a Vega-Lite specification."""

INK = "currentColor"
"""The colour of the text around the chart, whatever theme that is."""

LIMIT = 15.5
"""Thresholds beyond this many logits are drawn at the edge: scores are clamped to 15, so there is nothing further out."""

_TICKS = (1e-6, 1e-5, 1e-4, 1e-3, 0.01, 0.1, 0.5, 0.9, 0.99, 0.999, 0.9999, 0.99999, 0.999999)
_MORE_TICKS = (
    (3e-4, 3e-3, 0.03, 0.3, 0.7, 0.97, 0.997, 0.9997),
    (2e-3, 5e-3, 0.02, 0.05, 0.07, 0.15, 0.2, 0.4, 0.6, 0.8, 0.95, 0.98),
)
PERCENT = "format(100 * datum.value, '.3~f') + '\u00a0%'"
_POWER = "'10⁻' + substring('⁰¹²³⁴⁵⁶⁷', round(abs(datum.value) / 2.302585), round(abs(datum.value) / 2.302585) + 1)"
_PLAIN = "format(1 / (1 + exp(-datum.value)), '.6~f')"
_PROBABILITY = f"datum.value < -9.1 ? {_POWER} : (datum.value > 9.1 ? '1 − ' + {_POWER} : {_PLAIN})"


def percent(share: float) -> str:
    """A share in words that do not round a miss away: 0.996 is 99.6 %, 0.004 is 0.4 %, and 100 % is only what is whole."""
    x = 100.0 * float(share)
    if math.isnan(x):
        return "unknown"
    if 0 < x < 1:
        return f"{max(x, 0.1):.1f}\u00a0%"
    if 99 < x < 100:
        return f"{min(x, 99.9):.1f}\u00a0%"
    return f"{x:.0f}\u00a0%"


def promised(alpha: float) -> str:
    """The promise 1 - alpha, never rounded up: 97.5 % does not become 98 %."""
    return f"{100.0 * (1.0 - alpha):.6g}\u00a0%"


def chance(tau: float) -> str:
    """A threshold in logits as a probability to two digits; -inf is 0."""
    if tau <= -LIMIT:
        return "0"
    if tau >= LIMIT:
        return "1"
    p = 1.0 / (1.0 + math.exp(-tau))
    digits = 2 if p < 0.99 else 2 + math.floor(-math.log10(1 - p))
    text = f"{p:.{digits}g}" if p >= 1e-4 else f"{p:.7f}"
    return text.rstrip("0").rstrip(".") if "." in text else text


def count(n: int, thing: str) -> str:
    """`1 image`, `2 images`, `1,000 images`."""
    return f"{n:,} {thing}{'' if n == 1 else 's'}"


def listed(parts: Sequence[str]) -> str:
    """`a`, `a and b`, `a, b and c`."""
    return " and ".join([", ".join(parts[:-1]), parts[-1]] if len(parts) > 1 else list(parts))


def within(tau: float) -> float:
    """A threshold where it can be drawn: infinite ones at the edge."""
    return float(np.clip(tau, -LIMIT, LIMIT))


def wrapped(sentence: str, width: int = 48) -> list[str]:
    """Lines of a title that fit half a page; a chart's own title never wraps and would be cut off."""
    return textwrap.wrap(sentence, width, break_long_words=False)


def titled(sentence: str, *under: str, width: int = 48) -> Part:
    """A title that is a sentence, with smaller sentences under it."""
    small = [line for text in under if text for line in wrapped(text, round(width * 1.15))]
    return {"text": wrapped(sentence, width)} | ({"subtitle": small} if small else {})


def quantity(field: str, **more: Any) -> Part:
    """An encoding of a number."""
    return {"field": field, "type": "quantitative", **more}


def word(field: str, **more: Any) -> Part:
    """An encoding of a name."""
    return {"field": field, "type": "nominal", **more}


def layer(rows: list[Part], mark: Part, encoding: Part, **more: Any) -> Part:
    """One layer with its own rows, numbers shortened to what an eye can tell apart."""
    values = [{k: _short(v) for k, v in row.items()} for row in rows]
    return {"data": {"values": values}, "mark": mark, "encoding": encoding, **more}


def logit_axis(
    values: Iterable[float], title: str, named: dict[str, float] | None = None, **more: Any
) -> Part:
    """Scale and axis of an encoding for thresholds in logits, labelled as probabilities.

    Args:
        values: Logits that must be on it; infinite ones are drawn at the edge.
        title: Title of the axis.
        named: Words -> logit of ticks of their own, in bold; ticks that would run into them are left out.
        **more: Further settings of the axis.
    """
    drawn = [within(v) for v in values if not math.isnan(v)]
    low, high = (min(drawn), max(drawn)) if drawn else (-2.0, 2.0)
    room = max(0.04 * (high - low), 0.35)
    low, high = low - room, high + room
    every = [math.log(p / (1 - p)) for p in _TICKS]
    ticks = [t for t in every if low <= t <= high]
    for more_ticks in _MORE_TICKS:
        if len(ticks) < 4:
            every = sorted([*every, *(math.log(p / (1 - p)) for p in more_ticks)])
            ticks = [t for t in every if low <= t <= high]
    if len(ticks) < 2:
        low = min(low, max([t for t in every if t <= low], default=low))
        high = max(high, min([t for t in every if t >= high], default=high))
        ticks = [t for t in every if low <= t <= high]
    axis = _named({k: within(v) for k, v in (named or {}).items()}, ticks, 0.07 * (high - low), _PROBABILITY)
    return {
        "scale": {"domain": [low, high], "nice": False, "zero": False},
        "axis": {"title": title} | axis | more,
    }


def share_axis(
    title: str | None,
    ticks: Sequence[float] = (0, 0.2, 0.4, 0.6, 0.8, 1),
    named: dict[str, float] | None = None,
    **more: Any,
) -> Part:
    """An axis for shares, labelled in percent; `named` as in `logit_axis`."""
    return {"title": title} | _named(named or {}, list(ticks), 0.055, PERCENT) | more


def _named(named: dict[str, float], ticks: list[float], near: float, label: str) -> Part:
    kept = [t for t in ticks if all(abs(t - at) > near for at in named.values())]
    if not named:
        return {"values": kept, "labelExpr": label, "labelOverlap": "greedy"}
    own = {k: round(float(at), 6) for k, at in named.items()}
    is_own = " || ".join(f"datum.value === {at!r}" for at in own.values())
    for words, at in own.items():
        label = f"datum.value === {at!r} ? {words!r} : {label}"
    return {
        "values": sorted([*kept, *own.values()]),
        "labelOverlap": False,
        "labelExpr": label,
        "labelFontWeight": {"condition": {"test": is_own, "value": 700}, "value": 400},
    }


def by_method(
    channel: str, methods: Sequence[str], legend: Part | None = None, field: str = "method"
) -> Part:
    """`color`, `shape` or `strokeDash` of methods, the same everywhere."""
    tables: dict[str, dict[str, Any]] = {"color": {**COLOURS}, "shape": {**SHAPES}, "strokeDash": {**DASHES}}
    table = tables[channel]
    return word(field, scale={"domain": list(methods), "range": [table[m] for m in methods]}, legend=legend)


def legend(title: str | None = None, **more: Any) -> Part:
    """A legend above the chart, in one row."""
    return {
        "title": title,
        "orient": "top",
        "direction": "horizontal",
        "symbolSize": 140,
        "symbolOpacity": 1,
        **more,
    }


def checked_methods(methods: Iterable[str]) -> list[str]:
    """Methods as a list.

    Raises:
        ValueError: None at all, or one without a colour of its own.
    """
    names = list(methods)
    unknown = [m for m in names if m not in COLOURS]
    if unknown or not names:
        raise ValueError(
            f"A chart needs methods out of {', '.join(COLOURS)}; it got {', '.join(map(str, unknown)) or 'none'}."
        )
    return names


def same_length(**arrays: Any) -> int:
    """Length of arrays that belong together.

    Raises:
        ValueError: They differ, or there is nothing in them; the message names each with its length.
    """
    sizes = {name: len(a) for name, a in arrays.items()}
    if len(set(sizes.values())) != 1:
        raise ValueError(
            "These belong together and differ in length: "
            + ", ".join(f"{k} {n}" for k, n in sizes.items())
            + "."
        )
    n = next(iter(sizes.values()))
    if n == 0:
        raise ValueError(f"There is nothing to draw: {', '.join(sizes)} is empty.")
    return n


def _short(value: Any) -> Any:
    if isinstance(value, bool | np.bool_):
        return bool(value)
    if isinstance(value, int | np.integer):
        return int(value)
    if isinstance(value, float | np.floating):
        return round(float(value), 5) if math.isfinite(value) else None
    return str(value) if isinstance(value, str) else value


def figure(layers: list[Part], title: Part | None, description: str, height: int, **more: Any) -> Figure:
    """The finished chart with its title, alt text, size and the common look.

    Args:
        layers: From `layer`, the lowest first.
        title: From `titled`; None for a miniature.
        description: Alt text in full sentences with the numbers.
        height: Height of everything in pixels, title included.
        **more: Further top-level properties (`params`, `resolve`).
    """
    return Figure(
        layer=layers, **({"title": title} if title else {}), description=description, width="container", height=height,
        autosize={"type": "fit", "contains": "padding"}, config=_look(), **more,
    )  # fmt: skip


def _look() -> Part:
    text = {
        "labelColor": INK,
        "titleColor": INK,
        "labelFontSize": 14,
        "titleFontSize": 14,
        "titleFontWeight": 500,
        "labelLimit": 0,
        "aria": False,
    }
    quiet = {"domain": False, "ticks": False, "labelPadding": 6, "titlePadding": 8, "titleLimit": 0}
    return {
        "background": "transparent",
        "title": {
            "anchor": "start", "align": "left", "frame": "bounds", "color": INK, "fontSize": 16, "fontWeight": 600, "lineHeight": 20, "offset": 10,
            "subtitleColor": INK, "subtitleFontSize": 14, "subtitleFontWeight": 400, "subtitleLineHeight": 18, "subtitlePadding": 5,
        },
        "axis": {**text, **quiet, "gridColor": INK, "gridOpacity": 0.13, "domainColor": INK, "tickColor": INK},
        "legend": {**text, "padding": 0, "offset": 8, "columnPadding": 18},
        "view": {"stroke": None},
        "text": {"color": INK, "fontSize": 14},
        "mark": {"aria": False},
    }  # fmt: skip
