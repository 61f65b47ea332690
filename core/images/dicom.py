"""DICOM bytes -> `Picture`, in the order that the standard asks for, and without any patient field.

Stored value -> modality LUT or rescale -> (window -> MONOCHROME1 inverted: both when shown). Colour in any
photometric interpretation becomes RGB. Only the elements listed in `_ELEMENTS` are parsed at all: names,
dates, numbers and free text of a header are skipped in the bytes, so nothing can keep, show or log them.
Enhanced multi-frame groups are in `core.images.dicom_frames`. No network, no DICOMDIR, no series assembly.
"""

from __future__ import annotations

import io
import logging
import re
import struct
import warnings
import zlib
from typing import Any

import numpy as np

from core.images.dicom_frames import Frames, number
from core.images.errors import BadImage
from core.images.limits import Budget
from core.images.picture import Picture, make_picture, settle_rgb
from core.images.sniff import stream_size

_PIXELS = ("PixelData", "FloatPixelData", "DoubleFloatPixelData")
_ELEMENTS = (
    "SOPClassUID", "Modality", "SamplesPerPixel", "PhotometricInterpretation", "PlanarConfiguration", "NumberOfFrames",
    "FrameIncrementPointer", "Rows", "Columns", "PixelAspectRatio", "BitsAllocated", "BitsStored", "HighBit",
    "PixelRepresentation", "PixelSpacing", "ImagerPixelSpacing", "SpacingBetweenSlices", "SliceThickness",
    "RescaleSlope", "RescaleIntercept", "RescaleType", "DoseGridScaling", "ModalityLUTSequence", "WindowCenter", "WindowWidth",
    "VOILUTFunction", "VOILUTSequence", "BurnedInAnnotation", "LossyImageCompression",
    "RedPaletteColorLookupTableDescriptor", "GreenPaletteColorLookupTableDescriptor",
    "BluePaletteColorLookupTableDescriptor", "RedPaletteColorLookupTableData", "GreenPaletteColorLookupTableData",
    "BluePaletteColorLookupTableData", "SegmentedRedPaletteColorLookupTableData",
    "SegmentedGreenPaletteColorLookupTableData", "SegmentedBluePaletteColorLookupTableData",
    "SharedFunctionalGroupsSequence", "PerFrameFunctionalGroupsSequence", "ExtendedOffsetTable",
    "ExtendedOffsetTableLengths", *_PIXELS,
)  # fmt: skip

# Packings whose decoder is a separate package: what to install. Keys are transfer syntax UIDs.
_PACKAGES = {
    "1.2.840.10008.1.2.4.50": "pillow",
    "1.2.840.10008.1.2.4.51": "python-gdcm",
    "1.2.840.10008.1.2.4.57": "python-gdcm",
    "1.2.840.10008.1.2.4.70": "python-gdcm",
    "1.2.840.10008.1.2.4.80": "pyjpegls",
    "1.2.840.10008.1.2.4.81": "pyjpegls",
    "1.2.840.10008.1.2.4.90": "pylibjpeg with pylibjpeg-openjpeg",
    "1.2.840.10008.1.2.4.91": "pylibjpeg with pylibjpeg-openjpeg",
    "1.2.840.10008.1.2.4.201": "pylibjpeg with pylibjpeg-openjpeg",
    "1.2.840.10008.1.2.4.202": "pylibjpeg with pylibjpeg-openjpeg",
    "1.2.840.10008.1.2.4.203": "pylibjpeg with pylibjpeg-openjpeg",
}
# The standard's own codes: in a damaged header the element may hold anything, so nothing else is repeated.
_MODALITY = re.compile(
    "AR|AU|BMD|CR|CT|DX|ECG|EPS|ES|GM|IO|IVOCT|IVUS|KO|LEN|MG|MR|NM|OAM|OCT|OP|OPM|OPT|OPV|OT|PR|PT|PX|REG|RF|RG|"
    "RTDOSE|RTIMAGE|RTPLAN|RTRECORD|RTSTRUCT|SEG|SM|SMR|SR|TG|US|VA|XA|XC"
)
_DEFLATED = "1.2.840.10008.1.2.1.99"


