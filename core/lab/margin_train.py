"""Training one network under one loss, the same way for every loss, and keeping what it says of the images that it did not see.

Adam at 1e-3, a tenth of it in the second half, no weight decay, no augmentation, batches of four, the last epoch kept: the schedule of
the published medical code, shortened. Runs go on where they were stopped; nothing is chosen here.
"""

from __future__ import annotations

import json
import os
import time
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import nn

from core.lab.margin_sets import CLASSES, SIDE, Labelled
from core.margin.losses import loss_of
from core.nets.build import Spec, best_device, build, initialise
from core.nets.mixed import mixed
from core.nets.state import load_state, save_state
from core.nets.weights import load_network, save_network
from core.settings import MarginSettings

STAGES = (8, 16, 32, 64, 128, 8)
"""Channels of the slim U-Net."""

MARGINS = (0.0, 3.0, 5.0, 10.0)
"""Margins among which the validation part of one seed chooses."""

PHANTOM_MARGIN = 3.0
"""m of the phantoms' network: not chosen, but where the margin is at work and can be seen."""

SEEDS = (0, 1, 2)

Report = Callable[[int, int, Mapping[str, Any]], None]


@dataclass(frozen=True)
class Schedule:
    """How a network is trained.

    Attributes:
        epochs: Passes over the training images.
        batch: Images in a step.
        learning_rate: Adam's step size in the first half; a tenth of it in the second.
        bfloat16: Run all layers but the last in bfloat16 under autocast.
    """

    epochs: int = 30
    batch: int = 4
    learning_rate: float = 1e-3
    bfloat16: bool = True


@dataclass(frozen=True)
class Run:
    """One training run.

    Attributes:
        data: One of `core.lab.margin_sets.MARGIN_SETS`.
        loss: Settings of the loss.
        seed: Of initial weights and order.
    """

    data: str
    loss: MarginSettings
    seed: int

    @property
    def key(self) -> str:
        """Name of the run's files: set, loss (with m for the margin), seed."""
        m = f"{self.loss.margin:g}" if self.loss.loss == "margin" else ""
        return f"{self.data}-{self.loss.loss.lower()}{m}-s{self.seed}"


def run_of(data: str, loss: str, seed: int, margin: float | None = None) -> Run:
    """A run with the default numbers of its loss.

    Args:
        data: The set.
        loss: Short name of the loss.
        seed: The seed.
        margin: m, for the margin loss.
    """
    settings = MarginSettings(loss=loss)
    return Run(data, settings if margin is None else replace(settings, margin=margin), seed)


def planned(sets: tuple[str, ...] = ("skin", "polyp", "nuclei")) -> list[Run]:
    """Runs of the comparison that need no choice first: one seed of everything, all margins, and phantoms; then CE and rivals of the other seeds."""
    rivals = ("CE", "LS", "focal", "ECP")
    first = [run_of(d, loss, 0) for loss in rivals for d in sets]
    first += [run_of(d, "margin", 0, m) for m in MARGINS for d in sets]
    first += [run_of("phantom", loss, 0) for loss in (*rivals, "SVLS")]
    first.append(run_of("phantom", "margin", 0, PHANTOM_MARGIN))
    return first + [run_of(d, loss, s) for s in SEEDS[1:] for loss in rivals for d in sets]


