"""What a calibration may say of itself: shares, promises and guarantees in plain words, with the numbers in them."""

from __future__ import annotations

import math


def images_needed(alpha: float) -> int:
    """Smallest number of calibration images with which a set smaller than the whole image can be promised.

    n >= 1/alpha - 1, computed so that 1/alpha - 1 = 9 for alpha = 0.1.
    """
    return max(1, math.ceil(1.0 / alpha - 1.0 - 1e-9))


def percent(share: float) -> str:
    """A share as a person reads it: 0.9 -> "90 %", with a no-break space; small ones keep one digit: 0.004 -> "0.4 %"."""
    value = 100 * share
    digits = 1 if 0 < abs(value) < 0.95 or (99.05 < value < 100) else 0
    return f"{value:.{digits}f}\u00a0%"


def promised(alpha: float) -> str:
    """The promise 1 - alpha as a person reads it, never rounded up: 97.5 % does not become 98 %."""
    return f"{100 * (1 - alpha):.6g}\u00a0%"


def guarantee_sentence(alpha: float, n: int, n_empty: int = 0) -> str:
    """What a calibration on n images promises, on what assumption, in plain words."""
    shows = "image shows no lesion and counts" if n_empty == 1 else "images show no lesion and count"
    empty = f" ({n_empty} more calibration {shows} nowhere: nothing can be missed there.)" if n_empty else ""
    need = images_needed(alpha)
    share = promised(alpha)
    if n < need:
        lacking = need - n
        return (
            f"{n} calibration image{'' if n == 1 else 's'} cannot carry a promise of {share}: the only honest set is the whole image. "
            f"Bring {lacking} more with a lesion; from {need} on, a smaller set can be promised.{empty}"
        )
    return (
        f"If these {n} images and the next one are drawn alike, then on average over both draws at least {share} of its lesion is "
        f"inside; with this one calibration set it may be a little less.{empty}"
    )
