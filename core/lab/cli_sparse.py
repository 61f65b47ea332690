"""`python -m core sparse`: the sparse coding comparison made anew, run by run. `python -m core adapt`: λ follows a person's own image.

The first walks the comparison's own plan with `sparse_queue` (stopped runs go on, finished ones are kept, two processes may share one folder)
and records what is finished. The second cuts an image into crops, damages them and adapts, as the page does.
"""

from __future__ import annotations

import argparse
import json
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from core.data.corruptions import CORRUPTIONS, SEVERITIES
from core.settings.knob import knobs
from core.settings.tacsc import AdaptSettings

if TYPE_CHECKING:
    from core.lab.sparse_here import Watched

NETWORK = "tacsc-k2-w16-s0"


def add_sparse(commands: Any) -> None:
    """Register `sparse`."""
    one = commands.add_parser(
        "sparse",
        help="train sparse coding networks on CIFAR-10 anew, measure and record them (hours on a CPU)",
    )
    one.add_argument("--data", type=Path, help="folder that holds cifar10.tar.xz")
    one.add_argument(
        "--work", type=Path, default=Path(".work/sparse"), help="folder of the runs; a stopped run goes on"
    )
    one.add_argument(
        "--out", type=Path, default=None, help="where results go; the project's assets when absent"
    )
    one.add_argument(
        "--plan",
        type=Path,
        help="file with one run a line, MODEL K SEED; the comparison's own plan when absent",
    )
    one.add_argument("--width", type=int, default=None, help="channels of the first stage (default 16)")
    one.add_argument("--epochs", type=int, default=None, help="passes over the training images")
    one.add_argument("--images", type=int, default=0, help="training images of each class; 0 takes all")
    one.add_argument("--minutes", type=float, help="stop after so many minutes, at the end of an epoch")
    todo = one.add_mutually_exclusive_group()
    todo.add_argument("--record-only", action="store_true", help="train nothing; record what is finished")
    todo.add_argument("--train-only", action="store_true", help="train and measure, and record nothing")
    todo.add_argument("--status", action="store_true", help="say where every run stands, and do nothing")


def sparse(args: argparse.Namespace) -> None:
    """Train and measure what is missing, then record.

    Raises:
        ValueError: A line of the plan is not known, or the data's folder was not given.
        FileNotFoundError: There is no such plan, the data are not there, or nothing is finished that could be recorded.
    """
    from core.lab import sparse_queue
    from core.lab.sparse_shelf import COMMAND, WIDTH, keys, planned, write_shelf
    from core.lab.sparse_train import Schedule
    from core.nets.weights import ASSETS

    width = args.width or WIDTH
    if args.plan is not None and not args.plan.is_file():
        raise FileNotFoundError(
            f"There is no plan {args.plan.name}. It is a file with one run a line: MODEL K SEED."
        )
    runs = planned(width) if args.plan is None else sparse_queue.read_plan(args.plan, width)
    if args.status:
        print(f"In {args.work}:")
        for run in runs:
            shipped = " (recorded in the project's assets)" if run.key in keys() else ""
            print(f"{run.key} {sparse_queue.state_of(args.work, run)}{shipped}")
        return
    if not args.record_only:
        if args.data is None:
            raise ValueError("Give the folder that holds cifar10.tar.xz with --data, or --record-only.")
        schedule = Schedule(epochs=args.epochs or Schedule().epochs, images=args.images)
        train, test = sparse_queue.read_cifar(args.data, args.work / "cache")
        words = f"{COMMAND} --epochs {schedule.epochs} --images {schedule.images}"
        made = sparse_queue.walk(runs, schedule, train, test, args.work, None, args.minutes, words)
        left = sum(sparse_queue.state_of(args.work, run) != "measured" for run in runs)
        print(f"{made} runs finished here; {left} of {len(runs)} are still missing.")
    if not args.train_only:
        for path in write_shelf(args.work, args.out or ASSETS):
            print(f"Written: {path.name}")


