"""Step 3 of a person's own data: the promise with its controls and price, the evidence, groups, and what can be taken away.

It draws; `core.lab.own` computes.
"""

from __future__ import annotations

import io
import json
import math
import zipfile

import numpy as np
import streamlit as st

from core.coat.thresholds import oracle_thresholds
from core.conformal.words import percent
from core.lab.own import OwnStudy, Prepared, Trained, study_own
from core.lab.own_charts import redrawn_of, strip_of, trade_of
from core.lab.own_file import WEIGHTS, calibration_of
from core.lab.own_groups import AREA, columns_to_choose
from core.lab.own_python import python_lines
from core.lab.own_report import own_report
from core.lab.own_train import grey_of
from core.lab.own_words import own_price, own_rows, own_table, rival_of
from core.lab.take_away import to_csv
from core.settings import OwnSettings, knobs
from pages.components.picture import picture
from pages.parts import evidence, shelf

KNOBS = knobs(OwnSettings)
NO_GROUPS = "no groups"


def controls() -> OwnSettings:
    """α and the kind of promise; the seed is the header's."""
    alpha = shelf.alpha_slider()
    promise = st.segmented_control(
        KNOBS["promise"].label.capitalize(), KNOBS["promise"].choices, default=KNOBS["promise"].default, required=True, key="own-promise",
        help=KNOBS["promise"].help,
    )  # fmt: skip
    return OwnSettings(alpha=alpha, seed=shelf.model_and_seed()[1], promise=str(promise))


def studied(prepared: Prepared, trained: Trained | None, settings: OwnSettings) -> OwnStudy:
    """The study at these settings, from this session's memory.

    Raises:
        ValueError: As in `core.lab.own.study_own`.
    """
    chosen = st.session_state.get("own-group", NO_GROUPS)
    column = chosen if chosen in columns_to_choose(prepared.maps) else None
    key = (id(prepared), id(trained), settings, column)
    kept = st.session_state.get("own-study")
    if kept is None or kept[0] != key:
        kept = (key, study_own(prepared, trained, settings, column))
        st.session_state["own-study"] = kept
    study: OwnStudy = kept[1]
    return study


def metrics(own: OwnStudy) -> None:
    """Coverage, area and gap, CRC → its rival, on the test images."""
    other = rival_of(own.split)
    one, two = own.split.evaluations["CRC"], own.split.evaluations[other]
    cells = (
        (
            "Coverage",
            percent(one.coverage),
            percent(two.coverage),
            "Mean share of the lesion inside the set, over the test images.",
        ),
        (
            "Set area",
            percent(one.area),
            percent(two.area),
            "Mean share of the image that is marked: the price.",
        ),
        (
            "Gap",
            f"{100 * one.gap:.0f}",
            f"{100 * two.gap:.0f} pts",
            "How far a single image lies from the promise, on average.",
        ),
    )
    st.caption(f"CRC → {other}, means over your {one.n} test image{'s' if one.n > 1 else ''}")
    with st.container(horizontal=True, gap="medium"):
        for label, crc, rival, help in cells:
            st.metric(label, f"{crc} → {rival}", help=help, width="content")


def promised(own: OwnStudy) -> None:
    """What is promised, what it assumes, what it costs."""
    st.markdown("**What is promised, and what it assumes**")
    for sentence in own.sentences:
        st.markdown(sentence)
    st.markdown(own_price(own))


