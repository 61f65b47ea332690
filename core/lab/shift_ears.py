"""How a sparse coding layer listens to one image: the pull on λ and the reconstruction error, of crops as they are and of their fine grain.

The score that is made of this, and its limit, are `shift_monitor.py`'s.
"""

from __future__ import annotations

import copy
from dataclasses import dataclass

import numpy as np
import torch
import torch.nn.functional as F
from torch import nn

from core.images.grid import to_grid, to_square
from core.tacsc.inputs import crops
from core.tacsc.layer import sparse_layers
from core.tacsc.shift_score import wishes

SMALLEST = 16
"""Pixels of the shorter side, after scaling, below which an image is not judged."""
FLAT = 1e-3
"""Standard deviation below which grain counts as none, in units of the network's input."""

HEARD = ("pull", "log error", "pull of the grain", "log error of the grain")
"""What is heard: how much λ wants up (0 where adaptation would rest) and log R, of the image as it is and of its fine grain."""


@dataclass(frozen=True)
class View:
    """How an image is looked at.

    Attributes:
        side: Long side to which it is scaled, in pixels.
        crop: Side of a crop.
        count: Crops of an image.
    """

    side: int = 128
    crop: int = 48
    count: int = 4


def ears_of(net: nn.Module) -> nn.Module:
    """The first sparse layer of a network as a network of its own, frozen and in eval mode; it shares the layer.

    Raises:
        ValueError: There is none.
    """
    layers = sparse_layers(net)
    if not layers:
        raise ValueError("This network has no sparse layer, so it cannot listen.")
    return nn.Sequential(next(iter(layers.values()))).eval()


def hear(ears: nn.Module, rgb: np.ndarray, view: View) -> torch.Tensor:
    """`(4,)` float64: `HEARD` of the layer, mean over crops of one image `(H, W, 3)` uint8.

    The places of the crops are the same for every image of one size, so an image always gives the same answer.

    Raises:
        ValueError: No RGB image in uint8, or one whose shorter side would have fewer than `SMALLEST` pixels.
    """
    if rgb.dtype != np.uint8 or rgb.ndim != 3 or rgb.shape[2] != 3:
        raise ValueError(f"An image must be (H, W, 3) uint8, not {rgb.shape} {rgb.dtype}.")
    square, frame = to_square(to_grid(rgb), view.side)
    side = min(view.crop, frame.height, frame.width)
    if side < SMALLEST:
        raise ValueError(
            f"An image of {rgb.shape[0]} × {rgb.shape[1]} pixels is too narrow to be compared with the study's: cut it nearer to a square."
        )
    inside = square[:, : frame.height, : frame.width]
    cut = crops(inside, view.count, side, torch.Generator().manual_seed(0))
    own = copy.deepcopy(ears)  # hooks are put on it, and many people share the layer
    found = (wishes(own, part) for part in (cut, grain(cut)))
    return torch.cat([torch.stack([w.pull.mean(), w.log_error.mean()]) for w in found])


def grain(images: torch.Tensor) -> torch.Tensor:
    """The fine grain of images `(N, C, H, W)`: what is left without the mean of each 5 × 5 neighbourhood, at a standard deviation of one.

    The first layer's error on a whole image follows its light and its large shapes; noise, blur and compression change the grain.
    """
    smooth = F.avg_pool2d(F.pad(images, (2, 2, 2, 2), mode="reflect"), 5, 1)
    rest = images - smooth
    rest = rest - rest.mean((2, 3), keepdim=True)
    return rest / rest.flatten(1).std(1)[:, None, None, None].clamp(min=FLAT)
