"""AA-CRC: a threshold that is linear in features of the image, fitted so that risk is calibrated against every such feature.

For thresholds theta . Phi(x) and sets {score >= threshold}, the objective of AA-CRC (Blot and others, 2025) is linear quantile
regression of lesion scores on Phi at level alpha', each image weighted equally: the integral of (miss - alpha') up to u is
(1/m) sum_j max(u - score_j, 0) - alpha' u (METHODS 1.8). At its minimum the mean of (miss - alpha') Phi is zero: risk is right on
average over the whole pool (the intercept) and along every feature. alpha' = alpha - (1 - alpha)/n is CRC's own correction.

Two forms. *Full conformal*, the paper's and MAPIE's: theta is fitted anew for every new image, whose worst miss, 1, stands in the sum:
sum_i (miss_i - alpha) Phi_i + (1 - alpha) Phi_new = 0. It promises for the new image, without a second half. *Split*, the one used here:
one theta for all. It is the full form with the calibration images' mean features in place of the new image's, for then
(1 - alpha) mean Phi moves into the sum and alpha becomes alpha'. So it is right on the calibration images only; with a shift from
images that theta did not see (`control.calibrate` on the other half) CRC's guarantee holds as for any other threshold. A small ridge
pulls the slopes towards zero and leaves the intercept alone. Thresholds are not clipped.
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
        imbalance: Largest entry of the objective's slope at theta, on standardised features: without a ridge the largest
            |mean of (miss - alpha') Phi|. 0 is exact; a few images with a score just at their threshold leave a little.
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
        index: `(n,)` images that count, in this order; None takes all.
    """

    def __init__(self, curves: CoverageCurves, index: torch.Tensor | None = None) -> None:
        rows, total = curves.lesion.dense
        size = curves.lesion_size
        if index is not None:
            rows, size = rows[index], size[index]
            total = None if total is None else total[index]
        value = rows.double().flip(1).contiguous()  # rising; the padding comes first and weighs nothing
        there = torch.isfinite(value)
        count = there.double() if total is None else total.diff(dim=1).flip(1)
        share = count / size.clamp(min=1)[:, None]
        self._centre = (
            float(value[there].mean()) if bool(there.any()) else 0.0
        )  # against cancellation far from 0
        finite = torch.where(there, value - self._centre, 0.0)
        zero = torch.zeros(len(rows), 1, dtype=torch.float64)
        self.value = value
        self._moments = torch.stack(
            [torch.cat([zero, (share * finite**k).cumsum(1)], 1) for k in range(3)], dim=2
        )

    def __call__(self, u: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        """Integral and miss at thresholds u `(N,)` float64: (1/m) sum max(u - s, 0), and the share of s < u."""
        mass, moment, _ = self._below(u)
        return (u - self._centre) * mass - moment, mass

    def smooth(self, u: torch.Tensor, h: float) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
        """The integral averaged over [u - h, u + h] and its two derivatives, `(N,)` each.

        The average lies above the integral by h/4 at most, which bounds what is lost by minimising it instead.
        """
        twice, first, mass = [], [], []
        for v in (u - h, u + h):
            m0, m1, m2 = self._below(v)
            v = v - self._centre
            twice.append((v * v * m0 - 2 * v * m1 + m2) / 2)
            first.append(v * m0 - m1)
            mass.append(m0)
        return tuple((high - low) / (2 * h) for low, high in (twice, first, mass))  # type: ignore[return-value]

    def _below(self, u: torch.Tensor) -> tuple[torch.Tensor, ...]:
        """Sums of 1, s and s^2 over the scores s < u, s counted from the centre, each divided by m: three times `(N,)`."""
        at = torch.searchsorted(self.value, u[:, None].contiguous())
        return self._moments[torch.arange(len(u)), at[:, 0]].unbind(1)


def fit_aacrc(
    curves: CoverageCurves,
    features: torch.Tensor,
    alpha: float,
    subset: np.ndarray | None = None,
    ridge: float = 1e-3,
    new: torch.Tensor | None = None,
) -> AdaptiveFit:
    """Fit AA-CRC's linear threshold on calibration images.

    Args:
        curves: N images.
        features: `(N, E)` embedding Phi without intercept; standardised inside, so its scale does not matter.
        alpha: Share that may be missed on average, in (0, 1).
        subset: Calibration images, `(N,)` bool or indices; None takes all.
        ridge: Weight of |theta|^2 / 2 on the standardised features, the intercept left out.
        new: `(E,)` features of the one new image that the full conformal form is fitted for; None gives the split form.

    Raises:
        ValueError: Features of another length, not finite, or so few images that alpha' is not positive.
    """
    if features.ndim != 2 or len(features) != len(curves):
        raise ValueError(f"There are {len(curves)} images and features of shape {tuple(features.shape)}.")
    if not torch.isfinite(features).all():
        raise ValueError("A feature is not a finite number.")
    index = (subset_flags(len(curves), subset) & curves.has_lesion).nonzero()[:, 0]
    n = len(index)
    level = alpha - (1 - alpha) / n if n else 0.0
    if level <= 0:
        raise ValueError(
            f"{n} images cannot carry AA-CRC at alpha = {alpha}: alpha - (1 - alpha)/n must be positive."
        )
    integral = MissIntegral(curves, index)
    x = features[index].double()
    mean = x.mean(0)
    scale = (x - mean).square().mean(0).sqrt().clamp(min=1e-9)
    phi = with_intercept((x - mean) / scale)
    worst = phi.mean(0) if new is None else with_intercept(((new.double() - mean) / scale)[None])[0]
    wanted = alpha * phi.mean(0) - (1 - alpha) / n * worst
    pull = torch.full((phi.shape[1],), float(ridge), dtype=torch.float64)
    pull[-1] = 0.0
    theta = _minimise(integral, phi, wanted, pull)
    _, miss = integral(phi @ theta)
    imbalance = float((phi.T @ miss / n - wanted + pull * theta).abs().max())
    back = torch.cat([theta[:-1] / scale, (theta[-1] - (theta[:-1] * mean / scale).sum())[None]])
    return AdaptiveFit(back, alpha, level, n, imbalance)


def _minimise(
    integral: MissIntegral, phi: torch.Tensor, wanted: torch.Tensor, pull: torch.Tensor, steps: int = 40
) -> torch.Tensor:
    """Newton's method with a damped Hessian on the smoothed integral, at ever finer smoothing.

    Args:
        integral: n images.
        phi: `(n, E + 1)` float64 standardised features and the intercept.
        wanted: `(E + 1,)` the value that the mean of miss times Phi is to have: alpha' times the mean of Phi in the split form.
        pull: `(E + 1,)` weights of the ridge.
        steps: Steps at one smoothing at most.

    Returns:
        theta `(E + 1,)`, whose objective is above the least one by h/4 at most, h = 1e-4 of the spread of the lesion scores.
    """
    finite = integral.value[torch.isfinite(integral.value)]
    spread = max(float(finite.std()) if len(finite) > 1 else 0.0, 1e-6)
    theta = torch.zeros(phi.shape[1], dtype=torch.float64)
    theta[-1] = finite.median()
    eye = torch.eye(len(theta), dtype=torch.float64)

    def objective(theta: torch.Tensor, h: float) -> tuple[float, torch.Tensor, torch.Tensor]:
        u = phi @ theta
        total, miss, density = integral.smooth(u, h)
        value = total.mean() - wanted @ theta + 0.5 * (pull * theta * theta).sum()
        slope = phi.T @ miss / len(u) - wanted + pull * theta
        return float(value), slope, (phi.T * density) @ phi / len(u) + torch.diag(pull)

    for fine in (1, 10, 100, 1e3, 1e4):
        h, enough = spread / fine, 1e-7 if fine == 1e4 else 1e-3
        value, slope, bend = objective(theta, h)
        damping = 1e-3 / spread
        for _ in range(steps):
            if float(slope.abs().max()) < enough:
                break
            tried = theta - torch.linalg.solve(bend + damping * eye, slope)
            found = objective(tried, h)
            if found[0] < value:
                theta, (value, slope, bend), damping = tried, found, damping / 10
            else:
                damping *= 10
                if damping * spread > 1e9:
                    break
    return theta
