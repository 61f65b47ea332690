"""The gut without a lesion: depth of a folded tunnel, vessels, mottled colour, and the black frame of the endoscope.

Geometry: a tube along the optical axis with radius R(angle, z). A ray at angle θ and slope ρ meets the wall at the first
z with R(θ, z) / z <= ρ, which a running minimum over z finds for all rays at once; folds therefore hide what is behind
them with a crisp edge. Depth is kept as log z. No shading here: that is `_phantom_finish`.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.random import Generator
from scipy import ndimage

from core.data._phantom_noise import field, grid, ramp, wave

_ANGLES, _DEPTHS, _SLOPES = 360, 160, 208


@dataclass(frozen=True)
class Scene:
    """What the camera would meet if there were no lesion; arrays are (size, size) float32 unless said otherwise.

    Attributes:
        log_depth: Natural logarithm of the distance along the optical axis, in tube radii.
        lean_across: Derivative of log depth by `across`; one-sided at the crest of a fold, so that crests stay bright.
        lean_down: Derivative of log depth by `down`.
        across: Horizontal slope of each pixel's ray.
        down: Vertical slope of each pixel's ray.
        albedo: Share of light that comes back, (size, size, 3).
        visible: True inside the endoscope's round or octagonal window, bool.
        exposure: How brightly the camera exposes.
    """

    log_depth: np.ndarray
    lean_across: np.ndarray
    lean_down: np.ndarray
    across: np.ndarray
    down: np.ndarray
    albedo: np.ndarray
    visible: np.ndarray
    exposure: float


def tunnel(rng: Generator, size: int) -> tuple[np.ndarray, ...]:
    """Draw a tunnel with haustral folds.

    Returns:
        Log depth, its derivatives across and down, and the slopes of the rays across and down, each (size, size) float32.
    """
    rows, columns = grid(size)
    turn = rng.uniform(0, 2 * np.pi)
    reach = rng.uniform(0.0, 0.6) if rng.random() < 0.55 else rng.uniform(0.7, 1.3)
    zoom = rng.uniform(0.75, 1.15)
    across = (columns - np.float32(reach * np.cos(turn))) * np.float32(zoom)
    down = (rows - np.float32(reach * np.sin(turn))) * np.float32(zoom)

    angles = np.linspace(0, 2 * np.pi, _ANGLES, endpoint=False, dtype=np.float32)
    log_z = np.linspace(np.log(0.22), np.log(11.0), _DEPTHS, dtype=np.float32)
    radius = _tube(rng, angles, np.exp(log_z))
    slopes = np.linspace(0, float(np.sqrt(np.max(across**2 + down**2))) + 0.02, _SLOPES, dtype=np.float32)
    nearest = np.minimum.accumulate(radius / np.exp(log_z), axis=1)[:, ::-1]
    table = np.stack([np.interp(slopes, line, log_z[::-1]) for line in nearest]).astype(np.float32)
    outward = _gentler(np.diff(table, axis=1), 1) / slopes[1]
    steepest = np.float32(1.4) / np.maximum(slopes, slopes[1])  # a crest seen edge-on would look inked in
    outward = np.maximum(outward, -1.4 * steepest)
    around = _gentler(np.diff(np.concatenate([table[-1:], table, table[:1]]), axis=0), 0)
    around = around / (np.maximum(slopes, 0.05) * np.float32(2 * np.pi / _ANGLES))
    around = np.clip(around, -steepest, steepest)
    cos, sin = np.cos(angles)[:, None], np.sin(angles)[:, None]
    tables = np.stack([table, outward * cos - around * sin, outward * sin + around * cos], -1)
    slope = np.sqrt(across**2 + down**2) / slopes[1]
    angle = np.mod(np.arctan2(down, across), np.float32(2 * np.pi)) * np.float32(_ANGLES / (2 * np.pi))
    log_depth, lean_across, lean_down = np.moveaxis(_look_up(tables, angle, slope), -1, 0)
    return ndimage.gaussian_filter(log_depth, size / 270, truncate=3.0), lean_across, lean_down, across, down


def _tube(rng: Generator, angles: np.ndarray, z: np.ndarray) -> np.ndarray:
    """Draw the tube's radius at each angle and depth, (angles, depths): a bent tube with folds that reach into it."""
    radius = np.repeat((1 + wave(rng, angles, range(2, 6), 0.10))[:, None], len(z), axis=1)
    bend, bend_turn = rng.uniform(0.1, 0.7), rng.uniform(0, 2 * np.pi)
    radius = (
        radius - np.float32(bend) * ((z / 5) ** 1.4)[None] * np.cos(angles - np.float32(bend_turn))[:, None]
    )
    place, triangle = rng.uniform(0.55, 0.95), rng.uniform(0, 2 * np.pi)
    for _ in range(int(rng.integers(4, 7))):
        rim = place * (1 + wave(rng, angles, range(1, 4), 0.12))
        height = 0.06 + 0.18 * rng.random() + wave(rng, angles, range(1, 4), 0.10)
        height = np.clip(height + np.float32(0.05) * np.cos(3 * angles + np.float32(triangle)), 0, 0.5)
        width = np.float32(rng.uniform(0.08, 0.17) * (0.7 + 0.5 * place))
        away = (z[None] - rim[:, None]) / width
        away = np.where(away > 0, away * np.float32(1.5), away * np.float32(0.7))
        near = 1 + away * away
        radius = radius - height[:, None] / (near * np.sqrt(near))
        place *= rng.uniform(1.3, 1.75)
    return np.maximum(radius, 0.12)


