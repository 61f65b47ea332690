"""Losses for calibrated segmentation, written on logit distances: cross-entropy, label smoothing, spatially varying label smoothing, focal,
explicit entropy penalty, and the margin that leaves distances below m alone.

What it is not: a training loop, or a metric. The margin penalty is that of Liu, Ben Ayed, Galdran and Dolz (*The devil is in the margin*,
CVPR 2022, equation 10) and of Murugesan and others (medical segmentation, 2023): d_k = max_j l_j - l_k, penalty mean over pixels and classes of
max(0, d_k - m). The mean over classes follows the published code; the paper's sum is the mean with K times the weight.

All losses take logits `(N, K, *)` in any floating type (float32 inside, float64 stays), target `(N, *)` integers, and an optional `ignore`
`(N, *)` bool whose True pixels count nowhere. All return a scalar, the mean over counted pixels.
"""

from __future__ import annotations

from collections.abc import Callable

import torch
import torch.nn.functional as F
from torch import nn

from core.margin.counted import checked, finite, kept, mean_over, wide
from core.margin.excess import excess_over_margin
from core.settings.knob import check
from core.settings.margin import LOSSES, MarginSettings

Loss = Callable[..., torch.Tensor]
"""`(logits, target, ignore=None) -> scalar`."""

__all__ = [
    "LOSSES",
    "SegmentationLoss",
    "cross_entropy",
    "entropy_penalty",
    "focal",
    "label_smoothing",
    "logit_distances",
    "loss_of",
    "margin_loss",
    "margin_penalty",
    "smoothing_kernel",
    "soft_dice",
    "spatial_label_smoothing",
]


def logit_distances(logits: torch.Tensor) -> torch.Tensor:
    """How far each logit lies below the largest one of its pixel.

    Args:
        logits: `(N, K, *)`.

    Returns:
        `(N, K, *)`, >= 0, in logits; 0 for the predicted class.
    """
    x = wide(logits)
    return x.amax(1, keepdim=True) - x


def cross_entropy(
    logits: torch.Tensor, target: torch.Tensor, ignore: torch.Tensor | None = None
) -> torch.Tensor:
    """Cross-entropy, mean over counted pixels. See the module for shapes.

    Raises:
        ValueError: Shapes do not fit, a label is outside the classes, the logits hold NaN, or every pixel is ignored.
    """
    x, y, keep = checked(logits, target, ignore)
    return mean_over(F.cross_entropy(x, y, reduction="none"), keep)


def label_smoothing(
    logits: torch.Tensor, target: torch.Tensor, smoothing: float = 0.1, ignore: torch.Tensor | None = None
) -> torch.Tensor:
    """Cross-entropy against labels of which a share is spread evenly over all classes.

    It equals CE + a * mean_k(l_y - l_k): a linear penalty on signed logit distances, with the target that all are zero.

    Args:
        logits: `(N, K, *)`.
        target: `(N, *)`.
        smoothing: a, the share that is spread, in [0, 1].
        ignore: `(N, *)` bool.

    Raises:
        ValueError: As in `cross_entropy`.
    """
    x, y, keep = checked(logits, target, ignore)
    return mean_over(F.cross_entropy(x, y, reduction="none", label_smoothing=smoothing), keep)


def smoothing_kernel(sigma: float = 1.0) -> torch.Tensor:
    """The 3x3 weights of spatially varying label smoothing: Gaussian neighbours that together weigh as much as the centre.

    Args:
        sigma: Width of the Gaussian in pixels, above 0.

    Returns:
        `(3, 3)` float64 with sum 1 and centre 1/2; for sigma 1 edges are 0.0778 and corners 0.0472.
    """
    at = torch.arange(-1.0, 2.0, dtype=torch.float64)
    weight = torch.exp(-(at[:, None] ** 2 + at[None] ** 2) / (2 * sigma**2))
    weight[1, 1] = 0.0
    weight[1, 1] = weight.sum()
    return weight / weight.sum()


