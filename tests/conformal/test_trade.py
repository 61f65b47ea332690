"""Gap against area: the quick shift against the slow one, and what every curve must do at its ends."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from core.conformal import evaluate, shift_for_area
from core.conformal.trade import trade_curve


@pytest.mark.parametrize("binned", [False, True])
@pytest.mark.parametrize("method", ["CRC", "COAT", "AT"])
def test_the_gap_at_an_area_is_that_of_the_slow_bisection(toy, method: str, binned: bool) -> None:
    pool = toy.make_pool(30, 2, empty=3)
    curves = pool.curves.to_bins() if binned else pool.curves
    tau = toy.predictors(pool, 0.1)[method]
    subset = np.arange(0, 33, 2)
    for area in (0.05, 0.2, 0.5):
        slow = evaluate(curves, tau, shift_for_area(curves, tau, area, subset), 0.1, subset)
        assert trade_curve(curves, tau, 0.1, subset, area).gap_at == pytest.approx(slow.gap, abs=1e-6)


def test_a_curve_rises_in_area_and_ends_in_the_whole_image(toy) -> None:
    pool = toy.make_pool(30, 2, ties=False)
    found = trade_curve(pool.curves, torch.zeros(30), 0.1)
    assert (np.diff(found.area) >= 0).all()
    assert found.area[-1] == pytest.approx(1.0)
    assert found.gap[-1] == pytest.approx(0.1)
    assert found.gap[0] > found.gap.min()
    assert np.isnan(found.gap_at)


def test_images_that_do_not_count_change_nothing(toy) -> None:
    pool = toy.make_pool(20, 4, empty=5)
    tau = toy.predictors(pool, 0.1)["COAT"]
    some = trade_curve(pool.curves, tau, 0.1, np.arange(20), 0.3)
    everybody = trade_curve(pool.curves, tau, 0.1, None, 0.3)
    np.testing.assert_allclose(some.gap, everybody.gap)
    assert some.gap_at == everybody.gap_at


def test_no_lesion_no_curve(toy) -> None:
    pool = toy.make_pool(5, 1, empty=2)
    with pytest.raises(ValueError, match="lesion"):
        trade_curve(pool.curves, torch.zeros(7), 0.1, np.array([5, 6]))
