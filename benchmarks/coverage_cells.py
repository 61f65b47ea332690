"""The 24 cells of the coverage benchmark: three domains, four base networks, two levels, from the score tables and stored thresholds that ship.

Gaps are means over the first S re-splits of the pool (20, as in the paper) with their standard deviation. Whether a method under-covers is asked of
1,000 re-splits. AA-CRC is fitted anew in every split: with a shift, half of the calibration images set its rule and the other half carries the
promise; without one, all of them set it and nothing is promised. No network runs here; `coverage_retrain.py` fits predictors anew.

*Not above AT* uses one paired standard error: for each pool image, the mean over the splits in which it was tested of
|cov_COAT - (1 - alpha)| - |cov_AT - (1 - alpha)|; the standard error is the standard deviation of these means over images / sqrt(images). Frames of
one fire video resemble one another, so there it is too small, which makes the test stricter, never more lenient.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import torch

from core.conformal import (
    CoverageCurves,
    Resampled,
    ShiftTable,
    coverage_over_draws,
    evaluate,
    resample,
    shift_for_area,
    shift_table,
)
from core.conformal.metrics import draw_halves
from core.lab.adaptive import aacrc
from core.lab.sources import domain_of, spec_of
from core.lab.study import METHODS, NO_SHIFT, Study
from core.nets.build import KINDS

DOMAIN = {"polyp": "kvasir_seg", "phantom": "phantoms", "skin": "ham10000", "fire": "fire"}
"""Domain -> name of its data set in the rows."""

DOMAINS = ("polyp", "skin", "fire")
ALPHAS = (0.1, 0.2)
CELLS = tuple((d, k, a) for d in DOMAINS for k in KINDS for a in ALPHAS)
"""Domain, base network, alpha."""

PAPER = ("CRC", "AA-CRC", "AT", "COAT")
"""Methods that the paper compares; the plug-in threshold stands beside them here."""

FIGURES = ("coverage", "gap", "area", "shortfall", "worst_5pct", "stretch")


@dataclass(frozen=True)
class Cell:
    """One cell.

    Attributes:
        rows: Flat rows as BENCHMARKS lays down, one a method.
        under_covered: Methods whose mean coverage over the many re-splits lies below 1 - alpha - 3 standard errors.
        paired_se: Paired standard error of COAT's gap less AT's.
    """

    rows: list[dict[str, Any]]
    under_covered: list[str]
    paired_se: float

    def gap(self, method: str) -> float:
        """Mean gap of a method."""
        return float(self.row(method)["gap"])

    def row(self, method: str) -> dict[str, Any]:
        """The row of a method."""
        return next(r for r in self.rows if r["method"] == method)

    @property
    def not_above_at(self) -> bool:
        """Whether COAT's gap is at most one paired standard error above AT's."""
        return self.gap("COAT") <= self.gap("AT") + self.paired_se

    def lowest(self, among: Sequence[str]) -> bool:
        """Whether no other method has a smaller gap than COAT."""
        return self.gap("COAT") <= min(self.gap(m) for m in among)


def study_name(domain: str, model: str) -> str:
    """`("polyp", "unet")` -> `"polyp"`, `("polyp", "sinet")` -> `"polyp-sinet"`."""
    return domain if model == "unet" else f"{domain}-{model}"


def row_of(study: Study, method: str, found: Resampled, at_area: float) -> dict[str, Any]:
    """One row of the table from figures over S re-splits."""
    s = len(found.coverage)
    return {
        "method": method,
        "domain": DOMAIN[domain_of(study.name)],
        "model": spec_of(study.name).kind,
        "alpha": found.alpha,
        "coverage": float(found.coverage.mean()),
        "coverage_se": float(found.coverage.std(ddof=1) / math.sqrt(s)) if s > 1 else math.nan,
        "gap": float(found.gap.mean()),
        "gap_sd": float(found.gap.std(ddof=1)) if s > 1 else math.nan,
        "gap_at_crc_area": at_area,
        "area": float(found.area.mean()),
        "stretch": float(found.stretch.mean()),
        "shortfall": float(found.shortfall.mean()),
        "worst_5pct": float(found.worst_5pct.mean()),
    }


def gap_at_area(
    curves: CoverageCurves, tau: torch.Tensor, alpha: float, area: float, subset: np.ndarray | None = None
) -> float:
    """Gap to 1 - alpha after the common shift that makes the mean area a given one. It carries no promise."""
    shift = shift_for_area(curves, tau, area, subset)
    used = curves.has_lesion if subset is None else curves.has_lesion & torch.from_numpy(subset.copy())
    return float((curves.coverage(tau, shift)[used, 0] - (1 - alpha)).abs().mean())


def fixed(
    curves: CoverageCurves, tau: torch.Tensor, shift: float, alpha: float, halves: np.ndarray
) -> Resampled:
    """Figures over re-splits of a set that is not calibrated: oracle and whole image."""
    return _collected(alpha, [(evaluate(curves, tau, shift, alpha, ~half), shift) for half in halves])


def _collected(alpha: float, each: Sequence[tuple[Any, float]]) -> Resampled:
    columns = [np.array([getattr(e, name) for e, _ in each]) for name in FIGURES]
    return Resampled(alpha, np.array([shift for _, shift in each]), *columns)


def adaptive_row(
    study: Study, alpha: float, halves: np.ndarray, seed: int, crc_area: float, shifted: bool
) -> dict[str, Any]:
    """The row of AA-CRC, fitted anew in every split. Its gap at CRC's area is measured on the test images of the first five splits."""
    each, at_area = [], []
    for k, half in enumerate(halves):
        made = aacrc(study, alpha, half, seed + k, shifted)
        shift = made.calibration.shift
        each.append((evaluate(study.curves, made.tau_hat, shift, alpha, ~half), shift))
        if k < 5 and math.isfinite(shift):
            at_area.append(gap_at_area(study.curves, made.tau_hat, alpha, crc_area, ~half))
    found = _collected(alpha, each)
    return row_of(
        study, "AA-CRC" if shifted else NO_SHIFT, found, float(np.mean(at_area)) if at_area else math.nan
    )


