"""Several files with predictions of test samples: parts of one classifier's predictions, or several classifiers? Only the person knows.

Files whose classes differ cannot be parts of one, nor can a confusion matrix and predictions; then one of them is chosen.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from core.images.errors import BadImage
from core.images.maps_names import counted, listed
from core.images.maps_values import Choice, Question, answer_of
from core.lab.tail_own_classes import scored_classes
from core.lab.tail_own_table import Piece

TOGETHER = "together"
MOST_FILES = 8
"""More files than these are no choice: they are parts of one, or a mistake."""


def one_classifier(
    pieces: Sequence[Piece], answers: Mapping[str, str], used: dict[str, str], notes: list[str]
) -> list[Piece] | Question:
    """The pieces that count, once it is known whether several files belong together.

    Args:
        pieces: Everything that was found.
        answers: "files" is "together" or a file's name.
        used: Gets the answer.
        notes: Gets what was left out.

    Returns:
        The pieces, or what must be asked first.

    Raises:
        BadImage: So many files that cannot belong together.
    """
    tested = [p for p in pieces if p.counts is None and not p.train]
    files = list(dict.fromkeys(p.name for p in tested))
    if len(files) < 2:
        return list(pieces)
    apart = _apart(tested)
    said = [f"{name} ({_holds([p for p in tested if p.name == name])})" for name in files]
    if len(files) > MOST_FILES:
        if not apart:
            notes.append(
                f"{len(files)} files were taken as parts of one classifier's predictions and counted together."
            )
            return list(pieces)
        raise BadImage(
            f"{len(files)} files hold predictions of test samples, and {apart}: {listed(said)}. Bring those of one classifier."
        )
    ask = Question(
        "files",
        f"{len(files)} files hold predictions of test samples: {listed(said, MOST_FILES)}. "
        + (f"They cannot be counted together: {apart}. Which one shall be measured?" if apart else "Are they parts of one classifier's predictions?"),
        (
            *(() if apart else (Choice(TOGETHER, "Parts of one: count them together"),)),
            *(Choice(name, f"Only {name}") for name in files),
        ),
    )  # fmt: skip
    answer = answer_of(answers, ask)
    if answer is None:
        return ask
    used["files"] = answer
    if answer == TOGETHER:
        notes.append(f"{counted(len(files), 'file')} counted together, as asked.")
        return list(pieces)
    notes.append(f"Only {answer} was measured, as asked.")
    return [p for p in pieces if p.counts is not None or p.train or p.name == answer]


def _apart(tested: Sequence[Piece]) -> str:
    """Why these cannot be one classifier's predictions; empty where they can."""
    if any(p.matrix is not None for p in tested):
        return "one is a confusion matrix"
    sizes = {scored_classes(p.scores) for p in tested if p.scores is not None}
    if len(sizes) > 1:
        return "they differ in their number of classes"
    if len({_worded(p) for p in tested}) > 1:
        return "some labels are words and some are numbers"
    return ""


def _worded(piece: Piece) -> bool:
    return any(v.dtype == object for v in (piece.labels, piece.predicted) if v is not None)


def _holds(mine: Sequence[Piece]) -> str:
    """`278 samples, scores of 3 classes` or `a matrix of 5 classes`."""
    square = next((p.matrix for p in mine if p.matrix is not None), None)
    if square is not None:
        return f"a matrix of {len(square)} classes"
    n = sum(len(p.labels) for p in mine if p.labels is not None)
    scores = next((p.scores for p in mine if p.scores is not None), None)
    return counted(n, "sample") + ("" if scores is None else f", scores of {scored_classes(scores)} classes")
