"""What a person's own calibration says: headline, price, and rows for the table and the CSV. Computed, never fixed text."""

from __future__ import annotations

from typing import Any

import numpy as np

from core.conformal.confidence import images_needed_with_confidence
from core.conformal.words import images_needed, percent, promised
from core.lab.own import OwnStudy
from core.lab.own_apply import Applied
from core.lab.own_train import ENOUGH_TO_TRAIN
from core.lab.study import Split
from core.lab.take_away import probability, study_rows


def rival_of(split: Split) -> str:
    """The method that stands beside CRC in headline and charts: COAT where it was trained, else the plug-in threshold."""
    return "COAT" if "COAT" in split.calibrations else "plug-in"


def _named(method: str) -> str:
    return "the plug-in threshold" if method == "plug-in" else method


def own_headline(own: OwnStudy) -> str:
    """What the person's model may promise, with their numbers."""
    split, settings = own.split, own.settings
    crc = split.calibrations["CRC"]
    if not crc.feasible:
        need = (
            images_needed(split.alpha)
            if settings.promise == "on average"
            else images_needed_with_confidence(split.alpha, settings.delta)
        )
        few = "image is" if crc.n == 1 else "images are"
        return f"{crc.n} calibration {few} too few to promise {promised(split.alpha)}: mark the whole image, or bring {need - crc.n} more."
    other = rival_of(split)
    one, two = split.evaluations["CRC"], split.evaluations[other]
    images = f"{one.n} test image{'s' if one.n > 1 else ''}"
    return (
        f"Promised: {promised(split.alpha)}. On your {images} CRC finds {percent(one.coverage)} of a lesion and marks "
        f"{percent(one.area)} of the image; "
        f"{_named(other)} finds {percent(two.coverage)} and marks {percent(two.area)}."
    )


def own_price(own: OwnStudy) -> str:
    """How even the service is, and what it costs, beside the two anchors."""
    split = own.split
    other = rival_of(split)
    one, two = split.evaluations["CRC"], split.evaluations[other]
    best = split.evaluations["oracle"].area
    alarms = (
        f" On the {one.n_empty} test image{'s' if one.n_empty > 1 else ''} without a lesion they mark {percent(one.false_alarm_area)} and "
        f"{percent(two.false_alarm_area)} in vain."
        if one.n_empty
        else ""
    )
    return (
        f"Taken singly, a test image lies {100 * one.gap:.0f} points from {promised(split.alpha)} under CRC and "
        f"{100 * two.gap:.0f} under {_named(other)}. The price is "
        f"area: {percent(one.area)} and {percent(two.area)} of an image, where {percent(best)} would do "
        "for somebody who knew the "
        f"truth.{alarms}"
    )


def training_offer(with_lesion: int, training: int) -> str:
    """What training AT and COAT would take and give."""
    return (
        f"You have {with_lesion} images with a lesion, enough (from {ENOUGH_TO_TRAIN} on) to train AT and COAT, which give each "
        "image a threshold of its own. "
        f"It takes {training} of your images away from calibration and test, and a minute or a few."
    )


def own_table(own: OwnStudy) -> list[dict[str, object]]:
    """The table of methods on the test images: those with a promise, CRC by group where a column was chosen, *oracle* and *whole image*."""
    rows = study_rows(own.split)
    if own.grouped is not None:
        e = own.grouped.evaluation
        figures = {k: getattr(e, k) for k in rows[0] if hasattr(e, k)}
        rows.insert(
            1,
            {k: float("nan") for k in rows[0]}
            | rows[0]
            | {"gap_at_crc_area": float("nan")}
            | figures
            | {"method": own.grouped.method},
        )
    return rows


def own_rows(own: OwnStudy) -> list[dict[str, object]]:
    """One row an image, for a CSV: its part, its lesion, and threshold, coverage and area under every method."""
    split, maps = own.split, own.prepared.maps
    part = np.full(len(maps), "test", dtype=object)
    part[own.pool[split.calibrating]] = "calibration"
    if own.trained is not None:
        part[own.trained.training] = "training"
    place = {int(i): k for k, i in enumerate(own.pool)}
    columns: dict[str, np.ndarray] = {}
    for m in own.methods:
        columns |= {
            f"threshold_{m}": split.tau(m).numpy(),
            f"coverage_{m}": split.coverage(m),
            f"area_{m}": split.area(m),
        }
    share = (own.prepared.curves.lesion_size / own.prepared.curves.size).numpy()
    rows: list[dict[str, object]] = []
    for i, name in enumerate(maps.names):
        k = place.get(i)
        row: dict[str, object] = {"image": name, "part": part[i], "lesion_area": float(share[i])}
        row |= {c: values[i] for c, values in maps.groups.items()}
        if own.grouped is not None:
            row["group"] = own.grouped.values[k] if k is not None else ""
        row |= {c: float("nan") if k is None else float(values[k]) for c, values in columns.items()}
        rows.append(row)
    return rows


def applied_rows(applied: Applied) -> list[dict[str, object]]:
    """One row a map, for a CSV: threshold, area, and coverage where it is known, under every method."""
    rows: list[dict[str, object]] = []
    for i, name in enumerate(applied.maps.names):
        row: dict[str, Any] = {"image": name}
        if applied.groups is not None:
            row["group"] = applied.groups[i]
        for m, tau_hat in applied.tau_hat.items():
            tau = float(tau_hat[i] - applied.shift[m][i])
            row |= {
                f"threshold_logit_{m}": tau,
                f"threshold_probability_{m}": probability(tau),
                f"area_{m}": float(applied.area[m][i]),
            }
            if applied.coverage is not None:
                row[f"coverage_{m}"] = float(applied.coverage[m][i])
        rows.append(row)
    return rows
