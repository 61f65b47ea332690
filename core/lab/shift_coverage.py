"""What damage does to a conformal promise, on phantoms: coverage of CRC and COAT with thresholds that were calibrated on clean pictures.

The damaged pictures are recorded (`shift_damage.py`). Nothing is calibrated anew, so no coverage here is promised by anyone: exchangeability is
broken on purpose. No network runs here.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property, lru_cache
from pathlib import Path

import numpy as np
import torch

from core.coat.thresholds import between_knots
from core.conformal import CoverageCurves
from core.lab.shift_damage import COMMAND, DAMAGES, SEVERITIES, STUDY, files_of, place_of
from core.lab.shift_monitor import MOST, Monitor, there_is
from core.lab.study import Split
from core.nets.weights import ASSETS

METHODS = ("CRC", "COAT")
ROUNDS = 40


@dataclass(frozen=True, eq=False)
class Damaged:
    """The recorded pictures of one corruption.

    Attributes:
        corruption: Its name.
        severities: Severities that are recorded, 0 first.
        curves: One table of N pictures for each severity.
        knots: COAT's thresholds `(N, A)` for each severity.
        heard: What the monitor heard, `(N, 2)` for each severity.
    """

    corruption: str
    severities: tuple[int, ...]
    curves: tuple[CoverageCurves, ...]
    knots: tuple[torch.Tensor, ...]
    heard: tuple[torch.Tensor, ...]


@dataclass(frozen=True, eq=False)
class UnderShift:
    """One corruption seen through one draw of the phantom study, severity by severity.

    Attributes:
        corruption: Its name.
        alpha: Share that may be missed, on average, by the promise.
        severities: `(S,)`.
        coverage: Method -> `(S, N)` coverage of each picture.
        area: Method -> `(S, N)` set area of each picture.
        single: `(S, N)` shift score of each picture alone.
        together: `(S, R)` scores of batches of `MOST` pictures.
        limit: Limits for a single picture and for such a batch.
    """

    corruption: str
    alpha: float
    severities: tuple[int, ...]
    coverage: dict[str, np.ndarray]
    area: dict[str, np.ndarray]
    single: np.ndarray
    together: np.ndarray
    limit: tuple[float, float]

    @cached_property
    def mean_coverage(self) -> dict[str, np.ndarray]:
        """Method -> `(S,)`."""
        return {m: np.nanmean(v, 1) for m, v in self.coverage.items()}

    @cached_property
    def mean_area(self) -> dict[str, np.ndarray]:
        """Method -> `(S,)`."""
        return {m: v.mean(1) for m, v in self.area.items()}

    @cached_property
    def by_fall(self) -> list[int]:
        """Pictures, the one first on which CRC loses most from the first to the last severity; those without a lesion last."""
        fall = self.coverage["CRC"][0] - self.coverage["CRC"][-1]
        return [int(i) for i in np.argsort(-np.nan_to_num(fall, nan=-2.0), kind="stable")]

    @property
    def warned(self) -> tuple[np.ndarray, np.ndarray]:
        """Share of single pictures and of batches above their limits, `(S,)` each."""
        return (self.single > self.limit[0]).mean(1), (self.together > self.limit[1]).mean(1)


def under_shift(split: Split, found: Damaged, monitor: Monitor) -> UnderShift:
    """Read recorded pictures through a draw of the study.

    Args:
        split: The phantom study, calibrated on clean pictures.
        found: From `damaged`.
        monitor: The phantoms' monitor.

    Raises:
        ValueError: The split is of another study.
    """
    if split.study.name != STUDY:
        raise ValueError(f"The recorded pictures belong to the study {STUDY!r}, not to {split.study.name!r}.")
    coverage: dict[str, list[np.ndarray]] = {m: [] for m in METHODS}
    area: dict[str, list[np.ndarray]] = {m: [] for m in METHODS}
    for curves, knots in zip(found.curves, found.knots, strict=True):
        for m in METHODS:
            tau_hat = torch.zeros(len(curves)) if m == "CRC" else between_knots(knots, split.alpha)
            coverage[m].append(curves.coverage(tau_hat, split.shift(m))[:, 0].numpy())
            area[m].append(curves.area(tau_hat, split.shift(m))[:, 0].numpy())
    single = np.array([[monitor.judged(h[None]) for h in heard] for heard in found.heard])
    rng = np.random.default_rng(0)
    n = len(found.heard[0])
    deals = [rng.permutation(n)[:MOST] for _ in range(ROUNDS)]
    together = np.array([[monitor.judged(heard[pick]) for pick in deals] for heard in found.heard])
    return UnderShift(
        found.corruption,
        split.alpha,
        found.severities,
        {m: np.stack(v) for m, v in coverage.items()},
        {m: np.stack(v) for m, v in area.items()},
        single,
        together,
        (monitor.limit(1), monitor.limit(MOST)),
    )


def recorded(folder: Path = ASSETS) -> bool:
    """Whether the demonstration is there, its monitor included."""
    return all(f.exists() for f in files_of(folder)) and there_is(STUDY, folder)


def damages(folder: Path = ASSETS) -> tuple[str, ...]:
    """Corruptions that are recorded, in the order of `DAMAGES`.

    Raises:
        FileNotFoundError: Nothing is recorded; says how it is made.
    """
    there = {place.rsplit("-", 1)[0] for place in _all(folder)[1]}
    return tuple(d for d in DAMAGES if d in there)


def damaged(corruption: str, folder: Path = ASSETS) -> Damaged:
    """What is recorded of one corruption, clean pictures first.

    Raises:
        FileNotFoundError: Nothing is recorded; says how it is made.
        KeyError: The corruption is not recorded.
    """
    curves, places, knots, heard = _all(folder)
    at = {s: places[p] for s in SEVERITIES if (p := place_of(corruption, s)) in places}
    if len(at) < 2:
        raise KeyError(f"The corruption {corruption!r} is not recorded.")
    return Damaged(
        corruption,
        tuple(at),
        tuple(curves.select(list(range(i, j))) for i, j in at.values()),
        tuple(knots[i:j] for i, j in at.values()),
        tuple(heard[i:j] for i, j in at.values()),
    )


_All = tuple[CoverageCurves, dict[str, tuple[int, int]], torch.Tensor, torch.Tensor]


def _all(folder: Path) -> _All:
    files = files_of(folder)
    for path in files:
        if not path.exists():
            raise FileNotFoundError(f"The table {path.name} is missing. Make it with: {COMMAND}")
    return _read(*files, files[0].stat().st_mtime_ns, files[1].stat().st_mtime_ns)


@lru_cache(maxsize=2)
def _read(curves_file: Path, thresholds_file: Path, _: int, __: int) -> _All:
    curves = CoverageCurves.load(curves_file)
    with np.load(thresholds_file, allow_pickle=False) as z:
        knots = torch.from_numpy(z["COAT"].astype(np.float32))
        heard = torch.from_numpy(z["heard"].astype(np.float64))
        places = {str(p): (int(i), int(j)) for p, i, j in zip(z["places"], z["start"][:-1], z["start"][1:], strict=True)}  # fmt: skip
    return curves, places, knots, heard
