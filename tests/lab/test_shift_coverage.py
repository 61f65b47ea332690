"""Damaged phantoms: what is recorded agrees with the networks' own answer, thresholds stay those of clean pictures, words follow the figures."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from core.lab import shift_damage
from core.lab.promise import promise
from core.lab.shift_cards import damaged_card, monitor_card
from core.lab.shift_coverage import UnderShift, damaged, damages, recorded, under_shift
from core.lab.shift_damage import DAMAGES, damaged_image, frames, make_damaged, place_of
from core.lab.shift_monitor import load_monitor
from core.lab.shift_words import NAMES, headline, verdict
from core.lab.study import shipped_study, split_study
from core.nets.weights import ASSETS
from tests.lab.made_shift import picture, shelf


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    out = shelf(tmp_path_factory.mktemp("shelf"), "phantom")
    assert not recorded(out)
    work = tmp_path_factory.mktemp("work")
    make_damaged(work, out, ("gaussian_noise",), (0, 5), 3)
    kept = shift_damage.score
    shift_damage.score = None  # a second run finds its cells and scores nothing
    try:
        make_damaged(work, out, ("gaussian_noise",), (0, 5), 3)
    finally:
        shift_damage.score = kept
    return out


@pytest.fixture(scope="module")
def split():
    return split_study(shipped_study("phantom"), 0.1, 3)


def test_recorded_coverage_is_that_of_the_networks(folder: Path, split) -> None:
    assert recorded(folder) and damages(folder) == ("gaussian_noise",)
    u = under_shift(split, damaged("gaussian_noise", folder), load_monitor("phantom", folder))
    assert u.severities == (0, 5) and u.coverage["CRC"].shape == (2, 3)
    scored, mask = frames(1, "gaussian_noise", u.severities)
    for k, s in enumerate(u.severities):
        p = promise(scored[s], mask, alpha=0.1, seed=3)
        for m in ("CRC", "COAT"):
            assert u.coverage[m][k, 1] == pytest.approx(p.coverage[m], abs=0.04)
            assert u.coverage[m][k, 1] <= p.coverage[m] + 1e-6  # bins round to the safe side
            assert u.area[m][k, 1] >= p.area[m] - 1e-6
    frames.cache_clear()


def test_another_study_and_another_corruption_are_refused(folder: Path) -> None:
    found = damaged("gaussian_noise", folder)
    other = split_study(shipped_study("polyp"), 0.1, 0)
    with pytest.raises(ValueError, match="belong to the study"):
        under_shift(other, found, load_monitor("phantom", folder))
    with pytest.raises(KeyError, match="fog"):
        damaged("fog", folder)


def test_cards_hold_the_figures(folder: Path) -> None:
    said = damaged_card(folder, ASSETS).read_text()
    assert (
        "| gaussian_noise | 5 |" in said
        and "| clean | 0 |" in said
        and "no coverage under damage is promised" in said
    )
    card = monitor_card(load_monitor("phantom", folder), folder).read_text()
    assert "0.900" in card and "No images." in card


def test_damage_is_the_same_every_time_and_severity_nought_is_none() -> None:
    image = picture(1, side=64)
    np.testing.assert_array_equal(
        damaged_image(image, "shot_noise", 2, 5), damaged_image(image, "shot_noise", 2, 5)
    )
    assert (damaged_image(image, "shot_noise", 2, 5) != damaged_image(image, "shot_noise", 2, 6)).any()
    np.testing.assert_array_equal(damaged_image(image, "shot_noise", 0, 5), image)
    assert place_of("jpeg", 0) == place_of("contrast", 0) != place_of("jpeg", 1)


def test_every_corruption_has_its_words() -> None:
    assert set(NAMES) == set(DAMAGES)


def made(crc: float, coat: float, score: float, clean: float = 0.9) -> UnderShift:
    """Two severities, four pictures, a limit of 2."""
    cover = {"CRC": np.full((2, 4), crc), "COAT": np.full((2, 4), coat)}
    for v in cover.values():
        v[0] = clean
    scores = np.array([[1.0] * 4, [score] * 4])
    return UnderShift(
        "jpeg", 0.1, (0, 3), cover, {m: np.full((2, 4), 0.2) for m in cover}, scores, scores, (2.0, 2.0)
    )


def test_the_headline_has_the_numbers() -> None:
    said = headline(made(0.61, 0.655, 9), 3)
    assert said.startswith("JPEG compression, severity 3: CRC covers 61\u00a0% and COAT 66\u00a0%")
    assert "90\u00a0%" in said and "100\u00a0% of groups" in said
    assert headline(made(0.5, 0.5, 9), 0).startswith("Clean pictures: CRC covers 90\u00a0%")


@pytest.mark.parametrize(
    ("u", "words"),
    [
        (made(0.6, 0.9, 9), "broken for CRC, and the monitor says so"),
        (made(0.6, 0.7, 1), "broken for CRC and COAT, and the monitor mostly stays silent: no score sees"),
        (made(0.6, 0.9, 9), "COAT, which looks at each image, marks 20\u00a0%"),
        (made(0.9, 0.91, 9), "Coverage hardly falls here, yet"),
        (made(0.89, 0.9, 1), "hardly falls here, and the monitor mostly stays silent"),
    ],
)
def test_the_verdict_follows_the_figures_whichever_way(u: UnderShift, words: str) -> None:
    assert words in verdict(u, 3)
    assert "false alarms" in verdict(u, 0)


def test_what_ships_is_whole_and_tells_damaged_phantoms_from_clean_ones() -> None:
    if not recorded():
        pytest.skip("no damaged phantoms ship yet; python -m core.lab.shift_study phantoms makes them")
    u = under_shift(
        split_study(shipped_study("phantom"), 0.1, 0), damaged("gaussian_noise"), load_monitor("phantom")
    )
    assert damages() == DAMAGES and u.severities == (0, 1, 2, 3, 4, 5)
    assert np.median(u.together[5]) > u.limit[1] > np.median(u.together[0])
    assert u.mean_coverage["CRC"][0] > 0.8  # clean pictures are drawn like those that calibrate


def test_the_picture_that_loses_most_comes_first_and_one_without_a_lesion_last() -> None:
    u = made(0.6, 0.9, 9)
    u.coverage["CRC"][1] = (0.8, 0.1, np.nan, 0.5)
    assert u.by_fall == [1, 3, 0, 2]
