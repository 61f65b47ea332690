"""Own data: your model, your promise. Three steps on one screen: drop, check, promise."""

from __future__ import annotations

import streamlit as st

from core.conformal.control import calibrate
from core.conformal.exchangeability import compare
from core.conformal.groups import calibrate_groups
from core.images.maps import Maps
from core.lab.own import study_own
from core.lab.own_words import own_headline
from pages.parts import lesson, own_check, own_drop, own_promise, own_work

WAITING = "Your model, your promise: bring its score maps with masks, and read what it may promise."

FORMULAS = [
    (
        "Your model's probability of each pixel becomes a logit, so that thresholds have room at both ends.",
        r"s_{ij}=\log\frac{p_{ij}}{1-p_{ij}},\qquad |s_{ij}|\le 15",
    ),
    (
        "Every method marks the pixels whose score reaches the image's threshold; one shift for all comes from the n calibration images "
        "with a lesion.",
        r"C_i(t)=\{\,j:\ \hat\tau_i-s_{ij}\le t\,\},\qquad t'=\min\Big\{t:\ \sum_{i=1}^{n}\mathrm{TPR}_i(t)\ \ge\ (n+1)(1-\alpha)\Big\}",
    ),
    (
        "That needs enough images. With fewer, the whole image is the only honest set.",
        r"n\ \ge\ \frac1\alpha-1",
    ),
    (
        "With groups, each group g finds its own shift on its own images.",
        r"t'_g=t'\ \text{from}\ \{\,i:\ g_i=g\,\}",
    ),
]


def main() -> None:
    """Draw the page: the headline's place first, then the three steps, then what a curious person asks next."""
    headline = st.empty()
    own: own_promise.OwnStudy | None = None
    drop, check, promise = st.columns([10, 9, 11], gap="medium")
    with drop:
        st.subheader("1 · Drop")
        files = own_drop.drop_here()
    with check:
        st.subheader("2 · Check")
        maps = own_check.check(files)
    with promise:
        st.subheader("3 · Promise")
        settings = own_promise.controls()
        if maps is None:
            st.caption(
                "Here you will read what your model may promise: how much of a lesion lies inside the marked area, on average, and how "
                "much of an image that "
                "marks. You can take the calibration with you and apply it in your own pipeline."
            )
        else:
            own = promised(maps, settings)
    if maps is None or own is None:
        headline.header(WAITING)
    else:
        headline.header(own_headline(own))
        below(own, settings)
    lesson.show("own_data")
    lesson.formula(FORMULAS)
    lesson.code([calibrate, calibrate_groups, compare, study_own])


def promised(maps: Maps, settings: own_promise.OwnSettings) -> own_promise.OwnStudy | None:
    """Metrics of step 3; a problem is a sentence."""
    try:
        prepared = own_work.prepared_of(maps)
        own = own_promise.studied(prepared, own_work.trained_of(prepared), settings)
    except ValueError as problem:
        st.warning(str(problem), icon=":material/info:")
        return None
    own_promise.metrics(own)
    return own


def below(own: own_promise.OwnStudy, settings: own_promise.OwnSettings) -> None:
    """Everything under the three steps."""
    left, right = st.columns([3, 2], gap="medium")
    with left:
        own_promise.promised(own)
    with right:
        own_work.offer(own.prepared, settings)
    own_promise.evidence_of(own)
    own_promise.groups(own)
    own_promise.take_home(own)


main()
