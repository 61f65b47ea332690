"""Files for *Upload your own* on the margin page: they come in, are kept for this visit, are checked, and go when asked.

What only the person can know is asked here, one question at a time. It draws; `core.lab.margin_own` reads and judges.
"""

from __future__ import annotations

from typing import Any

import streamlit as st

from core.images import BadImage
from core.lab.margin_own import Own, find_values, settle
from core.lab.margin_own_files import ENDINGS
from core.lab.margin_own_sample import FILE as SAMPLE
from core.lab.margin_own_sample import sample_npz
from pages.parts import asked, dropped, shelf
from pages.parts.dropped import File

ZONES = ("margin-own", "margin-own-labels")
ANSWERS = "margin-own-answers"
MEMORIES = (ANSWERS, "margin-own-found", "margin-own-read", "margin-own-measured")

FORMATS = """
- **NPZ**: `logits` or `probabilities`, shape (N, K, H, W) or (N, K); for one map of the foreground (N, H, W) or (N,). `labels`, (N, H, W) or (N,):
  class numbers from 0. Optional: `names`, `classes`, `ignore`.
- **NIfTI**: a volume of probabilities or logits with the classes along the fourth axis, or one 3-D volume of the foreground; and a volume of
  labels under the same name (an ending such as _label is fine).
- **CSV**: one row a sample or a pixel, with a column `label` and one column a class (`p_0`, `p_1`, …), or one column `score` for two classes.
  Optional: `image`, to put rows together.
- **NPY, zip**: single arrays with labels under the same name; a zip of any of these. Labels may also be pictures.
"""


def drop_here() -> dict[str, list[File]]:
    _zone("margin-own", "Logits or probabilities, with labels", "NPZ, NIfTI, CSV, NPY, or a zip of them.")
    with st.container(horizontal=True, gap="small"):
        st.button(
            "Try a sample", on_click=_take_sample, icon=":material/science:", key="margin-own-sample",
            help="24 drawn pictures, scored by a network that ships for them.",
        )  # fmt: skip
        st.download_button(
            "As NPZ", sample_npz, SAMPLE, "application/octet-stream", on_click="ignore", icon=":material/download:", key="margin-own-sample-npz",
            help="The sample, to see the layout.",
        )  # fmt: skip
    with st.expander("Labels in files of their own", icon=":material/attach_file:"):
        _zone(
            "margin-own-labels",
            "Labels",
            "NIfTI, NPY, NPZ or pictures under the names of the values. Class numbers from 0.",
        )
    with st.expander("What fits", icon=":material/description:"):
        st.markdown(FORMATS)
    dropped.forget_button(ZONES, forget, "margin-own-forget")
    return dropped.files_of(ZONES)


def _zone(zone: str, label: str, help: str) -> None:
    dropped.zone(zone, label, help, ZONES, ANSWERS, ENDINGS)


def _take_sample() -> None:
    forget()
    dropped.kept("margin-own")[dropped.SAMPLE] = (
        SAMPLE,
        b"",
    )  # made when it is read, with a spinner in its place


def forget() -> None:
    """Let go of all files and everything that was made of them."""
    dropped.forget(ZONES, MEMORIES)


def check(files: dict[str, list[File]]) -> Own | None:
    """What the files hold, in words, and one question at a time; the values once nothing is open."""
    if not any(files.values()):
        st.caption(
            "Here you will read what your files hold: how many images and classes, and how the numbers were read. What only you can know is asked "
            "here, one question at a time. Nothing is scaled or squashed without saying so."
        )
        return None
    key = dropped.key_of(ZONES)
    answers = asked.answers_of(ANSWERS)
    try:
        own = _settled(files, key, answers)
    except BadImage as problem:
        st.warning(shelf.plain(str(problem)), icon=":material/broken_image:")
        asked.ask_again(ANSWERS, "margin-own")
        return None
    for sentence in own.problems:
        st.warning(shelf.plain(sentence), icon=":material/broken_image:")
    if own.questions:
        asked.ask(own.questions[0], ANSWERS, "margin-own")
    st.markdown("\n".join(f"- {shelf.plain(note)}" for note in own.notes))
    asked.ask_again(ANSWERS, "margin-own")
    return own if own.ready else None


def _settled(files: dict[str, list[File]], key: tuple[object, ...], answers: dict[str, str]) -> Own:
    found: tuple[Any, Any] | None = st.session_state.get("margin-own-found")
    if found is None or found[0] != key:
        with st.spinner("Reading your files …"):
            mine = [
                (name, sample_npz() if name == SAMPLE and not data else data)
                for name, data in files["margin-own"]
            ]
            found = (key, find_values(mine, files["margin-own-labels"]))
        st.session_state["margin-own-found"] = found
    mark = (key, tuple(answers.items()))
    kept: tuple[Any, Own] | None = st.session_state.get("margin-own-read")
    if kept is None or kept[0] != mark:
        kept = (mark, settle(found[1], answers))
        st.session_state["margin-own-read"] = kept
    return kept[1]