def read_dicom(data: bytes, name: str, budget: Budget) -> Picture:
    """Decodes a DICOM file with pixels, single or multi-frame.

    Args:
        data: The whole file, with or without the 128-byte preamble.
        name: Its name.
        budget: Limits of this upload.

    Returns:
        Frames as slices; grey in real units (`inverted` for MONOCHROME1), or RGB.

    Raises:
        BadImage: No pixels in it, a packing without a decoder (the package is named), a broken limit, or damage.
    """
    dataset, syntax = _parse(data, name, budget)
    kind = _kind(dataset)
    present = [element for element in _PIXELS if element in dataset]
    if not present:
        raise BadImage(
            f"{name} is a DICOM file without pixels ({kind}), so there is no picture in it to show. Send the image itself."
        )
    rows, columns = int(dataset.get("Rows") or 0), int(dataset.get("Columns") or 0)
    count = max(1, int(dataset.get("NumberOfFrames") or 1))
    samples = int(dataset.get("SamplesPerPixel") or 1)
    bits = int(dataset.get("BitsAllocated") or (64 if present[0] == "DoubleFloatPixelData" else 32))
    photometric = str(dataset.get("PhotometricInterpretation") or ("RGB" if samples == 3 else "MONOCHROME2"))
    colour = samples == 3 or photometric == "PALETTE COLOR"
    budget.claim(name, rows, columns, count, 3 * max(1, bits // 8) if colour else max(4, bits // 8))

    notes = [f"DICOM, {kind}." if count == 1 else f"DICOM, {kind}; its {count:,} frames are kept as slices."]
    values, photometric = _decode(dataset, syntax, name, count, (rows, columns), notes)
    values = values.reshape((count, rows, columns) + ((samples,) if samples > 1 else ()))
    frames = Frames(dataset, count)
    spacing = frames.spacing(notes)
    if str(dataset.get("BurnedInAnnotation") or "").upper() == "YES":
        notes.append(
            "The file says that text is burned into the picture; it may name the patient, so look before you share it."
        )
    if str(dataset.get("LossyImageCompression") or "") == "01":
        notes.append("The picture was once compressed with loss.")

    if photometric == "PALETTE COLOR":
        from pydicom.pixels import apply_color_lut

        notes.append("Its palette was looked up.")
        return make_picture(
            name, settle_rgb(apply_color_lut(values, dataset), notes), notes, spacing=spacing, format="DICOM"
        )
    if samples == 3:
        stored = int(dataset.get("BitsStored") or bits)
        rgb = settle_rgb(values, notes, top=float(2**stored - 1))
        return make_picture(name, rgb, notes, spacing=spacing, format="DICOM")
    if samples != 1 or not photometric.startswith("MONOCHROME"):
        raise BadImage(
            f"{name} has {samples} samples a pixel in colours of an unusual kind, which is not read. Export it as RGB or grey."
        )
    values = frames.real_values(values, notes)
    window = frames.window(notes)
    inverted = photometric == "MONOCHROME1"
    if inverted:
        notes.append(
            "MONOCHROME1: low values are bright, so it is inverted after windowing, when it is shown."
        )
    return make_picture(
        name, values, notes, spacing=spacing, window=window, inverted=inverted, format="DICOM"
    )


def _parse(data: bytes, name: str, budget: Budget) -> tuple[Any, str]:
    """The dataset with the elements of `_ELEMENTS` only, and its transfer syntax UID."""
    import pydicom
    from pydicom.filebase import DicomBytesIO
    from pydicom.filereader import read_dataset
    from pydicom.uid import ExplicitVRBigEndian, ExplicitVRLittleEndian, ImplicitVRLittleEndian

    _hush()
    stream = DicomBytesIO(data)
    stream.seek(132 if data[128:132] == b"DICM" else 0)
    meta = read_dataset(stream, False, True, stop_when=lambda tag, vr, length: int(tag) >> 16 != 2)
    syntax = str(meta.get("TransferSyntaxUID") or "")
    if str(meta.get("MediaStorageSOPClassUID") or "") == "1.2.840.10008.1.3.10":
        raise BadImage(
            f"{name} is a DICOMDIR, a table of contents of other files. Send the image files it lists."
        )
    if syntax == _DEFLATED:
        _check_deflated(data, stream.tell(), name, budget)
    dataset = pydicom.dcmread(io.BytesIO(data), force=True, specific_tags=list(_ELEMENTS))
    if not syntax:
        implicit, little = dataset.original_encoding
        plain = (
            ImplicitVRLittleEndian if implicit else ExplicitVRLittleEndian if little else ExplicitVRBigEndian
        )
        dataset.file_meta = pydicom.dataset.FileMetaDataset()
        dataset.file_meta.TransferSyntaxUID = plain
        syntax = str(plain)
    return dataset, syntax


def _hush() -> None:
    """Keeps pydicom's warnings out of every log: of a damaged file they quote the header, patient and all.

    Warnings cannot be held back for one thread alone before Python 3.14, so pydicom is silenced for the process,
    once and for good; nothing is switched back and forth under other threads.
    """
    from pydicom import config

    config.settings.reading_validation_mode = config.IGNORE
    logging.getLogger("pydicom").setLevel(logging.CRITICAL + 1)
    if not any(
        entry[0] == "ignore" and getattr(entry[3], "pattern", "") == "pydicom" for entry in warnings.filters
    ):
        warnings.filterwarnings("ignore", module="pydicom")


def _check_deflated(data: bytes, start: int, name: str, budget: Budget) -> None:
    unpacker = zlib.decompressobj(-zlib.MAX_WBITS)
    rest, got = data[start:], 0
    while rest and not unpacker.eof:
        got += len(unpacker.decompress(rest, 1 << 20))
        rest = unpacker.unconsumed_tail
        if got > budget.limits.unpacked_bytes:
            budget.claim(name, 1, 1, 1, got)  # raises, naming the limit


def _kind(dataset: Any) -> str:
    """What the file is, in the standard's words, such as "CT Image Storage"."""
    from pydicom.uid import UID, UID_dictionary

    uid = str(dataset.get("SOPClassUID") or "")
    if uid in UID_dictionary:
        return UID(uid).name
    modality = str(dataset.get("Modality") or "")
    return f"modality {modality}" if _MODALITY.fullmatch(modality) else "of a kind that it does not name"


def _decode(
    dataset: Any, syntax: str, name: str, count: int, size: tuple[int, int], notes: list[str]
) -> tuple[np.ndarray, str]:
    """All frames as stored (YBR already turned to RGB), and the photometric interpretation they are in now."""
    from pydicom.pixels import get_decoder
    from pydicom.uid import UID, UID_dictionary

    packing = UID(syntax).name if syntax in UID_dictionary else "an unknown transfer syntax"
    try:
        decoder = get_decoder(syntax)
    except NotImplementedError:
        raise BadImage(
            f"{name} is packed as {packing}, for which there is no decoder. Export it uncompressed."
        ) from None
    package = _PACKAGES.get(syntax)
    install = f"Ask whoever runs this server to install the package {package}, or export it uncompressed."
    if not decoder.is_available:
        raise BadImage(f"{name} is packed as {packing}, and its decoder is not installed. {install}")
    compressed = UID(syntax).is_encapsulated if syntax in UID_dictionary else False
    if compressed:
        _check_streams(dataset, count, size, name)
    before = str(dataset.get("PhotometricInterpretation") or "")
    try:
        values, facts = decoder.as_array(dataset, raw=False)
    except (RuntimeError, ValueError, AttributeError, NotImplementedError, TypeError, struct.error) as error:
        if compressed and isinstance(error, (RuntimeError, NotImplementedError)):
            raise BadImage(
                f"{name} is packed as {packing}, and the decoders here cannot unpack this one: it is damaged, or of a rare "
                f"kind that needs the package {package if package != 'pillow' else 'python-gdcm'}. Export it uncompressed."
                if package
                else f"{name} is packed as {packing} and cannot be unpacked: it is damaged. Export it uncompressed."
            ) from None
        raise BadImage(
            f"{name} is a DICOM file whose pixels do not agree with its header (length, bits or colours): it is damaged or "
            "was cut short. Export or download it again."
        ) from None
    after = str(facts.get("photometric_interpretation", before))
    if re.fullmatch("YBR_[A-Z0-9_]{1,12}", before) and after == "RGB":
        notes.append(f"Colours were turned from {before} to RGB.")
    if compressed:
        notes.append(f"Unpacked from {packing}.")
    return np.asarray(values), after


def _check_streams(dataset: Any, count: int, size: tuple[int, int], name: str) -> None:
    """Refuses frames whose own JPEG header states another size than the dataset does."""
    from pydicom.encaps import generate_frames

    for frame in generate_frames(dataset.PixelData, number_of_frames=count):
        stated = stream_size(frame)
        if stated is not None and stated != size:
            raise BadImage(
                f"{name} says that it is {size[1]:,} × {size[0]:,} pixels, but a picture packed in it says "
                f"{stated[1]:,} × {stated[0]:,}. It is damaged or was made to do harm; export it again."
            )


__all__ = ["number", "read_dicom"]
