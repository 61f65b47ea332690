"""Snow, frost, fog and spatter of CIFAR-10-C (METHODS section 5). Parts of `corruptions.py`.

All take `(H, W, 3)` float64 in [0, 1]. No picture ships with Plumbline, so the frost is not the original's photographs: five
textures of ice ferns are drawn from fixed seeds. Frost figures are therefore comparable within Plumbline only. Water drops
use a plain edge detector in the place of Canny's.
"""

from __future__ import annotations

from functools import lru_cache

import numpy as np
from numpy.random import Generator

from core.data._corrupt_blur import clipped_zoom, motion, smooth

FROSTS = 5


def grey(x: np.ndarray) -> np.ndarray:
    """Luma `(H, W)` of `(H, W, 3)`."""
    return x @ np.array([0.299, 0.587, 0.114])


def plasma(side: int, decay: float, rng: Generator) -> np.ndarray:
    """A cloud by midpoint displacement on a torus, `(side, side)` in [0, 1]; the side is a power of two.

    At each scale the middles of squares, then of diamonds, become the mean of their four neighbours plus a uniform error of ± wobble²; the wobble
    starts at 100 and is divided by `decay` from scale to scale.
    """
    height = np.zeros((side, side))
    step, wobble = side, 100.0
    while step >= 2:
        half = step // 2
        corner = height[::step, ::step]
        total = corner + np.roll(corner, -1, 0)
        total = total + np.roll(total, -1, 1)
        height[half::step, half::step] = total / 4 + wobble * rng.uniform(-wobble, wobble, total.shape)
        middle = height[half::step, half::step]
        across = middle + np.roll(middle, 1, 0) + corner + np.roll(corner, -1, 1)
        height[::step, half::step] = across / 4 + wobble * rng.uniform(-wobble, wobble, total.shape)
        down = middle + np.roll(middle, 1, 1) + corner + np.roll(corner, -1, 0)
        height[half::step, ::step] = down / 4 + wobble * rng.uniform(-wobble, wobble, total.shape)
        step, wobble = half, wobble / decay
    height -= height.min()
    return height / height.max()


def fog(x: np.ndarray, strength: float, decay: float, rng: Generator) -> np.ndarray:
    """Add a cloud and rescale to the old maximum."""
    height, width = x.shape[:2]
    side = 1 << max(height - 1, width - 1, 1).bit_length()
    top = x.max()
    return (x + strength * plasma(side, decay, rng)[:height, :width, None]) * top / (top + strength)


@lru_cache(maxsize=8)
def frost_texture(index: int, side: int) -> np.ndarray:
    """A drawn sheet of ice ferns, `(side, side, 3)` in [0, 1], the same for the same index and side."""
    rng = np.random.default_rng([20261130, index])
    y, x = np.mgrid[0 : 1 : side * 1j, 0 : 1 : side * 1j]
    ice = np.zeros((side, side))
    for _ in range(14):  # a fern: a bent stem with ribs that thin out away from it
        cx, cy, turn = rng.uniform(-0.1, 1.1), rng.uniform(-0.1, 1.1), rng.uniform(0, 2 * np.pi)
        along = (x - cx) * np.cos(turn) + (y - cy) * np.sin(turn)
        away = (y - cy) * np.cos(turn) - (x - cx) * np.sin(turn) - rng.uniform(-0.6, 0.6) * along**2
        ribs = np.abs(np.sin((along + 0.7 * np.abs(away)) * rng.uniform(40, 90)))
        reach = (
            np.exp(-np.abs(away) / rng.uniform(0.05, 0.14))
            * np.clip(along / 0.08, 0, 1)
            * np.exp(-along / 0.7)
        )
        ice = np.maximum(ice, reach * (0.45 + 0.55 * ribs))
    grain = smooth(rng.random((side, side)), side / 200) - 0.5
    cloud = plasma(1 << (side - 1).bit_length(), 2.2, rng)[:side, :side]
    ice = np.clip(0.25 + 0.35 * cloud + 0.75 * ice * (0.4 + 0.6 * cloud) + 0.8 * grain, 0, 1)
    texture = ice[:, :, None] * np.array([0.86, 0.95, 1.0])
    texture.flags.writeable = False
    return texture


