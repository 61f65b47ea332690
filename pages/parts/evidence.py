"""The evidence of a study under a page's picture: strip, thresholds, table, gap against area, spread. It
draws; `core.lab` computes.
"""

from __future__ import annotations

import math

import numpy as np
import streamlit as st

from core.figures.spread import resample_histogram
from core.figures.strip import strip_chart, thresholds_chart
from core.figures.trade import gap_against_area
from core.lab.study import Split
from core.lab.take_away import chart_rows, probability, study_rows, trade_lines
from core.lab.words import (
    adaptive_sentence,
    average_sentence,
    confident_spread_sentence,
    false_alarm_sentence,
    spread_sentence,
)
from pages.parts import shelf

SHOW = {"test images": "test", "calibration and test": "both"}

COLUMNS = {
    "method": st.column_config.TextColumn("Method"),
    "coverage": st.column_config.NumberColumn(
        "Coverage", format="percent", help="Mean share of the lesion inside the set."
    ),
    "gap": st.column_config.NumberColumn(
        "Gap",
        format="percent",
        help="How far a single image lies from the target, on average, above and below alike.",
    ),
    "shortfall": st.column_config.NumberColumn(
        "Shortfall", format="percent", help="Only what is missing, on average."
    ),
    "worst_5pct": st.column_config.NumberColumn(
        "Worst 5 %", format="percent", help="Mean coverage of the worst 5 % of images."
    ),
    "area": st.column_config.NumberColumn(
        "Set area", format="percent", help="The price: share of an image that is marked."
    ),
    "gap_at_crc_area": st.column_config.NumberColumn(
        "Gap at CRC's area",
        format="percent",
        help="The gap when a common shift makes the method mark as much as CRC does. It carries no promise: the shift is chosen on the very "
        "images that are measured.",
    ),
    "stretch": st.column_config.NumberColumn(
        "Stretch", format="%.2f ×", help="Median of set area over lesion area."
    ),
    "precision": st.column_config.NumberColumn(
        "Precision", format="percent", help="Share of the set that is lesion."
    ),
    "false_alarm_area": st.column_config.NumberColumn(
        "False-alarm area",
        format="percent",
        help="Share of an image without lesion that is marked all the same.",
    ),
}


def parts_of(split: Split) -> list[str]:
    """`"calibration"` or `"test"` for each pool image."""
    parts = np.full(len(split.study.curves), "test", dtype=object)
    parts[split.calibrating] = "calibration"
    return [str(p) for p in parts]


def strip(split: Split, picked: str | None) -> str | None:
    """The strip chart and the thresholds beside it; returns the image that was clicked in this run, if any."""
    names, parts = split.study.curves.names, parts_of(split)
    coverage = {m: split.coverage(m) for m in ("CRC", "COAT")}
    area = {m: split.evaluations[m].area for m in ("CRC", "COAT")}
    show = SHOW[
        st.segmented_control(
            "Which images",
            list(SHOW),
            default="test images",
            required=True,
            key="strip-images",
            label_visibility="collapsed",
        )
    ]
    left, right = st.columns(2, gap="medium")
    with left:
        one = st.altair_chart(
            strip_chart(names, parts, coverage, split.alpha, picked, show=show, area=area),
            width="stretch",
            on_select="rerun",
            key="strip",
        )
    with right:
        tau_crc = float(split.tau("CRC")[0])
        lesion = (split.study.curves.lesion_size / split.study.curves.size).numpy()
        two = st.altair_chart(
            thresholds_chart(
                names,
                split.tau("COAT").numpy(),
                tau_crc,
                lesion,
                picked,
                crc_coverage=coverage["CRC"],
                parts=parts,
                show=show,
            ),
            width="stretch",
            on_select="rerun",
            key="thresholds",
        )
    st.caption(
        "Click a dot to see that image above. Squares are CRC, dots are COAT; the line is the promise."
    )
    clicks = [_clicked(one), _clicked(two)]
    before = st.session_state.get("strip-clicks", [None, None])
    st.session_state["strip-clicks"] = clicks
    return next((now for now, old in zip(clicks, before, strict=True) if now and now != old), None)


def _clicked(event: object) -> str | None:
    chosen = (event.get("selection") or {}).get("picked") if hasattr(event, "get") else None
    return str(chosen[0]["image"]) if chosen else None


def table(split: Split) -> None:
    """Methods beside oracle and whole image, and what the numbers say."""
    rows = [
        {k: None if isinstance(v, float) and math.isnan(v) else v for k, v in row.items()}
        for row in study_rows(split)
    ]
    st.dataframe(rows, column_order=list(COLUMNS), column_config=COLUMNS, hide_index=True, width="stretch")
    st.caption(
        "*Whole image* marks everything: its gap is exactly α and it is worthless. *Oracle* knows the truth. A gap means "
        "something only between these two, with the set area beside it."
    )
    st.caption(adaptive_sentence(split))
    st.markdown(average_sentence(split))
    alarms = false_alarm_sentence(split)
    if alarms:
        st.markdown(alarms)


def trade_and_spread(model: str, split: Split) -> None:
    """Gap against area, and coverage over 1,000 redrawn calibration sets."""
    left, right = st.columns(2, gap="medium")
    with left:
        st.subheader("A gap has its price")
        chart = gap_against_area(chart_rows(split), alpha=split.alpha, curves=trade_lines(split))
        st.altair_chart(chart, width="stretch", key="trade")
    with right:
        st.subheader(
            "The promise is about the average" if split.delta is None else "The promise is about draws"
        )
        coverage = shelf.spread(model, split.alpha, split.seed, split.delta)
        shown = {m: split.evaluations[m].coverage for m in ("CRC", "COAT")}
        st.altair_chart(resample_histogram(coverage, split.alpha, shown), width="stretch", key="spread")
    crc = coverage["CRC"]
    if split.delta is None:
        low, high = np.quantile(crc, [0.05, 0.95])
        st.markdown(spread_sentence(split.alpha, float(low), float(high), float(crc.mean()), len(crc)))
    else:
        st.markdown(confident_spread_sentence(split.alpha, split.delta, crc))
    st.caption(
        "*Resample* above draws the next calibration set: watch the split's marker move inside the histogram."
    )


def thresholds_in_words(taus: dict[str, float], tau_hat: dict[str, float]) -> list[dict[str, str]]:
    """Rows for a small table: each method's threshold, before and after calibration, as logit, and used as probability."""
    return [
        {
            "Method": m,
            "τ̂": "–" if m == "CRC" else f"{tau_hat[m]:.2f}",
            "τ′": f"{t:.2f}" if math.isfinite(t) else "−∞",
            "as probability": f"{probability(t):.3g}",
        }
        for m, t in taus.items()
    ]
