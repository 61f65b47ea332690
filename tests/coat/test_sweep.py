"""Temperatures: which are fitted, what changes between them, how one is chosen on D2, and what a soft threshold can and cannot do."""

from __future__ import annotations

import math
from dataclasses import asdict

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from core.coat.fit import shifted_gap
from core.coat.softness import (
    SILENT,
    ceiling,
    highest_temperature,
    quiet_temperature,
    silent_share,
    slope_of,
    soft_coverage_of,
    soft_mask,
    speaking,
    unreachable,
)
from core.coat.sweep import (
    TEMPERATURES,
    VARIANTS,
    Variant,
    choose,
    fit_variant,
    out_of_fold_gaps,
    settings_of,
    thinned,
)
from core.coat.thresholds import ALPHA_KNOTS
from core.conformal import CoverageCurves
from core.lab.phantom_inputs import without_picture
from core.settings import CoatSettings, check


def curves_of(seed: int, n: int = 4, side: int = 6, spread: float = 3.0) -> CoverageCurves:
    rng = np.random.default_rng(seed)
    scores = torch.from_numpy(rng.normal(0, spread, (n, side, side))).float().clamp(-15, 15)
    masks = torch.from_numpy(rng.random((n, side, side)) < 0.4)
    masks[:, 0, 0] = True
    return CoverageCurves.from_maps(scores, masks)


def made_inputs(n: int = 24):
    rng = torch.Generator().manual_seed(3)
    from core.coat.features import FEATURE_NAMES

    features = torch.randn(n, len(FEATURE_NAMES), generator=rng)
    plug_in = torch.randn(n, 1, generator=rng) + torch.linspace(-2, 2, len(ALPHA_KNOTS))
    quantiles = torch.randn(n, 64, generator=rng).sort(1).values * 3
    return without_picture(features, plug_in), quantiles


def test_the_fixed_grid_holds_both_units_and_one_temperature_that_falls() -> None:
    fixed = {(v.unit, v.start) for v in VARIANTS if not v.falls}
    assert fixed == {("logit", t) for t in (0.25, 0.5, 1, 2, 4, 8)} | {
        ("probability", t) for t in (0.02, 0.05, 0.1, 0.25)
    }
    assert [v.name for v in VARIANTS if v.falls] == ["logit 6 to 1"]
    assert len({v.name for v in VARIANTS}) == len(VARIANTS)
    for v in VARIANTS:
        check(settings_of(v, CoatSettings()))
        assert v.falls or v.start in TEMPERATURES[v.unit]


def test_a_variant_changes_temperature_unit_and_start_only() -> None:
    base = CoatSettings(objective="at then coat", epochs=7, members=3, miss="squared")
    made = asdict(settings_of(Variant("probability", 0.1, 0.02), base))
    differs = {k for k, v in asdict(base).items() if made[k] != v}
    assert differs == {"objective", "unit", "temperature_start", "temperature_end"}
    assert made["objective"] == "coat"


def test_a_fit_keeps_its_temperature_and_its_gaps_are_those_of_its_own_out_of_fold_thresholds() -> None:
    inputs, quantiles = made_inputs()
    quantiles[3] = torch.nan  # an image without a lesion
    base = CoatSettings(epochs=2, members=2)
    fitted = fit_variant(Variant("probability", 0.1, 0.1), inputs, quantiles, base)
    assert [row["temperature"] for row in fitted.history] == pytest.approx([0.1] * 4)
    gaps = out_of_fold_gaps(fitted, quantiles)
    assert len(fitted.out_of_fold) == len(quantiles) - 1
    there = ~torch.isnan(quantiles).any(1)
    assert gaps[0.1] == shifted_gap(quantiles[there], fitted.out_of_fold, (0.1,))
    assert sum(gaps.values()) / len(gaps) == pytest.approx(fitted.gap)


def test_the_choice_is_the_smallest_gap_and_needs_one() -> None:
    assert choose({"a": 0.2, "b": 0.1, "c": 0.1}) == "b"
    with pytest.raises(ValueError, match="none can be chosen"):
        choose({})


@given(st.integers(1, 60), st.integers(1, 4), st.integers(1, 25))
@settings(deadline=None, max_examples=40)
def test_a_thinned_history_keeps_both_ends_and_means_over_members(
    epochs: int, members: int, wanted: int
) -> None:
    rows = [
        {"member": float(m), "epoch": float(e), "temperature": 1.0, "loss": float(e + m), "gap": 0.5}
        for m in range(members)
        for e in range(epochs)
    ]
    thin = thinned(rows, wanted)
    assert len(thin) <= min(wanted, epochs)
    assert thin[0]["epoch"] == 0
    assert wanted == 1 or thin[-1]["epoch"] == epochs - 1
    for row in thin:
        assert row["loss"] == pytest.approx(row["epoch"] + (members - 1) / 2)
    assert thinned([]) == ()


