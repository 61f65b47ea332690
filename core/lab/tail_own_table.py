"""What a CSV of a classifier is: predictions one row a sample, a confusion matrix, or how many training samples each class has.

Columns are told by their names, then by what they hold, else by asking. Scores are read by the margin page's reader (`margin_own_columns`);
nothing is judged here.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field, replace

import numpy as np

from core.images.errors import BadImage
from core.images.maps_names import listed
from core.images.maps_values import Choice, Question, answer_of
from core.lab.margin_own_columns import rows_of
from core.lab.margin_own_table import Table

_TRUE = re.compile(
    r"^(labels?|y|y[-_ ]?true|targets?|truth|true|gt|ground[-_ ]?truth|class|true[-_ ]?(class|labels?)|actual([-_ ]?(class|label))?|reference)$",
    re.I,
)
_SAID = re.compile(
    r"^(y[-_ ]?)?(pred|preds|predicted|predictions?)([-_ ]?(class|labels?))?$|^y[-_ ]?hat$|^said$|^output[-_ ]?class$", re.I
)  # fmt: skip
_COUNT = re.compile(
    r"^(n|counts?|number|samples|images|train(ing)?|train(ing)?[-_ ]?(counts?|samples|images|n)|frequency)$",
    re.I,
)
_CLASS = re.compile(r"^(class(es)?|label|name|category|class[-_ ]?(name|id|label))$", re.I)
_SPLIT = re.compile(r"^(split|part|subset|partition|set)$", re.I)
_ID = re.compile(
    r"^(images?|names?|files?|ids?|index|rows?|samples?|(image|sample|row|case)[-_ ]?(id|name|no)|file[-_ ]?name|unnamed.*)$",
    re.I,
)
TRAIN, TEST = {"train", "training"}, {"test", "val", "valid", "validation", "dev", "eval", "holdout"}


@dataclass(frozen=True, eq=False)
class Piece:
    """Predictions, a matrix or counts, as they were found.

    Attributes:
        name: The file's name.
        train: Of the training samples.
        labels: `(N,)` numbers or words, or None.
        predicted: `(N,)` numbers or words, or None.
        scores: `(N, K)` or `(N,)` for two classes, or None.
        weight: `(N,)` samples that a row stands for, or None for one.
        matrix: `(K, K)` as it lies in the file, or None.
        counts: `(K,)` training samples, or None.
        classes: Names in the order of scores, matrix or counts; may be empty.
    """

    name: str
    train: bool = False
    labels: np.ndarray | None = field(default=None, repr=False)
    predicted: np.ndarray | None = field(default=None, repr=False)
    scores: np.ndarray | None = field(default=None, repr=False)
    weight: np.ndarray | None = field(default=None, repr=False)
    matrix: np.ndarray | None = field(default=None, repr=False)
    counts: np.ndarray | None = field(default=None, repr=False)
    classes: tuple[str, ...] = ()


def pieces_of(
    table: Table, train: bool, answers: Mapping[str, str], notes: list[str]
) -> list[Piece] | Question:
    """Tell what a CSV holds.

    Args:
        table: From `read_table`.
        train: The file was dropped as predictions on the training samples.
        answers: Question -> answer: "label" names the column of the true class.
        notes: Gets a sentence on which column was taken as what.

    Returns:
        One piece, or two where a column says which rows are of the training samples, or what must be asked first.

    Raises:
        BadImage: A column is missing; the sentence says which there are and how to mend it.
    """
    columns = list(table.columns)
    said = [c for c in columns if _SAID.match(c) and (c in table.words or _whole(table.numbers[c]))]
    if not said:
        square = _matrix(table, train)
        if square is not None:
            return [square]
        if len(columns) == 2 and (counts := _counts(table)) is not None:
            notes.append(f"{table.name}: the number of training samples of {len(counts.classes)} classes.")
            return [counts]
    if not said:
        pair = [c for c in columns if not _ID.match(c) and (c in table.words or _whole(table.numbers[c]))]
        named = [c for c in pair if _TRUE.match(c)]
        if not table.header and len(columns) == len(pair) == 2:
            ask = Question(
                "label",
                f"Which column of {table.name} holds the true class?",
                tuple(Choice(c, c) for c in pair),
            )
            answer = answer_of(answers, ask)
            if answer is None:
                return ask
            named = [answer]
        rest = [c for c in columns if c not in named and not _ID.match(c) and not _SPLIT.match(c)]
        if len(named) == 1 and len(rest) == 1 and rest[0] in pair:
            said = rest
    split = next((c for c in columns if _SPLIT.match(c) and c in table.words), None)
    if split is not None:
        words = {w.lower() for w in table.words[split]}
        if not words <= TRAIN | TEST:
            notes.append(
                f"{table.name}: “{split}” holds other words than train and test, so it was not used."
            )
            split = None
    if said:
        whole = _predicted(table, said[0], split, train, answers, notes)
    else:
        slim = _without(table, split) if split else table
        rows = rows_of(slim, answers)
        if isinstance(rows, Question):
            return rows
        notes += [n for n in rows.notes if not n.startswith("Rows were put")]
        whole = Piece(table.name, train, rows.labels, scores=rows.scores, classes=rows.classes)
    if isinstance(whole, Question) or split is None:
        return whole if isinstance(whole, Question) else [whole]
    of_train = np.array([w.lower() in TRAIN for w in table.words[split]])
    notes.append(
        f"{table.name}: “{split}” says that {int(of_train.sum()):,} of {len(of_train):,} rows are of the training samples."
    )
    return [
        _rows(whole, keep, is_train)
        for keep, is_train in ((~of_train, False), (of_train, True))
        if keep.any()
    ]


def _predicted(
    table: Table, said: str, split: str | None, train: bool, answers: Mapping[str, str], notes: list[str]
) -> Piece | Question:
    rest = [c for c in table.columns if c not in (said, split)]
    named = [c for c in rest if _TRUE.match(c)]
    if not table.header and len(table.columns) == 2:  # asked before
        named = rest
    free = named or [
        c
        for c in rest
        if not _ID.match(c) and not _COUNT.match(c) and (c in table.words or _whole(table.numbers[c]))
    ]
    if not free:
        raise BadImage(
            f"{table.name} has predictions (“{said}”) and no column of true labels: its columns are {listed(table.columns, 8)}. Call the "
            "column of the true class “label”."
        )
    label = free[0]
    if len(free) > 1:
        ask = Question(
            "label", f"Which column of {table.name} holds the true class?", tuple(Choice(c, c) for c in free)
        )
        answer = answer_of(answers, ask)
        if answer is None:
            return ask
        label = answer
    times = next((c for c in rest if c != label and _COUNT.match(c) and c not in table.words), None)
    notes.append(
        f"{table.name}: {len(table.numbers[label]):,} rows; the true class is in “{label}”, the predicted one in “{said}”"
        + (f", and “{times}” says how many samples a row stands for." if times else ".")
    )
    idle = [c for c in rest if c not in (label, times)]
    if idle:
        notes.append(f"Not used: {listed([f'“{c}”' for c in idle], 6)}.")
    return Piece(
        table.name, train, _cells(table, label), _cells(table, said), weight=table.numbers[times] if times else None
    )  # fmt: skip


def _cells(table: Table, column: str) -> np.ndarray:
    """Words where a column holds words, else numbers."""
    return np.array(table.words[column], dtype=object) if column in table.words else table.numbers[column]


def _rows(piece: Piece, keep: np.ndarray, train: bool) -> Piece:
    labels, predicted, scores, weight = (
        None if v is None else v[keep] for v in (piece.labels, piece.predicted, piece.scores, piece.weight)
    )
    return replace(piece, train=train, labels=labels, predicted=predicted, scores=scores, weight=weight)


def _without(table: Table, column: str) -> Table:
    return replace(
        table, columns=tuple(c for c in table.columns if c != column),
        numbers={k: v for k, v in table.numbers.items() if k != column}, words={k: v for k, v in table.words.items() if k != column},
    )  # fmt: skip


def _whole(values: np.ndarray) -> bool:
    there = values[~np.isnan(values)]
    return bool((there == np.rint(there)).all())


def _matrix(table: Table, train: bool) -> Piece | None:
    """The table as a square of numbers, with the names around it; None when it is none."""
    columns = list(table.columns)
    numbers = np.stack([table.numbers[c] for c in columns], 1)
    rows, width = numbers.shape
    first = table.words.get(columns[0])
    if (
        rows == width and not table.header and np.isnan(numbers[0, 0]) and rows > 2
    ):  # numbers around it and an empty corner
        around = numbers[0, 1:]
        if (around == numbers[1:, 0]).all():
            return Piece(
                table.name, train, matrix=numbers[1:, 1:], classes=tuple(f"class {v:g}" for v in around)
            )
    if rows == width and not table.words:
        if table.header and any(_TRUE.match(c) for c in columns):
            return None
        return Piece(table.name, train, matrix=numbers, classes=tuple(columns) if table.header else ())
    if rows != width - 1 or set(table.words) - {columns[0]}:
        return None
    inner, names = numbers[:, 1:], [_bare(c) for c in columns[1:]]
    first = None if first is None else [_bare(c) for c in first]
    if first is None:
        in_order = bool(
            (numbers[:, 0] == np.arange(rows)).all() or (numbers[:, 0] == np.arange(1, rows + 1)).all()
        )
        if not in_order or any(re.search(r"logit|prob|^p[-_ .]?\d", c, re.I) for c in names):
            return None
    elif not table.header:
        names = list(first)
    elif [w.lower() for w in first] != [c.lower() for c in names]:
        if _TRUE.match(columns[0]) or len(set(first)) != len(first):
            return None
        if {w.lower() for w in first} == {c.lower() for c in names}:
            raise BadImage(
                f"{table.name} names the same classes along both sides in different orders. Write rows and columns in one order."
            )
    return Piece(table.name, train, matrix=inner, classes=tuple(names))


def _bare(name: str) -> str:
    """A class's name without a word for its side: `pred: cat` is `cat`."""
    return re.sub(r"^(true|actual|pred(icted)?)[-_: ]+", "", name, flags=re.I) or name


def _counts(table: Table) -> Piece | None:
    name = next((c for c in table.columns if _CLASS.match(c)), None)
    count = next((c for c in table.columns if _COUNT.match(c) and c not in table.words), None)
    if name is None or count is None:
        return None
    names = table.words.get(name) or [f"{v:g}" for v in table.numbers[name]]
    return Piece(table.name, counts=table.numbers[count], classes=tuple(names))
