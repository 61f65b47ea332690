"""Making the study of sparse coding in segmentation: training the U-Nets and measuring them under corruption, each going on where it was stopped.

Parts are those of the sets' studies (`assets/splits`): the first 300 images of D1 train, D1's validation part only gives a figure, D2 is divided into
images for COAT's predictor and images that only adaptation sees, some of the pool calibrate and test. Training goes on by epoch, measuring by
corruption and severity. Nothing is chosen here: one schedule a set, one seed, the last epoch. Not here: the record and the command line
(`sparse_medical_run`).
"""

from __future__ import annotations

import hashlib
import json
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

import torch

from core.lab.margin_sets import Labelled
from core.lab.sparse_medical import name_of
from core.lab.sparse_medical_measure import Plan, divide_d2, landscape, measure_place, promise
from core.lab.sparse_train import write
from core.lab.sparse_unet import UnetSchedule, build_unet, fit_unet, mean_dice, read_unet, save_unet, scores
from core.nets.build import best_device
from core.settings.tacsc import AdaptSettings, TacscSettings
from core.tacsc.layer import sparse_layers

EPOCHS = {"phantom": 24, "polyp": 32}
"""Epochs of each set."""

SEED = 0

Say = Callable[[str], None]


class OutOfTime(Exception):
    """The minutes have passed; what was done so far is kept."""


class Clock:
    """Minutes that are left, None for no limit."""

    def __init__(self, minutes: float | None) -> None:
        self.end = None if minutes is None else time.monotonic() + 60 * minutes

    def left(self) -> float | None:
        """Minutes left. Raises OutOfTime where there are none."""
        if self.end is None:
            return None
        if time.monotonic() >= self.end:
            raise OutOfTime
        return (self.end - time.monotonic()) / 60


def write_json(path: Path, value: Any) -> None:
    """Write JSON under another name and move it into place."""
    text = json.dumps(value, ensure_ascii=False, separators=(",", ":"))
    write(path, lambda part: part.write_text(text + "\n", encoding="utf-8"))


def train_network(
    data: str,
    kind: str,
    parts: Mapping[str, Labelled],
    work: Path,
    schedule: UnetSchedule,
    clock: Clock,
    say: Say = print,
) -> dict[str, Any]:
    """Train a U-Net, or read what an earlier call left.

    Args:
        data: The set.
        kind: `"plain"` or `"tacsc"`.
        parts: From `load_set`.
        work: Folder of the runs; gets `{name}.safetensors` and `{name}.json`.
        schedule: How.
        clock: Stops training at the end of an epoch.
        say: Called with a line an epoch.

    Returns:
        Facts of training: set, kind, seed, schedule, settings, history, `val_dice` of the network as its file holds it.

    Raises:
        OutOfTime: The minutes ended first.
        ValueError: The folder holds this network under another schedule, or the set has padded images.
    """
    name = name_of(data, kind)
    facts_path, weights = work / f"{name}.json", work / f"{name}.safetensors"
    if facts_path.exists():
        known: dict[str, Any] = json.loads(facts_path.read_text(encoding="utf-8"))
        if known["schedule"] != asdict(schedule):
            raise ValueError(
                f"{work.name} holds {name} trained under another schedule ({known['schedule']}). Give the same one, or another --work."
            )
        return known
    train = parts["train"]
    if bool(train.ignore.any()):
        raise ValueError(f"The set {data!r} has padded images; this U-Net takes square ones only.")
    settings = TacscSettings() if kind == "tacsc" else None
    net = build_unet(settings, torch.Generator().manual_seed(SEED))
    net = net.to(best_device()).to(memory_format=torch.channels_last)

    def report(done: int, total: int, facts: Mapping[str, Any]) -> None:
        lam = " ".join(f"{v:.4f}" for v in facts["threshold"])
        say(f"{name}: epoch {done}/{total}, loss {facts['loss']:.4f}" + (f", λ {lam}" if lam else ""))

    weight = TacscSettings().l1_weight
    state = work / f"{name}.state"
    history = fit_unet(
        net, train.images, train.labels > 0, schedule, SEED, state, report, clock.left(), weight
    )
    if history is None:
        raise OutOfTime
    header = {"set": data, "kind": kind, "seed": SEED, "schedule": asdict(schedule), "images": len(train)}
    save_unet(weights, net, settings, header)
    val = parts["val"]
    dice = mean_dice(scores(read_unet(weights)[0], val.images), val.labels > 0)
    history = {k: [_short(v) for v in row] for k, row in history.items()}
    facts = header | {"settings": None if settings is None else asdict(settings), "history": history}
    facts |= {"val_dice": round(dice, 5)}
    write_json(facts_path, facts)
    state.unlink(missing_ok=True)
    say(f"{name}: trained, Dice {dice:.3f} on {len(val)} validation images")
    return facts


