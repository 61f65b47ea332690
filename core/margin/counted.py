"""What the losses share: wide logits, checked labels, and means over the pixels that count. No loss is defined here."""

from __future__ import annotations

import torch


def wide(logits: torch.Tensor) -> torch.Tensor:
    """Logits in float32, or in float64 where they come so."""
    return logits if logits.dtype == torch.float64 else logits.float()


def kept(logits: torch.Tensor, ignore: torch.Tensor | None) -> torch.Tensor | None:
    """Pixels that count, `(N, *)` bool; None for all. ValueError for shapes that do not fit and where none is left."""
    if logits.ndim < 2 or logits.numel() == 0:
        raise ValueError(
            f"Logits must have shape (N, K, *) and hold a pixel; these are {tuple(logits.shape)}."
        )
    if ignore is None:
        return None
    if ignore.dtype != torch.bool or ignore.shape != logits.shape[:1] + logits.shape[2:]:
        raise ValueError(
            f"The ignore mask must be bool of shape {tuple(logits.shape[:1] + logits.shape[2:])}; "
            f"it is {ignore.dtype} of {tuple(ignore.shape)}."
        )
    if bool(ignore.all()):
        raise ValueError("Every pixel is ignored, so there is nothing to learn from; leave this batch out.")
    return ~ignore


def checked(
    logits: torch.Tensor, target: torch.Tensor, ignore: torch.Tensor | None
) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor | None]:
    """Wide logits, int64 labels (0 where ignored) and the pixels that count; ValueError for labels outside the classes and shapes that do not fit."""
    keep = kept(logits, ignore)
    x, y = wide(logits), target.long()
    if y.shape != x.shape[:1] + x.shape[2:]:
        raise ValueError(
            f"Logits {tuple(x.shape)} need labels of shape {tuple(x.shape[:1] + x.shape[2:])}; these are {tuple(y.shape)}."
        )
    if keep is not None:
        y = torch.where(keep, y, 0)
    low, high = torch.stack(y.aminmax()).tolist()
    if low < 0 or high >= x.shape[1]:
        raise ValueError(
            f"Labels go from {low} to {high}, and there are {x.shape[1]} classes (0 to {x.shape[1] - 1}). "
            "Map the labels, or pass the others in `ignore`."
        )
    return x, y, keep


def mean_over(per_pixel: torch.Tensor, keep: torch.Tensor | None) -> torch.Tensor:
    """Mean over the pixels that count; ValueError where it is not a number."""
    return finite(per_pixel.mean() if keep is None else torch.where(keep, per_pixel, 0).sum() / keep.sum())


def finite(mean: torch.Tensor) -> torch.Tensor:
    """The same scalar; ValueError where it is NaN."""
    if bool(torch.isnan(mean)):
        raise ValueError("The loss is not a number: the logits hold NaN, or opposite infinities.")
    return mean
