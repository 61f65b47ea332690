"""Which classes there are: by the scores, the matrix, the words, or the numbers of labels; numbers start at 0, or at 1 where nothing is 0."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from core.images.errors import BadImage
from core.images.maps_names import listed
from core.lab.tail_own_files import MOST_CLASSES, too_many
from core.lab.tail_own_table import Piece


@dataclass(frozen=True)
class Classes:
    """K names, the number that the first class has in labels that are numbers (0, or 1 where nothing is 0), and the file whose scores or matrix say
    how many there are.
    """

    names: tuple[str, ...]
    first: int = 0
    by: str = ""

    def __len__(self) -> int:
        return len(self.names)


LARGEST = 1e9
"""No class has a larger number."""


def class_names(
    pieces: Sequence[Piece],
    asked: Sequence[str],
    counts: Sequence[float] | np.ndarray | None,
    notes: list[str],
) -> Classes:
    """The K classes, in the order of scores, matrix or numbers; words are sorted, or in the order of the counts.

    Args:
        pieces: Everything that was found.
        asked: Names that the person gave; may be empty.
        counts: Counts that the person gave, which say how many classes there are; or None.
        notes: Gets what was concluded.

    Raises:
        BadImage: Files differ in their classes, or as many names as classes were not given.
    """
    mine = [p for p in pieces if p.counts is None]
    tables = [p for p in pieces if p.counts is not None]
    sizes = {len(np.atleast_1d(p.matrix)): p for p in mine if p.matrix is not None}
    sizes |= {scored_classes(p.scores): p for p in mine if p.scores is not None}
    if len(sizes) > 1:
        raise BadImage(
            f"The files differ in their number of classes: {', '.join(f'{sizes[k].name} has {k}' for k in sorted(sizes))}. Test and training "
            "samples need the same classes."
        )
    given = tuple(map(str, asked))
    if len(set(given)) != len(given):
        raise BadImage("Two classes have the same name. Give each its own.")
    called = next((p.classes for p in [*mine, *tables] if p.classes and _worded(p.classes)), ())
    if sizes:
        k, says = next(iter(sizes.items()))
        return Classes(_fitting(k, given, called, notes), by=says.name)
    words = [v for p in mine for v in (p.labels, p.predicted) if v is not None and v.dtype == object]
    if words:
        if len(words) != sum(v is not None for p in mine for v in (p.labels, p.predicted)):
            raise BadImage(_unlike(mine))
        found = sorted({str(w) for v in words for w in v if str(w)}, key=_natural)
        if given or (called and set(found) <= set(called)):
            names = given or called
            if unknown := [w for w in found if w not in set(names)]:
                raise BadImage(
                    f"The labels hold {listed([f'“{w[:30]}”' for w in unknown])}, which is none of the classes ({listed(names, 6)})."
                )
            return Classes(tuple(names))
        return Classes(tuple(found))
    numbers = np.concatenate(
        [whole_numbers(v, p.name) for p in mine for v in (p.labels, p.predicted) if v is not None]
    )
    inside = numbers[~np.isnan(numbers) & (numbers >= 0)]
    if not len(inside):
        raise BadImage("No label is a class number: all are below 0 or missing.")
    known = (
        len(given)
        or (0 if counts is None else len(counts))
        or max((len(_of(p.counts)) for p in tables), default=0)
    )
    if known and not given and inside.max() >= known + (inside.min() > 0):
        raise BadImage(
            f"The counts of training samples are {known} numbers, and there are at least {int(inside.max()) + int(inside.min() == 0)} classes: a "
            f"label is {inside.max():.0f}. Give one number a class."
        )
    if known:
        return Classes(_fitting(known, given, called, notes))
    first = 0 if inside.min() == 0 else 1
    k = int(inside.max()) + 1 - first
    if k > MOST_CLASSES:
        raise BadImage(too_many(k))
    if first:
        notes.append("No label is 0, so the classes were taken to be numbered from 1.")
    return Classes(tuple(f"class {c + first}" for c in range(k)), first)


def _unlike(pieces: Sequence[Piece]) -> str:
    """What is a word and what a number, with an example of each: often the wrong column was taken for the predictions."""
    kinds: dict[bool, str] = {}
    for p in pieces:
        for what, v in (("true labels", p.labels), ("predictions", p.predicted)):
            if v is not None and len(v):
                kinds.setdefault(v.dtype == object, f"the {what} of {p.name} are {{}} such as {v[0]}")
    worded, counted = kinds.get(True, "").format("words"), kinds.get(False, "").format("numbers")
    return (
        f"Some labels are words and some are numbers: {worded}, {counted}. Write true and predicted labels the same way, in columns called “label” "
        "and “predicted”, or give one column of scores a class."
    )


def _of(array: np.ndarray | None) -> np.ndarray:
    return np.zeros(0) if array is None else array


def scored_classes(scores: np.ndarray) -> int:
    """Classes of scores `(N, K)`; one column, or `(N,)`, is that of class 1 of 2."""
    return 2 if scores.ndim == 1 or (scores.ndim == 2 and scores.shape[1] == 1) else scores.shape[-1]


def _worded(names: Sequence[str]) -> bool:
    return not all(n.replace(".", "", 1).isdigit() for n in names)


def _fitting(k: int, given: tuple[str, ...], called: tuple[str, ...], notes: list[str]) -> tuple[str, ...]:
    if given and len(given) != k:
        raise BadImage(
            f"{len(given)} names of classes were given, and there are {k} classes. Give one for each."
        )
    if given:
        return given
    if called and (len(called) != k or len(set(called)) != k):
        notes.append(
            f"The file names {len(called)} classes and there are {k}, so classes go by their numbers."
        )
        called = ()
    return tuple(called) if called else tuple(f"class {c}" for c in range(k))


def _natural(word: str) -> tuple[Any, ...]:
    """Sorts `10` behind `9`."""
    return (0, float(word), "") if word.replace(".", "", 1).isdigit() else (1, 0.0, word.lower())


def whole_numbers(values: np.ndarray, name: str) -> np.ndarray:
    """Labels as `(N,)` float64 whole numbers, NaN where one is missing.

    Raises:
        BadImage: They are fractions, infinite, or no numbers.
    """
    if values.dtype.kind not in "buif":
        raise BadImage(
            f"The labels of {name} are {values.dtype} values; they must be whole numbers or words."
        )
    y = values.astype(np.float64).reshape(-1)
    there = y[~np.isnan(y)]
    if not (there == np.rint(there)).all() or np.isinf(there).any():
        part = float(there[(there != np.rint(there)) | np.isinf(there)][0])
        raise BadImage(
            f"The labels of {name} hold numbers such as {part:.4g}. Labels are class numbers 0, 1, 2 … or words; perhaps labels and scores were "
            "exchanged."
        )
    if there.size and float(abs(there).max()) > LARGEST:
        odd = float(there[abs(there).argmax()])
        raise BadImage(
            f"The labels of {name} hold the number {odd:.4g}, which is no class. Labels are class numbers 0, 1, 2 … or words."
        )
    return y
