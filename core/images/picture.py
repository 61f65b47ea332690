"""What every reader returns: a `Picture`, and the steps that bring any array into its shape.

A grey picture keeps its real units (Hounsfield, counts); how it is shown is a window beside it. A colour
picture is 8-bit RGB. This module decodes nothing and shows nothing (that is `core.images.display`).
"""

from __future__ import annotations

import hashlib
import math
from dataclasses import dataclass

import numpy as np

from core.images.errors import BadImage


@dataclass(frozen=True, eq=False)
class WayBack:
    """How to put an array in canonical space back into its NIfTI file's own orientation.

    Attributes:
        shape: The file's own (X, Y, Z), first volume only.
        affine: The file's own 4 x 4 voxel-to-millimetre matrix (first three rows in the file's unit).
        codes: The file's axis directions, as ("L", "A", "S").
        turn: (3, 2) nibabel orientation from canonical (S, H, W) to the file's axes.
    """

    shape: tuple[int, int, int]
    affine: np.ndarray
    codes: tuple[str, str, str]
    turn: np.ndarray


@dataclass(frozen=True, eq=False)
class Picture:
    """One decoded file.

    Attributes:
        name: File name shown to the person; "archive.zip/inner.png" for a file in a zip.
        pixels: (S, H, W) grey or (S, H, W, 3) RGB, read-only; S slices, frames or pages, at least 1. RGB is
            uint8; grey is uint8, uint16, int16 or float32 in real units, and may hold NaN.
        kind: "rgb" or "grey".
        spacing: (slice, row, column) in mm, or None where the file says nothing that can be trusted. The
            slice distance is NaN where only the pixels' size is known.
        notes: Plain sentences: everything that was done to the file.
        window: (centre, width) that shows a grey picture well; None for rgb.
        digest: sha256 of the decoded pixels and their shape; the same image in two splits has the same one.
        inverted: True where dark means much (DICOM MONOCHROME1): inverted after windowing, when shown.
        way_back: For NIfTI, the way back to the file's own orientation; None otherwise.
        format: "PNG", "JPEG", "TIFF", "DICOM", "NIfTI" and so on, as found in the file, not in its name.
    """

    name: str
    pixels: np.ndarray
    kind: str
    spacing: tuple[float, float, float] | None
    notes: tuple[str, ...]
    window: tuple[float, float] | None
    digest: str
    inverted: bool = False
    way_back: WayBack | None = None
    format: str = ""

    @property
    def slices(self) -> int:
        """Number of slices, frames or pages."""
        return int(self.pixels.shape[0])

    @property
    def shape(self) -> tuple[int, int]:
        """(rows, columns) of a slice."""
        return int(self.pixels.shape[1]), int(self.pixels.shape[2])


def make_picture(
    name: str,
    pixels: np.ndarray,
    notes: list[str],
    *,
    spacing: tuple[float, float, float] | None = None,
    window: tuple[float, float] | None = None,
    inverted: bool = False,
    way_back: WayBack | None = None,
    format: str = "",
) -> Picture:
    """Finishes a picture: shape, type, window, digest, and notes on NaN and constant pixels.

    Args:
        name: The file's name.
        pixels: (S, H, W) of any real type, or (S, H, W, 3) uint8.
        notes: What was done so far; copied.
        spacing: See `Picture`.
        window: A window from the file; None picks one (`default_window`).
        inverted: See `Picture`.
        way_back: See `Picture`.
        format: See `Picture`.

    Raises:
        BadImage: The pixels are complex, or not of these shapes.
    """
    notes = list(notes)
    if pixels.ndim == 4 and pixels.shape[-1] == 3:
        kind, window = "rgb", None
    elif pixels.ndim == 3:
        kind = "grey"
        pixels = settle_grey(pixels, name, notes)
        notes += _value_notes(pixels)
        window = window or default_window(pixels, plain_bytes=format != "NIfTI")
    else:
        raise BadImage(f"{name} decoded to an array of shape {pixels.shape}, which is not a picture.")
    pixels = np.ascontiguousarray(pixels)
    digest = hashlib.sha256(repr((pixels.shape, pixels.dtype.str)).encode())
    digest.update(pixels.data)
    pixels.setflags(write=False)
    return Picture(
        name, pixels, kind, spacing, tuple(notes), window, digest.hexdigest(), inverted, way_back, format
    )


def formula(slope: float, intercept: float) -> str:
    """A rescale in words: "value × 1 − 1024"."""
    return f"value × {slope:g} {'−' if intercept < 0 else '+'} {abs(intercept):g}"


