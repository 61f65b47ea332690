"""ACE, the adaptive calibration error: bins that hold equally many pixels instead of equal bins of [0, 1].

What it is not: mergeable. It needs the probabilities themselves, so a reliability table cannot give it. Source: Nixon and others, *Measuring
calibration in deep learning* (2019), the sum over classes and adaptive ranges, here as a mean over both.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from core.margin.pixels import BINS, EMPTY, choose_classes, read_pixels


def ace(
    values: Any,
    target: Any,
    ignore: Any = None,
    scope: str = "foreground",
    bins: int = BINS,
    of: str = "logits",
    classes: Sequence[int] | None = None,
    background: bool = True,
) -> float:
    """Adaptive calibration error: mean over classes and over bins that hold equally many pixels of |mean p_k - frequency of k|.

    It needs the probabilities themselves, so it cannot be had from a table. To pool images, flatten them to `(K, P)` and concatenate.
    Pixels of equal probability share their frequency, so the order of pixels does not matter.

    Args:
        values: As in `tabulate`; so are target, ignore, scope and of.
        target: `(*)` labels.
        ignore: `(*)` bool.
        scope: "foreground" or "all".
        bins: Bins of equal mass; sizes differ by at most one pixel, and there are never more bins than pixels.
        of: "logits" or "probabilities".
        classes: Fixed set of classes; None takes all K.
        background: False leaves class 0 out.

    Raises:
        ValueError: As in `tabulate`, or no pixel is in the scope.
    """
    px = read_pixels(values, target, ignore, of).within(scope)
    n = len(px.target)
    if n == 0:
        raise ValueError(EMPTY)
    bounds = np.linspace(0, n, min(bins, n) + 1).astype(np.int64)
    errors = []
    for k in choose_classes(len(px.probability), classes, background):
        order = np.argsort(px.probability[k], kind="stable")
        p, hit = px.probability[k][order], (px.target[order] == k).astype(np.float64)
        start = np.flatnonzero(np.r_[True, p[1:] != p[:-1]])
        size = np.diff(np.r_[start, n])
        hit = np.repeat(np.add.reduceat(hit, start) / size, size)
        errors.append(np.abs(np.add.reduceat(p - hit, bounds[:-1]) / np.diff(bounds)).mean())
    return float(np.mean(errors))
