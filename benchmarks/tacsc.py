"""TA-CSC under corruption: clean accuracy, what BN, λ and both bring back, and what K and the number of unlabelled images do, from recorded runs.

The table is read from `assets/results/sparse/`; nothing is trained or measured again. An accuracy under corruption is the mean over
severities 1 to 5, and the images that adaptation saw are not scored. `gaussian_gain_points` sets TA-CSC that follows 100 unlabelled images (λ and BN)
against the ResNet of the same width that follows nothing; `gaussian_gain_over_bn_points` sets it against that ResNet with its BN refreshed,
`gaussian_lambda_points` against itself with BN alone, and `gaussian_bn_points` is what the ResNet gains by BN alone. A run that is not recorded is
named, and what needs it stays empty.
"""

from __future__ import annotations

import argparse
import math
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from benchmarks.table import show
from core.data.corruptions import CORRUPTIONS
from core.lab.sparse_ablation import ablation, by_iterations, by_samples
from core.lab.sparse_names import ADAPT_TITLES, SAMPLES, TITLES, beside, epochs_of, title_of
from core.lab.sparse_record import SparseRecord
from core.lab.sparse_shelf import COMMAND, accuracy_of, planned, records, table
from core.nets.weights import ASSETS
from core.settings.tacsc import ADAPTATIONS

NOISE = "gaussian_noise"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--folder",
        type=Path,
        default=ASSETS,
        help="folder that holds results/sparse (default: the one that ships)",
    )


def run(args: argparse.Namespace) -> dict[str, Any]:
    recorded = records(args.folder)
    return {
        "recorded": f"results/sparse, made by: {COMMAND}",
        "rows": list(table(args.folder)),
        "clean": clean_rows(recorded),
        "adaptation": [row for what in ("noises", NOISE) for row in adaptation_rows(recorded, what)],
        "iterations": list(by_iterations(recorded)),
        "samples": sample_rows(recorded),
        "training": training_rows(recorded),
        **gains(recorded),
        "missing": missing(recorded),
    }


def like(record: SparseRecord, model: str, iterations: int = 2) -> bool:
    """Whether a record is of this model and K (the ResNet has none), whatever its width and seed."""
    return record.model == model and (model == "resnet" or record.settings.iterations == iterations)


def pair(recorded: Mapping[str, SparseRecord], model: str) -> tuple[SparseRecord | None, SparseRecord | None]:
    """A run of a model with K = 2 and the ResNet that was trained alike: of several such pairs the one that was trained longest.

    Where no ResNet was trained alike, the longest run alone; where there is no run, two times None.
    """
    found = [(r, beside(recorded.values(), r)) for r in recorded.values() if like(r, model)]
    return max(found, key=lambda p: (p[1] is not None, epochs_of(p[0])), default=(None, None))


def clean_rows(recorded: Mapping[str, SparseRecord]) -> list[dict[str, Any]]:
    """Accuracy on clean test images of every run, and how far it stands from the ResNet of its width, in points."""
    rows = []
    for record in recorded.values():
        value, plain = accuracy_of(record, "clean"), beside(recorded.values(), record)
        base = math.nan if plain is None else accuracy_of(plain, "clean")
        rows.append(
            {
                "model": title_of(record),
                "accuracy": value,
                "points_to_resnet": 100 * (value - base),
                "width": record.width,
                "epochs": epochs_of(record),
                "seed": record.seed,
            }
        )
    return rows


def adaptation_rows(recorded: Mapping[str, SparseRecord], corruption: str) -> list[dict[str, Any]]:
    """One row a run: accuracy with nothing, BN, λ and both, and the share of what both bring back that BN brings back alone.

    Args:
        recorded: Runs by key.
        corruption: A corruption or `"noises"`, the mean of the four.
    """
    rows: dict[str, dict[str, Any]] = {}
    for found in ablation(recorded, corruption):
        row = rows.setdefault(found["key"], {"model": found["title"], "corruption": corruption})
        row |= {found["adapt"]: found["accuracy"], f"{found['adapt']}_points": found["points"]}
    for row in rows.values():
        most = row.get("both_points")
        row["bn_share"] = row.get("bn_points", math.nan) / most if most else None
    return list(rows.values())


def sample_rows(recorded: Mapping[str, SparseRecord]) -> list[dict[str, Any]]:
    """What more unlabelled images bring under the four noises, one row a run and number of images."""
    rows: dict[tuple[str, int], dict[str, Any]] = {}
    for key, record in recorded.items():
        for found in by_samples(record):
            if found["samples"]:
                row = rows.setdefault(
                    (key, found["samples"]), {"model": title_of(record), "samples": found["samples"]}
                )
                row[found["adapt"]] = found["accuracy"]
    return list(rows.values())


