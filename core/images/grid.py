"""From an image to a network's square and back to the image's own grid, the same way everywhere.

The promise of Plumbline is about the pixels of the *grid*: the image itself, or the image scaled down so
that its long side is 512. In calibration, in tests and on the page a picture goes to its grid, is scaled
with its aspect kept and padded to the network's square, and the scores come back to the grid. This module
does no file reading and no inference.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import torch
import torch.nn.functional as F
from PIL import Image

LONG_SIDE = 512
"""Long side of the grid in pixels; larger images are scaled down to it."""


@dataclass(frozen=True)
class Frame:
    """Where an image lies inside a network's square.

    Attributes:
        side: Side of the square in pixels.
        height: Rows of the scaled image inside the square; it starts at row 0.
        width: Columns of the scaled image inside the square; it starts at column 0.
        grid: (H, W) of the image's own grid.
    """

    side: int
    height: int
    width: int
    grid: tuple[int, int]


def grid_shape(shape: tuple[int, int], long_side: int = LONG_SIDE) -> tuple[int, int]:
    """Size of the grid of an image of `(H, W)` pixels: itself, or scaled down to the long side. Never below 1."""
    height, width = shape
    if max(height, width) <= long_side:
        return height, width
    scale = long_side / max(height, width)
    return max(1, round(height * scale)), max(1, round(width * scale))


def to_grid(rgb: np.ndarray, long_side: int = LONG_SIDE) -> np.ndarray:
    """Bring an image to its grid.

    Args:
        rgb: `(H, W, 3)` uint8.
        long_side: Largest side of the grid in pixels.

    Returns:
        `(h, w, 3)` uint8, area-averaged when scaled down, unchanged when it is small enough.
    """
    height, width = grid_shape(rgb.shape[:2], long_side)
    if (height, width) == rgb.shape[:2]:
        return np.ascontiguousarray(rgb)
    return np.asarray(Image.fromarray(rgb).resize((width, height), Image.Resampling.BOX))


def mask_to_grid(mask: np.ndarray, long_side: int = LONG_SIDE) -> np.ndarray:
    """Bring a mask to the grid of its image: a grid pixel belongs to the lesion when half of it or more does.

    Args:
        mask: `(H, W)` bool.
        long_side: Largest side of the grid in pixels.

    Returns:
        `(h, w)` bool.
    """
    height, width = grid_shape(mask.shape[:2], long_side)
    if (height, width) == mask.shape[:2]:
        return np.ascontiguousarray(mask, bool)
    grey = Image.fromarray(mask.astype(np.uint8) * 255).resize((width, height), Image.Resampling.BOX)
    return np.asarray(grey) > 127


def to_square(rgb: np.ndarray, side: int) -> tuple[torch.Tensor, Frame]:
    """Scale an image to a network's square with its aspect kept; the rest of the square is mid-grey.

    Args:
        rgb: `(H, W, 3)` uint8, on its grid.
        side: Side of the square in pixels.

    Returns:
        `(3, side, side)` float32 with values in [-1, 1] (0 where padded) and the frame that leads back.
    """
    height, width = rgb.shape[:2]
    scale = side / max(height, width)
    h, w = max(1, round(height * scale)), max(1, round(width * scale))
    scaled = np.asarray(Image.fromarray(rgb).resize((w, h), Image.Resampling.BILINEAR), np.float32)
    square = torch.zeros(3, side, side)
    square[:, :h, :w] = torch.from_numpy(scaled / 127.5 - 1.0).permute(2, 0, 1)
    return square, Frame(side, h, w, (height, width))


def mask_to_square(mask: np.ndarray, side: int) -> torch.Tensor:
    """Scale a mask as `to_square` scales its image. Returns `(side, side)` bool; padding is False."""
    height, width = mask.shape[:2]
    scale = side / max(height, width)
    h, w = max(1, round(height * scale)), max(1, round(width * scale))
    grey = Image.fromarray(mask.astype(np.uint8) * 255).resize((w, h), Image.Resampling.BILINEAR)
    square = torch.zeros(side, side, dtype=torch.bool)
    square[:h, :w] = torch.from_numpy(np.asarray(grey) > 127)
    return square


def from_square(scores: torch.Tensor, frame: Frame) -> torch.Tensor:
    """Bring a map of the network's square back to the image's grid.

    Args:
        scores: `(side, side)` float.
        frame: What `to_square` returned.

    Returns:
        `(H, W)` float32 on the grid, bilinear.
    """
    part = scores[: frame.height, : frame.width].float()
    return F.interpolate(part[None, None], size=frame.grid, mode="bilinear", align_corners=False)[0, 0]
