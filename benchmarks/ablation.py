"""Ablation of the threshold predictor: what makes COAT better than AT and CRC on real data, chosen on D2, reported on the pool.

Every line is a variant fitted on D2 of one study; `gap_d2` is what choices were made by, the pool's columns decided nothing. CRC,
plug-in, oracle and whole image stand beside them. With `--record` the rows go to `assets/results/ablation-STUDY.json`.
"""

from __future__ import annotations

import argparse
from dataclasses import replace
from pathlib import Path
from typing import Any

from core.lab.ablation import TRIALS, run_trials
from core.lab.gathered import gathered
from core.lab.sources import NAMES
from core.lab.study import resampled, shipped_study
from core.nets.weights import ASSETS

ALPHAS = (0.1, 0.2)


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Flags of this benchmark."""
    parser.add_argument("--study", choices=NAMES, default="phantom", metavar="NAME")
    parser.add_argument("--data", type=Path, help="folder of the real data set")
    parser.add_argument(
        "--work", type=Path, help="folder that keeps inputs and finished rows; a stopped run goes on"
    )
    parser.add_argument("--record", action="store_true", help="write the table into assets/results")


def references(name: str) -> list[dict[str, Any]]:
    """Rows of what is not fitted here, on the same draws."""
    study = shipped_study(name)
    rows: list[dict[str, Any]] = []
    for method in ("CRC", "plug-in"):
        row: dict[str, Any] = {"variant": method, "gap_d2": None}
        for alpha in ALPHAS:
            r = resampled(study, alpha, 0, 200, (method,))[method]
            row |= {f"gap_{alpha:g}": float(r.gap.mean()), f"area_{alpha:g}": float(r.area.mean())}
        rows.append(row)
    has = study.curves.has_lesion
    oracle: dict[str, Any] = {"variant": "oracle", "gap_d2": None}
    whole: dict[str, Any] = {"variant": "whole image", "gap_d2": None}
    for alpha in ALPHAS:
        tau = study.tau_hat("oracle", alpha)
        miss = (study.curves.coverage(tau)[has] - (1 - alpha)).abs()
        oracle |= {
            f"gap_{alpha:g}": float(miss.mean()),
            f"area_{alpha:g}": float(study.curves.area(tau)[has].mean()),
        }
        whole |= {f"gap_{alpha:g}": alpha, f"area_{alpha:g}": 1.0}
    return [*rows, oracle, whole]


def run(args: argparse.Namespace) -> dict[str, Any]:
    """Fit and measure."""
    inputs, trials = gathered(args.study, args.data, args.work), TRIALS
    if args.quick:
        trials = tuple(replace(t, settings=replace(t.settings, epochs=4, members=2)) for t in TRIALS[:3])
    keep = None if args.work is None or args.quick else args.work / f"{args.study}-ablation.json"
    fitted = run_trials(shipped_study(args.study), inputs, args.data, trials, keep=keep)
    rows = [*references(args.study)[:2], *fitted, *references(args.study)[2:]]
    best = min(fitted, key=lambda row: row["gap_d2"])["variant"]
    found = {"rows": rows, "best_on_d2": best, "study": args.study}
    if args.record:
        write(ASSETS / "results" / f"ablation-{args.study}.md", args.study, rows, best)
    return found


def write(path: Path, study: str, rows: list[dict[str, Any]], best: str) -> None:
    """The table as Markdown."""
    where = "" if study == "phantom" else " --data FOLDER-OF-THE-DATA-SET"
    lines = [
        f"# Variants of the threshold predictor, study {study}",
        "",
        f"Made by `python -m benchmarks ablation --study {study}{where} --record`. Each variant is fitted on D2; the column *gap on D2*",
        "(out of fold, mean over α = 0.05, 0.1, 0.2, 0.3) is what choices were made by. The pool's columns (200 re-splits) decided nothing.",
        "",
        "| variant | gap on D2 | gap, α = 0.1 | area | gap, α = 0.2 | area |",
        "|---|---|---|---|---|---|",
    ]
    for r in rows:
        d2 = "–" if r["gap_d2"] is None else f"{r['gap_d2']:.4f}"
        figures = " | ".join(
            f"{r[k]:.4f}" if k.startswith("gap") else f"{r[k]:.3f}"
            for k in ("gap_0.1", "area_0.1", "gap_0.2", "area_0.2")
        )
        lines.append(f"| {r['variant']} | {d2} | {figures} |")
    lines += ["", f"Smallest gap on D2: {best}."]
    path.write_text("\n".join(lines) + "\n", encoding="utf-8")
