"""Which network a long-tail run trains, how long, and with what step sizes: the same for every method of a table.

ResNet-20 (He et al. 2016) with SGD, or a transformer of ViT-Tiny's width and depth with AdamW. Nothing here trains.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

import torch
from torch import nn

from core.nets.resnet_cifar import resnet_cifar
from core.nets.vit_small import vit_small

NETS = ("resnet", "vit")


@dataclass(frozen=True)
class Schedule:
    """How a classifier is trained.

    Attributes:
        net: `"resnet"` (with SGD) or `"vit"` (with AdamW).
        width: Channels of the first stage, or length of a token.
        depth: 6n + 2 layers, or blocks.
        patch: Side of a patch in pixels (`"vit"`).
        epochs: Passes over the training images.
        batch: Images in a step; a last smaller batch is left out.
        learning_rate: Peak of the step size.
        weight_decay: Of every weight.
        warmup: Share of the steps over which the step size rises.
        train_every: The training images are scored at the first and last epoch and every so many.
        bfloat16: Run the layers in bfloat16 under autocast.
    """

    net: str = "resnet"
    width: int = 16
    depth: int = 20
    patch: int = 4
    epochs: int = 40
    batch: int = 128
    learning_rate: float = 0.1
    weight_decay: float = 5e-4
    warmup: float = 0.05
    train_every: int = 5
    bfloat16: bool = True


VIT = Schedule("vit", 192, 12, 8, epochs=16, learning_rate=1e-3, weight_decay=0.05)
"""The transformer's schedule: AdamW, patches of 8 px and fewer epochs, because a step takes four times as long as the residual network's."""


EPOCHS = {"pbc": 40, "ham10000": 40, "cifar10": 20, "tiny": 40}
"""Epochs of a set's own schedule: CIFAR-10 has fewer, so that three seeds of it fit two cores; 16 taught no rare class of Tiny ImageNet anything."""

DEPTH = 14
"""Layers of a set's own schedule."""


def schedule_for(name: str, net: str = "resnet") -> Schedule:
    """The schedule of a set, for every method; sets that are not known get 40 epochs, the transformer its own."""
    return VIT if net == "vit" else replace(Schedule(depth=DEPTH), epochs=EPOCHS.get(name, 40))


def build_classifier(schedule: Schedule, classes: int, head: str, rng: torch.Generator) -> nn.Module:
    """The network of a schedule, weights from the generator.

    Raises:
        ValueError: The network is not known, or the transformer is asked for a cosine head.
    """
    if schedule.net not in NETS:
        raise ValueError(f"The network {schedule.net!r} is not known; known: {', '.join(NETS)}.")
    if schedule.net == "vit":
        if head != "linear":
            raise ValueError("LDAM needs a cosine head, which the transformer here does not have.")
        return vit_small(classes, rng, 32, schedule.patch, schedule.width, schedule.depth)
    return resnet_cifar(classes, rng, schedule.width, schedule.depth, head)


def rate_at(step: int, total: int, schedule: Schedule) -> float:
    """Step size: a linear rise over the warm-up, then a cosine to zero."""
    rise = max(int(schedule.warmup * total), 1)
    if step < rise:
        return schedule.learning_rate * (step + 1) / rise
    return schedule.learning_rate * 0.5 * (1 + math.cos(math.pi * (step - rise) / max(total - rise, 1)))


def optimiser_of(model: nn.Module, schedule: Schedule) -> torch.optim.Optimizer:
    """SGD with Nesterov momentum for the residual network, AdamW for the transformer."""
    if schedule.net == "vit":
        return torch.optim.AdamW(
            model.parameters(), schedule.learning_rate, weight_decay=schedule.weight_decay
        )
    return torch.optim.SGD(
        model.parameters(), schedule.learning_rate, 0.9, weight_decay=schedule.weight_decay, nesterov=True
    )
