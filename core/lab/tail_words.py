"""Sentences about two methods on one long-tailed set, computed from their records: who pays, by how much, and how sure that is.

Whichever way the numbers fall, the sentence says so. Standard errors take the test images as drawn independently. What the table of all
methods says is in `tail_answer`.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from core.car.metrics import FEW_CLASSES, groups_of, mean_of
from core.car.spectrum import Spectrum
from core.conformal.words import percent
from core.figures.frame import listed
from core.lab.tail_names import many_of
from core.lab.tail_view import Moment, Remembered, lambda_of


def payers(now: Moment) -> np.ndarray:
    """Who pays: the class of the lowest recall (all of them, where several share it); the tail group for more than ten classes."""
    if len(now.classes) > FEW_CLASSES:
        tail = groups_of(now.counts).tail
        return tail if len(tail) else np.array([now.figures.worst_class])
    return np.flatnonzero(now.recall == now.figures.worst)


def payers_words(now: Moment) -> str:
    """The same in words: `basophils and monocytes`, `4 of 8 classes`, `the 60 rarest classes`."""
    who = payers(now)
    if len(now.classes) > FEW_CLASSES:
        return f"the {len(who)} rarest of {len(now.classes)} classes"
    return (
        listed([many_of(now.classes[k]) for k in who])
        if len(who) <= 3
        else f"{len(who)} of {len(now.classes)} classes"
    )


def headline(first: Moment, second: Moment) -> str:
    """The sentence of the page.

    Args:
        first: The method that is looked at, at some epoch.
        second: The one beside it on the same set, at the same epoch.

    Returns:
        Who pays under the first, how much of them is found among training and among new images, and what the second makes of it.

    Raises:
        ValueError: No class has a test image.
    """
    if first.figures.worst_class < 0:
        raise ValueError("No class of this set has a test image, so nobody knows who pays.")
    when = "" if first.epoch == first.epochs - 1 else f"After {first.epoch + 1} of {first.epochs} epochs "
    if first.figures.worst == 1:
        start = f"{when}nobody pays: {first.title} finds every test image of every class"
        return _capital(start) + (_beside_nobody(second) if second.method != first.method else ".")
    who = payers(first)
    train, test = mean_of(first.train_recall, who), mean_of(first.recall, who)
    start = (
        f"{when}{payers_words(first)} pay: {first.title} finds {percent(train)} of them among its training images and "
        f"{percent(test)} among new ones"
    )
    if first.method == second.method:
        return _capital(start) + ". Choose a second method to compare it with."
    train2, test2 = mean_of(second.train_recall, who), mean_of(second.recall, who)
    start += f"; {second.title}, {percent(train2)} and {percent(test2)}"
    if percent(test2) == percent(test):
        start += ": no better"
    elif test2 < test:
        start += ": worse"
    return _capital(start) + "." + _its_own(first, second)


def _capital(text: str) -> str:
    return text[0].upper() + text[1:]


def _beside_nobody(second: Moment) -> str:
    worst = many_of(second.classes[second.figures.worst_class])
    return f"; {second.title} finds {percent(second.figures.worst)} of its worst class, {worst}."


def _its_own(first: Moment, second: Moment) -> str:
    """What is to be added where the second method has a worst class of its own."""
    if len(first.classes) > FEW_CLASSES or set(payers(second)) & set(payers(first)):
        return ""
    who = payers_words(second)
    if second.figures.worst > first.figures.worst:
        return f" Its own worst: {who}, {percent(second.figures.worst)}."
    return f" But now {who} pay, with {percent(second.figures.worst)}: the price has moved and not gone."


def metrics(first: Moment, second: Moment) -> dict[str, tuple[str, str, str]]:
    """Three figures: label -> value of the first, of the second, help."""
    few = len(first.classes) <= FEW_CLASSES
    worst = "Worst two classes" if few else "Tail classes"
    meant = "the two classes found least" if few else "classes with fewer than 20 training images"
    a, b = first.figures, second.figures
    return {
        "Overall": (
            _share(a.overall),
            _share(b.overall),
            f"Share of the test images that is right. {even_words(first)}",
        ),
        worst: (_share(a.worst_classes), _share(b.worst_classes), f"Mean recall of {meant}, on test images."),
        "σ₁": (
            f"{first.spectrum.sigma:.2f}",
            f"{second.spectrum.sigma:.2f}",
            "Largest singular value of the error rates on the test images, without weights. Lower is better.",
        ),
    }


def seeds_words(first: Moment, second: Moment, rows: Sequence[Mapping[str, Any]]) -> tuple[str, str, str]:
    """What the three figures come to over all seeds, `3 seeds: 48.9 → 65.0 %`; empty where a method has one seed only.

    Args:
        first: The first method, whose seed 0 is shown.
        second: The second one.
        rows: As `core.lab.tail_shelf.table` gives them.
    """
    found = [
        next((r for r in rows if r["data"] == m.data and r["name"] == m.method), None)
        for m in (first, second)
    ]
    a, b = found
    if a is None or b is None or a is b or first.epoch != first.epochs - 1:
        return "", "", ""
    seeds = len(set(a["by_seed"]) & set(b["by_seed"]))
    if seeds < 2 or len(a["seeds"]) != seeds or len(b["seeds"]) != seeds:
        return "", "", ""
    shares = (
        f"{seeds} seeds: {100 * a[k]:.1f} → {100 * b[k]:.1f}\u00a0%" for k in ("overall", "worst_classes")
    )
    return next(shares), next(shares), f"{seeds} seeds: {a['sigma1']:.2f} → {b['sigma1']:.2f}"


def evenly_tested(now: Moment) -> bool:
    """Whether each class that is tested has about equally many test images."""
    tested = now.tested[now.tested > 0]
    return bool(len(tested)) and bool(tested.max() <= 1.05 * tested.min())


def even_words(now: Moment) -> str:
    """Whether the test images are as long-tailed as the training images, which decides what overall accuracy says."""
    if evenly_tested(now):
        return "Every class has equally many of them, so that this is the mean recall; where rare classes are rare in life, it would hide them."
    return "Frequent classes have most of them, and decide it."


def _share(value: float) -> str:
    return "–" if math.isnan(value) else f"{100 * value:.1f}\u00a0%"


def left_out_words(now: Moment) -> str:
    """Classes without a test image; empty where each has one."""
    n = now.figures.left_out
    if not n:
        return ""
    names = [many_of(now.classes[k]) for k in np.flatnonzero(now.tested == 0)]
    which = f" ({listed(names)})" if n <= 3 else ""
    has, are = ("class has", "It is") if n == 1 else ("classes have", "They are")
    return f"{n} {has} no test image{which}. {are} left out of the worst class and of every mean."


def how_sure(first: Moment, second: Moment, rows: Sequence[Mapping[str, Any]]) -> str:
    """What the headline rests on: test images, and seeds where several are recorded."""
    who = payers(first)
    tested = int(first.tested[who].sum())
    said = f"The headline rests on {tested:,} test images of {payers_words(first)} and on one seed."
    if len(who) == 1:
        k = int(who[0])
        said += f" One standard error is {100 * first.error_of(k):.1f} points under {first.title}"
        if second.method != first.method:
            difference = float(second.recall[k] - first.recall[k])
            error = math.hypot(first.error_of(k), second.error_of(k))
            shown = f"{100 * difference:+.1f}".replace("-", "−")
            settled = "more" if abs(difference) > 2 * error else "no more"
            said += (
                f" and {100 * second.error_of(k):.1f} under {second.title}; the difference of {shown} points is {settled} "
                "than twice its own error. These errors are of the test images alone: another seed moves the difference, too"
            )
        said += "."
    said += " A class that is named because it came out worst looks a little worse than it is."
    last = first.epoch == first.epochs - 1  # rows are of the last epoch
    over = [r for m in (first, second) for r in rows if r["data"] == m.data and r["name"] == m.method]
    if last and len(over) == 2 and over[0] is not over[1]:
        what = "the worst two classes" if len(first.classes) <= FEW_CLASSES else "the tail"
        said += (
            f" Over seeds, mean recall of {what}: "
            + ", ".join(f"{r['method']} {with_sd(r, 'worst_classes')}" for r in over)
            + "."
        )
    return said


def with_sd(row: Mapping[str, Any], key: str) -> str:
    """`41.2 ± 1.3 % (3 seeds)`; one seed says so."""
    sd, seeds = row.get(f"{key}_sd"), row["seeds"]
    n = len(seeds) if isinstance(seeds, Sequence) else int(seeds)
    if sd is None or math.isnan(sd):
        return f"{100 * row[key]:.1f}\u00a0% (one seed)"
    return f"{100 * row[key]:.1f} ± {100 * sd:.1f}\u00a0% ({n} seeds)"


def bound_words(now: Moment, weights: str = "none") -> str:
    """What σ₁ bounds, beside the truth, and whether that says anything."""
    spectrum = now.spectrum if weights == "none" else Spectrum.of(now.test, lambda_of(now.counts, weights))
    bound = spectrum.bound()
    if math.isnan(bound.worst_error):
        return "No class has a test image, so there is nothing to bound."
    how = "√K · σ₁" if weights == "none" else "√K · σ₁ / w"
    who = f"{many_of(now.classes[bound.worst])}, the worst class,"
    start = f"{now.title}: σ₁ = {spectrum.sigma:.2f}, so the bound {how} on the error of {who} is {bound.of_worst:.2f}"
    if weights != "none":
        start += f" ({bound.worst_bound:.2f} for the class of the smallest w)"
    truth = f"in truth it errs on {percent(bound.worst_error)} of its test images"
    if bound.vacuous:
        return f"{start}. That is above 1 and says nothing (vacuous); {truth}."
    return f"{start}, that is {percent(bound.of_worst)}; {truth}."


def memory_words(seen: Remembered, name: str, memory: str, weights: str) -> list[str]:
    """What the memory and Λ make of one class's errors, with the closed form and the drawn batches."""
    who = many_of(name)
    chance = f"A batch of {seen.batch} holds {who} with a chance of {percent(seen.presence)}"
    if seen.forgets(memory):
        which = "the naive memory" if seen.beta else "a matrix without memory (β = 0)"
        said = (
            f"{chance}, and where it lacks them {which} counts no error. In expectation it settles at {percent(seen.presence)} of the "
            f"truth: an error of {percent(seen.expected(memory))} where {percent(seen.error)} are true"
        )
    else:
        keeps = "leaves their column alone" if memory == "present only" else "adds no sample, and so no error"
        said = f"{chance}; where it lacks them this memory {keeps}. It settles at the truth, {percent(seen.error)}"
    said += f" (in the second half of these {len(seen.seen)} drawn batches: {percent(seen.settled(memory))})."
    factor = float(seen.weights[weights][seen.column] / seen.weights[weights][0])
    if weights == "none":
        return [
            said,
            f"Without Λ, CAR sees {percent(seen.scale(memory))} of their errors, set beside what it sees of the most frequent class's.",
        ]
    by = "their sum" if weights == "sum" else "the largest"
    together = seen.scale(memory, weights)
    if together < 0.95:
        verdict = "Λ does not make up for what the memory forgets."
    elif together > 1.05:
        verdict = "They count more than their errors, as Λ intends."
    elif seen.scale(memory) < 0.95 and factor > 1.05:
        verdict = "The two nearly cancel."
    else:
        verdict = "They count about as much as the most frequent class."
    return [
        said,
        f"Λ (frequencies divided by {by}) lifts their column {factor:.2f} × over the most frequent class's; with memory and Λ together an error "
        f"of theirs counts {together:.2f} times one of that class. {verdict}",
    ]
