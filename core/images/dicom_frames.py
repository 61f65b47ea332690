"""The numbers of a DICOM header that turn stored values into real ones: rescale, window, spacing.

They stand at the top of a classic file and inside functional groups, shared or one for each frame, of an
enhanced one; `Frames` looks in both places. It reads no pixels and no other element.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from core.images.picture import formula


def number(item: Any, keyword: str, index: int = 0) -> float | None:
    """One finite number of a dataset; None where it is absent, empty or no number."""
    try:
        value = item.get(keyword)
        if value is None:
            return None
        if not isinstance(value, (int, float, str)):
            value = value[index]
        out = float(value)
    except (TypeError, ValueError, IndexError, KeyError, OverflowError):
        return None
    return out if math.isfinite(out) else None


class Frames:
    """Rescale, window and spacing of a dataset with `count` frames."""

    def __init__(self, dataset: Any, count: int) -> None:
        self.dataset = dataset
        self.count = count
        shared = dataset.get("SharedFunctionalGroupsSequence")
        self._shared = shared[0] if shared else None
        self._each = dataset.get("PerFrameFunctionalGroupsSequence") or ()

    def item(self, sequence: str, frame: int) -> Any | None:
        """The functional group of one frame, or of all frames; None in a classic file."""
        for group in (self._each[frame] if frame < len(self._each) else None, self._shared):
            found = group.get(sequence) if group is not None else None
            if found:
                return found[0]
        return None

    def real_values(self, values: np.ndarray, notes: list[str]) -> np.ndarray:
        """(S, H, W) stored values -> real units, through the modality LUT or slope and intercept."""
        if self.dataset.get("ModalityLUTSequence"):
            from pydicom.pixels import apply_modality_lut

            notes.append("Stored values were turned to real units through the file's modality look-up table.")
            return np.asarray(apply_modality_lut(values, self.dataset))
        pairs = [self._slope(frame) for frame in range(self.count)]
        if all(pair == (1.0, 0.0) for pair in pairs):
            return values
        whole = values.dtype.kind in "ui" and values.dtype.itemsize <= 2
        whole = whole and all(
            float(part).is_integer() and abs(part) < 2**15 for pair in pairs for part in pair
        )
        out = np.empty(values.shape, np.float32)
        for frame, (slope, intercept) in enumerate(pairs):
            out[frame] = values[frame].astype(np.float64) * slope + intercept
        unit = str(self.dataset.get("RescaleType") or "")
        name = " (Hounsfield units)" if unit == "HU" or str(self.dataset.get("Modality")) == "CT" else ""
        if len(set(pairs)) == 1:
            notes.append(f"Stored values were turned to real units{name}: {formula(*pairs[0])}.")
        else:
            notes.append(
                f"Stored values were turned to real units{name} with each frame's own slope and intercept."
            )
        if whole and out.size:
            low, high = float(out.min()), float(out.max())
            for target in (np.int16, np.uint16):
                if np.iinfo(target).min <= low and high <= np.iinfo(target).max:
                    return out.astype(target)
        return out

    def _slope(self, frame: int) -> tuple[float, float]:
        group = self.item("PixelValueTransformationSequence", frame)
        source = group if group is not None else self.dataset
        slope, intercept = number(source, "RescaleSlope"), number(source, "RescaleIntercept")
        if slope is None or slope == 0:
            slope = number(self.dataset, "DoseGridScaling") or 1.0  # radiotherapy: stored value -> gray
        return slope, intercept or 0.0

    def window(self, notes: list[str]) -> tuple[float, float] | None:
        """The file's first window, (centre, width) in real units; None where it names none that can be used."""
        group = self.item("FrameVOILUTSequence", 0)
        source = group if group is not None else self.dataset
        centre, width = number(source, "WindowCenter"), number(source, "WindowWidth")
        if centre is None or width is None or width <= 0:
            if centre is not None:
                notes.append(
                    "The window in the file cannot be used (no width); one was chosen from the values."
                )
            elif self.dataset.get("VOILUTSequence"):
                notes.append(
                    "The file shows itself through a look-up table; a plain window chosen from the values is used."
                )
            return None
        function = str(source.get("VOILUTFunction") or "LINEAR").upper()
        if function == "SIGMOID":
            notes.append(
                "The file asks for a sigmoid window; a straight one of the same centre and width is used."
            )
        more = (
            "; it holds more than one, the first is used"
            if number(source, "WindowCenter", 1) is not None
            else ""
        )
        if isinstance(source.get("WindowCenter"), (int, float, str)):
            more = ""
        notes.append(f"Window from the file: centre {centre:g}, width {width:g}{more}.")
        return centre, width

    def spacing(self, notes: list[str]) -> tuple[float, float, float] | None:
        """(slice, row, column) in mm from the patient's plane; None where the file gives none."""
        group = self.item("PixelMeasuresSequence", 0)
        source = group if group is not None else self.dataset
        row, column = number(source, "PixelSpacing", 0), number(source, "PixelSpacing", 1)
        if row is None or column is None or not (0 < row < 1e3 and 0 < column < 1e3):
            if self.dataset.get("ImagerPixelSpacing"):
                notes.append(
                    "Its pixel size is known at the detector only, not in the patient; no spacing was taken."
                )
            aspect = [number(self.dataset, "PixelAspectRatio", index) for index in (0, 1)]
            if None not in aspect and aspect[0] != aspect[1]:
                notes.append(
                    f"Its pixels are not square ({aspect[0]:g} : {aspect[1]:g}, height to width); they are shown as if they were."
                )
            return None
        between = number(source, "SpacingBetweenSlices") or number(source, "SliceThickness")
        pointer = self.dataset.get("FrameIncrementPointer")
        if self.count > 1 and pointer is not None and int(pointer) in (0x00181063, 0x00181065):
            between = None  # frames follow one another in time, not in space
        deep = abs(between) if between and abs(between) < 1e3 else math.nan
        notes.append(f"Pixel size from the file: {row:.4g} mm by {column:.4g} mm (row, column).")
        return deep, row, column
