"""What commands on a person's own files share: answers given as QUESTION=CHOICE, and the files of a folder, their sizes checked first."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from core.images.limits import Limits


def given_answers(pairs: Iterable[str], example: str) -> dict[str, str]:
    """Question -> choice of `QUESTION=CHOICE` pairs.

    Raises:
        ValueError: A pair has no `=`; the message shows the example.
    """
    answers = {}
    for pair in pairs:
        key, mark, value = pair.partition("=")
        if not mark:
            raise ValueError(f"--answer {pair!r} needs the form QUESTION=CHOICE, such as {example}.")
        answers[key] = value
    return answers


def given_files(
    path: Path | None, limits: Limits, empty: str, endings: Sequence[str] = ()
) -> Iterator[tuple[str, bytes]]:
    """(name, bytes) of a file, or of the files in a folder with their names in it; sizes are checked before anything is read.

    Args:
        path: A file or folder; None yields nothing.
        limits: Of single files and of all together.
        empty: What is said of a folder without a fitting file, after its name.
        endings: Endings in lower case that count in a folder; all but hidden files when empty.

    Raises:
        FileNotFoundError: There is nothing at the path.
        BadImage: The folder holds nothing that fits, or more than the limits allow.
    """
    from core.images import BadImage
    from core.images.limits import Budget

    if path is None:
        return
    if not path.exists():
        raise FileNotFoundError(f"There is no file or folder {path.name}. Check its name and where it lies.")
    single = path.is_file()
    found = [path] if single else sorted(p for p in path.rglob("*") if p.is_file() and _fits(p, endings))
    if not found:
        raise BadImage(f"The folder {path.name} {empty}")
    budget = Budget(limits)
    for p in found:
        budget.take_file(p.name, p.stat().st_size)
    for p in found:
        yield (p.name if single else p.relative_to(path).as_posix()), p.read_bytes()


def _fits(path: Path, endings: Sequence[str]) -> bool:
    return not path.name.startswith(".") and (not endings or path.suffix.lower().lstrip(".") in endings)
