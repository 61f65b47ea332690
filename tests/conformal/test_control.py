"""The exact shift against brute force and against MAPIE, and the properties that METHODS 1.11 lists for logits."""

from __future__ import annotations

import math
import warnings
from dataclasses import replace
from fractions import Fraction

import numpy as np
import pytest
import torch
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from core.conformal import (
    CoverageCurves,
    calibrate,
    calibrate_many,
    crc_target,
    images_needed,
    shift_table,
)
from core.conformal.words import guarantee_sentence

ALPHAS = [
    Fraction(1, 50),
    Fraction(1, 20),
    Fraction(1, 10),
    Fraction(1, 5),
    Fraction(1, 4),
    Fraction(1, 3),
    Fraction(1, 2),
    Fraction(7, 10),
]


def brute_force(pool, tau, alpha: Fraction, used=None) -> float:
    """Try every v_ij in rising order, in whole numbers: the first at which the deployed predicate reaches the target."""
    images = [i for i, m in enumerate(pool.masks) if m.any() and (used is None or used[i])]
    tries = sorted({float(tau[i] - s) for i in images for s in pool.maps[i][pool.masks[i]]})
    for t in tries:
        total = Fraction(0)
        for i in images:
            inside = (tau[i] - pool.maps[i][pool.masks[i]]) <= t
            total += Fraction(int(inside.sum()), len(inside))
        if total >= (len(images) + 1) * (1 - alpha):
            return t
    return math.inf


@settings(max_examples=60, deadline=None)
@given(data=st.data())
def test_the_shift_is_the_one_that_brute_force_finds(pools, data):
    pool, tau = data.draw(pools(ties=data.draw(st.booleans())))
    alpha = data.draw(st.sampled_from(ALPHAS))
    if data.draw(st.booleans()):
        tau = tau[:1].expand(len(tau)).clone()
    wanted = brute_force(pool, tau, alpha)
    table = shift_table(pool.curves, tau)
    everyone = np.ones((1, len(tau)), bool)
    assert calibrate(pool.curves, tau, float(alpha)).shift == wanted
    assert calibrate(pool.curves, tau, float(alpha), table=table).shift == wanted
    assert float(calibrate_many(table, float(alpha), everyone)[0]) == wanted
    assert float(table.shifts(torch.tensor([float(alpha)], dtype=torch.float64))[0]) == wanted
    # bins whose edges are the scores themselves lose nothing
    edges = torch.unique(pool.curves.pixels.value)
    assert calibrate(pool.curves.to_bins(edges), tau, float(alpha)).shift == wanted


@settings(max_examples=40, deadline=None)
@given(data=st.data())
def test_every_way_to_calibrate_a_part_agrees(pools, data):
    pool, tau = data.draw(pools())
    alpha = data.draw(st.sampled_from(ALPHAS))
    used = np.array(data.draw(st.lists(st.booleans(), min_size=len(tau), max_size=len(tau))))
    table = shift_table(pool.curves, tau)
    wanted = brute_force(pool, tau, alpha, used)
    assert calibrate(pool.curves, tau, float(alpha), used).shift == wanted
    assert calibrate(pool.curves, tau, float(alpha), np.flatnonzero(used)).shift == wanted
    assert calibrate(pool.curves, tau, float(alpha), torch.from_numpy(used), table=table).shift == wanted
    assert float(calibrate_many(table, float(alpha), used[None])[0]) == wanted
    if used.any():
        index = np.flatnonzero(used)
        assert calibrate(pool.curves.select(index), tau[index], float(alpha)).shift == wanted


@settings(max_examples=50, deadline=None)
@given(data=st.data())
def test_the_deployed_set_reaches_the_target_and_a_hair_less_does_not(pools, data):
    """The rounding trap: the predicate that is deployed, in float32, decides."""
    pool, tau = data.draw(pools(ties=False, with_empty=False))
    alpha = data.draw(st.sampled_from(ALPHAS))
    found = calibrate(pool.curves, tau, float(alpha))
    assume(found.feasible)

    def total(shift: float) -> float:
        return sum(
            float(((tau[i] - s) <= shift)[m].double().mean())
            for i, (s, m) in enumerate(zip(pool.maps, pool.masks, strict=True))
        )

    below = float(np.nextafter(np.float32(found.shift), np.float32(-np.inf)))
    target = float((found.n + 1) * (1 - alpha))
    assert total(found.shift) >= target - 1e-9
    assert total(below) < target - 1e-9
    assert found.coverage == pytest.approx(total(found.shift) / found.n)
    assert float(pool.curves.coverage(tau, found.shift).sum()) == pytest.approx(total(found.shift))


