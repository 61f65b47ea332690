"""Headlines and sentences with this visitor's numbers in them. Computed, never fixed text; pages only show
them.
"""

from __future__ import annotations

import numpy as np

from core.conformal.words import percent, promised
from core.lab.pool import ImageNumbers
from core.lab.promise import Promise, times_the_area
from core.lab.study import NO_SHIFT, Split

Numbers = Promise | ImageNumbers
"""What a headline needs: alpha, thresholds, areas and coverages by method."""


def area_ratio(p: Numbers) -> float:
    """COAT's area over CRC's; infinite when CRC marks nothing."""
    return p.area["COAT"] / p.area["CRC"] if p.area["CRC"] else float("inf")


def start_headline(split: Split, p: Numbers) -> str:
    """What happened on this image, under a promise that holds on average. Short enough for two lines."""
    crc, coat = split.evaluations["CRC"], split.evaluations["COAT"]
    average = (
        f"Promised: {promised(split.alpha)}. Over {crc.n} images CRC finds {percent(crc.coverage)}, COAT "
        f"{percent(coat.coverage)}."
    )
    if p.coverage is None:
        return f"{average} This one has no lesion, and CRC marks {percent(p.area['CRC'])} of it all the same."
    ratio = area_ratio(p)
    price = "where CRC marks nothing" if ratio == float("inf") else f"for {times_the_area(ratio)}"
    return f"{average} On this one CRC finds {percent(p.coverage['CRC'])}, COAT {percent(p.coverage['COAT'])} {price}."


def coverage_headline(p: Numbers) -> str:
    """Where the threshold goes for this image, and what that does."""
    if p.coverage is not None:
        return _on_this_one(p, "On this image CRC")
    crc, coat = p.area["CRC"], p.area["COAT"]
    if crc == 0:
        return f"CRC marks nothing of this image; COAT marks {percent(coat)}."
    if abs(coat - crc) < 0.01:
        return f"CRC and COAT mark about the same of this image: {percent(coat)}."
    direction = "lowers" if p.tau["COAT"] < p.tau["CRC"] else "raises"
    return f"For this image COAT {direction} the threshold and marks {percent(coat)} of it; CRC marks {percent(crc)}."


def _on_this_one(p: Numbers, who: str) -> str:
    assert p.coverage is not None
    crc, coat, ratio = p.coverage["CRC"], p.coverage["COAT"], area_ratio(p)
    link = "and" if (coat > crc) == (ratio > 1) or coat == crc else "yet"
    marks = (
        "marks an area where CRC marks none" if ratio == float("inf") else f"marks {times_the_area(ratio)}"
    )
    if max(crc, coat) < 0.005:
        return f"{who} finds nothing of the lesion. Nor does COAT, which {marks}."
    if abs(coat - crc) < 0.005:
        return f"{who} finds {percent(crc)} of the lesion. So does COAT, which {marks}."
    return f"{who} finds {percent(crc)} of the lesion. COAT finds {percent(coat)} {link} {marks}."


def average_sentence(split: Split) -> str:
    """What the study says of CRC and COAT side by side: coverage, gap and price."""
    crc, coat = split.evaluations["CRC"], split.evaluations["COAT"]
    return (
        f"Over {crc.n} test images CRC covers {percent(crc.coverage)} and COAT {percent(coat.coverage)} on average. Taken singly, an image lies "
        f"{100 * crc.gap:.0f} points from {promised(split.alpha)} under CRC and {100 * coat.gap:.0f} under COAT; CRC marks {percent(crc.area)} "
        f"of an image and COAT {percent(coat.area)}."
    )


def false_alarm_sentence(split: Split) -> str | None:
    """What happens on images without a lesion; None when the test images have none."""
    crc, coat = split.evaluations["CRC"], split.evaluations["COAT"]
    if not crc.n_empty:
        return None
    return (
        f"{crc.n_empty} test image{'s have' if crc.n_empty > 1 else ' has'} no lesion. There everything marked is a false alarm: "
        f"{percent(crc.false_alarm_area)} of such an image under CRC, {percent(coat.false_alarm_area)} under COAT."
    )


def spread_sentence(alpha: float, coverage_low: float, coverage_high: float, mean: float, draws: int) -> str:
    """How much the coverage of one calibrated threshold varies with the draw."""
    return (
        f"Over {draws:,} draws of calibration and test, CRC's coverage averages {percent(mean)}; in the middle 90\u00a0% of draws it lies between "
        f"{percent(coverage_low)} and {percent(coverage_high)}. The promise of {promised(alpha)} is about the average."
    )


def confident_spread_sentence(alpha: float, delta: float, coverage: np.ndarray) -> str:
    """How many draws `(S,)` reach the promise when it is made with confidence 1 - delta."""
    kept, draws = float((coverage >= 1 - alpha - 1e-12).mean()), len(coverage)
    mean = percent(float(coverage.mean()))
    return (
        f"Over {draws:,} draws of calibration and test, CRC's coverage averages {mean}, and {percent(kept)} of the draws reach {promised(alpha)} on "
        f"their own test images. The promise is that at least {promised(delta)} of draws would, if all future images were tested; a draw's own "
        "test images are few, so the share seen here may lie a little off."
    )


def adaptive_sentence(split: Split) -> str:
    """What AA-CRC promises with a shift, and that it promises nothing without."""
    with_shift, without = split.calibrations["AA-CRC"], split.calibrations[NO_SHIFT]
    if not with_shift.feasible:
        return f"*AA-CRC* sets a rule on one half of the calibration images and shifts it with the other. {with_shift.guarantee}"
    return (
        "*AA-CRC* makes the threshold a linear rule of what AT's network says of the image. One half of the calibration images sets the rule, the "
        f"other {with_shift.n} find its shift, and those carry the promise. *Without a shift* all {without.n} set the rule: it is right for these "
        "images on average and promises nothing for the next one."
    )
