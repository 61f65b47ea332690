"""*Train it here* on the confusion page: CE and CAR on long-tailed digits while one watches, through the one runner, with a queue and a stop.

It draws and asks; `core.lab.tail_here` trains. The button's ticket lives in the visitor's session; a visitor who leaves gives it up.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import streamlit as st

from core.figures.confusion_bars import recall_bars
from core.figures.confusion_learning import learning
from core.figures.confusion_maps import pair_maps
from core.figures.temperature_frame import description
from core.lab.tail_here import OFFERED, Budget, Compared, Task, method_here, start
from core.lab.tail_here_words import paying_sentence, rows, sentence
from core.lab.tail_methods import METHODS, Method
from core.settings import knobs
from core.settings.car import CarSettings
from pages.parts import waiting
from pages.parts.confusion_evidence import panels

KNOBS = knobs(CarSettings)
IMBALANCES = (5, 10, 20, 50)
VIEWS = ("CE", "CAR", "difference")


def budget() -> Budget:
    """How much a run may cost; a test puts a smaller one into the session."""
    kept = st.session_state.get("confusion-budget")
    return kept if isinstance(kept, Budget) else Budget()


def finished() -> Compared | None:
    """This visitor's last finished run."""
    kept = st.session_state.get("confusion-trained")
    return kept if isinstance(kept, Compared) else None


def show() -> None:
    """The controls, and under them the run: waiting, running, done or failed."""
    spend = budget()
    st.markdown(
        f"This makes scikit-learn's handwritten digits long-tailed and trains small networks on them while you watch, {spend.seeds} under CE and "
        f"{spend.seeds} under CAR, in well under a minute when the server is idle. It is a smaller experiment than the recorded ones: 8 × 8 pixels, "
        f"at most {spend.largest} training images of a digit, {spend.epochs} epochs. With so few images chance decides much, so each seed has its "
        "own draw of them, and what is said counts the seeds that agree. Several people may press the button; one training goes at a time, and equal "
        "wishes are served from memory."
    )
    method, task = _controls()
    if waiting.ticket_of("confusion") is not None:
        _watch()
        return
    waiting.show_said("confusion")
    run = finished()
    if run is not None:
        _done(run, (method, task))


def _controls() -> tuple[Method, Task]:
    with st.container(horizontal=True, vertical_alignment="bottom", gap="medium"):
        name = str(
            st.selectbox(
                "Beside CE", OFFERED, format_func=lambda n: METHODS[n].label, key="confusion-here-method", width=270,
                help="Kinds of CAR: how the running matrix treats absent classes, and what Λ divides by.",
            )
        )  # fmt: skip
        knob = KNOBS["alpha"]
        alpha = float(
            st.number_input(
                knob.label,
                knob.low,
                knob.high,
                knob.default,
                knob.step,
                key="confusion-here-alpha",
                width=200,
                help=knob.help,
            )
        )
        imbalance = float(
            st.selectbox(
                "Imbalance", IMBALANCES, index=IMBALANCES.index(20), key="confusion-here-imbalance", width=110,
                help="Training images of the most frequent digit over those of the rarest.",
            )
        )  # fmt: skip
        rarest = int(
            st.selectbox(
                "Rarest digit", range(10), index=9, key="confusion-here-rarest", width=120, help="Does the same digit pay, or the rare one?"
            )
        )  # fmt: skip
        car = METHODS[name].car
        assert car is not None
        method, task = method_here(name, replace(car, alpha=alpha)), Task(imbalance, rarest)
        busy = waiting.busy("confusion")
        if st.button(
            "Train both",
            type="primary",
            icon=":material/model_training:",
            disabled=busy,
            key="confusion-here-train",
        ):
            waiting.take("confusion", start(method, task, budget()))
            st.rerun()
        if st.button("Stop", icon=":material/stop_circle:", disabled=not busy, key="confusion-here-stop"):
            waiting.stop("confusion")
            st.rerun()
    return method, task


@st.fragment(run_every=1.0)
def _watch() -> None:
    """Look at the ticket once a second; when the run has ended, the page is drawn once more with its maps."""
    state = waiting.look("confusion", lambda facts: "Both", "try it again, or with other settings")
    if state is not None and state.facts:
        _curves(state.facts["rows"], budget().epochs, "live")


def _curves(history: Mapping[str, Any], epochs: int, key: str) -> None:
    panels(learning(history, epochs), f"confusion-here-learning-{key}", wide=3)


def _draw(figure: Any, key: str) -> None:
    st.plotly_chart(
        figure, width="stretch", key=f"confusion-here-{key}", alt=description(figure), config={"displayModeBar": False}
    )  # fmt: skip


def _done(run: Compared, asked: tuple[Method, Task]) -> None:
    ce, car = list(run.methods)
    st.markdown(f"**{sentence(run)}**")
    st.markdown(paying_sentence(run))
    left, right = st.columns([3, 2], gap="medium")
    with left:
        tests = {key: run.pooled(key) for key in (ce, car)}
        _draw(
            recall_bars(
                tests, run.classes, train={key: run.learned(key) for key in tests}, counts=run.counts
            ),
            "bars",
        )
    with right:
        view = str(
            st.segmented_control(
                "Confusion matrix",
                VIEWS,
                default="difference",
                required=True,
                key="confusion-here-view",
                label_visibility="collapsed",
            )
        )
        spectra = (run.spectrum(ce), run.spectrum(car))
        maps = pair_maps(run.pooled(ce), run.pooled(car), run.classes, spectra=spectra, methods=(ce, car))
        _draw(maps[VIEWS.index(view)], "map")
    _curves(run.history, run.budget.epochs, "done")
    st.dataframe(
        [{k: None if v != v else v for k, v in r.items()} for r in rows(run)], hide_index=True, width="stretch", key="confusion-here-table",
        column_config={
            "figure": st.column_config.TextColumn("Figure"),
            "ce": st.column_config.NumberColumn("CE", format="percent"),
            "car": st.column_config.NumberColumn(run.methods[car].label, format="percent"),
            "difference": st.column_config.NumberColumn("Difference, points", format="%+.1f"),
            "standard_error": st.column_config.NumberColumn("Standard error", format="%.1f", help="Of the mean difference over seeds."),
            "ahead": st.column_config.TextColumn("CAR ahead in"),
        },
    )  # fmt: skip
    st.caption(
        f"CE and {run.methods[car].label}, {run.budget.seeds} seeds each, {run.seconds:.0f} s. Matrices and bars hold {run.budget.test} test images "
        "a digit of all seeds together; curves are means over seeds. The recorded table above has larger sets."
    )
    if (run.methods[car], run.task) != asked:
        st.caption("The controls have moved since; press the button to train what they say.")
