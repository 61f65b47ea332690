"""The recorded long-tail runs that ship: tables and matrices, as the page and the benchmark read them.

`assets/results/car.json` holds one row a run, `assets/tail/{set}.npz` the confusion matrices of some epochs of the runs of seed 0. `write_shelf`
makes both from a folder of finished runs and ships the runs with them (`assets/tail/runs`). No image ships. Nothing is trained or drawn here.
"""

from __future__ import annotations

import json
import math
import os
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np

from core.car.metrics import FEW_CLASSES, groups_of
from core.lab.tail_cards import write_cards
from core.lab.tail_methods import METHODS
from core.lab.tail_record import RunRecord, gather, pack, read_runs, run_name, ship_run
from core.nets.weights import ASSETS

SETS = ("pbc", "ham10000", "cifar10", "tiny")
"""Sets of the comparison, in the order of the table."""

WEIGHTS_OF = ("pbc", "ham10000")
"""Sets whose networks ship, for uploads."""

SHIPPED = ("ce", "car-paper", "car-count")
"""Methods whose networks of seed 0 ship."""

OTHER = "vit"
"""Folder inside the working folder that holds the runs of another network, laid out like the working folder itself: it is recorded apart, so
that no row of a table mixes two networks."""

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
    """Write what ships from a folder of finished runs: the table, the matrices that the page plays, weights, cards, and the runs themselves, from
    which a working folder can go on.

    Args:
        work: Folder of `core.lab.tail_train`'s runs.
        out: Where results go, laid out like `assets/`.
        frames: Epochs whose test matrices are kept.

    Returns:
        Files written.

    Raises:
        FileNotFoundError: No run is finished.
        ValueError: Runs of a set were trained in different ways.
    """
    runs, others = read_runs(work), read_runs(work / OTHER)
    if not runs:
        raise FileNotFoundError(f"No finished run in {work.name}. Train first: {COMMAND}")
    for some in (runs, others):
        _trained_alike(some)
    whole = {
        "runs": [_facts(r) for r in runs],
        "other_networks": [_facts(r) for r in others],
        "command": COMMAND,
    }
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
    home = out / "tail" / "runs"
    if home.resolve() != work.resolve():
        for some, folder in ((runs, home), (others, home / OTHER)):
            for run in some:
                ship_run(run, folder)
    return [*written, *write_cards(runs, out, COMMAND)]


def _trained_alike(runs: Sequence[RunRecord]) -> None:
    """Refuse sets whose runs differ in network or schedule.

    Raises:
        ValueError: Names the set, what differs, and one run of each kind.
    """
    first: dict[str, RunRecord] = {}
    for run in runs:
        base = first.setdefault(run.set, run)
        ours, theirs = (dict(r.facts.get("schedule") or {}) for r in (base, run))
        if apart := [k for k in ours | theirs if ours.get(k) != theirs.get(k)]:
            named = " and ".join(
                f"{run_name(r.method, r.seed)} with {', '.join(f'{k} {s.get(k)}' for k in apart)}"
                for r, s in ((base, ours), (run, theirs))
            )
            raise ValueError(
                f"Runs of {run.set} were trained in two ways: {named}. A table compares what was trained alike: give the others a working folder of "
                f"their own, or the folder {OTHER} inside this one for another network."
            )


def _facts(run: RunRecord) -> dict[str, Any]:
    kept = {
        k: run.facts[k]
        for k in ("set", "method", "label", "seed", "classes", "counts", "figures", "schedule")
        if k in run.facts
    }
    return kept | {"tested": run.arrays["test"][-1].sum(0).tolist()}


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
    """Rows set x method as `core.lab.tail_record.gather` gives them: `data`, `method` (label), `name` (key), `seeds`, figures, `_sd` of each,
    `network`, `classes` (K), `worst_classes_train` (training recall of the classes that are worst on test images), and `by_seed` (seed ->
    `overall` and `worst_classes`).

    Raises:
        FileNotFoundError: Nothing is recorded; the message names the command.
    """
    return _rows(_read(folder)["runs"])


def other_networks(folder: Path = ASSETS) -> tuple[dict[str, Any], ...]:
    """The same rows of the runs with another network, `network` (its name) with them; none where there is no such run.

    Raises:
        FileNotFoundError: Nothing is recorded; the message names the command.
    """
    return _rows(_read(folder).get("other_networks", ()))


def _rows(facts: Sequence[dict[str, Any]]) -> tuple[dict[str, Any], ...]:
    """Means and deviations, and what single seeds came to."""
    runs = [RunRecord(r["set"], r["method"], int(r["seed"]), r, {}) for r in facts]
    order = {k: i for i, k in enumerate(METHODS)}
    rows = gather(runs)
    for row in rows:
        mine = [r for r in runs if (r.set, r.method) == (row["data"], row["name"])]
        learned = [_learned(r) for r in mine]
        row["network"] = (mine[0].facts.get("schedule") or {}).get("net", "resnet")
        row["classes"] = len(mine[0].facts["classes"])
        row["worst_classes_train"] = float(np.mean(learned))
        row["worst_classes_train_sd"] = float(np.std(learned, ddof=1)) if len(learned) > 1 else None
        row["by_seed"] = {
            r.seed: {k: _number(r.figures["test"][k]) for k in ("overall", "worst_classes")}
            | {"error": _sampling_error(r)}
            for r in mine
        }
    return tuple(
        sorted(rows, key=lambda r: (SETS.index(r["data"]), order[r["name"].partition("@")[0]], r["name"]))
    )


def _number(value: float | None) -> float:
    return math.nan if value is None else float(value)


def _judged(run: RunRecord) -> np.ndarray:
    """The classes that `worst_classes` averages on the test images."""
    recall = np.array([_number(r) for r in run.figures["test"]["recall"]])
    if len(recall) > FEW_CLASSES:
        tail = groups_of(np.array(run.facts["counts"])).tail
        return tail[~np.isnan(recall[tail])]
    return np.argsort(recall, kind="stable")[: min(2, int((~np.isnan(recall)).sum()))]  # NaN comes last


def _learned(run: RunRecord) -> float:
    """Mean training recall of the classes that `worst_classes` averages on the test images; NaN where it is not known."""
    train = np.array([_number(r) for r in run.figures["train"]["recall"]])
    who = _judged(run)
    return float(train[who].mean()) if len(who) else math.nan


def _sampling_error(run: RunRecord) -> float:
    """Standard error of `worst_classes` from the test images alone, drawn independently; NaN where their number is not recorded."""
    who = _judged(run)
    if "tested" not in run.facts or not len(who):
        return math.nan
    recall, n = np.array(run.figures["test"]["recall"], float)[who], np.array(run.facts["tested"])[who]
    return float(np.sqrt((recall * (1 - recall) / n).sum()) / len(who))


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
            data, method, f["label"], 0, np.array(f["counts"]), tuple(f["classes"]), a["epochs"], a["test"].astype(np.int64),
            a["train_epochs"], a["train"].astype(np.int64), losses, a["singular"], f["figures"],
        )  # fmt: skip
    return found