def test_large_random_sets_meet_their_target_in_float32(toy):
    """Full-precision scores and thresholds: tau - (tau - p) often differs from p, and no pixel may be lost by that."""
    pool = toy.make_pool(80, 1, ties=False)
    own = toy.predictors(pool, 0.1)
    for alpha in (0.05, 0.1, 0.2, 0.37):
        for tau in own.values():
            found = calibrate(pool.curves, tau, alpha)
            total = sum(
                float(((tau[i] - s) <= found.shift)[m].double().mean())
                for i, (s, m) in enumerate(zip(pool.maps, pool.masks, strict=True))
            )
            assert total >= 81 * (1 - alpha) - 1e-9


@settings(max_examples=30, deadline=None)
@given(data=st.data())
def test_the_order_of_images_does_not_matter(pools, data):
    pool, tau = data.draw(pools())
    alpha = float(data.draw(st.sampled_from(ALPHAS)))
    order = data.draw(st.permutations(range(len(tau))))
    first = calibrate(pool.curves, tau, alpha)
    second = calibrate(pool.curves.select(order), tau[list(order)], alpha)
    assert second == replace(first, coverage=second.coverage)
    assert second.coverage == pytest.approx(first.coverage, nan_ok=True)


@settings(max_examples=30, deadline=None)
@given(data=st.data())
def test_a_constant_added_to_all_thresholds_is_taken_back_by_the_shift(pools, data):
    pool, tau = data.draw(pools())
    alpha = float(data.draw(st.sampled_from(ALPHAS)))
    c = data.draw(st.integers(-80, 80)) / 8
    first, second = calibrate(pool.curves, tau, alpha), calibrate(pool.curves, tau + c, alpha)
    assert second.shift == first.shift + c
    for i, score in enumerate(pool.maps):
        assert torch.equal((tau[i] - score) <= first.shift, (tau[i] + c - score) <= second.shift)


@settings(max_examples=30, deadline=None)
@given(data=st.data())
def test_a_constant_predictor_is_plain_crc(pools, data):
    """COAT whose predictor says the same for every image gives the very sets of CRC: one threshold, found without any tau_hat."""
    pool, tau = data.draw(pools(with_empty=False))
    alpha = data.draw(st.sampled_from(ALPHAS))
    n = len(pool.maps)
    constant = tau[:1].expand(n).clone()
    found = calibrate(pool.curves, constant, float(alpha), method="COAT")
    # CRC as its paper states it: the largest threshold whose mean loss R obeys n/(n+1) R + 1/(n+1) <= alpha.
    candidates = sorted(
        {float(s) for score, m in zip(pool.maps, pool.masks, strict=True) for s in score[m]}, reverse=True
    )
    crc = -math.inf
    for lam in candidates:
        loss = sum(
            1 - Fraction(int((s[m] >= lam).sum()), int(m.sum()))
            for s, m in zip(pool.maps, pool.masks, strict=True)
        )
        if (loss + 1) / (n + 1) <= alpha:
            crc = lam
            break
    for i, score in enumerate(pool.maps):
        assert torch.equal((constant[i] - score) <= found.shift, score >= crc)


@settings(max_examples=30, deadline=None)
@given(data=st.data())
def test_images_without_lesion_change_nothing(pools, data):
    pool, tau = data.draw(pools(with_empty=False))
    alpha = float(data.draw(st.sampled_from(ALPHAS)))
    k = data.draw(st.integers(1, 4))
    blank = CoverageCurves.from_maps([torch.full((1, 3), 9.0)] * k, [torch.zeros(1, 3, dtype=torch.bool)] * k)
    more = CoverageCurves.merge([blank, pool.curves])
    tau_more = torch.cat([torch.full((k,), -3.0), tau])
    alone, together = calibrate(pool.curves, tau, alpha), calibrate(more, tau_more, alpha)
    assert (together.shift, together.n, together.feasible) == (alone.shift, alone.n, alone.feasible)
    assert together.coverage == alone.coverage
    assert (alone.n_empty, together.n_empty) == (0, k)
    assert f"({k} more calibration image" in together.guarantee
    assert "without a lesion" not in alone.guarantee
    many = calibrate_many(shift_table(more, tau_more), alpha, np.ones((1, len(tau_more)), bool))
    assert float(many[0]) == alone.shift


