"""*Upload your own* on the confusion page: the spectrum of a visitor's own classifier, its worst class, and what feeds it.

It draws; `core.lab.tail_own*` read and measure, `confusion_own_drop` keeps the files. Everything lives in the visitor's session only.
"""

from __future__ import annotations

import json
from typing import Any

import streamlit as st

from core.figures.confusion_bars import recall_bars
from core.figures.confusion_flow import flow
from core.figures.confusion_maps import confusion_map
from core.figures.confusion_spectrum import spectrum
from core.figures.temperature_frame import description
from core.lab.tail_own import OwnMatrix
from core.lab.tail_own_measure import OwnAnswer, measure_matrix
from core.lab.tail_own_report import own_confusion_report
from core.lab.tail_own_words import (
    bound_sentence,
    chance_sentence,
    class_rows,
    facts,
    flow_rows,
    flow_sentence,
    headline,
    left_out_sentence,
    percent,
    spectrum_sentence,
    survival_sentence,
)
from core.lab.take_away import to_csv
from pages.parts import confusion_own_drop, shelf

MOST_CELLS = 200
"""A map of more classes than this is not drawn: its cells would be smaller than a pixel and the page heavy."""

WEIGHTS = {"none": "no weights", "sum": "Λ, the paper's", "max": "Λ, by the largest"}


def show() -> None:
    """The drop zone, what was found, and the answer."""
    st.markdown(
        "Bring what your own classifier said, with the truth, and see who pays for its accuracy: the recall of each class, the worst one and what it "
        "is taken for, the spectrum of its errors, and what σ₁ promises beside the truth. Neither model nor images are needed."
    )
    drop, check = st.columns([2, 3], gap="medium")
    with drop:
        files = confusion_own_drop.drop_here()
    with check:
        own = confusion_own_drop.check(files)
        answer = None if own is None else _answer(own)
    if answer is not None:
        _results(answer)


def _measured(own: OwnMatrix, weighting: str) -> OwnAnswer:
    """The figures, kept for this visit."""
    kept: tuple[OwnMatrix, dict[str, OwnAnswer]] | None = st.session_state.get("confusion-own-measured")
    if kept is None or kept[0] is not own:
        kept = (own, {})
        st.session_state["confusion-own-measured"] = kept
    if weighting not in kept[1]:
        with st.spinner("Measuring …"):
            kept[1][weighting] = measure_matrix(own, weighting)
    return kept[1][weighting]


def _answer(own: OwnMatrix) -> OwnAnswer:
    """The control, the headline and what it is made of, beside the files."""
    weighting = "none"
    if own.counts is not None:
        weighting = str(
            st.segmented_control(
                "Weights of classes in the spectrum", list(WEIGHTS), default="none", required=True, format_func=WEIGHTS.__getitem__,
                key="confusion-own-weights", help="With Λ, errors of rare classes count more. Recalls stay; σ₁, its pair and the bound change.",
            )
        )  # fmt: skip
    answer = _measured(own, weighting)
    st.markdown(f"#### {shelf.plain(headline(answer))}")
    _metrics(answer)
    if said := flow_sentence(answer):
        st.markdown(shelf.plain(said))
    for sentence in (chance_sentence(answer), left_out_sentence(answer)):
        if sentence:
            st.caption(shelf.plain(sentence))
    return answer


def _results(answer: OwnAnswer) -> None:
    """Charts, the sentences under them, the table and the downloads."""
    _charts(answer)
    said = (spectrum_sentence(answer), bound_sentence(answer), survival_sentence(answer))
    st.markdown("\n\n".join(shelf.plain(s) for s in said if s))
    _table(answer)
    _take_home(answer)


