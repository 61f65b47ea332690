"""What the parts of the sparse page share: names of corruptions, a figure under its sentence or without its player, controls that the page moves."""

from __future__ import annotations

from typing import Any

import streamlit as st

from core.data.corruptions import BLURS, DIGITALS, NOISES, WEATHERS
from core.figures.temperature_frame import description, sentence_of
from core.lab.sparse_words import CORRUPTION_WORDS
from pages.parts.screen import on_phone

CONFIG = {"displayModeBar": False}
PLAYER = 56
"""Pixels that a figure keeps for its player."""
EVERY = 4
"""Of many layers every fourth has its name at the axis; all have it under the pointer and in the alt text."""
FAMILIES: dict[str, tuple[str, ...]] = {
    "noise": NOISES,
    "blur": BLURS,
    "weather": WEATHERS,
    "digital": DIGITALS,
}
FAMILY_OF = {name: family for family, names in FAMILIES.items() for name in names}
"""Corruption -> its family."""


def words_of(corruption: str) -> str:
    """A corruption as a chooser calls it."""
    return CORRUPTION_WORDS.get(corruption, corruption.replace("_", " "))


def chart(figure: Any, key: str, said: bool = True) -> None:
    """A figure under its sentence."""
    sentence = sentence_of(figure)
    if said and sentence:
        st.markdown(f"**{sentence}**")
    st.plotly_chart(figure, width="stretch", key=key, alt=description(figure), config=CONFIG)


def stilled(figure: Any, height: int, many: bool = False) -> Any:
    """Take a figure's player away: the page's own control moves it, and marks glide to their new places.

    Args:
        figure: Drawn `PLAYER` pixels higher than it is to be.
        height: Its height without the player.
        many: Rows stand close: few names and small marks.
    """
    figure.frames = ()
    bottom = figure.layout.margin.b or PLAYER
    figure.layout.updatemenus, figure.layout.sliders = (), ()
    figure.update_layout(height=height, margin={"b": max(bottom - PLAYER, 36)})
    figure.update_layout(transition={"duration": 400, "easing": "cubic-in-out"})
    figure.for_each_annotation(_shorter)
    if many:
        names = figure.layout.yaxis.ticktext
        at = list(range(0, len(names), EVERY))
        figure.update_yaxes(
            tickvals=at, ticktext=[names[k] for k in at], tickfont={"size": 11}, selector={"anchor": "x"}
        )
        figure.update_traces(marker={"size": 7}, selector={"mode": "markers"})
    return figure


def _shorter(annotation: Any) -> None:
    """The name of the thin lines, in a panel that is too narrow for it."""
    if annotation.text == "sparsity (solid) and error (dashed)":
        annotation.update(text="sparsity, error (dashed)", x=1, xanchor="right")


def put(key: str, value: Any) -> None:
    """Move a control before it is drawn. `usual` must give its default, since Streamlit takes either a default or a value."""
    st.session_state[key] = value
    st.session_state.setdefault("sparse-put", set()).add(key)


def usual(key: str, default: Any) -> Any:
    """Default of a control, None where the page has just moved it."""
    moved: set[str] = st.session_state.get("sparse-put", set())
    if key in moved:
        moved.discard(key)
        return None
    return default


def narrow(key: str) -> bool:
    """Whether charts of several panels stand under one another."""
    return bool(st.toggle("Narrow screen", on_phone(), key=f"{key}-narrow", help="Panels under one another."))