def one_pixel_images(n: int) -> CoverageCurves:
    """n images with one lesion pixel each, at scores 0, 1, 2, …"""
    return CoverageCurves.from_maps(
        [torch.tensor([[float(i), -9.0]]) for i in range(n)], [torch.tensor([[True, False]])] * n
    )


@pytest.mark.parametrize("spell", ["1 / d", "decimal", "1 - (1 - 1 / d)"])
def test_the_boundary_pairs_need_every_image_and_no_more(spell):
    """The float trap of METHODS 1.3: alpha = 1/d with n = d - 1 is feasible for every d, n = d - 2 is not."""
    pool = one_pixel_images(199)
    tau = torch.zeros(199)
    table = shift_table(pool, tau)
    for d in range(2, 201):
        alpha = {"1 / d": 1 / d, "decimal": float(f"{1 / d:.17g}"), "1 - (1 - 1 / d)": 1 - (1 - 1 / d)}[spell]
        n = d - 1
        assert images_needed(alpha) == n
        enough = calibrate(pool, tau, alpha, np.arange(n))
        assert enough.feasible
        assert enough.shift == 0.0  # the lowest score, 0, has to be inside
        assert enough.coverage == 1.0
        halves = np.arange(199)[None] < np.array([[n], [n - 1]])
        many = calibrate_many(table, alpha, halves)
        assert many[0] == 0.0
        assert many[1] == np.inf
        short = calibrate(pool, tau, alpha, np.arange(n - 1))
        assert not short.feasible
        assert short.shift == math.inf
        assert (
            float(
                shift_table(pool.select(range(n)), tau[:n]).shifts(
                    torch.tensor([alpha], dtype=torch.float64)
                )[0]
            )
            == 0.0
        )


@pytest.mark.parametrize(
    ("alpha", "n", "more"), [(0.1, 8, 1), (0.1, 1, 8), (0.05, 10, 9), (0.2, 0, 4), (0.02, 40, 9)]
)
def test_too_few_images_give_the_whole_image_and_say_how_many_more(alpha, n, more):
    pool = one_pixel_images(60)
    found = calibrate(pool, torch.zeros(60), alpha, np.arange(n))
    assert found.shift == math.inf
    assert not found.feasible
    assert found.n == n
    assert f"Bring {more} more" in found.guarantee
    assert "whole image" in found.guarantee
    assert (pool.area(torch.zeros(60), found.shift) == 1).all()
    assert (pool.coverage(torch.zeros(60), found.shift) == 1).all()
    enough = calibrate(pool, torch.zeros(60), alpha, np.arange(n + more))
    assert enough.feasible
    assert "whole image" not in enough.guarantee


@pytest.mark.parametrize(
    ("alpha", "words"),
    [(0.1, "90%"), (0.05, "95%"), (0.025, "97.5%"), (0.005, "99.5%"), (0.02, "98%"), (0.29, "71%")],
)
@pytest.mark.parametrize("n", [2, 999])
def test_the_sentence_never_promises_more_than_was_asked(alpha, words, n):
    sentence = guarantee_sentence(alpha, n)
    assert words in sentence.replace(" %", "%").replace("\u00a0%", "%")


def test_the_sentence_states_the_assumption_and_the_numbers():
    sentence = guarantee_sentence(0.1, 212)
    for part in ("212 images", "drawn alike", "on average", "at least", "may be a little less"):
        assert part in sentence


@given(n=st.integers(1, 500), alpha=st.floats(0.01, 0.99), bound=st.floats(0.1, 3))
def test_the_target_is_crc_exactly_when_the_bound_is_one(n, alpha, bound):
    plain = (n + 1) * (1 - alpha)
    assert crc_target(n, alpha) == pytest.approx(plain)
    assert crc_target(n, alpha, bound) / n - crc_target(n, alpha) / n == pytest.approx((bound - 1) / n)
    # n/(n+1) (1 - R) + B/(n+1) <= alpha holds with equality at the target
    r = crc_target(n, alpha, bound) / n
    assert n / (n + 1) * (1 - r) + bound / (n + 1) == pytest.approx(alpha)


@settings(max_examples=40, deadline=None)
@given(data=st.data())
def test_a_smaller_alpha_never_gives_a_smaller_set(pools, data):
    pool, tau = data.draw(pools())
    alphas = torch.linspace(0.02, 0.98, 33, dtype=torch.float64)
    shifts = shift_table(pool.curves, tau).shifts(alphas)
    assert (shifts[1:] <= shifts[:-1]).all()


