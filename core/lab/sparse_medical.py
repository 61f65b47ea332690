"""The recorded study of sparse coding in segmentation: a U-Net with a TA-CSC first layer and a plain one, on phantoms and polyps, under corruption.

`assets/results/sparse/medical.json` holds Dice, and coverage, gap and set area of every conformal method, before and after adaptation, λ on the
way through training and λ after adaptation; `assets/weights/sparse-unet-{set}-{kind}.safetensors` the networks. Thresholds are calibrated on clean
images with the network as it was trained, so what is read here under corruption is what becomes of a promise that was made before the damage.
`sparse_medical_make` and `sparse_medical_run` train, measure and write; nothing is trained here. Run as a module this is its command line.
"""

from __future__ import annotations

import json
from collections.abc import Iterable
from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np
from torch import nn

from core.data.corruptions import NOISES, SEVERITIES
from core.lab.sparse_unet import read_unet
from core.nets.weights import ASSETS

SETS: tuple[str, ...] = ("phantom", "polyp")
KINDS = ("plain", "tacsc")
"""The first layer: a convolution, or sparse coding with a trained λ."""

CORRUPTED: tuple[str, ...] = (*NOISES, "gaussian_blur", "brightness", "contrast", "jpeg")
"""Corruptions of the study; none of them moves a pixel, so the clean mask still fits."""

COMMAND = "python -m core.lab.sparse_medical --data DIR --work DIR"
FIGURES = ("coverage", "coverage_sd", "gap", "area")
"""Conformal figures of a cell, in the order in which the file holds them."""


def name_of(data: str, kind: str) -> str:
    """Name of a network's file without its ending: `"sparse-unet-polyp-tacsc"`.

    Raises:
        ValueError: The set or the kind is not known.
    """
    if data not in SETS or kind not in KINDS:
        raise ValueError(
            f"There is no U-Net {kind!r} of the set {data!r}; sets: {', '.join(SETS)}, kinds: {', '.join(KINDS)}."
        )
    return f"sparse-unet-{data}-{kind}"


def load_unet(name: str, folder: Path = ASSETS) -> nn.Module:
    """The U-Net that ships under a name, frozen and in eval mode, on the CPU, read once a process.

    It takes images `(N, 3, S, S)` in [-1, 1] (`sparse_unet.to_input`) and gives two logits a pixel; `sparse_unet.scores` gives binary scores.
    It is shared: copy it before hooks are put on it.

    Args:
        name: `"sparse-unet-{set}-{kind}"`, from `name_of`.
        folder: Laid out like `assets/`.

    Raises:
        FileNotFoundError: It does not ship; the message names the command.
        ValueError: The file is damaged.
    """
    path = folder / "weights" / f"{name}.safetensors"
    if not path.exists():
        raise FileNotFoundError(f"The network {path.name} is missing. Make it with: {COMMAND}")
    return _unet_at(path, path.stat().st_mtime_ns)


@lru_cache(maxsize=8)
def _unet_at(path: Path, _: int) -> nn.Module:
    return read_unet(path)[0]


def record_path(folder: Path = ASSETS) -> Path:
    """Where the record lies in a folder laid out like `assets/`."""
    return folder / "results" / "sparse" / "medical.json"


def read_record(folder: Path = ASSETS) -> dict[str, Any]:
    """The record as it lies in the file: `command`, `versions`, `settings`, `networks` and `cells`.

    Raises:
        FileNotFoundError: Nothing is recorded; the message names the command.
        ValueError: The file is no record.
    """
    path = record_path(folder)
    if not path.exists():
        raise FileNotFoundError(
            f"The study of sparse coding in segmentation is missing ({path.name}). Make it with: {COMMAND}"
        )
    return _record_at(path, path.stat().st_mtime_ns)


@lru_cache(maxsize=4)
def _record_at(path: Path, _: int) -> dict[str, Any]:
    try:
        found: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))
        found["networks"], found["cells"]
    except (json.JSONDecodeError, KeyError, TypeError) as error:
        raise ValueError(f"{path.name} is no record of the segmentation study ({error}).") from error
    return found


