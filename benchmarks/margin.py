"""Losses compared: overlap and calibration of every loss on three real sets, and whether one pair comes out the same when trained anew.

The table is read from `assets/results/margin.json`, whose `command` made it; nothing is measured again. ECE and classwise ECE are pooled over
the pool's pixels in two scopes (foreground truth, all). `sets_won` counts the real sets on which the margin, its m chosen on one seed's
validation part, has the lowest foreground ECE of the single-stage losses, not the worst all-pixel ECE, and a Dice within 0.005 of the best.
`--retrain SET` trains chosen losses anew with another seed and compares the order of their ECE with the table.
"""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.table import show, summary
from core.lab.margin_record import DICE_SLACK, SINGLE_STAGE, bridge, choices, read_tables, table
from core.lab.margin_sets import FOLDERS, REAL_SETS
from core.nets.weights import ASSETS

FIGURES = ("dice", "hd95", "ece_fg", "cece_fg", "ece_all", "cece_all")
ALIASES = {folder: name for name, folder in FOLDERS.items()}


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--retrain", choices=(*REAL_SETS, *ALIASES, "phantom"), metavar="SET",
        help="train losses anew on " + ", ".join((*REAL_SETS, "phantom")) + " (or the folder's name, as in ham10000)",
    )  # fmt: skip
    parser.add_argument("--losses", default="ce,margin", help="losses to train anew (default ce,margin)")
    parser.add_argument(
        "--minutes", type=float, default=10.0, help="time for all of them together (default 10)"
    )
    parser.add_argument(
        "--data", type=Path, help="folder that holds the sets, or the set's own; ../shared/data when absent"
    )
    parser.add_argument("--work", type=Path, default=None, help="folder that keeps what was read")


def run(args: argparse.Namespace) -> dict[str, Any]:
    if args.retrain:
        from benchmarks.margin_retrain import retrain

        return retrain(args, ALIASES.get(args.retrain, args.retrain))
    rows = [
        {k: r[k] for k in ("data", "loss", "margin", "seeds")}
        | {k: r[k] for f in FIGURES for k in (f, f"{f}_sd")}
        | {
            k: r[k]
            for k in ("ece_fg_image", "ece_all_image", "nll_all", "brier_all", "temperature", "missed")
        }
        for r in table()
        if r["data"] in REAL_SETS
    ]
    won = {name: verdict([r for r in rows if r["data"] == name]) for name in REAL_SETS}
    return {
        "recorded": f"{(ASSETS / 'results' / 'margin.json').name}, made by: {read_tables(ASSETS)['command']}",
        "rows": rows,
        "sets_won": sum(v["won"] for v in won.values()),
        "verdicts": [{"data": name} | v for name, v in won.items()],
        "choices": list(choices()),
        "bridge": list(bridge()),
        "bridge_correlation": correlations(list(bridge())),
    }


def verdict(rows: list[dict[str, Any]]) -> dict[str, Any]:
    """Whether the margin wins a set, and which of the three conditions fails.

    Args:
        rows: The rows of one set.
    """
    single = {r["loss"]: r for r in rows if r["loss"] in SINGLE_STAGE}
    if set(single) != set(SINGLE_STAGE):
        return {"won": False, "lowest_ece_fg": "not all recorded"}
    margin = single["margin"]
    lowest = min(single, key=lambda k: single[k]["ece_fg"])
    worst = max(single, key=lambda k: single[k]["ece_all"])
    short = max(r["dice"] for r in single.values()) - margin["dice"]
    return {
        "won": lowest == "margin" and worst != "margin" and short <= DICE_SLACK,
        "m": margin["margin"],
        "lowest_ece_fg": lowest,
        "worst_ece_all": worst,
        "dice_below_best": short,
    }


def correlations(rows: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Rank correlation over losses of each ECE with the gap of each method, for each set and level: does calibration help a conformal set?"""
    from scipy.stats import spearmanr

    out = []
    for name in REAL_SETS:
        for method in ("CRC", "plug-in", "COAT"):
            some = [r for r in rows if (r["data"], r["method"], r["alpha"]) == (name, method, 0.1)]
            if len(some) < 3:
                continue
            row: dict[str, Any] = {"data": name, "method": method, "alpha": 0.1, "losses": len(some)}
            for scope in ("ece_fg", "ece_all"):
                for figure in ("gap", "area"):
                    pair = [np.array([r[k] for r in some]) for k in (scope, figure)]
                    row[f"{scope}~{figure}"] = float(spearmanr(*pair).statistic)
            out.append(row)
    return out


def show_result(result: dict[str, Any]) -> None:
    """Print the table with deviations, the verdicts, and the bridge."""
    if "agrees" in result:
        show(result["rows"])
        return
    print(f"Recorded: {result['recorded']}\n")
    rows = []
    for r in result["rows"]:
        row: dict[str, Any] = {
            "data": r["data"],
            "loss": r["loss"] + (f" (m = {r['margin']:g})" if r["margin"] is not None else ""),
        }
        for f in FIGURES:
            sd = r[f"{f}_sd"]
            digits = 1 if f == "hd95" else 3 if f == "dice" else 4
            row[f] = f"{r[f]:.{digits}f}" + ("" if sd is None else f" ± {sd:.{digits}f}")
        rows.append(row | {"T": f"{r['temperature']:.2f}"})
    show(rows)
    print(
        "\nDoes the margin win? (m chosen on validation; lowest foreground ECE, not the worst all-pixel ECE, Dice within 0.005)\n"
    )
    show(result["verdicts"])
    print("\nm on the validation part of seed 0\n")
    show(result["choices"])
    print("\nThe bridge: gap and area at alpha = 0.1 over redrawn halves\n")
    keys = ("data", "loss", "method", "coverage", "gap", "gap_sd", "area", "ece_fg", "ece_all")
    show([{k: r[k] for k in keys} for r in result["bridge"] if r["alpha"] == 0.1])
    print(
        "\nRank correlation of ECE with gap and area over the losses (few points: read the sign, not the digits)\n"
    )
    show(result["bridge_correlation"])
    print("\n" + summary({"sets_won": result["sets_won"]}))
