"""What is measured on sparse layers: the ℓ1 term of training, relative reconstruction error, sparsity (METHODS 4.8 and 4.9).

`observe` listens to the sparse layers of a network through hooks while it runs, so a layer itself stays a plain map from image to code.
Hooks sit on the network: do not observe one that other threads use; work on a copy.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

import torch
from torch import nn

from core.tacsc.layer import CSCConv2d, sparse_layers

TINY = 1e-8
"""Added to the energy of the image in the relative error, so that a black image gives 0 and not NaN."""


def relative_error(x: torch.Tensor, reconstruction: torch.Tensor) -> torch.Tensor:
    """R = ‖x − Dc‖² / (‖x‖² + 1e-8) of each image, `(N,)`: 0 is perfect, 1 is what an empty code gives.

    It is squared on purpose: without the square, R/(λ + ε) has no minimum between 0 and infinity.
    """
    x, reconstruction = x.float() if x.dtype == torch.bfloat16 else x, reconstruction.to(x.dtype)
    return (x - reconstruction).flatten(1).square().sum(1) / (x.flatten(1).square().sum(1) + TINY)


def sparsity(codes: torch.Tensor) -> torch.Tensor:
    """Share of the codes that are exactly zero, `(N,)` in [0, 1]."""
    return (codes == 0).flatten(1).float().mean(1)


@dataclass(frozen=True)
class Observation:
    """One sparse layer at work.

    Attributes:
        name: Name of the layer in the network.
        layer: The layer.
        x: `(N, C, H, W)` its input.
        codes: `(N, O, H', W')` its output.
    """

    name: str
    layer: CSCConv2d
    x: torch.Tensor
    codes: torch.Tensor

    def error(self, detach_input: bool = False) -> torch.Tensor:
        """R of each image, `(N,)`, differentiable."""
        x = self.x.detach() if detach_input else self.x
        return relative_error(x, self.layer.reconstruct(self.codes, x))


@contextmanager
def observe(net: nn.Module) -> Iterator[list[Observation]]:
    """Collect an `Observation` of each sparse layer, in the order in which they run, while the block lasts.

    The list is emptied by whoever runs the network more than once.
    """
    seen: list[Observation] = []
    handles = []
    for name, layer in sparse_layers(net).items():

        def note(
            module: CSCConv2d, inputs: tuple[torch.Tensor], output: torch.Tensor, name: str = name
        ) -> None:
            seen.append(Observation(name, module, inputs[0], output))

        handles.append(layer.register_forward_hook(note))
    try:
        yield seen
    finally:
        for handle in handles:
            handle.remove()


@contextmanager
def collect_sizes(net: nn.Module) -> Iterator[list[torch.Tensor]]:
    """Collect the mean absolute code ‖T‖₁/|T| of each sparse layer as it runs, for `l1_term`, while the block lasts."""
    sizes: list[torch.Tensor] = []
    layers = sparse_layers(net).values()
    for layer in layers:
        layer.sizes = sizes
    try:
        yield sizes
    finally:
        for layer in layers:
            layer.sizes = None


def l1_term(sizes: list[torch.Tensor]) -> torch.Tensor | float:
    """Σ over layers of the mean absolute code; 0 for a network without sparse layers."""
    return torch.stack(sizes).sum() if sizes else 0.0


@dataclass(frozen=True)
class Measures:
    """Figures of the sparse layers on a set of images.

    Attributes:
        names: Names of the layers.
        threshold: `(layers,)` λ.
        error: `(layers,)` mean R.
        sparsity: `(layers,)` mean share of zeros.
        size: `(layers,)` mean absolute code.
    """

    names: tuple[str, ...]
    threshold: torch.Tensor
    error: torch.Tensor
    sparsity: torch.Tensor
    size: torch.Tensor


@torch.no_grad()
def measure(net: nn.Module, images: torch.Tensor, batch: int = 100) -> Measures:
    """Run a network in the mode it is in and measure its sparse layers.

    Args:
        net: A network; put it in eval mode first, or a training-mode run moves its buffers.
        images: `(N, C, H, W)`.
        batch: Images at a time.

    Raises:
        ValueError: There is no image, or the network has no sparse layer.
    """
    layers = sparse_layers(net)
    if not layers or len(images) == 0:
        raise ValueError(
            "There is nothing to measure: it takes a network with sparse layers and at least one image."
        )
    sums = torch.zeros(3, len(layers), dtype=torch.float64)
    with observe(net) as seen:
        for i in range(0, len(images), batch):
            seen.clear()
            net(images[i : i + batch])
            parts = [(o.error(), sparsity(o.codes), o.codes.abs().flatten(1).mean(1)) for o in seen]
            sums += torch.tensor([[float(p[k].double().sum()) for p in parts] for k in range(3)])
    sums /= len(images)
    lam = torch.tensor([layer.threshold.item() for layer in layers.values()])
    return Measures(tuple(layers), lam, *sums.float())
