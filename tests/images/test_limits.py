"""Limits are kept from the header, before anything is unpacked, and each refusal names its limit."""

from __future__ import annotations

import tracemalloc
from collections.abc import Callable

import numpy as np
import pytest

from core.images import BadImage, Limits, read
from tests.images.makers import dicom, nifti, png, png_header, rng, tiff


@pytest.fixture
def little_memory() -> Callable[[bytes, str, str], None]:
    def check(data: bytes, name: str, words: str) -> None:
        read(png(np.zeros((2, 2, 3), np.uint8)))  # imports are not what is measured
        tracemalloc.start()
        with pytest.raises(BadImage, match=words) as caught:
            read(data, name)
        peak = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
        assert name in str(caught.value)
        assert peak < 20 * 2**20

    return check


def test_a_decompression_bomb_is_refused_from_its_header(
    little_memory: Callable[[bytes, str, str], None],
) -> None:
    little_memory(png_header(60_000, 60_000), "bomb.png", "limit on pixels")
    little_memory(png_header(2**31 - 1, 2**31 - 1), "bomb.png", "limit on pixels")


def test_headers_of_gif_bmp_webp_and_jpeg_are_checked_too() -> None:
    from PIL import Image

    from tests.images.makers import pil

    image = Image.fromarray(rng().integers(0, 256, (40, 50, 3), dtype=np.uint8))
    for kind in ("GIF", "BMP", "WebP", "JPEG", "PNG", "TIFF"):
        data = pil(image, kind.upper())
        assert read(data, "x", Limits(pixels=2000))[0].shape == (40, 50)
        with pytest.raises(BadImage, match=r"50 × 40 pixels.*1,999 \(limit on pixels\)"):
            read(data, "x", Limits(pixels=1999))
    lossless = pil(image, "WEBP", lossless=True)
    with pytest.raises(BadImage, match="50 × 40"):
        read(lossless, "x", Limits(pixels=1999))
    see_through = pil(image.convert("RGBA"), "WEBP", exif=Image.Exif())
    assert read(see_through, "x", Limits(pixels=2000))[0].shape == (40, 50)


@pytest.mark.parametrize(
    ("make", "rows", "columns"),
    [
        (lambda: tiff(np.zeros((30, 40), np.uint16)), 30, 40),
        (lambda: dicom(np.zeros((30, 40), np.uint16)), 30, 40),
        (lambda: nifti(np.zeros((40, 30, 2), np.int16)), 30, 40),
    ],
)
def test_pixels_of_tiff_dicom_and_nifti_are_checked(
    make: Callable[[], bytes], rows: int, columns: int
) -> None:
    assert read(make(), "x", Limits(pixels=1200))[0].shape == (rows, columns)
    with pytest.raises(BadImage, match="limit on pixels"):
        read(make(), "x", Limits(pixels=1199))


@pytest.mark.parametrize(
    "make",
    [
        lambda: tiff(np.zeros((5, 8, 9), np.uint8), photometric="minisblack"),
        lambda: dicom(np.zeros((5, 8, 9), np.uint8)),
        lambda: nifti(np.zeros((8, 9, 5), np.uint8)),
    ],
)
def test_slices_are_limited(make: Callable[[], bytes]) -> None:
    assert read(make(), "x", Limits(slices=5))[0].slices == 5
    with pytest.raises(BadImage, match="limit on slices"):
        read(make(), "x", Limits(slices=4))


def test_animations_are_limited_before_all_frames_are_decoded() -> None:
    from PIL import Image

    from tests.images.makers import pil

    frames = [Image.fromarray(rng(i).integers(0, 256, (6, 7, 3), dtype=np.uint8)) for i in range(6)]
    data = pil(frames[0], "GIF", save_all=True, append_images=frames[1:])
    assert read(data, "x.gif")[0].slices == 6
    with pytest.raises(BadImage, match=r"at least 5 slices.*limit on slices"):
        read(data, "x.gif", Limits(slices=4))


def test_bytes_of_a_file_are_limited() -> None:
    data = png(np.zeros((8, 8), np.uint8))
    with pytest.raises(BadImage, match="limit on bytes"):
        read(data, "x.png", Limits(file_bytes=len(data) - 1))


def test_unpacked_bytes_are_limited_before_decoding() -> None:
    for name, data in (
        ("x.nii.gz", nifti(np.zeros((64, 64, 64), np.float32), packed=True)),
        ("x.tif", tiff(np.zeros((64, 64, 64), np.float32), compression="zlib")),
    ):
        assert len(data) < 100_000
        with pytest.raises(BadImage, match="limit on unpacked bytes"):
            read(data, name, Limits(unpacked_bytes=64**3 * 4 - 1))


def test_a_gzip_bomb_behind_a_small_nifti_header_is_not_unpacked() -> None:
    import gzip

    header = nifti(np.arange(24, dtype=np.int16).reshape(2, 3, 4))
    data = gzip.compress(header + bytes(64 * 2**20), 1)
    tracemalloc.start()
    picture = read(data, "x.nii.gz")[0]
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert picture.pixels.shape == (4, 3, 2)
    assert peak < 20 * 2**20


def test_a_tiff_whose_packed_strip_unfolds_to_more_than_it_should_is_refused() -> None:
    import struct
    import zlib

    body = zlib.compress(bytes(64 * 2**20), 1)
    tags = [
        (256, 4, 16),
        (257, 4, 16),
        (258, 3, 8),
        (259, 3, 8),
        (262, 3, 1),
        (273, 4, 0),
        (277, 3, 1),
        (278, 4, 16),
        (279, 4, len(body)),
    ]
    start = 8 + 2 + 12 * len(tags) + 4
    directory = struct.pack("<H", len(tags))
    for tag, kind, value in tags:
        directory += struct.pack("<HHII", tag, kind, 1, start if tag == 273 else value)
    data = b"II*\x00" + struct.pack("<I", 8) + directory + bytes(4) + body
    tracemalloc.start()
    with pytest.raises(BadImage, match="limit on unpacked bytes"):
        read(data, "x.tif")
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 20 * 2**20


def test_a_deflated_dicom_bomb_is_refused() -> None:
    data = dicom(np.zeros((900, 900), np.uint16), syntax="1.2.840.10008.1.2.1.99")
    assert len(data) < 50_000
    assert read(data, "x.dcm")[0].shape == (900, 900)
    with pytest.raises(BadImage, match="limit on unpacked bytes"):
        read(data, "x.dcm", Limits(unpacked_bytes=900 * 900))


def test_a_header_without_any_pixels_is_said() -> None:
    with pytest.raises(BadImage, match="nothing in it to read"):
        read(png_header(0, 5), "x.png")
