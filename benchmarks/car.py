"""CAR on long tails: every method on four sets, sets won over CE, ablations as they fell, and whether one pair comes out the same when trained anew.

The table is read from `assets/results/car.json`, whose `command` made it; nothing is measured again. `sets_won` counts the sets on which the CAR that
the validation part of the training images chose has a higher mean recall of the worst classes than CE on the test images, and an accuracy at
most half a point below (`core.lab.tail_answer`). `--retrain SET` trains chosen methods anew with another seed and compares their order.
"""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Any

from benchmarks.table import show, summary
from core.data.tar_images import ARCHIVES
from core.lab.tail_answer import ablations, chosen_car, row_of, sets_won
from core.lab.tail_shelf import COMMAND, SETS, table

FIGURES = ("overall", "tail", "worst", "worst_classes", "wr", "sigma1")
ALIASES = {name.removesuffix(".tar.xz"): key for key, name in ARCHIVES.items()} | {"ham": "ham10000"}


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--retrain", choices=(*SETS, *ALIASES), metavar="SET",
        help="train methods anew on " + ", ".join(SETS) + " (or the archive's name, as in pbc_blood64)",
    )  # fmt: skip
    parser.add_argument(
        "--methods",
        default="ce,car",
        help="methods to train anew; `car` is the one that validation chose (default ce,car)",
    )
    parser.add_argument(
        "--minutes", type=float, default=10.0, help="time for all of them together (default 10)"
    )
    parser.add_argument("--data", type=Path, help="folder that holds the sets; ../shared/data when absent")
    parser.add_argument(
        "--work",
        type=Path,
        default=None,
        help="folder that keeps the pictures that were read, and finds them there",
    )


def run(args: argparse.Namespace) -> dict[str, Any]:
    if args.retrain:
        from benchmarks.car_retrain import retrain

        return retrain(args, ALIASES.get(args.retrain, args.retrain))
    recorded = table()
    won = sets_won(recorded)
    return {
        "recorded": f"car.json, made by: {COMMAND}",
        "rows": [plain_row(r) for r in recorded],
        "sets_won": sum(won.values()),
        "sets_compared": len(won),
        "verdicts": [verdict(recorded, data, w) for data, w in won.items()],
        "ablations": ablation_rows(recorded),
    }


def plain_row(row: Any) -> dict[str, Any]:
    """A row of the table with the keys that a benchmark prints."""
    return {"data": row["data"], "method": row["method"], "name": row["name"], "seeds": len(row["seeds"])} | {
        k: row[k] for f in FIGURES for k in (f, f"{f}_sd")
    }


def verdict(rows: Any, data: str, won: bool) -> dict[str, Any]:
    """Which CAR validation chose on a set, and how it stands beside CE, in points.

    Args:
        rows: As `core.lab.tail_shelf.table` gives them.
        data: A set on which both are recorded.
        won: From `core.lab.tail_answer.sets_won`.
    """
    car, ce = chosen_car(rows, data), row_of(rows, data, "ce")
    assert car is not None and ce is not None
    return {
        "data": data,
        "won": won,
        "chosen": car["method"],
        "seeds": len(car["seeds"]),
        "worst_classes_gain": 100 * (car["worst_classes"] - ce["worst_classes"]),
        "overall_gain": 100 * (car["overall"] - ce["overall"]),
        "val_worst_classes_gain": 100 * (car["val_worst_classes"] - ce["val_worst_classes"]),
        "sigma1_gain": car["sigma1"] - ce["sigma1"],
    }


def ablation_rows(rows: Any) -> list[dict[str, Any]]:
    """Each question and set: what it does to the worst classes and to all, in points, with the spread over seeds where there are several."""
    return [
        {
            "question": one.question, "data": data, "worst_classes_gain": 100 * gain, "overall_gain": 100 * one.overall[data],
            "spread": None if (s := one.spread[data]) is None else 100 * s,
        }
        for one in ablations(rows)
        for data, gain in one.worst.items()
    ]  # fmt: skip


def show_result(result: dict[str, Any]) -> None:
    """Print the table in per cent with deviations, the verdicts, and the ablations."""
    if "agrees" in result:
        show(result["rows"])
        return
    print(f"Recorded: {result['recorded']}\n")
    rows = []
    for r in result["rows"]:
        row: dict[str, Any] = {"data": r["data"], "method": r["method"], "seeds": r["seeds"]}
        for f in FIGURES:
            scale, digits = (1, 2) if f in ("wr", "sigma1") else (100, 1)
            value, sd = r[f], r[f"{f}_sd"]
            text = "–" if value is None or value != value else f"{scale * value:.{digits}f}"
            row[f] = text + ("" if sd is None else f" ± {scale * sd:.{digits}f}")
        rows.append(row)
    show(rows)
    print("\nThe CAR that the validation part chose, beside CE on the test images, in points\n")
    show(result["verdicts"])
    print(
        "\nWhat each part does, as it fell: with minus without, in points (spread over seeds where there are several)\n"
    )
    show(result["ablations"])
    print("\n" + summary({"sets_won": result["sets_won"], "sets_compared": result["sets_compared"]}))