def _short(value: Any) -> Any:
    """Five digits a number."""
    if isinstance(value, list):
        return [_short(v) for v in value]
    return float(f"{value:.5g}") if isinstance(value, float) else value


def measure_network(
    data: str,
    kind: str,
    parts: Mapping[str, Labelled],
    work: Path,
    plan: Plan,
    settings: AdaptSettings,
    clock: Clock,
    say: Say = print,
    places: Sequence[tuple[str, int]] | None = None,
) -> dict[str, Any]:
    """Measure a trained U-Net, as its file holds it, going on with what an earlier call left.

    Args:
        data: The set.
        kind: `"plain"` or `"tacsc"`.
        parts: From `load_set`.
        work: Folder of the runs; gets `{name}.cells.json`.
        plan: What is measured.
        settings: Of adaptation.
        clock: Stops between two corruptions.
        say: Called with a line for each corruption and severity.
        places: Some of the plan's places; all when None.

    Returns:
        `cells` as in the record, `coat_gap` (out of fold, on COAT's part of D2), `parts` (images in each) and `followers` (names of
        the images that adaptation saw) and, for a sparse network, `objective` from `landscape`.

    Raises:
        OutOfTime: The minutes ended first.
    """
    name = name_of(data, kind)
    weights, path = work / f"{name}.safetensors", work / f"{name}.cells.json"
    code = hashlib.sha256(weights.read_bytes()).hexdigest()
    mark = json.loads(json.dumps([code, asdict(plan), asdict(settings)]))
    found: dict[str, Any] = json.loads(path.read_text(encoding="utf-8")) if path.exists() else {}
    if found.get("mark") != mark:
        found = {"mark": mark, "cells": []}
    done = {(c["corruption"], c["severity"]) for c in found["cells"]}
    left = [place for place in places or plan.places if place not in done]
    if not left:
        return found
    net = read_unet(weights)[0].to(best_device())
    fitting, followers = divide_d2(parts["d2"], plan.samples)
    clock.left()
    made = promise(net, fitting, parts["pool"], plan)
    sizes = {"train": len(parts["train"]), "val": len(parts["val"]), "coat": len(fitting)}
    found |= {"coat_gap": round(made.fit_gap, 5), "followers": list(followers.names)}
    found |= {"parts": sizes | {"adaptation": len(followers), "pool": len(made.pool)}}
    if sparse_layers(net) and "objective" not in found:
        found["objective"] = landscape(net, followers, settings, plan.seed)
    for corruption, severity in left:
        clock.left()
        cells = measure_place(net, made, followers, corruption, severity, settings)
        found["cells"] += [{"set": data, "kind": kind} | c for c in cells]
        write_json(path, found)
        level = f"{plan.levels[0]:g}"
        words = [f"{c['adapt']} {c['dice']:.3f}/{c['figures'][level]['CRC'][0]:.3f}" for c in cells]
        lam = [f"{c['threshold']:.3f}" for c in cells if c["threshold"] is not None]
        say(
            f"{name}: {corruption} {severity}, Dice/coverage of CRC: {', '.join(words)}"
            + (f"; λ {' '.join(lam)}" if lam else "")
        )
    return found
