"""What a person carries home from one image: pictures, settings, and rows of a table, as bytes and plain
values.

It computes nothing new; the self-contained HTML report is in `report.py`.
"""

from __future__ import annotations

import csv
import io
import math
from typing import Any

import numpy as np

from core.figures.outlines import draw_outlines
from core.images import png_bytes, to_display
from core.lab.promise import Promise
from core.lab.study import NO_SHIFT, PROMISED, Split


def probability(tau: float) -> float:
    """A logit threshold as a probability; -inf is 0."""
    return 1 / (1 + math.exp(-tau)) if tau > -700 else 0.0


def promise_settings(p: Promise, seed: int = 0) -> dict[str, Any]:
    """Everything that was asked and answered of one image, as JSON-able values (logits and shares; null for an infinite threshold)."""
    return {
        "image": p.name,
        "model": p.model,
        "alpha": p.alpha,
        "seed": seed,
        "grid": list(p.logits.shape),
        "threshold_logit": {m: _finite(t) for m, t in p.tau.items()},
        "threshold_probability": {m: probability(t) for m, t in p.tau.items()},
        "set_area": p.area,
        "coverage": p.coverage,
        "oracle_threshold_logit": p.oracle_tau,
        "promise": list(p.sentences),
        "notes": list(p.notes),
    }


def _finite(x: float) -> float | None:
    return x if math.isfinite(x) else None


def outlines_png(p: Promise, methods: tuple[str, ...] = ("CRC", "COAT")) -> bytes:
    """The picture with the outlines of some methods (and the truth, where known) as PNG."""
    return png_bytes(to_display(draw_outlines(p.image, p.mask, {m: p.set_of(m) for m in methods})))


def set_png(p: Promise, method: str) -> bytes:
    """The set of one method as a black and white PNG of the grid's size."""
    return png_bytes(to_display(p.set_of(method)))


def image_rows(promises: list[Promise]) -> list[dict[str, object]]:
    """One row an image and method, for a CSV."""
    return [
        {
            "image": p.name,
            "model": p.model,
            "alpha": p.alpha,
            "method": m,
            "threshold_logit": p.tau[m],
            "threshold_probability": probability(p.tau[m]),
            "set_area": p.area[m],
            "coverage": p.coverage[m] if p.coverage else "",
            "false_negative_rate": 1 - p.coverage[m] if p.coverage else "",
        }
        for p in promises
        for m in p.tau
    ]


def study_rows(split: Split) -> list[dict[str, object]]:
    """The table of methods on one split, *oracle* and *whole image* included."""
    return [
        {
            "method": row,
            "alpha": split.alpha,
            "seed": split.seed,
            "test_images": e.n,
            "coverage": e.coverage,
            "gap": e.gap,
            "shortfall": e.shortfall,
            "worst_5pct": e.worst_5pct,
            "area": e.area,
            "gap_at_crc_area": split.trades[row].gap_at if row in split.trades else math.nan,
            "stretch": e.stretch,
            "precision": e.precision,
            "false_alarm_area": e.false_alarm_area,
        }
        for row, e in split.evaluations.items()
    ]


def chart_rows(split: Split) -> list[dict[str, object]]:
    """Rows of the table that have a mark of their own in charts: all but AA-CRC without a shift."""
    return [row for row in study_rows(split) if row["method"] != NO_SHIFT]


def trade_lines(split: Split) -> dict[str, tuple[np.ndarray, np.ndarray]]:
    """Method -> area and gap along one common extra shift, for the methods with a promise. The lines themselves carry none."""
    return {m: (t.area, t.gap) for m, t in split.trades.items() if m in PROMISED}


def pool_rows(split: Split) -> list[dict[str, object]]:
    """One row for each pool image: part, lesion size, and threshold, coverage and area under every method with a promise."""
    lesion = (split.study.curves.lesion_size / split.study.curves.size).numpy()
    calibrating = set(split.calibrating.tolist())
    methods = [m for m in PROMISED if m in split.calibrations]
    columns = {f"{what}_{m}": getattr(split, what)(m) for m in methods for what in ("coverage", "area")}
    columns |= {f"threshold_{m}": split.tau(m).numpy() for m in methods}
    rows: list[dict[str, object]] = []
    for i, name in enumerate(split.study.curves.names):
        row: dict[str, object] = {"image": name, "part": "calibration" if i in calibrating else "test"}
        row["lesion_area"] = float(lesion[i])
        rows.append(row | {k: float(v[i]) for k, v in columns.items()})
    return rows


def to_csv(rows: list[dict[str, object]]) -> bytes:
    """Rows of one shape as CSV with a header, UTF-8, numbers to six digits; NaN and text stay what they are.

    A cell that a spreadsheet would run as a formula gets a leading apostrophe.
    """
    text = io.StringIO()
    writer = csv.DictWriter(text, list(rows[0]), lineterminator="\r\n")
    writer.writeheader()
    for row in rows:
        writer.writerow({k: _cell(v) for k, v in row.items()})
    return text.getvalue().encode()


def _cell(value: object) -> object:
    if isinstance(value, float | np.floating):
        return f"{float(value):.6g}"
    if isinstance(value, str) and value[:1] in ("=", "+", "-", "@", "\t", "\r"):
        return "'" + value
    return value
