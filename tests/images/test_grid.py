"""The way from an image to a network's square and back: aspect kept, nothing moved, the same grid everywhere."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from core.images.grid import (
    LONG_SIDE,
    from_square,
    grid_shape,
    mask_to_grid,
    mask_to_square,
    to_grid,
    to_square,
)

SIDES = st.integers(1, 900)


@given(height=SIDES, width=SIDES, long_side=st.integers(1, 600))
def test_the_grid_never_exceeds_its_long_side_and_keeps_the_aspect(height, width, long_side):
    h, w = grid_shape((height, width), long_side)
    assert 1 <= h <= height
    assert 1 <= w <= width
    if max(height, width) <= long_side:
        assert (h, w) == (height, width)
    else:
        assert max(h, w) == long_side
        scale = long_side / max(height, width)
        assert abs(h - height * scale) <= 1
        assert abs(w - width * scale) <= 1
    assert grid_shape((h, w), long_side) == (h, w)


def test_the_long_side_is_512():
    assert LONG_SIDE == 512
    assert grid_shape((1024, 2048)) == (256, 512)


def test_a_small_image_and_its_mask_stay_as_they_are():
    rgb = np.random.default_rng(0).integers(0, 256, (30, 50, 3)).astype(np.uint8)
    assert np.array_equal(to_grid(rgb), rgb)
    assert np.array_equal(mask_to_grid(rgb[..., 0] > 90), rgb[..., 0] > 90)


@pytest.mark.parametrize("shape", [(600, 800), (800, 600), (513, 40), (2000, 3)])
def test_image_and_mask_come_to_the_same_grid(shape):
    rgb = np.random.default_rng(0).integers(0, 256, (*shape, 3)).astype(np.uint8)
    small, mask = to_grid(rgb), mask_to_grid(rgb[..., 0] > 127)
    assert small.shape == (*grid_shape(shape), 3)
    assert mask.shape == grid_shape(shape)
    assert small.dtype == np.uint8
    assert mask.dtype == bool


def test_scaling_down_is_an_average_over_areas():
    rgb = np.random.default_rng(0).integers(0, 256, (40, 60, 3)).astype(np.uint8)
    wanted = rgb.reshape(20, 2, 30, 2, 3).astype(float).mean((1, 3))
    assert np.abs(to_grid(rgb, 30) - wanted).max() <= 1.0


def test_a_grid_pixel_belongs_to_the_lesion_from_half_of_it_on():
    """Of the 4 x 4 pixels behind one pixel of the grid, 8 and more make it lesion, 7 and fewer do not."""
    for inside in range(17):
        block = (np.arange(16) < inside).reshape(4, 4)
        mask = np.tile(block, (2, 2))
        assert mask_to_grid(mask, 2).all() == (inside >= 8)
        assert mask_to_grid(mask, 2).any() == (inside >= 8)


@settings(deadline=None)
@given(height=st.integers(1, 200), width=st.integers(1, 200), side=st.sampled_from([16, 32, 48]))
def test_the_square_holds_the_whole_image_in_its_corner_and_grey_beside_it(height, width, side):
    rgb = np.full((height, width, 3), 255, np.uint8)
    square, frame = to_square(rgb, side)
    assert square.shape == (3, side, side)
    assert max(frame.height, frame.width) == side
    assert frame.grid == (height, width)
    assert (square[:, : frame.height, : frame.width] == 1).all()
    assert (square[:, frame.height :] == 0).all()
    assert (square[:, :, frame.width :] == 0).all()
    scale = side / max(height, width)
    assert abs(frame.height - height * scale) <= 1
    assert abs(frame.width - width * scale) <= 1
    mask = mask_to_square(np.ones((height, width), bool), side)
    assert mask.sum() == frame.height * frame.width
    assert from_square(square[0], frame).shape == (height, width)


def test_black_and_white_become_minus_one_and_one():
    rgb = np.zeros((8, 8, 3), np.uint8)
    rgb[:, :, 1] = 255
    square, _ = to_square(rgb, 8)
    assert (square[0] == -1).all()
    assert (square[1] == 1).all()


@pytest.mark.parametrize("shape", [(64, 96), (96, 64), (50, 50), (200, 150), (20, 31)])
def test_there_and_back_returns_a_smooth_picture(shape):
    """A ramp goes to the square and comes back to where it was: nothing is shifted or mirrored."""
    y, x = np.mgrid[: shape[0], : shape[1]]
    ramp = np.stack([255 * x / (shape[1] - 1), 255 * y / (shape[0] - 1), 0 * x], -1).astype(np.uint8)
    square, frame = to_square(ramp, 64)
    for channel in (0, 1):
        back = (from_square(square[channel], frame).numpy() + 1) * 127.5
        assert back.shape == shape
        error = np.abs(back - ramp[..., channel])
        assert error[3:-3, 3:-3].max() < 4
        assert error.max() < 16


@pytest.mark.parametrize("shape", [(64, 96), (200, 150), (33, 40)])
def test_a_mask_finds_its_way_back(shape):
    y, x = np.mgrid[: shape[0], : shape[1]]
    mask = (x / shape[1] - 0.6) ** 2 + (y / shape[0] - 0.4) ** 2 < 0.06
    _, frame = to_square(np.zeros((*shape, 3), np.uint8), 64)
    back = from_square(mask_to_square(mask, 64).float(), frame).numpy() > 0.5
    assert (back & mask).sum() / (back | mask).sum() > 0.9


def test_padding_does_not_leak_into_the_scores():
    """Scores outside the frame, however wild, change nothing on the grid."""
    _, frame = to_square(np.zeros((30, 50, 3), np.uint8), 32)
    scores = torch.randn(32, 32, generator=torch.Generator().manual_seed(0))
    wild = scores.clone()
    wild[frame.height :] = 1e6
    assert frame.height < 32
    assert torch.equal(from_square(scores, frame), from_square(wild, frame))


def test_half_precision_scores_come_back_as_float32():
    _, frame = to_square(np.zeros((30, 50, 3), np.uint8), 32)
    assert from_square(torch.zeros(32, 32, dtype=torch.float16), frame).dtype == torch.float32
