"""TIFF bytes -> `Picture`: 1 to 64 bits, float, colour, palettes, alpha, several pages.

Plain, deflate-packed and PackBits pages are decoded by tifffile; LZW and JPEG packings and odd colour spaces
by Pillow, whose libtiff needs no further package. A page's size is checked before it is decoded, and so is
what each of its deflate-packed pieces unfolds to. Pyramids and thumbnails are left out with a note.
"""

from __future__ import annotations

import io
import math
import re
import zlib
from typing import Any

import numpy as np

from core.images.errors import BadImage
from core.images.limits import Budget
from core.images.picture import Picture, make_picture, settle_rgb
from core.images.raster import join_frames, lay_on_black, pil_pixels, spacing_from_density, turn_upright

_PLAIN, _DEFLATE = (1, 32773), (8, 32946)
_WHITE_IS_ZERO, _RGB, _PALETTE = 0, 2, 3
_ODD_COLOURS = (5, 6, 8, 9, 10)  # CMYK, YCbCr, three kinds of Lab
_UNITS = {
    "micron": 1e-3, "microns": 1e-3, "um": 1e-3, "µm": 1e-3, "μm": 1e-3, "\\u00b5m": 1e-3, "micrometer": 1e-3,
    "nm": 1e-6, "mm": 1.0, "millimeter": 1.0, "cm": 10.0, "centimeter": 10.0, "m": 1e3, "inch": 25.4,
}  # fmt: skip


def read_tiff(data: bytes, name: str, budget: Budget, labels: bool = False) -> Picture:
    """Decodes a TIFF file.

    Args:
        data: The whole file.
        name: Its name.
        budget: Limits of this upload.
        labels: True for masks: palette numbers are kept.

    Returns:
        Pages (or channels that are not colours) as slices.

    Raises:
        BadImage: A limit is broken, or a packing needs a package that is missing. tifffile's own errors pass
            through: `core.images.read` words them.
    """
    import tifffile

    notes: list[str] = []
    with tifffile.TiffFile(io.BytesIO(data)) as file:
        pages = _pages(file, name, budget, notes)
        spacing = _spacing(file, notes)
        frames: list[np.ndarray] = []
        for index, page in pages:
            frames += _decode_page(page, index, data, name, notes, labels)
    budget.check_slices(name, len(frames))
    orientation = _tag(pages[0][1], 274, 1)
    if orientation in range(5, 9) and spacing:
        spacing = (spacing[0], spacing[2], spacing[1])
    if len(pages) > 1:
        notes.append(f"The TIFF has several pages; {len(pages):,} are kept as slices.")
    return make_picture(name, join_frames(frames), notes, spacing=spacing, format="TIFF")


def _pages(file: Any, name: str, budget: Budget, notes: list[str]) -> list[tuple[int, Any]]:
    """(index, page) of all pages like the first; their sizes are checked and claimed."""
    kept: list[tuple[int, Any]] = []
    left_out = 0
    for index, page in enumerate(file.pages):
        budget.check_slices(name, index + 1, least=True)
        page = page.aspage()
        if kept and (page.is_reduced or _likeness(page) != _likeness(kept[0][1])):
            left_out += 1
            continue
        samples = max(1, int(page.samplesperpixel)) * max(1, int(page.imagedepth))
        itemsize = page.dtype.itemsize if page.dtype is not None else 4
        if page.is_tiled:
            budget.check_pixels(name, int(page.tilelength), int(page.tilewidth))
        budget.claim(name, int(page.imagelength), int(page.imagewidth), 1, samples * itemsize)
        kept.append((index, page))
    if not kept:
        raise BadImage(f"{name} begins like a TIFF, but has no page in it. Save it again.")
    if left_out:
        notes.append(f"{left_out:,} pages of another size or kind (thumbnails, a pyramid) were left out.")
    return kept


def _likeness(page: Any) -> tuple[Any, ...]:
    return page.imagelength, page.imagewidth, page.samplesperpixel, page.dtype, int(page.photometric)


