"""Which map, mask and image belong together, and which images come twice (found by content, whatever their names)."""

from __future__ import annotations

import hashlib
from collections import Counter

import numpy as np
import torch

from core.images.errors import BadImage
from core.images.maps_files import Found, Layer
from core.images.maps_names import counted, listed
from core.images.maps_values import Choice, Question


def paired(found: Found, notes: list[str]) -> tuple[dict[str, Layer], dict[str, Layer], dict[str, Layer]]:
    """Maps, masks and images that belong together, by key; what has no partner is named in a note.

    Raises:
        BadImage: There is no map, or no mask has the name of a map.
    """
    maps, masks, images = dict(found.maps), dict(found.masks), dict(found.images)
    if not maps:
        first = f" {found.problems[0]}" if found.problems else ""
        rest = " (masks were found, but no maps)" if masks else ""
        raise BadImage(
            f"No score map was found{rest}. Put the maps into a folder maps/ and the masks into masks/ of one zip, or save both as arrays "
            f"“maps” and “masks” in one NPZ.{first}"
        )
    kinds = f"{counted(len(maps), 'score map')}" + (
        f", {counted(len(masks), 'mask')}" if masks else ", no masks"
    )
    kinds += f", {counted(len(images), 'image')}" if images else ""
    notes.insert(0, f"Found: {kinds}.")
    if masks:
        both = [k for k in maps if k in masks]
        if not both:
            raise BadImage(
                f"No mask has the name of a map: the first map is called {next(iter(maps.values())).name}, the first mask "
                f"{next(iter(masks.values())).name}. Give both the same name (an ending such as _mask is fine)."
            )
        alone = [maps[k].name for k in maps if k not in masks]
        idle = [masks[k].name for k in masks if k not in maps]
        if alone:
            notes.append(
                f"{counted(len(alone), 'map')} without a mask of the same name left out: {listed(alone)}."
            )
        if idle:
            notes.append(
                f"{counted(len(idle), 'mask')} without a map of the same name not used: {listed(idle)}."
            )
        maps = {k: maps[k] for k in both}
    lacking = [maps[k].name for k in maps if k not in images]
    if images and lacking:
        notes.append(
            f"The images are not used, for {counted(len(lacking), 'map')} have none of their name: {listed(lacking)}."
        )
        images = {}
    for sentence, times in Counter(s for layer in maps.values() for s in set(layer.notes)).most_common(8):
        if "Every value is the same" not in sentence and "missing or infinite" not in sentence:
            notes.append(sentence if times == len(maps) else f"{sentence} ({counted(times, 'map')})")
    return maps, {k: masks[k] for k in maps if k in masks}, {k: images[k] for k in maps if k in images}


def digest(array: np.ndarray) -> str:
    """SHA-256 of an array's type, shape and values."""
    return hashlib.sha256(
        f"{array.dtype}{array.shape}".encode() + np.ascontiguousarray(array).tobytes()
    ).hexdigest()


def twins_of(
    keys: list[str], scores: dict[str, torch.Tensor], pictures: dict[str, np.ndarray], prints: dict[str, str]
) -> list[list[str]]:
    """Groups of keys with one and the same image, or without images one and the same map; constant ones say nothing."""
    by: dict[str, list[str]] = {}
    for k in keys:
        array = pictures[k] if pictures else scores[k].numpy()
        if array.size and array.min() != array.max():
            by.setdefault(digest(array) if pictures else prints[k], []).append(k)
    return [group for group in by.values() if len(group) > 1]


def ask_twins(names: dict[str, str], twins: list[list[str]]) -> Question:
    """What shall be done about images that come twice."""
    pairs = listed([" = ".join(names[k] for k in group) for group in twins], 3)
    return Question(
        "twins",
        f"{counted(sum(len(g) for g in twins), 'image')} are not all different ({pairs}). "
        "A promise cannot be tested on images that made it, so no image may come twice.",
        (Choice("drop", "Keep the first of each"),),
    )
