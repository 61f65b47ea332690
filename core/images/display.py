"""The only way from an array to the screen: `to_display`, with windows, NaN and alpha handled in one place.

Every page, report and network input goes through it, so that 16-bit, float, boolean and 0/1 arrays look the
same everywhere. It reads no files and draws no outlines.
"""

from __future__ import annotations

import io

import numpy as np

from core.images.errors import BadImage
from core.images.picture import Picture, default_window, settle_rgb
from core.images.raster import lay_on_black

# Vermilion of the Okabe-Ito colours, which no method's outline uses.
NAN_COLOUR = (213, 94, 0)


def apply_window(array: np.ndarray, centre: float, width: float) -> np.ndarray:
    """Grey levels through a window: black at centre - width/2, white at centre + width/2, straight between.

    This is DICOM's LINEAR_EXACT (PS3.3, C.11.2.1.3.2). DICOM's older LINEAR differs by less than half a unit
    at the ends.

    Args:
        array: Any shape, real values; NaN becomes 0.
        centre: Middle of the window, in the array's units.
        width: Width of the window, > 0; anything else counts as the smallest possible width, a threshold.

    Returns:
        Same shape, uint8.
    """
    values = np.asarray(array)
    if values.dtype.kind == "c":
        values = np.abs(values)
    if values.dtype.kind in "ui" and values.dtype.itemsize <= 2 and values.size > 2**16:
        every = np.arange(2 ** (8 * values.dtype.itemsize)).astype(values.dtype.newbyteorder("="))
        return apply_window(every, centre, width)[values.astype(np.int64) & (every.size - 1)]
    with np.errstate(over="ignore", invalid="ignore"):
        exact = values.astype(np.float64)
    width = float(width) if np.isfinite(width) and width > 0 else 0.0
    centre = float(centre) if np.isfinite(centre) else 0.0
    width = max(width, float(np.spacing(max(abs(centre), 1e-300))))
    with np.errstate(over="ignore", invalid="ignore"):
        share = (exact - centre) / width + 0.5
    return np.rint(np.clip(np.nan_to_num(share, nan=0.0), 0.0, 1.0) * 255).astype(np.uint8)


def to_display(
    array: np.ndarray,
    *,
    window: tuple[float, float] | None = None,
    boolean_ok: bool = True,
    invert: bool = False,
    nan_colour: tuple[int, int, int] = NAN_COLOUR,
) -> np.ndarray:
    """Any picture-like array -> what a screen and a network can take.

    Args:
        array: (H, W), (H, W, 1), (H, W, 2) grey with alpha, (H, W, 3) RGB or (H, W, 4) RGBA, of any number type;
            axes of length 1 in front are dropped. Complex values show their magnitude. Alpha is laid on black.
        window: (centre, width) for grey. None: boolean and (with `boolean_ok`) 0/1 arrays are black and white,
            8-bit ones are shown as they are, others from their 1st to 99th percentile.
        boolean_ok: Treat a whole-number or float array of nothing but 0 and 1 as a mask.
        invert: Invert grey after windowing (DICOM MONOCHROME1).
        nan_colour: RGB in which missing grey values (NaN) are painted.

    Returns:
        (H, W, 3) uint8, a new array. Infinite values are black or white. `display_notes` counts both.

    Raises:
        BadImage: The array is no picture (its shape or type is named).
    """
    values = _picture_like(array)
    if values.ndim == 3 and values.shape[2] in (3, 4):
        colour = settle_rgb(values[..., :3], [])
        if values.shape[2] == 4:
            colour = lay_on_black(colour, values[..., 3], [], _alpha_top(values[..., 3]))
        return np.array(colour, dtype=np.uint8, order="C")
    grey = values if values.ndim == 2 else values[..., 0]
    missing = np.isnan(grey) if grey.dtype.kind == "f" else None
    if grey.dtype.kind == "b" or (window is None and boolean_ok and _only_0_and_1(grey)):
        shown = (grey == 1).astype(np.uint8) * np.uint8(255)
    else:
        shown = apply_window(grey, *(window or default_window(grey, plain_bytes=True)))
    if invert:
        shown = np.uint8(255) - shown
    if values.ndim == 3 and values.shape[2] == 2:
        shown = lay_on_black(shown, values[..., 1], [], _alpha_top(values[..., 1]))
    out = np.repeat(shown[..., None], 3, axis=2)
    if missing is not None and missing.any():
        out[missing] = nan_colour
    return out


