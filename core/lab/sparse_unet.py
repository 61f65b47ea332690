"""A small U-Net whose first layer is sparse coding with a trained λ, so that λ acts on segmentation too; and the plain one beside it.

MONAI's basic U-Net with batch normalisation; the first convolution becomes a `CSCConv2d`, and the activation behind its
normalisation goes, as in TA-CSC-18. K = 2 logits, images in [-1, 1]. Training is cross-entropy with AdamW and a cosine, the
last epoch kept; ρ has its own step size and no decay. Not here: which images, and what is promised about them.
"""

from __future__ import annotations

import json
import math
import time
from collections.abc import Callable, Iterable, Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch
import torch.nn.functional as F
from torch import nn

from core.data.corruptions import corrupt_many
from core.nets.build import binary_score, initialise
from core.nets.mixed import mixed
from core.nets.state import load_state, save_state
from core.nets.train import augment
from core.nets.weights import load_tensors, save_tensors
from core.settings.tacsc import TacscSettings
from core.tacsc.layer import CSCConv2d, sparse_layers
from core.tacsc.objective import collect_sizes, l1_term

STAGES = (16, 16, 32, 64, 128, 16)
"""Channels of the U-Net; the first number is the number of atoms."""

Report = Callable[[int, int, Mapping[str, Any]], None]


@dataclass(frozen=True)
class UnetSchedule:
    """How the U-Net is trained.

    Attributes:
        epochs: Passes over the images.
        batch: Images in a step.
        augmentation: `"turns"` (mirrored and turned by quarters), or `"full"`, the base networks' turns, zooms and colours, which wants many
            more epochs.
        learning_rate: Of AdamW at the first step; a cosine takes it to 0.
        threshold_rate: Of ρ.
        weight_decay: Of everything but ρ.
        every: Steps between two records of λ.
        bfloat16: Run the layers in bfloat16 under autocast.
    """

    epochs: int = 30
    batch: int = 4
    augmentation: str = "turns"
    learning_rate: float = 2e-3
    threshold_rate: float = 1e-2
    weight_decay: float = 1e-2
    every: int = 10
    bfloat16: bool = True


def build_unet(
    sparse: TacscSettings | None, rng: torch.Generator, stages: tuple[int, ...] = STAGES, classes: int = 2
) -> nn.Module:
    """Build the U-Net with fresh weights.

    Args:
        sparse: Settings of the first layer, or None for the plain U-Net.
        rng: Source of the weights.
        stages: Six numbers of channels.
        classes: Logits.

    Returns:
        A network from `(N, 3, S, S)` to `(N, classes, S, S)`; S is a multiple of 16.
    """
    from monai.networks.nets import BasicUNet

    net = BasicUNet(2, 3, classes, features=stages, norm="batch", bias=False)
    initialise(net, rng)
    if sparse is not None:
        first: Any = net.conv_0.conv_0
        first.conv = CSCConv2d(3, stages[0], 3, 1, 1, sparse, rng)
        first.adn.A = nn.Identity()
    return net


def to_input(images: np.ndarray) -> torch.Tensor:
    """`(N, S, S, 3)` uint8 -> `(N, 3, S, S)` float32 in [-1, 1], channels last in memory."""
    x = torch.from_numpy(np.ascontiguousarray(images)).permute(0, 3, 1, 2).float() / 127.5 - 1
    return x.contiguous(memory_format=torch.channels_last)


def turned(
    images: torch.Tensor, masks: torch.Tensor, rng: torch.Generator
) -> tuple[torch.Tensor, torch.Tensor]:
    """Each image `(N, C, S, S)` and its mask `(N, S, S)` in one of the eight positions of a square, drawn from `rng`."""
    outs = []
    for x, y, way in zip(
        images, masks, torch.randint(8, (len(images),), generator=rng).tolist(), strict=True
    ):
        both = torch.rot90(torch.cat([x, y[None].to(x)]), way % 4, (1, 2))
        outs.append(both.flip(2) if way >= 4 else both)
    stacked = torch.stack(outs)
    return stacked[:, :-1].contiguous(), stacked[:, -1] > 0.5


