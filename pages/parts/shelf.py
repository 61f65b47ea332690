"""What pages keep between reruns: splits, drawn pictures and scores of the shipped studies, and each
visitor's own uploads.

Shipped things are shared by all visitors; uploads and everything made of them live in the visitor's own
session only.
"""

from __future__ import annotations

import os
import re
from functools import lru_cache
from pathlib import Path

import numpy as np
import streamlit as st

from core.lab.jobs import Runner
from core.lab.pool import Painter, painter
from core.lab.promise import Scored, score
from core.lab.sources import domain_of
from core.lab.study import Split, shipped_study, split_study
from core.lab.study import spread as study_spread
from pages.parts.choices import KNOBS, alpha_slider, model_and_seed

__all__ = [
    "DATA_FOLDER",
    "KNOBS",
    "RUNNER",
    "alpha_slider",
    "data_variable",
    "in_address",
    "model_and_seed",
    "plain",
    "pool_image",
    "scored_pool_image",
    "split",
    "spread",
    "way_to",
]

RUNNER = Runner(keep=0)
"""Runs the networks on uploads, one at a time in this process. It keeps no result: an upload belongs to one visitor."""

DATA_FOLDER = "PLUMBLINE_{}_DATA"
"""Environment variable that says where a domain's images lie on this server, such as PLUMBLINE_POLYP_DATA."""


def data_variable(model: str) -> str:
    """The environment variable of a study's domain: all its base networks look at the same pictures."""
    return DATA_FOLDER.format(domain_of(model).upper())


@lru_cache(maxsize=128)
def split(model: str, alpha: float, seed: int, delta: float | None = None) -> Split:
    """A study's split, calibrated and evaluated."""
    return split_study(shipped_study(model), alpha, seed, delta=delta)


@lru_cache(maxsize=32)
def spread(model: str, alpha: float, seed: int, delta: float | None = None) -> dict[str, np.ndarray]:
    """Coverage of CRC and COAT over 1,000 draws."""
    return study_spread(shipped_study(model), alpha, seed, delta=delta)


@lru_cache(maxsize=16)
def _painter(domain: str, folder: str | None) -> Painter | None:
    """How to see a domain's pictures; the folder is listed once."""
    return painter(domain, Path(folder) if folder else None)


def pool_image(model: str, name: str) -> tuple[np.ndarray, np.ndarray] | None:
    """Picture and mask of a pool image, or None where this server cannot show it."""
    return _pool_image(domain_of(model), name, os.environ.get(data_variable(model)))


@lru_cache(maxsize=256)
def _pool_image(domain: str, name: str, folder: str | None) -> tuple[np.ndarray, np.ndarray] | None:
    paint = _painter(domain, folder)
    try:
        return paint(name) if paint else None
    except FileNotFoundError:  # a folder that holds a part of the set only
        return None


@lru_cache(maxsize=128)
def _scored(model: str, name: str, folder: str | None) -> Scored | None:
    found = _pool_image(domain_of(model), name, folder)
    return None if found is None else score(found[0], model, name)


def scored_pool_image(model: str, name: str) -> Scored | None:
    """A pool image after the networks have seen it, or None where its picture is not here."""
    return _scored(model, name, os.environ.get(data_variable(model)))


def way_to(address: str, label: str, icon: str) -> None:
    """A link to another page of the app, within the same session; a plain link where there is no navigation (tests)."""
    ways = st.session_state.get("ways")
    if ways:
        st.page_link(ways[address], label=label, icon=icon)
    else:
        st.markdown(f"[{label}](/{address})")


def plain(text: str) -> str:
    """A text that somebody else chose (a file's name), with nothing in it that Markdown would take for a sign."""
    return re.sub(r"([\\`*_{}\[\]()#+\-!|<>$~:])", r"\\\1", text)


def in_address(name: str, value: str) -> None:
    """Write a value into the address unless it is there already."""
    if st.query_params.get(name) != value:
        st.query_params[name] = value
