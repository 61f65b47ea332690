"""The four noises of CIFAR-10-C, on arrays and on torch tensors of any device (METHODS section 5). Parts of `corruptions.py`.

All take and return values in [0, 1]; the array forms work in float64 as the original script does. Salt and pepper replaces single values, not pixels.
"""

from __future__ import annotations

import numpy as np
import torch
from numpy.random import Generator

NOISES = ("gaussian_noise", "shot_noise", "impulse_noise", "speckle_noise")


def gaussian_noise(x: np.ndarray, c: float, rng: Generator) -> np.ndarray:
    """Add N(0, c²) to each value."""
    return x + rng.normal(size=x.shape, scale=c)


def shot_noise(x: np.ndarray, c: float, rng: Generator) -> np.ndarray:
    """Poisson counts with c photons at full brightness."""
    return rng.poisson(x * c) / c


def impulse_noise(x: np.ndarray, c: float, rng: Generator) -> np.ndarray:
    """Replace each value with probability c, by 0 or 1 at equal odds."""
    hit, salt = rng.random(x.shape) < c, rng.random(x.shape) < 0.5
    return np.where(hit, salt.astype(x.dtype), x)


def speckle_noise(x: np.ndarray, c: float, rng: Generator) -> np.ndarray:
    """Add N(0, c²) times the value itself."""
    return x + x * rng.normal(size=x.shape, scale=c)


def noise_tensor(
    x: torch.Tensor, name: str, c: float, rng: torch.Generator, truncate: bool = True
) -> torch.Tensor:
    """One of the four noises on a tensor, on its own device.

    Args:
        x: Values in [0, 1], any shape.
        name: One of `NOISES`.
        c: The level, from `corruptions.level`.
        rng: A generator of the tensor's device.
        truncate: Round down to steps of 1/255, as an image file would.

    Returns:
        A tensor like `x`, clipped to [0, 1].

    Raises:
        ValueError: The noise is not known.
    """
    if name not in NOISES:
        raise ValueError(f"{name!r} is no noise; choose one of {', '.join(NOISES)}.")
    if name == "shot_noise":
        y = torch.poisson(x * c, generator=rng) / c
    elif name == "impulse_noise":
        hit = torch.rand(x.shape, generator=rng, device=x.device, dtype=x.dtype) < c
        salt = torch.rand(x.shape, generator=rng, device=x.device, dtype=x.dtype) < 0.5
        y = torch.where(hit, salt.to(x.dtype), x)
    else:
        z = torch.randn(x.shape, generator=rng, device=x.device, dtype=x.dtype) * c
        y = x + (z if name == "gaussian_noise" else x * z)
    y = y.clamp(0, 1)
    return (y * 255).floor() / 255 if truncate else y
