"""The card of the confusion page on the start page: a small spectrum of two methods, who pays, and the link; the link alone without records."""

from __future__ import annotations

import streamlit as st

from core.figures.confusion_spectrum import spectrum_mini
from core.lab import tail_shelf
from core.lab.tail_answer import chosen_car
from core.lab.tail_names import SETS
from core.lab.tail_view import moment
from core.lab.tail_words import headline
from pages.parts import shelf


def show() -> None:
    """Draw it into the place where it is called."""
    st.markdown(
        "**Confusion** · Who pays for the accuracy? Which classes are given up to the frequent ones, and what does CAR do about it?"
    )
    try:
        _mini()
    except (FileNotFoundError, ValueError) as problem:
        st.caption(str(problem))
    shelf.way_to("confusion", "Open Confusion", ":material/call_split:")


def _mini() -> None:
    """Spectrum and headline of the first recorded set, at the last epoch.

    Raises:
        FileNotFoundError: Nothing is recorded.
        ValueError: No epoch or no test image is.
    """
    data = next(iter(tail_shelf.sets()), tail_shelf.SETS[0])
    found = tail_shelf.records(data)
    best = chosen_car(tail_shelf.table(), data)
    shown = [m for m in ("ce", "car-count" if best is None else str(best["name"])) if m in found]
    if not shown:
        raise ValueError(f"Neither CE nor CAR is recorded of {SETS[data]} yet.")
    last = [moment(found[m], int(found[m].epochs[-1])) for m in shown]
    said = headline(last[0], last[-1])
    chart = spectrum_mini(
        {m.method: m.spectrum for m in last}, titles={m.method: m.title for m in last}, height=250
    )
    st.altair_chart(chart, width="stretch", key="mini-confusion")
    st.caption(
        f"Singular values of the errors on {SETS[data].lower()}, the largest first: grey cross-entropy, blue CAR. {said}"
    )
