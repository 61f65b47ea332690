"""What `coverage --all --record` writes: the figures as JSON, and a table a person can read with its card, its targets and what was missed.

No figure is made here. Neither file holds a date, a path or a time that depends on the machine, so that running the command again gives the same.
"""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

NAME = "coverage-all"
COMMAND = "python -m benchmarks coverage --all --record"

TARGETS: tuple[tuple[str, str, str, Callable[[float], bool]], ...] = (
    ("cells_below_crc", "cells in which COAT's gap is below CRC's", "at least 22", lambda v: v >= 22),
    (
        "cells_not_above_at",
        "cells in which COAT's gap is at most one paired standard error above AT's",
        "at least 18",
        lambda v: v >= 18,
    ),
    ("gap_ratio", "COAT's gap over CRC's, mean over cells", "at most 0.82", lambda v: v <= 0.82),
    ("area_ratio", "COAT's area over CRC's, mean over cells", "at most 1.10", lambda v: v <= 1.10),
    ("cells_under_covered", "cells in which a method under-covers", "0", lambda v: v == 0),
    (
        "cells_lowest_without_plug_in",
        "aim, as in the paper: COAT lowest of CRC, AA-CRC, AT and COAT",
        "20",
        lambda v: v >= 20,
    ),
    ("cells_lowest", "COAT lowest, the plug-in threshold among the others", "none set", lambda v: True),
    ("gap_ratio", "aim, as in the paper: COAT's gap over CRC's", "0.70", lambda v: v <= 0.70),
)
"""Key, words, what was wanted, whether a value reaches it."""

DEFINITIONS = """\
- *Gap*: mean over test images of |coverage − (1 − α)|, mean ± standard deviation over the re-splits. It can be bought with area, so area stands
  beside it, and *at CRC's area* is the gap after one common shift that gives a method CRC's mean area; no promise stands behind that shift.
- *Whole image* marks everything and has the gap α; *oracle* knows the mask. Neither is a method.
- *AA-CRC*: half of the calibration images sets its rule, the other half the shift that carries the promise. *No shift*: all of them set the rule,
  and nothing is promised for the next image.
- *Lowest*: COAT's gap is not above that of CRC, AA-CRC, plug-in and AT. The paper does not know the plug-in threshold.
- *Not above AT*: at most one paired standard error above AT's gap. For each image, the mean over the splits that tested it of the difference of
  the two misses |coverage − (1 − α)|; their standard deviation over images, divided by the square root of the number of images. (Frames of one
  fire video resemble one another; there it is too small, which makes the test stricter.)
- *Under-covered*: the mean coverage of CRC, plug-in, AT or COAT over the many re-splits lies more than 3 standard errors below 1 − α.
- The promise is about images drawn like the pool's. For fire the pool is re-split by frame: further frames of the same videos. The last table
  calibrates on some videos and tests on others; nothing is promised there."""


def write_record(folder: Path, result: dict[str, Any]) -> list[Path]:
    """Write the two files.

    Args:
        folder: `assets/results`.
        result: What the benchmark found, with the common keys.
    """
    kept = {k: v for k, v in result.items() if k not in ("seconds", "device")}
    kept["settings"] = {
        k: result["settings"][k]
        for k in ("splits", "draws", "seed", "calibration_share")
        if k in result["settings"]
    }
    kept["command"] = COMMAND
    texts = {
        ".json": json.dumps(kept, indent=1, ensure_ascii=False, allow_nan=False) + "\n",
        ".md": markdown(kept),
    }
    paths = []
    for end, text in texts.items():
        path = folder / f"{NAME}{end}"
        part = path.with_name(path.name + ".part")
        part.write_text(text, encoding="utf-8")
        os.replace(part, path)
        paths.append(path)
    return paths


def number(value: float | None, digits: int = 3) -> str:
    """A figure as text; a dash where there is none."""
    return "–" if value is None or value != value else f"{value:.{digits}f}"


def grid(keys: list[str], lines: list[list[str]]) -> list[str]:
    """A Markdown table."""
    return [
        "| " + " | ".join(keys) + " |",
        "|" + "---|" * len(keys),
        *("| " + " | ".join(x) + " |" for x in lines),
        "",
    ]


