"""A NIfTI file with all its volumes, one a class: the reader of pictures (`core.images.nifti`) takes the first volume only.

The header, the limits and the turn to canonical orientation are that reader's. The class axis is the file's fourth (or, after an axis of length 1
for time, its fifth). Nothing is scaled or judged here.
"""

from __future__ import annotations

import math

import numpy as np

from core.images import nifti
from core.images.errors import BadImage
from core.images.limits import Budget

MOST_CLASSES = 256
"""More volumes than that are time or directions, not classes."""

Spacing = tuple[float, float, float]


def read_classes(
    data: bytes, name: str, budget: Budget, packed: bool = False
) -> tuple[np.ndarray, Spacing | None, tuple[str, ...]]:
    """Decode every volume of a NIfTI file.

    Args:
        data: The whole file.
        name: Its name, tidy.
        budget: Limits of this upload.
        packed: True for gzip.

    Returns:
        `(S, H, W)` for one volume, `(K, S, H, W)` for K, in canonical orientation and the header's real units; the size of a voxel in mm along
        S, H and W where it is known; what was done, in words.

    Raises:
        BadImage: The header is broken, a limit is broken, the file is cut short, or its voxels are no real numbers.
    """
    import nibabel as nib

    notes: list[str] = []
    header = nifti.header_of(data, name, packed)
    full = tuple(int(size) for size in header.get_data_shape())
    if not 2 <= len(full) <= 7 or min(full) < 1:
        raise BadImage(
            f"{name} says that its shape is {full}, which is neither a slice nor a volume. Export it again."
        )
    space = (full[0], full[1], full[2] if len(full) > 2 else 1)
    more = [n for n in full[3:] if n > 1]
    if len(more) > 1 or math.prod(more) > MOST_CLASSES:
        raise BadImage(
            f"{name} has the shape {' × '.join(map(str, full))}. Classes are expected along the fourth axis alone, {MOST_CLASSES} at most. "
            "Save one volume a class there."
        )
    volumes = math.prod(more)
    kind = header.get_data_dtype()
    if kind.fields is not None or kind.kind not in "uif":
        raise BadImage(
            f"{name} holds {'colours' if kind.fields else kind} where numbers are expected. Save plain scores or labels."
        )
    affine = np.asarray(header.get_best_affine(), dtype=np.float64)
    axes = nifti.orientation_of(affine, header, notes)
    turn = nib.orientations.ornt_transform(axes, nib.orientations.axcodes2ornt(nifti.CANONICAL))
    wanted = [0, 0, 0]
    for axis, target in enumerate(turn[:, 0].astype(int)):
        wanted[target] = space[axis]
    budget.claim(name, wanted[1], wanted[2], wanted[0] * volumes, max(kind.itemsize, 4))
    voxels = nifti.voxels_of(data, name, packed, header, (*space, volumes), kind)
    values = nifti.in_real_units(voxels, header, notes)
    turned = nib.orientations.apply_orientation(values, turn)
    out = np.ascontiguousarray(np.moveaxis(turned, -1, 0))
    out = out.astype(out.dtype.newbyteorder("="), copy=False)
    spacing = nifti.spacing_of(affine, turn, header, notes)
    return (out[0] if volumes == 1 else out), spacing, tuple(notes)
