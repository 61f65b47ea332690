"""Codes of one layer by FISTA, with a backward pass of its own that keeps little (METHODS 4.2).

Minimises ½‖x − Dc‖² + λ‖c‖₁ by K steps from zero. With s = step size and τ = sλ:
T₁ = S_τ(s Dᵀx);  Y_k = T_k + (t_k − 1)/t_{k+1} (T_k − T_{k−1});  T_{k+1} = S_τ(Y_k + s Dᵀ(x − D Y_k)).
This is true FISTA: the gradient is taken at the extrapolated point (SDNet's code takes it at T_k, which differs from K = 3 on).

Plain autograd would keep every residual, every argument of the shrinkage and their signs. `encode` keeps the image, the
free weight and the K codes: where a code is not zero says where the shrinkage let a gradient through; residuals and unit
atoms are computed again. Where the image is a normalisation of a tensor that is kept anyway (`Source`), the image is
computed again and the residuals are kept instead: the same bytes, one convolution less. Residuals are kept, too, where
the image is small beside its codes, or where `keep` says so. The step size is a constant for the gradient. Second derivatives
are not offered. `encode_plainly` is the same thing for autograd: the oracle in tests.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import torch
import torch.nn.functional as F
from torch.autograd.function import once_differentiable

from core.tacsc.geometry import Geometry

SMALL = 5
"""Residuals are kept where the codes are at least so many times as large as the image."""


@dataclass(frozen=True)
class Source:
    """Where a layer's input comes from, when it is cheap to compute again.

    Attributes:
        tensor: What autograd keeps anyway, the input of a batch normalisation.
        again: `tensor` -> the layer's input, value for value.
    """

    tensor: torch.Tensor
    again: Callable[[torch.Tensor], torch.Tensor]


def unit_atoms(weight: torch.Tensor) -> torch.Tensor:
    """Each atom `(C, k, k)` of a weight `(O, C, k, k)` divided by its norm; an atom of zeros stays zero."""
    return F.normalize(weight.flatten(1), dim=1, eps=1e-12).view_as(weight)


def momenta(iterations: int) -> list[float]:
    """Weights (t_k − 1)/t_{k+1} of the K − 1 extrapolations; the first is 0, so K = 2 is plain ISTA."""
    weights, t = [], 1.0
    for _ in range(iterations - 1):
        after = (1 + math.sqrt(1 + 4 * t * t)) / 2
        weights.append((t - 1) / after)
        t = after
    return weights


def shrink(u: torch.Tensor, threshold: float | torch.Tensor, non_negative: bool = False) -> torch.Tensor:
    """Soft threshold sign(u) max(|u| − τ, 0), or max(u − τ, 0) for positive codes. `threshold` may carry a gradient."""
    if non_negative:
        return torch.relu(u - threshold)
    return torch.relu(u - threshold) - torch.relu(-u - threshold)


def encode_plainly(
    x: torch.Tensor,
    weight: torch.Tensor,
    threshold: torch.Tensor,
    step: float | torch.Tensor,
    where: Geometry,
    iterations: int = 2,
    non_negative: bool = False,
) -> torch.Tensor:
    """The codes in plain autograd, `(N, O, H', W')`. Arguments as in `encode`."""
    tau, weight = threshold * step, unit_atoms(weight)
    t = shrink(where.analysis(x, weight) * step, tau, non_negative)
    before = t
    for m in momenta(iterations):
        y = t + m * (t - before) if m else t
        u = y + where.analysis(x - where.synthesis(y, weight), weight) * step
        before, t = t, shrink(u, tau, non_negative)
    return t


def _shrink_fast(u: torch.Tensor, tau: torch.Tensor, non_negative: bool) -> torch.Tensor:
    """`shrink` without a gradient, in few passes over the memory. May overwrite `u`."""
    if non_negative:
        return u.sub_(tau).relu_()
    if u.device.type == "cpu":
        return torch.ops.aten.softshrink.out(u, tau.item(), out=u)
    return u.sub_(u.clamp(-tau, tau))


def _pass(gradient: torch.Tensor, codes: torch.Tensor, non_negative: bool) -> torch.Tensor:
    """The gradient where a code is not zero, else 0."""
    if non_negative:
        return torch.ops.aten.threshold_backward(gradient, codes, 0.0)
    return torch.ops.aten.softshrink_backward(gradient, codes, 0.0)


def _flat(a: torch.Tensor) -> torch.Tensor:
    """All values in the order of memory: sums over a channels-last tensor are many times slower in any other order."""
    if a.ndim == 4 and a.is_contiguous(memory_format=torch.channels_last):
        a = a.permute(0, 2, 3, 1)
    return a.reshape(-1)


def _inner(a: torch.Tensor, b: torch.Tensor) -> torch.Tensor:
    """Σ a b in float32 or better."""
    if a.stride() == b.stride() and a.dtype != torch.bfloat16:
        return torch.dot(_flat(a), _flat(b))
    return _flat(a * b).sum(dtype=torch.promote_types(a.dtype, torch.float32))


class _Encode(torch.autograd.Function):
    """See the module's text."""

    @staticmethod
    def forward(
        ctx: Any,
        x: torch.Tensor,
        weight: torch.Tensor,
        threshold: torch.Tensor,
        step: torch.Tensor,
        where: Geometry,
        iterations: int,
        non_negative: bool,
        mean_size: bool,
        keep: bool,
        kept: torch.Tensor | None,
        again: Callable[[torch.Tensor], torch.Tensor] | None,
    ) -> tuple[torch.Tensor, torch.Tensor | None]:
        tau, atoms = threshold * step, unit_atoms(weight)
        scaled, atoms = (atoms * step).to(x.dtype), atoms.to(x.dtype)  # s Dᵀ in one convolution
        t = _shrink_fast(where.analysis(x, scaled), tau, non_negative)
        codes, residuals = [t], []
        keep = keep or again is not None or SMALL * x.numel() <= t.numel()
        for m in momenta(iterations):
            y = torch.lerp(codes[-2], t, 1 + m) if m else t
            image = where.synthesis(y, atoms)
            residual = torch.sub(x, image, out=image)
            u = where.analysis(residual, scaled).add_(y)
            t = _shrink_fast(u, tau, non_negative)
            codes.append(t)
            if keep:
                residuals.append(residual)
        ctx.save_for_backward(x if again is None else kept, weight, threshold, step, *codes, *residuals)
        ctx.where, ctx.iterations, ctx.non_negative, ctx.again = where, iterations, non_negative, again
        ctx.set_materialize_grads(False)
        if not mean_size:
            return t, None
        kind = torch.promote_types(t.dtype, torch.float32)
        return t, torch.linalg.vector_norm(_flat(t), 1, dtype=kind) / max(t.numel(), 1)

    @staticmethod
    @once_differentiable
    def backward(
        ctx: Any, gradient: torch.Tensor | None, of_size: torch.Tensor | None
    ) -> tuple[torch.Tensor | None, ...]:
        image, weight, threshold, step, *codes = ctx.saved_tensors
        codes, residuals = codes[: ctx.iterations], codes[ctx.iterations :]
        where, positive, again = ctx.where, ctx.non_negative, ctx.again
        wants_x, wants_weight, wants_threshold = ctx.needs_input_grad[:3]
        atoms = unit_atoms(weight)
        scaled, kernel = (atoms * step).to(codes[0].dtype), atoms.to(codes[0].dtype)
        weights = momenta(len(codes))
        sign = codes[-1].sign() if of_size is not None or wants_threshold else None
        if gradient is None:
            gradient = torch.zeros_like(codes[-1])
        each = None if of_size is None else of_size / max(codes[-1].numel(), 1)
        to_x: torch.Tensor | None = None
        to_atoms = torch.zeros_like(weight)
        to_tau = torch.zeros_like(threshold)
        to_code, to_before = gradient, None  # gradients of T_k and of T_{k-1}
        for k in range(len(codes) - 1, -1, -1):
            u = _pass(to_code, codes[k], positive)
            if each is not None and sign is not None:  # the sign is 0 where nothing passes
                u = u.add_(sign, alpha=each.item()) if u.device.type == "cpu" else u.addcmul_(sign, each)
                each = None
            if wants_threshold:
                to_tau -= _inner(u, sign if sign is not None else codes[k].sign())
                sign = None
            if k == 0:
                if wants_x:
                    first = where.synthesis(u, scaled)
                    to_x = first if to_x is None else to_x.add_(first)
                if wants_weight:
                    x = image if again is None else again(image)
                    to_atoms += where.weight_gradient(x, u, kernel).to(weight.dtype) * step
                break
            m = weights[k - 1]
            y = torch.lerp(codes[k - 2], codes[k - 1], 1 + m) if m else codes[k - 1]
            to_residual = where.synthesis(u, scaled)
            if wants_weight:
                if residuals:
                    residual = residuals[k - 1]
                else:
                    residual = where.synthesis(y, kernel)
                    residual = torch.sub(image, residual, out=residual)
                to_atoms += where.weight_gradient(residual, u, kernel).to(weight.dtype) * step
                to_atoms -= where.weight_gradient(to_residual, y, kernel)
            to_y = u.sub_(where.analysis(to_residual, kernel))
            if wants_x:
                to_x = to_residual if to_x is None else to_x.add_(to_residual)
            share = to_y * (1 + m) if m else to_y
            to_code = share if to_before is None else share.add_(to_before)
            to_before = to_y * (-m) if m else None
        to_weight = None
        if wants_weight:
            norm = weight.flatten(1).norm(dim=1).clamp(min=1e-12)[:, None, None, None]
            along = (to_atoms * atoms).flatten(1).sum(1)[:, None, None, None]
            to_weight = (to_atoms - atoms * along) / norm
        return to_x, to_weight, to_tau * step if wants_threshold else None, *([None] * 8)


