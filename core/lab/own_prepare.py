"""A person's score maps as the methods see them: curves, plug-in thresholds and statistics, once an upload.

The expensive half of `own.py`; no alpha, no draw and no method's choice is in it.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

import numpy as np
import torch

from core.coat.thresholds import ALPHA_KNOTS, plug_in_of_sorted
from core.conformal import CoverageCurves
from core.conformal.exchangeability import map_statistics
from core.images.maps import Maps

OnStep = Callable[..., None]

EXACT_PIXELS = 20_000_000
"""Up to so many pixels in all, curves keep every score; beyond, they are binned on the safe side (1/40 logit)."""


@dataclass(frozen=True, eq=False)
class Prepared:
    """A person's images as the methods see them.

    Attributes:
        maps: What was read.
        curves: Coverage and area of all N images.
        plug_in: `(N, A)` plug-in thresholds at `ALPHA_KNOTS`.
        statistics: `(N, S)` of each map, for groups by predicted area and the exchangeability check.
        notes: What was done, in words.
    """

    maps: Maps = field(repr=False)
    curves: CoverageCurves = field(repr=False)
    plug_in: torch.Tensor = field(repr=False)
    statistics: np.ndarray = field(repr=False)
    notes: tuple[str, ...]
    _pools: dict[bytes, CoverageCurves] = field(default_factory=dict, repr=False)

    def pool_of(self, pool: np.ndarray) -> CoverageCurves:
        """The curves of some images; the last few pools keep their sorts."""
        key = pool.tobytes()
        if key not in self._pools:
            if len(self._pools) > 3:
                self._pools.clear()
            self._pools[key] = self.curves.select(pool)
        return self._pools[key]

    @property
    def with_lesion(self) -> int:
        """Images with a lesion."""
        return int(self.curves.has_lesion.sum())


def prepare(maps: Maps, on_step: OnStep | None = None) -> Prepared:
    """Curves, plug-in thresholds and statistics of all images.

    Args:
        maps: From `core.images.maps`, no question open, with masks.
        on_step: `(done, total)` after each image.

    Raises:
        ValueError: A question is open, masks are missing, or fewer than two images show a lesion.
    """
    if not maps.ready:
        asked = maps.questions[0].text if maps.questions else "No map is left."
        raise ValueError(f"The maps are not ready: {asked}")
    if maps.masks is None:
        raise ValueError(
            "A calibration needs the truth: bring a mask for each map. With maps alone, a calibration that exists can be applied to them."
        )
    if maps.with_lesion < 2:
        raise ValueError(
            f"{maps.with_lesion} of {len(maps)} masks show a lesion; to calibrate and to test takes at least 2. Bring more images with a lesion, or "
            "choose another foreground value."
        )
    pixels = sum(s.numel() for s in maps.scores)
    binned = pixels > EXACT_PIXELS
    parts, plug, statistics = [], [], []
    for i, (name, score, mask) in enumerate(zip(maps.names, maps.scores, maps.masks, strict=True)):
        one = CoverageCurves.from_maps([score], [mask], [name])
        parts.append(one.to_bins() if binned else one)
        plug.append(
            plug_in_of_sorted(score.reshape(1, -1).sort(descending=True).values, ALPHA_KNOTS)[0].float()
        )
        statistics.append(map_statistics(score))
        if on_step:
            on_step(i + 1, len(maps), {"stage": "Looking at your maps"})
    notes = (
        (f"The {pixels:,} scores were binned to 1/40 of a logit, on the safe side, to fit into memory.",)
        if binned
        else ()
    )
    return Prepared(maps, CoverageCurves.merge(parts), torch.stack(plug), np.stack(statistics), notes)
