"""What becomes of Dice and of a promise when images are damaged, before and after a U-Net follows them without labels.

The promise is made once: CRC, the plug-in threshold and COAT are calibrated on clean images with the network as it was trained. Then the tested
images are damaged, the network follows damaged images that are not scored (nothing, BN, λ, both), and its new score maps meet the old shifts. The
plug-in threshold and COAT's prediction are computed from the new maps; the shift that was calibrated stays. Nothing is calibrated anew, so no
coverage here is promised by anyone: exchangeability is broken on purpose. COAT is fitted on D2 as in `margin_bridge`.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import torch
from torch import nn

from core.coat.features import PredictorInput, lesion_quantiles
from core.coat.fit import fit
from core.coat.predictor import ThresholdPredictor, predict_knots
from core.coat.thresholds import between_knots, oracle_thresholds
from core.conformal import CoverageCurves, calibrate_many
from core.conformal.control import shift_table
from core.conformal.metrics import draw_halves
from core.data.corruptions import SEVERITIES
from core.lab.margin_bridge import COAT, LEVELS, METHODS, seen
from core.lab.margin_sets import Labelled
from core.lab.sparse_medical import CORRUPTED
from core.lab.sparse_unet import damaged, mean_dice, scores
from core.settings.tacsc import AdaptSettings
from core.tacsc.adapt import Adapted, adapt, adapted_copy, objective_curve
from core.tacsc.layer import sparse_layers
from core.tacsc.norms import refresh_norms

LAMBDA_BATCH = 10
"""Images at a time while λ moves: means are the same, and 96-pixel codes of few images stay in the processor's cache (2.7 times faster)."""

LANDSCAPE_IMAGES = 20


@dataclass(frozen=True)
class Plan:
    """What is measured.

    Attributes:
        corruptions: Names; clean images are always measured, with adaptation too.
        severities: Of each.
        scored: Images of the pool that calibrate and test, drawn with seed 0; all where there are fewer.
        samples: Images of D2 that only adaptation sees, and COAT's predictor never.
        draws: Redrawn halves of the pool, calibration and test.
        levels: Shares of a lesion that may be missed.
        seed: Of the draws, of COAT's fit and of the corruptions.
    """

    corruptions: tuple[str, ...] = CORRUPTED
    severities: tuple[int, ...] = SEVERITIES
    scored: int = 200
    samples: int = 100
    draws: int = 100
    levels: tuple[float, ...] = LEVELS
    seed: int = 0

    @property
    def places(self) -> list[tuple[str, int]]:
        """Corruption and severity of each step, clean first."""
        return [("clean", 0), *((c, s) for c in self.corruptions for s in self.severities)]


def some(part: Labelled, index: np.ndarray) -> Labelled:
    """Some images of a part."""
    at = torch.from_numpy(np.asarray(index))
    return Labelled(
        tuple(part.names[int(i)] for i in index), part.images[at], part.labels[at], part.ignore[at]
    )


def divide_d2(d2: Labelled, samples: int) -> tuple[Labelled, Labelled]:
    """D2 in two: what COAT's predictor is fitted on, and what only adaptation sees, drawn with seed 0.

    Args:
        d2: All of it.
        samples: Images for adaptation.

    Raises:
        ValueError: Fewer than ten images would be left for the predictor, or adaptation would see fewer than two.
    """
    if samples < 2 or len(d2) - samples < 10:
        raise ValueError(
            f"D2 holds {len(d2)} images: {samples} for adaptation and {len(d2) - samples} for COAT will not do; "
            "adaptation takes at least 2, COAT at least 10."
        )
    order = np.random.default_rng(0).permutation(len(d2))
    return some(d2, np.sort(order[samples:])), some(d2, np.sort(order[:samples]))


def chosen_of(pool: Labelled, count: int) -> Labelled:
    """So many images of the pool, drawn with seed 0; all of it where it holds fewer."""
    return some(pool, np.sort(np.random.default_rng(0).permutation(len(pool))[:count]))


def pixels(part: Labelled) -> np.ndarray:
    """Images of a part as `(N, S, S, 3)` uint8."""
    return ((part.images + 1) * 127.5).round().to(torch.uint8).permute(0, 2, 3, 1).contiguous().numpy()


