"""Which part of CAR matters and which setting: ablations, sensitivities and another network, as the recorded runs fell, in figures and words.

Rows are those of `core.lab.tail_shelf.table`. Two rows are compared over the seeds that both have, and their difference is weighed against what
the seed alone does. Nothing is measured here.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, fields
from typing import Any

from core.conformal.words import percent
from core.figures.frame import listed
from core.lab.tail_answer import JOINED, row_of
from core.lab.tail_methods import COUNT
from core.lab.tail_names import SETS
from core.lab.tail_noise import Difference, clear_from, difference, noise_of, points, seeds_and_reach
from core.settings.car import CarSettings
from core.settings.knob import knobs

ABLATIONS = (
    ("Memory that forgets nothing (count, not naive)", "car-count", "car-naive-max"),
    ("Only present classes move (not naive)", "car-present", "car-naive-max"),
    ("Frequencies divided by the largest, not by the sum", "car-count", "car-count-sum"),
    ("Λ, weights of classes", "car-count", "car-no-weights"),
    ("A memory at all, α as it is (without one a batch pulls twice as hard)", "car-count", "car-no-ema"),
    ("A memory at all, at the same pull α (1 − β)", "car-count", "car-no-ema@alpha=0.25"),
    ("Gradient through the gate", "car-gate", "car-count"),
    ("CAR beside CutMix", "car-cutmix", "ce-cutmix"),
    ("CAR beside logit adjustment", "car-adjusted", "adjusted"),
)
"""What is asked, the method with it, the method without it."""


BASE = "car-count"
"""The method whose settings were moved."""


@dataclass(frozen=True)
class Ablation:
    """One question and its answer on each set.

    Attributes:
        question: What is switched on.
        sets: Set -> difference.
        plain: Set -> the worst classes' mean recall under CE alone at the seeds that it shares, for CAR beside something else; empty for other
            questions.
    """

    question: str
    sets: dict[str, Difference]
    plain: dict[str, float] = field(default_factory=dict)


def ablations(rows: Sequence[Mapping[str, Any]]) -> tuple[Ablation, ...]:
    """Every question that the recorded rows answer, on the sets where both sides are there."""
    found = []
    for question, with_it, without in ABLATIONS:
        each = {
            data: d
            for data in dict.fromkeys(r["data"] for r in rows)
            if (d := difference(rows, data, with_it, without)) is not None
        }
        if each:
            beside = {data: difference(rows, data, with_it, "ce") for data in each if with_it in JOINED}
            found.append(Ablation(question, each, {k: d.before for k, d in beside.items() if d is not None}))
    return tuple(found)


def ablation_words(one: Ablation, asked: int = 1) -> str:
    """An ablation as it fell, set by set, and what it amounts to where so many questions are asked at once."""
    parts = [
        f"{SETS[data]} {points(d.worst)} ({_way(d)}{seeds_and_reach(d)})" for data, d in one.sets.items()
    ]
    clear = [d.worst > 0 for d in one.sets.values() if d.clear]
    if clear and len(clear) == len(one.sets):
        verdict = (
            "It helps." if all(clear) else "It harms." if not any(clear) else "It helps here and harms there."
        )
    elif clear:
        verdict = f"Clear on {len(clear)} of {len(one.sets)} sets."
    elif all(d.noise is None for d in one.sets.values()):
        verdict = "One seed settles nothing."
    else:
        verdict = "No more than another seed would make."
    if clear and not any(d.clear_among(asked) for d in one.sets.values()):
        verdict = f"Clear by itself, but not as one of {asked} such questions."
    below = [f"{SETS[k]} ({percent(v)})" for k, v in one.plain.items() if one.sets[k].before < v]
    note = f" Without CAR it lies below CE alone on {listed(below)}." if below else ""
    return f"**{one.question}**, points of the worst classes: {', '.join(parts)}. {verdict}{note}"


def _way(d: Difference) -> str:
    return "" if math.isnan(d.before) else f"{100 * d.before:.1f} → {100 * d.after:.1f}\u00a0%, "


@dataclass(frozen=True)
class Sensitivity:
    """One setting of CAR moved on one set while the others stay.

    Attributes:
        data: The set.
        field: The setting.
        label: Its name on the screen.
        values: Its values, rising; the usual one among them.
        usual: The value that all other runs have.
        worst: The worst classes' mean recall at each value, at the one seed that all of them share.
        overall: Overall accuracy at each.
        reference: The worst classes' mean recall under CE at that seed; NaN where it is not recorded.
        reach: How far two seeds of one setting would often lie apart; None where it is not known.
    """

    data: str
    field: str
    label: str
    values: tuple[float, ...]
    usual: float
    worst: tuple[float, ...]
    overall: tuple[float, ...]
    reference: float
    reach: float | None


def sensitivities(rows: Sequence[Mapping[str, Any]]) -> tuple[Sensitivity, ...]:
    """Every setting that was moved by itself on some set, beside its usual value."""
    moved: dict[tuple[str, str], dict[float, Mapping[str, Any]]] = {}
    names = {f.name for f in fields(CarSettings)}
    for r in rows:
        base, _, change = r["name"].partition("@")
        name, _, value = change.partition("=")
        if base == BASE and name in names and "," not in change:
            moved.setdefault((r["data"], name), {})[float(value)] = r
    found = []
    for (data, name), by_value in moved.items():
        base_row = row_of(rows, data, BASE)
        if base_row is None:
            continue
        usual = float(getattr(COUNT, name))
        by_value = by_value | {usual: base_row}
        shared = set.intersection(*(set(r["by_seed"]) for r in by_value.values()))
        if not shared:
            continue
        seed, values = min(shared), tuple(sorted(by_value))
        at = [by_value[v]["by_seed"][seed] for v in values]
        ce = row_of(rows, data, "ce")
        there = ce is not None and seed in ce["by_seed"]
        noise, freedom = noise_of(rows, data, (BASE, BASE), 1)
        reach = None if noise is None else clear_from(freedom) * noise
        found.append(
            Sensitivity(
                data, name, knobs(CarSettings)[name].label, values, usual, tuple(a["worst_classes"] for a in at), tuple(a["overall"] for a in at),
                ce["by_seed"][seed]["worst_classes"] if there and ce is not None else math.nan, reach,
            )
        )  # fmt: skip
    order = ("alpha", "beta", "r0", "gamma")
    return tuple(sorted(found, key=lambda s: order.index(s.field) if s.field in order else len(order)))


def sensitivity_words(one: Sensitivity) -> str:
    """How much a setting matters, beside what the seed alone does."""
    low, high = (f(range(len(one.values)), key=one.worst.__getitem__) for f in (min, max))
    span = one.worst[high] - one.worst[low]
    told = [f"{v:g}".replace("-", "−") for v in one.values]
    said = (
        f"**{one.label}**, from {told[0]} to {told[-1]}: the worst classes go from {100 * one.worst[low]:.1f}\u00a0% (at {told[low]}) to "
        f"{100 * one.worst[high]:.1f}\u00a0% (at {told[high]}); the usual value is {one.usual:g}"
    )
    if one.reach is None:
        return f"{said}. One seed settles nothing."
    much = "more" if span > one.reach else "no more"
    said += (
        f". That is {much} than two seeds of one setting would often lie apart ({100 * one.reach:.1f} points)"
    )
    if one.field == "beta":
        said += "; β also sets how hard one batch pulls, α (1 − β)"
    below = [v for v, w in zip(told, one.worst, strict=True) if w <= one.reference]
    if below:
        return f"{said}. At {listed(below)} CAR is no better than CE."
    return said + ("." if math.isnan(one.reference) else ". CAR stays above CE throughout.")


NETWORKS = {"vit": "A transformer of ViT-Tiny's width and depth", "resnet": "ResNet"}
"""Networks in words."""


def network_words(rows: Sequence[Mapping[str, Any]], others: Sequence[Mapping[str, Any]]) -> list[str]:
    """What CAR does to another network, set by set, beside the network of the table.

    Args:
        rows: The table.
        others: As `core.lab.tail_shelf.other_networks` gives them.
    """
    said = []
    for data in dict.fromkeys(r["data"] for r in others):
        base = row_of(others, data, "ce")
        for car in (r for r in others if r["data"] == data and r["name"].startswith("car-")):
            if base is None:
                continue
            gain, cost = (car[k] - base[k] for k in ("worst_classes", "overall"))
            n = len(set(car["by_seed"]) & set(base["by_seed"]))
            text = (
                f"**{NETWORKS.get(car['network'], car['network'])}** on {SETS[data].lower()}: the worst classes go from "
                f"{100 * base['worst_classes']:.1f}\u00a0% under CE to {100 * car['worst_classes']:.1f}\u00a0% under {car['method']} "
                f"({points(gain)} points), overall {points(cost)}"
            )
            here = difference(rows, data, car["name"], "ce")
            if here is not None:
                text += f". With the table's ResNet: {points(here.worst)} and {points(here.overall)}"
                if gain:
                    text += f", {'the same way' if (here.worst > 0) == (gain > 0) else 'the other way'}"
            if max(car["worst_classes"], base["worst_classes"]) < 0.005:
                text += ". In so short a training neither learns these classes, so nothing is compared"
            said.append(f"{text}. {'One seed each.' if n == 1 else f'{n} seeds each.'}")
    return said
