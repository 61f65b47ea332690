"""What makes COAT better than AT and CRC, and what does not: variants of the threshold predictor on one study, recorded.

Every variant has the inputs, folds and epochs of the shipped predictors but for the one thing that its line names. The choice is made
on D2 alone, by the out-of-fold gap (each fold after its own common shift, for each member is shifted for itself in the end); what
the pool says is printed beside it and decided nothing. Run by `python -m benchmarks ablation`.
"""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import nn

from core.coat.features import PredictorInput
from core.coat.fit import Fitted, fit, shifted_gap
from core.coat.predictor import predict_knots
from core.coat.thresholds import between_knots
from core.conformal import resample
from core.conformal.metrics import draw_halves
from core.images.grid import to_grid, to_square
from core.lab.gathered import Gathered
from core.lab.make import VARIANTS
from core.lab.sources import source
from core.lab.study import Study
from core.nets.weights import shipped_network
from core.settings import CoatSettings

COMPONENTS = 16
"""Principal components of the encoder's features that a predictor may see; more than D2 can tell apart is noise."""


@dataclass(frozen=True)
class Trial:
    """One variant.

    Attributes:
        name: What differs, in words.
        settings: Of the fit.
        picture: Whether the small picture is seen.
        encoder: Whether the base network's own encoder features are seen.
    """

    name: str
    settings: CoatSettings
    picture: bool = True
    encoder: bool = False


_AT, _COAT = VARIANTS["AT"], VARIANTS["COAT"]
_SCRATCH = CoatSettings(objective="coat")

TRIALS = (
    Trial("AT, as shipped", _AT),
    Trial("COAT, as shipped: from AT, absolute, T 2 to 0.5", _COAT),
    Trial("COAT from scratch, absolute, T 6 to 1", _SCRATCH),
    Trial("COAT from scratch, squared, T 6 to 1", replace(_SCRATCH, miss="squared")),
    Trial(
        "COAT from scratch, absolute, T = 1 throughout",
        replace(_SCRATCH, temperature_start=1.0, temperature_end=1.0),
    ),
    Trial("COAT as shipped, squared", replace(_COAT, miss="squared")),
    Trial("COAT as shipped, without the small picture", _COAT, picture=False),
    Trial("COAT as shipped, two members", replace(_COAT, members=2)),
    Trial("COAT as shipped, ten members", replace(_COAT, members=10)),
    Trial("COAT as shipped, with encoder features", _COAT, encoder=True),
    Trial("AT as shipped, with encoder features", _AT, encoder=True),
)
"""The variants, the shipped two first."""


@torch.no_grad()
def encoder_features(model: nn.Module, images: Iterator[np.ndarray], side: int) -> torch.Tensor:
    """Mean over the picture of the deepest feature map of a base network's encoder.

    Args:
        model: A network with an `encoder` that gives a list of feature maps.
        images: `(H, W, 3)` uint8 each.
        side: Side of the network's square.

    Returns:
        `(N, C)` float32.

    Raises:
        ValueError: The network has no encoder of its own.
    """
    encoder = getattr(model, "encoder", None)
    if encoder is None:
        raise ValueError("This base network has no encoder whose features could be taken.")
    model.eval()
    rows = []
    for rgb in images:
        square, frame = to_square(to_grid(rgb), side)
        deepest = encoder(square[None])[-1][0]
        rows_in = max(1, round(deepest.shape[1] * frame.height / side))
        columns_in = max(1, round(deepest.shape[2] * frame.width / side))
        rows.append(deepest[:, :rows_in, :columns_in].mean((1, 2)))
    return torch.stack(rows).float()


def components(
    fitting: torch.Tensor, other: torch.Tensor, count: int = COMPONENTS
) -> tuple[torch.Tensor, torch.Tensor]:
    """Principal components whose directions come from the fitting images alone.

    Args:
        fitting: `(N, C)` features of D2.
        other: `(M, C)` features of the pool.
        count: Components kept.

    Returns:
        `(N, count)` and `(M, count)`.
    """
    mean = fitting.mean(0)
    _, _, directions = torch.linalg.svd(fitting - mean, full_matrices=False)
    basis = directions[:count].T
    return (fitting - mean) @ basis, (other - mean) @ basis


