"""`python -m core confusion`: a person's own classifier from the shell. `python -m core tail`: the long-tail comparison made anew, run by run.

A question that only the person can answer ends the first command with its text and the flag that answers it; nothing is guessed. The second walks a
plan with `tail_queue` (stopped runs go on, finished ones are kept, two processes may share one folder) and records what is finished.
"""

from __future__ import annotations

import argparse
import json
import time
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any

from core.lab.cli_files import given_answers, given_files
from core.lab.tail_queue import Job, is_done, read_plan, walk
from core.lab.tail_shelf import SETS

SEEDED = ("ce", "car-paper", "car-count", "adjusted")
"""Methods with three seeds on every set."""

ONCE = ("ldam", "balanced", "focal")
"""Other baselines, one seed on every set."""

ABLATIONS = (
    "car-no-weights",
    "car-no-ema",
    "car-present",
    "car-naive-max",
    "car-count-sum",
    "car-gate",
    "ce-cutmix",
    "car-cutmix",
    "car-adjusted",
)
"""One seed on `ABLATED`."""

SENSITIVITY = (
    "alpha=0.2",
    "alpha=1",
    "alpha=2",
    "beta=0",
    "beta=0.9",
    "r0=0.05",
    "r0=0.5",
    "gamma=-1",
    "gamma=1",
)
"""Changed settings of `car-count`, one seed on `ABLATED`."""

ABLATED = "pbc"

TRIED = {"ham10000": ("alpha=0.2", "alpha=1")}
"""Changed settings of `car-count` on other sets, one seed: candidates that the validation part might have preferred."""


def planned() -> list[Job]:
    """Every run of the comparison with the table's network, most wanted first."""
    first = [Job(s, m, 0) for s in SETS for m in SEEDED]
    once = [Job(s, m, 0) for s in SETS for m in ONCE]
    about = [Job(ABLATED, m, 0) for m in (*ABLATIONS, *(f"car-count@{change}" for change in SENSITIVITY))]
    about += [Job(s, f"car-count@{change}", 0) for s, changes in TRIED.items() for change in changes]
    return first + about + [Job(s, m, seed) for seed in (1, 2) for s in SETS for m in SEEDED] + once


def planned_others() -> list[Job]:
    """The pair of runs with another network (a transformer); they lie in a folder of their own inside the working folder."""
    return [Job(ABLATED, method, 0) for method in ("ce", "car-count")]


def add_tail(commands: Any) -> None:
    """Register `tail`."""
    one = commands.add_parser(
        "tail", help="compare losses on long tails anew: train, record (many hours on a CPU)"
    )
    one.add_argument("--data", type=Path, help="folder with the archives of the sets and the folder ham10000")
    one.add_argument(
        "--work", type=Path, default=Path(".work/tail"), help="folder of the runs; a stopped run goes on"
    )
    one.add_argument(
        "--out", type=Path, default=None, help="where results go; the project's assets when absent"
    )
    one.add_argument("--sets", default=",".join(SETS), help="sets to train (default all)")
    one.add_argument(
        "--plan",
        type=Path,
        help="file with one run a line, SET METHOD SEED; the comparison's own plan when absent",
    )
    one.add_argument("--minutes", type=float, help="begin no further run after so many minutes")
    todo = one.add_mutually_exclusive_group()
    todo.add_argument("--record-only", action="store_true", help="train nothing; record what is finished")
    todo.add_argument("--train-only", action="store_true", help="record nothing")
    todo.add_argument("--status", action="store_true", help="say which runs are missing, and do nothing")


def tail(args: argparse.Namespace) -> None:
    """Train what is missing, then record.

    Raises:
        ValueError: A set or a line of the plan is not known, or the data's folder is missing.
        FileNotFoundError: Nothing is finished that could be recorded.
    """
    from core.lab.tail_schedule import schedule_for
    from core.lab.tail_shelf import OTHER, write_shelf
    from core.nets.weights import ASSETS

    sets = tuple(s.strip() for s in args.sets.split(","))
    if unknown := [s for s in sets if s not in SETS]:
        raise ValueError(f"Unknown sets: {', '.join(unknown)}. Known: {', '.join(SETS)}.")
    if args.plan is not None and not args.plan.is_file():
        raise FileNotFoundError(
            f"There is no plan {args.plan.name}. It is a file with one run a line: SET METHOD SEED."
        )
    jobs = [job for job in (planned() if args.plan is None else read_plan(args.plan)) if job.set in sets]
    others = [job for job in (planned_others() if args.plan is None else ()) if job.set in sets]
    apart = args.work / OTHER

    def missing() -> list[str]:
        waiting = [(job, "") for job in jobs if not is_done(args.work, job)]
        waiting += [(job, " (transformer)") for job in others if not is_done(apart, job)]
        return [f"{job.set} {job.method} {job.seed}{net}" for job, net in waiting]

    count = len(jobs) + len(others)
    if args.status:
        left = missing()
        print(f"{count - len(left)} of {count} runs are finished.")
        for job in left:
            print("waiting:", job)
        return
    if not args.record_only:
        if args.data is None:
            raise ValueError("Give the folder of the sets with --data, or --record-only.")
        began, cache = time.monotonic(), args.work / "cache"
        made = walk(jobs, args.data, args.work, schedule_for, args.minutes, cache=cache)
        left_minutes = (
            None if args.minutes is None else max(args.minutes - (time.monotonic() - began) / 60, 0.0)
        )
        made += walk(others, args.data, apart, partial(schedule_for, net="vit"), left_minutes, cache=cache)
        print(f"{made} runs finished here; {len(missing())} of {count} are still missing.")
    if not args.train_only:
        for path in write_shelf(args.work, args.out or ASSETS):
            print(f"Written: {path.name}")


