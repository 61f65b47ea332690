"""Small residual networks for pictures of 32 px (ResNet-20 and its kin), with a linear or a cosine head.

What it is: the network of He et al. 2016, section 4.2: a 3 × 3 stem, three stages of n basic blocks at w, 2w and 4w
channels, global mean, one layer; depth 6n + 2. Shortcuts without weights (option A) or by a 1 × 1 convolution (option B).
What it is not: a segmentation network (`build.py`), and it trains nothing.

The cosine head (LDAM, Cao et al. 2019, section 3.2) normalises features and class vectors and multiplies by a scale, so
that its outputs are logits like any other network's.
"""

from __future__ import annotations

import torch
import torch.nn.functional as F
from torch import nn

from core.nets.point import PointConv2d

HEADS = ("linear", "cosine")
SHORTCUTS = ("A", "B")


class CosineHead(nn.Module):
    """Logits s · cos(feature, class vector). `(N, D)` -> `(N, K)` in [-s, s].

    Args:
        width: D, length of a feature.
        classes: K.
        scale: s; LDAM uses 30.
    """

    def __init__(self, width: int, classes: int, scale: float = 30.0) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.empty(classes, width))
        self.scale = scale

    def forward(self, features: torch.Tensor) -> torch.Tensor:
        """The logits."""
        return self.scale * F.linear(F.normalize(features, dim=1), F.normalize(self.weight, dim=1))


class BasicBlock(nn.Module):
    """Two 3 × 3 convolutions with a shortcut. `(N, a, H, W)` -> `(N, b, H/stride, W/stride)`.

    Args:
        a: Channels in.
        b: Channels out.
        stride: 1 or 2.
        shortcut: `"A"` (every second pixel, missing channels zero) or `"B"` (1 × 1 convolution) where the shape changes.
    """

    def __init__(self, a: int, b: int, stride: int, shortcut: str) -> None:
        super().__init__()
        self.one = nn.Conv2d(a, b, 3, stride, 1, bias=False)
        self.norm1 = nn.BatchNorm2d(b)
        self.two = nn.Conv2d(b, b, 3, 1, 1, bias=False)
        self.norm2 = nn.BatchNorm2d(b)
        self.stride, self.more = stride, b - a
        changed = stride != 1 or a != b
        self.project = (
            nn.Sequential(PointConv2d(a, b, 1, stride, bias=False), nn.BatchNorm2d(b))
            if changed and shortcut == "B"
            else None
        )

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """The block's output."""
        y = self.norm2(self.two(F.relu(self.norm1(self.one(x)), inplace=True)))
        if self.project is not None:
            x = self.project(x)
        elif self.more or self.stride != 1:
            x = F.pad(x[:, :, :: self.stride, :: self.stride], (0, 0, 0, 0, 0, self.more))
        return F.relu(y + x, inplace=True)


class ResNetCifar(nn.Module):
    """A residual network for small pictures. `(N, 3, H, W)` -> logits `(N, K)`; H and W of at least 4.

    Args:
        classes: K.
        width: Channels of the first stage; 16 is ResNet-20's own.
        depth: 6n + 2 for n blocks a stage.
        head: `"linear"` or `"cosine"`.
        shortcut: `"A"` or `"B"`, see `BasicBlock`.
        scale: Scale of the cosine head.

    Raises:
        ValueError: The depth is not 6n + 2, or head or shortcut is not known.
    """

    def __init__(
        self,
        classes: int,
        width: int = 16,
        depth: int = 20,
        head: str = "linear",
        shortcut: str = "A",
        scale: float = 30.0,
    ) -> None:
        super().__init__()
        if depth < 8 or (depth - 2) % 6:
            raise ValueError(f"A depth of {depth} is not 6n + 2; take 8, 14, 20, 32 or 56.")
        if head not in HEADS:
            raise ValueError(f"The head {head!r} is not known; known: {', '.join(HEADS)}.")
        if shortcut not in SHORTCUTS:
            raise ValueError(f"The shortcut {shortcut!r} is not known; known: {', '.join(SHORTCUTS)}.")
        if classes < 1 or width < 1:
            raise ValueError(
                f"A network needs at least one class and one channel, not {classes} and {width}."
            )
        n = (depth - 2) // 6
        self.stem = nn.Sequential(
            nn.Conv2d(3, width, 3, 1, 1, bias=False), nn.BatchNorm2d(width), nn.ReLU(inplace=True)
        )
        blocks: list[nn.Module] = []
        a = width
        for stage in range(3):
            b = width * 2**stage
            for k in range(n):
                blocks.append(BasicBlock(a, b, 2 if stage > 0 and k == 0 else 1, shortcut))
                a = b
        self.blocks = nn.Sequential(*blocks)
        self.head = nn.Linear(a, classes) if head == "linear" else CosineHead(a, classes, scale)

    def features(self, x: torch.Tensor) -> torch.Tensor:
        """What the head sees, `(N, 4w)`."""
        return self.blocks(self.stem(x)).mean((2, 3))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """Logits `(N, K)`."""
        return self.head(self.features(x))


def resnet_cifar(
    classes: int,
    rng: torch.Generator,
    width: int = 16,
    depth: int = 20,
    head: str = "linear",
    shortcut: str = "A",
    scale: float = 30.0,
) -> ResNetCifar:
    """Build a network whose weights come from a generator alone. Arguments and errors as in `ResNetCifar`.

    Convolutions are He-normal by fan-out, the head is normal with deviation 1/sqrt(D), biases zero, normalisation one.
    """
    model = ResNetCifar(classes, width, depth, head, shortcut, scale)
    for module in model.modules():
        if isinstance(module, nn.Conv2d):
            nn.init.kaiming_normal_(module.weight, mode="fan_out", nonlinearity="relu", generator=rng)
        elif isinstance(module, nn.Linear | CosineHead):
            nn.init.normal_(module.weight, 0.0, module.weight.shape[1] ** -0.5, generator=rng)
            if isinstance(module, nn.Linear):
                nn.init.zeros_(module.bias)
    return model
