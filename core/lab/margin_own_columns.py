"""Which column of a CSV is the label, which are scores, and which one says where a row belongs: by names, by numbers, else by asking.

One row is a sample or a pixel. Nothing is judged here: units and classes are settled in `margin_own_values`.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field

import numpy as np

from core.images.errors import BadImage
from core.images.maps_names import listed
from core.images.maps_values import Choice, Question, answer_of
from core.lab.margin_own_table import Table

_LABEL = re.compile(
    r"^(labels?|y|y[-_ ]?true|targets?|truth|gt|ground[-_ ]?truth|class|true[-_ ]?(class|label)|masks?)$",
    re.I,
)
_IMAGE = re.compile(
    r"^(images?|names?|cases?|files?|patients?|subjects?|slices?|samples?|rows?|index|id|(image|case|patient|subject|sample|row)[-_ ]?(id|name|no)|"
    r"file[-_ ]?name|unnamed.*|)$",
    re.I,
)
_GROUP = re.compile(
    r"^(images?|cases?|patients?|subjects?|slices?|file[-_ ]?name|(image|case|patient|subject)[-_ ]?(id|name|no))$",
    re.I,
)
_SCORE = re.compile(
    r"^(p|prob|probs|probability|probabilities|softmax|score|scores|logit|logits|output|pred|prediction)[-_ .(\[]?|"
    r"[-_ .](p|prob|probs|probability|softmax|score|logits?)$",
    re.I,
)
_UNIT = {
    "logits": re.compile(r"logit", re.I),
    "probabilities": re.compile(r"^p[-_ .]?\d*$|prob|softmax", re.I),
}
_INDEX = re.compile(r"(\d+)\D*$")


@dataclass(frozen=True, eq=False)
class Rows:
    """Scores and labels of a CSV.

    Attributes:
        scores: `(R, K)` float64, or `(R,)` for one score column.
        labels: `(R,)` float64 class numbers, NaN where the cell is empty.
        groups: R names of images, or None.
        classes: Names of the classes where the columns name them; may be empty.
        said: "logits", "probabilities" or "".
        notes: Which column was taken as what.
    """

    scores: np.ndarray = field(repr=False)
    labels: np.ndarray = field(repr=False)
    groups: tuple[str, ...] | None = field(repr=False)
    classes: tuple[str, ...]
    said: str
    notes: tuple[str, ...]


def rows_of(table: Table, answers: Mapping[str, str]) -> Rows | Question:
    """Tell label, scores and images apart.

    Args:
        table: From `read_table`.
        answers: Question -> answer: "label" names the label's column, "positive" the word that means foreground.

    Returns:
        The rows, or what must be asked first.

    Raises:
        BadImage: A column is missing, or a score is no number; the sentence says which, where, and how to mend it.
    """
    columns = list(table.columns)
    named = [c for c in columns if _LABEL.match(c)]
    label = named[0] if len(named) == 1 else None
    if label is None:
        whole = [c for c in columns if _whole(table, c)]
        asked = named or [c for c in whole if not _IMAGE.match(c)] or ([] if table.header else whole)
        if table.header and not named:
            asked = [c for c in asked if not _SCORE.search(c)]
        if not asked:
            raise BadImage(
                f"{table.name} has no column of labels: its columns are {listed(columns, 8)}. Call the column of the true class “label”; it holds "
                "whole numbers from 0, or the names of the score columns."
            )
        ask = Question(
            "label",
            f"Which column of {table.name} holds the true class?",
            tuple(Choice(c, c) for c in asked),
        )
        if len(asked) == 1:
            label = asked[0]
        else:
            label = answer_of(answers, ask)
            if label is None:
                return ask
    rest = [c for c in columns if c != label]
    scores = [c for c in rest if _SCORE.search(c)] if table.header else []
    scores = scores or [c for c in rest if not _IMAGE.match(c) and c not in table.words]
    if not scores:
        raise BadImage(
            f"{table.name} has a label ({label}) and no column of scores: the others are {listed(rest, 8)}. Add one column a class (p_0, p_1, …), or "
            "one called “score” for two classes."
        )
    for c in scores:
        _check_numbers(table, c)
    scores = _ordered(scores)
    groups = next((c for c in rest if c not in scores and _GROUP.match(c)), None)
    idle = [c for c in rest if c not in scores and c != groups]
    names = _class_names(scores)
    labels = _labels(table, label, scores, names, answers)
    if isinstance(labels, Question):
        return labels
    units = {u for u, word in _UNIT.items() if all(word.search(c) for c in scores)}
    notes = [
        f"{table.name}: {len(table.numbers[label]):,} rows; the label is in “{label}”, "
        + (
            f"the score of class 1 in “{scores[0]}”."
            if len(scores) == 1
            else f"the scores of {len(scores)} classes in {listed([f'“{c}”' for c in scores], 6)}."
        )
    ]
    if groups:
        notes.append(f"Rows were put together by “{groups}”.")
    if idle:
        notes.append(f"Not used: {listed([f'“{c}”' for c in idle], 6)}.")
    values = np.stack([table.numbers[c] for c in scores], 1)
    kept = None
    if groups:
        kept = tuple(table.words.get(groups) or [f"{v:g}" for v in table.numbers[groups]])
    return Rows(
        values[:, 0] if len(scores) == 1 else values, labels, kept, names, units.pop() if len(units) == 1 else "", tuple(notes)
    )  # fmt: skip


def _whole(table: Table, column: str) -> bool:
    if column in table.words:
        return True
    values = table.numbers[column]
    return bool((values == np.rint(values)).all())


def _check_numbers(table: Table, column: str) -> None:
    if column not in table.words:
        return
    cells = table.words[column]
    k = next(k for k, v in enumerate(table.numbers[column]) if v != v and cells[k])
    raise BadImage(
        f"Row {k + 1} of {table.name} (line {table.first_line + k}) holds “{cells[k][:30]}” in the column {column}, which is no number. "
        "Write scores as plain numbers."
    )


def _ordered(scores: list[str]) -> list[str]:
    """Columns by the number at their end, where all have one and they differ; else as they stand."""
    found = [_INDEX.search(c) for c in scores]
    keys = [int(m.group(1)) for m in found if m]
    return [c for _, c in sorted(zip(keys, scores, strict=True))] if len(set(keys)) == len(scores) else scores


def _class_names(scores: list[str]) -> tuple[str, ...]:
    if len(scores) == 1:
        return ()
    bare = [_SCORE.sub("", c).strip("-_ .)]") for c in scores]
    return (
        tuple(bare)
        if all(bare) and not any(b.isdigit() for b in bare) and len(set(bare)) == len(bare)
        else ()
    )


def _labels(
    table: Table, label: str, scores: list[str], names: tuple[str, ...], answers: Mapping[str, str]
) -> np.ndarray | Question:
    if label not in table.words:
        return table.numbers[label]
    cells = table.words[label]
    found = sorted({c for c in cells if c})
    if len(scores) == 1:
        if len(found) != 2:
            raise BadImage(
                f"The labels in “{label}” of {table.name} are {listed(found, 6)}. With one score column there are two classes; bring one column a "
                "class, or labels 0 and 1."
            )
        ask = Question(
            "positive",
            f"The labels in “{label}” are {found[0]} and {found[1]}. Which one is the score about?",
            tuple(Choice(f, f"A high score means {f}") for f in found),
        )
        positive = answer_of(answers, ask)
        if positive is None:
            return ask
        return np.array([float("nan") if not c else float(c == positive) for c in cells])
    of = {c.lower(): k for k, c in enumerate(scores)} | {c.lower(): k for k, c in enumerate(names)}
    unknown = [f for f in found if f.lower() not in of]
    if unknown:
        raise BadImage(
            f"The labels in “{label}” of {table.name} hold {listed([f'“{u[:30]}”' for u in unknown])}, and no score column has that name "
            f"({listed(scores, 6)}). Write class numbers from 0, or the columns' names."
        )
    return np.array([float(of[c.lower()]) if c else float("nan") for c in cells])
