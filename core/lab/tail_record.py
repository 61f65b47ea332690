"""What is kept of a long-tail run, and how runs become the small files that ship.

A finished run is `<set>/<method>-s<seed>.json` (settings, figures) and `.npz` (every epoch's losses, confusion matrices and singular
values). Matrices are counts, rows predicted, columns true. `gather` reads a folder of runs; `pack` writes the few matrices that a page
plays. Nothing here trains or draws.
"""

from __future__ import annotations

import json
import os
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from core.car.metrics import Figures, figures_of, survival
from core.car.spectrum import Spectrum
from core.car.weights import class_weights

FIGURES = (
    "overall",
    "mean_recall",
    "head",
    "medium",
    "tail",
    "worst",
    "worst_classes",
    "worst_ten",
    "macro_f1",
)
"""Figures of a matrix that are written down for test, validation and training images."""

TOP = 50
"""Singular values that are kept of each epoch."""


def singular_values(matrix: np.ndarray, top: int = TOP) -> np.ndarray:
    """Largest singular values of a matrix of counts as error rates without weights, `(min(K, top),)` float32."""
    return Spectrum.of(matrix).values[:top].astype(np.float32)


def final_figures(test: np.ndarray, val: np.ndarray, train: np.ndarray, counts: np.ndarray) -> dict[str, Any]:
    """Everything that a table may ask of a finished run.

    Args:
        test: `(K, K)` counts at the last epoch.
        val: The same of the validation part.
        train: The same of the training images, in eval mode.
        counts: `(K,)` training images.

    Returns:
        Plain values: the `FIGURES` of each part, WR, the spectrum's largest value (without weights, and with those of CAR's two
        frequencies), the bound and the truth.
    """
    out: dict[str, Any] = {}
    for name, matrix in (("test", test), ("val", val), ("train", train)):
        f: Figures = figures_of(matrix, counts)
        out[name] = {k: getattr(f, k) for k in FIGURES} | {
            "worst_class": f.worst_class,
            "left_out": f.left_out,
        }
        out[name]["recall"] = [round(float(r), 4) for r in f.recall]
    s = survival(test, train)
    out["wr"], out["ratio_of_minima"] = s.wr, s.ratio_of_minima
    plain = Spectrum.of(test)
    out["sigma1"], out["pair_share"] = plain.sigma, plain.share
    for norm in ("sum", "max"):
        weighted = Spectrum.of(test, class_weights(counts, norm=norm))
        out[f"sigma1_{norm}"], out[f"bound_{norm}"] = weighted.sigma, weighted.bound().worst_bound
    bound = plain.bound()
    out["bound"], out["worst_error"] = bound.worst_bound, bound.worst_error
    return out


@dataclass(frozen=True)
class RunRecord:
    """A finished run.

    Attributes:
        set: Its set.
        method: Its method's name.
        seed: Its seed.
        facts: All that the JSON file holds, `figures` among it.
        arrays: Name -> array over epochs: `train_loss`, `val_loss`, `test_loss`, `term`, `soft_sigma` `(E,)`; `test`, `val` `(E, K, K)` counts,
            where a run that ships has `val` of its last epoch alone; `train` `(F, K, K)` at `train_epochs` `(F,)`; `singular` `(E, S)`.
    """

    set: str
    method: str
    seed: int
    facts: dict[str, Any]
    arrays: dict[str, np.ndarray] = field(repr=False)

    @property
    def figures(self) -> dict[str, Any]:
        """`facts["figures"]`, see `final_figures`."""
        return self.facts["figures"]


def run_name(method: str, seed: int) -> str:
    """Stem of a run's files."""
    return f"{method}-s{seed}"


def plain(value: Any) -> Any:
    """A value as JSON has it: NaN and infinity become null."""
    if isinstance(value, Mapping):
        return {str(k): plain(v) for k, v in value.items()}
    if isinstance(value, list | tuple):
        return [plain(v) for v in value]
    if isinstance(value, float | np.floating):
        return float(value) if np.isfinite(value) else None
    return int(value) if isinstance(value, np.integer) else value


def _replace_with(path: Path, write: Any) -> None:
    part = path.with_name(f"{path.stem}.{os.getpid()}.part{path.suffix}")
    write(part)
    os.replace(part, path)


def _smallest(counts: np.ndarray) -> np.ndarray:
    """The smallest type that holds the counts, epochs side by side: an entry changes little from one to the next, which packs well."""
    return np.asfortranarray(counts.astype(np.min_scalar_type(counts.max(initial=0))))


