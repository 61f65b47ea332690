"""Coverage: CRC, AA-CRC, plug-in, AT and COAT over re-splits of a study's pool, beside oracle and whole image.

One study: with `--data DIR` the shipped networks score the real pool images in this run and curves are exact; with `--quick`, or where
the folder is absent, the recorded score table is used and the rows say so. (AA-CRC is fitted and tested on bins of 1/40 logit either way.)

`--all`: the 24 cells from the score tables and stored thresholds that ship; see `coverage_cells.py` for what is counted and how.
`--cell DOMAIN,MODEL,ALPHA`: one of them; with `--retrain --minutes M` its predictors are fitted anew and compared (`coverage_retrain.py`).
`--record` writes what `--all` found to `assets/results/` (`coverage_record.py`); nothing is written otherwise but by `--json`.
"""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.coverage_cells import (
    CELLS,
    DOMAIN,
    adaptive_row,
    binned,
    compact,
    fixed,
    gap_at_area,
    measure_all,
    row_of,
    study_name,
    summarise,
)
from benchmarks.table import show
from core.coat.predictor import predict_knots
from core.conformal import Resampled, resample, shift_table
from core.conformal.metrics import draw_halves
from core.data.splits import Parts, refuse_shared
from core.lab.make import gather
from core.lab.promise import shipped_members
from core.lab.sources import NAMES, domain_of, source
from core.lab.study import METHODS, ROWS, Study, shipped_study
from core.nets.weights import ASSETS, shipped_network

DRAWS = 1000
"""Re-splits that answer whether a method under-covers."""


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
    parser.add_argument("--all", action="store_true", help="the 24 cells, from what ships")
    parser.add_argument(
        "--record", action="store_true", help="with --all: write JSON and Markdown to assets/results"
    )
    parser.add_argument("--cell", type=cell_of, metavar="DOMAIN,MODEL,ALPHA", help="one cell: polyp,unet,0.1")
    parser.add_argument(
        "--retrain", action="store_true", help="with --cell: fit its predictors anew and compare"
    )
    parser.add_argument("--minutes", type=float, default=15.0, help="with --retrain: how long it may take")
    parser.add_argument(
        "--work", type=Path, help="with --retrain: folder that keeps scored images for the next run"
    )


def cell_of(text: str) -> tuple[str, str, float]:
    """Read a cell's name, `"polyp,unet,0.1"`.

    Raises:
        argparse.ArgumentTypeError: It is none of the 24.
    """
    parts = text.split(",")
    try:
        cell = (parts[0], parts[1], float(parts[2])) if len(parts) == 3 else None
    except ValueError:
        cell = None
    if cell not in CELLS:
        raise argparse.ArgumentTypeError(
            f"{text!r} is no cell. A cell is one of {', '.join(sorted({c[0] for c in CELLS}))}, one of "
            f"{', '.join(sorted({c[1] for c in CELLS}))}, and 0.1 or 0.2: polyp,unet,0.1"
        )
    return cell


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


def resampled_row(study: Study, method: str, alpha: float, halves: np.ndarray) -> Resampled:
    """A row over re-splits; oracle and whole image need no calibration."""
    tau = study.tau_hat(method, alpha)
    if method in METHODS:
        return resample(study.curves, tau, alpha, halves, shift_table(study.curves, tau))
    return fixed(study.curves, tau, 0.0 if method == "oracle" else float("inf"), alpha, halves)


def run(args: argparse.Namespace) -> dict[str, Any]:
    """Measure one study, all cells, or one cell."""
    if args.record and (not args.all or args.quick):
        raise SystemExit("--record belongs to --all without --quick: only the whole table is recorded.")
    if args.cell is not None and args.retrain:
        from benchmarks.coverage_retrain import retrain

        return retrain(args)
    if args.all or args.cell is not None:
        return run_cells(args)
    return run_study(args)


def run_study(args: argparse.Namespace) -> dict[str, Any]:
    """One study at one alpha."""
    name = args.study or ("polyp" if args.data else "phantom")
    exact = not args.quick and (domain_of(name) == "phantom" or args.data is not None)
    study = measured(name, args.data) if exact else shipped_study(name)
    halves = draw_halves(len(study.curves), args.share, args.splits, args.seed)
    rows, crc_area = [], float("nan")
    for method in ROWS:
        found = resampled_row(study, method, args.alpha, halves)
        if method == "CRC":
            crc_area = float(found.area.mean())
        tau = study.tau_hat(method, args.alpha)
        whole = method == "whole image"
        at_area = float("nan") if whole else gap_at_area(study.curves, tau, args.alpha, crc_area)
        rows.append(row_of(study, method, found, at_area))
    coarse = binned(study)
    rows[1:1] = [
        adaptive_row(coarse, args.alpha, halves, args.seed, crc_area, shifted) for shifted in (True, False)
    ]
    by = {r["method"]: r for r in rows}
    return {
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


def run_cells(args: argparse.Namespace) -> dict[str, Any]:
    """All cells, or one, from the score tables that ship."""
    wanted = CELLS if args.all else (args.cell,)
    draws = 200 if args.quick else DRAWS
    found = measure_all(shipped_study, wanted, args.splits, draws, args.seed, args.share)
    if not found:
        raise FileNotFoundError("No study of these cells ships: make one with python -m core study NAME.")
    return {
        "settings": {"splits": args.splits, "draws": draws, "calibration_share": args.share},
        "rows": [row for cell in found.values() for row in cell.rows],
        "table": compact(found),
        "by_video": by_video(found, args.seed, draws),
        **summarise(found, len(wanted)),
    }


def by_video(found: dict[tuple[str, str, float], Any], seed: int, draws: int) -> list[dict[str, Any]]:
    """The fire cells calibrated on some videos and tested on the others, outside the counts: what the promise is not about."""
    from core.lab.pool_groups import stored_columns
    from core.lab.videos import across_rows, across_videos

    rows: list[dict[str, Any]] = []
    for domain, model, alpha in found:
        if domain != "fire":
            continue
        study = shipped_study(study_name(domain, model))
        columns = stored_columns(domain, study.curves.names)
        if "video" in columns:
            across = across_videos(study, alpha, columns["video"], seed, draws)
            rows += [{"model": model, "alpha": alpha, **row} for row in across_rows(across)]
    return rows


def show_result(result: dict[str, Any]) -> None:
    """One line a cell, then the fire study across videos; for one study or a retrained cell all its rows."""
    if "table" not in result:
        show(result["rows"])
        return
    print("Gaps: mean over re-splits of the mean over images of |coverage - (1 - alpha)|. Area is COAT's.")
    print("AA-CRC is the form with a shift. No promise stands behind oracle and whole image.\n")
    show(result["table"])
    if result["by_video"]:
        print(
            "\nFire across videos, outside the counts: calibrated on half of the videos, tested on the others."
        )
        print(
            "Mean coverage by frame and by video, the lowest and highest half, the share of halves below 1 - alpha.\n"
        )
        show(result["by_video"])


def record(result: dict[str, Any], args: argparse.Namespace) -> None:
    """Write what `--all` found into the project, when asked to."""
    if getattr(args, "record", False):
        from benchmarks.coverage_record import write_record

        for path in write_record(ASSETS / "results", result):
            print(f"Recorded: {path.name}")


__all__ = ["DOMAIN", "add_arguments", "measured", "record", "run", "show_result"]
