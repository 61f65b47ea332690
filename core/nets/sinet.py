"""SINet, the search and identification network for camouflaged objects, at any width. Written here, for no library has it.

Structure after Fan and others (Camouflaged Object Detection, CVPR 2020): a residual backbone whose last two stages exist twice.
The *search* branch gathers features of all depths through receptive-field modules and a partial decoder into a coarse map. A
blurred, rescaled copy of that map (search attention) strengthens the mid-level features, and the *identification* branch decodes
them once more. Training supervises both maps. The published backbone is a ResNet-50; here the stages are basic residual
blocks whose width is a parameter, so that it trains on a CPU. This module trains nothing.
"""

from __future__ import annotations

import torch
import torch.nn.functional as F
from torch import nn


def conv(
    a: int, b: int, size: int | tuple[int, int] = 3, stride: int = 1, dilation: int = 1
) -> nn.Sequential:
    """Convolution that keeps the size (stride 1), and batch normalisation; no activation."""
    size = (size, size) if isinstance(size, int) else size
    padding = (dilation * (size[0] - 1) // 2, dilation * (size[1] - 1) // 2)
    return nn.Sequential(nn.Conv2d(a, b, size, stride, padding, dilation, bias=False), nn.BatchNorm2d(b))


class Block(nn.Module):
    """Basic residual block. `(N, a, H, W)` -> `(N, b, H / stride, W / stride)`."""

    def __init__(self, a: int, b: int, stride: int = 1) -> None:
        super().__init__()
        self.one, self.two = conv(a, b, 3, stride), conv(b, b)
        self.skip = nn.Identity() if a == b and stride == 1 else conv(a, b, 1, stride)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """The block's output."""
        return F.relu(self.two(F.relu(self.one(x))) + self.skip(x))


def stage(a: int, b: int, stride: int, blocks: int) -> nn.Sequential:
    """Residual blocks of one resolution."""
    return nn.Sequential(Block(a, b, stride), *(Block(b, b) for _ in range(blocks - 1)))


class ReceptiveField(nn.Module):
    """Four views of growing reach (1, 3, 5, 7, dilated alike), joined, and a residual path. `(N, a, H, W)` -> `(N, b, H, W)`."""

    def __init__(self, a: int, b: int) -> None:
        super().__init__()
        views: list[nn.Module] = [conv(a, b, 1)]
        for k in (3, 5, 7):
            views.append(
                nn.Sequential(
                    conv(a, b, 1), conv(b, b, (1, k)), conv(b, b, (k, 1)), conv(b, b, 3, dilation=k)
                )
            )
        self.views, self.join, self.skip = nn.ModuleList(views), conv(4 * b, b), conv(a, b, 1)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """The joined views."""
        return F.relu(self.join(torch.cat([view(x) for view in self.views], 1)) + self.skip(x))


def up(x: torch.Tensor, like: torch.Tensor) -> torch.Tensor:
    """Bilinear enlargement to the size of another map."""
    return F.interpolate(x, like.shape[2:], mode="bilinear", align_corners=True)


class PartialDecoder(nn.Module):
    """Dense multiplication and concatenation from deep to shallow; gives one map at the size of the shallowest input.

    Args:
        c: Channels of every input.
        low: Whether a fourth, low-level input joins at the end (search branch).
    """

    def __init__(self, c: int, low: bool) -> None:
        super().__init__()
        self.to_mid, self.to_high, self.mid_to_high = conv(c, c), conv(c, c), conv(c, c)
        self.carry, self.carry_two = conv(c, c), conv(2 * c, 2 * c)
        self.mix_two = conv(2 * c, 2 * c)
        width = 4 * c if low else 3 * c
        self.mix_three, self.last = conv(width, width), nn.Sequential(conv(width, c), nn.Conv2d(c, 1, 1))

    def forward(
        self, deep: torch.Tensor, mid: torch.Tensor, shallow: torch.Tensor, low: torch.Tensor | None = None
    ) -> torch.Tensor:
        """Map `(N, 1, h, w)` of logits at the size of `shallow`."""
        mid_one = self.to_mid(up(deep, mid)) * mid
        high = self.to_high(up(deep, shallow)) * self.mid_to_high(up(mid, shallow)) * shallow
        mid_two = self.mix_two(torch.cat([mid_one, self.carry(up(deep, mid))], 1))
        parts = [high, self.carry_two(up(mid_two, shallow))]
        if low is not None:
            parts.append(low)
        return self.last(self.mix_three(torch.cat(parts, 1)))


class SearchAttention(nn.Module):
    """Strengthen features where the coarse map points: features times max(blurred and rescaled map, map).

    The blur is a fixed Gaussian; it is a buffer, not a parameter.
    """

    def __init__(self, size: int = 31, sigma: float = 4.0) -> None:
        super().__init__()
        t = torch.arange(size) - size // 2
        g = torch.exp(-(t**2) / (2 * sigma**2))
        self.kernel: torch.Tensor
        self.register_buffer("kernel", (g[:, None] * g[None] / g.sum() ** 2)[None, None])

    def forward(self, probability: torch.Tensor, features: torch.Tensor) -> torch.Tensor:
        """Probability map `(N, 1, h, w)` and features `(N, C, h, w)` -> attended features."""
        soft = F.conv2d(probability, self.kernel, padding=self.kernel.shape[-1] // 2)
        low, high = soft.amin((2, 3), keepdim=True), soft.amax((2, 3), keepdim=True)
        return features * torch.maximum((soft - low) / (high - low + 1e-8), probability)


class SINet(nn.Module):
    """Search and identification. `(N, 3, H, W)` -> two logits `(N, 2, H, W)`; H and W of at least 32.

    In training mode it returns a pair, identification first, both to be supervised; in eval mode identification alone.

    Args:
        width: Channels of the first stage; the others have 2, 4 and 8 times as many.
        channels: Channels of the decoders.
        blocks: Residual blocks in each stage.
    """

    def __init__(
        self, width: int = 24, channels: int = 24, blocks: tuple[int, int, int, int] = (2, 2, 2, 2)
    ) -> None:
        super().__init__()
        w, c = width, channels
        self.stem = nn.Sequential(conv(3, w, 7, 2), nn.ReLU(), nn.MaxPool2d(3, 2, 1))
        self.layer1, self.layer2 = stage(w, w, 1, blocks[0]), stage(w, 2 * w, 2, blocks[1])
        self.search3, self.search4 = stage(2 * w, 4 * w, 2, blocks[2]), stage(4 * w, 8 * w, 2, blocks[3])
        self.identify3, self.identify4 = stage(2 * w, 4 * w, 2, blocks[2]), stage(4 * w, 8 * w, 2, blocks[3])
        self.low, self.search_rf = (
            ReceptiveField(2 * w, c),
            nn.ModuleList([ReceptiveField(14 * w, c), ReceptiveField(12 * w, c), ReceptiveField(8 * w, c)]),
        )
        self.identify_rf = nn.ModuleList([ReceptiveField(k * w, c) for k in (2, 4, 8)])
        self.search_decoder, self.identify_decoder = PartialDecoder(c, low=True), PartialDecoder(c, low=False)
        self.attention = SearchAttention()

    def forward(self, x: torch.Tensor) -> torch.Tensor | tuple[torch.Tensor, torch.Tensor]:
        """Two logits at the input's size (a pair of such in training mode)."""
        x0 = self.stem(x)
        x1 = self.layer1(x0)
        x2 = self.layer2(x1)
        s3 = self.search3(x2)
        s4 = self.search4(s3)
        low = self.low(F.max_pool2d(torch.cat([x0, x1], 1), 2, ceil_mode=True))
        shallow = self.search_rf[0](torch.cat([x2, up(s3, x2), up(s4, x2)], 1))
        mid = self.search_rf[1](torch.cat([s3, up(s4, s3)], 1))
        coarse = self.search_decoder(self.search_rf[2](s4), mid, shallow, up(low, x2))
        attended = self.attention(torch.sigmoid(coarse), x2)
        i3 = self.identify3(attended)
        i4 = self.identify4(i3)
        fine = self.identify_decoder(
            self.identify_rf[2](i4), self.identify_rf[1](i3), self.identify_rf[0](attended)
        )
        if self.training:
            return two_logits(up(fine, x)), two_logits(up(coarse, x))
        return two_logits(up(fine, x))


def two_logits(logit: torch.Tensor) -> torch.Tensor:
    """A foreground logit `(N, 1, H, W)` as two logits whose difference it is, `(N, 2, H, W)`."""
    return torch.cat([torch.zeros_like(logit), logit], 1)
