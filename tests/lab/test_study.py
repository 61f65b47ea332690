"""Shipped studies: what the tables hold, that parts are disjoint, and that splits keep their promise."""

from __future__ import annotations

import json
import math
import subprocess
import sys

import numpy as np
import pytest
import torch
from PIL import Image

from core.coat.thresholds import ALPHA_KNOTS, oracle_thresholds, plug_in_thresholds
from core.data.splits import Parts
from core.lab.pool import curve_of_pool_image, draw_named, painter
from core.lab.sources import domain_of
from core.lab.study import (
    METHODS,
    NO_SHIFT,
    PROMISED,
    STUDIES,
    TABLE,
    complete,
    hardest,
    load_study,
    resampled,
    shipped_study,
    split_study,
    spread,
)
from core.nets.weights import ASSETS
from core.settings import CoverageSettings, knobs


@pytest.mark.parametrize("name", STUDIES)
def test_a_study_holds_its_pool_and_rising_thresholds(name: str) -> None:
    study, parts = shipped_study(name), Parts.load(ASSETS / "splits" / f"{domain_of(name)}.json")
    assert study.curves.names == parts.pool
    for method in ("plug-in", "AT", "COAT"):
        assert study.knots[method].shape == (len(study.curves), len(ALPHA_KNOTS))
        assert (study.knots[method].diff(dim=1) >= 0).all()
    groups = [set(parts.d1), set(parts.d1_val), set(parts.d2), set(parts.pool)]
    assert sum(map(len, groups)) == len(set().union(*groups))
    for twins in parts.twins:
        assert any(set(twins) <= g for g in groups)
    assert not [w for w in ("weights", "scores") if not list((ASSETS / w).glob(f"{name}.*"))]
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
@pytest.mark.parametrize("alpha", [0.1, 0.2])
def test_every_method_keeps_its_promise_on_average_over_draws(name: str, alpha: float) -> None:
    for method, found in resampled(shipped_study(name), alpha, draws=200).items():
        error = found.coverage.std(ddof=1) / math.sqrt(200)
        assert found.coverage.mean() >= 1 - alpha - 3 * error, method


def test_a_split_has_all_rows_and_the_anchors_are_where_they_must_be() -> None:
    split = split_study(shipped_study("phantom"), 0.1, 3)
    assert tuple(split.evaluations) == TABLE and set(split.calibrations) == {*PROMISED, NO_SHIFT}
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
    for row in TABLE:
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


@pytest.mark.parametrize(("name", "mask"), [("polyp-sinet", "a.png"), ("skin", "a_segmentation.png")])
def test_a_folder_shows_the_pictures_of_every_network_of_its_domain(tmp_path, name: str, mask: str) -> None:
    for folder, file, shade in (("images", "a.png", 90), ("masks", mask, 255)):
        (tmp_path / folder).mkdir()
        Image.fromarray(np.full((4, 5), shade, np.uint8)).save(tmp_path / folder / file)
    paint = painter(name, tmp_path)
    assert paint is not None
    assert paint("a")[0].shape == (4, 5, 3) and paint("a")[1].all()
    with pytest.raises(FileNotFoundError, match="does not hold the image b"):
        paint("b")


def test_a_missing_study_says_how_to_make_it(tmp_path) -> None:
    with pytest.raises(FileNotFoundError, match="python -m core study phantom"):
        load_study(tmp_path, "phantom")


def test_all_thirteen_studies_ship_in_the_order_of_the_settings_table() -> None:
    choices = knobs(CoverageSettings)["model"].choices
    assert choices == STUDIES and len(choices) == 13


def test_a_study_that_lacks_a_file_does_not_ship(tmp_path) -> None:
    files = [tmp_path / "scores" / f"phantom{end}" for end in (".npz", "-thresholds.npz", ".json")]
    files += [tmp_path / "weights" / f"phantom{end}.safetensors" for end in ("", "-thresholds")]
    for file in files:
        assert not complete(tmp_path, "phantom")
        file.parent.mkdir(exist_ok=True)
        file.touch()
    assert complete(tmp_path, "phantom")


def test_nothing_is_read_before_it_is_asked_for() -> None:
    code = "import core.lab.domains; from core.lab.study import shipped_study; assert shipped_study.cache_info().currsize == 0"
    assert subprocess.run([sys.executable, "-c", code], cwd=ASSETS.parent).returncode == 0


def test_aa_crc_with_a_shift_keeps_its_promise_over_draws_and_says_so_and_without_does_not_say_so() -> None:
    study = shipped_study("fire-pspnet")
    splits = [split_study(study, 0.2, seed) for seed in range(30)]
    covered = np.array([s.evaluations["AA-CRC"].coverage for s in splits])
    assert covered.mean() >= 0.8 - 3 * covered.std(ddof=1) / math.sqrt(len(covered))
    one = splits[0].calibrations
    assert "drawn alike" in one["AA-CRC"].guarantee
    assert "no promise" in one[NO_SHIFT].guarantee and one[NO_SHIFT].shift == 0


def test_aa_crc_thresholds_of_single_images_are_those_that_were_measured() -> None:
    split = split_study(shipped_study("polyp-sinet"), 0.1, 2)
    for row in ("AA-CRC", NO_SHIFT):
        tau = split.tau(row)
        assert float(tau.std()) > 0
        again = split.study.curves.coverage(tau, 1e-4)[split.testing, 0]
        assert float(again.mean()) == pytest.approx(split.evaluations[row].coverage, abs=2e-3)


@pytest.mark.parametrize("name", ["polyp", "phantom"])
def test_with_confidence_nearly_every_draw_reaches_the_promise_and_marks_more(name: str) -> None:
    study = shipped_study(name)
    usual, sure = spread(study, 0.1, 0, 300), spread(study, 0.1, 0, 300, delta=0.1)
    for method in ("CRC", "COAT"):
        assert (usual[method] >= 0.9).mean() < 0.8
        assert (sure[method] >= 0.9).mean() > 0.9
    one, other = split_study(study, 0.1, 0), split_study(study, 0.1, 0, delta=0.1)
    for method in PROMISED:
        assert other.calibrations[method].shift > one.calibrations[method].shift
        assert other.evaluations[method].area > one.evaluations[method].area
        assert "probability of at least 90" in other.calibrations[method].guarantee


def test_draw_zero_with_confidence_is_the_split_on_the_screen() -> None:
    study = shipped_study("phantom")
    quick, split = spread(study, 0.15, 4, 3, METHODS, delta=0.2), split_study(study, 0.15, 4, delta=0.2)
    for method in METHODS:
        assert quick[method][0] == pytest.approx(split.evaluations[method].coverage)


def test_too_little_for_so_much_confidence_is_the_whole_image() -> None:
    split = split_study(shipped_study("fire"), 0.02, 0, delta=0.01)
    for method in PROMISED:
        assert split.evaluations[method].area == 1 and not split.calibrations[method].feasible
    assert spread(shipped_study("fire"), 0.02, 0, 5, delta=0.01)["CRC"].tolist() == [1] * 5


def test_the_gap_at_crc_s_area_is_crc_s_own_for_crc() -> None:
    split = split_study(shipped_study("skin-pspnet"), 0.1, 0)
    assert set(split.trades) == set(TABLE) - {"whole image"}
    assert split.trades["CRC"].gap_at == pytest.approx(split.evaluations["CRC"].gap, abs=1e-6)
    assert split.trades["oracle"].gap_at < split.trades["COAT"].gap_at


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
