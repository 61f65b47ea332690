"""*Upload your own* on the margin page: logits or probabilities with labels, their reliability diagram, every metric, and what one temperature does.

It draws; `core.lab.margin_own*` read and measure, `margin_own_drop` keeps the files. Everything lives in the visitor's session only.
"""

from __future__ import annotations

import json
import time
import uuid
from typing import Any

import streamlit as st

from core.figures.export import to_png, to_svg
from core.lab.margin_own import Own
from core.lab.margin_own_charts import own_diagram, scaling_diagram
from core.lab.margin_own_measure import Measured, measure
from core.lab.margin_own_report import own_reliability_report
from core.lab.margin_own_words import (
    dice_sentence,
    facts,
    headline,
    image_rows,
    metric_rows,
    one_digit,
    overlap_rows,
    scaling_sentence,
    scope_sentence,
    surest,
)
from core.lab.take_away import to_csv
from core.margin.reliability import brier, ece, nll
from pages.parts import margin_own_drop, shelf

SCOPES = {"all": "everything", "foreground": "foreground"}


def show() -> None:
    """The drop zone, what was found, and the answer."""
    st.markdown(
        "Bring what your model said, with the truth, and see whether it can be believed: its reliability diagram, ECE and its relatives in both "
        "scopes, overlap, and what one temperature would repair. Neither model nor images are needed."
    )
    drop, check = st.columns([2, 3], gap="medium")
    with drop:
        files = margin_own_drop.drop_here()
    with check:
        own = margin_own_drop.check(files)
    if own is None:
        return
    try:
        found = _measured(own)
    except ValueError as problem:
        st.warning(shelf.plain(str(problem)), icon=":material/info:")
        return
    _results(found)


def _measured(own: Own) -> Measured:
    """The figures, from this session's memory or through the runner for uploads.

    Raises:
        ValueError: As in `core.lab.margin_own_measure.measure`.
    """
    seed = int(st.session_state.get("margin-own-seed", 0))
    kept: tuple[Own, int, Measured] | None = st.session_state.get("margin-own-measured")
    if kept is None or kept[0] is not own or kept[1] != seed:
        place = st.empty()
        session = str(st.session_state.setdefault("session-id", uuid.uuid4().hex))
        ticket = shelf.RUNNER.submit(
            (session, "margin-own", id(own), seed), lambda on_step: measure(own, seed, on_step)
        )
        try:
            while (state := ticket.state()).status in ("waiting", "running"):
                stage = state.facts.get("stage", "Measuring")
                said = f"Place {state.place} in the queue …" if state.place else f"{stage} …"
                place.progress(min(state.done / state.total, 1.0) if state.total else 0.0, said)
                time.sleep(0.1)
            kept = (own, seed, ticket.result())
        finally:
            ticket.leave()
            place.empty()
        st.session_state["margin-own-measured"] = kept
    return kept[2]


def _results(found: Measured) -> None:
    scope = str(
        st.segmented_control(
            "What is counted", list(SCOPES), default="all", required=True, format_func=SCOPES.__getitem__, key="margin-own-scope",
            help="Foreground: only where the truth is not class 0.",
        )
    )  # fmt: skip
    st.markdown(f"#### {headline(found, scope)}")
    table = found.whole.pooled(scope)
    if not table.pixels:
        _take_home(found, scope)
        return
    with st.container(horizontal=True, gap="medium"):
        st.metric(
            "ECE",
            one_digit(ece(table)),
            width="content",
            help="Mean distance of what is said from what is true, over 15 bins.",
        )
        st.metric(
            "Sure → right", f"{one_digit(table.overall_confidence)} → {one_digit(table.overall_accuracy)}", width="content",
            help="Mean confidence, and the share that is right.",
        )  # fmt: skip
        st.metric(
            "Brier score",
            f"{brier(table):.4f}",
            width="content",
            help="Squared distance of probabilities from the truth; lower is better.",
        )
        st.metric(
            "NLL",
            f"{nll(table):.4f}",
            width="content",
            help="Mean of −log p of the true class, in nats; lower is better.",
        )
    st.markdown(surest(found, scope))
    st.caption(scope_sentence(scope))
    left, right = st.columns([2, 3], gap="medium")
    with left:
        st.markdown("**As it is**")
        st.altair_chart(own_diagram(found, scope), width="stretch", key="margin-own-diagram")
    with right:
        st.markdown("**What one temperature would do**")
        scaling = found.scaling
        if scaling is not None and scaling.before.pooled(scope).pixels:
            st.altair_chart(scaling_diagram(found, scope), width="stretch", key="margin-own-scaling")
    words, seed = st.columns([5, 1], gap="medium", vertical_alignment="bottom")
    words.markdown(scaling_sentence(found, scope))
    seed.number_input(
        "Seed of the halves", 0, 999, 0, key="margin-own-seed", help="Draws the two halves anew."
    )
    _tables(found, scope)
    _take_home(found, scope)


