"""Groups of a person's own images: columns of their CSV, numbers cut into thirds, and the predicted area, which needs no column.

A group is known without the mask. Cuts come from the images that train (D2) where there are some, else from calibration and test
together, which treats both alike. A column called *part* that says calibration and test is no group but the person's own division.
"""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
import torch

from core.conformal import Evaluation, evaluate
from core.conformal.groups import GroupCalibration, calibrate_groups
from core.conformal.words import percent
from core.images.maps import Maps
from core.lab.study import Split

AREA = "predicted area"
"""The group that is always there: the share of the image that the model itself expects to be lesion."""

METHOD = "CRC by group"

_PARTS = {
    "calibration": "calibration", "cal": "calibration", "calib": "calibration", "validation": "calibration", "val": "calibration",
    "test": "test", "new": "test", "training": "training", "train": "training", "d2": "training",
}  # fmt: skip


@dataclass(frozen=True, eq=False)
class Grouped:
    """CRC calibrated group by group, beside the plain one.

    Attributes:
        method: Its name in tables.
        column: What the groups are made of.
        cuts: `(2,)` numbers between which the groups lie, or None where the column names them.
        values: Group of each image of the pool.
        calibration: One shift a group, with the promise in words.
        evaluation: On the test images.
        rows: One row a group: images, coverage and area under plain CRC and by group; None where no test image shows a lesion.
    """

    method: str
    column: str
    cuts: tuple[float, float] | None
    values: tuple[str, ...] = field(repr=False)
    calibration: GroupCalibration
    evaluation: Evaluation = field(repr=False)
    rows: tuple[dict[str, object], ...]


def part_column(maps: Maps) -> np.ndarray | None:
    """The person's own division, `(N,)` of "calibration", "test" and "training", where a column *part* holds nothing else; or None."""
    column = next((c for c in maps.groups if c.strip().lower() in ("part", "split", "set")), None)
    if column is None:
        return None
    values = [_PARTS.get(v.strip().lower(), "") for v in maps.groups[column]]
    if not {"calibration", "test"} <= set(values) or "" in values:
        return None
    return np.array(values)


def columns_to_choose(maps: Maps) -> tuple[str, ...]:
    """Columns that can be groups: predicted area first, then those of the CSV with at least two values."""
    division = part_column(maps) is not None
    own = [
        c for c, values in maps.groups.items()
        if len(set(values)) > 1 and not (division and c.strip().lower() in ("part", "split", "set"))
    ]  # fmt: skip
    return (AREA, *own)


def numbers_of(values: tuple[str, ...]) -> np.ndarray | None:
    """A column as numbers, where it holds more than six different ones and nothing else but unknowns (NaN); or None."""
    try:
        numbers = np.array([float("nan" if v == "unknown" else v.replace(",", ".")) for v in values])
    except ValueError:
        return None
    known = numbers[np.isfinite(numbers)]
    return numbers if len(np.unique(known)) > 6 else None


def name_groups(numbers: np.ndarray, cuts: tuple[float, float], column: str) -> tuple[str, ...]:
    """Group of each number: below the first cut, between both, from the second on; NaN is "unknown"."""
    say = percent if column == AREA else (lambda v: f"{v:.4g}")
    low, high = say(cuts[0]), say(cuts[1])
    names = (f"1: below {low}", f"2: {low} to {high}", f"3: {high} and more")
    at = np.searchsorted(np.array(cuts), np.nan_to_num(numbers, nan=0.0), side="right")
    return tuple("unknown" if np.isnan(v) else names[int(k)] for v, k in zip(numbers, at, strict=True))


def groups_of(
    maps: Maps,
    statistics: np.ndarray,
    column: str,
    cut_on: np.ndarray,
    cuts: tuple[float, float] | None = None,
) -> tuple[tuple[str, ...], tuple[float, float] | None]:
    """Group of every image.

    Args:
        maps: N images.
        statistics: `(N, S)`; the first is the expected area.
        column: A name from `columns_to_choose`.
        cut_on: Indices of the images whose thirds make the cuts.
        cuts: Cuts that are fixed already (from a calibration file).

    Returns:
        N names, and the cuts or None.
    """
    numbers = statistics[:, 0] if column == AREA else numbers_of(maps.groups[column])
    if cuts is not None and numbers is None:  # few new images: numbers all the same
        numbers = np.array(
            [float("nan") if v == "unknown" else float(v.replace(",", ".")) for v in maps.groups[column]]
        )
    if numbers is None:
        return maps.groups[column], None
    if cuts is None:
        low, high = np.nanquantile(numbers[cut_on], [1 / 3, 2 / 3])
        cuts = (float(low), float(high))
    return name_groups(numbers, cuts, column), cuts


def group_study(
    maps: Maps, statistics: np.ndarray, pool: np.ndarray, cut_on: np.ndarray, split: Split, column: str
) -> Grouped:
    """CRC by group on the split's own calibration and test images.

    Args:
        maps: All images.
        statistics: `(N, S)` of all images.
        pool: Indices of the split's images.
        cut_on: Indices of the images whose thirds make cuts.
        split: The draw.
        column: A name from `columns_to_choose`.
    """
    everybody, cuts = groups_of(maps, statistics, column, cut_on)
    values = tuple(everybody[i] for i in pool)
    curves, zero = split.study.curves, torch.zeros(len(pool))
    made = calibrate_groups(curves, zero, split.alpha, values, split.calibrating, METHOD)
    shifts = made.shifts(values)
    whole = evaluate(curves, zero, shifts, split.alpha, split.testing)
    plain = split.calibrations["CRC"].shift
    rows: list[dict[str, object]] = []
    names = np.array(values)
    for g in sorted(set(values)):
        test = np.intersect1d(split.testing, np.flatnonzero(names == g))
        has = bool(curves.has_lesion[torch.as_tensor(test)].any()) if len(test) else False
        one = evaluate(curves, zero, plain, split.alpha, test) if has else None
        two = evaluate(curves, zero, shifts, split.alpha, test) if has else None
        rows.append(
            {
                "group": g,
                "calibration_images": made.groups[g].n if g in made.groups else 0,
                "test_images": one.n if one else 0,
                "coverage_CRC": one.coverage if one else None,
                "coverage_by_group": two.coverage if two else None,
                "area_CRC": one.area if one else None,
                "area_by_group": two.area if two else None,
                "whole_image": g not in made.groups or not made.groups[g].feasible,
            }
        )
    return Grouped(METHOD, column, cuts, values, made, whole, tuple(rows))
