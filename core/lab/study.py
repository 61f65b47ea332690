"""A study and the questions that pages ask of it: one draw of calibration and test at one alpha, and many draws at once.

Everything here is read from `assets/` (made by `make.py`) and no network runs: a moved slider calibrates
anew from the sorted table. The pool's images themselves are drawn again from their seeds (phantoms) or read
from a folder the user points at (real data sets, which never ship).
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from functools import cached_property, lru_cache
from typing import TYPE_CHECKING

import numpy as np
import torch

from core.conformal import (
    Calibration,
    Evaluation,
    Resampled,
    ShiftTable,
    calibrate,
    coverage_over_draws,
    evaluate,
    resample,
    shift_table,
)
from core.conformal.confidence import calibrate_with_confidence, largest_risk
from core.conformal.metrics import draw_halves
from core.conformal.trade import Trade, trade_curve
from core.data.splits import redraw
from core.lab.tables import (
    METHODS,
    NO_SHIFT,
    PROMISED,
    ROWS,
    STUDIES,
    TABLE,
    Study,
    complete,
    load_study,
    shipped_study,
)
from core.nets.weights import ASSETS

if TYPE_CHECKING:
    from core.lab.adaptive import Adaptive

__all__ = [
    "ASSETS",
    "METHODS",
    "NO_SHIFT",
    "PROMISED",
    "ROWS",
    "STUDIES",
    "TABLE",
    "Controlled",
    "Split",
    "Study",
    "calibrations",
    "complete",
    "controlled",
    "hardest",
    "load_study",
    "resampled",
    "shipped_study",
    "split_study",
    "spread",
    "table_of",
]


@dataclass(frozen=True)
class Split:
    """A study with one draw of calibration and test, at one alpha: what a page shows.

    Attributes:
        study: The study.
        alpha: Share that may be missed.
        seed: The draw.
        calibrating: Indices of the calibration images.
        testing: Indices of the test images.
        calibrations: Method -> `Calibration`, for `PROMISED` and AA-CRC without a shift.
        evaluations: Row -> `Evaluation` on the test images, for all of `TABLE`.
        own: Thresholds `(N,)` before the shift of the rows whose rule was set on calibration images: AA-CRC with and without a shift.
        delta: Chance that the calibration images mislead; None promises on average.
    """

    study: Study
    alpha: float
    seed: int
    calibrating: np.ndarray
    testing: np.ndarray
    calibrations: dict[str, Calibration]
    evaluations: dict[str, Evaluation]
    own: dict[str, torch.Tensor] = field(default_factory=dict)
    delta: float | None = None

    def tau_hat(self, method: str) -> torch.Tensor:
        """Thresholds `(N,)` of all pool images before the shift, in logits."""
        return self.own[method] if method in self.own else self.study.tau_hat(method, self.alpha)

    def shift(self, method: str) -> float:
        """The calibrated shift; 0 for the oracle, infinite for the whole image."""
        if method in self.calibrations:
            return self.calibrations[method].shift
        return 0.0 if method == "oracle" else float("inf")

    def tau(self, method: str) -> torch.Tensor:
        """Effective thresholds tau' = tau_hat - t of all pool images, `(N,)` logits; -inf where nothing can be promised."""
        return self.tau_hat(method) - self.shift(method)

    def coverage(self, method: str) -> np.ndarray:
        """Coverage of every pool image under a method, `(N,)`; NaN without a lesion."""
        return self.study.curves.coverage(self.tau_hat(method), self.shift(method))[:, 0].numpy()

    def area(self, method: str) -> np.ndarray:
        """Set area of every pool image under a method, `(N,)`."""
        return self.study.curves.area(self.tau_hat(method), self.shift(method))[:, 0].numpy()

    @cached_property
    def trades(self) -> dict[str, Trade]:
        """Row -> its gap against its area on the test images, and its gap at CRC's area; no promise. All rows but the whole image."""
        curves, area = self.study.curves, self.evaluations["CRC"].area
        rows = [row for row in self.evaluations if row != "whole image"]
        return {row: trade_curve(curves, self.tau_hat(row), self.alpha, self.testing, area) for row in rows}


@lru_cache(maxsize=32)
def _crc_table(name: str) -> ShiftTable:
    study = shipped_study(name)
    return shift_table(study.curves, study.tau_hat("CRC", 0.5))


def _ships(study: Study) -> bool:
    return study.name in STUDIES and study is shipped_study(study.name)


def table_of(study: Study, method: str, alpha: float) -> ShiftTable | None:
    """The sorted shifts of CRC, which serve every alpha and are kept for shipped studies; None for methods whose thresholds move."""
    return _crc_table(study.name) if method == "CRC" and _ships(study) else None


@dataclass(frozen=True)
class Controlled:
    """Every method calibrated on one draw.

    Attributes:
        calibrations: Method -> `Calibration`, for `PROMISED` and AA-CRC without a shift.
        adaptive: AA-CRC's fitted rules, with and without a shift, by row.
    """

    calibrations: dict[str, Calibration]
    adaptive: dict[str, Adaptive]


def controlled(
    study: Study, alpha: float, seed: int, calibration_share: float = 0.5, delta: float | None = None
) -> Controlled:
    """Every method calibrated on one draw; remembered for shipped studies.

    Args:
        study: The study.
        alpha: Share that may be missed, in (0, 1).
        seed: The draw.
        calibration_share: Share of the pool that calibrates.
        delta: Chance that the calibration images mislead, for control with confidence; None controls on average.
    """
    if _ships(study):
        return _controlled(study.name, alpha, seed, calibration_share, delta)
    return _control_all(study, alpha, seed, calibration_share, delta)


