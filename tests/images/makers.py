"""Files made in memory for the tests of `core.images`; no file of a patient or of another project is used."""

from __future__ import annotations

import gzip
import io
import struct
import zipfile
import zlib
from typing import Any

import numpy as np


def rng(seed: int = 0) -> np.random.Generator:
    return np.random.default_rng(seed)


def colours(rows: int = 12, columns: int = 17, seed: int = 0) -> np.ndarray:
    return rng(seed).integers(0, 256, (rows, columns, 3), dtype=np.uint8)


def pil(image: Any, format: str = "PNG", **options: Any) -> bytes:
    out = io.BytesIO()
    image.save(out, format=format, **options)
    return out.getvalue()


def png(array: np.ndarray, **options: Any) -> bytes:
    from PIL import Image

    return pil(Image.fromarray(array), "PNG", **options)


def tiff(array: np.ndarray, **options: Any) -> bytes:
    import tifffile

    out = io.BytesIO()
    tifffile.imwrite(out, array, **options)
    return out.getvalue()


def png_header(rows: int, columns: int, depth: int = 8, colour: int = 2) -> bytes:
    """A PNG of any stated size with a tiny body: a decompression bomb's outside."""

    def chunk(kind: bytes, body: bytes) -> bytes:
        return struct.pack(">I", len(body)) + kind + body + struct.pack(">I", zlib.crc32(kind + body))

    size = struct.pack(">IIBBBBB", columns, rows, depth, colour, 0, 0, 0)
    return (
        b"\x89PNG\r\n\x1a\n"
        + chunk(b"IHDR", size)
        + chunk(b"IDAT", zlib.compress(bytes(100)))
        + chunk(b"IEND", b"")
    )


def zipped(files: dict[str, bytes], method: int = zipfile.ZIP_DEFLATED) -> bytes:
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w", method) as archive:
        for name, data in files.items():
            archive.writestr(name, data)
    return out.getvalue()


PATIENT = {
    "PatientName": "Zweifel^Amalie",
    "PatientID": "ID-4711-GEHEIM",
    "PatientBirthDate": "19330211",
    "ReferringPhysicianName": "Quacksalber^Doktor",
    "InstitutionName": "Klinik am Regenbogen",
    "StudyDescription": "Schulterblick",
    "AccessionNumber": "ACC998877",
}


def dicom(
    values: np.ndarray,
    *,
    photometric: str = "MONOCHROME2",
    syntax: str = "1.2.840.10008.1.2.1",
    preamble: bool = True,
    pixels: bytes | None = None,
    **elements: Any,
) -> bytes:
    """A DICOM of (H, W), (S, H, W), (H, W, 3) or (S, H, W, 3) values with a patient in its header."""
    from pydicom.dataset import FileDataset, FileMetaDataset
    from pydicom.uid import UID, generate_uid

    meta = FileMetaDataset()
    meta.MediaStorageSOPClassUID = UID("1.2.840.10008.5.1.4.1.1.7")
    meta.MediaStorageSOPInstanceUID = generate_uid()
    meta.TransferSyntaxUID = UID(syntax)
    data = FileDataset("", {}, file_meta=meta, preamble=bytes(128))
    data.SOPClassUID = meta.MediaStorageSOPClassUID
    data.SOPInstanceUID = meta.MediaStorageSOPInstanceUID
    for keyword, value in PATIENT.items():
        setattr(data, keyword, value)
    samples = 3 if photometric in ("RGB", "YBR_FULL") else 1
    plane = values.shape[-3:-1] if samples == 3 else values.shape[-2:]
    frames = values.ndim - 2 - (samples == 3)
    data.Rows, data.Columns = plane
    if frames:
        data.NumberOfFrames = values.shape[0]
    data.SamplesPerPixel = samples
    data.PhotometricInterpretation = photometric
    if samples == 3:
        data.PlanarConfiguration = 0
    data.BitsAllocated = data.BitsStored = 8 * values.dtype.itemsize
    data.HighBit = data.BitsStored - 1
    data.PixelRepresentation = int(values.dtype.kind == "i")
    if values.dtype.kind == "f":
        keyword = "FloatPixelData" if values.dtype.itemsize == 4 else "DoubleFloatPixelData"
        setattr(data, keyword, values.tobytes())
        for name in ("BitsStored", "HighBit", "PixelRepresentation"):
            delattr(data, name)
    else:
        body = values.tobytes() if pixels is None else pixels
        data.PixelData = body + b"\x00" * (len(body) % 2)
        data["PixelData"].VR = "OB" if values.dtype.itemsize == 1 or pixels is not None else "OW"
    for keyword, value in elements.items():
        if value is None:
            delattr(data, keyword)
        else:
            setattr(data, keyword, value)
    out = io.BytesIO()
    if preamble:
        data.save_as(out, enforce_file_format=True)
    else:
        del data.file_meta
        data.save_as(out, implicit_vr=True, little_endian=True)
        return out.getvalue().removeprefix(bytes(128) + b"DICM")
    return out.getvalue()


def nifti(
    values: np.ndarray,
    affine: np.ndarray | None = None,
    *,
    packed: bool = False,
    second: bool = False,
    **header: Any,
) -> bytes:
    import nibabel as nib

    affine = np.diag([1.0, 1.0, 1.0, 1.0]) if affine is None else affine
    image = (nib.Nifti2Image if second else nib.Nifti1Image)(values, affine, dtype=values.dtype)
    image.header.set_xyzt_units("mm")
    if "slope" in header:
        image.header.set_slope_inter(*header["slope"])
    if "units" in header:
        image.header.set_xyzt_units(header["units"])
    data = bytearray(image.to_bytes())
    if "codes" in header:  # qform_code and sform_code
        data[252:256] = struct.pack("<hh", header["codes"], header["codes"])
    if "srow_x" in header:
        data[280:296] = struct.pack("<4f", *header["srow_x"])
    return gzip.compress(data, mtime=0) if packed else bytes(data)
