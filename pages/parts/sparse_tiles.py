"""Small pictures for the screen, and what a first layer makes of one at all severities: computed once for a picture and a corruption, then only read.

A visitor's own pictures are remembered in the visitor's session, drawn ones for everybody.
"""

from __future__ import annotations

from collections import OrderedDict
from typing import Any

import numpy as np
import streamlit as st

from core.images.display import to_display
from core.lab.sparse_look import Look, looks
from core.lab.sparse_view import Severity
from pages.parts import sparse_pictures

TILE = 160
"""Width of a picture: four in a row on a desk, two on a telephone."""
KEPT = 12

Six = tuple[tuple[Look, Look], ...]
"""The first layer at severities 0 to 5, each at the trained and at the adapted λ."""


def six_of(
    net: str, view: Severity | None, of: sparse_pictures.Chosen, index: int, corruption: str, seed: int
) -> Six:
    """The first layer at all severities, at the trained and at the adapted λ, from memory where it has been seen."""
    lam: tuple[float, ...] = ()
    if view is not None and view.threshold.size and np.isfinite(view.threshold[:, 0]).all():
        lam = tuple(view.threshold[:, 0].tolist())
    if not of.owner:
        return _shared(net, of.key, index, corruption, lam, seed, of.pictures.images[index : index + 1])
    memory: OrderedDict[Any, Six] = st.session_state.setdefault("sparse-looks", OrderedDict())
    key = (net, of.key, index, corruption, lam, seed)
    if key not in memory:
        memory[key] = _looked(net, of.pictures.images[index : index + 1], corruption, lam, seed)
        while len(memory) > KEPT:
            memory.popitem(last=False)
    return memory[key]


@st.cache_resource(max_entries=96, show_spinner=False)
def _shared(
    key: str, of: Any, index: int, corruption: str, lam: tuple[float, ...], seed: int, _images: np.ndarray
) -> Six:
    """As `_looked`, for all visitors; the other arguments say which images these are."""
    return _looked(key, _images, corruption, lam, seed)


def _looked(key: str, images: np.ndarray, corruption: str, lam: tuple[float, ...], seed: int) -> Six:
    return looks(key, images, corruption, np.array(lam) if lam else None, seed)


def large(picture: np.ndarray, to: int = 160) -> np.ndarray:
    """A small picture for the screen, every pixel a square."""
    shown = to_display(picture)
    times = max(1, round(to / max(shown.shape[:2])))
    return np.repeat(np.repeat(shown, times, 0), times, 1)


def tiles(pictures: list[tuple[np.ndarray, str, str]], width: int = TILE) -> None:
    """Pictures in a row that breaks where it must: array, caption, alt text."""
    with st.container(horizontal=True, gap="small"):
        for picture, caption, alt in pictures:
            with st.container(width=width, gap=None):
                st.image(large(picture), width=width, caption=caption, alt=alt)
