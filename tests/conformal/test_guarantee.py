"""The promise by simulation: over redrawn calibration and test sets of one pool, mean coverage is at least 1 - alpha.

Given the pool, calibration and test images are exchangeable, so the mean over all draws is at least 1 - alpha exactly, for any threshold that depends
on its own image alone. The mean over 2,000 draws may fall below it by chance only: three standard errors.
"""

from __future__ import annotations

from functools import cache

import numpy as np
import pytest
import torch

from core.conformal import calibrate, calibrate_many, evaluate, resample, shift_table
from core.conformal import draws as many_draws

DRAWS = 2000
CASES = [(5, 0.2), (5, 0.1), (9, 0.1), (20, 0.1), (20, 0.3), (50, 0.05), (100, 0.1), (200, 0.1)]
METHODS = ["CRC", "plug-in", "AT", "COAT"]


@pytest.fixture(scope="module")
def pool(toy):
    """260 lesions, a third of them 1 to 3 pixels, scores on a grid of 1/4 (many ties), and 20 images without a lesion."""
    found = toy.make_pool(260, 2024, side=12, ties=True, empty=20)
    assert len(torch.unique(found.curves.lesion.value)) < 121
    assert (found.curves.lesion_size[:260] <= 3).sum() > 60
    return found


@cache
def draws(n: int, lesions: int, empty: int, seed: int) -> np.ndarray:
    """`(DRAWS, N)` bool: n lesion images and half of the empty ones calibrate."""
    rng = np.random.default_rng([seed, n])
    rows = np.zeros((DRAWS, lesions + empty), bool)
    for row in rows:
        row[rng.permutation(lesions)[:n]] = True
        row[lesions:] = rng.random(empty) < 0.5
    return rows


def simulate(curves, tau, alpha: float, calibrating: np.ndarray) -> tuple[float, float, np.ndarray]:
    """Mean test coverage over the draws, its standard error, and the shifts."""
    shift = calibrate_many(shift_table(curves, tau), alpha, calibrating)
    has = curves.has_lesion.numpy()
    covered = curves.coverage(tau, torch.from_numpy(shift)).numpy()[has]
    test = ~calibrating.T[has]
    each = (covered * test).sum(0) / test.sum(0)
    return float(each.mean()), float(each.std(ddof=1) / np.sqrt(len(each))), shift


@pytest.mark.parametrize("binned", [False, True], ids=["exact", "in bins"])
@pytest.mark.parametrize("method", METHODS)
def test_the_promise_holds_over_two_thousand_draws(toy, pool, method, binned):
    # odd edges, so that bins cost something: most scores do not lie on one
    curves = pool.curves.to_bins(torch.linspace(-15, 15, 92)) if binned else pool.curves
    for n, alpha in CASES:
        tau = toy.predictors(pool, alpha)[method]
        calibrating = draws(n, 260, 20, 1)
        mean, error, shift = simulate(curves, tau, alpha, calibrating)
        assert mean >= 1 - alpha - 3 * error, (n, alpha)
        if n < 1 / alpha - 1:
            assert mean == 1.0
            assert np.isinf(shift).all()
        else:
            assert np.isfinite(shift).all()
            assert error < 0.006
        if binned:  # a shift found in bins keeps the promise for the exact scores too
            covered = pool.curves.coverage(tau, torch.from_numpy(shift)).numpy()[:260]
            exact = float(((covered * ~calibrating.T[:260]).sum(0) / (~calibrating.T[:260]).sum(0)).mean())
            assert exact >= mean
        for s in range(0, DRAWS, 400):
            assert shift[s] == calibrate(curves, tau, alpha, calibrating[s]).shift


@pytest.mark.parametrize("method", METHODS)
def test_the_promise_is_not_kept_by_being_wasteful(toy, method):
    """Without ties the mean stays below 1 - alpha + 2/(n + 1) as well, so the sets are not simply too large."""
    pool = toy.make_pool(150, 7, ties=False)
    tau = toy.predictors(pool, 0.1)[method]
    for n in (10, 20, 75):
        calibrating = draws(n, 150, 0, 2)[:400]
        mean, error, _ = simulate(pool.curves, tau, 0.1, calibrating)
        assert 0.9 - 3 * error <= mean <= 0.9 + 2 / (n + 1) + 3 * error


def test_the_rule_without_its_finite_sample_term_breaks_the_promise(toy, pool, monkeypatch):
    """The simulation can fail: ask for the mean alone, as some published code does, and coverage drops below 1 - alpha."""
    tau = toy.predictors(pool, 0.1)["COAT"]
    calibrating = draws(20, 260, 20, 1)
    honest, _, _ = simulate(pool.curves, tau, 0.1, calibrating)
    monkeypatch.setattr(many_draws, "crc_target", lambda n, alpha, bound=1.0: n * (1 - alpha))
    mean, error, _ = simulate(pool.curves, tau, 0.1, calibrating)
    assert mean < 0.9 - 3 * error
    assert honest - mean > 0.02


def test_a_predictor_that_looks_at_the_calibration_set_is_not_covered_by_the_promise(toy, pool):
    """Thresholds fitted on the calibration images' own masks void the guarantee: why D2 is kept apart."""
    right = toy.oracle(pool, 0.1)
    plain = toy.predictors(pool, 0.1)["CRC"]
    means = []
    for half in draws(50, 260, 20, 1)[:200]:
        tau = torch.where(torch.from_numpy(half), right, plain)
        means.append(
            evaluate(pool.curves, tau, calibrate(pool.curves, tau, 0.1, half).shift, 0.1, ~half).coverage
        )
    assert np.mean(means) < 0.9 - 3 * np.std(means) / np.sqrt(200)


def test_the_whole_evaluation_agrees_with_the_simulation(toy, pool):
    tau = toy.predictors(pool, 0.1)["AT"]
    calibrating = draws(50, 260, 20, 1)[:100]
    mean, _, shift = simulate(pool.curves, tau, 0.1, calibrating)
    found = resample(pool.curves, tau, 0.1, calibrating)
    assert found.coverage.mean() == pytest.approx(mean)
    assert np.array_equal(found.shift, shift)
