"""What the numbers of score maps mean: probabilities, logits or whole numbers, and the one way from them to logits.

Nothing outside [0, 1] is squashed in silence: where the unit is not plain, a `Question` is asked with every reading that fits. Logits
are float32, clamped to plus or minus 15 (METHODS 1; DESIGN section 1). This module reads no file.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from core.images.errors import BadImage
from core.images.maps_files import Layer
from core.images.maps_names import listed

CLAMP = 15.0
"""Scores lie within plus or minus this many logits; a probability closer to 0 or 1 than 3e-7 counts as that."""

SCALES = ("probabilities", "logits", "logits, one a channel", "clip", "percent", "255", "65535", "1 as it is")
"""Readings of a map's values that an answer to the question "scale" may name."""


@dataclass(frozen=True)
class Choice:
    """One way to settle a question: its value for `answers`, and the words on its button."""

    value: str
    label: str


@dataclass(frozen=True)
class Question:
    """Something that only the person can know.

    Attributes:
        key: Name for `answers`: "volume", "channel", "scale", "nan", "size", "foreground", "images" or "twins".
        text: What was found and what is asked, in plain sentences.
        choices: The fixes.
    """

    key: str
    text: str
    choices: tuple[Choice, ...]


_LOGITS = Choice("logits", "They are logits")
_EACH = Choice("logits, one a channel", "Logits, each channel with its own sigmoid")
_SOFTMAX = Choice("logits", "Logits of a softmax over the channels")
_PLAIN = Choice("probabilities", "They are probabilities")


def scale_of(layers: Sequence[Layer], channels: bool, notes: list[str]) -> str | Question:
    """How the values of all maps are to be read, or the question that settles it.

    Args:
        layers: Maps of one model; `(H, W)`, or with channels in a third axis.
        channels: True where each holds several channels.
        notes: Gets a sentence where the reading is plain.

    Raises:
        BadImage: Some maps hold whole numbers and some fractions, or no value is finite.
    """
    kinds = {("f" if a.array.dtype.kind == "f" else str(a.array.dtype)) for a in layers}
    if len(kinds) > 1:
        raise BadImage(
            f"The maps hold different types of numbers ({', '.join(sorted(kinds)).replace('f', 'float')}), so one value may mean different things. "
            "Save all maps the same way."
        )
    low, high = _span(layers)
    whole = layers[0].array.dtype.kind != "f"
    said = {a.said for a in layers}
    if said == {"logits"} and not whole:
        notes.append(f"The name says logits, so the values ({low:g} to {high:g}) were taken as logits.")
        return "logits"
    if layers[0].array.dtype.kind == "b" or (not whole and _only_0_and_1(layers)):
        notes.append(_hard())
        return "probabilities"
    if not whole and low >= -1e-6 and high <= 1 + 1e-6:
        notes.append(f"The values lie between {low:.3g} and {high:.3g} and were taken as probabilities.")
        return "probabilities"
    steps = {"uint8": 255, "uint16": 65535}.get(str(layers[0].array.dtype))
    if whole and steps and (high > 100 if steps == 255 else high > 255):
        few = " An 8-bit map knows 256 scores only; 16 bits or floats would be finer." if steps == 255 else ""
        notes.append(
            f"The whole numbers (0 to {high:g}) were divided by {steps:,}, the full range of their type, to be probabilities.{few}"
        )
        if set(np.unique(np.concatenate([np.unique(a.array) for a in layers]))) <= {0, steps}:
            notes.append(_hard())
        return str(steps)
    return _ask_scale(low, high, whole, channels)


def _ask_scale(low: float, high: float, whole: bool, channels: bool) -> Question:
    logits = (_SOFTMAX, _EACH) if channels else (_LOGITS,)
    other: list[Choice] = []
    if low >= 0:
        if high <= 1 and whole:
            other.append(Choice("1 as it is", "1 means certain: take 0 and 1 as they are"))
        if 1 < high <= 100:
            other.append(Choice("percent", "Per cent: divide by 100"))
        if high <= 255:
            other.append(Choice("255", "Divide by 255"))
        if high <= 65535 and whole:
            other.append(Choice("65535", "Divide by 65,535"))
    if not whole and low >= -0.5 and high <= 1.5:
        other.append(Choice("clip", "Probabilities that overshot: cut at 0 and 1"))
    text = f"The maps hold {'whole numbers' if whole else 'values'} from {low:.4g} to {high:.4g}, which are no probabilities."
    if low < 0:
        text += " They look like logits (0 would be a probability of 0.5)."
    return Question("scale", text + " What are they?", (*logits, *other) if low < 0 else (*other, *logits))


