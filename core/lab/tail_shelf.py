"""The recorded long-tail runs that ship: tables and matrices, as the page and the benchmark read them.

`assets/results/car.json` holds one row a run, `assets/tail/{set}.npz` the confusion matrices of some epochs of the runs of seed 0. `write_shelf`
makes both from a folder of finished runs. No image ships. Nothing is trained or drawn here.
"""

from __future__ import annotations

import json
import os
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np

from core.lab.tail_cards import write_cards
from core.lab.tail_methods import METHODS
from core.lab.tail_record import RunRecord, gather, pack, read_runs, run_name
from core.nets.weights import ASSETS

SETS = ("pbc", "ham10000", "cifar10", "tiny")
"""Sets of the comparison, in the order of the table."""

WEIGHTS_OF = ("pbc", "ham10000")
"""Sets whose networks ship, for uploads."""

SHIPPED = ("ce", "car-paper", "car-count")
"""Methods whose networks of seed 0 ship."""

COMMAND = "python -m core tail --data DIR --work DIR"


@dataclass(frozen=True, eq=False)
class TailRecord:
    """One run of seed 0 on one set, matrices as counts with rows predicted and columns true, classes in the order of the set's folders.

    Attributes:
        data: The set.
        method: Key of the method, as in `core.lab.tail_methods.METHODS` (maybe with changed settings behind it).
        title: What it is called on the screen.
        seed: Its seed.
        counts: `(K,)` training images of each class.
        classes: K names.
        epochs: `(E,)` epochs whose test matrices are kept, from 0.
        test: `(E, K, K)` test images.
        train_epochs: `(F,)` epochs with a training matrix.
        train: `(F, K, K)` training images, in eval mode.
        losses: `train_loss`, `val_loss`, `test_loss`, `term` (CAR's part of the loss) and `soft_sigma`, `(all epochs,)` each.
        singular: `(all epochs, S)` largest singular values of the test matrix as error rates.
        figures: Final figures, as `core.lab.tail_record.final_figures` gives them.
    """

    data: str
    method: str
    title: str
    seed: int
    counts: np.ndarray
    classes: tuple[str, ...]
    epochs: np.ndarray
    test: np.ndarray
    train_epochs: np.ndarray
    train: np.ndarray
    losses: dict[str, np.ndarray]
    singular: np.ndarray
    figures: dict[str, Any]


def write_shelf(work: Path, out: Path = ASSETS, frames: int = 14) -> list[Path]:
    """Write what ships from a folder of finished runs.

    Args:
        work: Folder of `core.lab.tail_train`'s runs.
        out: Where results go, laid out like `assets/`.
        frames: Epochs whose test matrices are kept.

    Returns:
        Files written.

    Raises:
        FileNotFoundError: No run is finished.
    """
    runs = read_runs(work)
    if not runs:
        raise FileNotFoundError(f"No finished run in {work.name}. Train first: {COMMAND}")
    whole = {"runs": [_facts(r) for r in runs], "command": COMMAND}
    path = out / "results" / "car.json"
    path.parent.mkdir(parents=True, exist_ok=True)
    part = path.with_suffix(".part")
    part.write_text(json.dumps(whole, indent=0) + "\n")
    os.replace(part, path)
    written = [path]
    for name in SETS:
        mine = [r for r in runs if r.set == name and r.seed == 0 and "@" not in r.method]
        if mine:
            written.append(pack(mine, out / "tail" / f"{name}.npz", frames))
        for method in SHIPPED if name in WEIGHTS_OF else ():
            weights = work / name / f"{run_name(method, 0)}.safetensors"
            if weights.exists():
                target = out / "weights" / f"tail-{name}-{method}.safetensors"
                target.parent.mkdir(parents=True, exist_ok=True)
                target.write_bytes(weights.read_bytes())
                written.append(target)
    return [*written, *write_cards(runs, out, COMMAND)]


def _facts(run: RunRecord) -> dict[str, Any]:
    return {
        k: run.facts[k]
        for k in ("set", "method", "label", "seed", "classes", "counts", "figures", "schedule")
        if k in run.facts
    }


def _read(folder: Path) -> dict[str, Any]:
    path = folder / "results" / "car.json"
    if not path.exists():
        raise FileNotFoundError(
            f"The recorded long-tail runs are missing ({path.name}). Make them with: {COMMAND}"
        )
    return _at(path, path.stat().st_mtime_ns)


@lru_cache(maxsize=4)
def _at(path: Path, _: int) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(path.read_text())
    return found


def sets(folder: Path = ASSETS) -> tuple[str, ...]:
    """Sets that are recorded, in the order of `SETS`; none when nothing is."""
    try:
        there = {r["set"] for r in _read(folder)["runs"]}
    except FileNotFoundError:
        return ()
    return tuple(s for s in SETS if s in there)


def table(folder: Path = ASSETS) -> tuple[dict[str, Any], ...]:
    """Rows set x method as `core.lab.tail_record.gather` gives them: `data`, `method` (label), `name` (key), `seeds`, figures, `_sd` of each.

    Raises:
        FileNotFoundError: Nothing is recorded; the message names the command.
    """
    runs = [RunRecord(r["set"], r["method"], int(r["seed"]), r, {}) for r in _read(folder)["runs"]]
    order = {k: i for i, k in enumerate(METHODS)}
    rows = gather(runs)
    return tuple(
        sorted(rows, key=lambda r: (SETS.index(r["data"]), order[r["name"].partition("@")[0]], r["name"]))
    )


def records(data: str, folder: Path = ASSETS) -> dict[str, TailRecord]:
    """Runs of seed 0 on a set by method, in the order of `METHODS`.

    Raises:
        FileNotFoundError: The set is not recorded; the message names the command.
    """
    path = folder / "tail" / f"{data}.npz"
    if not path.exists():
        raise FileNotFoundError(f"The set {data!r} is not recorded ({path.name}). Make it with: {COMMAND}")
    return _records(data, folder, path.stat().st_mtime_ns)


@lru_cache(maxsize=8)
def _records(data: str, folder: Path, _: int) -> dict[str, TailRecord]:
    facts = {r["method"]: r for r in _read(folder)["runs"] if r["set"] == data and r["seed"] == 0}
    with np.load(folder / "tail" / f"{data}.npz", allow_pickle=False) as z:
        raw = {k: z[k] for k in z.files}
    found = {}
    for method in (m for m in METHODS if m in facts and f"{run_name(m, 0)}/test" in raw):
        f, a = (
            facts[method],
            {k.split("/", 1)[1]: v for k, v in raw.items() if k.startswith(f"{run_name(method, 0)}/")},
        )
        losses = {k: a[k] for k in ("train_loss", "val_loss", "test_loss", "term", "soft_sigma")}
        found[method] = TailRecord(
            data, method, f["label"], 0, np.array(f["counts"]), tuple(f["classes"]), a["epochs"], a["test"],
            a["train_epochs"], a["train"], losses, a["singular"], f["figures"],
        )  # fmt: skip
    return found
