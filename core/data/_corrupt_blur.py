"""Blurs of CIFAR-10-C: Gaussian, defocus, glass, motion, zoom (METHODS section 5). Parts of `corruptions.py`.

All take `(H, W, 3)` float64 in [0, 1]. The original calls OpenCV, scikit-image and ImageMagick; here the same operations are written with
SciPy. Borders: Gaussian repeats the edge, defocus mirrors without the edge pixel, motion repeats the edge.
"""

from __future__ import annotations

import math

import numpy as np
from numpy.random import Generator


def smooth(x: np.ndarray, sigma: float, mode: str = "nearest", truncate: float = 4.0) -> np.ndarray:
    """Gaussian blur of the first two axes; sigma 0 changes nothing."""
    from scipy.ndimage import gaussian_filter

    if sigma <= 0:
        return x
    return gaussian_filter(x, (sigma, sigma, 0) if x.ndim == 3 else sigma, mode=mode, truncate=truncate)


def disk(radius: float, alias: float, soft_edge: bool = False) -> np.ndarray:
    """A disk of this radius, summing to 1, softened by a 3×3 (5×5 above radius 8) Gaussian of width `alias`.

    With a soft edge, pixels on the rim count by about the share of them that lies inside, so that a radius scaled to a small image
    does not vanish between pixels.
    """
    from scipy.ndimage import correlate

    reach = 8 if radius <= 8 else math.ceil(radius)
    y, x = np.mgrid[-reach : reach + 1, -reach : reach + 1]
    inside = np.clip(radius + 0.5 - np.hypot(x, y), 0, 1) if soft_edge else x**2 + y**2 <= radius**2
    kernel = inside / inside.sum()
    half = np.arange(-1, 2) if radius <= 8 else np.arange(-2, 3)
    line = np.exp(-(half**2) / (2 * alias**2))
    line /= line.sum()
    return correlate(kernel, np.outer(line, line), mode="mirror")


def defocus_blur(x: np.ndarray, radius: float, alias: float, soft_edge: bool = False) -> np.ndarray:
    """Each pixel becomes a disk."""
    from scipy.ndimage import correlate

    return correlate(x, disk(radius, alias, soft_edge)[:, :, None], mode="mirror")


def glass_blur(x: np.ndarray, sigma: float, delta: int, rounds: int, rng: Generator) -> np.ndarray:
    """Blur, let each pixel take a neighbour's value, blur.

    The original means to swap two pixels, but its views make both equal to the second; offsets lie in {−delta, …, delta − 1}. Walking from the
    last pixel to the first, a pixel that looks back (delta = 1 always does) sees an untouched neighbour. That walk is kept, so statistics match.
    """
    x = np.floor(smooth(x, sigma) * 255)
    height, width = x.shape[:2]
    rows, columns = np.arange(height - delta, delta, -1), np.arange(width - delta, delta, -1)
    for _ in range(rounds):
        shift = rng.integers(-delta, delta, size=(len(rows), len(columns), 2))
        if delta == 1:
            y, z = rows[:, None] + shift[..., 1], columns[None] + shift[..., 0]
            x[rows[:, None], columns[None]] = x[y, z]
            continue
        for i, h in enumerate(rows):
            for j, w in enumerate(columns):
                x[h, w] = x[h + shift[i, j, 1], w + shift[i, j, 0]]
    return smooth(x / 255, sigma)


def motion(x: np.ndarray, radius: float, sigma: float, degrees: float) -> np.ndarray:
    """ImageMagick's motion blur: a one-sided Gaussian trail in one direction, edges repeated. `(H, W)` or `(H, W, C)`."""
    count = 2 * math.ceil(radius) + 1
    weight = np.exp(-(np.arange(count) ** 2) / (2 * sigma**2))
    weight /= weight.sum()
    turn = math.radians(degrees)
    height, width = x.shape[:2]
    out = np.zeros_like(x)
    for i, w in enumerate(weight):
        down = math.ceil(i * math.sin(turn) - 0.5)
        along = math.ceil(i * math.cos(turn) - 0.5)
        rows = np.clip(np.arange(height) + down, 0, height - 1)
        columns = np.clip(np.arange(width) + along, 0, width - 1)
        out += w * x[rows[:, None], columns[None]]
    return out


def clipped_zoom(x: np.ndarray, factor: float) -> np.ndarray:
    """Enlarge the middle of an image, `(H, W)` or `(H, W, C)`, by a factor of at least 1 to the size of the whole (linear)."""
    from scipy.ndimage import zoom

    height, width = x.shape[:2]
    part = [math.ceil(n / factor) for n in (height, width)]
    top, left = ((n - p) // 2 for n, p in zip((height, width), part, strict=True))
    big = zoom(x[top : top + part[0], left : left + part[1]], (factor, factor) + (1,) * (x.ndim - 2), order=1)
    top, left = (big.shape[0] - height) // 2, (big.shape[1] - width) // 2
    return big[top : top + height, left : left + width]


def zoom_blur(x: np.ndarray, factors: np.ndarray) -> np.ndarray:
    """Mean of the image and of its enlargements."""
    total = x.copy()
    for factor in factors:
        total += clipped_zoom(x, float(factor))
    return total / (len(factors) + 1)