def add_confusion(commands: Any) -> None:
    """Register `confusion`."""
    one = commands.add_parser(
        "confusion",
        help="true labels with logits or predictions, or a confusion matrix in; worst class, what feeds it and the spectrum out",
    )
    one.add_argument("file", type=Path, metavar="FILE", help="CSV or NPZ, or a zip or folder of them")
    one.add_argument("--train", type=Path, help="the same of the training samples, for WR")
    one.add_argument(
        "--counts",
        help="training samples of each class: numbers divided by commas, or a CSV of class and count",
    )
    one.add_argument("--classes", help="names of the classes in their order, divided by commas")
    one.add_argument(
        "--truth", choices=("rows", "columns"), help="which side of a confusion matrix is the truth"
    )
    one.add_argument(
        "--weights",
        choices=("none", "sum", "max"),
        default="none",
        help="Λ in the spectrum; needs counts (default none)",
    )
    one.add_argument(
        "--answer",
        action="append",
        default=[],
        metavar="QUESTION=CHOICE",
        help="answer another question about the files",
    )
    one.add_argument("--out", type=Path, required=True, help="folder for the results")


def confusion(args: argparse.Namespace) -> None:
    """Measure a person's own classifier and write everything that can be taken away.

    Raises:
        ValueError: A question is open (the text names the flag), or nothing can be measured.
        FileNotFoundError: There is no such file.
    """
    from core.lab.tail_own import read_predictions
    from core.lab.tail_own_counts import parse_counts
    from core.lab.tail_own_measure import measure_matrix
    from core.lab.tail_own_report import own_confusion_report
    from core.lab.tail_own_words import class_rows, facts, figure_rows, flow_rows, sentences
    from core.lab.take_away import to_csv

    files = list(_files(args.file))
    typed = None
    if args.counts is not None:
        if Path(args.counts).is_file():
            files += list(_files(Path(args.counts)))
        else:
            typed = parse_counts(args.counts)
    classes = tuple(c.strip() for c in args.classes.split(",")) if args.classes else ()
    own = read_predictions(files, _files(args.train), _answers(args), classes, typed)
    for line in (*own.problems, *own.notes):
        print("  " + line)
    if own.questions:
        asked = own.questions[0]
        raise ValueError(
            f"{asked.text} Say it with one of: {'; '.join(_flag(asked.key, c.value, c.label) for c in asked.choices)}."
        )
    answer = measure_matrix(own, args.weights)
    args.out.mkdir(parents=True, exist_ok=True)
    (args.out / "classes.csv").write_bytes(to_csv(class_rows(answer)))
    (args.out / "confusion.json").write_text(
        json.dumps(facts(answer), indent=1, allow_nan=False) + "\n", encoding="utf-8"
    )
    (args.out / "report.html").write_text(own_confusion_report(answer), encoding="utf-8")
    written = ["classes.csv", "confusion.json"]
    if not answer.perfect:
        (args.out / "flows.csv").write_bytes(to_csv(flow_rows(answer, 200)))
        written.insert(1, "flows.csv")
    for line in sentences(answer):
        print(line)
    for name, value, _ in figure_rows(answer):
        print(f"  {name:<22} {'–' if value != value else f'{value:.4f}'}")
    print(f"{', '.join(written)} and report.html are in {args.out}")


def _flag(key: str, value: str, label: str) -> str:
    if key == "axis":
        return f"--truth {value} ({label})"
    quoted = f'"{value}"' if " " in value else value
    return f"--answer {key}={quoted} ({label})"


def _answers(args: argparse.Namespace) -> dict[str, str]:
    answers = given_answers(args.answer, 'nan="leave out"')
    if args.truth:
        answers["axis"] = args.truth
    return answers


def _files(path: Path | None) -> Iterator[tuple[str, bytes]]:
    from core.lab.margin_own_files import OWN_LIMITS
    from core.lab.tail_own_files import ENDINGS

    return given_files(path, OWN_LIMITS, f"holds no {', '.join(ENDINGS)}.", ENDINGS)
