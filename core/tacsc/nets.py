"""ResNet-18 and its sparse coding kin: TA-CSC-18 (first layer) and TA-CSC-18all, in SDNet's layout (METHODS 4.7).

First layer: sparse coding -> batch norm, no ReLU. With "all", every convolution of the residual branches is a sparse coding layer, and a block
is coding(stride) -> norm -> coding(1) -> norm, plus the shortcut (identity, or a plain 1×1 convolution with norm), then ReLU. The shortcut stays a
convolution: of a 1×1 kernel with stride 2 only one pixel in four can be reconstructed. The ImageNet stem has a 7×7 kernel and, where all is sparse,
a 3×3 coding layer of stride 2 in the place of max-pooling, without norm behind it. Width 64 is the published size.
"""

from __future__ import annotations

from dataclasses import replace
from functools import partial

import torch
import torch.nn.functional as F
from torch import nn

from core.nets.point import PointConv2d
from core.settings.tacsc import MODELS, TacscSettings
from core.tacsc.function import Source
from core.tacsc.layer import CSCConv2d, sparse_layers

STEMS = ("cifar", "imagenet")


def _convolution(
    source: int, target: int, kernel: int, stride: int, sparse: TacscSettings | None, rng: torch.Generator
) -> nn.Module:
    if sparse is not None:
        return CSCConv2d(source, target, kernel, stride, kernel // 2, sparse, rng)
    kind = PointConv2d if kernel == 1 else nn.Conv2d
    conv = kind(source, target, kernel, stride, kernel // 2, bias=False)
    nn.init.kaiming_normal_(conv.weight, mode="fan_out", nonlinearity="relu", generator=rng)
    return conv


def _normalise_again(norm: nn.BatchNorm2d, x: torch.Tensor) -> torch.Tensor:
    """What a batch normalisation gave for this input a moment ago, without touching its statistics."""
    with torch.no_grad():
        if norm.training:
            return F.batch_norm(x, None, None, norm.weight, norm.bias, True, 0.0, norm.eps)
        return F.batch_norm(
            x, norm.running_mean, norm.running_var, norm.weight, norm.bias, False, 0.0, norm.eps
        )


def _source(codes: torch.Tensor, norm: nn.BatchNorm2d) -> Source:
    """Where the output of a batch normalisation of codes comes from."""
    return Source(codes, partial(_normalise_again, norm))


class Block(nn.Module):
    """A residual block of two 3×3 layers, plain or sparse.

    Args:
        source: Channels in.
        target: Channels out.
        stride: Of the first layer and of the shortcut.
        sparse: Settings of the sparse layers, or None for plain ones with a ReLU between them.
        shortcut: Whether the input is added to the branch.
        rng: Source of the weights.
    """

    def __init__(
        self,
        source: int,
        target: int,
        stride: int,
        sparse: TacscSettings | None,
        shortcut: bool,
        rng: torch.Generator,
    ) -> None:
        super().__init__()
        self.sparse = sparse is not None
        self.conv1 = _convolution(source, target, 3, stride, sparse, rng)
        self.bn1 = nn.BatchNorm2d(target)
        self.conv2 = _convolution(target, target, 3, 1, sparse, rng)
        self.bn2 = nn.BatchNorm2d(target)
        self.shortcut: nn.Module | None = None
        if shortcut:
            self.shortcut = nn.Identity()
            if stride != 1 or source != target:
                self.shortcut = nn.Sequential(
                    _convolution(source, target, 1, stride, None, rng), nn.BatchNorm2d(target)
                )

    def forward(self, x: torch.Tensor, source: Source | None = None) -> torch.Tensor:
        """`(N, source, H, W)` -> `(N, target, H/stride, W/stride)`; `source` says where x comes from, for sparse layers."""
        codes = self.conv1(x, source) if self.sparse else self.conv1(x)
        inner = self.bn1(codes)
        if self.sparse:
            branch = self.bn2(self.conv2(inner, _source(codes, self.bn1)))
        else:
            branch = self.bn2(self.conv2(F.relu(inner)))
        return F.relu(branch if self.shortcut is None else branch + self.shortcut(x))


class ResNet18(nn.Module):
    """ResNet-18 with a plain or sparse first layer and plain or sparse blocks.

    Args:
        first: Settings of a sparse first layer, or None.
        blocks: Settings of sparse blocks, or None.
        width: Channels of the first stage; the four stages have 1, 2, 4 and 8 times as many.
        classes: Logits.
        stem: `"cifar"` (3×3, no pooling) or `"imagenet"` (7×7 of stride 2, then pooling or a sparse layer of stride 2).
        shortcut: Residual connections. SDNet's configuration files switch them off.
        rng: Source of the weights.

    Raises:
        ValueError: The stem is not known.
    """

    def __init__(
        self,
        first: TacscSettings | None,
        blocks: TacscSettings | None,
        width: int,
        classes: int,
        stem: str,
        shortcut: bool,
        rng: torch.Generator,
    ) -> None:
        super().__init__()
        if stem not in STEMS:
            raise ValueError(f"The stem {stem!r} is not known; choose one of {', '.join(STEMS)}.")
        self.sparse_first = first is not None
        kernel, stride = (3, 1) if stem == "cifar" else (7, 2)
        self.conv1 = _convolution(3, width, kernel, stride, first, rng)
        self.bn1 = nn.BatchNorm2d(width)
        self.pool: nn.Module = nn.Identity()
        if stem == "imagenet":
            self.pool = nn.MaxPool2d(3, 2, 1)
            if blocks is not None:
                self.pool = _convolution(width, width, 3, 2, blocks, rng)
        stages: list[nn.Module] = []
        channels = width
        for stage in range(4):
            target = width * 2**stage
            for block in range(2):
                step = 2 if stage > 0 and block == 0 else 1
                made = Block(channels, target, step, blocks, shortcut, rng)
                if isinstance(made.conv1, CSCConv2d):  # where pictures are small: 2 % more bytes in all
                    made.conv1.keep = stage >= 2 and block == 1
                stages.append(made)
                channels = target
        self.blocks = nn.Sequential(*stages)
        self.fc = nn.Linear(channels, classes)
        nn.init.kaiming_uniform_(self.fc.weight, a=5**0.5, generator=rng)
        nn.init.zeros_(self.fc.bias)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """Logits `(N, classes)` of images `(N, 3, H, W)`."""
        codes = self.conv1(x)
        x = self.bn1(codes)
        x = self.pool(x if self.sparse_first else F.relu(x))
        plain = not self.sparse_first or not isinstance(self.pool, nn.Identity)
        x = self.blocks[0](x, None if plain else _source(codes, self.bn1))
        return self.fc(self.blocks[1:](x).mean((2, 3)))


def build(
    model: str,
    width: int = 64,
    classes: int = 10,
    settings: TacscSettings | None = None,
    stem: str = "cifar",
    shortcut: bool = True,
    rng: torch.Generator | None = None,
) -> ResNet18:
    """Build one of `MODELS` with fresh weights.

    Args:
        model: `"resnet"`, `"fixed"` (SDNet's fixed λ in the first layer), `"tacsc"` (first layer) or `"tacsc_all"`.
        width: Channels of the first stage, 64 as published.
        classes: Logits.
        settings: Of every sparse layer; ignored by the ResNet.
        stem: `"cifar"` or `"imagenet"`.
        shortcut: Residual connections.
        rng: Source of the weights; None starts from seed 0.

    Raises:
        ValueError: The model or the stem is not known.
    """
    if model not in MODELS:
        raise ValueError(f"The network {model!r} is not known; choose one of {', '.join(MODELS)}.")
    settings = settings or TacscSettings()
    if model == "fixed":
        settings = replace(settings, learn=False)
    rng = rng or torch.Generator().manual_seed(0)
    first = None if model == "resnet" else settings
    blocks = settings if model == "tacsc_all" else None
    return ResNet18(first, blocks, width, classes, stem, shortcut, rng)


def lambdas(net: nn.Module) -> dict[str, float]:
    """Name of each sparse layer -> its λ."""
    return {name: layer.threshold.item() for name, layer in sparse_layers(net).items()}