METRIC_COLUMNS = {
    "part": st.column_config.TextColumn("Of"),
    "scope": st.column_config.TextColumn("Counted"),
    "metric": st.column_config.TextColumn("Metric"),
    "pooled": st.column_config.NumberColumn(
        "Pooled", format="%.4f", help="Every counted pixel counts the same."
    ),
    "mean_over_images": st.column_config.NumberColumn(
        "Mean over images", format="%.4f", help="Every image with a counted pixel counts the same."
    ),
    "sd_over_images": st.column_config.NumberColumn(
        "Deviation", format="%.4f", help="Standard deviation over images."
    ),
    "images": st.column_config.NumberColumn("Images"),
    "images_without": st.column_config.NumberColumn(
        "Without", help="Images with nothing in this scope; left out of the mean."
    ),
    "pixels": st.column_config.NumberColumn("Pixels", format="localized"),
}
OVERLAP_COLUMNS = {
    "class": st.column_config.TextColumn("Class"),
    "dice": st.column_config.NumberColumn("Dice", format="%.3f"),
    "hd95": st.column_config.NumberColumn("HD95", format="%.2f"),
    "asd": st.column_config.NumberColumn("ASD", format="%.2f"),
    "unit": st.column_config.TextColumn("Distances in"),
    "images": st.column_config.NumberColumn("Images"),
    "both_empty": st.column_config.NumberColumn("In neither"),
    "missed": st.column_config.NumberColumn("Missed"),
    "invented": st.column_config.NumberColumn("Invented"),
}


def _tables(found: Measured, scope: str) -> None:
    rows = sorted(metric_rows(found), key=lambda r: r["scope"] != scope)
    st.markdown("**All figures**")
    st.dataframe(
        _known(rows), hide_index=True, width="stretch", height=250, key="margin-own-metrics", column_order=list(METRIC_COLUMNS),
        column_config=METRIC_COLUMNS,
    )  # fmt: skip
    for note in found.notes:
        st.caption(note)
    if said := dice_sentence(found):
        st.markdown(said)
        st.dataframe(
            _known(overlap_rows(found)), hide_index=True, width="stretch", key="margin-own-overlap", column_config=OVERLAP_COLUMNS,
        )  # fmt: skip


def _known(rows: list[dict[str, object]]) -> list[dict[str, object]]:
    """Rows without NaN, which tables cannot show."""
    return [{k: None if v != v else v for k, v in row.items()} for row in rows]


def _take_home(found: Measured, scope: str) -> None:
    with st.container(horizontal=True, gap="small"):
        _button("Report (HTML)", lambda: own_reliability_report(found, scope).encode(), "html", "text/html")
        _button("Figures (CSV)", lambda: to_csv(metric_rows(found)), "csv", "text/csv")
        _button("Images (CSV)", lambda: to_csv(image_rows(found)), "images.csv", "text/csv")
        _button("Everything (JSON)", lambda: _json(found), "json", "application/json")
        if found.whole.pooled(scope).pixels:
            _button("Diagram (PNG)", lambda: to_png(own_diagram(found, scope)), "png", "image/png")
            _button("Diagram (SVG)", lambda: to_svg(own_diagram(found, scope)), "svg", "image/svg+xml")


def _json(found: Measured) -> bytes:
    return json.dumps(facts(found), indent=1, allow_nan=False).encode()


def _button(label: str, make: Any, ending: str, mime: str) -> None:
    st.download_button(
        label, make, f"plumbline-reliability.{ending}", mime, key=f"margin-own-take-{ending}", on_click="ignore", icon=":material/download:"
    )  # fmt: skip
