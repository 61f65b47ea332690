"""The long work on a person's own data: preparing maps, and training AT and COAT through the one runner that trains, with progress and a stop.

Preparing waits behind uploads only, never behind somebody's training. Results live in the visitor's own session: the runner that trains
remembers results, so a run hands its own over in a box that only this session holds, under a key that nobody shares.
"""

from __future__ import annotations

import math
import time
import uuid
from typing import Any

import streamlit as st

from core.images.maps import Maps
from core.lab.jobs import RUNNER as TRAINER
from core.lab.jobs import Ticket
from core.lab.own import Prepared, Trained, prepare, train, will_train
from core.lab.own_prepare import OnStep
from core.lab.own_train import training_part
from core.lab.own_words import training_offer
from core.settings import CoatSettings, OwnSettings
from pages.parts.shelf import RUNNER


def _session() -> str:
    return str(st.session_state.setdefault("session-id", uuid.uuid4().hex))


def prepared_of(maps: Maps) -> Prepared:
    """The curves of the maps, from this session's memory or through the runner.

    Raises:
        ValueError: As in `core.lab.own.prepare`.
    """
    kept: tuple[tuple[str, ...], Prepared] | None = st.session_state.get("own-prepared")
    key = (*maps.digests, *maps.names)
    if kept is None or kept[0] != key or kept[1].maps is not maps:
        place = st.empty()
        ticket = RUNNER.submit((_session(), "own", key, id(maps)), lambda on_step: prepare(maps, on_step))
        try:
            while (state := ticket.state()).status in ("waiting", "running"):
                said = f"Place {state.place} in the queue …" if state.place else "Looking at your maps …"
                place.progress(state.done / state.total if state.total else 0.0, said)
                time.sleep(0.1)
            kept = (key, ticket.result())
        finally:
            ticket.leave()
            place.empty()
        st.session_state["own-prepared"] = kept
        st.session_state.pop("own-trained", None)
        stop()
    return kept[1]


def trained_of(prepared: Prepared) -> Trained | None:
    """AT and COAT of these maps, if they were trained in this session."""
    kept: tuple[Prepared, Trained] | None = st.session_state.get("own-trained")
    return kept[1] if kept is not None and kept[0] is prepared else None


def variants() -> dict[str, CoatSettings] | None:
    """The predictors' settings; None takes the shipped ones. A test puts smaller ones into the session."""
    found: dict[str, CoatSettings] | None = st.session_state.get("own-variants")
    return found


def offer(prepared: Prepared, settings: OwnSettings) -> None:
    """Offer to train where there are enough images; while it runs, its progress and a stop."""
    ticket = st.session_state.get("own-ticket")
    if isinstance(ticket, Ticket):
        _watch()
        return
    if said := st.session_state.pop("own-said", None):
        st.info(said, icon=":material/info:")
    if trained_of(prepared) is not None or not will_train(prepared, settings):
        return
    with st.container(border=True):
        st.markdown(training_offer(prepared.with_lesion, len(training_part(prepared, settings))))
        if st.button(
            "Train AT and COAT on my images",
            type="primary",
            icon=":material/model_training:",
            key="own-train",
        ):
            how, box = variants(), list[tuple[Prepared, Trained]]()

            def work(on_step: OnStep) -> None:
                box.append((prepared, train(prepared, settings, on_step, how)))

            st.session_state["own-box"] = box
            st.session_state["own-ticket"] = TRAINER.submit(("own", uuid.uuid4().hex), work)
            st.rerun()


def stop() -> None:
    """Give the training up, if one runs."""
    ticket = st.session_state.pop("own-ticket", None)
    st.session_state.pop("own-box", None)
    if isinstance(ticket, Ticket):
        ticket.leave()


@st.fragment(run_every=1.0)
def _watch() -> None:
    """Look at the training once a second; when it has ended, draw the page again with its methods."""
    ticket: Any = st.session_state.get("own-ticket")
    if not isinstance(ticket, Ticket):
        return
    state = ticket.state()
    with st.container(border=True):
        if state.status in ("waiting", "running"):
            left = "" if state.seconds_left is None else f", about {math.ceil(state.seconds_left)} s left"
            gap = state.facts.get("gap")
            so_far = (
                ""
                if gap is None
                else f" An image it has not seen lies {100 * gap:.1f} points from the promise by now."
            )
            said = (
                f"Place {state.place} in the queue."
                if state.place
                else f"{state.facts.get('stage', 'Starting')}{left}.{so_far}"
            )
            st.progress(state.done / state.total if state.total else 0.0, said)
            if st.button("Stop", icon=":material/stop_circle:", key="own-stop"):
                stop()
                st.session_state["own-said"] = (
                    "The training was stopped; nothing of it was kept. Everything else stands as it was."
                )
                st.rerun()
            return
    try:
        ticket.result(0)
        st.session_state["own-trained"] = st.session_state["own-box"][0]
    except ValueError as problem:
        st.session_state["own-said"] = str(problem)
    finally:
        stop()
    st.rerun()
