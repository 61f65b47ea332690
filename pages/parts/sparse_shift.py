"""Two recorded studies under shift: λ's wish to move as a detector, and what becomes of a conformal promise before and after adaptation.

It draws; `core.lab.shift_record` and `core.lab.sparse_medical` read what was measured. Where nothing is recorded, a sentence says so.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

import numpy as np
import streamlit as st

from core.figures.sparse_coverage import coverage_lines
from core.figures.sparse_shift import shift_roc
from core.lab import shift_record, sparse_medical
from core.lab.shift_record import ShiftRecord
from core.lab.sparse_view import ADAPT_TITLES, TITLES
from pages.parts import shelf
from pages.parts.sparse_chart import FAMILY_OF, chart, words_of

IMAGES = {16: "16 images", 1: "one image, by crops"}
SETS = {"phantom": "Phantoms", "polyp": "Polyps"}
METHODS = ("CRC", "plug-in", "COAT")
ALPHA = 0.1


def detector(compact: bool) -> None:
    """ROC of the shift score, corrupted against clean test images."""
    try:
        record = shift_record.load_shift()
    except (FileNotFoundError, ValueError) as problem:
        st.info(str(problem), icon=":material/info:")
        return
    severities = sorted({r.severity for r in record.rows})
    if not severities:
        st.info("The study of shift holds no row.", icon=":material/info:")
        return
    with st.container(horizontal=True, gap="medium", vertical_alignment="bottom"):
        at = int(
            st.segmented_control(
                "Severity of the shift", severities, default=3 if 3 in severities else severities[0], required=True, key="sparse-shift-severity"
            )
            or severities[0]
        )  # fmt: skip
        count = int(
            st.segmented_control(
                "Scored together", list(IMAGES), default=16, required=True, format_func=IMAGES.__getitem__, key="sparse-shift-images"
            )
            or 16
        )  # fmt: skip
    _roc(record, at, count, compact)
    _auroc(record)
    st.caption(
        f"Network: {_title(record.network)}, whichever is chosen above. The score asks how far λ and the reconstruction error want to move on new "
        f"images, against a reference of {record.reference.get('images', '?')} clean ones that are not scored. About 1 is usual. It is a warning "
        "and no test of a hypothesis: clean images of another kind raise it too."
    )
    shelf.way_to("coverage", "See the warning on Coverage", ":material/target:")


def _title(key: str) -> str:
    """A network's key as charts call it: `tacsc_all-k2-w16-s0` -> TA-CSC-18all."""
    return TITLES.get(key.partition("-")[0], key)


def _roc(record: ShiftRecord, at: int, count: int, compact: bool) -> None:
    curves: dict[str, tuple[np.ndarray, np.ndarray]] = {}
    areas, families = {}, {}
    for name in FAMILY_OF:
        found = record.curve(name, at, count)
        if found is not None:
            words = words_of(name)
            curves[words] = (np.array(found.false_alarms), np.array(found.detected))
            areas[words], families[words] = record.auroc(name, at, count), FAMILY_OF[name]
    if not curves:
        st.info("No curve is recorded for this choice.", icon=":material/info:")
        return
    chart(
        shift_roc(curves, areas, families=families, severity=at, images=count, compact=compact), "sparse-roc"
    )


def _auroc(record: ShiftRecord) -> None:
    """AUROC of all rows, by severity, for both numbers of images."""
    lines: dict[tuple[str, int], dict[str, Any]] = {}
    for r in record.rows:
        if r.part == "both":
            line = lines.setdefault(
                (r.corruption, r.images), {"corruption": words_of(r.corruption), "images": r.images}
            )
            line[f"severity {r.severity}"] = r.auroc
    st.dataframe(
        sorted(lines.values(), key=lambda line: -line["images"]),
        column_config={
            "corruption": st.column_config.TextColumn("Corruption"),
            "images": st.column_config.NumberColumn(
                "Images", help="Scored together; one is scored by its crops."
            ),
        }
        | {
            f"severity {s}": st.column_config.NumberColumn(f"Severity {s}", format="%.3f")
            for s in range(1, 6)
        },
        hide_index=True,
        width="stretch",
        key="sparse-auroc",
        alt="Area under the ROC curve by corruption, severity and number of images",
    )


