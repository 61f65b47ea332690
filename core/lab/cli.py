"""The library from the shell: `python -m core predict IMAGE --out DIR` and `python -m core study NAME`.

Errors that a person can mend are one sentence on standard error and exit code 2; anything else keeps its
traceback, for it is a bug.
"""

from __future__ import annotations

import argparse
import json
import sys
from pathlib import Path

from core.settings import CoverageSettings, knobs


def parser() -> argparse.ArgumentParser:
    """The command line as a parser."""
    table = knobs(CoverageSettings)
    root = argparse.ArgumentParser("python -m core", description="Plumbline from the shell.")
    commands = root.add_subparsers(dest="command", required=True)

    one = commands.add_parser(
        "predict", help="outlines, thresholds and areas for one image (or each slice or file in it)"
    )
    one.add_argument("image", type=Path, help="PNG, JPEG, TIFF, DICOM, NIfTI, or a zip of them")
    one.add_argument("--mask", type=Path, help="truth of the same size: 0 is background")
    one.add_argument("--alpha", type=float, default=table["alpha"].default, help=table["alpha"].help)
    one.add_argument("--model", choices=table["model"].choices, default="polyp", help=table["model"].help)
    one.add_argument("--seed", type=int, default=table["seed"].default, help=table["seed"].help)
    one.add_argument(
        "--slice", type=int, default=None, help="which slice of a volume, from 0; the middle one when absent"
    )
    one.add_argument("--out", type=Path, required=True, help="folder for the results")

    study = commands.add_parser(
        "study", help="make a study anew: base network, thresholds, score table (hours on a CPU)"
    )
    study.add_argument("name", choices=table["model"].choices)
    study.add_argument("--data", type=Path, help="folder of the real data set (images/, masks/)")
    study.add_argument(
        "--work",
        type=Path,
        default=Path(".work"),
        help="folder for the training state; a stopped run goes on",
    )
    study.add_argument(
        "--out", type=Path, default=None, help="where results go; the project's assets when absent"
    )
    study.add_argument("--epochs", type=int, help="epochs of the base network")
    study.add_argument("--minutes", type=float, help="stop training the base network after so many minutes")
    return root


def predict(args: argparse.Namespace) -> None:
    """Write outlines, sets and numbers of an image into a folder; print the promise."""
    from core.images import BadImage, read, read_mask, to_rgb
    from core.lab.promise import outline
    from core.lab.take_away import outlines_png, promise_settings, set_png

    pictures = read(args.image)
    if args.mask is not None and len(pictures) > 1:
        raise BadImage(
            f"{args.image.name} holds {len(pictures)} pictures and --mask belongs to one. Give one picture with its mask."
        )
    args.out.mkdir(parents=True, exist_ok=True)
    for picture in pictures:
        slices = len(picture.pixels)
        k = slices // 2 if args.slice is None else args.slice
        if not 0 <= k < slices:
            raise BadImage(f"{picture.name} has {slices} slices, numbered from 0; there is no slice {k}.")
        rgb = to_rgb(picture, k)
        mask, notes = None, list(picture.notes)
        if args.mask is not None:
            truth = read_mask(args.mask, shape=rgb.shape[:2], slice_index=k)
            mask, notes = truth.array, notes + list(truth.notes)
        p = outline(rgb, mask, alpha=args.alpha, model=args.model, seed=args.seed, name=picture.name)
        stem = Path(picture.name.replace("/", "_")).name.split(".")[0] + (f"-slice{k}" if slices > 1 else "")
        (args.out / f"{stem}-outlines.png").write_bytes(outlines_png(p))
        for method in ("CRC", "COAT"):
            (args.out / f"{stem}-{method.lower()}-set.png").write_bytes(set_png(p, method))
        facts = promise_settings(p, args.seed) | {"slice": k, "reading": notes}
        (args.out / f"{stem}.json").write_text(json.dumps(facts, indent=1) + "\n")
        print(f"{picture.name}: {stem}-outlines.png and {stem}.json in {args.out}")
        for line in (*p.sentences, *p.notes, *notes):
            print("  " + line)


def study(args: argparse.Namespace) -> None:
    """Make a study."""
    from core.lab.make import make_study
    from core.nets.weights import ASSETS

    make_study(
        args.name,
        args.data,
        args.work,
        args.out or ASSETS,
        lambda line: print(line, flush=True),
        args.epochs,
        args.minutes,
    )


def main(argv: list[str] | None = None) -> int:
    """Run a command; returns the exit code."""
    args = parser().parse_args(argv)
    try:
        {"predict": predict, "study": study}[args.command](args)
    except (ValueError, FileNotFoundError) as error:
        print(str(error), file=sys.stderr)
        return 2
    return 0
