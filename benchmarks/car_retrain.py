"""Methods on a long tail trained anew with another seed: does the order of their worst classes agree with the table?

Network and schedule are those of the record. Where the clock asks for it, epochs are cut, the same for every method (the step size falls over
the shorter run), and the result says so: a shorter run is another experiment, and its figures are not the table's.
"""

from __future__ import annotations

import argparse
import tempfile
import time
from dataclasses import replace
from pathlib import Path
from typing import Any

import torch

from core.car.metrics import figures_of, survival
from core.car.spectrum import Spectrum
from core.lab.tail_answer import chosen_car, row_of
from core.lab.tail_methods import Method, TailLoss, method_of
from core.lab.tail_schedule import Schedule, build_classifier, optimiser_of, schedule_for
from core.lab.tail_sets import TailSet, tail_set
from core.lab.tail_shelf import table
from core.lab.tail_train import score, train_epoch
from core.nets.build import best_device

SEED = 17
"""A seed that the record has not used."""

SHARED = Path(__file__).resolve().parents[2] / "shared" / "data"

COMPARED = ("worst_classes", "tail", "overall")


def retrain(args: argparse.Namespace, data: str) -> dict[str, Any]:
    """Train, measure, compare."""
    recorded = table()
    methods = wanted(args.methods, recorded, data)
    folder = args.data if args.data is not None else (SHARED if SHARED.is_dir() else None)
    if folder is None:
        raise FileNotFoundError("Give the folder of the sets with --data.")
    with tempfile.TemporaryDirectory() as scratch:
        began = time.monotonic()
        found = tail_set(data, folder, args.work or Path(scratch))
        schedule = schedule_for(data)
        an_epoch = _probe(found, schedule)
        left = 60 * args.minutes * (0.1 if args.quick else 1.0) - (time.monotonic() - began)
        epochs = 1 if args.quick else epochs_that_fit(schedule.epochs, left, an_epoch * len(methods))
        print(
            f"{data}: {', '.join(m.label for m in methods)}, {epochs} of {schedule.epochs} epochs each, about {an_epoch:.0f} s an epoch.", flush=True
        )  # fmt: skip
        rows = [row(found, m, replace(schedule, epochs=epochs), recorded) for m in methods]
    agrees = {k: same_order(rows, k) for k in COMPARED}
    return {
        "rows": rows,
        "agrees": agrees["worst_classes"],
        "agrees_tail": agrees["tail"],
        "agrees_overall": agrees["overall"],
        "said": words(agrees["worst_classes"]),
        "cut": "nothing" if epochs == schedule.epochs else f"{epochs} of {schedule.epochs} epochs",
        "settings": {"new_seed": SEED, "epochs": epochs},
    }


def wanted(names: str, recorded: Any, data: str) -> list[Method]:
    """Methods by name; `car` is the one that the validation part chose on the set.

    Raises:
        FileNotFoundError: The record has no row for one of them.
        SystemExit: A name is not known.
    """
    chosen = chosen_car(recorded, data)
    found = []
    for name in (n.strip() for n in names.split(",")):
        if name.lower() == "car":
            if chosen is None:
                raise FileNotFoundError(f"The record has no CAR on {data}.")
            name = chosen["name"]
        try:
            method = method_of(name.lower() if name.lower() == "ce" else name)
        except ValueError as problem:
            raise SystemExit(str(problem)) from problem
        if row_of(recorded, data, method.name) is None:
            raise FileNotFoundError(f"The record has no row for {method.name} on {data}.")
        found.append(method)
    return found


def epochs_that_fit(full: int, seconds: float, an_epoch: float) -> int:
    """Epochs that fit the time with a fifth to spare, at least 2 and at most all.

    Args:
        full: Epochs of the record.
        seconds: Time that is left.
        an_epoch: Seconds for one epoch of every method.
    """
    return max(2, min(full, int(0.8 * seconds / max(an_epoch, 1e-9))))


def _fresh(
    data: TailSet, method: Method, schedule: Schedule
) -> tuple[torch.nn.Module, torch.optim.Optimizer, TailLoss]:
    rng = torch.Generator().manual_seed(SEED)
    model = build_classifier(schedule, len(data.classes), method.head, rng)
    model = model.to(best_device(), memory_format=torch.channels_last)  # type: ignore[call-overload]
    return (
        model,
        optimiser_of(model, schedule),
        TailLoss(method, data.counts, schedule.epochs).to(best_device()),
    )


def _probe(data: TailSet, schedule: Schedule) -> float:
    """Seconds of one epoch, on a network that is thrown away."""
    model, optimiser, loss = _fresh(data, method_of("ce"), schedule)
    began = time.monotonic()
    train_epoch(model, optimiser, loss, data, schedule, 0, SEED)
    return time.monotonic() - began


def row(data: TailSet, method: Method, schedule: Schedule, recorded: Any) -> dict[str, Any]:
    """Train a method and give its figures beside the table's."""
    model, optimiser, loss = _fresh(data, method, schedule)
    for epoch in range(schedule.epochs):
        train_epoch(model, optimiser, loss, data, schedule, epoch, SEED)
    test, train = score(model, data.test, data, schedule)[0], score(model, data.train, data, schedule)[0]
    f = figures_of(test, data.counts)
    kept = row_of(recorded, data.name, method.name)
    assert kept is not None
    here = {"overall": f.overall, "tail": f.tail, "worst": f.worst, "worst_classes": f.worst_classes}
    return (
        {"data": data.name, "method": method.label, "name": method.name}
        | here
        | {"wr": survival(test, train).wr, "sigma1": Spectrum.of(test).sigma}
        | {f"{k}_table": kept[k] for k in COMPARED}
        | {f"{k}_table_sd": kept[f"{k}_sd"] for k in COMPARED}
    )


def words(agrees: bool | None) -> str:
    """The verdict on the worst classes in words."""
    if agrees is None:
        return "two methods are equal in their worst classes, so there is no order to compare; a longer run may tell them apart"
    return (
        f"the order of the worst classes {'agrees' if agrees else 'does not agree'} with the table (one seed)"
    )


def same_order(rows: list[dict[str, Any]], key: str) -> bool | None:
    """Whether the methods come in the same order here and in the table; None where two of them are equal, here or there, so that there is none."""
    for k in (key, f"{key}_table"):
        if len({r[k] for r in rows}) < len(rows):
            return None

    def order(k: str) -> list[str]:
        return [r["name"] for r in sorted(rows, key=lambda r: r[k])]

    return order(key) == order(f"{key}_table")
