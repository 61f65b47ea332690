"""The lesson of a page, and the two expanders every page has: the formula and the code.

A lesson is a Markdown file in `assets/lessons/` with the sections *Before*, *Steps*, *Answer* and *For the
teacher*. Steps hold share links of this app.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable

import streamlit as st

from core.nets.weights import ASSETS

SECTIONS = ("Before", "Steps", "Answer", "For the teacher")


def sections(name: str) -> dict[str, str]:
    """Title and sections of a lesson: `{"title": ..., "Before": ..., ...}`.

    Raises:
        ValueError: A section is missing.
    """
    text = (ASSETS / "lessons" / f"{name}.md").read_text(encoding="utf-8")
    head, *parts = text.split("\n## ")
    found = {"title": head.removeprefix("# ").strip()}
    for part in parts:
        title, _, body = part.partition("\n")
        found[title.strip()] = body.strip()
    missing = [s for s in SECTIONS if s not in found]
    if missing:
        raise ValueError(f"The lesson {name} lacks the section {missing[0]!r}.")
    return found


def show(name: str) -> None:
    """Draw the lesson, answer and teacher's notes folded away."""
    lesson = sections(name)
    with st.expander(f"Lesson: {lesson['title']}", icon=":material/school:"):
        st.markdown("**A question first.** " + lesson["Before"])
        st.markdown(lesson["Steps"])
        with st.popover("The answer", icon=":material/lightbulb:"):
            st.markdown(lesson["Answer"])
        with st.popover("For the teacher", icon=":material/history_edu:"):
            st.markdown(lesson["For the teacher"])


def formula(latex: list[tuple[str, str]]) -> None:
    """Show formulas, each under one sentence."""
    with st.expander("Show the formula", icon=":material/function:"):
        for words, tex in latex:
            st.markdown(words)
            st.latex(tex)


def code(functions: list[Callable[..., object] | type]) -> None:
    """Show the source of the real functions."""
    with st.expander("Show the code", icon=":material/code:"):
        for function in functions:
            st.caption(f"{function.__module__}.{function.__qualname__}")
            st.code(inspect.getsource(function), language="python")
