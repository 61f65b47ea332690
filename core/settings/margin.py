"""Knobs of the losses on logit distances (METHODS: margin-based label smoothing and its rivals)."""

from __future__ import annotations

from dataclasses import dataclass

from core.settings.knob import knob

LOSSES = ("CE", "LS", "SVLS", "focal", "ECP", "margin")
"""Short names of the losses: cross-entropy, label smoothing, spatially varying label smoothing, focal, explicit entropy penalty, margin."""


@dataclass(frozen=True)
class MarginSettings:
    """One loss and its numbers. Defaults are those of the published medical code of each loss."""

    loss: str = knob(
        "margin", choices=LOSSES, help="What the network is trained to make small.", label="loss"
    )
    margin: float = knob(
        10.0,
        0.0,
        20.0,
        0.5,
        unit="logits",
        help="Distances between the largest logit and another one are free up to m. Only what lies beyond is penalised.",
        label="m, margin",
    )
    weight: float = knob(
        0.1,
        0.0,
        1.0,
        0.01,
        help="How much the penalty counts beside cross-entropy. It is averaged over pixels and classes.",
        label="w, weight of the penalty",
    )
    hinge: str = knob(
        "linear",
        choices=("linear", "squared"),
        help="Whether the penalty grows with the excess over m or with its square.",
        label="hinge",
    )
    smoothing: float = knob(
        0.1,
        0.0,
        0.5,
        0.01,
        help="Share of the label that is spread evenly over all classes.",
        label="a, label smoothing",
    )
    sigma: float = knob(
        1.0,
        0.2,
        3.0,
        0.1,
        unit="pixels",
        help="Width of the Gaussian that spreads a label over its eight neighbours.",
        label="σ, spatial smoothing",
    )
    gamma: float = knob(
        3.0,
        0.0,
        5.0,
        0.5,
        help="How strongly pixels that are already right lose their say. 0 is cross-entropy.",
        label="γ, focal",
    )
    entropy_weight: float = knob(
        0.1,
        0.0,
        1.0,
        0.01,
        help="How much the entropy of the prediction is rewarded.",
        label="weight of the entropy",
    )
    entropy_over: str = knob(
        "mean",
        choices=("mean", "sum"),
        help="Whether the entropy is averaged over classes, as in published code, or summed, as in the paper. The sum is K times the mean.",
        label="entropy over classes",
    )
    dice: float = knob(
        0.0,
        0.0,
        2.0,
        0.1,
        help="Weight of a soft Dice term beside the loss. It raises overlap and makes probabilities bolder.",
        label="weight of soft Dice",
    )
