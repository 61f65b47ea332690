"""Knobs of the pages about thresholds: Coverage, Sweep and Own data, and of the fit behind COAT and AT."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from core.settings.knob import knob


def _alpha(low: float) -> Any:
    return knob(
        0.1,
        low,
        0.5,
        0.01,
        help="The share of a lesion that may be missed, on average. 0.1 promises that 90 % is inside. A smaller "
        "value promises more and marks more of the image.",
        label="α, share that may be missed",
    )


def _seed() -> Any:
    return knob(
        0,
        0,
        9999,
        1,
        help="Which images calibrate and which are tested. The same seed always gives the same draw.",
        label="seed",
    )


def _promise() -> Any:
    return knob(
        "on average",
        choices=("on average", "with confidence"),
        help="On average: over draws of the calibration images and of the next image, conformal risk control. With confidence: for nearly "
        "every draw of the calibration images, however they fell; that marks more.",
        label="promise",
    )


def _delta() -> Any:
    return knob(
        0.1,
        0.01,
        0.5,
        0.01,
        help="How often the calibration images may mislead: 0.1 promises with a confidence of 90 %. Used by the promise with confidence only.",
        label="δ, chance of a misleading draw",
    )


@dataclass(frozen=True)
class CoverageSettings:
    """What a visitor of the coverage page chooses."""

    alpha: float = _alpha(0.02)
    seed: int = _seed()
    model: str = knob(
        "phantom",
        choices=(
            *("phantom", "polyp", "polyp-deeplab", "polyp-pspnet", "polyp-sinet"),
            *("skin", "skin-deeplab", "skin-pspnet", "skin-sinet"),
            *("fire", "fire-deeplab", "fire-pspnet", "fire-sinet"),
        ),
        help="Which pictures, and which base network scored them. phantom: drawn pictures that ship with Plumbline. polyp, skin "
        "and fire: real colonoscopy frames, dermoscopy photos and video frames of fires, each with U-Net (the bare name), "
        "DeepLab v3+, PSPNet or SINet. A network knows its own kind of picture and nothing else, and is no medical device.",
        label="model",
    )
    promise: str = _promise()
    delta: float = _delta()
    calibration_share: float = knob(
        0.5,
        0.1,
        0.9,
        0.05,
        help="How much of the pool calibrates; the rest is tested.",
        label="share that calibrates",
    )


@dataclass(frozen=True)
class CoatSettings:
    """How a threshold predictor is fitted (COAT and AT get the same inputs, trunk, ensemble size and budget).

    A temperature is the divisor of (score - threshold) inside the sigmoid of the soft coverage, in the settings' own unit.
    """

    objective: str = knob(
        "coat",
        choices=("coat", "at", "at then coat"),
        help="COAT pushes each image's own soft coverage to the target. AT regresses the threshold that would "
        "have been right. AT then COAT spends the first half of the epochs on AT.",
    )
    unit: str = knob(
        "logit",
        choices=("logit", "probability"),
        help="What the temperature divides: distances of logits, or distances of probabilities as in the paper. Only in "
        "logits can soft coverage reach every target.",
        label="unit of T",
    )
    miss: str = knob(
        "absolute",
        choices=("absolute", "squared"),
        help="How COAT counts an image's distance from the target coverage.",
        label="how a miss counts",
    )
    temperature_start: float = knob(
        6.0,
        0.005,
        20.0,
        0.005,
        log=True,
        help="Softness of the first epochs.",
        label="T at the start",
    )
    temperature_end: float = knob(
        1.0,
        0.005,
        20.0,
        0.005,
        log=True,
        help="Softness of the last epochs.",
        label="T at the end",
    )
    epochs: int = knob(60, 1, 400, 1, help="Passes over the predictor's images.")
    learning_rate: float = knob(2e-3, 1e-5, 1e-1, log=True, help="Step size of AdamW.", label="learning rate")
    weight_decay: float = knob(1e-2, 0.0, 1.0, help="Decay of AdamW.", label="weight decay")
    dropout: float = knob(0.2, 0.0, 0.9, help="Share of hidden features left out in a step.")
    batch: int = knob(32, 2, 256, 1, unit="images", help="Images in a step.")
    members: int = knob(
        5,
        2,
        20,
        1,
        help="Predictors in the ensemble; each leaves out its own part of the images to decide when to stop.",
    )
    low_alpha: float = knob(0.02, 0.001, 0.4, help="Smallest α drawn while fitting.", label="smallest α")
    high_alpha: float = knob(0.5, 0.05, 0.9, help="Largest α drawn while fitting.", label="largest α")
    patience: int = knob(20, 1, 400, 1, unit="epochs", help="Stop a member after so long without gain.")


@dataclass(frozen=True)
class SweepSettings:
    """What a visitor of the page of T and α chooses. α and seed are those of `CoverageSettings`."""

    unit: str = knob(
        "logit",
        choices=("logit", "probability"),
        help="What T divides. Logits are the network's own scores and have no end; probabilities end at 0 and 1, and with "
        "them soft coverage has a ceiling. The paper uses probabilities.",
        label="unit of T",
    )
    temperature: float = knob(
        1.0,
        0.05,
        16.0,
        log=True,
        unit="logits",
        help="How soft the threshold is while COAT learns. Large is fog: every pixel counts as half inside. Small is a knife: "
        "a pixel is in or out, and hardly any of them moves.",
        label="T, how soft the knife is",
    )
    temperature_of_probability: float = knob(
        0.05,
        0.005,
        1.0,
        log=True,
        help="The same in probabilities, where distances lie between 0 and 1.",
        label="T, how soft the knife is",
    )
    around: str = knob(
        "COAT",
        choices=("COAT", "CRC", "plug-in", "AT"),
        help="Whose threshold for this image the knife is laid at, after calibration.",
        label="threshold of",
    )
    draws: int = knob(
        20,
        1,
        1000,
        1,
        help="Redrawn halves of the pool over which gap, coverage and area are averaged.",
    )
    schedule: str = knob(
        "stays",
        choices=("stays", "falls"),
        help="Whether T stays where it is while COAT learns, or falls to it from four times as much.",
        label="T while it learns",
    )
    miss: str = knob(
        "absolute",
        choices=("absolute", "squared"),
        help="How COAT counts an image's distance from the target coverage.",
        label="how a miss counts",
    )


@dataclass(frozen=True)
class OwnSettings:
    """What a person chooses who brings score maps of a model of their own. α and seed are those of `CoverageSettings`."""

    alpha: float = _alpha(0.01)
    seed: int = _seed()
    promise: str = _promise()
    delta: float = _delta()
    train: str = knob(
        "from 100 images on",
        choices=("from 100 images on", "never"),
        help="Whether AT and COAT are trained on a share of your images; those images calibrate and test nothing.",
        label="train AT and COAT",
    )
    training_share: float = knob(
        1 / 3,
        0.1,
        0.6,
        0.01,
        help="Share of your images that trains AT and COAT, where they are trained.",
        label="share that trains",
    )
    calibration_share: float = knob(
        0.5,
        0.1,
        0.9,
        0.05,
        help="How much of the other images calibrates; the rest is tested.",
        label="share that calibrates",
    )
