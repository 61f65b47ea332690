"""Coverage: where does the threshold go for your image? COAT's own threshold beside CRC's one, and what
each costs.
"""

from __future__ import annotations

import numpy as np
import streamlit as st
from streamlit.delta_generator import DeltaGenerator

from core.coat.objectives import coat_loss
from core.coat.thresholds import plug_in_of_sorted
from core.conformal.control import calibrate
from core.conformal.words import percent
from core.lab.pool import curve_of_pool_image, numbers_of
from core.lab.promise import POLYP_WARNING, Promise, promise
from core.lab.study import Split, hardest
from core.lab.take_away import probability
from core.lab.words import Numbers, coverage_headline
from pages.components.gallery import gallery
from pages.components.picture import picture
from pages.parts import evidence, lesson, shelf, take_home, uploads

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


def promise_of_upload(
    item: uploads.Upload, model: str, alpha: float, seed: int
) -> tuple[Promise, list[str]] | None:
    """Read, score and calibrate one upload; problems are shown as a sentence."""
    try:
        chosen = uploads.choose_slice(item)
        scored = uploads.scored(chosen, model, item.picture.name)
        uploads.remember(item.id, scored, chosen.mask)
        return promise(scored, chosen.mask, alpha=alpha, seed=seed), chosen.notes
    except ValueError as problem:
        st.warning(str(problem), icon=":material/broken_image:")
        return None


def metrics(p: Numbers, cells: list[DeltaGenerator]) -> None:
    """Area, coverage and miss, CRC → COAT, in three cells."""
    rows = [
        (
            "Set area",
            percent(p.area["CRC"]),
            percent(p.area["COAT"]),
            "Share of the image that is marked: the price.",
        )
    ]
    if p.coverage:
        crc, coat = p.coverage["CRC"], p.coverage["COAT"]
        rows += [
            ("Coverage", percent(crc), percent(coat), "Share of this lesion inside the set."),
            ("Missed", percent(1 - crc), percent(1 - coat), "False-negative rate on this image."),
        ]
    else:
        crc_t, coat_t = (f"{probability(p.tau[m]):.2g}" for m in ("CRC", "COAT"))
        rows += [
            ("Threshold", crc_t, coat_t, "Probability from which a pixel is marked."),
            (
                "Coverage",
                "?",
                "?",
                "Not known without a mask of the lesion: that is what the promise is for.",
            ),
        ]
    for cell, (label, crc, coat, help) in zip(cells, rows, strict=True):
        cell.metric(f"{label}, CRC → COAT", f"{crc} → {coat}", help=help)


def promised(p: Promise) -> None:
    """The promise and what it assumes, one sentence each, and the price."""
    st.markdown("**What is promised, and what it assumes**")
    for sentence in p.sentences:
        st.markdown(sentence)
    st.caption(
        "CRC and COAT make the same promise. COAT differs in who pays for it: it aims at each single image, and no theorem promises that it succeeds."
    )
    for note in p.notes:
        st.info(note, icon=":material/info:")


def without_picture(split: Split, i: int) -> None:
    """A pool image whose picture is not on this server: its scores and its curve."""
    from core.figures.curve import coverage_curve, score_histogram

    curves = split.study.curves
    marks = {m: float(split.tau(m)[i]) for m in ("CRC", "plug-in", "COAT")}
    grid, covered, area, edges, lesion, rest = curve_of_pool_image(split.study, i, tuple(marks.values()))
    variable = shelf.DATA_FOLDER.format(split.study.name.upper())
    st.caption(
        f"Image {curves.names[i]} of the {split.study.name} study, {int(curves.lesion_size[i]):,} lesion pixels. No real "
        "picture ships with Plumbline: this is what its score table knows of it. To see it, start the server with "
        f"{variable} set to the folder of the data set (it must hold images/ and masks/)."
    )
    left, right = st.columns(2, gap="medium")
    left.altair_chart(score_histogram(edges, lesion, rest, marks), width="stretch", key="scores-of-one")
    right.altair_chart(
        coverage_curve(grid, covered, area, marks, split.alpha), width="stretch", key="curve-of-one"
    )


def evidence_of_study(model: str, split: Split, chosen: str) -> None:
    """Charts and tables of the whole study."""
    e = split.evaluations["CRC"]
    none = f" ({e.n_empty} more have none)" if e.n_empty else ""
    st.subheader(f"All {e.n} test images with a lesion{none}")
    clicked = evidence.strip(split, chosen)
    if clicked and clicked != chosen:
        st.session_state["wanted"] = clicked
        st.session_state["said"] = f"{clicked} is now shown above."
        st.rerun()
    if said := st.session_state.pop("said", None):
        st.toast(said, icon=":material/arrow_upward:")
    st.subheader("The methods side by side")
    evidence.table(split)
    evidence.trade_and_spread(model, split)


