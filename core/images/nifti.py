"""NIfTI-1 and NIfTI-2 (.nii, .nii.gz) -> `Picture` in one canonical orientation, with the way back.

Canonical here is (S, H, W) with S from foot to head, H from the front to the back and W from the patient's
right to the left: an axial slice as radiologists show it. The header is parsed by nibabel; pixels of the
first volume are read straight from the bytes, so that a 4-D file is not unpacked beyond it. Header text
(descriptions, extensions) is never looked at. Pairs of .hdr and .img are not read.
"""

from __future__ import annotations

import io
import math
import zlib
from typing import Any

import numpy as np

from core.images.errors import BadImage, size_in_words
from core.images.limits import Budget
from core.images.picture import Picture, WayBack, formula, make_picture, settle_rgb

CANONICAL = ("S", "P", "L")
_TO_MM = {"mm": 1.0, "micron": 1e-3, "meter": 1e3}


def read_nifti(data: bytes, name: str, budget: Budget, packed: bool = False) -> Picture:
    """Decodes the first volume of a NIfTI file.

    Args:
        data: The whole file.
        name: Its name.
        budget: Limits of this upload.
        packed: True for gzip.

    Returns:
        (S, H, W) grey in real units, or (S, H, W, 3) for RGB voxels, in canonical orientation.

    Raises:
        BadImage: The header is broken, a limit is broken, the file is cut short, or its voxels are complex.
    """
    import nibabel as nib

    notes: list[str] = []
    header = header_of(data, name, packed)
    full = tuple(int(size) for size in header.get_data_shape())
    if not 2 <= len(full) <= 7 or min(full) < 1:
        raise BadImage(
            f"{name} says that its shape is {full}, which is neither a slice nor a volume. Export it again."
        )
    shape = (full[0], full[1], full[2] if len(full) > 2 else 1)
    volumes = math.prod(full[3:])
    if volumes > 1:
        notes.append(f"The file has {volumes:,} volumes ({' × '.join(map(str, full))}); the first was read.")
    kind = header.get_data_dtype()
    colour = kind.fields is not None
    if not colour and kind.kind not in "uif":
        raise BadImage(
            f"{name} holds {kind} voxels; only real numbers and RGB can be shown. Save its magnitude instead."
        )

    affine = np.asarray(header.get_best_affine(), dtype=np.float64)
    file_axes = orientation_of(affine, header, notes)
    turn = nib.orientations.ornt_transform(file_axes, nib.orientations.axcodes2ornt(CANONICAL))
    canonical_shape = [0, 0, 0]
    for axis, target in enumerate(turn[:, 0].astype(int)):
        canonical_shape[target] = shape[axis]
    slices, rows, columns = canonical_shape
    budget.claim(name, rows, columns, slices, 3 if colour else max(kind.itemsize, 4))

    voxels = voxels_of(data, name, packed, header, shape, kind)
    if colour:
        planes = np.stack([np.asarray(voxels[channel]) for channel in ("R", "G", "B")], axis=-1)
        values = settle_rgb(planes, notes)
        notes.append(
            "The voxels are RGB colours."
            + (" Their alpha was left out." if "A" in (kind.names or ()) else "")
        )
    else:
        values = in_real_units(voxels, header, notes)
    canonical = np.ascontiguousarray(nib.orientations.apply_orientation(values, turn))

    codes = "".join(str(code) for code in nib.orientations.ornt2axcodes(file_axes))
    notes.append(
        f"Turned from the file's own orientation ({codes}) to axial slices from foot to head, the front on top and the "
        "patient's right on the left; the way back is kept."
    )
    back = nib.orientations.ornt_transform(nib.orientations.axcodes2ornt(CANONICAL), file_axes)
    way_back = WayBack(shape, affine, (codes[0], codes[1], codes[2]), back)
    return make_picture(
        name,
        canonical,
        notes,
        spacing=spacing_of(affine, turn, header, notes),
        way_back=way_back,
        format="NIfTI",
    )


def to_native(canonical: np.ndarray, way_back: WayBack) -> np.ndarray:
    """Puts an array in canonical space (a mask, say) back into its NIfTI file's own orientation.

    Args:
        canonical: (S, H, W) or (S, H, W, C), the shape of the picture's pixels.
        way_back: `Picture.way_back`.

    Returns:
        (X, Y, Z) or (X, Y, Z, C), same type, voxel for voxel on the file's grid: save it with `way_back.affine`.

    Raises:
        ValueError: The shape is not that of the picture.
    """
    import nibabel as nib

    array = np.asarray(canonical)
    if array.ndim < 3:
        raise ValueError(
            f"A whole volume (S, H, W) goes back to the file's orientation; this has shape {array.shape}."
        )
    out = np.ascontiguousarray(nib.orientations.apply_orientation(array, way_back.turn))
    if out.shape[:3] != way_back.shape:
        raise ValueError(
            f"In the file's orientation this would be {out.shape[:3]}, but the file is {way_back.shape}."
        )
    return out


