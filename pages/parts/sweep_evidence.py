"""The study over T and α: heat map, lines, gradient, ceiling and table. It draws; `core.lab` computes."""

from __future__ import annotations

import numpy as np
import streamlit as st

from core.coat.softness import ceiling, highest_temperature
from core.coat.sweep import SHIPPED, TEMPERATURES
from core.figures.temperature import Cells, Regions, heat_map
from core.figures.temperature_fit import history
from core.figures.temperature_frame import description, sentence_of
from core.figures.temperature_lines import lines
from core.figures.temperature_slopes import ceilings, gradient
from core.lab.knife import Lesion, along, points
from core.lab.study import Study
from core.lab.temperature_grid import Grid, gradients, table
from core.lab.temperatures import Temperatures
from core.lab.train_here import Trained
from core.settings import SweepSettings, knobs
from pages.parts import evidence

ALPHAS = (0.02, 0.05, 0.1, 0.15, 0.2, 0.3, 0.4, 0.5)
"""Rows of the map."""

CONFIG = {"displayModeBar": False}

KNOBS = knobs(SweepSettings)


def span_of(unit: str) -> tuple[float, float]:
    """Smallest and largest T of the axis."""
    return TEMPERATURES[unit][0], TEMPERATURES[unit][-1]


def nearest(recorded: Temperatures, unit: str, temperature: float) -> str | None:
    """Name of the recorded temperature that lies nearest, if it is within a factor of 1.5."""
    found = recorded.fixed(unit)
    if not found:
        return None
    name = min(found, key=lambda n: abs(np.log(found[n] / temperature)))
    return name if abs(np.log(found[name] / temperature)) < np.log(1.5) else None


def _cells(g: Grid, names: list[str], temperatures: tuple[float, ...]) -> Cells:
    rows = [g.names.index(n) for n in names]
    return Cells(temperatures, g.gap[rows], g.coverage[rows], g.area[rows])


def _falling_names(recorded: Temperatures) -> list[str]:
    """Short names of the falling temperatures, two lines each."""
    words = []
    for name in recorded.falling:
        v = recorded.variants[name]
        span = f"{v.start:g} → {v.end:g}" if v.falls else f"{v.start:g}"
        words.append(f"AT, then<br>{span}" if name == SHIPPED and recorded.warm else f"falls<br>{span}")
    return words


def map_of(
    study: Study,
    recorded: Temperatures,
    g: Grid,
    unit: str,
    here: tuple[float, float],
    run: Trained | None,
    height: int,
) -> None:
    """The heat map with the current point, and this run's dots where a run of the same unit is there."""
    fixed = recorded.fixed(unit)
    silent = np.array([gradients(study, a, unit).silent_below for a in g.alphas])
    top = np.array([highest_temperature(a) if unit == "probability" else np.inf for a in g.alphas])
    dots, falls = None, False
    if run is not None and run.settings.unit == unit and study.name == "phantom":
        figures = run.figures(study, g.alphas)["COAT"]
        dots = Cells((run.settings.temperature_end,), *(figures[k][None] for k in range(3)))
        falls = run.settings.temperature_start != run.settings.temperature_end
    figure = heat_map(
        g.alphas,
        _cells(g, list(fixed), tuple(fixed.values())),
        _cells(g, list(recorded.falling), ()),
        g.reference["CRC"][0],
        span_of(unit),
        here,
        Regions(silent, top),
        falling_names=_falling_names(recorded),
        unit=unit,
        run=dots,
        run_falls=falls,
        height=height,
    )
    st.plotly_chart(figure, width="stretch", key="sweep-map", alt=description(figure), config=CONFIG)


