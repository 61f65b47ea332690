"""The figures of a calibrated method against plain loops, anchors that are known beforehand, and the redrawn halves."""

from __future__ import annotations

import math
import warnings

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from core.conformal import CoverageCurves, calibrate, evaluate, resample, shift_for_area, shift_table
from core.conformal.metrics import draw_halves
from core.data.splits import redraw


def plain_loop(pool, tau, shift, alpha, used) -> dict[str, float]:
    """Every figure of an Evaluation, image by image."""
    coverage, area, stretch, precision, false_alarm = [], [], [], [], []
    for i, (score, mask) in enumerate(zip(pool.maps, pool.masks, strict=True)):
        if not used[i]:
            continue
        inside = (tau[i] - score) <= shift
        if not mask.any():
            false_alarm.append(inside.sum().item() / inside.numel())
            continue
        coverage.append((inside & mask).sum().item() / mask.sum().item())
        area.append(inside.sum().item() / inside.numel())
        stretch.append(inside.sum().item() / mask.sum().item())
        if inside.any():
            precision.append((inside & mask).sum().item() / inside.sum().item())
    miss = [(1 - alpha) - c for c in coverage]
    worst = sorted(coverage)[: max(1, round(0.05 * len(coverage)))]
    return {
        "n": len(coverage),
        "n_empty": len(false_alarm),
        "coverage": np.mean(coverage),
        "gap": np.mean([abs(x) for x in miss]),
        "shortfall": np.mean([max(0.0, x) for x in miss]),
        "worst_5pct": np.mean(worst),
        "area": np.mean(area),
        "stretch": np.median(stretch),
        "precision": np.mean(precision) if precision else math.nan,
        "false_alarm_area": np.mean(false_alarm) if false_alarm else math.nan,
    }


@settings(max_examples=40, deadline=None)
@given(data=st.data())
def test_every_figure_equals_a_plain_loop(pools, data):
    pool, tau = data.draw(pools())
    n = len(tau)
    used = np.array(data.draw(st.lists(st.booleans(), min_size=n, max_size=n)))
    shift = data.draw(st.sampled_from([-30.0, -1.0, 0.0, 0.625, 5.0, math.inf]))
    alpha = data.draw(st.sampled_from([0.05, 0.1, 0.5]))
    if not (used & pool.curves.has_lesion.numpy()).any():
        with pytest.raises(ValueError, match="None of the test images has a lesion"):
            evaluate(pool.curves, tau, shift, alpha, used)
        return
    wanted = plain_loop(pool, tau, shift, alpha, used)
    for subset in (used, np.flatnonzero(used), torch.from_numpy(used)):
        found = evaluate(pool.curves, tau, shift, alpha, subset)
        for name, value in wanted.items():
            assert getattr(found, name) == pytest.approx(value, nan_ok=True), name
        assert found.index.tolist() == np.flatnonzero(used & pool.curves.has_lesion.numpy()).tolist()
        assert found.image_coverage.mean() == pytest.approx(found.coverage)
        assert len(found.image_area) == found.n


def test_the_worst_images_are_five_in_a_hundred(toy):
    pool = toy.make_pool(140, 0)
    tau = toy.plug_in(pool, 0.1)
    found = evaluate(pool.curves, tau, 0.0, 0.1)
    assert found.worst_5pct == pytest.approx(np.sort(found.image_coverage)[:7].mean())
    assert plain_loop(pool, tau, 0.0, 0.1, np.ones(140, bool))["worst_5pct"] == pytest.approx(
        found.worst_5pct
    )


@pytest.mark.parametrize("alpha", [0.05, 0.1, 0.2, 0.37])
def test_marking_the_whole_image_gives_a_gap_of_exactly_alpha(toy, alpha):
    pool = toy.make_pool(30, 1, empty=3)
    for shift in (math.inf, 60.0):
        found = evaluate(pool.curves, torch.zeros(33), shift, alpha)
        assert (found.coverage, found.area, found.shortfall, found.worst_5pct) == (1.0, 1.0, 0.0, 1.0)
        assert found.gap == pytest.approx(alpha, abs=1e-15)
        assert found.false_alarm_area == 1.0


@pytest.mark.parametrize("alpha", [0.1, 0.25, 0.5])
def test_the_oracle_misses_by_less_than_one_pixel(toy, alpha):
    """Without ties TPR lies in [1 - alpha, 1 - alpha + 1/m), so the gap is at most the mean of 1/m."""
    pool = toy.make_pool(60, 2, ties=False)
    clear = [
        i
        for i, (s, m) in enumerate(zip(pool.maps, pool.masks, strict=True))
        if len(torch.unique(s[m])) == int(m.sum())
    ]
    assert len(clear) > 40
    found = evaluate(pool.curves, toy.oracle(pool, alpha), 0.0, alpha, np.array(clear))
    pixel = 1 / pool.curves.lesion_size[clear].numpy()
    assert (found.image_coverage >= 1 - alpha - 1e-12).all()
    assert (found.image_coverage <= 1 - alpha + pixel + 1e-12).all()
    assert found.gap <= pixel.mean()
    assert found.shortfall == pytest.approx(0.0, abs=1e-12)


