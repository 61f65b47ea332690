"""A person's own logits or probabilities with their labels, checked and in one form: `read_values` for uploads, `values_from_arrays` for arrays.

Everything that was found is said in words; what only the person can know comes back as a `Question` with its fixes, one at a time, and nothing is
measured before it is answered. `find_values` unpacks, `settle` judges; a page unpacks once and settles again at every answer. `margin_own_measure`
measures.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np

from core.images.errors import BadImage
from core.images.limits import Limits
from core.images.maps_names import counted, listed
from core.images.maps_values import Choice, Question
from core.lab.margin_own_axes import Item, settled_labels, split_images
from core.lab.margin_own_columns import rows_of
from core.lab.margin_own_files import OWN_LIMITS, Block, File, Found, find_values
from core.lab.margin_own_table import Table
from core.lab.margin_own_values import as_classes, settled_missing, settled_scale, span_of

__all__ = ["Choice", "Found", "Own", "Question", "find_values", "read_values", "settle", "values_from_arrays"]

CHUNK = 1 << 21
"""Values (pixels times classes) that are looked at in double precision at a time."""


@dataclass(frozen=True, eq=False)
class Own:
    """What one model said of N images (or of the rows of tables), ready to be measured once no question is open.

    Attributes:
        items: Images; empty while a question is open.
        scale: How values are read, one of `core.lab.margin_own_values.SCALES`; "" while a question is open.
        classes: Names of the K classes.
        notes: What was found and done, in plain sentences.
        questions: What must be settled first: none or one.
        answers: How the files were read: question -> answer, given or plain from the files.
        problems: One sentence for each file that could not be read.
    """

    items: tuple[Item, ...] = field(repr=False)
    scale: str
    classes: tuple[str, ...]
    notes: tuple[str, ...]
    questions: tuple[Question, ...] = ()
    answers: dict[str, str] = field(default_factory=dict)
    problems: tuple[str, ...] = ()

    def __len__(self) -> int:
        return len(self.items)

    @property
    def ready(self) -> bool:
        """Whether nothing is left to ask."""
        return bool(self.items) and not self.questions

    @property
    def of(self) -> str:
        """What the parts of an image hold: "logits" or "probabilities"."""
        return "logits" if self.scale == "logits" else "probabilities"

    @property
    def rows(self) -> bool:
        """Whether the pixels are rows of tables."""
        return self.items[0].rows

    @property
    def pixels(self) -> int:
        """Pixels that count."""
        return sum(i.labels.size - (0 if i.ignore is None else int(i.ignore.sum())) for i in self.items)

    def parts(self, index: int) -> Iterator[tuple[np.ndarray, np.ndarray]]:
        """Counted pixels of an image, a part at a time: `(K, P)` float64 in the unit `of`, and labels `(P,)`."""
        item = self.items[index]
        values = item.values.reshape(-1) if item.binary else item.values.reshape(len(item.values), -1)
        labels = item.labels.reshape(-1)
        keep = None if item.ignore is None else ~item.ignore.reshape(-1)
        step = max(1, CHUNK // item.classes)
        for at in range(0, labels.size, step):
            v, y = values[..., at : at + step], labels[at : at + step]
            if keep is not None:
                inside = keep[at : at + step]
                v, y = v[..., inside], y[inside]
            if y.size:
                yield as_classes(v, self.scale, item.binary), y

    def predicted(self, index: int) -> np.ndarray:
        """Class of the largest value at each pixel of an image, `(*)`; the first of equals. Ignored pixels may hold anything."""
        item = self.items[index]
        if item.binary:
            half = {"logits": 0.0, "percent": 50.0, "255": 127.5, "65535": 32767.5}.get(self.scale, 0.5)
            return (np.nan_to_num(item.values.astype(np.float64)) > half).astype(np.int64)
        return np.asarray(np.nan_to_num(item.values).argmax(0))


def read_values(
    files: Iterable[File],
    labels: Iterable[File] = (),
    answers: Mapping[str, str] | None = None,
    classes: Sequence[str] = (),
    limits: Limits = OWN_LIMITS,
) -> Own:
    """Read an upload; `find_values` and `settle` in one. Arguments and errors are theirs."""
    return settle(find_values(files, labels, limits), answers, classes)


def settle(found: Found, answers: Mapping[str, str] | None = None, classes: Sequence[str] = ()) -> Own:
    """Take apart, check and judge what was found.

    Args:
        found: From `find_values`.
        answers: Question -> chosen value, as far as the person has answered.
        classes: Names of the K classes; from the files, or numbers, when empty.

    Returns:
        `Own`; with an open question it has no items.

    Raises:
        BadImage: Nothing can be measured, or an answer fits no question.
    """
    given = dict(answers or {})
    notes = list(found.notes)
    used: dict[str, str] = {}
    blocks = list(found.blocks)
    for table in found.tables:
        rows = _blocks_of(table, given, used, notes)
        if isinstance(rows, Question):
            return _waiting(rows, notes, found)
        blocks += rows
    items: list[Item] = []
    refused: list[str] = []
    for block in blocks:
        try:
            items += split_images(block, notes)
        except BadImage as problem:
            if len(blocks) == 1:
                raise
            refused.append(str(problem))
    if not items:
        raise BadImage(refused[0])
    if len({i.rows for i in items}) > 1:
        raise BadImage("Some files hold pictures and some hold rows of a table. Drop one kind at a time.")
    labelled = settled_labels(items, given, used, notes)
    if isinstance(labelled, Question):
        return _waiting(labelled, notes, found)
    span = span_of(labelled)
    complete = settled_missing(labelled, span, given, used, notes)
    if isinstance(complete, Question):
        return _waiting(complete, notes, found)
    if len(complete) != len(labelled):
        span = span_of(complete)
    said = {b.said for b in blocks}
    scale = settled_scale(complete, span, said.pop() if len(said) == 1 else "", given, used, notes)
    if isinstance(scale, Question):
        return _waiting(scale, notes, found)
    if span.hard and scale != "logits":
        notes.append(
            "The values hold nothing but 0 and 1. That is a decision, not a probability: its ECE is the share of wrong pixels. Export what "
            "came before it."
        )
    k = complete[0].classes
    names = _class_names(k, classes, blocks, notes)
    own = Own(tuple(complete), scale, names, (), (), used, (*found.problems, *refused))
    if not own.pixels:
        raise BadImage(
            "Every pixel is left out, so there is nothing to measure. Check the labels and the array “ignore”."
        )
    return Own(
        own.items, scale, names, (_counted(own), *dict.fromkeys(notes), *_absent(own)), (), used, own.problems
    )


def _blocks_of(
    table: Table, answers: Mapping[str, str], used: dict[str, str], notes: list[str]
) -> list[Block] | Question:
    rows = rows_of(table, answers)
    if isinstance(rows, Question):
        return rows
    used |= {k: answers[k] for k in ("label", "positive") if k in answers}
    notes += rows.notes
    if rows.groups is None:
        return [Block(table.name, rows.scores, rows.labels, classes=rows.classes, said=rows.said)]
    order = {name: k for k, name in enumerate(dict.fromkeys(rows.groups))}
    at = np.array([order[g] for g in rows.groups])
    if len(order) == len(at):
        notes.append("Every row is an image of its own there, so the rows were taken together.")
        return [Block(table.name, rows.scores, rows.labels, classes=rows.classes, said=rows.said)]
    return [
        Block(name, rows.scores[at == k], rows.labels[at == k], classes=rows.classes, said=rows.said)
        for name, k in order.items()
    ]


def _class_names(k: int, asked: Sequence[str], blocks: Sequence[Block], notes: list[str]) -> tuple[str, ...]:
    if asked:
        if len(asked) != k or len(set(asked)) != k:
            raise BadImage(
                f"{len(asked)} names of classes were given and the values have {k} classes. Give one name for each, all different."
            )
        return tuple(map(str, asked))
    found = next((b.classes for b in blocks if b.classes), ())
    if found and (len(found) != k or len(set(found)) != k):
        notes.append(
            f"The file names {len(found)} classes and the values have {k}, so classes go by their numbers."
        )
    elif found:
        return tuple(found)
    return tuple(f"class {c}" for c in range(k))


def _counted(own: Own) -> str:
    k = len(own.classes)
    if own.rows:
        groups = f" in {counted(len(own), 'image')}" if len(own) > 1 else ""
        return f"Found: {own.pixels:,} rows{groups}, {k} classes."
    shapes = {i.labels.shape for i in own.items}
    size = " × ".join(map(str, next(iter(shapes)))) if len(shapes) == 1 else "different sizes"
    return f"Found: {counted(len(own), 'image')} ({size}), {own.pixels:,} pixels that count, {k} classes."


def _absent(own: Own) -> list[str]:
    seen = np.zeros(len(own.classes), bool)
    for i in own.items:
        y = i.labels if i.ignore is None else i.labels[~i.ignore]
        seen[np.unique(y)] = True
    absent = [c for c, there in zip(own.classes, seen, strict=True) if not there]
    if not seen[1:].any():
        return [
            "The truth is class 0 everywhere, so the scope “foreground” is empty and only all pixels can be counted."
        ]
    return [f"No label is {listed(absent)}; classwise ECE counts them all the same."] if absent else []


def _waiting(question: Question, notes: list[str], found: Found) -> Own:
    return Own((), "", (), tuple(dict.fromkeys(notes)), (question,), {}, found.problems)


def values_from_arrays(
    values: np.ndarray,
    labels: np.ndarray,
    of: str = "",
    names: Sequence[str] | None = None,
    classes: Sequence[str] = (),
    answers: Mapping[str, str] | None = None,
) -> Own:
    """The same checks for arrays that are in memory already.

    Args:
        values: `(N, K, *)`, `(N, K)`, or without K for one map of the foreground.
        labels: `(N, *)`.
        of: "logits", "probabilities", or "" to find out.
        names: N names, or None.
        classes: K names; numbers when empty.
        answers: As for `settle`.

    Raises:
        BadImage: As for `settle`.
    """
    block = Block(
        "the array",
        np.asarray(values),
        np.asarray(labels),
        names=None if names is None else tuple(names),
        said=of,
    )
    return settle(Found((block,), ()), answers, classes)
