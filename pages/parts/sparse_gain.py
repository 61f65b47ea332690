"""What it brings and what it does not: the ablation, the λ that labels would have chosen, images and K, shift detection, a promise under shift.

Every gain stands beside BN alone and beside the ResNet's BN. It draws; records are read by `core.lab.sparse_view`, `shift_record` and
`sparse_medical`. Only the open tab computes.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

import streamlit as st

from core.conformal.words import percent
from core.figures.frame import listed
from core.figures.sparse_ablation import ablation as ablation_chart
from core.figures.sparse_samples import samples as samples_chart
from core.lab.sparse_record import SparseRecord
from core.lab.sparse_shelf import accuracy_of
from core.lab.sparse_view import (
    ADAPT_TITLES,
    SAMPLES,
    ablation,
    by_iterations,
    by_samples,
    measured,
    title_of,
)
from core.lab.sparse_words import ablation_words, iteration_words, recorded_words
from core.settings.tacsc import ADAPTATIONS
from pages.parts import sparse_oracle, sparse_shift
from pages.parts.sparse_chart import FAMILIES, chart, narrow, words_of
from pages.parts.sparse_first import Scene, now

TABS = (
    "What adapts",
    "The best λ there was",
    "Images and K",
    "λ as a shift detector",
    "A promise under shift",
)
GROUPS = {"noise": "four noises", "blur": "blurs", "weather": "weather", "digital": "digital"}
"""Family -> its name in the chart."""


def show(scene: Scene, records: Mapping[str, SparseRecord]) -> None:
    """Five views in tabs."""
    st.subheader("What it brings")
    compact = narrow("sparse-brings")
    for tab, name in zip(st.tabs(TABS, key="sparse-gain", on_change="rerun"), TABS, strict=True):
        if not tab.open:
            continue
        with tab:
            if name == TABS[3]:
                sparse_shift.detector(compact)
            elif name == TABS[4]:
                sparse_shift.promise(compact)
            elif scene.record is None:
                st.info(scene.problem, icon=":material/info:")
            elif name == TABS[0]:
                _adapts(scene, records, compact)
            elif name == TABS[1]:
                sparse_oracle.show(scene.record, compact)
            else:
                _images_and_k(scene.record, scene.beside, records, compact)


def _mean(record: SparseRecord, names: tuple[str, ...], adapt: str) -> float:
    values = [accuracy_of(record, name, adapt) for name in names]
    return sum(values) / len(values)


def _adapts(scene: Scene, records: Mapping[str, SparseRecord], compact: bool) -> None:
    record, beside = scene.record, scene.beside
    assert record is not None
    if beside is None:
        st.info(
            "The ResNet's own figures are not recorded yet. A gain is never shown without them: the chart waits; the table says what is there.",
            icon=":material/info:",
        )
    else:
        groups = {GROUPS[f]: names for f, names in FAMILIES.items()} | {"clean": ("clean",)}
        held = {g: names for g, names in groups.items() if math.isfinite(_mean(record, names, "none"))}
        if held:
            figure = ablation_chart(
                list(held),
                {way: [_mean(record, names, way) for names in held.values()] for way in ADAPTATIONS},
                resnet={
                    way: [_mean(beside, names, way) for names in held.values()] for way in ADAPTATIONS[:2]
                },
                network=title_of(record),
                compact=compact,
            )
            chart(figure, "sparse-ablation")
    under = _under(record)
    rows = ablation(records, under)
    st.markdown(ablation_words(rows))
    _table(rows)
    st.caption(
        f"Means over the severities, in per cent. {recorded_words(records)} Adaptation sees {SAMPLES} unlabelled test images under the same "
        "corruption and severity, and none of them is scored."
    )


def _under(record: SparseRecord) -> str:
    """What the table is about."""
    here, _ = now()
    offered = {"noises": "the four noises", "all": "all nineteen", "clean": "clean images"}
    if here in measured(record):
        offered[here] = words_of(here)
    if st.session_state.get("sparse-under") not in (None, *offered):
        st.session_state.pop("sparse-under")
    return str(
        st.segmented_control(
            "Under", list(offered), default="noises", required=True, format_func=lambda u: offered.get(u, words_of(u)), key="sparse-under"
        )
    )  # fmt: skip


def _table(rows: tuple[dict[str, Any], ...]) -> None:
    """One row a network, one column a way of adaptation."""
    shown: dict[str, dict[str, Any]] = {}
    for r in rows:
        line = shown.setdefault(r["key"], {"network": r["title"]})
        line[r["adapt"]] = 100 * r["accuracy"]
    columns: dict[str, Any] = {"network": st.column_config.TextColumn("Network")}
    columns |= {
        way: st.column_config.NumberColumn(ADAPT_TITLES[way], format="%.1f %%") for way in ADAPTATIONS
    }
    st.dataframe(
        [dict.fromkeys(ADAPTATIONS) | line for line in shown.values()],
        column_order=["network", *ADAPTATIONS],
        column_config=columns,
        hide_index=True,
        width="stretch",
        key="sparse-table",
        alt="Accuracy of every recorded network by what adapts",
    )


def _images_and_k(
    record: SparseRecord, beside: SparseRecord | None, records: Mapping[str, SparseRecord], compact: bool
) -> None:
    by_count, rows = by_samples(record), by_iterations(records)
    counts = sorted({r["samples"] for r in by_count if r["samples"]})
    known = {(r["adapt"], r["samples"]): r["accuracy"] for r in by_count}
    lines = {way: [known.get((way, n), math.nan) for n in counts] for way in ADAPTATIONS[1:]}
    lines["none"] = [known.get(("none", 0), math.nan)] * len(counts)
    several = rows if len(rows) > 1 else ()
    if not counts and not several:
        st.info("Neither other numbers of images nor other K are recorded yet.", icon=":material/info:")
        return
    figure = samples_chart(
        counts,
        {way: lines[way] for way in ADAPTATIONS},
        [r["iterations"] for r in several],
        {way: [r[way] for r in several] for way in ADAPTATIONS} if several else {},
        compact=compact,
    )
    chart(figure, "sparse-samples")
    if several:
        st.markdown(iteration_words(several))
    if beside is not None:
        by_bn = {r["samples"]: r["accuracy"] for r in by_samples(beside) if r["adapt"] == "bn"}
        held = [f"{percent(by_bn[n])} with {n}" for n in counts if n in by_bn]
        if held:
            st.markdown(f"A plain ResNet-18 with BN alone: {listed(held)} images.")
    st.caption(
        f"{title_of(record)} by unlabelled images{', and TA-CSC-18 by K' if several else ''}, under the four noises. K is part of the method: with "
        "few steps an error remains at λ = 0, and whether adaptation pushes λ up or down may depend on it."
    )
