"""`CSCConv2d`: a convolutional sparse coding layer in the place of a convolution (TA-CSC, SDNet; METHODS 4.1 to 4.5).

Its weight has the shape of the convolution's, its output is the sparse code of its input after K steps of FISTA:
non-linear, no bias. Atoms have unit norm by parametrisation, so weights of any size may be loaded or trained;
λ = softplus(ρ), one for the layer; L comes from one warm-started power iteration a training step and stays as it is in
eval mode, so that eval is deterministic. The order is: normalise, iterate, encode. Not here: the loss (`objective.py`),
following new images (`adapt.py`).
"""

from __future__ import annotations

import math
from typing import Any

import torch
import torch.nn.functional as F
from torch import nn

from core.settings.knob import check
from core.settings.tacsc import TacscSettings
from core.tacsc.function import Source, encode, unit_atoms
from core.tacsc.geometry import Geometry, geometry
from core.tacsc.lipschitz import MARGIN, power_iteration, resized, start_codes

FIRST_ITERATIONS, NEW_SIZE_ITERATIONS = 30, 5


def inverse_softplus(value: float) -> float:
    """ρ with softplus(ρ) = value, exact for small values too.

    Raises:
        ValueError: The value is not positive.
    """
    if not value > 0:
        raise ValueError(f"λ is {value}; it must be above 0.")
    return value + math.log(-math.expm1(-value))


