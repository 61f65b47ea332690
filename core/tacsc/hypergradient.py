"""The derivative of a layer's codes with respect to its own λ, carried forward through FISTA (METHODS 4.6).

dT₀ = 0;  dU_k = (I − s DᵀD) dY_{k−1};  dT_k = 1[T_k ≠ 0] (dU_k − s sign(U_k));  dY_k as Y_k. It is forward-mode differentiation of the unrolled
layer: one more tensor beside the codes, whatever K is, and the derivative of each image's reconstruction error for itself. It is the oracle of
`function.py` and what adaptation uses where layers are treated one by one. The layer's input counts as given.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch

from core.tacsc.function import momenta, shrink
from core.tacsc.geometry import Geometry
from core.tacsc.layer import CSCConv2d
from core.tacsc.objective import TINY, sparsity


@torch.no_grad()
def codes_and_derivative(
    x: torch.Tensor,
    atoms: torch.Tensor,
    threshold: torch.Tensor,
    step: torch.Tensor,
    where: Geometry,
    iterations: int,
    non_negative: bool = False,
) -> tuple[torch.Tensor, torch.Tensor]:
    """Codes and their derivative.

    Args:
        x: `(N, C, H, W)`.
        atoms: `(O, C, k, k)`, used as they are.
        threshold: λ, a tensor without dimensions.
        step: s, a tensor without dimensions.
        where: Geometry of the layer on the image.
        iterations: K.
        non_negative: Positive codes only.

    Returns:
        T_K and dT_K/dλ, both `(N, O, H', W')`.
    """
    tau = threshold * step
    t = shrink(where.analysis(x, atoms) * step, tau, non_negative)
    d = -step * t.sign()
    t_before, d_before = t, d
    for m in momenta(iterations):
        y, dy = (t + m * (t - t_before), d + m * (d - d_before)) if m else (t, d)
        u = y + where.analysis(x - where.synthesis(y, atoms), atoms) * step
        du = dy - where.analysis(where.synthesis(dy, atoms), atoms) * step
        t_before, d_before = t, d
        t = shrink(u, tau, non_negative)
        d = torch.where(t != 0, du - step * t.sign(), 0.0)
    return t, d


@dataclass(frozen=True)
class LocalError:
    """One layer on one batch.

    Attributes:
        error: `(N,)` R of each image.
        slope: `(N,)` dR/dλ of each image.
        sparsity: `(N,)` share of zero codes.
    """

    error: torch.Tensor
    slope: torch.Tensor
    sparsity: torch.Tensor


@torch.no_grad()
def local_error(layer: CSCConv2d, x: torch.Tensor) -> LocalError:
    """R of a layer on its input and how it changes with the layer's λ, image by image; `x` is `(N, C, H, W)`."""
    where, atoms, s = layer.geometry(x), layer.atoms(), layer.settings
    x = x.to(atoms.dtype)
    t, d = codes_and_derivative(x, atoms, layer.threshold, layer.step, where, s.iterations, s.non_negative)
    residual = (x - where.synthesis(t, atoms)).flatten(1)
    energy = x.flatten(1).square().sum(1) + TINY
    slope = -2 * (residual * where.synthesis(d, atoms).flatten(1)).sum(1) / energy
    return LocalError(residual.square().sum(1) / energy, slope, sparsity(t))
