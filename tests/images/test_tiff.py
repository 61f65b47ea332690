"""TIFF: every type and packing comes back as it was written; what cannot be read names what is missing."""

from __future__ import annotations

import io

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp
from PIL import Image

from core.images import BadImage, Picture, read
from tests.images.makers import colours, pil, rng, tiff


def the(data: bytes) -> Picture:
    (picture,) = read(data, "x.tif")
    return picture


@given(
    st.sampled_from([np.uint8, np.uint16, np.int16, np.float32]).flatmap(
        lambda kind: hnp.arrays(kind, hnp.array_shapes(min_dims=3, max_dims=3, min_side=2, max_side=6))
    ),
    st.sampled_from([None, "zlib"]),
    st.sampled_from(["<", ">"]),
)
@settings(max_examples=25, deadline=None)
def test_pages_come_back_as_they_were_written(array: np.ndarray, packing: str | None, order: str) -> None:
    picture = the(tiff(array, photometric="minisblack", compression=packing, byteorder=order))
    assert picture.pixels.dtype == array.dtype
    assert np.array_equal(picture.pixels, array, equal_nan=array.dtype.kind == "f")


def test_several_pages_are_slices_and_said() -> None:
    picture = the(tiff(np.zeros((3, 5, 6), np.uint16), photometric="minisblack"))
    assert picture.slices == 3
    assert any("3 are kept as slices" in note for note in picture.notes)


def test_16_bit_is_kept_and_said() -> None:
    picture = the(tiff(np.array([[0, 65535, 257]], np.uint16)))
    assert picture.pixels.tolist() == [[[0, 65535, 257]]]
    assert any("16 bits" in note for note in picture.notes)


def test_16_bit_colour_is_brought_to_8() -> None:
    values = rng().integers(0, 65536, (5, 6, 3), dtype=np.uint16)
    picture = the(tiff(values, photometric="rgb"))
    assert np.abs(picture.pixels[0].astype(float) - values / 257).max() <= 0.51
    assert any("16 bits a channel" in note for note in picture.notes)


def test_separate_colour_planes_are_put_together() -> None:
    array = colours()
    picture = the(tiff(np.moveaxis(array, -1, 0), photometric="rgb", planarconfig="separate"))
    assert np.array_equal(picture.pixels[0], array)


def test_alpha_is_laid_on_black() -> None:
    rgba = np.dstack([np.full((3, 4, 3), 200, np.uint8), np.full((3, 4), 0, np.uint8)])
    rgba[0, 0, 3] = 255
    picture = the(tiff(rgba, photometric="rgb", extrasamples=["unassalpha"]))
    assert picture.pixels.sum() == 600
    assert any("laid on black" in note for note in picture.notes)


def test_a_palette_is_looked_up() -> None:
    image = Image.fromarray(colours(20, 20)).quantize(16)
    picture = the(pil(image, "TIFF"))
    assert np.array_equal(picture.pixels[0], np.asarray(image.convert("RGB")))


def test_white_as_zero_is_inverted() -> None:
    array = rng().integers(0, 256, (4, 5), dtype=np.uint8)
    picture = the(tiff(array, photometric="miniswhite"))
    assert np.array_equal(picture.pixels[0], 255 - array)
    assert any("inverted" in note for note in picture.notes)


def test_one_bit_becomes_black_and_white() -> None:
    array = rng().random((9, 13)) < 0.5
    assert np.array_equal(the(pil(Image.fromarray(array), "TIFF")).pixels[0], array * 255)


@pytest.mark.parametrize("packing", ["tiff_lzw", "packbits", "tiff_adobe_deflate", "group4"])
def test_common_packings_are_read_without_a_further_package(packing: str) -> None:
    array = rng().integers(0, 256, (40, 50, 3), dtype=np.uint8)
    image = Image.fromarray(array)
    expected = array
    if packing == "group4":
        image = image.convert("1")
        expected = np.asarray(image) * np.uint8(255)
    assert np.array_equal(the(pil(image, "TIFF", compression=packing)).pixels[0], expected)


def test_lzw_keeps_16_bits() -> None:
    array = rng().integers(0, 65536, (40, 50), dtype=np.uint16)
    assert np.array_equal(the(pil(Image.fromarray(array), "TIFF", compression="tiff_lzw")).pixels[0], array)


def test_jpeg_inside_tiff_is_near() -> None:
    array = np.full((32, 32, 3), (200, 100, 50), np.uint8)
    picture = the(pil(Image.fromarray(array), "TIFF", compression="jpeg"))
    assert np.abs(picture.pixels[0].astype(int) - array).max() < 8


