"""Losses for long tails: plain formulas, their limits where they are cross-entropy, and what they do to rare classes."""

from __future__ import annotations

import pytest
import torch
import torch.nn.functional as F

from core.car.baselines import (
    class_balanced,
    drw_weights,
    effective_weights,
    focal,
    ldam,
    ldam_margins,
    log_prior,
    logit_adjusted,
)

COUNTS = [1000, 100, 10]


def batch(n: int = 12) -> tuple[torch.Tensor, torch.Tensor]:
    rng = torch.Generator().manual_seed(0)
    return torch.randn(n, 3, generator=rng, requires_grad=True), torch.randint(3, (n,), generator=rng)


def test_effective_weights_are_the_formula_with_mean_one() -> None:
    w = effective_weights(COUNTS, 0.99)
    raw = torch.tensor([(1 - 0.99) / (1 - 0.99**n) for n in COUNTS], dtype=torch.float64)
    torch.testing.assert_close(w, raw / raw.mean())
    assert effective_weights(COUNTS, 0.0).tolist() == [1, 1, 1]
    inverse = 1 / torch.tensor(COUNTS, dtype=torch.float64)
    torch.testing.assert_close(
        effective_weights(COUNTS, 1 - 1e-9), inverse / inverse.mean(), rtol=1e-4, atol=0
    )
    assert effective_weights([5, 0])[1] == 0
    with pytest.raises(ValueError, match="beta"):
        effective_weights(COUNTS, 1.0)


def test_even_weights_are_cross_entropy() -> None:
    logits, labels = batch()
    torch.testing.assert_close(class_balanced(logits, labels, torch.ones(3)), F.cross_entropy(logits, labels))
    w = effective_weights(COUNTS)
    by_loop = sum(
        float(w[y]) * F.cross_entropy(f[None], y[None]) for f, y in zip(logits, labels, strict=True)
    )
    torch.testing.assert_close(class_balanced(logits, labels, w), by_loop / 12)


def test_focal_is_cross_entropy_at_zero_and_its_gradient_is_finite_where_all_is_certain() -> None:
    logits, labels = batch()
    torch.testing.assert_close(focal(logits, labels, 0.0), F.cross_entropy(logits, labels))
    p = torch.softmax(logits, 1).gather(1, labels[:, None])[:, 0]
    torch.testing.assert_close(focal(logits, labels, 2.0), (-((1 - p) ** 2) * p.log()).mean())
    for gamma in (0.5, 2.0):
        sure = torch.tensor([[200.0, 0.0]], requires_grad=True)
        focal(sure, torch.tensor([0]), gamma).backward()
        assert bool(torch.isfinite(sure.grad).all())
    double = logits.detach().double().requires_grad_()
    assert torch.autograd.gradcheck(lambda x: focal(x.double(), labels), (double,), eps=1e-3, atol=1e-2)


def test_margins_fall_as_the_fourth_root_and_lower_the_true_class() -> None:
    m = ldam_margins([10_000, 16, 1])
    assert m.tolist() == pytest.approx([0.05, 0.25, 0.5])
    logits, labels = batch()
    lowered = logits.detach().clone()
    for q, y in enumerate(labels):
        lowered[q, y] -= 30 * m[y].float()
    torch.testing.assert_close(ldam(logits, labels, m), F.cross_entropy(lowered, labels))
    torch.testing.assert_close(ldam(logits, labels, torch.zeros(3)), F.cross_entropy(logits, labels))
    w = effective_weights(COUNTS)
    torch.testing.assert_close(
        ldam(logits, labels, m, weights=w), F.cross_entropy(lowered, labels, weight=w.float())
    )


def test_weights_are_deferred() -> None:
    assert drw_weights(COUNTS, 31, 40).tolist() == [1, 1, 1]
    torch.testing.assert_close(drw_weights(COUNTS, 32, 40), effective_weights(COUNTS, 0.9999))


def test_adjusted_logits_are_the_balanced_softmax() -> None:
    logits, labels = batch()
    n = torch.tensor(COUNTS)
    e = n * torch.exp(logits)
    want = -(e.gather(1, labels[:, None])[:, 0] / e.sum(1)).log().mean()
    torch.testing.assert_close(logit_adjusted(logits, labels, log_prior(COUNTS)), want)
    torch.testing.assert_close(
        logit_adjusted(logits, labels, log_prior(COUNTS), 0.0), F.cross_entropy(logits, labels)
    )
    even = torch.zeros(1, 3, requires_grad=True)
    logit_adjusted(even, torch.tensor([2]), log_prior(COUNTS)).backward()
    plain = torch.zeros(1, 3, requires_grad=True)
    F.cross_entropy(plain, torch.tensor([2])).backward()
    assert even.grad[0, 2] < plain.grad[0, 2] < 0  # the rare class is pushed up harder


def test_a_class_without_samples_breaks_nothing() -> None:
    counts = [10, 0, 5]
    assert bool(torch.isfinite(log_prior(counts)).all())
    assert bool(torch.isfinite(ldam_margins(counts)).all())
    assert bool(torch.isfinite(effective_weights(counts)).all())
