"""The record of sparse coding in segmentation, from networks that `sparse_medical_make` trained and measured, and the command line of all of it.

Networks ship as soon as they are trained, the sparse one of a set first; the record is written anew after each measured network, and keeps what an
earlier record says of the others.
"""

from __future__ import annotations

import argparse
import json
import platform
import sys
from dataclasses import asdict
from pathlib import Path
from typing import Any

import numpy as np
import torch

from core.data.corruptions import NOISES
from core.data.folders import DataAbsent
from core.lab.margin_sets import load_set
from core.lab.sparse_medical import COMMAND, KINDS, SETS, name_of, record_path
from core.lab.sparse_medical_cards import write_cards
from core.lab.sparse_medical_make import (
    EPOCHS,
    Clock,
    OutOfTime,
    Say,
    measure_network,
    train_network,
    write_json,
)
from core.lab.sparse_medical_measure import Plan
from core.lab.sparse_train import write
from core.lab.sparse_unet import UnetSchedule
from core.nets.build import device_line
from core.nets.weights import ASSETS
from core.settings.tacsc import AdaptSettings


def make_record(
    trained: dict[str, dict[str, Any]],
    measured: dict[str, dict[str, Any]],
    plan: Plan,
    settings: AdaptSettings,
    out: Path,
    words: str,
) -> Path:
    """Write the record from networks that are trained and measured; networks of an earlier record that are not among them stay.

    Args:
        trained: Name -> from `train_network`.
        measured: Name -> from `measure_network`.
        plan: What was measured.
        settings: Of adaptation.
        out: Laid out like `assets/`.
        words: The command.

    Returns:
        The file.
    """
    path = record_path(out)
    old: dict[str, Any] = (
        json.loads(path.read_text(encoding="utf-8")) if path.exists() else {"networks": [], "cells": []}
    )
    shared = ("coat_gap", "parts", "followers", "objective")
    new = [trained[n] | {k: m[k] for k in shared if k in m} for n, m in measured.items()]
    networks = [n for n in old["networks"] if name_of(n["set"], n["kind"]) not in measured] + new
    cells = [c for c in old["cells"] if name_of(c["set"], c["kind"]) not in measured]
    cells += [c for m in measured.values() for c in m["cells"]]
    versions = {"python": platform.python_version(), "torch": torch.__version__, "numpy": np.__version__}
    order = [name_of(s, k) for s in SETS for k in KINDS]
    record = {
        "command": words,
        "versions": versions,
        "device": device_line(),
        "settings": {"plan": asdict(plan), "adapt": asdict(settings)},
        "networks": sorted(networks, key=lambda n: order.index(name_of(n["set"], n["kind"]))),
        "cells": sorted(cells, key=lambda c: order.index(name_of(c["set"], c["kind"]))),
    }
    write_json(path, record)
    return path


def make(
    data: Path | None,
    work: Path,
    out: Path = ASSETS,
    sets: tuple[str, ...] = SETS,
    epochs: int | None = None,
    minutes: float | None = None,
    record_only: bool = False,
    plan: Plan | None = None,
    settings: AdaptSettings | None = None,
    say: Say = print,
) -> bool:
    """Train, ship and measure the U-Nets of some sets, and write the record and its cards.

    Args:
        data: Folder that holds `kvasir_seg`; unused for phantoms.
        work: Folder of the runs and of a cache of the images.
        out: Laid out like `assets/`.
        sets: Some of `SETS`.
        epochs: In place of `EPOCHS`.
        minutes: Stop after so many, keeping what was done.
        record_only: Write what is finished in `work`; train and measure nothing.
        plan: What is measured.
        settings: Of adaptation.
        say: Called with a line of progress.

    Returns:
        Whether everything is finished.

    Raises:
        DataAbsent, ValueError: As in `load_set` and `train_network`.
    """
    plan, settings, clock = plan or Plan(), settings or AdaptSettings(), Clock(minutes)
    words = f"{COMMAND} --sets {','.join(sets)}" + ("" if epochs is None else f" --epochs {epochs}")
    jobs = [(s, k) for s in sets for k in reversed(KINDS)]
    trained: dict[str, dict[str, Any]] = {}
    measured: dict[str, dict[str, Any]] = {}
    if record_only:
        for name in (name_of(*job) for job in jobs):
            for found, path in ((trained, work / f"{name}.json"), (measured, work / f"{name}.cells.json")):
                if path.exists():
                    found[name] = json.loads(path.read_text(encoding="utf-8"))
        measured = {name: m for name, m in measured.items() if name in trained}
        if not measured:
            raise ValueError(f"{work.name} holds no measured network, so there is nothing to record.")
        for name in measured:
            _ship(name, work, out)
        make_record(trained, measured, plan, settings, out, words)
        write_cards(out)
        return len(measured) == len(jobs)
    parts = {s: load_set(s, data, work / "sets") for s in sets}
    try:
        for s, k in jobs:
            schedule = UnetSchedule(epochs=EPOCHS[s] if epochs is None else epochs)
            trained[name_of(s, k)] = train_network(s, k, parts[s], work, schedule, clock, say)
            _ship(name_of(s, k), work, out)
        noises = [p for p in plan.places if p[0] == "clean" or p[0] in NOISES]
        for places in (noises, plan.places):  # what is asked for most is complete first, for every network
            for s, k in jobs:
                found = measure_network(s, k, parts[s], work, plan, settings, clock, say, places)
                measured[name_of(s, k)] = found
                make_record(trained, measured, plan, settings, out, words)
    except OutOfTime:
        say("The minutes have passed. The same command goes on from here.")
        return False
    for path in write_cards(out):
        say(f"wrote {path.name}")
    return True


def _ship(name: str, work: Path, out: Path) -> None:
    data = (work / f"{name}.safetensors").read_bytes()
    write(out / "weights" / f"{name}.safetensors", lambda part: part.write_bytes(data))


def parser() -> argparse.ArgumentParser:
    """The command line as a parser."""
    root = argparse.ArgumentParser(
        "python -m core.lab.sparse_medical",
        description="Train U-Nets with a sparse first layer and plain ones, and measure them and their promises under corruption.",
    )
    root.add_argument("--data", type=Path, help="folder that holds kvasir_seg; phantoms need none")
    root.add_argument("--work", type=Path, default=Path(".work/sparse-medical"), help="folder of the runs")
    root.add_argument("--sets", default=",".join(SETS), help=f"some of {', '.join(SETS)}, with commas")
    root.add_argument("--epochs", type=int, help="in place of each set's own number")
    root.add_argument("--minutes", type=float, help="stop after so many minutes; the same command goes on")
    root.add_argument("--out", type=Path, default=ASSETS, help="folder laid out like assets/")
    root.add_argument("--record-only", action="store_true", help="write what is finished and do nothing else")
    return root


def command(arguments: list[str] | None = None) -> int:
    """Run the command line; 0 when all is well, 2 with one sentence when something can be mended."""
    given = parser().parse_args(arguments)
    sets = tuple(s for s in given.sets.split(",") if s)
    try:
        unknown = [s for s in sets if s not in SETS]
        if unknown or not sets:
            raise ValueError(f"--sets takes some of {', '.join(SETS)}; it got {given.sets!r}.")

        def say(line: str) -> None:
            print(line, flush=True)

        make(given.data, given.work, given.out, sets, given.epochs, given.minutes, given.record_only, say=say)
    except (ValueError, DataAbsent) as error:
        print(error, file=sys.stderr)
        return 2
    return 0
