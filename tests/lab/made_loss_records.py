"""Small made-up records of losses: truth drawn from a network's own probabilities, so that every figure follows, and rows of the three tables."""

from __future__ import annotations

from functools import lru_cache
from typing import Any

import numpy as np

from core.lab.margin_measure import EDGES
from core.lab.margin_record import LossRecord
from core.lab.margin_sets import CLASSES
from core.margin.reliability import tabulate_scopes

LOSSES = ("CE", "LS", "SVLS", "focal", "ECP", "margin", "CE + T")
BOLD = {"CE": 2.5, "LS": 0.7, "SVLS": 2.0, "focal": 0.8, "ECP": 1.3, "margin": 1.0, "CE + T": 1.0}
"""What a calibrated network's logits are multiplied by: above 1 is too sure, below 1 too shy."""

FIGURES = (
    ("dice", 0.8),
    ("hd95", 6.0),
    ("ece_fg", 0.09),
    ("cece_fg", 0.05),
    ("ece_all", 0.06),
    ("cece_all", 0.03),
)


@lru_cache(maxsize=64)
def record(
    loss: str, data: str = "phantom", images: int = 12, side: int = 24, bold: float | None = None
) -> LossRecord:
    """One loss: truth drawn from a calibrated network's probabilities, then its logits multiplied."""
    rng = np.random.default_rng(7)
    k, names = len(CLASSES[data]), tuple(f"{data}-{30_000 + i}" for i in range(images))
    tables: dict[str, list[Any]] = {"foreground": [], "all": []}
    far = np.zeros((images, len(EDGES) - 1), np.uint32)
    for i in range(images):
        logits = rng.normal(size=(k, side, side)) * 1.8
        p = np.exp(logits) / np.exp(logits).sum(0)
        truth = (rng.random((side, side)) > p.cumsum(0)).sum(0).clip(0, k - 1)
        logits = logits * (BOLD[loss] if bold is None else bold)
        for scope, table in tabulate_scopes(logits, truth).items():
            tables[scope].append(table)
        distance = np.sort(logits.max(0) - logits, 0)[1:]
        at = np.minimum((distance.ravel() * 2).astype(int), len(EDGES) - 2)
        far[i] = np.bincount(at, minlength=len(EDGES) - 1)
    return LossRecord(
        data=data,
        loss=loss,
        margin=10.0 if loss == "margin" else None,
        names=names,
        reliability={scope: tuple(t) for scope, t in tables.items()},
        distances=far,
        distances_right=far,
        edges=EDGES,
        dice=np.linspace(0.4, 0.9, images),
        temperature=2.5 if loss == "CE + T" else 1.0,
    )


def records(data: str = "phantom", folder: Any = None) -> dict[str, LossRecord]:
    """All losses of a set; spatial smoothing for phantoms only."""
    return {loss: record(loss, data) for loss in LOSSES if loss != "SVLS" or data == "phantom"}


def table(folder: Any = None) -> tuple[dict[str, Any], ...]:
    """Rows of all losses on two sets."""
    rows = []
    for data in ("skin", "polyp"):
        for i, loss in enumerate(x for x in LOSSES if x != "SVLS"):
            row: dict[str, Any] = {
                "data": data,
                "loss": loss,
                "margin": 10.0 if loss == "margin" else None,
                "seeds": 3,
            }
            for key, start in FIGURES:
                row |= {
                    key: start * (1 - 0.03 * i),
                    f"{key}_sd": float("nan") if loss == "ECP" else start * 0.05,
                }
            rows.append(row)
    return tuple(rows)


def choices(folder: Any = None) -> tuple[dict[str, Any], ...]:
    """Four margins tried on a set, the third one chosen."""
    return tuple(
        {
            "data": "skin",
            "margin": m,
            "dice": 0.8,
            "ece_fg": 0.1 - 0.01 * i,
            "ece_all": 0.05,
            "chosen": m == 5.0,
        }
        for i, m in enumerate((0.0, 3.0, 5.0, 10.0))
    )


def bridge(folder: Any = None, slope: float = 1.0) -> tuple[dict[str, Any], ...]:
    """Gaps that rise with ECE (`slope` 1), fall with it (-1) or do not care (0)."""
    rows = []
    for data in ("skin", "polyp"):
        for alpha in (0.1, 0.2):
            for i, loss in enumerate(x for x in LOSSES if x != "SVLS"):
                ece = 0.06 - 0.006 * i
                moved = slope * 0.3 * ece + (0.0 if slope else 0.01 * (i * 7 % 5))
                for method, gap, area in (
                    ("CRC", 0.09 + moved, 0.2),
                    ("plug-in", 0.08 + moved, 0.21),
                    ("COAT", 0.07 + moved, 0.22),
                    ("oracle", 0.001, 0.15),
                    ("whole image", alpha, 1.0),
                ):
                    rows.append(
                        {"data": data, "loss": loss, "method": method, "alpha": alpha, "gap": gap, "gap_sd": 0.002}
                        | {"area": area, "area_sd": 0.003, "coverage": 1 - alpha, "coverage_sd": 0.004}
                        | {"ece_all": ece, "ece_fg": ece * 1.5, "ece_all_sd": 0.001, "ece_fg_sd": 0.002}
                    )  # fmt: skip
    return tuple(rows)
