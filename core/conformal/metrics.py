"""What a calibrated set is worth: coverage, gap, shortfall, worst images, area, and the spread over redrawn
calibration sets.

The gap is the mean over images of |coverage - (1 - alpha)| (METHODS 1.7), not the gap of the mean. It can be cheated: marking the whole image
gives exactly alpha. So no gap leaves this module without the set area beside it, and `core.lab` always adds the rows
*oracle* and *whole image*. Images without lesion are left out of coverage and show up as false-alarm area.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import lru_cache

import numpy as np
import torch

from core.conformal.control import ShiftTable, shift_table, subset_flags
from core.conformal.curves import CoverageCurves
from core.conformal.draws import calibrate_and_test_many, calibrate_many


@dataclass(frozen=True)
class Evaluation:
    """Figures of one method on one set of test images.

    Attributes:
        alpha: Share of a lesion that may be missed on average.
        n: Test images with a lesion.
        n_empty: Test images without.
        coverage: Mean share of the lesion inside the set (marginal coverage).
        gap: Mean of |coverage_i - (1 - alpha)|.
        shortfall: Mean of max(0, (1 - alpha) - coverage_i).
        worst_5pct: Mean coverage of the worst 5 % of images (at least one).
        area: Mean share of the image in the set, images with a lesion.
        stretch: Median of set area over lesion area.
        precision: Mean share of the set that is lesion (images with a set).
        false_alarm_area: Mean share of the image in the set, images without lesion; NaN when there are none.
        image_coverage: `(n,)` coverage of each image with a lesion.
        image_area: `(n,)` set area of each image with a lesion.
        index: `(n,)` their indices in the curves.
    """

    alpha: float
    n: int
    n_empty: int
    coverage: float
    gap: float
    shortfall: float
    worst_5pct: float
    area: float
    stretch: float
    precision: float
    false_alarm_area: float
    image_coverage: np.ndarray = field(repr=False)
    image_area: np.ndarray = field(repr=False)
    index: np.ndarray = field(repr=False)


def evaluate(
    curves: CoverageCurves,
    tau_hat: torch.Tensor,
    shift: float | torch.Tensor,
    alpha: float,
    subset: np.ndarray | torch.Tensor | None = None,
) -> Evaluation:
    """Measure a calibrated method on test images.

    Args:
        curves: N images.
        tau_hat: `(N,)` thresholds in score units.
        shift: The calibrated shift (a number), or `(N,)` one for each image.
        alpha: Share of a lesion that may be missed on average.
        subset: Test images, `(N,)` bool or indices; None takes all.

    Raises:
        ValueError: No test image has a lesion.
    """
    chosen = subset_flags(len(curves), subset)
    full, empty = chosen & curves.has_lesion, chosen & ~curves.has_lesion
    n = int(full.sum())
    if n == 0:
        raise ValueError(
            "None of the test images has a lesion: coverage is not defined there. Bring images with a lesion."
        )
    t = torch.as_tensor(shift, dtype=torch.float32)
    t = t.expand(len(curves))[:, None] if t.ndim == 0 else t[:, None]
    all_coverage, all_area = curves.coverage(tau_hat, t)[:, 0], curves.area(tau_hat, t)[:, 0]
    coverage, area = all_coverage[full].numpy(), all_area[full].numpy()
    m, size = curves.lesion_size[full].numpy(), curves.size[full].numpy()
    miss = (1.0 - alpha) - coverage
    worst = max(1, round(0.05 * n))
    marked = area > 0
    precision = coverage[marked] * m[marked] / (area[marked] * size[marked])
    return Evaluation(
        alpha=alpha,
        n=n,
        n_empty=int(empty.sum()),
        coverage=float(coverage.mean()),
        gap=float(np.abs(miss).mean()),
        shortfall=float(np.maximum(miss, 0).mean()),
        worst_5pct=float(np.sort(coverage)[:worst].mean()),
        area=float(area.mean()),
        stretch=float(np.median(area * size / m)),
        precision=float(precision.mean()) if marked.any() else float("nan"),
        false_alarm_area=float(all_area[empty].mean()) if empty.any() else float("nan"),
        image_coverage=coverage,
        image_area=area,
        index=full.nonzero()[:, 0].numpy(),
    )


@dataclass(frozen=True)
class Resampled:
    """Figures of one method over S redrawn calibration and test halves.

    Attributes:
        alpha: Share that may be missed.
        shift: `(S,)` calibrated shifts.
        coverage: `(S,)` mean test coverage of each draw.
        gap: `(S,)` mean test gap.
        area: `(S,)` mean test area.
        shortfall: `(S,)` mean test shortfall.
        worst_5pct: `(S,)` mean coverage of the worst 5 % of the test images.
        stretch: `(S,)` median of set area over lesion area.
    """

    alpha: float
    shift: np.ndarray
    coverage: np.ndarray
    gap: np.ndarray
    area: np.ndarray
    shortfall: np.ndarray
    worst_5pct: np.ndarray
    stretch: np.ndarray


@lru_cache(maxsize=16)
def draw_halves(n: int, calibration_share: float, draws: int, seed: int) -> np.ndarray:
    """`(draws, n)` bool: who calibrates. Row 0 is the split that `core.data.splits.redraw` gives for the same seed, row k for seed + k."""
    from core.data.splits import redraw

    rows = np.zeros((draws, n), bool)
    for k in range(draws):
        rows[k, redraw(n, calibration_share, seed + k)[0]] = True
    rows.flags.writeable = False  # kept for whoever asks again
    return rows


def resample(
    curves: CoverageCurves,
    tau_hat: torch.Tensor,
    alpha: float,
    calibrating: np.ndarray,
    table: ShiftTable | None = None,
) -> Resampled:
    """Calibrate and test on many draws at once.

    Args:
        curves: N images of a pool.
        tau_hat: `(N,)` thresholds.
        alpha: Share that may be missed.
        calibrating: `(S, N)` bool from `draw_halves`; the others are tested.
        table: `shift_table(curves, tau_hat)`, when it is already there.
    """
    table = shift_table(curves, tau_hat) if table is None else table
    shift = calibrate_many(table, alpha, calibrating)
    has = curves.has_lesion.numpy()
    keep = np.flatnonzero(has)
    test = (~calibrating & has[None])[:, keep].T
    t = torch.from_numpy(shift)
    coverage = curves.coverage(tau_hat, t).numpy()[keep]
    area = curves.area(tau_hat, t).numpy()[keep]
    n = test.sum(0)
    none = n == 0  # a draw that tests no lesion has no figures
    n = np.maximum(n, 1)
    miss = (1.0 - alpha) - coverage
    worst = np.sort(np.where(test, coverage, np.inf), axis=0)
    k = np.maximum(1, np.round(0.05 * n)).astype(int)
    total = np.cumsum(worst[: k.max()], axis=0)
    share = (curves.lesion_size.numpy() / curves.size.numpy())[keep, None]
    stretch = np.where(test, area / share, np.nan)
    stretch[:, none] = 0.0  # becomes NaN below; the median of nothing would warn
    figures = [
        (coverage * test).sum(0) / n,
        (np.abs(miss) * test).sum(0) / n,
        (area * test).sum(0) / n,
        (np.maximum(miss, 0) * test).sum(0) / n,
        total[k - 1, np.arange(test.shape[1])] / k,
        np.nanmedian(stretch, axis=0),
    ]
    return Resampled(alpha, shift, *(np.where(none, np.nan, f) for f in figures))


def coverage_over_draws(
    curves: CoverageCurves,
    tau_hat: torch.Tensor,
    alpha: float,
    calibrating: np.ndarray,
    table: ShiftTable | None = None,
) -> np.ndarray:
    """Mean test coverage of each draw alone, for a page that asks at every move of a slider. Arguments as in `resample`.

    Returns:
        `(S,)`; NaN where a draw tests no image with a lesion.
    """
    table = shift_table(curves, tau_hat) if table is None else table
    return calibrate_and_test_many(table, alpha, calibrating)[1]


def shift_for_area(
    curves: CoverageCurves, tau_hat: torch.Tensor, area: float, subset: np.ndarray | None = None
) -> float:
    """The common shift at which the mean set area of images with a lesion is a given one (bisection; no promise attached).

    Args:
        curves: N images.
        tau_hat: `(N,)` thresholds.
        area: Wanted mean share of the image, in [0, 1].
        subset: Images that count.
    """
    chosen = subset_flags(len(curves), subset) & curves.has_lesion
    tau_hat = torch.as_tensor(tau_hat).float()
    low = float(tau_hat.min()) - float(curves.pixels.value.max()) - 1.0
    high = float(tau_hat.max()) - float(curves.pixels.value.min()) + 1.0
    for _ in range(50):
        middle = (low + high) / 2
        if float(curves.area(tau_hat, middle)[chosen].mean()) >= area:
            high = middle
        else:
            low = middle
    return high
