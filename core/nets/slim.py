"""The slim U-Net on which losses are compared: MONAI's `BasicUNet`, small enough to be trained many times on a CPU.

Its last layer runs in float32 even under autocast: margins of ten logits and more need the digits that bfloat16 lacks.
"""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import nn


class FloatConv2d(nn.Conv2d):
    """A convolution that leaves autocast and computes in float32."""

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """`(N, C, H, W)` in any floating type -> `(N, K, H, W)` float32."""
        with torch.autocast(x.device.type, enabled=False):
            return super().forward(x.float())


def slim_unet(stages: Sequence[int], classes: int) -> nn.Module:
    """Build the network with fresh weights (see `core.nets.build.initialise`).

    Args:
        stages: Six channel counts: five stages from fine to coarse, and the last one of the decoder.
        classes: K.

    Returns:
        Network from `(N, 3, H, W)` float32 in [-1, 1] to `(N, K, H, W)` float32 logits. Sizes that 16 does not divide are padded inside.

    Raises:
        ValueError: Not six channel counts.
    """
    if len(stages) != 6:
        raise ValueError(f"The slim U-Net takes six channel counts, not {len(stages)}.")
    from monai.networks.nets import BasicUNet

    model = BasicUNet(2, 3, classes, tuple(stages), norm="batch")
    model.final_conv = FloatConv2d(stages[5], classes, 1)
    return model