def promise(compact: bool) -> None:
    """Coverage, area and Dice of the U-Net with a sparse first layer under corruption, before and after adaptation."""
    try:
        rows = sparse_medical.rows()
    except (FileNotFoundError, ValueError) as problem:
        st.info(str(problem), icon=":material/info:")
        return
    there = [s for s in SETS if any(r["set"] == s for r in rows)]
    if not there:
        st.info("The study of segmentation under shift holds no row.", icon=":material/info:")
        return
    data, corruption, way = _asked(rows, there)
    severity = [0, 1, 2, 3, 4, 5]
    before = {m: sparse_medical.curve(data, m, corruption, "tacsc", "none", ALPHA) for m in METHODS}
    after = {m: sparse_medical.curve(data, m, corruption, "tacsc", way, ALPHA) for m in METHODS}
    held = [m for m in METHODS if np.isfinite(before[m]["coverage"]).any()]
    if not held:
        st.info("Nothing is recorded for this choice.", icon=":material/info:")
        return
    name = "the four noises" if corruption == "noises" else words_of(corruption)
    chart(
        coverage_lines(
            severity,
            {m: _two(before[m]) for m in held},
            {m: _two(after[m]) for m in held},
            target=1 - ALPHA,
            dice=(before[held[0]]["dice"].tolist(), after[held[0]]["dice"].tolist()),
            corruption=name,
            compact=compact,
        ),
        "sparse-coverage",
    )
    st.markdown(
        "**A promise made on clean images is no promise on damaged ones.** Thresholds are calibrated on clean images with the network as it was "
        "trained; corruption breaks the assumption that the next image is drawn alike. Adaptation changes the network, for better or worse, and "
        "never mends the assumption: coverage may fall by it, on clean images too."
    )
    _ways(rows, data, corruption)
    st.caption(
        f"Chart: U-Net on {SETS[data].lower()} whose first layer is TA-CSC; the table also has that with a plain convolution, where it is recorded "
        f"(means over severities 1 to 5). Orange before, blue after {ADAPT_TITLES[way]} followed unlabelled images, none of which is scored."
    )


def _asked(rows: tuple[dict[str, Any], ...], there: list[str]) -> tuple[str, str, str]:
    with st.container(horizontal=True, gap="medium", vertical_alignment="bottom"):
        data = str(
            st.segmented_control(
                "Pictures of", there, default=there[0], required=True, format_func=SETS.__getitem__, key="sparse-medical-set"
            )
        )  # fmt: skip
        found = [c for c in sparse_medical.CORRUPTED if any(r["corruption"] == c for r in rows)]
        corruption = str(
            st.selectbox(
                "Corruption of the study", ["noises", *found], key="sparse-medical-corruption", width=200,
                format_func=lambda c: "the four noises" if c == "noises" else words_of(c),
            )
        )  # fmt: skip
        way = str(
            st.segmented_control(
                "After", ("bn", "lambda", "both"), default="both", required=True, format_func=ADAPT_TITLES.__getitem__, key="sparse-medical-way"
            )
        )  # fmt: skip
    return data, corruption, way


def _two(curve: Mapping[str, np.ndarray]) -> np.ndarray:
    return np.stack([curve["coverage"], curve["area"]])


def _ways(rows: tuple[dict[str, Any], ...], data: str, corruption: str) -> None:
    """All four ways of both networks, CRC: means over severities 1 to 5."""
    lines = []
    for kind, ways in (("plain", ("none", "bn")), ("tacsc", ("none", "bn", "lambda", "both"))):
        for way in ways:
            found = sparse_medical.curve(data, "CRC", corruption, kind, way, ALPHA)
            means = {k: float(np.mean(found[k][1:])) for k in ("dice", "coverage", "area")}
            if math.isfinite(means["dice"]):
                first = "TA-CSC" if kind == "tacsc" else "convolution"
                lines.append(
                    {"first": first, "way": ADAPT_TITLES[way]} | {k: 100 * v for k, v in means.items()}
                )
    st.dataframe(
        lines,
        column_config={
            "first": st.column_config.TextColumn("First layer"),
            "way": st.column_config.TextColumn("What adapts"),
            "dice": st.column_config.NumberColumn("Dice", format="%.1f %%"),
            "coverage": st.column_config.NumberColumn("CRC's coverage", format="%.1f %%"),
            "area": st.column_config.NumberColumn("CRC's area", format="%.1f %%"),
        },
        hide_index=True,
        width="stretch",
        key="sparse-medical-table",
        alt="Dice, coverage and area by first layer and by what adapts, means over severities 1 to 5",
    )
