"""A study on the shelf: its pool's score table, the thresholds of every method, and the questions that
pages ask of them.

Everything here is read from `assets/` (made by `make.py`) and no network runs: a moved slider calibrates
anew from the sorted table. The pool's images themselves are drawn again from their seeds (phantoms) or read
from a folder the user points at (real data sets, which never ship).
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path

import numpy as np
import torch

from core.coat.thresholds import between_knots, oracle_thresholds
from core.conformal import (
    Calibration,
    CoverageCurves,
    Evaluation,
    Resampled,
    ShiftTable,
    calibrate,
    coverage_over_draws,
    evaluate,
    resample,
    shift_table,
)
from core.conformal.metrics import draw_halves
from core.data.splits import redraw
from core.nets.weights import ASSETS

METHODS = ("CRC", "plug-in", "AT", "COAT")
"""Methods that carry a promise, in the order in which they are shown."""

ROWS = (*METHODS, "oracle", "whole image")
"""Rows of every table of gaps: the methods, and the two that put the gap into its place."""

STUDIES = ("phantom", "polyp")


@dataclass(frozen=True)
class Study:
    """A data set's pool with a base model's scores on it.

    Attributes:
        name: `"phantom"` or `"polyp"`.
        curves: Score table of the pool, N images, binned.
        knots: Method -> `(N, A)` thresholds at `ALPHA_KNOTS`, for plug-in, AT and COAT.
        facts: What the cards say in numbers: sizes of the parts, Dice, command.
    """

    name: str
    curves: CoverageCurves
    knots: dict[str, torch.Tensor]
    facts: dict[str, object]

    def tau_hat(self, method: str, alpha: float) -> torch.Tensor:
        """Per-image thresholds of a method at one alpha, `(N,)` logits. CRC's constant is 0; the whole image needs none either.

        Raises:
            KeyError: The method is not one of `ROWS`.
        """
        if method in ("CRC", "whole image"):
            return torch.zeros(len(self.curves))
        if method == "oracle":
            return oracle_thresholds(self.curves, alpha).nan_to_num(nan=1e6)
        return between_knots(self.knots[method], alpha)


def load_study(folder: Path, name: str) -> Study:
    """Read a study from a folder laid out like `assets/`.

    Raises:
        FileNotFoundError: A table is missing; the message says how to make it.
    """
    table = folder / "scores" / f"{name}.npz"
    if not table.exists():
        raise FileNotFoundError(
            f"The score table {table.name} is missing. Make it with: python -m core study {name}"
        )
    with np.load(folder / "scores" / f"{name}-thresholds.npz", allow_pickle=False) as z:
        knots = {
            method: torch.from_numpy(z[method].astype(np.float32)) for method in METHODS if method != "CRC"
        }
    facts = json.loads((folder / "scores" / f"{name}.json").read_text())
    return Study(name, CoverageCurves.load(table), knots, facts)


@lru_cache(maxsize=8)
def shipped_study(name: str) -> Study:
    """The study that ships under a name, read once a process."""
    return load_study(ASSETS, name)


@dataclass(frozen=True)
class Split:
    """A study with one draw of calibration and test, at one alpha: what a page shows.

    Attributes:
        study: The study.
        alpha: Share that may be missed.
        seed: The draw.
        calibrating: Indices of the calibration images.
        testing: Indices of the test images.
        calibrations: Method -> `Calibration`.
        evaluations: Row -> `Evaluation` on the test images, for all of `ROWS`.
    """

    study: Study
    alpha: float
    seed: int
    calibrating: np.ndarray
    testing: np.ndarray
    calibrations: dict[str, Calibration]
    evaluations: dict[str, Evaluation]

    def tau(self, method: str) -> torch.Tensor:
        """Effective thresholds tau' = tau_hat - t of all pool images, `(N,)` logits; -inf where nothing can be promised."""
        if method == "whole image":
            return torch.full((len(self.study.curves),), -torch.inf)
        shift = self.calibrations[method].shift if method in self.calibrations else 0.0
        return self.study.tau_hat(method, self.alpha) - shift

    def coverage(self, method: str) -> np.ndarray:
        """Coverage of every pool image under a method, `(N,)`; NaN without a lesion."""
        return self.study.curves.coverage(*self._set(method))[:, 0].numpy()

    def area(self, method: str) -> np.ndarray:
        """Set area of every pool image under a method, `(N,)`."""
        return self.study.curves.area(*self._set(method))[:, 0].numpy()

    def _set(self, method: str) -> tuple[torch.Tensor, float]:
        shift = (
            self.calibrations[method].shift
            if method in self.calibrations
            else (0.0 if method == "oracle" else float("inf"))
        )
        return self.study.tau_hat(method, self.alpha), shift


