"""`python -m core reliability`: can a person's own probabilities be believed? The same figures and diagrams as on the page, from the shell.

A question that only the person can answer ends the command with its text and the flag that answers it; nothing is guessed. `cli.py` is the command
line itself.
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from core.lab.cli_files import given_answers, given_files


def add_reliability(commands: Any) -> None:
    """Register `reliability`."""
    one = commands.add_parser(
        "reliability",
        help="logits or probabilities with labels in; reliability diagram, every metric and what temperature scaling would do out",
    )
    one.add_argument(
        "values", type=Path, metavar="FILE", help="NPZ, NIfTI, CSV, NPY, or a zip or folder of them, with labels in it or beside it"
    )  # fmt: skip
    one.add_argument("--labels", type=Path, help="file or folder of labels, where they lie apart")
    one.add_argument("--classes", help="names of the classes in the order of the values, divided by commas")
    unit = one.add_mutually_exclusive_group()
    unit.add_argument("--logits", action="store_true", help="the values are logits")
    unit.add_argument("--probabilities", action="store_true", help="the values are probabilities")
    one.add_argument(
        "--scope", choices=("all", "foreground"), default="all",
        help="pixels of the headline and the diagrams: all, or those whose truth is not class 0; tables hold both",
    )  # fmt: skip
    one.add_argument(
        "--seed", type=int, default=0, help="of the halves on which a temperature is fitted and shown"
    )
    one.add_argument(
        "--answer", action="append", default=[], metavar="QUESTION=CHOICE", help="answer another question about the files"
    )  # fmt: skip
    one.add_argument("--out", type=Path, required=True, help="folder for the results")


def reliability(args: argparse.Namespace) -> None:
    """Measure a person's own probabilities and write everything that can be taken away."""
    from core.figures.export import to_png, to_svg
    from core.lab.margin_own import read_values
    from core.lab.margin_own_charts import own_diagram, scaling_diagram
    from core.lab.margin_own_measure import measure
    from core.lab.margin_own_report import own_reliability_report
    from core.lab.margin_own_words import (
        dice_sentence,
        facts,
        headline,
        image_rows,
        metric_rows,
        overlap_rows,
        scaling_sentence,
        scope_words,
    )
    from core.lab.take_away import to_csv

    classes = tuple(c.strip() for c in args.classes.split(",")) if args.classes else ()
    own = read_values(_files(args.values), _files(args.labels), _answers(args), classes)
    for line in (*own.problems, *own.notes):
        print("  " + line)
    if own.questions:
        asked = own.questions[0]
        flags = "; ".join(f"--answer {asked.key}={_quoted(c.value)} ({c.label})" for c in asked.choices)
        raise ValueError(f"{asked.text} Say it with one of: {flags}.")
    last: list[str] = []

    def step(done: int, total: int, facts: Any) -> None:
        if facts["stage"] not in last:
            last.append(facts["stage"])
            print(f"  {facts['stage']}", flush=True)

    found = measure(own, args.seed, step)
    args.out.mkdir(parents=True, exist_ok=True)
    (args.out / "metrics.csv").write_bytes(to_csv(metric_rows(found)))
    (args.out / "images.csv").write_bytes(to_csv(image_rows(found)))
    (args.out / "reliability.json").write_text(
        json.dumps(facts(found), indent=1, allow_nan=False) + "\n", encoding="utf-8"
    )
    (args.out / "report.html").write_text(own_reliability_report(found, args.scope), encoding="utf-8")
    written = ["reliability.json", "metrics.csv", "images.csv", "report.html"]
    if overlap := overlap_rows(found):
        (args.out / "overlap.csv").write_bytes(to_csv(overlap))
        written.append("overlap.csv")
    charts = {"reliability": own_diagram} if found.whole.pooled(args.scope).pixels else {}
    if found.scaling is not None and found.scaling.before.pooled(args.scope).pixels:
        charts["temperature"] = scaling_diagram
    for stem, draw in charts.items():
        chart = draw(found, args.scope)
        (args.out / f"{stem}.svg").write_bytes(to_svg(chart))
        (args.out / f"{stem}.png").write_bytes(to_png(chart))
        written += [f"{stem}.svg", f"{stem}.png"]
    for line in (
        headline(found, args.scope),
        scaling_sentence(found, args.scope),
        dice_sentence(found),
        *found.notes,
    ):
        if line:
            print(line)
    for scope in ("all", "foreground"):
        print(f"  {scope_words(found, scope)}:")
        for row in found.whole.figures(scope):
            mean = (
                ""
                if own.rows and len(own) == 1
                else f"  mean over {row['images']} images {_cell(row['mean_over_images'])}"
            )
            print(f"    {row['metric']:<14} pooled {_cell(row['pooled'])}{mean}")
    print(f"{', '.join(written[:-1])} and {written[-1]} are in {args.out}")


def _cell(value: float) -> str:
    return "–" if value != value else f"{value:.4f}"


def _quoted(value: str) -> str:
    return f'"{value}"' if " " in value else value


def _answers(args: argparse.Namespace) -> dict[str, str]:
    answers = given_answers(args.answer, "nan=ignore")
    if args.logits or args.probabilities:
        answers["scale"] = "logits" if args.logits else "probabilities"
    return answers


def _files(path: Path | None) -> Iterator[tuple[str, bytes]]:
    from core.lab.margin_own_files import OWN_LIMITS

    return given_files(path, OWN_LIMITS, "is empty. Put values and labels into it.")
