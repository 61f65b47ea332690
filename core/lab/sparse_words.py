"""Sentences about sparse layers, computed from recorded figures, whichever way they fell.

Points are percentage points of accuracy. Nothing is measured here; what a live run says is in
`sparse_here_words`.
"""

from __future__ import annotations

import math
from collections.abc import Mapping

import numpy as np

from core.conformal.words import percent
from core.figures.frame import listed
from core.lab.sparse_evidence_words import (
    ANALOGY,
    ablation_words,
    iteration_words,
    plane_words,
    recorded_words,
    story_words,
)
from core.lab.sparse_phrases import CORRUPTION_WORDS, NOTHING, STILL, goes, lam, points, wants
from core.lab.sparse_view import Severity

RUNAWAY = (
    "The objective R/(λ + ε) is smallest at λ = ∞, where every code is zero and nothing is left of the image. Only the shallow local minimum is of "
    "use, so guards hold λ: it starts at the trained value, takes few small steps, cannot leave its reach, and a layer stops when its error "
    "rises too far."
)
"""Why guards hold λ."""

SAME = 0.1
"""λ under damage and on clean images are called the same where they differ by less than this share."""

NOT_SCORED = "The images that adaptation saw are not scored."


def headline(view: Severity, at: int) -> str:
    """The page's first sentence at severity `at` (0 to 5): the λ that the network wants, what was lost, what BN recovers and what λ adds."""
    where = "On clean images" if at == 0 else f"At severity {at}"
    moved = view.threshold[at] if len(view.trained) else np.zeros(0)
    if at == 0 and len(view.trained):
        first = f"{where} {goes(view.trained, moved)}."
    elif at and as_on_clean(view, at):
        first = f"{where} {goes(view.trained, moved)}, as on clean images."
    else:
        first = f"{where} {wants(view.trained, moved)}."
    values = {way: float(view.accuracy[way][at]) for way in view.accuracy}
    clean, none = float(view.accuracy["none"][0]), values["none"]
    if math.isnan(none) or math.isnan(clean):
        return f"{first} Its accuracy there is not recorded."
    if at == 0:
        return f"{first} {_clean_change(values)}"
    lost = clean - none
    if 100 * lost < NOTHING:
        return f"{first} Nothing is lost there: accuracy is {percent(none)}, on clean images {percent(clean)}. {_harm(values)}".rstrip()
    return f"{first} {_recovered(values, lost, int(view.scored[at]))}"


def as_on_clean(view: Severity, at: int) -> bool:
    """Whether λ ends where it ends on clean images too, so that its move says nothing about the damage."""
    if not len(view.trained) or not np.isfinite(view.threshold[[0, at]]).all():
        return False
    return bool(abs(float(np.exp(np.log(view.threshold[at] / view.threshold[0]).mean())) - 1) < SAME)


def _clean_change(values: Mapping[str, float]) -> str:
    """What adaptation costs on clean images."""
    none, both = values["none"], values.get("both", values.get("bn", math.nan))
    if math.isnan(both):
        return f"Accuracy is {percent(none)}."
    change = both - none
    if 100 * abs(change) < NOTHING:
        return f"Nothing needs to move there; accuracy stays at {percent(both)}."
    return f"Nothing needs to move there, and moving {'costs' if change < 0 else 'gains'} {points(change)}: {percent(none)} becomes {percent(both)}."


def _harm(values: Mapping[str, float]) -> str:
    """What adaptation does where there was nothing to recover."""
    both = values.get("both", values.get("bn", math.nan))
    change = both - values["none"]
    if math.isnan(change) or 100 * abs(change) < NOTHING:
        return ""
    return f"Adaptation {'costs' if change < 0 else 'gains'} {points(change)}."


def _recovered(values: Mapping[str, float], lost: float, scored: int) -> str:
    """BN alone, then λ on top of it; less than one standard error of an accuracy on so many images is called no more than chance."""
    bn, both = values.get("bn", math.nan), values.get("both", math.nan)
    if math.isnan(bn):
        return f"Lost: {points(lost)} of accuracy; what adaptation recovers is not recorded."
    gain = bn - values["none"]
    if 100 * abs(gain) < NOTHING:
        said = f"BN alone recovers nothing of the {points(lost)} lost"
    elif gain < 0:
        said = f"BN alone loses {points(gain)} more than the {points(lost)} already lost"
    elif gain >= lost:
        said = f"BN alone recovers all of the {points(lost)} lost"
    else:
        said = f"BN alone recovers {points(gain).split()[0]} of the {points(lost)} lost"
    if math.isnan(both):
        return f"{said}."
    more = both - bn
    if 100 * abs(more) < NOTHING:
        return f"{said}, λ adds nothing."
    if scored and abs(more) < 0.5 / math.sqrt(scored):
        return f"{said}, λ adds nothing that can be told from chance ({100 * more:+.1f}).".replace("-", "−")
    return f"{said}, λ {'adds' if more > 0 else 'takes away'} {points(more).split()[0]}."


