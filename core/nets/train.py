"""Training a base network for segmentation: cross-entropy, seeded augmentation, resumable.

Not here: which images (`core.data`), which network (`build.py`), and where weights are kept (`weights.py`).
All random acts take the generators made from one seed; the state is written after each epoch, atomically,
so that a stopped run goes on.
"""

from __future__ import annotations

import math
import os
from collections.abc import Callable
from dataclasses import asdict, dataclass
from pathlib import Path

import torch
import torch.nn.functional as F
from safetensors import safe_open
from safetensors.torch import save_file
from torch import nn

from core.nets.mixed import mixed

OnStep = Callable[[int, int, dict[str, float]], None]


@dataclass(frozen=True)
class TrainSettings:
    """How a base network is trained.

    Attributes:
        epochs: Passes over D1.
        batch: Images in a step.
        learning_rate: Peak of AdamW's step size (5 % warm-up, then a cosine to zero).
        weight_decay: AdamW's decay.
        average: Decay of the running average of the weights, which is what is kept.
        dice: Weight of a soft Dice term beside cross-entropy; 0 keeps the probabilities honest.
        bfloat16: Run the layers in bfloat16 under autocast.
    """

    epochs: int = 70
    batch: int = 16
    learning_rate: float = 2e-3
    weight_decay: float = 1e-2
    average: float = 0.99
    dice: float = 0.0
    bfloat16: bool = True


def augment(
    images: torch.Tensor, masks: torch.Tensor, rng: torch.Generator
) -> tuple[torch.Tensor, torch.Tensor]:
    """Flip, turn, zoom, shift, and change brightness, contrast and colour, each image its own way.

    Args:
        images: `(N, 3, S, S)` float32 in [-1, 1].
        masks: `(N, S, S)` bool.
        rng: Source of all draws.

    Returns:
        Images and masks of the same shapes; outside the picture is 0 (mid-grey) and background.
    """
    n = images.shape[0]

    def uniform(low: float, high: float, *shape: int) -> torch.Tensor:
        return torch.rand(n, *shape, generator=rng) * (high - low) + low

    angle = uniform(-math.pi, math.pi)
    zoom = torch.exp(uniform(math.log(0.75), math.log(1.25)))
    stretch = torch.exp(uniform(math.log(0.85), math.log(1.18)))
    flip = torch.where(uniform(0, 1) < 0.5, -1.0, 1.0)
    cos, sin = torch.cos(angle), torch.sin(angle)
    theta = torch.stack(
        [
            torch.stack([cos * zoom * flip, -sin * zoom * stretch, uniform(-0.15, 0.15)], 1),
            torch.stack([sin * zoom * flip, cos * zoom * stretch, uniform(-0.15, 0.15)], 1),
        ],
        1,
    )
    where = F.affine_grid(theta, list(images.shape), align_corners=False)
    images = F.grid_sample(images, where, align_corners=False)
    moved = F.grid_sample(masks[:, None].float(), where, align_corners=False)[:, 0] > 0.5
    gain = torch.exp(uniform(-0.25, 0.25, 1, 1, 1))
    colour = torch.exp(uniform(-0.12, 0.12, 3, 1, 1))
    shade = uniform(-0.2, 0.2, 1, 1, 1)
    changed = ((images + 1) * gain * colour - 1 + shade).clamp(-1, 1)
    inside = (images != 0).any(1, keepdim=True)
    return torch.where(inside, changed, images), moved


def segmentation_loss(logits: torch.Tensor, masks: torch.Tensor, dice: float = 0.0) -> torch.Tensor:
    """Cross-entropy over pixels plus an optional soft Dice term.

    Args:
        logits: `(N, 2, H, W)`.
        masks: `(N, H, W)` bool.
        dice: Weight of the Dice term.
    """
    loss = F.cross_entropy(logits.float(), masks.long())
    if dice:
        p = torch.softmax(logits.float(), 1)[:, 1]
        overlap = (p * masks).sum((1, 2))
        loss = loss + dice * (1 - (2 * overlap + 1) / (p.sum((1, 2)) + masks.sum((1, 2)) + 1)).mean()
    return loss


