"""Truth masks: a file or an array -> True where the lesion is, with everything that was assumed said.

Takes 0/1, 0/255 and 0..K labels, palettes, colours, JPEG-softened edges, DICOM and NIfTI. A mask of another
size than its picture is never stretched unless the person asked for it. Draws nothing.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from os import PathLike

import numpy as np

from core.images.errors import BadImage, MaskSizeMismatch
from core.images.limits import LIMITS, Budget, Limits
from core.images.read import load, read_single

MOST_LABELS = 32


@dataclass(frozen=True, eq=False)
class Mask:
    """One truth mask.

    Attributes:
        name: The file's name.
        array: (H, W) bool, True inside the lesion.
        notes: Plain sentences: how the file's values were mapped.
        values: The file's own values, ascending; at most 32 of them, then the least and the greatest.
        empty: True when no pixel is inside.
        full: True when every pixel is inside.
        vanished: True when the file marks a lesion that resizing made disappear.
        slices: How many slices the file has.
    """

    name: str
    array: np.ndarray
    notes: tuple[str, ...]
    values: tuple[float, ...]
    empty: bool
    full: bool
    vanished: bool = False
    slices: int = 1


def read_mask(
    data: bytes | str | PathLike[str],
    name: str | None = None,
    *,
    shape: tuple[int, int] | None = None,
    slice_index: int = 0,
    foreground: int | None = None,
    resize: bool = False,
    limits: Limits = LIMITS,
) -> Mask:
    """Reads a truth mask.

    Args:
        data: The file's bytes, or a path to it: any kind that `read` takes, but no zip.
        name: The name to show.
        shape: (rows, columns) of the picture it belongs to; None takes the mask as it is.
        slice_index: Which slice of a volume.
        foreground: The one value that means lesion; None takes every value but the background.
        resize: Allow resizing by nearest neighbour to `shape`. Ask the person first.
        limits: As for `read`.

    Returns:
        The mask, on the picture's grid if `shape` was given.

    Raises:
        MaskSizeMismatch: Its size is not `shape` and `resize` is False.
        BadImage: It cannot be read, has no such slice, or has no pixel of value `foreground`.
    """
    budget = Budget(limits)
    data, name = load(data, name, budget)
    budget.take_file(name, len(data))
    picture = read_single(data, name, budget, labels=True)
    if not 0 <= slice_index < picture.slices:
        raise BadImage(
            f"The mask {picture.name} has {picture.slices} slice{'s' * (picture.slices > 1)}; there is no slice number "
            f"{slice_index + 1}. Give the mask of the same volume, or choose another slice."
        )
    mask = mask_from_array(
        picture.pixels[slice_index],
        picture.name,
        shape=shape,
        foreground=foreground,
        resize=resize,
        lossy=picture.format == "JPEG",
    )
    return replace(mask, notes=(*picture.notes, *mask.notes), slices=picture.slices)


def mask_from_array(
    array: np.ndarray,
    name: str = "the mask",
    *,
    shape: tuple[int, int] | None = None,
    foreground: int | None = None,
    resize: bool = False,
    lossy: bool = False,
) -> Mask:
    """Maps an array of labels to a mask; `read_mask` says what the arguments mean.

    Args:
        array: (H, W), or (H, W, 3) colours in which black is the background.
        name: For the sentences.
        shape: (rows, columns) of the picture.
        foreground: The value that means lesion.
        resize: Allow nearest-neighbour resizing to `shape`.
        lossy: True for JPEG, which smears values around the true ones.

    Raises:
        MaskSizeMismatch: As for `read_mask`.
        BadImage: As for `read_mask`, or the array is not a plane.
    """
    notes: list[str] = []
    plane = _plane(np.asarray(array), name, notes)
    inside, values = _map_values(plane, name, foreground, lossy, notes)
    vanished = False
    if shape is not None and tuple(shape) != inside.shape:
        wanted = int(shape[0]), int(shape[1])
        if not resize:
            raise _mismatch(name, (inside.shape[0], inside.shape[1]), wanted)
        before = inside
        inside = _nearest(inside, wanted)
        notes.append(
            f"Resized from {before.shape[1]} × {before.shape[0]} to {wanted[1]} × {wanted[0]} pixels by nearest neighbour, "
            f"as asked: the lesion covered {_share(before)} of the mask and covers {_share(inside)} now."
        )
        vanished = bool(before.any() and not inside.any())
        if vanished:
            notes.append(
                "The lesion vanished in the resizing: it is smaller than one pixel of the new grid. Give a mask at full size."
            )
    empty, full = not bool(inside.any()), bool(inside.size and inside.all())
    if empty and not vanished:
        notes.append(
            "The mask is empty: no lesion is marked. Coverage has no meaning for it; only the false-alarm area is counted."
        )
    elif full:
        notes.append(
            "The mask is full: every pixel is marked as lesion. If that is a mistake, check how it was exported."
        )
    elif not empty:
        more = " If background and lesion are swapped, invert it." if inside.mean() > 0.5 else ""
        notes.append(f"The lesion covers {_share(inside)} of the picture.{more}")
    return Mask(name, np.ascontiguousarray(inside), tuple(notes), values, empty, full, vanished)


def _plane(array: np.ndarray, name: str, notes: list[str]) -> np.ndarray:
    if array.ndim == 3 and array.shape[2] == 1:
        array = array[..., 0]
    if array.ndim == 3 and array.shape[2] in (3, 4):
        colours = array[..., :3]
        if bool((colours == colours[..., :1]).all()):
            return colours[..., 0]
        brightest = colours.max(axis=2)
        kinds = len(np.unique(colours.reshape(-1, 3)[:: max(1, brightest.size // 200_000)], axis=0))
        notes.append(
            f"The mask is coloured (about {kinds:,} colours); black is taken as background and every colour as lesion."
        )
        return brightest
    if array.ndim != 2 or array.dtype.kind not in "buif":
        raise BadImage(
            f"{name} has shape {array.shape} and type {array.dtype}; a mask is one plane of whole numbers."
        )
    return array


def _map_values(
    plane: np.ndarray, name: str, foreground: int | None, lossy: bool, notes: list[str]
) -> tuple[np.ndarray, tuple[float, ...]]:
    if plane.dtype.kind == "b":
        plane = plane.astype(np.uint8)
    if plane.dtype.kind == "f":
        bad = ~np.isfinite(plane)
        if bad.any():
            notes.append(f"{int(bad.sum()):,} mask values are missing or infinite; they count as background.")
            plane = np.where(bad, 0, plane)
    found = np.unique(plane)
    listed = ", ".join(f"{value:g}" for value in found[:8]) + (" …" if found.size > 8 else "")
    values = tuple(float(value) for value in (found if found.size <= MOST_LABELS else found[[0, -1]]))
    if foreground is not None:
        inside = plane == foreground
        if not inside.any():
            raise BadImage(
                f"The mask {name} has no pixel of value {foreground}; it holds {listed}. Choose one of these values."
            )
        notes.append(f"Only the value {foreground} was taken as lesion, as asked (the mask holds {listed}).")
        return inside, values
    if found.size and ((lossy and not set(found.tolist()) <= {0, 255}) or found.size > MOST_LABELS):
        top = 255.0 if plane.dtype == np.uint8 else float(found[-1])
        why = "JPEG smears the edges of a mask" if lossy else "that is a soft mask, not labels"
        notes.append(
            f"The mask holds {found.size} different values ({why}); values above half ({top / 2:g}) were taken as lesion."
        )
        return plane > top / 2, values
    if found.size == 2 and found[0] != 0:
        notes.append(
            f"The mask holds {listed}; the lower value was taken as background, the higher as lesion."
        )
        return plane == found[1], values
    if found.size > 2:
        notes.append(
            f"The mask holds the values {listed}; every value but 0 was taken as lesion. Choose one value to narrow it."
        )
    elif found.size == 2 and found[1] not in (1, 255):
        notes.append(f"The mask holds 0 and {found[1]:g}; {found[1]:g} was taken as lesion.")
    return plane != 0, values


def _mismatch(name: str, found: tuple[int, int], wanted: tuple[int, int]) -> MaskSizeMismatch:
    hint = ""
    if found == wanted[::-1]:
        hint = " It seems to be turned by 90°; check that picture and mask stand the same way."
    elif abs(found[0] * wanted[1] - found[1] * wanted[0]) > max(*wanted, *found):
        hint = " The proportions differ too, so it may belong to another picture."
    return MaskSizeMismatch(
        f"The mask {name} is {found[1]} × {found[0]} pixels, but its picture is {wanted[1]} × {wanted[0]}.{hint} "
        "Give a mask of the same size, or say that it may be resized.",
        found,
        wanted,
    )


def _nearest(mask: np.ndarray, shape: tuple[int, int]) -> np.ndarray:
    rows = ((np.arange(shape[0]) + 0.5) * mask.shape[0] / shape[0]).astype(int)
    columns = ((np.arange(shape[1]) + 0.5) * mask.shape[1] / shape[1]).astype(int)
    return mask[rows][:, columns]


def _share(mask: np.ndarray) -> str:
    share = 100 * float(mask.mean()) if mask.size else 0.0
    return f"{share:.1f} %" if share >= 0.1 or share == 0 else f"{share:.2g} %"
