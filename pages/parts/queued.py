"""What networks say of a visitor's picture: from this session's memory, or one after another with everybody else's."""

from __future__ import annotations

import time
import uuid
from collections import OrderedDict
from collections.abc import Callable, Hashable
from typing import TypeVar

import streamlit as st

from pages.parts.shelf import RUNNER

KEPT = 24
"""Pictures whose answers a session keeps."""

MEMORIES = "queued-memories"

T = TypeVar("T")


def through_runner(
    memory: str, key: Hashable, work: Callable[[], T], words: str = "The networks look …"
) -> T:
    """The answer, with its place in the queue shown while it waits.

    Args:
        memory: Key of the answers in the session.
        key: What makes an answer the same.
        work: Gives the answer; it runs in another thread and must not draw.
        words: What is shown while it runs.

    Whatever `work` raises is raised here.
    """
    st.session_state.setdefault(MEMORIES, set()).add(memory)
    kept: OrderedDict[Hashable, T] = st.session_state.setdefault(memory, OrderedDict())
    if key not in kept:
        session = st.session_state.setdefault("session-id", uuid.uuid4().hex)
        ticket = RUNNER.submit((session, key), lambda on_step: work())
        place = st.empty()
        try:
            while (state := ticket.state()).status in ("waiting", "running"):
                place.caption(f"Place {state.place} in the queue …" if state.place else words)
                time.sleep(0.05)
            kept[key] = ticket.result()
        finally:
            ticket.leave()
            place.empty()
        while len(kept) > KEPT:
            kept.popitem(last=False)
    return kept[key]


def forget_answers() -> None:
    """Let go of every answer that this session keeps."""
    for memory in st.session_state.pop(MEMORIES, set()):
        st.session_state.pop(memory, None)