def spatial_label_smoothing(
    logits: torch.Tensor, target: torch.Tensor, sigma: float = 1.0, ignore: torch.Tensor | None = None
) -> torch.Tensor:
    """Cross-entropy against labels smoothed over the eight neighbours (SVLS, Islam and Glocker, 2021): soft at boundaries, hard elsewhere.

    Args:
        logits: `(N, K, H, W)`; the neighbourhood is two-dimensional.
        target: `(N, H, W)`.
        sigma: Width of the Gaussian in pixels.
        ignore: `(N, H, W)` bool; ignored pixels lend no label to their neighbours.

    Raises:
        ValueError: As in `cross_entropy`, or logits that are not four-dimensional.
    """
    if logits.ndim != 4:
        raise ValueError(
            f"Spatially varying label smoothing needs logits (N, K, H, W), not {tuple(logits.shape)}; "
            "cut volumes into slices."
        )
    x, y, keep = checked(logits, target, ignore)
    k = x.shape[1]
    hard = F.one_hot(y, k).movedim(-1, 1).to(x.dtype)
    known = torch.ones_like(hard[:, :1]) if keep is None else keep[:, None].to(x.dtype)
    kernel = smoothing_kernel(sigma).to(x)[None, None]
    padded = F.pad(torch.cat([hard * known, known], 1), (1, 1, 1, 1), mode="replicate")
    spread = F.conv2d(padded, kernel.expand(k + 1, 1, 3, 3), groups=k + 1)
    soft = spread[:, :k] / spread[:, k:].clamp(min=1e-12)
    return mean_over(-(soft * F.log_softmax(x, 1)).sum(1), keep)


def focal(
    logits: torch.Tensor, target: torch.Tensor, gamma: float = 3.0, ignore: torch.Tensor | None = None
) -> torch.Tensor:
    """Focal loss (Lin and others, 2017): mean of (1 - p_y)^gamma * (-log p_y); the factor carries gradient.

    For gamma >= 1 it is at least CE - gamma * entropy: it too pushes towards uniform predictions.

    Args:
        logits: `(N, K, *)`.
        target: `(N, *)`.
        gamma: Exponent, 0 or more; 0 is cross-entropy.
        ignore: `(N, *)` bool.

    Raises:
        ValueError: As in `cross_entropy`.
    """
    x, y, keep = checked(logits, target, ignore)
    nll = F.cross_entropy(x, y, reduction="none")
    if gamma == 0:
        return mean_over(nll, keep)
    # 1 - p without the loss of digits near p = 1; the floor keeps the slope of a broken power finite at exactly 1
    miss = (-torch.expm1(-nll)).clamp(min=torch.finfo(x.dtype).tiny)
    return mean_over(miss**gamma * nll, keep)


def entropy_penalty(
    logits: torch.Tensor,
    target: torch.Tensor,
    weight: float = 0.1,
    over: str = "mean",
    ignore: torch.Tensor | None = None,
) -> torch.Tensor:
    """Cross-entropy minus a share of the prediction's entropy (explicit confidence penalty, Pereyra and others, 2017).

    Args:
        logits: `(N, K, *)`.
        target: `(N, *)`.
        weight: Weight of the entropy.
        over: "mean" over classes, as in published code, or "sum", as in the paper: K times as strong.
        ignore: `(N, *)` bool.

    Raises:
        ValueError: As in `cross_entropy`, or another word than the two.
    """
    x, y, keep = checked(logits, target, ignore)
    if over not in ("mean", "sum"):
        raise ValueError(f"The entropy is taken over classes by 'mean' or by 'sum', not by {over!r}.")
    logp = F.log_softmax(x, 1)
    entropy = -(logp.exp() * logp).sum(1) / (x.shape[1] if over == "mean" else 1)
    return mean_over(F.nll_loss(logp, y, reduction="none") - weight * entropy, keep)


