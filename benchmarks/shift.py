"""λ as a shift detector: AUROC of how far the sparse layers want to move, corrupted against clean real images, 16 together and one by crops.

The table is read from `assets/results/sparse/shift.json`, whose `command` made it; nothing is measured again. `auroc_s1`, `auroc_s3`, `auroc_s5` are
means over the four noises for 16 images, `auroc_one_s3` the same for a single image by crops; blurs have figures of their own. The score looks at
λ's pull and the reconstruction error together; each alone stands beside. `--retrain` measures the shipped network anew with other draws and says
whether it agrees.
"""

from __future__ import annotations

import argparse
import math
import tempfile
from pathlib import Path
from typing import Any

from benchmarks.table import show, summary
from core.lab.shift_record import ShiftRecord, load_shift
from core.lab.shift_study import ShiftPlan

SHARED = Path(__file__).resolve().parents[2] / "shared" / "data"
SEED = 17
"""Of the draws that the record has not used."""

A_MINUTE = 40
"""Images whose part of the work, every corruption included, one slow core does in a minute."""

AGREES = 0.05
"""Figures that lie so near to the record's agree."""

COMPARED = ("auroc_s1", "auroc_s3", "auroc_s5", "auroc_one_s3", "auroc_blur_s3")


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--retrain",
        action="store_true",
        help="measure the shipped network anew (nothing is trained); implied by --data",
    )
    parser.add_argument(
        "--data", type=Path, help="folder that holds cifar10.tar.xz; ../shared/data when absent"
    )
    parser.add_argument(
        "--work", type=Path, help="folder that keeps the pictures that were read, and finds them there"
    )
    parser.add_argument("--minutes", type=float, default=10.0, help="time for measuring anew; sets the number of images (default 10)")  # fmt: skip


def figures(record: ShiftRecord) -> dict[str, float]:
    """The figures that sum a record up.

    Args:
        record: The study. What it lacks is NaN.
    """
    noises, blurs = record.plan["noises"], record.plan["blurs"]
    batch = record.plan["batch"]

    def mean(names: Any, severity: int, images: int = batch, part: str = "both") -> float:
        return record.mean_auroc(names, severity, images, part) if names else math.nan

    found = {f"auroc_s{s}": mean(noises, s) for s in (1, 3, 5)} | {"auroc_one_s3": mean(noises, 3, 1)}
    found |= {f"auroc_blur_s{s}": mean(blurs, s) for s in (1, 3, 5)} | {
        "auroc_blur_one_s3": mean(blurs, 3, 1)
    }
    return found | {f"auroc_s3_{part}": mean(noises, 3, part=part) for part in ("lambda", "error")}


def rows_of(record: ShiftRecord) -> list[dict[str, Any]]:
    """One row for each corruption, severity and number of images: AUROC of both parts together, and of each alone."""
    names = (*record.plan["noises"], *record.plan["blurs"])
    return [
        {"corruption": c, "severity": s, "images": n, "auroc": record.auroc(c, s, n)}
        | {f"auroc_{part}": record.auroc(c, s, n, part) for part in ("lambda", "error")}
        for n in (record.plan["batch"], 1)
        for c in names
        for s in record.plan["severities"]
    ]


def run(args: argparse.Namespace) -> dict[str, Any]:
    recorded = load_shift()
    if args.retrain or args.data is not None:
        return _anew(args, recorded)
    facts = {k: v for k, v in recorded.reference.items() if k != "clean_scores"}
    return {
        "recorded": f"shift.json, made by: {recorded.command}",
        "network": recorded.network,
        "rows": rows_of(recorded),
        **figures(recorded),
        "settings": {"network": recorded.network} | facts,
    }


def _anew(args: argparse.Namespace, recorded: ShiftRecord) -> dict[str, Any]:
    """Measure with other draws and set the figures beside the record's."""
    from core.lab.shift_study import study
    from core.lab.sparse_queue import read_cifar
    from core.lab.sparse_shelf import network

    folder = args.data if args.data is not None else (SHARED if SHARED.is_dir() else None)
    if folder is None:
        raise FileNotFoundError("Give the folder that holds cifar10.tar.xz with --data.")
    plan = plan_of(args.minutes, args.quick)
    with tempfile.TemporaryDirectory() as scratch:
        _, test = read_cifar(folder, args.work or Path(scratch))
        found = study(network(recorded.network), test.images, plan, recorded.network, _say)
    here, there = figures(found), figures(recorded)
    known = [k for k in COMPARED if math.isfinite(here[k]) and math.isfinite(there[k])]
    far = {k: abs(here[k] - there[k]) for k in known}
    return {
        "rows": rows_of(found),
        **here,
        **{f"{k}_recorded": there[k] for k in known},
        "largest_difference": max(far.values()) if far else math.nan,
        "agrees": bool(far) and max(far.values()) <= AGREES,
        "settings": {
            "network": recorded.network,
            "new_seed": SEED,
            "images": plan.clean,
            "agrees_within": AGREES,
        },
    }


def plan_of(minutes: float, quick: bool) -> ShiftPlan:
    """What is measured anew: other draws than the record's; where it must be quick, fewer images, severity 3 and noises alone.

    Args:
        minutes: Time for it, at `A_MINUTE` clean images; 48 to 640 are taken, and as many are corrupted.
        quick: Whether it must be.
    """
    count = 48 if quick else max(48, min(640, int(A_MINUTE * minutes)))
    less = {"severities": (3,), "blurs": ()} if quick else {}
    return ShiftPlan(
        reference=3 * count, reference_single=count, clean=count, damaged=count, single=count // 2, seed=SEED, **less
    )  # fmt: skip


def _say(done: int, total: int, facts: Any) -> None:
    print(f"{done} of {total}: {facts['corruption']}, severity {facts['severity']}", flush=True)


def show_result(result: dict[str, Any]) -> None:
    """Print the rows and what they say."""
    if "recorded" in result:
        print(f"Recorded: {result['recorded']}\nNetwork: {result['network']}\n")
    show(result["rows"])
    if "agrees" in result:
        word = "agrees" if result["agrees"] else "does not agree"
        print("\n" + summary({"measured anew": f"{word} with the record within {AGREES:g}"}))
