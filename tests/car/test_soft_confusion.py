"""The soft confusion matrix: every invariant of METHODS 3.9 that concerns one batch, a plain loop as oracle, and bad input."""

from __future__ import annotations

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from core.car.metrics import confusion
from core.car.soft_confusion import class_counts, soft_confusion, soft_flow
from core.car.spectral_norm import largest_by_svd


def batch(n: int = 64, k: int = 6, seed: int = 0, scale: float = 2.0) -> tuple[torch.Tensor, torch.Tensor]:
    rng = torch.Generator().manual_seed(seed)
    logits = torch.randn(n, k, generator=rng, dtype=torch.float64) * scale
    return logits, torch.randint(k, (n,), generator=rng)


def by_loop(
    logits: torch.Tensor, labels: torch.Tensor, gamma: float, temperature: float, others: bool
) -> torch.Tensor:
    k = logits.shape[1]
    sums, counts = torch.zeros(k, k, dtype=torch.float64), torch.zeros(k)
    for f, y in zip(logits, labels.tolist(), strict=True):
        counts[y] += 1
        e = torch.exp(f / temperature)
        for i in range(k):
            if i != y:
                below = e.sum() - e[y] if others else e.sum()
                sums[i, y] += torch.sigmoid(f[i] - f[y] + gamma) * e[i] / below
    return sums / counts.clamp(min=1)


@pytest.mark.parametrize("competitors", ["all", "others"])
@pytest.mark.parametrize(("gamma", "temperature"), [(0.0, 1.0), (1.5, 0.5), (-2.0, 3.0)])
def test_it_is_the_plain_loop(competitors: str, gamma: float, temperature: float) -> None:
    logits, labels = batch()
    torch.testing.assert_close(
        soft_confusion(logits, labels, gamma, temperature, competitors),
        by_loop(logits, labels, gamma, temperature, competitors == "others"),
    )


@settings(max_examples=30, deadline=None)
@given(seed=st.integers(0, 10**6), k=st.integers(1, 7), n=st.integers(0, 20), gamma=st.floats(-3, 3))
def test_entries_are_shares_the_diagonal_is_empty_and_columns_sum_to_less_than_what_is_not_true(
    seed: int, k: int, n: int, gamma: float
) -> None:
    logits, labels = batch(n, k, seed)
    c = soft_confusion(logits, labels, gamma)
    assert c.shape == (k, k)
    assert float(c.min()) >= 0
    assert torch.equal(torch.diag(c), torch.zeros(k, dtype=c.dtype))
    p = torch.softmax(logits, 1)
    for j in range(k):
        mine = labels == j
        if not bool(mine.any()):
            assert torch.equal(c[:, j], torch.zeros(k, dtype=c.dtype))
        else:
            assert float(c[:, j].sum()) <= float((1 - p[mine, j]).mean()) + 1e-12


def test_the_softmax_over_others_sums_to_the_gate_alone() -> None:
    logits, labels = batch(8)
    flow = soft_flow(logits, labels, gamma=50.0, competitors="others")  # an open gate
    torch.testing.assert_close(flow.sum(1), torch.ones(8, dtype=torch.float64))
    assert float(soft_flow(logits, labels, gamma=50.0).sum(1).max()) < 1


def test_renaming_classes_permutes_both_sides() -> None:
    logits, labels = batch()
    order = torch.tensor([3, 0, 5, 1, 4, 2])  # new class k is old class order[k]
    renamed = soft_confusion(logits[:, order], torch.argsort(order)[labels])
    torch.testing.assert_close(renamed, soft_confusion(logits, labels)[order][:, order])


@given(shift=st.floats(-50, 50))
@settings(max_examples=20, deadline=None)
def test_a_common_shift_of_the_logits_changes_nothing(shift: float) -> None:
    logits, labels = batch(16)
    torch.testing.assert_close(soft_confusion(logits + shift, labels), soft_confusion(logits, labels))


def test_ever_sharper_logits_give_the_hard_confusion() -> None:
    logits, labels = batch(200, 5)
    hard = torch.from_numpy(confusion(labels, logits.argmax(1), 5)).double()
    errors = (hard - torch.diag(torch.diag(hard))) / hard.sum(0)
    distance = [float((soft_confusion(logits * s, labels) - errors).abs().max()) for s in (1, 10, 1000, 1e6)]
    assert distance[0] > 0.05
    assert distance == sorted(distance, reverse=True)
    assert distance[-1] < 1e-3
    sharp = soft_confusion(logits * 1e6, labels)
    torch.testing.assert_close(sharp.sum(0), errors.sum(0), atol=1e-3, rtol=0)


@pytest.mark.parametrize("k", [2, 5, 100])
def test_uniform_logits_give_the_value_of_the_notes(k: int) -> None:
    labels = torch.arange(k).repeat(3)
    even = torch.zeros(3 * k, k, dtype=torch.float64)
    assert float(largest_by_svd(soft_confusion(even, labels))) == pytest.approx((k - 1) / (2 * k))
    assert float(largest_by_svd(soft_confusion(even, labels, competitors="others"))) == pytest.approx(0.5)


def test_the_gate_has_no_gradient_unless_it_is_asked_for() -> None:
    logits, labels = batch(8)
    logits.requires_grad_()
    gate = torch.sigmoid(logits - logits.gather(1, labels[:, None])).detach()
    by_hand = (gate * torch.softmax(logits, 1)).scatter(1, labels[:, None], 0.0)
    (want,) = torch.autograd.grad(by_hand.square().sum(), logits)
    (got,) = torch.autograd.grad(soft_flow(logits, labels).square().sum(), logits)
    torch.testing.assert_close(got, want)
    assert torch.autograd.gradcheck(lambda x: soft_flow(x, labels, detach_gate=False), (logits,))
    (free,) = torch.autograd.grad(soft_flow(logits, labels, detach_gate=False).square().sum(), logits)
    assert not torch.allclose(free, got)


def test_it_stays_in_float32_under_autocast_and_for_half_precision() -> None:
    logits, labels = batch()
    want = soft_confusion(logits.bfloat16().float(), labels)
    with torch.autocast("cpu", torch.bfloat16):
        got = soft_confusion(logits.bfloat16(), labels)
    assert got.dtype == torch.float32
    assert torch.equal(got, want)


def test_more_margin_opens_the_gate() -> None:
    logits, labels = batch()
    sums = [float(soft_confusion(logits, labels, gamma).sum()) for gamma in (-2.0, 0.0, 2.0)]
    assert sums == sorted(sums)
    assert sums[0] < sums[2]


def test_counts_of_classes_are_counted() -> None:
    assert class_counts(torch.tensor([2, 0, 2]), 4).tolist() == [1, 0, 2, 0]


def test_what_does_not_fit_is_refused_in_words() -> None:
    logits, labels = batch(4, 3)
    with pytest.raises(ValueError, match=r"Label 3 of sample 1 is outside 0\.\.2"):
        soft_flow(logits, torch.tensor([0, 3, 1, 2]))
    with pytest.raises(ValueError, match="Label -1 of sample 0"):
        soft_flow(logits, torch.tensor([-1, 0, 1, 2]))
    with pytest.raises(ValueError, match="shape"):
        soft_flow(logits, labels[:3])
    with pytest.raises(ValueError, match="int64"):
        soft_flow(logits, labels.float())
    with pytest.raises(ValueError, match="no class"):
        soft_flow(torch.zeros(0, 0), labels[:0])
    with pytest.raises(ValueError, match="all"):
        soft_flow(logits, labels, competitors="some")
    with pytest.raises(ValueError, match="temperature"):
        soft_flow(logits, labels, temperature=0.0)
