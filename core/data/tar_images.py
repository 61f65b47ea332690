"""Labelled pictures for classification, read into one array: archives of folders by class, and dermoscopy photos with their diagnoses.

It reads, makes pictures small and square, and keeps the array in a working folder, because reading takes half a minute and is
done for every run. It does not divide (`longtail.py`) and does not train. The sets are never part of this project; nor are these caches,
which hold real pictures and belong in the working folder alone.
"""

from __future__ import annotations

import csv
import io
import lzma
import os
import tarfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from PIL import Image, UnidentifiedImageError

from core.data.folders import DataAbsent

ARCHIVES = {
    "pbc": "pbc_blood64.tar.xz",
    "cifar10": "cifar10.tar.xz",
    "tiny": "tiny_imagenet200_lt32.tar.xz",
}
"""Archives of folders by class, by the name that a set has here."""

DIAGNOSES = ("akiec", "bcc", "bkl", "df", "mel", "nv", "vasc")
"""HAM10000's seven diagnoses, as its table abbreviates them."""

MEMBER_LIMIT = 20 * 2**20
"""Bytes above which a file inside an archive is refused."""


@dataclass(frozen=True)
class LabelledImages:
    """Pictures of one size with their classes.

    Attributes:
        images: `(N, S, S, 3)` uint8.
        labels: `(N,)` int64 in [0, K).
        classes: K names.
        groups: `(N,)` int64; pictures with the same number belong together (photos of one lesion) and may not be divided.
        test: `(N,)` bool, the part that the owners of the set call test; all False where they give none.
    """

    images: np.ndarray
    labels: np.ndarray
    classes: tuple[str, ...]
    groups: np.ndarray
    test: np.ndarray

    def __len__(self) -> int:
        return len(self.labels)


def small_square(picture: Image.Image | np.ndarray, side: int) -> np.ndarray:
    """The middle square of a picture, made `side` pixels wide: what a classifier of this house sees, in training and on a page.

    Args:
        picture: A picture of any mode, or `(H, W, 3)` uint8.
        side: Wanted side in pixels.

    Returns:
        `(side, side, 3)` uint8. A square picture of that side is returned as it is.
    """
    image = Image.fromarray(picture) if isinstance(picture, np.ndarray) else picture
    image = image.convert("RGB")
    width, height = image.size
    if (width, height) != (side, side):
        edge = min(width, height)
        left, top = (width - edge) // 2, (height - edge) // 2
        box = (left, top, left + edge, top + edge)
        image = image.resize(
            (side, side), Image.Resampling.BOX if edge >= side else Image.Resampling.BILINEAR, box
        )
    return np.asarray(image)


def _members(path: Path) -> Iterator[tuple[str, bytes]]:
    """Yield `(name, content)` of every regular file of an archive, without unpacking anything to disk."""
    try:
        with tarfile.open(path, "r:*") as archive:
            for member in archive:
                name = member.name.removeprefix("./")
                if not member.isfile():
                    continue
                if member.size > MEMBER_LIMIT:
                    raise ValueError(
                        f"{path.name} holds {name} of {member.size} bytes; up to {MEMBER_LIMIT} are read."
                    )
                content = archive.extractfile(member)
                assert content is not None  # a regular file has content
                yield name, content.read()
    except (tarfile.TarError, lzma.LZMAError, EOFError) as error:
        raise ValueError(
            f"{path.name} is no readable archive, or ends too early ({error}). Copy it anew."
        ) from error


def read_archive(path: str | Path, side: int = 32) -> LabelledImages:
    """Read an archive of pictures, `<class>/<file>` or `train/<class>/<file>` and `test/<class>/<file>`.

    Args:
        path: A tar file, compressed or not.
        side: Side of the pictures in pixels; others are made so by `small_square`.

    Returns:
        The pictures, ordered by their names; classes in the order of their folders' names.

    Raises:
        DataAbsent: The file is not there.
        ValueError: It is damaged, holds a file that is no picture, or no folder of pictures.
    """
    path = Path(path)
    if not path.is_file():
        raise DataAbsent(f"No data set at {path}. Give the folder that holds {path.name} with --data.")
    found: list[tuple[str, str, np.ndarray]] = []
    for name, content in _members(path):
        folder = name.split("/")[-2] if "/" in name else ""
        if (
            not folder
            or name.split("/")[-1].startswith(".")
            or not name.lower().endswith((".jpg", ".jpeg", ".png"))
        ):
            continue
        try:
            picture = small_square(Image.open(io.BytesIO(content)), side)
        except (UnidentifiedImageError, OSError) as error:
            raise ValueError(f"{name} in {path.name} is no readable picture ({error}).") from error
        found.append((name, folder, picture))
    if not found:
        raise ValueError(f"{path.name} holds no pictures in folders named after their classes.")
    found.sort(key=lambda one: one[0])
    classes = tuple(sorted({folder for _, folder, _ in found}))
    number = {name: k for k, name in enumerate(classes)}
    return LabelledImages(
        np.stack([picture for _, _, picture in found]),
        np.array([number[folder] for _, folder, _ in found], np.int64),
        classes,
        np.arange(len(found), dtype=np.int64),
        np.array([name.startswith("test/") for name, _, _ in found]),
    )


