"""All methods on all sets: what the worst classes cost, the table with its deviations, how the CAR row was chosen, what is learned and not
found again, and which part and setting of CAR matters, as the runs fell.

It draws; `core.lab.tail_answer` and `tail_parts` find the words.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import streamlit as st

from core.figures.confusion_dots import dots
from core.figures.confusion_parts import Effect, Setting, effects, setting_charts
from core.figures.palette import TAIL_COLOURS
from core.lab.tail_answer import choice_words, chosen_car, motive_words, rival_words, won_words
from core.lab.tail_names import SETS
from core.lab.tail_noise import chance_words
from core.lab.tail_parts import ablation_words, ablations, network_words, sensitivities, sensitivity_words
from pages.parts.confusion_evidence import chart, panels

SHARES = ("overall", "mean_recall", "tail", "worst", "worst_classes", "worst_classes_train", "macro_f1")
KEPT = (*SHARES, "wr", "sigma1", "bound")

COLUMNS = {
    "Set": st.column_config.TextColumn("Set", pinned=True),
    "Method": st.column_config.TextColumn("Method", pinned=True),
    "Chosen": st.column_config.TextColumn(
        "Chosen", help="The CAR row that the validation part chooses; the test images have no say.", width=70
    ),
    "Seeds": st.column_config.NumberColumn("Seeds", width=60),
    "overall": st.column_config.Column("Overall, %", help="Share of the test images that is right."),
    "mean_recall": st.column_config.Column("Mean recall, %", help="Every class counts the same."),
    "tail": st.column_config.Column(
        "Tail, %", help="Mean recall of the rare third, or of classes below 20 images."
    ),
    "worst": st.column_config.Column("Lowest, %", help="The lowest recall. A minimum is a noisy figure."),
    "worst_classes": st.column_config.Column(
        "Worst, %", help="Mean recall of the worst two; with more than ten classes, of the tail."
    ),
    "worst_classes_train": st.column_config.Column(
        "Worst, training, %", help="Mean recall of the worst classes on the training images."
    ),
    "macro_f1": st.column_config.Column("Macro F1, %"),
    "wr": st.column_config.Column(
        "WR", help="Test recall over training recall of the class that is worst on test images."
    ),
    "sigma1": st.column_config.Column(
        "σ₁", help="Largest singular value of the test errors, without weights."
    ),
    "bound": st.column_config.Column(
        "Bound", help="√K · σ₁ on the worst class's error. From 1 on it says nothing."
    ),
}


def show(
    rows: Sequence[Mapping[str, Any]], others: Sequence[Mapping[str, Any]], lacking: str, data: str
) -> None:
    """Answer, dots, table, choice, and below them what single parts do; a sentence where the table is not here."""
    st.subheader("All methods, all sets")
    if not rows:
        st.info(lacking or "No long-tail run is recorded here.", icon=":material/info:")
        return
    if said := won_words(rows):
        st.markdown(f"**{said}**")
    if said := chance_words(rows):
        st.markdown(said)
    if said := rival_words(rows):
        st.markdown(said)
    drawn = [
        r for r in rows if r["name"] in TAIL_COLOURS and not math.isnan(r["overall"] + r["worst_classes"])
    ]
    if drawn:
        panels(dots(drawn, set_titles=SETS), "confusion-dots")
    ordered = sorted((r for r in rows if "@" not in r["name"]), key=lambda r: r["data"] != data)
    st.dataframe(
        styled(ordered, rows),
        column_config=COLUMNS,
        hide_index=True,
        width="stretch",
        height=min(36 * (len(ordered) + 1) + 4, 580),
        key="confusion-table",
        alt="Table of all methods on all sets: accuracy, recall of rare and worst classes, and the spectrum, mean and deviation over seeds",
    )
    st.caption(
        "Mean ± standard deviation over seeds, on test images that chose nothing; one seed has no deviation. A click on a column's head sorts by the "
        "mean. Same network, schedule and images for every method of a set."
    )
    with st.expander("How the CAR row was chosen", icon=":material/rule:"):
        for name in dict.fromkeys(r["data"] for r in ordered):
            if said := choice_words(rows, name):
                st.markdown(said)
        st.caption(
            "Among rows that add CAR to cross-entropy alone, were trained with the most seeds and cost at most half a point overall on the "
            "validation part: the best mean recall of the worst classes there."
        )
    _motive(rows)
    _parts(rows)
    _settings(rows)
    if found := network_words(rows, others):
        st.subheader("Another network")
        for said in found:
            st.markdown(f"- {said}")


def _motive(rows: Sequence[Mapping[str, Any]]) -> None:
    """Learned and not found again: training against test recall of the worst classes, set by set."""
    found = [said for name in dict.fromkeys(r["data"] for r in rows) if (said := motive_words(rows, name))]
    if not found:
        return
    st.subheader("Learned, and found again?")
    st.markdown(
        "The paper's motive for CAR: a rare class fits its few training images and is not found among new ones. As it was measured here:"
    )
    for said in found:
        st.markdown(f"- {said}")


def _parts(rows: Sequence[Mapping[str, Any]]) -> None:
    """The ablations, drawn and in words."""
    found = ablations(rows)
    if not found:
        return
    st.subheader("Which part of CAR matters")
    figure = effects(
        [
            Effect(
                one.question,
                SETS[data],
                100 * d.worst,
                None if d.reach is None else 100 * d.reach,
                100 * d.overall,
            )
            for one in found
            for data, d in one.sets.items()
        ]
    )
    left, right = st.columns([3, 2], gap="medium")
    with left:
        chart(figure, "confusion-effects", said=False)
    with right:
        for one in found:
            st.markdown(f"- {ablation_words(one, len(found))}")
    st.caption(
        "With minus without, on the test images, as the runs fell, over the seeds that both have. After ±, and as bars, how far another seed would "
        "often move the difference (95 %): from the deviation over seeds of the methods with CAR, and of those without, that have several."
    )


def _settings(rows: Sequence[Mapping[str, Any]]) -> None:
    """The settings of CAR, each moved by itself."""
    found = sensitivities(rows)
    for name in dict.fromkeys(s.data for s in found):
        mine = [s for s in found if s.data == name]
        st.subheader(f"How much the settings matter, on {SETS[name].lower()}")
        st.caption(
            "Blue circles: the worst classes. Grey squares: overall. Dotted: the worst classes under CE at the same seed."
        )
        shown = [Setting(s.label, s.values, s.usual, s.worst, s.overall, s.reference, s.reach) for s in mine]
        panels(setting_charts(shown), f"confusion-settings-{name}", wide=4 if len(shown) > 2 else 2)
        for one in mine:
            st.markdown(f"- {sensitivity_words(one)}")
        st.caption(
            "One setting of CAR (count EMA) moved while the others stay, one seed each, test images. The usual value is bold. The grey band is for "
            "the circles alone: around the usual value's, as far as two seeds of one setting would often lie apart. Nothing was "
            "chosen here: the table has the usual values throughout."
        )


def styled(rows: Sequence[Mapping[str, Any]], every: Sequence[Mapping[str, Any]]) -> Any:
    """The table as numbers that sort, shown as `41.2 ± 1.3`; `every` row has a say in what is chosen."""
    import pandas as pd

    chosen = {(r["data"], one["name"]) for r in rows if (one := chosen_car(every, r["data"])) is not None}
    cells: list[dict[str, Any]] = [
        {
            "Set": SETS[r["data"]],
            "Method": r["method"],
            "Chosen": "chosen" if (r["data"], r["name"]) in chosen else "",
            "Seeds": len(r["seeds"]),
        }
        for r in rows
    ]
    shown: dict[str, Callable[[float], str]] = {}
    for k in KEPT:
        scale, digits = (100, 1) if k in SHARES else (1, 2)
        # Equal means are told apart by a trifle, so that each finds its own deviation.
        means = [scale * _number(r.get(k)) + 1e-9 * i for i, r in enumerate(rows)]
        texts = [
            _text(m, scale * _number(r.get(f"{k}_sd")), digits) for m, r in zip(means, rows, strict=True)
        ]
        shown[k] = dict(zip(means, texts, strict=True)).__getitem__
        for cell, mean in zip(cells, means, strict=True):
            cell[k] = mean
    return pd.DataFrame(cells).style.format(shown, na_rep="–")


def _text(mean: float, sd: float, digits: int) -> str:
    return f"{mean:.{digits}f}" + ("" if math.isnan(sd) else f" ± {sd:.{digits}f}")


def _number(value: Any) -> float:
    return math.nan if value is None else float(value)
