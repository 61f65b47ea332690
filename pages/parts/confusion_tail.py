"""What a memory over batches forgets of a rare class, and what Λ adds: the two switches of the regularizer on one column.

It draws; `core.lab.tail_view.remembered` replays the memories over drawn batches.
"""

from __future__ import annotations

import numpy as np
import streamlit as st

from core.figures.confusion_tail import TailColumn, tail_column
from core.lab.tail_names import WEIGHT_WORDS, label_of
from core.lab.tail_view import BATCH, WEIGHTS, Moment, Remembered, remembered
from core.lab.tail_words import memory_words
from core.settings import knobs
from core.settings.car import MEMORIES, CarSettings
from pages.parts.confusion_evidence import panels

KNOBS = knobs(CarSettings)
BETAS = (0.0, 0.5, 0.9, 0.97)


def show(both: tuple[Moment, Moment]) -> None:
    """Class, memory, Λ and β; the column; what it comes to in numbers."""
    now = both[0]
    st.subheader("What a batch forgets")
    st.markdown(
        f"CAR sees errors through batches of {BATCH}, and a rare class is in few of them. What its memory makes of a batch that lacks the class "
        "decides how much the class counts; Λ is meant to lift rare classes. Switch both and watch one column."
    )
    there = np.flatnonzero(now.tested > 0)
    if not len(there):
        st.info(
            "No class of this set has a test image, so there is no column to follow.", icon=":material/info:"
        )
        return
    column = _class(now, [int(k) for k in there])
    memory, weights, beta = _switches()
    seen = remembered(now, column, beta)
    w = seen.weights[weights]
    found = tail_column(
        TailColumn(
            name=label_of(now.classes[column]),
            classes=[label_of(name) for name in now.classes],
            truth=seen.truth,
            present=seen.seen > 0,
            memories={m: seen.held[m] for m in dict.fromkeys(("naive", memory))},
            presence=seen.presence,
            beta=beta,
            weight=float(w[column]),
            head_weight=float(w[0]),
        )
    )
    panels(found, "confusion-tail", widths=(3, 2))
    for sentence in memory_words(seen, now.classes[column], memory, weights):
        st.markdown(sentence)
    _table(seen)
    st.caption(
        f"Batches are drawn with the training frequencies of {len(now.classes)} classes, and each sample errs as {now.title} does on new images "
        f"after epoch {now.epoch + 1}; in training it is the soft errors on training images that count. Shares under the naive memory are "
        "in closed form: 1 − (1 − m)ᴮ, m the class's share of the training images and B the batch."
    )


def _class(now: Moment, there: list[int]) -> int:
    """The class that is followed, the rarest one at first; in the address."""
    names = {label_of(now.classes[k]): k for k in there}
    chosen = st.selectbox(
        "Class, from the most to the least frequent",
        list(names),
        index=len(names) - 1,
        key="class",
        bind="query-params",
    )
    return names[str(chosen)]


def _switches() -> tuple[str, str, float]:
    one, two, three = st.columns([4, 3, 3], gap="medium")
    with one:
        memory = st.segmented_control(
            KNOBS["memory"].label,
            MEMORIES,
            default="naive",
            required=True,
            key="memory",
            bind="query-params",
            help=KNOBS["memory"].help,
        )
    with two:
        weights = st.segmented_control(
            KNOBS["weighted"].label,
            WEIGHTS,
            default="sum",
            required=True,
            format_func=WEIGHT_WORDS.__getitem__,
            key="weights",
            bind="query-params",
            help=f"{KNOBS['weighted'].help} {KNOBS['frequency'].help}",
        )
    with three:
        beta = st.segmented_control(
            KNOBS["beta"].label,
            BETAS,
            default=0.5,
            required=True,
            format_func=lambda b: f"{b:g}",
            key="beta",
            bind="query-params",
            help=KNOBS["beta"].help,
        )
    return str(memory), str(weights), float(beta if beta is not None else 0.5)


def _table(seen: Remembered) -> None:
    """How much of the truth each pair of switches sees, beside the most frequent class."""
    st.dataframe(
        [
            {"Memory": memory} | {WEIGHT_WORDS[w]: seen.scale(memory, w) for w in WEIGHTS}
            for memory in MEMORIES
        ],
        column_config={
            "Memory": st.column_config.TextColumn("Memory", pinned=True),
            **{
                WEIGHT_WORDS[w]: st.column_config.NumberColumn(
                    WEIGHT_WORDS[w],
                    format="%.2f",
                    help="What this class's errors count beside those of the most frequent class, as a multiple of the truth. 1 is fair.",
                )
                for w in WEIGHTS
            },
        },
        hide_index=True,
        width="stretch",
        key="confusion-scale",
        alt="What the class's errors count under each memory and each Λ, as a multiple of the truth",
    )
