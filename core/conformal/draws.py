"""Many redrawn calibration halves at once: shifts and test coverages from one sort, so that a page can show a thousand draws.

`control.py` has the one draw and the sort; the rule is the same to the last bit.
"""

from __future__ import annotations

import numpy as np
import torch

from core.conformal.control import TOLERANCE, ShiftTable, crc_target


def calibrate_many(table: ShiftTable, alpha: float, subsets: np.ndarray) -> np.ndarray:
    """Exact shifts of many calibration halves from one sort.

    A coarse pass over runs of the sort finds, for all halves at once, the run in which the target is reached; a fine pass
    walks only that run.

    Args:
        table: From `shift_table`.
        alpha: Share that may be missed.
        subsets: `(S, N)` bool, images that calibrate in each draw.

    Returns:
        `(S,)` float32; +inf where a draw has too few images.
    """
    return calibrate_and_test_many(table, alpha, subsets)[0]


def _product(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    """A matrix product by torch: NumPy's own threads and torch's would wait for one another (measured: up to 100 ms)."""
    return (torch.from_numpy(a) @ torch.from_numpy(b)).numpy()


def calibrate_and_test_many(
    table: ShiftTable, alpha: float, subsets: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """Shifts of many calibration halves and the mean coverage of the images that are left, from the same walk.

    At any shift the coverages of the tested images sum to those of all images less those of the calibrating ones, and both
    are cumulative weights of the sort; so coverage costs next to nothing once the shift is found.

    Args:
        table: From `shift_table`.
        alpha: Share that may be missed.
        subsets: `(S, N)` bool, images that calibrate in each draw; the others are tested.

    Returns:
        `(S,)` float32 shifts as in `calibrate_many`, and `(S,)` float64 mean test coverage; NaN where none with a lesion is left.
    """
    has = table.has_lesion.numpy()
    used = (subsets & has[None]).astype(np.float64)
    n = used.sum(1)
    left = has.sum() - n
    target = np.array([crc_target(int(k), alpha) for k in n]) - TOLERANCE
    border, mass = table._segments
    reached = _product(used, mass.T)
    v, image, weight = table.v.numpy(), table.image.numpy(), table.weight.numpy()
    everybody = table.cumulative.numpy()
    shifts, covered = np.full(len(subsets), np.inf, np.float32), left.astype(np.float64)
    feasible = np.flatnonzero((target <= n) & (n > 0))
    run = np.array([np.searchsorted(reached[s], target[s] - 1e-12) for s in feasible], np.int64)
    run = np.clip(run, 1, len(border) - 1)
    for g in np.unique(run):  # all draws whose target lies in one run walk it together
        draws, entries = feasible[run == g], slice(border[g - 1], border[g])
        last = np.flatnonzero(np.append(np.diff(v[entries]) != 0, True))  # the last entry of each tie
        if len(last) * len(has) < 8 * len(image[entries]):  # few ties: add them up image by image first
            tie = np.repeat(np.arange(len(last)), np.diff(last, prepend=-1))
            flat = np.bincount(tie * len(has) + image[entries], weight[entries], len(last) * len(has))
            walk = _product(used[draws], flat.reshape(len(last), len(has)).T)
            walk = walk.cumsum(1) + reached[draws, g - 1, None]
        else:
            walk = (used[np.ix_(draws, image[entries])] * weight[entries]).cumsum(1) + reached[
                draws, g - 1, None
            ]
            walk = walk[:, last]
        at = np.minimum((walk < target[draws, None] - 1e-12).sum(1), len(last) - 1)
        shifts[draws] = v[entries][last[at]]
        covered[draws] = everybody[border[g - 1] + last[at]] - walk[np.arange(len(draws)), at]
    return shifts, np.where(left > 0, np.clip(covered / np.maximum(left, 1), 0, 1), np.nan)
