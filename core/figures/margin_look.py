"""What the charts of the losses share: names on screen, one look for each loss in Altair and in Plotly, and checks of what they are given.

No chart is drawn here. Losses go by their short keys ("CE", "LS", "SVLS", "focal", "ECP", "margin", "CE + T"); `LOSS_TITLES` has the words.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from typing import Any

from core.figures.frame import Part, percent, word
from core.figures.palette import LOSS_COLOURS, LOSS_DASHES, LOSS_SHAPES

LOSS_TITLES = {
    "CE": "CE",
    "LS": "label smoothing",
    "SVLS": "spatial smoothing",
    "focal": "focal",
    "ECP": "entropy penalty",
    "margin": "margin",
    "CE + T": "CE + temperature",
}
"""Words of each loss on the screen."""

GAP = "#F0E442"
"""What lies between a probability and the truth: yellow, which is nobody's colour."""

PLOTLY_SHAPES = {
    "square": "square",
    "cross": "cross",
    "triangle-up": "triangle-up",
    "diamond": "diamond",
    "triangle-down": "triangle-down",
    "circle": "circle",
    "triangle-right": "triangle-right",
}


def checked_losses(losses: Iterable[str], thing: str = "A chart of losses") -> list[str]:
    """Losses as a list.

    Args:
        losses: Short keys.
        thing: What needs them, for the message.

    Raises:
        ValueError: None at all, or one without a look of its own.
    """
    names = list(losses)
    unknown = [x for x in names if x not in LOSS_COLOURS]
    if unknown or not names:
        raise ValueError(
            f"{thing} needs losses out of {', '.join(LOSS_COLOURS)}; it got {', '.join(map(str, unknown)) or 'none'}."
        )
    return names


def by_loss(channel: str, losses: list[str], legend: Part | None = None, field: str = "loss") -> Part:
    """`color`, `shape` or `strokeDash` of losses in Altair; the field holds the words of `LOSS_TITLES`."""
    tables: dict[str, dict[str, Any]] = {
        "color": {**LOSS_COLOURS},
        "shape": {**LOSS_SHAPES},
        "strokeDash": {**LOSS_DASHES},
    }
    scale = {
        "domain": [LOSS_TITLES[x] for x in losses],
        "range": [tables[channel][x] for x in losses],
    }
    return word(field, scale=scale, legend=legend)


def line_of_loss(loss: str, width: float = 2.5) -> dict[str, Any]:
    """Colour, dash and width of a loss's line in Plotly."""
    pattern = LOSS_DASHES[loss]
    dash = "solid" if pattern == [1, 0] else ",".join(f"{p}px" for p in pattern)
    return {"color": LOSS_COLOURS[loss], "dash": dash, "width": width}


def marker_of_loss(loss: str, size: float = 13) -> dict[str, Any]:
    """Colour, shape and size of a loss's marker in Plotly."""
    return {"color": LOSS_COLOURS[loss], "symbol": PLOTLY_SHAPES[LOSS_SHAPES[loss]], "size": size}


def exact(p: float) -> str:
    """A confidence that is not rounded to certainty: 99.99 %, 92.5 %."""
    if p >= 1:
        return "100\u00a0%"
    if p >= 0.995:
        digits = max(1, math.floor(-math.log10(1 - p)) - 1)
        shown = math.floor(100 * p * 10**digits) / 10**digits
        return f"{f'{shown:.{digits}f}'.rstrip('0')}\u00a0%" if digits < 8 else "over 99.999999\u00a0%"
    return percent(p) if p < 0.9 else f"{100 * p:.1f}\u00a0%"
