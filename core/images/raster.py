"""PNG, JPEG, GIF, BMP and WebP bytes -> `Picture`, through Pillow.

Knows about EXIF rotation, palettes, CMYK, alpha, 16 bits and animations, and writes a note for each. The
header's size is checked before Pillow opens the file, and Pillow's global switches are left alone. TIFF is
in `core.images.tiff`; only its odd colour spaces and packings come here.
"""

from __future__ import annotations

import io
from typing import TYPE_CHECKING, Any

import numpy as np

from core.images.errors import BadImage
from core.images.limits import Budget
from core.images.picture import Picture, make_picture, settle_rgb
from core.images.sniff import KINDS, header_size

if TYPE_CHECKING:
    from PIL import Image as PILImage

_TURNED = {
    2: "mirrored left to right",
    3: "turned by 180°",
    4: "mirrored top to bottom",
    5: "mirrored and turned by 90°",
    6: "turned by 90° clockwise",
    7: "mirrored and turned by 90°",
    8: "turned by 90° anticlockwise",
}


def read_raster(data: bytes, name: str, kind: str, budget: Budget, labels: bool = False) -> Picture:
    """Decodes a PNG, JPEG, GIF, BMP or WebP file.

    Args:
        data: The whole file.
        name: Its name.
        kind: "png", "jpeg", "gif", "bmp" or "webp".
        budget: Limits of this upload.
        labels: True for masks: palette numbers are kept where the palette is only a colouring.

    Returns:
        Frames as slices; grey where the file is grey.

    Raises:
        BadImage: A limit is broken. Pillow's own errors pass through: `core.images.read` words them.
    """
    from PIL import Image

    stated = header_size(data, kind)
    if stated is not None:
        budget.check_pixels(name, *stated)
    notes: list[str] = []
    with Image.open(io.BytesIO(data), formats=[KINDS[kind].upper()]) as image:
        frames = _frames(image, name, kind, budget, notes, labels)
        orientation = int(image.getexif().get(0x0112, 1) or 1)
        spacing = _png_spacing(image, notes) if kind == "png" else None
    if kind == "png" and len(data) > 25 and data[24] == 16 and data[25] in (2, 4, 6):
        notes.append("The PNG has 16 bits a channel; with colour or alpha only the upper 8 are kept.")
    turned = [turn_upright(frame, orientation) for frame in frames]
    if orientation in _TURNED:
        notes.append(
            f"The file's EXIF tag says how the camera was held; the picture was {_TURNED[orientation]} to stand upright."
        )
        if spacing and orientation >= 5:
            spacing = (spacing[0], spacing[2], spacing[1])
    return make_picture(name, join_frames(turned), notes, spacing=spacing, format=KINDS[kind])


def turn_upright(pixels: np.ndarray, orientation: int) -> np.ndarray:
    """Applies an EXIF orientation (1 to 8; others change nothing) to (H, W) or (H, W, C) pixels."""
    if orientation == 2:
        return pixels[:, ::-1]
    if orientation == 3:
        return pixels[::-1, ::-1]
    if orientation == 4:
        return pixels[::-1]
    if orientation == 5:
        return pixels.swapaxes(0, 1)
    if orientation == 6:
        return np.rot90(pixels, -1)
    if orientation == 7:
        return pixels[::-1, ::-1].swapaxes(0, 1)
    if orientation == 8:
        return np.rot90(pixels, 1)
    return pixels


def join_frames(frames: list[np.ndarray]) -> np.ndarray:
    """(H, W) and (H, W, 3) frames of one size -> (S, H, W), or (S, H, W, 3) as soon as one has colour."""
    if any(frame.ndim == 3 for frame in frames):
        frames = [frame if frame.ndim == 3 else np.repeat(frame[..., None], 3, axis=2) for frame in frames]
    return np.stack(frames)


def lay_on_black(colour: np.ndarray, alpha: np.ndarray, notes: list[str], top: float = 255.0) -> np.ndarray:
    """Lays a partly transparent picture on black, the colour of "no signal", and says so.

    Args:
        colour: (H, W) or (H, W, 3).
        alpha: (H, W), from 0 (clear) to `top` (opaque).
        notes: Gets one sentence.
        top: The alpha that means opaque.

    Returns:
        Same shape and type as `colour`.
    """
    if bool((alpha >= top).all()):
        _once(notes, "The alpha channel is opaque everywhere and was dropped.")
        return colour
    _once(notes, "The picture is partly transparent; it was laid on black.")
    share = np.clip(np.nan_to_num(alpha.astype(np.float64) / top, nan=0.0), 0, 1).astype(np.float32)
    out = colour * (share[..., None] if colour.ndim == 3 else share)
    return (np.rint(out) if colour.dtype.kind in "ui" else out).astype(colour.dtype)