def settle_grey(values: np.ndarray, name: str, notes: list[str]) -> np.ndarray:
    """Brings grey values to uint8, uint16, int16 or float32 and notes it where that costs precision.

    Raises:
        BadImage: The values are complex or not numbers.
    """
    values = np.asarray(values)
    if values.dtype.kind == "b":
        return values.astype(np.uint8) * np.uint8(255)
    if values.dtype.kind not in "uif":
        raise BadImage(
            f"{name} holds {values.dtype} values; only real numbers can be shown. Save its magnitude instead."
        )
    values = values.astype(values.dtype.newbyteorder("="), copy=False)
    if values.dtype in (np.uint8, np.uint16, np.int16, np.float32):
        return values
    if values.dtype.kind == "f":
        if values.dtype.itemsize > 4:
            notes.append(f"{8 * values.dtype.itemsize}-bit floating-point values are kept with 32 bits.")
        with np.errstate(over="ignore", invalid="ignore"):
            return values.astype(np.float32)
    low, high = (int(values.min()), int(values.max())) if values.size else (0, 0)
    for target in (np.uint8, np.int16, np.uint16) if values.dtype.itemsize == 1 else (np.int16, np.uint16):
        if np.iinfo(target).min <= low and high <= np.iinfo(target).max:
            return values.astype(target)
    notes.append(f"The whole numbers from {low:,} to {high:,} are kept as 32-bit floating-point values.")
    return values.astype(np.float32)


def settle_rgb(values: np.ndarray, notes: list[str], top: float | None = None) -> np.ndarray:
    """Brings colour values to 8 bits a channel and notes how.

    Args:
        values: (..., 3) of any real type.
        notes: Gets a sentence where something was done.
        top: The value that means full brightness, where the file says so; None finds it.

    Returns:
        (..., 3) uint8.
    """
    values = np.asarray(values)
    if values.dtype == np.uint8 and top in (None, 255):
        return values
    if values.dtype.kind == "b":
        return values.astype(np.uint8) * np.uint8(255)
    with np.errstate(over="ignore", invalid="ignore"):
        out = values.astype(np.float32)
    finite = np.isfinite(out)
    missing = int(out.size - finite.sum())
    if missing:
        notes.append(f"{missing:,} colour values are not finite numbers and are shown as black.")
        out = np.where(finite, out, 0)
    high = float(out.max()) if out.size else 0.0
    low = min(0.0, float(out.min())) if out.size else 0.0
    if top is None:
        candidates = (1.0, 255.0) if values.dtype.kind == "f" else (255.0, 4095.0, 65535.0)
        top = next((value for value in candidates if high <= value), high)
    if low < 0:
        notes.append(f"Negative colour values (down to {low:g}) are shown as black.")
    if top != 255:
        notes.append(
            f"Colours of {8 * values.dtype.itemsize} bits a channel were scaled from 0..{top:g} to 8 bits."
        )
    return np.rint(np.clip(out / np.float32(top or 1.0), 0, 1) * 255).astype(np.uint8)


def default_window(pixels: np.ndarray, *, plain_bytes: bool = False) -> tuple[float, float]:
    """The window for a grey picture whose file names none.

    Args:
        pixels: Any shape, real values.
        plain_bytes: True: 8-bit values are shown as they are (0 black, 255 white), as in a PNG or JPEG, unless
            they are nothing but 0 and 1, which are black and white.

    Returns:
        (centre, width > 0): from the 1st to the 99th percentile of the finite values, from the least to the
        greatest where those two agree, and 1 wide around a constant. Reads at most about a million values.
    """
    if plain_bytes and pixels.dtype == np.uint8:
        return (0.5, 1.0) if pixels.size and pixels.max() == 1 else (127.5, 255.0)
    flat = pixels.reshape(-1)
    finite = flat[:: max(1, flat.size // 1_000_000)]
    finite = finite[np.isfinite(finite)].astype(np.float64)
    if finite.size == 0:
        return 0.5, 1.0
    low, high = (float(value) for value in np.percentile(finite, (1, 99)))
    if not high > low:
        everything = flat[np.isfinite(flat)]
        low, high = float(everything.min()), float(everything.max())
    centre, width = low / 2 + high / 2, high - low
    if not (width > 0 and math.isfinite(width)):
        return low, 1.0
    return centre, width


def _value_notes(pixels: np.ndarray) -> list[str]:
    """Sentences on NaN, infinite and constant grey values."""
    notes = []
    values = pixels
    if pixels.dtype.kind == "f":
        finite = np.isfinite(pixels)
        bad = int(pixels.size - finite.sum())
        if bad:
            nan = int(np.isnan(pixels).sum())
            notes.append(
                f"{bad:,} of {pixels.size:,} values are missing or infinite ({nan:,} NaN, {bad - nan:,} infinite); "
                "missing ones are painted when shown."
            )
            values = pixels[finite]
    if values.size == 0:
        notes.append("No value in it is a finite number, so there is nothing to see.")
    elif values.min() == values.max():
        notes.append(f"Every value is the same ({values.flat[0]:g}), so there is nothing to see.")
    return notes