def frost(x: np.ndarray, keep: float, weight: float, rng: Generator, unit: float) -> np.ndarray:
    """Weighted sum of the image and a random window of a drawn ice texture; `unit` scales its detail."""
    height, width = x.shape[:2]
    side = max(height, width) + max(32, round(200 * unit))
    texture = frost_texture(int(rng.integers(FROSTS)), side)
    top, left = rng.integers(0, side - height), rng.integers(0, side - width)
    return keep * x + weight * texture[top : top + height, left : left + width]


def snow(x: np.ndarray, c: tuple[float, ...], rng: Generator, unit: float) -> np.ndarray:
    """Driven flakes over a whitened image. `c`: mean and spread of the noise, zoom, floor, radius and sigma of the drift, share kept."""
    mean, spread, zoom, floor, radius, sigma, keep = c
    layer = clipped_zoom(rng.normal(size=x.shape[:2], loc=mean, scale=spread), zoom)
    layer = np.floor(np.clip(np.where(layer < floor, 0, layer), 0, 1) * 255) / 255
    flakes = motion(layer, radius * unit, sigma * unit, rng.uniform(-135, -45))[:, :, None]
    white = keep * x + (1 - keep) * np.maximum(x, grey(x)[:, :, None] * 1.5 + 0.5)
    return white + flakes + np.rot90(flakes, 2)


def _equalised(a: np.ndarray) -> np.ndarray:
    """Histogram equalisation of whole numbers 0 … 255."""
    counts = np.bincount(a.astype(int).ravel(), minlength=256)
    sums = counts.cumsum()
    first = counts[np.flatnonzero(counts)[0]]
    if sums[-1] == first:
        return a.astype(float)
    return np.clip(np.round((sums - first) / (sums[-1] - first) * 255), 0, 255)[a.astype(int)]


def spatter(x: np.ndarray, c: tuple[float, ...], rng: Generator, unit: float) -> np.ndarray:
    """Drops of water or mud. `c`: mean and spread of the noise, sigma, floor, strength (water) or softness (mud), 0 water or 1 mud."""
    from scipy.ndimage import correlate, distance_transform_edt, sobel, uniform_filter

    mean, spread, sigma, floor, strength, mud = c
    layer = smooth(rng.normal(size=x.shape[:2], loc=mean, scale=spread), sigma * unit)
    if (
        unit != 1
    ):  # less smoothing leaves more spread; give it that of the reference size, so that as much is covered
        layer = mean + (layer - layer.mean()) / layer.std() * spread / (2 * np.pi**0.5 * sigma)
    layer = np.where(layer < floor, 0, layer)
    if mud:
        m = smooth((layer > floor).astype(float), strength * unit)
        m = np.where(m < 0.8, 0, m)[:, :, None]
        return x * (1 - m) + np.array([63, 42, 20]) / 255 * m
    liquid = np.floor(np.clip(layer, 0, 1) * 255)
    edges = np.hypot(sobel(liquid, 0), sobel(liquid, 1)) > 150
    distance = np.minimum(distance_transform_edt(~edges), 20) if edges.any() else np.full(layer.shape, 20.0)
    distance = _equalised(np.floor(np.clip(uniform_filter(distance, 3, mode="mirror"), 0, 255)))
    tilt = np.array([[-2, -1, 0], [-1, 1, 1], [0, 1, 2]], float)
    distance = np.clip(correlate(distance, tilt, mode="mirror"), 0, 255)
    m = liquid * uniform_filter(distance, 3, mode="mirror")
    m = m / max(m.max(), 1e-9) * strength
    return x + m[:, :, None] * np.array([175, 238, 238]) / 255
