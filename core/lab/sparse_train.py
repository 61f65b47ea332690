"""Training sparse coding networks and their ResNet on CIFAR-10, with λ recorded on the way; runs go on where they were stopped.

SGD 0.1 with Nesterov momentum 0.9 and weight decay 5e-4, cosine by step, crop and flip, batches of 128 (METHODS 4.8, SDNet's recipe, shortened);
ρ has a step size of its own and no decay. Nothing is chosen on the test images. `sparse_evaluate.py` measures a finished run under corruption;
`python -m core.lab.sparse_train` trains one run or walks a plan that several processes may share.
"""

from __future__ import annotations

import json
import math
import os
import time
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import torch
import torch.nn.functional as F

from core.nets.build import best_device
from core.nets.mixed import mixed
from core.nets.state import load_state, save_state
from core.settings.tacsc import TacscSettings
from core.tacsc.layer import sparse_layers
from core.tacsc.nets import ResNet18, build
from core.tacsc.objective import collect_sizes, l1_term, measure

MEAN = torch.tensor([0.4914, 0.4822, 0.4465])[:, None, None]
STD = torch.tensor([0.2023, 0.1994, 0.2010])[:, None, None]
MEASURED = 200
"""Training images on which sparsity and error are measured after each epoch."""

Report = Callable[[int, int, Mapping[str, Any]], None]


@dataclass(frozen=True)
class Schedule:
    """How a network is trained.

    Attributes:
        epochs: Passes over the images.
        images: Images of each class that are used, the first ones; 0 takes all.
        batch: Images in a step.
        learning_rate: Of SGD at the first step; a cosine takes it to 0.
        threshold_rate: Of ρ, at the first step.
        weight_decay: Of everything but ρ.
        every: Steps between two records of λ.
        bfloat16: Run the layers in bfloat16 under autocast.
    """

    epochs: int = 12
    images: int = 0
    batch: int = 128
    learning_rate: float = 0.1
    threshold_rate: float = 0.1
    weight_decay: float = 5e-4
    every: int = 20
    bfloat16: bool = True


@dataclass(frozen=True)
class Run:
    """One training run.

    Attributes:
        model: One of `core.settings.tacsc.MODELS`.
        settings: Of the sparse layers.
        width: Channels of the first stage.
        seed: Of weights, order and augmentation.
    """

    model: str = "tacsc"
    settings: TacscSettings = field(default_factory=TacscSettings)
    width: int = 16
    seed: int = 0

    @property
    def key(self) -> str:
        """Name of the run's files: model, K where it has sparse layers, width, seed."""
        k = "" if self.model == "resnet" else f"-k{self.settings.iterations}"
        return f"{self.model}{k}-w{self.width}-s{self.seed}"


@dataclass(frozen=True)
class Images:
    """Images with classes.

    Attributes:
        images: `(N, S, S, 3)` uint8.
        labels: `(N,)` int64.
    """

    images: np.ndarray
    labels: np.ndarray

    def __len__(self) -> int:
        return len(self.labels)


def prepared(images: np.ndarray) -> torch.Tensor:
    """`(N, S, S, 3)` uint8 -> `(N, 3, S, S)` float32 in the units of training, channels last in memory."""
    x = torch.from_numpy(np.ascontiguousarray(images)).permute(0, 3, 1, 2).float() / 255
    return ((x - MEAN) / STD).contiguous(memory_format=torch.channels_last)


def augmented(images: np.ndarray, rng: torch.Generator) -> torch.Tensor:
    """As `prepared`, each image shifted by up to 4 pixels (zeros come in) and mirrored half of the time."""
    n, side = len(images), images.shape[1]
    x = F.pad(prepared(images), (4, 4, 4, 4))
    top, left = (torch.randint(0, 9, (n,), generator=rng) for _ in range(2))
    flip = torch.rand(n, generator=rng) < 0.5
    rows = top[:, None] + torch.arange(side)
    columns = torch.arange(side).expand(n, side)
    columns = left[:, None] + torch.where(flip[:, None], side - 1 - columns, columns)
    x = x.permute(0, 2, 3, 1)[torch.arange(n)[:, None, None], rows[:, :, None], columns[:, None, :]]
    return x.permute(0, 3, 1, 2)


def first_of_each(data: Images, count: int) -> Images:
    """The first `count` images of each class, in their order; 0 takes all."""
    if count == 0:
        return data
    pick = np.sort(np.concatenate([np.flatnonzero(data.labels == k)[:count] for k in np.unique(data.labels)]))
    return Images(data.images[pick], data.labels[pick])


@torch.no_grad()
def accuracy(net: torch.nn.Module, x: torch.Tensor, labels: np.ndarray, batch: int = 250) -> float:
    """Share of right answers of a network in eval mode, in float32."""
    net.eval()
    device = next(net.parameters()).device
    right = 0
    for i in range(0, len(x), batch):
        guess = net(x[i : i + batch].to(device)).argmax(1).cpu()
        right += int((guess == torch.from_numpy(labels[i : i + batch])).sum())
    return right / len(x)


def groups_of(net: ResNet18, schedule: Schedule) -> list[dict[str, Any]]:
    """Parameter groups of SGD: everything but ρ with weight decay, and ρ without, at its own rate."""
    rhos = [layer.rho for layer in sparse_layers(net).values() if layer.rho.requires_grad]
    own = {id(rho) for rho in rhos}
    rest = [p for p in net.parameters() if p.requires_grad and id(p) not in own]
    groups: list[dict[str, Any]] = [{"params": rest, "peak": schedule.learning_rate}]
    if rhos:
        groups.append({"params": rhos, "peak": schedule.threshold_rate, "weight_decay": 0.0})
    return groups


