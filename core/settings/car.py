"""Knobs of CAR, the confusion-aware spectral regularizer (METHODS section 3)."""

from __future__ import annotations

from dataclasses import dataclass

from core.settings.knob import knob

MEMORIES = ("naive", "present only", "count")
"""How the running confusion matrix treats a class that a batch lacks: as no error, not at all, or by its share of samples."""

FREQUENCIES = ("sum", "max")
"""What a class's sample count is divided by: all samples, or the largest class."""

COMPETITORS = ("all", "others")
"""Classes in the softmax: all K (the code of the paper), or the K - 1 untrue ones (its text)."""


@dataclass(frozen=True)
class CarSettings:
    """One regularizer. Defaults are the paper's: naive memory, frequencies that sum to one, no bias correction."""

    alpha: float = knob(
        0.5,
        0.0,
        20.0,
        0.1,
        help="How much the largest singular value counts beside cross-entropy. 0 is cross-entropy alone.",
        label="α, weight of the regularizer",
    )
    beta: float = knob(
        0.5,
        0.0,
        0.99,
        0.01,
        help="How much of the matrix is kept from one batch to the next. 0 looks at the batch alone. With a larger β the matrix is "
        "steadier, and one batch moves it less: what pulls on the network is α (1 − β).",
        label="β, memory of the matrix",
    )
    memory: str = knob(
        "naive",
        choices=MEMORIES,
        help="What happens to a class that a batch lacks. Naive: its errors fade as if it had made none, so rare classes are "
        "forgotten. Present only: its column stays as it was. Count: errors and samples are averaged apart and divided at the "
        "end, which has no bias.",
        label="memory",
    )
    bias_correction: bool = knob(
        False,
        choices=(False, True),
        help="Whether the first steps, when the memory is still filling, are scaled up to their proper size.",
        label="correct the first steps",
    )
    weighted: bool = knob(
        True,
        choices=(True, False),
        help="Whether rare classes count more in the matrix (Λ).",
        label="Λ, weights of classes",
    )
    frequency: str = knob(
        "sum",
        choices=FREQUENCIES,
        help="What a class's count is divided by in Λ. By the sum of all counts, and with many classes, every share is "
        "small beside r₀ and Λ hardly differs between classes; with few, the most frequent class has a large share, and rare ones gain. By "
        "the largest count they always gain, and more.",
        label="frequency",
    )
    r0: float = knob(
        0.2,
        0.0,
        2.0,
        0.01,
        help="Added to a class's frequency before the root in Λ. A smaller r₀ favours rare classes more.",
        label="r₀",
    )
    gamma: float = knob(
        0.0,
        -5.0,
        5.0,
        0.1,
        unit="logits",
        help="A competitor counts as soon as it comes within γ of the true class.",
        label="γ, margin of the gate",
    )
    temperature: float = knob(
        1.0,
        0.1,
        10.0,
        0.1,
        help="Divides the logits in the softmax, not in the gate.",
        label="T of the softmax",
    )
    competitors: str = knob(
        "all",
        choices=COMPETITORS,
        help="Classes in the softmax. All: a confident right answer makes the term vanish. Others: the true class is left out first.",
        label="softmax over",
    )
    detach_gate: bool = knob(
        True,
        choices=(True, False),
        help="Whether the gate is a fixed weight, or is learned through as well.",
        label="gate without gradient",
    )
    steps: int = knob(
        2,
        1,
        100,
        1,
        help="Steps of power iteration for each batch; they go on from where the last batch's ended.",
        label="power steps",
    )
