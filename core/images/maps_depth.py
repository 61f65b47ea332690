"""Score maps with a third axis: volumes (space) and classes (channels), each brought to what the promise shall be about.

A NIfTI's third axis is space, and so is one that the mask has too; any other holds classes. Nothing is decided in silence: whether a
volume counts as one image or slice by slice, and which channel is the lesion, are questions.
"""

from __future__ import annotations

import numpy as np

from core.images.errors import BadImage
from core.images.maps_files import Layer
from core.images.maps_names import counted
from core.images.maps_values import Choice, Question, channel_axis


def is_deep(layer: Layer, mask: Layer | None) -> bool:
    """Whether a map's third axis is space and not classes: a NIfTI volume, or its mask has the same three axes."""
    if layer.array.ndim != 3:
        if layer.array.ndim != 2:
            raise BadImage(
                f"The map {layer.name} has shape {layer.array.shape}; a map is (H, W), or (K, H, W) with K classes."
            )
        return False
    if (
        layer.array.shape[-1] == 3
        and layer.array.dtype == np.uint8
        and mask is not None
        and mask.array.ndim == 2
    ):
        raise BadImage(
            f"The map {layer.name} is a coloured picture, and colours cannot be turned back into scores. Save the scores in grey."
        )
    return layer.volume or (mask is not None and mask.array.shape == layer.array.shape)


def ask_volume(maps: dict[str, Layer]) -> Question:
    """What the promise shall be about, where maps are volumes."""
    some = next(layer for layer in maps.values() if layer.array.ndim == 3)
    return Question(
        "volume",
        f"The maps are volumes ({some.name}: {' × '.join(map(str, some.array.shape))}). "
        "What shall the promise be about: each slice, or each volume as one?",
        (Choice("whole", "Each volume as one"), Choice("slices", "Each slice")),
    )


def opened(
    maps: dict[str, Layer], masks: dict[str, Layer], images: dict[str, Layer], answer: str, notes: list[str]
) -> tuple[dict[str, Layer], dict[str, Layer], dict[str, Layer], dict[str, str]]:
    """Volumes as one tall map each, or slice by slice. Images of volumes are not used."""
    new_maps: dict[str, Layer] = {}
    new_masks: dict[str, Layer] = {}
    names: dict[str, str] = {}
    for k, layer in maps.items():
        array = layer.array if layer.array.ndim == 3 else layer.array[None]
        mask = masks.get(k)
        truth = None if mask is None else (mask.array if mask.array.ndim == 3 else mask.array[None])
        if truth is not None and (
            len(truth) != len(array) or (answer == "whole" and truth.shape != array.shape)
        ):
            raise BadImage(
                f"The map {layer.name} has shape {array.shape} and its mask {truth.shape}. "
                "Volumes are never stretched: export both on one grid."
            )
        for j in range(len(array)) if answer == "slices" else [-1]:
            key, name = (k, layer.name) if j < 0 else (f"{k}#{j:04d}", f"{layer.name} slice {j}")
            plane = array.reshape(-1, array.shape[2]) if j < 0 else array[j]
            new_maps[key], names[key] = Layer(name, layer.source, plane, said=layer.said), name
            if truth is not None and mask is not None:
                new_masks[key] = Layer(
                    name, mask.source, truth.reshape(-1, truth.shape[2]) if j < 0 else truth[j]
                )
    if answer == "slices":
        notes.append(
            f"{counted(len(maps), 'volume')} gave {counted(len(new_maps), 'slice')}. Slices of one patient are alike: "
            "the promise is then about slices of such a mixture of patients, and says less about a new patient than the number of slices suggests."
        )
    else:
        notes.append("Each volume counts as one image; its slices are laid under one another.")
    if images:
        notes.append("The images of volumes are not used.")
    return new_maps, new_masks, {}, names


def channels_first(maps: dict[str, Layer], masks: dict[str, Layer]) -> tuple[dict[str, Layer], Question]:
    """Maps with their channels first, and which channel is the lesion."""
    moved: dict[str, Layer] = {}
    for k, layer in maps.items():
        if layer.array.ndim != 3:
            raise BadImage(
                f"Some maps have several channels and {layer.name} has one. Save all maps the same way."
            )
        array = np.moveaxis(layer.array, channel_axis(layer, masks.get(k)), 0)
        moved[k] = Layer(layer.name, layer.source, array, said=layer.said)
    counts = {len(layer.array) for layer in moved.values()}
    if len(counts) > 1 or max(counts) > 64:
        raise BadImage(
            f"The maps have {', '.join(map(str, sorted(counts)))} channels; all must have the same number, at most 64."
        )
    n = counts.pop()
    choices = tuple(
        Choice(str(c), f"Channel {c}" + (" (usually the background)" if c == 0 else "")) for c in range(n)
    )
    ordered = choices[1:] + choices[:1] if n > 1 else choices
    return moved, Question(
        "channel",
        f"Each map has {n} channels, one a class, numbered from 0. Which one is the lesion?",
        ordered,
    )
