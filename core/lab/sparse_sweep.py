"""Which λ would have been best, had labels chosen it: accuracy of a trained network over common multiples of its λ.

An oracle, not a method: it looks at the labels of the images it is scored on. It stands beside adaptation to show how much there was
to win by moving λ at all, and whether the label-free objective goes there. All layers share one multiple, so a network with many
layers may hold something better that this does not find. Figures of `python -m core.lab.sparse_sweep` ship as
`results/sparse/sweep.json`.
"""

from __future__ import annotations

import argparse
import copy
import json
import math
import sys
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import nn

from core.data.corruptions import CORRUPTIONS, NOISES
from core.data.folders import DataAbsent
from core.lab.sparse_evaluate import Plan, draw, score
from core.lab.sparse_record import SparseRecord, load_sparse_network
from core.lab.sparse_train import Images, prepared, write
from core.nets.weights import ASSETS
from core.tacsc.layer import inverse_softplus, sparse_layers
from core.tacsc.norms import refresh_norms

FACTORS = tuple(2.0 ** (k / 2) for k in range(-4, 7))
"""Multiples of the trained λ, from a quarter to eight times, each half an octave above the last."""

PLACES = (("clean", 0), *((name, s) for name in (*NOISES, "gaussian_blur", "contrast") for s in (1, 3, 5)))
"""Corruptions and severities that are swept."""

FILE = "sweep.json"
COMMAND = "python -m core.lab.sparse_sweep KEY --data DIR --work DIR"


@dataclass(frozen=True)
class Sweep:
    """One network under one corruption at several λ. F multiples.

    Attributes:
        key: The run.
        corruption: Name; `"clean"` for none.
        severity: 1 to 5; 0 for clean.
        factors: `(F,)` what λ of every layer was multiplied with, rising.
        stored: `(F,)` accuracy with the statistics of training in batch normalisation.
        refreshed: `(F,)` the same after they were refreshed at this λ.
        scored: Images that were scored.
        samples: Unlabelled images, none of them scored, that the refreshing saw.
    """

    key: str
    corruption: str
    severity: int
    factors: tuple[float, ...]
    stored: tuple[float, ...]
    refreshed: tuple[float, ...]
    scored: int
    samples: int

    def best(self, refreshed: bool = False) -> tuple[float, float]:
        """The multiple with the highest accuracy (the nearest to 1 among equals), and that accuracy."""
        line = self.refreshed if refreshed else self.stored
        top = max(line)
        return min(
            (f for f, a in zip(self.factors, line, strict=True) if a == top), key=lambda f: abs(math.log(f))
        ), top

    def at(self, factor: float, refreshed: bool = False) -> float:
        """Accuracy at a multiple, between two of them on a straight line over its logarithm; NaN outside."""
        line = self.refreshed if refreshed else self.stored
        known = self.factors[0] <= factor <= self.factors[-1]
        return float(np.interp(math.log(factor), np.log(self.factors), line)) if known else math.nan


def scaled(net: nn.Module, factor: float) -> nn.Module:
    """A copy of a network in eval mode with λ of every sparse layer multiplied."""
    work = copy.deepcopy(net).eval()
    for layer in sparse_layers(work).values():
        layer.rho.data.fill_(inverse_softplus(layer.threshold.item() * factor))
    return work


def sweep(
    net: nn.Module,
    test: Images,
    corruption: str,
    severity: int,
    *,
    key: str = "",
    plan: Plan | None = None,
    factors: Sequence[float] = FACTORS,
    cache: Path | None = None,
) -> Sweep:
    """Score a network at several λ under one corruption.

    Args:
        net: With sparse layers, in eval mode; it is not changed.
        test: Labelled test images.
        corruption: A name, or `"clean"`.
        severity: 1 to 5; 0 for clean.
        key: Of the run, for the record.
        plan: Draws images as adaptation's own measurement does; `samples[0]` of its pool refresh the statistics.
        factors: Multiples of the trained λ, above 0 and rising.
        cache: Folder for damaged images.

    Raises:
        ValueError: The network has no sparse layer, or the multiples do not rise from above 0.
    """
    plan = plan or Plan()
    if not sparse_layers(net):
        raise ValueError("This network has no sparse layer, so there is no λ to sweep.")
    if not factors or min(factors) <= 0 or min(np.diff(factors), default=1) <= 0:
        raise ValueError("The multiples of λ must be above 0 and rise.")
    drawn = draw(test, corruption, severity, plan, cache)
    x, seen = prepared(drawn.scored), prepared(drawn.pool[: plan.samples[0]])
    stored, refreshed = [], []
    for factor in factors:
        work = scaled(net, factor)
        stored.append(score(work, x, drawn.labels, plan))
        with torch.no_grad():
            refresh_norms(work, seen)
        refreshed.append(score(work, x, drawn.labels, plan))
    return Sweep(
        key,
        corruption,
        severity,
        tuple(map(float, factors)),
        tuple(stored),
        tuple(refreshed),
        len(x),
        len(seen),
    )


