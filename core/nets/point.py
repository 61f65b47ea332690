"""A 1 × 1 convolution with a stride that is safe with few channels.

oneDNN's kernel for its weight gradient on processors with AVX2 but not AVX-512 writes out of bounds where a strided 1 × 1 convolution has fewer than
eight input channels and the pixels lie channels last (seen with torch 2.14.1: crash on one thread, endless wait on two).
"""

from __future__ import annotations

import torch
import torch.nn.functional as F
from torch import nn

FEW = 8
"""Fewer input channels than this take the other way."""


class PointConv2d(nn.Conv2d):
    """`nn.Conv2d` with kernel 1 and no padding. With few channels and a stride, pixels are picked first and a plain convolution follows."""

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """`(N, C, H, W)` -> `(N, K, ceil(H / stride), ceil(W / stride))`."""
        down, across = self.stride
        if self.in_channels >= FEW or (down, across) == (1, 1):
            return super().forward(x)
        return F.conv2d(x[:, :, ::down, ::across], self.weight, self.bias)