def gains(recorded: Mapping[str, SparseRecord]) -> dict[str, float]:
    """Points under Gaussian noise against the ResNet that was trained alike, NaN where a run is missing. The longest pair counts."""
    found: dict[str, float] = {}
    for model, middle in (("tacsc", ""), ("tacsc_all", "_all"), ("fixed", "_fixed")):
        sparse, plain = pair(recorded, model)
        both = under_noise(sparse, "both")
        found[f"gaussian_gain{middle}_points"] = both - under_noise(plain, "none")
        found[f"gaussian_gain{middle}_over_bn_points"] = both - under_noise(plain, "bn")
        found[f"gaussian_lambda{middle}_points"] = both - under_noise(sparse, "bn")
        if sparse is not None:
            found[f"gaussian_gain{middle}_epochs"] = epochs_of(sparse)
    plain = pair(recorded, "tacsc")[1] or pair(recorded, "resnet")[0]
    return found | {"gaussian_bn_points": under_noise(plain, "bn") - under_noise(plain, "none")}


def under_noise(record: SparseRecord | None, adapt: str) -> float:
    """Accuracy under Gaussian noise in per cent, mean over severities; NaN without a record."""
    return math.nan if record is None else 100 * accuracy_of(record, NOISE, adapt, SAMPLES)


def training_rows(recorded: Mapping[str, SparseRecord]) -> list[dict[str, Any]]:
    """What longer training does to the gain: TA-CSC-18 with K = 2 beside the ResNet trained alike, one row a pair, in per cent and points."""
    rows = []
    for record in recorded.values():
        plain = beside(recorded.values(), record)
        if record.model == "tacsc" and like(record, "tacsc") and plain is not None:
            rows.append(
                {
                    "epochs": epochs_of(record), "seed": record.seed, "resnet_clean": 100 * accuracy_of(plain, "clean"),
                    "resnet_none": under_noise(plain, "none"), "resnet_bn": under_noise(plain, "bn"),
                    "tacsc_clean": 100 * accuracy_of(record, "clean"), "tacsc_both": under_noise(record, "both"),
                    "gain": under_noise(record, "both") - under_noise(plain, "none"),
                    "gain_over_bn": under_noise(record, "both") - under_noise(plain, "bn"),
                }
            )  # fmt: skip
    return sorted(rows, key=lambda r: r["epochs"])


def missing(recorded: Mapping[str, SparseRecord]) -> list[str]:
    """A sentence for each run of the plan that is not recorded, and for each recorded one that is not measured in full."""
    said = []
    for run in planned():
        k = run.settings.iterations
        if not any(like(record, run.model, k) for record in recorded.values()):
            title = TITLES[run.model] + ("" if run.model == "resnet" else f" with K = {k}")
            said.append(f"{title} is not recorded ({run.key}). Make it with: {COMMAND}")
    for key, record in recorded.items():
        ways = ("none", "bn") if record.model == "resnet" else ADAPTATIONS
        gaps = [c for c in CORRUPTIONS if any(math.isnan(accuracy_of(record, c, w, SAMPLES)) for w in ways)]
        if gaps:
            said.append(f"{key} is not measured in full under {', '.join(gaps)}.")
    return said


def show_result(result: dict[str, Any]) -> None:
    """Print the comparison and the ablations in per cent; every row of the table is in the JSON."""
    print(f"Recorded: {result['recorded']}\n\nClean test images\n")
    show([percent(r) for r in result["clean"]])
    for what, words in (
        ("noises", "the four noises, mean over severities"),
        (NOISE, "Gaussian noise alone, likewise"),
    ):
        print(f"\nUnder {words}: {', '.join(ADAPT_TITLES.values())} after {SAMPLES} unlabelled images\n")
        show([percent(r) for r in result["adaptation"] if r["corruption"] == what], ["corruption"])
    if len(result["training"]) > 1:
        print("\nLonger training: TA-CSC-18 and the ResNet trained alike, under Gaussian noise\n")
        show(result["training"])
    if result["iterations"]:
        print("\nK of TA-CSC-18, under the four noises\n")
        show([percent(r) for r in result["iterations"]])
    print("\nUnlabelled images, under the four noises\n")
    show([percent(r) for r in result["samples"]])
    print(
        "\nBelow: gain_points is TA-CSC with BN and λ adapted less the ResNet with nothing (trained alike, the longest pair), gain_over_bn_points\n"
        "the same less the ResNet with BN, lambda_points what λ adds to TA-CSC's own BN, bn_points what the ResNet gains by BN."
    )
    if result["missing"]:
        print("\n" + "\n".join(result["missing"]))


def percent(row: Mapping[str, Any]) -> dict[str, Any]:
    """A row with its accuracies in per cent."""
    kinds = {"accuracy", "clean", *ADAPTATIONS}
    return {k: 100 * v if k in kinds and v is not None else v for k, v in row.items()}
