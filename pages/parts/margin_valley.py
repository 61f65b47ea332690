"""The valley and the ball: what a loss adds to cross-entropy over two logit distances of one pixel, and where descent takes it. Live: it is three
numbers. It draws; `core.margin.penalty` computes.
"""

from __future__ import annotations

from dataclasses import replace
from functools import lru_cache
from typing import Any

import numpy as np
import streamlit as st

from core.figures.margin_ground import Ground
from core.figures.margin_paths import Roll, paths
from core.figures.margin_profile import profile as profile_chart
from core.figures.margin_valley import surface, valleys
from core.figures.temperature_frame import description, sentence_of
from core.lab.margin_record import TITLES
from core.margin.penalty import Profile, fixed_point_of, landscape, path, profile
from core.settings import MarginSettings, knobs
from core.settings.margin import LOSSES

KNOBS = knobs(MarginSettings)
CLASSES = 3
ALONG = tuple(np.linspace(-4.0, 20.0, 97).tolist())
"""Distances of the profiles."""
AXIS = tuple(np.linspace(-4.0, 20.0, 49).round(2).tolist())
STEPS = 300
"""Steps of descent, with a step size of 1."""

STARTS = {"too sure": (14.0, 17.0), "wrong": (-3.0, 1.5)}
"""Where the pixel starts: its two logit distances, the true class's logit minus each of the others."""

CONFIG = {"displayModeBar": False}
HINT = "Three classes, one pixel. A distance says how far the true class's logit lies above another one; below 0 that other one is ahead."


def margin_slider() -> float:
    """m, in the address."""
    knob = KNOBS["margin"]
    return float(
        st.slider(
            knob.label,
            float(knob.low or 0),
            float(knob.high or 20),
            float(knob.default),
            float(knob.step or 0.5),
            key="m",
            bind="query-params",
            help=f"{knob.help} It moves the floor of the valley below; networks keep the m that they were trained with.",
        )
    )


def start_chooser() -> str:
    """Where the pixel starts, in the address."""
    return str(
        st.segmented_control(
            "The pixel starts",
            list(STARTS),
            default="too sure",
            required=True,
            key="start",
            bind="query-params",
            help="The logit distances at which every ball starts: right and surer than any margin asks for, or wrong.",
        )
    )


def _own(loss: str, margin: float) -> float:
    """The margin m where a loss has one, so that what does not depend on it is computed once."""
    return margin if loss == "margin" else 0.0


def settings_of(loss: str, margin: float) -> MarginSettings:
    """A loss with the default numbers of its code, and this m."""
    return replace(MarginSettings(loss=loss), margin=margin if loss == "margin" else KNOBS["margin"].default)


@lru_cache(maxsize=128)
def ground(loss: str, margin: float, arrows: bool = True) -> Ground:
    """The plane of a loss. Descent moves a distance by the slopes of both, for they share the true class's logit."""
    s = settings_of(loss, margin)
    land = landscape(s, AXIS, AXIS)
    g1, g2 = land.gradient
    push = np.stack([-(2 * g1 + g2).T, -(g1 + 2 * g2).T]) if arrows else None
    fixed = fixed_point_of(s, CLASSES)
    return Ground(
        loss,
        np.array(AXIS),
        land.values.T,
        push,
        margin if loss == "margin" else None,
        None if fixed is None else fixed.distance,
        None if fixed is None else fixed.confidence,
    )


@lru_cache(maxsize=256)
def _way(loss: str, margin: float, start: str) -> tuple[np.ndarray, np.ndarray]:
    d1, d2 = STARTS[start]
    found = path(settings_of(loss, margin), (0.0, -d1, -d2), steps=STEPS)
    largest = 1 / np.exp(found.logits - found.logits.max(1, keepdims=True)).sum(1)
    return found.distances[:, 1:], largest


def rolls(margin: float, start: str) -> tuple[dict[str, Roll], np.ndarray]:
    """Every loss's ball at steps that lie densely at first, and those steps. Spatial smoothing rolls like cross-entropy here and is left out."""
    at = np.unique(np.geomspace(1, STEPS + 1, 56).round().astype(int)) - 1
    found = {}
    for loss in LOSSES:
        if loss != "SVLS":
            distances, confidence = _way(loss, _own(loss, margin), start)
            found[loss] = Roll(distances[at], confidence[at])
    return found, at