def mark_of(run: Run, schedule: Schedule, images: int) -> str:
    """What makes two runs the same."""
    return json.dumps([asdict(run), asdict(schedule), images])


def write(path: Path, make: Callable[[Path], object]) -> None:
    """Write a file under another name and move it into place."""
    path.parent.mkdir(parents=True, exist_ok=True)
    part = path.with_name(f"{path.stem}.{os.getpid()}.part{path.suffix}")
    make(part)
    os.replace(part, path)


def fit(
    run: Run,
    data: Images,
    schedule: Schedule,
    state: Path | None = None,
    on_step: Report | None = None,
    minutes: float | None = None,
) -> tuple[ResNet18, dict[str, Any]] | None:
    """Train a run from where it stands.

    Args:
        run: What to train.
        data: Training images.
        schedule: How.
        state: File for going on, written after each epoch; None keeps nothing.
        on_step: `(done, total, facts)` after each epoch; facts hold loss, seconds and λ. It may raise to stop.
        minutes: Stop at the end of the epoch in which so many minutes have passed.

    Returns:
        The network in eval mode and its history, or None where the minutes ended first. The history holds `layers`, `steps` and `threshold`
        (λ of every layer every few steps), and for each epoch `loss`, `train_accuracy` (of the augmented batches), `sparsity`, `error`, `size`.

    Raises:
        ValueError: Fewer images than a batch takes, or the loss is no longer a number.
    """
    data = first_of_each(data, schedule.images)
    if len(data) < schedule.batch:
        raise ValueError(f"{len(data)} images do not fill one batch of {schedule.batch}.")
    began, device = time.monotonic(), best_device()
    net = build(
        run.model,
        run.width,
        int(data.labels.max()) + 1,
        run.settings,
        rng=torch.Generator().manual_seed(run.seed),
    )
    net = net.to(device).to(memory_format=torch.channels_last)
    layers = sparse_layers(net)
    groups = groups_of(net, schedule)
    optimiser = torch.optim.SGD(
        groups, schedule.learning_rate, 0.9, weight_decay=schedule.weight_decay, nesterov=True
    )
    history: dict[str, Any] = {"layers": list(layers), "steps": [], "threshold": []}
    history |= {name: [] for name in ("loss", "train_accuracy", "sparsity", "error", "size", "seconds")}
    mark, done = mark_of(run, schedule, len(data)), 0
    if state is not None and (kept := load_state(state, net, optimiser, mark)) is not None:
        history, done = kept, len(kept["loss"])
    per_epoch = len(data) // schedule.batch
    total = per_epoch * schedule.epochs
    for epoch in range(done, schedule.epochs):
        if minutes is not None and time.monotonic() - began > minutes * 60:
            return None
        started = time.monotonic()
        rng = torch.Generator().manual_seed(run.seed * 100_003 + epoch)
        order = torch.randperm(len(data), generator=rng).numpy()
        net.train()
        losses, right = 0.0, 0
        for b in range(per_epoch):
            step = epoch * per_epoch + b
            for group in optimiser.param_groups:
                group["lr"] = group["peak"] * 0.5 * (1 + math.cos(math.pi * step / total))
            if layers and step % schedule.every == 0:
                history["steps"].append(step)
                history["threshold"].append([layer.threshold.item() for layer in layers.values()])
            pick = order[b * schedule.batch : (b + 1) * schedule.batch]
            x = augmented(data.images[pick], rng).to(device)
            y = torch.from_numpy(data.labels[pick]).to(device)
            optimiser.zero_grad(set_to_none=True)
            with mixed(device, schedule.bfloat16), collect_sizes(net) as sizes:
                logits = net(x)
            logits = logits.float()
            loss = F.cross_entropy(logits, y)
            (loss + run.settings.l1_weight * l1_term(sizes)).backward()
            optimiser.step()
            losses += float(loss.detach())
            right += int((logits.argmax(1) == y).sum())
        if not math.isfinite(losses):
            raise ValueError(
                f"The loss of {run.key} is no longer a number in epoch {epoch + 1}. Lower the learning rate, or train in float32."
            )
        net.eval()
        history["loss"].append(losses / per_epoch)
        history["train_accuracy"].append(right / (per_epoch * schedule.batch))
        if layers:
            found = measure(net, prepared(data.images[:MEASURED]).to(device))
            history["sparsity"].append(found.sparsity.tolist())
            history["error"].append(found.error.tolist())
            history["size"].append(found.size.tolist())
        history["seconds"].append(time.monotonic() - started)
        if state is not None:
            save_state(state, net, optimiser, mark, history)
        if on_step is not None:
            lam = [layer.threshold.item() for layer in layers.values()]
            facts = {"key": run.key, "loss": history["loss"][-1], "accuracy": history["train_accuracy"][-1]}
            on_step(epoch + 1, schedule.epochs, facts | {"threshold": lam, "seconds": history["seconds"][-1]})
    if layers:
        history["steps"].append(total)
        history["threshold"].append([layer.threshold.item() for layer in layers.values()])
    return net.eval(), history


if __name__ == "__main__":
    from core.lab.sparse_queue import command

    raise SystemExit(command())