def main() -> None:
    """Draw the page: places first, so that what is asked for late may stand early."""
    model, seed = shelf.model_and_seed()
    headline = st.empty()
    slider, *cells = st.columns([5, 4, 4, 4], gap="medium", vertical_alignment="center")
    with slider:
        alpha = shelf.alpha_slider()
    split = shelf.split(model, alpha, seed)
    place = st.container()
    drop_zone = st.container()
    with drop_zone:
        mine = uploads.drop_here()
    own = {u.id: u for u in mine}
    with place:
        chosen, shown, notes = look(model, seed, split, mine)
    names = split.study.curves.names
    if shown:
        headline.header(coverage_headline(shown))
        metrics(shown, cells)
        below(shown, notes, chosen, own, split)
    elif chosen in names:
        numbers = numbers_of(split, names.index(chosen))
        headline.header(coverage_headline(numbers))
        metrics(numbers, cells)
        st.markdown(f"**What is promised, and what it assumes.** {split.calibrations['CRC'].guarantee}")
        st.info(POLYP_WARNING, icon=":material/info:")
    else:
        headline.header("This file could not be scored; the others are still here.")
    evidence_of_study(model, split, chosen)
    st.subheader("Take it with you")
    seen = uploads.remembered([u for u in mine if u.id != chosen], model)
    others = [promise(scored, mask, alpha=alpha, seed=seed) for scored, mask in seen]
    take_home.show(split, shown, ([shown] if shown and chosen in own else []) + others)
    lesson.show("coverage")
    lesson.formula(FORMULAS)
    lesson.code([calibrate, coat_loss, plug_in_of_sorted])


def look(
    model: str, seed: int, split: Split, mine: list[uploads.Upload]
) -> tuple[str, Promise | None, list[str]]:
    """Gallery and picture. Returns what is looked at (an upload's id or a pool image's name), its promise and notes."""
    names = split.study.curves.names
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
    items += samples(model, seed, here)
    known = [str(item["id"]) for item in items]
    if not items:  # a real study whose pictures are not here, and nothing uploaded
        chosen = here if here in names else names[int(hardest(split, "CRC", 1)[0])]
        st.session_state["looking"] = chosen
        return chosen, *show(chosen, own, split, seed)
    strip, stage = st.columns([1, 6], gap="medium")
    with strip:
        before = st.session_state.get("gallery-last")
        first = here if here in known else before if before in known else known[0]
        chosen = clicked = gallery(items, str(first), key=f"gallery-{model}", label="Images", height=440)
    st.session_state["gallery-last"] = clicked
    if here in names and here not in known and clicked == before:
        chosen = (
            here  # a dot of the strip chart whose picture is not here; it stays until a thumbnail is clicked
        )
    st.session_state["looking"] = chosen
    with stage:
        return chosen, *show(chosen, own, split, seed)


def show(
    chosen: str, own: dict[str, uploads.Upload], split: Split, seed: int
) -> tuple[Promise | None, list[str]]:
    """The picture of what is looked at, or what is known of an image that this server cannot show."""
    model, alpha = split.study.name, split.alpha
    if chosen in own:
        st.query_params.pop("sample", None)  # an upload is in no address
        made = promise_of_upload(own[chosen], model, alpha, seed)
        if made is None:
            return None, []
        shown, notes = made
    else:
        shelf.in_address("sample", chosen)
        scored, found = shelf.scored_pool_image(model, chosen), shelf.pool_image(model, chosen)
        if scored is None or found is None:
            without_picture(split, split.study.curves.names.index(chosen))
            return None, []
        shown, notes = promise(scored, found[1], alpha=alpha, seed=seed), []
    compare = st.session_state.get("view") == VIEWS[1]
    picture(
        shown.image,
        shown.logits,
        shown.tau,
        mask=shown.mask,
        alpha=alpha,
        mode="wipe" if compare else "threshold",
        oracle=shown.oracle_tau,
        alt=f"{shown.name} with the outlines of CRC and COAT",
        height=440,
        key="wipe-picture" if compare else "picture",
    )
    st.segmented_control(
        "What the handle does",
        VIEWS,
        default=VIEWS[0],
        required=True,
        key="view",
        label_visibility="collapsed",
    )
    return shown, notes


def below(
    shown: Promise, notes: list[str], chosen: str, own: dict[str, uploads.Upload], split: Split
) -> None:
    """What stands under the picture: promise, thresholds, notes."""
    left, right = st.columns([3, 2], gap="medium")
    with left:
        promised(shown)
    with right:
        st.markdown(f"**Thresholds of** {shelf.plain(shown.name)}")
        st.dataframe(evidence.thresholds_in_words(shown.tau, shown.tau_hat), hide_index=True, width="stretch")
        st.caption(
            "Thresholds are kept as logits; logit 0 is a probability of 0.5. After calibration τ′ = τ̂ − t with one shift t for all images."
        )
    if chosen not in own:
        names = split.study.curves.names
        if chosen in names and names.index(chosen) in set(split.calibrating.tolist()):
            st.caption(
                "This image helped to calibrate in this draw; the promise is about images that did not."
            )
        if split.study.name == "phantom":
            st.caption("This picture is drawn, not taken: a phantom with an exactly known lesion.")
    if notes:
        with st.expander(
            "What was done to your file", icon=":material/description:", expanded=len(notes) < 3
        ):
            for note in notes:
                st.markdown(f"- {note}")


FORMULAS = [
    (
        "The set of an image holds the pixels whose score reaches its threshold.",
        r"C_i(t)=\{\,j:\ \hat\tau_i-s_{ij}\le t\,\}",
    ),
    (
        "TPR is the share of a lesion inside the set, n the calibration images with a lesion. CRC has one threshold for "
        "all, COAT one for each; both take the smallest shift with",
        r"\sum_{i=1}^{n}\mathrm{TPR}_i(t)\ \ge\ (n+1)(1-\alpha)",
    ),
    (
        "COAT learns its threshold by pushing each image's soft coverage to the target:",
        r"\Big|\frac1{m_i}\sum_{j\in Y_i}\sigma\!\Big(\frac{s_{ij}-\hat\tau_i}{T}\Big)-(1-\alpha)\Big|\ \to\ \min",
    ),
]

main()
