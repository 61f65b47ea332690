"""The mean excess of logit distances over a margin, with a backward pass of its own that keeps next to nothing.

Plain autograd computes the same numbers; it keeps one more tensor of the logits' size and passes over memory about twice as often, which is
most of the cost of a loss. Here the forward pass keeps the largest logit of each pixel, and the backward pass works image by image on the CPU,
so that what it needs in between stays in the cache. No second derivatives.
"""

from __future__ import annotations

from typing import Any

import torch
import torch.nn.functional as F
from torch.autograd.function import once_differentiable


class _Excess(torch.autograd.Function):
    @staticmethod
    def forward(
        ctx: Any, logits: torch.Tensor, margin: float, squared: bool, keep: torch.Tensor | None
    ) -> torch.Tensor:
        top = logits.amax(1, keepdim=True)
        pixels = top.numel() if keep is None else int(keep.sum())
        total = logits.new_zeros(())
        for x, t, k in _pieces(logits, top, keep):
            e = F.relu((t - margin) - x, inplace=True)
            if k is not None:
                e.masked_fill_(~k[:, None], 0)  # not times 0: an ignored pixel may hold NaN
            total += e.square_().sum() if squared else e.sum()
        ctx.save_for_backward(logits, top, *(() if keep is None else (keep,)))
        ctx.margin, ctx.squared, ctx.count = margin, squared, pixels * logits.shape[1]
        return total / ctx.count

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, grad: torch.Tensor) -> tuple[torch.Tensor | None, ...]:
        logits, top, *rest = ctx.saved_tensors
        keep = rest[0] if rest else None
        out = torch.empty_like(logits)
        scale = grad / ctx.count
        pieces = _pieces(logits, top, keep)
        for (x, t, k), o in zip(pieces, out.split(_step(logits)), strict=True):
            # how much the penalty grows with each distance; the largest logit carries the sum of it, the others what is their own
            slope = (
                F.relu((t - ctx.margin) - x, inplace=True).mul_(2)
                if ctx.squared
                else (x < t - ctx.margin).to(x.dtype)
            )
            if k is not None:
                slope.masked_fill_(~k[:, None], 0)  # not times 0: an ignored pixel may hold NaN
            largest = x == t
            share = slope.sum(1, keepdim=True).div_(
                largest.sum(1, keepdim=True).clamp_(min=1)
            )  # a tie shares it evenly
            torch.mul(largest, share, out=o)
            o.sub_(slope).mul_(scale)
        return out, None, None, None


def _step(logits: torch.Tensor) -> int:
    """Images at once: one where a cache is small and a loop is cheap, all of them on an accelerator."""
    return 1 if logits.device.type == "cpu" else len(logits)


def _pieces(
    logits: torch.Tensor, top: torch.Tensor, keep: torch.Tensor | None
) -> list[tuple[torch.Tensor, torch.Tensor, torch.Tensor | None]]:
    n = _step(logits)
    parts = [None] * -(-len(logits) // n) if keep is None else keep.split(n)
    return list(zip(logits.split(n), top.split(n), parts, strict=True))


def excess_over_margin(
    logits: torch.Tensor, margin: float, squared: bool = False, keep: torch.Tensor | None = None
) -> torch.Tensor:
    """Mean over counted pixels and classes of max(0, d - m), or of its square, where d = max_j l_j - l_k.

    Args:
        logits: `(N, K, *)` float32 or float64.
        margin: m in logits.
        squared: Whether the excess is squared.
        keep: `(N, *)` bool, pixels that count, at least one; None counts all.

    Returns:
        Scalar >= 0, differentiable once.
    """
    value: torch.Tensor = _Excess.apply(logits, margin, squared, keep)
    return value
