"""One self-contained HTML file of everything a person asked and got: pictures, promise, price, table, charts, settings.

It computes nothing new: numbers come from a `Split` and from `Promise`s, charts from `core.figures`, words from both. The file asks no other
server for anything (pictures are data URLs, charts inline SVG, a content policy forbids the rest), reads on paper (A4) and on light or dark screens.
File names are written by strangers: the template escapes everything but our own SVG.
"""

from __future__ import annotations

import base64
import json
import platform
from collections.abc import Sequence
from datetime import date as calendar
from functools import lru_cache
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import TYPE_CHECKING, Any

from core.lab.domains import words_of
from core.lab.promise import Promise
from core.lab.study import NO_SHIFT, Split
from core.lab.take_away import (
    chart_rows,
    outlines_png,
    probability,
    promise_settings,
    study_rows,
    trade_lines,
)

if TYPE_CHECKING:
    import numpy as np

    from core.figures.altair_figure import Figure

HERE = Path(__file__).resolve().parent
PACKAGES = ("torch", "numpy", "segmentation-models-pytorch", "altair", "vl-convert-python")
COLUMNS = (
    ("coverage", "coverage", "mean share of the lesion inside the set"),
    ("gap", "gap", "mean distance of an image's coverage from the promise"),
    ("shortfall", "shortfall", "mean of what an image lacks to the promise"),
    ("worst_5pct", "worst 5 %", "mean coverage of the worst twentieth of the images"),
    ("area", "set area", "mean share of the image that is marked: the price"),
    (
        "gap_at_crc_area",
        "gap at CRC's area",
        "the gap when a common shift brings the mean area to CRC's; no promise",
    ),
    ("false_alarm_area", "false alarms", "mean marked share of images without a lesion"),
)


def html_report(
    split: Split,
    promises: Sequence[Promise],
    seed: int,
    *,
    title: str | None = None,
    date: str | None = None,
    spread: dict[str, np.ndarray] | None = None,
) -> str:
    """The report as one HTML document.

    Args:
        split: The study at one alpha and one draw.
        promises: Images in the order in which they are shown; may be empty.
        seed: The draw, as the person set it.
        title: Headline; made of the study's numbers when None.
        date: Day of the report in words or ISO; today when None.
        spread: Method -> `(S,)` test coverage over redrawn halves, for the histogram; left out when None.

    Returns:
        HTML text without scripts and without links to anything outside it.

    Raises:
        ValueError: A promise is about another model or another alpha than the split.
    """
    for p in promises:
        if p.model != split.study.name or abs(p.alpha - split.alpha) > 1e-9:
            raise ValueError(
                f"The image {p.name} was answered with the model {p.model} at alpha {p.alpha:g} and the study is {split.study.name} at "
                f"{split.alpha:g}. Bring both to the same settings."
            )
    facts = {
        "title": title or _headline(split),
        "date": date or calendar.today().isoformat(),
        "split": split,
        "guarantee": split.calibrations["CRC"].guarantee,
        "price": _price(split),
        "images": [_image(p) for p in promises],
        "charts": [_chart(c) for c in _charts(split, spread)],
        "columns": COLUMNS,
        "no_shift": NO_SHIFT,
        "warning": words_of(split.study.name).warning,
        "rows": _rows(split),
        "settings": json.dumps(_settings(split, promises, seed), indent=1, ensure_ascii=False),
        "versions": _versions(),
    }
    return template("report.html.j2").render(**facts)


def _headline(split: Split) -> str:
    from core.figures.frame import promised

    crc, coat = split.evaluations["CRC"], split.evaluations["COAT"]
    kept = "kept on average" if split.delta is None else f"with a confidence of {promised(split.delta)}"
    return (
        f"A promise of {promised(split.alpha)}, {kept}: CRC finds {_percent(crc.coverage)} of a lesion and COAT "
        f"{_percent(coat.coverage)}, over {crc.n} test images"
    )


def _price(split: Split) -> str:
    crc, coat = split.evaluations["CRC"], split.evaluations["COAT"]
    empty = (
        f" On the {crc.n_empty} images without a lesion they mark {_percent(crc.false_alarm_area)} and {_percent(coat.false_alarm_area)} in vain."
        if crc.n_empty
        else ""
    )
    return (
        f"It costs area: on the test images CRC marks {_percent(crc.area)} of the picture and COAT {_percent(coat.area)}. A single image lies on "
        f"average {100 * crc.gap:.1f} points from the promise under CRC and {100 * coat.gap:.1f} under COAT.{empty}"
    )


