"""From bytes to pictures, and from arrays to the screen: the one reader and the one way to show.

`read` and `read_many` take PNG, JPEG, TIFF, DICOM, NIfTI and zips of them and return `Picture`s with pixels,
spacing, slices and notes in plain words; `read_mask` takes a truth mask; `to_display` and `to_rgb` are the only
way to the screen. A file that cannot be used raises `BadImage`, whose text is meant for people. Libraries that
decode are imported when the first file of their kind arrives.
"""

from __future__ import annotations

from core.images.display import NAN_COLOUR, apply_window, display_notes, png_bytes, to_display, to_rgb
from core.images.errors import BadImage, MaskSizeMismatch
from core.images.limits import LIMITS, Limits
from core.images.masks import Mask, mask_from_array, read_mask
from core.images.nifti import to_native
from core.images.pairs import pair_masks
from core.images.picture import Picture, WayBack, default_window
from core.images.read import read, read_many
from core.images.sniff import ACCEPTED

__all__ = [
    "ACCEPTED",
    "LIMITS",
    "NAN_COLOUR",
    "BadImage",
    "Limits",
    "Mask",
    "MaskSizeMismatch",
    "Picture",
    "WayBack",
    "apply_window",
    "default_window",
    "display_notes",
    "mask_from_array",
    "pair_masks",
    "png_bytes",
    "read",
    "read_many",
    "read_mask",
    "to_display",
    "to_native",
    "to_rgb",
]