def _decode_page(
    page: Any, index: int, data: bytes, name: str, notes: list[str], labels: bool
) -> list[np.ndarray]:
    """Planes of one page, upright: (H, W) grey or (H, W, 3) uint8."""
    compression, photometric = int(page.compression), int(page.photometric)
    ours = compression in _PLAIN + _DEFLATE and int(page.predictor) in (1, 2)
    if not ours or photometric in _ODD_COLOURS:
        return [_through_pillow(page, index, data, name, notes, labels)]
    if compression in _DEFLATE:
        _check_pieces(page, data, name)
    values = np.asarray(page.asarray(maxworkers=1))
    axes = page.axes
    if "S" in axes and not axes.endswith("S"):
        values = np.moveaxis(values, axes.index("S"), -1)
        axes = axes.replace("S", "") + "S"
    volume = values if "Z" in axes else values[None]
    orientation = _tag(page, 274, 1)
    if orientation in range(2, 9):
        _once(notes, "The file says how it was scanned; it was turned or mirrored to stand upright.")
    planes = []
    for plane in volume:
        planes += [
            turn_upright(out, orientation) for out in _colours(plane, page, photometric, notes, labels)
        ]
    return planes


def _colours(
    plane: np.ndarray, page: Any, photometric: int, notes: list[str], labels: bool
) -> list[np.ndarray]:
    if plane.ndim == 3 and photometric == _RGB and plane.shape[2] >= 3:
        said: list[str] = []
        colour = settle_rgb(plane[..., :3], said)
        for sentence in said:
            _once(notes, sentence)
        if plane.shape[2] > 3:
            if page.extrasamples and int(page.extrasamples[0]) in (1, 2):
                return [lay_on_black(colour, plane[..., 3], notes, _top(plane))]
            _once(notes, "Channels beyond red, green and blue were left out.")
        return [colour]
    if plane.ndim == 2 and photometric == _PALETTE and page.colormap is not None:
        return [_palette(plane, np.asarray(page.colormap), notes, labels)]
    if plane.ndim == 3:
        if plane.shape[2] == 2 and page.extrasamples and int(page.extrasamples[0]) in (1, 2):
            return [
                lay_on_black(
                    _upright_grey(plane[..., 0], page, photometric, notes), plane[..., 1], notes, _top(plane)
                )
            ]
        _once(notes, f"The {plane.shape[2]} channels of a page are not colours; they are kept as slices.")
        return [
            _upright_grey(plane[..., channel], page, photometric, notes) for channel in range(plane.shape[2])
        ]
    return [_upright_grey(plane, page, photometric, notes)]