def moved(record: SparseRecord, corruption: str, severity: int, samples: int = 100) -> float:
    """Where adaptation sent λ, as a multiple of the trained one: geometric mean over the layers, NaN where it was not measured."""
    for c in record.cells:
        if (c.corruption, c.severity, c.adapt, c.samples) == (corruption, severity, "lambda", samples):
            trained = record.history["threshold"][-1]
            return math.exp(
                sum(math.log(a / b) for a, b in zip(c.threshold, trained, strict=True)) / len(trained)
            )
    return math.nan


def save_sweeps(path: Path, found: Sequence[Sweep]) -> None:
    """Write sweeps, atomically, with five digits a number."""
    rows = [
        {k: [float(f"{x:.5g}") for x in v] if isinstance(v, tuple) else v for k, v in asdict(one).items()}
        for one in found
    ]
    text = json.dumps(rows, separators=(",", ":"))
    write(path, lambda part: part.write_text(text))


def load_sweeps(path: Path) -> tuple[Sweep, ...]:
    """Read sweeps; none where the file is absent.

    Raises:
        ValueError: The file holds something else.
    """
    if not path.exists():
        return ()
    try:
        rows: list[dict[str, Any]] = json.loads(path.read_text())
        rows = [{k: tuple(v) if isinstance(v, list) else v for k, v in row.items()} for row in rows]
        return tuple(Sweep(**row) for row in rows)
    except (json.JSONDecodeError, TypeError, AttributeError) as error:
        raise ValueError(f"{path.name} holds no sweep over λ ({error}).") from error


def sweeps(key: str, folder: Path = ASSETS) -> dict[tuple[str, int], Sweep]:
    """Recorded sweeps of a run by corruption and severity; empty where nothing is recorded."""
    found = load_sweeps(folder / "results" / "sparse" / FILE)
    return {(s.corruption, s.severity): s for s in found if s.key == key}


def command(arguments: list[str] | None = None) -> int:
    """Sweep runs of a working folder, one corruption at a time; what is there is kept."""
    root = argparse.ArgumentParser("python -m core.lab.sparse_sweep", description=__doc__.split("\n")[0])
    root.add_argument("keys", nargs="+", metavar="KEY", help="runs, such as tacsc-k2-w16-s0")
    root.add_argument("--data", type=Path, required=True, help="folder that holds cifar10.tar.xz")
    root.add_argument("--work", type=Path, default=Path(".work/sparse"), help="folder of the runs")
    root.add_argument("--scored", type=int, default=1000, help="test images that are scored")
    given = root.parse_args(arguments)
    from core.lab.sparse_queue import read_cifar

    try:
        _, test = read_cifar(given.data, given.work / "cache")
        plan = Plan(CORRUPTIONS, scored=given.scored, scored_noise=given.scored)
        path = given.work / FILE
        for key in given.keys:
            net = load_sparse_network(given.work / f"{key}.safetensors").to(memory_format=torch.channels_last)
            for name, severity in PLACES:
                there = load_sweeps(path)
                if any((s.key, s.corruption, s.severity) == (key, name, severity) for s in there):
                    continue
                one = sweep(net, test, name, severity, key=key, plan=plan, cache=given.work / "damaged")
                save_sweeps(path, [*load_sweeps(path), one])
                factor, top = one.best()
                print(
                    f"{key} {name} {severity}: best at {factor:.2f} ({top:.3f}; at 1: {one.at(1.0):.3f})",
                    flush=True,
                )
    except (ValueError, FileNotFoundError, DataAbsent) as error:
        print(error, file=sys.stderr)
        return 2
    return 0


if __name__ == "__main__":
    raise SystemExit(command())
