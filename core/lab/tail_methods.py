"""Methods for long tails by name, and the loss that each trains with.

A name may carry changed settings of CAR: `car-count@beta=0.9,r0=0.05`. Baselines are in `core.car.baselines`, CAR in
`core.car.regularizer`; nothing here trains.
"""

from __future__ import annotations

from dataclasses import dataclass, fields, replace
from typing import Any

import torch
import torch.nn.functional as F
from torch import nn

from core.car import baselines
from core.car.regularizer import CAR
from core.car.weights import Counts
from core.settings.car import CarSettings
from core.settings.knob import check

LOSSES = ("ce", "balanced", "focal", "ldam", "adjusted")
"""What CAR is added to, or what stands alone."""


@dataclass(frozen=True)
class Method:
    """One way to train.

    Attributes:
        name: Its name in commands and files.
        label: Its name in tables.
        loss: One of `LOSSES`.
        car: Settings of the regularizer; None for none.
        cutmix: Whether batches are mixed.
    """

    name: str
    label: str
    loss: str = "ce"
    car: CarSettings | None = None
    cutmix: bool = False

    @property
    def head(self) -> str:
        """The head that the network needs."""
        return "cosine" if self.loss == "ldam" else "linear"


PAPER = CarSettings()
COUNT = CarSettings(memory="count", frequency="max")

METHODS = {
    m.name: m
    for m in (
        Method("ce", "CE"),
        Method("balanced", "class-balanced", "balanced"),
        Method("focal", "focal", "focal"),
        Method("ldam", "LDAM-DRW", "ldam"),
        Method("adjusted", "logit adjustment", "adjusted"),
        Method("car-paper", "CAR (paper)", car=PAPER),
        Method("car-count", "CAR (count EMA)", car=COUNT),
        Method("car-present", "CAR (present-only EMA)", car=replace(COUNT, memory="present only")),
        Method("car-naive-max", "CAR (naive EMA, max frequencies)", car=replace(COUNT, memory="naive")),
        Method("car-count-sum", "CAR (count EMA, sum frequencies)", car=replace(COUNT, frequency="sum")),
        Method("car-no-weights", "CAR without Λ", car=replace(COUNT, weighted=False)),
        Method("car-no-ema", "CAR without EMA", car=replace(COUNT, memory="naive", beta=0.0)),
        Method("car-gate", "CAR, gate with gradient", car=replace(COUNT, detach_gate=False)),
        Method("ce-cutmix", "CE + CutMix", cutmix=True),
        Method("car-cutmix", "CAR (count EMA) + CutMix", car=COUNT, cutmix=True),
        Method("car-adjusted", "CAR (count EMA) + logit adjustment", "adjusted", COUNT),
    )
}
"""Every method by name. Those without Λ or EMA, with CutMix and with other memories start from `CAR (count EMA)`, max frequencies."""


def method_of(name: str) -> Method:
    """Look a method up, with the settings of CAR that its name changes.

    Args:
        name: A key of `METHODS`, maybe with `@field=value,field=value` behind it.

    Raises:
        ValueError: The method or a field is not known, a value is out of range, or the method has no CAR to change.
    """
    base, _, changes = name.partition("@")
    if base not in METHODS:
        raise ValueError(f"The method {base!r} is not known; known: {', '.join(METHODS)}.")
    method = METHODS[base]
    if not changes:
        return method
    if method.car is None:
        raise ValueError(f"{method.label} has no regularizer whose settings could be changed.")
    types: dict[str, Any] = {f.name: type(getattr(PAPER, f.name)) for f in fields(CarSettings)}
    values: dict[str, Any] = {}
    for change in changes.split(","):
        field, _, text = change.partition("=")
        if field not in types:
            raise ValueError(f"CAR has no setting {field!r}; it has {', '.join(types)}.")
        try:
            kind = types[field]
            values[field] = text == "True" if kind is bool else kind(text)
        except ValueError as error:
            raise ValueError(f"{field} needs a number, not {text!r}.") from error
    car = replace(method.car, **values)
    check(car)
    shown = ", ".join(f"{k} {v}" for k, v in values.items())
    return replace(method, name=name, label=f"{method.label}, {shown}", car=car)


class TailLoss(nn.Module):
    """A method's loss. Its state (CAR's memory) is saved with `state_dict`.

    Args:
        method: See `Method`.
        counts: `(K,)` training samples of each class.
        epochs: Length of training, for the deferred weights of LDAM-DRW.
    """

    def __init__(self, method: Method, counts: Counts, epochs: int) -> None:
        super().__init__()
        self.method, self.counts, self.epochs = method, counts, epochs
        self.car = None if method.car is None else CAR(counts, method.car)
        self.balanced = baselines.effective_weights(counts)
        self.margins, self.prior = baselines.ldam_margins(counts), baselines.log_prior(counts)

    def base(self, logits: torch.Tensor, labels: torch.Tensor, epoch: int) -> torch.Tensor:
        """The loss without the regularizer."""
        kind = self.method.loss
        if kind == "balanced":
            return baselines.class_balanced(logits, labels, self.balanced)
        if kind == "focal":
            return baselines.focal(logits, labels)
        if kind == "ldam":
            weights = baselines.drw_weights(self.counts, epoch, self.epochs)
            return baselines.ldam(logits, labels, self.margins, weights=weights)
        if kind == "adjusted":
            return baselines.logit_adjusted(logits, labels, self.prior)
        return F.cross_entropy(logits.float(), labels)

    def forward(
        self,
        logits: torch.Tensor,
        labels: torch.Tensor,
        epoch: int,
        pasted: torch.Tensor | None = None,
        own: float = 1.0,
    ) -> tuple[torch.Tensor, float]:
        """The loss of a batch.

        Args:
            logits: `(B, K)`.
            labels: `(B,)`.
            epoch: From 0.
            pasted: `(B,)` labels of what CutMix pasted. CAR, which needs one class a sample, takes that of the larger part.
            own: Share of each picture that is its own.

        Returns:
            The loss, and the regularizer's part of it (for the record).
        """
        loss = self.base(logits, labels, epoch)
        if pasted is not None and own < 1:
            loss = own * loss + (1 - own) * self.base(logits, pasted, epoch)
        if self.car is None:
            return loss, 0.0
        term = self.car(logits, labels if pasted is None or own >= 0.5 else pasted)
        return loss + term, float(term.detach())
