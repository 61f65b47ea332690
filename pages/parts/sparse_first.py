"""The first screen of the sparse page: clean, damaged, rebuilt, codes; the severity that plays; λ of every layer; three numbers and the price.

It draws; `core.lab.sparse_view` reads the record, `core.lab.sparse_look` runs the first layer (six severities at once, remembered) and
`core.lab.sparse_words` finds the words.
"""

from __future__ import annotations

import time
from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
import streamlit as st

from core.conformal.words import percent
from core.data.corruptions import CORRUPTIONS, corrupt_many
from core.figures.sparse_codes import montage
from core.figures.sparse_dots import lambda_severities
from core.figures.temperature_frame import description
from core.lab.sparse_record import SparseRecord
from core.lab.sparse_view import ADAPT_TITLES, Severity, measured, severity
from core.lab.sparse_words import headline, metrics, sentences
from pages.parts import sparse_pictures
from pages.parts.sparse_chart import CONFIG, PLAYER, put, stilled, usual, words_of
from pages.parts.sparse_tiles import Six, six_of, tiles

DOTS = 150
MANY_DOTS = 208
"""Height of the chart of λ, for few layers and for many."""
PACE = 1.1
"""Seconds a severity stays while it plays."""
WHICH = {"adapted": "adapted λ", "trained": "trained λ"}
MOVED = "sparse-moved"


WHAT = (
    "A sparse coding layer rebuilds its input from few atoms, and λ is what an atom costs: with a larger λ more codes are zero and less of the input "
    "is kept. Training sets λ of every layer. Here λ may move again on a hundred damaged images without labels; BN, the statistics of batch "
    "normalisation, is the older thing that can follow them."
)
"""What the words on this page mean, before the first of them is used."""


@dataclass(frozen=True)
class Scene:
    """What stands on the first screen, apart from its own controls.

    Attributes:
        key: The network.
        record: Its record, or None.
        beside: The ResNet's record, or None.
        problem: Why there is no record.
        mine: The visitor's picture, or None.
        seed: Of pictures and damage.
    """

    key: str
    record: SparseRecord | None
    beside: SparseRecord | None
    problem: str
    mine: sparse_pictures.Mine | None
    seed: int


def now() -> tuple[str, int]:
    """Corruption and severity that are on the screen."""
    name = st.session_state.get("corruption")
    return str(name) if name in CORRUPTIONS else CORRUPTIONS[0], int(st.session_state.get("severity") or 0)


def source() -> str:
    """Where the pictures come from."""
    return str(st.session_state.get("picture") or "drawn")


def show(scene: Scene) -> None:
    """Draw it. While the severity plays, only this part of the page is drawn again, once a second."""
    st.session_state.pop(MOVED, None)
    playing = bool(st.session_state.get("sparse-playing"))
    st.fragment(_screen, run_every=PACE if playing else None)(scene)


def _screen(scene: Scene) -> None:
    if st.session_state.pop(MOVED, False):
        st.rerun()  # a control of this part moved: what stands below follows it
    _advance()
    title = st.empty()
    st.caption(WHAT)
    corruption, at, which = _controls(scene)
    view = None if scene.record is None else severity(scene.record, corruption, scene.beside)
    pictures, problem = sparse_pictures.chosen(source(), scene.mine, scene.seed)
    left, right = st.columns([18, 7], gap="medium")
    with left:
        index = int(st.session_state.get("sparse-at", 0)) % len(pictures.pictures.images)
        six = _tiles(scene, view, pictures, index, corruption, at, which)
    if view is not None:
        title.header(headline(view, at))
        with left:
            _dots(scene, view, at, six)
    else:
        title.header("Nothing is recorded of this network yet; look at what its first layer does.")
    with right:
        _switches()
        if view is not None:
            for label, value, what in metrics(view, at):
                st.metric(label, value, help=what)
    if problem:
        st.info(problem, icon=":material/image:")
    if view is not None:
        st.caption(prices(view, at))
        st.caption(" ".join(sentences(view, at)))
    elif scene.problem:
        st.info(scene.problem, icon=":material/info:")
    st.caption(_said_of(pictures, six))


def _advance() -> None:
    """While it plays: the next severity when its time has come; at the last one it ends."""
    if not st.session_state.get("sparse-playing"):
        return
    if time.monotonic() < st.session_state.get("sparse-next", 0.0):
        return
    following = int(st.session_state.get("severity") or 0) + 1
    if following > 5:
        st.session_state["sparse-playing"] = False
        st.rerun()
    put("severity", following)
    st.session_state["sparse-next"] = time.monotonic() + 0.8 * PACE


def _moved() -> None:
    st.session_state[MOVED] = True
    st.session_state["sparse-playing"] = False


def _play() -> None:
    going = not st.session_state.get("sparse-playing")
    st.session_state["sparse-playing"] = going
    st.session_state[MOVED] = True
    if going:
        put("severity", 0)
        st.session_state["sparse-next"] = time.monotonic() + PACE


def _next() -> None:
    st.session_state["sparse-at"] = int(st.session_state.get("sparse-at", 0)) + 1