def _metrics(answer: OwnAnswer) -> None:
    f = answer.figures
    with st.container(horizontal=True, gap="medium"):
        st.metric(
            "Overall", percent(f.overall), width="content",
            help="Mean over classes: how frequent they are is not known." if answer.own.alike else "Share of all samples that are right.",
        )  # fmt: skip
        st.metric(
            "Worst class",
            percent(f.worst),
            width="content",
            help="The lowest recall of a class with a sample.",
        )
        st.metric(
            "σ₁",
            f"{answer.spectrum.sigma:.2f}",
            width="content",
            help="Largest singular value of the matrix of error rates.",
        )
        b = answer.bound
        st.metric(
            "Bound → truth", "–" if b.worst_error != b.worst_error else f"{b.of_worst:.2f} → {b.worst_error:.2f}", width="content",
            help="What σ₁ promises of the worst class's error, √K σ₁ / w, and that error. A bound of 1 or more says nothing.",
        )  # fmt: skip
        s = answer.survival
        if s is not None:
            st.metric(
                "WR", "–" if s.wr != s.wr else f"{s.wr:.2f}", width="content",
                help="Test over training recall of the class that is worst on the test samples.",
            )  # fmt: skip


def _charts(answer: OwnAnswer) -> None:
    left, right = st.columns(2, gap="medium")
    with left:
        train = None if answer.train is None else {"own": answer.train_recall}
        _draw(
            recall_bars({"own": answer.figures.recall}, answer.classes, train=train, counts=answer.counts),
            "bars",
        )
    with right:
        if len(answer.classes) <= MOST_CELLS:
            _draw(
                confusion_map(answer.test, answer.classes, answer.spectrum, method="own"),
                "map",
            )
        else:
            st.caption(
                f"A map of {len(answer.classes):,} classes would have cells smaller than a pixel; the CSV and the JSON hold all of it."
            )
    if answer.perfect:
        return
    left, right = st.columns(2, gap="medium")
    with left:
        _draw(
            flow(
                answer.spectrum,
                answer.classes,
                method="own",
                counts=answer.counts,
            ),
            "flow",
        )
    with right:
        _draw(spectrum({"own": answer.spectrum}), "spectrum")


def _draw(figure: Any, key: str) -> None:
    st.plotly_chart(
        figure, width="stretch", key=f"confusion-own-{key}", alt=description(figure), config={"displayModeBar": False}
    )  # fmt: skip


COLUMNS = {
    "class": st.column_config.TextColumn("Class"),
    "trained_on": st.column_config.NumberColumn("Trained on", format="localized"),
    "test_samples": st.column_config.NumberColumn("Test samples", format="localized"),
    "recall": st.column_config.NumberColumn("Recall", format="percent"),
    "recall_low": st.column_config.NumberColumn(
        "95 %, from", format="percent", help="Wilson's interval for one class chosen beforehand."
    ),
    "recall_high": st.column_config.NumberColumn("to", format="percent"),
    "train_recall": st.column_config.NumberColumn("Training recall", format="percent"),
    "precision": st.column_config.NumberColumn("Precision", format="percent"),
    "most_called": st.column_config.TextColumn("Most often called"),
    "most_called_rate": st.column_config.NumberColumn("how often", format="percent"),
    "bound": st.column_config.NumberColumn("Bound of its error", format="%.2f"),
}


def _table(answer: OwnAnswer) -> None:
    rows = [{k: None if v != v else v for k, v in row.items()} for row in class_rows(answer)]
    shown = [k for k in COLUMNS if any(r[k] not in (None, "") for r in rows)]
    st.dataframe(
        rows, hide_index=True, width="stretch", height=min(40 + 35 * len(rows), 400), key="confusion-own-classes", column_order=shown,
        column_config=COLUMNS,
    )  # fmt: skip


def _take_home(answer: OwnAnswer) -> None:
    with st.container(horizontal=True, gap="small"):
        _button("Report (HTML)", lambda: own_confusion_report(answer).encode(), "html", "text/html")
        _button("Classes (CSV)", lambda: to_csv(class_rows(answer)), "classes.csv", "text/csv")
        if not answer.perfect:
            _button("Flows (CSV)", lambda: to_csv(flow_rows(answer, 200)), "flows.csv", "text/csv")
        _button(
            "Everything (JSON)",
            lambda: json.dumps(facts(answer), indent=1, allow_nan=False).encode(),
            "json",
            "application/json",
        )


def _button(label: str, make: Any, ending: str, mime: str) -> None:
    st.download_button(
        label, make, f"plumbline-confusion.{ending}", mime, key=f"confusion-own-take-{ending}", on_click="ignore", icon=":material/download:"
    )  # fmt: skip
