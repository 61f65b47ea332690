"""Thresholds of many alphas that nest: the properties that METHODS' promise needs, and a plain loop as oracle."""

from __future__ import annotations

import hypothesis.strategies as st
import numpy as np
import pytest
import torch
from hypothesis import given

from core.conformal import calibrate
from core.conformal.nested import crossings, nested_thresholds

numbers = st.one_of(st.floats(-15, 15, width=32), st.just(float("-inf")))


@st.composite
def tables(draw: st.DrawFn) -> torch.Tensor:
    n, a = draw(st.integers(1, 6)), draw(st.integers(1, 7))
    rows = draw(st.lists(st.lists(numbers, min_size=a, max_size=a), min_size=n, max_size=n))
    return torch.tensor(rows, dtype=torch.float32)


@given(tables())
def test_nested_thresholds_rise_lie_never_above_and_are_the_highest_that_do(tau: torch.Tensor) -> None:
    nested = nested_thresholds(tau)
    assert (nested <= tau).all()
    assert (nested[:, 1:] >= nested[:, :-1]).all()
    for i, row in enumerate(tau.tolist()):
        assert nested[i].tolist() == [min(row[k:]) for k in range(len(row))]


@given(tables())
def test_crossings_counts_images_with_a_pair_the_wrong_way_round(tau: torch.Tensor) -> None:
    plain = sum(
        any(row[a] > row[b] for a in range(len(row)) for b in range(a + 1, len(row))) for row in tau.tolist()
    )
    assert crossings(tau) == plain
    assert crossings(nested_thresholds(tau)) == 0


def test_every_promise_is_kept_on_the_calibration_images(toy) -> None:
    pool = toy.make_pool(40, 3)
    alphas = torch.linspace(0.05, 0.5, 19)
    noise = torch.Generator().manual_seed(1)
    hat = torch.stack([toy.oracle(pool, float(a)) for a in alphas], 1)
    hat = (hat + 2 * torch.randn(len(pool.maps), 1, generator=noise) * torch.linspace(1, -1, 19)).contiguous()
    shifts = [calibrate(pool.curves, hat[:, k], float(a)).shift for k, a in enumerate(alphas)]
    tau = hat - torch.tensor(shifts)
    nested = nested_thresholds(tau)
    assert crossings(tau) > 0
    for k, alpha in enumerate(alphas):
        before = pool.curves.coverage(hat[:, k], shifts[k])[:, 0]
        after = pool.curves.coverage(nested[:, k], 1e-5)[:, 0]  # tau' was rounded once
        assert (after >= before - 1e-12).all()
        assert float(after.mean()) >= 1 - float(alpha)


@pytest.mark.parametrize("bad", [torch.zeros(3), torch.tensor([[0.0, float("nan")]])])
def test_what_is_no_table_of_thresholds_is_refused(bad: torch.Tensor) -> None:
    with pytest.raises(ValueError, match="rising alphas"):
        nested_thresholds(bad)
    with pytest.raises(ValueError, match="rising alphas"):
        crossings(bad)


def test_thresholds_that_rise_are_left_alone() -> None:
    tau = torch.from_numpy(np.sort(np.random.default_rng(0).normal(size=(20, 9)), axis=1))
    assert torch.equal(nested_thresholds(tau), tau) and crossings(tau) == 0