@torch.no_grad()
def score(model: nn.Module, images: torch.Tensor, masks: torch.Tensor, batch: int = 32) -> dict[str, float]:
    """Mean per-image Dice at probability 0.5 (images with a lesion) and mean cross-entropy, in eval mode."""
    model.eval()
    device = next(model.parameters()).device
    dice, entropy = [], []
    for i in range(0, len(images), batch):
        logits = model(images[i : i + batch].to(device)).float()
        truth = masks[i : i + batch].to(device)
        entropy.append(F.cross_entropy(logits, truth.long(), reduction="none").mean((1, 2)))
        guess = logits[:, 1] > logits[:, 0]
        both = (guess & truth).sum((1, 2)).float()
        value = 2 * both / (guess.sum((1, 2)) + truth.sum((1, 2))).clamp(min=1)
        dice.append(torch.where(truth.any(2).any(1), value, torch.nan))
    return {"dice": torch.cat(dice).nanmean().item(), "entropy": torch.cat(entropy).mean().item()}


def _rate(step: int, steps: int, peak: float) -> float:
    warm = max(1, int(0.05 * steps))
    if step < warm:
        return peak * (step + 1) / warm
    return peak * 0.5 * (1 + math.cos(math.pi * (step - warm) / max(1, steps - warm)))


def _save(path: Path, tensors: dict[str, torch.Tensor], facts: dict[str, str]) -> None:
    part = path.with_suffix(".part")
    save_file({k: v.contiguous() for k, v in tensors.items()}, str(part), metadata=facts)
    os.replace(part, path)


