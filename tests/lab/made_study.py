"""A small study and promises out of thin air: no assets, no network, the real calibration."""

from __future__ import annotations

import numpy as np
import torch

from core.coat.thresholds import ALPHA_KNOTS, oracle_thresholds, plug_in_thresholds
from core.conformal import CoverageCurves
from core.lab.promise import Promise
from core.lab.study import METHODS, Split, Study, split_study


def made_maps(n: int = 40, side: int = 24, empty: int = 2) -> tuple[torch.Tensor, torch.Tensor]:
    """Logits and masks `(n, side, side)`; the last `empty` images show no lesion."""
    rng = np.random.default_rng(5)
    y, x = np.mgrid[:side, :side]
    masks = np.stack([np.hypot(y - side / 2, x - side / 2) < r for r in rng.uniform(3, 8, n)])
    masks[n - empty :] = False
    hard = rng.normal(0, 1.5, n)[:, None, None]
    logits = np.where(masks, 2.0, -3.0) + hard + rng.normal(0, 1.5, masks.shape)
    return torch.from_numpy(logits).float().clamp(-15, 15), torch.from_numpy(masks)


def made_study(name: str = "made-up") -> Study:
    """A binned study whose AT and COAT thresholds are noisy oracles."""
    logits, masks = made_maps()
    curves = CoverageCurves.from_maps(logits, masks, [f"made-{i}" for i in range(len(logits))]).to_bins()
    generator = torch.Generator().manual_seed(0)
    oracle = torch.stack([oracle_thresholds(curves, float(a)).nan_to_num(nan=0.0) for a in ALPHA_KNOTS], 1)
    knots = {"plug-in": plug_in_thresholds(curves, ALPHA_KNOTS)}
    for method in ("AT", "COAT"):
        knots[method] = oracle + 0.5 * torch.randn(len(curves), 1, generator=generator)
    return Study(name, curves, knots, {})


def made_split(alpha: float = 0.1, name: str = "made-up") -> Split:
    """One draw of the made-up study."""
    return split_study(made_study(name), alpha, seed=3)


def made_promise(
    name: str = "made.png", *, mask: bool = True, alpha: float = 0.1, model: str = "made-up"
) -> Promise:
    """A promise about one made-up image with four different thresholds."""
    logits, masks = (a[0].numpy() for a in made_maps(3))
    truth = masks if mask else None
    tau = dict(zip(METHODS, (0.5, -0.4, -0.9, -1.5), strict=True))
    inside = {m: logits >= t for m, t in tau.items()}
    return Promise(
        alpha, model, name, tau, dict.fromkeys(METHODS, 0.0), {m: float(s.mean()) for m, s in inside.items()},
        {m: float(s[masks].mean()) for m, s in inside.items()} if mask else None, -1.0 if mask else None,
        logits, np.full((*logits.shape, 3), 120, np.uint8), truth, ("The promise.", "The cost."), ("A note.",),
    )  # fmt: skip
