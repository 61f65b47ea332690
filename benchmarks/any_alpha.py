"""One predictor for every α against predictors that were fitted at a single α each: what does serving all of them cost?

Both kinds have COAT's shipped settings, the same images, folds, members and epochs; those for a single α see and are judged at that
level only. Gaps are means over re-splits of the pool after exact calibration. `gap_ratio` is the mean gap of the one over the mean gap of the
single ones. `crossing` counts pool images whose calibrated thresholds are out of order somewhere on a grid of α: never before the
shift, for τ̂ rises with α by construction; after it they may, and `core.conformal.nested` mends it.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import torch

from core.coat.fit import fit
from core.coat.predictor import predict_knots
from core.coat.thresholds import between_knots
from core.conformal import resample
from core.conformal.control import shift_table
from core.conformal.metrics import draw_halves
from core.lab.gathered import Gathered, gathered
from core.lab.make import VARIANTS
from core.lab.phantom_inputs import shipped_inputs
from core.lab.sources import NAMES
from core.lab.study import Study, shipped_study
from core.nets.weights import ASSETS
from core.settings import CoatSettings

ALPHAS = (0.05, 0.1, 0.15, 0.2, 0.3)
GRID = tuple(k / 100 for k in range(2, 51))


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Flags of this benchmark."""
    parser.add_argument(
        "--study", choices=NAMES, metavar="NAME", help="polyp when --data is given, else phantom"
    )
    parser.add_argument("--data", type=Path, help="folder of the real data set")
    parser.add_argument("--work", type=Path, help="folder that keeps the scored inputs")
    parser.add_argument("--draws", type=int, default=200, help="re-splits of the pool")
    parser.add_argument("--seed", type=int, default=0, help="of the fits")
    parser.add_argument("--record", action="store_true", help="write the figures into assets/results")


def compare(
    study: Study,
    inputs: Gathered,
    settings: CoatSettings,
    seed: int,
    draws: int,
    picture: bool = True,
    say: Callable[[str], None] = print,
) -> list[dict[str, Any]]:
    """Fit the one and the single ones, and measure both.

    Returns:
        One row a level: `alpha`, `gap_one`, `gap_single`, `area_one`, `area_single`.
    """
    halves = draw_halves(len(study.curves), 0.5, draws, 0)

    def measured(given: CoatSettings) -> torch.Tensor:
        return predict_knots(fit(inputs.d2, inputs.quantiles, given, seed, picture).members, inputs.pool)

    one = measured(settings)
    rows = []
    for alpha in ALPHAS:
        single = measured(replace(settings, low_alpha=alpha, high_alpha=alpha))
        row: dict[str, Any] = {"alpha": alpha}
        for name, knots in (("one", one), ("single", single)):
            r = resample(study.curves, between_knots(knots, alpha), alpha, halves)
            row |= {f"gap_{name}": float(r.gap.mean()), f"area_{name}": float(r.area.mean())}
        rows.append(row)
        say(f"α = {alpha:g}: one {row['gap_one']:.4f}, fitted at it alone {row['gap_single']:.4f}")
    return rows


def crossing(study: Study) -> dict[str, int]:
    """Images of the shipped predictor that cross on the grid of α, before and after calibration on the whole pool."""
    from core.conformal.nested import crossings

    before = torch.stack([study.tau_hat("COAT", a) for a in GRID], 1)
    shifts = []
    for a in GRID:
        table = shift_table(study.curves, study.tau_hat("COAT", a))
        shifts.append(float(table.shifts(torch.tensor([a]))[0]))
    return {
        "images": len(study.curves),
        "crossing_before_shift": crossings(before),
        "crossing_after_shift": crossings(before - torch.tensor(shifts)[None]),
    }


def run(args: argparse.Namespace) -> dict[str, Any]:
    """Fit and measure."""
    name = args.study or ("polyp" if args.data is not None else "phantom")
    study, settings, draws = shipped_study(name), VARIANTS["COAT"], args.draws
    picture = not (args.quick and name == "phantom")
    inputs = gathered(name, args.data, args.work) if picture else _without_pictures()
    if args.quick:
        settings, draws = replace(settings, epochs=20, members=2), min(draws, 50)
    rows = compare(study, inputs, settings, args.seed, draws, picture)
    ratio = sum(r["gap_one"] for r in rows) / sum(r["gap_single"] for r in rows)
    found: dict[str, Any] = {"rows": rows, "study": name, "gap_ratio": ratio, **crossing(study)}
    if args.record:
        write(ASSETS / "results" / f"any_alpha-{name}.md", found)
    return found


def _without_pictures() -> Gathered:
    """The phantom study's inputs as they ship: no picture is drawn and no network runs."""
    d2, quantiles, pool = shipped_inputs()
    return Gathered(d2, quantiles, pool)


def write(path: Path, found: dict[str, Any]) -> None:
    """The figures as Markdown, in place whole."""
    name = found["study"]
    where = "" if name == "phantom" else " --data FOLDER-OF-THE-DATA-SET"
    lines = [
        f"# One predictor for every α against one for each, study {name}",
        "",
        f"Made by `python -m benchmarks any_alpha --study {name}{where} --record`.",
        "",
        "| α | gap, one for all | area | gap, fitted at this α alone | area |",
        "|---|---|---|---|---|",
        *(
            f"| {r['alpha']:g} | {r['gap_one']:.4f} | {r['area_one']:.3f} | {r['gap_single']:.4f} | {r['area_single']:.3f} |"
            for r in found["rows"]
        ),
        "",
        f"Mean gap of the one over the mean gap of the five: {found['gap_ratio']:.3f}. The whole image has a gap of α at area 1,",
        f"the oracle a gap of about 0. Thresholds out of order somewhere from α = 0.02 to 0.5: "
        f"{found['crossing_before_shift']} of {found['images']} images before the shift,",
        f"{found['crossing_after_shift']} after it.",
    ]
    path.write_text("\n".join(lines) + "\n", encoding="utf-8")
