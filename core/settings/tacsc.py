"""Knobs of convolutional sparse coding with a trained threshold (TA-CSC) and of its label-free adaptation (METHODS section 4)."""

from __future__ import annotations

from dataclasses import dataclass

from core.settings.knob import knob

MODELS = ("resnet", "fixed", "tacsc", "tacsc_all")
"""ResNet-18; sparse first layer with a fixed λ; sparse first layer with a trained λ; every convolution of the branches sparse."""

ADAPTATIONS = ("none", "bn", "lambda", "both")
"""What follows the new images: nothing, the statistics of batch normalisation, λ, or both."""


@dataclass(frozen=True)
class TacscSettings:
    """One sparse coding layer. The same for every layer of a network."""

    iterations: int = knob(
        2,
        1,
        16,
        1,
        help="K, the steps of FISTA in a layer. With K = 1 the layer is one convolution and a shrinkage; with K = 2 the momentum "
        "does not act yet. K is part of the method, not only a cost: few steps leave an error at λ = 0.",
        label="K, steps of FISTA",
    )
    threshold: float = knob(
        0.1,
        1e-4,
        10.0,
        log=True,
        help="λ before training. Larger throws more away.",
        label="λ at the start",
    )
    learn: bool = knob(
        True,
        choices=(True, False),
        help="Whether training moves λ. False is SDNet, where λ stays as it was set.",
        label="train λ",
    )
    non_negative: bool = knob(
        False,
        choices=(False, True),
        help="Whether codes may only be positive, as in SDNet's code, or have both signs, as in the paper.",
        label="positive codes only",
    )
    l1_weight: float = knob(
        0.001,
        0.0,
        0.1,
        help="γ, how much the mean absolute code of the layers counts in training. It pushes λ up.",
        label="γ, weight of sparsity",
    )


@dataclass(frozen=True)
class AdaptSettings:
    """How λ (and batch normalisation) follow new images without labels."""

    what: str = knob(
        "both",
        choices=ADAPTATIONS,
        help="What follows the new images: nothing, the statistics of batch normalisation, λ, or both.",
        label="what adapts",
    )
    steps: int = knob(20, 1, 200, 1, help="Steps on λ.", label="steps")
    rate: float = knob(
        0.05,
        1e-3,
        0.5,
        log=True,
        help="Step size of Adam on ρ, where λ = softplus(ρ). For a small λ it is the relative change of λ in a step.",
        label="step size",
    )
    offset: float = knob(
        0.01,
        1e-4,
        1.0,
        log=True,
        help="ε in R/(λ + ε). It matters only where λ is near 0.",
        label="ε",
    )
    reach: float = knob(
        10.0,
        1.0,
        100.0,
        log=True,
        help="How many times larger or smaller than after training λ may become.",
        label="reach of λ",
    )
    highest_error: float = knob(
        0.5,
        0.05,
        1.0,
        0.05,
        help="A layer stops when its relative reconstruction error rises above this.",
        label="largest error",
    )
    across_layers: bool = knob(
        False,
        choices=(False, True),
        help="Whether a layer's λ also answers for the errors of the layers behind it. False treats each layer's input as given.",
        label="across layers",
    )
    prior: int = knob(
        0,
        0,
        10000,
        1,
        unit="images",
        help="Weight of the training statistics in batch normalisation, counted in images. 0 takes the new images alone.",
        label="weight of the old statistics",
    )
