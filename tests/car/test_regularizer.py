"""CAR in a training loop: its value and gradient against the whole matrix under autograd and svd, its memory, and its edges (METHODS 3.9)."""

from __future__ import annotations

from dataclasses import replace

import pytest
import torch
import torch.nn.functional as F
from torch import nn

from core.car.regularizer import CAR
from core.car.soft_confusion import soft_confusion
from core.car.spectral_norm import largest_by_svd
from core.car.weights import class_weights
from core.settings.car import MEMORIES, CarSettings

COUNTS = [200, 90, 40, 20, 8, 3]
EXACT = CarSettings(steps=100)


def batch(n: int = 48, k: int = 6, seed: int = 0) -> tuple[torch.Tensor, torch.Tensor]:
    rng = torch.Generator().manual_seed(seed)
    return torch.randn(n, k, generator=rng, dtype=torch.float64), torch.randint(k, (n,), generator=rng)


def whole_matrix(car: CAR, logits: torch.Tensor, labels: torch.Tensor) -> torch.Tensor:
    """The new running matrix as one expression with a graph, from the module's state before the batch."""
    s = car.settings
    c = soft_confusion(logits, labels, s.gamma, s.temperature, s.competitors, s.detach_gate)
    counts = torch.bincount(labels, minlength=car.classes).double()
    old, present = car.columns.T.clone(), counts > 0
    if s.memory == "naive":
        new = s.beta * old + (1 - s.beta) * c
        corrected = new / (1 - s.beta ** (car.updates + 1))
    elif s.memory == "present only":
        new = torch.where(present, s.beta * old + (1 - s.beta) * c, old)
        t = car.updates + present
        corrected = new / torch.where(t > 0, 1 - s.beta**t, 1.0)
    else:
        seen = s.beta * car.seen + (1 - s.beta) * counts
        corrected = new = torch.where(
            present, (s.beta * car.seen * old + (1 - s.beta) * counts * c) / seen.clamp(min=1e-9), old
        )
    return (corrected if s.bias_correction else new) * car.weights


@pytest.mark.parametrize("memory", MEMORIES)
@pytest.mark.parametrize(
    "changes", [{}, {"bias_correction": True, "beta": 0.9}, {"detach_gate": False, "gamma": 1.0}]
)
def test_value_and_gradient_are_those_of_the_whole_matrix(memory: str, changes: dict) -> None:
    car = CAR(COUNTS, replace(EXACT, memory=memory, frequency="max", **changes)).double()
    for step in range(4):
        logits, labels = batch(10, seed=step)
        logits.requires_grad_()
        m = whole_matrix(car, logits, labels)
        want = car.settings.alpha * largest_by_svd(m)
        got = car(logits, labels)
        assert got.item() == pytest.approx(want.item(), rel=1e-9)
        (a,), (b,) = torch.autograd.grad(want, logits), torch.autograd.grad(got, logits)
        torch.testing.assert_close(b, a, atol=1e-8, rtol=1e-5)
        torch.testing.assert_close(car.confusion * car.weights, m.detach())
    assert float(b.abs().max()) > 1e-4


def test_the_gradient_is_that_of_finite_differences() -> None:
    car = CAR(COUNTS, replace(EXACT, detach_gate=False)).double().eval()
    logits, labels = batch(12)
    logits.requires_grad_()
    assert torch.autograd.gradcheck(lambda x: car(x, labels), (logits,), atol=1e-6)


def test_the_gradient_reaches_the_batch_by_one_minus_beta_and_the_history_not_at_all() -> None:
    logits, labels = batch()
    sizes = []
    for beta in (0.0, 0.5, 0.9):
        car = CAR(COUNTS, replace(EXACT, beta=beta)).double()
        x = logits.clone().requires_grad_()
        (grad,) = torch.autograd.grad(car(x, labels), x)
        sizes.append(float(grad.norm()))
        assert not car.columns.requires_grad
        older = logits.clone().requires_grad_()
        car(older, labels)
        newer = logits.clone().requires_grad_()
        value = car(newer, labels)
        assert torch.autograd.grad(value, (newer, older), allow_unused=True)[1] is None
    assert sizes[1] / sizes[0] == pytest.approx(0.5)
    assert sizes[2] / sizes[0] == pytest.approx(0.1)


