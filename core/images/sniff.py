"""What a file really is, from its first bytes, and how large its picture says that it is.

The name's ending is never trusted: it only earns a note when it disagrees. Sizes are read here, straight
from the header, before any decoder sees the file, so that a decompression bomb is refused unopened. This
module decodes no pixels.
"""

from __future__ import annotations

import struct
import zlib

from core.images.errors import BadImage, first_bytes

# Kinds that the reader decodes, with the name that sentences use.
KINDS = {
    "png": "PNG",
    "jpeg": "JPEG",
    "gif": "GIF",
    "bmp": "BMP",
    "webp": "WebP",
    "tiff": "TIFF",
    "dicom": "DICOM",
    "nifti": "NIfTI",
    "nifti.gz": "NIfTI",
    "zip": "zip",
}

# Endings for an upload field. DICOM files often have none, so a page should also let every file in.
ACCEPTED = (
    "png",
    "jpg",
    "jpeg",
    "tif",
    "tiff",
    "dcm",
    "dicom",
    "ima",
    "nii",
    "gz",
    "zip",
    "gif",
    "bmp",
    "webp",
)

ENDINGS = {
    "png": "png", "apng": "png", "jpg": "jpeg", "jpeg": "jpeg", "jpe": "jpeg", "jfif": "jpeg", "gif": "gif",
    "bmp": "bmp", "webp": "webp", "tif": "tiff", "tiff": "tiff", "btf": "tiff", "lsm": "tiff", "dcm": "dicom",
    "dicom": "dicom", "ima": "dicom", "nii": "nifti", "gz": "nifti", "zip": "zip",
}  # fmt: skip

# Files that people send by mistake: how they begin, and what would help.
_OTHERS: tuple[tuple[bytes, str, str], ...] = (
    (b"%PDF", "a PDF", "Export the picture from it as PNG"),
    (b"\x93NUMPY", "a NumPy array", "Use the page for your own probability maps, or save it as PNG or TIFF"),
    (b"\x89HDF\r\n\x1a\n", "an HDF5 or MATLAB file", "Save the picture in it as TIFF or NIfTI"),
    (b"MATLAB 5.0", "a MATLAB file", "Save the picture in it as TIFF or NIfTI"),
    (b"\x00\x00\x00\x0cjP  \r\n", "a JPEG 2000 picture", "Save it as PNG or TIFF"),
    (b"\xff\x4f\xff\x51", "a bare JPEG 2000 stream", "Save it as PNG or TIFF"),
    (b"Rar!", "a RAR archive", "Pack the files as a zip, or send them one by one"),
    (b"7z\xbc\xaf\x27\x1c", "a 7-Zip archive", "Pack the files as a zip, or send them one by one"),
    (b"\x1f\x8b", "a gzip file that holds no NIfTI volume", "Unpack it and send what is inside"),
    (b"BZh", "a bzip2 file", "Unpack it and send what is inside"),
    (b"\xfd7zXZ\x00", "an xz file", "Unpack it and send what is inside"),
    (b"NRRD", "an NRRD volume", "Save it as NIfTI (3D Slicer can)"),
    (b"ObjectType", "a MetaImage volume", "Save it as NIfTI (3D Slicer can)"),
    (b"%!PS", "a PostScript file", "Export it as PNG"),
    (b"8BPS", "a Photoshop file", "Export it as PNG or TIFF"),
    (b"<svg", "an SVG drawing", "Export it as PNG"),
    (b"<?xml", "an XML file", "Export the picture as PNG"),
    (b"<!DOCTYPE", "a web page", "Download the picture itself, not the page that shows it"),
    (b"<html", "a web page", "Download the picture itself, not the page that shows it"),
    (b"version https://git-lfs", "a pointer that Git LFS left instead of the file", "Fetch the real file with `git lfs pull`"),
    (b"\x1a\x45\xdf\xa3", "a video", "Send single frames as PNG or JPEG"),
)  # fmt: skip

