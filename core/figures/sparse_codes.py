"""Codes of a sparse layer as one picture: a map for each atom, the strongest first; positive codes blue, negative orange, zero black.

Numpy only. The picture goes to the screen through `core.images.display.to_display`, as every array does.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from core.figures.frame import count
from core.figures.sparse_words import number, rate

POSITIVE = np.array([0x56, 0xB4, 0xE9], np.float64)
NEGATIVE = np.array([0xE6, 0x9F, 0x00], np.float64)
BETWEEN = 110
"""Grey of the gaps between maps: neither a zero code (black) nor a page."""


@dataclass(frozen=True)
class Montage:
    """Maps of codes side by side.

    Attributes:
        picture: `(H, W, 3)` uint8.
        order: `(M,)` atoms in the order in which they stand, row by row.
        energy: `(M,)` share of the energy of all atoms in each.
        top: Absolute code of the brightest colour.
        description: Alt text.
    """

    picture: np.ndarray
    order: np.ndarray
    energy: np.ndarray
    top: float
    description: str


def montage(
    codes: np.ndarray,
    *,
    columns: int = 0,
    most: int = 0,
    order: np.ndarray | None = None,
    top: float | None = None,
    gap: int = 1,
    enlarge: int = 1,
) -> Montage:
    """Arrange codes.

    Args:
        codes: `(A, h, w)` codes of one image, both signs; what is no number counts as 0.
        columns: Maps in a row; 0 makes the picture about square.
        most: Maps at most, the first in order; 0 takes all.
        order: Atoms in their order, so that two pictures (before and after) compare; None sorts by energy, the strongest first.
        top: Absolute code of the brightest colour, for the same reason; None takes the 99.5th percentile of what is not zero.
        gap: Pixels between maps.
        enlarge: Every code becomes a square of so many pixels.

    Raises:
        ValueError: Not `(A, h, w)`, nothing in it, or an order that names atoms that are not there.
    """
    c = np.asarray(codes, np.float64)
    if c.ndim != 3 or 0 in c.shape:
        raise ValueError(f"Codes of one image have the shape (atoms, height, width), not {c.shape}.")
    c = np.where(np.isfinite(c), c, 0.0)
    energy = np.square(c).sum((1, 2))
    whole = float(energy.sum())
    share = energy / whole if whole > 0 else np.zeros(len(c))
    places = np.argsort(-energy, kind="stable") if order is None else np.asarray(order, np.int64)
    if places.ndim != 1 or not len(places) or not ((places >= 0) & (places < len(c))).all():
        raise ValueError(f"The order names atoms from 0 to {len(c) - 1}, at least one.")
    places = places[:most] if most > 0 else places
    size = np.abs(c)
    if top is None:
        top = float(np.quantile(size[size > 0], 0.995)) if whole > 0 else 1.0
    maps = _coloured(c[places], max(float(top), 1e-12))
    maps = maps.repeat(max(enlarge, 1), 1).repeat(max(enlarge, 1), 2)
    n, h, w = maps.shape[:3]
    across = min(columns, n) if columns > 0 else max(1, round(math.sqrt(n * (h + gap) / (w + gap))))
    down = math.ceil(n / across)
    sheet = np.full((down * (h + gap) - gap, across * (w + gap) - gap, 3), BETWEEN, np.uint8)
    for k in range(n):
        y, x = (k // across) * (h + gap), (k % across) * (w + gap)
        sheet[y : y + h, x : x + w] = maps[k]
    zero = float((c == 0).mean())
    said = (
        f"{count(n, 'map')} of codes in {count(down, 'row')}{'' if n == len(c) else f', of {len(c)} atoms'}. {rate(zero)} of all codes are zero "
        f"(black); positive ones are blue, negative ones orange, brightest at {number(float(top))}."
    )
    if whole > 0:
        said += f" The strongest map holds {rate(float(share.max()))} of the energy."
    return Montage(sheet, places, share[places], float(top), said)


def _coloured(codes: np.ndarray, top: float) -> np.ndarray:
    """`(n, h, w, 3)` uint8; brightness goes with the root of the code, so that small ones are seen."""
    bright = np.sqrt(np.clip(np.abs(codes) / top, 0, 1))[..., None]
    return np.rint(bright * np.where(codes[..., None] > 0, POSITIVE, NEGATIVE)).astype(np.uint8)
