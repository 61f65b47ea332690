"""Lesions and what only looks like one: outline, height and colour, laid over the depth of a scene.

A lesion has a head (raised, well coloured) and may have a skirt: a flat faint margin that belongs to the mask as much as
the head does. Outlines are low-order Fourier contours about a fixed centre, so a larger size always contains a smaller one.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.random import Generator
from scipy import ndimage

from core.data._phantom_noise import field, grid, power, ramp, wave


@dataclass(frozen=True)
class Body:
    """A body laid on the wall; arrays are (size, size) float32 unless said otherwise.

    Attributes:
        mask: True where the body is, bool.
        lift: How far it rises towards the camera, in log depth (a share of the distance).
        level: 0 to 1, how much the wall below is smoothed away under the body.
        strength: 0 to 1, how much of the lesion's colour it takes: 1 on the head, little on the skirt.
    """

    mask: np.ndarray
    lift: np.ndarray
    level: np.ndarray
    strength: np.ndarray


def polar(size: int, centre: tuple[float, float]) -> tuple[np.ndarray, np.ndarray]:
    """Distance (1 = half the picture) and angle of each pixel from a centre (row, column) in -1 ... 1."""
    rows, columns = grid(size)
    down, across = rows - np.float32(centre[0]), columns - np.float32(centre[1])
    return np.sqrt(down**2 + across**2), np.arctan2(down, across)


def contour(rng: Generator, angle: np.ndarray, rough: float) -> np.ndarray:
    """Radius of an irregular outline of mean 1 at each angle: an ellipse times a short Fourier series."""
    stretch, turn = rng.uniform(0.0, 0.16), rng.uniform(0, 2 * np.pi)
    ring = (
        1
        + np.float32(stretch) * np.cos(2 * angle + np.float32(turn))
        + wave(rng, angle, range(2, 7), rough, 1.2)
    )
    return np.clip(ring, 0.55, 1.6)


def polyp(
    rng: Generator, size: int, centre: tuple[float, float], radius: float, skirt: float, texture: float
) -> Body:
    """Build one lesion.

    Args:
        rng: Source of randomness; how much is drawn from it does not depend on the other arguments.
        size: Side of the picture in pixels.
        centre: Row and column in -1 ... 1.
        radius: Mean radius of the whole lesion; 1 is half the picture.
        skirt: Share of the area that is flat and faint, 0 to 0.95.
        texture: 0 (smooth surface) to 1 (lumpy surface).
    """
    away, angle = polar(size, centre)
    out = contour(rng, angle, 0.065)
    inner_rng = rng.spawn(1)[0]
    shape, steep, tall, lean, faint, lobes = rng.random(6).tolist()
    lumps = field(rng, size, int(rng.integers(9, 16))) * 0.6 + field(rng, size, 34) * 0.4
    q = away / (np.float32(radius) * out)
    mask = q <= 1

    share = float(np.sqrt(1 - skirt))
    drift = 0.62 * (1 - share) * radius
    turn = 2 * np.pi * lean
    head_centre = (centre[0] + drift * np.sin(turn), centre[1] + drift * np.cos(turn))
    head_away, head_angle = (away, angle) if skirt == 0 else polar(size, head_centre)
    own = out if skirt == 0 else contour(inner_rng, head_angle, 0.05)
    head_q = np.maximum(head_away / (np.float32(radius * share) * own), q)
    inside = np.clip(1 - head_q**2, 0, 1)
    stalked = skirt < 0.15 and shape < 0.3
    sharp = 0.55 if stalked else 0.7 + 0.6 * steep
    height = (0.55 + 0.5 * tall) * (1 - 0.45 * skirt)
    rough = 0.16 + 0.45 * texture + (0.35 if skirt > 0.25 else 0.0)
    dome = power(inside, sharp) * (1 + np.float32(0.22 * rough) * lumps)
    lift = np.float32(height * radius * share) * dome
    pixel = 2 / size / (radius * share)
    edge = 1.5 * pixel + (0.0 if stalked else 0.10 * steep)
    strength = ramp(head_q, 1 + 1.5 * pixel, 1 - edge)
    if skirt > 0:
        fade = ramp(q, 1.06, 0.66 - 0.3 * lobes)
        lift = lift + np.float32(0.065 * radius) * ramp(q, 1.0, 0.66) * (
            1 + np.float32(0.4 + 0.6 * texture) * lumps
        )
        blotch = np.clip(1 + np.float32(0.35) * lumps, 0, 2)
        strength = np.maximum(strength, np.float32(0.16 + 0.40 * faint) * fade * blotch)
    if stalked:
        neck, neck_lift = _stalk(size, centre, radius, 2 * np.pi * lobes)
        mask = mask | neck
        lift = np.maximum(lift, neck_lift)
        strength = np.maximum(strength, np.float32(0.35) * neck)
    level = ramp(np.minimum(head_q, 2), 1.15, 0.8)
    return Body(mask, lift.astype(np.float32), level, strength.astype(np.float32))


def _stalk(
    size: int, centre: tuple[float, float], radius: float, turn: float
) -> tuple[np.ndarray, np.ndarray]:
    """A short stalk from under the head into the wall: its mask and its lift."""
    rows, columns = grid(size)
    down, across = rows - np.float32(centre[0]), columns - np.float32(centre[1])
    along = (down * np.float32(np.sin(turn)) + across * np.float32(np.cos(turn))) / np.float32(radius)
    beside = (across * np.float32(np.sin(turn)) - down * np.float32(np.cos(turn))) / np.float32(radius)
    beyond = np.maximum(along - 1.35, 0)
    d = (beside**2 + beyond**2) / np.float32(0.36**2)
    mask = (d <= 1) & (along > 0)
    return mask, np.float32(0.5 * radius) * power(np.clip(1 - d, 0, 1), 0.75) * ramp(along, 1.75, 0.7) * (
        along > 0
    )


def bulge(rng: Generator, size: int, centre: tuple[float, float], radius: float) -> Body:
    """Build a rise of healthy wall: long, soft at its edge, of the wall's own colour. Its mask is empty."""
    away, angle = polar(size, centre)
    out = contour(rng, angle, 0.07) * (
        1 + np.float32(0.25) * np.cos(2 * angle + np.float32(rng.uniform(0, 6.28)))
    )
    dome = np.exp(-((away / (np.float32(radius) * out)) ** 2) * 1.6)
    none = np.zeros((size, size), np.float32)
    return Body(none > 1, np.float32(rng.uniform(0.25, 0.5) * radius) * dome, none, none)


