"""Batch normalisation that follows new images: the statistics alone, nothing that was learned (METHODS 4.9).

A known strong baseline by itself, so it stands apart from λ everywhere. Not here: λ (`adapt.py`).
"""

from __future__ import annotations

import torch
from torch import nn

from core.tacsc.inputs import BATCH, chunks


@torch.no_grad()
def refresh_norms(net: nn.Module, images: torch.Tensor, prior: int = 0, batch: int = BATCH) -> None:
    """Give every batch normalisation of a network the statistics of these images, in place; all else stays in eval mode.

    Args:
        net: The network.
        images: `(N, C, H, W)`, N >= 2.
        prior: Weight of the old statistics, counted in images.
        batch: Images at a time; the statistics of the parts are averaged.
    """
    net.eval()
    norms = [
        m
        for m in net.modules()
        if isinstance(m, nn.modules.batchnorm._BatchNorm) and m.running_mean is not None
    ]
    kept = []
    for norm in norms:
        assert norm.running_mean is not None and norm.running_var is not None
        kept.append((norm.momentum, norm.running_mean.clone(), norm.running_var.clone()))
        norm.reset_running_stats()
        norm.momentum = None  # a plain average over the parts
        norm.train()
    try:
        for part in chunks(images, batch):
            net(part)
    finally:
        share = prior / (prior + len(images))
        for norm, (momentum, mean, var) in zip(norms, kept, strict=True):
            assert norm.running_mean is not None and norm.running_var is not None
            norm.momentum = momentum
            norm.running_mean.lerp_(mean, share)
            norm.running_var.lerp_(var, share)
            norm.eval()
