"""The card of the sparse page on the start page: λ against severity as a small line, the headline, and the link; the link alone without records."""

from __future__ import annotations

import streamlit as st

from core.data.corruptions import NOISES
from core.figures.sparse_severity import lambda_severity
from core.figures.temperature_frame import description
from core.lab import sparse_shelf
from core.lab.sparse_record import SparseRecord
from core.lab.sparse_view import measured, severity
from core.lab.sparse_words import headline
from pages.parts import shelf
from pages.parts.sparse_chart import CONFIG, PLAYER, stilled, words_of

HEIGHT = 250
AT = 3
"""Severity of the headline."""


def show() -> None:
    """Draw it into the place where it is called."""
    st.markdown(
        "**Sparse** · How much should a layer throw away? Every layer has a knob λ; damaged images ask for another setting, and a hundred of them "
        "without labels may find it."
    )
    try:
        _mini()
    except (FileNotFoundError, ValueError) as problem:
        st.caption(str(problem))
    shelf.way_to("sparse", "Open Sparse", ":material/blur_on:")


def _mini() -> None:
    """λ of the first network whose λ was trained, and its headline.

    Raises:
        FileNotFoundError: Nothing is recorded.
        ValueError: No such network is, or none of the noises was measured.
    """
    found = sparse_shelf.records()
    record: SparseRecord | None = next((r for r in found.values() if r.model == "tacsc" and r.cells), None)
    if record is None:
        raise ValueError("TA-CSC-18 is not recorded yet.")
    noises = [c for c in NOISES if c in measured(record)]
    if not noises:
        raise ValueError("No noise is recorded of TA-CSC-18 yet.")
    beside = next((r for r in found.values() if r.model == "resnet" and r.cells), None)
    view = severity(record, noises[0], beside)
    figure = lambda_severity(
        view.names, range(6), {words_of(noises[0]): view.threshold}, trained=view.trained, compact=True, height=HEIGHT + PLAYER
    )  # fmt: skip
    st.plotly_chart(
        stilled(figure, HEIGHT), width="stretch", key="mini-sparse", alt=description(figure), config=CONFIG
    )
    st.caption(f"λ that adaptation finds, by severity of {words_of(noises[0])}. {headline(view, AT)}")
