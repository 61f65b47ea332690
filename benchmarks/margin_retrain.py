"""A pair of losses trained anew with another seed: does the order of their ECE agree with the table?

Schedule and network are those of the record. Where the clock asks for it, epochs are cut, the same for every loss, and the result says so: a
shorter run is less overconfident, and its figures are not the table's.
"""

from __future__ import annotations

import argparse
import time
from dataclasses import replace
from pathlib import Path
from typing import Any

from core.lab.margin_measure import measure
from core.lab.margin_record import table
from core.lab.margin_sets import load_set
from core.lab.margin_train import Schedule, fit, fresh, logits_of, run_of
from core.settings.margin import LOSSES

SEED = 17
"""A seed that the record has not used."""

SHARED = Path(__file__).resolve().parents[2] / "shared" / "data"


def retrain(args: argparse.Namespace, data: str) -> dict[str, Any]:
    """Train, measure, compare."""
    by_lower = {k.lower(): k for k in LOSSES}
    wanted = [name.strip().lower() for name in args.losses.split(",")]
    if unknown := [n for n in wanted if n not in by_lower]:
        raise SystemExit(f"Unknown loss: {', '.join(unknown)}. Known: {', '.join(by_lower)}.")
    recorded = {r["loss"]: r for r in table() if r["data"] == data}
    losses = [by_lower[n] for n in wanted]
    if missing := [k for k in losses if k not in recorded]:
        raise FileNotFoundError(f"The record has no row for {', '.join(missing)} on {data}.")
    folder = args.data if args.data is not None else (SHARED if SHARED.is_dir() else None)
    parts = load_set(data, folder, args.work)
    began = time.monotonic()
    schedule = Schedule()
    model, _ = fresh(data, SEED)
    probe = time.monotonic()
    fit(model, parts["train"], run_of(data, "CE", SEED).loss, replace(schedule, epochs=1), SEED)
    an_epoch = time.monotonic() - probe
    left = 60 * args.minutes * (0.1 if args.quick else 1.0) - (time.monotonic() - began)
    epochs = max(2, min(schedule.epochs, int(0.8 * left / (len(losses) * an_epoch))))
    if args.quick:
        epochs = 2
    print(
        f"{data}: {', '.join(losses)}, {epochs} of {schedule.epochs} epochs each, about {an_epoch:.0f} s an epoch.",
        flush=True,
    )
    rows = []
    for loss in losses:
        one = run_of(data, loss, SEED, recorded[loss]["margin"] if loss == "margin" else None)
        model, _ = fresh(data, SEED)
        fit(model, parts["train"], one.loss, replace(schedule, epochs=epochs), SEED)
        figures = measure(logits_of(model, parts["pool"].images), parts["pool"]).figures
        keys = ("dice", "hd95", "ece_fg", "ece_all")
        rows.append(
            {"data": data, "loss": loss, "margin": one.loss.margin if loss == "margin" else None}
            | {k: figures[k] for k in keys}
            | {f"{k}_table": recorded[loss][k] for k in keys}
        )
    agrees = {k: order(rows, k) == order(rows, f"{k}_table") for k in ("ece_fg", "ece_all")}
    return {
        "rows": rows,
        "agrees": agrees["ece_fg"],
        "agrees_all_pixels": agrees["ece_all"],
        "cut": "nothing" if epochs == schedule.epochs else f"{epochs} epochs instead of {schedule.epochs}",
        "settings": {"new_seed": SEED, "epochs": epochs},
    }


def order(rows: list[dict[str, Any]], key: str) -> list[str]:
    """Losses from the lowest to the highest value of a figure."""
    return [r["loss"] for r in sorted(rows, key=lambda r: r[key])]
