"""From a person's uploads to logits or probabilities with their labels: NPZ, NPY, NIfTI, CSV, label pictures, and zips of them.

Arrays of one NPZ belong together by their names in it; loose files are paired by their own. Limits and readers are those of `core.images`: zips are
checked before they are unpacked, array headers before arrays, and nothing is unpickled. A file that cannot be read becomes a sentence and the others
go on. What the numbers mean is settled in `margin_own`.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field, replace
from pathlib import PurePath

import numpy as np

from core.images.archive import open_zip
from core.images.errors import BadImage, tidy_inner_name, tidy_name
from core.images.limits import Budget, Limits
from core.images.maps_files import read_npy
from core.images.maps_names import case_of, counted, listed, role_of, unit_of
from core.images.pairs import bare_stem
from core.images.read import read_single
from core.images.sniff import sniff
from core.lab.margin_own_nifti import read_classes
from core.lab.margin_own_table import Table, read_table

OWN_LIMITS = Limits(files=1000, unpacked_bytes=512 * 1024**2)
"""As for pictures, but every value is looked at in double precision, so less fits."""

File = tuple[str, bytes]

WORDS = {
    "values": {"logits": "logits", "logit": "logits", "probabilities": "probabilities", "probability": "probabilities", "probs": "probabilities",
               "prob": "probabilities", "softmax": "probabilities", "p": "probabilities", "scores": "", "score": "", "predictions": "", "preds": "",
               "outputs": "", "output": "", "maps": "", "map": ""},
    "labels": dict.fromkeys(("labels", "label", "targets", "target", "truth", "y", "y_true", "gt", "ground_truth", "masks", "mask", "seg",
                             "segmentation", "segmentations", "annotations"), ""),
    "ignore": dict.fromkeys(("ignore", "ignored"), ""),
    "names": dict.fromkeys(("names", "name", "cases", "ids"), ""),
    "classes": dict.fromkeys(("classes", "class_names"), ""),
}  # fmt: skip
"""Names of arrays in an NPZ, and the unit that a name tells."""

ENDINGS = ("npz", "npy", "csv", "tsv", "nii", "gz", "zip", "png", "tif", "tiff")
"""Endings of files that may be dropped; pictures hold labels only."""


@dataclass(frozen=True, eq=False)
class Block:
    """Values of one or more images with their labels, as they were found.

    Attributes:
        name: What sentences call it.
        values: Values with or without class and image axes.
        labels: Labels, or None where none were found.
        ignore: Pixels to leave out, or None.
        names: Names of the images, or None.
        classes: Names of the classes; may be empty.
        said: "logits", "probabilities" or "".
        single: The arrays are one image, without an axis of images.
        spacing: Size of a pixel in mm along the axes of the labels, or None.
    """

    name: str
    values: np.ndarray = field(repr=False)
    labels: np.ndarray | None = field(repr=False)
    ignore: np.ndarray | None = field(default=None, repr=False)
    names: tuple[str, ...] | None = None
    classes: tuple[str, ...] = ()
    said: str = ""
    single: bool = False
    spacing: tuple[float, ...] | None = None


@dataclass(frozen=True, eq=False)
class Found:
    """What an upload holds.

    Attributes:
        blocks: Arrays that belong together.
        tables: CSV files.
        problems: One sentence for each file that could not be read.
        notes: What was found and done.
    """

    blocks: tuple[Block, ...]
    tables: tuple[Table, ...]
    problems: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()


@dataclass(frozen=True, eq=False)
class _Piece:
    path: str
    role: str
    array: np.ndarray
    spacing: tuple[float, ...] | None = None


def find_values(files: Iterable[File], labels: Iterable[File] = (), limits: Limits = OWN_LIMITS) -> Found:
    """Read an upload.

    Args:
        files: (name, bytes) of what the model said, with labels in them or beside them.
        labels: (name, bytes) of labels that lie apart.
        limits: The most that the whole upload may ask for.

    Raises:
        BadImage: There is nothing in it that could be values with labels.
    """
    budget = Budget(limits)
    bundles: dict[str, dict[str, np.ndarray]] = {}
    loose: list[_Piece] = []
    tables: list[Table] = []
    problems: list[str] = []
    notes: list[str] = []
    for role, group in (("", files), ("labels", labels)):
        for raw_name, data in group:
            try:
                for bundle, path, content in _entries(raw_name.replace("\\", "/"), bytes(data), budget):
                    if isinstance(content, BadImage):
                        problems.append(str(content))
                        continue
                    try:
                        _sort(bundle, path, content, role, budget, bundles, loose, tables, notes)
                    except BadImage as problem:
                        problems.append(str(problem))
            except BadImage as problem:
                problems.append(str(problem))
    blocks: list[Block] = []
    for name, arrays in bundles.items():
        try:
            blocks.append(_bundled(name, arrays, loose, notes))
        except BadImage as problem:
            problems.append(str(problem))
    blocks += _paired(loose, notes)
    if not blocks and not tables:
        raise BadImage(
            problems[0]
            if problems
            else "No values were found. Drop an NPZ with logits and labels, NIfTI volumes, or a CSV."
        )
    return Found(tuple(blocks), tuple(tables), tuple(problems), tuple(dict.fromkeys(notes)))


def _entries(name: str, data: bytes, budget: Budget) -> Iterator[tuple[str, str, bytes | BadImage]]:
    """(the NPZ that an array lies in, path, content) of the file itself or of what is in it."""
    top = tidy_name(name)
    budget.take_file(top, len(data))
    if data[:4] not in (b"PK\x03\x04", b"PK\x05\x06"):
        yield "", "/".join((*PurePath(name).parts[:-1], top)), data
        return
    npz = top.lower().endswith(".npz")
    for inner, content in open_zip(data, top, budget):
        inner = inner.removeprefix(top + "/")
        if isinstance(content, bytes) and content[:4] == b"PK\x03\x04" and inner.lower().endswith(".npz"):
            for _, deeper, array in _entries(inner, content, budget):
                yield inner, deeper, array
        else:
            yield (top if npz else ""), inner, content


def _sort(
    bundle: str, path: str, content: bytes, role: str, budget: Budget, bundles: dict[str, dict[str, np.ndarray]], loose: list[_Piece],
    tables: list[Table], notes: list[str],
) -> None:  # fmt: skip
    """Read one file and put it where it belongs."""
    shown = tidy_inner_name("", path).removeprefix("the file/")
    low = path.lower()
    if low.endswith((".csv", ".tsv")):
        tables.append(read_table(shown, content, budget))
    elif low.endswith((".md", ".txt", ".json", ".xml", ".pdf")):
        notes.append(f"Not read: {shown}.")
    elif low.endswith((".pkl", ".pickle", ".pt", ".pth")) or content[:2] == b"\x80\x04":
        raise BadImage(
            f"{shown} is a pickle, which can run code, so it is not opened. Save the arrays with numpy.savez (NPZ)."
        )
    elif content[:6] == b"\x93NUMPY":
        array = read_npy(content, shown, budget)
        if bundle and role == "labels":
            if array.dtype.kind in "bui":
                loose.append(_Piece(bundle, role, array))
        elif bundle:
            bundles.setdefault(bundle, {})[bare_stem(path)] = array
        elif array.dtype.kind in "US":
            notes.append(f"Not read: {shown}, which holds text.")
        else:
            loose.append(_Piece(path, role or _role(path, array), array))
    else:
        kind = sniff(content, shown)
        if kind in ("nifti", "nifti.gz"):
            volume, spacing, said = read_classes(content, shown, budget, kind == "nifti.gz")
            notes.extend(said)
            loose.append(_Piece(path, role or _role(path, volume), volume, spacing))
            return
        if (role or _role(path, None)) != "labels":
            raise BadImage(
                f"{shown} is a picture, and pictures can hold labels only. Bring the values as NPZ, NPY, NIfTI or CSV, and label pictures "
                f"under names that "
                "end in _label."
            )
        picture = read_single(content, shown, budget, labels=True)
        plane = picture.pixels[0] if picture.kind == "grey" else picture.pixels[0].max(-1)
        loose.append(_Piece(path, "labels", plane))


def _role(path: str, array: np.ndarray | None) -> str:
    """Values or labels: by name, else by what the numbers are."""
    role = {"map": "values", "mask": "labels", "image": "image"}.get(role_of(path), "")
    if role or array is None:
        return role
    return "values" if array.dtype.kind == "f" and not bool((array == np.rint(array)).all()) else "labels"


def _bundled(name: str, arrays: dict[str, np.ndarray], loose: list[_Piece], notes: list[str]) -> Block:
    """The arrays of one NPZ by their names."""
    got: dict[str, tuple[str, np.ndarray]] = {}
    for role, words in WORDS.items():
        for word in words:
            key = next((k for k in arrays if k.lower() == word), None)
            if key is not None and role not in got:
                got[role] = key, arrays[key]
    said = WORDS["values"].get(got["values"][0].lower(), "") if "values" in got else ""
    numbers = {k: a for k, a in arrays.items() if a.dtype.kind in "buif"}
    if "values" not in got:
        free = [
            k for k, a in numbers.items() if k not in {v[0] for v in got.values()} and a.dtype.kind == "f"
        ]
        if len(free) != 1:
            raise BadImage(
                f"{tidy_name(name)} holds {listed([f'{k} {a.shape}' for k, a in arrays.items()]) or 'no array'}, and none of them is "
                f"called logits or "
                "probabilities. Save it again with numpy.savez(file, logits=…, labels=…)."
            )
        got["values"] = free[0], numbers[free[0]]
        notes.append(f"{tidy_name(name)}: {free[0]} was taken as what the model said.")
    if "labels" not in got:
        free = [
            k for k, a in numbers.items() if k not in {v[0] for v in got.values()} and a.dtype.kind in "bui"
        ]
        if len(free) == 1:
            got["labels"] = free[0], numbers[free[0]]
            notes.append(f"{tidy_name(name)}: {free[0]} was taken as the labels.")
    idle = [k for k in arrays if k not in {v[0] for v in got.values()}]
    if idle:
        notes.append(f"{tidy_name(name)}: not used: {listed(idle)}.")
    truth = got["labels"][1] if "labels" in got else None
    apart = [p for p in loose if p.role == "labels"]
    if truth is None and apart:
        truth = (next((p for p in apart if case_of(p.path)[0] == case_of(name)[0]), apart[0])).array
    text = {r: tuple(map(str, got[r][1].ravel().tolist())) for r in ("names", "classes") if r in got}
    return Block(
        tidy_name(name), got["values"][1], truth, got["ignore"][1] if "ignore" in got else None, text.get("names"), text.get("classes", ()), said
    )  # fmt: skip


def _paired(loose: list[_Piece], notes: list[str]) -> list[Block]:
    """Loose values with the labels of their name; one of each belong together whatever they are called."""
    values = [p for p in loose if p.role == "values"]
    labels = {case_of(p.path)[0]: p for p in loose if p.role == "labels"}
    images = sum(p.role == "image" for p in loose)
    if images:
        notes.append(f"Not used: {counted(images, 'image')}; only what the model said of them counts here.")
    blocks, alone = [], []
    for p in values:
        key, name = case_of(p.path)
        truth = labels.get(key) or (next(iter(labels.values())) if len(values) == len(labels) == 1 else None)
        if truth is None and len(values) > 1:
            alone.append(name)
            continue
        spacing, array = p.spacing, p.array
        if spacing is not None and array.shape[-3] == 1:  # a NIfTI of one slice
            spacing, array = spacing[1:], array.squeeze(-3)
            if truth is not None and truth.array.ndim > 2 and truth.array.shape[-3] == 1:
                truth = replace(truth, array=truth.array.squeeze(-3))
        single = p.spacing is not None or (
            truth is not None and array.ndim == truth.array.ndim + 1 and array.shape[1:] == truth.array.shape
        )
        blocks.append(
            Block(name, array, None if truth is None else truth.array, said=unit_of(p.path), single=single or len(values) > 1, spacing=spacing)
        )  # fmt: skip
    if alone:
        notes.append(
            f"{counted(len(alone), 'file')} without labels of the same name left out: {listed(alone)}."
        )
    if values and not blocks:
        raise BadImage(
            f"No labels have the name of a file with values: the first is called {alone[0]}, the labels "
            f"{listed([p.path for p in labels.values()]) or 'are missing'}. "
            "Give both the same name (an ending such as _label is fine)."
        )
    return blocks
