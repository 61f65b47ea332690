"""What the reader says when it cannot use a file, and the words it says it with.

Every refusal in `core.images` is a :class:`BadImage` whose text is one or two plain sentences: what is
wrong, in which file, and how to mend it. This module holds those errors and the small helpers that keep a
file's name short and its first bytes readable. It reads nothing and knows no format.
"""

from __future__ import annotations

import re

MAX_NAME = 80
MAX_SENTENCE = 400


class BadImage(ValueError):
    """A file that cannot be used, in words a person can act on.

    The text never holds a value from a DICOM header that could name a patient, and stays under a few
    hundred characters.
    """

    def __init__(self, sentence: str) -> None:
        if len(sentence) > MAX_SENTENCE:
            sentence = sentence[: MAX_SENTENCE - 1] + "…"
        super().__init__(sentence)


class MaskSizeMismatch(BadImage):
    """A mask whose size is not its picture's. Nothing is stretched until a person says so.

    Attributes:
        found: (rows, columns) of the mask.
        wanted: (rows, columns) of the picture.
    """

    def __init__(self, sentence: str, found: tuple[int, int], wanted: tuple[int, int]) -> None:
        super().__init__(sentence)
        self.found = found
        self.wanted = wanted


def tidy_name(name: str | None) -> str:
    """A file's name fit for a sentence: no folders, no control characters, at most 80 characters.

    Args:
        name: The name as it came from a browser, a path or a zip; ``None`` for bytes without a name.

    Returns:
        The last part of the name, shortened in the middle when it is long; "the file" when there is none.
    """
    text = (name or "").replace("\\", "/").rstrip("/").rsplit("/", 1)[-1]
    return _printable(text) or "the file"


def tidy_inner_name(archive: str, inner: str) -> str:
    """The name of a file in a zip, as "archive.zip/folder/inner.png", shortened like `tidy_name`."""
    return f"{tidy_name(archive)}/{_printable(inner.replace(chr(92), '/'))}"


def _printable(text: str) -> str:
    text = re.sub(r"[^\w\s.,;()\[\]{}+=@#&'~!$%/^-]", "_", text, flags=re.UNICODE)
    text = re.sub(r"\s+", " ", text).strip()
    if len(text) > MAX_NAME:
        half = (MAX_NAME - 1) // 2
        text = f"{text[:half]}…{text[-half:]}"
    return text


def first_bytes(data: bytes, count: int = 8) -> str:
    """The first bytes of a file in hexadecimal, as "89 50 4E 47"."""
    return " ".join(f"{value:02X}" for value in data[:count])


def size_in_words(count: int) -> str:
    """A number of bytes as people say it: "3 bytes", "1.5 MB", "2.0 GB" (powers of 1024)."""
    if count < 1024:
        return f"{count} bytes"
    size = float(count)
    for unit in ("KB", "MB", "GB", "TB"):
        size /= 1024
        if size < 1024 or unit == "TB":
            break
    return f"{size:,.1f} {unit}"
