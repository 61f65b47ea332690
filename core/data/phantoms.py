"""Drawn endoscopy-like pictures with exact masks: pictures with truth for a class, since no real picture may ship.

A phantom is drawn, not taken. It shows a folded tunnel lit from the camera, one lesion (now and then two, or none)
and things that are no lesion: bulging folds, glare, mucus, crumbs, bubbles. The same seed always gives the same
picture. A lesion may have a strong head and a large faint skirt that belongs to the mask too; how much of it is skirt
varies from picture to picture, and one threshold for all pictures handles that badly. It is no model of the gut and
says nothing about how a network does on real frames.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

import numpy as np
from numpy.random import Generator

from core.data._phantom_finish import debris, light, photograph
from core.data._phantom_lesion import Body, bulge, place, polyp
from core.data._phantom_noise import field, ramp
from core.data._phantom_scene import Scene, scene
from core.settings import check, knob


@dataclass(frozen=True)
class PhantomSettings:
    """How hard a phantom is. Every knob is continuous and moves its effect in one direction only."""

    contrast: float = knob(
        0.6,
        0.0,
        1.0,
        0.01,
        help="How much the lesion's colour differs from the wall around it. At 0 only its shape gives it away.",
    )
    size: float = knob(
        0.14,
        0.03,
        0.30,
        0.005,
        unit="share of the picture's width",
        help="Mean radius of the lesion, faint margin included.",
    )
    blur: float = knob(
        0.3,
        0.0,
        4.0,
        0.05,
        unit="pixels (of 256)",
        help="How far out of focus the picture is: the standard deviation of a Gaussian blur.",
    )
    glare: float = knob(
        0.3,
        0.0,
        1.0,
        0.01,
        help="How much of the wet surface mirrors the lamp as white spots. At 0 next to nothing, at 1 one to three per cent.",
    )
    texture: float = knob(
        0.35,
        0.0,
        1.0,
        0.01,
        help="How mottled the wall and how lumpy the lesion is. A mottled wall hides a faint margin.",
    )
    skirt: float = knob(
        0.3,
        0.0,
        0.9,
        0.01,
        unit="share of the lesion's area",
        help="How much of the lesion is a flat faint margin around its raised head. It belongs to the lesion, and a "
        "network is unsure about it.",
    )


@dataclass(frozen=True)
class Phantom:
    """One drawn picture.

    Attributes:
        image: (size, size, 3) uint8, RGB.
        mask: (size, size) bool, the exact lesion; all False when drawn without one.
        settings: The knobs it was drawn with.
        seed: The seed it was drawn from.
        difficulty: 0 (plain to see) to 1 (all but hidden), computed from the knobs.
    """

    image: np.ndarray
    mask: np.ndarray
    settings: PhantomSettings
    seed: int
    difficulty: float


def difficulty(settings: PhantomSettings) -> float:
    """Sum the knobs up in one number from 0 (plain to see) to 1 (all but hidden); it never falls as a knob gets harder."""
    small = np.clip((0.16 - settings.size) / 0.12, 0, 1)
    parts = (
        0.42 * (1 - settings.contrast)
        + 0.13 * small
        + 0.12 * min(settings.blur / 3, 1)
        + 0.05 * settings.glare
        + 0.06 * settings.texture
        + 0.22 * settings.skirt / 0.9
    )
    return float(np.clip(parts, 0, 1))


def draw_settings(rng: Generator) -> PhantomSettings:
    """Draw knobs with a wide range: three in four are easy to middling, one in four is hard (faint, flat, small or blurred)."""
    hard = rng.random() < 0.25
    skirted = rng.random() < (0.75 if hard else 0.42)
    contrast = rng.uniform(0.10, 0.42) if hard else rng.uniform(0.45, 1.0)
    size = rng.uniform(0.055, 0.19) if hard else rng.uniform(0.09, 0.25)
    blur = rng.uniform(0.3, 2.6) if hard else rng.uniform(0.0, 0.9)
    glare, texture = rng.beta(1.3, 2.2), rng.uniform(0.05, 0.9)
    skirt = rng.uniform(0.3, 0.9) if skirted else 0.0
    return PhantomSettings(*(round(float(v), 3) for v in (contrast, size, blur, glare, texture, skirt)))


def draw(seed: int, settings: PhantomSettings | None = None, size: int = 256, lesion: bool = True) -> Phantom:
    """Draw one picture.

    Args:
        seed: Any whole number >= 0. It fixes everything that the knobs leave open, so that two drawings of one seed with
            different knobs show the same place.
        settings: The knobs; drawn from the seed when None.
        size: Side of the picture in pixels, at least 64.
        lesion: False draws the same place without its lesion; the mask is then empty.

    Returns:
        A `Phantom`.

    Raises:
        ValueError: A knob is outside its range, the seed is negative, or the size is below 64.
    """
    if seed < 0 or size < 64:
        raise ValueError(
            f"A phantom needs a seed of 0 or more and a size of 64 or more; got seed {seed}, size {size}."
        )
    for_knobs, for_scene, for_place, for_bodies, for_colour, for_dirt, for_camera = np.random.default_rng(
        seed
    ).spawn(7)
    knobs = draw_settings(for_knobs) if settings is None else settings
    check(knobs)
    view = scene(for_scene, size, knobs.texture)
    bodies = _bodies(for_place, for_bodies, view, knobs, lesion)
    mask = np.logical_or.reduce([body.mask for body in bodies]) & view.visible
    strength = np.maximum.reduce([body.strength for body in bodies])
    albedo = _tint(for_colour, view.albedo, strength, knobs)
    albedo, dirt = debris(for_dirt, albedo)
    grain = field(for_dirt, size, 48) + field(for_dirt, size, 96) * np.float32(0.6)
    rise = dirt + grain * np.float32(0.0006 + 0.0022 * knobs.texture) * ramp(view.log_depth, 2.0, 0.0)
    surface = _Surface(
        view.log_depth, view.lean_across, view.lean_down, float(view.across[0, 1] - view.across[0, 0])
    )
    for body in bodies:
        surface = surface.levelled(body.level)
        rise = rise + body.lift
    surface = surface.raised(rise)
    bright, facing = light(surface.log_depth, surface.lean_across, surface.lean_down, view.across, view.down)
    image = photograph(
        for_camera, albedo, bright, facing, view.visible, view.exposure, knobs.blur, knobs.glare
    )
    return Phantom(image, mask, knobs, seed, difficulty(knobs))


def draw_many(seeds: Iterable[int], size: int = 256) -> Iterator[Phantom]:
    """Draw one picture a seed, one after the other, with knobs from the seed."""
    for seed in seeds:
        yield draw(seed, size=size)


def _bodies(
    for_place: Generator, rng: Generator, view: Scene, knobs: PhantomSettings, lesion: bool
) -> list[Body]:
    """Lay confusers and lesions on the wall, farthest from notice first; the lesions come last and lie on top."""
    size = len(view.log_depth)
    first = place(for_place, view.log_depth, view.visible, [])
    second = place(for_place, view.log_depth, view.visible, [first])
    third = place(for_place, view.log_depth, view.visible, [first, second])
    twin, bumps = rng.random() < 0.12, int(rng.integers(0, 3))
    radii = rng.uniform(0.12, 0.3, 2)
    bumps_rng, first_rng, second_rng = rng.spawn(3)
    spots = [third] if twin else [second, third]
    bodies = [bulge(bumps_rng, size, spot, r) for spot, r in zip(spots[:bumps], radii, strict=False)]
    if lesion:
        if twin:
            bodies.append(
                polyp(second_rng, size, second, 2 * knobs.size * 0.6, knobs.skirt * 0.5, knobs.texture)
            )
        bodies.append(polyp(first_rng, size, first, 2 * knobs.size, knobs.skirt, knobs.texture))
    empty = np.zeros((size, size), np.float32)
    return [Body(empty > 1, empty, empty, empty), *bodies]


@dataclass(frozen=True)
class _Surface:
    """A log depth and its derivatives along the rays' slopes, (size, size) each; `step` is the slope between two pixels."""

    log_depth: np.ndarray
    lean_across: np.ndarray
    lean_down: np.ndarray
    step: float

    def levelled(self, level: np.ndarray) -> _Surface:
        """Replace the wall by the plane that fits it best there, to the degree of `level` (0 to 1)."""
        r, c = np.nonzero(level[::3, ::3])
        if len(r) < 6:
            return self
        table = np.stack([np.ones(len(r)), r * 3 * self.step, c * 3 * self.step], 1)
        fit, *_ = np.linalg.lstsq(table, self.log_depth[r * 3, c * 3].astype(float), rcond=None)
        a, by_row, by_column = (np.float32(v) for v in fit)
        line = np.arange(len(level), dtype=np.float32) * np.float32(self.step)
        gap = a + by_row * line[:, None] + by_column * line[None] - self.log_depth
        down, across = np.gradient(level, self.step)
        return _Surface(
            self.log_depth + level * gap,
            self.lean_across + level * (by_column - self.lean_across) + gap * across,
            self.lean_down + level * (by_row - self.lean_down) + gap * down,
            self.step,
        )

    def raised(self, rise: np.ndarray) -> _Surface:
        """Bring the surface nearer to the camera by `rise` (in log depth)."""
        down, across = np.gradient(rise, self.step)
        return _Surface(self.log_depth - rise, self.lean_across - across, self.lean_down - down, self.step)


def _tint(rng: Generator, albedo: np.ndarray, strength: np.ndarray, knobs: PhantomSettings) -> np.ndarray:
    """Give the lesion its own colour: redder, paler or darker than the wall, with a mottling of its own."""
    size = len(albedo)
    kind, vigour = rng.random(), rng.uniform(0.85, 1.15)
    red, pale, dusk = (-0.04, -0.50, -0.36), (0.13, 0.24, 0.34), (-0.26, -0.50, -0.20)
    shift = np.array(red if kind < 0.55 else pale if kind < 0.8 else dusk, np.float32) * np.float32(vigour)
    spots = field(rng, size, 30) * 0.6 + field(rng, size, 62) * 0.5
    mottle = np.float32(0.06 + 0.14 * knobs.texture) * spots * np.float32(knobs.contrast)
    change = (
        np.float32(knobs.contrast) * shift + mottle[..., None] * np.array([0.4, 1.0, 0.8], np.float32)
    ) * strength[..., None]
    return np.clip(albedo * np.exp(change), 0.02, 0.97)
