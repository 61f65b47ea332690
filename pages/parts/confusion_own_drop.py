"""Files for *Upload your own* on the confusion page: they come in, are kept for this visit, are checked, and go when asked.

What only the person can know (which axis is the truth) is asked here, one question at a time. It draws; `core.lab.tail_own` reads and judges.
"""

from __future__ import annotations

from typing import Any

import streamlit as st

from core.images import BadImage
from core.lab.tail_own import OwnMatrix, find_predictions, settle_matrix
from core.lab.tail_own_counts import parse_counts
from core.lab.tail_own_files import ENDINGS
from core.lab.tail_own_sample import FILE as SAMPLE
from core.lab.tail_own_sample import sample_npz
from pages.parts import asked, dropped, shelf
from pages.parts.dropped import File

ZONES = ("confusion-own", "confusion-own-train")
ANSWERS = "confusion-own-answers"
MEMORIES = (ANSWERS, "confusion-own-found", "confusion-own-read", "confusion-own-measured")

FORMATS = """
- **CSV, one row a sample**: a column `label` with the true class, and either a column `predicted` or one column of scores a class (`logit_0`,
  `logit_1`, …). Classes are numbers from 0 or words. A column `split` with *train* and *test* brings both at once.
- **CSV, a confusion matrix**: a square of counts (or shares), with or without names around it. You are asked which side is the truth.
- **CSV, training counts**: two columns, `class` and `count`.
- **NPZ**: `labels` with `logits` (N, K) or `predicted` (N,), or `confusion` (K, K). Optional: `train_labels` with `train_logits` or
  `train_predicted`, `counts` (K,), `classes`.
- A zip of these.
"""


def drop_here() -> dict[str, list[File]]:
    """The drop zones, the sample, and what fits."""
    _zone(
        "confusion-own",
        "True labels with what your classifier said, or its confusion matrix",
        "CSV, NPZ, or a zip of them.",
    )
    with st.container(horizontal=True, gap="small"):
        st.button(
            "Try a sample", on_click=_take_sample, icon=":material/science:", key="confusion-own-sample",
            help="A made-up classifier of eight shapes that was trained on a long tail.",
        )  # fmt: skip
        st.download_button(
            "As NPZ", sample_npz, SAMPLE, "application/octet-stream", on_click="ignore", icon=":material/download:", key="confusion-own-sample-npz",
            help="The sample, to see the layout.",
        )  # fmt: skip
    with st.expander("Training samples: predictions or counts", icon=":material/model_training:"):
        _zone(
            "confusion-own-train",
            "Labels and predictions on the training samples",
            "The same layouts. They show how much of the worst class's training recall survives.",
        )
        st.text_input(
            "Or how many training samples each class has", key="confusion-own-counts", placeholder="500, 120, 30",
            help="One number a class, in the order of the classes. They put classes in order from head to tail and give the weights Λ.",
        )  # fmt: skip
    with st.expander("What fits", icon=":material/description:"):
        st.markdown(FORMATS)
    dropped.forget_button(ZONES, forget, "confusion-own-forget")
    return dropped.files_of(ZONES)


def _zone(zone: str, label: str, help: str) -> None:
    dropped.zone(zone, label, help, ZONES, ANSWERS, ENDINGS)


def _take_sample() -> None:
    forget()
    dropped.kept("confusion-own")[dropped.SAMPLE] = (SAMPLE, sample_npz())


def forget() -> None:
    """Let go of all files and everything that was made of them."""
    dropped.forget(ZONES, MEMORIES)
    st.session_state["confusion-own-counts"] = ""


def check(files: dict[str, list[File]]) -> OwnMatrix | None:
    """What the files hold, in words, and one question at a time; the matrix once nothing is open."""
    if not files["confusion-own"]:
        st.caption(
            "Here you will read what your files hold: how many samples and classes, and how they were read. What only you can know, such as which "
            "side of a matrix is the truth, is asked here, one question at a time."
            if not files["confusion-own-train"]
            else "There are training samples only. Add what your classifier said of samples that it had not seen."
        )
        return None
    answers = asked.answers_of(ANSWERS)
    try:
        own = _settled(files, answers)
    except BadImage as problem:
        found = st.session_state.get("confusion-own-found")
        unread = found[1].problems if found is not None and found[0] == dropped.key_of(ZONES) else ()
        for sentence in dict.fromkeys((*unread, str(problem))):
            st.warning(shelf.plain(sentence), icon=":material/broken_image:")
        asked.ask_again(ANSWERS, "confusion-own")
        return None
    for sentence in own.problems:
        st.warning(shelf.plain(sentence), icon=":material/broken_image:")
    if own.questions:
        asked.ask(own.questions[0], ANSWERS, "confusion-own", first=False)
    st.markdown("\n".join(f"- {shelf.plain(note)}" for note in own.notes))
    asked.ask_again(ANSWERS, "confusion-own")
    return own if own.ready else None


def _settled(files: dict[str, list[File]], answers: dict[str, str]) -> OwnMatrix:
    """Read once an upload, settled once an answer."""
    key = dropped.key_of(ZONES)
    found: tuple[Any, Any] | None = st.session_state.get("confusion-own-found")
    if found is None or found[0] != key:
        with st.spinner("Reading your files …"):
            found = (key, find_predictions(files["confusion-own"], files["confusion-own-train"]))
        st.session_state["confusion-own-found"] = found
    typed = str(st.session_state.get("confusion-own-counts", ""))
    mark = (key, tuple(answers.items()), typed)
    kept: tuple[Any, OwnMatrix] | None = st.session_state.get("confusion-own-read")
    if kept is None or kept[0] != mark:
        kept = (mark, settle_matrix(found[1], answers, counts=parse_counts(typed)))
        st.session_state["confusion-own-read"] = kept
    return kept[1]
