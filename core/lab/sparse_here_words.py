"""Sentences about a live run and about the objective over λ, computed from what they left, whichever way it fell."""

from __future__ import annotations

import math

import numpy as np

from core.conformal.words import percent
from core.lab.sparse_here import Watched
from core.lab.sparse_landscape import Curve, Landscape
from core.lab.sparse_phrases import CORRUPTION_WORDS, goes, lam, wants

WAYS = (("none", "nothing adapted"), ("bn", "BN alone"), ("lambda", "λ alone"), ("both", "λ and BN"))


def watched_words(run: Watched) -> tuple[str, ...]:
    """What a live run says; the first sentence is its headline."""
    what = (
        "clean pictures"
        if run.severity == 0
        else f"{CORRUPTION_WORDS.get(run.corruption, run.corruption)} at severity {run.severity}"
    )
    steps = len(run.threshold) - 1
    ends = goes if steps and still_moving(run.threshold) else wants
    first = f"On {what} {ends(run.threshold[0], run.threshold[-1])}."
    second = (
        f"In {steps} steps on {run.seen} pictures without labels, the share of zero codes went from {percent(_mean(run.sparsity, 0))} to "
        f"{percent(_mean(run.sparsity, -1))} and the error R from {percent(_mean(run.error, 0))} to {percent(_mean(run.error, -1))}"
        f"{'' if len(run.names) == 1 else f', means over {len(run.names)} layers'}."
    )
    found = [first, second]
    if steps and still_moving(run.threshold):
        found.append(
            f"λ was still moving when the {steps} steps ended: how far it got is set by their number and size, not by a minimum that it found."
        )
    if run.severity == 0:
        found.append(
            "Nothing was damaged, and still λ was pulled: the objective does not know what a clean picture is."
        )
    for name, why in list(run.stopped.items())[:3]:
        found.append(f"A guard stopped λ of the {name}: {why}.")
    if len(run.stopped) > 3:
        found.append(f"Guards stopped {len(run.stopped) - 3} more layers.")
    return (*found, *_answered(run))


def still_moving(threshold: np.ndarray) -> bool:
    """Whether λ, averaged over the layers, made a last step more than half as large as its first. `threshold` is `(steps + 1, L)`."""
    moved = np.abs(np.diff(np.log(threshold), axis=0)).mean(1)
    return bool(moved[-1] > moved[0] / 2 and moved[-1] > 1e-4)


def _mean(rows: np.ndarray, at: int) -> float:
    return float(rows[at].mean())


def _answered(run: Watched) -> tuple[str, ...]:
    """What the network says of the pictures that were held back."""
    held = len(run.clean) - run.seen
    who = f"the {held} picture{'' if held == 1 else 's'} held back, which adaptation did not see"
    found = []
    right = {way: run.answers[way].right for way, _ in WAYS}
    if all(math.isfinite(v) for v in right.values()):
        figure = "Dice with the true masks" if run.segments else "Right classes"
        found.append(
            f"{figure} on {who}: {_row(right)}; on the clean ones {percent(run.answers['clean'].right)}."
        )
    elif run.segments and run.masks is not None and run.severity:
        found.append(
            f"{CORRUPTION_WORDS[run.corruption].capitalize()} moves pixels, so the true masks no longer fit and no Dice with them is given."
        )
    same = {way: run.answers[way].same for way, _ in WAYS}
    if run.severity and all(math.isfinite(v) for v in same.values()):
        figure = (
            "Dice with the masks of the clean pictures"
            if run.segments
            else "The same class as on the clean picture"
        )
        found.append(f"{figure}, on {who if not found else 'the same pictures'}: {_row(same)}.")
    if not run.segments and run.labels is None:
        found.append(
            "The network knows ten kinds of things from CIFAR-10; on other pictures only whether its answer stays the same says something."
        )
    return tuple(found)


def _row(values: dict[str, float]) -> str:
    return ", ".join(f"{words} {percent(values[way])}" for way, words in WAYS)


def landscape_words(view: Landscape) -> tuple[str, ...]:
    """What holds for all K, then one sentence a K: where the local minimum lies, how far it is to the runaway, or that there is none."""
    first = (
        "Far right every code is zero, R is 1 and the objective falls as 1/λ for ever: λ = ∞ is its global minimum. Guards hold λ between "
        f"{lam(view.low)} and {lam(view.high)}."
    )
    return (first, *(_curve_words(c, view) for c in view.curves))


def _curve_words(curve: Curve, view: Landscape) -> str:
    who = f"K = {curve.iterations}{' (as trained)' if curve.iterations == view.trained_iterations else ''}"
    if curve.minimum is None:
        if curve.slope < 0:
            return (
                f"{who}: no local minimum; from the trained λ = {lam(view.trained)} it rolls up without end."
            )
        return f"{who}: no local minimum; from the trained λ = {lam(view.trained)} it rolls down towards 0, where every pixel is kept."
    at = float(view.thresholds[curve.minimum])
    way = "up" if curve.slope < 0 else "down" if curve.slope > 0 else "nowhere"
    said = f"{who}: λ wants {way} from {lam(view.trained)} to a local minimum at {lam(at)}"
    assert curve.barrier is not None
    ratio = float(curve.objective[curve.barrier] / curve.objective[curve.minimum])
    said += (
        f", behind a barrier {f'{ratio:.2g} times as high' if ratio > 2 else f'{percent(ratio - 1)} higher'}"
    )
    if curve.runaway is not None:
        said += f"; beyond {lam(float(view.thresholds[curve.runaway]))} the objective is lower than there, and λ would run away"
    if not view.low <= at <= view.high:
        said += "; the guards do not let it get there"
    return said + "."
