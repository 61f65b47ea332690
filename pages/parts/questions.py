"""What a curious person asks next, in tabs under the evidence: does every group get its share, do the sets of all α nest, what of another video.

Only the tab that is open computes. It draws; `core.lab` computes.
"""

from __future__ import annotations

import math
from functools import lru_cache

import streamlit as st

from core.figures.groups import group_chart
from core.figures.nested import nested_chart
from core.figures.videos import videos_chart
from core.lab.group_report import BY_GROUP, GroupReport, by_group_sentence, group_report, one_shift_sentence
from core.lab.nesting import ALPHAS, nesting_sentence, shipped_nesting
from core.lab.pool_groups import Column, columns_of
from core.lab.promise import Promise
from core.lab.sources import domain_of
from core.lab.study import Split, shipped_study
from core.lab.videos import AcrossVideos, across_rows, across_sentence, across_videos
from pages.parts import shelf, uploads

TABS = ("Does every group get its share?", "One predictor for every α", "Another video?")
CONTROLS = ("one shift for all", "one shift a group")
NESTING = ("COAT", "AT", "plug-in")

GROUP_COLUMNS = {
    "group": st.column_config.TextColumn("Group"),
    "method": st.column_config.TextColumn("Method"),
    "coverage": st.column_config.NumberColumn(
        "Coverage", format="percent", help="Mean share of the lesion inside."
    ),
    "gap": st.column_config.NumberColumn(
        "Gap", format="percent", help="How far single images lie from the promise."
    ),
    "area": st.column_config.NumberColumn("Set area", format="percent", help="The price."),
    "calibrating": st.column_config.NumberColumn(
        "Calibrate", help="Calibration images with a lesion in this group."
    ),
    "testing": st.column_config.NumberColumn("Tested", help="Test images with a lesion in this group."),
}
VIDEO_COLUMNS = {
    "method": st.column_config.TextColumn("Method"),
    "by_frame": st.column_config.NumberColumn("By frame, mean", format="percent"),
    "by_video": st.column_config.NumberColumn("By video, mean", format="percent"),
    "lowest": st.column_config.NumberColumn("By video, lowest", format="percent"),
    "highest": st.column_config.NumberColumn("By video, highest", format="percent"),
    "below": st.column_config.NumberColumn("Draws below the promise", format="percent"),
}


def show(split: Split, chosen: str, shown: Promise | None) -> None:
    """The tabs; the last one for videos only."""
    st.subheader("Further questions")
    names = TABS if domain_of(split.study.name) == "fire" else TABS[:2]
    tabs = st.tabs(names, key=f"questions-{len(names)}", on_change="rerun")
    for tab, draw in zip(tabs, (_groups, _nesting, _videos), strict=False):
        if tab.open:
            with tab:
                draw(split, chosen, shown)


@lru_cache(maxsize=16)
def _columns(name: str) -> dict[str, Column]:
    return {c.name: c for c in columns_of(shipped_study(name))}


@lru_cache(maxsize=64)
def _report(name: str, alpha: float, seed: int, column: str) -> GroupReport:
    return group_report(shelf.split(name, alpha, seed), _columns(name)[column])


def _groups(split: Split, chosen: str, shown: Promise | None) -> None:
    """Group-conditional control beside control over all."""
    columns = _columns(split.study.name)
    with st.container(horizontal=True, vertical_alignment="center", gap="small"):
        st.markdown("Control", width="content")
        control = st.segmented_control(
            "Control",
            CONTROLS,
            default=CONTROLS[0],
            required=True,
            key="group-control",
            label_visibility="collapsed",
            bind="query-params",
        )
        st.markdown("of groups by", width="content")
        name = st.selectbox(
            "Groups by",
            list(columns),
            format_func=lambda c: c if columns[c].known else f"{c} (report only)",
            key=f"group-column-{domain_of(split.study.name)}",
            label_visibility="collapsed",
            width=260,
        )
    column = columns[str(name)]
    report = _report(split.study.name, split.alpha, split.seed, column.name)
    by_group = control == CONTROLS[1] and column.known
    st.caption(column.why)
    if control == CONTROLS[1] and not column.known:
        st.info("This column cannot calibrate: one shift for all is shown.", icon=":material/block:")
    rows = [r for r in report.rows if by_group or r.method not in map(BY_GROUP.format, ("CRC", "COAT"))]
    drawn = [
        {
            "group": r.group,
            "method": r.method.split(" ")[0],
            "by_group": " by group" in r.method,
            "coverage": r.coverage,
            "area": r.area,
            "testing": r.testing,
        }
        for r in rows
        if r.testing and r.method not in ("oracle", "whole image")
    ]
    left, right = st.columns(2, gap="medium")
    with left:
        st.altair_chart(group_chart(drawn, split.alpha, column.name), width="stretch", key="groups-chart")
    with right:
        st.markdown(by_group_sentence(report) if by_group else one_shift_sentence(report))
    cells = [
        {k: None if isinstance(v, float) and math.isnan(v) else v for k, v in vars(r).items()}
        | {"method": f"{r.method} (whole image)" if r.whole else r.method}
        for r in rows
    ]
    st.dataframe(
        cells,
        column_order=list(GROUP_COLUMNS),
        column_config=GROUP_COLUMNS,
        hide_index=True,
        width="stretch",
        height=320,
    )
    if split.delta is not None:
        st.caption("Groups are controlled on average here, also while the page promises with confidence.")


def _nesting(split: Split, chosen: str, shown: Promise | None) -> None:
    """Thresholds of the shown image at every α, and how many images' sets cross."""
    name, seed = split.study.name, split.seed
    made = {m: shipped_nesting(name, seed, m) for m in NESTING}
    names = split.study.curves.names
    left, right = st.columns([3, 2], gap="medium")
    with right:
        method = st.segmented_control(
            "Thresholds of", NESTING, default="COAT", required=True, key="nesting-method"
        )
        st.markdown(nesting_sentence(split.study, made))
        st.caption(
            "Calibrated on average at every α of the slider, on the calibration images of this draw. No network runs again: one predictor "
            "answers for all."
        )
    found = made[str(method)]
    if chosen in names:
        i = names.index(chosen)
        tau, nested = found.tau[i], found.nested[i]
    else:
        answer = uploads.answer_of(chosen, name)
        if answer is None:
            left.caption("This image has no thresholds yet; choose another one above.")
            return
        tau, nested = found.of_knots(answer.knots[str(method)])
    with left:
        chart = nested_chart(ALPHAS.numpy(), tau.numpy(), nested.numpy(), split.alpha, method=str(method))
        st.altair_chart(chart, width="stretch", key="nested-chart")


@lru_cache(maxsize=32)
def _across(name: str, alpha: float, seed: int) -> AcrossVideos:
    return across_videos(shipped_study(name), alpha, _columns(name)["video"].values, seed)


def _videos(split: Split, chosen: str, shown: Promise | None) -> None:
    """Calibrated on some videos, tested on others: no part of the promise."""
    if "video" not in _columns(split.study.name):
        st.caption("The table that says which frame is of which video is not here.")
        return
    found = _across(split.study.name, split.alpha, split.seed)
    left, right = st.columns([3, 2], gap="medium")
    with left:
        chart = videos_chart(found.by_video, found.by_frame, split.alpha)
        st.altair_chart(chart, width="stretch", key="videos-chart")
    with right:
        st.markdown(across_sentence(found))
    st.dataframe(across_rows(found), column_config=VIDEO_COLUMNS, hide_index=True, width="stretch")
    st.caption(
        "This stands outside the promise of this page, which is about further frames of these videos. Controlled on average."
    )
