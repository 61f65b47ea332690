"""The objective of adaptation over λ, for several K, with a ball that rolls down: the shallow minimum, the barrier, and the runaway to infinity.

Asked for with a button, measured on the pictures of the first screen through the one runner, and remembered; K, the layer's ball and its steps then
only read it. `core.lab.sparse_landscape` measures, `core.figures.sparse_objective` draws.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Hashable
from typing import Any

import numpy as np
import streamlit as st

from core.figures.sparse_objective import Curve, objective
from core.lab.jobs import Ticket
from core.lab.sparse_here_words import landscape_words
from core.lab.sparse_landscape import Landscape, landscape, start_landscape
from core.lab.sparse_words import RUNAWAY
from pages.parts import shelf, sparse_pictures, waiting
from pages.parts.sparse_chart import chart, words_of
from pages.parts.sparse_first import Scene, now, source

NAME = "sparse-valley"
ITERATIONS = (1, 2, 4, 8)
STEPS = 60
"""Steps of the ball."""
RATES = {"small": 0.05, "large": 0.4}
"""Step sizes of the ball in log λ; the small one is the default of adaptation."""
KEPT = 8


def show(scene: Scene, compact: bool) -> None:
    """The button, and the last picture that was asked for."""
    st.markdown(
        f"Adaptation has no labels. It makes R/(λ + ε) small, the error of a layer's reconstruction over λ. {RUNAWAY}"
    )
    corruption, severity = now()
    pictures, _ = sparse_pictures.chosen(source(), scene.mine, scene.seed)
    key = (scene.key, pictures.key, corruption if severity else "clean", severity, scene.seed)
    _controls(scene, pictures, key)
    if waiting.ticket_of(NAME) is not None:
        _watch()
        return
    waiting.show_said(NAME)
    memory = _memory()
    _keep(memory)
    last = st.session_state.get("sparse-valley-last")
    if last in memory:
        _draw(memory[last], compact)
        if last != key:
            st.caption("The controls have moved since; press the button to measure what they say.")


def _memory() -> OrderedDict[Hashable, Landscape]:
    found: OrderedDict[Hashable, Landscape] = st.session_state.setdefault("sparse-valleys", OrderedDict())
    return found


def _keep(memory: OrderedDict[Hashable, Landscape]) -> None:
    """Move a finished run into the memory."""
    run = st.session_state.pop(f"{NAME}-trained", None)
    if isinstance(run, Landscape):
        memory[st.session_state["sparse-valley-last"]] = run
        while len(memory) > KEPT:
            memory.popitem(last=False)


def _controls(scene: Scene, pictures: sparse_pictures.Chosen, key: tuple[Any, ...]) -> None:
    _, _, corruption, severity, seed = key
    under = f"{words_of(corruption)}, severity {severity}" if severity else "clean pictures"
    with st.container(horizontal=True, vertical_alignment="bottom", gap="medium"):
        busy = waiting.busy(NAME)
        if st.button(
            f"Measure it: {under}", type="primary", icon=":material/landscape:", disabled=busy, key="sparse-valley-go"
        ):  # fmt: skip
            st.session_state["sparse-valley-last"] = key
            if key not in _memory():
                ticket = _asked(scene.key, pictures, corruption, severity, seed, key)
                waiting.take(NAME, ticket)
            st.rerun()
        if busy and st.button("Stop", icon=":material/stop_circle:", key="sparse-valley-stop"):
            waiting.stop(NAME)
            st.rerun()


def _asked(
    net: str, of: sparse_pictures.Chosen, corruption: str, severity: int, seed: int, key: Hashable
) -> Ticket:
    """A ticket. A visitor's own pictures go to the runner that keeps no result."""
    if not of.owner:
        return start_landscape(net, of.pictures, ITERATIONS, corruption, severity, seed=seed)
    return shelf.RUNNER.submit(
        (of.owner, NAME, key),
        lambda on_step: landscape(
            net, of.pictures, ITERATIONS, corruption, severity, seed=seed, on_step=on_step
        ),
    )


@st.fragment(run_every=0.5)
def _watch() -> None:
    waiting.look(NAME, lambda facts: "Measuring", "try it again, or with another picture", "values of K")


def _draw(view: Landscape, compact: bool) -> None:
    ks = [c.iterations for c in view.curves]
    with st.container(horizontal=True, vertical_alignment="bottom", gap="medium"):
        k = int(
            st.select_slider(
                "K, steps of FISTA in a layer", ks, value=view.trained_iterations if view.trained_iterations in ks else ks[0],
                key="sparse-k", width=220, help="The same atoms with fewer or more steps. The network was trained with one of them.",
            )
        )  # fmt: skip
        rate = str(
            st.segmented_control(
                "Steps of the ball", list(RATES), default="small", required=True, key="sparse-rate",
                help="Large ones may jump over the barrier.",
            )
        )  # fmt: skip
        guard = st.toggle("Guards", value=True, key="sparse-guard", help="λ may not leave the shaded reach.")
    curves = {c.iterations: Curve(view.thresholds, c.objective, c.error, c.sparsity) for c in view.curves}
    way = roll(curves[k], view.trained, RATES[rate], (view.low, view.high) if guard else None)
    reach = view.high / view.trained if guard else None
    chart(
        objective(curves, view.trained, chosen=k, way=way.tolist(), reach=reach, compact=compact),
        "sparse-objective",
    )
    for said in landscape_words(view):
        st.markdown(f"- {said}")
    st.caption(
        f"{view.layer.capitalize()}, trained with K = {view.trained_iterations}; at the other K the same atoms are used. The ball goes "
        f"down the drawn line with Adam, {STEPS} steps, as adaptation does, but for this one layer."
    )


def roll(curve: Curve, start: float, rate: float, held: tuple[float, float] | None) -> np.ndarray:
    """Where a ball goes on a drawn curve: Adam on log λ, as adaptation's on ρ.

    Args:
        curve: What it rolls on.
        start: λ at the start.
        rate: Step size.
        held: λ that it cannot leave, or None: the ends of the curve.

    Returns:
        `(STEPS + 1,)` λ.
    """
    low, high = np.log(held if held is not None else (curve.threshold[0], curve.threshold[-1]))
    at = float(np.log(start))
    way, first, second = [at], 0.0, 0.0
    for step in range(1, STEPS + 1):
        ahead, behind = curve.at(curve.objective, np.exp([at + 0.02, at - 0.02]))
        slope = float(ahead - behind) / 0.04
        first, second = 0.9 * first + 0.1 * slope, 0.999 * second + 0.001 * slope**2
        move = first / (1 - 0.9**step) / ((second / (1 - 0.999**step)) ** 0.5 + 1e-8)
        at = float(np.clip(at - rate * move, low, high))
        way.append(at)
    return np.asarray(np.exp(way))
