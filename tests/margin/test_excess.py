"""The margin's excess with its own backward pass against plain autograd: values, gradients, ties, ignored pixels."""

from __future__ import annotations

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from core.margin.excess import excess_over_margin


def plainly(x: torch.Tensor, margin: float, squared: bool, keep: torch.Tensor | None) -> torch.Tensor:
    e = torch.relu(x.amax(1, keepdim=True) - margin - x)
    e = e.square() if squared else e
    return e.mean() if keep is None else e.mean(1)[keep].mean()


@pytest.mark.parametrize("squared", [False, True])
@pytest.mark.parametrize("ignored", [False, True])
@settings(max_examples=25, deadline=None)
@given(
    seed=st.integers(0, 10**6),
    n=st.integers(1, 3),
    k=st.integers(1, 5),
    margin=st.sampled_from([0.0, 0.5, 3.0, 50.0]),
    coarse=st.booleans(),
)
def test_it_is_plain_autograd_with_less_to_keep(squared, ignored, seed, n, k, margin, coarse):
    rng = torch.Generator().manual_seed(seed)
    x = 4 * torch.randn(n, k, 3, 4, generator=rng, dtype=torch.float64)
    if coarse:
        x = x.round()  # many ties
    keep = torch.rand(n, 3, 4, generator=rng) < 0.6 if ignored else None
    if keep is not None:
        keep[0, 0, 0] = True
    a, b = x.clone().requires_grad_(), x.clone().requires_grad_()
    mine, theirs = excess_over_margin(a, margin, squared, keep), plainly(b, margin, squared, keep)
    assert float(mine.detach()) == pytest.approx(float(theirs.detach()), rel=1e-12, abs=1e-15)
    (3 * mine).backward()
    (3 * theirs).backward()
    assert torch.allclose(a.grad, b.grad, rtol=1e-10, atol=1e-14)


def test_finite_differences_agree():
    x = 4 * torch.randn(2, 4, 3, 3, generator=torch.Generator().manual_seed(0), dtype=torch.float64)
    for squared in (False, True):
        assert torch.autograd.gradcheck(
            lambda t, s=squared: excess_over_margin(t, 1.3, s), x.requires_grad_()
        )


def test_the_backward_pass_may_run_twice_and_leaves_the_logits_alone():
    x = torch.randn(2, 3, 4, 4, generator=torch.Generator().manual_seed(1)).requires_grad_()
    before = x.detach().clone()
    loss = excess_over_margin(x, 0.2)
    loss.backward(retain_graph=True)
    first = x.grad.clone()
    x.grad = None
    loss.backward()
    assert torch.equal(first, x.grad)
    assert torch.equal(before, x.detach())
