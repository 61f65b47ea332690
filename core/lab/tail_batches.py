"""From stored pictures to what a classifier is trained on: shifted crops, flips, CutMix, and the network's numbers.

Every draw takes a generator. CutMix is that of Yun et al. 2019 (one box a batch, lambda uniform). Nothing here knows a loss.
"""

from __future__ import annotations

import torch
import torch.nn.functional as F


def crop_and_flip(images: torch.Tensor, rng: torch.Generator, pad: int = 4) -> torch.Tensor:
    """Shift each picture by up to `pad` pixels either way (black comes in) and mirror half of them.

    Args:
        images: `(N, S, S, 3)` uint8.
        rng: Source of all draws.
        pad: Largest shift in pixels.

    Returns:
        The same shape and type.
    """
    n, side = images.shape[:2]
    padded = F.pad(images, (0, 0, pad, pad, pad, pad))
    top, left = (torch.randint(0, 2 * pad + 1, (n,), generator=rng) for _ in range(2))
    along = torch.arange(side)
    mirrored = torch.rand(n, generator=rng) < 0.5
    columns = torch.where(mirrored[:, None], along.flip(0), along) + left[:, None]
    rows = along + top[:, None]
    return padded[torch.arange(n)[:, None, None], rows[:, :, None], columns[:, None, :]]


def to_input(images: torch.Tensor, mean: torch.Tensor, std: torch.Tensor) -> torch.Tensor:
    """Pictures as a network wants them.

    Args:
        images: `(N, S, S, 3)` uint8.
        mean: `(3,)` mean of each colour in [0, 1], of the training part.
        std: `(3,)` its deviation.

    Returns:
        `(N, 3, S, S)` float32, channels last in memory.
    """
    return ((images.float() / 255 - mean) / std).permute(0, 3, 1, 2)


def cutmix(
    x: torch.Tensor, labels: torch.Tensor, rng: torch.Generator, chance: float = 0.5
) -> tuple[torch.Tensor, torch.Tensor, float]:
    """Paste one box of another picture of the batch into each picture.

    Args:
        x: `(N, 3, S, S)`.
        labels: `(N,)`.
        rng: Source of all draws.
        chance: How often a batch is mixed at all.

    Returns:
        The pictures, the labels of what was pasted, and the share of each picture that is still its own, in [0, 1].
    """
    n, side = len(x), x.shape[-1]
    draw = torch.rand(4, generator=rng)
    partner = torch.randperm(n, generator=rng)
    if float(draw[0]) >= chance:
        return x, labels, 1.0
    edge = (1 - float(draw[1])) ** 0.5 * side
    ends = []
    for middle in (float(draw[2]) * side, float(draw[3]) * side):
        ends += [min(max(round(middle - edge / 2), 0), side), min(max(round(middle + edge / 2), 0), side)]
    top, bottom, left, right = ends
    mixed = x.clone()
    mixed[:, :, top:bottom, left:right] = x[partner][:, :, top:bottom, left:right]
    return mixed, labels[partner], 1 - (bottom - top) * (right - left) / side**2
