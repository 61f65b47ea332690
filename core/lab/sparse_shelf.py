"""The recorded runs of sparse coding networks that ship: figures, networks and the table, as page and benchmark read them.

`assets/results/sparse/{key}.json` holds one record a run, `assets/weights/sparse-{key}.safetensors` its network. `write_shelf` makes both
from a folder of finished runs. No image ships. Nothing is trained or drawn here.
"""

from __future__ import annotations

import math
from functools import lru_cache
from pathlib import Path
from typing import Any

import torch
from torch import nn

from core.data.corruptions import CORRUPTIONS, NOISES
from core.lab.sparse_cards import write_cards
from core.lab.sparse_medical import load_unet
from core.lab.sparse_queue import run_of
from core.lab.sparse_record import SparseRecord, load_record, load_sparse_network
from core.lab.sparse_sweep import FILE as SWEEP
from core.lab.sparse_train import Run, write
from core.nets.weights import ASSETS
from core.settings.tacsc import ADAPTATIONS

PLAN = (
    ("resnet", 2),
    ("fixed", 2),
    ("tacsc", 2),
    ("tacsc_all", 2),
    ("tacsc", 4),
    ("tacsc", 8),
)
"""Model and K of every run of the comparison, most wanted first; seed 0."""

WIDTH = 16
COMMAND = "python -m core sparse --data DIR --work DIR"

RUNS = "*-w*-s*.json"
"""Names of records; other files lie beside them."""

MEANS = {"noises": NOISES, "all": CORRUPTIONS}
"""Rows of the table that are means over corruptions."""


def planned(width: int = WIDTH) -> list[Run]:
    """Every run of the comparison, most wanted first."""
    return [run_of(model, iterations, 0, width) for model, iterations in PLAN]


def folder_of(folder: Path = ASSETS) -> Path:
    """Where the records lie inside a folder laid out like `assets/`."""
    return folder / "results" / "sparse"


def keys(folder: Path = ASSETS) -> tuple[str, ...]:
    """Keys of the recorded runs, the plan's order first; none when nothing is recorded. Reads no file."""
    there = {p.stem for p in folder_of(folder).glob(RUNS)}
    order = {run.key: k for k, run in enumerate(planned())}
    return tuple(sorted(there, key=lambda key: (order.get(key, len(order)), key)))


def records(folder: Path = ASSETS) -> dict[str, SparseRecord]:
    """Every recorded run by its key, in the order of the plan.

    Raises:
        FileNotFoundError: Nothing is recorded; the message names the command.
    """
    found = {
        key: _record(path := folder_of(folder) / f"{key}.json", path.stat().st_mtime_ns)
        for key in keys(folder)
    }
    if not found:
        raise FileNotFoundError(f"No run of a sparse coding network is recorded. Make them with: {COMMAND}")
    return found


@lru_cache(maxsize=32)
def _record(path: Path, _: int) -> SparseRecord:
    return load_record(path)


def record_of(model: str, iterations: int = 2, seed: int = 0, folder: Path = ASSETS) -> SparseRecord:
    """One recorded run.

    Args:
        model: One of `core.settings.tacsc.MODELS`.
        iterations: K; the ResNet has none.
        seed: Of training.
        folder: Laid out like `assets/`.

    Raises:
        FileNotFoundError: It is not recorded; the message names the command and what is recorded.
    """
    for record in records(folder).values():
        if (record.model, record.seed) == (model, seed) and (
            model == "resnet" or record.settings.iterations == iterations
        ):
            return record
    raise FileNotFoundError(
        f"The run {run_of(model, iterations, seed).key} is not recorded; recorded are {', '.join(keys(folder))}. Make it with: {COMMAND}"
    )


def networks(folder: Path = ASSETS) -> tuple[str, ...]:
    """Keys whose networks are there, classifiers in the order of the plan and then U-Nets (`unet-phantom-tacsc` and so on)."""
    there = {p.stem.removeprefix("sparse-") for p in (folder / "weights").glob("sparse-*.safetensors")}
    order = {run.key: k for k, run in enumerate(planned())}
    return tuple(sorted(there, key=lambda key: (key.startswith("unet"), order.get(key, len(order)), key)))