def test_cmyk_becomes_rgb() -> None:
    picture = the(pil(Image.new("CMYK", (6, 5), (0, 255, 255, 0)), "TIFF"))
    assert picture.pixels[0, 0, 0].tolist() == [255, 0, 0]
    assert any("CMYK" in note for note in picture.notes)


def test_a_packing_without_decoder_names_the_package() -> None:
    data = bytearray(tiff(np.zeros((8, 8), np.uint8), compression="zlib"))
    place = data.index(np.array([259, 3], "<u2").tobytes())
    data[place + 8 : place + 10] = np.array([50000], "<u2").tobytes()  # Zstandard
    with pytest.raises(BadImage, match="imagecodecs"):
        read(bytes(data), "x.tif")


@pytest.mark.parametrize("orientation", range(1, 9))
@pytest.mark.parametrize("packing", ["raw", "tiff_lzw"])
def test_a_scan_stands_upright(orientation: int, packing: str) -> None:
    from PIL import ImageOps

    array = colours(6, 9)
    data = pil(Image.fromarray(array), "TIFF", compression=packing, tiffinfo={274: orientation})
    exif = Image.Exif()
    exif[0x0112] = orientation
    with Image.open(io.BytesIO(pil(Image.fromarray(array), "PNG", exif=exif))) as image:
        expected = np.asarray(ImageOps.exif_transpose(image))
    assert np.array_equal(the(data).pixels[0], expected)


def test_thumbnails_and_pages_of_another_size_are_left_out() -> None:
    import tifffile

    out = io.BytesIO()
    with tifffile.TiffWriter(out) as writer:
        writer.write(colours(20, 30), photometric="rgb")
        writer.write(colours(10, 15), photometric="rgb", subfiletype=1)
        writer.write(colours(20, 30, seed=1), photometric="rgb")
    picture = the(out.getvalue())
    assert picture.pixels.shape == (2, 20, 30, 3)
    assert any("1 pages of another size" in note for note in picture.notes)


def test_channels_that_are_no_colours_become_slices() -> None:
    array = rng().integers(0, 60000, (5, 7, 8), dtype=np.uint16)
    picture = the(tiff(np.moveaxis(array, 0, -1), photometric="minisblack", planarconfig="contig"))
    assert np.array_equal(picture.pixels, array)
    assert any("channels" in note for note in picture.notes)


def test_spacing_comes_from_a_microscope_but_not_from_a_printer() -> None:
    array = np.zeros((3, 5, 6), np.uint16)
    microscope = tiff(
        array,
        imagej=True,
        resolution=(1 / 0.25, 1 / 0.5),
        metadata={"unit": "um", "spacing": 2.0, "axes": "ZYX"},
    )
    assert the(microscope).spacing == pytest.approx((2e-3, 0.5e-3, 0.25e-3))
    ome = tiff(
        array,
        ome=True,
        metadata={"axes": "ZYX", "PhysicalSizeX": 0.25, "PhysicalSizeY": 0.5, "PhysicalSizeZ": 2.0},
    )
    assert the(ome).spacing == pytest.approx((2e-3, 0.5e-3, 0.25e-3))
    printer = the(tiff(array[0], resolution=(300, 300), resolutionunit="INCH"))
    assert printer.spacing is None
    assert any("default" in note for note in printer.notes)
    scanner = the(tiff(array[0], resolution=(10 / 0.031, 10 / 0.031), resolutionunit="CENTIMETER"))
    assert scanner.spacing is not None
    assert scanner.spacing[1:] == pytest.approx((0.031, 0.031), rel=1e-3)


def test_other_number_types_are_kept_or_said() -> None:
    assert the(tiff(np.array([[-3, 4]], np.int8))).pixels.tolist() == [[[-3, 4]]]
    assert the(tiff(np.array([[70, 40000]], np.uint32))).pixels.dtype == np.uint16
    big = the(tiff(np.array([[70, 400000]], np.int32)))
    assert big.pixels.dtype == np.float32
    assert any("32-bit floating-point" in note for note in big.notes)
    assert the(tiff(np.array([[0.5, 1e300]], np.float64))).pixels.dtype == np.float32
    with pytest.raises(BadImage, match="magnitude"):
        read(tiff(np.zeros((3, 3), np.complex64)), "x.tif")


def test_missing_values_are_counted() -> None:
    picture = the(tiff(np.array([[np.nan, 1.0, np.inf, 2.0]], np.float32)))
    assert any("2 of 4 values are missing or infinite (1 NaN, 1 infinite)" in note for note in picture.notes)
    nothing = the(tiff(np.full((2, 2), np.nan, np.float32)))
    assert any("nothing to see" in note for note in nothing.notes)
