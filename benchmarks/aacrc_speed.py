"""AA-CRC, fit plus 100 test images: exact quantile regression against MAPIE's gradient training, on one embedding and the same scores.

Both control the same risk on average. MAPIE's `ConditionalExpectedRiskController` is the full conformal form: for every test image the
linear threshold is trained again with that image's worst loss in the sum. Ours, as the pages use it, is the split form: one half of
the calibration images sets the threshold, the other finds an exact shift, and a test image costs one product; `ratio_time` is over this.
`ratio_time_same_form` is over our own full form (`fit_aacrc(..., new=...)`, one exact refit a test image), while MAPIE makes as many
epochs a test image as it is told (2 by default, which is far from its optimum: `threshold_difference`; `--test-epochs` sets more).

Images are made up: a feature tells how far their probabilities are shifted, another tells nothing. MAPIE's step and epochs are printed:
with its default step (1e-4) the threshold cannot leave its start, so it gets one with which its first fit converges. Coverage is that
of the test images; split form and MAPIE must agree within two paired standard errors.
"""

from __future__ import annotations

import argparse
import math
import time
from typing import Any

import numpy as np
import torch

from core.conformal import CoverageCurves, calibrate
from core.conformal.aacrc import fit_aacrc

SETTINGS = {"learning_rate": 0.03, "fit_epochs": 60, "batch_size": 256}
"""MAPIE's: Adam's step, epochs of the fit, images in a step (its default: all at once)."""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Flags of this benchmark."""
    parser.add_argument("--images", type=int, default=150, help="calibration images")
    parser.add_argument("--tests", type=int, default=100, help="test images")
    parser.add_argument("--side", type=int, default=32, help="side of a map in pixels")
    parser.add_argument("--alpha", type=float, default=0.1)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--test-epochs", type=int, default=2, help="MAPIE's epochs a test image")


def made(n: int, side: int, seed: int) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    """Probability maps `(n, side, side)`, masks of the same shape, and the embedding `(n, 2)`."""
    rng = torch.Generator().manual_seed(seed)
    features = torch.randn(n, 2, generator=rng)
    spread = 0.1 + 0.1 * torch.rand(n, 1, 1, generator=rng)
    maps = 0.5 + 0.08 * features[:, 0, None, None] + spread * torch.randn(n, side, side, generator=rng)
    share = 0.05 + 0.4 * torch.rand(n, 1, 1, generator=rng)
    return maps.clamp(0.01, 0.99), torch.rand(n, side, side, generator=rng) < share, features


def mapie(
    maps: torch.Tensor,
    masks: torch.Tensor,
    features: torch.Tensor,
    n: int,
    alpha: float,
    seed: int,
    test_epochs: int,
) -> np.ndarray:
    """Thresholds of the test images by MAPIE's controller."""
    from mapie.risk_control import ConditionalExpectedRiskController

    scores, truth, phi = maps.numpy(), masks.numpy().astype(float), features.numpy()
    controller = ConditionalExpectedRiskController(
        predict_function=lambda x, parameter=None: scores[x],
        feature_map=lambda x: phi[np.atleast_1d(x)],
        target_level=alpha,
        risk="recall",
        learning_rate=SETTINGS["learning_rate"],
    )
    batch = int(SETTINGS["batch_size"])
    with torch.random.fork_rng():
        torch.manual_seed(seed)
        controller.conformalize(
            np.arange(n), truth[:n], n_epochs=int(SETTINGS["fit_epochs"]), batch_size=batch
        )
        controller.predict(np.arange(n, len(scores)), n_epochs=test_epochs, batch_size=batch)
    return np.asarray(controller.best_predict_params_)


def run(args: argparse.Namespace) -> dict[str, Any]:
    """Time both on the same work in one process."""
    n, m, side = args.images, args.tests, args.side
    if args.quick:
        n, m, side = min(n, 60), min(m, 100), min(side, 16)
    maps, masks, features = made(n + m, side, args.seed)
    chosen, testing = np.arange(n), np.arange(n, n + m)

    began = time.perf_counter()
    curves = CoverageCurves.from_maps(maps[:n], masks[:n])
    full = np.array(
        [
            float(fit_aacrc(curves, features[:n], args.alpha, ridge=0.0, new=f).tau_hat(f[None])[0])
            for f in features[n:]
        ]
    )
    seconds_full = time.perf_counter() - began

    began = time.perf_counter()
    curves = CoverageCurves.from_maps(maps[:n], masks[:n])
    fit = fit_aacrc(curves, features[:n], args.alpha, chosen[: n // 2], ridge=0.0)
    shift = calibrate(curves, fit.tau_hat(features[:n]), args.alpha, chosen[n // 2 :], "AA-CRC").shift
    split = (fit.tau_hat(features[n:]) - shift).numpy()
    seconds_split = time.perf_counter() - began

    began = time.perf_counter()
    theirs = mapie(maps, masks, features, n, args.alpha, args.seed, args.test_epochs)
    seconds_mapie = time.perf_counter() - began

    tested = CoverageCurves.from_maps(maps[testing], masks[testing])
    there = tested.has_lesion.numpy()
    covered = {
        name: tested.coverage(torch.from_numpy(np.asarray(tau, np.float32)))[:, 0].numpy()[there]
        for name, tau in (("full", full), ("split", split), ("mapie", theirs))
    }
    apart = covered["split"] - covered["mapie"]
    rows = [
        {
            "tool": "MAPIE, a refit a test image",
            "seconds": seconds_mapie,
            "coverage": float(covered["mapie"].mean()),
        },
        {
            "tool": "Plumbline, a refit a test image",
            "seconds": seconds_full,
            "coverage": float(covered["full"].mean()),
        },
        {
            "tool": "Plumbline, split with shift",
            "seconds": seconds_split,
            "coverage": float(covered["split"].mean()),
        },
    ]
    return {
        "rows": rows,
        "ratio_time": seconds_mapie / seconds_split,
        "ratio_time_same_form": seconds_mapie / seconds_full,
        "coverage_difference": float(apart.mean()),
        "coverage_se": float(apart.std(ddof=1) / math.sqrt(len(apart))),
        "threshold_difference": float(np.abs(full - theirs).max()),
        "settings": {
            "mapie": SETTINGS | {"test_epochs": args.test_epochs},
            "images_used": n,
            "tests_used": m,
            "side_used": side,
        },
    }
