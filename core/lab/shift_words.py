"""What a monitor's score means, in sentences computed from it: beside the promise of an upload, and for the damaged pictures of the demonstration.

The score is a warning and no test; the sentences say so, and what to do. Nothing is measured here.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from core.conformal.words import percent, promised
from core.figures.frame import listed
from core.lab.domains import words_of
from core.lab.shift_coverage import UnderShift
from core.lab.shift_monitor import MOST, Monitor, Shift, quantile_of

NEAR = 0.03
"""Coverage that loses no more than this against the same pictures when they were clean counts as kept."""

OFTEN = 0.5
"""A warning that comes in more than this share of cases counts as one that comes."""

NAMES = {
    "gaussian_noise": "Gaussian noise",
    "shot_noise": "shot noise",
    "impulse_noise": "impulse noise",
    "speckle_noise": "speckle noise",
    "gaussian_blur": "Gaussian blur",
    "brightness": "too much light",
    "contrast": "lost contrast",
    "jpeg": "JPEG compression",
}
"""Corruptions of the demonstration in words."""


def score_text(score: float) -> str:
    """A score as a person reads it: 0.84, 12, 1,300."""
    return f"{score:.2g}" if score < 10 else f"{score:,.0f}"


def _share(shift: Shift) -> int:
    return round(100 * quantile_of(shift.images))


def reason(shift: Shift) -> str:
    """What is most unusual about the images, in terms of the layer that listens."""
    loudest = int(np.argmax(np.abs(shift.away)))
    if loudest < 2:
        return (
            f"{_it(shift)} lighter, darker or flatter as a whole than those images: there λ pulls with {shift.usual[0]:.2f}, here with "
            f"{shift.heard[0]:.2f}."
        )
    here, usual = (percent(float(np.exp(v[3]))) for v in (shift.heard, shift.usual))
    beside = f"{here} of it is lost, {usual} is usual"
    if shift.away[3] > 0:
        return f"The first layer rebuilds the fine grain worse than that of those images ({beside}), as it does with noise."
    return f"The first layer rebuilds the fine grain more easily than that of those images ({beside}), as it does with blur or compression."


def _it(shift: Shift) -> str:
    return "It is" if shift.images == 1 else "They are"


def warning(shift: Shift, study: str, alpha: float) -> str:
    """The warning beside a promise, in Markdown: what was seen, what it means for the promise, that it is no test.

    Args:
        shift: Of one upload or of several together, above its limit.
        study: The study whose promise stands beside.
        alpha: Its α.
    """
    domain = words_of(study)
    who = "This image does" if shift.images == 1 else f"Your {shift.images} images, taken together, do"
    one = "this image is" if shift.images == 1 else "they are"
    size = "single images" if shift.images == 1 else f"groups of {min(shift.images, MOST)}"
    return (
        f"**{who} not look like the images of this study.** The shift score is {score_text(shift.score)}; {_share(shift)} of 100 {size} among its "
        f"clean images stay below {score_text(shift.limit)}. {reason(shift)} The promise of {promised(alpha)} assumes that {one} drawn like "
        f"those that calibrate ({domain.picture} each), so do not count on it here. This is a warning and no test: "
        f"{round(100 * shift.alarms)} of 100 clean {'images' if shift.images == 1 else 'groups'} that were kept aside score above it too."
    )


def advice() -> str:
    """What to do about a warning."""
    return (
        "What helps: look at how the file was made (camera, compression, scaling, a photo of a screen); calibrate anew on images from the same "
        "source, with masks; or mark the image by hand and leave the promise out."
    )


def quiet(shift: Shift) -> str:
    """What is said where the score stays below its limit."""
    who = "this image" if shift.images == 1 else f"your {shift.images} images together"
    return (
        f"Shift score of {who}: {score_text(shift.score)}, below the limit of {score_text(shift.limit)} that "
        f"{_share(shift)} of 100 clean ones of this study keep. "
        "A low score is no proof that the promise holds: the score looks at grain and sharpness, not at what is in the picture."
    )


def headline(u: UnderShift, at: int) -> str:
    """What the damage does to coverage and whether it is noticed, at one of the severities."""
    k = u.severities.index(at)
    crc, coat = (percent(float(u.mean_coverage[m][k])) for m in ("CRC", "COAT"))
    if at == 0:
        return f"Clean pictures: CRC covers {crc} of a lesion on average and COAT {coat}; promised are {promised(u.alpha)}."
    single, together = (float(w[k]) for w in u.warned)
    return (
        f"{NAMES[u.corruption]}, severity {at}: CRC covers {crc} and COAT {coat} instead of the promised {promised(u.alpha)}. "
        f"The warning comes for {percent(single)} of single pictures and for {percent(together)} of groups of {MOST}."
    ).replace(NAMES[u.corruption], NAMES[u.corruption][0].upper() + NAMES[u.corruption][1:], 1)


def verdict(u: UnderShift, at: int) -> str:
    """Whose coverage falls and whether the monitor says so, whichever way it fell."""
    k = u.severities.index(at)
    together = float(u.warned[1][k])
    if at == 0:
        single, group = (percent(float(w[k])) for w in u.warned)
        return f"Nothing is damaged here. The warning comes for {single} of these pictures and {group} of the groups all the same: false alarms."
    fallen = [
        m for m, v in u.mean_coverage.items() if float(v[0] - v[k]) > NEAR and float(v[k]) < 1 - u.alpha
    ]
    warns = together > OFTEN
    if not fallen:
        if warns:
            return "Coverage hardly falls here, yet the monitor warns: it notices that pictures are different, not that a promise fails."
        return "Coverage hardly falls here, and the monitor mostly stays silent."
    said = f"The promise is broken for {listed(fallen)}, and the monitor "
    said += (
        "says so without having seen a mask."
        if warns
        else "mostly stays silent: no score sees every kind of shift."
    )
    if fallen == ["CRC"]:
        before, now = (percent(float(u.mean_area["COAT"][i])) for i in (0, k))
        said += f" COAT, which looks at each image, marks {now} of it instead of {before}."
    return said


def measured(monitor: Monitor) -> str:
    """What the monitor was measured to notice: AUROC at severity 3 over noises and over the rest, single images and groups, and its false alarms."""
    rows: Sequence[Mapping[str, Any]] = monitor.facts.get("rows", ())
    if not rows:
        return "What this monitor notices was not measured."

    def mean(images: int, noise: bool) -> float:
        found = [
            r["auroc"]
            for r in rows
            if r["severity"] == 3 and r["images"] == images and r["corruption"].endswith("_noise") == noise
        ]
        return float(np.mean(found)) if found else float("nan")

    alarms = {r["images"]: r["warned"] for r in rows if r["corruption"] == "clean"}
    return (
        f"Measured on {monitor.facts['measured_images']} clean images of the pool and the same images damaged at severity 3: "
        f"AUROC {mean(1, True):.2f} for a single image under noise and {mean(1, False):.2f} under the other kinds of damage; {mean(MOST, True):.2f} "
        f"and {mean(MOST, False):.2f} for groups of {MOST}. False alarms: {percent(alarms[1])} of single images, {percent(alarms[MOST])} of groups. "
        f"It listens through the first layer of `{monitor.facts['network']}`, with {monitor.facts['reference_images']} clean images as reference "
        f"and {monitor.facts['held_images']} others for the limit."
    )
