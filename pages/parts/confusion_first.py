"""The first screen of the confusion page: two methods and an epoch, the bars of recall, the matrix with its top pair, and three figures.

It draws; `core.lab.tail_view` reads the records and `core.lab.tail_words` finds the words.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import streamlit as st
from streamlit.delta_generator import DeltaGenerator

from core.figures.confusion_bars import MANY, recall_bars
from core.figures.confusion_look import NUMBERED
from core.figures.confusion_maps import confusion_map, difference_map
from core.figures.temperature_frame import description
from core.lab.tail_names import label_of
from core.lab.tail_shelf import TailRecord
from core.lab.tail_view import Moment, epochs_of, moment
from core.lab.tail_words import headline, metrics, seeds_words
from pages.parts.confusion_evidence import compact

HEIGHT = 300
CONFIG = {"displayModeBar": False}


LEGIBLE = 8
"""Up to so many classes the bars of two methods are thick enough for numbers; beyond, hovering gives them."""


@dataclass(frozen=True)
class Shown:
    """What the visitor compares.

    Attributes:
        first: The first method at the chosen epoch.
        second: The second one.
        runs: The two whole runs.
    """

    first: Moment
    second: Moment
    runs: tuple[TailRecord, TailRecord]

    @property
    def labels(self) -> list[str]:
        """K names of classes as charts write them."""
        return [label_of(name) for name in self.first.classes]

    @property
    def brief(self) -> tuple[str, str]:
        """Both methods in few letters: without what stands in brackets, where that tells them apart."""
        whole = (self.first.title, self.second.title)
        cut = (whole[0].partition(" (")[0], whole[1].partition(" (")[0])
        return cut if cut[0] != cut[1] else whole


def two_methods(records: Mapping[str, TailRecord], chosen: str) -> tuple[str, str]:
    """The two methods that are compared, in the address."""
    there, found = [*records], []
    for place, key, wanted, words in zip(
        st.columns(2, gap="small"),
        ("first", "second"),
        ("ce", chosen),
        ("Trained with", "beside"),
        strict=True,
    ):
        with place:
            found.append(
                str(
                    st.selectbox(
                        words,
                        there,
                        index=there.index(wanted) if wanted in there else len(there) - 1,
                        format_func=lambda m: records[m].title if m in records else m,
                        key=key,
                        bind="query-params",
                    )
                )
            )
    return found[0], found[1]


def epoch_slider(runs: tuple[TailRecord, TailRecord]) -> int:
    """The epoch from 0; the slider counts from 1 and holds those that are recorded. In the address."""
    kept = [e + 1 for e in epochs_of(runs)]
    at = st.session_state.get("epoch")
    gone = (
        isinstance(at, int) and at not in kept
    )  # another set, with other epochs: the slider falls back to its default
    default = min(kept, key=lambda e: abs(e - int(at))) if gone else kept[-1]
    return (
        int(
            st.select_slider(
                f"Epoch, of {len(runs[0].singular)} (seed {runs[0].seed})",
                kept,
                value=default,
                key="epoch",
                bind="query-params",
                help="How far training has come. Recorded are some of the epochs, the last one among them.",
            )
        )
        - 1
    )


def switch(shown: Shown) -> str:
    """Whose matrix is on the right: `first`, `second` or `difference`, in the address."""
    names = dict(zip(("first", "second"), shown.brief, strict=True)) | {"difference": "difference"}
    return str(
        st.segmented_control(
            "Matrix",
            list(names),
            default="first",
            required=True,
            format_func=names.__getitem__,
            key="matrix",
            bind="query-params",
            help="Columns are true classes, rows what they are called. The difference is the second method minus the first.",
        )
    )


def bars(shown: Shown) -> None:
    """Recall of each class under both methods, training images as outlines."""
    both = {m.method: m for m in (shown.first, shown.second)}
    figure = recall_bars(
        {k: m.test for k, m in both.items()},
        shown.labels,
        train={k: m.train for k, m in both.items()},
        counts=shown.first.counts,
        titles=dict(zip((shown.first.method, shown.second.method), shown.brief, strict=True)),
        height=HEIGHT,
    )
    figure.update_layout(legend={"font": {"size": 12}})
    if len(shown.labels) <= MANY:  # bars are thin here: small print, and room for who is worst
        figure.update_traces(textfont={"size": 11}, selector={"type": "bar"})
        figure.update_traces(insidetextfont={"size": 11}, selector={"type": "bar"})
        figure.update_traces(textfont={"size": 11}, selector={"name": "worst"})
        if len(shown.labels) > LEGIBLE and len(both) > 1:
            figure.update_traces(textposition="none", selector={"type": "bar"})
        figure.update_xaxes(range=[0, 138])
    st.plotly_chart(figure, width="stretch", key="confusion-bars", alt=description(figure), config=CONFIG)


def matrix(shown: Shown, which: str) -> None:
    """One confusion matrix with its top pair, or the difference of both."""
    if which == "difference":
        figure = difference_map(
            shown.first.test,
            shown.second.test,
            shown.labels,
            methods=(shown.first.title, shown.second.title),
            height=HEIGHT,
        )
    else:
        of = shown.first if which == "first" else shown.second
        figure = confusion_map(of.test, shown.labels, of.spectrum, method=of.title, height=HEIGHT)
    if len(shown.labels) <= NUMBERED:
        compact(figure)
    st.plotly_chart(figure, width="stretch", key="confusion-matrix", alt=description(figure), config=CONFIG)


def figures(shown: Shown, cells: list[DeltaGenerator], rows: Sequence[Mapping[str, Any]]) -> None:
    """Overall, worst classes and σ₁, first → second, and below each what all seeds come to."""
    names, over = shown.brief, seeds_words(shown.first, shown.second, rows)
    for cell, (label, (before, after, help)), seeds in zip(
        cells, metrics(shown.first, shown.second).items(), over, strict=True
    ):
        cell.metric(
            f"{label}, {names[0]} → {names[1]}",
            f"{before} → {after}",
            seeds or None,
            delta_color="off",
            delta_arrow="off",
            help=f"{help} {shown.first.title} → {shown.second.title}, seed 0.",
        )


def told(shown: Shown) -> str:
    """The headline, or what is lacking for it."""
    try:
        return headline(shown.first, shown.second)
    except ValueError as nothing:
        return f"No headline for {shown.first.title}: {nothing}"


def show(
    records: Mapping[str, TailRecord], chosen: str, title: DeltaGenerator, rows: Sequence[Mapping[str, Any]]
) -> Shown | None:
    """Headline, bars, matrix and metrics; returns what is compared, None where the runs keep no matrix."""
    left, right = st.columns([5, 5.2], gap="medium")
    with left:
        first, second = two_methods(records, chosen)
    runs = (records[first], records[second])
    with right:
        slide, choose = st.columns([4, 5], gap="small")
    try:
        with slide:
            epoch = epoch_slider(runs)
        shown = Shown(moment(runs[0], epoch), moment(runs[1], epoch), runs)
    except ValueError as problem:
        title.header("These runs keep no confusion matrix.")
        st.info(str(problem), icon=":material/info:")
        return None
    title.header(told(shown))
    with choose:
        which = switch(shown)
    with left:
        bars(shown)
    with right:
        matrix(shown, which)
    figures(shown, st.columns(3, gap="medium"), rows)
    return shown