def paired_se(
    curves: CoverageCurves,
    alpha: float,
    halves: np.ndarray,
    first: tuple[torch.Tensor, np.ndarray],
    second: tuple[torch.Tensor, np.ndarray],
) -> float:
    """Paired standard error of the gap of the first method less that of the second.

    Args:
        curves: N images.
        alpha: Share that may be missed.
        halves: `(S, N)` bool, who calibrates.
        first: Thresholds `(N,)` and shifts `(S,)` of a method.
        second: The same of the other.
    """
    has = curves.has_lesion.numpy()
    gaps = [
        np.abs(curves.coverage(tau, torch.from_numpy(shift)).numpy() - (1 - alpha))
        for tau, shift in (first, second)
    ]
    tested = (~halves).T & has[:, None]
    often = tested.sum(1)
    used = often > 0
    difference = np.where(tested, gaps[0] - gaps[1], 0.0).sum(1)[used] / often[used]
    return float(difference.std(ddof=1) / math.sqrt(used.sum())) if used.sum() > 1 else math.nan


def measure_cell(
    study: Study,
    alpha: float,
    splits: int = 20,
    draws: int = 1000,
    seed: int = 0,
    share: float = 0.5,
    crc: ShiftTable | None = None,
) -> Cell:
    """All rows of one cell.

    Args:
        study: Score table and stored thresholds.
        alpha: Share that may be missed.
        splits: Re-splits for the printed figures.
        draws: Re-splits for the question of under-coverage.
        seed: First re-split.
        share: Share of the pool that calibrates.
        crc: CRC's sorted shifts, which serve every alpha.
    """
    curves = study.curves
    many = draw_halves(len(curves), share, max(splits, draws), seed)
    halves = many[:splits]
    rows, under, made, crc_area = [], [], {}, math.nan
    for method in METHODS:
        tau = study.tau_hat(method, alpha)
        table = crc if method == "CRC" and crc is not None else shift_table(curves, tau)
        found = resample(curves, tau, alpha, halves, table)
        made[method] = (tau, found.shift)
        if method == "CRC":
            crc_area = float(found.area.mean())
        rows.append(row_of(study, method, found, gap_at_area(curves, tau, alpha, crc_area)))
        covered = coverage_over_draws(curves, tau, alpha, many[:draws], table)
        if covered.mean() < 1 - alpha - 3 * covered.std(ddof=1) / math.sqrt(draws):
            under.append(method)
    rows[1:1] = [adaptive_row(study, alpha, halves, seed, crc_area, shifted) for shifted in (True, False)]
    oracle = study.tau_hat("oracle", alpha)
    at_area = gap_at_area(curves, oracle, alpha, crc_area)
    rows.append(row_of(study, "oracle", fixed(curves, oracle, 0.0, alpha, halves), at_area))
    whole = fixed(curves, torch.zeros(len(curves)), math.inf, alpha, halves)
    rows.append(row_of(study, "whole image", whole, math.nan))
    return Cell(rows, under, paired_se(curves, alpha, halves, made["COAT"], made["AT"]))


