from __future__ import annotations

import numpy as np
import pytest

from core.figures.outlines import border, draw_outlines
from core.figures.palette import COLOURS, DASHES, SHAPES, rgb_of


def disc(side: int = 64, radius: int = 15) -> np.ndarray:
    y, x = np.mgrid[:side, :side]
    return np.hypot(y - side / 2, x - side / 2) < radius


def test_a_border_lies_inside_its_set_and_leaves_the_heart_free():
    inside = disc()
    line = border(inside, 2)
    assert line.any()
    assert not (line & ~inside).any()
    assert not line[32, 32]


def test_a_set_that_fills_the_picture_has_its_border_at_the_edge():
    line = border(np.ones((8, 8), bool))
    assert line[0].all()
    assert not line[4, 4]


def test_outlines_have_their_methods_colours_and_the_picture_is_left_alone():
    rgb = np.full((64, 64, 3), 90, np.uint8)
    drawn = draw_outlines(rgb, disc(radius=10), {"CRC": disc(radius=16), "COAT": disc(radius=22)})
    assert max(drawn.shape) >= 512
    found = {tuple(c) for c in drawn.reshape(-1, 3)[::1]}
    assert {rgb_of("CRC"), rgb_of("COAT"), (255, 255, 255)} <= found
    assert (rgb == 90).all()


def test_a_mask_of_another_size_is_refused():
    with pytest.raises(ValueError, match="truth"):
        draw_outlines(np.zeros((8, 8, 3), np.uint8), np.zeros((9, 8), bool))


def test_every_method_has_a_colour_a_dash_and_a_shape_of_its_own():
    assert set(COLOURS) == set(DASHES) == set(SHAPES)
    assert len(set(COLOURS.values())) == len(COLOURS)
    assert len(set(SHAPES.values())) == len(SHAPES)
    assert len({tuple(d) for d in DASHES.values()}) == len(DASHES)