def markdown(result: dict[str, Any]) -> str:
    """The card: how it was made, what was reached and missed, the cells, what the words mean."""
    settings = result["settings"]
    made = ", ".join(f"{k} {v}" for k, v in result["versions"].items() if k in ("python", "torch", "numpy"))
    text = [
        "# Coverage in 24 cells",
        "",
        f"Made by `{COMMAND}` from the score tables and thresholds in `assets/scores`, no network run ({made}). "
        f"{settings['splits']} re-splits of each pool, a share of {settings['calibration_share']:g} calibrates; "
        f"{settings['draws']} re-splits for *under-covered*.",
        "",
        "## What was wanted and what was reached",
        "",
    ]
    lines = []
    for key, words, wanted, reached in TARGETS:
        value = result[key]
        shown = number(value) if isinstance(value, float) else f"{value} of {result['cells']}"
        lines.append(
            [words, wanted, shown, "" if wanted == "none set" else "yes" if reached(value) else "**missed**"]
        )
    text += grid(["figure", "wanted", "reached", "met"], lines)
    text += missed(result)
    text += ["## Gaps, one line a cell", ""]
    methods = ["CRC", "AA-CRC", "AA-CRC, no shift", "plug-in", "AT", "COAT", "oracle", "whole image"]
    by = {(r["domain"], r["model"], r["alpha"], r["method"]): r for r in result["rows"]}
    cells = list(dict.fromkeys(key[:3] for key in by))
    promised = methods[:6]
    lines = []
    for cell in cells:
        rows = [by[(*cell, m)] for m in methods]
        best = min(r["gap"] for r in rows if r["method"] in promised and r["method"] != "AA-CRC, no shift")
        shown = [
            ("**{}**" if r["gap"] == best and r["method"] in promised else "{}").format(
                f"{number(r['gap'])} ± {number(r['gap_sd'])}" if r["method"] in promised else number(r["gap"])
            )
            for r in rows
        ]
        lines.append([cell[0], cell[1], f"{cell[2]:g}", *shown])
    text += grid(["data", "network", "α", *methods], lines)
    text += ["Bold: the smallest gap of the methods that carry a promise.", "", "## What the gaps cost", ""]
    for key, words in (
        ("area", "Mean share of the image in the set"),
        ("gap_at_crc_area", "Gap at CRC's area (no promise)"),
        ("coverage", "Mean coverage"),
        ("worst_5pct", "Mean coverage of the worst 5 % of images"),
    ):
        lines = [[c[0], c[1], f"{c[2]:g}", *(number(by[(*c, m)][key]) for m in methods)] for c in cells]
        text += [f"**{words}**", "", *grid(["data", "network", "α", *methods], lines)]
    if result["by_video"]:
        text += ["## Fire across videos, outside the counts", ""]
        lines = [
            [
                r["model"],
                f"{r['alpha']:g}",
                r["method"],
                *(number(r[k]) for k in ("by_frame", "by_video", "lowest", "highest", "below")),
            ]
            for r in result["by_video"]
        ]
        keys = [
            "network",
            "α",
            "method",
            "coverage by frame",
            "by video",
            "lowest half",
            "highest half",
            "halves below 1 − α",
        ]
        text += grid(keys, lines)
    text += ["## What the words mean", "", DEFINITIONS]
    return "\n".join(text) + "\n"


def missed(result: dict[str, Any]) -> list[str]:
    """The cells in which COAT is not what was hoped for, by name."""
    rows = result["table"]
    name = "{domain}, {model}, {alpha:g}".format_map
    kinds = (
        ("COAT's gap is not below CRC's", [r for r in rows if not r["COAT"] < r["CRC"]]),
        (
            "COAT's gap is more than one paired standard error above AT's",
            [r for r in rows if not r["not above AT"]],
        ),
        ("another method that promises has a smaller gap than COAT", [r for r in rows if not r["lowest"]]),
        (
            "marking the whole image has a smaller gap than COAT",
            [r for r in rows if r["whole image"] < r["COAT"]],
        ),
    )
    lines = [
        f"- {words}: {len(these)} ({'; '.join(name(r) for r in these)})" for words, these in kinds if these
    ]
    lines += [f"- cells missing, because their assets are not there: {result['cells_missing']}"] * bool(
        result["cells_missing"]
    )
    lines += [f"- under-covered: {', '.join(result['under_covered'])}"] * bool(result["under_covered"])
    return ["What this table does not show:", "", *lines, ""] if lines else []
