"""Small pieces of sentences about λ and points of accuracy, shared by everything that speaks of sparse layers."""

from __future__ import annotations

import numpy as np

CORRUPTION_WORDS = {
    "gaussian_noise": "Gaussian noise",
    "shot_noise": "shot noise",
    "impulse_noise": "impulse noise",
    "speckle_noise": "speckle noise",
    "gaussian_blur": "Gaussian blur",
    "defocus_blur": "defocus blur",
    "glass_blur": "glass blur",
    "motion_blur": "motion blur",
    "zoom_blur": "zoom blur",
    "snow": "snow",
    "frost": "frost",
    "fog": "fog",
    "spatter": "spatter",
    "brightness": "brightness",
    "contrast": "low contrast",
    "saturate": "saturation",
    "elastic": "elastic warp",
    "pixelate": "coarse pixels",
    "jpeg": "JPEG",
}
"""Corruption -> its name in a sentence or a chooser."""

STILL = 0.03
"""λ is said to stay where it changes by less than this share of itself."""
NOTHING = 0.5
"""Points below which a change is called nothing; the standard error of an accuracy on 1,000 images is up to 1.6."""


def lam(value: float) -> str:
    """λ as a sentence writes it: two digits that count."""
    return f"{value:.2g}"


def points(value: float) -> str:
    """A number of points without its sign: whole from 10 on, else one digit."""
    size = abs(100 * value)
    text = f"{size:.0f}" if size >= 9.95 else f"{size:.1f}".removesuffix(".0")
    return f"{text} point{'' if text == '1' else 's'}"


def wants(trained: np.ndarray, adapted: np.ndarray, subject: str = "the network") -> str:
    """What λ does, without a full stop: one layer's own numbers, or the middle of many layers' ratios with the first layer's numbers.

    Args:
        trained: `(L,)` λ after training, above 0.
        adapted: `(L,)` λ after adaptation; NaN where it was not recorded.
        subject: Who wants.
    """
    if not len(trained):
        return f"{subject} has no λ to move"
    if not np.isfinite(adapted).all():
        return f"what λ {subject} wants is not recorded"
    ratio = float(np.exp(np.log(adapted / trained).mean()))
    if len(trained) == 1:
        if abs(ratio - 1) < STILL:
            return f"{subject} keeps λ = {lam(adapted[0])}"
        return f"{subject} wants λ = {lam(adapted[0])} instead of {lam(trained[0])}"
    first = f"the first layer {lam(adapted[0])} instead of {lam(trained[0])}"
    if abs(ratio - 1) < STILL:
        return f"{subject}'s {len(trained)} layers keep their λ on the whole ({first})"
    return f"{subject}'s {len(trained)} layers want {ratio:.2g} times their λ ({first})"


def goes(trained: np.ndarray, adapted: np.ndarray) -> str:
    """What λ does, without a full stop and without saying that anybody wants it. Arguments as in `wants`."""
    if not len(trained):
        return "there is no λ to move"
    if not np.isfinite(adapted).all():
        return "where λ goes is not recorded"
    ratio = float(np.exp(np.log(adapted / trained).mean()))
    still = abs(ratio - 1) < STILL
    if len(trained) == 1:
        return (
            f"λ stays at {lam(adapted[0])}"
            if still
            else f"λ goes from {lam(trained[0])} to {lam(adapted[0])}"
        )
    first = f"first layer: from {lam(trained[0])} to {lam(adapted[0])}"
    return f"λ of {len(trained)} layers {'stays where it was on the whole' if still else f'goes to {ratio:.3g} times its trained value'} ({first})"
