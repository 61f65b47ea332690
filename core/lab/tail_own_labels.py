"""Labels and predictions to counts: what a label outside the classes means, what to do with NaN, and the confusion matrix itself.

What only the person can know comes back as a `Question`. Which classes there are is told in `tail_own_classes`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from core.images.errors import BadImage
from core.images.maps_names import counted, listed
from core.images.maps_values import Choice, Question, answer_of
from core.lab.tail_own_classes import Classes, whole_numbers
from core.lab.tail_own_table import Piece


def counted_matrix(
    pieces: Sequence[Piece],
    classes: Classes,
    answers: Mapping[str, str],
    used: dict[str, str],
    notes: list[str],
) -> np.ndarray | Question:
    """Count hard decisions.

    Args:
        pieces: Predictions of the same samples' kind (test or training).
        classes: K classes.
        answers: "nan" and "labels" are "leave out" or "shift".
        used: Gets the answers.
        notes: Gets what was done.

    Returns:
        `(K, K)` float64, rows predicted and columns true; or what must be asked first.

    Raises:
        BadImage: Lengths or shapes do not fit, or labels are no whole numbers.
    """
    names = classes.names
    total = np.zeros((len(names), len(names)))
    for piece in pieces:
        true, said = _numbers(piece, piece.labels, names), _decided(piece, names, notes)
        if len(true) != len(said):
            raise BadImage(
                f"{piece.name} has {len(true):,} true labels and {len(said):,} predictions; each sample needs one of both."
            )
        weight = np.ones(len(true)) if piece.weight is None else piece.weight
        if np.isnan(weight).any() or (weight < 0).any():
            raise BadImage(
                f"{piece.name} says how many samples a row stands for, and some of these numbers are missing or below 0."
            )
        kept = _without_nan(piece, true, said, answers, used, notes)
        if isinstance(kept, Question):
            return kept
        true, said, weight = true[kept], said[kept], weight[kept]
        mended = _inside(piece, true, said, classes, answers, used, notes)
        if isinstance(mended, Question):
            return mended
        i, j, keep = mended
        total += np.bincount(
            i[keep] * len(names) + j[keep], weights=weight[keep], minlength=len(names) ** 2
        ).reshape(len(names), len(names))
    return total


def _numbers(piece: Piece, values: np.ndarray | None, names: Sequence[str]) -> np.ndarray:
    """`(N,)` class numbers as float64, NaN where a label is missing."""
    assert values is not None
    if values.dtype != object:
        return whole_numbers(values, piece.name)
    of = {n: float(k) for k, n in enumerate(names)} | (
        {c: float(k) for k, c in enumerate(piece.classes)} if piece.classes else {}
    )
    unknown = sorted({str(w) for w in values if str(w) and str(w) not in of})
    if unknown:
        raise BadImage(
            f"The labels of {piece.name} hold {listed([f'“{w[:30]}”' for w in unknown])}, which is none of the classes ({listed(names, 6)})."
        )
    return np.array([of[str(w)] if str(w) else np.nan for w in values])


def _decided(piece: Piece, names: Sequence[str], notes: list[str]) -> np.ndarray:
    """`(N,)` predicted class numbers, NaN where the scores are no numbers."""
    if piece.scores is None:
        return _numbers(piece, piece.predicted, names)
    x = np.asarray(piece.scores)
    if x.dtype.kind not in "buif":
        raise BadImage(f"The scores of {piece.name} are {x.dtype} values; they must be numbers.")
    x = x.astype(np.float64)
    if x.ndim == 2 and x.shape[1] == 1:
        x = x[:, 0]
    if x.ndim == 1:
        low, high = (
            (float(f(x[~np.isnan(x)])) for f in (np.min, np.max)) if not np.isnan(x).all() else (0.0, 0.0)
        )
        if low >= 0 and high > 1:
            raise BadImage(
                f"{piece.name} has one score a sample, from {low:.4g} to {high:.4g}, which is neither a logit nor a probability of class 1. Bring "
                "the predicted labels, or one score a class."
            )
        cut = 0.0 if low < 0 else 0.5
        notes.append(
            f"{piece.name}: one score a sample was taken as that of class 1 of 2, predicted above {cut:g}."
        )
        return np.where(np.isnan(x), np.nan, (x > cut).astype(float))
    if x.ndim != 2:
        raise BadImage(
            f"The scores of {piece.name} have the shape {x.shape}; one row a sample and one column a class are needed, (N, K)."
        )
    bad = np.isnan(x).any(1)
    filled = np.where(bad[:, None], 0.0, x)
    ranked = np.partition(filled, -2, axis=1)
    ties = int(((ranked[:, -1] == ranked[:, -2]) & ~bad).sum())
    if ties:
        notes.append(
            f"{piece.name}: at {counted(ties, 'sample')} two classes share the highest score; the first of them was taken."
        )
    return np.where(bad, np.nan, filled.argmax(1))


def _without_nan(
    piece: Piece,
    true: np.ndarray,
    said: np.ndarray,
    answers: Mapping[str, str],
    used: dict[str, str],
    notes: list[str],
) -> np.ndarray | Question:
    bad = np.isnan(true) | np.isnan(said)
    if not bad.any():
        return ~bad
    if bad.all():
        raise BadImage(f"No sample of {piece.name} has both a label and a prediction that is a number.")
    row, n = int(np.flatnonzero(bad)[0]) + 1, int(bad.sum())
    what = "scores" if piece.scores is not None else "predictions"
    here = np.isnan(said)
    text = (
        f"The {what} of {int(here.sum()):,} of {len(bad):,} samples in {piece.name} are no numbers (NaN), first of sample {row}."
        if here.any()
        else f"{n:,} of {len(bad):,} samples in {piece.name} have no true label, first sample {row}."
    )
    ask = Question(
        "nan", f"{text} A classifier that gives NaN is broken there. Repair the export, or measure the rest.",
        (Choice("leave out", f"Leave {counted(n, 'sample')} out"),),
    )  # fmt: skip
    answer = answer_of(answers, ask)
    if answer is None:
        return ask
    used["nan"] = answer
    notes.append(f"{piece.name}: {counted(n, 'sample')} without a number left out, as asked.")
    return ~bad


def _inside(
    piece: Piece,
    true: np.ndarray,
    said: np.ndarray,
    classes: Classes,
    answers: Mapping[str, str],
    used: dict[str, str],
    notes: list[str],
) -> tuple[np.ndarray, np.ndarray, np.ndarray] | Question:
    """Predicted and true class in 0 .. K-1, and which samples count."""
    k, first = len(classes), classes.first
    whose = f" of {classes.by}" if classes.by and classes.by != piece.name else ""
    j, i = true.astype(np.int64), said.astype(np.int64)
    i, j = i - first, j - first
    outside = (j < 0) | (j >= k) | (i < 0) | (i >= k)
    if not outside.any():
        return i, j, ~outside
    odd = np.unique(np.concatenate([v[(v < 0) | (v >= k)] for v in (j, i)])) + first
    both = j if piece.scores is not None else np.concatenate([i, j])
    choices = [Choice("leave out", f"Leave {counted(int(outside.sum()), 'sample')} out")]
    if both.min() == 1 and both.max() == k:
        choices.insert(0, Choice("shift", "They start at 1: subtract 1"))
    row = int(np.flatnonzero(outside)[0])
    ask = Question(
        "labels",
        f"{piece.name} has labels outside the {k} classes{whose} ({first} to {k - 1 + first}): {listed([str(v) for v in odd])}, first at "
        f"sample {row + 1}. What shall be done?",
        tuple(choices),
    )
    answer = answer_of(answers, ask)
    if answer is None:
        return ask
    used["labels"] = answer
    if answer == "shift":
        notes.append("The labels start at 1; 1 was subtracted, as asked.")
        j = j - 1
        i = i if piece.scores is not None else i - 1
        outside[:] = False
    else:
        notes.append(
            f"{piece.name}: {counted(int(outside.sum()), 'sample')} with a label outside the classes left out, as asked."
        )
    if outside.all():
        raise BadImage(
            f"Every label of {piece.name} is outside the {k} classes ({first} to {k - 1 + first})."
        )
    return i, j, ~outside
