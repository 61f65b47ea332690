"""From an image to its score map on the image's own grid, the same way in calibration, in tests and on the
page.

Images go through the network one at a time: a score must not depend, even in its last bit, on which images
came along.
"""

from __future__ import annotations

import logging
from collections.abc import Iterable, Iterator

import numpy as np
import torch
from torch import nn

from core.images.grid import from_square, to_grid, to_square
from core.nets.build import binary_score


@torch.no_grad()
def predict(model: nn.Module, rgb: np.ndarray, side: int) -> torch.Tensor:
    """Score one image.

    Args:
        model: Network with two logits; it is put into eval mode.
        rgb: `(H, W, 3)` uint8.
        side: Side of the network's square in pixels.

    Returns:
        `(h, w)` float32 logits of the foreground on the image's grid (long side at most 512), clamped to plus or minus 15. When the
        accelerator runs out of memory the image is scored on the CPU.
    """
    model.eval()
    square, frame = to_square(to_grid(rgb), side)
    device = next(model.parameters()).device
    try:
        scores = binary_score(model(square[None].to(device)))[0]
    except torch.OutOfMemoryError:
        logging.getLogger("plumbline").warning(
            "The accelerator is out of memory; this image is scored on the CPU."
        )
        torch.cuda.empty_cache()
        scores = binary_score(model.to("cpu")(square[None]))[0]
        model.to(device)
    return from_square(scores.cpu(), frame)


def predict_all(model: nn.Module, images: Iterable[np.ndarray], side: int) -> Iterator[torch.Tensor]:
    """Yield `predict` of one image after the other."""
    for rgb in images:
        yield predict(model, rgb, side)