def fit(
    model: nn.Module,
    train: Labelled,
    settings: MarginSettings,
    schedule: Schedule,
    seed: int,
    on_step: Report | None = None,
    state: Path | None = None,
    minutes: float | None = None,
) -> tuple[dict[str, float], ...]:
    """Train a network in place.

    Args:
        model: Network from `(N, 3, S, S)` to `(N, K, S, S)` logits.
        train: Images with labels.
        settings: The loss.
        schedule: Epochs, batch, rate.
        seed: Of the order.
        on_step: `(done, total, facts)` after each epoch; facts hold the loss. It may raise to stop.
        state: File for going on, written every few epochs; None keeps nothing.
        minutes: Stop at the end of the epoch in which so many minutes have passed.

    Returns:
        One row an epoch: epoch, loss.

    Raises:
        ValueError: Fewer images than a batch takes.
    """
    if len(train) < schedule.batch:
        raise ValueError(f"{len(train)} images do not fill one batch of {schedule.batch}.")
    began = time.monotonic()
    device = next(model.parameters()).device
    loss_fn = loss_of(settings)
    optimiser = torch.optim.Adam(model.parameters(), schedule.learning_rate, fused=True)
    rows: list[dict[str, float]] = []
    mark = json.dumps([asdict(settings), asdict(schedule), seed])
    if state is not None:
        kept = load_state(state, model, optimiser, mark)
        rows = kept["rows"] if kept is not None else rows
    model.train()
    for epoch in range(len(rows), schedule.epochs):
        rng = torch.Generator().manual_seed(seed * 100_003 + epoch)
        for group in optimiser.param_groups:
            group["lr"] = schedule.learning_rate * (1.0 if epoch < schedule.epochs / 2 else 0.1)
        order = torch.randperm(len(train), generator=rng)
        losses = []
        for b in range(0, len(order) - schedule.batch + 1, schedule.batch):
            pick = order[b : b + schedule.batch]
            x = train.images[pick].to(device, memory_format=torch.channels_last)
            y, ignore = train.labels[pick].to(device), train.ignore[pick]
            with mixed(device, schedule.bfloat16):
                logits = model(x)
            loss = loss_fn(logits, y, ignore.to(device) if bool(ignore.any()) else None)
            optimiser.zero_grad()
            loss.backward()
            nn.utils.clip_grad_norm_(model.parameters(), 5.0)
            optimiser.step()
            losses.append(loss.item())
        rows.append({"epoch": float(epoch), "loss": sum(losses) / len(losses)})
        if state is not None and (epoch % 6 == 5 or epoch == schedule.epochs - 1):
            save_state(state, model, optimiser, mark, {"rows": rows})
        if on_step is not None:
            on_step(epoch + 1, schedule.epochs, rows[-1])
        if minutes is not None and time.monotonic() - began > 60 * minutes:
            break
    model.eval()
    return tuple(rows)


@torch.no_grad()
def logits_of(model: nn.Module, images: torch.Tensor, batch: int = 20) -> torch.Tensor:
    """Logits of images in eval mode and float32, `(N, K, S, S)` on the CPU."""
    model.eval()
    device = next(model.parameters()).device
    out = [model(images[i : i + batch].to(device)).float().cpu() for i in range(0, len(images), batch)]
    return torch.cat(out)


def fresh(data: str, seed: int) -> tuple[nn.Module, Spec]:
    """The slim U-Net of a set with weights drawn from a seed, on the best device."""
    spec = Spec("slim", "", STAGES, SIDE, len(CLASSES[data]))
    model = initialise(build(spec), torch.Generator().manual_seed(seed))
    return model.to(best_device()).to(memory_format=torch.channels_last), spec


def train_run(
    run: Run,
    parts: dict[str, Labelled],
    work: Path,
    schedule: Schedule | None = None,
    on_step: Report | None = None,
) -> Path:
    """Train one run and keep its weights and its logits of every part that it did not see.

    Args:
        run: What to train.
        parts: From `core.lab.margin_sets.load_set`.
        work: Folder of the runs.
        schedule: Epochs, batch, rate; the default when None.
        on_step: As in `fit`.

    Returns:
        The file of logits `(N, K, 96, 96)` float16 of `val`, `d2` and `pool`, with the history; written last: a run whose file exists is done.
    """
    work.mkdir(parents=True, exist_ok=True)
    done = work / f"{run.key}.npz"
    if done.exists():
        return done
    schedule = schedule or Schedule()
    model, spec = fresh(run.data, run.seed)
    state = work / f"{run.key}.state"
    began = time.monotonic()
    rows = fit(model, parts["train"], run.loss, schedule, run.seed, on_step, state)
    facts = {"set": run.data, "loss": asdict(run.loss), "seed": run.seed, "schedule": asdict(schedule)}
    save_network(work / f"{run.key}.safetensors", model, spec, facts)
    model = load_network(work / f"{run.key}.safetensors")[
        0
    ]  # what ships is what is measured: weights in float16
    out: dict[str, np.ndarray] = {
        part: logits_of(model, parts[part].images).half().numpy() for part in ("val", "d2", "pool")
    }
    out["loss"] = np.array([r["loss"] for r in rows], np.float32)
    out["seconds"] = np.array(time.monotonic() - began)
    part_file = done.with_suffix(".part.npz")
    np.savez(part_file, **out)  # type: ignore[arg-type]
    os.replace(part_file, done)
    state.unlink(missing_ok=True)
    return done
