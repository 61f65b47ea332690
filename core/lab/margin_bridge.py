"""Does calibration help a conformal set? Each loss's network under CRC, the plug-in threshold and COAT, on the same images.

The score of a pixel is the logit of "not background", log sum exp of the foreground's logits minus the background's, clamped like every score here.
COAT's predictor is fitted on D2 from the map's global features alone (no small picture), three members, the shipped objective: smaller than the
shipped predictors, and the same for every loss. Calibration and test are redrawn from the pool a thousand times. AT is not shown: the question
is about the losses.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import torch

from core.coat.features import PredictorInput, lesion_quantiles, map_features
from core.coat.fit import fit
from core.coat.predictor import predict_knots
from core.coat.thresholds import ALPHA_KNOTS, between_knots, oracle_thresholds, plug_in_thresholds
from core.conformal import CoverageCurves, resample
from core.conformal.metrics import draw_halves
from core.lab.make import VARIANTS
from core.lab.margin_sets import Labelled
from core.nets.build import CLAMP

METHODS = ("CRC", "plug-in", "COAT")
ROWS = (*METHODS, "oracle", "whole image")
LEVELS = (0.1, 0.2)
"""Levels that are recorded."""

DRAWS = 1000
COAT = replace(VARIANTS["COAT"], members=3, epochs=40)
"""Settings of the small COAT of this comparison."""


def foreground_score(logits: torch.Tensor) -> torch.Tensor:
    """Logit of "not background".

    Args:
        logits: `(N, K, H, W)`.

    Returns:
        `(N, H, W)` float32, clamped to plus or minus 15.
    """
    x = logits.float()
    return (torch.logsumexp(x[:, 1:], 1) - x[:, 0]).clamp(-CLAMP, CLAMP)


def cut(part: Labelled, i: int) -> tuple[slice, slice]:
    """Rows and columns of image i that are no padding."""
    kept = ~part.ignore[i]
    rows, columns = kept.any(1).nonzero()[:, 0], kept.any(0).nonzero()[:, 0]
    return slice(int(rows[0]), int(rows[-1]) + 1), slice(int(columns[0]), int(columns[-1]) + 1)


def seen(
    scores: torch.Tensor, part: Labelled
) -> tuple[PredictorInput, list[torch.Tensor], list[torch.Tensor]]:
    """What the predictor sees of a part, and the maps and masks `(h, w)` without padding."""
    maps, masks, features, plugs = [], [], [], []
    for i in range(len(part)):
        at = cut(part, i)
        maps.append(scores[i][at].contiguous())
        masks.append(part.labels[i][at] > 0)
        f, p = map_features(maps[-1])
        features.append(f)
        plugs.append(p)
    n = len(part)
    return PredictorInput(torch.zeros(n, 4, 1, 1), torch.stack(features), torch.stack(plugs)), maps, masks


def bridge(
    d2_logits: torch.Tensor,
    d2: Labelled,
    pool_logits: torch.Tensor,
    pool: Labelled,
    seed: int = 0,
    draws: int = DRAWS,
    levels: tuple[float, ...] = LEVELS,
) -> list[dict[str, Any]]:
    """Gap, area and coverage of every row for one network.

    Args:
        d2_logits: `(M, K, 96, 96)` of the images that fit COAT.
        d2: Their labels.
        pool_logits: `(N, K, 96, 96)` of the images that calibrate and test.
        pool: Their labels.
        seed: Of COAT's fit and of the first draw.
        draws: Redrawn halves of the pool.
        levels: Shares that may be missed.

    Returns:
        One flat dictionary for each level and row: `method`, `alpha`, `coverage`, `gap`, `area`, means over draws of means over test images.
    """
    fitting, d2_maps, d2_masks = seen(foreground_score(d2_logits), d2)
    given, maps, masks = seen(foreground_score(pool_logits), pool)
    quantiles = torch.stack([lesion_quantiles(m, y) for m, y in zip(d2_maps, d2_masks, strict=True)])
    fitted = fit(fitting, quantiles, COAT, seed, picture=False)
    curves = CoverageCurves.from_maps(maps, masks, pool.names)
    knots = predict_knots(fitted.members, given)
    plug = plug_in_thresholds(curves, ALPHA_KNOTS)
    halves = draw_halves(len(curves), 0.5, draws, seed)
    has = curves.has_lesion.numpy()
    rows: list[dict[str, Any]] = []
    for alpha in levels:
        tau = {
            "CRC": torch.zeros(len(curves)),
            "plug-in": between_knots(plug, alpha),
            "COAT": between_knots(knots, alpha),
        }
        for method, tau_hat in tau.items():
            r = resample(curves, tau_hat, alpha, halves)
            found = {"coverage": r.coverage, "gap": r.gap, "area": r.area}
            rows.append(
                {"method": method, "alpha": alpha} | {k: float(np.nanmean(v)) for k, v in found.items()}
            )
        best = torch.nan_to_num(oracle_thresholds(curves, alpha))
        inside, area = (f(best)[:, 0].numpy()[has] for f in (curves.coverage, curves.area))
        rows.append(
            {"method": "oracle", "alpha": alpha, "coverage": float(inside.mean()), "area": float(area.mean())}
            | {"gap": float(np.abs(inside - (1 - alpha)).mean())}
        )
        rows.append({"method": "whole image", "alpha": alpha, "coverage": 1.0, "gap": alpha, "area": 1.0})
    return rows