def margin_penalty(
    logits: torch.Tensor, margin: float = 10.0, hinge: str = "linear", ignore: torch.Tensor | None = None
) -> torch.Tensor:
    """Mean over pixels and classes of what logit distances exceed m by.

    Args:
        logits: `(N, K, *)`.
        margin: m in logits, 0 or more.
        hinge: "linear" for max(0, d - m), "squared" for its square.
        ignore: `(N, *)` bool.

    Returns:
        Scalar >= 0. Its gradient pulls the largest logit down and raises the far ones, whichever class is right; it sums to zero in each pixel.

    Raises:
        ValueError: As in `cross_entropy`, or another word than the two.
    """
    if hinge not in ("linear", "squared"):
        raise ValueError(f"The hinge is 'linear' or 'squared', not {hinge!r}.")
    x = wide(logits)
    return finite(excess_over_margin(x, margin, hinge == "squared", kept(x, ignore)))


def margin_loss(
    logits: torch.Tensor,
    target: torch.Tensor,
    margin: float = 10.0,
    weight: float = 0.1,
    hinge: str = "linear",
    ignore: torch.Tensor | None = None,
) -> torch.Tensor:
    """Cross-entropy plus `weight` times `margin_penalty`. Arguments and errors as there and in `cross_entropy`."""
    loss = cross_entropy(logits, target, ignore)
    return loss + weight * margin_penalty(logits, margin, hinge, ignore)


def soft_dice(logits: torch.Tensor, target: torch.Tensor, ignore: torch.Tensor | None = None) -> torch.Tensor:
    """Soft Dice loss over foreground classes (all but 0): 1 - 2|PT| / (|P| + |T|), mean over images and classes.

    Raises:
        ValueError: As in `cross_entropy`.
    """
    x, y, keep = checked(logits, target, ignore)
    k = x.shape[1]
    p = torch.softmax(x, 1)[:, 1:]
    t = F.one_hot(y, k).movedim(-1, 1)[:, 1:].to(x.dtype)
    if keep is not None:
        p, t = p * keep[:, None], t * keep[:, None]
    axes = tuple(range(2, x.ndim))
    return mean_over(1 - (2 * (p * t).sum(axes) + 1e-5) / ((p + t).sum(axes) + 1e-5), None)


def loss_of(settings: MarginSettings) -> Loss:
    """The loss that settings describe.

    Returns:
        A function `(logits, target, ignore=None)` that gives a scalar.

    Raises:
        ValueError: A setting is out of range.
    """
    check(settings)
    s = settings
    losses: dict[str, Loss] = {
        "CE": cross_entropy,
        "LS": lambda x, y, i=None: label_smoothing(x, y, s.smoothing, i),
        "SVLS": lambda x, y, i=None: spatial_label_smoothing(x, y, s.sigma, i),
        "focal": lambda x, y, i=None: focal(x, y, s.gamma, i),
        "ECP": lambda x, y, i=None: entropy_penalty(x, y, s.entropy_weight, s.entropy_over, i),
        "margin": lambda x, y, i=None: margin_loss(x, y, s.margin, s.weight, s.hinge, i),
    }
    chosen = losses[s.loss]
    if not s.dice:
        return chosen
    return lambda x, y, i=None: chosen(x, y, i) + s.dice * soft_dice(x, y, i)


class SegmentationLoss(nn.Module):
    """`loss_of` as a module, for training loops that want one.

    Args:
        settings: Which loss, and its numbers.
    """

    def __init__(self, settings: MarginSettings) -> None:
        super().__init__()
        self.settings = settings
        self._loss = loss_of(settings)

    def forward(
        self, logits: torch.Tensor, target: torch.Tensor, ignore: torch.Tensor | None = None
    ) -> torch.Tensor:
        """The loss; arguments as in the module's functions."""
        return self._loss(logits, target, ignore)
