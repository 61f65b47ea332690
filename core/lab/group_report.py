"""Does every group get its share? CRC and COAT group by group, with one shift for all and with one shift a group.

A table for the coverage page. The promise group by group is `core.conformal.groups`'; columns come from `pool_groups.py`. Control here is on average,
whatever the page promises of the whole.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np
import torch

from core.conformal import Evaluation, calibrate, evaluate, images_needed
from core.conformal.control import subset_flags
from core.conformal.groups import GroupCalibration, calibrate_groups
from core.conformal.words import percent, promised
from core.lab.pool_groups import Column
from core.lab.study import Split, table_of

BASES = ("CRC", "COAT")
BY_GROUP = "{} by group"


@dataclass(frozen=True)
class GroupRow:
    """One method on the test images of one group.

    Attributes:
        group: Name of the group.
        calibrating: Calibration images with a lesion in it.
        testing: Test images with a lesion in it.
        method: `"CRC"`, `"CRC by group"`, `"COAT"`, `"COAT by group"`, `"oracle"` or `"whole image"`.
        coverage: Mean share of the lesion inside; NaN without test images.
        gap: Mean distance from 1 - alpha; NaN without test images.
        area: Mean marked share of the image; NaN without test images.
        whole: Whether the group is too small for anything but the whole image.
    """

    group: str
    calibrating: int
    testing: int
    method: str
    coverage: float
    gap: float
    area: float
    whole: bool


@dataclass(frozen=True)
class GroupReport:
    """What one column says of a split.

    Attributes:
        column: The column.
        alpha: Share that may be missed.
        rows: All groups in the column's order, each with every method.
        promise: What one shift a group promises, in words; empty for a column that may not calibrate.
        small: Groups that get the whole image.
    """

    column: Column
    alpha: float
    rows: tuple[GroupRow, ...]
    promise: str
    small: tuple[str, ...]

    def of(self, method: str) -> list[GroupRow]:
        """The rows of one method that have test images, in the order of the groups."""
        return [r for r in self.rows if r.method == method and r.testing]


def group_report(split: Split, column: Column) -> GroupReport:
    """Calibrate and measure group by group.

    Args:
        split: A draw; its calibration images calibrate each group.
        column: One of `pool_groups.columns_of(split.study)`. One that only the truth knows is reported on and calibrates nothing.

    Raises:
        ValueError: The column is about another pool.
    """
    study, curves, alpha = split.study, split.study.curves, split.alpha
    if len(column.values) != len(curves):
        raise ValueError(
            f"The column {column.name} has {len(column.values)} values and the pool {len(curves)} images."
        )
    shifts, by_group = _shifts(split, column)
    values = np.array(column.values)
    lesion, tested = curves.has_lesion, subset_flags(len(curves), split.testing)
    calibrated = subset_flags(len(curves), split.calibrating)
    rows = []
    for group in column.order:
        mine = torch.from_numpy(values == group)
        n, m = int((mine & calibrated & lesion).sum()), int((mine & tested & lesion).sum())
        for method, shift in shifts.items():
            base = method.split(" ")[0] if method not in ("oracle", "whole image") else method
            e = evaluate(curves, study.tau_hat(base, alpha), shift, alpha, mine & tested) if m else None
            whole = method == BY_GROUP.format(base) and n < images_needed(alpha)
            rows.append(GroupRow(group, n, m, method, *_figures(e), whole))
    small = tuple(dict.fromkeys(r.group for r in rows if r.whole))
    return GroupReport(column, alpha, tuple(rows), by_group.guarantee if by_group else "", small)


def _shifts(split: Split, column: Column) -> tuple[dict[str, torch.Tensor], GroupCalibration | None]:
    """Row -> each image's shift `(N,)`, in the order of the table, and CRC's calibration by group."""
    study, alpha, n = split.study, split.alpha, len(split.study.curves)
    shifts, first = {}, None
    for m in BASES:
        tau_hat, table = study.tau_hat(m, alpha), table_of(study, m, alpha)
        one = calibrate(study.curves, tau_hat, alpha, split.calibrating, m, table).shift
        shifts[m] = torch.full((n,), one)
        if column.known:
            made = calibrate_groups(study.curves, tau_hat, alpha, column.values, split.calibrating, m, table)
            shifts[BY_GROUP.format(m)] = made.shifts(column.values)
            first = first or made
    return shifts | {"oracle": torch.zeros(n), "whole image": torch.full((n,), torch.inf)}, first


def _figures(e: Evaluation | None) -> tuple[float, float, float]:
    return (e.coverage, e.gap, e.area) if e else (float("nan"),) * 3


def one_shift_sentence(report: GroupReport) -> str:
    """What one shift for all does to the groups, in words."""
    low, high = _ends(report.of("CRC"))
    coat_low, coat_high = _ends(report.of("COAT"))
    return (
        f"With one shift for all, {promised(report.alpha)} is promised over all groups together and to none of them. Under CRC the "
        f"{report.column.name} with the lowest coverage is {_group(low)} and with the highest {_group(high)}; under COAT {_group(coat_low)} and "
        f"{_group(coat_high)}."
    )


def by_group_sentence(report: GroupReport) -> str:
    """What one shift a group promises, what it does, and which groups are too small."""
    rows = [r for r in report.of(BY_GROUP.format("CRC")) if not r.whole]
    done = ""
    if rows:
        low, high = _ends(rows)
        done = f" Here CRC by group reaches from {_group(low)} to {_group(high)}; with few images in a group that is a rough figure."
    small = ""
    if report.small:
        few = "A group" if len(report.small) == 1 else f"{len(report.small)} groups"
        small = f" {few} with fewer than {images_needed(report.alpha)} calibration images can only be given the whole image, which costs everything."
    return f"{report.promise}{done}{small}"


def _ends(rows: Iterable[GroupRow]) -> tuple[GroupRow, GroupRow]:
    ordered = sorted(rows, key=lambda r: r.coverage)
    return ordered[0], ordered[-1]


def _group(row: GroupRow) -> str:
    images = f"{row.testing} test image{'' if row.testing == 1 else 's'}"
    return f"{row.group} ({percent(row.coverage)} of {images})"
