"""The plane of two logit distances as one small picture under a chart: it stays where it is while balls roll over it, and is light.

What it is not: a chart. Colours and heights are those of `margin_ground`.
"""

from __future__ import annotations

import base64
import io
from typing import Any

import numpy as np

from core.figures.margin_ground import FLAT, HEIGHTS, INK, Ground, has_floor


def picture(ground: Ground, side: int = 440) -> dict[str, Any]:
    """The map of heights, its height lines and its floor as a Plotly layout image for the first panel.

    Args:
        ground: The plane.
        side: Pixels along one side.
    """
    from PIL import Image, ImageColor
    from scipy.ndimage import map_coordinates

    axis, z = np.asarray(ground.axis, float), ground.heights
    highest = max(float(z.max()), 1e-9)
    fine = np.linspace(axis[0], axis[-1], side)
    spot = np.interp(fine, axis, np.arange(len(axis)))
    rows, cols = np.meshgrid(spot[::-1], spot, indexing="ij")
    up = map_coordinates(z, [rows, cols], order=1, mode="nearest") / highest
    stops = np.array([ImageColor.getrgb(str(c)) for _, c in HEIGHTS], float)
    where = [float(str(at)) for at, _ in HEIGHTS]
    rgb = np.stack([np.interp(up, where, stops[:, c]) for c in range(3)], -1)
    rgb[_borders(np.floor(up * 8 - 1e-9))] *= 0.86
    if has_floor(ground):
        edge = _borders(up <= FLAT)
        edge |= np.roll(edge, 1, 0) | np.roll(edge, 1, 1) | np.roll(edge, (1, 1), (0, 1))
        step = np.add.outer(np.arange(side), np.arange(side)) % 12 < 6
        rgb[edge & step] = ImageColor.getrgb(INK)
    file = io.BytesIO()
    Image.fromarray(rgb.round().astype(np.uint8)).save(file, "PNG", optimize=True)
    source = "data:image/png;base64," + base64.b64encode(file.getvalue()).decode("ascii")
    span = float(axis[-1] - axis[0])
    return {
        "source": source, "xref": "x", "yref": "y", "x": float(axis[0]), "y": float(axis[-1]), "sizex": span, "sizey": span,
        "sizing": "stretch", "layer": "below",
    }  # fmt: skip


def _borders(part: np.ndarray) -> np.ndarray:
    """Pixels whose right or lower neighbour belongs to another part."""
    edge = np.zeros(part.shape, bool)
    edge[:-1] |= part[:-1] != part[1:]
    edge[:, :-1] |= part[:, :-1] != part[:, 1:]
    return edge
