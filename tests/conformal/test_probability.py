"""The variant on probabilities: the clip at [0, 1], shifts in [-1, 1], and what happens with too few images (METHODS 1.3)."""

from __future__ import annotations

import warnings
from fractions import Fraction

import numpy as np
import pytest
import torch
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from core.conformal import CoverageCurves, calibrate
from core.conformal.probability import calibrate_probability, in_set

STEP = 16
"""Probabilities are multiples of 1/16, so that every difference is exact in float32."""


@st.composite
def probability_sets(draw, top: int = STEP):
    """Lists of lesion probabilities, image by image, and a threshold for each image."""
    number = st.integers(0, top).map(lambda k: k / STEP)
    lesions = draw(st.lists(st.lists(number, min_size=1, max_size=6), min_size=1, max_size=8))
    tau = torch.tensor([draw(number) for _ in lesions], dtype=torch.float32)
    return [torch.tensor(p, dtype=torch.float32)[None] for p in lesions], tau


def curves_of(lesions: list[torch.Tensor]) -> CoverageCurves:
    return CoverageCurves.from_maps(lesions, [torch.ones_like(p, dtype=torch.bool) for p in lesions])


def literal(p: torch.Tensor, tau: torch.Tensor, shift: float) -> torch.Tensor:
    """The definition itself, in float64: p >= clip(tau - t, 0, 1)."""
    return p.double() >= (tau.double() - shift).clamp(0, 1)


SHIFTS = st.integers(-STEP, STEP).map(lambda k: k / STEP)


@settings(max_examples=50, deadline=None)
@given(sets=probability_sets(), shift=SHIFTS)
def test_the_set_is_the_clipped_definition(sets, shift):
    for p, tau in zip(*sets, strict=True):
        assert torch.equal(in_set(p, tau, shift), literal(p, tau, shift))
        assert torch.equal(in_set(p, tau, shift, clip=False), p.double() >= tau.double() - shift)


@settings(max_examples=50, deadline=None)
@given(sets=probability_sets(top=STEP - 1), shift=SHIFTS)
def test_clip_and_no_clip_give_the_same_coverage(sets, shift):
    """Under >= the clip changes nothing unless a pixel has probability exactly 1."""
    for p, tau in zip(*sets, strict=True):
        assert torch.equal(in_set(p, tau, shift), in_set(p, tau, shift, clip=False))


@settings(max_examples=50, deadline=None)
@given(sets=probability_sets(), shift=SHIFTS)
def test_the_clip_only_ever_adds_pixels(sets, shift):
    for p, tau in zip(*sets, strict=True):
        extra = in_set(p, tau, shift) & ~in_set(p, tau, shift, clip=False)
        assert (in_set(p, tau, shift) >= in_set(p, tau, shift, clip=False)).all()
        assert (p[extra] == 1).all()


@settings(max_examples=50, deadline=None)
@given(
    sets=probability_sets(),
    alpha=st.sampled_from([Fraction(1, 10), Fraction(1, 4), Fraction(1, 2), Fraction(7, 10)]),
    clip=st.booleans(),
)
def test_the_shift_is_the_smallest_that_reaches_the_target(sets, alpha, clip):
    lesions, tau = sets
    n = len(lesions)
    assume(n >= 1 / alpha - 1)
    shift = calibrate_probability(curves_of(lesions), tau, float(alpha), clip)
    assert -1 <= shift <= 1

    def total(t: float) -> Fraction:
        inside = [in_set(p, x, t, clip) for p, x in zip(lesions, tau, strict=True)]
        return sum((Fraction(int(s.sum()), s.numel()) for s in inside), Fraction(0))

    target = (n + 1) * (1 - alpha)
    assert total(shift) >= target
    if shift > -1:
        assert total(shift - 1 / (2 * STEP)) < target


