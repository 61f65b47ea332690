"""Walking a list of long-tail runs: finished ones are skipped, and two processes may walk the same list at once.

A plan is a text file with one run a line, `SET METHOD SEED`, most wanted first; `#` starts a comment. A run is locked while it trains; the
system takes the lock away when the process ends, however it ends, so that a run is never lost to a crash. The same commands train a single
run and say where a plan stands.
"""

from __future__ import annotations

import argparse
import logging
import os
import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any

from core.data.folders import DataAbsent
from core.lab.tail_methods import METHODS, method_of
from core.lab.tail_record import run_name
from core.lab.tail_schedule import NETS, Schedule, schedule_for
from core.lab.tail_sets import SETS, TailSet, tail_set
from core.lab.tail_train import train_run

LOG = logging.getLogger("plumbline")


@dataclass(frozen=True)
class Job:
    """One run of a plan."""

    set: str
    method: str
    seed: int


def read_plan(path: Path) -> list[Job]:
    """Read a plan.

    Raises:
        ValueError: A line is not `SET METHOD SEED`, or names what is not known; says which line.
    """
    jobs = []
    for number, line in enumerate(path.read_text().splitlines(), 1):
        words = line.split("#")[0].split()
        if not words:
            continue
        try:
            if len(words) != 3:
                raise ValueError("it must read SET METHOD SEED")
            if words[0] not in SETS:
                raise ValueError(f"the set {words[0]!r} is not known; known: {', '.join(SETS)}")
            jobs.append(Job(words[0], method_of(words[1]).name, int(words[2])))
        except ValueError as error:
            raise ValueError(f"Line {number} of {path.name}: {error}") from error
    return jobs


@contextmanager
def locked(path: Path) -> Iterator[bool]:
    """Hold a lock while the block runs. Yields False where another process holds it.

    Where the system has no such locks (Windows), it always yields True: use one process there.
    """
    try:
        import fcntl
    except ImportError:
        yield True
        return
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("w") as file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            yield False
            return
        yield True


def is_done(work: Path, job: Job) -> bool:
    """Whether the run's record is there."""
    return (work / job.set / f"{run_name(job.method, job.seed)}.json").exists()


def walk(
    jobs: Sequence[Job],
    data: Path,
    work: Path,
    schedule: Callable[[str], Schedule],
    minutes: float | None = None,
    sets: Mapping[str, TailSet] | None = None,
    cache: Path | None = None,
) -> int:
    """Train every run of a plan that is neither finished nor locked.

    Args:
        jobs: The plan.
        data: Folder of the sets.
        work: Folder of the runs.
        schedule: Name of a set -> how its runs are trained.
        minutes: Begin no further run after so many minutes.
        sets: Sets that are already in memory.
        cache: Folder of the arrays that were read; `cache` inside `work` when None.

    Returns:
        How many runs this process finished. A run that fails is logged and the next one goes on.
    """
    began, made = time.monotonic(), 0
    kept: dict[str, TailSet] = dict(sets or {})
    for job in jobs:
        if minutes is not None and time.monotonic() - began > minutes * 60:
            break
        if is_done(work, job):
            continue
        with locked(work / "locks" / f"{job.set}-{run_name(job.method, job.seed)}.lock") as mine:
            if not mine or is_done(work, job):
                continue
            if job.set not in kept:
                kept = {job.set: tail_set(job.set, data, cache or work / "cache")}  # one at a time in memory
            try:
                train_run(kept[job.set], method_of(job.method), job.seed, schedule(job.set), work, report)
            except ValueError:
                LOG.exception("The run %s %s %d failed.", job.set, job.method, job.seed)
                continue
            made += 1
    return made


def report(done: int, total: int, now: Mapping[str, Any]) -> None:
    """One line an epoch."""
    print(
        f"{now['set']} {now['method']} s{now['seed']} {done}/{total} train {now['train_loss']:.4f} val {now['val_loss']:.4f} "
        f"term {now['term']:.4f} {now['seconds']:.1f} s",
        flush=True,
    )


