"""What only the person can know about their files, asked one question at a time, with the answers as buttons.

The answers lie in the session under one key, in the order in which they were given. It draws; `core` puts the questions.
"""

from __future__ import annotations

import streamlit as st

from core.images.maps_values import Question
from pages.parts import shelf

MANY = 12
"""More choices than this go into a list."""


def answers_of(memory: str) -> dict[str, str]:
    """What has been answered, question -> choice, oldest first."""
    answers: dict[str, str] = st.session_state.get(memory, {})
    return answers


def ask(question: Question, memory: str, name: str, first: bool = True, more: int = 0) -> None:
    """Put a question.

    Args:
        question: What is asked.
        memory: Key of the answers in the session.
        name: How the buttons' keys begin.
        first: Whether the first choice is the likely one and stands out.
        more: How many questions come after this one.
    """
    after = f" ({more} more question{'s' if more > 1 else ''} after this)" if more else ""
    st.info(shelf.plain(question.text) + after, icon=":material/help:")
    for k, choice in enumerate(question.choices[:MANY]):
        st.button(
            shelf.plain(choice.label), on_click=_answer, args=(memory, question.key, choice.value), key=f"{name}-{question.key}-{k}",
            width="stretch", type="primary" if first and k == 0 else "secondary",
        )  # fmt: skip
    if len(question.choices) > MANY:
        rest = f"{name}-{question.key}-rest"
        st.selectbox(
            "Another one", [c.value for c in question.choices[MANY:]], index=None, key=rest,
            on_change=lambda: _answer(memory, question.key, str(st.session_state[rest])),
        )  # fmt: skip


def ask_again(memory: str, name: str) -> None:
    """A button that takes the last answer back, where there is one."""
    if answers_of(memory):
        st.button(
            "Ask me again", on_click=_unanswer, args=(memory,), icon=":material/undo:", help="Take the last answer back.", key=f"{name}-undo"
        )  # fmt: skip


def _answer(memory: str, key: str, value: str) -> None:
    st.session_state[memory] = {**answers_of(memory), key: value}


def _unanswer(memory: str) -> None:
    answers = dict(answers_of(memory))
    if answers:
        answers.popitem()
    st.session_state[memory] = answers
