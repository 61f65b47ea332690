"""Power iteration against `torch.linalg.svdvals`, its gradient against autograd and finite differences, and its edges."""

from __future__ import annotations

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from core.car.spectral_norm import even, largest_by_svd, spectral_norm, top_pair


def matrix(k: int, seed: int = 0) -> torch.Tensor:
    return torch.rand(k, k, generator=torch.Generator().manual_seed(seed), dtype=torch.float64)


@pytest.mark.parametrize("k", [1, 2, 10, 100])
def test_it_is_the_largest_singular_value(k: int) -> None:
    m = matrix(k)
    assert spectral_norm(m).item() == pytest.approx(largest_by_svd(m).item(), rel=1e-5)


def test_a_warm_start_follows_a_matrix_that_changes() -> None:
    k = 50
    v, scale = even(k, matrix(k)), torch.linspace(0.5, 2, k, dtype=torch.float64)
    columns = matrix(k)
    errors = []
    for step in range(40):
        columns = 0.9 * columns + 0.1 * matrix(k, step + 1)
        sigma, u, v = top_pair(columns, scale, v, steps=2)
        exact = largest_by_svd(columns.T * scale)
        assert sigma <= exact * (1 + 1e-12)
        errors.append(float(1 - sigma / exact))
    assert max(errors[5:]) < 1e-5
    assert float(u.min()) >= 0
    assert float(v.min()) >= 0
    assert float(u.norm()) == pytest.approx(1)


def test_the_scale_belongs_to_the_columns() -> None:
    c, w = matrix(6), torch.linspace(0.2, 3, 6, dtype=torch.float64)
    sigma, u, v = top_pair(c.T, w, even(6, c), steps=200, floor=0.0)
    assert sigma.item() == pytest.approx(largest_by_svd(c @ torch.diag(w)).item())
    assert (
        abs(sigma.item() - largest_by_svd(torch.diag(w) @ c).item()) > 0.01
    )  # the wrong side is something else
    left, _, right = torch.linalg.svd(c * w)
    torch.testing.assert_close(u, left[:, 0].abs())
    torch.testing.assert_close(v, right[0].abs())


def test_its_gradient_is_u_v_and_that_of_finite_differences() -> None:
    m = matrix(5).requires_grad_()
    (got,) = torch.autograd.grad(spectral_norm(m, 500), m)
    left, _, right = torch.linalg.svd(m.detach())
    torch.testing.assert_close(got, torch.outer(left[:, 0].abs(), right[0].abs()))
    (by_svd,) = torch.autograd.grad(largest_by_svd(m), m)
    torch.testing.assert_close(got, by_svd)
    assert torch.autograd.gradcheck(lambda x: spectral_norm(x, 500), (m,))


def test_a_zero_matrix_is_zero_and_pushes_nowhere() -> None:
    m = torch.zeros(4, 4, requires_grad=True)
    value = spectral_norm(m)
    value.backward()
    assert value.item() == 0
    assert m.grad is not None
    assert torch.equal(m.grad, torch.zeros(4, 4))


def test_a_block_that_was_silent_is_found_when_it_speaks() -> None:
    columns = torch.zeros(4, 4, dtype=torch.float64)
    columns[0, 1] = columns[1, 0] = 0.5
    v = even(4, columns)
    for _ in range(50):
        _, _, v = top_pair(columns, torch.ones(4, dtype=torch.float64), v)
    assert float(v[2:].max()) < 1e-3
    columns[2, 3] = columns[3, 2] = 0.9
    for _ in range(30):
        sigma, _, v = top_pair(columns, torch.ones(4, dtype=torch.float64), v)
    assert sigma.item() == pytest.approx(0.9, rel=1e-5)


@settings(max_examples=30, deadline=None)
@given(k=st.integers(1, 8), seed=st.integers(0, 10**6), steps=st.integers(1, 5))
def test_it_never_exceeds_the_truth(k: int, seed: int, steps: int) -> None:
    m = matrix(k, seed) * (matrix(k, seed + 1) > 0.5)
    sigma, u, v = top_pair(m.T, torch.ones(k, dtype=torch.float64), even(k, m), steps)
    assert 0 <= sigma.item() <= largest_by_svd(m).item() + 1e-12
    assert bool(torch.isfinite(u).all())
    assert bool(torch.isfinite(v).all())


def test_autocast_does_not_reach_it() -> None:
    m = matrix(20).float()
    want = spectral_norm(m)
    with torch.autocast("cpu", torch.bfloat16):
        sigma, _, _ = top_pair(m.T, torch.ones(20), even(20, m), 100, 0.0)
    assert sigma.dtype == torch.float32
    assert sigma.item() == pytest.approx(want.item(), rel=1e-6)


def test_no_steps_are_refused() -> None:
    with pytest.raises(ValueError, match="at least one step"):
        top_pair(matrix(2), torch.ones(2), torch.ones(2), 0)
