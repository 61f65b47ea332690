"""A person's own classifier as one confusion matrix: `read_predictions` for uploads, `matrix_from_arrays` for arrays.

Everything that was found is said in words; what only the person can know (which axis is the truth, what a label outside the classes means) comes
back as a `Question` with its fixes, one at a time, and nothing is measured before it is answered. `tail_own_measure` measures.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np

from core.images.errors import BadImage
from core.images.maps_names import listed
from core.images.maps_values import Choice, Question
from core.lab.tail_own_classes import class_names
from core.lab.tail_own_counts import settled_counts
from core.lab.tail_own_files import MOST_CLASSES, File, FoundPredictions, Source, find_predictions, too_many
from core.lab.tail_own_labels import counted_matrix
from core.lab.tail_own_matrix import Turned, oriented
from core.lab.tail_own_pooled import one_classifier
from core.lab.tail_own_table import Piece, pieces_of

__all__ = [
    "Choice",
    "OwnMatrix",
    "Question",
    "find_predictions",
    "matrix_from_arrays",
    "read_predictions",
    "settle_matrix",
]


@dataclass(frozen=True, eq=False)
class OwnMatrix:
    """What one classifier did, ready to be measured once no question is open.

    Attributes:
        test: `(K, K)` float64, rows predicted, columns true; empty while a question is open. Counts, or shares where `shares`.
        train: The same on the training samples, or None.
        counts: `(K,)` training samples of each class, or None.
        classes: K names.
        shares: How many test samples stand behind `test` is not known: its entries are shares or weighted counts.
        alike: Each column of `test` sums to one, so how frequent the classes are is not known either, and all count alike.
        notes: What was found and done, in plain sentences.
        questions: What must be settled first: none or one.
        answers: How the files were read: question -> answer.
        problems: One sentence for each file that could not be read.
    """

    test: np.ndarray = field(repr=False)
    train: np.ndarray | None = field(repr=False)
    counts: np.ndarray | None = field(repr=False)
    classes: tuple[str, ...]
    shares: bool = False
    alike: bool = False
    notes: tuple[str, ...] = ()
    questions: tuple[Question, ...] = ()
    answers: dict[str, str] = field(default_factory=dict)
    problems: tuple[str, ...] = ()

    @property
    def ready(self) -> bool:
        """Whether nothing is left to ask."""
        return bool(self.test.size) and not self.questions


def read_predictions(
    files: Iterable[File],
    train: Iterable[File] = (),
    answers: Mapping[str, str] | None = None,
    classes: Sequence[str] = (),
    counts: Sequence[float] | np.ndarray | None = None,
) -> OwnMatrix:
    """Read an upload; `find_predictions` and `settle_matrix` in one. Arguments and errors are theirs."""
    return settle_matrix(find_predictions(files, train), answers, classes, counts)


def settle_matrix(
    found: FoundPredictions,
    answers: Mapping[str, str] | None = None,
    classes: Sequence[str] = (),
    counts: Sequence[float] | np.ndarray | None = None,
) -> OwnMatrix:
    """Check and count what was found.

    Args:
        found: From `find_predictions`.
        answers: Question -> chosen value, as far as the person has answered: "files", "label", "labels", "nan", "axis" or "unit".
        classes: K names; from the files, or numbers, when empty.
        counts: `(K,)` training samples of each class; from the files, or from the training labels, when None.

    Returns:
        `OwnMatrix`; with an open question its matrix is empty.

    Raises:
        BadImage: Nothing can be measured, or an answer fits no question.
    """
    given = dict(answers or {})
    used: dict[str, str] = {}
    notes = list(found.notes)
    pieces: list[Piece] = []
    for source in found.sources:
        some = _pieces(source, given, notes)
        if isinstance(some, Question):
            return _waiting(some, notes, found)
        pieces += some
    if "label" in given:
        used["label"] = given["label"]
    if not pieces:
        raise BadImage(
            f"{listed([s.name for s in found.sources])} holds one half of what is needed: true labels, and what the classifier said of the same "
            "samples. Put both together with numpy.savez(file, labels=…, logits=…)."
        )
    if not any(p for p in pieces if p.counts is None and not p.train):
        if all(p.counts is not None for p in pieces):
            raise BadImage(
                "There are counts of training samples and no predictions. Add true labels with predictions, or a confusion matrix."
            )
        raise BadImage(
            "All predictions are of the training samples. Add those of samples that the classifier had not seen."
        )
    one = one_classifier(pieces, given, used, notes)
    if isinstance(one, Question):
        return _waiting(one, notes, found)
    pieces = one
    known = class_names(pieces, classes, counts, notes)
    names = known.names
    if len(names) > MOST_CLASSES:
        raise BadImage(too_many(len(names)))
    if len(names) < 2:
        raise BadImage("There is only one class, so nothing can be confused with anything.")
    sides: dict[bool, Turned] = {}
    for train in (False, True):
        mine = [p for p in pieces if p.train == train and p.counts is None]
        if not mine:
            continue
        squares = [p for p in mine if p.matrix is not None]
        if squares and len(mine) > 1:
            raise BadImage(
                f"{listed([p.name for p in mine])} hold a confusion matrix and more. Bring one matrix, or predictions, not both."
            )
        if squares:
            turned = oriented(squares[0], given, used, notes)
            if isinstance(turned, Question):
                return _waiting(turned, notes, found)
            sides[train] = turned
        else:
            counts_here = counted_matrix(mine, known, given, used, notes)
            if isinstance(counts_here, Question):
                return _waiting(counts_here, notes, found)
            sides[train] = Turned(counts_here)
    test, shares = sides[False].matrix, sides[False].shares
    learned = sides[True].matrix if True in sides else None
    counted = None if True in sides and sides[True].shares else learned
    how_many = settled_counts(pieces, counts, counted, names, notes)
    if not test.sum():
        raise BadImage("The matrix holds no sample, so there is nothing to measure.")
    head = (
        _found(test, counted, how_many, names, shares),
        *dict.fromkeys(notes),
        *_absent(test, learned, names),
    )
    return OwnMatrix(
        test, learned, how_many, names, shares, sides[False].alike, head, (), used, found.problems
    )


def _pieces(source: Source, answers: Mapping[str, str], notes: list[str]) -> list[Piece] | Question:
    if source.table is not None:
        return pieces_of(source.table, source.train, answers, notes)
    a = source.arrays
    words = next((v for (role, _), v in a.items() if role == "classes"), None)
    classes = () if words is None else tuple(str(w) for w in np.asarray(words).reshape(-1))
    out = []
    for train in (False, True):
        labels = a.get(("labels", train))
        scores, said = a.get(("scores", train)), a.get(("predicted", train))
        if ("confusion", train) in a:
            out.append(Piece(source.name, train, matrix=a["confusion", train], classes=classes))
        elif labels is not None and (scores is not None or said is not None):
            if said is not None and scores is not None:
                notes.append(f"{source.name}: the predicted labels were taken, and the scores were not used.")
                scores = None
            out.append(
                Piece(source.name, train, _flat(labels, source.name), None if said is None else _flat(said, source.name), scores, classes=classes)
            )  # fmt: skip
        elif labels is not None or scores is not None or said is not None:
            lone = "labels" if labels is not None else "what the classifier said"
            of = " of the training samples" if train else ""
            notes.append(f"{source.name}: {lone}{of} without its counterpart was not used.")
    if ("counts", False) in a:
        out.append(
            Piece(
                source.name,
                counts=np.asarray(a["counts", False]).reshape(-1),
                classes=classes
                if ("counts" in {r for r, _ in a} and len(classes) == a["counts", False].size)
                else (),
            )
        )
    return out


def _flat(array: np.ndarray, name: str) -> np.ndarray:
    """Labels as `(N,)`, with one-hot rows turned to numbers and words kept as words."""
    if array.ndim == 2 and array.shape[1] > 1 and array.dtype.kind in "buif" and (array.sum(1) == 1).all():
        return array.argmax(1)
    if array.ndim > 1 and array.size != len(array):
        raise BadImage(
            f"{name} holds labels of the shape {array.shape}; one label a sample is needed, of shape (N,)."
        )
    flat = array.reshape(-1)
    return flat.astype(object) if flat.dtype.kind in "US" else flat


def _found(
    test: np.ndarray, train: np.ndarray | None, counts: np.ndarray | None, names: Sequence[str], shares: bool
) -> str:
    more = "" if train is None else f", and {train.sum():,.0f} training samples"
    known = ""
    if counts is not None and (train is None or counts.sum() != train.sum()):
        known = f" {counts.sum():,.0f} samples trained it."
    if shares:
        return f"Found: a confusion matrix of {len(names)} classes, as shares or weights{more}.{known}"
    return f"Found: {test.sum():,.0f} test samples of {len(names)} classes{more}.{known}"


def _absent(test: np.ndarray, train: np.ndarray | None, names: Sequence[str]) -> list[str]:
    said = []
    none = [n for n, there in zip(names, test.sum(0) > 0, strict=True) if not there]
    if none:
        many = "1 class" if len(none) == 1 else f"{len(none)} classes"
        said.append(
            f"{many} without a test sample: {listed(none)}. No recall can be given, so nothing of it counts in the worst class or in a mean."
        )
    if train is not None and (
        unseen := [n for n, there in zip(names, train.sum(0) > 0, strict=True) if not there]
    ):
        said.append(
            f"No training sample of {listed(unseen)}, so what survives of its training recall is not known."
        )
    return said


def _waiting(question: Question, notes: list[str], found: FoundPredictions) -> OwnMatrix:
    return OwnMatrix(
        np.zeros((0, 0)),
        None,
        None,
        (),
        False,
        False,
        tuple(dict.fromkeys(notes)),
        (question,),
        {},
        found.problems,
    )


def matrix_from_arrays(
    labels: np.ndarray,
    scores: np.ndarray | None = None,
    predicted: np.ndarray | None = None,
    train: tuple[np.ndarray, np.ndarray] | None = None,
    classes: Sequence[str] = (),
    counts: Sequence[float] | np.ndarray | None = None,
    answers: Mapping[str, str] | None = None,
) -> OwnMatrix:
    """The same checks for arrays that are in memory already.

    Args:
        labels: `(N,)` true classes.
        scores: `(N, K)` logits or probabilities, or None with `predicted`.
        predicted: `(N,)` predicted classes.
        train: `(labels, scores or predicted)` of the training samples.
        classes: K names; numbers when empty.
        counts: `(K,)` training samples.
        answers: As for `settle_matrix`.

    Raises:
        BadImage: As for `settle_matrix`.
    """
    if (scores is None) == (predicted is None):
        raise BadImage("Give either scores (N, K) or predicted labels (N,).")
    arrays = {("labels", False): np.asarray(labels)}
    arrays["scores" if scores is not None else "predicted", False] = np.asarray(
        scores if scores is not None else predicted
    )
    if train is not None:
        said = np.asarray(train[1])
        arrays["labels", True] = np.asarray(train[0])
        arrays["scores" if said.ndim == 2 else "predicted", True] = said
    return settle_matrix(FoundPredictions((Source("the arrays", None, arrays),)), answers, classes, counts)