def place(
    rng: Generator, log_depth: np.ndarray, shown: np.ndarray, taken: list[tuple[float, float]]
) -> tuple[float, float]:
    """Choose a centre (row, column, in -1 ... 1) on a wall that is near, even, inside the window and free.

    The best of a few random places wins; the choice depends on the scene alone, never on the size of the lesion.
    """
    size = len(log_depth)
    spots = rng.uniform(-0.62, 0.62, (48, 2))
    r, c = ((spots + 1) / 2 * size).astype(int).T
    margin = ndimage.distance_transform_edt(shown[::4, ::4])[r // 4, c // 4] * 4 / size
    steep = ndimage.gaussian_gradient_magnitude(log_depth[::4, ::4], 2.0)[r // 4, c // 4] * size / 4
    depth = log_depth[r, c]
    cost = 3 * np.maximum(depth - 0.5, 0) + np.maximum(-0.4 - depth, 0) + 0.06 * steep
    cost = cost + 8 * np.maximum(0.13 - margin, 0) + rng.uniform(0, 0.8, len(spots))
    for other in taken:
        cost = cost + 4 * np.maximum(0.75 - np.hypot(*(spots - other).T), 0)
    best = int(np.argmin(cost))
    return float(spots[best, 0]), float(spots[best, 1])