def with_encoder(name: str, data: Path | None, inputs: Gathered) -> tuple[PredictorInput, PredictorInput]:
    """Predictor inputs of D2 and of the pool with the encoder's components behind the global features."""
    parts, read = source(name, data)
    model, spec, _ = shipped_network(name)
    d2, pool = (
        encoder_features(model, (read(n)[0] for n in part), spec.side) for part in (parts.d2, parts.pool)
    )
    more = components(d2, pool)
    given = [
        PredictorInput(i.picture, torch.cat([i.features, m], 1), i.plug_in)
        for i, m in zip((inputs.d2, inputs.pool), more, strict=True)
    ]
    return given[0], given[1]


def gap_by_fold(fitted: Fitted, quantiles: torch.Tensor, seed: int) -> float:
    """Mean out-of-fold gap, each fold after its own common shift; the folds are drawn as in `core.coat.fit.fit`."""
    kept = quantiles[~torch.isnan(quantiles).any(1)]
    members = fitted.settings.members
    fold = torch.randperm(len(kept), generator=torch.Generator().manual_seed(seed)) % members
    gaps = [shifted_gap(kept[fold == k], fitted.out_of_fold[fold == k]) for k in range(members)]
    return float(np.mean(gaps))


def on_pool(
    study: Study, knots: torch.Tensor, alphas: tuple[float, ...] = (0.1, 0.2), draws: int = 200
) -> dict[str, float]:
    """Gap and area of the pool over redrawn halves at some levels: keys `gap_0.1`, `area_0.1`, ..."""
    halves = draw_halves(len(study.curves), 0.5, draws, 0)
    out = {}
    for alpha in alphas:
        r = resample(study.curves, between_knots(knots, alpha), alpha, halves)
        out[f"gap_{alpha:g}"], out[f"area_{alpha:g}"] = float(r.gap.mean()), float(r.area.mean())
    return out


def run_trials(
    study: Study,
    inputs: Gathered,
    data: Path | None,
    trials: tuple[Trial, ...] = TRIALS,
    seed: int = 0,
    keep: Path | None = None,
    say: Callable[[str], None] = print,
) -> list[dict[str, Any]]:
    """Fit every variant and measure it.

    Args:
        study: The shipped study.
        inputs: Its D2 and pool.
        data: Folder of the real data set, for the encoder's features.
        trials: Variants.
        seed: Of every fit.
        keep: JSON file of finished rows; rows that it holds are not fitted again.
        say: Called with a line of progress.

    Returns:
        One row a variant: `variant`, `gap_d2`, and the figures of `on_pool`.
    """
    rows: list[dict[str, Any]] = json.loads(keep.read_text()) if keep is not None and keep.exists() else []
    extended: tuple[PredictorInput, PredictorInput] | None = None
    for trial in trials:
        if any(row["variant"] == trial.name for row in rows):
            continue
        d2, pool = inputs.d2, inputs.pool
        if trial.encoder:
            if extended is None:
                extended = with_encoder(study.name, data, inputs)
            d2, pool = extended
        fitted = fit(d2, inputs.quantiles, trial.settings, seed, trial.picture)
        row: dict[str, Any] = {"variant": trial.name, "gap_d2": gap_by_fold(fitted, inputs.quantiles, seed)}
        row |= on_pool(study, predict_knots(fitted.members, pool))
        rows.append(row)
        say(f"{trial.name}: D2 {row['gap_d2']:.4f}, pool at 0.1 {row['gap_0.1']:.4f} / {row['area_0.1']:.3f}")
        if keep is not None:
            part = keep.with_suffix(".part")
            part.write_text(json.dumps(rows, indent=1) + "\n")
            os.replace(part, keep)
    return rows