def check_scale(layers: Sequence[Layer], scale: str, notes: list[str]) -> None:
    """Refuse a reading that the values cannot have, however it was chosen.

    Raises:
        BadImage: There is no such scale, or values lie outside it.
    """
    if scale not in SCALES:
        raise BadImage(f"Score maps cannot be read as {scale!r}; choose one of {', '.join(SCALES)}.")
    low, high = _span(layers)
    top = {"probabilities": 1.0, "1 as it is": 1.0, "percent": 100.0, "255": 255.0, "65535": 65535.0}.get(
        scale
    )
    if top is not None and (low < -1e-6 * top or high > top * (1 + 1e-6)):
        how = f"numbers to divide by {top:g}" if top > 1 else "probabilities"
        raise BadImage(
            f"The maps were to be read as {how}, but they hold values from {low:.4g} to {high:.4g}. Are they logits, or scaled another way?"
        )
    if top is not None and top > 1 and layers[0].array.dtype.kind == "f" and high <= 1 and high > 0:
        raise BadImage(
            f"The maps were to be divided by {top:g}, but they hold fractions from {low:.4g} to {high:.4g}, which look like probabilities already."
        )
    if scale.startswith("logits") and layers[0].array.dtype.kind == "u" and high > CLAMP:
        raise BadImage(
            f"The maps were to be read as logits, but they hold whole numbers from {low:.4g} to {high:.4g} without a sign, as pictures of "
            "probabilities do. Bring the logits themselves (NPY, NPZ or TIFF with floats), or read these maps as probabilities throughout."
        )
    if scale.startswith("logits") and low >= 0 and high <= 1:
        notes.append(
            "The values lie between 0 and 1, as probabilities do; they were taken as logits, as asked."
        )


def said_scale(layers: Sequence[Layer], scale: str) -> str:
    """What was done to values whose reading was given and not found."""
    low, high = _span(layers)
    done = {
        "clip": "cut at 0 and 1 and taken as probabilities",
        "percent": "divided by 100, to be probabilities",
        "255": "divided by 255, to be probabilities",
        "65535": "divided by 65,535, to be probabilities",
        "1 as it is": "taken as probabilities",
    }
    return f"The values ({low:.4g} to {high:.4g}) were {done.get(scale, f'taken as {scale}')}, as said."


def _hard() -> str:
    return (
        "The maps hold nothing but yes and no. That is a decision, not a score: no threshold can move it, so the set is either that or the whole "
        "image. Export the probabilities before they were cut."
    )


def _span(layers: Sequence[Layer]) -> tuple[float, float]:
    lows, highs = [], []
    for a in layers:
        values = a.array[np.isfinite(a.array)] if a.array.dtype.kind == "f" else a.array
        if values.size:
            lows.append(float(values.min()))
            highs.append(float(values.max()))
    if not lows:
        raise BadImage(
            f"No value in the maps ({listed([a.name for a in layers])}) is a finite number. Export them again."
        )
    return min(lows), max(highs)


def _only_0_and_1(layers: Sequence[Layer]) -> bool:
    return all(bool(((a.array == 0) | (a.array == 1)).all()) for a in layers)


def channel_axis(layer: Layer, mask: Layer | None) -> int:
    """Where the channels of a `(K, H, W)` or `(H, W, K)` map are: 0 or 2. The mask's shape decides, else the smallest axis."""
    shape = layer.array.shape
    if mask is not None:
        wanted = mask.array.shape[:2]
        if shape[1:] == wanted and shape[:2] != wanted:
            return 0
        if shape[:2] == wanted and shape[1:] != wanted:
            return 2
    return 0 if shape[0] <= shape[2] else 2


def to_logits(array: np.ndarray, scale: str, channel: int | None = None) -> tuple[np.ndarray, int]:
    """One map as logits.

    Args:
        array: `(H, W)`, or `(K, H, W)` with a channel to choose; real values, finite or NaN (which stays NaN).
        scale: One of `SCALES`.
        channel: The channel that is the lesion.

    Returns:
        `(H, W)` float32 within plus or minus 15, and how many pixels had to be clamped.

    Raises:
        BadImage: There is no such scale or channel.
    """
    if scale not in SCALES:
        raise BadImage(f"Score maps cannot be read as {scale!r}; choose one of {', '.join(SCALES)}.")
    values = array.astype(np.float64)
    if scale.startswith("logits"):
        if channel is not None:
            one, rest = values[channel], np.delete(values, channel, axis=0)
            top = rest.max(axis=0)
            with np.errstate(invalid="ignore"):
                others = top + np.log(np.exp(rest - np.where(np.isfinite(top), top, 0)).sum(axis=0))
            values = one if scale != "logits" else one - others
    else:
        if channel is not None:
            values = values[channel]
        values = np.clip(values / {"percent": 100.0, "255": 255.0, "65535": 65535.0}.get(scale, 1.0), 0, 1)
        with np.errstate(divide="ignore", invalid="ignore"):
            values = np.log(values) - np.log1p(-values)
    clamped = int((np.abs(values) > CLAMP).sum())
    return np.clip(values, -CLAMP, CLAMP).astype(np.float32), clamped


def answer_of(answers: Mapping[str, str], question: Question) -> str | None:
    """The person's answer if it is one of the choices.

    Raises:
        BadImage: It is another.
    """
    given = answers.get(question.key)
    if given is None:
        return None
    if given not in {c.value for c in question.choices}:
        raise BadImage(
            f"{given!r} does not fit here. {question.text} Possible: {', '.join(c.value for c in question.choices)}."
        )
    return given
