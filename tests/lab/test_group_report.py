"""Groups beside the whole: counts that add up, shifts that are each group's own, and words for the small ones."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import pytest

from core.conformal import calibrate, images_needed
from core.lab.group_report import by_group_sentence, group_report, one_shift_sentence
from core.lab.pool_groups import AREA, SIZE, Column, columns_of
from core.lab.study import shipped_study, split_study


@pytest.fixture(scope="module")
def split():
    return split_study(shipped_study("skin"), 0.1, 0)


@pytest.fixture(scope="module")
def columns(split):
    return {c.name: c for c in columns_of(split.study)}


@pytest.fixture(scope="module")
def report(split, columns):
    return group_report(split, columns["body site"])


def test_every_group_has_every_row_and_the_anchors(report, columns) -> None:
    rows = ["CRC", "CRC by group", "COAT", "COAT by group", "oracle", "whole image"]
    assert [(r.group, r.method) for r in report.rows] == [
        (g, m) for g in columns["body site"].order for m in rows
    ]
    for r in report.of("whole image"):
        assert (r.coverage, r.area) == (1, 1) and r.gap == pytest.approx(0.1)


def test_groups_add_up_to_the_whole(report, split) -> None:
    for method in ("CRC", "COAT"):
        rows = report.of(method)
        assert sum(r.testing for r in rows) == split.evaluations[method].n
        for what in ("coverage", "gap", "area"):
            mean = np.average([getattr(r, what) for r in rows], weights=[r.testing for r in rows])
            assert mean == pytest.approx(getattr(split.evaluations[method], what))
    assert sum(r.calibrating for r in report.of("CRC")) == split.calibrations["CRC"].n


def test_a_group_is_calibrated_on_its_own_images_only(report, split, columns) -> None:
    column, study = columns["body site"], split.study
    mine = [i for i in split.calibrating if column.values[i] == "back"]
    tested = [i for i in split.testing if column.values[i] == "back"]
    for method in ("CRC", "COAT"):
        tau = study.tau_hat(method, 0.1)
        shift = calibrate(study.curves, tau, 0.1, np.array(mine)).shift
        covered = study.curves.coverage(tau, shift)[tested, 0].numpy()
        row = next(r for r in report.of(f"{method} by group") if r.group == "back")
        assert row.coverage == pytest.approx(np.nanmean(covered))


def test_small_groups_get_the_whole_image_and_are_named(report) -> None:
    small = {
        r.group for r in report.rows if r.method == "CRC by group" and r.calibrating < images_needed(0.1)
    }
    assert small and set(report.small) == small
    for r in report.of("CRC by group"):
        assert r.whole == (r.group in small)
        assert not r.whole or r.area == 1
    said = by_group_sentence(report)
    assert all(g in said for g in small) and "only be given the whole image" in said
    assert "within each of these groups" in said


def test_what_only_the_truth_knows_is_reported_and_never_calibrated(split, columns) -> None:
    report = group_report(split, columns["diagnosis"])
    assert {r.method for r in report.rows} == {"CRC", "COAT", "oracle", "whole image"}
    assert report.promise == "" and not report.small
    assert "to none of them" in one_shift_sentence(report)


def test_a_group_that_is_not_tested_has_no_figures(split) -> None:
    values = ["only calibrates"] * len(split.study.curves)
    for i in split.testing:
        values[i] = "only tested"
    column = Column("odd", True, tuple(values), ("only calibrates", "only tested"), "Made up.")
    report = group_report(split, column)
    assert all(math.isnan(r.coverage) for r in report.rows if r.group == "only calibrates")
    assert {r.group for r in report.of("CRC")} == {"only tested"}
    assert all(r.area == 1 for r in report.of("CRC by group"))


def test_under_a_promise_with_confidence_groups_are_still_controlled_on_average(columns, split) -> None:
    sure = split_study(split.study, 0.1, 0, delta=0.1)
    assert group_report(sure, columns[AREA]).rows == group_report(split, columns[AREA]).rows


def test_a_column_of_another_pool_is_refused(split, columns) -> None:
    with pytest.raises(ValueError, match="3 values"):
        group_report(split, replace(columns[SIZE], values=("a", "b", "c")))