def evidence_of(own: OwnStudy) -> None:
    """Strip with one image beside it, table, gap against area, redrawn halves."""
    e = own.split.evaluations["CRC"]
    none = f" ({e.n_empty} more have none)" if e.n_empty else ""
    st.subheader(
        f"Your {e.n} test images with a lesion{none}"
        if e.n > 1
        else f"Your one test image with a lesion{none}"
    )
    names = own.split.study.curves.names
    picked = st.session_state.get("own-picked")
    chosen = names.index(picked) if picked in names else _hardest(own)
    event = st.altair_chart(strip_of(own, names[chosen]), width="stretch", on_select="rerun", key="own-strip")
    st.caption("Click a dot to see that image below. The line is the promise.")
    clicked = _clicked(event)
    if clicked in names and clicked != st.session_state.get("own-clicked"):
        st.session_state["own-clicked"] = st.session_state["own-picked"] = clicked
        st.rerun()
    _image(own, chosen)
    st.subheader("The methods side by side")
    rows = [
        {k: None if isinstance(v, float) and math.isnan(v) else v for k, v in row.items()}
        for row in own_table(own)
    ]
    st.dataframe(
        rows,
        column_order=[c for c in evidence.COLUMNS if c in rows[0]],
        column_config=evidence.COLUMNS,
        hide_index=True,
        width="stretch",
    )
    st.caption(
        "*Whole image* marks everything: its gap is exactly α and it is worthless. *Oracle* knows the truth. A gap means something only "
        "between these two."
    )
    redrawn = redrawn_of(own)
    left, right = st.columns(2, gap="medium")
    with left:
        st.subheader("A gap has its price")
        st.altair_chart(trade_of(own), width="stretch", key="own-trade")
    with right:
        sure = own.settings.promise == "with confidence"
        st.subheader("The promise is about draws" if sure else "The promise is about the average")
        if sure:
            st.caption(
                f"It holds for at least {percent(1 - own.settings.delta)} of the sets of calibration images that could have been "
                "drawn; this is one of them. Choose *on average* to see how coverage varies from draw to draw."
            )
        elif redrawn is not None:
            st.altair_chart(redrawn, width="stretch", key="own-spread")
        else:
            st.caption(
                "With more images, and a random division of them, this place shows how coverage varies from draw to draw of the calibration images."
            )


def _hardest(own: OwnStudy) -> int:
    coverage = own.split.coverage("CRC")
    return int(min((i for i in own.split.testing if not np.isnan(coverage[i])), key=lambda i: coverage[i]))


def _clicked(event: object) -> str | None:
    chosen = (event.get("selection") or {}).get("picked") if hasattr(event, "get") else None
    return str(chosen[0]["image"]) if chosen else None


def _image(own: OwnStudy, i: int) -> None:
    """One image with the outlines of all methods."""
    maps, split, at = own.prepared.maps, own.split, int(own.pool[i])
    assert maps.masks is not None
    shown = maps.images[at] if maps.images is not None else grey_of(maps.scores[at])
    mask = maps.masks[at].numpy()
    covered = split.coverage("CRC")[i]
    oracle = float(oracle_thresholds(split.study.curves.select([i]), split.alpha)[0]) if mask.any() else None
    st.markdown(
        f"**{shelf.plain(maps.names[at])}**"
        + ("" if maps.images is not None else ": your score map in grey, for no image came with it")
    )
    picture(
        shown, maps.scores[at].numpy(), {m: float(split.tau(m)[i]) for m in own.methods}, mask=mask, alpha=split.alpha, oracle=oracle,
        alt=f"{maps.names[at]} with the outlines of {', '.join(own.methods)}" + ("" if np.isnan(covered) else f"; CRC finds "
        f"{percent(covered)} of the lesion"),
        height=400, key="own-picture",
    )  # fmt: skip


