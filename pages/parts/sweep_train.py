"""*Train it here*: AT and COAT fitted on the phantom study while one watches, through the one runner, with a place in the queue and a stop.

It draws and asks; `core.lab.train_here` fits. The button's ticket lives in the visitor's session; a visitor who leaves gives it up.
"""

from __future__ import annotations

import logging
import math
from collections.abc import Mapping
from typing import Any

import streamlit as st

from core.figures.temperature_fit import history
from core.figures.temperature_frame import description
from core.lab.jobs import Ticket
from core.lab.knife import points
from core.lab.train_here import FALL, Budget, Trained, start
from core.settings import SweepSettings, knobs

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
        busy = _busy()
        if st.button(
            f"Train with T = {temperature:g}",
            type="primary",
            icon=":material/model_training:",
            disabled=busy,
            key="train",
        ):
            leave()
            st.session_state["sweep-ticket"] = start(temperature, unit, str(miss), schedule == "falls", spend)
            st.rerun()
        if st.button("Stop", icon=":material/stop_circle:", disabled=not busy, key="stop"):
            leave()
            st.session_state["sweep-said"] = "The run was stopped; nothing of it was kept."
            st.rerun()
    ticket = st.session_state.get("sweep-ticket")
    if isinstance(ticket, Ticket):
        _watch(spend)
    elif said := st.session_state.pop("sweep-said", None):
        st.info(said, icon=":material/info:")
    run = finished()
    if run is not None and not isinstance(ticket, Ticket):
        _done(run)


def leave() -> None:
    """Give up the ticket of this visitor, if there is one."""
    ticket = st.session_state.pop("sweep-ticket", None)
    if isinstance(ticket, Ticket):
        ticket.leave()


def _busy() -> bool:
    ticket = st.session_state.get("sweep-ticket")
    return isinstance(ticket, Ticket) and ticket.state().status in ("waiting", "running")


@st.fragment(run_every=1.0)
def _watch(spend: Budget) -> None:
    """Look at the ticket once a second; when the run has ended, draw the page once more with its points."""
    ticket = st.session_state.get("sweep-ticket")
    if not isinstance(ticket, Ticket):
        return
    state = ticket.state()
    if state.status == "waiting":
        st.progress(0.0, f"Place {state.place} in the queue. You may go on looking around on this page.")
    elif state.status == "running":
        share = state.done / state.total if state.total else 0.0
        left = "" if state.seconds_left is None else f", about {math.ceil(state.seconds_left)} s left"
        facts = state.facts
        who = (
            f"{facts['method']}, predictor {facts['member']} of {spend.members}"
            if "method" in facts
            else "Starting"
        )
        st.progress(min(share, 1.0), f"{who}: {state.done} of {state.total or '?'} epochs{left}")
    else:
        st.session_state.pop("sweep-ticket", None)
        if state.status == "done":
            st.session_state["sweep-trained"] = ticket.result()
        elif state.status == "failed":
            st.session_state["sweep-said"] = _why(ticket)
        st.rerun()
    _curves(state.facts.get("rows", {}), spend.epochs, "live")


def _why(ticket: Ticket) -> str:
    try:
        ticket.result()
    except FileNotFoundError as problem:
        return str(problem)
    except Exception:  # a bug of ours: the person gets a sentence, whoever runs the server the traceback
        logging.getLogger("plumbline").exception("Training on the page failed.")
        return "The run ended with an error. Nothing is lost; try it again, or with another T."
    return "The run has ended."


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