def networks(folder: Path = ASSETS) -> dict[str, dict[str, Any]]:
    """Facts of each network by name: `set`, `kind`, `schedule`, `history` (`steps`, `threshold` (steps, layers), `loss` by epoch), `val_dice`.

    Sparse ones have `objective` too, what adaptation walks on (see `sparse_medical_measure.landscape`).

    Raises:
        FileNotFoundError: As in `read_record`.
    """
    return {name_of(n["set"], n["kind"]): n for n in read_record(folder)["networks"]}


def rows(folder: Path = ASSETS) -> tuple[dict[str, Any], ...]:
    """Flat rows: one for each network, corruption, severity, adaptation, level and method.

    Keys: `set`, `kind`, `corruption` (`"clean"` too), `severity` (0 for clean), `adapt` (`"none"`, `"bn"`, `"lambda"`, `"both"`), `samples`
    (images that adaptation saw, 0 for none; none of them is scored), `scored`, `dice`, `threshold` (λ; None for the plain network), `error` and
    `sparsity` (of the first layer on the adaptation images at that λ; None for the plain one), `stopped`, `alpha`, `method` (`"CRC"`, `"plug-in"`,
    `"COAT"`, `"oracle"`, `"whole image"`), `coverage`, `coverage_sd` (over re-splits), `gap`, `area`. The two last methods need no calibration.

    Raises:
        FileNotFoundError: As in `read_record`.
    """
    read_record(folder)
    path = record_path(folder)
    return _rows_at(path, path.stat().st_mtime_ns)


@lru_cache(maxsize=4)
def _rows_at(path: Path, time: int) -> tuple[dict[str, Any], ...]:
    out = []
    for cell in _record_at(path, time)["cells"]:
        shared = {k: v for k, v in cell.items() if k != "figures"}
        for alpha, methods in cell["figures"].items():
            for method, values in methods.items():
                figures = dict(zip(FIGURES, values, strict=True))
                out.append(shared | {"alpha": float(alpha), "method": method} | figures)
    return tuple(out)


def curve(
    data: str,
    method: str,
    corruption: str,
    kind: str = "tacsc",
    adapt: str = "none",
    alpha: float = 0.1,
    folder: Path = ASSETS,
) -> dict[str, np.ndarray]:
    """One method from clean to severity 5.

    Args:
        data: The set.
        method: As in `rows`.
        corruption: One of `CORRUPTED`, or `"noises"` for the mean over the four noises.
        kind: The network.
        adapt: What followed the damaged images.
        alpha: Share that may be missed.
        folder: Laid out like `assets/`.

    Returns:
        `severity` `(6,)`, and `(6,)` each: `coverage`, `gap`, `area`, `dice`, `threshold` (λ; NaN for the plain network). NaN where not measured.

    Raises:
        FileNotFoundError: As in `read_record`.
    """
    wanted = NOISES if corruption == "noises" else (corruption,)
    mine = {"set": data, "kind": kind, "adapt": adapt, "alpha": alpha, "method": method}
    chosen = [r for r in rows(folder) if all(r[k] == v for k, v in mine.items())]
    severities = (0, *SEVERITIES)
    at = [
        [r for r in chosen if r["severity"] == s and r["corruption"] in (*wanted, "clean")]
        for s in severities
    ]
    keys = ("coverage", "gap", "area", "dice", "threshold")
    found = {key: np.array([_mean(r[key] for r in some) for some in at]) for key in keys}
    return {"severity": np.array(severities)} | found


def valley(objective: list[float]) -> int | None:
    """Index of the first local minimum of R/(λ + ε) on its way up in λ, None where it only falls: then nothing but guards hold λ."""
    for k in range(1, len(objective) - 1):
        if objective[k] < objective[k - 1] and objective[k] < objective[k + 1]:
            return k
    return None


def _mean(values: Iterable[float | None]) -> float:
    there = [v for v in values if v is not None]
    return float(np.mean(there)) if there else float("nan")


if __name__ == "__main__":
    from core.lab.sparse_medical_run import command

    raise SystemExit(command())