def header_of(data: bytes, name: str, packed: bool) -> Any:
    """The header of a NIfTI-1 or NIfTI-2 file, gzip or not; BadImage where there is none."""
    import nibabel as nib

    start = _unpack(data, 544, name) if packed else data[:544]
    second = start[4:8] == b"n+2\x00"
    kind, size = (nib.Nifti2Header, 540) if second else (nib.Nifti1Header, 348)
    if len(start) < size:
        raise BadImage(
            f"{name} is a NIfTI file cut short in its header ({len(data):,} bytes). Download it again."
        )
    try:
        return kind.from_fileobj(io.BytesIO(start[:size]), check=False)
    except Exception:
        raise BadImage(
            f"{name} begins like a NIfTI file, but its header cannot be understood. Export it again."
        ) from None


def voxels_of(
    data: bytes, name: str, packed: bool, header: Any, shape: tuple[int, ...], kind: np.dtype
) -> np.ndarray:
    """Stored voxels in file order; BadImage where the file is cut short. Never unpacks more than the shape needs."""
    offset = float(header["vox_offset"])
    least = 352.0 if int(header["sizeof_hdr"]) == 348 else 544.0
    if not math.isfinite(offset) or offset < 0 or offset > 2**40:
        raise BadImage(f"{name} has a NIfTI header that puts its pixels at byte {offset:g}. Export it again.")
    start = int(max(offset, least))
    end = start + math.prod(shape) * kind.itemsize
    raw = _unpack(data, end, name) if packed else data
    if len(raw) < end:
        raise BadImage(
            f"{name} is cut short: its header promises {size_in_words(end)}, but only {size_in_words(len(raw))} are there. "
            "Download or export it again."
        )
    return np.frombuffer(raw, kind, math.prod(shape), start).reshape(shape, order="F")


def _unpack(data: bytes, count: int, name: str) -> bytes:
    """The first `count` unpacked bytes of a gzip file (fewer at its end); never more, whatever it claims."""
    out = io.BytesIO()
    rest = data
    while rest and out.tell() < count:
        unpacker = zlib.decompressobj(16 + zlib.MAX_WBITS)
        try:
            out.write(unpacker.decompress(rest, count - out.tell()))
            while not unpacker.eof and unpacker.unconsumed_tail and out.tell() < count:
                out.write(unpacker.decompress(unpacker.unconsumed_tail, count - out.tell()))
        except zlib.error:
            raise BadImage(f"{name} is a damaged gzip file. Download or pack it again.") from None
        if not unpacker.eof:
            break
        rest = unpacker.unused_data.lstrip(b"\x00")
    return out.getvalue()


def in_real_units(voxels: np.ndarray, header: Any, notes: list[str]) -> np.ndarray:
    """Voxels after the header's slope and intercept, with a note where they changed anything."""
    slope, intercept = header.get_slope_inter()
    if slope is None or not math.isfinite(float(slope)):
        return voxels
    slope, intercept = float(slope), float(intercept or 0.0)
    if (slope, intercept) == (1.0, 0.0):
        return voxels
    notes.append(f"Stored values were turned to real units: {formula(slope, intercept)}.")
    return (voxels.astype(np.float64) * slope + intercept).astype(np.float32)


def orientation_of(affine: np.ndarray, header: Any, notes: list[str]) -> np.ndarray:
    """Which body direction each file axis runs along; as stored where the file does not say."""
    import nibabel as nib

    as_stored = np.array([[0, 1], [1, 1], [2, 1]], dtype=float)
    if not int(header["qform_code"]) and not int(header["sform_code"]):
        notes.append("The file does not say how it lies in the body; left and right may be swapped.")
    if not np.isfinite(affine).all():
        notes.append("Its affine matrix is damaged, so the axes were taken as right, front, head.")
        return as_stored
    axes = np.asarray(nib.io_orientation(affine))
    if not np.isfinite(axes).all():
        notes.append(
            "Its affine matrix leaves an axis without direction, so the axes were taken as right, front, head."
        )
        return as_stored
    return axes


def spacing_of(
    affine: np.ndarray, turn: np.ndarray, header: Any, notes: list[str]
) -> tuple[float, float, float] | None:
    """Voxel sizes in millimetres along the canonical axes; None, with a note, where the header makes no sense."""
    sizes = np.sqrt((affine[:3, :3] ** 2).sum(axis=0))
    unit = str(header.get_xyzt_units()[0])
    out = [0.0, 0.0, 0.0]
    for axis, target in enumerate(turn[:, 0].astype(int)):
        out[target] = float(sizes[axis]) * _TO_MM.get(unit, 1.0)
    if not all(math.isfinite(size) and 0 < size < 1e6 for size in out):
        notes.append("The voxel sizes in the header make no sense, so no spacing was taken.")
        return None
    if unit not in _TO_MM:
        notes.append("The file names no unit of length; millimetres were assumed.")
    return out[0], out[1], out[2]
