"""AA-CRC on a study: the embedding, the two halves, the promise with a shift and the plain words without one."""

from __future__ import annotations

import math

import numpy as np
import pytest
import torch

from core.coat.thresholds import ALPHA_KNOTS
from core.conformal import evaluate
from core.data.splits import redraw
from core.lab.adaptive import EMBEDDING, aacrc, embedding
from core.lab.study import Study
from tests.lab.made_study import made_study


def test_the_embedding_is_the_thresholds_of_at_at_four_levels() -> None:
    knots = torch.arange(30.0).reshape(3, 10)
    found = embedding(knots)
    assert found.shape == (3, 4)
    for k, alpha in enumerate(EMBEDDING):
        at = int((ALPHA_KNOTS - alpha).abs().argmin())
        torch.testing.assert_close(found[:, k], knots[:, at])


def test_with_a_shift_one_half_sets_the_rule_and_the_other_is_calibrated_exactly() -> None:
    study, calibrating = made_study(), np.arange(30)
    found = aacrc(study, 0.2, calibrating, seed=4)
    made = found.calibration
    assert made.method == "AA-CRC"
    assert made.n + found.fit.n == 30
    assert made.coverage * made.n >= 0.8 * (made.n + 1) - 1e-9
    assert f"These {made.n}".lower() in made.guarantee.lower()
    assert f"set by {found.fit.n} other calibration images" in made.guarantee
    again, other = aacrc(study, 0.2, calibrating, seed=4), aacrc(study, 0.2, calibrating, seed=5)
    assert torch.equal(again.tau_hat, found.tau_hat)
    assert not torch.equal(other.tau_hat, found.tau_hat)
    flags = np.zeros(len(study.curves), bool)
    flags[calibrating] = True
    assert torch.equal(aacrc(study, 0.2, flags, seed=4).tau_hat, found.tau_hat)


def test_the_images_that_are_tested_set_nothing() -> None:
    study, calibrating = made_study(), np.arange(25)
    before = [aacrc(study, 0.2, calibrating, 0, shifted) for shifted in (True, False)]
    moved = {m: k.clone() for m, k in study.knots.items()}
    moved["AT"][25:] += 7.0
    other = Study(study.name, study.curves, moved, {})
    for one, shifted in zip(before, (True, False), strict=True):
        two = aacrc(other, 0.2, calibrating, 0, shifted)
        assert torch.equal(one.tau_hat[:25], two.tau_hat[:25])
        assert one.calibration.shift == two.calibration.shift


def test_without_a_shift_the_level_is_right_on_the_calibration_images_and_nothing_is_promised() -> None:
    study, calibrating = made_study(), np.arange(32)
    found = aacrc(study, 0.2, calibrating, seed=0, shifted=False)
    made = found.calibration
    assert made.method == "AA-CRC, no shift"
    assert made.shift == 0.0
    assert made.n == found.fit.n == 32
    here = evaluate(study.curves, found.tau_hat, 0.0, 0.2, calibrating).coverage
    assert made.coverage == pytest.approx(here)
    assert made.coverage == pytest.approx(1 - found.fit.level, abs=0.01)
    assert "no promise" in made.guarantee


def test_images_without_lesion_set_nothing_and_are_counted() -> None:
    study = made_study()  # the last two show no lesion
    everybody = aacrc(study, 0.2, np.arange(40), seed=0, shifted=False)
    assert (everybody.calibration.n, everybody.calibration.n_empty) == (38, 2)
    full = aacrc(study, 0.2, np.arange(38), seed=0, shifted=False)
    torch.testing.assert_close(everybody.fit.theta, full.fit.theta)


@pytest.mark.parametrize("shifted", [True, False])
@pytest.mark.parametrize("n", [1, 4, 8])
def test_too_few_images_give_the_whole_image_and_say_so(n: int, shifted: bool) -> None:
    study = made_study()
    found = aacrc(study, 0.1, np.arange(n), seed=0, shifted=shifted)
    made = found.calibration
    assert made.shift == math.inf
    assert not made.feasible
    assert "the only honest set is the whole image" in made.guarantee
    assert evaluate(study.curves, found.tau_hat, made.shift, 0.1).coverage == 1.0


def test_an_alpha_outside_its_range_is_refused() -> None:
    with pytest.raises(ValueError, match="strictly between"):
        aacrc(made_study(), 1.0, np.arange(20), 0)


def test_the_promise_holds_on_average_over_re_splits_with_the_shift() -> None:
    study = made_study()
    covered = []
    for seed in range(40):
        calibrating, testing = redraw(len(study.curves), 0.7, seed)
        found = aacrc(study, 0.2, calibrating, seed)
        covered.append(evaluate(study.curves, found.tau_hat, found.calibration.shift, 0.2, testing).coverage)
    assert np.mean(covered) >= 0.8 - 3 * np.std(covered, ddof=1) / np.sqrt(40)
