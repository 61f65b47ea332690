"""One self-contained HTML file about a person's own probabilities: headline, diagrams, all metrics, what a temperature does, what was read.

It computes nothing new and asks no other server for anything. Names in it were chosen by strangers: the template escapes everything but our own SVG.
"""

from __future__ import annotations

import json
from datetime import date as calendar
from typing import TYPE_CHECKING, Any

from core.lab.margin_own_charts import own_diagram, scaling_diagram
from core.lab.margin_own_measure import Measured
from core.lab.margin_own_words import (
    dice_sentence,
    facts,
    headline,
    overlap_rows,
    parts_of,
    scaling_sentence,
    scope_sentence,
    scope_words,
)
from core.lab.report import template
from core.margin.pixels import SCOPES

if TYPE_CHECKING:
    from core.figures.altair_figure import Figure

MEANS = (
    (
        "ECE",
        "mean over pixels of the distance between confidence and accuracy of their bin; 15 equal bins of the largest probability",
    ),
    ("classwise ECE", "the same for the probability of each class, mean over all classes, class 0 included"),
    ("ACE", "as classwise ECE, with bins that hold equally many pixels"),
    (
        "Brier score",
        "mean squared distance between the probabilities and the truth, summed over classes; lower is better",
    ),
    ("NLL", "mean of −log p of the true class, in nats; lower is better"),
)


def own_reliability_report(found: Measured, scope: str = "all", date: str | None = None) -> str:
    """The report as one HTML document.

    Args:
        found: What was measured.
        scope: "all" or "foreground", of the headline and the diagrams; tables hold both.
        date: Day of the report; today when None.

    Returns:
        HTML text without scripts and without links to anything outside it.
    """
    everything = facts(found)
    settings = {"settings": everything["settings"], "temperature": everything["temperature"]}
    charts = []
    if found.whole.pooled(scope).pixels:
        charts.append(_chart(own_diagram(found, scope)))
    scaled = []
    if found.scaling is not None and found.scaling.before.pooled(scope).pixels:
        scaled.append(_chart(scaling_diagram(found, scope)))
    return str(
        template("margin_own_report.html.j2").render(
            title=headline(found, scope),
            date=date or calendar.today().isoformat(),
            seed=found.seed,
            scope=scope_words(found, scope),
            scope_sentence=scope_sentence(scope),
            scaling=scaling_sentence(found, scope),
            dice=dice_sentence(found),
            charts=charts,
            scaled=scaled,
            tables=[_metrics(found, s) for s in sorted(SCOPES, key=lambda s: s != scope)],
            overlap=[{k: _cell(v) for k, v in row.items()} for row in overlap_rows(found)],
            means=MEANS,
            notes=(*found.own.notes, *found.notes),
            problems=found.own.problems,
            version=everything["library"],
            settings=json.dumps(settings, indent=1, ensure_ascii=False),
        )
    )


def _metrics(found: Measured, scope: str) -> dict[str, Any]:
    parts = {key: part.figures(scope) for key, part in parts_of(found).items()}
    rows = []
    for k, whole in enumerate(parts["whole"]):
        row = {
            "metric": whole["metric"],
            "pooled": _cell(whole["pooled"]),
            "mean": _cell(whole["mean_over_images"]),
            "sd": _cell(whole["sd_over_images"]),
        }
        for key in ("before", "after"):
            row[key] = _cell(parts[key][k]["pooled"]) if key in parts else "–"
        rows.append(row)
    first = parts["whole"][0]
    return {
        "scope": scope_words(found, scope),
        "rows": rows,
        **{k: first[k] for k in ("pixels", "images", "images_without")},
    }


def _cell(value: object) -> str:
    if isinstance(value, float):
        return "–" if value != value else f"{value:.4f}"
    return f"{value:,}" if isinstance(value, int) else str(value)


def _chart(chart: Figure) -> dict[str, str]:
    from core.figures.export import to_svg

    return {"svg": to_svg(chart, 720).decode()}
