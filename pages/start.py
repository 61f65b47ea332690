"""Start: a promise on average is not a promise to you. One hard picture, what CRC and COAT find in it, and
the way to every page.
"""

from __future__ import annotations

import numpy as np
import streamlit as st

from core.conformal.control import calibrate
from core.conformal.words import percent, promised
from core.figures.margin_reliability import reliability_mini
from core.lab import margin_record
from core.lab.domains import title_of, words_of
from core.lab.margin_words import pooled
from core.lab.promise import Promise, promise
from core.lab.study import Split, hardest, shipped_study
from core.lab.words import area_ratio, spread_sentence, start_headline
from pages.components.picture import picture
from pages.parts import confusion_card, evidence, lesson, shelf, sparse_card


def model_of_page() -> str:
    """The study whose pictures this page shows: the header's, where this server can show them, else the drawn one."""
    model, _ = shelf.model_and_seed()
    names = shipped_study(model).curves.names
    return model if shelf.pool_image(model, names[0]) is not None else "phantom"


def hard_images(split: Split) -> list[str]:
    """The ten test images that CRC serves worst. One that COAT saves at the lowest price comes first, then worst first."""
    names = split.study.curves.names
    ten = hardest(split, "CRC", 10)
    coat, price = split.coverage("COAT"), split.area("COAT") / np.maximum(split.area("CRC"), 1e-6)
    saved = [i for i in ten if coat[i] >= 1 - split.alpha - 0.1]
    first = min(saved, key=lambda i: price[i]) if saved else ten[0]
    return [names[first], *(names[i] for i in ten if i != first)]


def easy_images(split: Split) -> list[str]:
    """Ten test images that both cover, those first on which CRC marks most in vain: smallest area of COAT over CRC's."""
    crc, coat = split.coverage("CRC"), split.coverage("COAT")
    ratio = split.area("COAT") / np.maximum(split.area("CRC"), 1e-6)
    good = [i for i in split.testing if min(crc[i], coat[i]) >= 1 - split.alpha]
    return [
        split.study.curves.names[i] for i in sorted(good or list(split.testing), key=lambda i: ratio[i])[:10]
    ]


def shown_image(split: Split) -> tuple[str, Promise]:
    """The image of this run: from the address, or the first hard one."""
    names = split.study.curves.names
    name = st.query_params.get("image", "")
    if name not in names:
        name = hard_images(split)[0]
    scored, found = shelf.scored_pool_image(split.study.name, name), shelf.pool_image(split.study.name, name)
    assert scored is not None and found is not None  # phantoms can always be drawn
    return name, promise(scored, found[1], alpha=split.alpha, seed=split.seed)


def go_on(images: list[str], name: str) -> None:
    """Go to the image behind this one in a list, or to its first."""
    st.query_params["image"] = images[(images.index(name) + 1) % len(images)] if name in images else images[0]


def first_screen(split: Split, name: str, p: Promise) -> None:
    """Headline, picture, controls, metrics."""
    st.header(start_headline(split, p))
    left, right = st.columns([5, 2], gap="medium")
    with left:
        picture(
            p.image,
            p.logits,
            {m: p.tau[m] for m in ("CRC", "COAT")},
            mask=p.mask,
            alpha=p.alpha,
            mode="wipe",
            alt=f"{words_of(split.study.name).picture.capitalize()}, {name}: left of the handle what CRC marks, right of it what COAT marks",
            height=430,
            key="wipe",
        )
    with right:
        st.markdown(
            "*A promise on average is not a promise to you.* Drag the handle: CRC is left of it, COAT right."
        )
        with st.container(horizontal=True):
            st.button(
                "Next hard image",
                on_click=go_on,
                args=(hard_images(split), name),
                icon=":material/skip_next:",
            )
            st.button(
                "An easy one",
                on_click=go_on,
                args=(easy_images(split), name),
                icon=":material/sentiment_satisfied:",
            )
        if p.coverage:
            st.metric(
                "Lesion found, CRC → COAT", f"{percent(p.coverage['CRC'])} → {percent(p.coverage['COAT'])}"
            )
        st.metric("Image marked, CRC → COAT", f"{percent(p.area['CRC'])} → {percent(p.area['COAT'])}")
        ratio = area_ratio(p)
        st.metric("COAT's area, as a multiple of CRC's", "∞" if np.isinf(ratio) else f"{ratio:.1f} ×")
        shelf.way_to("coverage", "Try your own image", ":material/upload:")
    legend = (
        "CRC, conformal risk control, has one threshold for all images; COAT predicts one for each. White line: the true "
        "lesion. Hatched: lesion that is missed. Tinted: marked."
    )
    if split.study.name == "phantom":
        chosen, _ = shelf.model_and_seed()
        legend += " The picture is drawn, not taken: a phantom whose lesion is known exactly."
        if chosen != "phantom":
            legend += f" The pictures of the study *{title_of(chosen)}* do not ship; its numbers are on the Coverage page."
    st.caption(legend)


