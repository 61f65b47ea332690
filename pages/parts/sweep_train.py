"""*Train it here*: AT and COAT fitted on the phantom study while one watches, through the one runner, with a place in the queue and a stop.

It draws and asks; `core.lab.train_here` fits. The button's ticket lives in the visitor's session; a visitor who leaves gives it up.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import streamlit as st

from core.figures.temperature_fit import history
from core.figures.temperature_frame import description
from core.lab.knife import points
from core.lab.train_here import FALL, Budget, Trained, start
from core.settings import SweepSettings, knobs
from pages.parts import waiting

KNOBS = knobs(SweepSettings)


def budget() -> Budget:
    """How much a run may cost; a test puts a smaller one into the session."""
    kept = st.session_state.get("sweep-budget")
    return kept if isinstance(kept, Budget) else Budget()


def finished() -> Trained | None:
    """This visitor's last finished run."""
    kept = st.session_state.get("sweep-trained")
    return kept if isinstance(kept, Trained) else None


def show(temperature: float, unit: str) -> None:
    """The controls, and under them the run: waiting, running, done or failed."""
    spend = budget()
    st.markdown(
        f"This fits AT and COAT on the phantom study while you watch: {spend.members} predictors each, up to {spend.epochs} epochs, well "
        "under a minute. The budget is smaller than the recorded one in one way: a predictor sees the numbers that sum up a score map, not "
        "the small picture. Several people may press the button; one run goes at a time, and equal wishes are served from memory."
    )
    with st.container(horizontal=True, vertical_alignment="bottom", gap="medium"):
        schedule = st.segmented_control(
            KNOBS["schedule"].label,
            KNOBS["schedule"].choices,
            default=KNOBS["schedule"].default,
            required=True,
            format_func=lambda s: (
                f"stays at {temperature:g}"
                if s == "stays"
                else f"falls from {min(FALL * temperature, 20):g} to {temperature:g}"
            ),
            key="schedule",
            help=KNOBS["schedule"].help,
            bind="query-params",
        )
        miss = st.segmented_control(
            KNOBS["miss"].label,
            KNOBS["miss"].choices,
            default=KNOBS["miss"].default,
            required=True,
            key="miss",
            help=KNOBS["miss"].help,
            bind="query-params",
        )
        busy = waiting.busy("sweep")
        if st.button(
            f"Train with T = {temperature:g}",
            type="primary",
            icon=":material/model_training:",
            disabled=busy,
            key="train",
        ):
            waiting.take("sweep", start(temperature, unit, str(miss), schedule == "falls", spend))
            st.rerun()
        if st.button("Stop", icon=":material/stop_circle:", disabled=not busy, key="stop"):
            waiting.stop("sweep")
            st.rerun()
    if waiting.ticket_of("sweep") is not None:
        _watch(spend)
        return
    waiting.show_said("sweep")
    run = finished()
    if run is not None:
        _done(run)


@st.fragment(run_every=1.0)
def _watch(spend: Budget) -> None:
    """Look at the ticket once a second; when the run has ended, the page is drawn once more with its points."""

    def who(facts: Mapping[str, Any]) -> str:
        return (
            f"{facts['method']}, predictor {facts['member']} of {spend.members}"
            if "method" in facts
            else "Starting"
        )

    state = waiting.look("sweep", who, "try it again, or with another T")
    if state is not None:
        _curves(state.facts.get("rows", {}), spend.epochs, "live")


def _curves(rows: Mapping[str, Any], epochs: int, key: str) -> None:
    figure = history(rows or {"AT": (), "COAT": ()}, epochs)
    st.plotly_chart(
        figure,
        width="stretch",
        key=f"sweep-history-{key}",
        alt=description(figure),
        config={"displayModeBar": False},
    )


def _done(run: Trained) -> None:
    s = run.settings
    span = (
        f"T = {s.temperature_end:g}"
        if s.temperature_start == s.temperature_end
        else f"T from {s.temperature_start:g} to {s.temperature_end:g}"
    )
    st.markdown(
        f"**This run, reduced budget:** {span} in {'logits' if s.unit == 'logit' else 'probabilities'}, {run.images} images of D2, "
        f"{run.seconds:.0f} s. On images left out, AT misses by {points(run.gap['AT'])} and COAT by {points(run.gap['COAT'])} (mean over "
        "four levels of α). On the map its points are diamonds, in the table it has rows of its own."
    )
    _curves(run.history, s.epochs, "done")


def rows(run: Trained | None, figures: Mapping[str, Any] | None) -> list[dict[str, object]]:
    """This run's rows for the table of methods."""
    if run is None or figures is None:
        return []
    out: list[dict[str, object]] = []
    for method, values in figures.items():
        gap, coverage, area = (float(v) for v in values[:, 0])
        out.append(
            {"method": f"{method}, this run (reduced budget)", "coverage": coverage, "gap": gap, "area": area}
        )
    return out
