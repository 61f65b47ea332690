"""One self-contained HTML file about a person's own calibration: promise, assumption, price, table with its anchors, charts, how to apply it.

It computes nothing new and asks no other server for anything. Names in it were chosen by strangers: the template escapes everything but
our own SVG. `report.py` is the same for the shipped studies.
"""

from __future__ import annotations

import json
from datetime import date as calendar
from typing import TYPE_CHECKING, Any

from core.lab.own import OwnStudy
from core.lab.own_charts import own_charts
from core.lab.own_file import calibration_of, library_version
from core.lab.own_python import python_lines
from core.lab.own_words import own_headline, own_price, own_table, rival_of
from core.lab.report import template

if TYPE_CHECKING:
    from core.figures.altair_figure import Figure

COLUMNS = (
    ("coverage", "coverage", "mean share of the lesion inside the set"),
    ("gap", "gap", "mean distance of an image's coverage from the promise, above and below alike"),
    ("shortfall", "shortfall", "mean of what an image lacks to the promise"),
    ("worst_5pct", "worst 5 %", "mean coverage of the worst twentieth of the images"),
    ("area", "set area", "mean share of the image that is marked: the price"),
    ("false_alarm_area", "false alarms", "mean marked share of images without a lesion"),
)


def own_report(own: OwnStudy, date: str | None = None, everything: bool = False) -> str:
    """The report as one HTML document.

    Args:
        own: A calibrated study of a person's own.
        date: Day of the report; today when None.
        everything: Whether the calibration file was made on the test images too.

    Returns:
        HTML text without scripts and without links to anything outside it.
    """
    content, _ = calibration_of(own, everything)
    shown = {
        k: v
        for k, v in content.items()
        if k not in ("images", "statistics", "warning", "rule", "alpha_knots")
    }
    facts = {
        "title": own_headline(own),
        "date": date or calendar.today().isoformat(),
        "own": own,
        "sentences": own.sentences,
        "price": own_price(own),
        "notes": (*own.prepared.maps.notes, *own.prepared.notes),
        "columns": COLUMNS,
        "rows": [
            {"method": str(r["method"])} | {k: _cell(r[k]) for k, _, _ in COLUMNS} for r in own_table(own)
        ],
        "charts": [_chart(c) for c in own_charts(own)],
        "grouped": own.grouped,
        "group_rows": [] if own.grouped is None else [_group(r) for r in own.grouped.rows],
        "code": python_lines(content, rival_of(own.split)),
        "settings": json.dumps(shown, indent=1, ensure_ascii=False),
        "version": library_version(),
    }
    text: str = template("own_report.html.j2").render(**facts)
    return text


def _cell(value: Any) -> str:
    return "–" if value is None or value != value else f"{float(value):.3f}"


def _group(row: dict[str, object]) -> dict[str, str]:
    numbers = {k: _cell(row[k]) for k in ("coverage_CRC", "coverage_by_group", "area_CRC", "area_by_group")}
    return {k: str(row[k]) for k in ("group", "calibration_images", "test_images")} | numbers


def _chart(chart: Figure) -> dict[str, str]:
    from core.figures.export import to_svg

    return {"svg": to_svg(chart, 720).decode(), "said": str(chart.to_dict()["description"])}
