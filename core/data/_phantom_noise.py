"""Smooth random fields and outlines for the phantoms: the raw material, no picture yet.

Everything is a function of a `numpy.random.Generator` that is passed in; arrays are float32.
"""

from __future__ import annotations

from functools import lru_cache

import numpy as np
from numpy.random import Generator


@lru_cache(maxsize=64)
def _weights(size: int, cells: int) -> np.ndarray:
    """Cubic B-spline weights, (size, cells + 3), that spread a coarse grid over `size` pixels."""
    place = (np.arange(size) + 0.5) / size * cells
    cell = np.minimum(place.astype(int), cells - 1)
    t = place - cell
    basis = np.stack([(1 - t) ** 3, 3 * t**3 - 6 * t**2 + 4, -3 * t**3 + 3 * t**2 + 3 * t + 1, t**3]) / 6
    table = np.zeros((size, cells + 3), np.float32)
    for k in range(4):
        table[np.arange(size), cell + k] = basis[k]
    table.setflags(write=False)
    return table


def field(rng: Generator, size: int, cells: int, cells_across: int | None = None) -> np.ndarray:
    """Draw a smooth random field, (size, size) float32, mean 0 and variance about 1.

    Args:
        rng: Source of randomness.
        size: Side of the field in pixels.
        cells: Grid cells from top to bottom; more cells mean finer spots.
        cells_across: Grid cells from left to right; as many as `cells` when None.
    """
    down, across = _weights(size, cells), _weights(size, cells_across or cells)
    grid = rng.standard_normal((down.shape[1], across.shape[1]), dtype=np.float32)
    return (down @ grid @ across.T) * np.float32(2.1)


def wave(
    rng: Generator, angles: np.ndarray, orders: range, strength: float, falloff: float = 1.0
) -> np.ndarray:
    """Draw a smooth periodic function of an angle as a short Fourier series.

    Args:
        rng: Source of randomness.
        angles: Angles in radians, any shape.
        orders: Fourier orders to use, for example `range(2, 7)`.
        strength: Standard deviation of the amplitude at the first order.
        falloff: Power with which amplitudes fall with the order.

    Returns:
        Values of the shape of `angles`, mean 0 over a full turn, float32.
    """
    out = np.zeros(angles.shape, np.float32)
    for k in orders:
        amplitude = strength * (orders.start / k) ** falloff * rng.standard_normal()
        out += np.float32(amplitude) * np.cos(np.float32(k) * angles + np.float32(rng.uniform(0, 2 * np.pi)))
    return out


def ramp(x: np.ndarray, low: float, high: float) -> np.ndarray:
    """Rise smoothly from 0 at `low` to 1 at `high` (falls if `high < low`)."""
    t = np.clip((x - np.float32(low)) / np.float32(high - low), 0, 1)
    return t * t * (3 - 2 * t)


def power(x: np.ndarray, exponent: np.ndarray | float) -> np.ndarray:
    """Raise non-negative float32 numbers to a power by exp and log, which is several times faster than `**`."""
    return np.exp(np.log(np.maximum(x, np.float32(1e-12))) * exponent)


@lru_cache(maxsize=8)
def grid(size: int) -> tuple[np.ndarray, np.ndarray]:
    """Pixel centres as (rows, columns), each (size, size) float32 from -1 to 1; read-only."""
    line = ((np.arange(size) + 0.5) / size * 2 - 1).astype(np.float32)
    rows, columns = np.meshgrid(line, line, indexing="ij")
    rows.setflags(write=False)
    columns.setflags(write=False)
    return rows, columns
