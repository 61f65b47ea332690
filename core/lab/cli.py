"""The library from the shell: `python -m core predict IMAGE --out DIR` and `python -m core study NAME`.

Errors that a person can mend are one sentence on standard error and exit code 2; anything else keeps its
traceback, for it is a bug.
"""

from __future__ import annotations

import argparse
import json
import re
import sys
from pathlib import Path, PurePath

from core.lab.cli_losses import add_losses, losses
from core.lab.cli_margin import add_reliability, reliability
from core.lab.cli_own import add_calibrate, add_with, calibrate, predict_with
from core.lab.cli_sparse import adapt, add_adapt, add_sparse, sparse
from core.lab.cli_tail import add_confusion, add_tail, confusion, tail
from core.lab.sources import NAMES
from core.settings import CoverageSettings, knobs


def _plain(help: str) -> str:
    """A help text as argparse wants it: its own sign for formats doubled."""
    return help.replace("%", "%%")


def parser() -> argparse.ArgumentParser:
    """The command line as a parser."""
    table = knobs(CoverageSettings)
    root = argparse.ArgumentParser("python -m core", description="Plumbline from the shell.")
    commands = root.add_subparsers(dest="command", required=True)

    one = commands.add_parser(
        "predict", help="outlines, thresholds and areas for one image (or each slice or file in it)"
    )
    one.add_argument(
        "image", type=Path, help="PNG, JPEG, TIFF, DICOM, NIfTI, or a zip of them; with --with: score maps"
    )
    one.add_argument("--mask", type=Path, help="truth of the same size: 0 is background")
    one.add_argument("--alpha", type=float, default=table["alpha"].default, help=_plain(table["alpha"].help))
    one.add_argument(
        "--model", choices=table["model"].choices, default="polyp", help=_plain(table["model"].help)
    )
    one.add_argument("--seed", type=int, default=table["seed"].default, help=_plain(table["seed"].help))
    one.add_argument(
        "--slice", type=int, default=None, help="which slice of a volume, from 0; the middle one when absent"
    )
    one.add_argument("--resize-mask", action="store_true", help="scale a mask of another size to its image")
    one.add_argument("--out", type=Path, required=True, help="folder for the results")
    add_with(one)
    add_calibrate(commands)

    study = commands.add_parser(
        "study", help="make a study anew: base network, thresholds, score table (hours on a CPU)"
    )
    study.add_argument("name", choices=NAMES, metavar="NAME", help="one of " + ", ".join(NAMES))
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

    grid = commands.add_parser(
        "temperatures", help="fit COAT at fixed temperatures and record what the page of T and alpha shows"
    )
    grid.add_argument("name", choices=NAMES, metavar="NAME", help="a study that is made")
    grid.add_argument("--data", type=Path, help="folder of the real data set (images/, masks/)")
    grid.add_argument(
        "--work", type=Path, default=Path(".work"), help="folder for finished parts; a stopped run goes on"
    )
    grid.add_argument(
        "--out", type=Path, default=None, help="where results go; the project's assets when absent"
    )
    add_losses(commands)
    add_reliability(commands)
    add_confusion(commands)
    add_tail(commands)
    add_adapt(commands)
    add_sparse(commands)
    return root


def predict(args: argparse.Namespace) -> None:
    """Write outlines, sets and numbers of every picture in a file into a folder; print the promise."""
    if args.calibration is not None:
        predict_with(args)
        return
    from core.images import BadImage, pair_masks, read, read_mask, to_rgb
    from core.images.pairs import mask_of_picture
    from core.lab.promise import outline
    from core.lab.take_away import outlines_png, promise_settings, set_png

    pairs = pair_masks(read(args.image))
    if args.mask is not None and len(pairs) > 1:
        raise BadImage(
            f"{args.image.name} holds {len(pairs)} pictures and --mask belongs to one. Give one picture with its mask, or put the masks "
            "into the same archive under the pictures' names."
        )
    args.out.mkdir(parents=True, exist_ok=True)
    taken: set[str] = set()
    for picture, mask_picture in pairs:
        slices = picture.slices
        k = slices // 2 if args.slice is None else args.slice
        if not 0 <= k < slices:
            raise BadImage(f"{picture.name} has {slices} slices, numbered from 0; there is no slice {k}.")
        rgb = to_rgb(picture, k)
        truth = None
        if args.mask is not None:
            truth = read_mask(args.mask, shape=rgb.shape[:2], slice_index=k, resize=args.resize_mask)
        elif mask_picture is not None:
            truth = mask_of_picture(mask_picture, rgb.shape[:2], k, args.resize_mask)
        notes = [*picture.notes, *(truth.notes if truth else ())]
        mask = truth.array if truth else None
        p = outline(rgb, mask, alpha=args.alpha, model=args.model, seed=args.seed, name=picture.name)
        stem = file_stem(picture.name, taken) + (f"-slice{k}" if slices > 1 else "")
        (args.out / f"{stem}-outlines.png").write_bytes(outlines_png(p))
        for method in ("CRC", "COAT"):
            (args.out / f"{stem}-{method.lower()}-set.png").write_bytes(set_png(p, method))
        facts = promise_settings(p, args.seed) | {"slice": k, "reading": notes}
        (args.out / f"{stem}.json").write_text(json.dumps(facts, indent=1) + "\n")
        print(f"{picture.name}: {stem}-outlines.png and {stem}.json in {args.out}")
        for line in (*p.sentences, *p.notes, *notes):
            print("  " + line)


def file_stem(name: str, taken: set[str]) -> str:
    """A name for result files that no other picture of this run has; it is added to `taken`."""
    inner = PurePath(name)
    base = re.sub(r"[^\w.-]+", "-", str(inner.with_name(inner.name.split(".")[0]))).strip("-") or "image"
    stem, k = base, 2
    while stem in taken:
        stem, k = f"{base}-{k}", k + 1
    taken.add(stem)
    return stem


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


def temperatures(args: argparse.Namespace) -> None:
    """Record COAT at fixed temperatures."""
    from core.lab.temperatures import record
    from core.nets.weights import ASSETS

    record(args.name, args.data, args.work, args.out or ASSETS, lambda line: print(line, flush=True))


def main(argv: list[str] | None = None) -> int:
    """Run a command; returns the exit code."""
    args = parser().parse_args(argv)
    try:
        run = {
            "predict": predict,
            "calibrate": calibrate,
            "study": study,
            "temperatures": temperatures,
            "losses": losses,
            "reliability": reliability,
            "confusion": confusion,
            "tail": tail,
            "adapt": adapt,
            "sparse": sparse,
        }
        run[args.command](args)
    except (ValueError, FileNotFoundError) as error:
        print(str(error), file=sys.stderr)
        return 2
    return 0
