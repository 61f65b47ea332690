"""Largest singular value of a matrix without negative entries, by power iteration that goes on from the last batch.

METHODS 3.5. sigma = u' M v with u and v held fixed has the exact value and the exact gradient u v' once the iteration has
converged. M = C diag(scale) is never written down: its products with vectors are taken from C and the scale. With M >= 0 the top
pair can be chosen >= 0, so that an iteration from a positive vector cannot miss it. `largest_by_svd` is the oracle, for K up to some
hundreds.
"""

from __future__ import annotations

import torch

FLOOR = 1e-3
"""Length of the even vector that is added to v at each warm start: a block of classes that v had no weight on can come up again. It
moves sigma by about its square."""


def even(classes: int, like: torch.Tensor) -> torch.Tensor:
    """The unit vector with equal entries, `(K,)`: where an iteration starts."""
    return torch.full((classes,), classes**-0.5, dtype=like.dtype, device=like.device)


@torch.no_grad()
def top_pair(
    columns: torch.Tensor, scale: torch.Tensor, start: torch.Tensor, steps: int = 2, floor: float = FLOOR
) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    """Power iteration on M = C diag(scale), with the columns of C as rows.

    Args:
        columns: `(K, K)`, row j is column j of C >= 0.
        scale: `(K,)` factors of the columns, >= 0.
        start: `(K,)` vector >= 0 to go on from (the last v).
        steps: Steps, at least 1.
        floor: See `FLOOR`.

    Returns:
        `(sigma, u, v)`: a number >= 0 that never exceeds the largest singular value (up to rounding), and `(K,)` vectors >= 0 of unit
        length. For a zero matrix sigma is 0 and both vectors are zero.
    """
    if steps < 1:
        raise ValueError(f"Power iteration needs at least one step, not {steps}.")
    tiny = torch.finfo(columns.dtype).tiny
    with torch.autocast(columns.device.type, enabled=False):
        v = start + floor * even(len(start), columns)
        v = v / v.norm().clamp(min=tiny)
        sigma, u = columns.new_zeros(()), torch.zeros_like(v)
        for _ in range(steps):
            u = columns.T @ (scale * v)
            u = u / u.norm().clamp(min=tiny)
            v = scale * (columns @ u)
            sigma = v.norm()
            v = v / sigma.clamp(min=tiny)
    return sigma, u, v


def spectral_norm(matrix: torch.Tensor, steps: int = 100) -> torch.Tensor:
    """Largest singular value of a matrix >= 0, with its gradient u v'. A zero matrix gives 0 with zero gradient.

    Args:
        matrix: `(K, K)`, may need a gradient.
        steps: Steps of the iteration from an even start.
    """
    fixed = matrix.detach()
    ones = fixed.new_ones(matrix.shape[1])
    _, u, v = top_pair(fixed.T, ones, even(matrix.shape[1], fixed), steps, 0.0)
    return u @ matrix @ v


def largest_by_svd(matrix: torch.Tensor) -> torch.Tensor:
    """The same by `torch.linalg.svdvals`: the oracle, O(K^3)."""
    return torch.linalg.svdvals(matrix)[0]
