"""What a method's gap becomes when its area changes: one common shift from a tight set to the whole image, and the gap at a given area.

The gap alone can be bought with area, so methods are compared along a curve. The shift here is chosen for its area on the very images that are
measured, so nothing on such a curve carries a promise. Mean area rises with the shift, so the shift of an area is found by looking at ever
finer grids, all points of a grid at once. `metrics.shift_for_area` finds the same one by bisection, more slowly.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import torch

from core.conformal.control import subset_flags
from core.conformal.curves import CoverageCurves

GRID = 32
"""Shifts looked at in one go."""


@dataclass(frozen=True)
class Trade:
    """A method's gap against its area, without any promise.

    Attributes:
        area: `(S,)` mean share of the image in the set, rising.
        gap: `(S,)` mean of |coverage_i - (1 - alpha)|.
        gap_at: Gap at the wanted area, NaN when none was wanted.
    """

    area: np.ndarray
    gap: np.ndarray
    gap_at: float


def trade_curve(
    curves: CoverageCurves,
    tau_hat: torch.Tensor,
    alpha: float,
    subset: np.ndarray | None = None,
    at_area: float | None = None,
    points: int = 40,
) -> Trade:
    """Walk a common extra shift from tight to wide.

    Args:
        curves: N images.
        tau_hat: `(N,)` thresholds in score units.
        alpha: Share of a lesion that may be missed; the gap is measured from 1 - alpha.
        subset: Images that count, `(N,)` bool or indices; those without lesion are left out.
        at_area: Mean area in (0, 1] at which the gap is wanted too.
        points: Points of the curve, about evenly spaced in the logarithm of the area from 1 % to 100 %.

    Raises:
        ValueError: No image that counts has a lesion.
    """
    used = subset_flags(len(curves), subset) & curves.has_lesion
    if not bool(used.any()):
        raise ValueError("None of these images has a lesion: coverage is not defined there.")
    index = used.nonzero()[:, 0]
    tau = torch.as_tensor(tau_hat).float()[index]
    low = float(tau.min()) - float(curves.pixels.value.max()) - 1.0
    high = float(tau.max()) - float(curves.pixels.value.min())
    pixels = _Counts(curves.pixels.dense, tau, index, curves.size)
    lesion = _Counts(curves.lesion.dense, tau, index, curves.lesion_size)

    def area_at(shift: np.ndarray) -> np.ndarray:
        return pixels.share(shift).mean(0).numpy()

    coarse = np.linspace(low, high, GRID, dtype=np.float32)
    reached = area_at(coarse)
    shift = np.interp(np.geomspace(0.01, 1.0, points), reached, coarse).astype(np.float32)
    shift[-1] = coarse[-1]
    if at_area is not None:
        shift = np.append(shift, _shift_of(at_area, coarse, reached, area_at))
    area = area_at(shift)
    gap = (lesion.share(shift) - (1 - alpha)).abs().mean(0).numpy()
    return Trade(area[:points], gap[:points], float("nan") if at_area is None else float(gap[-1]))


class _Counts:
    """Shares of some images' pixels in the set, at many shifts; the distances tau_hat - score are taken once.

    Args:
        dense: Scores by falling value and their cumulative counts (None for ones), as `CoverageCurves` keeps them.
        tau: `(n,)` thresholds of the images that count.
        index: `(n,)` which images these are.
        size: `(N,)` pixels of every image.
    """

    def __init__(
        self,
        dense: tuple[torch.Tensor, torch.Tensor | None],
        tau: torch.Tensor,
        index: torch.Tensor,
        size: torch.Tensor,
    ) -> None:
        rows, total = dense
        self._v = tau[:, None] - rows[index]  # padding is +inf and never reached by a finite shift
        self._total = None if total is None else total[index]
        self._size = size[index, None]

    def share(self, shift: np.ndarray) -> torch.Tensor:
        """Shares `(n, S)` at shifts `(S,)` float32."""
        at = torch.searchsorted(
            self._v, torch.from_numpy(shift).expand(len(self._v), -1).contiguous(), right=True
        )
        return (at if self._total is None else self._total.gather(1, at)) / self._size


def _shift_of(
    area: float, grid: np.ndarray, reached: np.ndarray, area_at: Callable[[np.ndarray], np.ndarray]
) -> np.float32:
    """Smallest shift, to float32's own step, at which the mean area is reached."""
    for _ in range(5):
        k = min(int(np.searchsorted(reached, area - 1e-9)), len(grid) - 1)
        low, high = grid[max(k - 1, 0)], grid[k]
        finer = np.unique(np.linspace(low, high, GRID, dtype=np.float32))
        if len(finer) <= 2:
            return high
        grid, reached = finer, area_at(finer)
    return grid[min(int(np.searchsorted(reached, area - 1e-9)), len(grid) - 1)]
