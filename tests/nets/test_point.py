"""A strided 1 × 1 convolution with few channels is the convolution that it replaces, and its gradients are right."""

from __future__ import annotations

import pytest
import torch
import torch.nn.functional as F

from core.nets.point import PointConv2d


@pytest.mark.parametrize("channels", [3, 4, 8, 12])
@pytest.mark.parametrize("stride", [1, 2, 3])
@pytest.mark.parametrize("side", [7, 8])
def test_it_is_the_convolution_with_its_gradients(channels, stride, side):
    layer = PointConv2d(channels, 8, 1, stride)
    x = torch.randn(4, channels, side, side, generator=torch.Generator().manual_seed(0))
    x = x.to(memory_format=torch.channels_last).requires_grad_()
    layer = layer.to(memory_format=torch.channels_last)
    out = layer(x)
    out.square().sum().backward()
    x64, w64, b64 = (t.detach().double().requires_grad_() for t in (x, layer.weight, layer.bias))
    want = F.conv2d(x64, w64, b64, stride)
    want.square().sum().backward()
    assert out.shape == want.shape
    torch.testing.assert_close(out.double(), want, atol=1e-5, rtol=1e-5)
    for got, wanted in ((x.grad, x64.grad), (layer.weight.grad, w64.grad), (layer.bias.grad, b64.grad)):
        torch.testing.assert_close(got.double(), wanted, atol=1e-3, rtol=1e-4)