def five_minutes(split: Split) -> None:
    """What a promise is, step by step, with this study's numbers."""
    st.subheader("What a promise is, in five minutes")
    crc, coat = split.evaluations["CRC"], split.evaluations["COAT"]
    n = split.calibrations["CRC"].n
    target = promised(split.alpha)
    steps = {
        "1 · Scores": "A network gives every pixel a score. High means *lesion, I think*. Nothing is promised yet: the "
        "network may be too sure or too shy.",
        "2 · A set": "Choose a threshold and mark every pixel whose score reaches it. Low threshold: more of the lesion "
        "is inside, and more of everything else. *Coverage* is the share of the lesion inside; *set area* is the price.",
        "3 · Calibrate": f"Take {n} images whose lesions are known. Lower the threshold until, averaged over them and a "
        f"little beyond (to pay for the one image you have not seen), {target} of each lesion is inside. That is "
        "conformal risk control, CRC.",
        "4 · The promise": split.calibrations["CRC"].guarantee
        + f" Here: {percent(crc.coverage)} over {crc.n} test images.",
        "5 · And you?": f"On average! Single images lie {100 * crc.gap:.0f} points from {target} under CRC: some get "
        "everything, some nearly nothing. COAT predicts a threshold for each image and calibrates on top: the same "
        f"promise, {100 * coat.gap:.0f} points. No method can promise {target} for every single image; the gap says "
        "how close it comes.",
    }
    for tab, text in zip(st.tabs(list(steps)), steps.values(), strict=True):
        tab.markdown(text)
    draws = shelf.spread(split.study.name, split.alpha, split.seed)["CRC"]
    low, high = np.quantile(draws, [0.05, 0.95])
    st.markdown(
        "**Is it kept?** "
        + spread_sentence(split.alpha, float(low), float(high), float(draws.mean()), len(draws))
    )


def ways(split: Split) -> None:
    """The way to each page, a living miniature on its card."""
    from core.figures.strip import strip_chart

    st.subheader("Where to go")
    left, right = st.columns(2, gap="medium")
    with left.container(border=True, height="stretch"):
        st.markdown(
            "**Coverage** · How low must the threshold be *for this image* so that most of its lesion is inside?"
        )
        coverage = {m: split.coverage(m) for m in ("CRC", "COAT")}
        chart = strip_chart(
            split.study.curves.names, evidence.parts_of(split), coverage, split.alpha, show="test", height=250
        )
        st.altair_chart(chart, width="stretch", key="mini")
        st.caption("One column an image, worst on the left: orange squares CRC, blue dots COAT.")
        shelf.way_to("coverage", "Open Coverage", ":material/target:")
    with right.container(border=True, height="stretch"):
        margin_card()
    left, right = st.columns(2, gap="medium")
    with left.container(border=True, height="stretch"):
        confusion_card.show()
    with right.container(border=True, height="stretch"):
        sparse_card.show()
    with st.container(border=True):
        st.markdown("**Where to start**")
        st.markdown(
            "*Teacher*: open the lesson below, project this page, ask the question before you touch the handle.\n\n"
            "*Student*: the five minutes above, then Coverage: drag the threshold and watch the price.\n\n"
            "*Engineer*: *Show the code* below; `python -m core predict --help`."
        )
        st.markdown("**For programs** · The same promise on one screen, as REST endpoint and as MCP tool.")
        st.markdown("[Open the one-screen version](/gradio/) · its foot describes REST and MCP.")


