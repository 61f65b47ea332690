"""From uploads, zips and NPZ files to what they hold: score maps, masks, images and a table of groups, paired by name.

A file's role comes from the field it was dropped into, from its folder (`maps/`, `masks/`, `images/`) or from the end of its name
(`case1_mask`). Pictures go through `core.images.read`; NPY arrays are read here, from their header first and never with pickle.
Nothing is scaled or judged here (`maps.py` does that); a file that cannot be read becomes a sentence and the others go on.
"""

from __future__ import annotations

import io
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field, replace
from pathlib import PurePath
from typing import Any

import numpy as np

from core.images.archive import open_zip
from core.images.errors import BadImage, tidy_inner_name, tidy_name
from core.images.limits import Budget, Limits
from core.images.maps_groups import columns_of
from core.images.maps_names import case_of, role_of, unit_of
from core.images.pairs import bare_stem
from core.images.read import read_single

MAP_LIMITS = Limits(files=3000)
"""As for pictures, but a data set of maps, masks and images has more files."""

File = tuple[str, bytes]


@dataclass(frozen=True, eq=False)
class Layer:
    """One array as it was found.

    Attributes:
        name: What the person calls it: the file's name without folders and ending.
        source: The file, for sentences.
        array: The file's own values: `(H, W)`, or with slices or channels in a third axis.
        volume: True for NIfTI, whose third axis is space.
        lossy: True for JPEG.
        said: A word in the name that tells the unit: "logits", "probabilities" or "".
        notes: What its reader did to the file.
    """

    name: str
    source: str
    array: np.ndarray = field(repr=False)
    volume: bool = False
    lossy: bool = False
    said: str = ""
    notes: tuple[str, ...] = ()


@dataclass(frozen=True, eq=False)
class Found:
    """What an upload holds.

    Attributes:
        maps: Key -> map, in order of the names; the key is what map, mask and image of one case share.
        masks: Key -> mask.
        images: Key -> image, `(H, W, 3)` uint8.
        groups: Column -> key -> value.
        problems: One sentence for each file that could not be read.
        notes: Plain sentences on what was found.
    """

    maps: dict[str, Layer]
    masks: dict[str, Layer]
    images: dict[str, Layer]
    groups: dict[str, dict[str, str]]
    problems: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()


def find_maps(
    maps: Iterable[File],
    masks: Iterable[File] = (),
    images: Iterable[File] = (),
    groups: File | None = None,
    limits: Limits = MAP_LIMITS,
) -> Found:
    """Read an upload.

    Args:
        maps: (name, bytes) of score maps, or of zips and NPZ files that hold everything.
        masks: The same for masks, where they come apart.
        images: The same for images.
        groups: A CSV whose first column is the name of a map and whose other columns are groups.
        limits: The most that the whole upload may ask for.

    Raises:
        BadImage: A zip breaks a limit or has a dangerous name in it, two maps have one name, or the CSV cannot be read.
    """
    budget = Budget(limits)
    pieces: list[_Piece] = []
    problems: list[str] = []
    table = groups
    for role, files in (("", maps), ("mask", masks), ("image", images)):
        for raw_name, data in files:
            name = raw_name.replace("\\", "/")
            try:
                for inner, content in _unpacked(name, bytes(data), budget):
                    if isinstance(content, BadImage):
                        problems.append(str(content))
                    elif inner.lower().endswith((".csv", ".tsv")):
                        table = table or (inner, content)
                    elif not inner.lower().endswith((".txt", ".md", ".json", ".xml", ".pdf")):
                        read = _read(inner, content, role, budget)
                        if isinstance(read, BadImage):
                            problems.append(str(read))
                        else:
                            pieces.append(read)
            except BadImage as error:  # this file; the others go on
                problems.append(str(error))
    found = _assign(_unstacked(pieces))
    notes: list[str] = []
    columns: dict[str, dict[str, str]] = {}
    if table:
        try:
            names = {k: layer.name for k, layer in found["map"].items()}
            columns = columns_of(table, names, notes)
        except BadImage as error:
            problems.append(str(error))
    return Found(found["map"], found["mask"], found["image"], columns, tuple(problems), tuple(notes))


@dataclass(frozen=True, eq=False)
class _Piece:
    """An array with its path and the role of its field."""

    path: str
    role: str
    array: np.ndarray
    volume: bool = False
    lossy: bool = False
    notes: tuple[str, ...] = ()


def _unpacked(name: str, data: bytes, budget: Budget) -> Iterator[tuple[str, bytes | BadImage]]:
    """The file itself, or what is in it when it is a zip or an NPZ (which is a zip of NPY arrays)."""
    top = tidy_name(name)
    budget.take_file(top, len(data))
    if data[:4] not in (b"PK\x03\x04", b"PK\x05\x06"):
        yield "/".join((*PurePath(name).parts[:-1], top)), data
        return
    for inner, content in open_zip(data, top, budget):
        inner = inner.removeprefix(top + "/")
        if isinstance(content, bytes) and content[:4] == b"PK\x03\x04" and inner.lower().endswith(".npz"):
            for deeper, array in _unpacked(inner, content, budget):
                yield f"{inner.rsplit('.', 1)[0]}/{deeper}", array
        else:
            yield inner, content


