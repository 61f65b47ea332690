"""The command line of sparse coding runs: train and measure one, or walk a plan that several processes may share.

A plan is a text file with one run a line, `MODEL K SEED`, most wanted first; `#` starts a comment. K is ignored for the
ResNet. A run is locked while a process works on it, finished runs are skipped, and a run that was trained but not measured
is only measured.
"""

from __future__ import annotations

import argparse
import json
import logging
import os
import platform
import sys
import time
from collections.abc import Mapping, Sequence
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

import numpy as np
import torch

from core.data.corruptions import CORRUPTIONS
from core.data.folders import DataAbsent
from core.data.tar_images import read_set
from core.lab.sparse_evaluate import Plan, evaluate
from core.lab.sparse_record import (
    Cell,
    SparseRecord,
    load_record,
    load_sparse_network,
    save_record,
    save_sparse_network,
)
from core.lab.sparse_train import Images, Run, Schedule, fit
from core.lab.tail_queue import locked
from core.settings.tacsc import MODELS, AdaptSettings, TacscSettings

LOG = logging.getLogger("plumbline")


def read_cifar(data: Path, cache: Path | None) -> tuple[Images, Images]:
    """Training and test images of CIFAR-10. Raises DataAbsent where the archive is missing."""
    found = read_set("cifar10", data, cache)
    return (
        Images(found.images[~found.test], found.labels[~found.test]),
        Images(found.images[found.test], found.labels[found.test]),
    )


def read_plan(path: Path, width: int = 16) -> list[Run]:
    """Read a plan.

    Raises:
        ValueError: A line is not `MODEL K SEED` or names what is not known; says which line.
    """
    runs = []
    for number, line in enumerate(path.read_text().splitlines(), 1):
        words = line.split("#")[0].split()
        if not words:
            continue
        if len(words) != 3 or words[0] not in MODELS or not words[1].isdigit() or not words[2].isdigit():
            raise ValueError(
                f"Line {number} of {path.name} must read MODEL K SEED, with a model of {', '.join(MODELS)}; it reads: {line.strip()}"
            )
        runs.append(run_of(words[0], int(words[1]), int(words[2]), width))
    return runs


def run_of(model: str, iterations: int, seed: int, width: int = 16) -> Run:
    """A run with default settings but for K."""
    return Run(model, TacscSettings(iterations=iterations, learn=model != "fixed"), width, seed)


def state_of(work: Path, run: Run) -> str:
    """Where a run stands: `"waiting"`, `"trained"` or `"measured"`."""
    path = work / f"{run.key}.json"
    if not path.exists():
        return "waiting"
    return "measured" if load_record(path).cells else "trained"


def train_run(
    run: Run, schedule: Schedule, train: Images, work: Path, minutes: float | None = None, command: str = ""
) -> SparseRecord | None:
    """Train a run from where it stands and write its network and record. None where the minutes ended first."""
    done = fit(run, train, schedule, work / f"{run.key}.state", report, minutes)
    if done is None:
        return None
    net, history = done
    save_sparse_network(work / f"{run.key}.safetensors", net, run.model, run.settings, run.width)
    versions = {"python": platform.python_version(), "torch": torch.__version__, "numpy": np.__version__}
    record = SparseRecord(
        run.model,
        run.settings,
        run.width,
        run.seed,
        asdict(schedule),
        len(train),
        history,
        {},
        (),
        command,
        versions,
    )
    save_record(work / f"{run.key}.json", record)
    (work / f"{run.key}.state").unlink(missing_ok=True)
    return record


def measure_run(
    run: Run, test: Images, work: Path, plan: Plan | None = None, settings: AdaptSettings | None = None
) -> SparseRecord:
    """Measure a trained run, as its file holds it, and write the figures into its record.

    What is measured is saved after each corruption and severity (`{key}.cells`), so a run that was stopped goes on; another plan or other
    settings begin anew.
    """
    plan, settings = plan or Plan(), settings or AdaptSettings()
    net = load_sparse_network(work / f"{run.key}.safetensors").to(memory_format=torch.channels_last)
    trained, part = load_record(work / f"{run.key}.json"), work / f"{run.key}.cells"
    facts = asdict(settings) | {"plan": asdict(plan)}

    def keep(cells: tuple[Cell, ...], path: Path = part) -> None:
        save_record(path, replace(trained, cells=cells, adapt_settings=facts))

    known = load_record(part) if part.exists() else None
    same = known is not None and known.adapt_settings == json.loads(json.dumps(facts))
    cells = evaluate(
        net, test, plan, settings, report, work / "damaged", known.cells if known and same else (), keep
    )
    record = replace(trained, cells=cells, adapt_settings=facts)
    save_record(work / f"{run.key}.json", record)
    part.unlink(missing_ok=True)
    return record


