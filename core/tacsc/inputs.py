"""Unlabelled images for adaptation and for the shift score: what is refused, crops of a single image, parts for the memory."""

from __future__ import annotations

import math

import torch

BATCH = 100
"""Images that run through a network at a time."""


def check_images(images: torch.Tensor) -> None:
    """Refuse what nothing can be learned from.

    Raises:
        ValueError: No image, one image, NaN or infinity, or flat images alone.
    """
    if images.ndim != 4 or len(images) == 0:
        raise ValueError(f"Adaptation takes images of shape (N, C, H, W), not {tuple(images.shape)}.")
    if len(images) == 1:
        raise ValueError(
            "One image alone is one draw and no statistics. λ can be adapted on crops of it: cut some with `crops` and bring those."
        )
    if not bool(torch.isfinite(images).all()):
        bad = (~torch.isfinite(images).flatten(1).all(1)).nonzero()[:, 0].tolist()
        raise ValueError(
            f"{len(bad)} of {len(images)} images hold values that are no numbers (first: image {bad[0]}). Leave them out."
        )
    if bool((images.flatten(2).std(2) == 0).all()):
        raise ValueError("Every image is one flat colour: there is nothing in them that λ could follow.")


def crops(image: torch.Tensor, count: int, side: int, rng: torch.Generator) -> torch.Tensor:
    """Square crops of one image, every other one mirrored.

    Args:
        image: `(C, H, W)`.
        count: How many.
        side: Their side in pixels.
        rng: Source of the places.

    Returns:
        `(count, C, side, side)`.

    Raises:
        ValueError: The image is smaller than a crop.
    """
    height, width = image.shape[1:]
    if min(height, width) < side:
        raise ValueError(f"An image of {height}×{width} pixels gives no crop of {side}×{side}.")
    top = torch.randint(height - side + 1, (count,), generator=rng).tolist()
    left = torch.randint(width - side + 1, (count,), generator=rng).tolist()
    cut = torch.stack([image[:, y : y + side, x : x + side] for y, x in zip(top, left, strict=True)])
    cut[1::2] = cut[1::2].flip(3)
    return cut


def chunks(images: torch.Tensor, batch: int) -> tuple[torch.Tensor, ...]:
    """Parts of nearly equal size, at most `batch` each."""
    return torch.tensor_split(images, max(1, math.ceil(len(images) / batch)))
