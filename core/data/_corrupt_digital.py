"""Brightness, contrast, saturation, elastic, pixelate and JPEG of CIFAR-10-C (METHODS section 5). Parts of `corruptions.py`.

All take `(H, W, 3)` float64 in [0, 1]; pixelate and JPEG go through 8 bits, as the original does.
"""

from __future__ import annotations

import io

import numpy as np
from numpy.random import Generator
from PIL import Image

from core.data._corrupt_blur import smooth


def to_hsv(x: np.ndarray) -> np.ndarray:
    """RGB -> hue, saturation, value, all in [0, 1]."""
    high, low = x.max(-1), x.min(-1)
    span = high - low
    safe = np.where(span == 0, 1, span)
    r, g, b = x[..., 0], x[..., 1], x[..., 2]
    hue = np.where(high == r, (g - b) / safe, np.where(high == g, 2 + (b - r) / safe, 4 + (r - g) / safe))
    saturation = np.where(high == 0, 0, span / np.where(high == 0, 1, high))
    return np.stack([np.where(span == 0, 0, hue / 6 % 1), saturation, high], -1)


def from_hsv(x: np.ndarray) -> np.ndarray:
    """Hue, saturation, value -> RGB."""
    h, s, v = x[..., 0:1], x[..., 1:2], x[..., 2:3]
    k = (np.array([5.0, 3.0, 1.0]) + h * 6) % 6
    return v - v * s * np.clip(np.minimum(k, 4 - k), 0, 1)


def brightness(x: np.ndarray, c: float) -> np.ndarray:
    """Add c to the value of HSV."""
    hsv = to_hsv(x)
    hsv[..., 2] = np.clip(hsv[..., 2] + c, 0, 1)
    return from_hsv(hsv)


def saturate(x: np.ndarray, factor: float, offset: float) -> np.ndarray:
    """Scale and shift the saturation of HSV."""
    hsv = to_hsv(x)
    hsv[..., 1] = np.clip(hsv[..., 1] * factor + offset, 0, 1)
    return from_hsv(hsv)


def contrast(x: np.ndarray, c: float) -> np.ndarray:
    """Draw each channel towards its own mean."""
    mean = x.mean((0, 1), keepdims=True)
    return (x - mean) * c + mean


def _picture(x: np.ndarray) -> Image.Image:
    return Image.fromarray((np.clip(x, 0, 1) * 255 + 1e-9).astype(np.uint8))


def pixelate(x: np.ndarray, c: float) -> np.ndarray:
    """Shrink to a share c of the sides and enlarge again, by boxes."""
    height, width = x.shape[:2]
    small = _picture(x).resize((max(1, int(width * c)), max(1, int(height * c))), Image.Resampling.BOX)
    return np.asarray(small.resize((width, height), Image.Resampling.BOX)) / 255


def jpeg(x: np.ndarray, quality: int) -> np.ndarray:
    """Store as JPEG and read again."""
    file = io.BytesIO()
    _picture(x).save(file, "JPEG", quality=quality)
    return np.asarray(Image.open(file)) / 255


def elastic(x: np.ndarray, alpha: float, sigma: float, affine: float, rng: Generator) -> np.ndarray:
    """Move three points by up to `affine` pixels, then every pixel by a smooth random field (linear, mirrored borders).

    Args:
        x: The image.
        alpha: Size of the field before smoothing, in pixels.
        sigma: Its smoothness, in pixels.
        affine: Reach of the three points, in pixels.
        rng: Source.
    """
    from scipy.ndimage import map_coordinates

    height, width = x.shape[:2]
    centre, reach = np.array([height // 2, width // 2], float), min(height, width) // 3
    before = centre + reach * np.array([[1, 1], [1, -1], [-1, -1]])
    after = before + rng.uniform(-affine, affine, size=(3, 2))
    back = np.linalg.solve(np.c_[after, np.ones(3)], before)  # where a pixel of the result comes from
    y, z = np.mgrid[0:height, 0:width].astype(float)
    first = np.stack([y, z, np.ones_like(y)], -1) @ back
    warped = np.stack(
        [map_coordinates(x[..., c], first.transpose(2, 0, 1), order=1, mode="mirror") for c in range(3)], -1
    )
    field = [
        smooth(rng.uniform(-1, 1, size=(height, width)), sigma, "reflect", 3.0) * alpha for _ in range(2)
    ]
    where = np.stack([y + field[1], z + field[0]])
    return np.stack([map_coordinates(warped[..., c], where, order=1, mode="reflect") for c in range(3)], -1)
