"""PNG, JPEG, GIF, BMP and WebP: right pixels, and a note for everything that was done."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp
from PIL import Image, ImageOps

from core.images import BadImage, Picture, read
from tests.images.makers import colours, pil, png, rng


def the(data: bytes, name: str = "x") -> Picture:
    (picture,) = read(data, name)
    return picture


@given(hnp.arrays(np.uint8, hnp.array_shapes(min_dims=2, max_dims=2, max_side=9)))
@settings(max_examples=25, deadline=None)
def test_a_grey_png_comes_back_as_it_was(array: np.ndarray) -> None:
    picture = the(png(array))
    assert picture.kind == "grey"
    assert np.array_equal(picture.pixels, array[None])


@given(
    hnp.arrays(np.uint8, st.tuples(st.integers(1, 9), st.integers(1, 9), st.just(3))),
    st.sampled_from(["PNG", "BMP", "TIFF"]),
)
@settings(max_examples=25, deadline=None)
def test_a_colour_picture_comes_back_as_it_was(array: np.ndarray, kind: str) -> None:
    picture = the(pil(Image.fromarray(array), kind))
    assert picture.kind == "rgb"
    assert picture.window is None
    assert np.array_equal(picture.pixels, array[None])


@given(hnp.arrays(np.uint16, hnp.array_shapes(min_dims=2, max_dims=2, max_side=9)))
@settings(max_examples=25, deadline=None)
def test_a_16_bit_png_keeps_every_level(array: np.ndarray) -> None:
    picture = the(png(array))
    assert picture.pixels.dtype == np.uint16
    assert np.array_equal(picture.pixels, array[None])
    assert any("16 bits" in note for note in picture.notes)


def test_16_bit_colour_is_brought_to_8_and_said() -> None:
    import struct
    import zlib

    values = rng().integers(0, 65536, (5, 6, 3), dtype=np.uint16)
    rows = b"".join(b"\x00" + row.astype(">u2").tobytes() for row in values)

    def chunk(kind: bytes, body: bytes) -> bytes:
        return struct.pack(">I", len(body)) + kind + body + struct.pack(">I", zlib.crc32(kind + body))

    data = b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", struct.pack(">IIBBBBB", 6, 5, 16, 2, 0, 0, 0))
    picture = the(data + chunk(b"IDAT", zlib.compress(rows)) + chunk(b"IEND", b""))
    assert np.abs(picture.pixels[0].astype(int) - values // 257).max() <= 1
    assert any("16 bits a channel" in note for note in picture.notes)


@pytest.mark.parametrize("orientation", range(1, 9))
@pytest.mark.parametrize("kind", ["JPEG", "PNG", "WEBP"])
def test_a_photo_stands_upright_as_pillow_would_turn_it(kind: str, orientation: int) -> None:
    exif = Image.Exif()
    exif[0x0112] = orientation
    options = {"lossless": True} if kind == "WEBP" else {}
    data = pil(Image.fromarray(colours(8, 24)), kind, exif=exif, **options)
    with Image.open(__import__("io").BytesIO(data)) as image:
        expected = np.asarray(ImageOps.exif_transpose(image))
    picture = the(data)
    assert np.array_equal(picture.pixels[0], expected)
    assert any("EXIF" in note for note in picture.notes) == (orientation > 1)


def test_a_16_bit_picture_is_turned_too() -> None:
    exif = Image.Exif()
    exif[0x0112] = 6
    array = rng().integers(0, 65536, (4, 7), dtype=np.uint16)
    assert np.array_equal(the(png(array, exif=exif)).pixels[0], np.rot90(array, -1))


def test_a_palette_is_looked_up() -> None:
    image = Image.fromarray(colours(20, 20)).quantize(16)
    picture = the(pil(image, "PNG"))
    assert np.array_equal(picture.pixels[0], np.asarray(image.convert("RGB")))
    assert any("palette" in note for note in picture.notes)


def test_a_palette_with_a_clear_colour_is_laid_on_black() -> None:
    image = Image.fromarray(np.array([[0, 1], [1, 0]], np.uint8))
    image.putpalette([200, 100, 50, 10, 20, 30])
    picture = the(pil(image, "PNG", transparency=0))
    assert picture.pixels[0].tolist() == [[[0, 0, 0], [10, 20, 30]], [[10, 20, 30], [0, 0, 0]]]
    assert any("laid on black" in note for note in picture.notes)


def test_cmyk_becomes_rgb_and_is_said() -> None:
    image = Image.new("CMYK", (6, 5), (0, 255, 255, 0))
    picture = the(pil(image, "JPEG", quality=95))
    red, green, blue = picture.pixels[0].reshape(-1, 3).mean(0)
    assert red > 240
    assert green < 15
    assert blue < 15
    assert any("CMYK" in note for note in picture.notes)


def test_alpha_is_laid_on_black_or_dropped_where_it_is_opaque() -> None:
    rgba = np.dstack([np.full((3, 4, 3), 200, np.uint8), np.full((3, 4), 128, np.uint8)])
    picture = the(png(rgba))
    assert np.abs(picture.pixels.astype(int) - 100).max() <= 1
    assert any("laid on black" in note for note in picture.notes)
    rgba[..., 3] = 255
    picture = the(png(rgba))
    assert (picture.pixels == 200).all()
    assert any("opaque" in note for note in picture.notes)


def test_grey_with_alpha_stays_grey() -> None:
    both = np.dstack([np.full((3, 4), 200, np.uint8), np.full((3, 4), 0, np.uint8)])
    both[0, 0, 1] = 255
    picture = the(pil(Image.fromarray(both, "LA"), "PNG"))
    assert picture.kind == "grey"
    assert picture.pixels[0, 0, 0] == 200
    assert picture.pixels.sum() == 200


def test_black_and_white_becomes_0_and_255() -> None:
    picture = the(pil(Image.fromarray(np.array([[True, False]])), "PNG"))
    assert picture.pixels.tolist() == [[[255, 0]]]


def test_animated_files_become_slices() -> None:
    frames = [Image.new("RGB", (5, 4), (60 * i, 0, 0)) for i in range(4)]
    for kind in ("PNG", "GIF", "WEBP"):
        options = {"lossless": True} if kind == "WEBP" else {}
        picture = the(pil(frames[0], kind, save_all=True, append_images=frames[1:], duration=50, **options))
        assert picture.slices == 4, kind
        assert [int(p[0, 0, 0]) for p in picture.pixels] == [0, 60, 120, 180], kind
        assert any("4 frames" in note for note in picture.notes)


def test_a_phone_photo_with_two_pictures_gives_the_first() -> None:
    first, second = Image.new("RGB", (8, 8), (200, 0, 0)), Image.new("RGB", (4, 4), (0, 200, 0))
    picture = the(pil(first, "MPO", save_all=True, append_images=[second]))
    assert picture.pixels.shape == (1, 8, 8, 3)
    assert picture.pixels[0, 0, 0, 0] > 180
    assert any("more than one picture" in note for note in picture.notes)


@pytest.mark.parametrize("dpi", [72, 96, 144, 150, 200, 300, 600, 1200])
def test_a_programs_default_density_is_no_spacing(dpi: int) -> None:
    picture = the(png(colours(), dpi=(dpi, dpi)))
    assert picture.spacing is None
    assert any("no spacing was taken" in note for note in picture.notes)


def test_a_measured_density_is_a_spacing() -> None:
    picture = the(png(colours(), dpi=(25.4 / 0.05, 25.4 / 0.02)))  # across, down: 0.05 mm and 0.02 mm a pixel
    assert picture.spacing is not None
    assert picture.spacing[1:] == pytest.approx((0.02, 0.05), rel=1e-3)
    assert np.isnan(picture.spacing[0])
    assert the(png(colours())).spacing is None


@pytest.mark.parametrize("kind", ["PNG", "JPEG", "GIF", "BMP", "WEBP"])
@pytest.mark.parametrize("share", [0.1, 0.5, 0.9])
def test_a_truncated_file_is_named(kind: str, share: float) -> None:
    data = pil(Image.fromarray(colours(60, 70)), kind)
    with pytest.raises(BadImage) as caught:
        read(data[: int(share * len(data))], "half.img")
    assert "half.img" in str(caught.value)


def test_an_8_bit_grey_picture_is_shown_as_it_is_and_a_16_bit_one_between_percentiles() -> None:
    assert the(png(np.full((4, 4), 3, np.uint8))).window == (127.5, 255.0)
    ramp = np.linspace(1000, 3000, 10_000).astype(np.uint16).reshape(100, 100)
    centre, width = the(png(ramp)).window or (0, 0)
    low, high = np.percentile(ramp, (1, 99))
    assert (centre - width / 2, centre + width / 2) == pytest.approx((low, high))
