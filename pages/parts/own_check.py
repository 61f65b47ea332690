"""Step 2 of a person's own data: what was found, in words, and one question at a time with its fixes as buttons."""

from __future__ import annotations

from typing import Any

import streamlit as st

from core.images import BadImage
from core.images.maps import Found, Maps, find_maps, settle
from core.lab.own_sample import sample_zip
from pages.parts import asked, dropped, own_drop, shelf

ANSWERS = "own-answers"


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
        asked.ask(maps.questions[0], ANSWERS, "own", more=len(maps.questions) - 1)
    st.markdown("\n".join(f"- {shelf.plain(note)}" for note in maps.notes))
    asked.ask_again(ANSWERS, "own")
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
    answers = asked.answers_of(ANSWERS)
    mark = (key, tuple(answers.items()))
    kept: tuple[Any, Maps] | None = st.session_state.get("own-maps-read")
    if kept is None or kept[0] != mark:
        kept = (mark, settle(found, answers))
        st.session_state["own-maps-read"] = kept
    return kept[1]
