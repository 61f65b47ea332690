"""Confusion: who pays for the accuracy? Which classes a classifier of a long tail gives up, where their errors go, and what CAR does about it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import streamlit as st

from core.car.ema import remember
from core.car.metrics import survival
from core.car.regularizer import CAR
from core.car.soft_confusion import soft_confusion, soft_flow
from core.car.spectral_norm import top_pair
from core.car.spectrum import Spectrum
from core.car.weights import class_weights
from core.lab import tail_shelf
from core.lab.tail_answer import chosen_car
from core.lab.tail_names import ABOUT, SETS
from core.lab.tail_shelf import SETS as EVERY_SET
from core.lab.tail_shelf import TailRecord
from core.lab.tail_words import how_sure, left_out_words
from pages import header
from pages.parts import (
    confusion_evidence,
    confusion_first,
    confusion_images,
    confusion_own,
    confusion_table,
    confusion_tail,
    confusion_train,
    lesson,
)

USUAL = "car-count"
"""The method beside CE where no validation part has chosen one."""


WHAT = (
    "CE is cross-entropy, the usual loss; CAR adds α σ₁, σ₁ the largest singular value of the confusion matrix of the training errors. Columns of a "
    "matrix are what is true, rows what it is called."
)
"""What the words on the first screen mean, before the first of them is used."""

MORE = (
    "CAR's matrix is a soft version of the counted one, which training can follow; it is kept in a memory over batches (EMA), and rare classes are "
    "weighted up in it (Λ). A matrix has a *spectrum*, its singular values: of the counted matrix of K classes, √K σ₁ bounds the error of the worst."
)
"""What the words below it mean."""


def records_of(data: str) -> tuple[Mapping[str, TailRecord], str]:
    """The recorded runs of a set, and why there are none."""
    try:
        found = tail_shelf.records(data)
    except (FileNotFoundError, ValueError) as problem:
        return {}, str(problem)
    return found, "" if found else f"Nothing is recorded of {SETS[data]} yet."


Rows = Sequence[Mapping[str, Any]]


def rows_of() -> tuple[Rows, Rows, str]:
    """The table of all runs, that of another network, and why there is none."""
    try:
        return tail_shelf.table(), tail_shelf.other_networks(), ""
    except (FileNotFoundError, ValueError) as problem:
        return (), (), str(problem)


def set_chooser() -> str:
    """The set, in the address: those that are recorded, or all where none is."""
    there = tail_shelf.sets() or EVERY_SET
    return str(
        st.segmented_control(
            "Set",
            there,
            default=there[0],
            required=True,
            format_func=SETS.__getitem__,
            key="set",
            bind="query-params",
            label_visibility="collapsed",
        )
    )


def assumed(shown: confusion_first.Shown | None, rows: Sequence[Mapping[str, Any]]) -> None:
    """What is promised and assumed: nothing, and what a bound is worth."""
    st.markdown(
        "**What is promised, and what it assumes.** Nothing is promised. Recalls are measurements on these test images: that they carry over "
        "assumes that the next image is drawn like them. √K σ₁ bounds the error of the worst class, and a bound is a bound: it grows with √K, is "
        "often above 1, and then it is vacuous. It is drawn beside the truth below. CAR pushes σ₁ of the training errors down; no theorem says "
        "that the worst class of new images follows."
    )
    if shown is None:
        return
    st.caption(how_sure(shown.first, shown.second, rows))
    if said := left_out_words(shown.first):
        st.caption(said)
    of_train = f"Training recall is that of epoch {shown.first.train_epoch + 1}, without augmentation"
    near = "" if shown.first.train_epoch == shown.first.epoch else ", the nearest one that was recorded"
    st.caption(
        f"{ABOUT[shown.first.data]}, {int(shown.first.counts.sum()):,} training images of 32 × 32 pixels. {of_train}{near}."
    )


def main() -> None:
    """Draw the page."""
    with header.place():
        data = set_chooser()
    title = st.empty()
    st.caption(WHAT)
    records, problem = records_of(data)
    rows, others, lacking = rows_of()
    best = chosen_car(rows, data)
    shown = None
    if records:
        shown = confusion_first.show(records, USUAL if best is None else str(best["name"]), title, rows)
    else:
        title.header(
            f"Nothing is recorded of {SETS[data]} here; bring a classifier of your own, or train one below."
        )
        st.info(problem, icon=":material/info:")
    st.caption(MORE)
    assumed(shown, rows)
    if shown is not None:
        confusion_evidence.show(shown.first, shown.second, shown.runs)
        confusion_tail.show((shown.first, shown.second))
    confusion_table.show(rows, others, lacking, data)
    confusion_images.show(data)
    st.subheader("Your own classifier")
    confusion_own.show()
    st.subheader("Train it here")
    confusion_train.show()
    lesson.show("confusion")
    lesson.formula(FORMULAS)
    lesson.code([soft_flow, soft_confusion, remember, class_weights, top_pair, CAR, Spectrum, survival])


FORMULAS = [
    (
        "How much of a sample q of class y flows to a wrong class i: a gate that opens as i overtakes y, times the probability of i.",
        r"c_q[i]=\sigma(f_i-f_y+\gamma)\;p_i,\qquad p=\mathrm{softmax}(f/T),\qquad c_q[y]=0",
    ),
    (
        "The soft confusion matrix of a batch: rows are what is said, columns what is true; column j is the mean over the samples of class j; "
        "that of a class without a sample is zero.",
        r"\tilde C_{ij}=\frac1{n_j}\sum_{q:\,y_q=j}c_q[i]",
    ),
    (
        "A memory keeps it over batches. The naive one averages the matrices; *present only* does so in the columns of classes that the batch holds; "
        "*count* averages sums and numbers of samples apart and divides at the end.",
        r"\bar C\leftarrow\beta\,\bar C+(1-\beta)\,\tilde C\qquad\text{or}\qquad \bar C_{\cdot j}=\frac{\bar N_{\cdot j}}{\bar n_j},\quad "
        r"\bar N_{\cdot j}\leftarrow\beta\,\bar N_{\cdot j}+(1-\beta)\sum_{q:\,y_q=j}c_q,\quad \bar n_j\leftarrow\beta\,\bar n_j+(1-\beta)\,n_j",
    ),
    (
        "CAR adds the largest singular value to cross-entropy, with rare classes weighted up by Λ, whose w is divided by its mean. The gate σ(·) is "
        "a constant for the gradient, and so is what the memory holds of earlier batches: one batch pulls with α (1 − β).",
        r"L=\mathrm{CE}+\alpha\,\sigma_1\big(\bar C\,\Lambda\big),\qquad \Lambda=\mathrm{diag}(w),\quad w_j\propto(m_j+r_0)^{-1/2}",
    ),
    (
        "What σ₁ bounds: the error of class j, a column's sum, is at most",
        r"\mathrm{err}_j\ \le\ \frac{\sqrt K\,\sigma_1(E\,\Lambda)}{w_j}\qquad(\text{vacuous from 1 on})",
    ),
    (
        "What the naive memory makes of class j, whose share of the training images is m_j, with batches of B: in expectation",
        r"\mathbb E\,\bar C_{\cdot j}=\big(1-(1-m_j)^B\big)\;C_{\cdot j}",
    ),
]

main()