def followed(
    net: nn.Module, images: torch.Tensor, settings: AdaptSettings
) -> dict[str, tuple[nn.Module, Adapted | None]]:
    """The network under every way of adaptation; without a sparse layer none and BN only.

    Args:
        net: In eval mode; it is not changed.
        images: `(N, 3, S, S)`, unlabelled.
        settings: Of adaptation; what adapts is varied here.

    Returns:
        Way -> network, and what was found of λ (None where λ stayed).
    """
    refreshed = adapted_copy(net, adapt(net, images, replace(settings, what="bn")))
    ways: dict[str, tuple[nn.Module, Adapted | None]] = {"none": (net, None), "bn": (refreshed, None)}
    if sparse_layers(net):
        found = adapt(net, images, replace(settings, what="lambda"), batch=LAMBDA_BATCH)
        ways["lambda"] = adapted_copy(net, found), found
        both = adapted_copy(net, found)
        refresh_norms(both, images, settings.prior)
        ways["both"] = both, found
    return ways


@dataclass(frozen=True, eq=False)
class Promise:
    """What was calibrated on clean images, before any damage.

    Attributes:
        plan: What is measured.
        pool: Those images of the pool that calibrate and test.
        members: COAT's predictor.
        fit_gap: Its out-of-fold gap on its part of D2.
        halves: `(draws, N)` bool, who calibrates; the others are tested.
        shift: (method, level) -> `(draws,)` calibrated shifts.
    """

    plan: Plan
    pool: Labelled
    members: tuple[ThresholdPredictor, ...]
    fit_gap: float
    halves: np.ndarray
    shift: dict[tuple[str, float], np.ndarray]

    def thresholds(self, given: PredictorInput, alpha: float) -> dict[str, torch.Tensor]:
        """`(N,)` thresholds of each method before its shift."""
        knots = {"plug-in": given.plug_in, "COAT": predict_knots(self.members, given)}
        return {m: between_knots(knots[m], alpha) if m in knots else torch.zeros(len(given)) for m in METHODS}

    def measured(self, score: torch.Tensor) -> dict[str, dict[str, list[float]]]:
        """Coverage, its deviation over draws, gap and area of every method for score maps `(N, S, S)` of the pool, by level.

        Means over draws of means over the tested images with a lesion.

        Raises:
            ValueError: As many maps as images of the pool are needed.
        """
        if len(score) != len(self.pool):
            raise ValueError(f"{len(score)} score maps do not fit the {len(self.pool)} images of the pool.")
        given, maps, masks = seen(score, self.pool)
        curves = CoverageCurves.from_maps(maps, masks, self.pool.names)
        has = curves.has_lesion.numpy()
        test = (~self.halves & has[None])[:, has].T
        n = test.sum(0)
        out: dict[str, dict[str, list[float]]] = {}
        for alpha in self.plan.levels:
            found = out[f"{alpha:g}"] = {}
            for method, tau in self.thresholds(given, alpha).items():
                shift = torch.from_numpy(self.shift[method, alpha])
                covered, area = (f(tau, shift).numpy()[has] for f in (curves.coverage, curves.area))
                each = (covered * test).sum(0) / n
                gap = (np.abs(covered - (1 - alpha)) * test).sum(0) / n
                found[method] = [each.mean(), each.std(), gap.mean(), ((area * test).sum(0) / n).mean()]
            best = torch.nan_to_num(oracle_thresholds(curves, alpha))
            covered, area = (f(best)[:, 0].numpy()[has] for f in (curves.coverage, curves.area))
            found["oracle"] = [covered.mean(), 0.0, np.abs(covered - (1 - alpha)).mean(), area.mean()]
            found["whole image"] = [1.0, 0.0, alpha, 1.0]
        return {a: {m: [round(float(v), 5) for v in w] for m, w in f.items()} for a, f in out.items()}


