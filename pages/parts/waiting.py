"""Waiting for the one runner on a page: place in the queue, progress, stop, and what a visitor is told when a run ends.

A name keeps the trainings of different pages apart in the session. What is trained and how its result is drawn belong to the page; what runs belongs
to `core.lab.jobs`.
"""

from __future__ import annotations

import logging
import math
from collections.abc import Callable, Mapping
from typing import Any

import streamlit as st

from core.lab.jobs import JobState, Ticket


def ticket_of(name: str) -> Ticket | None:
    """This visitor's ticket, or None."""
    ticket = st.session_state.get(f"{name}-ticket")
    return ticket if isinstance(ticket, Ticket) else None


def take(name: str, ticket: Ticket) -> None:
    """Keep a new ticket instead of an old one."""
    leave(name)
    st.session_state[f"{name}-ticket"] = ticket


def leave(name: str) -> None:
    """Give up the ticket of this visitor, if there is one."""
    ticket = ticket_of(name)
    st.session_state.pop(f"{name}-ticket", None)
    if ticket is not None:
        ticket.leave()


def busy(name: str) -> bool:
    """Whether this visitor's run waits or runs."""
    ticket = ticket_of(name)
    return ticket is not None and ticket.state().status in ("waiting", "running")


def stop(name: str) -> None:
    """Give up the ticket and say so on the next run of the page."""
    leave(name)
    say(name, "The run was stopped; nothing of it was kept.")


def say(name: str, words: str) -> None:
    """A sentence for the next run of the page."""
    st.session_state[f"{name}-said"] = words


def show_said(name: str) -> None:
    """Show that sentence once, if there is one."""
    if said := st.session_state.pop(f"{name}-said", None):
        st.info(said, icon=":material/info:")


def look(
    name: str, who: Callable[[Mapping[str, Any]], str], advice: str, unit: str = "epochs"
) -> JobState | None:
    """Draw how the run stands. When it has ended, keep its result under `NAME-trained` or say why not, and draw the page again.

    Call it from a fragment that runs every second or two.

    Args:
        name: The training's name.
        who: From the run's facts to what is running, in words.
        advice: What a visitor may try when a run fails.
        unit: What is counted.

    Returns:
        The state, for live curves; None when there is no ticket.
    """
    ticket = ticket_of(name)
    if ticket is None:
        return None
    state = ticket.state()
    if state.status == "waiting":
        st.progress(0.0, f"Place {state.place} in the queue. You may go on looking around on this page.")
    elif state.status == "running":
        share = state.done / state.total if state.total else 0.0
        left = "" if state.seconds_left is None else f", about {math.ceil(state.seconds_left)} s left"
        st.progress(min(share, 1.0), f"{who(state.facts)}: {state.done} of {state.total or '?'} {unit}{left}")
    else:
        st.session_state.pop(f"{name}-ticket", None)
        if state.status == "done":
            st.session_state[f"{name}-trained"] = ticket.result()
        elif state.status == "failed":
            say(name, _why(ticket, advice))
        st.rerun()
    return state


def _why(ticket: Ticket, advice: str) -> str:
    try:
        ticket.result()
    except FileNotFoundError as problem:
        return str(problem)
    except Exception:  # a bug of ours: the person gets a sentence, whoever runs the server the traceback
        logging.getLogger("plumbline").exception("Training on the page failed.")
        return f"The run ended with an error. Nothing is lost; {advice}."
    return "The run has ended."