class CSCConv2d(nn.Module):
    """Sparse codes `(N, O, H', W')` of an input `(N, C, H, W)`, with H' and W' of the convolution that it replaces.

    Args:
        in_channels: C.
        out_channels: O, the number of atoms.
        kernel_size: k, square.
        stride: Step on both axes.
        padding: Zeros on each side.
        settings: K, λ at the start, whether λ is trained, sign of the codes.
        generator: Source of the first weights; None takes torch's own.

    Attributes:
        weight: `(O, C, k, k)`, free; `atoms()` is what is used.
        rho: ρ, a parameter without dimensions.
        lipschitz: Estimate of L, a buffer.
        eigencode: Vector of the power iteration, a buffer; empty until the first image.
        keep: Whether residuals are kept for the way back, as in `function.encode`.
        sizes: Where each call leaves the mean absolute code, for `objective.collect_sizes`; None leaves nothing.
    """

    lipschitz: torch.Tensor
    eigencode: torch.Tensor

    def __init__(
        self,
        in_channels: int,
        out_channels: int,
        kernel_size: int,
        stride: int = 1,
        padding: int = 0,
        settings: TacscSettings | None = None,
        generator: torch.Generator | None = None,
    ) -> None:
        super().__init__()
        self.settings = settings or TacscSettings()
        check(self.settings)
        self.in_channels, self.out_channels = in_channels, out_channels
        self.kernel_size, self.stride, self.padding = kernel_size, stride, padding
        self.weight = nn.Parameter(torch.empty(out_channels, in_channels, kernel_size, kernel_size))
        nn.init.kaiming_uniform_(self.weight, a=math.sqrt(5), generator=generator)
        self.rho = nn.Parameter(
            torch.tensor(inverse_softplus(self.settings.threshold)), requires_grad=self.settings.learn
        )
        self.keep = False
        self.sizes: list[torch.Tensor] | None = None
        self.register_buffer("lipschitz", torch.zeros(()))
        self.register_buffer("eigencode", torch.zeros(0))

    @classmethod
    def like(cls, conv: nn.Conv2d, settings: TacscSettings | None = None) -> CSCConv2d:
        """The layer in the place of a convolution, with its weight.

        Raises:
            ValueError: The convolution has groups, dilation, unequal sides or padding other than zeros.
        """
        k, s, p = conv.kernel_size, conv.stride, conv.padding
        plain = conv.groups == 1 and set(conv.dilation) == {1} and conv.padding_mode == "zeros"
        if isinstance(p, str) or not plain or k[0] != k[1] or s[0] != s[1] or p[0] != p[1]:
            raise ValueError(
                "A sparse coding layer replaces a plain convolution: square kernel, one stride, zero padding in numbers, no groups "
                f"and no dilation. This one is {conv}."
            )
        layer = cls(conv.in_channels, conv.out_channels, k[0], s[0], int(p[0]), settings)
        layer.weight.data.copy_(conv.weight.data)
        return layer.to(conv.weight.device)

    @property
    def threshold(self) -> torch.Tensor:
        """λ = softplus(ρ), without dimensions."""
        return F.softplus(self.rho)

    @property
    def step(self) -> torch.Tensor:
        """Step size s = 0.9 / L, without dimensions."""
        return MARGIN / self.lipschitz

    def atoms(self) -> torch.Tensor:
        """`(O, C, k, k)` of unit norm."""
        return unit_atoms(self.weight)

    def geometry(self, x: torch.Tensor) -> Geometry:
        """Geometry of the layer on this input. Raises ValueError if the image is too small or of other channels."""
        if x.ndim != 4 or x.shape[1] != self.in_channels:
            raise ValueError(
                f"This layer takes images of shape (N, {self.in_channels}, H, W), not {tuple(x.shape)}."
            )
        return geometry(x.shape[2], x.shape[3], self.kernel_size, self.stride, self.padding)

    @torch.no_grad()
    def estimate(self, height: int, width: int, iterations: int = FIRST_ITERATIONS) -> float:
        """Estimate L for images of this size with the weights of now; for a network whose weights or sizes changed outside training.

        Args:
            height: H of the layer's input.
            width: W of the layer's input.
            iterations: Steps of the power iteration.

        Returns:
            The new L.
        """
        where = geometry(height, width, self.kernel_size, self.stride, self.padding)
        self._iterate(where, (height, width), iterations)
        return self.lipschitz.item()

    @torch.no_grad()
    def _iterate(self, where: Geometry, size: tuple[int, int], iterations: int) -> None:
        atoms = self.atoms()
        rows, columns = ((n + 2 * self.padding - self.kernel_size) // self.stride + 1 for n in size)
        fresh = self.eigencode.numel() == 0
        if fresh:
            start, iterations = (
                start_codes(self.out_channels, rows, columns),
                max(iterations, FIRST_ITERATIONS),
            )
        else:
            start = resized(self.eigencode, rows, columns)
            if start is not self.eigencode:
                iterations = max(iterations, NEW_SIZE_ITERATIONS)
        kind = atoms.dtype
        with torch.autocast(atoms.device.type, enabled=False):
            largest, vector = power_iteration(atoms, where, start.to(atoms.device, kind), iterations)
        self.lipschitz = largest
        self.eigencode = vector

    def forward(self, x: torch.Tensor, source: Source | None = None) -> torch.Tensor:
        """Codes of an image; in training mode L moves with the weights first. `source` as in `function.encode`."""
        where, s = self.geometry(x), self.settings
        if self.training or self.eigencode.numel() == 0:
            self._iterate(where, (x.shape[2], x.shape[3]), 1)
        kind = x.device.type
        x = x.to(torch.get_autocast_dtype(kind) if torch.is_autocast_enabled(kind) else self.weight.dtype)
        codes, size = encode(
            x,
            self.weight,
            self.threshold,
            self.step,
            where,
            s.iterations,
            s.non_negative,
            self.sizes is not None,
            source,
            self.keep,
        )
        if self.sizes is not None and size is not None:
            self.sizes.append(size)
        return codes

    def reconstruct(self, codes: torch.Tensor, x: torch.Tensor) -> torch.Tensor:
        """Dc in the shape of `x`."""
        return self.geometry(x).synthesis(codes, self.atoms().to(codes.dtype))

    def _load_from_state_dict(self, state_dict: dict[str, Any], prefix: str, *rest: Any) -> None:
        found = state_dict.get(prefix + "eigencode")
        if found is not None:  # its shape follows the images it was trained on
            self.eigencode = self.eigencode.new_zeros(found.shape)
        super()._load_from_state_dict(state_dict, prefix, *rest)

    def extra_repr(self) -> str:
        """Sizes, K and λ, for print."""
        return (
            f"{self.in_channels}, {self.out_channels}, kernel_size={self.kernel_size}, stride={self.stride}, "
            f"padding={self.padding}, K={self.settings.iterations}, λ={self.threshold.item():.4g}"
        )


def sparse_layers(net: nn.Module) -> dict[str, CSCConv2d]:
    """Name -> layer, in the order of the network."""
    return {name: layer for name, layer in net.named_modules() if isinstance(layer, CSCConv2d)}