def parser() -> argparse.ArgumentParser:
    """The command line as a parser."""
    root = argparse.ArgumentParser(
        "python -m core.lab.tail_train", description="Train classifiers on long-tailed sets and record them."
    )
    root.add_argument(
        "mode",
        nargs="?",
        choices=("run", "queue", "status"),
        default="run",
        help="one run, a plan, or where a plan stands",
    )
    root.add_argument("plan", nargs="?", type=Path, help="file with one run a line: SET METHOD SEED")
    root.add_argument("--set", choices=SETS, dest="data_set", help="set of a single run")
    root.add_argument("--method", help=f"one of {', '.join(METHODS)}; @field=value changes a setting of CAR")
    root.add_argument("--seed", type=int, default=0)
    root.add_argument("--data", type=Path, help="folder with the archives and the folder ham10000")
    root.add_argument("--work", type=Path, default=Path(".work/tail"), help="folder of the runs")
    root.add_argument("--net", choices=NETS, default="resnet")
    root.add_argument("--epochs", type=int)
    root.add_argument("--width", type=int)
    root.add_argument("--depth", type=int)
    root.add_argument("--patch", type=int)
    root.add_argument("--batch", type=int)
    root.add_argument("--learning-rate", type=float)
    root.add_argument("--no-bfloat16", action="store_true", help="run all layers in float32")
    root.add_argument("--minutes", type=float, help="begin no further run of a plan after so many minutes")
    root.add_argument("--nice", type=int, default=0, help="be so much politer to other processes")
    return root


def schedule_of(given: argparse.Namespace, name: str) -> Schedule:
    """The schedule of a set, with what the flags change."""
    base = schedule_for(name, given.net)
    names = ("epochs", "width", "depth", "patch", "batch", "learning_rate")
    changes = {name: getattr(given, name) for name in names if getattr(given, name) is not None}
    return replace(base, bfloat16=not given.no_bfloat16, **changes)


def command(arguments: list[str] | None = None) -> int:
    """Run the command line; 0 when all is well, 2 with one sentence when something can be mended."""
    given = parser().parse_args(arguments)
    logging.basicConfig(level=logging.INFO, format="%(message)s")
    try:
        if given.nice and hasattr(os, "nice"):
            os.nice(given.nice)
        if given.mode == "status":
            jobs = _plan(given)
            done = [job for job in jobs if is_done(given.work, job)]
            print(f"{len(done)} of {len(jobs)} runs are finished.")
            for job in jobs:
                if job not in done:
                    print("waiting:", job.set, job.method, job.seed)
            return 0
        if given.data is None:
            raise ValueError("Give the folder of the sets with --data.")
        if given.mode == "queue":
            made = walk(_plan(given), given.data, given.work, partial(schedule_of, given), given.minutes)
            print(f"{made} runs finished here.")
            return 0
        if given.data_set is None or given.method is None:
            raise ValueError("Give --set and --method, or a plan: queue PLAN.")
        data = tail_set(given.data_set, given.data, given.work / "cache")
        record = train_run(
            data, method_of(given.method), given.seed, schedule_of(given, given.data_set), given.work, report
        )
        assert record is not None  # it was not told to stop
        test = record.figures["test"]
        print(
            " ".join(
                f"{k} {test[k]:.4f}"
                for k in ("overall", "tail", "worst", "worst_classes")
                if test[k] is not None
            )
        )
    except (ValueError, DataAbsent) as error:
        print(error, file=sys.stderr)
        return 2
    return 0


def _plan(given: argparse.Namespace) -> list[Job]:
    if given.plan is None or not given.plan.is_file():
        raise ValueError("Give a plan: a file with one run a line, SET METHOD SEED.")
    return read_plan(given.plan)
