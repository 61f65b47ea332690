"""Coverage: CRC, plug-in, AT and COAT over re-splits of a study's pool, beside oracle and whole image.

With `--data DIR` the shipped networks score the real pool images in this run and curves are exact; with
`--quick`, or where the folder is absent, the recorded score table is used and the rows say so.
"""

from __future__ import annotations

import argparse
import math
from pathlib import Path
from typing import Any

import numpy as np
import torch

from core.coat.predictor import predict_knots
from core.conformal import CoverageCurves, resample, shift_for_area, shift_table
from core.conformal.metrics import Resampled, draw_halves
from core.data.splits import Parts, refuse_shared
from core.lab.make import gather
from core.lab.promise import shipped_members
from core.lab.sources import NAMES, domain_of, source, spec_of
from core.lab.study import METHODS, ROWS, Study, shipped_study
from core.nets.weights import ASSETS, shipped_network

DOMAIN = {"polyp": "kvasir_seg", "phantom": "phantoms", "skin": "ham10000", "fire": "fire"}


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Flags of this benchmark."""
    parser.add_argument(
        "--data", type=Path, help="folder of the real data set; without it phantoms are drawn"
    )
    parser.add_argument(
        "--study", choices=NAMES, metavar="NAME", help="polyp when --data is given, else phantom"
    )
    parser.add_argument("--splits", type=int, default=20, help="re-splits of the pool")
    parser.add_argument("--alpha", type=float, default=0.1)
    parser.add_argument("--seed", type=int, default=0, help="first re-split")
    parser.add_argument("--share", type=float, default=0.5, help="share of the pool that calibrates")


def measured(name: str, data: Path | None) -> Study:
    """Score the pool anew with the shipped networks: exact curves and thresholds.

    Raises:
        ValueError: An image of the pool is also in D1 or D2.
    """
    parts, read = source(name, data)
    model, spec, _ = shipped_network(name)
    given, _, curves, hashes = gather(parts.pool, read, model, spec.side)
    _no_leak(parts, hashes, read)
    members = shipped_members(name)
    knots = {"plug-in": given.plug_in} | {m: predict_knots(members[m], given) for m in ("AT", "COAT")}
    return Study(name, curves, knots, {})


def _no_leak(parts: Parts, pool: dict[str, str], read: Any) -> None:
    from core.data.splits import content_hash
    from core.images.grid import to_grid

    other = {
        k: content_hash(to_grid(read(k)[0])) for part in (parts.d1, parts.d1_val, parts.d2) for k in part
    }
    refuse_shared(other, pool, "D1 or D2", "the pool")


def row(study: Study, method: str, alpha: float, halves: np.ndarray, crc_area: float) -> dict[str, Any]:
    """One row of the table, as BENCHMARKS lays down."""
    found = resampled_row(study, method, alpha, halves)
    curves, tau = study.curves, study.tau_hat(method, alpha)
    at_area = math.nan
    if method != "whole image":
        shift = shift_for_area(curves, tau, crc_area)
        covered = curves.coverage(tau, shift)[curves.has_lesion, 0]
        at_area = float((covered - (1 - alpha)).abs().mean())
    s = len(halves)
    return {
        "method": method,
        "domain": DOMAIN[domain_of(study.name)],
        "model": spec_of(study.name).kind,
        "alpha": alpha,
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


def resampled_row(study: Study, method: str, alpha: float, halves: np.ndarray) -> Resampled:
    """A row over re-splits; oracle and whole image need no calibration."""
    tau = study.tau_hat(method, alpha)
    if method in METHODS:
        return resample(study.curves, tau, alpha, halves, shift_table(study.curves, tau))
    return fixed(study.curves, tau, 0.0 if method == "oracle" else math.inf, alpha, halves)


def fixed(
    curves: CoverageCurves, tau: torch.Tensor, shift: float, alpha: float, halves: np.ndarray
) -> Resampled:
    """The same figures for a set that is not calibrated."""
    from core.conformal import evaluate

    each = [evaluate(curves, tau, shift, alpha, ~half) for half in halves]
    names = ("coverage", "gap", "area", "shortfall", "worst_5pct", "stretch")
    return Resampled(
        alpha, np.full(len(halves), shift), *(np.array([getattr(e, n) for e in each]) for n in names)
    )


def run(args: argparse.Namespace) -> dict[str, Any]:
    """Measure and print."""
    name = args.study or ("polyp" if args.data else "phantom")
    exact = not args.quick and (domain_of(name) == "phantom" or args.data is not None)
    study = measured(name, args.data) if exact else shipped_study(name)
    halves = draw_halves(len(study.curves), args.share, args.splits, args.seed)
    crc_area = float(resampled_row(study, "CRC", args.alpha, halves).area.mean())
    rows = [row(study, method, args.alpha, halves, crc_area) for method in ROWS]
    by = {r["method"]: r for r in rows}
    result = {
        "settings": {
            "study": name,
            "splits": args.splits,
            "alpha": args.alpha,
            "seed": args.seed,
            "calibration_share": args.share,
        },
        "source": "scored in this run, exact curves" if exact else f"recorded: assets/scores/{name}.npz",
        "pool": len(study.curves),
        "rows": rows,
        "gap_ratio": by["COAT"]["gap"] / by["CRC"]["gap"],
        "area_ratio": by["COAT"]["area"] / by["CRC"]["area"],
        "under_covered": [
            m for m in METHODS if by[m]["coverage"] < 1 - args.alpha - 3 * by[m]["coverage_se"]
        ],
        "weights": str((ASSETS / "weights" / f"{name}.safetensors").name),
    }
    return result