def margin_card() -> None:
    """Reliability of two losses as a miniature; the link alone where nothing is recorded."""
    st.markdown(
        "**Margin** · Can you believe 0.9? How often is a network right where it says how sure it is, and what does its loss have to do with it?"
    )
    try:
        found = margin_record.records("phantom")
    except (FileNotFoundError, ValueError) as problem:
        st.caption(str(problem))
        found = {}
    tables = {k: pooled(found[k], "all") for k in ("CE", "margin") if k in found}
    if tables:
        st.altair_chart(reliability_mini(tables, height=250), width="stretch", key="mini-margin")
        st.caption(
            "What is true against what is said, on drawn pictures: grey cross-entropy, blue the margin. On the diagonal both agree."
        )
    shelf.way_to("margin", "Open Margin", ":material/straighten:")


GLOSSARY = {
    "score, logit": "What the network says of a pixel, on a scale from −15 to 15; 0 is a probability of one half.",
    "threshold τ": "Pixels whose score reaches it are marked.",
    "set": "All marked pixels of an image; also called prediction set.",
    "coverage": "Share of a lesion's pixels inside the set. One minus it is the false-negative rate.",
    "α": "The share that may be missed, on average over images and draws.",
    "calibration set": "Images with known lesions that fix the threshold, and nothing else.",
    "exchangeable, drawn alike": "The assumption behind every promise here: the next image could as well have been one of the calibration images.",
    "CRC": "Conformal risk control: one threshold for all images (Angelopoulos and others, 2024).",
    "plug-in": "The threshold at which the network itself expects the wanted coverage. No training.",
    "AA-CRC": "A threshold that is a linear rule of what a network says of the image. One half of the calibration set sets the rule, the "
    "other shifts it.",
    "AT": "Adaptive thresholding: a predictor of the threshold that would have been right.",
    "COAT": "Conditional optimisation for adaptive thresholding: a predictor trained on coverage itself.",
    "reliability, calibrated": "A network is calibrated where pixels of which it says 90 % are right nine times in ten. A "
    "reliability diagram draws one "
    "against the other.",
    "ECE": "Expected calibration error: mean distance of what is said from what is true, over bins of confidence.",
    "logit distance": "How far a class's logit lies below the largest one of its pixel. A margin leaves distances below m alone.",
    "long tail": "A few frequent classes and many rare ones, as in most collections of images.",
    "confusion matrix": "For each true class, how many of its images are called what. Columns are true classes, rows what is said.",
    "recall": "Share of a class's images that is found. The worst class is the one with the lowest.",
    "σ₁, spectrum": "The largest singular value of the error rates: how much errors share one direction. Its vectors say which classes lose and "
    "which they are taken for.",
    "CAR": "Confusion-aware spectral regularizer: adds σ₁ of the running confusion matrix to cross-entropy.",
    "sparse code, λ": "A picture written as a sum of few atoms. λ is what an atom costs: the larger, the more is thrown away.",
    "TA-CSC": "Training-adaptive convolutional sparse coding: layers that code instead of filter, each with a λ that training turns.",
    "BN": "Batch normalisation. Refreshing its statistics on new images is the oldest adaptation without labels, and hard to beat.",
    "gap": "Mean distance of single images from the target. Marking everything gives a gap of exactly α: look at the area too.",
    "oracle": "The best threshold for each image, which only the truth knows.",
    "phantom": "A drawn picture with an exactly known lesion.",
}


def main() -> None:
    """Draw the page."""
    _, seed = shelf.model_and_seed()
    split = shelf.split(model_of_page(), shelf.KNOBS["alpha"].default, seed)
    name, p = shown_image(split)
    first_screen(split, name, p)
    st.markdown("**What is promised, and what it assumes.** " + " ".join(p.sentences))
    five_minutes(split)
    ways(split)
    with st.expander("Glossary", icon=":material/dictionary:"):
        for term, meaning in GLOSSARY.items():
            st.markdown(f"**{term}** · {meaning}")
    lesson.show("start")
    rule = r"\sum_{i=1}^{n}\mathrm{TPR}_i(t)\ \ge\ (n+1)(1-\alpha)"
    lesson.formula([("CRC takes the smallest shift t at which the calibration images are covered:", rule)])
    lesson.code([calibrate])


main()
