"""What is said of a person's own probabilities, and every number of it as rows and as JSON. Computed, never fixed text."""

from __future__ import annotations

import math
from importlib.metadata import PackageNotFoundError, version
from typing import Any

import numpy as np

from core.conformal.words import percent
from core.lab.margin_own_measure import Measured, Part, Scaling
from core.margin.pixels import SCOPES
from core.margin.reliability import Reliability, ece

SCOPE_WORDS = {"all": "all pixels", "foreground": "pixels whose truth is not class 0"}
ROW_WORDS = {"all": "all rows", "foreground": "rows whose truth is not class 0"}
PARTS = {"whole": "all of it", "before": "second half, T = 1", "after": "second half, T fitted on the first"}


def one_digit(share: float) -> str:
    """A share with one digit behind the point: 0.0613 is `6.1 %`."""
    return f"{100 * share:.1f}\u00a0%"


def scope_words(found: Measured, scope: str) -> str:
    """The scope in words: of pixels, or of rows."""
    return (ROW_WORDS if found.own.rows else SCOPE_WORDS)[scope]


def things(found: Measured, count: int) -> str:
    """`1,234 pixels`, or rows."""
    return f"{count:,} {'row' if found.own.rows else 'pixel'}{'' if count == 1 else 's'}"


def headline(found: Measured, scope: str) -> str:
    """What the model says of itself and how often it is right."""
    table = found.whole.pooled(scope)
    if not table.pixels:
        return f"Nothing is counted: there are no {scope_words(found, scope)}. Count all of them instead."
    said, right = table.overall_confidence, table.overall_accuracy
    gap = said - right
    side = (
        "just as sure as it is right"
        if abs(gap) < 0.0005
        else "surer than it is right"
        if gap > 0
        else "less sure than it is right"
    )
    return (
        f"Your model is {one_digit(said)} sure on average and right {one_digit(right)} of the time: {side}. ECE is {one_digit(ece(table))} over "
        f"{things(found, table.pixels)}."
    )


def scaling_sentence(found: Measured, scope: str) -> str:
    """What one temperature does to the half that did not choose it."""
    s = found.scaling
    if s is None:
        return found.why_not
    before, after = s.before.pooled(scope), s.after.pooled(scope)
    half = (
        f"T was fitted by NLL on {s.fitted:,} {s.unit}, over all pixels of them"
        if s.unit == "images"
        else f"T was fitted by NLL on {s.fitted:,} {s.unit}"
    )
    first = f"{half}, and is shown on the other {s.shown:,}, drawn with seed {found.seed}."
    if s.at_end:
        first += " It ran into the end of its range: " + (
            "these values say nothing about the truth."
            if s.temperature > 1
            else "on that half the model is never wrong, so it cannot be too sure."
        )
    if not before.pixels:
        return f"{first} That half has no {scope_words(found, scope)}."
    one, two = ece(before), ece(after)
    turn = (
        "stays at"
        if one_digit(one) == one_digit(two)
        else f"{'falls' if two < one else 'rises'} from {one_digit(one)} to"
    )
    kind = "softer" if s.temperature > 1.005 else "sharper" if s.temperature < 0.995 else "the same"
    near = (
        " Neighbouring pixels of one image hang together, so this looks better than a new image would."
        if s.unit == "pixels"
        else ""
    )
    return (
        f"With T = {s.temperature:.3g} ({kind}), ECE on {scope_words(found, scope)} {turn} {one_digit(two)}, and NLL goes from "
        f"{before.nll_sum / before.pixels:.3f} to {after.nll_sum / after.pixels:.3f}. The predicted class of every pixel stays. {first}{near}"
    )


def scope_sentence(scope: str) -> str:
    """What a scope leaves out, and what that does."""
    if scope == "all":
        return "Every pixel counts. Where most of a picture is plain background, the background decides."
    return (
        "Only pixels whose truth is foreground count, as in the paper of the margin loss. That conditions on the truth: even a perfectly calibrated "
        "model has an error here, so read it beside the figures of all pixels."
    )


def parts_of(found: Measured) -> dict[str, Part]:
    """`whole`, and where a temperature was fitted `before` and `after`."""
    s = found.scaling
    return {"whole": found.whole} | ({} if s is None else {"before": s.before, "after": s.after})


def metric_rows(found: Measured) -> list[dict[str, object]]:
    """One row for each part, scope and metric."""
    rows: list[dict[str, object]] = []
    for key, part in parts_of(found).items():
        t = found.scaling.temperature if key == "after" and found.scaling else 1.0
        rows += [
            {"part": PARTS[key], "temperature": t} | row for scope in SCOPES for row in part.figures(scope)
        ]
    return rows


def overlap_rows(found: Measured) -> list[dict[str, object]]:
    """One row a class: Dice, HD95 and ASD, with the images in which a mask is empty; none where there are no maps."""
    summary = found.summary
    if summary is None:
        return []
    unit = "pixels" if any(i.spacing is None for i in found.own.items) else "mm"
    return [
        {
            "class": found.own.classes[c],
            "dice": float(summary.dice[k]),
            "hd95": float(summary.hd95[k]),
            "asd": float(summary.asd[k]),
            "unit": unit,
            "images": summary.images,
            "both_empty": int(summary.both_empty[k]),
            "missed": int(summary.missed[k]),
            "invented": int(summary.invented[k]),
        }
        for k, c in enumerate(summary.classes)
    ]