_VRS = frozenset(
    b"AE AS AT CS DA DS DT FL FD IS LO LT OB OD OF OL OV OW PN SH SL SQ SS ST SV TM UC UI UL UN UR US UT UV".split()
)


def sniff(data: bytes, name: str) -> str:
    """Finds out what a file is from its bytes.

    Args:
        data: The whole file.
        name: Its name, for the sentence only.

    Returns:
        A key of `KINDS`.

    Raises:
        BadImage: The file is empty or of no kind that is read here; the sentence says what was found.
    """
    if not data:
        raise BadImage(
            f"{name} is empty (0 bytes). Perhaps it was not fully downloaded or copied; send it again."
        )
    if data[128:132] == b"DICM":
        return "dicom"
    if data.startswith(b"\x89PNG\r\n\x1a\n"):
        return "png"
    if data.startswith(b"\xff\xd8\xff"):
        return "jpeg"
    if data[:4] in (b"II*\x00", b"MM\x00*", b"II+\x00", b"MM\x00+"):
        return "tiff"
    if data[:6] in (b"GIF87a", b"GIF89a"):
        return "gif"
    if data[:4] == b"RIFF" and data[8:12] == b"WEBP":
        return "webp"
    if data[:2] == b"BM" and data[14:18] in (struct.pack("<I", n) for n in (12, 40, 52, 56, 64, 108, 124)):
        return "bmp"
    if data[:4] in (b"PK\x03\x04", b"PK\x05\x06", b"PK\x07\x08"):
        return "zip"
    if data[:2] == b"\x1f\x8b" and _nifti_magic(gunzip_start(data, 544)):
        return "nifti.gz"
    if _nifti_magic(data):
        return "nifti"
    if _bare_dicom(data):
        return "dicom"
    raise BadImage(_not_ours(data, name))


def wrong_name_note(name: str, kind: str) -> str | None:
    """A sentence when a name's ending promises another kind than the file is; None when all is well."""
    _, dot, ending = name.rpartition(".")
    ending = ending.lower()
    promised = ENDINGS.get(ending)
    if not dot or promised is None or promised == kind or KINDS[promised] == KINDS[kind]:
        return None
    return f"The name ends in .{ending}, but its first bytes are those of a {KINDS[kind]} file; it was read as {KINDS[kind]}."


def gunzip_start(data: bytes, count: int) -> bytes:
    """At most the first `count` unpacked bytes of a gzip file; fewer, or none, where it is damaged."""
    unpacker = zlib.decompressobj(16 + zlib.MAX_WBITS)
    try:
        return unpacker.decompress(data[: 65536 + count], count)
    except zlib.error:
        return b""


def header_size(data: bytes, kind: str) -> tuple[int, int] | None:
    """(rows, columns) that a PNG, JPEG, GIF, BMP or WebP header states; None where none was found."""
    try:
        if kind == "png":
            columns, rows = struct.unpack(">II", data[16:24])
        elif kind == "gif":
            columns, rows = struct.unpack("<HH", data[6:10])
        elif kind == "bmp":
            columns, rows = struct.unpack(
                "<HH" if data[14] == 12 else "<ii", data[18:22] if data[14] == 12 else data[18:26]
            )
            rows = abs(rows)  # negative: stored top row first
        elif kind == "webp":
            return _webp_size(data)
        elif kind == "jpeg":
            return stream_size(data)
        else:
            return None
    except (struct.error, IndexError):
        return None
    return rows, columns


