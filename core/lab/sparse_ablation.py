"""The ablations as rows, from recorded runs: what follows the new images, how many of them, and K. A row that was not measured is absent."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

import numpy as np

from core.lab.sparse_names import SAMPLES, title_of, trained_of
from core.lab.sparse_record import SparseRecord
from core.lab.sparse_shelf import MEANS, accuracy_of
from core.settings.tacsc import ADAPTATIONS


def ablation(
    records: Mapping[str, SparseRecord], corruption: str = "noises", samples: int = SAMPLES
) -> tuple[dict[str, Any], ...]:
    """The four-way ablation, one row a network and way of adaptation.

    Args:
        records: Recorded runs by key.
        corruption: A corruption, `"noises"`, `"all"` or `"clean"`.
        samples: Images that adaptation saw.

    Returns:
        Rows with `key`, `model`, `title`, `iterations`, `adapt`, `accuracy` (mean over severities) and `points` (gain over none, in points).
    """
    rows = []
    for key, record in records.items():
        base = accuracy_of(record, corruption)
        for adapt in ADAPTATIONS:
            value = accuracy_of(record, corruption, adapt, samples)
            if math.isfinite(value):
                k = 0 if record.model == "resnet" else record.settings.iterations
                rows.append(
                    {
                        "key": key, "model": record.model, "title": title_of(record), "iterations": k, "adapt": adapt, "accuracy": value,
                        "points": 100 * (value - base),
                    }
                )  # fmt: skip
    return tuple(rows)


def by_samples(record: SparseRecord, corruption: str = "noises") -> tuple[dict[str, Any], ...]:
    """What more unlabelled images bring: rows with `adapt`, `samples`, `accuracy`; `"none"` stands once with 0 samples."""
    rows = []
    for adapt in ADAPTATIONS:
        for n in sorted({c.samples for c in record.cells if c.adapt == adapt}):
            value = accuracy_of(record, corruption, adapt, n)
            if math.isfinite(value):
                rows.append({"adapt": adapt, "samples": n, "accuracy": value})
    return tuple(rows)


def by_iterations(
    records: Mapping[str, SparseRecord], corruption: str = "noises", samples: int = SAMPLES
) -> tuple[dict[str, Any], ...]:
    """What K does to TA-CSC-18, one row a recorded K; of several runs with one K, the first.

    Rows hold `iterations`, `clean` (accuracy without adaptation), `threshold` (trained λ of the first layer), `adapted` (its mean
    over the cells), and accuracy under the corruption for `none`, `bn`, `lambda` and `both`; NaN where it was not measured.
    """
    rows: list[dict[str, Any]] = []
    for record in records.values():
        if record.model != "tacsc" or any(r["iterations"] == record.settings.iterations for r in rows):
            continue
        cells = [
            c
            for c in record.cells
            if c.adapt == "lambda"
            and c.samples == samples
            and c.corruption in MEANS.get(corruption, (corruption,))
        ]
        row: dict[str, Any] = {
            "iterations": record.settings.iterations,
            "clean": record.accuracy("clean", 0),
            "threshold": float(trained_of(record)[0]),
            "adapted": float(np.mean([c.threshold[0] for c in cells])) if cells else math.nan,
        }
        rows.append(row | {adapt: accuracy_of(record, corruption, adapt, samples) for adapt in ADAPTATIONS})
    return tuple(sorted(rows, key=lambda r: r["iterations"]))
