"""What the table of long-tail runs says (which CAR the validation part chooses, sets won, rivals, what is learned and not found again), and
what one network says of one picture.

Rows are those of `core.lab.tail_shelf.table`. Which part of CAR matters is in `tail_parts`. Nothing is measured here.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from core.car.metrics import FEW_CLASSES
from core.conformal.words import percent
from core.figures.frame import listed
from core.lab.tail_names import SETS, label_of, many_of
from core.lab.tail_view import Moment, frequency_order
from core.lab.tail_words import evenly_tested, with_sd

SLACK = 0.005
"""How much of overall accuracy a CAR may cost: on the validation part before it is no choice, on the test images before a set is not won."""

JOINED = ("car-cutmix", "car-adjusted")
"""CAR beside something else: no row that CAR alone is judged by."""


def chosen_car(rows: Sequence[Mapping[str, Any]], data: str) -> Mapping[str, Any] | None:
    """The row of CAR that the validation part of the training images chooses on a set; the test images have no say.

    Among rows that add CAR to cross-entropy alone, were trained with the most seeds and cost at most `SLACK` of CE's overall accuracy there, the
    one with the best mean recall of the worst classes; ties go to the better mean recall. Where each costs more, all of them stand.

    Args:
        rows: As `core.lab.tail_shelf.table` gives them.
        data: The set.

    Returns:
        The row, or None where no CAR is recorded.
    """
    mine = [r for r in rows if r["data"] == data]
    cars = [r for r in mine if r["name"].startswith("car-") and r["name"].partition("@")[0] not in JOINED]
    base = next((r for r in mine if r["name"] == "ce"), None)
    most = max((len(r["seeds"]) for r in cars), default=0)
    cars = [r for r in cars if len(r["seeds"]) == most]
    kept = [r for r in cars if base is None or r["val_overall"] >= base["val_overall"] - SLACK]
    return max(kept or cars, key=lambda r: (r["val_worst_classes"], r["val_mean_recall"]), default=None)


def row_of(rows: Sequence[Mapping[str, Any]], data: str, name: str) -> Mapping[str, Any] | None:
    """One method's row on a set; None where it is not recorded."""
    return next((r for r in rows if r["data"] == data and r["name"] == name), None)


def choice_words(rows: Sequence[Mapping[str, Any]], data: str) -> str:
    """How the CAR row of a set was chosen, and what it came to on test images; empty where none is recorded."""
    chosen, base = chosen_car(rows, data), row_of(rows, data, "ce")
    if chosen is None:
        return ""
    said = (
        f"**{SETS[data]}: {chosen['method']}** was chosen on the validation part, 15\u00a0% of each class's training images on which nothing "
        f"trained. There the worst classes have a mean recall of {percent(chosen['val_worst_classes'])}"
    )
    if base is None:
        return said + ". CE is not recorded beside it."
    said += f", CE's {percent(base['val_worst_classes'])}"
    said += f"; overall {100 * chosen['val_overall']:.1f} against {100 * base['val_overall']:.1f}\u00a0%. "
    if chosen["val_overall"] < base["val_overall"] - SLACK:
        said += "Every CAR costs more than half a point overall there, so the best of them stands. "
    return said + (
        f"On the test images, which had no say: {with_sd(chosen, 'worst_classes')} against {with_sd(base, 'worst_classes')}. A rare class has "
        "few images to validate on, so the choice is noisy."
    )


def sets_won(rows: Sequence[Mapping[str, Any]]) -> dict[str, bool]:
    """Set -> whether the chosen CAR finds more of the worst classes' test images than CE, and costs at most `SLACK` overall."""
    found = {}
    for data in dict.fromkeys(r["data"] for r in rows):
        chosen, base = chosen_car(rows, data), row_of(rows, data, "ce")
        if chosen is not None and base is not None:
            found[data] = bool(
                chosen["worst_classes"] > base["worst_classes"]
                and chosen["overall"] >= base["overall"] - SLACK
            )
    return found


