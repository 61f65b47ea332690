"""Which axis holds the images and which the classes, and what the numbers of labels mean: from arrays of any layout to single images.

An image here is values `(K, *)`, or `(*)` where one number a pixel speaks of the foreground, with labels `(*)`. What only the person can know
comes back as a `Question`. Units are settled in `margin_own_values`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

import numpy as np

from core.images.errors import BadImage
from core.images.maps_names import counted, listed
from core.images.maps_values import Choice, Question, answer_of
from core.lab.margin_own_files import Block

MOST_CLASSES = 1_000


@dataclass(frozen=True, eq=False)
class Item:
    """One image, or rows that belong together.

    Attributes:
        name: Its name.
        values: `(K, *)`, or `(*)` when `binary`.
        labels: `(*)`, of the file's own type until `settled_labels`, then int64.
        ignore: `(*)` bool, True leaves a pixel out; None counts all.
        binary: One value a pixel, for class 1 of 2.
        rows: The pixels are rows of a table, not a picture.
        spacing: Size of a pixel along the axes of the labels, in mm, or None.
    """

    name: str
    values: np.ndarray = field(repr=False)
    labels: np.ndarray = field(repr=False)
    ignore: np.ndarray | None = field(repr=False, default=None)
    binary: bool = False
    rows: bool = False
    spacing: tuple[float, ...] | None = None

    @property
    def classes(self) -> int:
        """K."""
        return 2 if self.binary else len(self.values)


def split_images(block: Block, notes: list[str]) -> list[Item]:
    """Take a block apart into images.

    Args:
        block: Values with labels of any layout.
        notes: Gets a sentence where a layout had to be recognised.

    Raises:
        BadImage: There are no labels, or the shapes do not belong together; the sentence gives both.
    """
    v, y = block.values, block.labels
    if y is None:
        raise BadImage(
            f"{block.name} has values {_shape(v)} and no labels. Without the truth nobody can say whether a probability is right: add an array "
            "“labels”, or a file of labels with the same name."
        )
    if v.dtype.kind not in "buif" or y.dtype.kind not in "buif":
        raise BadImage(f"{block.name} holds {v.dtype} values and {y.dtype} labels; both must be numbers.")
    if v.size == 0:
        raise BadImage(f"{block.name} is empty: its values have the shape {_shape(v)}.")
    if (
        not block.single
        and y.ndim >= 2
        and y.shape[1] == 1
        and v.ndim == y.ndim
        and (y.shape != v.shape or y.ndim == 2)
    ):
        y = y[:, 0]
    axis, many = _axes(v, y, block)
    if axis is not None and y.shape == v.shape:  # one-hot labels
        y = y.argmax(axis)
        notes.append(
            f"The labels of {block.name} were one of K for each pixel (one-hot) and were turned to class numbers."
        )
    if axis is not None:
        home = 1 if many else 0
        if axis != home:
            notes.append(f"{block.name}: the classes were found along the axis {axis + 1} of {_shape(v)}.")
        v = np.moveaxis(v, axis, home)
        k = v.shape[home]
        if k > MOST_CLASSES:
            raise BadImage(
                f"{block.name} has {k:,} classes; at most {MOST_CLASSES:,} are read (limit on classes)."
            )
        if k == 1:
            v, axis = np.take(v, 0, axis=home), None
    ignore = block.ignore
    if ignore is not None and ignore.shape != y.shape:
        raise BadImage(
            f"The array “ignore” of {block.name} has the shape {_shape(ignore)} and the labels {_shape(y)}; they must be the same."
        )
    binary = axis is None
    rows = y.ndim == 1
    if rows or not many:
        values = v.T if rows and many and not binary else v
        return [
            Item(block.name, values, y, None if ignore is None else ignore != 0, binary, rows, block.spacing)
        ]
    called = block.names
    if called is not None and len(called) != len(y):
        raise BadImage(f"{block.name} has {len(called)} names and {len(y)} images; give one name for each.")
    return [
        Item(
            called[i] if called is not None else f"{block.name} {i:04d}", v[i], y[i], None if ignore is None else ignore[i] != 0, binary,
            False, block.spacing,
        )
        for i in range(len(y))
    ]  # fmt: skip


def _axes(v: np.ndarray, y: np.ndarray, block: Block) -> tuple[int | None, bool]:
    """(axis of the classes or None, whether the first axis of the labels holds images or rows)."""
    if y.shape == v.shape:
        hot = 0 if block.single else 1
        if v.ndim > hot and _one_hot(y, hot):
            return hot, not block.single
        return None, not block.single and v.ndim != 2
    if v.ndim == y.ndim + 1:
        if block.single:
            if v.shape[1:] == y.shape:
                return 0, False
        elif v.shape[:1] + v.shape[2:] == y.shape:
            return 1, True
        elif v.shape[1:] == y.shape:
            return 0, False
        if v.shape[:-1] == y.shape:
            return v.ndim - 1, not block.single and y.ndim != 2
    turned = " One of them seems to be turned by 90°." if sorted(v.shape[-2:]) == sorted(y.shape[-2:]) else ""
    raise BadImage(
        f"{block.name} has values {_shape(v)} and labels {_shape(y)}, which do not belong together.{turned} Values are (N, K, H, W) with "
        f"labels (N, H, W), or "
        "(N, K) with labels (N); for one map of the foreground both have one shape. Nothing is stretched here."
    )


def _one_hot(y: np.ndarray, axis: int) -> bool:
    if y.shape[axis] < 2 or y.ndim < 2:
        return False
    return bool(((y == 0) | (y == 1)).all()) and bool((y.sum(axis) == 1).all())


def settled_labels(
    items: Sequence[Item], answers: Mapping[str, str], used: dict[str, str], notes: list[str]
) -> list[Item] | Question:
    """Labels as int64 in 0 .. K-1, with what else they hold ignored or mapped.

    Raises:
        BadImage: Labels are fractions, or images differ in their number of classes.
    """
    counts = sorted({i.classes for i in items})
    if len(counts) > 1 or len({i.binary for i in items}) > 1:
        raise BadImage(
            f"The images have different numbers of classes ({', '.join(map(str, counts))}). Bring what one model said; all images need the "
            f"same classes."
        )
    k = counts[0]
    whole = [_whole(i) for i in items]
    seen: set[int] = set()
    for y, i in zip(whole, items, strict=True):
        inside = y if i.ignore is None else y[~i.ignore]
        seen |= set(np.unique(inside).tolist())
    found = sorted(seen)
    odd = [v for v in found if not 0 <= v < k]
    if not odd:
        return _mapped(items, whole, {v: v for v in found})
    said = ", ".join(_label_words(v) for v in found[:8]) + (" …" if len(found) > 8 else "")
    if k == 2 and len(found) == 2 and MISSING not in found:
        notes.append(f"The labels are {said}; {found[1]} was taken as class 1 and {found[0]} as class 0.")
        return _mapped(items, whole, {found[0]: 0, found[1]: 1})
    choices = []
    if MISSING not in found and min(found) == 1 and max(found) == k:
        choices.append(Choice("shift", "They start at 1: subtract 1"))
    if (
        MISSING not in found
        and min(found) >= 0
        and max(found) == k
        and not items[0].binary
        and _below_one(items)
    ):
        choices.append(Choice("background", "Class 0 has no map of its own: give it what is left of 1"))
    if items[0].binary and MISSING not in found and 0 in found:
        choices.append(Choice("any", "Every value but 0 is class 1"))
        choices += [Choice(f"only {v}", f"Only {v} is class 1, all else class 0") for v in found if v > 0][
            :12
        ]
    if any(0 <= v < k for v in found):
        choices.append(
            Choice(
                "ignore",
                f"Leave {counted(_pixels(whole, odd), 'pixel')} with {listed([_label_words(v) for v in odd])} out",
            )
        )
    if not choices:
        raise BadImage(
            f"The labels are {said}, and none of them is one of the {k} classes (0 to {k - 1}). Write class numbers from 0 in the order of "
            f"the values."
        )
    ask = Question(
        "labels",
        f"The labels hold {said}, and the values have {k} classes, so labels go from 0 to {k - 1}. What shall be done?",
        tuple(choices),
    )
    answer = answer_of(answers, ask)
    if answer is None:
        return ask
    used["labels"] = answer
    notes.append(
        f"The labels hold {said}. As asked: {next(c.label for c in choices if c.value == answer).lower()}."
    )
    if answer == "shift":
        return _mapped(items, whole, {v: v - 1 for v in found})
    if answer == "background":
        items = [
            replace(
                i, values=np.concatenate([1 - i.values.sum(0, keepdims=True, dtype=np.float32), i.values])
            )
            for i in items
        ]
        return _mapped(items, whole, {v: v for v in found})
    if answer == "any":
        return _mapped(items, whole, {v: int(v != 0) for v in found})
    if answer.startswith("only "):
        return _mapped(items, whole, {v: int(v == int(answer[5:])) for v in found})
    return _mapped(items, whole, {v: v for v in found if v not in odd})


MISSING = -(2**31)
"""Stands for a label that is no number."""


def _label_words(value: int) -> str:
    return "missing ones (NaN)" if value == MISSING else str(value)


def _whole(item: Item) -> np.ndarray:
    y = item.labels
    if y.dtype.kind != "f":
        return y.astype(np.int64)
    y = np.where(np.isfinite(y), y, MISSING)
    if not bool((y == np.rint(y)).all()):
        part = float(y[y != np.rint(y)].flat[0])
        raise BadImage(
            f"The labels of {item.name} hold fractions such as {part:.4g}. Labels are class numbers 0, 1, 2 …; perhaps values and labels "
            f"were exchanged."
        )
    return y.astype(np.int64)


def _pixels(whole: Sequence[np.ndarray], odd: Sequence[int]) -> int:
    return sum(int(np.isin(y, odd).sum()) for y in whole)


def _below_one(items: Sequence[Item]) -> bool:
    return all(
        i.values.dtype.kind == "f"
        and float(np.nanmin(i.values)) >= -1e-6
        and float(np.nanmax(i.values.sum(0))) <= 1.01
        for i in items
    )


def _mapped(items: Sequence[Item], whole: Sequence[np.ndarray], table: Mapping[int, int]) -> list[Item]:
    """Labels looked up in a table; what it lacks is ignored."""
    keys = np.array(sorted(table), np.int64)
    out = []
    for i, y in zip(items, whole, strict=True):
        at = np.searchsorted(keys, y).clip(0, max(len(keys) - 1, 0))
        known = keys[at] == y
        ignore = i.ignore if bool(known.all()) else (~known if i.ignore is None else i.ignore | ~known)
        labels = np.where(known, np.array([table[int(v)] for v in keys], np.int64)[at], 0)
        out.append(replace(i, labels=labels, ignore=ignore))
    return out


def _shape(array: np.ndarray) -> str:
    return "(" + ", ".join(map(str, array.shape)) + ")"
