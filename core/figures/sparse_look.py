"""What the charts of the page Sparse share: looks of before, after, adaptations and families, the ramp of depth, the player, the axes.

No chart is drawn here, and nothing is computed by a network: arrays and words come from outside. λ stands on logarithmic axes.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np

from core.figures.frame import listed
from core.figures.sparse_words import number
from core.figures.temperature_frame import GREY, LEGEND, log_axis
from core.figures.temperature_needles import BUTTON

BEFORE, AFTER = "#E69F00", "#0072B2"
"""Before adaptation orange (open markers), after it blue (filled)."""

ADAPTATIONS = ("none", "bn", "lambda", "both")
"""Keys of `core.settings.tacsc.ADAPTATIONS`."""
ADAPT_WORDS = {"none": "no adaptation", "bn": "BN alone", "lambda": "λ alone", "both": "BN and λ"}
ADAPT_COLOURS = {"none": BEFORE, "bn": "#CC79A7", "lambda": "#009E73", "both": AFTER}
ADAPT_SHAPES = {"none": "circle-open", "bn": "diamond", "lambda": "triangle-up", "both": "circle"}
ADAPT_DASHES = {"none": "dot", "bn": "8px,4px", "lambda": "10px,3px,2px,3px", "both": "solid"}

FAMILIES = ("noise", "blur", "weather", "digital")
"""Families of corruptions; each has a colour, a marker and a dash of its own."""
FAMILY_COLOURS = {"noise": "#0072B2", "blur": "#D55E00", "weather": "#56B4E9", "digital": "#CC79A7"}
FAMILY_SHAPES = {"noise": "circle", "blur": "square", "weather": "triangle-up", "digital": "diamond"}
FAMILY_DASHES = {"noise": "solid", "blur": "8px,4px", "weather": "2px,2px", "digital": "10px,3px,2px,3px"}

SHADE = "rgba(138,143,150,0.18)"
GRID = "rgba(138,143,150,0.22)"
_RAMP = ((0x8A, 0x55, 0xAE), (0x3F, 0x8F, 0xA3), (0x79, 0xBF, 0x6A))
_TICKS = ((1, 1.5, 2, 3, 4, 5, 7), (1, 2, 3, 5), (1, 2, 5), (1, 3), (1,))
NAMED = 4
"""Up to so many layers have names in a legend; more have a colour bar of depth."""


def depth_colours(count: int) -> list[str]:
    """Colours of `count` layers, first to last: purple over teal to green, legible on white and on black."""
    out = []
    for k in range(count):
        at = (k / (count - 1) if count > 1 else 0.0) * (len(_RAMP) - 1)
        i = min(int(at), len(_RAMP) - 2)
        mixed = (round(a + (at - i) * (b - a)) for a, b in zip(_RAMP[i], _RAMP[i + 1], strict=True))
        out.append("#" + "".join(f"{c:02X}" for c in mixed))
    return out


def depth_bar(go: Any, count: int, compact: bool = False) -> Any:
    """A trace without a point whose colour bar says which end of the ramp is the first layer."""
    scale = [[k / 8, c] for k, c in enumerate(depth_colours(9))]
    bar = {
        "thickness": 10, "len": 0.9, "x": 1.0, "xpad": 4, "outlinewidth": 0, "tickvals": [1, count], "ticktext": ["first", "last"],
        "title": {"text": "layer" if compact else "layer, by depth", "side": "right"},
    }  # fmt: skip
    mark = {"color": [1], "colorscale": scale, "cmin": 1, "cmax": count, "showscale": True, "colorbar": bar}
    return go.Scatter(
        x=[None], y=[None], mode="markers", marker=mark, showlegend=False, hoverinfo="skip", name="depth"
    )


def known(values: Iterable[float]) -> list[float | None]:
    """Numbers for a chart: five digits, and None for what is not known."""
    return [float(f"{v:.5g}") if math.isfinite(v) else None for v in values]


def checked_layers(layers: Sequence[str]) -> list[str]:
    """Names of layers as a list.

    Raises:
        ValueError: There is none, or two are alike.
    """
    names = [str(name) for name in layers]
    if not names:
        raise ValueError("A chart of λ needs at least one sparse layer; this network has none.")
    if len(set(names)) != len(names):
        raise ValueError("Two layers have the same name; give each its own.")
    return names


def checked_lambda(values: Any, shape: tuple[int | None, ...], what: str, holes: bool = False) -> np.ndarray:
    """λ as float64 of a shape (None fits any length).

    Args:
        values: λ.
        shape: What it must have.
        what: Its name in the message.
        holes: Whether NaN is allowed.

    Raises:
        ValueError: Another shape, or a λ that is not a number above 0.
    """
    array = checked_shape(values, shape, what)
    known = array[~np.isnan(array)] if holes else array
    if not (np.isfinite(known) & (known > 0)).all():
        raise ValueError(f"λ is above 0 and finite; {what} holds something else.")
    return array


def checked_shape(values: Any, shape: tuple[int | None, ...], what: str) -> np.ndarray:
    """Numbers as float64 of a shape (None fits any length).

    Raises:
        ValueError: Another shape.
    """
    array = np.asarray(values, np.float64)
    wanted = ", ".join("any" if n is None else str(n) for n in shape)
    if array.ndim != len(shape) or any(n is not None and n != m for n, m in zip(shape, array.shape, strict=True)):  # fmt: skip
        raise ValueError(f"{what[0].upper()}{what[1:]} must have the shape ({wanted}), not {array.shape}.")
    return array


def checked_shares(values: Any, shape: tuple[int | None, ...], what: str) -> np.ndarray:
    """Shares from 0 to 1, NaN allowed.

    Raises:
        ValueError: Another shape, or a share outside.
    """
    array = checked_shape(values, shape, what)
    known = array[~np.isnan(array)]
    if not ((known >= -1e-9) & (known <= 1 + 1e-9)).all():
        raise ValueError(f"{what[0].upper()}{what[1:]} holds shares from 0 to 1, not {known.min():g} to {known.max():g}.")  # fmt: skip
    return array


def checked_adaptations(given: Mapping[str, Any]) -> list[str]:
    """The adaptations there are, in the usual order.

    Raises:
        ValueError: An unknown one, or "none" or "bn" is missing: a gain is never shown without them.
    """
    unknown = [a for a in given if a not in ADAPTATIONS]
    if unknown:
        raise ValueError(f"What adapts is one of {', '.join(ADAPTATIONS)}, not {listed(unknown)}.")
    missing = [a for a in ("none", "bn") if a not in given]
    if missing:
        raise ValueError(
            f"A gain is never shown without none and bn beside it; {listed(missing)} is missing."
        )
    return [a for a in ADAPTATIONS if a in given]


def rising(values: Sequence[float], what: str) -> list[float]:
    """Numbers that rise, as a list.

    Raises:
        ValueError: There is none, or they do not rise.
    """
    array = np.asarray(values, np.float64)
    if array.ndim != 1 or len(array) == 0 or not np.isfinite(array).all() or (np.diff(array) <= 0).any():
        raise ValueError(f"{what[0].upper()}{what[1:]} must be numbers that rise, at least one.")
    return [float(v) for v in array]


def lambda_span(values: Iterable[float], room: float = 1.25, least: float = 3.0) -> tuple[float, float]:
    """Ends of an axis of λ: what it must hold and some room; at least `least` times from end to end."""
    known = [float(v) for v in values if math.isfinite(v) and v > 0]
    low, high = (min(known) / room, max(known) * room) if known else (0.05, 0.5)
    if high / low < least:
        wide = math.sqrt(least / (high / low))
        low, high = low / wide, high * wide
    return low, high


def lambda_axis(span: tuple[float, float], title: str = "λ", most: int = 7) -> dict[str, Any]:
    """A logarithmic axis of λ with at most so many round ticks."""
    decades = range(math.floor(math.log10(span[0])), math.ceil(math.log10(span[1])) + 1)
    every = [[t * 10.0**d for d in decades for t in ticks] for ticks in _TICKS]
    inside = [[t for t in ticks if span[0] <= t <= span[1]] for ticks in every]
    shown = next((t for t in inside if len(t) <= most), inside[-1])
    axis = log_axis(span, title, [float(f"{t:.6g}") for t in shown])
    return axis | {"ticktext": [number(t).rstrip("0").rstrip(".") if t < 10 else number(t) for t in axis["tickvals"]]}  # fmt: skip


def plain_axis(title: str = "", **more: Any) -> dict[str, Any]:
    """A linear axis that stays where it is."""
    return {
        "title": {"text": title, "standoff": 6}, "fixedrange": True, "zeroline": False, "gridcolor": GRID, "automargin": True, "nticks": 6,
    } | more  # fmt: skip


def legend_above(pixels: float, inner: float, **more: Any) -> dict[str, Any]:
    """A legend in a row, `pixels` above panels that are `inner` pixels high."""
    return LEGEND | {"y": 1 + pixels / inner} | more


def moving(go: Any, trace: Any, *keys: str) -> Any:
    """The parts of a trace that change from frame to frame: x, y and these keys; a figure with many frames stays small."""
    full = trace.to_plotly_json()
    return go.Scatter(**{key: full[key] for key in ("x", "y", *keys) if key in full})


def chosen_frames(count: int, frames: int, most: int = 60) -> np.ndarray:
    """Which of `count` states become frames, evenly, the first and the last among them."""
    return np.unique(np.linspace(0, count - 1, max(2, min(frames, most, count))).round().astype(int))


def player(
    labels: Sequence[str],
    prefix: str,
    *,
    active: int,
    pace: int = 90,
    morph: int = 0,
    below: float = 40,
    word: str = "▶ play",
    compact: bool = False,
) -> dict[str, Any]:
    """Play button and slider under a figure, for frames named "0", "1", ...; nothing for fewer than two.

    Args:
        labels: What the slider says at each frame.
        prefix: Before it, e.g. `"step "`.
        active: Frame of the still.
        pace: Milliseconds a frame.
        morph: Of these, how many the marks take to move.
        below: Pixels under the lowest panel; the figure's margin must hold 50 more.
        word: On the button.
        compact: For about 420 px.
    """
    if len(labels) < 2:
        return {}
    order = [f"{k}" for k in range(len(labels))]
    step = {
        "frame": {"duration": pace, "redraw": False},
        "transition": {"duration": morph, "easing": "cubic-in-out"},
        "mode": "immediate",
    }
    now = step | {"frame": {"duration": morph, "redraw": False}}
    button = {"label": word, "method": "animate", "args": [order, step | {"fromcurrent": False}]}
    steps = [
        {"label": text, "method": "animate", "args": [[name], now]}
        for text, name in zip(labels, order, strict=True)
    ]
    at = 0.36 if compact else 0.17
    return {
        "updatemenus": [
            {
                "type": "buttons", "showactive": False, "buttons": [button], "x": 0, "xanchor": "left", "y": 0, "yanchor": "top",
                "pad": {"t": below, "b": 0, "l": 0, "r": 0}, **BUTTON,
            }
        ],
        "sliders": [
            {
                "active": active, "steps": steps, "x": at, "len": 1 - at, "y": 0, "yanchor": "top", "pad": {"t": below - 12, "b": 0}, "ticklen": 0,
                "minorticklen": 0, "font": {"size": 1, "color": "rgba(0,0,0,0)"}, "bordercolor": GREY, "bgcolor": "rgba(138,143,150,0.35)",
                "currentvalue": {"prefix": prefix, "font": {"size": 14, "color": GREY}, "xanchor": "right", "offset": 8},
            }
        ],
    }  # fmt: skip
