"""Zips: checked as a whole from their table of contents, then unpacked in memory, one file at a time.

Nothing is ever written to disk, so no name in a zip can reach a folder; names with `../` are refused all
the same, since an honest program writes none. Other archives are not opened. Pictures are decoded
elsewhere.
"""

from __future__ import annotations

import io
import re
import zipfile
import zlib
from collections.abc import Iterator

from core.images.errors import BadImage, size_in_words, tidy_inner_name
from core.images.limits import Budget

_ARCHIVES = (".zip", ".tar", ".tgz", ".tar.gz", ".7z", ".rar", ".bz2", ".xz")
# Zips by their first bytes, but documents by their nature: left out one by one, not a reason to refuse.
_DOCUMENTS = (
    ".npz",
    ".docx",
    ".xlsx",
    ".pptx",
    ".odt",
    ".ods",
    ".odp",
    ".epub",
    ".jar",
    ".key",
    ".numbers",
    ".pages",
)
_JUNK = re.compile(r"(^|/)(__MACOSX/|\.[^./]|Thumbs\.db$|desktop\.ini$|DICOMDIR$)", re.IGNORECASE)
_ENTRY = b"PK\x01\x02"


def open_zip(data: bytes, name: str, budget: Budget) -> Iterator[tuple[str, bytes | BadImage]]:
    """Checks a zip from its table of contents, then unpacks its files one by one.

    Args:
        data: The whole zip.
        name: Its name.
        budget: Limits of this upload; each file counts.

    Yields:
        ("archive.zip/folder/inner.png", bytes), with a `BadImage` in place of the bytes of a damaged file.
        Folders and hidden system files are passed over.

    Raises:
        BadImage: The zip is damaged, encrypted, nested, has a dangerous name in it, or breaks a limit. Nothing
            has been unpacked then.
    """
    budget.files = max(0, budget.files - 1)  # the zip itself does not count, its files do
    # Before zipfile builds an object for each entry: a table of contents can hold millions. Folders and hidden
    # system files are counted here, hence the room for them; the exact count follows.
    _check_count(data.count(_ENTRY), name, budget, room=4 * budget.limits.files + 100)
    try:
        archive = zipfile.ZipFile(io.BytesIO(data))
    except (zipfile.BadZipFile, NotImplementedError, ValueError, OverflowError, EOFError, OSError) as error:
        raise BadImage(
            f"{name} begins like a zip, but its table of contents cannot be read: it is damaged or was cut short "
            f"({len(data):,} bytes arrived). Pack or download it again."
        ) from error
    with archive:
        _check_names(archive.infolist(), name)
        entries = [
            entry for entry in archive.infolist() if not entry.is_dir() and not _JUNK.search(entry.filename)
        ]
        _check_count(len(entries), name, budget)
        _check_table(archive, entries, name, budget)
        for entry in entries:
            inner = tidy_inner_name(name, entry.filename)
            budget.take_file(inner, entry.file_size)
            try:
                yield inner, archive.read(entry)
            except (zipfile.BadZipFile, zlib.error, EOFError, OSError, ValueError, NotImplementedError):
                yield (
                    inner,
                    BadImage(
                        f"{inner} is damaged inside its zip (its checksum or length is wrong). Pack it again."
                    ),
                )


def _check_count(count: int, name: str, budget: Budget, room: int = 0) -> None:
    if budget.files + count > budget.limits.files + room:
        raise BadImage(
            f"{name} holds {count:,} files; one upload may hold at most {budget.limits.files:,} (limit on files). "
            "Pack fewer, or send them in several uploads."
        )


def _check_names(entries: list[zipfile.ZipInfo], name: str) -> None:
    for entry in entries:
        inner = _inner(entry)
        parts = entry.filename.replace("\\", "/").split("/")
        if ".." in parts:
            raise BadImage(
                f"{name} was refused: a name in it ({inner}) climbs out of its folder with “..”. "
                "Pack the files again with plain names."
            )
        if parts[0] == "" or re.match(r"^[A-Za-z]:", parts[0]):
            raise BadImage(
                f"{name} was refused: a name in it ({inner}) is absolute, as if it had a fixed place on a disk. "
                "Pack the files again with plain names."
            )


def _inner(entry: zipfile.ZipInfo) -> str:
    return tidy_inner_name("", entry.filename).removeprefix("the file/")


def _check_table(archive: zipfile.ZipFile, entries: list[zipfile.ZipInfo], name: str, budget: Budget) -> None:
    total = 0
    for entry in entries:
        if entry.flag_bits & 0x1:
            raise BadImage(
                f"{name} is encrypted, and no password is asked for here. Pack it again without a password."
            )
        if entry.compress_type not in (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED):
            raise BadImage(
                f"{name} is packed in a way that is not opened here. Pack it again as an ordinary zip (deflate)."
            )
        if entry.file_size > budget.limits.file_bytes:
            raise BadImage(
                f"{name} was refused: {_inner(entry)} in it would unpack to {size_in_words(entry.file_size)}; one file may "
                f"have at most {size_in_words(budget.limits.file_bytes)} (limit on bytes)."
            )
        total += entry.file_size
    if total > budget.limits.unpacked_bytes:
        raise BadImage(
            f"{name} has {size_in_words(sum(entry.compress_size for entry in entries))} but would unpack to "
            f"{size_in_words(total)}; at most {size_in_words(budget.limits.unpacked_bytes)} are unpacked "
            "(limit on unpacked bytes). Pack fewer files."
        )
    for entry in entries:
        if _nested(archive, entry):
            raise BadImage(
                f"{name} was refused: it holds another archive ({_inner(entry)}); "
                "at most one level is opened. Unpack the inner one and pack its files directly."
            )


def _nested(archive: zipfile.ZipFile, entry: zipfile.ZipInfo) -> bool:
    """True for an archive in the archive, by name or by its first four bytes (no more is unpacked)."""
    lower = entry.filename.lower()
    if lower.endswith(_ARCHIVES):
        return True
    if lower.endswith(_DOCUMENTS):
        return False
    try:
        with archive.open(entry) as stream:
            return stream.read(4) in (b"PK\x03\x04", b"PK\x05\x06")
    except (zipfile.BadZipFile, zlib.error, EOFError, OSError, ValueError, NotImplementedError):
        return False  # damaged: said when it is that file's turn