def sentences(view: Severity, at: int) -> tuple[str, ...]:
    """What stands under the picture: ResNet's BN beside it, λ alone, layers that a guard stopped, that seen images are not scored."""
    found = []
    if at and (beside := view.beside) and np.isfinite([beside["none"][at], beside["bn"][at]]).all():
        none, bn = float(beside["none"][at]), float(beside["bn"][at])
        found.append(
            f"A plain ResNet-18 of the same width goes from {percent(none)} to {percent(bn)} with BN alone."
        )
        both = float(view.accuracy.get("both", view.accuracy["bn"])[at])
        if math.isfinite(both):
            ahead = both - bn
            if 100 * abs(ahead) < NOTHING:
                found.append(f"{view.title} with everything adapted ends level with it.")
            else:
                found.append(
                    f"{view.title} with everything adapted ends {points(ahead)} {'above' if ahead > 0 else 'below'} that."
                )
    alone = view.accuracy.get("lambda")
    if at and alone is not None and np.isfinite(alone[at]):
        change = float(alone[at] - view.accuracy["none"][at])
        what = (
            "changes next to nothing"
            if 100 * abs(change) < NOTHING
            else f"{'gains' if change > 0 else 'costs'} {points(change)}"
        )
        found.append(f"λ alone {what}.")
    if at and as_on_clean(view, at):
        found.append(
            f"On clean images λ ends at practically the same place ({lam(float(view.threshold[0, 0]))}), so its move here says nothing "
            "about the damage."
        )
    if stopped := view.stopped[at]:
        which = listed(list(stopped[:3])) + (f" and {len(stopped) - 3} more" if len(stopped) > 3 else "")
        found.append(
            f"A guard stopped {len(stopped)} of {len(view.trained)} layers ({which}): the error rose too far."
        )
    scored = int(view.scored[at])
    if scored:
        error = 50 / math.sqrt(scored)
        found.append(
            f"{scored:,} test images are scored, so an accuracy is sure to about ±{error:.1f} points. Adaptation saw "
            f"{view.samples} others. {NOT_SCORED}"
        )
    return tuple(found)


def clean_words(view: Severity) -> str:
    """λ on clean images: adaptation moves it there too, and by how much; what that does to accuracy."""
    if not len(view.trained):
        return f"{view.title} has no λ."
    clean = view.threshold[0]
    if not np.isfinite(clean).all():
        return "What adaptation does to λ on clean images is not recorded."
    said = f"On clean images, where nothing needs to move, {goes(view.trained, clean)}."
    ratio = float(np.exp(np.log(clean / view.trained).mean()))
    if ratio > 1 + STILL:
        said += " It pulls λ up whether or not something is wrong, so a larger λ by itself is no sign of damage; the difference to this row is."
    elif ratio < 1 - STILL:
        said += (
            " It pulls λ down there, so the row of clean images is what the others are to be compared with."
        )
    values = {way: float(row[0]) for way, row in view.accuracy.items()}
    alone = values.get("lambda", math.nan) - values["none"]
    if math.isfinite(alone):
        what = (
            "leaves accuracy as it is"
            if 100 * abs(alone) < NOTHING
            else f"{'gains' if alone > 0 else 'costs'} {points(alone)} of accuracy"
        )
        said += f" Moving λ there {what}."
    return said


def metrics(view: Severity, at: int) -> tuple[tuple[str, str, str], ...]:
    """The three numbers of the first screen: (label, value, what it is): λ, accuracy after, what BN alone explains."""
    many = len(view.trained) > 1
    value, told = "–", "This network has no sparse layer."
    if len(view.trained):
        now = float(view.threshold[at, 0])
        value = lam(now) if math.isfinite(now) else "–"
        whose = f" of the first of {len(view.trained)} layers" if many else ""
        told = f"λ{whose} after the steps of adaptation, whichever λ the pictures show; training left it at {lam(float(view.trained[0]))}."
    none, bn = float(view.accuracy["none"][at]), float(view.accuracy["bn"][at])
    after = float(view.accuracy.get("both", view.accuracy["bn"])[at])
    gain, share = after - none, "–"
    if 100 * gain >= NOTHING and math.isfinite(bn):
        share = percent(max((bn - none) / gain, 0.0)) if bn < after else "all"
    return (
        ("adapted λ of the first layer" if many else "adapted λ", value, told),
        (
            "accuracy on CIFAR-10, adapted",
            percent(after) if math.isfinite(after) else "–",
            f"Before: {percent(none) if math.isfinite(none) else 'not recorded'}.",
        ),
        (
            "of the gain is BN",
            share,
            "Share of the gain that the statistics of batch normalisation bring by themselves, λ left alone."
            if share != "–"
            else "There is no gain to divide.",
        ),
    )


__all__ = [
    "ANALOGY",
    "CORRUPTION_WORDS",
    "NOT_SCORED",
    "RUNAWAY",
    "ablation_words",
    "clean_words",
    "headline",
    "iteration_words",
    "metrics",
    "plane_words",
    "recorded_words",
    "sentences",
    "story_words",
]