def first_screen(margin: float, start: str, height: int) -> None:
    """The margin's valley, its flat floor up to m, and the balls of all losses over it."""
    figure = _balls(margin, start, height)
    st.plotly_chart(figure, width="stretch", key="margin-paths", alt=description(figure), config=CONFIG)


@lru_cache(maxsize=96)
def _balls(margin: float, start: str, height: int) -> Any:
    """The figure of the first screen: every visitor of this m sees the same one."""
    found, at = rolls(margin, start)
    return paths(found, at, ground=ground("margin", margin, arrows=False), beside=False, height=height)


def fixed_sentence(margin: float) -> str:
    """Where the ball of the margin loss comes to rest, and label smoothing's beside it."""
    here, smooth = (fixed_point_of(settings_of(loss, margin), CLASSES) for loss in ("margin", "LS"))
    assert here is not None and smooth is not None  # both have a weight
    same = abs(here.distance - smooth.distance) < 1e-6
    return (
        f"The star: with m = {margin:g} one pixel of three classes that is fitted perfectly comes to rest, in the end, "
        f"at a distance of {here.distance:.2f} "
        f"and a confidence of "
        f"{here.confidence:.4f}"
        + (
            ": the very point of label smoothing. Below it a smaller m changes the way there and not its end."
            if same
            else f"; label smoothing pulls it back to {smooth.distance:.2f} and {smooth.confidence:.3f}, however sure it has the right to be."
        )
    )


def pushes(margin: float, start: str) -> None:
    """Penalty and slope of all losses, in tabs of which only the open one computes."""
    st.subheader("What each loss pushes")
    names = ("One distance", "Two distances, all losses", "As a surface", "The way, step by step")
    draw = (_profiles, _valleys, _surface, _steps)
    for tab, show in zip(
        st.tabs(names, key="push", on_change="rerun", bind="query-params"), draw, strict=True
    ):
        if tab.open:
            with tab:
                show(margin, start)
    st.caption(
        f"{HINT} The penalty is what a loss adds to cross-entropy; weights are those of each loss's published code."
    )


def _draw(figure: object, key: str) -> None:
    if said := sentence_of(figure):
        st.markdown(f"**{said}**")
    st.plotly_chart(figure, width="stretch", key=key, alt=description(figure), config=CONFIG)


@lru_cache(maxsize=64)
def _profile(loss: str, margin: float) -> Profile:
    return profile(settings_of(loss, margin), ALONG, CLASSES, border=True)


def _profiles(margin: float, start: str) -> None:
    at = np.array(ALONG)
    found = {loss: _profile(loss, _own(loss, margin)) for loss in LOSSES if loss != "CE"}
    ends = {loss: fixed_point_of(settings_of(loss, margin), CLASSES) for loss in found}
    _draw(
        profile_chart(
            at,
            {loss: p.values for loss, p in found.items()},
            {loss: p.slopes for loss, p in found.items()},
            margin,
            fixed={loss: f.distance for loss, f in ends.items() if f is not None and f.distance <= at[-1]},
        ),
        "margin-profile",
    )
    st.caption(
        f"{TITLES['SVLS'].capitalize()} is drawn for a pixel on a straight border, where it differs from cross-entropy; inside an area "
        f"it is cross-entropy."
    )


def _valleys(margin: float, start: str) -> None:
    _draw(
        valleys([ground(loss, _own(loss, margin)) for loss in LOSSES if loss not in ("CE", "SVLS")]),
        "margin-valleys",
    )


def _surface(margin: float, start: str) -> None:
    shown = [loss for loss in LOSSES if loss not in ("CE", "SVLS")]
    loss = st.segmented_control(
        "Penalty of",
        shown,
        default="margin",
        required=True,
        format_func=TITLES.__getitem__,
        key="surface",
        bind="query-params",
    )
    _draw(surface(ground(str(loss), _own(str(loss), margin)), start=STARTS[start]), "margin-surface")


def _steps(margin: float, start: str) -> None:
    found, at = rolls(margin, start)
    figure = paths(found, at, beside=True)
    _draw(figure, "margin-steps")