def fit_unet(
    net: nn.Module,
    images: torch.Tensor,
    masks: torch.Tensor,
    schedule: UnetSchedule,
    seed: int,
    state: Path | None = None,
    on_step: Report | None = None,
    minutes: float | None = None,
    l1_weight: float = 0.001,
) -> dict[str, Any] | None:
    """Train a U-Net in place.

    Args:
        net: From `build_unet`.
        images: `(N, 3, S, S)` float32 in [-1, 1].
        masks: `(N, S, S)` bool.
        schedule: How.
        seed: Of order and augmentation.
        state: File for going on, written after each epoch; None keeps nothing.
        on_step: `(done, total, facts)` after each epoch; facts hold loss and λ. It may raise to stop.
        minutes: Stop at the end of the epoch in which so many minutes have passed.
        l1_weight: γ of the sparsity term.

    Returns:
        The history: `layers`, `steps`, `threshold` at each of these and at the end, and `loss` by epoch; None where the minutes ended
        first. The network is then in eval mode.

    Raises:
        ValueError: Fewer images than a batch takes, or an augmentation that is not known.
    """
    if schedule.augmentation not in ("turns", "full"):
        raise ValueError(f"The augmentation is turns or full, not {schedule.augmentation!r}.")
    if len(images) < schedule.batch:
        raise ValueError(f"{len(images)} images do not fill one batch of {schedule.batch}.")
    began = time.monotonic()
    layers = sparse_layers(net)
    own = {id(layer.rho) for layer in layers.values()}
    rest = [p for p in net.parameters() if id(p) not in own]
    groups: list[dict[str, Any]] = [{"params": rest, "peak": schedule.learning_rate}]
    if layers:
        rhos = [layer.rho for layer in layers.values()]
        groups.append({"params": rhos, "peak": schedule.threshold_rate, "weight_decay": 0.0})
    optimiser = torch.optim.AdamW(groups, schedule.learning_rate, weight_decay=schedule.weight_decay)
    history: dict[str, Any] = {"layers": list(layers), "steps": [], "threshold": [], "loss": []}
    mark = json.dumps([asdict(schedule), seed, len(images), l1_weight, list(layers)])
    if state is not None:
        kept = load_state(state, net, optimiser, mark)
        history = kept if kept is not None else history
    device = next(net.parameters()).device
    per_epoch = len(images) // schedule.batch
    total = per_epoch * schedule.epochs
    for epoch in range(len(history["loss"]), schedule.epochs):
        if minutes is not None and time.monotonic() - began > minutes * 60:
            return None
        rng = torch.Generator().manual_seed(seed * 100_003 + epoch)
        order = torch.randperm(len(images), generator=rng)
        net.train()
        losses = 0.0
        for b in range(per_epoch):
            step = epoch * per_epoch + b
            for group in optimiser.param_groups:
                group["lr"] = group["peak"] * 0.5 * (1 + math.cos(math.pi * step / total))
            if layers and step % schedule.every == 0:
                history["steps"].append(step)
                history["threshold"].append([layer.threshold.item() for layer in layers.values()])
            pick = order[b * schedule.batch : (b + 1) * schedule.batch]
            x, y = images[pick].contiguous(), masks[pick]
            x, y = augment(x, y, rng) if schedule.augmentation == "full" else turned(x, y, rng)
            optimiser.zero_grad(set_to_none=True)
            with mixed(device, schedule.bfloat16), collect_sizes(net) as sizes:
                logits = net(x.to(device, memory_format=torch.channels_last))
            loss = F.cross_entropy(logits.float(), y.to(device).long())
            (loss + l1_weight * l1_term(sizes)).backward()
            optimiser.step()
            losses += float(loss.detach())
        history["loss"].append(losses / per_epoch)
        if state is not None:
            save_state(state, net, optimiser, mark, history)
        if on_step is not None:
            lam = [layer.threshold.item() for layer in layers.values()]
            on_step(epoch + 1, schedule.epochs, {"loss": history["loss"][-1], "threshold": lam})
    if layers:
        history["steps"].append(total)
        history["threshold"].append([layer.threshold.item() for layer in layers.values()])
    net.eval()
    return history


@torch.no_grad()
def scores(net: nn.Module, images: torch.Tensor, batch: int = 32) -> torch.Tensor:
    """Binary scores `(N, S, S)` of images in [-1, 1], float32, what conformal control takes; the network in eval mode."""
    net.eval()
    device = next(net.parameters()).device
    return torch.cat(
        [binary_score(net(images[i : i + batch].to(device))).cpu() for i in range(0, len(images), batch)]
    )


def mean_dice(score: torch.Tensor, masks: torch.Tensor) -> float:
    """Mean Dice at score 0 over images with a lesion, `(N, S, S)` each. NaN where no image has one."""
    guess = score > 0
    both, size = (guess & masks).sum((1, 2)), guess.sum((1, 2)) + masks.sum((1, 2))
    has = masks.flatten(1).any(1)
    return float((2 * both[has] / size[has].clamp(min=1)).mean()) if bool(has.any()) else float("nan")


def damaged(
    images: np.ndarray, name: str, severity: int, seed: int, places: Iterable[int] | None = None
) -> torch.Tensor:
    """Images `(N, S, S, 3)` uint8 under a corruption, ready for the network; `"clean"` damages nothing. `places` as in `corrupt_many`."""
    return to_input(images if name == "clean" else corrupt_many(images, name, severity, seed, places))


def save_unet(
    path: Path,
    net: nn.Module,
    sparse: TacscSettings | None,
    facts: Mapping[str, Any],
    stages: tuple[int, ...] = STAGES,
) -> None:
    """Write a U-Net of two classes with what rebuilds it, atomically. Kernels become float16.

    Args:
        path: Target, `.safetensors`.
        net: From `build_unet`.
        sparse: Settings of its first layer, None for the plain one.
        facts: More JSON-able facts for the header.
        stages: Its channels.
    """
    rebuild = {"sparse": None if sparse is None else asdict(sparse), "stages": list(stages)}
    save_tensors(path, {k: v for k, v in net.state_dict().items() if v.numel()}, {**facts, **rebuild})


def read_unet(path: Path) -> tuple[nn.Module, dict[str, Any]]:
    """Rebuild a U-Net, frozen and in eval mode, on the CPU.

    Returns:
        The network and the facts of its file.

    Raises:
        FileNotFoundError, ValueError: As in `core.nets.weights.load_tensors`.
    """
    tensors, facts = load_tensors(path)
    raw: Any = facts.get("sparse")
    stages: Any = facts.get("stages", STAGES)
    sparse = None if raw is None else TacscSettings(**raw)
    net = build_unet(sparse, torch.Generator().manual_seed(0), tuple(stages))
    net.load_state_dict(tensors)
    return net.to(memory_format=torch.channels_last).requires_grad_(False).eval(), facts
