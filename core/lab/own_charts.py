"""The charts of a person's own study: the same figures as everywhere, fed from an `OwnStudy`, for the page and the report."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from core.lab.own import OwnStudy
from core.lab.own_words import rival_of
from core.lab.take_away import study_rows, trade_lines

if TYPE_CHECKING:
    from core.figures.altair_figure import Figure

ENOUGH_TO_REDRAW = 20
"""Images with a lesion in the pool from which on redrawn halves are shown."""


def strip_of(own: OwnStudy, picked: str | None = None) -> Figure:
    """Each test image's coverage under CRC and its rival."""
    from core.figures.strip import strip_chart

    split = own.split
    parts = np.full(len(own.pool), "test", dtype=object)
    parts[split.calibrating] = "calibration"
    pair = ("CRC", rival_of(split))
    return strip_chart(
        split.study.curves.names, [str(p) for p in parts], {m: split.coverage(m) for m in pair}, split.alpha, picked,
        show="test", area={m: split.evaluations[m].area for m in pair},
    )  # fmt: skip


def trade_of(own: OwnStudy) -> Figure:
    """Gap against area of all methods, *oracle* and *whole image* among them."""
    from core.figures.trade import gap_against_area

    return gap_against_area(study_rows(own.split), alpha=own.split.alpha, curves=trade_lines(own.split))


def redrawn_of(own: OwnStudy, draws: int = 1000) -> Figure | None:
    """Mean test coverage over redrawn halves; None where that says nothing (few images, a division of the person's own, another promise)."""
    from core.figures.spread import resample_histogram
    from core.lab.study import spread

    split, settings = own.split, own.settings
    if (
        int(split.study.curves.has_lesion.sum()) < ENOUGH_TO_REDRAW
        or own.comparison is not None
        or settings.promise != "on average"
    ):
        return None
    pair = ("CRC", rival_of(split))
    found = spread(
        split.study,
        split.alpha,
        split.seed,
        draws=draws,
        methods=pair,
        calibration_share=settings.calibration_share,
    )
    if any(np.isnan(v).any() for v in found.values()):
        return None
    return resample_histogram(found, split.alpha, {m: split.evaluations[m].coverage for m in pair})


def own_charts(own: OwnStudy) -> list[Figure]:
    """Strip, gap against area and, where it makes sense, the redrawn halves."""
    redrawn = redrawn_of(own)
    return [strip_of(own), trade_of(own), *([redrawn] if redrawn is not None else [])]
