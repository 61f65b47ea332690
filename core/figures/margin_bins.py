"""What a reliability diagram needs of its tables: the filled bins, where its axis begins, the confidence that is read off, and the words.

No chart is drawn here, and nothing is counted; only ECE follows from the bins (Guo and others, 2017, equation 3).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np

from core.figures.frame import count, listed, percent
from core.figures.margin_look import LOSS_TITLES
from core.figures.palette import LOSS_COLOURS, LOSS_DASHES, LOSS_SHAPES

MOST = 4
"""Panels side by side at most."""
OTHER = ("#5f656d", "#E69F00", "#56B4E9", "#CC79A7")
"""Colours of networks that are no loss of ours."""

_BESIDE = {"before": "#E69F00", "after": "#0072B2"}
"""One network in two states, in the house's colours of before and after."""


class Table(Protocol):
    """What the diagram reads of a reliability table; B equal bins of [0, 1]."""

    @property
    def count(self) -> np.ndarray:
        """`(B,)` pixels in each bin."""

    @property
    def mean_confidence(self) -> np.ndarray:
        """`(B,)` their mean confidence, NaN where there is none."""

    @property
    def accuracy(self) -> np.ndarray:
        """`(B,)` share of them that is right, NaN where there is none."""


@dataclass(frozen=True)
class Bins:
    """One panel: the filled bins only, and the look."""

    title: str
    colour: str
    dash: list[int]
    shape: str
    number: np.ndarray
    share: np.ndarray
    said: np.ndarray
    right: np.ndarray
    bins: int
    pixels: int

    @property
    def ece(self) -> float:
        """Mean over pixels of the distance between confidence and accuracy of their bin."""
        return float((self.share * np.abs(self.said - self.right)).sum())


def panels_of(
    tables: Mapping[str, Table | Mapping[str, Any]], titles: Mapping[str, str] | None
) -> list[Bins]:
    """Tables as panels.

    Args:
        tables: Loss -> table, as in `reliability_diagram`.
        titles: Words instead of `LOSS_TITLES`.

    Raises:
        ValueError: See `reliability_diagram`.
    """
    if not 1 <= len(tables) <= MOST:
        raise ValueError(f"Side by side stand one to {MOST} reliability diagrams, not {len(tables)}.")
    found = [_filled(key, table, titles or {}, k) for k, (key, table) in enumerate(tables.items())]
    if not any(p.pixels for p in found):
        raise ValueError(
            "No pixel was counted, so there is no reliability to draw; choose the scope of all pixels."
        )
    return found


def _filled(key: str, table: Table | Mapping[str, Any], titles: Mapping[str, str], k: int) -> Bins:
    title = titles.get(key, LOSS_TITLES.get(key))
    if title is None:
        raise ValueError(
            f"{key!r} is no loss ({', '.join(LOSS_TITLES)}); give its words in `titles` to draw it all the same."
        )
    names = ("count", "mean_confidence", "accuracy")
    number, said, right = (
        np.asarray(table[n] if isinstance(table, Mapping) else getattr(table, n), float) for n in names
    )
    if not number.shape == said.shape == right.shape or number.ndim != 1:
        raise ValueError(
            f"The bins of {title} differ in number: {len(number)} counts, {len(said)} confidences, {len(right)} accuracies."
        )
    full = np.flatnonzero(number > 0)
    for what, values in (("confidence", said), ("accuracy", right)):
        if not ((values[full] >= -1e-9) & (values[full] <= 1 + 1e-9)).all():
            raise ValueError(
                f"A {what} of {title} lies outside 0 to 1 or is not a number, in a bin with pixels."
            )
    total = float(number.sum())
    return Bins(
        title, LOSS_COLOURS.get(key, _BESIDE.get(key, OTHER[k])), LOSS_DASHES.get(key, [1, 0]), LOSS_SHAPES.get(key, "circle"), full,
        number[full] / max(total, 1.0), said[full], right[full], len(number), int(total),
    )  # fmt: skip


def start_of(panels: list[Bins]) -> float:
    """Where the axis begins: 0, or the lowest filled bin's left edge where all lie above about one half."""
    low = min(float(p.number.min()) / p.bins for p in panels if p.pixels)
    return low if low >= 0.4 else 0.0


def read_at(panels: list[Bins], at: float) -> dict[str, tuple[float, float]] | None:
    """Confidence and accuracy of each loss in the bin nearest to `at` that all of them fill."""
    filled = [p for p in panels if p.pixels]
    if len({p.bins for p in filled}) != 1:
        return None
    common = set.intersection(*({int(n) for n in p.number} for p in filled))
    if not common:
        return None
    bins = filled[0].bins
    n = min(common, key=lambda b: abs((b + 0.5) / bins - at))
    if abs((n + 0.5) / bins - at) > 1.01 / bins:
        return None
    return {p.title: (float(p.said[p.number == n][0]), float(p.right[p.number == n][0])) for p in filled}


def words_of(panels: list[Bins], scope: str, read: dict[str, tuple[float, float]] | None) -> tuple[str, str]:
    """Title and alt text."""
    filled = [p for p in panels if p.pixels]
    if read:
        first, *rest = filled
        says = float(np.mean([s for s, _ in read.values()]))
        sentence = f"Where it says about {percent(says)}, {first.title} is right in {percent(read[first.title][1])} of pixels"
        others = [f"{percent(read[p.title][1])} with {p.title}" for p in rest]
        sentence += f", and in {listed(others)}." if others else "."
    else:
        sentence = "ECE: " + listed([f"{100 * p.ece:.1f}\u00a0% with {p.title}" for p in filled]) + "."
    told = []
    for p in panels:
        if not p.pixels:
            told.append(f"{p.title}: no pixel was counted")
            continue
        most = int(p.share.argmax())
        each = ", ".join(
            f"says {percent(s)}, right {percent(r)}" for s, r in zip(p.said, p.right, strict=True)
        )
        told.append(
            f"{p.title}: {count(p.pixels, 'pixel')}, ECE {100 * p.ece:.1f}\u00a0%; {each}; {percent(p.share[most])} of the pixels lie in one bin, "
            f"where it says {percent(p.said[most])}"
        )
    where = f" Counted: {scope}." if scope else ""
    said = f"Reliability diagram of {listed([p.title for p in panels])}.{where} {'. '.join(told)}."
    return sentence, said
