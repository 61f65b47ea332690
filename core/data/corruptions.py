"""The nineteen corruptions of CIFAR-10-C at 32 pixels, and the same for pictures of medical size, severities 1 to 5 (METHODS section 5).

At 32 pixels the levels are CIFAR-10-C's. For other sizes they are ImageNet-C's, made for 224 pixels, with every length (blur widths, shifts,
trails) scaled by the shorter side over 224. Results are clipped to [0, 1] and become uint8 by truncation, which darkens noisy images by
half a grey level, as in the original. Every draw takes a generator. The operations follow Hendrycks and Dietterich (2019) and are written anew with
SciPy and Pillow; they match in distribution, not bit by bit, and frost is drawn by ourselves (`_corrupt_weather.py`). Geometry is not a
label: elastic, zoom and glass move pixels, so a mask fits `KEEPS_SHAPE` only.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np
import torch
from numpy.random import Generator

from core.data import _corrupt_blur as blur
from core.data import _corrupt_digital as digital
from core.data import _corrupt_noise as noise
from core.data import _corrupt_weather as weather
from core.data._corrupt_noise import NOISES, noise_tensor

BLURS = ("gaussian_blur", "defocus_blur", "glass_blur", "motion_blur", "zoom_blur")
WEATHERS = ("snow", "frost", "fog", "spatter")
DIGITALS = ("brightness", "contrast", "saturate", "elastic", "pixelate", "jpeg")
CORRUPTIONS = (*NOISES, *BLURS, *WEATHERS, *DIGITALS)
KEEPS_SHAPE = tuple(c for c in CORRUPTIONS if c not in ("elastic", "zoom_blur", "glass_blur"))
"""Corruptions after which a mask of the clean picture still fits."""
SEVERITIES = (1, 2, 3, 4, 5)
REFERENCE_SIDE = 224

SMALL: dict[str, tuple[Any, ...]] = {
    "gaussian_noise": (0.04, 0.06, 0.08, 0.09, 0.10),
    "shot_noise": (500, 250, 100, 75, 50),
    "impulse_noise": (0.01, 0.02, 0.03, 0.05, 0.07),
    "speckle_noise": (0.06, 0.10, 0.12, 0.16, 0.20),
    "gaussian_blur": (0.4, 0.6, 0.7, 0.8, 1.0),
    "defocus_blur": ((0.3, 0.4), (0.4, 0.5), (0.5, 0.6), (1, 0.2), (1.5, 0.1)),
    "glass_blur": ((0.05, 1, 1), (0.25, 1, 1), (0.4, 1, 1), (0.25, 1, 2), (0.4, 1, 2)),
    "motion_blur": ((6, 1), (6, 1.5), (6, 2), (8, 2), (9, 2.5)),
    "zoom_blur": ((1.06, 0.01), (1.11, 0.01), (1.16, 0.01), (1.21, 0.01), (1.26, 0.01)),
    "snow": (
        (0.1, 0.2, 1, 0.6, 8, 3, 0.95),
        (0.1, 0.2, 1, 0.5, 10, 4, 0.9),
        (0.15, 0.3, 1.75, 0.55, 10, 4, 0.9),
        (0.25, 0.3, 2.25, 0.6, 12, 6, 0.85),
        (0.3, 0.3, 1.25, 0.65, 14, 12, 0.8),
    ),
    "frost": ((1, 0.2), (1, 0.3), (0.9, 0.4), (0.85, 0.4), (0.75, 0.45)),
    "fog": ((0.2, 3), (0.5, 3), (0.75, 2.5), (1, 2), (1.5, 1.75)),
    "brightness": (0.05, 0.1, 0.15, 0.2, 0.3),
    "contrast": (0.75, 0.5, 0.4, 0.3, 0.15),
    "saturate": ((0.3, 0), (0.1, 0), (1.5, 0), (2, 0.1), (2.5, 0.2)),
    "elastic": ((0, 0, 0.08), (0.05, 0.2, 0.07), (0.08, 0.06, 0.06), (0.1, 0.04, 0.05), (0.1, 0.03, 0.03)),
    "pixelate": (0.95, 0.9, 0.85, 0.75, 0.65),
    "jpeg": (80, 65, 58, 50, 40),
    "spatter": (
        (0.62, 0.1, 0.7, 0.7, 0.5, 0),
        (0.65, 0.1, 0.8, 0.7, 0.5, 0),
        (0.65, 0.3, 1, 0.69, 0.5, 0),
        (0.65, 0.1, 0.7, 0.69, 0.6, 1),
        (0.65, 0.1, 0.5, 0.68, 0.6, 1),
    ),
}
"""Levels at 32 pixels by severity; elastic in shares of the side, zoom as (end, step) of a range from 1."""

LARGE: dict[str, tuple[Any, ...]] = {
    "gaussian_noise": (0.08, 0.12, 0.18, 0.26, 0.38),
    "shot_noise": (60, 25, 12, 5, 3),
    "impulse_noise": (0.03, 0.06, 0.09, 0.17, 0.27),
    "speckle_noise": (0.15, 0.2, 0.35, 0.45, 0.6),
    "gaussian_blur": (1, 2, 3, 4, 6),
    "defocus_blur": ((3, 0.1), (4, 0.5), (6, 0.5), (8, 0.5), (10, 0.5)),
    "glass_blur": ((0.7, 1, 2), (0.9, 2, 1), (1, 2, 3), (1.1, 3, 2), (1.5, 4, 2)),
    "motion_blur": ((10, 3), (15, 5), (15, 8), (15, 12), (20, 15)),
    "zoom_blur": ((1.11, 0.01), (1.16, 0.01), (1.21, 0.02), (1.26, 0.02), (1.31, 0.03)),
    "snow": (
        (0.1, 0.3, 3, 0.5, 10, 4, 0.8),
        (0.2, 0.3, 2, 0.5, 12, 4, 0.7),
        (0.55, 0.3, 4, 0.9, 12, 8, 0.7),
        (0.55, 0.3, 4.5, 0.85, 12, 8, 0.65),
        (0.55, 0.3, 2.5, 0.85, 12, 12, 0.55),
    ),
    "frost": ((1, 0.4), (0.8, 0.6), (0.7, 0.7), (0.65, 0.7), (0.6, 0.75)),
    "fog": ((1.5, 2), (2, 2), (2.5, 1.7), (2.5, 1.5), (3, 1.4)),
    "brightness": (0.1, 0.2, 0.3, 0.4, 0.5),
    "contrast": (0.4, 0.3, 0.2, 0.1, 0.05),
    "saturate": ((0.3, 0), (0.1, 0), (2, 0), (5, 0.1), (20, 0.2)),
    "elastic": (
        (2.18, 0.763, 0.109),
        (2.18, 0.087, 0.218),
        (0.0545, 0.0109, 0.0218),
        (0.0763, 0.0109, 0.0218),
        (0.131, 0.0109, 0.0218),
    ),
    "pixelate": (0.6, 0.5, 0.4, 0.3, 0.25),
    "jpeg": (25, 18, 15, 10, 7),
    "spatter": (
        (0.65, 0.3, 4, 0.69, 0.6, 0),
        (0.65, 0.3, 3, 0.68, 0.6, 0),
        (0.65, 0.3, 2, 0.68, 0.5, 0),
        (0.65, 0.3, 1, 0.65, 1.5, 1),
        (0.67, 0.4, 1, 0.65, 1.5, 1),
    ),
}
"""Levels for 224 pixels by severity (ImageNet-C); far harsher than those at 32 pixels."""


def level(name: str, severity: int, side: int = 32) -> Any:
    """The level of a corruption.

    Args:
        name: One of `CORRUPTIONS`.
        severity: 1 to 5.
        side: Shorter side of the image; 32 or less takes CIFAR-10-C's table, more takes ImageNet-C's.

    Raises:
        ValueError: The name or the severity is not known.
    """
    if name not in CORRUPTIONS:
        raise ValueError(f"The corruption {name!r} is not known; choose one of {', '.join(CORRUPTIONS)}.")
    if severity not in SEVERITIES:
        raise ValueError(f"Severity runs from 1 to 5, not {severity}.")
    return (SMALL if side <= 32 else LARGE)[name][severity - 1]


def corrupt(image: np.ndarray, name: str, severity: int, rng: Generator) -> np.ndarray:
    """Damage one image.

    Args:
        image: `(H, W, 3)` uint8.
        name: One of `CORRUPTIONS`.
        severity: 1 to 5.
        rng: Source of every draw.

    Returns:
        `(H, W, 3)` uint8, a new array.

    Raises:
        ValueError: The image is no `(H, W, 3)` uint8 array, or name or severity is not known.
    """
    if image.dtype != np.uint8 or image.ndim != 3 or image.shape[2] != 3:
        raise ValueError(
            f"A corruption takes an image of shape (H, W, 3) in uint8, not {image.shape} in {image.dtype}."
        )
    side = min(image.shape[:2])
    c = level(name, severity, side)
    unit = 1.0 if side <= 32 else side / REFERENCE_SIDE
    y = _apply(image / 255.0, name, c, rng, side, unit)
    return (np.clip(y, 0, 1) * 255 + 1e-9).astype(np.uint8)


def _apply(x: np.ndarray, name: str, c: Any, rng: Generator, side: int, unit: float) -> np.ndarray:
    """The corruption on `(H, W, 3)` float64 in [0, 1]; not yet clipped."""
    if name in NOISES:
        return getattr(noise, name)(x, c, rng)
    if name == "gaussian_blur":
        return blur.smooth(x, c * unit)
    if name == "defocus_blur":
        return blur.defocus_blur(x, c[0] * unit, c[1], unit != 1)
    if name == "glass_blur":
        return blur.glass_blur(x, c[0] * unit, max(1, round(c[1] * unit)), c[2], rng)
    if name == "motion_blur":
        return blur.motion(x, c[0] * unit, c[1] * unit, rng.uniform(-45, 45))
    if name == "zoom_blur":
        return blur.zoom_blur(x, np.arange(1, *c))
    if name == "frost":
        return weather.frost(x, c[0], c[1], rng, unit)
    if name == "fog":
        return weather.fog(x, c[0], c[1], rng)
    if name in ("snow", "spatter"):
        return getattr(weather, name)(x, c, rng, unit)
    if name == "elastic":
        return digital.elastic(x, c[0] * side, c[1] * side, c[2] * side, rng)
    if name == "saturate":
        return digital.saturate(x, *c)
    return getattr(digital, name)(x, c)


def corrupt_many(
    images: np.ndarray, name: str, severity: int, seed: int, places: Iterable[int] | None = None
) -> np.ndarray:
    """Damage many images, each with a generator of its own, so that an image looks the same whatever stands beside it.

    Args:
        images: `(N, H, W, 3)` uint8.
        name: One of `CORRUPTIONS`.
        severity: 1 to 5.
        seed: Of the set.
        places: Number of each image in its data set; None counts from 0.

    Returns:
        `(N, H, W, 3)` uint8.
    """
    level(name, severity)
    out = np.empty_like(images)
    for k, place in enumerate(range(len(images)) if places is None else places):
        rng = np.random.default_rng([seed, CORRUPTIONS.index(name), severity, int(place)])
        out[k] = corrupt(images[k], name, severity, rng)
    return out


def corrupt_tensor(x: torch.Tensor, name: str, severity: int, rng: torch.Generator) -> torch.Tensor:
    """One of the four noises on images in [0, 1], `(N, 3, H, W)`, on their device; truncated to 8 bits.

    Raises:
        ValueError: Not a noise, or the severity is not known.
    """
    return noise_tensor(x, name, level(name, severity, min(x.shape[-2:])), rng)


__all__ = [
    "BLURS",
    "CORRUPTIONS",
    "DIGITALS",
    "KEEPS_SHAPE",
    "NOISES",
    "SEVERITIES",
    "WEATHERS",
    "corrupt",
    "corrupt_many",
    "corrupt_tensor",
    "level",
    "noise_tensor",
]
