"""Gap, coverage and area of COAT over T and alpha: exact calibration of recorded thresholds on redrawn halves of the pool.

It fits nothing (`temperatures` did) and draws nothing. Beside every temperature stand the rows that know none.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache

import numpy as np
import torch

from core.coat.softness import quiet_temperature, slope_of
from core.coat.sweep import SHIPPED, TEMPERATURES
from core.coat.thresholds import between_knots
from core.conformal import ShiftTable, evaluate, resample
from core.conformal.metrics import draw_halves
from core.lab.study import Study, shipped_study, table_of
from core.lab.temperatures import Temperatures, load

REFERENCES = ("CRC", "plug-in", "AT", "oracle", "whole image")
"""Rows that stand beside the temperatures and know none."""


@dataclass(frozen=True)
class Grid:
    """Gap, coverage and area after calibration, for every variant and alpha, with the rows that stand beside them.

    Attributes:
        alphas: `(A,)` shares that may be missed.
        names: V names of variants.
        gap: `(V, A)` mean |coverage - (1 - alpha)| of the tested images, mean over draws.
        coverage: `(V, A)` mean coverage of the tested images.
        area: `(V, A)` mean set area of the tested images.
        reference: Row of `REFERENCES` -> `(3, A)`: gap, coverage and area.
    """

    alphas: tuple[float, ...]
    names: tuple[str, ...]
    gap: np.ndarray
    coverage: np.ndarray
    area: np.ndarray
    reference: dict[str, np.ndarray]

    def figures(self, name: str) -> np.ndarray:
        """Gap, coverage and area `(3, A)` of a variant or of a reference row."""
        if name in self.reference:
            return self.reference[name]
        row = self.names.index(name)
        return np.stack([self.gap[row], self.coverage[row], self.area[row]])


def grid(
    temperatures: Temperatures,
    study: Study,
    alphas: Sequence[float],
    seed: int = 0,
    draws: int = 20,
    calibration_share: float = 0.5,
) -> Grid:
    """Calibrate every variant exactly on each draw, test it on the rest, and average over draws.

    Args:
        temperatures: The recorded thresholds.
        study: The study that they belong to.
        alphas: Shares that may be missed.
        seed: First draw; the k-th has seed + k.
        draws: How many.
        calibration_share: Share of the pool that calibrates.
    """
    if study is _shipped(study.name) and temperatures is load(study.name):
        return _grid(study.name, tuple(alphas), seed, draws, calibration_share)
    return _grid_of(temperatures, study, tuple(alphas), seed, draws, calibration_share)


def _shipped(name: str) -> Study | None:
    try:
        return shipped_study(name)
    except FileNotFoundError:
        return None


@lru_cache(maxsize=64)
def _grid(name: str, alphas: tuple[float, ...], seed: int, draws: int, share: float) -> Grid:
    return _grid_of(load(name), shipped_study(name), alphas, seed, draws, share)


def figures_of(
    study: Study,
    tau_hat: torch.Tensor,
    alpha: float,
    seed: int,
    draws: int,
    share: float = 0.5,
    table: ShiftTable | None = None,
) -> tuple[float, float, float]:
    """Gap, coverage and area of one set of thresholds `(N,)`, calibrated and tested on each draw, mean over draws."""
    halves = draw_halves(len(study.curves), share, draws, seed)
    r = resample(study.curves, tau_hat, alpha, halves, table)
    return float(np.nanmean(r.gap)), float(np.nanmean(r.coverage)), float(np.nanmean(r.area))


def _grid_of(
    temperatures: Temperatures, study: Study, alphas: tuple[float, ...], seed: int, draws: int, share: float
) -> Grid:
    names = tuple(temperatures.variants)
    out = np.zeros((len(names), len(alphas), 3))
    for i, name in enumerate(names):
        for j, alpha in enumerate(alphas):
            tau_hat = between_knots(temperatures.knots[name], alpha)
            out[i, j] = figures_of(study, tau_hat, alpha, seed, draws, share)
    reference: dict[str, np.ndarray] = {}
    for row in REFERENCES:
        figures = []
        for alpha in alphas:
            if row == "whole image":
                figures.append((alpha, 1.0, 1.0))
            elif row == "oracle":
                e = evaluate(study.curves, study.tau_hat("oracle", alpha), 0.0, alpha)
                figures.append((e.gap, e.coverage, e.area))
            else:
                table = table_of(study, row, alpha)
                figures.append(figures_of(study, study.tau_hat(row, alpha), alpha, seed, draws, share, table))
        reference[row] = np.array(figures).T
    return Grid(alphas, names, out[..., 0], out[..., 1], out[..., 2], reference)


def table(
    temperatures: Temperatures, column: Grid, alpha: float, nearest: str | None
) -> list[dict[str, object]]:
    """Rows for the table of methods at one alpha: method, coverage, gap, area.

    Args:
        temperatures: The recording.
        column: A grid that holds alpha.
        alpha: Share that may be missed.
        nearest: Name of the fixed temperature that is looked at, or None.
    """
    at = column.alphas.index(alpha)
    chosen = temperatures.chosen_among(n for n in temperatures.variants if n != SHIPPED)
    rows: list[tuple[str, str]] = [(m, m) for m in ("CRC", "plug-in", "AT")]
    if nearest is not None:
        rows.append((nearest, temperatures.title(nearest)))
    if chosen is not None and chosen != nearest:
        rows.append((chosen, f"{temperatures.title(chosen)}: chosen on D2"))
    elif chosen is not None:
        rows[-1] = (chosen, f"{temperatures.title(chosen)}: also the one chosen on D2")
    rows += [(SHIPPED, temperatures.title(SHIPPED)), ("oracle", "oracle"), ("whole image", "whole image")]
    out: list[dict[str, object]] = []
    for name, words in rows:
        gap, coverage, area = (float(v) for v in column.figures(name)[:, at])
        out.append({"method": words, "coverage": coverage, "gap": gap, "area": area})
    return out


@dataclass(frozen=True)
class Gradients:
    """How large the gradient is where a fit starts: at the plug-in threshold, from which the predictor learns corrections.

    Attributes:
        temperatures: `(S,)` T.
        slope: `(S,)` mean |d soft / d tau| over the study's images.
        silent_below: T below which it is gone in most images.
    """

    temperatures: tuple[float, ...]
    slope: np.ndarray
    silent_below: float


def gradients(study: Study, alpha: float, unit: str) -> Gradients:
    """The gradient of a study against T at one alpha; remembered for shipped studies."""
    if study is _shipped(study.name):
        return _gradients(study.name, alpha, unit)
    return _gradients_of(study, alpha, unit)


@lru_cache(maxsize=256)
def _gradients(name: str, alpha: float, unit: str) -> Gradients:
    return _gradients_of(shipped_study(name), alpha, unit)


def _gradients_of(study: Study, alpha: float, unit: str) -> Gradients:
    start, has = between_knots(study.knots["plug-in"], alpha), study.curves.has_lesion
    ts = TEMPERATURES[unit]
    slope = [float(slope_of(study.curves, start, t, unit)[has].mean()) for t in ts]
    return Gradients(ts, np.array(slope), quiet_temperature(study.curves, start, unit))