@given(st.integers(0, 10_000), st.sampled_from(["logit", "probability"]), st.floats(-4, 4))
@settings(deadline=None, max_examples=60)
def test_soft_coverage_becomes_the_hard_one_as_t_falls(seed: int, unit: str, tau: float) -> None:
    curves = curves_of(seed)
    at = torch.full((len(curves),), tau)
    value = curves.lesion.value
    distance = (
        (torch.sigmoid(value) - torch.sigmoid(torch.tensor(tau))) if unit == "probability" else value - tau
    )
    nearest = float(distance.abs().min())
    hard = curves.coverage(at)[:, 0]
    small = max(nearest / 40, 1e-7)
    if nearest > 1e-5:
        assert torch.allclose(soft_coverage_of(curves, at, small, unit), hard, atol=1e-6)


@given(
    st.integers(0, 10_000), st.sampled_from(["logit", "probability"]), st.floats(-6, 6), st.floats(0.01, 30)
)
@settings(deadline=None, max_examples=80)
def test_the_slope_is_the_derivative_and_never_above_one_over_four_t(
    seed: int, unit: str, tau: float, t: float
) -> None:
    curves = curves_of(seed)
    at = torch.full((len(curves),), tau)
    slope = slope_of(curves, at, t, unit)
    assert (slope <= 1 / (4 * t) + 1e-9).all()
    assert ((speaking(curves, at, t, unit) >= 0) & (speaking(curves, at, t, unit) <= 1 + 1e-9)).all()
    where = torch.tensor(tau, dtype=torch.float64)
    where = (torch.sigmoid(where) if unit == "probability" else where).requires_grad_()
    value = curves.select([1]).lesion.value.double()
    value = torch.sigmoid(value) if unit == "probability" else value
    (grad,) = torch.autograd.grad(torch.sigmoid((value - where) / t).mean(), where)
    assert float(slope[1]) == pytest.approx(-float(grad), rel=2e-3, abs=1e-5)


def test_an_image_whose_whole_lesion_lies_on_the_threshold_reaches_the_bound() -> None:
    flat = CoverageCurves.from_maps(torch.full((1, 4, 4), 0.7), torch.ones(1, 4, 4, dtype=torch.bool))
    assert float(slope_of(flat, torch.tensor([0.7]), 0.5)[0]) == pytest.approx(0.5)
    assert float(speaking(flat, torch.tensor([0.7]), 0.5)[0]) == pytest.approx(1.0)


def test_binned_and_exact_curves_agree_and_images_without_a_lesion_have_no_share() -> None:
    rng = np.random.default_rng(0)
    masks = torch.from_numpy(rng.random((3, 8, 8)) < 0.3)
    masks[2] = False
    curves = CoverageCurves.from_maps(torch.from_numpy(rng.normal(0, 3, (3, 8, 8))).float(), masks)
    tau = torch.tensor([0.0, 1.0, -1.0])
    exact, binned = (soft_coverage_of(c, tau, 1.0) for c in (curves, curves.to_bins()))
    assert torch.isnan(exact[2]) and torch.isnan(binned[2])
    assert torch.allclose(exact[:2], binned[:2], atol=0.25 / 40)  # slope at most 1/4, bins of 1/40
    assert (binned[:2] <= exact[:2] + 1e-9).all()


@given(st.floats(0.02, 8.0), st.floats(0.01, 0.6))
@settings(deadline=None, max_examples=100)
def test_the_unreachable_region_is_where_a_brute_force_maximum_misses_the_target(
    t: float, alpha: float
) -> None:
    """Best case of all images: every lesion pixel has p = 1. Search all thresholds in [0, 1]."""
    thresholds = torch.linspace(0, 1, 2001, dtype=torch.float64)
    best = float(torch.sigmoid((1.0 - thresholds) / t).max())
    assert ceiling(t) == pytest.approx(best, abs=1e-9)
    if abs(best - (1 - alpha)) > 1e-9:
        assert unreachable(t, alpha) == (best < 1 - alpha)
        assert unreachable(t, alpha) == (t > highest_temperature(alpha))
    assert not unreachable(t, alpha, "logit")
    tau = torch.linspace(-200, 15, 2001, dtype=torch.float64)
    assert float(torch.sigmoid((0.0 - tau) / t).max()) > 1 - alpha  # logits: a threshold may always go lower


def test_the_highest_temperature_is_known_by_hand() -> None:
    assert highest_temperature(0.1) == pytest.approx(1 / math.log(9))
    assert ceiling(highest_temperature(0.1)) == pytest.approx(0.9)
    assert highest_temperature(0.5) == math.inf
    with pytest.raises(ValueError, match="strictly between"):
        highest_temperature(1.0)


def test_below_the_quiet_temperature_most_images_are_silent_and_above_it_they_are_not() -> None:
    curves, tau = curves_of(1, n=9, side=12), torch.full((9,), 1.0)
    for unit in ("logit", "probability"):
        t = quiet_temperature(curves, tau, unit)
        assert silent_share(curves, tau, 0.9 * t, unit) >= 0.5 > silent_share(curves, tau, 1.1 * t, unit)
    assert quiet_temperature(curves, tau, "logit", low=5.0) == 5.0
    assert silent_share(curves, tau, 1e-4) == 1.0
    assert 0 < SILENT < 0.1


def test_a_temperature_of_zero_and_an_unknown_unit_are_refused() -> None:
    with pytest.raises(ValueError, match="above 0"):
        soft_mask(torch.zeros(2), 0.0, 0.0)
    with pytest.raises(ValueError, match="'logit' or of 'probability'"):
        soft_mask(torch.zeros(2), 0.0, 1.0, "odds")
