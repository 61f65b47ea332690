"""Accuracy of a trained network under corruption, before and after it follows unlabelled images: none, BN, λ, both (METHODS 4.9).

For each corruption and severity, test images are drawn with a fixed seed: a pool that only adaptation sees, and others that are scored. The scored
images are the same for every number of samples, every way of adaptation and every network.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from contextlib import AbstractContextManager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import nn

from core.data.corruptions import CORRUPTIONS, NOISES, SEVERITIES, corrupt_many
from core.lab.sparse_record import Cell
from core.lab.sparse_train import Images, accuracy, prepared, write
from core.nets.build import best_device
from core.nets.mixed import mixed
from core.settings.tacsc import AdaptSettings
from core.tacsc.adapt import adapt, adapted_copy
from core.tacsc.layer import sparse_layers
from core.tacsc.norms import refresh_norms

Report = Callable[[int, int, Mapping[str, Any]], None]


@dataclass(frozen=True)
class Plan:
    """What is measured.

    Attributes:
        corruptions: Names; clean images are always measured, with adaptation too.
        severities: Of each.
        samples: Numbers of unlabelled images; the first is used for every corruption, all of them for the noises.
        pool: Test images kept away from scoring, at least the largest number of samples.
        scored: Test images that are scored.
        scored_noise: The same under the four noises and on clean images.
        seed: Of the draws and of the corruptions.
        bfloat16: Score under autocast.
    """

    corruptions: tuple[str, ...] = CORRUPTIONS
    severities: tuple[int, ...] = SEVERITIES
    samples: tuple[int, ...] = (100, 50, 500)
    pool: int = 500
    scored: int = 1000
    scored_noise: int = 2000
    seed: int = 0
    bfloat16: bool = True


@dataclass(frozen=True)
class Drawn:
    """Test images of one cell, damaged.

    Attributes:
        pool: `(P, S, S, 3)` uint8, seen by adaptation alone.
        scored: `(M, S, S, 3)` uint8.
        labels: `(M,)` of the scored ones.
    """

    pool: np.ndarray
    scored: np.ndarray
    labels: np.ndarray


def draw(test: Images, name: str, severity: int, plan: Plan, cache: Path | None = None) -> Drawn:
    """Draw and damage the images of one cell, or read what an earlier call left in the cache.

    Args:
        test: Test images.
        name: A corruption, or `"clean"`.
        severity: 1 to 5; 0 for clean.
        plan: How many, and the seed.
        cache: Folder for damaged images; None keeps nothing.

    Raises:
        ValueError: There are fewer test images than the pool and one scored image take.
    """
    if len(test) <= plan.pool:
        raise ValueError(
            f"{len(test)} test images do not suffice: {plan.pool} of them would be kept for adaptation. Give more, or a smaller pool."
        )
    count = plan.scored_noise if name == "clean" or name in NOISES else plan.scored
    place = 99 if name == "clean" else CORRUPTIONS.index(name)
    order = np.random.default_rng([plan.seed, place, severity]).permutation(len(test))[: plan.pool + count]
    if name == "clean":
        images = test.images[order]
    else:
        file = (
            None if cache is None else cache / f"{name}-{severity}-s{plan.seed}-{len(order)}of{len(test)}.npy"
        )
        if file is not None and file.exists():
            images = np.load(file, allow_pickle=False)
        else:
            images = corrupt_many(test.images[order], name, severity, plan.seed, order.tolist())
            if file is not None:
                write(file, lambda path: np.save(path, images, allow_pickle=False))
    return Drawn(images[: plan.pool], images[plan.pool :], test.labels[order[plan.pool :]])


def score(net: nn.Module, x: torch.Tensor, labels: np.ndarray, plan: Plan) -> float:
    """Share of right answers of a network in eval mode, in the plan's precision."""
    with _autocast(plan):
        return accuracy(net, x, labels)


def _autocast(plan: Plan) -> AbstractContextManager[None]:
    return mixed(best_device(), plan.bfloat16)


def evaluate_cell(
    net: nn.Module,
    drawn: Drawn,
    name: str,
    severity: int,
    samples: tuple[int, ...],
    settings: AdaptSettings,
    plan: Plan,
) -> list[Cell]:
    """All ways of adaptation on one corruption and severity.

    Args:
        net: A network in eval mode; it is not changed. Without sparse layers it gives none and BN only.
        drawn: From `draw`.
        name: The corruption.
        severity: Its severity.
        samples: Numbers of images that adaptation sees, the first ones of the pool.
        settings: Of adaptation; what adapts is varied here.
        plan: For the precision of scoring.
    """
    device = next(net.parameters()).device
    layers = sparse_layers(net)
    start = tuple(layer.threshold.item() for layer in layers.values())
    x, pool = prepared(drawn.scored), prepared(drawn.pool).to(device)

    def cell(
        kind: str, n: int, now: nn.Module, lam: tuple[float, ...], stopped: tuple[str, ...] = ()
    ) -> Cell:
        return Cell(name, severity, kind, n, len(x), score(now, x, drawn.labels, plan), lam, stopped)

    cells = [cell("none", 0, net, start)]
    for n in samples:
        seen = pool[:n]
        found = adapt(net, seen, replace(settings, what="bn"))
        cells.append(cell("bn", n, adapted_copy(net, found), start))
        if not layers:
            continue
        found = adapt(net, seen, replace(settings, what="lambda"))
        lam, stopped = tuple(found.threshold[-1].tolist()), tuple(found.stopped)
        moved = adapted_copy(net, found)
        cells.append(cell("lambda", n, moved, lam, stopped))
        refresh_norms(moved, seen, settings.prior)
        cells.append(cell("both", n, moved, lam, stopped))
    return cells


def evaluate(
    net: nn.Module,
    test: Images,
    plan: Plan | None = None,
    settings: AdaptSettings | None = None,
    on_step: Report | None = None,
    cache: Path | None = None,
    known: Iterable[Cell] = (),
    keep: Callable[[tuple[Cell, ...]], None] | None = None,
) -> tuple[Cell, ...]:
    """Measure a network.

    Args:
        net: In eval mode; it is not changed.
        test: Test images.
        plan: What is measured.
        settings: Of adaptation.
        on_step: `(done, total, facts)` after each corruption and severity; facts hold name, severity and accuracies. It may raise to stop.
        cache: Folder for damaged images, shared by all networks.
        known: Cells of an earlier call with the same plan and settings; their corruptions and severities are not measured again.
        keep: Receives all cells so far after each corruption and severity, to save them.

    Returns:
        One cell for each corruption, severity, way of adaptation and number of samples.
    """
    plan, settings = plan or Plan(), settings or AdaptSettings()
    places = [("clean", 0)] + [(c, s) for c in plan.corruptions for s in plan.severities]
    cells = list(known)
    there = {(c.corruption, c.severity) for c in cells}
    for k, (name, severity) in enumerate(places):
        if (name, severity) in there:
            continue
        many = name == "clean" or name in NOISES
        samples = plan.samples if many else plan.samples[:1]
        new = evaluate_cell(
            net, draw(test, name, severity, plan, cache), name, severity, samples, settings, plan
        )
        cells += new
        if keep is not None:
            keep(tuple(cells))
        if on_step is not None:
            facts: dict[str, Any] = {"corruption": name, "severity": severity}
            facts |= {c.adapt: c.accuracy for c in new if c.samples in (0, plan.samples[0])}
            on_step(k + 1, len(places), facts)
    return tuple(cells)
