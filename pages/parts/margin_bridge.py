"""The bridge from calibration to coverage: does a better calibrated network have a better conformal set? The measured table answers. It draws;
`core.lab.margin_answer` finds the words.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from functools import lru_cache
from typing import Any

import streamlit as st

from core.figures.margin_bridge import dots
from core.figures.temperature_frame import description, sentence_of
from core.lab.margin_answer import bridge_answer, bridge_promise, of_bridge
from core.lab.margin_record import COMMAND, TITLES
from core.lab.margin_words import SETS
from pages.parts.margin_evidence import styled

CONFIG = {"displayModeBar": False}

SCALES = {"ece_all": 100, "gap": 100, "area": 100, "coverage": 100}

COLUMNS = {
    "Loss": st.column_config.TextColumn("Loss", pinned=True),
    "Method": st.column_config.TextColumn("Method"),
    "ece_all": st.column_config.Column("ECE, all pixels, %", help="Of the network that gives the scores."),
    "gap": st.column_config.Column(
        "Gap, points", help="How far a single image lies from the promise, on average."
    ),
    "area": st.column_config.Column("Set area, %", help="The price: share of an image that is marked."),
    "coverage": st.column_config.Column("Coverage, %", help="Mean share of the foreground inside the set."),
}
ANCHORS = ("oracle", "whole image")


def show(rows: Sequence[Mapping[str, Any]], data: str, scope: str) -> None:
    """Answer, dots and table; a sentence where the table is not here."""
    st.subheader("Does calibration help a conformal set?")
    if not rows:
        st.info(f"The bridge is not measured yet. Make it with: `{COMMAND}`", icon=":material/info:")
        return
    levels = sorted({float(r["alpha"]) for r in rows})
    level = st.segmented_control(
        "α, share that may be missed",
        levels,
        default=levels[0],
        required=True,
        format_func=lambda a: f"{a:g}",
        key="level",
        bind="query-params",
        help="The levels that were measured for every loss and every seed.",
    )
    alpha = float(level or levels[0])
    answer = bridge_answer(rows, alpha)
    st.markdown("\n".join([*answer[:1], "", *(f"- {s}" for s in answer[1:])]))
    st.markdown(f"**What is promised, and what it assumes.** {bridge_promise(alpha)}")
    of_set = of_bridge(rows, data, alpha)
    if not of_set:
        other = next(r["data"] for r in rows)
        st.caption(f"For {SETS[data].lower()} the bridge was not measured; these are {SETS[other].lower()}.")
        data, of_set = other, of_bridge(rows, other, alpha)
    figure = _dots(tuple(map(_frozen, of_set)), "ece_fg" if scope == "foreground" else "ece_all")
    if said := sentence_of(figure):
        st.markdown(f"**{SETS[data]}:** {said}")
    st.plotly_chart(figure, width="stretch", key="margin-dots", alt=description(figure), config=CONFIG)
    ordered = table(of_set)
    st.dataframe(
        styled([{"Loss": r["title"], "Method": r["method"]} for r in ordered], ordered, SCALES),
        column_config=COLUMNS,
        hide_index=True,
        width="stretch",
        height=400,
        key="margin-bridge-table",
        alt=f"Gap, set area and coverage of each method under each loss, {SETS[data].lower()}",
    )
    st.caption(
        "Mean ± standard deviation over seeds, each over redrawn halves of the test images. *Whole image* marks everything: its gap "
        "is exactly α and it is worthless. "
        "*Oracle* knows the truth. A gap means something only between these two, with the set area beside it."
    )


def _frozen(row: Mapping[str, Any]) -> tuple[tuple[str, Any], ...]:
    """A row that can be remembered; a deviation that one seed does not have is left out."""
    return tuple((k, v) for k, v in row.items() if not (isinstance(v, float) and math.isnan(v)))


@lru_cache(maxsize=32)
def _dots(rows: tuple[tuple[tuple[str, Any], ...], ...], ece: str) -> Any:
    return dots([dict(r) for r in rows], ece=ece)


def table(rows: Sequence[Mapping[str, Any]]) -> list[dict[str, Any]]:
    """Methods first, loss by loss; then the oracle of each loss, and the whole image once."""
    order = [*TITLES]
    mine = sorted(
        (r for r in rows if r["method"] not in ANCHORS),
        key=lambda r: (["CRC", "plug-in", "COAT"].index(r["method"]), order.index(r["loss"])),
    )
    oracle = sorted((r for r in rows if r["method"] == "oracle"), key=lambda r: order.index(r["loss"]))
    whole = [r for r in rows if r["method"] == "whole image"][:1]
    cells = [dict(r) | {"title": TITLES[r["loss"]]} for r in (*mine, *oracle)]
    nobody = dict.fromkeys(("ece_all", "ece_all_sd", "gap_sd", "area_sd", "coverage_sd"))
    return cells + [dict(r) | {"title": "any", **nobody} for r in whole]
