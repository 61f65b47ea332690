"""`python -m core losses`: the comparison of losses made anew, run by run. Stopped runs go on; finished ones are kept.

It orders `margin_train` (one run after the other, in an order that needs no choice before it is made) and `margin_write`. Two processes may share one
working folder: each takes the runs that the other has not.
"""

from __future__ import annotations

import argparse
import os
from collections.abc import Callable
from pathlib import Path

from core.lab.margin_cards import write_cards
from core.lab.margin_sets import MARGIN_SETS, Labelled, load_set
from core.lab.margin_train import SEEDS, Run, Schedule, planned, run_of, train_run
from core.lab.margin_write import chosen_margin, validation_rows, write
from core.nets.weights import ASSETS

PHANTOM_EPOCHS = 16
"""Phantoms are easy: half the epochs are enough for their pictures."""


def add_losses(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Add the command."""
    one = commands.add_parser("losses", help="compare losses anew: train, measure, record (hours on a CPU)")
    one.add_argument("--data", type=Path, help="folder that holds ham10000, kvasir_seg and nuclei_dsb2018")
    one.add_argument(
        "--work", type=Path, default=Path(".work/losses"), help="folder of the runs; a stopped run goes on"
    )
    one.add_argument(
        "--out", type=Path, default=None, help="where results go; the project's assets when absent"
    )
    one.add_argument("--sets", default=",".join(MARGIN_SETS), help="sets to train and record (default all)")
    one.add_argument("--record-only", action="store_true", help="train nothing; record what is finished")


def losses(args: argparse.Namespace) -> None:
    """Train what is missing, then record."""
    sets = tuple(s.strip() for s in args.sets.split(","))
    if unknown := [s for s in sets if s not in MARGIN_SETS]:
        raise ValueError(f"Unknown sets: {', '.join(unknown)}. Known: {', '.join(MARGIN_SETS)}.")
    if not args.record_only:
        train_all(sets, args.data, args.work, print)
    out = args.out or ASSETS
    write(args.data, args.work, out, lambda line: print(line, flush=True), sets)
    for card in write_cards(out):
        print(f"Card: {card.name}")


def train_all(sets: tuple[str, ...], data: Path | None, work: Path, say: Callable[[str], None]) -> None:
    """Train every run of some sets that is not finished; the margin's further seeds once its m is chosen."""
    parts: dict[str, dict[str, Labelled]] = {}

    def one(run: Run) -> None:
        if (work / f"{run.key}.npz").exists():
            return
        lock = work / f"{run.key}.lock"
        if not _taken(lock):
            return
        try:
            if run.data not in parts:
                parts[run.data] = load_set(run.data, data, work / "sets")
            schedule = Schedule(epochs=PHANTOM_EPOCHS) if run.data == "phantom" else Schedule()
            say(f"Training {run.key}, {schedule.epochs} epochs.")
            train_run(run, parts[run.data], work, schedule)
        finally:
            lock.unlink(missing_ok=True)

    work.mkdir(parents=True, exist_ok=True)
    for run in (r for r in planned() if r.data in sets):
        one(run)
    for name in (s for s in sets if s != "phantom"):
        rows = validation_rows(name, work, load_set(name, data, work / "sets"))
        if rows:
            for seed in SEEDS[1:]:
                one(run_of(name, "margin", seed, chosen_margin(rows)))


def _taken(lock: Path) -> bool:
    """Whether this process may train a run: nobody else does, or whoever did is gone."""
    try:
        with lock.open("x") as file:
            file.write(str(os.getpid()))
    except FileExistsError:
        try:
            os.kill(int(lock.read_text() or 0), 0)
        except (ProcessLookupError, ValueError):
            lock.write_text(str(os.getpid()))
            return True
        return False
    return True