def write_run(folder: Path, facts: Mapping[str, Any], arrays: Mapping[str, np.ndarray]) -> Path:
    """Write a run; the JSON file comes last, so that it exists only when all of the run does.

    Args:
        folder: Folder of all runs.
        facts: JSON-able; `set`, `method` and `seed` name the files.
        arrays: See `RunRecord`. Matrices are stored in the smallest unsigned type that holds their counts.

    Returns:
        The JSON file.
    """
    home = folder / str(facts["set"])
    home.mkdir(parents=True, exist_ok=True)
    stem = run_name(str(facts["method"]), int(facts["seed"]))
    small: dict[str, Any] = {
        k: _smallest(v) if v.dtype.kind in "iu" and v.ndim == 3 else v for k, v in arrays.items()
    }
    _replace_with(home / f"{stem}.npz", lambda part: np.savez_compressed(part, **small))
    text = json.dumps(plain(facts), allow_nan=False) + "\n"
    path = home / f"{stem}.json"
    _replace_with(path, lambda part: part.write_text(text))
    return path


def ship_run(run: RunRecord, folder: Path) -> Path:
    """Write what ships of a run: all but the validation part's matrices before the last epoch, of which nothing is read again.

    Args:
        run: A finished run.
        folder: Folder of all runs that ship.

    Returns:
        The JSON file.
    """
    return write_run(folder, run.facts, {**run.arrays, "val": run.arrays["val"][-1:]})


def read_run(path: str | Path) -> RunRecord:
    """Read a finished run by its JSON file.

    Raises:
        FileNotFoundError: One of the two files is missing.
        ValueError: The JSON file is none of ours.
    """
    path = Path(path)
    try:
        facts = json.loads(path.read_text())
        name = facts["set"], facts["method"], int(facts["seed"])
    except (json.JSONDecodeError, KeyError, TypeError) as error:
        raise ValueError(f"{path.name} is no record of a run ({error}).") from error
    with np.load(path.with_suffix(".npz"), allow_pickle=False) as kept:
        arrays = {k: kept[k] for k in kept.files}
    return RunRecord(*name, facts, arrays)


def read_runs(folder: str | Path) -> list[RunRecord]:
    """Every finished run in a folder, sorted by set, method and seed."""
    return sorted(
        (read_run(p) for p in Path(folder).glob("*/*-s*.json")), key=lambda r: (r.set, r.method, r.seed)
    )


def gather(runs: Sequence[RunRecord]) -> list[dict[str, Any]]:
    """Mean and deviation over the seeds of each set and method.

    Returns:
        One row a set and method: `data`, `method` (its label), `name`, `seeds`, each of `FIGURES` on the test images, `wr`, `sigma1`,
        `bound`, `val_overall`, `val_mean_recall`, `val_worst_classes`, and `_sd` of each (None for one seed).
    """
    groups: dict[tuple[str, str], list[RunRecord]] = defaultdict(list)
    for run in runs:
        groups[run.set, run.method].append(run)
    rows = []
    for (data, name), mine in groups.items():
        row: dict[str, Any] = {
            "data": data,
            "method": mine[0].facts.get("label", name),
            "name": name,
            "seeds": sorted(r.seed for r in mine),
        }
        for key in (
            *FIGURES,
            "wr",
            "sigma1",
            "bound",
            *(f"val_{k}" for k in ("overall", "mean_recall", "worst_classes")),
        ):
            values = []
            for run in mine:
                f = run.figures
                values.append(
                    f[key] if key in f else (f["val"][key[4:]] if key.startswith("val_") else f["test"][key])
                )
            there = np.array([np.nan if v is None else v for v in values], float)
            row[key] = float(there.mean())
            row[f"{key}_sd"] = float(there.std(ddof=1)) if len(there) > 1 else None
        rows.append(row)
    return rows


def epochs_to_keep(epochs: int, frames: int) -> np.ndarray:
    """Up to `frames` epochs, first and last among them, evenly spread, `(F,)` int64."""
    return np.unique(np.round(np.linspace(0, epochs - 1, min(frames, epochs))).astype(np.int64))


def pack(runs: Sequence[RunRecord], path: Path, frames: int = 14) -> Path:
    """Write what a page plays of some runs into one NPZ file.

    Args:
        runs: Runs of one set.
        path: Target.
        frames: Epochs whose test matrices are kept.

    Returns:
        The file: for each run arrays `<method>-s<seed>/<name>`, where `epochs` names the kept epochs, `test` and `train` hold their matrices
        (`train` those recorded), and losses and singular values are those of all epochs.
    """
    out: dict[str, Any] = {}
    for run in runs:
        stem = run_name(run.method, run.seed)
        keep = epochs_to_keep(len(run.arrays["test"]), frames)
        out[f"{stem}/epochs"] = keep
        out[f"{stem}/test"] = _smallest(run.arrays["test"][keep])
        for key in (
            "train",
            "train_epochs",
            "train_loss",
            "val_loss",
            "test_loss",
            "term",
            "soft_sigma",
            "singular",
        ):
            out[f"{stem}/{key}"] = _smallest(run.arrays[key]) if key == "train" else run.arrays[key]
    path.parent.mkdir(parents=True, exist_ok=True)
    _replace_with(path, lambda part: np.savez_compressed(part, **out))
    return path