def groups(own: OwnStudy) -> None:
    """Which groups get a promise of their own, and what it does in each."""
    maps = own.prepared.maps
    st.subheader("A promise for every group")
    st.selectbox(
        "Groups by", [NO_GROUPS, *columns_to_choose(maps)], key="own-group",
        help="One shift for each group, so that every group keeps its own promise. A group must be known without the mask; predicted area always is.",
    )  # fmt: skip
    if own.grouped is None:
        st.caption(
            "CRC keeps its promise over all images together: small lesions may get less and large ones more. A promise for each group needs enough "
            f"calibration images in each. Choose {AREA}, or bring a CSV with a column of your own."
        )
        return
    if own.settings.promise == "with confidence":
        st.caption(
            "Groups are controlled on average only, which marks less than a promise with confidence: the two cannot stand side by side. Choose the "
            "promise *on average* to see them."
        )
        return
    st.dataframe(
        [dict(r) for r in own.grouped.rows], hide_index=True, width="stretch",
        column_config={
            "group": st.column_config.TextColumn(own.grouped.column.capitalize()),
            "calibration_images": st.column_config.NumberColumn("Calibrate"),
            "test_images": st.column_config.NumberColumn("Tested"),
            "coverage_CRC": st.column_config.NumberColumn("Coverage, CRC", format="percent"),
            "coverage_by_group": st.column_config.NumberColumn("Coverage, by group", format="percent"),
            "area_CRC": st.column_config.NumberColumn("Area, CRC", format="percent"),
            "area_by_group": st.column_config.NumberColumn("Area, by group", format="percent"),
            "whole_image": st.column_config.CheckboxColumn("Whole image", help="Too few calibration images of this group for anything smaller."),
        },
    )  # fmt: skip
    st.markdown(own.grouped.calibration.guarantee)


def take_home(own: OwnStudy) -> None:
    """Downloads, and the lines of Python that apply the calibration."""
    st.subheader("Take it with you")
    everything = st.toggle(
        "Calibrate the file on the test images too", key="own-everything",
        help="The promise then rests on more images, and no test figure belongs to exactly that threshold.",
    )  # fmt: skip
    content, weights = calibration_of(own, everything)
    method = rival_of(own.split)
    with st.container(horizontal=True, gap="small"):
        _button(
            "Everything (zip)", lambda: _zip(own, everything), "plumbline-own.zip", "application/zip", "zip"
        )
        _button(
            "calibration.json",
            lambda: json.dumps(content, indent=1, allow_nan=False).encode(),
            "calibration.json",
            "application/json",
            "json",
        )
        if weights is not None:
            _button(
                "AT and COAT (safetensors)", lambda: weights, WEIGHTS, "application/octet-stream", "weights"
            )
        _button("Images (CSV)", lambda: to_csv(own_rows(own)), "plumbline-images.csv", "text/csv", "images")
        _button(
            "Methods (CSV)", lambda: to_csv(own_table(own)), "plumbline-methods.csv", "text/csv", "methods"
        )
        _button(
            "Report (HTML)",
            lambda: own_report(own, everything=everything).encode(),
            "plumbline-report.html",
            "text/html",
            "report",
        )
    st.caption(
        "calibration.json holds numbers only: thresholds, and of each calibration image a digest and six figures, no names. From the shell: "
        "`python -m core predict NEW_MAPS.zip --with calibration.json --out results` applies it, and checks whether the new maps look like yours."
    )
    with st.expander("Ten lines of Python that apply it in your pipeline", icon=":material/terminal:"):
        which = st.segmented_control(
            "Method",
            own.methods,
            default=method,
            required=True,
            key="own-python",
            label_visibility="collapsed",
        )
        st.code(python_lines(content, which if which in own.methods else method), language="python")


def _zip(own: OwnStudy, everything: bool) -> bytes:
    content, weights = calibration_of(own, everything)
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("calibration.json", json.dumps(content, indent=1, allow_nan=False))
        if weights is not None:
            archive.writestr(WEIGHTS, weights)
        archive.writestr("images.csv", to_csv(own_rows(own)))
        archive.writestr("methods.csv", to_csv(own_table(own)))
        archive.writestr("report.html", own_report(own, everything=everything))
        archive.writestr("apply.py", python_lines(content, rival_of(own.split)))
    return out.getvalue()


def _button(label: str, make: object, file: str, mime: str, key: str) -> None:
    st.download_button(
        label, make, file, mime, key=f"own-take-{key}", on_click="ignore", icon=":material/download:"
    )  # type: ignore[arg-type]