@pytest.mark.parametrize("memory", MEMORIES)
def test_no_memory_is_the_batch_alone(memory: str) -> None:
    car = CAR(COUNTS, replace(EXACT, beta=0.0, memory=memory)).double()
    for step in range(3):
        logits, labels = batch(20 if step else 60, seed=step)
        if step:  # a class that was there is missing now
            labels = torch.where(labels == labels[0], (labels[0] + 1) % len(COUNTS), labels)
        value = car(logits, labels)
        torch.testing.assert_close(car.confusion, soft_confusion(logits, labels))
        m = soft_confusion(logits, labels) * class_weights(COUNTS)
        assert value.item() == pytest.approx(0.5 * largest_by_svd(m).item(), rel=1e-6)


def test_renaming_classes_leaves_sigma_as_it_is() -> None:
    order = torch.tensor([3, 0, 5, 1, 4, 2])
    logits, labels = batch()
    one = CAR(COUNTS, EXACT).double()
    other = CAR(torch.tensor(COUNTS)[order], EXACT).double()
    assert one(logits, labels).item() == pytest.approx(
        other(logits[:, order], torch.argsort(order)[labels]).item(), rel=1e-9
    )


def test_the_worst_class_is_within_the_bound() -> None:
    car = CAR(COUNTS, EXACT).double()
    for step in range(5):
        car(*batch(seed=step))
    weighted = car.confusion * car.weights
    assert float(weighted.sum(0).max()) <= 6**0.5 * float(car.sigma) + 1e-9


def test_weight_zero_is_cross_entropy_to_the_bit() -> None:
    def trained(with_car: bool) -> list[torch.Tensor]:
        torch_rng = torch.Generator().manual_seed(1)
        layer = nn.Linear(5, 6)
        for p in layer.parameters():
            nn.init.normal_(p, generator=torch_rng)
        car = CAR(COUNTS, CarSettings(alpha=0.0))
        optimiser = torch.optim.SGD(layer.parameters(), 0.5, momentum=0.9)
        for _ in range(5):
            x, y = torch.randn(16, 5, generator=torch_rng), torch.randint(6, (16,), generator=torch_rng)
            logits = layer(x)
            loss = F.cross_entropy(logits, y)
            if with_car:
                loss = loss + car(logits, y)
            optimiser.zero_grad()
            loss.backward()
            optimiser.step()
        assert with_car == bool(float(car.sigma))  # it watches, and pushes nowhere
        return list(layer.parameters())

    for a, b in zip(trained(False), trained(True), strict=True):
        assert torch.equal(a, b)


def test_training_with_it_makes_the_matrix_smaller() -> None:
    logits, labels = batch(60)
    ends = []
    for alpha in (0.0, 5.0):
        x = logits.float().clone().requires_grad_()
        car = CAR(COUNTS, CarSettings(alpha=alpha))
        for _ in range(10):
            (grad,) = torch.autograd.grad(F.cross_entropy(x, labels) + car(x, labels), x)
            x = (x - 2 * grad).detach().requires_grad_()
        ends.append(float(largest_by_svd(soft_confusion(x.detach(), labels))))
    assert ends[1] < ends[0]


def test_one_class_and_a_perfect_batch_give_zero_with_zero_gradient() -> None:
    logits = torch.randn(4, 1, generator=torch.Generator().manual_seed(0), requires_grad=True)
    value = CAR([7])(logits, torch.zeros(4, dtype=torch.int64))
    value.backward()
    assert value.item() == 0
    assert torch.equal(logits.grad, torch.zeros(4, 1))
    certain = (torch.eye(6) * 1e4).requires_grad_()
    value = CAR(COUNTS)(certain, torch.arange(6))
    value.backward()
    assert value.item() == 0
    assert torch.equal(certain.grad, torch.zeros(6, 6))