def _read(name: str, data: bytes, role: str, budget: Budget) -> _Piece | BadImage:
    """One file as an array, or the sentence that says why not."""
    shown = tidy_inner_name("", name).removeprefix("the file/")
    try:
        if data[:6] == b"\x93NUMPY":
            return _Piece(name, role, read_npy(data, shown, budget))
        picture = read_single(data, shown, budget, labels=(role or role_of(name)) == "mask")
    except BadImage as error:
        return error
    array = picture.pixels[0] if picture.slices == 1 else picture.pixels
    if picture.kind == "rgb" and bool((array == array[..., :1]).all()):  # grey that was saved in colour
        array = array[..., 0]
    volume = picture.format == "NIfTI" and picture.slices > 1
    return _Piece(name, role, array, volume, picture.format == "JPEG", picture.notes)


def read_npy(data: bytes, name: str, budget: Budget) -> np.ndarray:
    """Read one NPY array, its header first and without pickle.

    Raises:
        BadImage: It holds Python objects, breaks a limit, or was cut short.
    """
    stream: Any = io.BytesIO(data)
    try:
        version = np.lib.format.read_magic(stream)
        header = (
            np.lib.format.read_array_header_1_0 if version == (1, 0) else np.lib.format.read_array_header_2_0
        )
        shape, _, dtype = header(stream)
    except ValueError:
        raise BadImage(
            f"{name} begins like an NPY array, but its header cannot be read. Save it again."
        ) from None
    if dtype.hasobject:
        raise BadImage(
            f"{name} holds Python objects, which only pickle could unpack, and nothing is unpickled here. Save a plain array of numbers."
        )
    count = int(np.prod(shape, dtype=np.int64)) if shape else 1
    if len(shape) >= 2:
        budget.check_pixels(name, *sorted(int(n) for n in shape)[-2:])
    if count * dtype.itemsize > budget.limits.unpacked_bytes - budget.spent:
        budget.claim(name, 1, max(count, 1), 1, dtype.itemsize)
    budget.spent += count * dtype.itemsize
    if len(data) - stream.tell() < count * dtype.itemsize:
        raise BadImage(
            f"{name} is cut short: its header promises an array of shape {shape}. Copy or save it again."
        )
    stream.seek(0)
    array: np.ndarray = np.lib.format.read_array(stream, allow_pickle=False)
    if dtype.kind not in "buifUS":
        raise BadImage(f"{name} holds {dtype} values; a map is made of real numbers.")
    return array


def _unstacked(pieces: list[_Piece]) -> list[_Piece]:
    """Arrays that hold all images at once, taken apart; `names` in an NPZ name them."""
    names = next(
        (p.array for p in pieces if bare_stem(p.path) == "names" and p.array.dtype.kind in "US"), None
    )
    plain = [p for p in pieces if p.array.dtype.kind not in "US"]
    count: dict[str, int] = {}
    for p in plain:
        role = p.role or role_of(p.path) or "map"
        count[role] = count.get(role, 0) + 1
    out: list[_Piece] = []
    for p in plain:
        role = p.role or role_of(p.path) or "map"
        is_stack = p.path.lower().endswith(".npy") and p.array.ndim >= 3 and count[role] == 1
        if not is_stack or (role == "image" and p.array.ndim == 3 and p.array.shape[2] in (3, 4)):
            out.append(p)
            continue
        if names is not None and len(names) != len(p.array):
            raise BadImage(
                f"There are {len(names)} names and {len(p.array)} arrays in {p.path}; give one name for each."
            )
        folder = {"map": "maps", "mask": "masks", "image": "images"}[role]
        if role == "map" and unit_of(p.path):
            folder = unit_of(p.path)
        for k, one in enumerate(p.array):
            stem = str(names[k]).replace("/", "-") if names is not None else f"{k:04d}"
            out.append(replace(p, path=f"{folder}/{stem}.npy", role=role, array=one))
    return out


def _assign(pieces: list[_Piece]) -> dict[str, dict[str, Layer]]:
    """Role -> key -> layer. A file without a role is a map, or the image where its case has a map already."""
    roles: dict[str, list[_Piece]] = {"map": [], "mask": [], "image": []}
    free = [p for p in pieces if not (p.role or role_of(p.path))]
    for p in pieces:
        if role := p.role or role_of(p.path):
            roles[role].append(p)
    mapped = {case_of(p.path)[0] for p in roles["map"]}
    for p in free:
        roles["image" if case_of(p.path)[0] in mapped else "map"].append(p)
    short = all(len({case_of(p.path)[1].lower() for p in group}) == len(group) for group in roles.values())
    found: dict[str, dict[str, Layer]] = {}
    for role, group in roles.items():
        layers: dict[str, Layer] = {}
        for p in sorted(group, key=lambda p: case_of(p.path)[0]):
            key, name = case_of(p.path)
            key = name.lower() if short else key
            if key in layers:
                raise BadImage(
                    f"Two {role}s have the name {name}: {layers[key].source} and {p.path}. Rename one of them, or put each set into its own folder."
                )
            shown = name if short else key
            layers[key] = Layer(
                shown, p.path, p.array, p.volume, p.lossy, unit_of(p.path) if role == "map" else "", p.notes
            )
        found[role] = layers
    return found
