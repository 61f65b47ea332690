"""`python -m core calibrate` and `python -m core predict --with`: a person's own model from the shell.

Maps may come as a zip, an NPZ, an NPY or a folder. A question that only the person can answer ends the command with its text and the
flag that answers it; nothing is guessed. `cli.py` is the command line itself.
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from core.lab.cli_files import given_answers
from core.settings import OwnSettings, knobs


def add_calibrate(commands: Any) -> None:
    """Register `calibrate`."""
    table = knobs(OwnSettings)
    one = commands.add_parser(
        "calibrate",
        help="calibrate a model of your own: score maps with masks in, calibration.json and a report out",
    )
    one.add_argument(
        "maps",
        type=Path,
        help="zip, NPZ or folder with maps/ and masks/ (images/ and groups.csv if you like), or maps alone",
    )
    _beside(one)
    one.add_argument(
        "--group", help='column of the CSV whose groups are calibrated one by one, or "predicted area"'
    )
    one.add_argument("--alpha", type=float, default=table["alpha"].default, help=_plain(table["alpha"].help))
    one.add_argument(
        "--delta", type=float, default=None, help="promise with confidence 1 - delta instead of on average"
    )
    one.add_argument("--seed", type=int, default=table["seed"].default, help=_plain(table["seed"].help))
    one.add_argument(
        "--no-training", action="store_true", help="do not train AT and COAT, however many images there are"
    )
    one.add_argument(
        "--all",
        action="store_true",
        help="calibrate the file on the test images too (the report stays with the test)",
    )
    _reading(one)
    one.add_argument("--out", type=Path, required=True, help="folder for the results")


def add_with(predict: argparse.ArgumentParser) -> None:
    """Give `predict` what it needs to apply a calibration of one's own."""
    predict.add_argument(
        "--with",
        dest="calibration",
        type=Path,
        help="apply this calibration.json to score maps instead of running a network on an image",
    )
    _beside(predict)
    _reading(predict)


def _plain(help: str) -> str:
    return help.replace("%", "%%")


def _beside(one: argparse.ArgumentParser) -> None:
    one.add_argument("--masks", type=Path, help="zip or folder of masks, where they lie apart")
    one.add_argument("--images", type=Path, help="zip or folder of images, where they lie apart")
    one.add_argument(
        "--groups", type=Path, help="CSV: first column the map's name, each other column a group"
    )


def _reading(one: argparse.ArgumentParser) -> None:
    unit = one.add_mutually_exclusive_group()
    unit.add_argument("--logits", action="store_true", help="the maps hold logits")
    unit.add_argument("--probabilities", action="store_true", help="the maps hold probabilities")
    one.add_argument("--foreground", help="mask value that is the lesion, or any")
    one.add_argument("--channel", help="channel of the maps that is the lesion, from 0")
    one.add_argument(
        "--answer",
        action="append",
        default=[],
        metavar="QUESTION=CHOICE",
        help="answer another question about the files",
    )


def _files(path: Path | None) -> Iterator[tuple[str, bytes]]:
    """(name, bytes) of a file, or of all files in a folder with their names in it."""
    from core.images import BadImage
    from core.images.maps_files import MAP_LIMITS

    if path is None:
        return
    if not path.exists():
        raise FileNotFoundError(f"There is no file or folder {path.name}. Check its name and where it lies.")
    if path.is_file():
        yield path.name, path.read_bytes()
        return
    found = sorted(p for p in path.rglob("*") if p.is_file() and not p.name.startswith("."))
    if not found:
        raise BadImage(f"The folder {path.name} is empty. Put maps/ and masks/ into it.")
    if len(found) > MAP_LIMITS.files:
        raise BadImage(
            f"The folder {path.name} holds {len(found):,} files; at most {MAP_LIMITS.files:,} are read (limit on files)."
        )
    for p in found:
        yield p.relative_to(path).as_posix(), p.read_bytes()


def _answers(args: argparse.Namespace) -> dict[str, str]:
    answers = given_answers(args.answer, "size=resize")
    if args.logits or args.probabilities:
        answers["scale"] = "logits" if args.logits else "probabilities"
    if args.foreground is not None:
        answers["foreground"] = args.foreground
    if args.channel is not None:
        answers["channel"] = args.channel
    return answers