def fit_segmenter(
    model: nn.Module,
    images: torch.Tensor,
    masks: torch.Tensor,
    val_images: torch.Tensor,
    val_masks: torch.Tensor,
    settings: TrainSettings,
    seed: int,
    state: Path | None = None,
    on_step: OnStep | None = None,
    minutes: float | None = None,
) -> dict[str, float]:
    """Train a network in place; at the end it holds the averaged weights of the best epoch on the validation part.

    Args:
        model: Network that gives `(N, 2, S, S)` logits.
        images: `(N, 3, S, S)` float32 in [-1, 1], D1.
        masks: `(N, S, S)` bool.
        val_images: The same for the part that decides when to stop.
        val_masks: The same.
        settings: See `TrainSettings`.
        seed: Seeds the generator of order and augmentation.
        state: File for resuming, written after each epoch. None keeps nothing.
        on_step: Called after each epoch as `(done, total, facts)`.
        minutes: Stop after so many minutes, at the end of an epoch.

    Returns:
        Facts of the best epoch: `dice`, `entropy`, `epoch`.

    Raises:
        ValueError: There are fewer images than a batch takes.
    """
    import time

    began = time.monotonic()
    device = next(model.parameters()).device
    average = {k: v.detach().clone() for k, v in model.state_dict().items()}
    best = {k: v.clone() for k, v in average.items()}
    facts = {"dice": 0.0, "entropy": float("inf"), "epoch": -1.0}
    optimiser = torch.optim.AdamW(
        model.parameters(), lr=settings.learning_rate, weight_decay=settings.weight_decay
    )
    per_epoch = len(images) // settings.batch
    if per_epoch == 0:
        raise ValueError(
            f"{len(images)} images do not fill one batch of {settings.batch}; bring more or make the batch smaller."
        )
    total = settings.epochs * per_epoch
    start = 0
    names = [k for k, _ in model.named_parameters()]
    if state is not None and state.exists():
        with safe_open(str(state), "pt") as f:
            meta = f.metadata()
            if meta.get("settings") == str(asdict(settings)) and meta.get("seed", str(seed)) == str(seed):
                read = {k: f.get_tensor(k) for k in f.keys()}  # noqa: SIM118  safe_open is no dictionary
                model.load_state_dict({k[6:]: v for k, v in read.items() if k.startswith("model.")})
                average = {k[8:]: v.to(device) for k, v in read.items() if k.startswith("average.")}
                best = {k[5:]: v.to(device) for k, v in read.items() if k.startswith("best.")}
                start = int(meta["epoch"]) + 1
                facts = {
                    "dice": float(meta["dice"]),
                    "entropy": float(meta["entropy"]),
                    "epoch": float(meta["best"]),
                }
                moments = {
                    i: {
                        "step": torch.tensor(float(start * per_epoch)),
                        "exp_avg": read[f"m.{k}"],
                        "exp_avg_sq": read[f"v.{k}"],
                    }
                    for i, k in enumerate(names)
                    if f"m.{k}" in read
                }
                optimiser.load_state_dict(
                    {"state": moments, "param_groups": optimiser.state_dict()["param_groups"]}
                )
    done = start - 1
    for epoch in range(start, settings.epochs):
        done = epoch
        rng = torch.Generator().manual_seed(seed * 100_003 + epoch)
        model.train()
        order = torch.randperm(len(images), generator=rng)
        running = 0.0
        for b in range(per_epoch):
            step = epoch * per_epoch + b
            pick = order[b * settings.batch : (b + 1) * settings.batch]
            x, y = augment(images[pick], masks[pick], rng)
            for group in optimiser.param_groups:
                group["lr"] = _rate(step, total, settings.learning_rate)
            x, y = x.to(device), y.to(device)
            with mixed(device, settings.bfloat16):
                logits = model(x.to(memory_format=torch.channels_last))
            heads = logits if isinstance(logits, tuple) else (logits,)  # SINet supervises two maps
            loss = torch.stack([segmentation_loss(head, y, settings.dice) for head in heads]).sum()
            optimiser.zero_grad()
            loss.backward()
            nn.utils.clip_grad_norm_(model.parameters(), 5.0)
            optimiser.step()
            running += loss.item() / per_epoch
            keep = min(settings.average, (step + 1) / (step + 10))
            for k, v in model.state_dict().items():
                if v.is_floating_point():
                    average[k].lerp_(v, 1 - keep)
                else:
                    average[k].copy_(v)
        live = {k: v.clone() for k, v in model.state_dict().items()}
        now = {"loss": running, "epoch": float(epoch)}
        if epoch % 5 == 4 or epoch == settings.epochs - 1:
            model.load_state_dict(average)
            now |= score(model, val_images, val_masks)
            if now["entropy"] < facts["entropy"]:
                facts = {k: now[k] for k in ("dice", "entropy", "epoch")}
                best = {k: v.clone() for k, v in average.items()}
            model.load_state_dict(live)
        if state is not None:
            tensors = {f"model.{k}": v for k, v in live.items()}
            tensors |= {f"average.{k}": v for k, v in average.items()} | {
                f"best.{k}": v for k, v in best.items()
            }
            moments_now = optimiser.state_dict()["state"]
            for i, k in enumerate(names):
                if i not in moments_now:  # a layer that this network does not use
                    continue
                moment = moments_now[i]
                tensors |= {f"m.{k}": moment["exp_avg"], f"v.{k}": moment["exp_avg_sq"]}
            _save(
                state,
                tensors,
                {
                    "settings": str(asdict(settings)),
                    "seed": str(seed),
                    "epoch": str(epoch),
                    "dice": str(facts["dice"]),
                    "entropy": str(facts["entropy"]),
                    "best": str(facts["epoch"]),
                },
            )
        if on_step is not None:
            on_step(epoch + 1, settings.epochs, now)
        if minutes is not None and time.monotonic() - began > minutes * 60:
            break
    if (
        facts["epoch"] < 0
    ):  # the clock ran out before the first look at the validation part: keep what there is
        model.load_state_dict(average)
        return score(model, val_images, val_masks) | {"epoch": float(done)}
    model.load_state_dict(best)
    model.eval()
    return facts