def won_words(rows: Sequence[Mapping[str, Any]]) -> str:
    """How many sets CAR wins over CE, and which it does not; empty where nothing can be compared."""
    won = sets_won(rows)
    if not won:
        return ""
    said = (
        f"On {sum(won.values())} of {len(won)} recorded sets the chosen CAR finds more of the worst classes than CE and costs at most half a "
        "point overall"
    )
    over = [f"{SETS[k]}, {seeds_of(rows, k)}" for k, w in won.items() if w]
    said += f" ({'; '.join(over)})" if over else ""
    lost = [SETS[k] for k, w in won.items() if not w]
    said += f"; not on {listed(lost)}." if lost and any(won.values()) else "."
    empty = [SETS[k] for k in won if not any(_found(rows, k))]
    return said + (
        f" On {listed(empty)} neither finds a single one, so that nothing is compared there." if empty else ""
    )


def seeds_of(rows: Sequence[Mapping[str, Any]], data: str) -> str:
    """`3 seeds` of the chosen CAR on a set."""
    chosen = chosen_car(rows, data)
    n = 0 if chosen is None else len(chosen["seeds"])
    return "one seed" if n == 1 else f"{n} seeds"


def _found(rows: Sequence[Mapping[str, Any]], data: str) -> list[float]:
    """The worst classes' mean recall under CE and under the chosen CAR."""
    return [r["worst_classes"] for r in (row_of(rows, data, "ce"), chosen_car(rows, data)) if r is not None]


def best_without(rows: Sequence[Mapping[str, Any]], data: str) -> Mapping[str, Any] | None:
    """The row without CAR whose worst classes are found most, CE and what mixes pictures left out; None where there is none.

    The test images choose it, which favours it: the comparison is hard on CAR.
    """
    mine = [r for r in rows if r["data"] == data and not r["name"].startswith(("car-", "ce"))]
    return max(mine, key=lambda r: r["worst_classes"], default=None)


def rival_words(rows: Sequence[Mapping[str, Any]]) -> str:
    """How the chosen CAR stands beside the best loss without CAR, set by set; empty where none is recorded."""
    parts, behind = [], 0
    for data in dict.fromkeys(r["data"] for r in rows):
        ours, theirs = chosen_car(rows, data), best_without(rows, data)
        if ours is None or theirs is None:
            continue
        gap = ours["worst_classes"] - theirs["worst_classes"]
        behind += gap < 0
        parts.append(
            f"{SETS[data]}, {theirs['method']} {100 * theirs['worst_classes']:.1f} against {100 * ours['worst_classes']:.1f}\u00a0%"
            f" ({'CAR ahead' if gap > 0 else 'CAR behind' if gap < 0 else 'level'})"
        )
    if not parts:
        return ""
    n = len(parts)
    lead = f"On {behind} of {n} recorded sets" if n > 1 else "On the one set where another loss is recorded"
    verdict = (
        f"**{lead} a loss without CAR finds more of the worst classes than the chosen CAR.**"
        if behind
        else f"**{lead} no loss without CAR finds more of the worst classes than the chosen CAR.**"
        if n == 1
        else "**On none of these sets does a loss without CAR find more of the worst classes than the chosen CAR.**"
    )
    return f"{verdict} {'; '.join(parts)}. The test images chose that loss, which favours it a little."


def motive_words(rows: Sequence[Mapping[str, Any]], data: str) -> str:
    """The paper's motive, as measured: how much of its worst classes a method finds among training and among new images; empty without CE."""
    base, chosen = row_of(rows, data, "ce"), chosen_car(rows, data)
    if base is None or math.isnan(base["worst_classes_train"]):
        return ""
    what = "the tail classes" if base["classes"] > FEW_CLASSES else "its worst two classes"
    said = f"**{SETS[data]}.** CE finds {_learned_and_found(base, what)}"
    if base["worst_classes_train"] < 0.005 and base["worst_classes"] < 0.005:
        said += ": nothing of them is learned, so there is nothing to find again"
    if chosen is not None and not math.isnan(chosen["worst_classes_train"]):
        own = "Of them" if base["classes"] > FEW_CLASSES else "Of its own worst two classes"
        said += f". {own} {chosen['method']} finds {_learned_and_found(chosen)}"
        more, again = (chosen[k] - base[k] for k in ("worst_classes_train", "worst_classes"))
        if max(abs(more), abs(again)) >= 0.005:
            said += (
                f". Its difference is {_in_points(more)} in training and {_in_points(again)} on new images"
            )
    return f"{said}."