def test_a_class_that_no_batch_has_stays_empty_and_an_empty_batch_is_no_error() -> None:
    for memory in MEMORIES:
        car = CAR(COUNTS, CarSettings(memory=memory))
        logits, labels = batch(20, seed=2)
        labels[labels == 4] = 0
        assert bool(torch.isfinite(car(logits.float(), labels)))
        assert torch.equal(car.confusion[:, 4], torch.zeros(6))
        x = torch.zeros(0, 6, requires_grad=True)
        value = car(x, torch.zeros(0, dtype=torch.int64))
        value.backward()
        assert bool(torch.isfinite(value))


def test_eight_thousand_classes_fit_and_autograd_keeps_nothing_of_their_square() -> None:
    k = 8142
    car = CAR(torch.arange(1, k + 1))
    rng = torch.Generator().manual_seed(0)
    logits = torch.randn(8, k, generator=rng, requires_grad=True)
    labels = torch.randint(k, (8,), generator=rng)
    kept: list[int] = []
    with torch.autograd.graph.saved_tensors_hooks(lambda t: (kept.append(t.numel()), t)[1], lambda t: t):
        value = car(logits, labels)
    value.backward()
    assert max(kept) <= 8 * k
    assert value.item() > 0
    assert float(logits.grad.abs().max()) > 0


def test_what_is_saved_goes_on_where_it_was() -> None:
    first = CAR(COUNTS, CarSettings(memory="count"))
    for step in range(3):
        logits, labels = batch(16, seed=step)
        first(logits.float(), labels)
    second = CAR(COUNTS, CarSettings(memory="count"))
    second.load_state_dict(first.state_dict())
    logits, labels = batch(16, seed=9)
    assert torch.equal(first(logits.float(), labels), second(logits.float(), labels))
    assert torch.equal(first.columns, second.columns)


def test_in_eval_mode_nothing_is_remembered() -> None:
    car = CAR(COUNTS)
    logits, labels = batch()
    car(logits.float(), labels)
    before = {k: v.clone() for k, v in car.state_dict().items()}
    car.eval()
    value = car(logits.float(), labels)
    assert all(torch.equal(v, before[k]) for k, v in car.state_dict().items())
    car.train()
    assert car(logits.float(), labels).item() == pytest.approx(value.item(), rel=1e-4)


def test_it_works_under_autocast_as_outside_it() -> None:
    logits, labels = batch()
    half = logits.bfloat16().requires_grad_()
    want = CAR(COUNTS)(half.detach().float(), labels)
    with torch.autocast("cpu", torch.bfloat16):
        got = CAR(COUNTS)(half, labels)
    got.backward()
    assert got.dtype == torch.float32
    assert torch.equal(got, want)
    assert half.grad is not None


@pytest.mark.skipif(not torch.cuda.is_available(), reason="no CUDA device here")
def test_it_works_on_cuda() -> None:
    logits, labels = batch()
    car = CAR(COUNTS).cuda()
    x = logits.float().cuda().requires_grad_()
    value = car(x, labels.cuda())
    value.backward()
    assert value.item() == pytest.approx(CAR(COUNTS)(logits.float(), labels).item(), rel=1e-4)


def test_bad_batches_are_refused_and_not_remembered() -> None:
    car = CAR(COUNTS)
    logits, labels = batch(8)
    car(logits.float(), labels)
    before = car.columns.clone()
    sick = logits.float().clone()
    sick[5, 2] = torch.nan
    with pytest.raises(ValueError, match=r"1 of 8 samples .* sample 5"):
        car(sick, labels)
    with pytest.raises(ValueError, match="outside"):
        car(logits.float(), labels + 6)
    with pytest.raises(ValueError, match="7 classes, and this regularizer was made for 6"):
        car(torch.zeros(8, 7), labels)
    assert torch.equal(car.columns, before)
    with pytest.raises(ValueError, match="β"):
        CAR(COUNTS, CarSettings(beta=1.0))
    assert "classes=6" in repr(car)