@pytest.mark.parametrize("alpha", [0.0, 1.0, -0.1, 1.7, math.nan])
def test_an_alpha_outside_its_range_is_refused(alpha):
    with pytest.raises(ValueError, match="strictly between 0 and 1"):
        calibrate(one_pixel_images(3), torch.zeros(3), alpha)


@pytest.mark.parametrize("alpha", [0.5, 0.01])
def test_thresholds_that_do_not_fit_are_refused(alpha):
    pool = one_pixel_images(3)
    with pytest.raises(ValueError, match="3 images"):
        calibrate(pool, torch.zeros(2), alpha)
    with pytest.raises(ValueError, match="finite"):
        calibrate(pool, torch.tensor([0.0, torch.nan, 0.0]), alpha)


def test_scores_of_any_finite_size_are_calibrated_exactly():
    """Quantiles by runs must not stumble over ranges that float32 cannot hold, nor over ranges smaller than its numbers."""
    for scale in (3e38, 1e30, 1.0, 1e-30, 1e-40):
        values = torch.tensor([-1.0, -0.5, -0.25, 0.0, 0.25, 0.5, 0.75, 1.0, 0.875]) * scale
        curves = CoverageCurves.from_maps([v[None, None] for v in values], [torch.ones(1, 1).bool()] * 9)
        for k in range(1, 10):
            alpha = 1 - (k - 0.5) / 10  # k of the nine images have to be covered
            assert calibrate(curves, torch.zeros(9), alpha).shift == float((-values).sort().values[k - 1])


def test_a_set_without_any_lesion_has_only_the_whole_image():
    blank = CoverageCurves.from_maps([torch.zeros(1, 3)] * 3, [torch.zeros(1, 3).bool()] * 3)
    found = calibrate(blank, torch.zeros(3), 0.5)
    assert (found.shift, found.n, found.n_empty) == (math.inf, 0, 3)
    assert math.isnan(found.coverage)
    table = shift_table(blank, torch.zeros(3))
    assert calibrate_many(table, 0.5, np.ones((2, 3), bool)).tolist() == [math.inf, math.inf]
    assert table.shifts(torch.tensor([0.5])).tolist() == [math.inf]


def test_many_halves_equal_one_by_one(toy):
    pool = toy.make_pool(60, 3, empty=7)
    rng = np.random.default_rng(0)
    halves = rng.random((50, 67)) < rng.uniform(0.05, 0.95, (50, 1))
    for curves in (pool.curves, pool.curves.to_bins()):
        for tau in toy.predictors(pool, 0.1).values():
            table = shift_table(curves, tau)
            many = calibrate_many(table, 0.1, halves)
            assert many.tolist() == [calibrate(curves, tau, 0.1, half).shift for half in halves]


@pytest.mark.parametrize("step", [0.01, 0.002])
@pytest.mark.parametrize("alpha", [0.1, 0.23, 0.4])
def test_mapie_finds_the_same_threshold_within_its_grid(toy, alpha, step):
    """MAPIE: strict >, a grid, the largest valid threshold with the bound strictly below alpha. So 0 <= ours - its <= one step."""
    pytest.importorskip("mapie", reason="mapie, the oracle for CRC, is not installed")
    from mapie.risk_control import SemanticSegmentationController

    for seed in range(3):
        pool = toy.make_pool(37, seed, ties=False)
        p = torch.sigmoid(torch.stack(pool.maps) * 0.5)
        masks = torch.stack(pool.masks)
        grid = np.arange(0, 1, step)
        theirs = SemanticSegmentationController(
            predict_function=lambda x: x,
            risk="recall",
            method="crc",
            target_level=1 - alpha,
            predict_params=grid,
        )
        with warnings.catch_warnings():
            warnings.simplefilter("error")  # "The risk cannot be controlled" would make this test empty
            theirs.calibrate(p.double().numpy()[:, None], masks.reshape(37, -1).numpy())
        ours = -calibrate(CoverageCurves.from_maps(p, masks), torch.zeros(37), alpha).shift
        difference = ours - float(theirs.best_predict_param[0])
        assert -1e-9 <= difference <= step + 1e-9
        assert 0.02 < ours < 0.98
        # and one step of the grid above MAPIE's choice no longer keeps the promise
        curves = CoverageCurves.from_maps(p, masks)
        above = curves.coverage(torch.zeros(37), -(ours + step)).sum()
        assert above < 38 * (1 - alpha)