def _gentler(steps: np.ndarray, axis: int) -> np.ndarray:
    """Of the steps before and after each sample take the smaller; one sample more than steps inside, ends repeated."""
    if axis == 1:
        steps = np.concatenate([steps[:, :1], steps, steps[:, -1:]], axis=1)
        before, after = steps[:, :-1], steps[:, 1:]
    else:
        before, after = steps[:-1], steps[1:]
    return np.where(np.abs(before) < np.abs(after), before, after)


def _look_up(tables: np.ndarray, angle: np.ndarray, slope: np.ndarray) -> np.ndarray:
    """Read tables (angles, slopes, n) at fractional indices, bilinear, angles wrapping; (..., n)."""
    a, s = np.floor(angle), np.minimum(np.floor(slope), _SLOPES - 2)
    fa, fs = (angle - a)[..., None], (slope - s)[..., None]
    a, s = a.astype(int), s.astype(int)
    flat = tables.reshape(-1, tables.shape[-1])
    first, second = a % _ANGLES * _SLOPES + s, (a + 1) % _ANGLES * _SLOPES + s
    low, high = ((1 - fs) * flat.take(i, axis=0) + fs * flat.take(i + 1, axis=0) for i in (first, second))
    return (1 - fa) * low + fa * high


def vessels(rng: Generator, size: int) -> np.ndarray:
    """Draw branching vessels as a darkness map, (size, size) float32 from 0 to about 1."""
    total = np.zeros((size, size), np.float32)
    starts, headings = rng.uniform(-0.1, 1.1, (8, 2)), rng.uniform(0, 2 * np.pi, 8)
    for generation, (steps, weight) in enumerate(((150, 1.0), (80, 0.7), (45, 0.5))):
        bends = rng.normal(0, 0.17, (len(headings), steps)).cumsum(axis=1)
        bends = bends - 0.03 * bends.cumsum(axis=1) / np.arange(1, steps + 1)
        course = headings[:, None] + 0.55 * bends
        path = starts[:, None, :] + np.stack([np.sin(course), np.cos(course)], -1).cumsum(axis=1) * (0.0045)
        thin = np.linspace(1, 0.35, steps)[None, :] * weight * rng.uniform(0.5, 1, (len(headings), 1))
        total += _splat(path.reshape(-1, 2) * size, np.broadcast_to(thin, path.shape[:2]).ravel(), size)
        if generation < 2:
            count = (3, 2)[generation] * len(headings)
            parent, at = rng.integers(0, len(headings), count), rng.integers(5, steps - 10, count)
            starts = path[parent, at]
            headings = course[parent, at] + rng.choice([-1.0, 1.0], count) * rng.uniform(0.4, 1.0, count)
    wide = ndimage.gaussian_filter(total, 1.0 * size / 256, truncate=2.5)
    return np.minimum(wide * np.float32(2.6 * size / 256), 1)


