"""CAR on long tails: every method on four sets, sets won over CE, parts and settings as they fell, and whether one pair comes out the same anew.

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
from core.lab.cli_tail import SEEDED
from core.lab.tail_answer import (
    best_without,
    chosen_car,
    motive_words,
    rival_words,
    row_of,
    sets_won,
    won_words,
)
from core.lab.tail_methods import METHODS
from core.lab.tail_noise import chance_words
from core.lab.tail_parts import (
    ablation_words,
    ablations,
    network_words,
    sensitivities,
    sensitivity_words,
)
from core.lab.tail_shelf import COMMAND, SETS, other_networks, table

FIGURES = ("overall", "tail", "worst", "worst_classes", "worst_classes_train", "wr", "sigma1")
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
    others = other_networks()
    won, parts = sets_won(recorded), ablations(recorded)
    return {
        "recorded": f"car.json, made by: {COMMAND}",
        "rows": [plain_row(r) for r in recorded],
        "sets_won": sum(won.values()),
        "sets_compared": len(won),
        "verdicts": [verdict(recorded, data, w) for data, w in won.items()],
        "lacking": lacking(recorded),
        "ablations": ablation_rows(recorded),
        "sensitivity": setting_rows(recorded),
        "other_networks": [plain_row(r) for r in others],
        "said": [
            *(s for s in (won_words(recorded), chance_words(recorded), rival_words(recorded)) if s),
            *(s for data in won if (s := motive_words(recorded, data))),
            *(ablation_words(a, len(parts)) for a in parts),
            *(sensitivity_words(s) for s in sensitivities(recorded)),
            *network_words(recorded, others),
        ],
    }


def plain_row(row: Any) -> dict[str, Any]:
    """A row of the table with the keys that a benchmark prints."""
    kept = {"data": row["data"], "method": row["method"], "name": row["name"], "seeds": len(row["seeds"])}
    return kept | {"network": row["network"]} | {k: row[k] for f in FIGURES for k in (f, f"{f}_sd")}


def verdict(rows: Any, data: str, won: bool) -> dict[str, Any]:
    """Which CAR validation chose on a set, and how it stands beside CE and beside the best loss without CAR, in points.

    Args:
        rows: As `core.lab.tail_shelf.table` gives them.
        data: A set on which both are recorded.
        won: From `core.lab.tail_answer.sets_won`.
    """
    car, ce, rival = chosen_car(rows, data), row_of(rows, data, "ce"), best_without(rows, data)
    assert car is not None and ce is not None
    return {
        "data": data,
        "won": won,
        "chosen": car["method"],
        "seeds": min(len(car["seeds"]), len(ce["seeds"])),
        "worst_classes_gain": 100 * (car["worst_classes"] - ce["worst_classes"]),
        "overall_gain": 100 * (car["overall"] - ce["overall"]),
        "val_worst_classes_gain": 100 * (car["val_worst_classes"] - ce["val_worst_classes"]),
        "sigma1_gain": car["sigma1"] - ce["sigma1"],
        "rival": None if rival is None else rival["method"],
        "over_rival": None if rival is None else 100 * (car["worst_classes"] - rival["worst_classes"]),
    }


def lacking(rows: Any) -> list[str]:
    """What a comparison of four sets with three seeds still lacks, in words; empty when it is whole."""
    said = []
    for data in SETS:
        seeds = {n: 0 if (r := row_of(rows, data, n)) is None else len(r["seeds"]) for n in SEEDED}
        few = [f"{METHODS[name].label} {n}" for name, n in seeds.items() if n < 3]
        if few:
            said.append(f"{data}, seeds of 3: {', '.join(few)}")
    return said


def ablation_rows(rows: Any) -> list[dict[str, Any]]:
    """Each question and set: what it does to the worst classes and to all, in points, the standard error from the seed alone,
    and how far another seed would often move it (95 %).
    """
    return [
        {
            "question": one.question, "data": data, "worst_classes_gain": 100 * d.worst, "overall_gain": 100 * d.overall,
            "standard_error": None if d.noise is None else 100 * d.noise, "reach": None if d.reach is None else 100 * d.reach, "seeds": d.seeds,
        }
        for one in ablations(rows)
        for data, d in one.sets.items()
    ]  # fmt: skip


def setting_rows(rows: Any) -> list[dict[str, Any]]:
    """Each setting of CAR and each of its values: what it comes to, at one seed."""
    return [
        {
            "data": s.data,
            "setting": s.field,
            "value": v,
            "usual": v == s.usual,
            "worst_classes": w,
            "overall": o,
        }
        for s in sensitivities(rows)
        for v, w, o in zip(s.values, s.worst, s.overall, strict=True)
    ]


def show_result(result: dict[str, Any]) -> None:
    """Print the table in per cent with deviations, the verdicts, ablations, settings and what all of it says."""
    if "agrees" in result:
        show(result["rows"])
        return
    print(f"Recorded: {result['recorded']}\n")
    show([printed(r) for r in result["rows"] if "@" not in r["name"]])
    print(
        "\nThe CAR that the validation part chose, beside CE and the best loss without CAR, on the test images, in points\n"
    )
    show(result["verdicts"])
    for title, key in (
        ("What each part does, as it fell: with minus without, in points", "ablations"),
        ("Settings of CAR (count EMA), each moved by itself, one seed", "sensitivity"),
    ):
        if result[key]:
            print(f"\n{title}\n")
            show(result[key])
    if result["other_networks"]:
        print("\nAnother network\n")
        show([printed(r) | {"network": r["network"]} for r in result["other_networks"]])
    print()
    for said in result["said"]:
        print(f"- {said.replace('**', '')}")
    if result["lacking"]:
        print(f"\nNot yet recorded: {'; '.join(result['lacking'])}.")
    print("\n" + summary({"sets_won": result["sets_won"], "sets_compared": result["sets_compared"]}))


def printed(r: dict[str, Any]) -> dict[str, Any]:
    """A row as it is printed: per cent with deviations, `–` where nothing can be said."""
    row: dict[str, Any] = {"data": r["data"], "method": r["method"], "seeds": r["seeds"]}
    for f in FIGURES:
        scale, digits = (1, 2) if f in ("wr", "sigma1") else (100, 1)
        value, sd = r[f], r[f"{f}_sd"]
        text = "–" if value is None or value != value else f"{scale * value:.{digits}f}"
        row[f] = text + ("" if sd is None or sd != sd else f" ± {scale * sd:.{digits}f}")
    return row
