"""bfloat16 layers with float32 sums: the arithmetic of autocast, wherever autocast is at work, and nothing else."""

from __future__ import annotations

from contextlib import contextmanager, nullcontext

import pytest
import torch
import torch.nn.functional as F
from torch import nn

import core.nets.mixed as mixed_module
from core.nets.mixed import Float32Kernels, imitates_bfloat16, mixed
from core.nets.resnet_cifar import resnet_cifar
from core.nets.slim import FloatConv2d


@contextmanager
def mixed_on(on: bool):
    """Autocast with the kernels, whatever this processor can do."""
    with torch.autocast("cpu", torch.bfloat16, enabled=on), Float32Kernels():
        yield


def _whole(*shape: int, seed: int) -> torch.Tensor:
    """Small whole numbers: every product and every sum of them is exact in bfloat16."""
    rng = torch.Generator().manual_seed(seed)
    return torch.randint(-1, 2, shape, generator=rng).float()


def _pass(run, x: torch.Tensor, w: torch.Tensor, b: torch.Tensor, mode) -> list[torch.Tensor]:
    x, w, b = (t.clone().requires_grad_() for t in (x, w, b))
    with torch.autocast("cpu", torch.bfloat16), mode:
        out = run(x, w, b)
    (
        out.float() * _whole(*out.shape, seed=3)
    ).sum().backward()  # all sums stay below 256, so no processor rounds them
    return [out, x.grad, w.grad, b.grad]


@pytest.mark.parametrize(
    ("run", "x", "w", "b"),
    [
        (lambda x, w, b: F.conv2d(x, w, b, padding=1), (2, 3, 5, 5), (4, 3, 3, 3), (4,)),
        (lambda x, w, b: F.conv2d(input=x, weight=w, bias=b, stride=2), (2, 3, 6, 6), (4, 3, 3, 3), (4,)),
        (lambda x, w, b: F.conv_transpose2d(x, w, b, stride=2), (1, 3, 3, 3), (3, 2, 2, 2), (2,)),
        (F.linear, (5, 7), (3, 7), (3,)),
    ],
)
def test_on_whole_numbers_it_is_autocast_bit_for_bit(run, x, w, b):
    tensors = _whole(*x, seed=0), _whole(*w, seed=1), _whole(*b, seed=2)
    want = _pass(run, *tensors, nullcontext())
    got = _pass(run, *tensors, Float32Kernels())
    for name, a, c in zip(("out", "x", "w", "b"), want, got, strict=True):
        assert a.dtype == c.dtype, name
        assert torch.equal(a, c), name


def test_operands_are_rounded_before_the_product_and_the_sum_after_it():
    fine = torch.full((1, 1), 1 + 2.0**-9)  # halfway below bfloat16's step at 1
    with mixed_on(True):
        out = F.linear(fine, fine)
        sums = F.linear(torch.ones(1, 301), torch.ones(1, 301))
    assert out.dtype == torch.bfloat16
    assert float(out) == 1.0
    assert float(sums) == float(torch.tensor(301.0).bfloat16())


def test_attention_keeps_its_mask_and_is_close_to_float32():
    q, k, v = (torch.randn(1, 2, 6, 8, generator=torch.Generator().manual_seed(i)) for i in range(3))
    mask = torch.ones(6, 6, dtype=torch.bool).tril()
    want = F.scaled_dot_product_attention(q, k, v, attn_mask=mask)
    with mixed_on(True):
        got = F.scaled_dot_product_attention(q, k, v, attn_mask=mask)
    assert got.dtype == torch.bfloat16
    torch.testing.assert_close(got.float(), want, atol=0.03, rtol=0.03)


def test_a_network_stays_within_the_roundings_of_autocast():
    net = resnet_cifar(5, torch.Generator().manual_seed(0), 8, 8, "linear")
    x = torch.randn(8, 3, 16, 16, generator=torch.Generator().manual_seed(1))
    whole = net(x)
    with torch.autocast("cpu", torch.bfloat16):
        native = net(x).float()
    with mixed_on(True):
        ours = net(x).float()
    size = float(whole.detach().abs().max())
    assert float((native - ours).detach().abs().max()) < 0.03 * size
    assert not torch.equal(ours, whole)


def test_layers_that_leave_autocast_stay_in_float32():
    layer = FloatConv2d(2, 3, 1)
    x = torch.randn(1, 2, 4, 4, generator=torch.Generator().manual_seed(0))
    with mixed_on(True):
        out = layer(x)
    assert out.dtype == torch.float32
    assert torch.equal(out, layer(x))


def test_without_autocast_the_kernels_change_nothing():
    layer, x = nn.Conv2d(2, 3, 3), torch.randn(1, 2, 6, 6, generator=torch.Generator().manual_seed(0))
    with Float32Kernels():
        assert torch.equal(layer(x), layer(x))
        assert layer(x).dtype == torch.float32
    want = layer(x)
    with mixed_on(False):
        assert torch.equal(layer(x), want)


@pytest.mark.parametrize("slow", [False, True])
def test_mixed_takes_the_kernels_only_where_bfloat16_is_imitated(monkeypatch, slow):
    monkeypatch.setattr(mixed_module, "imitates_bfloat16", lambda device: slow)
    entered = []
    monkeypatch.setattr(Float32Kernels, "__enter__", lambda self: entered.append(self) or self)
    monkeypatch.setattr(Float32Kernels, "__exit__", lambda self, *why: None)
    with mixed("cpu"):
        assert torch.is_autocast_enabled("cpu")
    assert not torch.is_autocast_enabled("cpu")
    assert bool(entered) == slow
    with mixed("mps"):
        assert not torch.is_autocast_enabled("cpu")


def test_only_a_processor_imitates():
    assert not imitates_bfloat16("cuda")
    assert isinstance(imitates_bfloat16("cpu"), bool)
