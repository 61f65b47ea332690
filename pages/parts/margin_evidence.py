"""The evidence of the losses: their logit distances, and the table of all losses on all sets. It draws; `core.lab` computes."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import streamlit as st

from core.figures.margin_distances import distance_histogram
from core.lab.margin_answer import choice_sentence, table_sentences
from core.lab.margin_record import COMMAND, DICE_SLACK, TITLES, LossRecord
from core.lab.margin_words import SETS, title_of

SCALES = {"dice": 100, "hd95": 1, "ece_fg": 100, "ece_all": 100, "cece_fg": 100, "cece_all": 100}
"""Figures of the table in the order of its columns, and what each is multiplied by: shares become per cent."""

COLUMNS = {
    "Set": st.column_config.TextColumn("Set", pinned=True),
    "Loss": st.column_config.TextColumn("Loss", pinned=True),
    "m": st.column_config.TextColumn("m", help="The margin, chosen on a validation part.", width=50),
    "dice": st.column_config.Column("Dice, %", help="Mean overlap over foreground classes and images."),
    "hd95": st.column_config.Column(
        "HD95, px",
        help="95th percentile of the distance between the borders, in pixels of the network's grid.",
    ),
    "ece_fg": st.column_config.Column(
        "ECE fg, %", help="Pixels whose truth is foreground, as the paper of the margin loss counts."
    ),
    "ece_all": st.column_config.Column("ECE all, %", help="All pixels that are no padding."),
    "cece_fg": st.column_config.Column(
        "CECE fg, %", help="Classwise: the same, averaged over the probabilities of all classes."
    ),
    "cece_all": st.column_config.Column("CECE all, %", help="Classwise, over all pixels."),
}


def distances(records: Mapping[str, LossRecord], chosen: Sequence[str], margin: float) -> None:
    """Where the logit distances of the recorded networks lie, with m drawn in."""
    st.subheader("How far apart the logits lie")
    losses = st.pills(
        "Losses shown; with none chosen, the two that are compared above",
        [k for k in TITLES if k in records],
        selection_mode="multi",
        format_func=TITLES.__getitem__,
        key="distances",
        bind="query-params",
    )
    shown = [k for k in TITLES if k in (losses or chosen)]
    counted = {k: records[k].distances.sum(0, dtype="float64") for k in shown}
    one = records[shown[0]]
    edges = np.where(
        np.isfinite(one.edges), one.edges, 2 * one.edges[-2] - one.edges[-3]
    )  # the open bin is drawn as wide as the others
    chart = distance_histogram(
        edges,
        counted,
        margin,
        scope=f"all classes but the predicted one, all pixels, {len(one.names)} images",
        titles={k: title_of(records[k]) for k in shown},
    )
    st.altair_chart(chart, width="stretch", key="margin-distances-chart")
    st.caption(
        "Distances up to m are free; what lies beyond is what a margin of m pulls back. The slider above moves the line only: a "
        "network keeps the margin "
        "that it was trained with."
    )


def table(rows: Sequence[Mapping[str, Any]], choices: Sequence[Mapping[str, Any]], data: str) -> None:
    """All losses on all sets, mean ± standard deviation over seeds, and how m was chosen."""
    st.subheader("All losses, all sets")
    if not rows:
        st.info(
            f"The table of all losses is empty. Make it with: `{COMMAND}`",
            icon=":material/info:",
        )
        return
    ordered = sorted(
        rows, key=lambda r: (r["data"] != data, [*SETS].index(r["data"]), [*TITLES].index(r["loss"]))
    )
    st.dataframe(
        styled([_words(r) for r in ordered], ordered, SCALES),
        column_config=COLUMNS,
        hide_index=True,
        width="stretch",
        height=min(36 * (len(ordered) + 1) + 4, 420),
        key="margin-table",
        alt="Table of all losses on all sets: Dice, HD95 and calibration errors, mean and deviation over seeds",
    )
    st.caption(
        "Mean ± standard deviation over seeds. A click on a column's head sorts by the mean. Lower is better for HD95 and the errors. "
        "Calibration errors "
        "are pooled: every counted pixel of the test images counts the same. One seed has no deviation."
    )
    for sentence in table_sentences(rows):
        st.markdown(sentence)
    if choices:
        with st.expander("How m was chosen", icon=":material/straighten:"):
            _choices(choices, data)


def _words(row: Mapping[str, Any]) -> dict[str, str]:
    m = row.get("margin")
    return {"Set": SETS[row["data"]], "Loss": TITLES[row["loss"]], "m": "" if m is None else f"{m:g}"}


def styled(
    words: Sequence[Mapping[str, str]], rows: Sequence[Mapping[str, Any]], scales: Mapping[str, float]
) -> Any:
    """A table of numbers that sort, shown as `6.1 ± 0.4`.

    Args:
        words: Cells of words, one dictionary a row.
        rows: The figures of the same rows, with their deviations under `_sd` where known.
        scales: Figure -> what it is multiplied by, in the order of the columns.
    """
    import pandas as pd

    cells = [
        {**w, **{k: _number(r.get(k)) * scale for k, scale in scales.items()}}
        for w, r in zip(words, rows, strict=True)
    ]
    style = pd.DataFrame(cells).style
    for i, r in enumerate(rows):
        for k, scale in scales.items():
            shown = _with_deviation(_number(r.get(f"{k}_sd")) * scale)
            style = style.format(shown, na_rep="–", subset=pd.IndexSlice[[i], [k]])
    return style


def _with_deviation(sd: float) -> Any:
    return lambda mean: f"{mean:.1f}" + ("" if math.isnan(sd) else f" ± {sd:.1f}")


def _number(value: Any) -> float:
    return math.nan if value is None else float(value)


def _choices(choices: Sequence[Mapping[str, Any]], data: str) -> None:
    of_set = [r for r in choices if r["data"] == data]
    if said := choice_sentence(of_set):
        st.markdown(said)
    st.dataframe(
        [
            {
                "Set": SETS[r["data"]],
                "m": r["margin"],
                "Dice": r["dice"],
                "ECE, foreground": r["ece_fg"],
                "ECE, all pixels": r["ece_all"],
                "Chosen": r["chosen"],
            }
            for r in choices
        ],
        column_config={
            "m": st.column_config.NumberColumn("m", format="%g"),
            "Dice": st.column_config.NumberColumn("Dice", format="percent"),
            "ECE, foreground": st.column_config.NumberColumn("ECE, foreground", format="percent"),
            "ECE, all pixels": st.column_config.NumberColumn("ECE, all pixels", format="percent"),
            "Chosen": st.column_config.CheckboxColumn("Chosen"),
        },
        hide_index=True,
        width="stretch",
        key="margin-choices",
        alt="Validation figures of the margins that were tried, with the chosen one marked",
    )
    st.caption(
        "On the validation part of one seed, before anybody looked at the test images: the lowest ECE on the foreground among "
        "those whose Dice lies within "
        f"{100 * DICE_SLACK:g} points of the best."
    )