def measure_all(
    load: Callable[[str], Study],
    cells: Sequence[tuple[str, str, float]] = CELLS,
    splits: int = 20,
    draws: int = 1000,
    seed: int = 0,
    share: float = 0.5,
    say: Callable[[str], None] = print,
) -> dict[tuple[str, str, float], Cell]:
    """Every cell whose assets are there; the others are named.

    Args:
        load: Name of a study -> study; raises FileNotFoundError where its assets are missing.
        cells: Domain, base network, alpha.
        splits: As in `measure_cell`, like the rest.
        draws: See there.
        seed: See there.
        share: See there.
        say: Called with a line for each study that is missing.
    """
    found: dict[tuple[str, str, float], Cell] = {}
    missing: set[str] = set()
    tables: dict[str, tuple[Study, ShiftTable]] = {}
    for domain, model, alpha in cells:
        name = study_name(domain, model)
        if name in missing:
            continue
        try:
            if name not in tables:
                study = load(name)
                tables = {name: (study, shift_table(study.curves, study.tau_hat("CRC", alpha)))}
        except FileNotFoundError as error:
            say(f"{name} is left out: {error}")
            missing.add(name)
            continue
        study, crc = tables[name]
        found[domain, model, alpha] = measure_cell(study, alpha, splits, draws, seed, share, crc)
    return found


def summarise(found: dict[tuple[str, str, float], Cell], wanted: int = len(CELLS)) -> dict[str, Any]:
    """The figures that sum the cells up, as BENCHMARKS lays down."""
    cells = list(found.values())
    ratio = [c.gap("COAT") / c.gap("CRC") for c in cells]
    area = [c.row("COAT")["area"] / c.row("CRC")["area"] for c in cells]
    return {
        "cells": len(cells),
        "cells_missing": wanted - len(cells),
        "cells_below_crc": sum(c.gap("COAT") < c.gap("CRC") for c in cells),
        "cells_not_above_at": sum(c.not_above_at for c in cells),
        "cells_lowest": sum(c.lowest((*PAPER, "plug-in")) for c in cells),
        "cells_lowest_without_plug_in": sum(c.lowest(PAPER) for c in cells),
        "gap_ratio": float(np.mean(ratio)) if cells else math.nan,
        "area_ratio": float(np.mean(area)) if cells else math.nan,
        "cells_under_covered": sum(bool(c.under_covered) for c in cells),
        "under_covered": [f"{d},{k},{a:g}: {m}" for (d, k, a), c in found.items() for m in c.under_covered],
    }


def compact(found: dict[tuple[str, str, float], Cell]) -> list[dict[str, Any]]:
    """One line a cell: gaps of the methods, what COAT is worth beside CRC, and where it stands."""
    lines = []
    for (domain, model, alpha), cell in found.items():
        line: dict[str, Any] = {"domain": domain, "model": model, "alpha": alpha}
        for method in (*PAPER[:2], "plug-in", *PAPER[2:], "oracle", "whole image"):
            line[method] = round(cell.gap(method), 4)
        coat, crc = cell.row("COAT"), cell.row("CRC")
        line |= {
            "gap/CRC": round(coat["gap"] / crc["gap"], 3),
            "area/CRC": round(coat["area"] / crc["area"], 3),
            "area": round(coat["area"], 3),
            "lowest": cell.lowest((*PAPER, "plug-in")),
            "not above AT": cell.not_above_at,
        }
        lines.append(line)
    return lines


def binned(study: Study) -> Study:
    """The study with its curves in bins, which AA-CRC's fit needs to be quick."""
    return study if study.curves.binned else replace(study, curves=study.curves.to_bins())
