"""What a visitor has chosen: study, seed, level and kind of promise, all of it in the address. Controls are built from the settings table.

The study is one value, `model=polyp-sinet`, though the header shows two choosers for it: so old links live. It is no widget's own state; this module
keeps session and address in step. It computes nothing.
"""

from __future__ import annotations

import streamlit as st

from core.lab.domains import NETWORKS, TITLES, domains, kind_of, kinds_of, study_of
from core.lab.sources import domain_of
from core.lab.study import STUDIES
from core.settings import CoverageSettings, knobs

KNOBS = knobs(CoverageSettings)


def model() -> str:
    """The study. A name in the address that this session did not write itself wins: a link, or the browser's way back."""
    default = str(KNOBS["model"].default)
    asked = st.query_params.get("model")
    if asked is not None and asked != st.session_state.get("model-in-address"):
        st.session_state["model-in-address"] = asked
        if asked in STUDIES:
            st.session_state["model"] = asked
        else:
            st.toast(
                f"The study {asked!r} is not here; the others are in the list above.",
                icon=":material/link_off:",
            )
    chosen = st.session_state.get("model")
    return str(chosen) if chosen in STUDIES else default


def keep_model(name: str) -> None:
    """Write the study into the address; the default needs no word there."""
    if name == KNOBS["model"].default and "model" not in st.query_params:
        return
    st.session_state["model-in-address"] = name
    if st.query_params.get("model") != name:
        st.query_params["model"] = name


def study_choosers() -> None:
    """Two choosers, domain and base network, that make one study of all that ship."""
    name = model()
    domain, kind = domain_of(name), kind_of(name)
    st.session_state["domain"], st.session_state["network"] = domain, kind
    st.selectbox(
        "Domain",
        domains(),
        format_func=lambda d: TITLES[d],
        key="domain",
        on_change=_choose,
        label_visibility="collapsed",
        width=135,
    )
    kinds = kinds_of(domain)
    st.selectbox(
        "Base network",
        kinds,
        format_func=lambda k: NETWORKS[k],
        key="network",
        on_change=_choose,
        label_visibility="collapsed",
        width=145,
        disabled=len(kinds) < 2,
    )
    keep_model(name)


def _choose() -> None:
    """A chooser moved: keep the network where the domain has it."""
    name = study_of(st.session_state["domain"], st.session_state["network"])
    st.session_state["model"] = st.session_state["model-in-address"] = name
    st.query_params["model"] = name


def model_and_seed() -> tuple[str, int]:
    """What the header says."""
    return model(), int(st.session_state.get("seed", KNOBS["seed"].default))


def alpha_slider(label_visibility: str = "visible") -> float:
    """The α slider, the same on every page, its value in the address."""
    knob = KNOBS["alpha"]
    return float(
        st.slider(
            knob.label,
            float(knob.low or 0),
            float(knob.high or 1),
            float(knob.default),
            float(knob.step or 0.01),
            key="alpha",
            bind="query-params",
            help=knob.help,
            label_visibility=label_visibility,  # type: ignore[arg-type]
        )
    )


def promise_switch() -> float | None:
    """On average, or with confidence: returns δ, or None for on average. Both are in the address."""
    kind, delta = KNOBS["promise"], KNOBS["delta"]
    with st.container(horizontal=True, vertical_alignment="center", gap="small"):
        st.markdown("Promise", help=kind.help, width="content")
        chosen = st.segmented_control(
            "Kind of promise",
            kind.choices,
            default=kind.default,
            required=True,
            key="promise",
            bind="query-params",
            label_visibility="collapsed",
        )
        if chosen != kind.choices[1]:
            return None
        st.markdown("δ", width="content")
        return float(
            st.number_input(
                delta.label,
                float(delta.low or 0),
                float(delta.high or 1),
                float(delta.default),
                float(delta.step or 0.01),
                key="delta",
                bind="query-params",
                label_visibility="collapsed",
                width=105,
            )
        )