def _upright_grey(plane: np.ndarray, page: Any, photometric: int, notes: list[str]) -> np.ndarray:
    if plane.dtype.kind == "b":
        plane = plane.astype(np.uint8) * np.uint8(255)
        bits = 8
    else:
        bits = int(page.bitspersample)
        if plane.dtype.kind == "u" and bits == 16:
            _once(notes, "Grey with 16 bits; every level is kept.")
    if photometric == _WHITE_IS_ZERO and plane.dtype.kind == "u":
        _once(notes, "The file counts white as 0; it was inverted.")
        plane = plane.dtype.type(2**bits - 1) - plane
    if plane.dtype == np.uint8 and bits in (2, 4) and photometric in (0, 1):
        _once(notes, f"Grey with {bits} bits was spread over 0 to 255.")
        plane = plane * np.uint8(255 // (2**bits - 1))
    return plane


def _palette(plane: np.ndarray, table: np.ndarray, notes: list[str], labels: bool) -> np.ndarray:
    colours = table.T if int(table.max(initial=0)) < 256 else table.T >> 8
    colours = colours.astype(np.uint8)
    used = np.unique(plane)
    if labels and not bool((colours[used] == colours[used][:, :1]).all()):
        _once(notes, "The mask has a palette; its numbers were read, not its colours.")
        return plane
    _once(notes, "The picture has a palette; its colours were looked up.")
    return colours[plane][..., 0] if labels else colours[plane]


def _through_pillow(
    page: Any, index: int, data: bytes, name: str, notes: list[str], labels: bool
) -> np.ndarray:
    from PIL import Image

    try:
        with Image.open(io.BytesIO(data), formats=["TIFF"]) as image:
            image.seek(index)
            if image.size not in ((page.imagewidth, page.imagelength), (page.imagelength, page.imagewidth)):
                raise BadImage(
                    f"{name} states two different sizes for one page, so it was not decoded. Save it again."
                )
            plane = pil_pixels(image, notes, labels)  # Pillow turns a TIFF upright by itself
    except BadImage:
        raise
    except Exception:
        compression = int(page.compression)
        if (
            compression in (1, 5, 7, 8, 32946, 32773)
            and int(page.photometric) not in _ODD_COLOURS
            and page.dtype is None
        ):
            raise
        if compression in (5, 7):  # Pillow knows these packings: the page is damaged, or its layout unusual
            raise BadImage(
                f"{name} is a TIFF with a damaged page, or one packed in a rare way (compression {compression}, "
                f"{page.bitspersample} bits). Save it again without compression."
            ) from None
        raise BadImage(
            f"{name} is a TIFF packed in a way (compression {compression}, predictor {int(page.predictor)}) that needs the "
            "package imagecodecs, which this server does not use. Save it again without compression."
        ) from None
    if int(page.photometric) == _WHITE_IS_ZERO and plane.dtype == np.uint16:
        _once(notes, "The file counts white as 0; it was inverted.")
        plane = np.uint16(65535) - plane
    return plane


def _check_pieces(page: Any, data: bytes, name: str) -> None:
    """Refuses a page one of whose deflate-packed strips or tiles unfolds to more than it should hold."""
    most = math.prod(page.chunks) * page.dtype.itemsize * max(1, int(page.samplesperpixel)) + 65536
    for offset, count in zip(page.dataoffsets, page.databytecounts, strict=False):
        unpacker = zlib.decompressobj()
        rest, got = data[offset : offset + count], 0
        while rest and not unpacker.eof:
            try:
                got += len(unpacker.decompress(rest, 1 << 20))
            except zlib.error:
                break  # damaged: the decoder will say so
            if got > most:
                raise BadImage(
                    f"{name} was refused: a piece of it unfolds to more than the {most:,} bytes that its header allows "
                    "(limit on unpacked bytes). It is damaged or was made to do harm."
                )
            rest = unpacker.unconsumed_tail


def _spacing(file: Any, notes: list[str]) -> tuple[float, float, float] | None:
    page = file.pages[0].aspage()
    ome = re.match(r"\s*(<\?xml.*?\?>)?.{0,2000}?<OME", page.description or "", re.DOTALL)
    if ome:
        sizes = [_ome_size(page.description, axis) for axis in "ZYX"]
        return _trusted(sizes[0], sizes[1], sizes[2], "OME", notes)
    across, down = _ratio(page, 282), _ratio(page, 283)
    if not across or not down:
        return None
    imagej = file.imagej_metadata if file.is_imagej else None
    unit = str((imagej or {}).get("unit", "")).strip().lower()
    if unit:
        scale = _UNITS.get(unit)
        if scale is None:
            return None
        try:
            deep = float((imagej or {}).get("spacing", math.nan))
        except (TypeError, ValueError):
            deep = math.nan
        return _trusted(deep * scale, scale / down, scale / across, "ImageJ", notes)
    inch = {2: 1.0, 3: 2.54}.get(_tag(page, 296, 2))
    return spacing_from_density(down * inch, across * inch, notes) if inch else None


def _trusted(
    deep: float, row: float, column: float, who: str, notes: list[str]
) -> tuple[float, float, float] | None:
    if not all(math.isfinite(size) and 1e-7 < size < 1e3 for size in (row, column)):
        return None
    notes.append(f"Pixel size from the file ({who}): {row:.4g} mm by {column:.4g} mm (row, column).")
    return (deep if 1e-7 < deep < 1e3 else math.nan), row, column


def _ome_size(text: str, axis: str) -> float:
    size = re.search(rf'PhysicalSize{axis}="([0-9.eE+-]{{1,40}})"', text)
    unit = re.search(rf'PhysicalSize{axis}Unit="([^"]{{1,20}})"', text)
    try:
        return float(size[1]) * _UNITS.get(unit[1].lower() if unit else "µm", math.nan) if size else math.nan
    except ValueError:
        return math.nan


def _ratio(page: Any, code: int) -> float:
    value = page.tags.valueof(code)
    try:
        return float(value[0]) / float(value[1])
    except (TypeError, IndexError, ValueError, ZeroDivisionError):
        return 0.0


def _tag(page: Any, code: int, default: int) -> int:
    value = page.tags.valueof(code)
    return int(value) if isinstance(value, int) else default


def _top(plane: np.ndarray) -> float:
    return 1.0 if plane.dtype.kind in "bf" else float(np.iinfo(plane.dtype).max)


def _once(notes: list[str], sentence: str) -> None:
    if sentence not in notes:
        notes.append(sentence)
