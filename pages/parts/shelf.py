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
from core.lab.pool import painter
from core.lab.promise import Scored, score
from core.lab.study import Split, shipped_study, split_study
from core.lab.study import spread as study_spread
from core.settings import CoverageSettings, knobs

KNOBS = knobs(CoverageSettings)
RUNNER = Runner(keep=0)
"""Runs the networks on uploads, one at a time in this process. It keeps no result: an upload belongs to one visitor."""

DATA_FOLDER = "PLUMBLINE_{}_DATA"
"""Environment variable that says where a real study's images lie on this server, such as PLUMBLINE_POLYP_DATA."""


@lru_cache(maxsize=128)
def split(model: str, alpha: float, seed: int) -> Split:
    """A study's split, calibrated and evaluated."""
    return split_study(shipped_study(model), alpha, seed)


@lru_cache(maxsize=32)
def spread(model: str, alpha: float, seed: int) -> dict[str, np.ndarray]:
    """Coverage of CRC and COAT over 1,000 draws."""
    return study_spread(shipped_study(model), alpha, seed)


@lru_cache(maxsize=512)
def pool_image(model: str, name: str) -> tuple[np.ndarray, np.ndarray] | None:
    """Picture and mask of a pool image, or None where this server cannot show it."""
    folder = os.environ.get(DATA_FOLDER.format(model.upper()))
    paint = painter(shipped_study(model), Path(folder) if folder else None)
    return paint(name) if paint else None


@lru_cache(maxsize=256)
def scored_pool_image(model: str, name: str) -> Scored | None:
    """A pool image after the networks have seen it, or None where its picture is not here."""
    found = pool_image(model, name)
    return None if found is None else score(found[0], model, name)


def alpha_slider(label_visibility: str = "visible") -> float:
    """The α slider, the same on every page, its value in the address."""
    knob = KNOBS["alpha"]
    return float(
        st.slider(
            knob.label,
            float(knob.low or 0),
            float(knob.high or 1),
            float(knob.default),
            float(knob.step or 0.01),
            key="alpha",
            bind="query-params",
            help=knob.help,
            label_visibility=label_visibility,  # type: ignore[arg-type]
        )
    )


def model_and_seed() -> tuple[str, int]:
    """What the header says."""
    model = st.session_state.get("model") or KNOBS["model"].default
    return str(model), int(st.session_state.get("seed", KNOBS["seed"].default))


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