def _maps(args: argparse.Namespace, maps: Path, known: dict[str, str]) -> Any:
    from core.images.maps import read_maps

    table = next(iter(_files(args.groups)), None)
    found = read_maps(
        _files(maps), _files(args.masks), _files(args.images), table, {**known, **_answers(args)}
    )
    for line in (*found.problems, *found.notes):
        print("  " + line)
    if found.questions:
        asked = found.questions[0]
        flags = "; ".join(f"--answer {asked.key}={_quoted(c.value)} ({c.label})" for c in asked.choices)
        raise ValueError(f"{asked.text} Say it with one of: {flags}.")
    return found


def _quoted(value: str) -> str:
    return f'"{value}"' if " " in value else value


def calibrate(args: argparse.Namespace) -> None:
    """Calibrate a person's own model and write everything that can be taken away."""
    from core.lab.own import calibrate_own
    from core.lab.own_file import calibration_of, write_calibration
    from core.lab.own_python import python_lines
    from core.lab.own_report import own_report
    from core.lab.own_words import own_headline, own_price, own_rows, own_table, rival_of
    from core.lab.take_away import to_csv

    settings = OwnSettings(
        alpha=args.alpha, seed=args.seed, promise="on average" if args.delta is None else "with confidence",
        delta=OwnSettings.delta if args.delta is None else args.delta, train="never" if args.no_training else OwnSettings.train,
    )  # fmt: skip
    maps = _maps(args, args.maps, {})
    last: list[str] = []

    def step(done: int, total: int, facts: dict[str, Any]) -> None:
        stage = str(facts.get("stage", ""))
        if stage not in last or (stage.startswith("Training") and done % 50 == 0):
            last.append(stage)
            print(f"  {stage} ({done} of {total})", flush=True)

    own = calibrate_own(maps, settings, args.group, step)
    path = write_calibration(own, args.out, args.all)
    content, _ = calibration_of(own, args.all)
    (args.out / "images.csv").write_bytes(to_csv(own_rows(own)))
    (args.out / "methods.csv").write_bytes(to_csv(own_table(own)))
    (args.out / "report.html").write_text(own_report(own, everything=args.all), encoding="utf-8")
    (args.out / "apply.py").write_text(python_lines(content, rival_of(own.split)), encoding="utf-8")
    for line in (own_headline(own), *own.sentences, own_price(own)):
        print(line)
    for row in own_table(own):
        print(
            f"  {row['method']:<14} coverage {row['coverage']:.3f}  gap {row['gap']:.3f}  set area {row['area']:.3f}"
        )
    if own.grouped is not None:
        print(own.grouped.calibration.guarantee)
    print(f"{path.name}, report.html, images.csv, methods.csv and apply.py are in {args.out}")


def predict_with(args: argparse.Namespace) -> None:
    """Apply a calibration to new maps: sets as PNG, thresholds and areas as CSV and JSON."""
    from core.images import png_bytes, to_display
    from core.lab.cli import file_stem
    from core.lab.own_apply import apply_own, load_own_members
    from core.lab.own_read import read_calibration
    from core.lab.own_words import applied_rows
    from core.lab.take_away import to_csv

    if args.mask is not None and args.masks is None:
        args.masks = args.mask
    calibration = read_calibration(args.calibration)
    members = load_own_members(calibration, args.calibration.parent)
    maps = _maps(args, args.image, calibration.reading)
    applied = apply_own(calibration, maps, members)
    args.out.mkdir(parents=True, exist_ok=True)
    shown = [m for m in ("CRC", "plug-in", "COAT", "CRC by group") if m in applied.tau_hat]
    taken: set[str] = set()
    for i, name in enumerate(maps.names):
        stem = file_stem(name, taken)
        for m in shown:
            (args.out / f"{stem}-{m.lower().replace(' ', '-')}-set.png").write_bytes(
                png_bytes(to_display(applied.set_of(i, m)))
            )
    (args.out / "predictions.csv").write_bytes(to_csv(applied_rows(applied)))
    facts = {
        "alpha": calibration.alpha,
        "sentences": list(applied.sentences),
        "alike": {
            "p_value": applied.comparison.p_value,
            "differs": applied.comparison.differs,
            "p_values": applied.comparison.p_values,
        },
        "notes": list(maps.notes),
    }
    (args.out / "predictions.json").write_text(
        json.dumps(facts, indent=1, ensure_ascii=False) + "\n", encoding="utf-8"
    )
    for line in applied.sentences:
        print(line)
    print(f"{len(maps)} maps: sets as PNG, predictions.csv and predictions.json in {args.out}")
