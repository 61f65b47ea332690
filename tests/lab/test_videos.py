"""Whole videos calibrate, others are tested: every half once, no frame on both sides, and no promise in the words."""

from __future__ import annotations

import numpy as np
import pytest

from core.conformal import calibrate
from core.lab.pool_groups import columns_of
from core.lab.study import METHODS, shipped_study
from core.lab.videos import across_rows, across_sentence, across_videos


@pytest.fixture(scope="module")
def video():
    return next(c for c in columns_of(shipped_study("fire")) if c.name == "video").values


@pytest.fixture(scope="module")
def found(video):
    return across_videos(shipped_study("fire"), 0.1, video, draws=200)


def test_every_way_to_halve_the_videos_is_taken_once(found) -> None:
    assert len(found.videos) == 6 and len(set(found.halves)) == len(found.halves) == 20
    assert all(v.shape == (20,) for v in found.by_video.values())
    assert tuple(found.by_video) == tuple(found.by_frame) == METHODS


def test_one_draw_is_what_a_plain_calibration_gives(found, video) -> None:
    curves = shipped_study("fire").curves
    inside = np.isin(np.array(video), found.halves[4])
    for method in ("CRC", "COAT"):
        tau = shipped_study("fire").tau_hat(method, 0.1)
        shift = calibrate(curves, tau, 0.1, inside).shift
        covered = curves.coverage(tau, shift)[:, 0].numpy()[~inside]
        assert found.by_video[method][4] == pytest.approx(np.nanmean(covered))


def test_coverage_differs_more_from_video_to_video_than_from_frame_to_frame(found) -> None:
    assert found.by_video["CRC"].std() > 2 * found.by_frame["CRC"].std()


def test_words_say_why_there_is_no_promise(found) -> None:
    said = across_sentence(found)
    assert "at least 9 calibration videos" in said and "here are 3" in said
    assert "promise across videos needs more videos than there are" in said


def test_rows_hold_the_extremes(found) -> None:
    for row in across_rows(found):
        v = found.by_video[str(row["method"])]
        assert (row["lowest"], row["highest"]) == (v.min(), v.max())
        assert row["below"] == (v < 0.9).mean()


def test_what_is_no_study_of_videos_is_refused(video) -> None:
    with pytest.raises(ValueError, match="two are needed"):
        across_videos(shipped_study("fire"), 0.1, ("one",) * len(video))
    with pytest.raises(ValueError, match="180 frames"):
        across_videos(shipped_study("fire"), 0.1, ("one", "two"))