def image_rows(found: Measured) -> list[dict[str, object]]:
    """One row an image: pixels, ECE, Brier score and NLL in both scopes, and mean Dice where there are maps."""
    rows: list[dict[str, object]] = []
    for i, item in enumerate(found.own.items):
        row: dict[str, object] = {"image": item.name}
        for scope in SCOPES:
            t = found.whole.tables[scope][i]
            row |= {
                f"pixels_{scope}": t.pixels,
                f"ece_{scope}": ece(t) if t.pixels else math.nan,
                f"brier_{scope}": t.brier_sum / t.pixels if t.pixels else math.nan,
                f"nll_{scope}": t.nll_sum / t.pixels if t.pixels else math.nan,
            }
        if found.overlaps:
            there = found.overlaps[i].dice[~np.isnan(found.overlaps[i].dice)]
            row["dice"] = float(there.mean()) if len(there) else math.nan
        rows.append(row)
    return rows


def facts(found: Measured) -> dict[str, Any]:
    """Everything as JSON-able values: how files were read, every metric, every bin."""
    own, s = found.own, found.scaling
    try:
        library = version("plumbline")
    except PackageNotFoundError:
        library = "unknown"
    return {
        "format": "plumbline-reliability",
        "version": 1,
        "library": library,
        "settings": {
            "reading": own.answers, "classes": list(own.classes), "bins": found.whole.pooled("all").bins, "bins_are": "(lo, hi] of the "
            "largest probability",
            "seed": found.seed, "scopes": SCOPE_WORDS, "values": own.of,
        },
        "images": len(own), "pixels": own.pixels, "notes": [*own.notes, *found.notes],
        "sentences": {scope: [headline(found, scope), scaling_sentence(found, scope)] for scope in SCOPES},
        "metrics": [_plain(r) for r in metric_rows(found)],
        "overlap": [_plain(r) for r in overlap_rows(found)],
        "temperature": None if s is None else _scaling(s),
        "why_no_temperature": found.why_not,
        "reliability": {key: {scope: _bins(part.pooled(scope)) for scope in SCOPES} for key, part in parts_of(found).items()},
        "per_image": [_plain(r) for r in image_rows(found)],
    }  # fmt: skip


def _scaling(s: Scaling) -> dict[str, Any]:
    return {
        "value": s.temperature, "at_the_end_of_its_range": s.at_end, "halves_of": s.unit, "fitted_on": s.fitted, "shown_on": s.shown,
        "fitted_in_scope": "all", "images_shown": list(s.names),
    }  # fmt: skip


def _bins(table: Reliability) -> dict[str, Any]:
    return {
        "edges": table.edges.tolist(),
        "count": table.count.tolist(),
        "mean_confidence": [_number(v) for v in table.mean_confidence],
        "accuracy": [_number(v) for v in table.accuracy],
    }


def _plain(row: dict[str, object]) -> dict[str, object]:
    return {k: _number(v) if isinstance(v, float) else v for k, v in row.items()}


def _number(value: float) -> float | None:
    return float(value) if math.isfinite(value) else None


def dice_sentence(found: Measured) -> str:
    """Overlap in one sentence, with what was left out; "" where there are no maps."""
    summary = found.summary
    if summary is None:
        return ""
    dice, far = summary.mean_dice, summary.mean_hd95
    if math.isnan(dice):
        return "No image shows a foreground class, in the truth or in the prediction, so there is no overlap to measure."
    unit = overlap_rows(found)[0]["unit"]
    text = (
        f"Dice is {dice:.3f}"
        + ("" if math.isnan(far) else f" and HD95 {far:.1f} {unit}")
        + ", means over images and foreground classes."
    )
    missed, invented, empty = (int(x.sum()) for x in (summary.missed, summary.invented, summary.both_empty))
    told = [f"{word} {_times(n)}" for word, n in (("missed altogether", missed), ("invented", invented)) if n]
    if told:
        text += f" A class was {' and '.join(told)}: Dice is 0 there, and HD95 is not defined and left out."
    if empty:
        text += f" A class is in neither {_times(empty)}: that has no Dice, and a distance of 0."
    return text


def _times(n: int) -> str:
    return {1: "once", 2: "twice"}.get(n, f"{n:,} times")


def surest(found: Measured, scope: str) -> str:
    """The fullest bin at the top: what it says and what is true; "" where nothing is counted."""
    t = found.whole.pooled(scope)
    if not t.pixels:
        return ""
    k = int(np.flatnonzero(t.count)[-1])
    return (
        f"Where it says {percent(float(t.mean_confidence[k]))}, it is right {percent(float(t.accuracy[k]))} of the time "
        f"({percent(float(t.count[k] / t.pixels))} of the {'rows' if found.own.rows else 'pixels'})."
    )
