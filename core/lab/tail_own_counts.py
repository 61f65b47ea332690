"""How many training samples each class has: from the person, a file, or the training labels that were brought along."""

from __future__ import annotations

import re
from collections.abc import Sequence

import numpy as np

from core.images.errors import BadImage
from core.images.maps_names import listed
from core.lab.tail_own_table import Piece


def settled_counts(
    pieces: Sequence[Piece],
    asked: Sequence[float] | np.ndarray | None,
    train: np.ndarray | None,
    names: Sequence[str],
    notes: list[str],
) -> np.ndarray | None:
    """Counts in the order of the classes.

    Args:
        pieces: Everything that was found.
        asked: `(K,)` as the person wrote them, or None.
        train: `(K, K)` matrix of the training samples, columns true, or None.
        names: K classes.
        notes: Gets where the counts came from.

    Returns:
        `(K,)` float64, or None where nobody says.

    Raises:
        BadImage: Too many or too few, below 0, no whole numbers, or none above 0.
    """
    found = [p for p in pieces if p.counts is not None]
    seen = None if train is None else train.sum(0)
    if asked is not None:
        counts = _checked(np.asarray(asked, np.float64), "The counts that were given", names)
    elif len(found) > 1:
        raise BadImage(
            f"{listed([p.name for p in found])} all hold counts of training samples. Bring one of them."
        )
    elif found:
        counts = _checked(_in_order(found[0], names), f"The counts in {found[0].name}", names)
    elif seen is not None and seen.sum() and (seen == np.rint(seen)).all():
        notes.append(
            "The number of training samples of each class was counted from the training labels; Λ and the groups use it."
        )
        return np.asarray(seen)
    else:
        return None
    if seen is not None and seen.sum() and (seen > counts).any():
        k = int(np.flatnonzero(seen > counts)[0])
        notes.append(
            f"There are predictions on {seen[k]:,.0f} training samples of {names[k]}, and the counts name {counts[k]:,.0f}. The counts were "
            "used for Λ."
        )
    return counts


def _in_order(piece: Piece, names: Sequence[str]) -> np.ndarray:
    assert piece.counts is not None
    if not piece.classes or len(piece.counts) != len(piece.classes):
        return np.asarray(piece.counts, np.float64)
    table = dict(zip((c.lower() for c in piece.classes), piece.counts, strict=True))
    if len(table) != len(piece.classes):
        raise BadImage(f"{piece.name} names a class twice. Write one row a class.")
    wanted = [n.lower() for n in names]
    if set(wanted) <= set(table):
        return np.array([float(table[n]) for n in wanted])
    bare = [n.removeprefix("class ") for n in wanted]
    if set(bare) <= set(table):
        return np.array([float(table[n]) for n in bare])
    lacking = [n for n, low in zip(names, wanted, strict=True) if low not in table]
    raise BadImage(f"{piece.name} has no count for {listed(lacking)}. Write one row a class.")


def _checked(counts: np.ndarray, what: str, names: Sequence[str]) -> np.ndarray:
    if counts.ndim != 1 or len(counts) != len(names):
        raise BadImage(
            f"{what} are {counts.size} numbers, and there are {len(names)} classes. Give one number a class."
        )
    if not np.isfinite(counts).all():
        raise BadImage(f"{what} lack a number for {names[int(np.flatnonzero(~np.isfinite(counts))[0])]}.")
    if (counts < 0).any():
        k = int(np.flatnonzero(counts < 0)[0])
        raise BadImage(f"{what} say {counts[k]:g} for {names[k]}; a number of samples is not below 0.")
    if (counts != np.rint(counts)).any():
        k = int(np.flatnonzero(counts != np.rint(counts))[0])
        raise BadImage(f"{what} say {counts[k]:g} for {names[k]}; samples are counted in whole numbers.")
    if not counts.sum():
        raise BadImage(f"{what} are all 0, so no class was trained.")
    return counts


def parse_counts(text: str) -> np.ndarray | None:
    """Counts as a person writes them: `500, 120, 30`, divided by commas, semicolons, spaces or lines. None for nothing.

    Raises:
        BadImage: A part is no number; names it.
    """
    parts = [p for p in re.split(r"[\s,;]+", text.strip()) if p]
    if not parts:
        return None
    try:
        return np.array([float(p) for p in parts])
    except ValueError:
        bad = next(p for p in parts if not re.fullmatch(r"[-+]?\d*\.?\d+(e[-+]?\d+)?", p, re.I))
        raise BadImage(
            f"“{bad[:30]}” is no number of samples. Write one number a class, such as 500, 120, 30, without signs for thousands."
        ) from None
