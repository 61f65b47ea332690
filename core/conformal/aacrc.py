"""AA-CRC: a threshold that is linear in features of the image, fitted so that risk is calibrated against every such feature.

For thresholds theta . Phi(x) and sets {score >= threshold}, the objective of AA-CRC (Blot and others) is linear quantile
regression of lesion scores on Phi at level alpha', each image weighted equally: the integral of (miss - alpha') up to u is
(1/m) sum_j max(u - score_j, 0) - alpha' u (METHODS 1.8). At its minimum the mean of (miss - alpha') Phi is zero: risk is right on
average over the whole pool (the intercept) and along every feature. alpha' = alpha - (1 - alpha)/n is CRC's own correction.
The split version promises this on the calibration images only; with a shift from images that theta did not see (`control.calibrate`
on the other half) CRC's guarantee holds as for any other threshold. Thresholds are not clipped.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import torch

from core.conformal.control import subset_flags
from core.conformal.curves import CoverageCurves


@dataclass(frozen=True)
class AdaptiveFit:
    """A fitted linear threshold.

    Attributes:
        theta: `(E + 1,)` float64, the intercept last.
        alpha: Share that may be missed on average.
        level: alpha', the level that was fitted.
        n: Images with a lesion that were used.
        imbalance: Largest |mean of (miss - alpha') Phi| over features at theta, the ridge's pull removed; 0 is exact.
    """

    theta: torch.Tensor
    alpha: float
    level: float
    n: int
    imbalance: float

    def tau_hat(self, features: torch.Tensor) -> torch.Tensor:
        """Thresholds `(N,)` float32 of images with features `(N, E)`."""
        return (with_intercept(features.double()) @ self.theta).float()


def with_intercept(features: torch.Tensor) -> torch.Tensor:
    """Append the constant feature, without which nothing is said of the average. `(N, E)` -> `(N, E + 1)`."""
    return torch.cat([features, torch.ones(len(features), 1, dtype=features.dtype)], 1)


class MissIntegral:
    """The integral of an image's miss up to a threshold, for all images at once.

    Args:
        curves: N images, exact or binned; those without lesion contribute nothing.
    """

    def __init__(self, curves: CoverageCurves) -> None:
        rows, total = curves.lesion.dense
        there = torch.isfinite(rows)
        count = torch.where(there, 1.0, 0.0).double() if total is None else total.diff(dim=1)
        share = count / curves.lesion_size.clamp(min=1).double()[:, None]
        value = torch.where(there, rows, torch.inf).double().flip(1)  # rising, padding first is moved last below
        share = share.flip(1)
        order = value.argsort(dim=1, stable=True)
        self.value, share = value.gather(1, order), share.gather(1, order)
        zero = torch.zeros(len(rows), 1, dtype=torch.float64)
        finite = torch.where(torch.isfinite(self.value), self.value, 0.0)
        self._mass = torch.cat([zero, share.cumsum(1)], 1)
        self._moment = torch.cat([zero, (share * finite).cumsum(1)], 1)

    def __call__(self, u: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        """Integral and miss at thresholds u `(N,)` float64: (1/m) sum max(u - s, 0), and the share of s < u."""
        at = torch.searchsorted(self.value, u[:, None].contiguous())
        miss = self._mass.gather(1, at)[:, 0]
        return u * miss - self._moment.gather(1, at)[:, 0], miss


def fit_aacrc(
    curves: CoverageCurves,
    features: torch.Tensor,
    alpha: float,
    subset: np.ndarray | None = None,
    ridge: float = 1e-3,
) -> AdaptiveFit:
    """Fit AA-CRC's linear threshold on calibration images.

    Args:
        curves: N images.
        features: `(N, E)` embedding Phi without intercept; standardised inside, so its scale does not matter.
        alpha: Share that may be missed on average, in (0, 1).
        subset: Calibration images, `(N,)` bool or indices; None takes all.
        ridge: Weight of |theta|^2 / 2 on the standardised features, the intercept left out.

    Raises:
        ValueError: Features of another length, not finite, or so few images that alpha' is not positive.
    """
    from scipy.optimize import minimize

    if features.ndim != 2 or len(features) != len(curves):
        raise ValueError(f"There are {len(curves)} images and features of shape {tuple(features.shape)}.")
    if not torch.isfinite(features).all():
        raise ValueError("A feature is not a finite number.")
    index = (subset_flags(len(curves), subset) & curves.has_lesion).nonzero()[:, 0]
    n = len(index)
    level = alpha - (1 - alpha) / n if n else 0.0
    if level <= 0:
        raise ValueError(f"{n} images cannot carry AA-CRC at alpha = {alpha}: alpha - (1 - alpha)/n must be positive.")
    integral = MissIntegral(curves.select(index.numpy()))
    x = features[index].double()
    mean, scale = x.mean(0), (x - x.mean(0)).square().mean(0).sqrt().clamp(min=1e-9)
    phi = with_intercept((x - mean) / scale)

    def objective(theta: np.ndarray) -> tuple[float, np.ndarray]:
        t = torch.from_numpy(theta)
        u = phi @ t
        total, miss = integral(u)
        slope = phi.T @ (miss - level) / n
        slope[:-1] += ridge * t[:-1]
        return float((total - level * u).mean() + 0.5 * ridge * t[:-1].square().sum()), slope.numpy()

    start = np.zeros(phi.shape[1])
    lesion = integral.value[torch.isfinite(integral.value)]
    start[-1] = float(lesion.quantile(min(level, 1.0))) if lesion.numel() < 10_000_000 else float(lesion.median())
    found = minimize(objective, start, jac=True, method="L-BFGS-B", options={"maxiter": 2000, "ftol": 1e-15, "gtol": 1e-10})
    theta = torch.from_numpy(found.x.copy())
    _, slope = objective(found.x)
    back = torch.cat([theta[:-1] / scale, (theta[-1] - (theta[:-1] * mean / scale).sum())[None]])
    return AdaptiveFit(back, alpha, level, n, float(np.abs(slope).max()))
