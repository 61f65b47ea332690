"""Masks and images that come with score maps: their sizes, which value is the lesion, and images on the maps' grids.

One mapping of values serves all masks of a set: a mask that holds 1 and 2 must not be read another way than its neighbour with 0, 1
and 2. Sizes that differ are asked about. `core.images.masks` does the same for a single mask.
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from core.images.display import to_display
from core.images.errors import BadImage
from core.images.maps_files import Layer
from core.images.maps_names import listed
from core.images.maps_values import Choice, Question, answer_of
from core.images.masks import MOST_LABELS, mask_from_array


def _grid(layer: Layer, channels: bool) -> tuple[int, int]:
    shape = layer.array.shape[1:] if channels else layer.array.shape
    return int(shape[0]), int(shape[1])


def sized_masks(
    maps: dict[str, Layer], masks: dict[str, Layer], channels: bool, answers: Mapping[str, str], used: dict[str, str], notes: list[str]
) -> tuple[dict[str, Layer], Question | None]:  # fmt: skip
    """Masks of the maps' sizes, or the question what to do with the others.

    Args:
        maps: Key -> map, channels first where it has some.
        masks: Key -> mask, of whatever size.
        channels: Whether the maps have channels.
        answers: What the person said.
        used: Gets the answer that was used.
        notes: Gets a sentence on what was done.
    """
    flat = {k: Layer(m.name, m.source, _plane(m), lossy=m.lossy) for k, m in masks.items()}
    other = [k for k, m in flat.items() if m.array.shape != _grid(maps[k], channels)]
    if not other:
        return flat, None
    k = other[0]
    (rows, columns), found = _grid(maps[k], channels), flat[k].array.shape
    turned = " It seems to be turned by 90°." if found == (columns, rows) and rows != columns else ""
    ask = Question(
        "size",
        f"{len(other)} of {len(masks)} masks have another size than their map (the mask {flat[k].name} is {found[1]} × {found[0]} pixels, its map "
        f"{columns} × {rows}).{turned} What shall be done?",
        (
            Choice("resize", "Same picture: scale the masks (nearest pixel)"),
            Choice("drop", "Leave these out"),
        ),
    )
    answer = answer_of(answers, ask)
    if answer == "drop":
        notes.append(
            f"{len(other)} mask{'s' if len(other) > 1 else ''} whose size is not the map's left out: {listed([flat[j].name for j in other])}."
        )
        flat = {j: m for j, m in flat.items() if j not in other}
        if not flat:
            raise BadImage(
                "Every mask has another size than its map, so none is left. Save maps and masks on one grid, or let them be scaled."
            )
    elif answer == "resize":
        for j in other:
            m = flat[j]
            flat[j] = Layer(m.name, m.source, _nearest(m.array, _grid(maps[j], channels)), lossy=m.lossy)
        notes.append(f"{len(other)} masks were scaled to the size of their maps (nearest pixel), as asked.")
    if answer is not None:
        used["size"] = answer
    return flat, ask


def _plane(mask: Layer) -> np.ndarray:
    array = mask.array
    if array.ndim == 3 and 1 in (array.shape[0], array.shape[2]):
        array = array.squeeze(0 if array.shape[0] == 1 else 2)
    if array.ndim == 3 and array.shape[2] in (3, 4):
        array = array[..., :3].max(axis=2)
    if array.ndim != 2:
        raise BadImage(
            f"The mask {mask.name} has shape {array.shape}; a mask is one plane of labels, as large as its map."
        )
    return np.where(np.isnan(array), 0, array) if array.dtype.kind == "f" else array


def _nearest(array: np.ndarray, shape: tuple[int, int]) -> np.ndarray:
    rows = ((np.arange(shape[0]) + 0.5) * array.shape[0] / shape[0]).astype(int)
    columns = ((np.arange(shape[1]) + 0.5) * array.shape[1] / shape[1]).astype(int)
    return np.asarray(array[rows][:, columns])


def foreground_of(
    masks: dict[str, Layer], answers: Mapping[str, str], used: dict[str, str], notes: list[str]
) -> tuple[dict[str, np.ndarray], Question | None]:
    """Key -> `(H, W)` bool, by one mapping for all masks, or the question which label is the lesion."""
    if not masks:
        return {}, None
    found = np.unique(np.concatenate([np.unique(m.array) for m in masks.values()]))
    said = ", ".join(f"{v:g}" for v in found[:8]) + (" …" if len(found) > 8 else "")
    soft = len(found) > MOST_LABELS or any(m.lossy for m in masks.values())
    if soft and not set(found.tolist()) <= {0, 255}:
        notes.append(
            f"The masks hold {len(found)} different values (soft or smeared edges); those above half their range were taken as lesion."
        )
        return {
            k: mask_from_array(m.array, m.name, lossy=True).array
            if len(np.unique(m.array)) > 1
            else m.array > found[-1] / 2
            for k, m in masks.items()
        }, None
    ask = None
    if len(found) > 2:
        labels = [v for v in found if v != 0]
        ask = Question(
            "foreground",
            f"The masks hold the values {said}. Which of them is the lesion?",
            (Choice("any", "Every value but 0"), *(Choice(f"{v:g}", f"Only {v:g}") for v in labels)),
        )
        answer = answer_of(answers, ask)
        if answer is None:
            return {k: m.array != 0 for k, m in masks.items()}, ask
        used["foreground"] = answer
        notes.append(
            f"The masks hold {said}; {'every value but 0' if answer == 'any' else f'the value {answer}'} was taken as lesion, as asked."
        )
        if answer != "any":
            return {k: m.array == float(answer) for k, m in masks.items()}, ask
    elif answers.get("foreground", "any") != "any":
        value = float(answers["foreground"])
        if value not in found:
            raise BadImage(f"No mask holds the value {value:g}; they hold {said}. Choose one of these.")
        used["foreground"] = answers["foreground"]
        return {k: m.array == value for k, m in masks.items()}, None
    if len(found) == 2 and found[0] != 0:
        notes.append(f"The masks hold {said}; the lower value was taken as background, the higher as lesion.")
        return {k: m.array == found[1] for k, m in masks.items()}, ask
    if len(found) == 2 and found[1] not in (1, 255):
        notes.append(f"The masks hold 0 and {found[1]:g}; {found[1]:g} was taken as lesion.")
    return {k: m.array != 0 for k, m in masks.items()}, ask


def ready_images(
    maps: dict[str, Layer], images: dict[str, Layer], channels: bool, answers: Mapping[str, str], used: dict[str, str], notes: list[str]
) -> tuple[dict[str, np.ndarray], Question | None]:  # fmt: skip
    """Key -> `(H, W, 3)` uint8 on the map's grid. Another size with the same proportions is scaled and said; other proportions are asked about."""
    if not images:
        return {}, None
    shown = {k: to_display(layer.array) for k, layer in images.items()}
    grids = {k: _grid(maps[k], channels) for k in images}
    other = [k for k in shown if shown[k].shape[:2] != grids[k]]
    odd = [
        k
        for k in other
        if abs(shown[k].shape[0] * grids[k][1] - shown[k].shape[1] * grids[k][0])
        > max(*grids[k], *shown[k].shape[:2])
    ]
    ask = None
    if odd:
        k = odd[0]
        ask = Question(
            "images",
            f"{len(odd)} images have other proportions than their map "
            f"(the image {images[k].name} is {shown[k].shape[1]} × {shown[k].shape[0]} pixels, "
            f"its map {grids[k][1]} × {grids[k][0]}). Do they show the same?",
            (
                Choice("ignore", "Go on without the images"),
                Choice("scale", "Same picture: scale them to the maps"),
            ),
        )
        answer = answer_of(answers, ask)
        if answer is None:
            return {}, ask
        used["images"] = answer
        if answer == "ignore":
            notes.append("The images are not used, as asked.")
            return {}, ask
    if other:
        from PIL import Image

        for k in other:
            size = (grids[k][1], grids[k][0])
            shown[k] = np.asarray(Image.fromarray(shown[k]).resize(size, Image.Resampling.BOX))
        notes.append(
            f"{len(other)} images were scaled to the size of their maps; only the pictures on the page and the predictor's small view use them."
        )
    return shown, ask