def read_diagnoses(folder: str | Path, side: int = 32) -> LabelledImages:
    """Read HAM10000: the photos that the folder holds, their diagnoses, and which of them show one lesion.

    Args:
        folder: Holds `images/` and `HAM10000_metadata.csv`.
        side: Side of the pictures in pixels.

    Returns:
        The photos, ordered by name; `groups` numbers the lesions.

    Raises:
        DataAbsent: The table or the photos are not there.
        ValueError: The table lacks a column or names a diagnosis that is not known.
    """
    folder = Path(folder)
    table = folder / "HAM10000_metadata.csv"
    if not table.is_file() or not (folder / "images").is_dir():
        raise DataAbsent(
            f"No data set at {folder}: it must hold HAM10000_metadata.csv and the folder 'images'. Give the folder with --data."
        )
    with table.open(newline="") as f:
        reader = csv.DictReader(f)
        rows = list(reader)
    missing = {"image_id", "lesion_id", "dx"} - set(reader.fieldnames or ())
    if missing:
        raise ValueError(f"{table.name} lacks the column {', '.join(sorted(missing))}.")
    by_name = {row["image_id"]: row for row in rows}
    files = [f for f in sorted((folder / "images").iterdir()) if f.stem in by_name]
    if not files:
        raise DataAbsent(f"{folder / 'images'} holds none of the photos that {table.name} names.")
    unknown = {by_name[f.stem]["dx"] for f in files} - set(DIAGNOSES)
    if unknown:
        raise ValueError(
            f"{table.name} names diagnoses that are not known here: {', '.join(sorted(unknown))}."
        )
    lesions = {name: k for k, name in enumerate(sorted({by_name[f.stem]["lesion_id"] for f in files}))}
    pictures = []
    for file in files:
        with Image.open(file) as picture:
            pictures.append(small_square(picture, side))
    return LabelledImages(
        np.stack(pictures),
        np.array([DIAGNOSES.index(by_name[f.stem]["dx"]) for f in files], np.int64),
        DIAGNOSES,
        np.array([lesions[by_name[f.stem]["lesion_id"]] for f in files], np.int64),
        np.zeros(len(files), bool),
    )


def cached(source: Path, cache: Path | None, side: int = 32) -> LabelledImages:
    """Read a set, or what an earlier call left in the cache.

    Args:
        source: An archive (a file) or HAM10000's folder.
        cache: Folder for the arrays; None keeps nothing.
        side: Side of the pictures in pixels.

    Returns:
        The set. A cache made from a source of another size or date is made anew.

    Raises:
        DataAbsent, ValueError: As in `read_archive` and `read_diagnoses`.
    """
    stamped = source / "HAM10000_metadata.csv" if source.is_dir() else source
    if not stamped.is_file():
        raise DataAbsent(f"No data set at {source}. Give the folder that holds {source.name} with --data.")
    stat = stamped.stat()
    stamp = np.array([stat.st_size, stat.st_mtime_ns])
    file = None if cache is None else cache / f"{source.name.split('.')[0]}-{side}.npz"
    if file is not None and file.exists():
        with np.load(file, allow_pickle=False) as kept:
            if np.array_equal(kept["stamp"], stamp):
                return LabelledImages(
                    kept["images"],
                    kept["labels"],
                    tuple(map(str, kept["classes"])),
                    kept["groups"],
                    kept["test"],
                )
    read = read_diagnoses(source, side) if source.is_dir() else read_archive(source, side)
    if file is not None:
        file.parent.mkdir(parents=True, exist_ok=True)
        part = file.with_name(f"{file.stem}.{os.getpid()}.part.npz")
        np.savez(
            part,
            images=read.images,
            labels=read.labels,
            classes=np.array(read.classes),
            groups=read.groups,
            test=read.test,
            stamp=stamp,
        )
        os.replace(part, file)
    return read


def read_set(name: str, data: str | Path, cache: Path | None = None, side: int = 32) -> LabelledImages:
    """Read one of the four sets by name.

    Args:
        name: `"pbc"`, `"cifar10"`, `"tiny"` or `"ham10000"`.
        data: Folder that holds the archives and the folder `ham10000`.
        cache: Folder for the arrays; None keeps nothing.
        side: Side of the pictures in pixels.

    Raises:
        DataAbsent, ValueError: As in `read_archive` and `read_diagnoses`; or the name is not known.
    """
    if name not in (*ARCHIVES, "ham10000"):
        raise ValueError(f"The set {name!r} is not known; known: {', '.join((*ARCHIVES, 'ham10000'))}.")
    return cached(Path(data) / ARCHIVES.get(name, "ham10000"), cache, side)
