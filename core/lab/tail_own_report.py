"""One self-contained HTML file about a person's own classifier: headline, recalls, confusion matrix, spectrum, bound, what was read.

It computes nothing new and asks no other server for anything: bars and matrix are plain HTML. Names in it were chosen by strangers: the template
escapes everything.
"""

from __future__ import annotations

import json
from datetime import date as calendar
from typing import Any

import numpy as np

from core.lab.report import template
from core.lab.tail_own_measure import OwnAnswer
from core.lab.tail_own_words import (
    bound_sentence,
    chance_sentence,
    class_rows,
    facts,
    figure_rows,
    flow_rows,
    flow_sentence,
    headline,
    left_out_sentence,
    spectrum_sentence,
    survival_sentence,
)

CELLS = 24
"""Up to so many classes the matrix is drawn cell by cell."""

ROWS = 200
"""Classes in the table of recalls; of more, those with the lowest recall."""


def own_confusion_report(answer: OwnAnswer, date: str | None = None) -> str:
    """The report as one HTML document.

    Args:
        answer: What was measured.
        date: Day of the report; today when None.

    Returns:
        HTML text without scripts and without links to anything outside it.
    """
    everything = facts(answer)
    rows = class_rows(answer)
    if len(rows) > ROWS:
        rows = sorted(rows, key=lambda r: (r["recall"] != r["recall"], r["recall"]))[:ROWS]
    return str(
        template("tail_own_report.html.j2").render(
            title=headline(answer),
            date=date or calendar.today().isoformat(),
            order="from head to tail"
            if answer.counts is not None
            else "in the order in which they were brought",
            flow=flow_sentence(answer),
            survival=survival_sentence(answer),
            chance=chance_sentence(answer),
            left_out=left_out_sentence(answer),
            spectrum=spectrum_sentence(answer),
            bound=bound_sentence(answer),
            figures=[(name, _cell(value), means) for name, value, means in figure_rows(answer)],
            classes=[_shown(r, answer) for r in rows],
            fewer=len(answer.classes) - len(rows),
            trained=answer.counts is not None,
            learned=answer.train is not None,
            cells=_cells(answer),
            names=answer.classes,
            flows=[{k: _cell(v) for k, v in r.items()} for r in flow_rows(answer, 12)],
            values=_values(answer),
            notes=answer.own.notes,
            problems=answer.own.problems,
            version=everything["library"],
            settings=json.dumps(everything["settings"], indent=1, ensure_ascii=False),
        )
    )


def _cell(value: object) -> str:
    if isinstance(value, float):
        if value != value:
            return "–"
        return "∞" if value == float("inf") else f"{value:.3f}"
    return f"{value:,}" if isinstance(value, int) else str(value)


def _share(value: float) -> str:
    return "–" if value != value else f"{100 * value:.1f}\u00a0%"


def _shown(row: dict[str, Any], answer: OwnAnswer) -> dict[str, Any]:
    """A row of the table of classes; widths of bars are per cent."""
    known = row["recall"] == row["recall"]
    low, high = row["recall_low"], row["recall_high"]
    return {
        "name": row["class"],
        "worst": row["class"] == answer.classes[answer.worst],
        "trained": "–" if row["trained_on"] != row["trained_on"] else f"{row['trained_on']:,.0f}",
        "samples": "–" if row["test_samples"] != row["test_samples"] else f"{row['test_samples']:,.0f}",
        "recall": _share(row["recall"]) if known else "no sample",
        "interval": "" if low != low else f"{_share(low)} to {_share(high)}",
        "width": f"{100 * row['recall']:.1f}" if known else "0",
        "train": _share(row["train_recall"]),
        "train_width": "0"
        if row["train_recall"] != row["train_recall"]
        else f"{100 * row['train_recall']:.1f}",
        "called": f"{row['most_called']} ({_share(row['most_called_rate'])})" if row["most_called"] else "–",
    }


def _cells(answer: OwnAnswer) -> list[list[dict[str, Any]]]:
    """Rows of the matrix as shares of the true class, with the strength of their colour; none for many classes."""
    if len(answer.classes) > CELLS:
        return []
    total = answer.test.sum(0)
    shares = np.divide(answer.test, total, out=np.zeros_like(answer.test), where=total > 0)
    top = float(answer.plain.rates.max()) or 1.0
    return [
        [
            {
                "text": f"{100 * shares[i, j]:.0f}"
                if total[j] and round(100 * shares[i, j])
                else ("" if total[j] else "–"),
                "own": i == j,
                "strength": f"{(shares[i, j] if i == j else shares[i, j] / top):.2f}",
            }
            for j in range(len(total))
        ]
        for i in range(len(total))
    ]


def _values(answer: OwnAnswer) -> list[dict[str, str]]:
    """The largest singular values with the widths of their bars."""
    values = answer.spectrum.values[:12]
    top = float(values[0]) or 1.0
    return [{"value": f"{v:.3f}", "width": f"{100 * float(v) / top:.1f}"} for v in values]
