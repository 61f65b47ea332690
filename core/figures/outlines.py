"""Outlines of sets drawn into a picture: arrays in, an RGB array out, for pages, reports and files.

A set's outline is the border of its pixels in the method's colour on a dark edge; the truth is a thin white
line with a dark edge. Misses (truth outside a set) can be hatched and false alarms dotted. For the screen
the result still goes through `core.images.to_display`.
"""

from __future__ import annotations

import numpy as np
from PIL import Image
from scipy import ndimage

from core.figures.palette import rgb_of


def border(inside: np.ndarray, width: int = 1) -> np.ndarray:
    """Pixels of a set that touch its outside; the picture's edge counts as outside.

    Args:
        inside: `(H, W)` bool.
        width: Thickness in pixels.
    """
    return inside & ~ndimage.binary_erosion(inside, iterations=max(1, width))


def draw_outlines(
    rgb: np.ndarray,
    mask: np.ndarray | None = None,
    sets: dict[str, np.ndarray] | None = None,
    *,
    misses_of: str | None = None,
    scale: int | None = None,
) -> np.ndarray:
    """Draw outlines into a picture.

    Args:
        rgb: `(H, W, 3)` uint8.
        mask: `(H, W)` bool truth, or None.
        sets: Method -> `(H, W)` bool.
        misses_of: Method whose misses are hatched and whose false alarms are dotted; needs the mask.
        scale: The picture is enlarged so many times before lines are drawn; None brings the long side to at least 512.

    Returns:
        `(h, w, 3)` uint8.

    Raises:
        ValueError: A set or mask has another size than the picture.
    """
    sets = dict(sets or {})
    for name, inside in [*sets.items(), *([("truth", mask)] if mask is not None else [])]:
        if inside.shape != rgb.shape[:2]:
            raise ValueError(f"The {name} outline has size {inside.shape} and the picture {rgb.shape[:2]}.")
    k = scale or max(1, -(-512 // max(rgb.shape[:2])))
    size = (rgb.shape[1] * k, rgb.shape[0] * k)
    canvas = np.array(Image.fromarray(rgb).resize(size, Image.Resampling.BICUBIC)) if k > 1 else rgb.copy()
    if misses_of is not None and mask is not None:
        _texture(canvas, _grow(mask & ~sets[misses_of], k), hatched=True)
        _texture(canvas, _grow(sets[misses_of] & ~mask, k), hatched=False)
    thick = max(2, round(max(canvas.shape[:2]) / 220))
    if mask is not None:
        _line(canvas, _grow(mask, k), (255, 255, 255), max(1, thick // 2))
    for name, inside in sets.items():
        _line(canvas, _grow(inside, k), rgb_of(name), thick)
    return canvas


def _grow(inside: np.ndarray, k: int) -> np.ndarray:
    """Enlarge a set k times with smoothed corners."""
    if k == 1:
        return inside
    grey = Image.fromarray(inside.astype(np.uint8) * 255).resize(
        (inside.shape[1] * k, inside.shape[0] * k), Image.Resampling.BILINEAR
    )
    return np.asarray(grey) > 127


def _line(canvas: np.ndarray, inside: np.ndarray, colour: tuple[int, int, int], width: int) -> None:
    line = border(inside, width)
    edge = ndimage.binary_dilation(line, iterations=1) & ~line
    canvas[edge] = (canvas[edge] * 0.35).astype(np.uint8)
    canvas[line] = colour


def _texture(canvas: np.ndarray, where: np.ndarray, hatched: bool) -> None:
    y, x = np.mgrid[: canvas.shape[0], : canvas.shape[1]]
    pattern = ((x + y) % 9 < 2) if hatched else ((x % 7 < 2) & (y % 7 < 2))
    canvas[where & pattern] = (255, 255, 255) if hatched else (20, 20, 20)
