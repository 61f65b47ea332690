"""From depth and colour to a photograph: light at the camera, wet glare, debris, bubbles, blur, sensor noise."""

from __future__ import annotations

import numpy as np
from numpy.random import Generator
from scipy import ndimage

from core.data._phantom_noise import field, grid, power, ramp


def light(
    log_depth: np.ndarray,
    lean_across: np.ndarray,
    lean_down: np.ndarray,
    across: np.ndarray,
    down: np.ndarray,
) -> tuple[np.ndarray, np.ndarray]:
    """Light a depth map from a lamp beside the camera.

    With l = log depth and the ray (x, y, 1), the normal is (-l_x, -l_y, 1 + x l_x + y l_y).

    Args:
        log_depth: (size, size) natural logarithm of depth.
        lean_across: Derivative of log depth by `across`.
        lean_down: Derivative of log depth by `down`.
        across: Horizontal slope of each ray.
        down: Vertical slope of each ray.

    Returns:
        Brightness (size, size), about 0 to 2, and how squarely each pixel faces the camera, 0 to 1.
    """
    z = np.exp(log_depth)
    third = 1 + across * lean_across + down * lean_down
    length = np.sqrt(lean_across**2 + lean_down**2 + third**2)
    ray = np.sqrt(across**2 + down**2 + 1)
    facing = 1 / (length * ray)
    x, y = across + np.float32(0.16) / z, down + np.float32(0.12) / z
    lit = np.maximum(third - lean_across * x - lean_down * y, 0) / (length * np.sqrt(x * x + y * y + 1))
    hollow = np.maximum(log_depth - ndimage.gaussian_filter(log_depth, len(z) / 40, truncate=2.5), 0)
    bright = (np.float32(0.16) + np.float32(0.9) * lit) * np.exp(np.float32(-2.2) * hollow)
    return bright * np.exp(np.float32(-1.35) * (log_depth + np.log(ray)) - np.float32(0.05) * z), facing