@lru_cache(maxsize=512)
def _controlled(name: str, alpha: float, seed: int, share: float, delta: float | None) -> Controlled:
    return _control_all(shipped_study(name), alpha, seed, share, delta)


def _control_all(study: Study, alpha: float, seed: int, share: float, delta: float | None) -> Controlled:
    from core.lab.adaptive import aacrc

    half, _ = redraw(len(study.curves), share, seed)
    with_shift = (
        aacrc(study, alpha, half, seed) if delta is None else _confident(study, alpha, half, seed, delta)
    )
    adaptive = {"AA-CRC": with_shift, NO_SHIFT: aacrc(study, alpha, half, seed, shifted=False)}
    made: dict[str, Calibration] = {}
    for m in PROMISED:
        if m in adaptive:
            made |= {m: adaptive[m].calibration, NO_SHIFT: adaptive[NO_SHIFT].calibration}
            continue
        tau_hat, table = study.tau_hat(m, alpha), table_of(study, m, alpha)
        if delta is None:
            made[m] = calibrate(study.curves, tau_hat, alpha, half, m, table)
        else:
            made[m] = calibrate_with_confidence(study.curves, tau_hat, alpha, delta, half, m, table)
    return Controlled(made, adaptive)


def _confident(study: Study, alpha: float, half: np.ndarray, seed: int, delta: float) -> Adaptive:
    """AA-CRC with confidence: one half of the calibration images sets the rule, the other finds a shift that holds with 1 - delta."""
    from core.lab.adaptive import aacrc, halves

    first, second = halves(len(half), seed)
    rule = aacrc(study, alpha, half[first], seed, shifted=False)
    if not rule.calibration.feasible:
        return replace(rule, calibration=replace(rule.calibration, method="AA-CRC"))
    found = calibrate_with_confidence(study.curves, rule.tau_hat, alpha, delta, half[second], "AA-CRC")
    return replace(rule, calibration=found)


def calibrations(
    study: Study, alpha: float, seed: int, calibration_share: float = 0.5, delta: float | None = None
) -> dict[str, Calibration]:
    """The calibrations of `controlled`."""
    return controlled(study, alpha, seed, calibration_share, delta).calibrations


def split_study(
    study: Study, alpha: float, seed: int, calibration_share: float = 0.5, delta: float | None = None
) -> Split:
    """Draw calibration and test, calibrate every method and evaluate every row. Arguments as in `controlled`."""
    calibrating, testing = redraw(len(study.curves), calibration_share, seed)
    made = controlled(study, alpha, seed, calibration_share, delta)
    own = {row: rule.tau_hat for row, rule in made.adaptive.items()}
    split = Split(study, alpha, seed, calibrating, testing, made.calibrations, {}, own, delta)
    found = {
        row: evaluate(study.curves, split.tau_hat(row), split.shift(row), alpha, testing) for row in TABLE
    }
    return replace(split, evaluations=found)


def resampled(
    study: Study,
    alpha: float,
    seed: int = 0,
    draws: int = 1000,
    methods: tuple[str, ...] = METHODS,
    calibration_share: float = 0.5,
) -> dict[str, Resampled]:
    """Every method over many redrawn halves of the pool; draw 0 is the split of `split_study` with the same seed."""
    halves = draw_halves(len(study.curves), calibration_share, draws, seed)
    return {
        m: resample(study.curves, study.tau_hat(m, alpha), alpha, halves, table_of(study, m, alpha))
        for m in methods
    }


def spread(
    study: Study,
    alpha: float,
    seed: int = 0,
    draws: int = 1000,
    methods: tuple[str, ...] = ("CRC", "COAT"),
    calibration_share: float = 0.5,
    delta: float | None = None,
) -> dict[str, np.ndarray]:
    """Test coverage `(draws,)` of some methods over redrawn halves: what `resampled` says of coverage, and quicker.

    With `delta` every draw is controlled with confidence 1 - delta: a draw with n images asks them for as much as CRC would at another alpha.
    """
    halves = draw_halves(len(study.curves), calibration_share, draws, seed)
    found = {}
    for m in methods:
        tau_hat, table = study.tau_hat(m, alpha), table_of(study, m, alpha)
        if delta is None:
            found[m] = coverage_over_draws(study.curves, tau_hat, alpha, halves, table)
            continue
        table = shift_table(study.curves, tau_hat) if table is None else table
        n = (halves & study.curves.has_lesion.numpy()).sum(1)
        covered = np.ones(draws)
        for size in np.unique(n[n > 0]):
            allowed, here = largest_risk(int(size), alpha, delta), n == size
            if allowed >= 0:  # else the whole image
                level = 1 - size * (1 - allowed) / (size + 1)
                covered[here] = coverage_over_draws(study.curves, tau_hat, level, halves[here], table)
        found[m] = covered
    return found


def hardest(split: Split, method: str = "CRC", count: int = 10) -> np.ndarray:
    """Indices of the test images with the lowest coverage under a method, the worst first."""
    coverage = split.coverage(method)
    order = sorted((i for i in split.testing if not np.isnan(coverage[i])), key=lambda i: coverage[i])
    return np.array(order[:count], dtype=int)
