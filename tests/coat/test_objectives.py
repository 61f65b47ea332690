"""The objectives of COAT and AT: limits, gradients, signs, and agreement with a plain loop (METHODS 1.5 and 1.11)."""

from __future__ import annotations

import math
from itertools import pairwise

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from core.coat.objectives import at_loss, coat_loss, soft_coverage, temperature_at


def scores(n: int = 4, q: int = 50, seed: int = 0) -> torch.Tensor:
    return torch.randn(n, q, generator=torch.Generator().manual_seed(seed), dtype=torch.float64) * 3


def test_soft_coverage_becomes_hard_coverage_as_the_temperature_falls() -> None:
    s = scores()
    tau = torch.tensor([-1.03, 0.01, 0.7, 2.2], dtype=torch.float64)
    hard = (s >= tau[:, None]).double().mean(1)
    errors = [float((soft_coverage(s, tau, t) - hard).abs().max()) for t in (1.0, 0.1, 1e-3, 1e-6)]
    assert errors[0] > 0.01
    assert errors[-1] < 1e-9
    assert errors == sorted(errors, reverse=True)


def test_a_score_on_the_threshold_is_half_inside_softly() -> None:
    assert soft_coverage(torch.zeros(1, 1), torch.zeros(1), 1e-6).item() == pytest.approx(0.5)


@given(st.floats(0.05, 10), st.floats(-5, 5))
def test_soft_coverage_falls_with_the_threshold_no_faster_than_a_quarter_over_t(
    temperature: float, tau: float
) -> None:
    s = scores(1)
    at = torch.tensor([tau], dtype=torch.float64, requires_grad=True)
    (slope,) = torch.autograd.grad(soft_coverage(s, at, temperature).sum(), at)
    assert -1 / (4 * temperature) - 1e-12 <= slope.item() <= 0


def test_the_gradient_is_the_formula() -> None:
    s, t, alpha = scores(), 0.7, 0.1
    tau = torch.tensor([-1.0, 0.0, 1.0, 2.0], dtype=torch.float64, requires_grad=True)
    (slope,) = torch.autograd.grad(coat_loss(s, tau, torch.tensor(alpha), t), tau)
    inside = torch.sigmoid((s - tau.detach()[:, None]) / t)
    by_hand = 2 * (inside.mean(1) - (1 - alpha)) * (-1 / t) * (inside * (1 - inside)).mean(1) / len(s)
    torch.testing.assert_close(slope, by_hand)
    assert torch.autograd.gradcheck(lambda x: coat_loss(s, x, torch.tensor(alpha), t), (tau,))


@pytest.mark.parametrize("miss", ["squared", "absolute"])
def test_too_little_coverage_pushes_the_threshold_down(miss: str) -> None:
    s = scores(1)
    for start, sign in ((4.0, 1), (-9.0, -1)):
        tau = torch.tensor([start], dtype=torch.float64, requires_grad=True)
        (slope,) = torch.autograd.grad(coat_loss(s, tau, torch.tensor(0.1), 1.0, miss), tau)
        assert slope.item() * sign > 0  # descent moves against the gradient


def test_lesions_of_different_sizes_are_not_pooled() -> None:
    small, large = torch.tensor([5.0, 5.0]), torch.full((40,), -5.0)
    padded, weight = torch.zeros(2, 40), torch.zeros(2, 40)
    padded[0, :2], weight[0, :2] = small, 1
    padded[1], weight[1] = large, 1
    together = coat_loss(padded, torch.zeros(2), torch.tensor(0.1), 1.0, weight=weight)
    alone = [coat_loss(x[None], torch.zeros(1), torch.tensor(0.1), 1.0) for x in (small, large)]
    torch.testing.assert_close(together, (alone[0] + alone[1]) / 2)


def test_the_order_of_pixels_does_not_matter() -> None:
    s = scores()
    turned = s[:, torch.randperm(s.shape[1], generator=torch.Generator().manual_seed(1))]
    tau = torch.zeros(4, dtype=torch.float64)
    torch.testing.assert_close(
        coat_loss(s, tau, torch.tensor(0.1), 1.0), coat_loss(turned, tau, torch.tensor(0.1), 1.0)
    )


def test_an_image_without_lesion_changes_neither_loss_nor_gradient() -> None:
    s, weight = scores(2).float(), torch.ones(2, 50)
    tau = torch.zeros(3, requires_grad=True)
    longer, heavier = torch.cat([s, torch.zeros(1, 50)]), torch.cat([weight, torch.zeros(1, 50)])
    loss = coat_loss(longer, tau, torch.tensor(0.1), 1.0, weight=heavier)
    torch.testing.assert_close(loss, coat_loss(s, tau[:2], torch.tensor(0.1), 1.0, weight=weight))
    loss.backward()
    assert tau.grad is not None and tau.grad[2] == 0


def test_at_ignores_images_without_an_oracle_and_is_zero_on_it() -> None:
    oracle = torch.tensor([1.0, torch.nan, -2.0])
    assert at_loss(oracle.nan_to_num(99.0), oracle).item() == 0
    assert at_loss(torch.tensor([2.0, 7.0, -2.0]), oracle).item() == pytest.approx(0.25)
    alone = torch.tensor([3.0], requires_grad=True)
    at_loss(alone, torch.tensor([torch.nan])).backward()
    assert alone.grad is not None and alone.grad.item() == 0


def test_the_probability_form_has_a_ceiling_and_logits_have_none() -> None:
    for t in (0.05, 0.455, 1.0):
        best = soft_coverage(torch.ones(1, 9), torch.zeros(1), t).item()
        assert best == pytest.approx(1 / (1 + math.exp(-1 / t)), abs=1e-6)
    assert soft_coverage(torch.ones(1, 9), torch.tensor([-50.0]), 1.0).item() > 0.999999


def test_the_temperature_falls_geometrically_between_its_ends() -> None:
    values = [temperature_at(k, 5, 6.0, 1.0) for k in range(5)]
    assert values[0] == 6.0
    assert values[-1] == pytest.approx(1.0)
    ratios = [b / a for a, b in pairwise(values)]
    assert max(ratios) == pytest.approx(min(ratios))


def test_an_unknown_way_of_counting_a_miss_is_refused() -> None:
    with pytest.raises(ValueError, match="squared"):
        coat_loss(scores(), torch.zeros(4), torch.tensor(0.1), 1.0, "cubed")
