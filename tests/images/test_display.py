"""To the screen: any array becomes 8-bit RGB, and what was hidden on the way is counted."""

from __future__ import annotations

import io

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp
from PIL import Image

from core.images import (
    NAN_COLOUR,
    BadImage,
    apply_window,
    default_window,
    display_notes,
    png_bytes,
    read,
    to_display,
    to_rgb,
)
from tests.images.makers import colours, png, tiff

ANY = st.one_of(hnp.scalar_dtypes(), hnp.complex_number_dtypes()).filter(lambda kind: kind.kind in "buifc")
SHAPES = st.one_of(
    hnp.array_shapes(min_dims=2, max_dims=2, min_side=0, max_side=4),
    st.tuples(st.integers(0, 4), st.integers(0, 4), st.integers(1, 4)),
)
WINDOWS = st.none() | st.tuples(st.floats(), st.floats())


@given(ANY.flatmap(lambda kind: hnp.arrays(kind, SHAPES)), WINDOWS, st.booleans(), st.booleans())
@settings(max_examples=100, deadline=None)
def test_anything_like_a_picture_becomes_8_bit_rgb(
    array: np.ndarray, window: tuple[float, float] | None, boolean_ok: bool, invert: bool
) -> None:
    out = to_display(array, window=window, boolean_ok=boolean_ok, invert=invert)
    assert out.dtype == np.uint8
    assert out.ndim == 3
    assert out.shape[2] == 3
    assert out.flags.c_contiguous
    assert out.flags.writeable
    if array.ndim == 2 or array.shape[0] != 1:
        assert out.shape[:2] == array.shape[:2]
    assert all(isinstance(note, str) for note in display_notes(array, window))


@given(hnp.arrays(np.uint8, st.tuples(st.integers(2, 6), st.integers(1, 6), st.just(3))))
@settings(max_examples=30, deadline=None)
def test_8_bit_colour_is_shown_as_it_is_in_an_array_of_its_own(array: np.ndarray) -> None:
    out = to_display(array)
    assert np.array_equal(out, array)
    assert not np.shares_memory(out, array)


@given(
    hnp.arrays(np.int16, st.tuples(st.integers(1, 6), st.integers(1, 6))),
    st.floats(-4000, 4000),
    st.floats(0.01, 9000),
)
@settings(max_examples=30, deadline=None)
def test_a_window_never_reverses_an_order_and_clips_outside(
    array: np.ndarray, centre: float, width: float
) -> None:
    out = apply_window(array, centre, width)
    order = np.argsort(array, axis=None)
    assert (np.diff(out.reshape(-1)[order].astype(int)) >= 0).all()
    assert (out[array <= centre - width / 2] == 0).all()
    assert (out[array >= centre + width / 2] == 255).all()


def test_a_large_16_bit_picture_goes_the_same_way_as_a_small_one() -> None:
    for kind in (np.int16, np.uint16, np.uint8, np.int8, ">u2"):
        every = np.arange(2**16).astype(kind)
        large = apply_window(np.tile(every, 2).reshape(2, -1), 100, 777.5)
        assert np.array_equal(large[0, :5000], apply_window(every[:5000], 100, 777.5))
        assert np.array_equal(large[1, -5000:], apply_window(every[-5000:], 100, 777.5))


def test_a_window_by_hand() -> None:
    assert apply_window(np.array([-100, 0, 50, 100, 900, np.nan, np.inf, -np.inf]), 50, 100).tolist() == [
        0,
        0,
        128,
        255,
        255,
        0,
        255,
        0,
    ]
    assert apply_window(np.array([4, 5, 6]), 5, 0).tolist() == [0, 128, 255]


@pytest.mark.parametrize("kind", [bool, np.uint8, np.int16, np.int64, np.float32])
def test_masks_are_black_and_white_in_every_type(kind: type) -> None:
    mask = np.array([[0, 1], [1, 1]]).astype(kind)
    assert to_display(mask)[..., 0].tolist() == [[0, 255], [255, 255]]
    assert (to_display(np.zeros((2, 2), kind)) == 0).all()
    assert (to_display(np.ones((2, 2), kind)) == 255).all()


def test_0_and_1_can_be_taken_as_grey() -> None:
    assert to_display(np.array([[0, 1, 2]], np.uint8)).max() == 2
    assert to_display(np.array([[0.0, 0.25, 1.0]]), window=(0.5, 1.0))[0, :, 0].tolist() == [0, 64, 255]