def promise(net: nn.Module, fitting: Labelled, pool: Labelled, plan: Plan) -> Promise:
    """Fit COAT on its part of D2 and calibrate every method on clean halves of the pool.

    Args:
        net: The trained network.
        fitting: From `divide_d2`.
        pool: The pool, of which some are chosen.
        plan: Draws, levels, seed.
    """
    given, maps, masks = seen(scores(net, fitting.images), fitting)
    quantiles = torch.stack([lesion_quantiles(m, y) for m, y in zip(maps, masks, strict=True)])
    fitted = fit(given, quantiles, COAT, plan.seed, picture=False)
    pool = chosen_of(pool, plan.scored)
    given, maps, masks = seen(scores(net, pool.images), pool)
    curves = CoverageCurves.from_maps(maps, masks, pool.names)
    halves = draw_halves(len(pool), 0.5, plan.draws, plan.seed)
    made = Promise(plan, pool, fitted.members, fitted.gap, halves, {})
    for alpha in plan.levels:
        for method, tau in made.thresholds(given, alpha).items():
            made.shift[method, alpha] = calibrate_many(shift_table(curves, tau), alpha, halves)
    return made


def measure_place(
    net: nn.Module,
    made: Promise,
    followers: Labelled,
    corruption: str,
    severity: int,
    settings: AdaptSettings,
) -> list[dict[str, Any]]:
    """One cell for each way of adaptation under one corruption.

    Args:
        net: The trained network; it is not changed.
        made: From `promise`.
        followers: Images that adaptation sees, damaged in the same way and never scored.
        corruption: Name, or `"clean"`.
        severity: 1 to 5; 0 for clean.
        settings: Of adaptation.

    Returns:
        Plain values: `corruption`, `severity`, `adapt`, `samples`, `scored`, `dice`, `threshold`, `error`, `sparsity`, `stopped`, `figures`.
    """
    seed, n = made.plan.seed, len(made.pool)
    x = damaged(pixels(made.pool), corruption, severity, seed)
    unlabelled = damaged(pixels(followers), corruption, severity, seed, range(n, n + len(followers)))
    unlabelled = unlabelled.to(next(net.parameters()).device)
    masks = made.pool.labels > 0
    cells: list[dict[str, Any]] = []
    ways = followed(net, unlabelled, settings)
    moved = ways["lambda"][1] if "lambda" in ways else None
    start: list[float | None] = [None, None, None] if moved is None else _layer(moved, 0)
    for kind, (now, found) in ways.items():
        score = scores(now, x)
        threshold, error, zeros = start if found is None else _layer(found, -1)
        cells.append(
            {"corruption": corruption, "severity": severity, "adapt": kind}
            | {
                "samples": 0 if kind == "none" else len(followers),
                "scored": int(masks.flatten(1).any(1).sum()),
            }
            | {"dice": round(mean_dice(score, masks), 5), "threshold": threshold, "error": error}
            | {"sparsity": zeros, "stopped": [] if found is None else list(found.stopped.values())}
            | {"figures": made.measured(score)}
        )
    return cells


def landscape(
    net: nn.Module, followers: Labelled, settings: AdaptSettings, seed: int
) -> list[dict[str, Any]]:
    """What adaptation walks on: R, R/(λ + ε) and sparsity of the first sparse layer at many λ, clean and under Gaussian noise.

    Args:
        net: A network with a sparse layer.
        followers: Images that adaptation sees; the first `LANDSCAPE_IMAGES` are used.
        settings: For ε.
        seed: Of the noise.

    Returns:
        One entry a severity, 0 for clean: `corruption`, `severity`, and lists `threshold`, `error`, `objective`, `sparsity`.
    """
    layer = next(iter(sparse_layers(net).values()))
    images = pixels(some(followers, np.arange(min(LANDSCAPE_IMAGES, len(followers)))))
    at = torch.logspace(-2, 1, 31)
    out: list[dict[str, Any]] = []
    for severity in (0, *SEVERITIES):
        name = "gaussian_noise" if severity else "clean"
        x = damaged(images, name, severity, seed).to(layer.weight.device)
        found = zip(
            ("error", "objective", "sparsity"), objective_curve(layer, x, at, settings.offset), strict=True
        )
        values = {"threshold": at} | dict(found)
        lists = {k: [float(f"{float(a):.5g}") for a in v] for k, v in values.items()}
        out.append({"corruption": name, "severity": severity} | lists)
    return out


def _layer(found: Adapted, row: int) -> list[float | None]:
    """λ, error and sparsity of the first layer at one step."""
    return [round(float(t[row, 0]), 5) for t in (found.threshold, found.error, found.sparsity)]
