"""The λ that labels would have chosen, beside the one that adaptation chose without them. It draws; `core.lab.sparse_sweep` reads the record."""

from __future__ import annotations

import streamlit as st

from core.figures.sparse_sweep import lambda_sweep
from core.lab.sparse_record import SparseRecord
from core.lab.sparse_sweep import COMMAND, moved, sweeps
from core.lab.sparse_view import SAMPLES, key_of, title_of
from pages.parts.sparse_chart import chart, words_of
from pages.parts.sparse_first import now


def show(record: SparseRecord, compact: bool) -> None:
    """A chooser of the corruption, the chart, and what an oracle is."""
    held = sweeps(key_of(record))
    offered = list(dict.fromkeys(name for name, _ in held if name != "clean"))
    if not offered or ("clean", 0) not in held:
        st.info(
            f"No sweep over λ is recorded for {title_of(record)}. Make it with: `{COMMAND.replace('KEY', key_of(record))}`",
            icon=":material/info:",
        )
        return
    here, _ = now()
    name = st.selectbox(
        "Corruption", offered, index=offered.index(here) if here in offered else 0, format_func=words_of, key="sparse-oracle", width=220
    )  # fmt: skip
    places = [("clean", 0), *(place for place in held if place[0] == name)]
    lines = {"clean" if not s else f"severity {s}": held[corruption, s] for corruption, s in places}
    lead = list(lines)[min(2, len(lines) - 1)]
    figure = lambda_sweep(
        held["clean", 0].factors,
        {words: one.stored for words, one in lines.items()},
        {words: one.refreshed for words, one in lines.items()},
        adapted={words: moved(record, one.corruption, one.severity) for words, one in lines.items()},
        lead=lead,
        network=title_of(record),
        compact=compact,
    )
    chart(figure, "sparse-oracle-chart")
    one = lines[lead]
    st.caption(
        f"An oracle, not a method: the stars know the labels of the {one.scored:,} test images they are scored on, so they flatter. One multiple for "
        f"all layers. Refreshed statistics and adaptation saw {SAMPLES} other images without labels."
    )