@settings(max_examples=30, deadline=None)
@given(sets=probability_sets(top=STEP - 1), alpha=st.sampled_from([0.25, 0.5, 0.7]))
def test_it_is_the_logit_variant_as_long_as_nothing_is_clipped(sets, alpha):
    lesions, tau = sets
    assume(len(lesions) >= 1 / alpha - 1)
    curves = curves_of(lesions)
    wanted = calibrate(curves, tau, alpha).shift
    assert (
        calibrate_probability(curves, tau, alpha)
        == calibrate_probability(curves, tau, alpha, clip=False)
        == wanted
    )


@settings(max_examples=30, deadline=None)
@given(
    sets=probability_sets(),
    alpha=st.sampled_from([0.25, 0.5, 0.7]),
    test=st.lists(st.integers(0, STEP), min_size=1, max_size=6),
)
def test_calibrating_without_the_clip_and_testing_with_it_loses_no_coverage(sets, alpha, test):
    lesions, tau = sets
    assume(len(lesions) >= 1 / alpha - 1)
    shift = calibrate_probability(curves_of(lesions), tau, alpha, clip=False)
    p = torch.tensor(test) / STEP
    assert in_set(p, tau[0], shift).sum() >= in_set(p, tau[0], shift, clip=False).sum()
    assert calibrate_probability(curves_of(lesions), tau, alpha, clip=True) <= shift


@pytest.mark.parametrize(("alpha", "n"), [(0.1, 8), (0.05, 3), (0.2, 3), (0.1, 1)])
def test_too_few_images_give_t_of_one_a_warning_and_nothing_is_missed(alpha, n):
    lesions = [torch.tensor([[0.0, 0.5, 1.0]])] * n
    tau = torch.full((n,), 1.0)
    with pytest.warns(UserWarning, match="whole image"):
        shift = calibrate_probability(curves_of(lesions), tau, alpha)
    assert shift == 1.0
    assert in_set(lesions[0], tau[0], shift).all()  # p = 0 as well: that is what >= is for
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        enough = round(1 / alpha) - 1
        assert (
            calibrate_probability(curves_of([lesions[0]] * enough), torch.full((enough,), 1.0), alpha) == 1.0
        )


@settings(max_examples=40, deadline=None)
@given(sets=probability_sets(top=8), c=st.integers(0, 4))
def test_a_constant_added_inside_the_range_moves_the_shift_alone(sets, c):
    lesions, tau = sets
    tau = tau.clamp(max=0.5)
    first = calibrate_probability(curves_of(lesions), tau, 0.5)
    second = calibrate_probability(curves_of(lesions), tau + c / STEP, 0.5)
    assert second == first + c / STEP
    for p, x in zip(lesions, tau, strict=True):
        assert torch.equal(in_set(p, x, first), in_set(p, x + c / STEP, second))


def test_images_without_lesion_change_nothing():
    lesions = [torch.tensor([[0.2, 0.7]]), torch.tensor([[0.4]]), torch.tensor([[0.9, 0.1, 0.3]])]
    alone = calibrate_probability(curves_of(lesions), torch.tensor([0.5, 0.5, 0.25]), 0.3)
    blank = CoverageCurves.from_maps([torch.tensor([[0.99]])] * 2, [torch.zeros(1, 1).bool()] * 2)
    both = CoverageCurves.merge([blank, curves_of(lesions)])
    assert calibrate_probability(both, torch.tensor([0.1, 0.9, 0.5, 0.5, 0.25]), 0.3) == alone


def test_probabilities_in_bins_count_as_often_as_they_occur():
    rng = np.random.default_rng(0)
    lesions = [torch.tensor(rng.integers(0, 9, (1, 40)) / 8, dtype=torch.float32) for _ in range(12)]
    curves = curves_of(lesions)
    tau = torch.full((12,), 0.5)
    exact = calibrate_probability(curves, tau, 0.3)
    assert calibrate_probability(curves.to_bins(torch.arange(9) / 8), tau, 0.3) == exact


def test_logits_are_refused():
    with pytest.raises(ValueError, match=r"outside \[0, 1\]"):
        calibrate_probability(curves_of([torch.tensor([[-3.0, 2.0]])]), torch.zeros(1), 0.5)
