"""Sparse coding layers in plain autograd, for comparison with `core.tacsc`: SDNet's published layer, and our own without its backward pass.

SDNet's layer (Dai et al. 2022; METHODS 4.1 to 4.5) is written again here, not copied: METHODS says what the published code does, and this does it in
the plain way. Atoms are normalised in place in every forward, outside the graph; the step is 0.9 / L with L from a power iteration of up
to 50 rounds that the training loop asks of every layer before every forward; λ is fixed; codes are made positive by a ReLU after the
two-sided shrinkage; the reconstruction is always computed and its squared error summed. SDNet's error of momentum shows from K = 3 on only; with K =
2, as here, its codes are those of `core.tacsc` with positive codes. Output padding follows the true rule, not SDNet's.
"""

from __future__ import annotations

from collections.abc import Callable

import torch
import torch.nn.functional as F
from torch import nn

from core.tacsc.function import Source, encode_plainly
from core.tacsc.geometry import Geometry, geometry
from core.tacsc.layer import CSCConv2d, sparse_layers
from core.tacsc.nets import ResNet18

ROUNDS, ENOUGH = 50, 1e-5
"""Rounds of the power iteration, and the squared change of its vector at which it stops."""


class SDNetLayer(nn.Module):
    """Positive sparse codes in plain autograd, two steps, as SDNet computes them.

    Args:
        like: The layer whose sizes, weight and λ it takes.

    Attributes:
        error: ‖x − Dc‖² of the last batch, in the graph.
    """

    def __init__(self, like: CSCConv2d) -> None:
        super().__init__()
        self.kernel_size, self.stride, self.padding = like.kernel_size, like.stride, like.padding
        self.weight = nn.Parameter(like.weight.detach().clone())
        self.threshold = like.settings.threshold
        self.step = 0.1
        self.vector: torch.Tensor | None = None
        self.side: tuple[int, int] | None = None
        self.error: torch.Tensor | None = None

    def _where(self, height: int, width: int) -> Geometry:
        return geometry(height, width, self.kernel_size, self.stride, self.padding)

    @torch.no_grad()
    def update_step(self) -> None:
        """Power iteration on codes of the size of the last batch, warm-started; before the first batch the step stays 0.1."""
        if self.side is None:
            return
        where = self._where(*self.side)
        if self.vector is None:
            shape = where.analysis(
                self.weight.new_zeros(1, self.weight.shape[1], *self.side), self.weight
            ).shape
            start = torch.randn(shape, generator=torch.Generator().manual_seed(0))
            self.vector = start.to(self.weight) / start.norm()
        for _ in range(ROUNDS):
            after = where.analysis(where.synthesis(self.vector, self.weight), self.weight)
            size = after.norm()
            after = after / size
            change = (after - self.vector).square().sum()
            self.vector = after
            if change.item() < ENOUGH:
                break
        self.step = 0.9 / size.item()

    def forward(self, x: torch.Tensor, source: Source | None = None) -> torch.Tensor:
        """Codes `(N, O, H', W')` of `(N, C, H, W)`; `source` is left unused."""
        self.side = (x.shape[2], x.shape[3])
        with torch.no_grad():
            self.weight.copy_(F.normalize(self.weight.flatten(1), dim=1, eps=1e-12).view_as(self.weight))
        where, weight, step = self._where(*self.side), self.weight, self.step

        def shrink(u: torch.Tensor) -> torch.Tensor:
            return torch.relu(F.softshrink(u, self.threshold * step))

        codes = shrink(step * where.analysis(x, weight))
        residual = x - where.synthesis(codes, weight)
        codes = shrink(codes + step * where.analysis(residual, weight))
        self.error = (x - where.synthesis(codes, weight)).square().sum()
        return codes


class AutogradLayer(CSCConv2d):
    """Our layer, value for value, whose codes are left to autograd.

    Args:
        like: The layer whose sizes, weight and settings it takes.
    """

    def __init__(self, like: CSCConv2d) -> None:
        super().__init__(
            like.in_channels, like.out_channels, like.kernel_size, like.stride, like.padding, like.settings
        )
        self.load_state_dict(like.state_dict())

    def forward(self, x: torch.Tensor, source: Source | None = None) -> torch.Tensor:
        """Codes `(N, O, H', W')` of `(N, C, H, W)`; `source` is left unused."""
        where, s = self.geometry(x), self.settings
        self._iterate(where, (x.shape[2], x.shape[3]), 1)
        codes = encode_plainly(x, self.weight, self.threshold, self.step, where, s.iterations, s.non_negative)
        if self.sizes is not None:
            self.sizes.append(codes.abs().mean())
        return codes


def replaced(net: ResNet18, make: Callable[[CSCConv2d], nn.Module]) -> ResNet18:
    """Put another layer in the place of every sparse layer of a network, in place.

    Args:
        net: From `core.tacsc.nets.build`.
        make: A sparse layer -> what takes its place.
    """
    for name, layer in sparse_layers(net).items():
        parent, _, last = name.rpartition(".")
        setattr(net.get_submodule(parent), last, make(layer))
    return net