def _learned_and_found(row: Mapping[str, Any], what: str = "") -> str:
    """`75 % of its worst two classes among its training images and 49 % among new ones (35 % of what is learned is lost)`."""
    learned, found = row["worst_classes_train"], row["worst_classes"]
    of = f" of {what} among its training images" if what else " in training"
    said = f"{percent(learned)}{of} and {percent(found)} {'among new ones' if what else 'on new images'}"
    lost = (learned - found) / learned if learned >= 0.005 else 0.0
    return f"{said} (lost on the way: {percent(lost)} of what is learned)" if lost > 0 else said


def _in_points(share: float) -> str:
    return f"{100 * share:+.1f} points".replace("-", "−")


@dataclass(frozen=True, eq=False)
class Answer:
    """What one network says of one picture, and what it is worth.

    Attributes:
        title: The method.
        classes: K names, the most frequent first.
        shares: `(K,)` softmax of the logits.
        said: The class it names.
        of_called: `(K,)` test images that this network called so, by their true class; None where no record is here.
        of_true: `(K,)` test images of that class, by what they were called; None where no record is here.
        rarer: The test images are equally many of each class, and the class it names is not the most frequent one in training.
    """

    title: str
    classes: tuple[str, ...]
    shares: np.ndarray
    said: int
    of_called: np.ndarray | None
    of_true: np.ndarray | None
    rarer: bool = False


def answer(
    title: str, classes: Sequence[str], counts: np.ndarray, logits: np.ndarray, now: Moment | None
) -> Answer:
    """Read one picture's logits.

    Args:
        title: The method's name on the screen.
        classes: K names in the network's own order.
        counts: `(K,)` training images, in that order.
        logits: `(K,)`, in that order.
        now: The record of this network, for what its class is confused among; None where there is none.

    Raises:
        ValueError: The logits are not numbers.
    """
    if not np.isfinite(logits).all():
        raise ValueError(f"{title} gives no numbers for this picture.")
    order = frequency_order(counts)
    lifted = np.exp(logits[order].astype(np.float64) - logits.max())
    said = int(lifted.argmax())
    names = tuple(classes[k] for k in order)
    known = now is not None and now.classes == names
    return Answer(
        title=title,
        classes=names,
        shares=lifted / lifted.sum(),
        said=said,
        of_called=now.test[said] if known and now is not None else None,
        rarer=known and now is not None and said > 0 and evenly_tested(now),
        of_true=now.test[:, said] if known and now is not None else None,
    )


def answer_words(said: Answer, record: bool = True) -> str:
    """What a network says of a picture, how often it is right when it says so, and what else that class is called.

    Args:
        said: The answer.
        record: False leaves the track record out: it says nothing of a picture of another kind.
    """
    label = label_of(said.classes[said.said])
    text = f"**{said.title}** says *{label}* ({percent(float(said.shares[said.said]))})."
    if not record:
        return text
    if said.of_called is None or said.of_true is None:
        return (
            text
            + " No confusion matrix of it is recorded here, so what this class is confused among is not known."
        )
    called, true = int(said.of_called.sum()), int(said.of_true.sum())
    if not called:
        text += " It called no test image so."
    else:
        text += (
            f" Of {called} test images that it called so, {percent(said.of_called[said.said] / called)} were"
        )
        text += _others(said, said.of_called, "; the rest were mostly {}.", ".")
        if said.rarer:
            text += " The test images are equally many of each class: where this one is rarer, fewer of those called so are."
    if true:
        text += f" Of {true} that are {many_of(said.classes[said.said])} it found {percent(said.of_true[said.said] / true)}"
        text += _others(said, said.of_true, "; it called the rest mostly {}.", ".")
    return text


def _others(said: Answer, counts: np.ndarray, words: str, none: str) -> str:
    """The two largest entries that are not the class itself, in words."""
    total = counts.sum()
    order = [int(k) for k in np.argsort(-counts, kind="stable") if k != said.said and counts[k] > 0][:2]
    if not order:
        return none
    return words.format(listed([f"{many_of(said.classes[k])} ({percent(counts[k] / total)})" for k in order]))
