"""Oracle and plug-in thresholds, exact and binned, and interpolation between the knots of alpha."""

from __future__ import annotations

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from core.coat.thresholds import ALPHA_KNOTS, between_knots, oracle_thresholds, plug_in_thresholds
from core.conformal import CoverageCurves, evaluate


def curves(
    n: int = 6, seed: int = 0, side: int = 24
) -> tuple[CoverageCurves, list[torch.Tensor], list[torch.Tensor]]:
    rng = torch.Generator().manual_seed(seed)
    maps = [torch.randn(side, side, generator=rng) * 3 for _ in range(n)]
    masks = [torch.rand(side, side, generator=rng) < 0.2 for _ in range(n)]
    return CoverageCurves.from_maps(maps, masks), maps, masks


@given(st.floats(0.01, 0.9), st.integers(0, 30))
@settings(max_examples=30, deadline=None)
def test_the_oracle_covers_at_least_the_target_and_one_pixel_fewer_would_not(alpha: float, seed: int) -> None:
    c, _, _ = curves(seed=seed)
    covered = c.coverage(oracle_thresholds(c, alpha))[:, 0]
    assert (covered >= 1 - alpha - 1e-9).all()
    assert (covered <= 1 - alpha + 1 / c.lesion_size + 1e-9).all()  # no ties in these scores


def test_the_oracle_has_next_to_no_gap_and_never_less_than_the_target() -> None:
    c, _, _ = curves()
    e = evaluate(c, oracle_thresholds(c, 0.1), 0.0, 0.1)
    assert 0 <= e.gap <= float((1 / c.lesion_size).max())
    assert e.shortfall == 0


def test_an_image_without_lesion_has_no_oracle() -> None:
    c = CoverageCurves.from_maps([torch.zeros(4, 4)], [torch.zeros(4, 4, dtype=torch.bool)])
    assert torch.isnan(oracle_thresholds(c, 0.1)).all()


def test_the_plug_in_threshold_is_the_largest_that_the_model_expects_to_suffice() -> None:
    c, maps, _ = curves()
    found = plug_in_thresholds(c, torch.tensor([0.05, 0.3]))
    for i, scores in enumerate(maps):
        p = torch.sigmoid(scores.double())
        for k, alpha in enumerate((0.05, 0.3)):
            by_hand = max(
                float(t) for t in scores.reshape(-1) if p[scores >= t].sum() / p.sum() >= 1 - alpha - 1e-9
            )
            assert found[i, k].item() == pytest.approx(by_hand)


def test_plug_in_thresholds_rise_with_alpha_and_ignore_the_mask() -> None:
    c, maps, masks = curves()
    found = plug_in_thresholds(c, ALPHA_KNOTS)
    assert (found.diff(dim=1) >= 0).all()
    other = CoverageCurves.from_maps(maps, [~m for m in masks])
    torch.testing.assert_close(found, plug_in_thresholds(other, ALPHA_KNOTS))


def test_a_calibrated_model_expects_what_it_gets() -> None:
    rng = torch.Generator().manual_seed(3)
    scores = torch.randn(400, 400, generator=rng) * 2 - 2
    mask = torch.rand(400, 400, generator=rng) < torch.sigmoid(scores)
    c = CoverageCurves.from_maps([scores], [mask])
    covered = c.coverage(plug_in_thresholds(c, torch.tensor([0.1]))[:, 0])
    assert covered.item() == pytest.approx(0.9, abs=0.01)


def test_binned_thresholds_are_close_to_the_exact_ones_and_the_oracle_never_above() -> None:
    c, _, _ = curves()
    binned = c.to_bins()
    width = 30 / 1200 + 1e-5
    plug_in = (plug_in_thresholds(binned, ALPHA_KNOTS) - plug_in_thresholds(c, ALPHA_KNOTS)).abs()
    assert (
        plug_in.mean() <= width and plug_in.max() <= 4 * width
    )  # a share moves a little more where scores lie thin
    difference = oracle_thresholds(c, 0.1) - oracle_thresholds(binned, 0.1)
    assert (difference >= 0).all() and difference.max() <= width


def test_between_knots_hits_the_knots_stays_between_them_and_holds_outside() -> None:
    values = torch.arange(len(ALPHA_KNOTS)).float()[None] * 2
    for k, alpha in enumerate(ALPHA_KNOTS.tolist()):
        assert between_knots(values, alpha).item() == pytest.approx(2 * k, abs=1e-4)
    assert 8 < between_knots(values, 0.12).item() < 10
    assert between_knots(values, 0.001).item() == 0
    assert between_knots(values, 0.95).item() == 2 * (len(ALPHA_KNOTS) - 1)
    many = between_knots(values.expand(3, -1), torch.tensor([0.05, 0.1, 0.2]))
    assert (many.diff() > 0).all()
