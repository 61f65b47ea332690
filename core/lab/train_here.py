"""AT and COAT fitted while a visitor waits: the phantom study, a temperature of the visitor's own, well under a minute on a CPU.

The budget is reduced in one way, and the page says so: the predictor sees the global features of a score map (`core.coat.features`) and
not the small picture, which makes a fit several times as quick. D2, members and epochs are the shipped ones; `phantom_inputs` reads them.

It goes through the one runner (`jobs`): one fit at a time, the same settings served from its cache.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import torch

from core.coat.fit import Fitted, fit
from core.coat.predictor import predict_knots
from core.coat.thresholds import between_knots
from core.lab.jobs import RUNNER, Ticket
from core.lab.keys import settings_key
from core.lab.phantom_inputs import STUDY, shipped_inputs
from core.lab.study import Study, shipped_study
from core.lab.temperature_grid import figures_of
from core.nets.weights import ASSETS
from core.settings import CoatSettings

FALL = 4.0
"""A falling T starts at so many times its end."""

Report = Callable[[int, int, Mapping[str, Any]], None]


@dataclass(frozen=True)
class Budget:
    """How much is spent on a run; a test spends less.

    Attributes:
        epochs: Passes over D2, for AT and for COAT each.
        members: Predictors in each ensemble.
        images: Images of D2 that are used, the first ones; None takes all.
    """

    epochs: int = 60
    members: int = 5
    images: int | None = None


@dataclass(frozen=True)
class Trained:
    """What a run leaves.

    Attributes:
        settings: COAT's settings.
        knots: Method -> `(N, A)` thresholds of the pool at `ALPHA_KNOTS`, for AT and COAT.
        gap: Method -> out-of-fold gap on D2.
        history: Method -> rows of member, epoch, temperature, loss and gap, as in `core.coat.fit.Fitted`.
        seconds: How long it took.
        images: Images of D2 that it saw.
    """

    settings: CoatSettings
    knots: dict[str, torch.Tensor]
    gap: dict[str, float]
    history: dict[str, tuple[dict[str, float], ...]]
    seconds: float
    images: int

    def figures(
        self, study: Study, alphas: Sequence[float], seed: int = 0, draws: int = 20
    ) -> dict[str, np.ndarray]:
        """Method -> gap, coverage and area `(3, A)` on the pool, calibrated on each draw, mean over draws."""
        return {
            method: np.array([figures_of(study, between_knots(knots, a), a, seed, draws) for a in alphas]).T
            for method, knots in self.knots.items()
        }


def settings_here(
    temperature: float, unit: str, miss: str, falls: bool, budget: Budget | None = None
) -> tuple[CoatSettings, CoatSettings]:
    """Settings of AT and of COAT for a run: the same inputs, trunk, members and epochs.

    COAT starts from nothing, not from AT, so that what one sees is the temperature's doing.
    """
    budget = budget or Budget()
    base = CoatSettings(epochs=budget.epochs, members=budget.members, miss=miss, unit=unit)
    highest = 20.0
    start = min(temperature * FALL, highest) if falls else temperature
    coat = replace(base, objective="coat", temperature_start=start, temperature_end=temperature)
    return replace(CoatSettings(), objective="at", epochs=budget.epochs, members=budget.members), coat


def train(
    coat: CoatSettings,
    at: CoatSettings,
    on_step: Report,
    images: int | None = None,
    seed: int = 0,
    folder: Path = ASSETS,
) -> Trained:
    """Fit AT, then COAT.

    Args:
        coat: COAT's settings.
        at: AT's settings.
        on_step: `(done, total, facts)` after each epoch; facts hold the method, its member (from 1) and, as `rows`, the history of
            each method so far. It may raise to stop.
        images: Images of D2 that are used; None takes all.
        seed: Of both fits.
        folder: Where the inputs lie.

    Raises:
        FileNotFoundError: The inputs are not there.
    """
    began = time.perf_counter()
    d2, quantiles, pool = shipped_inputs(folder)
    if images is not None:
        d2, quantiles = d2.select(torch.arange(images)), quantiles[:images]
    total = at.members * at.epochs + coat.members * coat.epochs
    curves: dict[str, list[dict[str, float]]] = {"AT": [], "COAT": []}
    fitted: dict[str, Fitted] = {}
    for method, settings, before in (("AT", at, 0), ("COAT", coat, at.members * at.epochs)):

        def report(
            done: int, _: int, facts: dict[str, float], method: str = method, before: int = before
        ) -> None:
            curves[method].append(facts)
            live = {m: tuple(rows) for m, rows in curves.items()}
            on_step(
                before + done, total, {"method": method, "member": int(facts["member"]) + 1, "rows": live}
            )

        fitted[method] = fit(d2, quantiles, settings, seed, picture=False, on_step=report)
    return Trained(
        coat,
        {m: predict_knots(f.members, pool) for m, f in fitted.items()},
        {m: f.gap for m, f in fitted.items()},
        {m: f.history for m, f in fitted.items()},
        time.perf_counter() - began,
        len(d2),
    )


def key_of(coat: CoatSettings, budget: Budget) -> str:
    """What makes two runs the same."""
    return settings_key("sweep.train-here", coat, budget)


def start(temperature: float, unit: str, miss: str, falls: bool, budget: Budget | None = None) -> Ticket:
    """Ask for a run, or join those who already wait for the same one."""
    budget = budget or Budget()
    at, coat = settings_here(temperature, unit, miss, falls, budget)
    return RUNNER.submit(key_of(coat, budget), lambda on_step: train(coat, at, on_step, budget.images))


def study_here() -> Study:
    """The study that a run belongs to."""
    return shipped_study(STUDY)
