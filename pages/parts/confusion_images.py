"""A visitor's own pictures under the skin or the blood network, with CE and with CAR, and the classes they are confused among.

It draws and asks; `core.lab.tail_classify` runs the networks through the one runner. For teaching, and no medical device.
"""

from __future__ import annotations

from functools import lru_cache
from pathlib import Path

import numpy as np
import streamlit as st

from core.data.tar_images import small_square
from core.lab import tail_shelf
from core.lab.tail_answer import Answer, answer, answer_words
from core.lab.tail_classify import Classifier, classify, load_classifier
from core.lab.tail_looks import shipped_looks, strange_words
from core.lab.tail_names import SETS, label_of
from core.lab.tail_sets import SIDE
from core.lab.tail_shelf import SHIPPED, WEIGHTS_OF
from core.lab.tail_view import Moment, moment
from core.nets.weights import ASSETS
from pages.components.gallery import gallery
from pages.parts import uploads
from pages.parts.queued import through_runner

TOP = 4
"""Classes that are listed of each answer."""
SEEN = 160
"""Width in pixels at which the network's small picture is shown."""

LIMITS = "Its colours and grain are within those of the training images, which is no proof that it is of their kind."
"""What passing the look at colours is worth."""

WARNINGS = {
    "pbc": "These networks have seen single blood cells under the microscope only, at 32 pixels, rare kinds a few times. Whatever you drop, they "
    "name one of eight kinds of cells. They are for teaching and **no medical device**: nothing here says anything about a person.",
    "ham10000": "These networks have seen dermoscopy photos only, at 32 pixels, rare diagnoses a few dozen times. Whatever you drop, they name one "
    "of seven diagnoses. They are for teaching and **no medical device**: no answer here says whether a lesion is harmless. Ask a doctor.",
}


def path_of(data: str, method: str) -> Path:
    """Where a method's weights on a set would lie."""
    return ASSETS / "weights" / f"tail-{data}-{method}.safetensors"


def networks_there(data: str) -> tuple[str, ...]:
    """Methods whose network of a set is here."""
    return tuple(m for m in SHIPPED if path_of(data, m).is_file())


@lru_cache(maxsize=8)
def _classifier(path: Path, _: int) -> Classifier:
    return load_classifier(path)


def classifier_of(data: str, method: str) -> Classifier:
    """A network, loaded once for each version of its file.

    Raises:
        FileNotFoundError: It is not here.
        ValueError: Its file is damaged.
    """
    path = path_of(data, method)
    return _classifier(path, path.stat().st_mtime_ns)


def _moments(data: str) -> dict[str, Moment]:
    """The last recorded epoch of each method; none where nothing is recorded."""
    try:
        return {m: moment(r, int(r.epochs[-1])) for m, r in tail_shelf.records(data).items()}
    except (FileNotFoundError, ValueError):
        return {}


def look(data: str, methods: tuple[str, ...], rgb: np.ndarray, known: dict[str, Moment]) -> dict[str, Answer]:
    """Ask the networks about one picture.

    Args:
        data: The set whose networks look.
        methods: Keys of the methods.
        rgb: `(H, W, 3)` uint8.
        known: Method -> its record, where there is one.

    Raises:
        FileNotFoundError: A network is not here.
        ValueError: A file is damaged, or a network gives no numbers.
    """
    found = {}
    for method in methods:
        network = classifier_of(data, method)
        logits = classify(network, [rgb])[0]
        counts = np.asarray(network.facts["counts"])
        found[method] = answer(
            str(network.facts["label"]), network.classes, counts, logits, known.get(method)
        )
    return found


def show(page_set: str) -> None:
    """Drop zone, the pictures, and what each network says."""
    st.subheader("Your own pictures")
    data = str(
        st.segmented_control(
            "Ask the networks of",
            WEIGHTS_OF,
            default=page_set if page_set in WEIGHTS_OF else WEIGHTS_OF[0],
            required=True,
            format_func=SETS.__getitem__,
            key="ask",
            bind="query-params",
        )
    )
    methods = networks_there(data)
    if not methods:
        st.info(
            f"The networks of {SETS[data].lower()} are not in assets/weights, so nothing is classified here. The figures above do not need them.",
            icon=":material/info:",
        )
        return
    st.warning(WARNINGS[data], icon=":material/medical_information:")
    mine = uploads.drop_here(masks=False)
    if not mine:
        st.caption(
            "No picture of the sets ships with Plumbline. Drop one above, and each network says what it takes it for."
        )
        return
    chosen = _choose(mine)
    try:
        what = uploads.choose_slice(chosen)
        answers = _through_runner(data, methods, what)
    except (FileNotFoundError, ValueError) as problem:
        st.warning(str(problem), icon=":material/broken_image:")
        return
    draw(data, what.rgb, chosen.picture.name, answers)
    for note in what.notes:
        st.caption(note)


def _choose(mine: list[uploads.Upload]) -> uploads.Upload:
    if len(mine) == 1:
        return mine[0]
    items = [
        {"id": u.id, "image": uploads.thumbnail_of(u), "caption": u.picture.name, "badge": None} for u in mine
    ]
    ids = [u.id for u in mine]
    here = st.session_state.get("confusion-image")
    picked = gallery(
        items, here if here in ids else ids[0], key="confusion-gallery", label="Your pictures", height=170
    )
    st.session_state["confusion-image"] = picked
    return next((u for u in mine if u.id == picked), mine[0])


def _through_runner(data: str, methods: tuple[str, ...], what: uploads.Chosen) -> dict[str, Answer]:
    """The answers, from this session's memory or one after another with everybody else's."""
    known = _moments(data)
    return through_runner(
        "confusion-answers", (data, methods, what.key), lambda: look(data, methods, what.rgb, known)
    )


def draw(data: str, rgb: np.ndarray, name: str, answers: dict[str, Answer]) -> None:
    """What the networks see, and what each says, with the classes it is confused among; a picture of another kind is said to be one."""
    small, looks = small_square(rgb, SIDE), shipped_looks(data)
    strange = looks is not None and looks.strange(small)
    if looks is not None and strange:
        st.warning(strange_words(looks), icon=":material/warning:")
    picture, *columns = st.columns([2, *([3] * len(answers))], gap="medium")
    with picture:
        st.image(
            np.repeat(np.repeat(small, 5, 0), 5, 1),
            width=SEEN,
            caption=f"What they see: {SIDE} × {SIDE} pixels",
            alt=f"{name}, its middle square at the size the networks see",
        )
    for column, (method, said) in zip(columns, answers.items(), strict=True):
        with column:
            st.dataframe(
                [
                    {said.title: label_of(said.classes[k]), "share": float(said.shares[k])}
                    for k in np.argsort(-said.shares, kind="stable")[:TOP]
                ],
                column_config={"share": st.column_config.NumberColumn("says", format="percent", width=70)},
                hide_index=True,
                width="stretch",
                key=f"confusion-answer-{method}",
                alt=f"The {TOP} most likely classes under {said.title}",
            )
            st.markdown(answer_words(said, record=not strange))
    said = {a.classes[a.said] for a in answers.values()}
    agree = (
        "All networks name the same class."
        if len(said) == 1
        else "The networks disagree; one picture decides nothing."
    )
    st.caption(
        f"{agree} What a softmax says is no probability that can be believed"
        + ("." if strange else "; how often such an answer was right stands beside it.")
        + ("" if looks is None or strange else f" {LIMITS}")
    )
