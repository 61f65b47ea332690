"""Step 2 of a person's own data: what was found, in words, and one question at a time with its fixes as buttons."""

from __future__ import annotations

from typing import Any

import streamlit as st

from core.images import BadImage
from core.images.maps import Found, Maps, Question, find_maps, settle
from core.lab.own_sample import sample_zip
from pages.parts import dropped, own_drop, shelf


def check(files: dict[str, list[own_drop.File]]) -> Maps | None:
    """Read the files and show what they hold. Returns the maps once no question is open, else None."""
    if not any(files.values()):
        st.caption(
            "Here you will read what your files hold: how many maps and masks, whether their names and sizes fit, how the numbers were "
            "read. What only you "
            "can know is asked here, one question at a time."
        )
        return None
    key = dropped.key_of(files)
    try:
        found = _found(files, key)
        maps = _settled(found, key)
    except BadImage as problem:
        st.warning(shelf.plain(str(problem)), icon=":material/broken_image:")
        return None
    for problem in maps.problems:
        st.warning(shelf.plain(problem), icon=":material/broken_image:")
    if maps.questions:
        _ask(maps.questions[0], len(maps.questions))
    st.markdown("\n".join(f"- {shelf.plain(note)}" for note in maps.notes))
    if st.session_state.get("own-answers"):
        st.button(
            "Ask me again", on_click=_unanswer, icon=":material/undo:", help="Take the last answer back."
        )
    return maps if maps.ready else None


def _found(files: dict[str, list[own_drop.File]], key: tuple[object, ...]) -> Found:
    kept: tuple[tuple[object, ...], Found] | None = st.session_state.get("own-found")
    if kept is None or kept[0] != key:
        with st.spinner("Reading your files …"):
            maps = [
                (name, sample_zip() if name == own_drop.SAMPLE and not data else data)
                for name, data in files["own-maps"]
            ]
            table = next(iter(files["own-groups"]), None)
            kept = (key, find_maps(maps, files["own-masks"], files["own-images"], table))
        st.session_state["own-found"] = kept
    return kept[1]


def _settled(found: Found, key: tuple[object, ...]) -> Maps:
    answers: dict[str, str] = st.session_state.get("own-answers", {})
    mark = (key, tuple(answers.items()))
    kept: tuple[Any, Maps] | None = st.session_state.get("own-maps-read")
    if kept is None or kept[0] != mark:
        kept = (mark, settle(found, answers))
        st.session_state["own-maps-read"] = kept
    return kept[1]


def _ask(question: Question, open_: int) -> None:
    more = f" ({open_ - 1} more question{'s' if open_ > 2 else ''} after this)" if open_ > 1 else ""
    st.info(shelf.plain(question.text) + more, icon=":material/help:")
    for choice in question.choices[:12]:
        st.button(
            shelf.plain(choice.label), on_click=_answer, args=(question.key, choice.value), key=f"own-{question.key}-{choice.value}",
            width="stretch", type="primary" if choice is question.choices[0] else "secondary",
        )  # fmt: skip
    if len(question.choices) > 12:
        st.selectbox(
            "Another one", [c.value for c in question.choices[12:]], index=None, key=f"own-{question.key}-rest",
            on_change=lambda: _answer(question.key, str(st.session_state[f"own-{question.key}-rest"])),
        )  # fmt: skip


def _answer(key: str, value: str) -> None:
    st.session_state["own-answers"] = {**st.session_state.get("own-answers", {}), key: value}


def _unanswer() -> None:
    answers = dict(st.session_state.get("own-answers", {}))
    if answers:
        answers.popitem()
    st.session_state["own-answers"] = answers