def _splat(points: np.ndarray, weight: np.ndarray, size: int) -> np.ndarray:
    """Add weighted points (row, column) into the pixels around them (bilinear)."""
    base = np.floor(points - 0.5).astype(int)
    part = points - 0.5 - base
    out = np.zeros(size * size)
    for dr in (0, 1):
        for dc in (0, 1):
            r, c = base[:, 0] + dr, base[:, 1] + dc
            share = np.abs(1 - dr - part[:, 0]) * np.abs(1 - dc - part[:, 1]) * weight
            inside = (r >= 0) & (r < size) & (c >= 0) & (c < size)
            out += np.bincount(r[inside] * size + c[inside], share[inside], size * size)
    return out.reshape(size, size).astype(np.float32)


def window(rng: Generator, size: int) -> np.ndarray:
    """Draw the part of the picture that the endoscope shows, (size, size) bool: octagon, circle, or nearly all."""
    rows, columns = grid(size)
    kind = rng.random()
    cut, inset = rng.uniform(1.42, 1.62), rng.uniform(0.62, 0.72)
    if kind < 0.5:
        shown = np.abs(rows) + np.abs(columns) < cut
        shown &= (np.abs(rows) < 0.985) & (np.abs(columns) < 0.985)
        if rng.random() < 0.45:
            shown &= ~((rows > inset - 0.25) & (columns < -inset + 0.27))
    elif kind < 0.75:
        shown = rows**2 + columns**2 < rng.uniform(0.94, 1.16)
        shown &= np.abs(rows) < 0.96
    else:
        shown = np.abs(rows) + np.abs(columns) < 1.86
    return shown


def scene(rng: Generator, size: int, texture: float) -> Scene:
    """Draw the gut, its colour and its frame.

    Args:
        rng: Source of randomness; how much is drawn from it does not depend on `texture`.
        size: Side in pixels.
        texture: 0 (even mucosa) to 1 (mottled mucosa).
    """
    log_depth, lean_across, lean_down, across, down = tunnel(rng, size)
    shown = window(rng, size)
    warm, pale = np.clip(rng.normal(0, 1, 2), -1.8, 1.8)
    base = np.array([0.82, 0.340 + 0.012 * warm + 0.028 * pale, 0.240 - 0.016 * warm + 0.034 * pale])
    near = ramp(log_depth, 1.5, -0.2)
    veins = (
        vessels(rng, size) * near * ramp(field(rng, size, 4), -0.9, 0.9) * np.float32(rng.uniform(0.15, 1.0))
    )
    broad, spots, grain = field(rng, size, 5), field(rng, size, 22), field(rng, size, 64)
    amount = np.float32(0.25 + 1.0 * texture)
    redness = amount * (np.float32(0.055) * broad + np.float32(0.05) * spots + np.float32(0.035) * grain)
    yellow = amount * np.float32(0.035) * field(rng, size, 4)
    veins = veins * np.float32(0.8)
    dark = np.stack(
        [
            redness * 0.35 + veins * 0.35,
            redness + veins * 0.9 - yellow * 0.5,
            redness * 0.9 + veins * 0.55 + yellow,
        ],
        -1,
    )
    albedo = np.clip(base, 0.1, 0.95).astype(np.float32) * np.exp(-dark)
    return Scene(
        log_depth,
        lean_across,
        lean_down,
        across,
        down,
        albedo.astype(np.float32),
        shown,
        float(rng.uniform(1.2, 1.9)),
    )
