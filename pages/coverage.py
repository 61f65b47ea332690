"""Coverage: where does the threshold go for your image? COAT's own threshold beside CRC's one, and what
each costs.
"""

from __future__ import annotations

import streamlit as st
from streamlit.delta_generator import DeltaGenerator

from core.coat.objectives import coat_loss
from core.coat.thresholds import plug_in_of_sorted
from core.conformal.aacrc import fit_aacrc
from core.conformal.confidence import calibrate_with_confidence
from core.conformal.control import calibrate
from core.conformal.groups import calibrate_groups
from core.conformal.nested import nested_thresholds
from core.conformal.words import percent
from core.lab.domains import words_of
from core.lab.pool import numbers_of
from core.lab.promise import Promise, promise
from core.lab.shift_ears import hear
from core.lab.study import Split
from core.lab.take_away import probability
from core.lab.words import Numbers, coverage_headline
from pages.parts import choices, coverage_shift, evidence, lesson, questions, shelf, stage, take_home, uploads


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
        "All methods with a threshold make the same promise. COAT differs in who pays for it: it aims at each single image, and no theorem "
        "promises that it succeeds."
    )
    for note in p.notes:
        st.info(note, icon=":material/info:")


def evidence_of_study(model: str, split: Split, chosen: str, shown: Promise | None) -> None:
    """Charts and tables of the whole study, and the questions that follow."""
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
    questions.show(split, chosen, shown)
    coverage_shift.show(split)


def main() -> None:
    """Draw the page: places first, so that what is asked for late may stand early."""
    model, seed = shelf.model_and_seed()
    headline = st.empty()
    slider, *cells = st.columns([5, 4, 4, 4], gap="medium", vertical_alignment="center")
    with slider:
        alpha = shelf.alpha_slider()
    place = st.container()
    controls = st.container(horizontal=True, vertical_alignment="center", gap="medium")
    view = controls.container(width="content")
    with controls:
        delta = choices.promise_switch()
    split = shelf.split(model, alpha, seed, delta)
    drop_zone = st.container()
    with drop_zone:
        mine = uploads.drop_here()
    own = {u.id: u for u in mine}
    with place:
        chosen, shown, notes = stage.look(split, mine)
    names = split.study.curves.names
    if shown:
        with view:
            stage.view_switch()
        headline.header(coverage_headline(shown))
        metrics(shown, cells)
        below(shown, notes, chosen, own, split)
    elif chosen in names:
        numbers = numbers_of(split, names.index(chosen))
        headline.header(coverage_headline(numbers))
        metrics(numbers, cells)
        st.markdown(f"**What is promised, and what it assumes.** {split.calibrations['CRC'].guarantee}")
        st.info(words_of(model).warning, icon=":material/info:")
    else:
        headline.header("This file could not be scored; the others are still here.")
    evidence_of_study(model, split, chosen, shown)
    st.subheader("Take it with you")
    seen = uploads.remembered([u for u in mine if u.id != chosen], model)
    others = [promise(scored, mask, alpha=alpha, seed=seed, delta=delta) for scored, mask in seen]
    take_home.show(split, shown, ([shown] if shown and chosen in own else []) + others)
    lesson.show("coverage")
    lesson.formula(FORMULAS)
    lesson.code(
        [
            calibrate,
            coat_loss,
            plug_in_of_sorted,
            fit_aacrc,
            calibrate_groups,
            calibrate_with_confidence,
            nested_thresholds,
            hear,
        ]
    )


def below(
    shown: Promise, notes: list[str], chosen: str, own: dict[str, uploads.Upload], split: Split
) -> None:
    """What stands under the picture: promise, thresholds, notes."""
    left, right = st.columns([3, 2], gap="medium")
    with left:
        promised(shown)
        coverage_shift.beside(shown, [*own.values()], chosen, split)
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
    (
        "AA-CRC's threshold is linear in features Φ of the image, and at its best the miss is right on average along each of them:",
        r"\hat\tau_i=\theta\cdot\Phi_i,\qquad \sum_{i}\big(1-\mathrm{TPR}_i-\alpha'\big)\,\Phi_i=0",
    ),
    (
        "With confidence 1 − δ: the observed miss R must be so small that a true miss above α would show it by chance only; the smaller "
        "of two bounds, Hoeffding's and Bentkus', is that chance.",
        r"\min\Big(e^{-n\,h(R,\alpha)},\ e\,P\big(\mathrm{Bin}(n,\alpha)\le\lceil nR\rceil\big)\Big)\ \le\ \delta",
    ),
    (
        "Thresholds of all α that nest:",
        r"\tau''_i(\alpha)=\min_{\alpha'\ge\alpha}\tau'_i(\alpha')",
    ),
    (
        "Shift score of n images: w̄ is the mean of what a sparse layer wants on them (pull on λ, log error R; of the picture and of its grain), "
        "μ and Σ mean and covariance of that on clean images, F how many numbers that are.",
        r"\frac{n}{F}\,(\bar w-\mu)^{\top}\Sigma^{-1}(\bar w-\mu),\qquad w\ni 1-\frac{\partial\log R}{\partial\log(\lambda+\varepsilon)},\ \log R",
    ),
]

main()
