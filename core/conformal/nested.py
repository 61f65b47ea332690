"""One predictor for every alpha: where calibrated sets of two alphas cross, and thresholds that nest them again.

A predictor may give thresholds tau_hat(alpha) that rise in alpha, as they must: who may miss more marks less. The shift t(alpha) is found for
each alpha alone, and tau'(alpha) = tau_hat(alpha) - t(alpha) need not rise: then a set that promises more leaves out what a set that promises less
holds. tau''(alpha) = min over alpha' >= alpha of tau'(alpha') rises, so its sets nest; it is never above tau'(alpha), so its set holds the old one
and covers at least as much of every lesion: each promise is kept, at a little more area. Nothing is calibrated here.
"""

from __future__ import annotations

import torch


def nested_thresholds(tau: torch.Tensor) -> torch.Tensor:
    """Thresholds whose sets nest.

    Args:
        tau: `(N, A)` calibrated thresholds tau' at rising alphas; -inf is the whole image.

    Returns:
        `(N, A)` thresholds tau'' <= tau', rising along alpha.

    Raises:
        ValueError: Not two axes, or a threshold that is no number.
    """
    return _checked(tau).flip(1).cummin(dim=1).values.flip(1)


def crossings(tau: torch.Tensor) -> int:
    """Images with at least one pair alpha < alpha' whose thresholds stand the wrong way round, tau'(alpha) > tau'(alpha').

    Args:
        tau: `(N, A)` calibrated thresholds at rising alphas.

    Raises:
        ValueError: Not two axes, or a threshold that is no number.
    """
    return int((nested_thresholds(tau) < tau).any(dim=1).sum())


def _checked(tau: torch.Tensor) -> torch.Tensor:
    if tau.ndim != 2 or torch.isnan(tau).any():
        raise ValueError(
            f"Thresholds must be (N, A) numbers at rising alphas; these are {tuple(tau.shape)}, or one is no number."
        )
    return tau