def test_each_image_may_have_its_own_shift(toy):
    pool = toy.make_pool(10, 3)
    tau = toy.plug_in(pool, 0.1)
    own = torch.linspace(-2, 2, 10)
    together = evaluate(pool.curves, tau, own, 0.1)
    alone = [evaluate(pool.curves, tau, float(own[i]), 0.1, np.array([i])).coverage for i in range(10)]
    assert together.image_coverage.tolist() == alone


def test_figures_in_bins_lie_on_the_careful_side(toy):
    pool = toy.make_pool(40, 4, ties=False, empty=5)
    tau = toy.plug_in(pool, 0.1)
    exact, binned = evaluate(pool.curves, tau, 0.3, 0.1), evaluate(pool.curves.to_bins(), tau, 0.3, 0.1)
    assert binned.coverage <= exact.coverage
    assert binned.area >= exact.area
    assert binned.precision <= exact.precision
    assert binned.false_alarm_area >= exact.false_alarm_area
    assert binned.coverage == pytest.approx(exact.coverage, abs=0.02)
    assert binned.area == pytest.approx(exact.area, abs=0.02)


@pytest.mark.parametrize("binned", [False, True])
def test_redrawn_halves_equal_one_by_one(toy, binned):
    pool = toy.make_pool(70, 5, empty=6)
    curves = pool.curves.to_bins() if binned else pool.curves
    halves = draw_halves(76, 0.5, 25, seed=3)
    for tau in toy.predictors(pool, 0.1).values():
        many = resample(curves, tau, 0.1, halves)
        assert len(many.shift) == 25
        again = resample(curves, tau, 0.1, halves, table=shift_table(curves, tau))
        for s, half in enumerate(halves):
            found = calibrate(curves, tau, 0.1, half)
            assert many.shift[s] == found.shift == again.shift[s]
            figures = evaluate(curves, tau, found.shift, 0.1, ~half)
            for name in ("coverage", "gap", "area", "shortfall", "worst_5pct", "stretch"):
                assert getattr(many, name)[s] == pytest.approx(getattr(figures, name)), name


def test_a_draw_without_test_images_with_a_lesion_has_no_figures(toy):
    pool = toy.make_pool(4, 6, empty=2)
    halves = np.array([[True] * 4 + [False] * 2, [True, True, False, False, True, False]])
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        many = resample(pool.curves, torch.zeros(6), 0.5, halves)
    for name in ("coverage", "gap", "area", "shortfall", "worst_5pct", "stretch"):
        assert np.isnan(getattr(many, name)[0]), name
        assert np.isfinite(getattr(many, name)[1]), name


def test_the_first_half_is_the_split_on_screen():
    halves = draw_halves(31, 0.4, 5, seed=11)
    assert halves.shape == (5, 31)
    for k in range(5):
        assert np.flatnonzero(halves[k]).tolist() == redraw(31, 0.4, 11 + k)[0].tolist()
    assert len({tuple(row) for row in halves}) == 5


@pytest.mark.parametrize("wanted", [0.05, 0.2, 0.5, 0.999])
def test_the_shift_for_an_area_gives_that_area_and_no_smaller_shift_does(toy, wanted):
    pool = toy.make_pool(30, 7, ties=False, empty=4)
    tau = toy.plug_in(pool, 0.1)
    shift = shift_for_area(pool.curves, tau, wanted)
    has = pool.curves.has_lesion

    def area(t: float) -> float:
        return float(pool.curves.area(tau, t)[has].mean())

    assert area(shift) >= wanted
    assert area(shift - 1e-4) < wanted
    assert area(shift) == pytest.approx(wanted, abs=2 / (30 * 144))
    part = np.arange(34) % 3 == 0
    chosen = has & torch.from_numpy(part)
    assert float(
        pool.curves.area(tau, shift_for_area(pool.curves, tau, wanted, part))[chosen].mean()
    ) == pytest.approx(wanted, abs=2 / (10 * 144))


def test_the_shift_for_an_area_reaches_scores_of_any_size():
    curves = CoverageCurves.from_maps([torch.tensor([[-500.0, 300.0]])], [torch.tensor([[True, False]])])
    assert curves.area(torch.zeros(1), shift_for_area(curves, torch.zeros(1), 1.0)).item() == 1.0
    assert shift_for_area(curves, torch.zeros(1), 0.5) == pytest.approx(-300.0, abs=1e-3)
