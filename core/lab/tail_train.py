"""Training one classifier on a long-tailed set under one method, the same way for every method, and recording every epoch.

SGD with Nesterov momentum, a short warm-up and a cosine, shifted crops and flips; the last epoch is what counts, so nothing is chosen on test
images. A run is resumable and its files appear only when it is finished. A stopped run that goes on gives the same numbers.

    python -m core.lab.tail_train --set pbc --method car-count --seed 0 --data DIR --work DIR
    python -m core.lab.tail_train queue PLAN --data DIR --work DIR        (see `tail_queue.py`)
"""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Callable, Mapping
from dataclasses import asdict
from pathlib import Path
from typing import Any

import numpy as np
import torch
import torch.nn.functional as F
from safetensors import safe_open
from safetensors.torch import save_file
from torch import nn

from core.car.metrics import confusion
from core.lab.keys import settings_key
from core.lab.tail_batches import crop_and_flip, cutmix, to_input
from core.lab.tail_methods import Method, TailLoss
from core.lab.tail_record import RunRecord, final_figures, read_run, run_name, singular_values, write_run
from core.lab.tail_schedule import Schedule, build_classifier, optimiser_of, rate_at
from core.lab.tail_sets import Part, TailSet
from core.nets.build import best_device
from core.nets.mixed import mixed
from core.nets.weights import save_tensors

Report = Callable[[int, int, Mapping[str, Any]], None]


@torch.no_grad()
def score(
    model: nn.Module, part: Part, data: TailSet, schedule: Schedule, batch: int = 256
) -> tuple[np.ndarray, float]:
    """Confusion counts `(K, K)` and mean cross-entropy of a part, in eval mode, without augmentation.

    Raises:
        ValueError: The network gives NaN.
    """
    model.eval()
    device = next(model.parameters()).device
    k = len(data.classes)
    matrix, total = np.zeros((k, k), np.int64), 0.0
    for i in range(0, len(part), batch):
        x = to_input(part.images[i : i + batch], data.mean, data.std).to(device)
        with mixed(device, schedule.bfloat16):
            logits = model(x)
        logits, truth = logits.float().cpu(), part.labels[i : i + batch]
        if bool(logits.isnan().any()):
            raise ValueError(
                "The network gives NaN: training went astray. A smaller learning rate usually helps."
            )
        total += float(F.cross_entropy(logits, truth, reduction="sum"))
        matrix += confusion(truth, logits.argmax(1), k)
    return matrix, total / max(len(part), 1)


def _pack_state(
    model: nn.Module, optimiser: torch.optim.Optimizer, loss: nn.Module, rows: dict[str, list[np.ndarray]]
) -> dict[str, torch.Tensor]:
    tensors = {f"model.{k}": v for k, v in model.state_dict().items()}
    tensors |= {f"loss.{k}": v for k, v in loss.state_dict().items()}
    for i, moments in optimiser.state_dict()["state"].items():
        tensors |= {f"opt.{i}.{k}": torch.as_tensor(v) for k, v in moments.items() if v is not None}
    tensors |= {f"rows.{k}": torch.from_numpy(np.stack(v)) for k, v in rows.items() if v}
    return {k: v.detach().cpu().clone().contiguous() for k, v in tensors.items()}


def _unpack_state(
    path: Path,
    model: nn.Module,
    optimiser: torch.optim.Optimizer,
    loss: nn.Module,
    rows: dict[str, list[np.ndarray]],
) -> None:
    with safe_open(str(path), "pt") as f:
        read = {k: f.get_tensor(k) for k in f.keys()}  # noqa: SIM118  safe_open is no dictionary
    model.load_state_dict({k[6:]: v for k, v in read.items() if k.startswith("model.")})
    loss.load_state_dict({k[5:]: v for k, v in read.items() if k.startswith("loss.")})
    moments: dict[int, dict[str, torch.Tensor]] = {}
    for k, v in read.items():
        if k.startswith("opt."):
            _, i, name = k.split(".", 2)
            moments.setdefault(int(i), {})[name] = v
    optimiser.load_state_dict({"state": moments, "param_groups": optimiser.state_dict()["param_groups"]})
    for k in rows:
        if f"rows.{k}" in read:
            rows[k] = list(read[f"rows.{k}"].numpy())


