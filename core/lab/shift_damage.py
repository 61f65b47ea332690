"""Damaged phantoms: further pictures, which no study uses, are drawn, damaged and scored by the phantom study's own networks, and recorded.

Score tables, COAT's thresholds and what the monitor hears ship, so that every α and every draw of the calibration images is answered without a
network (`shift_coverage.py` does). Only `make_damaged` and `frames` run networks. No real picture is touched here.
"""

from __future__ import annotations

import io
import os
from collections.abc import Callable, Mapping
from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np
import torch

from core.conformal import CoverageCurves
from core.data.corruptions import corrupt
from core.images.grid import to_grid
from core.lab.pool import draw_named
from core.lab.promise import Scored, score
from core.lab.shift_monitor import load_monitor
from core.lab.sparse_medical import CORRUPTED
from core.nets.weights import ASSETS

STUDY = "phantom"
DAMAGES = CORRUPTED
"""Corruptions on the coverage page; none of them moves a pixel, so the clean mask still fits."""

SEVERITIES = (0, 1, 2, 3, 4, 5)
FIRST_SEED, COUNT = 60_000, 80
"""First seed of the pictures, and how many; no shipped set uses these seeds."""

EDGES = torch.arange(-300, 301) / 20
"""Bin edges of the recorded score tables in logits, rounded to the safe side as in the study's own."""

COMMAND = "python -m core.lab.shift_study phantoms --work DIR"
Report = Callable[[int, int, Mapping[str, Any]], None]


def damaged_image(rgb: np.ndarray, name: str, severity: int, seed: int) -> np.ndarray:
    """An image on its grid under a corruption, `(h, w, 3)` uint8; severity 0 damages nothing.

    Args:
        rgb: `(H, W, 3)` uint8.
        name: The corruption.
        severity: 0 to 5.
        seed: Of this image: the same at every severity and for every corruption.
    """
    grid = to_grid(rgb)
    return corrupt(grid, name, severity, np.random.default_rng([seed, severity])) if severity else grid


@lru_cache(maxsize=128)
def drawn(number: int) -> tuple[np.ndarray, np.ndarray]:
    """Picture `(H, W, 3)` uint8 and mask `(H, W)` of the demonstration's picture of a number; both are shared: do not write into them."""
    return draw_named(name_of(number))


def name_of(number: int) -> str:
    """Name of the demonstration's picture of a number from 0."""
    return f"{STUDY}-{FIRST_SEED + number}"


def place_of(corruption: str, severity: int) -> str:
    """How a cell is called in the files; nothing is damaged at severity 0, whatever the corruption."""
    return f"{corruption}-{severity}" if severity else "clean-0"


def files_of(folder: Path) -> tuple[Path, Path]:
    """Score tables, and thresholds with what the monitor hears, in a folder laid out like `assets/`."""
    return folder / "scores" / f"{STUDY}-damaged.npz", folder / "scores" / f"{STUDY}-damaged-thresholds.npz"


def _cell(corruption: str, severity: int, count: int, work: Path | None) -> tuple[CoverageCurves, torch.Tensor]:  # fmt: skip
    """Score table and COAT's thresholds of one cell, from the working folder where they are there."""
    kept = None if work is None else work / "shift" / f"{place_of(corruption, severity)}-{count}.npz"
    knots_file = None if kept is None else kept.with_suffix(".npy")
    if kept is not None and knots_file is not None and kept.exists() and knots_file.exists():
        return CoverageCurves.load(kept), torch.from_numpy(np.load(knots_file, allow_pickle=False))
    maps, masks, knots = [], [], []
    for k in range(count):
        rgb, mask = drawn(k)
        found = score(damaged_image(rgb, corruption, severity, FIRST_SEED + k), STUDY)
        maps.append(torch.from_numpy(found.logits))
        masks.append(torch.from_numpy(mask))
        knots.append(found.knots["COAT"])
    names = [f"{place_of(corruption, severity)}-{k}" for k in range(count)]
    curves = CoverageCurves.from_maps(maps, masks, names).to_bins(EDGES)
    if kept is not None and knots_file is not None:
        kept.parent.mkdir(parents=True, exist_ok=True)
        np.save(knots_file, torch.stack(knots).numpy(), allow_pickle=False)
        curves.save(kept)
    return curves, torch.stack(knots)


def make_damaged(
    work: Path | None,
    out: Path = ASSETS,
    corruptions: tuple[str, ...] = DAMAGES,
    severities: tuple[int, ...] = SEVERITIES,
    count: int = COUNT,
    on_step: Report | None = None,
) -> list[Path]:
    """Draw, damage, score and listen, and write what ships.

    Args:
        work: Folder that keeps finished cells, and finds them there; None keeps nothing.
        out: Folder laid out like `assets/`, the phantoms' monitor in it.
        corruptions: Which ones.
        severities: Of each; 0 is clean and is made once.
        count: Pictures.
        on_step: `(done, total, facts)` after each cell. It may raise to stop.

    Returns:
        The files written.

    Raises:
        FileNotFoundError: The monitor is not there.
    """
    monitor = load_monitor(STUDY, out)
    cells = [("clean", 0), *((c, s) for c in corruptions for s in severities if s)]
    curves, knots, heard = [], [], []
    for done, (name, severity) in enumerate(cells, 1):
        one, own = _cell(name, severity, count, work)
        curves.append(one)
        knots.append(own)
        pictures = (damaged_image(drawn(k)[0], name, severity, FIRST_SEED + k) for k in range(count))
        heard.append(torch.stack([monitor.hear(rgb) for rgb in pictures]))
        if on_step is not None:
            on_step(done, len(cells), {"corruption": name, "severity": severity})
    first, second = files_of(out)
    CoverageCurves.merge(curves).save(first)
    memory = io.BytesIO()
    np.savez_compressed(
        memory,
        COAT=torch.cat(knots).numpy().astype(np.float32),
        heard=torch.cat(heard).numpy().astype(np.float32),
        places=np.array([place_of(c, s) for c, s in cells]),
        start=np.arange(len(cells) + 1) * count,
    )
    part = second.with_suffix(".part")
    part.write_bytes(memory.getvalue())
    os.replace(part, second)
    return [first, second]


@lru_cache(maxsize=24)
def frames(
    number: int, corruption: str, severities: tuple[int, ...] = SEVERITIES
) -> tuple[dict[int, Scored], np.ndarray]:
    """One picture by severity after the networks have seen it, and its mask `(H, W)`; remembered, so that a slider only reads.

    Args:
        number: From 0, of the recorded pictures.
        corruption: One of `DAMAGES`.
        severities: Which ones.
    """
    rgb, mask = drawn(number)
    seed = FIRST_SEED + number
    seen = {
        s: score(damaged_image(rgb, corruption, s, seed), STUDY, f"{name_of(number)}, {corruption} {s}")
        for s in severities
    }
    return seen, mask
