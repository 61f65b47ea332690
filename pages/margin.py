"""Margin: can you believe 0.9? How often a network is right where it says how sure it is, under each loss, and what each loss does to a pixel."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass

import streamlit as st
from streamlit.delta_generator import DeltaGenerator

from core.figures.margin_reliability import reliability_diagram
from core.lab import margin_record
from core.lab.margin_record import COMPARED, TITLES, LossRecord
from core.lab.margin_sets import CLASSES, MARGIN_SETS
from core.lab.margin_words import (
    SETS,
    THINGS,
    figures,
    headline,
    how_sure,
    loss_words,
    one_digit,
    pooled,
    title_of,
)
from core.margin.losses import label_smoothing, logit_distances, margin_loss, margin_penalty
from core.margin.penalty import fixed_point
from core.margin.reliability import classwise_ece, ece
from core.margin.temperature import fit_temperature
from pages import header
from pages.parts import (
    lesson,
    margin_bridge,
    margin_evidence,
    margin_look,
    margin_own,
    margin_train,
    margin_valley,
)

HEIGHT = 315
SCOPES = {"foreground": "foreground", "all pixels": "all"}


@dataclass(frozen=True)
class Asked:
    """What the visitor compares.

    Attributes:
        data: The set.
        scope: "foreground" or "all".
        first: Short name of the first loss.
        second: Of the second.
    """

    data: str
    scope: str
    first: str
    second: str


def records_of(data: str) -> tuple[Mapping[str, LossRecord], str]:
    """The recorded networks of a set, and why there are none."""
    try:
        found = margin_record.records(data)
    except (FileNotFoundError, ValueError) as problem:
        return {}, str(problem)
    return found, "" if found else f"Nothing is recorded of {SETS[data].lower()} yet."


def set_and_scope() -> tuple[str, str]:
    """The set and which of its pixels count, in the address."""
    data = st.segmented_control(
        "Set",
        MARGIN_SETS,
        default="polyp",
        required=True,
        format_func=SETS.__getitem__,
        key="set",
        bind="query-params",
        label_visibility="collapsed",
    )
    words = st.segmented_control(
        "Pixels that count",
        list(SCOPES),
        default="all pixels",
        required=True,
        key="scope",
        bind="query-params",
        label_visibility="collapsed",
    )
    return str(data), SCOPES[str(words)]


def two_losses(there: list[str]) -> tuple[str, str]:
    """The two losses that are compared, in the address."""
    chosen = []
    for place, key, wanted, words in zip(
        st.columns(2, gap="small"),
        ("first", "second"),
        ("CE", "margin"),
        ("Trained with", "beside"),
        strict=True,
    ):
        with place:
            chosen.append(
                str(
                    st.selectbox(
                        words,
                        there,
                        index=there.index(wanted) if wanted in there else 0,
                        format_func=TITLES.__getitem__,
                        key=key,
                        bind="query-params",
                    )
                )
            )
    return chosen[0], chosen[1]


def scope_words(asked: Asked, record: LossRecord) -> str:
    """Which pixels a diagram counts."""
    which = (
        f"pixels whose truth is {' or '.join(CLASSES[asked.data][1:])}"
        if asked.scope == "foreground"
        else "all pixels"
    )
    return f"{which}, {len(record.names)} images"


def reliability(asked: Asked, records: Mapping[str, LossRecord]) -> None:
    """Diagrams of the two losses, with how many pixels each bar stands for."""
    chosen = list(dict.fromkeys((asked.first, asked.second)))
    chart = reliability_diagram(
        {k: pooled(records[k], asked.scope) for k in chosen},
        scope_words(asked, records[asked.first]),
        titles={k: title_of(records[k]) for k in chosen},
        sentence=False,
        height=HEIGHT,
    )
    st.altair_chart(chart, width="stretch", key="margin-reliability")


def metrics(asked: Asked, records: Mapping[str, LossRecord], cells: list[DeltaGenerator]) -> None:
    """ECE in both scopes and Dice, first → second."""
    before, after = (figures(records[k]) for k in (asked.first, asked.second))
    rows = {
        "ece_fg": (
            "ECE, foreground",
            f"Mean distance of what is said from what is true, on pixels of true {THINGS[asked.data]}.",
        ),
        "ece_all": ("ECE, all pixels", "The same over every pixel that is no padding."),
        "dice": (
            "Dice",
            "Overlap of prediction and truth, mean over images and foreground classes: what calibration must not cost.",
        ),
    }
    for cell, (key, (label, help)) in zip(cells, rows.items(), strict=True):
        values = [one_digit(f[key]) if not math.isnan(f[key]) else "–" for f in (before, after)]
        cell.metric(
            f"{label}, {asked.first} → {asked.second}",
            " → ".join(values),
            help=f"{help} {TITLES[asked.first]} → {TITLES[asked.second]}. One network each, seed 0; the table below has the mean of three.",
        )


def assumed(asked: Asked, records: Mapping[str, LossRecord], margin: float) -> None:
    """What is promised and assumed: nothing, and what a measurement is worth."""
    st.markdown(
        "**What is promised, and what it assumes.** Nothing is promised. ECE is a measurement on these images: that it carries over "
        "assumes that the next "
        "image is drawn like them, and no loss here guarantees a value of it. A promise needs a calibration set; the bridge below shows one."
    )
    if asked.scope == "foreground":
        st.markdown(
            "Counted are only pixels whose *truth* is foreground, as the paper of the margin loss does. That conditions on the label: "
            "where a perfect model "
            "says 30\u00a0%, three of ten pixels are foreground, and only those are looked at. So even a perfect model has an error above "
            "zero in this "
            "scope; compare losses by it, and look at all pixels too."
        )
    if records:
        trained = [
            f"m = {r.margin:g}" for k in (asked.first, asked.second) if (r := records[k]).margin is not None
        ]
        seeds = "Bars, headline and metrics are of one network for each loss (seed 0); the table below has the mean of all seeds."
        if trained:
            seeds += (
                f" The margin's was trained with {trained[0]}; the slider moves the valley, not the bars."
            )
        st.caption(seeds)
        st.caption(how_sure(records[asked.first], records[asked.second], asked.scope))
    st.caption(margin_valley.fixed_sentence(margin))


def main() -> None:
    """Draw the page."""
    with header.place():
        data, scope = set_and_scope()
    title = st.empty()
    records, problem = records_of(data)
    left, right = st.columns([5.3, 5], gap="medium")
    with left:
        asked = Asked(data, scope, *two_losses([k for k in TITLES if k in records] or [*COMPARED]))
        if records:
            title.header(told(asked, records))
            reliability(asked, records)
        else:
            st.info(problem, icon=":material/info:")
    with right:
        slider, chooser = st.columns(2, gap="small")
        with slider:
            margin = margin_valley.margin_slider()
        with chooser:
            start = margin_valley.start_chooser()
        margin_valley.first_screen(margin, start, HEIGHT)
    if not records:
        title.header(
            f"With m = {margin:g} a margin leaves logit distances up to {margin:g} alone; nothing is recorded here to compare."
        )
    if records:
        metrics(asked, records, st.columns(3, gap="medium"))
    assumed(asked, records, margin)
    margin_valley.pushes(margin, start)
    if records:
        margin_evidence.distances(records, (asked.first, asked.second), margin)
    margin_look.show(asked.data, records, asked.scope)
    evidence_of_all(asked)
    st.subheader("Your own model")
    margin_own.show()
    st.subheader("Train it here")
    margin_train.show()
    lesson.show("margin")
    lesson.formula(FORMULAS)
    lesson.code(
        [
            logit_distances,
            margin_penalty,
            margin_loss,
            label_smoothing,
            fixed_point,
            ece,
            classwise_ece,
            fit_temperature,
        ]
    )


def told(asked: Asked, records: Mapping[str, LossRecord]) -> str:
    """The headline, or what is lacking for it."""
    try:
        return headline(records[asked.first], records[asked.second], asked.scope)
    except ValueError as nothing:
        return f"No headline for {loss_words(records[asked.first])}: {nothing}"


def evidence_of_all(asked: Asked) -> None:
    """Tables of all sets; what is not recorded says so in its place."""
    found = []
    for read in (margin_record.table, margin_record.choices, margin_record.bridge):
        try:
            found.append(read())
        except (FileNotFoundError, ValueError) as problem:
            found.append(())
            st.info(str(problem), icon=":material/info:")
    table, choices, bridge = found
    margin_evidence.table(table, choices, asked.data)
    margin_bridge.show(bridge, asked.data, asked.scope)


FORMULAS = [
    (
        "The distance of each logit from the largest one of its pixel, and the margin loss: cross-entropy and what lies beyond m, "
        "mean over pixels and classes.",
        r"d_k=\max_j l_j-l_k\ \ge 0,\qquad L=\mathrm{CE}+w\,\frac1{PK}\sum_{p,k}\max(0,\ d_{pk}-m)",
    ),
    (
        "Label smoothing is cross-entropy and a linear penalty on signed distances, whose target is that all are zero: a uniform, "
        "uninformative prediction.",
        r"L_{\mathrm{LS}}=\mathrm{CE}+a\,\frac1K\sum_k\,(l_y-l_k)",
    ),
    (
        "One perfectly fitted pixel of K classes comes to rest at",
        r"d^*=\max\Big(m,\ \log\big(\tfrac Kw-(K-1)\big)\Big),\qquad \text{confidence}=\frac1{1+(K-1)\,e^{-d^*}}",
    ),
    (
        "ECE over 15 equal bins of confidence: mean distance of what is said from what is true, weighted by pixels.",
        r"\mathrm{ECE}=\sum_{b=1}^{15}\frac{|B_b|}{P}\,\Big|\overline{\mathrm{conf}}(B_b)-\mathrm{acc}(B_b)\Big|",
    ),
    (
        "Temperature scaling divides all logits by one number, fitted on a validation part; the predicted class stays.",
        r"T^*=\arg\min_T\ \frac1P\sum_p-\log\mathrm{softmax}(l_p/T)_{y_p}",
    ),
]

main()
