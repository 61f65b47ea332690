"""A small vision transformer for pictures of 32 px, ViT-Tiny's width and depth with a smaller patch.

The layers are timm's (`VisionTransformer`; Dosovitskiy et al. 2021), imported when one is built; the weights come from a generator alone.
It trains nothing and knows no pretrained weights.
"""

from __future__ import annotations

import torch
from torch import nn


def vit_small(
    classes: int,
    rng: torch.Generator,
    side: int = 32,
    patch: int = 4,
    width: int = 192,
    depth: int = 12,
    heads: int = 3,
) -> nn.Module:
    """Build a transformer. `(N, 3, side, side)` -> logits `(N, K)`.

    Args:
        classes: K.
        rng: Source of the weights.
        side: Side of the pictures in pixels, a multiple of `patch`.
        patch: Side of a patch in pixels.
        width: Length of a token; ViT-Tiny has 192.
        depth: Blocks; ViT-Tiny has 12.
        heads: Attention heads; they divide the width.

    Matrices are normal with deviation 0.02, cut at twice that; biases are zero, normalisation one.

    Raises:
        ValueError: The patch does not divide the side, or the heads do not divide the width.
    """
    if side % patch or width % heads:
        raise ValueError(
            f"The patch ({patch} px) must divide the side ({side} px), and the number of heads ({heads}) the width ({width})."
        )
    from timm.models.vision_transformer import VisionTransformer

    model: nn.Module = VisionTransformer(
        img_size=side, patch_size=patch, embed_dim=width, depth=depth, num_heads=heads, num_classes=classes
    )
    for name, parameter in model.named_parameters():
        if parameter.ndim >= 2:
            nn.init.trunc_normal_(parameter, 0.0, 0.02, -0.04, 0.04, generator=rng)
        else:
            nn.init.constant_(parameter, 1.0 if name.endswith("weight") else 0.0)
    return model