@lru_cache(maxsize=32)
def _crc_table(name: str) -> ShiftTable:
    study = shipped_study(name)
    return shift_table(study.curves, study.tau_hat("CRC", 0.5))


def table_of(study: Study, method: str, alpha: float) -> ShiftTable | None:
    """The sorted shifts of CRC, which serve every alpha and are kept for shipped studies; None for methods whose thresholds move."""
    if method == "CRC" and study.name in STUDIES and study is shipped_study(study.name):
        return _crc_table(study.name)
    return None


def calibrations(
    study: Study, alpha: float, seed: int, calibration_share: float = 0.5
) -> dict[str, Calibration]:
    """Every method calibrated on one draw; remembered for shipped studies."""
    if study.name in STUDIES and study is shipped_study(study.name):
        return _calibrations(study.name, alpha, seed, calibration_share)
    return _calibrate_all(study, alpha, seed, calibration_share)


@lru_cache(maxsize=512)
def _calibrations(name: str, alpha: float, seed: int, calibration_share: float) -> dict[str, Calibration]:
    return _calibrate_all(shipped_study(name), alpha, seed, calibration_share)


def _calibrate_all(study: Study, alpha: float, seed: int, calibration_share: float) -> dict[str, Calibration]:
    half, _ = redraw(len(study.curves), calibration_share, seed)
    return {
        m: calibrate(study.curves, study.tau_hat(m, alpha), alpha, half, m, table_of(study, m, alpha))
        for m in METHODS
    }


def split_study(study: Study, alpha: float, seed: int, calibration_share: float = 0.5) -> Split:
    """Draw calibration and test, calibrate every method and evaluate every row.

    Args:
        study: The study.
        alpha: Share that may be missed, in (0, 1).
        seed: The draw.
        calibration_share: Share of the pool that calibrates.
    """
    calibrating, testing = redraw(len(study.curves), calibration_share, seed)
    calibrated = calibrations(study, alpha, seed, calibration_share)
    evaluations = {}
    for row in ROWS:
        shift = calibrated[row].shift if row in METHODS else (0.0 if row == "oracle" else float("inf"))
        evaluations[row] = evaluate(study.curves, study.tau_hat(row, alpha), shift, alpha, testing)
    return Split(study, alpha, seed, calibrating, testing, calibrated, evaluations)


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
) -> dict[str, np.ndarray]:
    """Test coverage `(draws,)` of some methods over redrawn halves: what `resampled` says of coverage, and quicker."""
    halves = draw_halves(len(study.curves), calibration_share, draws, seed)
    return {
        m: coverage_over_draws(
            study.curves, study.tau_hat(m, alpha), alpha, halves, table_of(study, m, alpha)
        )
        for m in methods
    }


def hardest(split: Split, method: str = "CRC", count: int = 10) -> np.ndarray:
    """Indices of the test images with the lowest coverage under a method, the worst first."""
    coverage = split.coverage(method)
    order = sorted((i for i in split.testing if not np.isnan(coverage[i])), key=lambda i: coverage[i])
    return np.array(order[:count], dtype=int)