def _percent(share: float) -> str:
    from core.figures.frame import percent

    return percent(share)


def _charts(split: Split, spread: dict[str, np.ndarray] | None) -> list[Figure]:
    from core.figures.spread import resample_histogram
    from core.figures.strip import strip_chart, thresholds_chart
    from core.figures.trade import gap_against_area

    curves, pair = split.study.curves, ("CRC", "COAT")
    testing = set(split.testing.tolist())
    parts = ["test" if i in testing else "calibration" for i in range(len(curves))]
    coverage = {m: split.coverage(m) for m in pair}
    area = {m: split.evaluations[m].area for m in pair}
    lesion = (curves.lesion_size / curves.size).numpy()
    crc = float(split.tau("CRC")[0])
    charts = [
        strip_chart(curves.names, parts, coverage, split.alpha, show="test", area=area),
        thresholds_chart(
            curves.names,
            split.tau("COAT").numpy(),
            crc,
            lesion,
            crc_coverage=coverage["CRC"],
            parts=parts,
            show="test",
        ),
        gap_against_area(chart_rows(split), alpha=split.alpha, curves=trade_lines(split)),
    ]
    if spread:
        shown = {m: split.evaluations[m].coverage for m in pair}
        charts.append(resample_histogram({m: spread[m] for m in pair if m in spread}, split.alpha, shown))
    return charts


def _chart(chart: Figure) -> dict[str, str]:
    from core.figures.export import to_svg

    return {"svg": to_svg(chart, 720).decode(), "said": str(chart.to_dict()["description"])}


def _image(p: Promise) -> dict[str, Any]:
    from core.figures.curve import coverage_curve, curve_arrays

    marks = dict(p.tau) | ({"oracle": p.oracle_tau} if p.oracle_tau is not None and p.coverage else {})
    thresholds, coverage, area = curve_arrays(p.logits, p.mask, marks)
    held = (
        f"CRC's outline holds {_percent(p.coverage['CRC'])} of the lesion and COAT's {_percent(p.coverage['COAT'])}."
        if p.coverage
        else "How much of a lesion is inside is not known without its mask."
    )
    return {
        "name": p.name,
        "picture": "data:image/png;base64," + base64.b64encode(outlines_png(p)).decode(),
        "alt": f"{p.name} with the outlines of CRC (orange) and COAT (blue){', truth in white' if p.mask is not None else ''}. {held}",
        "sentences": p.sentences,
        "notes": p.notes,
        "chart": _chart(coverage_curve(thresholds, coverage, area, marks, p.alpha)),
        "rows": [
            {
                "method": m,
                "threshold": "whole image" if p.tau[m] == float("-inf") else f"{probability(p.tau[m]):.3g}",
                "area": _percent(p.area[m]),
                "coverage": _percent(p.coverage[m]) if p.coverage else "–",
                "missed": _percent(1 - p.coverage[m]) if p.coverage else "–",
            }
            for m in p.tau
        ],
    }


def _rows(split: Split) -> list[dict[str, str]]:
    def cell(value: Any) -> str:
        return "–" if value != value else f"{float(value):.3f}"

    return [
        {"method": str(r["method"])} | {key: cell(r[key]) for key, _, _ in COLUMNS} for r in study_rows(split)
    ]


def _settings(split: Split, promises: Sequence[Promise], seed: int) -> dict[str, Any]:
    return {
        "model": split.study.name,
        "alpha": split.alpha,
        "seed": seed,
        "delta": split.delta,
        "calibration_images": len(split.calibrating),
        "test_images": len(split.testing),
        "shift_logit": {m: (c.shift if c.feasible else None) for m, c in split.calibrations.items()},
        "images": [promise_settings(p, seed) for p in promises],
    }


def _versions() -> str:
    found = [f"Python {platform.python_version()}"]
    for package in PACKAGES:
        try:
            found.append(f"{package} {version(package)}")
        except PackageNotFoundError:
            continue
    return ", ".join(found)


@lru_cache(maxsize=4)
def template(name: str) -> Any:
    """A report's template in this folder; it escapes everything that is not marked safe, and a missing value is an error."""
    from jinja2 import Environment, FileSystemLoader, StrictUndefined

    room = Environment(
        loader=FileSystemLoader(HERE),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    return room.get_template(name)