def row_of(
    recorded: Temperatures,
    column: Grid,
    unit: str,
    temperature: float,
    alpha: float,
    run: tuple[float, np.ndarray] | None,
) -> None:
    """Gap, coverage and area along T at this α."""
    fixed = recorded.fixed(unit)
    coat = np.stack([column.figures(n)[:, 0] for n in fixed], 1) if fixed else np.zeros((3, 0))
    v = recorded.variants[SHIPPED]
    figure = lines(
        tuple(fixed.values()),
        coat,
        {name: values[:, 0] for name, values in column.reference.items()},
        (f"{'AT, then ' if recorded.warm else ''}{v.start:g} → {v.end:g}", column.figures(SHIPPED)[:, 0]),
        span_of(unit),
        temperature,
        alpha,
        unit=unit,
        run=run,
    )
    st.plotly_chart(figure, width="stretch", key="sweep-lines", alt=description(figure), config=CONFIG)


def gradient_and_ceiling(
    study: Study, lesion: Lesion, tau: float, unit: str, temperature: float, alpha: float
) -> None:
    """Why a T can be too sharp, and why it can be too soft."""
    of_study = gradients(study, alpha, unit)
    one = along(lesion, tau, of_study.temperatures, unit)
    left, right = st.columns(2, gap="medium")
    with left:
        st.subheader("Too sharp: nothing left to hear")
        figure = gradient(
            of_study.temperatures, one["slope"], of_study.slope, temperature, of_study.silent_below, unit=unit
        )
        st.markdown(f"**{sentence_of(figure)}**")
        st.plotly_chart(figure, width="stretch", key="sweep-gradient", alt=description(figure), config=CONFIG)
        st.caption(
            "The gradient says how much the soft share changes when the threshold moves. Only lesion pixels within a few T of the threshold "
            "add to it, so a sharp knife hears few pixels; a soft one hears all of them, faintly, and most of them far from the edge."
        )
    with right:
        st.subheader("Too soft: a ceiling")
        tops = np.array([ceiling(t, unit) for t in of_study.temperatures])
        figure = ceilings(of_study.temperatures, tops, one["best"], temperature, alpha, unit=unit)
        st.markdown(f"**{sentence_of(figure)}**")
        st.plotly_chart(figure, width="stretch", key="sweep-ceiling", alt=description(figure), config=CONFIG)
        st.caption(
            "A probability is at most 1 and a threshold at least 0, so no pixel counts more than σ(1/T). Where that lies below 1 − α no threshold "
            "can please the training, and it pushes them all towards 0. In logits there is no such end; choose the unit above."
        )


def learning(recorded: Temperatures, name: str | None) -> None:
    """How the recorded fit at this T went."""
    facts = recorded.facts.get(name or "")
    if not facts:
        return
    with st.expander(f"How the fit went: {recorded.title(name or '')}", icon=":material/show_chart:"):
        rows = [{"member": 0.0, **row} for row in facts["history"]]
        figure = history({"COAT": rows}, int(max(facts["epochs"])))
        st.plotly_chart(figure, width="stretch", key="sweep-learning", alt=description(figure), config=CONFIG)
        st.caption(
            f"Means over the predictors of the ensemble, which stopped after {min(facts['epochs'])} to {max(facts['epochs'])} epochs. The fit took "
            f"{facts['seconds']:.0f} s; its gap on the images left out of D2 is {points(facts['gap'])}."
        )


def methods(
    recorded: Temperatures, column: Grid, alpha: float, name: str | None, run: list[dict[str, object]]
) -> None:
    """The table: methods beside oracle and whole image, this run's rows among them."""
    rows = table(recorded, column, alpha, name)
    st.dataframe(
        [*rows[:-2], *run, *rows[-2:]],
        column_order=["method", "coverage", "gap", "area"],
        column_config=evidence.COLUMNS | {"method": st.column_config.TextColumn("Method")},
        hide_index=True,
        width="stretch",
    )
    st.caption(
        f"Means over {KNOBS['draws'].default} redrawn halves of the pool, calibrated exactly on each. *Whole image* marks everything: its gap is "
        "exactly α and it is worthless. *Oracle* knows the truth. A gap means something only between these two, with the set area beside it."
    )
