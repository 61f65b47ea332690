"""The evidence of two methods on one set: matrices side by side, the flow of errors, the spectrum, the bound beside the truth, and the film.

It draws; `core.lab.tail_view` reads and `core.lab.tail_words` finds the words. Only the open tab computes.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import streamlit as st

from core.figures.confusion_bound import sigma_over_epochs
from core.figures.confusion_flow import fitting_unit, flow
from core.figures.confusion_given import Panel
from core.figures.confusion_maps import pair_maps
from core.figures.confusion_spectrum import spectrum
from core.figures.confusion_story import story
from core.figures.temperature_frame import description, sentence_of
from core.lab.tail_names import WEIGHT_WORDS, label_of
from core.lab.tail_shelf import TailRecord
from core.lab.tail_view import WEIGHTS, Moment, head_first, sigma_line, spectra_of
from core.lab.tail_words import bound_words
from pages.parts.screen import on_phone

CONFIG = {"displayModeBar": False}
MAP_HEIGHT = 380
TABS = (
    "Side by side",
    "Which classes flow into which",
    "The spectrum",
    "σ₁, its bound, the truth",
    "Play it over epochs",
)


def show(first: Moment, second: Moment, runs: tuple[TailRecord, TailRecord]) -> None:
    """Five views in tabs."""
    st.subheader("How the errors are spread")
    draw = (_maps, _flows, _spectrum, _bound, _film)
    for tab, one in zip(st.tabs(TABS, key="confusion-evidence", on_change="rerun"), draw, strict=True):
        if tab.open:
            with tab:
                one(first, second, runs)


def chart(figure: Any, key: str, said: bool = True) -> None:
    """A figure under its sentence."""
    sentence = sentence_of(figure)
    if said and sentence:
        st.markdown(f"**{sentence}**")
    st.plotly_chart(figure, width="stretch", key=key, alt=description(figure), config=CONFIG)


def panels(found: Sequence[Panel], key: str, wide: int = 2, widths: Sequence[float] | None = None) -> None:
    """Charts that belong together, beside one another where there is room, each under its title; their one sentence over all of them.

    Args:
        found: The charts.
        key: Of the elements.
        wide: How many stand beside one another at most.
        widths: Relative widths of a row.
    """
    sentence = next((s for p in found if (s := sentence_of(p.figure))), "")
    if sentence:
        st.markdown(f"**{sentence}**")
    for start in range(0, len(found), wide):
        row = found[start : start + wide]
        for at, (column, panel) in enumerate(
            zip(st.columns(widths or wide, gap="medium"), row, strict=False)
        ):
            with column:
                st.markdown(panel.title)
                chart(panel.figure, f"{key}-{start + at}", said=False)


def compact(figure: Any) -> Any:
    """A map without its colour bar and the name over it, for a place that is small and says both: numbers stand in the cells of few classes."""
    figure.update_traces(showscale=False, selector={"type": "heatmap"})
    figure.layout.annotations = ()
    figure.update_layout(margin={"t": 8})
    return figure


def _labels(now: Moment) -> list[str]:
    return [label_of(name) for name in now.classes]


def _maps(first: Moment, second: Moment, runs: tuple[TailRecord, TailRecord]) -> None:
    names = (first.title, second.title)
    three = pair_maps(
        first.test,
        second.test,
        _labels(first),
        spectra=(first.spectrum, second.spectrum),
        methods=names,
        height=MAP_HEIGHT,
    )
    titles = (*names, "Difference, second minus first")
    places = [*st.columns(2, gap="medium"), *st.columns(2, gap="medium")]
    for column, figure, title, key in zip(places, three, titles, ("first", "second", "apart"), strict=False):
        with column:
            st.markdown(f"**{title}**")
            chart(compact(figure), f"confusion-maps-{key}", said=False)
    if said := sentence_of(three[2]):
        places[3].markdown(said)
    places[3].caption(
        "Shares of each true class (column); the two maps have the same colours, the darker the more. The diagonal is recall, blue, and does not "
        "stretch the colours of the errors. Grey bars along the edges are the top singular pair. In the difference blue is better, orange worse."
    )


def _flows(first: Moment, second: Moment, runs: tuple[TailRecord, TailRecord]) -> None:
    unit = min(fitting_unit(m.spectrum) for m in (first, second))
    for column, now, key in zip(
        st.columns(2, gap="medium"), (first, second), ("first", "second"), strict=True
    ):
        with column:
            st.markdown(f"**{now.title}**")
            figure = flow(now.spectrum, _labels(now), method=now.title, counts=now.counts, unit=unit)
            chart(figure, f"confusion-flow-{key}", said=False)
            if said := sentence_of(figure):
                st.markdown(said)
    st.caption(
        "Left true classes, right what they are called. The top singular pair says which classes lose together (v) and into which they flow (u); the "
        "ribbons are its heaviest streams, as wide as the share of the true class that goes there, in both pictures alike."
    )


def _spectrum(first: Moment, second: Moment, runs: tuple[TailRecord, TailRecord]) -> None:
    both = {m.method: m for m in (first, second)}
    figure = spectrum({k: m.spectrum for k, m in both.items()}, titles={k: m.title for k, m in both.items()})
    chart(figure, "confusion-spectrum")
    st.caption(
        "Singular values of the error rates, the largest first. A steep start means that errors share one direction: many classes fall into the same "
        "few. CAR pushes the first one down and does not look at the others."
    )


def _bound(first: Moment, second: Moment, runs: tuple[TailRecord, TailRecord]) -> None:
    weights = str(
        st.segmented_control(
            "Weights",
            WEIGHTS,
            default="none",
            required=True,
            format_func=WEIGHT_WORDS.__getitem__,
            key="bound",
            bind="query-params",
            help="Λ times the error rates; the bound divides by a class's weight again.",
            label_visibility="collapsed",
        )
    )
    both = {r.method: r for r in runs}
    found = sigma_over_epochs(
        {k: sigma_line(r, weights) for k, r in both.items()},
        titles={k: r.title for k, r in both.items()},
        at=first.epoch,
    )
    panels(found, "confusion-bound")
    for now in {m.method: m for m in (first, second)}.values():
        st.markdown(f"- {bound_words(now, weights)}")


def _film(first: Moment, second: Moment, runs: tuple[TailRecord, TailRecord]) -> None:
    both = {r.method: head_first(r) for r in runs}
    names = {k: r.title for k, r in both.items()}
    if len(both) > 1 and runs[0].epochs.tolist() == runs[1].epochs.tolist():
        names["difference"] = "difference"
    narrow, which = st.columns([2, 5], vertical_alignment="bottom")
    with which:
        of = st.segmented_control(
            "Matrix of",
            list(names),
            default=next(iter(names)),
            required=True,
            format_func=names.__getitem__,
            key="film",
            label_visibility="collapsed",
        )
    with narrow:
        stacked = st.toggle("Narrow screen", on_phone(), key="stacked", help="Panels under one another.")
    figure = story(
        both,
        _labels(first),
        str(of),
        {r.method: spectra_of(r) for r in runs},
        counts=first.counts,
        titles={k: r.title for k, r in both.items()},
        stacked=stacked,
        at=first.epoch,
    )
    chart(figure, "confusion-film")
