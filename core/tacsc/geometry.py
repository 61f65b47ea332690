"""The two directions of a sparse coding layer: analysis Dᵀ is `conv2d`, synthesis D is `conv_transpose2d` (METHODS 4.1).

Both use one weight `(O, C, k, k)`: O atoms of C channels. The transposed convolution needs an output padding that
depends on the size of the image; SDNet's rule (0 for stride 1, else 1) is right for even sizes only. Not here: the codes themselves
(`function.py`), step sizes (`lipschitz.py`).
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
import torch.nn.functional as F


@dataclass(frozen=True)
class Geometry:
    """Shape of one layer on one size of image.

    Attributes:
        stride: Step of the convolution, both axes.
        padding: Zeros around the image, both axes.
        output_padding: Rows and columns that the transposed convolution adds at the far end.
    """

    stride: int
    padding: int
    output_padding: tuple[int, int]

    def analysis(self, image: torch.Tensor, weight: torch.Tensor) -> torch.Tensor:
        """Dᵀx: `(N, C, H, W)` -> `(N, O, H', W')`."""
        return F.conv2d(image, weight, None, self.stride, self.padding)

    def synthesis(self, codes: torch.Tensor, weight: torch.Tensor) -> torch.Tensor:
        """Dc: `(N, O, H', W')` -> `(N, C, H, W)`."""
        return F.conv_transpose2d(codes, weight, None, self.stride, self.padding, self.output_padding)

    def weight_gradient(self, image: torch.Tensor, codes: torch.Tensor, weight: torch.Tensor) -> torch.Tensor:
        """Gradient of <codes, Dᵀ image> with respect to the weight, `(O, C, k, k)`."""
        return torch.ops.aten.convolution_backward(
            codes,
            image,
            weight,
            None,
            (self.stride, self.stride),
            (self.padding, self.padding),
            (1, 1),
            False,
            (0, 0),
            1,
            (False, True, False),
        )[1]


def geometry(height: int, width: int, kernel: int, stride: int, padding: int) -> Geometry:
    """The geometry of a layer on an image.

    Args:
        height: H of the image.
        width: W of the image.
        kernel: k.
        stride: Step, at least 1.
        padding: Zeros on each side.

    Raises:
        ValueError: The padded image is smaller than the kernel.
    """
    if min(height, width) + 2 * padding < kernel:
        raise ValueError(
            f"An image of {height}×{width} pixels is smaller than the {kernel}×{kernel} kernel, even with {padding} pixels of padding. "
            f"Bring an image of at least {kernel - 2 * padding} pixels on each side, or enlarge it."
        )

    def missing(n: int) -> int:
        codes = (n + 2 * padding - kernel) // stride + 1
        return n - ((codes - 1) * stride - 2 * padding + kernel)

    return Geometry(stride, padding, (missing(height), missing(width)))
