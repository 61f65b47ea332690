"""Losses for long tails that CAR is measured against. Each is a mean over the batch.

Cross-entropy; class-balanced cross-entropy (Cui et al. 2019, eq. 2 and 12); focal loss (Lin et al. 2017); LDAM with deferred
re-weighting (Cao et al. 2019, eq. 13 and algorithm 1); logit adjustment (Menon et al. 2021, eq. 10), which at tau = 1 is the balanced
softmax (Ren et al. 2020). Counts are training samples of each class.
"""

from __future__ import annotations

import torch
import torch.nn.functional as F

from core.car.weights import Counts, as_counts


def effective_weights(counts: Counts, beta: float = 0.999) -> torch.Tensor:
    """Class-balanced weights (1 - beta) / (1 - beta^n), divided by their mean, `(K,)` float64. A class without samples gets 0.

    Args:
        counts: `(K,)`.
        beta: In [0, 1); 0 gives ones, towards 1 they become 1/n.

    Raises:
        ValueError: beta is outside [0, 1).
    """
    if not 0 <= beta < 1:
        raise ValueError(f"beta is {beta}; it must be at least 0 and below 1.")
    n = as_counts(counts)
    w = torch.where(n > 0, (1 - beta) / (1 - beta**n).clamp(min=1e-12), 0.0)
    return w / w[n > 0].mean()


def class_balanced(logits: torch.Tensor, labels: torch.Tensor, weights: torch.Tensor) -> torch.Tensor:
    """Cross-entropy of each sample times its class's weight, mean over the batch.

    Args:
        logits: `(B, K)`.
        labels: `(B,)`.
        weights: `(K,)` from `effective_weights`.
    """
    each = F.cross_entropy(logits.float(), labels, reduction="none")
    return (each * weights.to(each)[labels]).mean()


def focal(logits: torch.Tensor, labels: torch.Tensor, gamma: float = 2.0) -> torch.Tensor:
    """Mean of (1 - p_y)^gamma · (-log p_y); the factor carries a gradient.

    Args:
        logits: `(B, K)`.
        labels: `(B,)`.
        gamma: >= 0; 0 is cross-entropy.
    """
    log_p = torch.log_softmax(logits.float(), 1).gather(1, labels[:, None])[:, 0]
    missing = (-torch.expm1(log_p)).clamp(
        min=torch.finfo(log_p.dtype).tiny
    )  # a power below 1 has no slope at 0
    return -(missing**gamma * log_p).mean()


def ldam_margins(counts: Counts, largest: float = 0.5) -> torch.Tensor:
    """Margins of LDAM, proportional to n^(-1/4), the largest one given, `(K,)` float64. A class without samples counts as one of 1.

    Args:
        counts: `(K,)`.
        largest: Margin of the rarest class, in units of the cosine.
    """
    m = as_counts(counts).clamp(min=1) ** -0.25
    return m * (largest / m.max())


def ldam(
    logits: torch.Tensor,
    labels: torch.Tensor,
    margins: torch.Tensor,
    scale: float = 30.0,
    weights: torch.Tensor | None = None,
) -> torch.Tensor:
    """Cross-entropy with the true class's logit lowered by scale · margin.

    Args:
        logits: `(B, K)` of a cosine head, scale included.
        labels: `(B,)`.
        margins: `(K,)` from `ldam_margins`.
        scale: The head's scale.
        weights: `(K,)` from `drw_weights`; a weighted mean is taken.
    """
    f = logits.float()
    drop = scale * margins.to(f)[labels]
    lowered = f - F.one_hot(labels, f.shape[1]) * drop[:, None]
    return F.cross_entropy(lowered, labels, weight=None if weights is None else weights.to(f))


def drw_weights(
    counts: Counts, epoch: int, epochs: int, defer: float = 0.8, beta: float = 0.9999
) -> torch.Tensor:
    """Deferred re-weighting: ones for the first share of the epochs, class-balanced weights after it.

    Args:
        counts: `(K,)`.
        epoch: Current epoch, from 0.
        epochs: All epochs.
        defer: Share of the epochs that goes without weights.
        beta: Of `effective_weights`.
    """
    return effective_weights(counts, beta if epoch >= defer * epochs else 0.0)


def log_prior(counts: Counts) -> torch.Tensor:
    """Log of each class's share of the training set, `(K,)` float64; a class without samples counts as one of 1."""
    n = as_counts(counts).clamp(min=1)
    return (n / n.sum()).log()


def logit_adjusted(
    logits: torch.Tensor, labels: torch.Tensor, prior: torch.Tensor, tau: float = 1.0
) -> torch.Tensor:
    """Cross-entropy of the logits plus tau · log prior, in training only; tau = 1 is the balanced softmax.

    Args:
        logits: `(B, K)`.
        labels: `(B,)`.
        prior: `(K,)` from `log_prior`.
        tau: Strength; 0 is cross-entropy.
    """
    return F.cross_entropy(logits.float() + tau * prior.to(logits.device, torch.float32), labels)