def debris(rng: Generator, albedo: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Smear mucus and drop crumbs on the wall. Returns the new albedo and a lift in log depth."""
    size = len(albedo)
    amount, crumbs = rng.random(), int(rng.integers(0, 7))
    ragged = field(rng, size, 4) + 0.55 * field(rng, size, 14) + 0.25 * field(rng, size, 40)
    film = ramp(ragged, 2.7 - 0.9 * amount, 3.6 - 0.9 * amount) * np.float32(0.7)
    lift = film * np.float32(0.012)
    rows, columns = grid(size)
    lump = np.zeros_like(film)
    edge = 1 + 0.35 * field(rng, size, 30)
    for r, c, radius in rng.uniform((-0.8, -0.8, 0.008), (0.8, 0.8, 0.04), (crumbs, 3)).tolist():
        radius = radius * (2.2 if rng.random() < 0.12 else 1)
        d = ((rows - r) ** 2 + (columns - c) ** 2) / radius**2 * edge
        lump = np.maximum(lump, np.clip(1 - d, 0, 1) * np.float32(radius))
    cover = np.maximum(film, ramp(lump, 0.0, 0.008))[..., None]
    tint = np.array([0.90, 0.43, 0.17], np.float32) * np.float32(rng.uniform(0.7, 1.1))
    return albedo * (1 - cover) + tint * cover, (lift + lump * np.float32(0.3)).astype(np.float32)


def bubbles(rng: Generator, rgb: np.ndarray) -> np.ndarray:
    """Lay a cluster of bubbles on the picture, (size, size, 3) in 0 ... 1: thin bright rims, one spark each."""
    size = len(rgb)
    count = int(rng.integers(4, 26)) if rng.random() < 0.3 else 0
    centre = rng.uniform(-0.6, 0.6, 2)
    ring = np.zeros((size, size), np.float32)
    for _ in range(count):
        place, radius = centre + rng.normal(0, 0.14, 2), rng.uniform(0.008, 0.04)
        reach = int(radius * size / 2 + 4)
        r, c = ((place + 1) / 2 * size).astype(int)
        if not (reach < r < size - reach and reach < c < size - reach):
            continue
        y, x = np.mgrid[-reach : reach + 1, -reach : reach + 1].astype(np.float32) / np.float32(
            size / 2 * radius
        )
        d = np.sqrt(x * x + y * y)
        wet = np.exp(-(((d - 0.88) * 5) ** 2)) * (0.45 - 0.4 * y) + 1.6 * np.exp(
            -((x + 0.4) ** 2 + (y + 0.4) ** 2) * 22
        )
        patch = ring[r - reach : r + reach + 1, c - reach : c + reach + 1]
        np.maximum(patch, wet, out=patch)
    return rgb + np.clip(ring, 0, 1)[..., None] * (0.1 + np.float32(0.75) * rgb[..., :1])


def glints(
    rng: Generator, facing: np.ndarray, bright: np.ndarray, shown: np.ndarray, glare: float
) -> np.ndarray:
    """Choose where the wet surface mirrors the lamp, (size, size) float32 in 0 ... 1; more for a larger `glare`."""
    size = len(facing)
    wet = 0.55 * field(rng, size, 34) + 1.15 * field(rng, size, 84, 60) + 0.6 * field(rng, size, 6)
    score = np.float32(0.45) * wet + np.float32(3.2) * facing + np.float32(1.0) * np.minimum(bright, 0.8)
    score = np.where(shown & (bright > 0.1), score, np.float32(-9))
    share = 0.0004 + 0.03 * glare**1.6
    limit = np.partition(score.ravel(), int((1 - share) * score.size))[int((1 - share) * score.size)]
    return ramp(score, float(limit) - 0.12, float(limit) + 0.12)


def photograph(
    rng: Generator,
    albedo: np.ndarray,
    bright: np.ndarray,
    facing: np.ndarray,
    shown: np.ndarray,
    exposure: float,
    blur: float,
    glare: float,
) -> np.ndarray:
    """Expose, blur and read out one picture.

    Args:
        rng: Source of randomness.
        albedo: (size, size, 3).
        bright: (size, size) light that arrives.
        facing: (size, size) how squarely the wall faces the camera.
        shown: (size, size) bool window of the endoscope.
        exposure: Gain.
        blur: Standard deviation of the blur in pixels of a picture of 256 x 256.
        glare: 0 to 1.

    Returns:
        (size, size, 3) uint8.
    """
    size = len(bright)
    rows, columns = grid(size)
    spark = glints(rng, facing, bright, shown, glare)
    bright = bright * np.float32(exposure) * (1 - np.float32(0.22) * (rows**2 + columns**2))
    deep = power(albedo, (1 + np.float32(0.9) * np.exp(-bright * 1.6))[..., None])
    rgb = 1 - np.exp(-bright[..., None] * deep * np.float32(1.75))
    rgb = bubbles(rng, rgb.astype(np.float32))
    glow = ndimage.gaussian_filter(spark, size / 70, truncate=2.5) * np.float32(0.35)
    rgb = rgb + (spark * np.float32(1.1) + glow)[..., None] * np.array([1.0, 0.98, 0.95], np.float32)
    rgb = np.clip(rgb, 0, 1)
    soft = (0.45 + blur) * size / 256
    rgb = ndimage.gaussian_filter(rgb, (soft, soft, 0), truncate=3.0)
    rgb = rgb * ndimage.gaussian_filter(shown.astype(np.float32), size / 300)[..., None] + np.float32(0.012)
    noise = rng.standard_normal((size, size, 3), dtype=np.float32)
    shared = rng.standard_normal((size, size, 1), dtype=np.float32)
    rgb = rgb + (np.float32(0.006) + np.float32(0.012) * rgb) * (0.6 * noise + 0.6 * shared)
    return (np.clip(rgb, 0, 1) * 255 + 0.5).astype(np.uint8)
