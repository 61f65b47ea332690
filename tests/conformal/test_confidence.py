"""Control with high probability: the p-value against its parts, the shift against brute force, and the promise by simulation."""

from __future__ import annotations

import math

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import binom

from core.conformal import CoverageCurves, calibrate
from core.conformal.confidence import (
    calibrate_with_confidence,
    hoeffding_bentkus,
    images_needed_with_confidence,
    largest_risk,
)


def pool(n: int, seed: int = 0) -> CoverageCurves:
    rng = torch.Generator().manual_seed(seed)
    maps = [torch.randn(12, 12, generator=rng) + torch.randn(1, generator=rng) for _ in range(n)]
    return CoverageCurves.from_maps(maps, [torch.rand(12, 12, generator=rng) < 0.3 for _ in range(n)])


@given(st.floats(0, 1), st.floats(0, 1), st.integers(1, 400), st.floats(0.02, 0.5))
@settings(deadline=None, max_examples=60)
def test_the_p_value_rises_with_the_risk_and_is_one_at_alpha(
    one: float, two: float, n: int, alpha: float
) -> None:
    low, high = sorted((one, two))
    assert 0 <= hoeffding_bentkus(low, n, alpha) <= hoeffding_bentkus(high, n, alpha) + 1e-12 <= 1 + 1e-12
    assert hoeffding_bentkus(alpha, n, alpha) == pytest.approx(
        min(1, math.e * binom.cdf(math.ceil(n * alpha - 1e-9), n, alpha))
    )


def test_the_p_value_of_no_miss_at_all_is_that_of_n_heads_in_a_row() -> None:
    assert hoeffding_bentkus(0.0, 30, 0.1) == pytest.approx(0.9**30)


@pytest.mark.parametrize(("alpha", "delta"), [(0.1, 0.1), (0.2, 0.05), (0.05, 0.2)])
def test_the_number_of_images_needed_is_the_smallest_that_is_feasible(alpha: float, delta: float) -> None:
    need = images_needed_with_confidence(alpha, delta)
    assert largest_risk(need, alpha, delta) >= 0
    assert need == 1 or largest_risk(need - 1, alpha, delta) < 0


def test_the_shift_is_the_smallest_that_passes_the_test() -> None:
    curves = pool(60)
    tau = torch.randn(60, generator=torch.Generator().manual_seed(1))
    found = calibrate_with_confidence(curves, tau, 0.2, 0.1)
    shifts = torch.linspace(found.shift - 2, found.shift + 2, 401)
    for t in (*shifts.tolist(), found.shift):
        risk = 1 - float(curves.coverage(tau, t).mean())
        passes = hoeffding_bentkus(risk, 60, 0.2) <= 0.1 + 1e-9
        assert passes == (np.float32(t) >= np.float32(found.shift)), t


def test_it_asks_for_more_than_crc_and_less_as_images_come_in() -> None:
    curves = pool(400)
    zero = torch.zeros(400)
    crc = calibrate(curves, zero, 0.2).shift
    few, many = (calibrate_with_confidence(curves, zero, 0.2, 0.1, np.arange(n)).coverage for n in (40, 400))
    assert calibrate_with_confidence(curves, zero, 0.2, 0.1).shift > crc
    assert few > many > 0.8


def test_the_promise_holds_in_at_least_the_promised_share_of_draws() -> None:
    curves = pool(2000, 3)
    truth = curves.coverage(torch.zeros(2000), torch.linspace(-6, 6, 2401)).mean(0)
    rng, broken, crc_broken = np.random.default_rng(0), 0, 0
    for _ in range(300):
        draw = rng.choice(2000, 60, replace=False)
        some = curves.select(draw)
        for k, shift in enumerate(
            (
                calibrate_with_confidence(some, torch.zeros(60), 0.2, 0.1).shift,
                calibrate(some, torch.zeros(60), 0.2).shift,
            )
        ):
            at = min(int(np.ceil((shift + 6) / 0.005)), 2400)
            if truth[at] < 0.8:
                broken, crc_broken = broken + (k == 0), crc_broken + (k == 1)
    assert broken / 300 <= 0.1
    assert crc_broken / 300 > 0.2  # CRC makes another promise: on average over draws


def test_too_few_images_get_the_whole_image_and_a_number() -> None:
    found = calibrate_with_confidence(pool(10), torch.zeros(10), 0.1, 0.1)
    assert math.isinf(found.shift) and not found.feasible
    assert "At least 22" in found.guarantee
    assert (
        "probability of at least 90"
        in calibrate_with_confidence(pool(60), torch.zeros(60), 0.2, 0.1).guarantee
    )


@pytest.mark.parametrize(("alpha", "delta"), [(0.0, 0.1), (0.1, 1.0)])
def test_levels_outside_their_range_are_refused(alpha: float, delta: float) -> None:
    with pytest.raises(ValueError, match="strictly between"):
        calibrate_with_confidence(pool(30), torch.zeros(30), alpha, delta)
