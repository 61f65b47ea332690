"""Shipped studies: what the tables hold, that parts are disjoint, and that splits keep their promise."""

from __future__ import annotations

import json
import math

import numpy as np
import pytest
import torch

from core.coat.thresholds import ALPHA_KNOTS, oracle_thresholds, plug_in_thresholds
from core.data.splits import Parts
from core.lab.pool import curve_of_pool_image, draw_named, painter
from core.lab.study import (
    METHODS,
    ROWS,
    STUDIES,
    hardest,
    load_study,
    resampled,
    shipped_study,
    split_study,
    spread,
)
from core.nets.weights import ASSETS


@pytest.mark.parametrize("name", STUDIES)
def test_a_study_holds_its_pool_and_rising_thresholds(name: str) -> None:
    study, parts = shipped_study(name), Parts.load(ASSETS / "splits" / f"{name}.json")
    assert study.curves.names == parts.pool
    for method in ("plug-in", "AT", "COAT"):
        assert study.knots[method].shape == (len(study.curves), len(ALPHA_KNOTS))
        assert (study.knots[method].diff(dim=1) >= 0).all()
    groups = [set(parts.d1), set(parts.d1_val), set(parts.d2), set(parts.pool)]
    assert sum(map(len, groups)) == len(set().union(*groups))
    for twins in parts.twins:
        assert any(set(twins) <= g for g in groups)
    hashes = json.loads((ASSETS / "scores" / f"{name}.json").read_text())["hashes"]
    assert set(hashes) == set(parts.pool)


@pytest.mark.parametrize("name", STUDIES)
def test_stored_plug_in_thresholds_are_those_of_the_stored_scores(name: str) -> None:
    study = shipped_study(name)
    difference = (plug_in_thresholds(study.curves, ALPHA_KNOTS) - study.knots["plug-in"]).abs()
    assert (
        difference.mean() <= 1 / 40
    )  # a bin; scores were rounded up, so where they lie thin it may be a few
    assert difference.max() <= 6 / 40


@pytest.mark.parametrize("name", STUDIES)
@pytest.mark.parametrize("alpha", [0.05, 0.1, 0.2])
def test_every_method_keeps_its_promise_on_average_over_draws(name: str, alpha: float) -> None:
    for method, found in resampled(shipped_study(name), alpha, draws=400).items():
        error = found.coverage.std(ddof=1) / math.sqrt(400)
        assert found.coverage.mean() >= 1 - alpha - 3 * error, method


def test_a_split_has_all_rows_and_the_anchors_are_where_they_must_be() -> None:
    split = split_study(shipped_study("phantom"), 0.1, 3)
    assert tuple(split.evaluations) == ROWS and tuple(split.calibrations) == METHODS
    whole, oracle = split.evaluations["whole image"], split.evaluations["oracle"]
    assert (whole.coverage, whole.area) == (1.0, 1.0)
    assert whole.gap == pytest.approx(0.1)
    assert oracle.gap < 0.02 and oracle.area < split.evaluations["COAT"].area
    assert set(split.calibrating) | set(split.testing) == set(range(len(split.study.curves)))
    assert not set(split.calibrating) & set(split.testing)


def test_coat_serves_single_images_more_evenly_than_crc_at_a_similar_area() -> None:
    found = resampled(shipped_study("polyp"), 0.1, draws=200, methods=("CRC", "COAT"))
    crc, coat = found["CRC"], found["COAT"]
    assert coat.gap.mean() < crc.gap.mean()
    assert coat.area.mean() < 1.15 * crc.area.mean()


def test_draw_zero_of_the_resamples_is_the_split_on_the_screen() -> None:
    study = shipped_study("phantom")
    split, found = split_study(study, 0.1, 5), resampled(study, 0.1, 5, draws=3)
    for method in METHODS:
        assert found[method].coverage[0] == pytest.approx(split.evaluations[method].coverage)
        assert found[method].shift[0] == pytest.approx(split.calibrations[method].shift)


def test_the_quick_spread_is_the_coverage_of_the_full_one() -> None:
    study = shipped_study("phantom")
    full, quick = resampled(study, 0.15, 2, draws=50), spread(study, 0.15, 2, draws=50, methods=METHODS)
    for method in METHODS:
        np.testing.assert_allclose(quick[method], full[method].coverage)


def test_numbers_of_single_images_add_up_to_those_of_the_table() -> None:
    split = split_study(shipped_study("phantom"), 0.2, 1)
    for row in ROWS:
        covered = split.coverage(row)[split.testing]
        assert np.nanmean(covered) == pytest.approx(split.evaluations[row].coverage)


def test_images_without_lesion_are_counted_and_cost_false_alarms() -> None:
    split = split_study(shipped_study("phantom"), 0.1, 0)
    e = split.evaluations["CRC"]
    assert e.n + e.n_empty == len(split.testing)
    assert e.n_empty > 0 and 0 < e.false_alarm_area < 1
    assert split.evaluations["oracle"].false_alarm_area == 0
    assert split.evaluations["whole image"].false_alarm_area == 1


def test_the_hardest_images_are_test_images_in_order() -> None:
    split = split_study(shipped_study("phantom"), 0.1, 0)
    worst = hardest(split, "CRC", 10)
    covered = split.coverage("CRC")
    assert set(worst) <= set(split.testing)
    assert list(covered[worst]) == sorted(covered[split.testing][~np.isnan(covered[split.testing])])[:10]


def test_phantoms_can_be_drawn_again_and_match_their_score_table() -> None:
    study = shipped_study("phantom")
    paint = painter(study)
    assert paint is not None
    for i in (0, 150, len(study.curves) - 1):
        image, mask = paint(study.curves.names[i])
        assert image.shape == (*mask.shape, 3)
        assert int(mask.sum()) == pytest.approx(
            int(study.curves.lesion_size[i]), abs=2
        )  # float maths of another machine
    assert not draw_named("empty-39000")[1].any()


def test_real_pictures_are_seen_only_where_a_folder_holds_them(tmp_path) -> None:
    assert painter(shipped_study("polyp")) is None
    assert painter(shipped_study("polyp"), tmp_path) is None


def test_a_missing_study_says_how_to_make_it(tmp_path) -> None:
    with pytest.raises(FileNotFoundError, match="python -m core study phantom"):
        load_study(tmp_path, "phantom")


def test_the_curve_of_one_image_ends_in_all_and_in_nothing() -> None:
    grid, covered, area, edges, lesion, rest = curve_of_pool_image(shipped_study("polyp"), 4)
    assert covered[0] == area[0] == 1
    assert (np.diff(covered) <= 0).all() and (np.diff(area) <= 0).all()
    assert len(edges) == len(lesion) + 1 == len(rest) + 1
    study = shipped_study("polyp")
    assert lesion.sum() == int(study.curves.lesion_size[4])
    assert lesion.sum() + rest.sum() == pytest.approx(int(study.curves.size[4]), rel=0.01)
    assert grid[0] == -15


def test_oracle_rows_ignore_images_without_lesion() -> None:
    curves = shipped_study("phantom").curves
    assert torch.isnan(oracle_thresholds(curves, 0.1)).sum() == int((~curves.has_lesion).sum()) == 12