def test_missing_values_are_painted_and_counted_and_infinite_ones_are_black_or_white() -> None:
    array = np.array([[np.nan, 0.0, 10.0], [np.inf, -np.inf, 5.0]])
    out = to_display(array, window=(5, 10))
    assert tuple(out[0, 0]) == NAN_COLOUR
    assert out[0, 1:, 0].tolist() == [0, 255]
    assert out[1, :, 0].tolist() == [255, 0, 128]
    notes = " ".join(display_notes(array, (5, 10)))
    assert "1 of 6 values are missing" in notes
    assert "2 of 6 values are infinite" in notes
    assert "from 0 (black) to 10 (white)" in notes
    assert tuple(to_display(array, nan_colour=(1, 2, 3))[0, 0]) == (1, 2, 3)
    assert (to_display(np.full((2, 2), np.nan)) == NAN_COLOUR).all()


def test_16_bit_is_neither_saturated_nor_black() -> None:
    ramp = np.linspace(500, 3000, 400).astype(np.uint16).reshape(20, 20)
    out = to_display(ramp)[..., 0]
    assert out.min() == 0
    assert out.max() == 255
    assert len(np.unique(out)) > 200


def test_alpha_is_laid_on_black() -> None:
    rgba = np.full((2, 2, 4), 200, np.uint8)
    rgba[..., 3] = [[0, 255], [51, 255]]
    assert to_display(rgba)[..., 0].tolist() == [[0, 200], [40, 200]]
    floats = np.dstack([np.full((1, 2, 3), 0.5), [[0.0, 1.0]]])
    assert to_display(floats)[0, :, 0].tolist() == [0, 128]


def test_float_and_16_bit_colour_are_scaled() -> None:
    assert to_display(np.array([[[0.0, 0.5, 1.0]]]))[0, 0].tolist() == [0, 128, 255]
    assert to_display(np.array([[[0, 32768, 65535]]], np.uint16))[0, 0].tolist() == [0, 128, 255]


def test_what_is_no_picture_is_refused_with_its_shape_or_type() -> None:
    with pytest.raises(BadImage, match=r"\(5, 6, 7\)"):
        to_display(np.zeros((5, 6, 7)))
    with pytest.raises(BadImage, match=r"\(5,\)"):
        to_display(np.zeros(5))
    with pytest.raises(BadImage, match="object"):
        to_display(np.array([[None]]))


def test_leading_axes_of_one_are_dropped() -> None:
    assert to_display(np.zeros((1, 1, 5, 6))).shape == (5, 6, 3)
    assert to_display(np.zeros((1, 5, 6, 3), np.uint8)).shape == (5, 6, 3)
    assert to_display(np.zeros((1, 5, 6))).shape == (5, 6, 3)


def test_default_windows() -> None:
    values = np.linspace(0, 1000, 5001)
    assert default_window(values) == pytest.approx((500, 980))
    mostly = np.zeros(10_000)
    mostly[0] = 50
    assert default_window(mostly) == (25.0, 50.0)  # percentiles agree: least to greatest
    assert default_window(np.full(9, 7.0)) == (7.0, 1.0)
    assert default_window(np.array([np.nan, np.inf])) == (0.5, 1.0)
    assert default_window(np.zeros(0)) == (0.5, 1.0)


def test_what_a_network_sees_is_what_a_person_sees() -> None:
    picture = read(tiff(np.linspace(0, 4000, 400).astype(np.int16).reshape(20, 20)), "x.tif")[0]
    assert np.array_equal(to_rgb(picture), to_display(picture.pixels[0], window=picture.window))
    assert np.array_equal(to_rgb(picture, window=(100, 50)), to_display(picture.pixels[0], window=(100, 50)))
    colour = read(png(colours()), "x.png")[0]
    assert np.array_equal(to_rgb(colour), colours())
    for wrong in (-1, 1):
        with pytest.raises(BadImage, match="does not exist"):
            to_rgb(picture, wrong)


def test_png_bytes_come_back_and_hold_no_metadata() -> None:
    array = colours()
    data = png_bytes(array)
    with Image.open(io.BytesIO(data)) as image:
        assert image.info == {}
        assert np.array_equal(np.asarray(image), array)
    for wrong in (array[..., 0], array.astype(np.float32), np.zeros((0, 4, 3), np.uint8)):
        with pytest.raises(BadImage, match="to_display"):
            png_bytes(wrong)