def encode(
    x: torch.Tensor,
    weight: torch.Tensor,
    threshold: torch.Tensor,
    step: torch.Tensor,
    where: Geometry,
    iterations: int = 2,
    non_negative: bool = False,
    mean_size: bool = False,
    source: Source | None = None,
    keep: bool = False,
) -> tuple[torch.Tensor, torch.Tensor | None]:
    """Codes of an image after K steps of FISTA, differentiable once in x, weight and threshold.

    Args:
        x: `(N, C, H, W)`; its type is the type of the convolutions.
        weight: `(O, C, k, k)` free; atoms are its rows divided by their norms.
        threshold: λ > 0, a tensor without dimensions.
        step: s, a tensor without dimensions, at most 1/L for the objective to fall at every step; no gradient goes to it.
        where: From `geometry`.
        iterations: K >= 1.
        non_negative: Positive codes only.
        mean_size: Whether the mean absolute code is wanted as well.
        source: Where x comes from, if it is cheap to compute again. Changes what is kept, never a value.
        keep: Keep the residuals for the way back instead of computing them again: more bytes, less time, the same values.

    Returns:
        The codes `(N, O, H', W')`, and their mean absolute value without dimensions (float32 or better) or None.

    Raises:
        ValueError: K is below 1.
    """
    if iterations < 1:
        raise ValueError(f"A sparse coding layer takes at least one step of FISTA, not {iterations}.")
    kept, again = (source.tensor.detach(), source.again) if source is not None else (None, None)
    how = (where, iterations, non_negative, mean_size, keep, kept, again)
    return _Encode.apply(x, weight, threshold, step, *how)
