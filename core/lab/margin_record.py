"""The recorded comparison of losses, as the page and the benchmark read it.

`assets/results/margin.json` holds the tables (a loss on a set, the bridge to coverage, how m was chosen), `assets/margin/{set}.npz` the reliability
tables and distance histograms of every image of the pool for seed 0. No image and no logits ship. `margin_write` makes them; nothing is
trained or measured here.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np

from core.figures.margin_look import LOSS_TITLES
from core.lab.margin_measure import EDGES
from core.lab.margin_sets import MARGIN_SETS
from core.margin.reliability import Reliability
from core.nets.weights import ASSETS

TITLES = LOSS_TITLES
"""What a loss is called on the screen."""

SINGLE_STAGE = ("CE", "LS", "focal", "ECP", "margin")
"""Losses of the comparison that need no second step."""

COMPARED = (*SINGLE_STAGE, "CE + T")
DICE_SLACK = 0.005
"""A margin is only chosen, and a set only won, within so much Dice of the best."""

WHOLE = ("count", "correct", "class_count", "class_correct", "pixels", "floored")
"""Fields of a reliability table that are whole numbers."""

COMMAND = "python -m core losses --data DIR --work DIR"


@dataclass(frozen=True, eq=False)
class LossRecord:
    """One loss on one set, seed 0: what its network says of the pool's images.

    Attributes:
        data: The set.
        loss: Key of the loss, one of `TITLES`.
        margin: m of the margin loss, None for the others.
        names: N images of the pool.
        reliability: `"foreground"` and `"all"` -> one table an image.
        distances: `(N, B)` pixels by logit distance, over all classes but the predicted one.
        distances_right: The same, pixels that are predicted right.
        edges: `(B + 1,)` in logits; the last bin is open.
        dice: `(N,)` mean over foreground classes; NaN where neither truth nor prediction has one.
        temperature: What the logits were divided by.
    """

    data: str
    loss: str
    margin: float | None
    names: tuple[str, ...]
    reliability: dict[str, tuple[Reliability, ...]]
    distances: np.ndarray
    distances_right: np.ndarray
    edges: np.ndarray
    dice: np.ndarray
    temperature: float

    def pooled(self, scope: str) -> Reliability:
        """All images in one table; every pixel counts the same."""
        return Reliability.merge(self.reliability[scope])


def read_tables(folder: Path) -> dict[str, Any]:
    """The tables as they lie in the file.

    Raises:
        FileNotFoundError: As in `table`.
    """
    path = folder / "results" / "margin.json"
    if not path.exists():
        raise FileNotFoundError(
            f"The recorded comparison of losses is missing ({path.name}). Make it with: {COMMAND}"
        )
    found: dict[str, Any] = json.loads(path.read_text())
    return found


def _cached(folder: Path) -> dict[str, Any]:
    path = folder / "results" / "margin.json"
    return _at(folder, path.stat().st_mtime_ns) if path.exists() else read_tables(folder)


@lru_cache(maxsize=4)
def _at(folder: Path, _: int) -> dict[str, Any]:
    return read_tables(folder)


def _over_seeds(rows: list[dict[str, Any]], by: tuple[str, ...]) -> tuple[dict[str, Any], ...]:
    """Mean and deviation over seeds of every figure, in the order of first appearance."""
    groups: dict[tuple[Any, ...], list[dict[str, Any]]] = {}
    for one in rows:
        groups.setdefault(tuple(one[k] for k in by), []).append(one)
    out = []
    for key, some in groups.items():
        row: dict[str, Any] = dict(zip(by, key, strict=True)) | {"seeds": len(some)}
        for figure in (f for f in some[0] if f not in (*by, "seed")):
            values = np.array([s[figure] for s in some], float)
            row[figure] = float(values.mean())
            row[f"{figure}_sd"] = float(values.std(ddof=1)) if len(values) > 1 else float("nan")
        out.append(row)
    return tuple(out)


def table(folder: Path = ASSETS) -> tuple[dict[str, Any], ...]:
    """Rows set x loss: `data`, `loss`, `margin`, `seeds`, and each figure with its deviation over seeds (`_sd`).

    Raises:
        FileNotFoundError: Nothing is recorded; the message names the command.
    """
    rows = _over_seeds(_cached(folder)["seeds"], ("data", "loss", "margin"))
    order = {k: i for i, k in enumerate(TITLES)}
    return tuple(sorted(rows, key=lambda r: (MARGIN_SETS.index(r["data"]), order[r["loss"]])))


def bridge(folder: Path = ASSETS) -> tuple[dict[str, Any], ...]:
    """Rows set x loss x level x method: `coverage`, `gap`, `area` with `_sd` over seeds, and the network's `ece_fg`, `ece_all`.

    Raises:
        FileNotFoundError: As in `table`.
    """
    eces = {(r["data"], r["loss"]): r for r in table(folder)}
    rows = _over_seeds(_cached(folder)["bridge_seeds"], ("data", "loss", "alpha", "method"))
    return tuple(
        r | {k: eces[r["data"], r["loss"]][k] for k in ("ece_fg", "ece_all", "ece_fg_sd", "ece_all_sd")}
        for r in rows
    )


def choices(folder: Path = ASSETS) -> tuple[dict[str, Any], ...]:
    """How m was chosen: `data`, `margin`, `dice`, `ece_fg`, `ece_all` on the validation part of seed 0, and `chosen`.

    Raises:
        FileNotFoundError: As in `table`.
    """
    return tuple(_cached(folder)["choices"])


def records(data: str, folder: Path = ASSETS) -> dict[str, LossRecord]:
    """Every loss on a set, seed 0, in the order of `TITLES`.

    Raises:
        FileNotFoundError: The set is not recorded; the message names the command.
    """
    path = folder / "margin" / f"{data}.npz"
    if not path.exists():
        raise FileNotFoundError(
            f"The losses' record on the set {data!r} is missing ({path.name}). Make it with: {COMMAND}"
        )
    return _records(data, path, path.stat().st_mtime_ns)


@lru_cache(maxsize=8)
def _records(data: str, path: Path, _: int) -> dict[str, LossRecord]:
    with np.load(path, allow_pickle=False) as z:
        raw = {key: z[key] for key in z.files}
    names = tuple(str(n) for n in raw["names"])
    out = {}
    for loss in (k for k in TITLES if f"{k}/facts" in raw):
        temperature, margin = raw[f"{loss}/facts"]
        tables = {
            scope: tuple(
                Reliability.from_arrays({k[len(start) :]: raw[k][i] for k in raw if k.startswith(start)})
                for i in range(len(names))
            )
            for scope in ("foreground", "all")
            for start in (f"{loss}/{scope}/",)
        }
        out[loss] = LossRecord(
            data, loss, None if np.isnan(margin) else float(margin), names, tables,
            raw[f"{loss}/distances"], raw[f"{loss}/distances_right"], EDGES, raw[f"{loss}/dice"], float(temperature),
        )  # fmt: skip
    return out
