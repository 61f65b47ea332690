"""Whether values are logits or probabilities, and whether probabilities are any: asked or refused, never squashed in silence.

Reliability is about the very numbers, so nothing is clamped here. One map of the foreground becomes two classes: logits (0, l), or probabilities
(1 - p, p).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from core.images.errors import BadImage
from core.images.maps_names import counted, listed
from core.images.maps_values import Choice, Question, answer_of
from core.lab.margin_own_axes import Item
from core.margin.pixels import ROUNDING

SCALES = ("logits", "probabilities", "normalise", "clip", "percent", "255", "65535")
_DIVISOR = {"percent": 100.0, "255": 255.0, "65535": 65535.0}
_CHUNK = 1 << 21

_LOGITS = Choice("logits", "They are logits")
_PLAIN = Choice("probabilities", "They are probabilities")
_NORMALISE = Choice("normalise", "Probabilities that do not sum to one: divide by their sum")


@dataclass(frozen=True)
class Span:
    """What the finite values of all images look like.

    Attributes:
        low: Smallest value.
        high: Largest value.
        total: Smallest and largest sum over the classes of a pixel; (1, 1) for one map.
        broken: Pixels with a value that is not finite.
        pixels: Pixels that are not ignored.
        hard: Whether all values are 0 or 1.
        whole: Name of the integer type, or "".
    """

    low: float
    high: float
    total: tuple[float, float]
    broken: int
    pixels: int
    hard: bool
    whole: str

    @property
    def inside(self) -> bool:
        """All values lie in [0, 1]."""
        return self.low >= -1e-6 and self.high <= 1 + 1e-6

    @property
    def off(self) -> float:
        """How far sums lie from one at most."""
        return max(abs(1 - self.total[0]), abs(self.total[1] - 1))

    def sums_to(self, whole: float) -> bool:
        """Whether the values of each pixel sum to a number, but for rounding."""
        return max(abs(whole - self.total[0]), abs(self.total[1] - whole)) <= ROUNDING * whole


def span_of(items: Sequence[Item]) -> Span:
    """Look at all values that count.

    Raises:
        BadImage: The images hold different types of numbers, or no value is finite.
    """
    kinds = {"float" if i.values.dtype.kind == "f" else str(i.values.dtype) for i in items}
    if len(kinds) > 1:
        raise BadImage(
            f"The images hold different types of numbers ({', '.join(sorted(kinds))}), so one value may mean different things. Save all the same way."
        )
    low, high, least, most = np.inf, -np.inf, np.inf, -np.inf
    broken = pixels = 0
    hard = True
    for part in _parts(items):
        good = np.isfinite(part).all(0)
        pixels, broken = pixels + part.shape[1], broken + int((~good).sum())
        part = part[:, good]
        if part.size:
            low, high = min(low, float(part.min())), max(high, float(part.max()))
            total = part.sum(0)
            least, most = min(least, float(total.min())), max(most, float(total.max()))
            hard = hard and bool(((part == 0) | (part == 1)).all())
    if high < low:
        raise BadImage(
            f"No value of {listed([i.name for i in items])} that counts is a finite number. Export them again."
        )
    kind = kinds.pop()
    total_of = (1.0, 1.0) if items[0].binary else (least, most)
    return Span(low, high, total_of, broken, pixels, hard, "" if kind == "float" else kind)


def _parts(items: Sequence[Item]) -> Iterator[np.ndarray]:
    """Counted pixels as `(K, P)` float64, a part at a time."""
    for i in items:
        flat = i.values.reshape(1 if i.binary else len(i.values), -1)
        keep = None if i.ignore is None else ~i.ignore.reshape(-1)
        step = max(1, _CHUNK // len(flat))
        for at in range(0, flat.shape[1], step):
            part = flat[:, at : at + step].astype(np.float64)
            yield part if keep is None else part[:, keep[at : at + step]]


def settled_missing(
    items: Sequence[Item], span: Span, answers: Mapping[str, str], used: dict[str, str], notes: list[str]
) -> list[Item] | Question:
    """Images whose pixels with NaN or infinity are ignored, after having asked."""
    if not span.broken:
        return list(items)
    bad = [~np.isfinite(i.values if i.binary else i.values.sum(0, dtype=np.float64)) for i in items]
    bad = [b if i.ignore is None else b & ~i.ignore for b, i in zip(bad, items, strict=True)]
    hit = [i.name for b, i in zip(bad, items, strict=True) if b.any()]
    first = next((i.name, np.argwhere(b)[0]) for b, i in zip(bad, items, strict=True) if b.any())
    what = "rows" if items[0].rows else "pixels"
    choices = [Choice("ignore", f"Leave these {what} out")]
    if len(hit) < len(items):
        choices.append(
            Choice("drop", f"Leave {'this image' if len(hit) == 1 else f'these {len(hit)} images'} out")
        )
    where = ", ".join(map(str, first[1].tolist()))
    ask = Question(
        "nan",
        f"{span.broken:,} of {span.pixels:,} {what} hold NaN or infinity, the first in {first[0]} at ({where}); {counted(len(hit), 'image')} in all. "
        "A number that is missing can be neither right nor wrong. What shall be done?",
        tuple(choices),
    )
    answer = answer_of(answers, ask)
    if answer is None:
        return ask
    used["nan"] = answer
    if answer == "drop":
        notes.append(f"{counted(len(hit), 'image')} with NaN or infinity left out: {listed(hit)}.")
        return [i for b, i in zip(bad, items, strict=True) if not b.any()]
    notes.append(f"{span.broken:,} {what} with NaN or infinity left out.")
    return [
        replace(i, ignore=b if i.ignore is None else i.ignore | b) for b, i in zip(bad, items, strict=True)
    ]


def settled_scale(
    items: Sequence[Item],
    span: Span,
    said: str,
    answers: Mapping[str, str],
    used: dict[str, str],
    notes: list[str],
) -> str | Question:
    """How values are to be read: one of `SCALES`, or the question.

    Raises:
        BadImage: The answer is none, or values lie outside what it says.
    """
    binary = items[0].binary
    proper = span.inside and (binary or span.off <= ROUNDING)
    if "scale" in answers:
        scale = answers["scale"]
        _check(scale, span, binary)
        used["scale"] = scale
        how = {
            "logits": "taken as logits",
            "probabilities": "taken as probabilities",
            "normalise": "divided by their sum at each pixel, to be probabilities",
            "clip": "cut at 0 and 1 and divided by their sum, to be probabilities",
        }
        notes.append(
            f"The values ({span.low:.4g} to {span.high:.4g}) were "
            f"{how.get(scale, f'divided by {_DIVISOR.get(scale, 1):g}, to be probabilities')}, as said."
        )
        return scale
    if proper and said != "logits" and not (span.whole and not span.hard):
        notes.append(
            f"The values lie between {max(span.low, 0):.3g} and {span.high:.3g}{'' if binary else ' and sum to one at each pixel'}: probabilities."
        )
        used["scale"] = "probabilities"
        return "probabilities"
    if said == "logits" and not span.whole and not proper:
        notes.append(
            f"The name says logits ({span.low:.4g} to "
            f"{span.high:.4g}){'' if binary else ', so a softmax over the classes makes probabilities of them'}."
        )
        used["scale"] = "logits"
        return "logits"
    ask = _ask(span, said, binary, proper)
    answer = answer_of(answers, ask)
    return ask if answer is None else answer


def _ask(span: Span, said: str, binary: bool, proper: bool) -> Question:
    range_ = f"from {span.low:.4g} to {span.high:.4g}"
    if proper:
        also = "" if binary else " and sum to one at each pixel"
        return Question(
            "scale",
            f"They are called logits, but they go {range_}{also}, as probabilities do. What are they?",
            (_PLAIN, _LOGITS),
        )
    called = "They are called probabilities, but the" if said == "probabilities" else "The"
    if span.inside:
        text = (
            f"{called} values of a pixel sum to anything between {span.total[0]:.3g} and {span.total[1]:.3g}; probabilities of classes "
            f"that exclude one another "
            "sum to 1. What are they?"
        )
        return Question("scale", text, (_NORMALISE, _LOGITS))
    choices = [_LOGITS] if not span.whole or span.low < 0 else []
    for word, unit in (("percent", 100.0), ("255", 255.0), ("65535", 65535.0)):
        if span.low >= 0 and 1 < span.high <= unit * (1 + 1e-6) and (binary or span.sums_to(unit)):
            label = "Per cent: divide by 100" if word == "percent" else f"Divide by {unit:,.0f}"
            choices.append(Choice(word, label))
    if span.low >= -0.1 and span.high <= 1.1 and (binary or span.off <= 0.2):
        choices.append(
            Choice(
                "clip",
                "Probabilities that overshot: cut at 0 and 1"
                + ("" if binary else ", then divide by the sum"),
            )
        )
    if not choices:
        raise BadImage(
            f"The values are whole numbers {range_} ({span.whole}), which are neither probabilities nor logits. Bring the numbers before "
            f"the class was chosen."
        )
    look = " They look like logits." if span.low < 0 else ""
    return Question(
        "scale",
        f"{called} values go {range_}, which no probability does.{look} What are they?",
        tuple(choices),
    )


def _check(scale: str, span: Span, binary: bool) -> None:
    range_ = f"from {span.low:.4g} to {span.high:.4g}"
    if scale not in SCALES:
        raise BadImage(f"Values cannot be read as {scale!r}; choose one of {', '.join(SCALES)}.")
    if scale == "probabilities":
        if not span.inside:
            raise BadImage(
                f"The values were to be read as probabilities, but they go {range_}. Are they logits?"
            )
        if not binary and span.off > ROUNDING:
            raise BadImage(
                f"The values were to be read as probabilities, but at a pixel they sum to anything between {span.total[0]:.3g} and "
                f"{span.total[1]:.3g} and not to 1. "
                "Choose “normalise” if they shall be divided by their sum."
            )
    top = _DIVISOR.get(scale)
    if top is not None and (
        span.low < 0 or span.high > top * (1 + 1e-6) or span.high <= 1 or not (binary or span.sums_to(top))
    ):
        raise BadImage(
            f"The values were to be divided by {top:g}, but they go {range_}{'' if binary else f' and do not sum to {top:g}'}. Choose "
            f"another reading."
        )
    if scale == "clip" and (span.low < -0.1 or span.high > 1.1):
        raise BadImage(
            f"Only values that overshoot a little may be cut at 0 and 1; these go {range_}. Are they logits?"
        )
    if scale == "normalise" and (span.low < -1e-6 or span.total[0] <= 0 or binary):
        raise BadImage(
            f"Only values of at least 0 with a positive sum can be divided by it; these go {range_}, with sums from {span.total[0]:.3g} on."
        )


def as_classes(values: np.ndarray, scale: str, binary: bool) -> np.ndarray:
    """Values of one image, or of a part of its pixels, as logits or probabilities of K classes.

    Args:
        values: `(K, *)`, or `(*)` when `binary`.
        scale: One of `SCALES`.
        binary: One value a pixel, for class 1 of 2.

    Returns:
        `(K, *)` float64; K is 2 when `binary`.
    """
    x = values.astype(np.float64)
    if scale == "logits":
        return np.stack([np.zeros_like(x), x]) if binary else x
    x = x / _DIVISOR.get(scale, 1.0)
    if scale == "clip" or (binary and scale != "normalise"):
        x = np.clip(x, 0, 1)
    if binary:
        return np.stack([1 - x, x])
    if scale == "probabilities":
        return x
    with np.errstate(invalid="ignore", divide="ignore"):  # pixels that are left out may hold anything
        return x / x.sum(0)