def walk(
    runs: Sequence[Run],
    schedule: Schedule,
    train: Images,
    test: Images,
    work: Path,
    plan: Plan | None = None,
    minutes: float | None = None,
    command: str = "",
) -> int:
    """Train and measure every run of a plan that is neither finished nor locked.

    Returns:
        How many runs this process finished. A run that fails is logged and the next one goes on.
    """
    began, made = time.monotonic(), 0
    for run in runs:
        left = None if minutes is None else minutes - (time.monotonic() - began) / 60
        if left is not None and left <= 0:
            break
        if state_of(work, run) == "measured":
            continue
        with locked(work / "locks" / f"{run.key}.lock") as mine:
            if not mine or state_of(work, run) == "measured":
                continue
            try:
                if (
                    state_of(work, run) == "waiting"
                    and train_run(run, schedule, train, work, left, command) is None
                ):
                    break
                measure_run(run, test, work, plan)
            except ValueError:
                LOG.exception("The run %s failed.", run.key)
                continue
            made += 1
    return made


def report(done: int, total: int, facts: Mapping[str, Any]) -> None:
    """One line a step of work."""
    words = []
    for key, value in facts.items():
        if isinstance(value, list):
            value = " ".join(f"{v:.3f}" for v in value[:4]) + (" …" if len(value) > 4 else "")
        words.append(f"{key} {value:.4f}" if isinstance(value, float) else f"{key} {value}")
    print(f"{done}/{total}", *words, flush=True)


def parser() -> argparse.ArgumentParser:
    """The command line as a parser."""
    root = argparse.ArgumentParser(
        "python -m core.lab.sparse_train",
        description="Train sparse coding networks on CIFAR-10 and measure them under corruption.",
    )
    root.add_argument("mode", nargs="?", choices=("run", "queue", "status"), default="run")
    root.add_argument("plan", nargs="?", type=Path, help="file with one run a line: MODEL K SEED")
    root.add_argument("--model", choices=MODELS, default="tacsc")
    root.add_argument("--iterations", type=int, default=2, help="K")
    root.add_argument("--width", type=int, default=16)
    root.add_argument("--epochs", type=int, default=Schedule().epochs)
    root.add_argument("--images", type=int, default=0, help="images of each class; 0 takes all")
    root.add_argument("--seed", type=int, default=0)
    root.add_argument("--data", type=Path, help="folder that holds cifar10.tar.xz")
    root.add_argument("--work", type=Path, default=Path(".work/sparse"), help="folder of the runs")
    root.add_argument(
        "--scored", type=int, default=Plan().scored, help="test images of a corruption that are scored"
    )
    root.add_argument("--scored-noise", type=int, default=Plan().scored_noise, help="the same under noise")
    root.add_argument(
        "--samples",
        type=int,
        nargs="+",
        default=list(Plan().samples),
        help="unlabelled images; the first everywhere, all under noise",
    )
    root.add_argument(
        "--corruptions",
        nargs="+",
        choices=CORRUPTIONS,
        default=list(CORRUPTIONS),
        metavar="NAME",
        help="corruptions to measure",
    )
    root.add_argument("--no-measure", action="store_true", help="train only")
    root.add_argument("--no-bfloat16", action="store_true", help="train in float32")
    root.add_argument("--minutes", type=float, help="stop after so many minutes, at the end of an epoch")
    root.add_argument("--nice", type=int, default=0, help="be so much politer to other processes")
    return root


def command(arguments: list[str] | None = None) -> int:
    """Run the command line; 0 when all is well, 2 with one sentence when something can be mended."""
    given = parser().parse_args(arguments)
    logging.basicConfig(level=logging.INFO, format="%(message)s")
    schedule = Schedule(epochs=given.epochs, images=given.images, bfloat16=not given.no_bfloat16)
    plan = Plan(
        tuple(given.corruptions),
        samples=tuple(given.samples),
        scored=given.scored,
        scored_noise=given.scored_noise,
    )
    words = f"python -m core.lab.sparse_train --epochs {given.epochs} --images {given.images} --width {given.width}"
    try:
        if given.nice and hasattr(os, "nice"):
            os.nice(given.nice)
        if given.mode in ("queue", "status"):
            if given.plan is None or not given.plan.is_file():
                raise ValueError("Give a plan: a file with one run a line, MODEL K SEED.")
            runs = read_plan(given.plan, given.width)
        else:
            runs = [run_of(given.model, given.iterations, given.seed, given.width)]
        if given.mode == "status":
            for run in runs:
                print(run.key, state_of(given.work, run))
            return 0
        if given.data is None:
            raise ValueError("Give the folder that holds cifar10.tar.xz with --data.")
        train, test = read_cifar(given.data, given.work / "cache")
        if given.no_measure:
            for run in runs:
                if state_of(given.work, run) == "waiting":
                    train_run(run, schedule, train, given.work, given.minutes, words)
            return 0
        made = walk(runs, schedule, train, test, given.work, plan, given.minutes, words)
        print(f"{made} runs finished here.")
    except (ValueError, DataAbsent) as error:
        print(error, file=sys.stderr)
        return 2
    return 0