def network(key: str, folder: Path = ASSETS) -> nn.Module:
    """A network that ships, loaded once a process, frozen and in eval mode. Nobody changes it: work on a copy.

    Args:
        key: A run's key (`tacsc-k2-w16-s0`), or `unet-{set}-{kind}`.
        folder: Laid out like `assets/`.

    Raises:
        FileNotFoundError: It is not there; the message names the command.
        ValueError: The file is damaged.
    """
    if key.startswith("unet"):
        return load_unet(f"sparse-{key}", folder)
    path = folder / "weights" / f"sparse-{key}.safetensors"
    if not path.exists():
        there = ", ".join(networks(folder)) or "none"
        raise FileNotFoundError(
            f"There is no network {key}. Here are: {there}. Others are made with: {COMMAND}"
        )
    return _network(path, path.stat().st_mtime_ns)


@lru_cache(maxsize=16)
def _network(path: Path, _: int) -> nn.Module:
    return load_sparse_network(path).to(memory_format=torch.channels_last)


def table(folder: Path = ASSETS) -> tuple[dict[str, Any], ...]:
    """Rows of `python -m benchmarks tacsc`, every accuracy a mean over the five severities.

    Each row holds `key`, `model`, `seed`, `iterations` (K; 0 for the ResNet), `corruption` (a name, `"clean"`, `"noises"`: mean of
    the four, `"all"`: mean of the nineteen), `adapt` (`none`, `bn`, `lambda`, `both`), `samples` (0 for none) and `accuracy` in
    [0, 1]. A row whose cells are not all measured is left out.

    Raises:
        FileNotFoundError: Nothing is recorded.
    """
    rows = []
    for key, record in records(folder).items():
        k = 0 if record.model == "resnet" else record.settings.iterations
        ways = sorted(
            {(c.adapt, c.samples) for c in record.cells}, key=lambda w: (ADAPTATIONS.index(w[0]), w[1])
        )
        for corruption in ("clean", *MEANS, *CORRUPTIONS):
            for adapt, samples in ways:
                value = accuracy_of(record, corruption, adapt, samples)
                if math.isfinite(value):
                    rows.append(
                        {
                            "key": key, "model": record.model, "seed": record.seed, "iterations": k, "corruption": corruption,
                            "adapt": adapt, "samples": samples, "accuracy": value,
                        }
                    )  # fmt: skip
    return tuple(rows)


def accuracy_of(record: SparseRecord, corruption: str, adapt: str = "none", samples: int = 100) -> float:
    """Accuracy over severities under a corruption, `"clean"`, or a mean of `MEANS`; NaN where a cell was not measured."""
    if corruption == "clean":
        return record.accuracy("clean", 0, adapt, samples)
    names = MEANS.get(corruption, (corruption,))
    return sum(record.mean_accuracy(name, adapt, samples) for name in names) / len(names)


def write_shelf(work: Path, out: Path = ASSETS) -> list[Path]:
    """Write what ships from a folder of finished runs.

    Args:
        work: Folder of `core.lab.sparse_queue`'s runs: `{key}.json` and `{key}.safetensors`. Runs that are trained but not
            measured are left out.
        out: Where results go, laid out like `assets/`.

    Returns:
        Files written: records, networks where they lie in the folder, and the cards. The cards speak of all that is recorded in `out`.

    Raises:
        FileNotFoundError: No run is finished.
    """
    written: list[Path] = []
    for path in sorted(work.glob(RUNS)):
        if not load_record(path).cells:
            continue
        pairs = [(path, folder_of(out) / path.name)]
        weights = path.with_suffix(".safetensors")
        if weights.exists():
            pairs.append((weights, out / "weights" / f"sparse-{weights.name}"))
        for source, target in pairs:
            data = source.read_bytes()
            write(target, lambda part, data=data: part.write_bytes(data))  # type: ignore[misc]
            written.append(target)
    if not written:
        raise FileNotFoundError(f"No finished run in {work.name}. Train first: {COMMAND}")
    if (work / SWEEP).exists():
        text = (work / SWEEP).read_bytes()
        write(folder_of(out) / SWEEP, lambda part: part.write_bytes(text))
        written.append(folder_of(out) / SWEEP)
    shipped = [key for key in networks(out) if not key.startswith("unet")]
    return [*written, *write_cards(records(out), shipped, out, COMMAND)]