def _frames(
    image: PILImage.Image, name: str, kind: str, budget: Budget, notes: list[str], labels: bool
) -> list[np.ndarray]:
    several = getattr(image, "is_animated", False)
    if kind == "jpeg" and several:  # MPO: two views, or a photo and its small preview
        notes.append("The file holds more than one picture, as some phones save them; the first was read.")
        several = False
    size = image.size
    frames: list[np.ndarray] = []
    while True:
        if image.size != size:
            raise BadImage(
                f"{name} has frames of different sizes, so it is no stack of slices. Save them as single files."
            )
        budget.check_slices(name, len(frames) + 1, least=True)
        budget.claim(name, image.size[1], image.size[0], 1, _pixel_bytes(image.mode))
        frames.append(pil_pixels(image, notes, labels))
        if not several:
            return frames
        try:
            image.seek(len(frames))
        except EOFError:
            break
    if len(frames) > 1:
        notes.append(f"The {KINDS[kind]} is animated; its {len(frames):,} frames are kept as slices.")
    return frames


def _pixel_bytes(mode: str) -> int:
    if mode in ("1", "L"):
        return 1
    if mode.startswith("I;16"):
        return 2
    return 4 if mode in ("I", "F") else 3


def pil_pixels(image: PILImage.Image, notes: list[str], labels: bool = False) -> np.ndarray:
    """One Pillow frame -> (H, W) grey in its own type, or (H, W, 3) uint8; says what had to be done."""
    mode = image.mode
    see_through = "transparency" in image.info
    if mode == "P":
        return _palette(image, notes, labels, see_through)
    if mode == "1" or (mode == "L" and not see_through):
        return np.asarray(image.convert("L"))
    if mode == "RGB" and not see_through:
        return np.asarray(image)
    if mode.startswith("I;16"):
        _once(notes, "Grey with 16 bits; every level is kept.")
        return np.asarray(image).astype(np.uint16)
    if mode in ("I", "F"):
        return np.asarray(image)
    if mode == "L" or mode in ("LA", "La"):
        both = np.asarray(image.convert("LA"))
        return lay_on_black(both[..., 0], both[..., 1], notes)
    if mode in ("RGB", "RGBA", "RGBa", "PA"):
        four = np.asarray(image.convert("RGBA"))
        return lay_on_black(four[..., :3], four[..., 3], notes)
    _once(
        notes,
        f"The colours are stored as {mode}; they were turned to RGB without a colour profile, so hues are near but not exact.",
    )
    return settle_rgb(np.asarray(image.convert("RGB")), notes)


def _palette(image: PILImage.Image, notes: list[str], labels: bool, see_through: bool) -> np.ndarray:
    numbers = np.asarray(image)
    if labels:
        table = np.frombuffer(bytes(image.getpalette("RGB") or b""), np.uint8).reshape(-1, 3)
        used = np.unique(numbers)
        colours = table[used] if used.max(initial=0) < len(table) else table[:0]
        grey = len(colours) > 0 and bool((colours == colours[:, :1]).all())
        if not grey:
            _once(notes, "The mask has a palette; its numbers were read, not its colours.")
            return numbers
        return table[numbers][..., 0]
    _once(notes, "The picture has a palette; its colours were looked up.")
    if see_through:
        four = np.asarray(image.convert("RGBA"))
        return lay_on_black(four[..., :3], four[..., 3], notes)
    return np.asarray(image.convert("RGB"))


def _png_spacing(image: PILImage.Image, notes: list[str]) -> tuple[float, float, float] | None:
    dots: Any = image.info.get("dpi")
    if not dots:
        return None
    return spacing_from_density(float(dots[1]), float(dots[0]), notes)


def spacing_from_density(
    rows_per_inch: float, columns_per_inch: float, notes: list[str]
) -> tuple[float, float, float] | None:
    """Millimetres a pixel from dots an inch, unless they are a screen's or printer's default.

    A density that is a multiple of 24 or 25 dots an inch up to 2,400 (72, 96, 100, 144, 150, 300, 600 ...) is
    what programs write when they know nothing; it is named in a note and not used.

    Returns:
        (NaN, row, column) in mm, or None.
    """
    densities = (rows_per_inch, columns_per_inch)
    if not all(np.isfinite(d) and 25.4 / 100 <= d <= 25.4e6 for d in densities):  # 100 mm down to 1 nm
        return None
    if all(
        d <= 2401 and min(abs(d - round(d / step) * step) for step in (24, 25)) < 0.02 + 2e-4 * d
        for d in densities
    ):
        notes.append(
            f"The file says {columns_per_inch:.0f} dots an inch, a program's default and not a measurement; no spacing was taken."
        )
        return None
    row, column = 25.4 / rows_per_inch, 25.4 / columns_per_inch
    notes.append(f"Pixel size from the file: {row:.4g} mm by {column:.4g} mm (row, column).")
    return float("nan"), row, column


def _once(notes: list[str], sentence: str) -> None:
    if sentence not in notes:
        notes.append(sentence)