def display_notes(array: np.ndarray, window: tuple[float, float] | None = None) -> tuple[str, ...]:
    """What `to_display` does to an array that a person should know, in sentences; empty when nothing.

    Args:
        array: As for `to_display`.
        window: The window it is shown with, or None.
    """
    values = _picture_like(array)
    notes = []
    if values.dtype.kind == "f":
        nan, inf = int(np.isnan(values).sum()), int(np.isinf(values).sum())
        if nan:
            notes.append(f"{nan:,} of {values.size:,} values are missing (NaN) and painted in orange-red.")
        if inf:
            notes.append(f"{inf:,} of {values.size:,} values are infinite and shown as black or white.")
    grey = values.ndim == 2 or values.shape[2] <= 2
    if grey and values.dtype.kind != "b" and not (window is None and _only_0_and_1(values)):
        first = values if values.ndim == 2 else values[..., 0]
        centre, width = window or default_window(first, plain_bytes=True)
        if (centre, width) != (127.5, 255.0):
            notes.append(f"Shown from {centre - width / 2:g} (black) to {centre + width / 2:g} (white).")
    return tuple(notes)


def to_rgb(
    picture: Picture,
    slice_index: int = 0,
    window: tuple[float, float] | None = None,
    nan_colour: tuple[int, int, int] = NAN_COLOUR,
) -> np.ndarray:
    """One slice of a picture as a person sees it and as a network gets it.

    Args:
        picture: What `read` returned.
        slice_index: From 0 to `picture.slices` - 1.
        window: (centre, width) for grey; None takes the picture's own.
        nan_colour: RGB for missing values.

    Returns:
        (H, W, 3) uint8, a new array.

    Raises:
        BadImage: There is no such slice.
    """
    if not 0 <= slice_index < picture.slices:
        raise BadImage(
            f"{picture.name} has slices 0 to {picture.slices - 1}; slice {slice_index} does not exist. Choose another."
        )
    plane = picture.pixels[slice_index]
    return to_display(plane, window=window or picture.window, invert=picture.inverted, nan_colour=nan_colour)


def png_bytes(rgb_uint8: np.ndarray) -> bytes:
    """A PNG of an (H, W, 3) uint8 picture, without any metadata.

    Raises:
        BadImage: It is not (H, W, 3) uint8 with at least one pixel; pass it through `to_display` first.
    """
    from PIL import Image

    array = np.asarray(rgb_uint8)
    if array.dtype != np.uint8 or array.ndim != 3 or array.shape[2] != 3 or array.size == 0:
        raise BadImage(
            f"Only (H, W, 3) 8-bit pictures become a PNG; this is {array.shape} {array.dtype}. Use to_display first."
        )
    out = io.BytesIO()
    Image.fromarray(np.ascontiguousarray(array)).save(out, format="PNG", compress_level=4)
    return out.getvalue()


def _picture_like(array: np.ndarray) -> np.ndarray:
    values = np.asarray(array)
    if values.dtype.kind not in "buifc":
        raise BadImage(f"An array of {values.dtype} is no picture. Give numbers or True and False.")
    if values.dtype.kind == "c":
        values = np.abs(values)
    while (
        values.ndim > 2 and values.shape[0] == 1 and (values.ndim > 3 or values.shape[2] not in (1, 2, 3, 4))
    ):
        values = values[0]
    if values.ndim == 2 or (values.ndim == 3 and values.shape[2] in (1, 2, 3, 4)):
        return values
    raise BadImage(
        f"An array of shape {values.shape} is no picture. Give one slice: (rows, columns), or with 1 to 4 channels last."
    )


def _only_0_and_1(values: np.ndarray) -> bool:
    return values.size > 0 and bool(((values == 0) | (values == 1)).all())


def _alpha_top(alpha: np.ndarray) -> float:
    if alpha.dtype.kind in "bf":
        return 1.0 if alpha.dtype.kind == "b" or not alpha.size or np.nanmax(alpha, initial=0) <= 1 else 255.0
    return float(np.iinfo(alpha.dtype).max)