def stream_size(data: bytes) -> tuple[int, int] | None:
    """(rows, columns) of a JPEG, JPEG-LS or JPEG 2000 stream, such as a DICOM frame; None if it is neither."""
    if data[:4] == b"\xff\x4f\xff\x51" and len(data) >= 24:  # JPEG 2000: SOC, SIZ
        right, bottom, left, top = struct.unpack(">IIII", data[8:24])
        return max(0, bottom - top), max(0, right - left)
    if data[:2] != b"\xff\xd8":
        return None
    at = 2
    while at + 9 <= len(data):
        if data[at] != 0xFF:
            at += 1
            continue
        marker = data[at + 1]
        if marker == 0xFF or marker == 0x00 or marker == 0x01 or 0xD0 <= marker <= 0xD8:
            at += 1 if marker == 0xFF else 2
            continue
        if marker in (0xD9, 0xDA):
            return None
        if (0xC0 <= marker <= 0xCF and marker not in (0xC4, 0xC8, 0xCC)) or marker == 0xF7:
            rows, columns = struct.unpack(">HH", data[at + 5 : at + 9])
            return rows, columns
        at += 2 + max(2, struct.unpack(">H", data[at + 2 : at + 4])[0])
    return None


def _webp_size(data: bytes) -> tuple[int, int] | None:
    chunk = data[12:16]
    if chunk == b"VP8X":
        return 1 + int.from_bytes(data[27:30], "little"), 1 + int.from_bytes(data[24:27], "little")
    if chunk == b"VP8 ":
        columns, rows = struct.unpack("<HH", data[26:30])
        return rows & 0x3FFF, columns & 0x3FFF
    if chunk == b"VP8L":
        bits = struct.unpack("<I", data[21:25])[0]
        return 1 + (bits >> 14 & 0x3FFF), 1 + (bits & 0x3FFF)
    return None


def _nifti_magic(data: bytes) -> bool:
    size = data[:4]
    if size in (b"\x5c\x01\x00\x00", b"\x00\x00\x01\x5c"):
        return data[344:348] == b"n+1\x00"
    return size in (b"\x1c\x02\x00\x00", b"\x00\x00\x02\x1c") and data[4:8] == b"n+2\x00"


def _bare_dicom(data: bytes) -> bool:
    """DICOM without its 128-byte preamble: it begins with an element of group 0002 or 0008."""
    if len(data) < 16:
        return False
    for order in "<>":
        group, element, length = struct.unpack(order + "HHI", data[:8])
        likely = data[4:6] in _VRS or (length <= 256 and length % 2 == 0)
        if likely and group in (0x0002, 0x0008) and element <= 0x0060:
            return True
    return False


def _not_ours(data: bytes, name: str) -> str:
    start = data.lstrip(b"\xef\xbb\xbf \r\n\t")[:64]
    found, mend = "", "Send a PNG, JPEG, TIFF, DICOM or NIfTI file, or a zip of them"
    for magic, what, help in _OTHERS:
        if data.startswith(magic) or start.lower().startswith(magic.lower()):
            found, mend = what, help
            break
    else:
        brand = data[8:12]
        if data[4:8] == b"ftyp" and brand in (b"heic", b"heix", b"mif1", b"msf1", b"hevc"):
            found, mend = (
                "a HEIC photo",
                "Save it as JPEG (on an iPhone: Settings, Camera, Formats, Most Compatible)",
            )
        elif data[4:8] == b"ftyp" and brand in (b"avif", b"avis"):
            found, mend = "an AVIF picture", "Save it as PNG or JPEG"
        elif data[4:8] == b"ftyp":
            found, mend = "a video", "Send single frames as PNG or JPEG"
        elif data[:4] in (b"\x5c\x01\x00\x00", b"\x00\x00\x01\x5c"):
            found = "an Analyze or NIfTI header whose pixels are in another file"
            mend = "Save header and pixels together as .nii or .nii.gz"
        elif not data.strip(b"\x00"):
            found, mend = "nothing but zeros", "It was probably not fully copied; send it again"
        elif all(32 <= value < 127 or value in b"\r\n\t" for value in data[:256]):
            found = "plain text"
    what = f"look like {found}" if found else "belong to no kind of picture that is read here"
    return f"{name} cannot be read: its first bytes ({first_bytes(data)}) {what}. {mend}."
