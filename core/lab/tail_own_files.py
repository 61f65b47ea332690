"""From a person's uploads to what a classifier said of its test samples: CSV, NPZ, NPY, and zips of them, each array by its name.

Limits and readers are those of `core.images` and of the margin page's uploads: zips are checked before they are unpacked, array headers before
arrays, and nothing is unpickled. A file that cannot be read becomes a sentence and the others go on. What the numbers mean is settled in `tail_own`.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass, field

import numpy as np

from core.images.archive import open_zip
from core.images.errors import BadImage, tidy_name
from core.images.limits import Budget
from core.images.maps_files import read_npy
from core.images.maps_names import listed
from core.images.pairs import bare_stem
from core.lab.margin_own_files import OWN_LIMITS
from core.lab.margin_own_table import Table, read_table

File = tuple[str, bytes]

ENDINGS = ("csv", "tsv", "npz", "npy", "zip")
"""Endings of files that may be dropped."""

MOST_CLASSES = 1_000
"""A matrix has as many cells as classes squared, and the server keeps it for each visitor."""


def too_many(classes: int) -> str:
    """The sentence that refuses more classes, and the way that is left."""
    return (
        f"There are {classes:,} classes; at most {MOST_CLASSES:,} are read here (limit on classes), because each visitor's matrix is kept in memory. "
        "If the classes are not numbered in a row from 0, number them so. Else count your matrix in a script and give it to "
        "core.car.spectrum.Spectrum.of, which takes more."
    )


WORDS = {
    "predicted": "predicted predictions prediction preds pred y_pred yhat y_hat predicted_labels predicted_label pred_labels said",
    "scores": "logits logit scores score probabilities probability probs prob softmax outputs output p",
    "confusion": "confusion confusion_matrix matrix cm conf_mat",
    "labels": "labels label y y_true targets target truth true gt ground_truth true_labels true_label actual",
    "counts": "counts count class_counts samples cls_num_list n_per_class frequencies",
    "classes": "classes class_names names",
}
"""Names of arrays in an NPZ by what they hold; `train_` before or `_train` behind says that they are of the training samples."""

ROLE = {word: role for role, words in WORDS.items() for word in words.split()}
_PART = re.compile(
    r"^(train(?:ing)?|test|val(?:id(?:ation)?)?)[-_ ](.+)$|^(.+)[-_ ](train(?:ing)?|test|val(?:id(?:ation)?)?)$"
)


@dataclass(frozen=True, eq=False)
class Source:
    """One table, one NPZ or one loose array.

    Attributes:
        name: What sentences call it.
        table: A CSV, or None.
        arrays: (role, of the training samples) -> array; empty for a CSV.
        train: The whole file was dropped as predictions on the training samples.
    """

    name: str
    table: Table | None = None
    arrays: dict[tuple[str, bool], np.ndarray] = field(default_factory=dict, repr=False)
    train: bool = False


@dataclass(frozen=True, eq=False)
class FoundPredictions:
    """What an upload holds.

    Attributes:
        sources: Everything that could be read.
        problems: One sentence for each file that could not.
        notes: What was found and done.
    """

    sources: tuple[Source, ...]
    problems: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()


def find_predictions(files: Iterable[File], train: Iterable[File] = ()) -> FoundPredictions:
    """Read an upload.

    Args:
        files: (name, bytes) of labels with logits or predictions, or of a confusion matrix; maybe of training counts.
        train: (name, bytes) of the same on the training samples.

    Raises:
        BadImage: Nothing in it could be read.
    """
    budget = Budget(OWN_LIMITS)
    sources: list[Source] = []
    problems: list[str] = []
    notes: list[str] = []
    for is_train, group in ((False, files), (True, train)):
        for name, data in group:
            try:
                _open(name.replace("\\", "/"), bytes(data), is_train, budget, sources, problems, notes)
            except BadImage as problem:
                problems.append(str(problem))
    if not sources:
        raise BadImage(
            problems[0]
            if problems
            else "No predictions were found. Drop a CSV or NPZ of true labels with logits or predicted labels, or a confusion matrix."
        )
    return FoundPredictions(tuple(sources), tuple(problems), tuple(dict.fromkeys(notes)))


def _open(
    name: str, data: bytes, train: bool, budget: Budget, sources: list[Source], problems: list[str], notes: list[str]
) -> None:  # fmt: skip
    """Read one file of the upload, or everything in it."""
    shown = tidy_name(name)
    budget.take_file(shown, len(data))
    if data[:4] not in (b"PK\x03\x04", b"PK\x05\x06"):
        sources.append(_single(shown, data, train, budget))
        return
    arrays: dict[str, np.ndarray] = {}
    for inner, content in open_zip(data, shown, budget):
        if isinstance(content, BadImage):
            problems.append(str(content))
            continue
        if shown.lower().endswith(".npz"):
            if content[:6] == b"\x93NUMPY":
                arrays[bare_stem(inner)] = read_npy(content, inner, budget)
            continue
        try:
            if content[:4] == b"PK\x03\x04" and inner.lower().endswith(".npz"):
                deeper = {
                    bare_stem(p): read_npy(c, p, budget)
                    for p, c in open_zip(content, tidy_name(inner), budget)
                    if isinstance(c, bytes)
                }
                sources.append(_bundle(tidy_name(inner), deeper, train, notes))
            elif inner.lower().endswith((".md", ".txt", ".json", ".pdf")):
                notes.append(f"Not read: {inner}.")
            else:
                sources.append(_single(tidy_name(inner), content, train, budget))
        except BadImage as problem:
            problems.append(str(problem))
    if shown.lower().endswith(".npz"):
        sources.append(_bundle(shown, arrays, train, notes))


def _single(name: str, data: bytes, train: bool, budget: Budget) -> Source:
    """A CSV or a loose array."""
    low = name.lower()
    if low.endswith((".csv", ".tsv")):
        return Source(name, read_table(name, data, budget), train=train)
    if low.endswith((".pkl", ".pickle", ".pt", ".pth")) or data[:2] == b"\x80\x04":
        raise BadImage(
            f"{name} is a pickle, which can run code, so it is not opened. Save the arrays with numpy.savez (NPZ)."
        )
    if data[:6] == b"\x93NUMPY":
        array = read_npy(data, name, budget)
        role, of_train = role_of_array(bare_stem(name))
        if role not in WORDS:
            if array.ndim != 2 or array.shape[0] != array.shape[1]:
                raise BadImage(
                    f"{name} is one array {array.shape}; alone it must be a square confusion matrix. Put labels and logits together with "
                    "numpy.savez(file, labels=…, logits=…)."
                )
            role = "confusion"
        return Source(name, None, {(role, of_train or train): array}, train)
    raise BadImage(
        f"{name} is neither CSV nor NPZ. Write a table with true labels and logits or predictions, or a confusion matrix."
    )


def role_of_array(word: str) -> tuple[str, bool]:
    """What a name says: the role ("" when unknown) and whether it is of the training samples."""
    low = word.lower().strip()
    if low in ROLE:
        return ROLE[low], False
    match = _PART.match(low)
    if not match:
        return "", False
    part, rest = (match[1], match[2]) if match[1] else (match[4], match[3])
    return ROLE.get(rest, ""), part.startswith("train")


def _bundle(name: str, arrays: dict[str, np.ndarray], train: bool, notes: list[str]) -> Source:
    """The arrays of one NPZ by their names."""
    got: dict[tuple[str, bool], np.ndarray] = {}
    idle = []
    for word, array in arrays.items():
        role, of_train = role_of_array(word)
        if role == "predicted" and array.ndim == 2 and array.shape[1] > 1:
            role = "scores"
        key = role, (of_train or train) and role not in ("classes", "counts")
        if not role or key in got:
            idle.append(f"{word} {array.shape}")
        else:
            got[key] = array
    kinds = {role for role, _ in got}
    if not kinds & {"confusion", "counts"} and not ("labels" in kinds and kinds & {"scores", "predicted"}):
        there = listed([f"{k} {a.shape}" for k, a in arrays.items()]) or "no array"
        raise BadImage(
            f"{name} holds {there}. Needed are “labels” with “logits” or “predicted”, or “confusion”: save it again with "
            "numpy.savez(file, labels=…, logits=…)."
        )
    if idle:
        notes.append(f"{name}: not used: {listed(idle)}.")
    return Source(name, None, got, train)
