"""*Train it here* on the margin page: two losses on phantoms while one watches, through the one runner, with a place in the queue and a stop.

It draws and asks; `core.lab.margin_here` trains. The button's ticket lives in the visitor's session; a visitor who leaves gives it up.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import streamlit as st

from core.figures.margin_distances import distance_histogram
from core.figures.margin_learning import learning
from core.figures.margin_reliability import reliability_diagram
from core.figures.temperature_frame import description
from core.lab.margin_here import DEFAULT_MARGIN, SIDE, Budget, Pair, sentences, settings_here, start, words
from core.lab.margin_record import TITLES
from core.settings import MarginSettings, knobs
from core.settings.margin import LOSSES
from pages.parts import waiting

KNOBS = knobs(MarginSettings)
SCOPES = {"all": "all pixels", "foreground": "foreground"}


def budget() -> Budget:
    """How much a run may cost; a test puts a smaller one into the session."""
    kept = st.session_state.get("margin-budget")
    return kept if isinstance(kept, Budget) else Budget()


def finished() -> Pair | None:
    """This visitor's last finished run."""
    kept = st.session_state.get("margin-trained")
    return kept if isinstance(kept, Pair) else None


def show() -> None:
    """The controls, and under them the run: waiting, running, done or failed."""
    spend = budget()
    st.markdown(
        f"This trains two networks on phantoms while you watch, one under each loss, in about half a minute on a quiet machine. It is a smaller "
        f"experiment than the "
        f"recorded one: {spend.train} training pictures of {SIDE} × {SIDE} pixels, a network half as wide, {spend.epochs} epochs each, one seed. Few "
        f"pictures are on purpose: a network that learns them by heart becomes surer than it is right. Everything is measured on "
        f"{spend.check} pictures "
        "that neither has seen. Several people may press the button; one training goes at a time, and equal wishes are served from memory."
    )
    first, second = _controls(spend)
    if waiting.ticket_of("margin") is not None:
        _watch()
        return
    waiting.show_said("margin")
    run = finished()
    if run is not None:
        _done(run, (first, second))


def _controls(spend: Budget) -> tuple[MarginSettings, MarginSettings]:
    with st.container(horizontal=True, vertical_alignment="bottom", gap="medium"):
        one = _loss("First loss", "CE", "margin-here-first")
        two = _loss("Second loss", "margin", "margin-here-second")
        knob = KNOBS["margin"]
        margin = DEFAULT_MARGIN
        if "margin" in (one, two):
            margin = float(
                st.number_input(
                    knob.label, knob.low, knob.high, DEFAULT_MARGIN, knob.step, key="margin-here-m", width=130,
                    help=f"{knob.help} Networks trained this briefly hardly reach distances of 10, so a smaller m shows more here.",
                )
            )  # fmt: skip
        busy = waiting.busy("margin")
        if st.button(
            "Train both", type="primary", icon=":material/model_training:", disabled=busy or one == two, key="margin-here-train"
        ):  # fmt: skip
            waiting.take("margin", start(settings_here(one, margin), settings_here(two, margin), spend))
            st.rerun()
        if st.button("Stop", icon=":material/stop_circle:", disabled=not busy, key="margin-here-stop"):
            waiting.stop("margin")
            st.rerun()
    if one == two:
        st.caption("Choose two different losses to compare them.")
    return settings_here(one, margin), settings_here(two, margin)


def _loss(label: str, default: str, key: str) -> str:
    return str(
        st.selectbox(
            label, LOSSES, index=LOSSES.index(default), format_func=TITLES.__getitem__, key=key, width=190, help=KNOBS["loss"].help
        )
    )  # fmt: skip


@st.fragment(run_every=2.0)
def _watch() -> None:
    """Look at the ticket every other second; when the run has ended, the page is drawn once more with its diagrams."""

    def who(facts: Mapping[str, Any]) -> str:
        return TITLES[facts["loss"]] if "loss" in facts else "Getting ready"

    state = waiting.look("margin", who, "try it again, or with other losses")
    if state is not None and state.facts:
        _curves(state.facts["rows"], budget().epochs, "all", "live")


def _curves(rows: Mapping[str, Any], epochs: int, scope: str, key: str) -> None:
    shown = {loss: [{**r, "ece": r.get(f"ece_{scope}")} for r in some] for loss, some in rows.items()}
    figure = learning(shown, epochs)
    st.plotly_chart(
        figure, width="stretch", key=f"margin-learning-{key}", alt=description(figure), config={"displayModeBar": False}
    )  # fmt: skip


def _done(run: Pair, asked: tuple[MarginSettings, MarginSettings]) -> None:
    scope = str(
        st.segmented_control(
            "What is counted", list(SCOPES), default="all", required=True, format_func=SCOPES.__getitem__, key="margin-here-scope",
            help="Foreground: only pixels whose truth is lesion, as the paper of the margin loss counts.",
        )
    )  # fmt: skip
    first, *rest = sentences(run, scope)
    st.markdown(f"**{first}** {' '.join(rest)}")
    losses = list(run.settings)
    titles = {loss: words(s) for loss, s in run.settings.items()}
    left, right = st.columns([3, 2], gap="medium")
    with left:
        counted = "pixels whose truth is lesion" if scope == "foreground" else "all pixels"
        chart = reliability_diagram(
            {loss: run.pooled(loss, scope) for loss in losses}, f"{counted}, {run.budget.check} pictures left out", titles=titles
        )  # fmt: skip
        st.altair_chart(chart, width="stretch", key="margin-here-diagram")
    with right:
        margin = next((s.margin for s in run.settings.values() if s.loss == "margin"), asked[1].margin)
        distances = distance_histogram(
            run.edges, {loss: run.distances(loss) for loss in losses}, margin, scope=f"all pixels of {run.budget.check} pictures", titles=titles
        )  # fmt: skip
        st.altair_chart(distances, width="stretch", key="margin-here-distances")
    _curves(run.history, run.budget.epochs, scope, "done")
    st.caption(
        f"{' and '.join(titles.values())}, {run.seconds:.0f} s. One seed and {run.budget.check} drawn pictures: another seed may fall the "
        f"other way. The "
        "recorded table above has three seeds and real pictures."
    )
    if run.settings != {s.loss: s for s in asked}:
        st.caption("The controls have moved since; press the button to train what they say.")
