"""What a fit needs of a study's images, kept in the working folder: predictor inputs of D2 and of the pool, and D2's lesion quantiles.

Scoring a part with the base network takes minutes, fitting one predictor on it seconds; so experiments on predictors (temperatures, one
alpha against all, ablations) score once and read this file afterwards. It holds small pictures of real images: it belongs in the
working folder and never in the project.
"""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path

import torch
from safetensors.torch import load_file, save_file

from core.coat.features import PredictorInput
from core.conformal import CoverageCurves
from core.lab.make import gather
from core.lab.sources import source
from core.nets.weights import shipped_network


@dataclass(frozen=True)
class Gathered:
    """Inputs of the fits of one study.

    Attributes:
        d2: D2 without its masks.
        quantiles: `(N, Q)` lesion scores of D2; NaN rows have no lesion.
        pool: The pool without its masks, in the order of the score table.
    """

    d2: PredictorInput
    quantiles: torch.Tensor
    pool: PredictorInput


def gathered(name: str, data: Path | None, work: Path | None = None) -> Gathered:
    """Score D2 and the pool of a shipped study, or read what an earlier call left in the working folder.

    Args:
        name: A study with shipped weights.
        data: Folder of the real data set; unused for phantoms.
        work: Folder for the cache; None keeps nothing.

    Raises:
        DataAbsent, ValueError: As in `core.lab.sources.source`.
    """
    path = None if work is None else work / f"{name}-inputs.safetensors"
    if path is not None and path.exists():
        kept = load_file(str(path))
        return _from(kept)
    parts, read = source(name, data)
    model, spec, _ = shipped_network(name)
    d2, quantiles, _, _ = gather(parts.d2, read, model, spec.side)
    pool, _, _, _ = gather(parts.pool, read, model, spec.side)
    kept = {f"d2.{f}": getattr(d2, f) for f in FIELDS} | {f"pool.{f}": getattr(pool, f) for f in FIELDS}
    kept["quantiles"] = quantiles
    if path is not None:
        path.parent.mkdir(parents=True, exist_ok=True)
        part = path.with_suffix(".part")
        save_file({k: v.contiguous() for k, v in kept.items()}, str(part))
        os.replace(part, path)
    return _from(kept)


FIELDS = ("picture", "features", "plug_in")


def _from(kept: dict[str, torch.Tensor]) -> Gathered:
    d2, pool = (PredictorInput(*(kept[f"{part}.{f}"] for f in FIELDS)) for part in ("d2", "pool"))
    return Gathered(d2, kept["quantiles"], pool)


def quantiles_of(curves: CoverageCurves, points: int = 256) -> torch.Tensor:
    """Lesion quantiles `(N, Q)` of images whose curves are known (binned or exact); NaN rows have no lesion.

    The score at the share (q + 1/2)/Q of each lesion, as in `core.coat.features.lesion_quantiles`.
    """
    rows, total = curves.lesion.dense
    m = curves.lesion_size.double()[:, None]
    rising = ((torch.arange(points, dtype=torch.float64) + 0.5) / points)[None] * m
    wanted = (m - 1 - rising.floor()).clamp(min=0)  # rank from the top of the sort, from 0
    if total is None:
        at = wanted.long().clamp(max=rows.shape[1] - 1)
    else:
        at = torch.searchsorted(total[:, 1:].contiguous(), (wanted + 0.5).contiguous()).clamp(
            max=rows.shape[1] - 1
        )
    value = rows.gather(1, at)
    return torch.where(curves.has_lesion[:, None], value, torch.nan)
