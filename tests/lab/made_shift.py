"""A small layer that listens, smooth and noisy pictures, and a folder with a monitor and damaged phantoms. Nothing is trained."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import torch
from torch import nn

from core.lab.shift_ears import View
from core.lab.shift_fit import fit_monitor
from core.lab.shift_monitor import Monitor, save_monitor
from core.settings.tacsc import TacscSettings
from core.tacsc.layer import CSCConv2d

VIEW = View(side=48, crop=32, count=2)


def listener(seed: int = 0) -> nn.Module:
    """A network of one sparse layer with a known L, in eval mode."""
    layer = CSCConv2d(3, 8, 3, 1, 1, TacscSettings(), torch.Generator().manual_seed(seed))
    layer.estimate(32, 32)
    return nn.Sequential(layer.requires_grad_(False)).eval()


def picture(seed: int, noise: float = 0.0, side: int = 48) -> np.ndarray:
    """A smooth coloured picture `(side, side, 3)` uint8, with noise of so many grey levels on it."""
    rng = np.random.default_rng(seed)
    coarse = rng.uniform(40, 210, (4, 4, 3))
    at = np.linspace(0, 3, side)
    low = np.floor(at).astype(int).clip(0, 2)
    t = (at - low)[:, None, None]
    rows = coarse[low] * (1 - t) + coarse[low + 1] * t
    t = (at - low)[None, :, None]
    smooth = rows[:, low] * (1 - t) + rows[:, low + 1] * t
    return np.clip(smooth + noise * rng.standard_normal(smooth.shape), 0, 255).astype(np.uint8)


def monitor(domain: str = "phantom", view: View = VIEW, facts: dict | None = None) -> Monitor:
    """A monitor whose reference are 40 smooth pictures, its limit 40 others."""
    base, held = ([picture(s) for s in range(start, start + 40)] for start in (0, 100))
    rows = [
        {"corruption": c, "severity": s, "images": n, "auroc": a, "warned": w}
        for n in (1, 16)
        for c, s, a, w in (
            ("clean", 0, None, 0.05),
            ("gaussian_noise", 3, 0.9, 0.7),
            ("gaussian_blur", 3, 0.6, 0.2),
        )
    ]
    given = {"network": "made-up", "source": "D2", "command": "none", "measured_images": 40, "rows": rows}
    return fit_monitor(domain, listener(), base, held, view, facts or given)


def shelf(folder: Path, *domains: str) -> Path:
    """A folder laid out like `assets/` with monitors in it."""
    for domain in domains:
        save_monitor(monitor(domain), folder)
    return folder
