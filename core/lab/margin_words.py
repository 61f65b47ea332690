"""Sentences about two losses on one set, computed from their records: how far a network can be believed, and how sure that is.

What it is not: a measurement (`margin_measure`), or the words of the tables (`margin_answer`). Whichever way the numbers fall, the sentence says so.
Standard errors treat the images as drawn independently: pixels of one image hang together, images do not.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import lru_cache

import numpy as np

from core.conformal.words import percent
from core.lab.margin_record import TITLES, LossRecord
from core.margin.reliability import Reliability, ece

THINGS = {"phantom": "lesions", "skin": "skin lesions", "polyp": "polyps", "nuclei": "nuclei and their rims"}
"""What the foreground of a set shows."""

SETS = {"phantom": "Phantoms", "skin": "Skin lesions", "polyp": "Polyps", "nuclei": "Nuclei"}
"""Sets as a chooser calls them."""

WANTED = 0.9
LEAST = 200
"""Pixels that a bin must hold in both tables before a sentence is built on it."""
FAR = 0.14
"""How far the middle of that bin may lie from 90 %."""


@dataclass(frozen=True)
class Believed:
    """What one network says and what is true, in one bin of confidence.

    Attributes:
        confidence: Mean of what it says.
        accuracy: Share of pixels that are right.
        error: Standard error of the accuracy, over images.
        pixels: Pixels in the bin.
        images: Images with a pixel in it.
    """

    confidence: float
    accuracy: float
    error: float
    pixels: int
    images: int

    @property
    def gap(self) -> float:
        """How far what is said lies from what is true."""
        return abs(self.confidence - self.accuracy)


@lru_cache(maxsize=64)
def pooled(record: LossRecord, scope: str) -> Reliability:
    """All images of a record in one table, merged once for each record."""
    return record.pooled(scope)


def one_digit(share: float) -> str:
    """A share with one digit behind the point: 0.0613 is `6.1 %`."""
    return f"{100 * share:.1f}\u00a0%"


def loss_words(record: LossRecord, article: bool = True) -> str:
    """A loss in a sentence: `a margin of 10`, `label smoothing`."""
    if record.loss == "margin" and record.margin is not None:
        return f"{'a ' if article else ''}margin of {record.margin:g}"
    return {
        "CE": "cross-entropy",
        "CE + T": "cross-entropy and a fitted temperature",
        "ECP": "the entropy penalty" if article else "entropy penalty",
        "focal": "focal loss",
    }.get(record.loss, TITLES[record.loss])


def title_of(record: LossRecord) -> str:
    """A loss in a chart or a table: its title, with m."""
    m = f", m = {record.margin:g}" if record.loss == "margin" and record.margin is not None else ""
    return TITLES[record.loss] + m


def bin_near(
    first: Reliability, second: Reliability, wanted: float = WANTED, least: int = LEAST
) -> int | None:
    """The bin whose middle lies nearest to a confidence, among those that hold enough pixels in both tables; None where none is near."""
    middle = (first.edges[:-1] + first.edges[1:]) / 2
    enough = np.minimum(first.count, second.count) >= least
    near = [int(i) for i in np.flatnonzero(enough) if abs(middle[i] - wanted) <= FAR]
    return min(near, key=lambda i: (abs(middle[i] - wanted), -i)) if near else None


def believed(record: LossRecord, scope: str, at: int) -> Believed:
    """One network's bin, with the standard error of its accuracy over images."""
    tables = record.reliability[scope]
    count = np.array([t.count[at] for t in tables], dtype=np.float64)
    right = np.array([t.correct[at] for t in tables], dtype=np.float64)
    said = sum(float(t.confidence[at]) for t in tables)
    total, images = float(count.sum()), int((count > 0).sum())
    if not total:
        raise ValueError("No pixel has a confidence in this bin.")
    accuracy = float(right.sum() / total)
    spread = float(np.sqrt(((right - accuracy * count) ** 2).sum() * images / max(images - 1, 1))) / total
    return Believed(said / total, accuracy, spread, int(total), images)


DEARER = 0.01
"""A rise of ECE over all pixels from which a headline about the foreground must speak of it."""


