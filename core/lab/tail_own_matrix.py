"""A confusion matrix that a person brought: checked, and turned so that rows are predicted and columns true. Which axis is which is asked.

Counts, shares of each true class and shares of all samples are read; whether whole numbers that sum to 100 are per cent is asked; a matrix that
was divided along the predicted classes has lost its recalls and is refused.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

import numpy as np

from core.images.errors import BadImage
from core.images.maps_values import Choice, Question, answer_of
from core.lab.tail_own_table import Piece

ROUNDING = 0.02
"""Sums of shares may be off by so much, of 1: tables are rounded."""


@dataclass(frozen=True, eq=False)
class Turned:
    """A matrix with rows predicted and columns true.

    Attributes:
        matrix: Counts or shares.
        shares: How many samples stand behind it is not known.
        alike: Each column sums to one, so how frequent the classes are is not known either.
    """

    matrix: np.ndarray = field(repr=False)
    shares: bool = False
    alike: bool = False


def oriented(
    piece: Piece, answers: Mapping[str, str], used: dict[str, str], notes: list[str]
) -> Turned | Question:
    """Check and turn a matrix.

    Args:
        piece: With a matrix as it lies in the file.
        answers: "axis" is "rows" or "columns": where the true classes are; "unit" is "counts" or "percent", for whole numbers that could be both.
        used: Gets the answer.
        notes: Gets what was done.

    Raises:
        BadImage: It is no confusion matrix, or its recalls are lost.
    """
    matrix = _checked(piece)
    if np.array_equal(matrix, matrix.T):
        notes.append("The matrix equals its own transpose, so it does not matter which axis is the truth.")
        return _shares(matrix, piece, answers, used, notes)
    down, across = matrix.sum(0), matrix.sum(1)
    facts = f"The rows sum to {_few(across)} and the columns to {_few(down)}; along the true classes, the sums are the samples of each class."
    ask = Question(
        "axis",
        f"Where are the true classes in {piece.name}? {facts}",
        (
            Choice("rows", "Rows are true, columns are predicted (scikit-learn's way)"),
            Choice("columns", "Columns are true, rows are predicted"),
        ),
    )
    answer = answer_of(answers, ask)
    if answer is None:
        return ask
    used["axis"] = answer
    notes.append(f"As said, the {answer} are the true classes.")
    return _shares(matrix.T.copy() if answer == "rows" else matrix, piece, answers, used, notes)


def _few(sums: np.ndarray) -> str:
    shown = [f"{v:,.6g}" for v in sums[:6]]
    return ", ".join(shown) + (" …" if len(sums) > 6 else "")


def _checked(piece: Piece) -> np.ndarray:
    raw = np.asarray(piece.matrix)
    if raw.dtype.kind not in "buif":
        raise BadImage(f"The confusion matrix in {piece.name} holds {raw.dtype} values; it must be numbers.")
    matrix = raw.astype(np.float64)
    if matrix.ndim != 2 or matrix.shape[0] != matrix.shape[1]:
        raise BadImage(
            f"A confusion matrix is square, one row and one column a class; that of {piece.name} has the shape {matrix.shape}."
        )
    names = piece.classes if len(piece.classes) == len(matrix) else tuple(map(str, range(len(matrix))))
    for bad, what in ((~np.isfinite(matrix), "no number"), (matrix < 0, "a number below 0")):
        if bad.any():
            i, j = np.argwhere(bad)[0]
            value = "" if what == "no number" else f" ({matrix[i, j]:g})"
            raise BadImage(
                f"The confusion matrix in {piece.name} has {what}{value} in row {i + 1} ({names[i][:30]}), column {j + 1} ({names[j][:30]}). "
                "Its entries are numbers of samples."
            )
    return matrix


def _shares(
    matrix: np.ndarray, piece: Piece, answers: Mapping[str, str], used: dict[str, str], notes: list[str]
) -> Turned | Question:
    """Whether the entries are counts or shares; columns are true."""
    name, of = piece.name, "training samples" if piece.train else "test samples"
    if not matrix.sum():
        raise BadImage(f"The confusion matrix in {name} holds nothing but zeros.")
    down, across = matrix.sum(0), matrix.sum(1)
    if (matrix == np.rint(matrix)).all() and not _sums_to(down, 1):
        if len(matrix) < 2 or not (_sums_to(down, 100) or _sums_to(across, 100)):
            return Turned(matrix)
        axis = "true" if _sums_to(down, 100) else "predicted"
        ask = Question(
            "unit",
            f"Every {axis} class in {name} sums to about 100. Are its entries counts or per cent?",
            (Choice("counts", "Counts of samples"), Choice("percent", f"Per cent of each {axis} class")),
        )
        answer = answer_of(answers, ask)
        if answer is None:
            return ask
        used["unit"] = answer
        notes.append(f"As said, the entries are {'counts' if answer == 'counts' else 'per cent'}.")
        if answer == "counts":
            return Turned(matrix)
    for unit in (1.0, 100.0):
        if _sums_to(down, unit):
            notes.append(
                f"The entries are shares of each true class, so how many {of} there are is not known"
                + (
                    "."
                    if piece.train
                    else ": the overall accuracy counts all classes alike, and no interval is given."
                )
            )
            return Turned(matrix / unit, True, True)
        if abs(matrix.sum() / unit - 1) < ROUNDING:
            notes.append(
                f"The entries are shares of all {of}; how many there are is not known"
                + ("." if piece.train else ", so no interval is given.")
            )
            return Turned(matrix / unit, True)
        if _sums_to(across, unit):
            raise BadImage(
                f"The matrix in {name} was divided along the predicted classes: each of them sums to {unit:g}. Recalls cannot be rebuilt from "
                "that. Bring counts, or choose the other axis if that is the truth."
            )
    notes.append(
        f"The entries are no whole numbers; they were taken as weighted counts of {of}"
        + ("." if piece.train else ", so no interval is given.")
    )
    return Turned(matrix, True)


def _sums_to(sums: np.ndarray, unit: float) -> bool:
    """Whether every class that has anything sums to a unit."""
    there = sums[sums > 0]
    return bool((abs(there / unit - 1) < ROUNDING).all())