def add_adapt(commands: Any) -> None:
    """Register `adapt`."""
    table = knobs(AdaptSettings)
    one = commands.add_parser(
        "adapt",
        help="cut an image into crops, damage them, and let λ of a sparse coding network follow without labels",
    )
    one.add_argument(
        "image", type=Path, help="PNG, JPEG, TIFF, DICOM or NIfTI, at least 32 pixels on each side"
    )
    one.add_argument(
        "--corruption",
        choices=("clean", *CORRUPTIONS),
        default="gaussian_noise",
        metavar="NAME",
        help="what is done to the crops",
    )
    one.add_argument("--severity", type=int, choices=SEVERITIES, default=3, help="1 to 5 (default 3)")
    one.add_argument(
        "--network",
        default=NETWORK,
        metavar="KEY",
        help=f"a network that ships: the name of a file in assets/weights without sparse- (default {NETWORK})",
    )
    one.add_argument("--crops", type=int, default=100, help="how many, at most 100")
    for name in ("steps", "rate", "reach"):
        kind = int if name == "steps" else float
        one.add_argument(
            f"--{name}", type=kind, default=table[name].default, help=table[name].help.replace("%", "%%")
        )
    one.add_argument(
        "--slice", type=int, default=None, help="which slice of a volume, from 0; the middle one when absent"
    )
    one.add_argument("--seed", type=int, default=0, help="of crops and damage")
    one.add_argument("--out", type=Path, required=True, help="folder for the results")


def adapt(args: argparse.Namespace) -> None:
    """Adapt λ on crops of one image and write what came out.

    Raises:
        ValueError: The image cannot be used (the text says why), or a setting is out of range.
        FileNotFoundError: There is no such image, or the network does not ship.
    """
    from core.images import read, to_rgb
    from core.images.display import png_bytes
    from core.lab.sparse_here import watch
    from core.lab.sparse_here_words import watched_words
    from core.lab.sparse_images import LARGE_SIDE, SIDE, upload
    from core.lab.take_away import to_csv

    if not args.image.is_file():
        raise FileNotFoundError(f"There is no file {args.image.name}. Check its name and where it lies.")
    pictures = read(args.image)
    if len(pictures) > 1:
        raise ValueError(f"{args.image.name} holds {len(pictures)} pictures; give one.")
    picture = pictures[0]
    k = picture.slices // 2 if args.slice is None else args.slice
    rgb = to_rgb(picture, k)
    values = picture.pixels[k]
    if values.dtype.kind == "f" and (bad := int((~np.isfinite(values)).sum())):
        raise ValueError(
            f"{picture.name} has {bad:,} pixels without a value (NaN or infinity). Fill them, or choose another slice."
        )
    side = LARGE_SIDE if args.network.startswith("unet") else SIDE
    crops = upload(rgb, args.crops, args.seed, picture.name, side)
    settings = AdaptSettings(steps=args.steps, rate=args.rate, reach=args.reach)
    run = watch(args.network, crops, args.corruption, args.severity, settings, args.seed)
    said = (crops.words, *watched_words(run))
    args.out.mkdir(parents=True, exist_ok=True)
    (args.out / "lambda.csv").write_bytes(to_csv(trace_rows(run)))
    (args.out / "pictures.png").write_bytes(png_bytes(sheet(run)))
    (args.out / "adapt.json").write_text(
        json.dumps(facts(run) | {"sentences": said}, indent=1, ensure_ascii=False) + "\n", encoding="utf-8"
    )
    for line in said:
        print(line)
    print(
        f"lambda.csv, pictures.png (clean, damaged, rebuilt before, rebuilt after) and adapt.json are in {args.out}"
    )


def trace_rows(run: Watched) -> list[dict[str, object]]:
    """One row a step and layer: λ, R and the share of zero codes."""
    return [
        {"step": t, "layer": name, "lambda": float(run.threshold[t, k]), "error": float(run.error[t, k]), "sparsity": float(run.sparsity[t, k])}
        for t in range(len(run.threshold))
        for k, name in enumerate(run.names)
    ]  # fmt: skip


def sheet(run: Watched, enlarge: int = 3) -> np.ndarray:
    """Pictures beside one another, a row each: clean, damaged, rebuilt at the trained λ, rebuilt at the adapted one. `(H, W, 3)` uint8."""
    columns = (run.untouched.images, run.before.images, run.before.reconstruction, run.after.reconstruction)
    rows = [np.concatenate([column[i] for column in columns], 1) for i in range(len(columns[0]))]
    return np.concatenate(rows, 0).repeat(enlarge, 0).repeat(enlarge, 1)


def facts(run: Watched) -> dict[str, Any]:
    """Settings and figures of a live run, JSON-able; what is not known is None."""

    def known(value: float) -> float | None:
        return float(value) if np.isfinite(value) else None

    return {
        "network": run.key,
        "corruption": run.corruption,
        "severity": run.severity,
        "seed": run.seed,
        "settings": asdict(run.settings),
        "seen": run.seen,
        "held_back": len(run.clean) - run.seen,
        "layers": list(run.names),
        "trained": run.threshold[0].tolist(),
        "adapted": run.threshold[-1].tolist(),
        "stopped": dict(run.stopped),
        "answers": {way: {"right": known(a.right), "same": known(a.same)} for way, a in run.answers.items()},
        "seconds": round(run.seconds, 2),
    }