def headline(first: LossRecord, second: LossRecord, scope: str) -> str:
    """The sentence of the page.

    Args:
        first: The network that is looked at.
        second: The one beside it, on the same images.
        scope: "foreground" or "all".

    Returns:
        Two sentences: the bin near 90 %, and ECE over all bins. Where no bin near 90 % holds enough pixels, mean confidence and accuracy instead.

    Raises:
        ValueError: No image has a pixel in this scope.
    """
    a, b = pooled(first, scope), pooled(second, scope)
    at = bin_near(a, b)
    where = f"on true {THINGS[first.data]}, " if scope == "foreground" else ""
    who = "this network" if first.loss == "CE" else f"a network with {loss_words(first)}"
    other = f"with {loss_words(second)}"
    if at is None:
        start = (
            f"{where}{who} is {one_digit(a.overall_confidence)} sure on average and right "
            f"{one_digit(a.overall_accuracy)} of the time; {other}, {one_digit(b.overall_confidence)} and {one_digit(b.overall_accuracy)}."
        )
        closer = ece(b) < ece(a)
    else:
        one, two = believed(first, scope, at), believed(second, scope, at)
        said = percent(one.confidence)
        if said != percent(two.confidence):
            said = f"about {said}"
        closer = two.gap < one.gap
        tail = "" if closer else ": no closer" if two.gap > one.gap + 0.0005 else ": just as far"
        start = (
            f"{where}where {who} says {said}, it is right {percent(one.accuracy)} of the time; "
            f"{other}, {percent(two.accuracy)}{tail}."
        )
    if first.loss == second.loss:
        start = start.split("; ")[0] + ". Choose a second loss to compare it with."
        return start[0].upper() + start[1:]
    said = f"{start[0].upper()}{start[1:]} {_of_all_bins(ece(a), ece(b), closer)}"
    if scope == "foreground" and ece(b) < ece(
        a
    ):  # a loss that doubts everything is praised here and pays elsewhere
        before, after = (ece(pooled(r, "all")) for r in (first, second))
        if after > before + DEARER:
            said += f" Yet over all pixels it rises from {one_digit(before)} to {one_digit(after)}."
    return said


def _of_all_bins(before: float, after: float, closer: bool) -> str:
    if one_digit(before) == one_digit(after):
        return f"ECE stays at {one_digit(before)}."
    falls = after < before
    turn = "" if falls == closer else "Yet "
    return f"{turn}ECE {'falls' if falls else 'rises'} from {one_digit(before)} to {one_digit(after)}."


def how_sure(first: LossRecord, second: LossRecord, scope: str) -> str:
    """What the headline rests on: pixels, images, and how much of it the draw of the images may have done."""
    at = bin_near(pooled(first, scope), pooled(second, scope))
    if at is None:
        return f"No bin near {percent(WANTED)} holds {LEAST} pixels under both losses, so the sentence above speaks of all bins at once."
    one, two = believed(first, scope, at), believed(second, scope, at)
    edges = pooled(first, scope).edges
    difference, error = _difference(first, second, scope, at)
    settled = (
        "a difference that the choice of these images does not explain"
        if abs(difference) > 2 * error
        else "a difference that other images of the same kind might turn round"
    )
    return (
        f"The bin from {one_digit(edges[at])} to {one_digit(edges[at + 1])} holds {one.pixels:,} pixels of {one.images} images under "
        f"{loss_words(first)} and {two.pixels:,} of {two.images} under {loss_words(second)}. Right are {percent(one.accuracy)} ± "
        f"{100 * one.error:.1f} and {percent(two.accuracy)} ± {100 * two.error:.1f} points (one standard error over images). The "
        f"distance from what is "
        f"said is {100 * one.gap:.1f} points and {100 * two.gap:.1f}: {settled}."
    )


def _difference(first: LossRecord, second: LossRecord, scope: str, at: int) -> tuple[float, float]:
    """Difference of the two bins' gaps, and its standard error over the images that both networks saw."""
    total, moves = 0.0, np.zeros(len(first.names))
    for sign, record in ((1.0, first), (-1.0, second)):
        tables = record.reliability[scope]
        count = np.array([t.count[at] for t in tables], dtype=np.float64)
        off = np.array([float(t.confidence[at]) - float(t.correct[at]) for t in tables])
        mean = float(off.sum() / count.sum())
        total += sign * abs(mean)
        moves += sign * math.copysign(1.0, mean) * (off - mean * count) / count.sum()
    n = len(moves)
    return total, float(np.sqrt((moves**2).sum() * n / max(n - 1, 1)))


def figures(record: LossRecord) -> dict[str, float]:
    """`ece_fg`, `ece_all` and `dice` of one network; NaN where nothing was counted."""
    found = {}
    for short, scope in (("ece_fg", "foreground"), ("ece_all", "all")):
        table = pooled(record, scope)
        found[short] = ece(table) if table.pixels else math.nan
    there = record.dice[~np.isnan(record.dice)]
    found["dice"] = float(there.mean()) if len(there) else math.nan
    return found
