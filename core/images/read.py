"""The one way from a file to a `Picture`: `read` for one file, `read_many` for an upload.

Finds out what each file is, hands it to its decoder, unpacks zips through `core.images.archive`, and turns
whatever goes wrong into one `BadImage` sentence. Decodes nothing itself.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from os import PathLike
from pathlib import Path

from core.images.errors import BadImage, first_bytes, tidy_name
from core.images.limits import LIMITS, Budget, Limits
from core.images.picture import Picture
from core.images.sniff import KINDS, sniff, wrong_name_note


def read(
    data: bytes | str | PathLike[str], name: str | None = None, limits: Limits = LIMITS
) -> list[Picture]:
    """Reads a PNG, JPEG, TIFF, DICOM or NIfTI file, or a zip of them.

    Args:
        data: The file's bytes, or a path to it.
        name: The name to show; the path's own when left out.
        limits: The most that may be asked for.

    Returns:
        One picture for a single file; for a zip one for each file in it that could be read (what could not is
        counted in their notes; `read_many` gives a sentence for each).

    Raises:
        BadImage: It cannot be read. One or two sentences: what, where, and how to mend it.
    """
    budget = Budget(limits)
    data, name = load(data, name, budget)
    budget.take_file(name, len(data))
    pictures, failures = _read_file(data, name, budget)
    if not pictures:
        if failures:
            raise BadImage(
                f"None of the {len(failures)} files in {name} could be read. The first: {failures[0]}"
            )
        raise BadImage(f"{name} is a zip without any file in it. Put pictures into it and send it again.")
    if failures:
        note = f"{len(failures)} of the {len(failures) + len(pictures)} files in {name} could not be read and were left out."
        pictures = [replace(picture, notes=(*picture.notes, note)) for picture in pictures]
    return pictures


def read_many(files: Iterable[tuple[str, bytes]], limits: Limits = LIMITS) -> tuple[list[Picture], list[str]]:
    """Reads an upload of several files; one bad file never stops the others.

    Args:
        files: (name, bytes) of each file; zips are opened.
        limits: The most that the whole upload may ask for.

    Returns:
        The pictures, and one sentence for each file (or file in a zip) that could not be read.
    """
    budget = Budget(limits)
    pictures: list[Picture] = []
    sentences: list[str] = []
    for raw_name, data in files:
        name = tidy_name(raw_name)
        try:
            budget.take_file(name, len(data))
            found, failures = _read_file(bytes(data), name, budget)
        except BadImage as error:
            found, failures = [], [str(error)]
        else:
            if not found and not failures:
                failures = [
                    f"{name} is a zip without any file in it. Put pictures into it and send it again."
                ]
        pictures += found
        sentences += failures
    return pictures, sentences


def load(data: bytes | str | PathLike[str], name: str | None, budget: Budget) -> tuple[bytes, str]:
    """Bytes and tidy name of `data`; a path's size is checked before it is opened.

    Raises:
        BadImage: No such file, a folder, or too large.
    """
    if isinstance(data, (bytes, bytearray, memoryview)):
        return bytes(data), tidy_name(name)
    path = Path(data)
    name = tidy_name(name or path.name)
    try:
        if path.is_dir():
            raise BadImage(f"{name} is a folder. Send the files in it, or a zip of them.")
        budget.check_file_size(name, path.stat().st_size)
        return path.read_bytes(), name
    except (OSError, ValueError) as error:
        if isinstance(error, BadImage):
            raise
        reason = (
            "there is no such file"
            if isinstance(error, FileNotFoundError)
            else "the system would not open it"
        )
        raise BadImage(f"{name} cannot be read: {reason}. Check its name and where it lies.") from None


def _read_file(data: bytes, name: str, budget: Budget) -> tuple[list[Picture], list[str]]:
    """Pictures of one file, and sentences on files of a zip that failed."""
    if sniff(data, name) != "zip":
        return [read_single(data, name, budget)], []
    from core.images.archive import open_zip

    pictures: list[Picture] = []
    failures: list[str] = []
    for inner_name, inner in open_zip(data, name, budget):
        try:
            if isinstance(inner, BadImage):
                raise inner
            pictures.append(read_single(inner, inner_name, budget))
        except BadImage as error:
            failures.append(str(error))
    return pictures, failures


def read_single(data: bytes, name: str, budget: Budget, labels: bool = False) -> Picture:
    """Decodes one file that is no zip.

    Args:
        data: The whole file.
        name: Its name, tidy.
        budget: Limits of this upload; gets back what a failed file had claimed.
        labels: True for masks.

    Raises:
        BadImage: It cannot be read.
    """
    kind = sniff(data, name)
    if kind == "zip":
        raise BadImage(
            f"{name} is an archive (zip) where one picture was expected. Unpack it and send what is inside."
        )
    before = budget.spent
    try:
        picture = _decode(data, name, kind, budget, labels)
    except BadImage:
        budget.spent = before
        raise
    except MemoryError:
        budget.spent = before
        raise BadImage(
            f"{name} needs more memory than this computer has free. Send a smaller picture."
        ) from None
    except Exception:
        # Whatever a decoder trips over, the person gets one sentence. The cause is not chained: a decoder's
        # message can quote header values, and those of a DICOM may name a patient.
        budget.spent = before
        raise BadImage(
            f"{name} begins like a {KINDS[kind]} file ({first_bytes(data)}), but the rest cannot be decoded: it is "
            "damaged or was cut short. Save, export or download it again."
        ) from None
    note = wrong_name_note(name, kind)
    return replace(picture, notes=(note, *picture.notes)) if note else picture


def _decode(data: bytes, name: str, kind: str, budget: Budget, labels: bool) -> Picture:
    if kind == "tiff":
        from core.images.tiff import read_tiff

        return read_tiff(data, name, budget, labels)
    if kind == "dicom":
        from core.images.dicom import read_dicom

        return read_dicom(data, name, budget)
    if kind in ("nifti", "nifti.gz"):
        from core.images.nifti import read_nifti

        return read_nifti(data, name, budget, packed=kind == "nifti.gz")
    from core.images.raster import read_raster

    return read_raster(data, name, kind, budget, labels)
