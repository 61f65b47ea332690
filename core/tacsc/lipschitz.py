"""Largest eigenvalue L of DᵀD, which bounds the step of a sparse coding layer (METHODS 4.3).

`power_iteration` approaches L from below on the real, zero-padded operator, warm-started from the vector of the call before; `MARGIN`
leaves room for what it has not reached. `fft_bound` is an upper bound, the largest squared singular value of the circular convolution:
rigorous for stride 1 on a grid of at least size + k − 1, and for larger strides too, which only drop columns. The bound costs a singular
value decomposition for each frequency and serves as an oracle, not in training. All of it is constant for autograd.
"""

from __future__ import annotations

import torch
import torch.nn.functional as F

from core.tacsc.geometry import Geometry

MARGIN = 0.9
"""The step is MARGIN / L."""


def start_codes(atoms: int, height: int, width: int) -> torch.Tensor:
    """A fixed start `(1, O, H', W')` of unit norm: the same for every layer of that shape, in every process."""
    rng = torch.Generator().manual_seed(0)
    codes = torch.randn(1, atoms, height, width, generator=rng, dtype=torch.float64)
    return codes / codes.norm()


@torch.no_grad()
def power_iteration(
    weight: torch.Tensor, where: Geometry, codes: torch.Tensor, iterations: int
) -> tuple[torch.Tensor, torch.Tensor]:
    """Approach L from below.

    Args:
        weight: `(O, C, k, k)` atoms.
        where: Geometry of the layer on the image.
        codes: `(1, O, H', W')` start, best the vector returned before.
        iterations: At least 1.

    Returns:
        The estimate of L, a tensor without dimensions, and the new vector `(1, O, H', W')` of unit norm.
    """
    tiny = torch.finfo(weight.dtype).tiny
    codes = codes.to(weight.dtype)
    codes = codes / codes.norm().clamp(min=tiny)
    size = weight.new_zeros(())
    for _ in range(iterations):
        after = where.analysis(where.synthesis(codes, weight), weight)
        size = after.norm()
        codes = after / size.clamp(min=tiny)
    return size, codes


@torch.no_grad()
def resized(codes: torch.Tensor, height: int, width: int) -> torch.Tensor:
    """The vector of another image size as a start for this one, `(1, O, height, width)`."""
    if codes.shape[2:] == (height, width):
        return codes
    return F.interpolate(codes, size=(height, width), mode="bilinear", align_corners=False)


@torch.no_grad()
def fft_bound(weight: torch.Tensor, height: int, width: int) -> float:
    """Upper bound of L for images of up to `height` × `width` pixels.

    Args:
        weight: `(O, C, k, k)` atoms.
        height: Rows of the image; the grid gets k − 1 more.
        width: Columns of the image.

    Returns:
        The largest squared singular value over all frequencies of the grid, in float64.
    """
    k = weight.shape[-1]
    spectrum = torch.fft.rfft2(weight.double(), s=(height + k - 1, width + k - 1))
    return float(torch.linalg.svdvals(spectrum.permute(2, 3, 0, 1)).max().square())