def _controls(scene: Scene) -> tuple[str, int, str]:
    """Corruption, severity and which λ, in the address; and the play button."""
    there = list(measured(scene.record)) if scene.record is not None else []
    with st.container(horizontal=True, vertical_alignment="bottom", gap="medium"):
        corruption = str(
            st.selectbox(
                "Corruption", there or CORRUPTIONS, format_func=words_of, key="corruption", bind="query-params", on_change=_moved, width=190,
                help="What is done to the pictures: the nineteen corruptions of CIFAR-10-C at 32 pixels.",
            )
        )  # fmt: skip
        at = int(
            st.slider(
                "Severity", 0, 5, usual("severity", 3), key="severity", bind="query-params", on_change=_moved, width=260,
                help="0 is the clean picture. λ at each severity is the one that adaptation found on 100 unlabelled test images.",
            )
        )  # fmt: skip
        playing = bool(st.session_state.get("sparse-playing"))
        st.button(
            "Stop" if playing else "Play",
            on_click=_play,
            icon=":material/stop:" if playing else ":material/play_arrow:",
            key="sparse-play",
            help="Run the severity from 0 to 5.",
        )
        which = str(
            st.segmented_control(
                "Rebuilt and coded with", list(WHICH), default="adapted", required=True, format_func=WHICH.__getitem__, key="lam",
                bind="query-params", help="λ of the first layer after adaptation to this corruption and severity, or as training left it.",
            )
        )  # fmt: skip
    return corruption, at, which


def _tiles(
    scene: Scene,
    view: Severity | None,
    of: sparse_pictures.Chosen,
    index: int,
    corruption: str,
    at: int,
    which: str,
) -> Six | None:
    """Clean -> damaged -> rebuilt -> codes; the first two alone where the network is not here."""
    clean = of.pictures.images[index]
    name = f"{words_of(corruption)}, severity {at}" if at else "nothing done to it"
    try:
        six = six_of(scene.key, view, of, index, corruption, scene.seed)
    except (FileNotFoundError, ValueError) as problem:
        damaged = corrupt_many(clean[None], corruption, at, scene.seed)[0] if at else clean
        tiles([(clean, "Clean", "A clean picture"), (damaged, name, f"The picture after {name}")])
        st.info(f"{problem} Until then only the damage can be shown.", icon=":material/info:")
        return None
    look = six[at][1 if which == "adapted" else 0]
    codes = montage(look.codes[0], enlarge=2)
    lam = f"λ = {look.threshold:.2g}"
    tiles(
        [
            (six[0][0].images[0], "Clean", "A clean picture"),
            (look.images[0], f"Severity {at}" if at else "Not damaged", f"The picture after {name}"),
            (look.reconstruction[0], f"Rebuilt: error {percent(float(look.error[0]))}", f"The picture rebuilt from its codes at {lam}"),
            (codes.picture, f"Codes: {percent(float(look.sparsity[0]))} zeros", codes.description),
        ]
    )  # fmt: skip
    return six


def _dots(scene: Scene, view: Severity, at: int, six: Six | None) -> None:
    """λ of every layer on one axis at this severity, and sparsity and error of the first layer on this picture over all severities."""
    if not len(view.trained):
        return
    assert scene.record is not None
    tall = DOTS if len(view.names) <= 4 else MANY_DOTS
    lines: dict[str, np.ndarray] = {}
    if six is not None:
        lines["sparsity"] = np.array([float(pair[1].sparsity[0]) for pair in six])
        lines["error"] = np.array([float(pair[1].error[0]) for pair in six])
    figure = lambda_severities(
        view.names, view.trained, view.threshold, range(6), corruption=words_of(view.corruption), at=at,
        reach=float(scene.record.adapt_settings.get("reach", 10.0)), stopped=dict(enumerate(view.stopped)), height=tall + PLAYER, **lines,
    )  # fmt: skip
    stilled(figure, tall, many=len(view.names) > 4)
    st.plotly_chart(figure, width="stretch", key="sparse-dots", alt=description(figure), config=CONFIG)


def prices(view: Severity, at: int) -> str:
    """Accuracy of each way of adaptation at this severity, the ResNet's beside it, and what the same costs on clean images."""

    def row(accuracy: Mapping[str, np.ndarray]) -> str:
        known = {way: float(values[at]) for way, values in accuracy.items() if np.isfinite(values[at])}
        return ", ".join(f"{ADAPT_TITLES[way]} {percent(value)}" for way, value in known.items())

    said = f"{view.title}: {row(view.accuracy)}."
    if view.beside:
        said += f" ResNet-18: {row(view.beside)}."
    said += f" The price: {view.samples} images of the same kind"
    change = 100 * float(view.accuracy.get("both", view.accuracy["bn"])[0] - view.accuracy["none"][0])
    if not np.isfinite(change):
        return f"{said}."
    return f"{said}; on clean ones {'−' if change < 0 else '+'}{abs(change):.1f} points."


def _switches() -> None:
    """Which pictures, and the next one."""
    with st.container(horizontal=True, vertical_alignment="bottom", gap="small"):
        st.segmented_control(
            "Pictures", sparse_pictures.sources(), default=usual("picture", "drawn"), required=True,
            format_func=sparse_pictures.SOURCES.__getitem__, key="picture", bind="query-params", on_change=_moved,
            help="Drawn pictures, crops of a picture that you drop below, or photos where this server knows a folder of them.",
        )  # fmt: skip
        st.button(
            "Next",
            on_click=_next,
            key="sparse-another",
            help="Another picture of these.",
        )


def _said_of(of: sparse_pictures.Chosen, six: Six | None) -> str:
    said = f"{of.pictures.words} They show what the first layer does; accuracies are measured on CIFAR-10."
    if six is None:
        return said
    return (
        f"{said} Codes: one tile an atom, the strongest first; blue is positive, orange negative, black nothing. Thin lines: the first layer on "
        "this picture."
    )
