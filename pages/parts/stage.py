"""The stage of the coverage page: the gallery, the picture with its outlines, or what is known of an image that this server cannot show.

It draws and decides what is looked at; the numbers under it are `pages/coverage.py`'s.
"""

from __future__ import annotations

import numpy as np
import streamlit as st

from core.coat.thresholds import oracle_thresholds
from core.conformal.words import percent
from core.lab.domains import title_of, words_of
from core.lab.pool import curve_of_pool_image
from core.lab.promise import Promise, promise
from core.lab.study import PROMISED, Split, hardest
from pages.components.gallery import gallery
from pages.components.picture import picture
from pages.parts import shelf, uploads

SAMPLES = 12
VIEWS = ("drag a threshold", "compare CRC with COAT")


def samples(model: str, seed: int, chosen: str) -> list[dict[str, object]]:
    """Thumbnails of the hardest test images under CRC at the default α, and the chosen one if it is another."""
    split = shelf.split(model, shelf.KNOBS["alpha"].default, seed)
    names, coverage = split.study.curves.names, split.coverage("CRC")
    ids = [names[i] for i in hardest(split, "CRC", SAMPLES)]
    if chosen in names and chosen not in ids:
        ids.insert(0, chosen)
    items = []
    for name in ids:
        found = shelf.pool_image(model, name)
        if found is not None:
            share = coverage[names.index(name)]
            badge = None if np.isnan(share) else percent(float(share))
            items.append(
                {"id": name, "image": found[0], "caption": name.replace("phantom-", "no. "), "badge": badge}
            )
    return items


def promise_of_upload(item: uploads.Upload, split: Split) -> tuple[Promise, list[str]] | None:
    """Read, score and calibrate one upload; problems are shown as a sentence."""
    try:
        chosen = uploads.choose_slice(item)
        scored = uploads.scored(chosen, split.study.name, item.picture.name)
        uploads.remember(item.id, scored, chosen.mask)
        return promise(
            scored, chosen.mask, alpha=split.alpha, seed=split.seed, delta=split.delta
        ), chosen.notes
    except ValueError as problem:
        st.warning(str(problem), icon=":material/broken_image:")
        return None


def look(split: Split, mine: list[uploads.Upload]) -> tuple[str, Promise | None, list[str]]:
    """Gallery and picture. Returns what is looked at (an upload's id or a pool image's name), its promise and notes."""
    names, model = split.study.curves.names, split.study.name
    own = {u.id: u for u in mine}
    jump = st.session_state.pop("wanted", None)
    fresh = [u for u in own if u not in st.session_state.get("known-uploads", ())]
    st.session_state["known-uploads"] = list(own)
    if fresh:
        jump = fresh[0]
    here = jump or st.session_state.get("looking") or st.query_params.get("sample", "")
    items = [
        {"id": u.id, "image": uploads.thumbnail_of(u), "caption": u.picture.name, "badge": "yours"}
        for u in mine
    ]
    items += samples(model, split.seed, here)
    known = [str(item["id"]) for item in items]
    if not items:  # a real study whose pictures are not here, and nothing uploaded
        chosen = here if here in names else names[int(hardest(split, "CRC", 1)[0])]
        st.session_state["looking"] = chosen
        return chosen, *show(chosen, own, split)
    strip, stage = st.columns([1, 6], gap="medium")
    with strip:
        before = st.session_state.get("gallery-last")
        first = here if here in known else before if before in known else known[0]
        chosen = clicked = gallery(items, str(first), key=f"gallery-{model}", label="Images", height=404)
    st.session_state["gallery-last"] = clicked
    if here in names and here not in known and clicked == before:
        chosen = (
            here  # a dot of the strip chart whose picture is not here; it stays until a thumbnail is clicked
        )
    st.session_state["looking"] = chosen
    with stage:
        return chosen, *show(chosen, own, split)


def show(chosen: str, own: dict[str, uploads.Upload], split: Split) -> tuple[Promise | None, list[str]]:
    """The picture of what is looked at, or what is known of an image that this server cannot show."""
    model = split.study.name
    if chosen in own:
        st.query_params.pop("sample", None)  # an upload is in no address
        made = promise_of_upload(own[chosen], split)
        if made is None:
            return None, []
        shown, notes = made
    else:
        shelf.in_address("sample", chosen)
        scored, found = shelf.scored_pool_image(model, chosen), shelf.pool_image(model, chosen)
        if scored is None or found is None:
            without_picture(split, split.study.curves.names.index(chosen))
            return None, []
        shown = promise(scored, found[1], alpha=split.alpha, seed=split.seed, delta=split.delta)
        notes = []
    compare = st.session_state.get("view") == VIEWS[1]
    picture(
        shown.image,
        shown.logits,
        shown.tau,
        mask=shown.mask,
        alpha=split.alpha,
        mode="wipe" if compare else "threshold",
        oracle=shown.oracle_tau,
        alt=f"{shown.name} with the outlines of CRC and COAT",
        height=404,
        key="wipe-picture" if compare else "picture",
    )
    return shown, notes


def view_switch() -> None:
    """What the handle of the picture does; the picture reads it from the session."""
    st.segmented_control(
        "What the handle does",
        VIEWS,
        default=VIEWS[0],
        required=True,
        key="view",
        label_visibility="collapsed",
    )


def without_picture(split: Split, i: int) -> None:
    """A pool image whose picture is not on this server: its scores and its curve."""
    from core.figures.curve import coverage_curve, score_histogram

    curves, model = split.study.curves, split.study.name
    marks = {m: float(split.tau(m)[i]) for m in PROMISED}
    best = float(oracle_thresholds(curves.select([i]), split.alpha)[0])
    marks |= {} if np.isnan(best) else {"oracle": best}
    grid, covered, area, edges, lesion, rest = curve_of_pool_image(split.study, i, tuple(marks.values()))
    masks = "masks/" if not model.startswith("skin") else "masks/ with _segmentation behind each name"
    st.caption(
        f"Image {curves.names[i]} of the study *{title_of(model)}*, {int(curves.lesion_size[i]):,} {words_of(model).lesion} pixels. No real "
        f"picture ships with Plumbline: this is what its score table knows of it. To see it, start the server with "
        f"{shelf.data_variable(model)} set to the folder of the data set (it must hold images/ and {masks})."
    )
    left, right = st.columns(2, gap="medium")
    few = {m: marks[m] for m in ("CRC", "AA-CRC", "COAT")}
    left.altair_chart(score_histogram(edges, lesion, rest, few), width="stretch", key="scores-of-one")
    right.altair_chart(
        coverage_curve(grid, covered, area, marks, split.alpha), width="stretch", key="curve-of-one"
    )
