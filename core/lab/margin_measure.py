"""What one trained network is worth on the images that it did not see: overlap, calibration in both scopes, and its logit distances.

It reads the logits that `margin_train` kept and trains nothing. Everything is measured on the networks' own grid of 96 x 96 pixels, padding
left out. Calibration figures are pooled: every counted pixel of the pool counts the same. The mean of per-image figures, as the published code
reports them, stands beside them under names that end in `_image`.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch

from core.lab.margin_sets import Labelled
from core.margin.losses import logit_distances
from core.margin.overlap import overlap, summarise
from core.margin.reliability import (
    Reliability,
    brier,
    classwise_ece,
    ece,
    nll,
    per_image,
    tabulate_scopes,
)
from core.margin.temperature import fit_temperature

EDGES = np.append(np.arange(0.0, 20.0, 0.5), np.inf)
"""Edges of the histograms of logit distances; the last bin is open."""


@dataclass(frozen=True, eq=False)
class Measured:
    """One network on one part.

    Attributes:
        tables: Scope -> one reliability table an image.
        dice: `(N,)` mean Dice over foreground classes; NaN where both masks are empty.
        distances: `(N, B)` pixels by logit distance, over all classes but the predicted one (see `EDGES`).
        distances_right: The same, pixels that are predicted right.
        figures: Flat figures of the whole part.
    """

    tables: dict[str, tuple[Reliability, ...]]
    dice: np.ndarray
    distances: np.ndarray
    distances_right: np.ndarray
    figures: dict[str, float]


def read_logits(path: Path, part: str) -> torch.Tensor:
    """Logits `(N, K, 96, 96)` float32 of one part of a finished run."""
    with np.load(path, allow_pickle=False) as z:
        return torch.from_numpy(z[part]).float()


def temperature_on(logits: torch.Tensor, part: Labelled) -> float:
    """The temperature that fits a network best on a part, over all counted pixels."""
    return fit_temperature(logits, part.labels, part.ignore if bool(part.ignore.any()) else None)


def measure(logits: torch.Tensor, part: Labelled, distances: bool = True) -> Measured:
    """Measure a network.

    Args:
        logits: `(N, K, 96, 96)` float32.
        part: The images' labels.
        distances: Whether surface distances (HD95) are wanted too; they take most of the time.

    Returns:
        Tables, histograms and figures: `dice`, `hd95`, `missed` and `invented` (images in which only one mask is empty, so that HD95 is not
        defined), and for each scope (`fg`, `all`) `ece`, `cece`, `brier`, `nll`, pooled, and `ece_image`, the mean over images.

    Raises:
        ValueError: Logits and images do not belong together.
    """
    if len(logits) != len(part):
        raise ValueError(f"There are {len(logits)} maps of logits and {len(part)} images.")
    k = logits.shape[1]
    tables: dict[str, list[Reliability]] = {"foreground": [], "all": []}
    overlaps, dice, far, far_right = [], [], [], []
    for x, y, ignore in zip(logits, part.labels, part.ignore, strict=True):
        for scope, table in tabulate_scopes(x, y, ignore).items():
            tables[scope].append(table)
        guess = x.argmax(0)
        if distances:
            overlaps.append(overlap(guess, y, k, ignore=ignore))
            dice.append(_mean(overlaps[-1].dice))
        else:
            dice.append(_dice(guess, y, ignore, k))
        d = logit_distances(x[None])[0]
        others = torch.ones_like(d, dtype=torch.bool).scatter_(0, guess[None], False) & ~ignore
        far.append(_histogram(d[others]))
        far_right.append(_histogram(d[others & (guess == y)]))
    figures: dict[str, float] = {"dice": _mean(np.array(dice))}
    if distances:
        total = summarise(overlaps)
        figures |= {"hd95": total.mean_hd95, "missed": float(total.missed.sum())}
        figures["invented"] = float(total.invented.sum())
    for scope, short in (("foreground", "fg"), ("all", "all")):
        pooled = Reliability.merge(tables[scope])
        figures |= {
            f"ece_{short}": ece(pooled),
            f"cece_{short}": classwise_ece(pooled),
            f"brier_{short}": brier(pooled),
            f"nll_{short}": nll(pooled),
            f"ece_{short}_image": per_image(tables[scope], ece).mean,
        }
    done = {scope: tuple(t) for scope, t in tables.items()}
    return Measured(done, np.array(dice), np.stack(far), np.stack(far_right), figures)


def _histogram(values: torch.Tensor) -> np.ndarray:
    at = np.minimum((values.numpy() * 2).astype(np.int64), len(EDGES) - 2)
    return np.bincount(at, minlength=len(EDGES) - 1).astype(np.uint32)


def _dice(guess: torch.Tensor, truth: torch.Tensor, ignore: torch.Tensor, classes: int) -> float:
    values = []
    for c in range(1, classes):
        a, b = (guess == c) & ~ignore, (truth == c) & ~ignore
        total = int(a.sum() + b.sum())
        values.append(2 * int((a & b).sum()) / total if total else np.nan)
    return _mean(np.array(values))


def _mean(values: np.ndarray) -> float:
    return float(np.nanmean(values)) if not np.isnan(values).all() else float("nan")


def measure_run(path: Path, parts: dict[str, Labelled], scaled: bool = False) -> dict[str, Any]:
    """Figures of a finished run on the pool, and on the validation part those that choices need.

    Args:
        path: The run's file of logits.
        parts: From `core.lab.margin_sets.load_set`.
        scaled: Divide by the temperature that fits the validation part best.

    Returns:
        `measured` (a `Measured` of the pool), `temperature`, `val` (figures on the validation part), `history` (training loss an epoch).
    """
    val, pool = read_logits(path, "val"), read_logits(path, "pool")
    temperature = temperature_on(val, parts["val"]) if scaled else 1.0
    with np.load(path, allow_pickle=False) as z:
        history = [round(float(v), 5) for v in z["loss"]]
    return {
        "temperature": temperature,
        "measured": measure(pool / temperature, parts["pool"]),
        "val": measure(val / temperature, parts["val"], distances=False).figures,
        "history": history,
    }
