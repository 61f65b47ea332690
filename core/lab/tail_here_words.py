"""What a comparison that was trained on the page says: computed from its matrices, whichever way it fell, with what chance can do beside it."""

from __future__ import annotations

import math

import numpy as np
from scipy.stats import t

from core.car.metrics import recalls
from core.lab.tail_here import Compared
from core.lab.tail_own_words import percent

FIGURES = {
    "overall": "accuracy on all test images",
    "tail": "mean recall of the three rarest digits",
    "worst_classes": "mean recall of the two worst digits",
    "worst": "recall of the worst digit",
}
"""Figures of the table, and what they are."""


def clear_from(seeds: int) -> float:
    """From how many standard errors of its mean on a difference over so many seeds is called clear: two-sided 95 % of Student's t."""
    return float(t.ppf(0.975, seeds - 1))


def difference(run: Compared, figure: str) -> tuple[float, float, int]:
    """CAR minus CE in points: mean over seeds, its standard error (NaN for one seed), and in how many seeds CAR is ahead.

    Args:
        run: What was trained.
        figure: One of `FIGURES`.
    """
    ce, car = (np.array([getattr(f, figure) for f in run.figures(key)]) for key in list(run.methods)[:2])
    gap = 100 * (car - ce)
    error = float(gap.std(ddof=1) / math.sqrt(len(gap))) if len(gap) > 1 else float("nan")
    return float(gap.mean()), error, int((gap > 0).sum())


def signed(points: float) -> str:
    """A difference with its sign, one digit behind the point."""
    return f"{points:+.1f}".replace("-", "−")


def sentence(run: Compared) -> str:
    """What came out for the worst digit and for all of them."""
    ce, car = list(run.methods)
    n = run.budget.seeds
    worst = {key: np.mean([f.worst for f in run.figures(key)]) for key in (ce, car)}
    gap, error, ahead = difference(run, "worst")
    label = run.methods[car].label
    first = (
        f"The worst digit is right {percent(float(worst[ce]))} of the time under CE and {percent(float(worst[car]))} under {label}, means over "
        f"{n} seed{'' if n == 1 else 's'}."
    )
    if abs(gap) < 0.05 and not error > 0:
        second = "They do not differ."
    elif math.isnan(error):
        second = f"That is {signed(gap)} points from one seed, which cannot be told from chance."
    else:
        verdict = (
            "more than chance between seeds explains"
            if abs(gap) > clear_from(n) * error
            else "within what chance between seeds does"
        )
        second = f"The difference is {signed(gap)} ± {error:.1f} points (mean, standard error); CAR is ahead in {ahead} of {n} seeds: {verdict}."
    whole, _, _ = difference(run, "overall")
    third = f"Accuracy on all digits {_moved(whole)}."
    return f"{first} {second} {third}"


def _moved(points: float) -> str:
    if abs(points) < 0.05:
        return "stays the same"
    return f"{'rises' if points > 0 else 'falls'} by {abs(points):.1f} points"


def paying_sentence(run: Compared) -> str:
    """Who pays under cross-entropy: the worst digit of all seeds together, how few images trained it, and what survives of its training recall."""
    ce = next(iter(run.methods))
    each = recalls(run.pooled(ce))
    j = int(np.nanargmin(each))
    learned = recalls(run.learned(ce))[j]
    lost = run.pooled(ce)[:, j].astype(float)
    lost[j] = 0
    to = int(lost.argmax())
    taken = "" if not lost.any() else f", most often called a {run.classes[to]}"
    return (
        f"Under CE the {run.classes[j]} pays: {run.counts[j]} training image{'' if run.counts[j] == 1 else 's'}, of which it knows "
        f"{percent(float(learned))}, and {percent(float(each[j]))} of new ones{taken}."
    )


def rows(run: Compared) -> list[dict[str, object]]:
    """The table: one row a figure with means of both, the difference and its standard error."""
    ce, car = list(run.methods)
    out: list[dict[str, object]] = []
    for figure, words in FIGURES.items():
        gap, error, ahead = difference(run, figure)
        out.append(
            {
                "figure": words,
                "ce": float(np.mean([getattr(f, figure) for f in run.figures(ce)])),
                "car": float(np.mean([getattr(f, figure) for f in run.figures(car)])),
                "difference": gap,
                "standard_error": error,
                "ahead": f"{ahead} of {run.budget.seeds}",
            }
        )
    return out