def state_epoch(path: Path, key: str) -> int:
    """The epoch from which a stopped run goes on, 0 where there is nothing of the same settings."""
    if not path.exists():
        return 0
    with safe_open(str(path), "pt") as f:
        meta = f.metadata() or {}
    return int(meta["epoch"]) if meta.get("key") == key else 0


def train_epoch(
    model: nn.Module,
    optimiser: torch.optim.Optimizer,
    loss: TailLoss,
    data: TailSet,
    schedule: Schedule,
    epoch: int,
    seed: int,
) -> tuple[float, float]:
    """One pass over the training images; mean loss and mean regularizer of its steps. All draws come from the seed and the epoch."""
    rng = torch.Generator().manual_seed(seed * 100_003 + epoch)
    device = next(model.parameters()).device
    model.train()
    order = torch.randperm(len(data.train), generator=rng)
    steps = max(len(order) // schedule.batch, 1)
    total, term = 0.0, 0.0
    for b in range(steps):
        pick = order[b * schedule.batch : (b + 1) * schedule.batch]
        x = to_input(crop_and_flip(data.train.images[pick], rng), data.mean, data.std)
        labels, pasted, own = data.train.labels[pick], None, 1.0
        if loss.method.cutmix:
            x, pasted, own = cutmix(x, labels, rng)
            pasted = pasted.to(device)
        x, labels = x.to(device, memory_format=torch.channels_last), labels.to(device)
        for group in optimiser.param_groups:
            group["lr"] = rate_at(epoch * steps + b, schedule.epochs * steps, schedule)
        with mixed(device, schedule.bfloat16):
            logits = model(x)
        value, part = loss(logits, labels, epoch, pasted, own)
        optimiser.zero_grad()
        value.backward()
        optimiser.step()
        total += float(value.detach()) / steps
        term += part / steps
    return total, term


def finished_run(work: Path, name: str, method: str, seed: int, key: str) -> RunRecord | None:
    """A run that is done, or None.

    Raises:
        ValueError: A run of that name is there with other settings.
    """
    path = work / name / f"{run_name(method, seed)}.json"
    if not path.exists():
        return None
    record = read_run(path)
    if record.facts.get("key") != key:
        raise ValueError(
            f"{path.name} was made with another schedule or other images. Give another --work folder, or move that run away."
        )
    return record


def run_key(data: TailSet, method: Method, seed: int, schedule: Schedule) -> str:
    """What makes two runs the same."""
    facts = (data.name, data.counts.tolist(), len(data.val), len(data.test), float(data.mean.sum()))
    return settings_key("tail.run", facts, method, seed, schedule)


def train_run(
    data: TailSet,
    method: Method,
    seed: int,
    schedule: Schedule,
    work: Path,
    on_step: Report | None = None,
    stop_after: int | None = None,
) -> RunRecord | None:
    """Train, or go on training, and write the run.

    Args:
        data: The set.
        method: The method.
        seed: Of weights, order and augmentation.
        schedule: How long and how.
        work: Folder of all runs; the state of an unfinished one lies there too.
        on_step: `(epoch, epochs, facts)` after each epoch; facts hold `set`, `method`, `seed`, the losses, `term`, `soft_sigma` and `seconds`.
        stop_after: Stop after so many epochs, keeping the state; None goes to the end.

    Returns:
        The finished run, or None where it was stopped. A run that is already there is read, not made.

    Raises:
        ValueError: The network gives NaN; or a run of that name with other settings is there.
    """
    key = run_key(data, method, seed, schedule)
    done = finished_run(work, data.name, method.name, seed, key)
    if done is not None:
        return done
    home = work / data.name
    home.mkdir(parents=True, exist_ok=True)
    state = home / f"{run_name(method.name, seed)}.state"
    rng = torch.Generator().manual_seed(seed)
    model = build_classifier(schedule, len(data.classes), method.head, rng)
    model = model.to(best_device(), memory_format=torch.channels_last)  # type: ignore[call-overload]
    loss = TailLoss(method, data.counts, schedule.epochs).to(best_device())
    optimiser = optimiser_of(model, schedule)
    rows: dict[str, list[np.ndarray]] = {
        k: []
        for k in (
            *("train_loss", "val_loss", "test_loss", "term", "soft_sigma", "seconds"),
            *("test", "val", "train", "train_epochs", "singular"),
        )
    }
    start = state_epoch(state, key)
    if start:
        _unpack_state(state, model, optimiser, loss, rows)
    for epoch in range(start, schedule.epochs):
        began = time.perf_counter()
        train_loss, term = train_epoch(model, optimiser, loss, data, schedule, epoch, seed)
        val, val_loss = score(model, data.val, data, schedule)
        test, test_loss = score(model, data.test, data, schedule)
        if epoch in (0, schedule.epochs - 1) or (epoch + 1) % schedule.train_every == 0:
            rows["train"].append(score(model, data.train, data, schedule)[0])
            rows["train_epochs"].append(np.array(epoch))
        rows["test"].append(test)
        rows["val"].append(val)
        rows["singular"].append(singular_values(test))
        soft = 0.0 if loss.car is None else float(loss.car.sigma)
        now = dict(train_loss=train_loss, val_loss=val_loss, test_loss=test_loss, term=term, soft_sigma=soft)
        now["seconds"] = time.perf_counter() - began
        for k, v in now.items():
            rows[k].append(np.array(v, np.float32))
        part = state.with_suffix(".part")
        save_file(
            _pack_state(model, optimiser, loss, rows),
            str(part),
            metadata={"key": key, "epoch": str(epoch + 1)},
        )
        os.replace(part, state)
        if on_step is not None:
            who = {"set": data.name, "method": method.name, "seed": seed}
            on_step(epoch + 1, schedule.epochs, who | now)
        if stop_after is not None and epoch + 1 - start >= stop_after and epoch + 1 < schedule.epochs:
            return None
    arrays = {k: np.stack(v) for k, v in rows.items()}
    facts = {
        "set": data.name,
        "method": method.name,
        "label": method.label,
        "seed": seed,
        "key": key,
        "schedule": asdict(schedule),
        "loss": method.loss,
        "cutmix": method.cutmix,
        "car": None if method.car is None else asdict(method.car),
        "classes": list(data.classes),
        "counts": data.counts.tolist(),
        "images": {
            "train": len(data.train),
            "val": len(data.val),
            "test": len(data.test),
            "twins": data.twins,
        },
        "seconds": round(float(arrays["seconds"].sum()), 1),
        "torch": torch.__version__,
        "figures": final_figures(arrays["test"][-1], arrays["val"][-1], arrays["train"][-1], data.counts),
    }
    spec = {
        "net": schedule.net,
        "width": schedule.width,
        "depth": schedule.depth,
        "patch": schedule.patch,
        "head": method.head,
        "mean": data.mean.tolist(),
        "std": data.std.tolist(),
    }
    about = {k: facts[k] for k in ("set", "method", "label", "seed", "classes", "counts")}
    save_tensors(home / f"{run_name(method.name, seed)}.safetensors", model.state_dict(), spec | about)
    path = write_run(work, facts, arrays)
    state.unlink(missing_ok=True)
    return read_run(path)


def main(arguments: list[str] | None = None) -> int:
    """The command line. See the module's first lines."""
    from core.lab.tail_queue import command

    return command(arguments)


if __name__ == "__main__":
    sys.exit(main())
