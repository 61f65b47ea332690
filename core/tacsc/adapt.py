"""Following new images without labels: λ of the sparse layers, and the statistics of batch normalisation as a separate switch (METHODS 4.9).

λ moves to make Σ R_n/(λ_n + ε) smaller, R_n the squared relative reconstruction error of layer n, all else frozen and in
eval mode. The global minimum of this lies at λ = infinity, where nothing is left of the image; only the shallow local one
is of use, and whether λ wants up or down depends on K. Hence the guards: start from the trained λ, few small steps, a
reach that λ cannot leave, and a layer stops where its error rises above a limit. Batch normalisation is refreshed after
λ. The network that is given stays as it is: work is done on a copy.
"""

from __future__ import annotations

import copy
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any

import torch
from torch import nn

from core.settings.knob import check
from core.settings.tacsc import AdaptSettings
from core.tacsc.hypergradient import local_error
from core.tacsc.inputs import BATCH, check_images, chunks
from core.tacsc.layer import CSCConv2d, inverse_softplus, sparse_layers
from core.tacsc.norms import refresh_norms
from core.tacsc.objective import observe, sparsity

OnStep = Callable[[int, int, Mapping[str, Any]], None]
ROOM = 0.02
"""A layer whose error is above the limit before the first step may rise by so much."""


class _Enough(Exception):
    """The last sparse layer has its input: the rest of the network need not run."""


@dataclass(frozen=True)
class Adapted:
    """What adaptation found.

    Attributes:
        settings: How it was done.
        images: Images that it saw.
        names: Names of the sparse layers.
        threshold: `(S + 1, layers)` λ before the first and after each step; one row where λ stayed.
        error: `(S + 1, layers)` mean R of each layer at these λ.
        sparsity: `(S + 1, layers)` mean share of zero codes.
        objective: `(S + 1,)` Σ R/(λ + ε).
        stopped: Layer -> why it stopped before the last step.
        state: Values that differ from the network's: ρ of the layers, and mean and variance of batch normalisation.
    """

    settings: AdaptSettings
    images: int
    names: tuple[str, ...]
    threshold: torch.Tensor
    error: torch.Tensor
    sparsity: torch.Tensor
    objective: torch.Tensor
    stopped: Mapping[str, str]
    state: Mapping[str, torch.Tensor] = field(repr=False)


def _local_pass(net: nn.Module, images: torch.Tensor, batch: int) -> torch.Tensor:
    """`(3, layers)` mean R, mean dR/dλ and mean sparsity, each layer's input taken as given."""
    layers = list(sparse_layers(net).values())
    sums = torch.zeros(3, len(layers), dtype=torch.float64)
    place = {id(layer): k for k, layer in enumerate(layers)}
    heard: list[int] = []

    def listen(layer: CSCConv2d, inputs: tuple[torch.Tensor]) -> None:
        found = local_error(layer, inputs[0])
        heard.append(place[id(layer)])
        values = torch.stack([found.error, found.slope, found.sparsity]).double().sum(1)
        sums[:, heard[-1]] += values.cpu()
        if len(heard) == len(layers):
            raise _Enough

    handles = [layer.register_forward_pre_hook(listen) for layer in layers]
    try:
        with torch.no_grad():
            for part in chunks(images, batch):
                heard.clear()
                with suppress(_Enough):
                    net(part)
    finally:
        for handle in handles:
            handle.remove()
    return sums / len(images)


def _joint_pass(net: nn.Module, images: torch.Tensor, batch: int, offset: float) -> torch.Tensor:
    """As `_local_pass`, but the second row is the whole derivative of Σ R/(λ + ε) by each λ, through the layers behind."""
    layers = list(sparse_layers(net).values())
    sums = torch.zeros(3, len(layers), dtype=torch.float64)
    for layer in layers:
        layer.rho.requires_grad_(True)
    with observe(net) as seen:
        for part in chunks(images, batch):
            seen.clear()
            net(part)
            errors = [o.error() for o in seen]
            total = torch.stack(
                [e.sum() / (o.layer.threshold + offset) for e, o in zip(errors, seen, strict=True)]
            ).sum()
            slopes = torch.autograd.grad(total, [layer.rho for layer in layers])
            for k, (o, e, g) in enumerate(zip(seen, errors, slopes, strict=True)):
                values = (
                    e.detach().sum(),
                    g / torch.sigmoid(layers[k].rho.detach()),
                    sparsity(o.codes).sum(),
                )
                sums[:, k] += torch.stack(values).double().cpu()
    for layer in layers:
        layer.rho.requires_grad_(False)
    return sums / len(images)


def adapt(
    net: nn.Module,
    images: torch.Tensor,
    settings: AdaptSettings | None = None,
    on_step: OnStep | None = None,
    batch: int = BATCH,
) -> Adapted:
    """Find λ and statistics for images without labels; the network is not changed (`adapted_copy` applies what was found).

    Args:
        net: A network with batch normalisation, and with sparse layers if λ is to move.
        images: `(N, C, H, W)`, N >= 2, prepared as in training.
        settings: What adapts, and how far.
        on_step: `(done, total, facts)` after each step on λ; facts hold lists `threshold`, `error`, `sparsity` by layer. It may raise to stop.
        batch: Images at a time.

    Raises:
        ValueError: The images hold nothing to follow (see `check_images`), λ is to move but there is no sparse layer, or a
            setting is out of range.
    """
    settings = settings or AdaptSettings()
    check(settings)
    check_images(images)
    work = copy.deepcopy(net).eval().requires_grad_(False)
    layers = sparse_layers(work)
    moves = settings.what in ("lambda", "both")
    if moves and not layers:
        raise ValueError(
            "This network has no sparse layer, so there is no λ to adapt. Batch normalisation can follow: choose bn."
        )
    rows: list[tuple[torch.Tensor, ...]] = []
    stopped: dict[str, str] = {}
    if moves:
        _move(work, images, settings, rows, stopped, on_step, batch)
    if settings.what in ("bn", "both"):
        refresh_norms(work, images, settings.prior, batch)
    old = net.state_dict()
    state = {
        k: v.clone()
        for k, v in work.state_dict().items()
        if (v.shape != old[k].shape or not torch.equal(v, old[k])) and not k.endswith("num_batches_tracked")
    }
    if not rows:
        lam = torch.tensor([layer.threshold.item() for layer in layers.values()])
        rows.append(
            (lam, torch.full_like(lam, torch.nan), torch.full_like(lam, torch.nan), torch.tensor(torch.nan))
        )
    lam, error, zeros, objective = (torch.stack(column) for column in zip(*rows, strict=True))
    return Adapted(settings, len(images), tuple(layers), lam, error, zeros, objective, stopped, state)


def _move(
    net: nn.Module,
    images: torch.Tensor,
    settings: AdaptSettings,
    rows: list[tuple[torch.Tensor, ...]],
    stopped: dict[str, str],
    on_step: OnStep | None,
    batch: int,
) -> None:
    """Move ρ of a network in place and keep a row for each state."""
    layers = sparse_layers(net)
    rhos = [layer.rho for layer in layers.values()]
    start = [layer.threshold.item() for layer in layers.values()]
    low = [inverse_softplus(v / settings.reach) for v in start]
    high = [inverse_softplus(v * settings.reach) for v in start]
    optimiser = torch.optim.Adam(rhos, settings.rate)
    last = [rho.clone() for rho in rhos]
    first: torch.Tensor | None = None
    for step in range(settings.steps + 1):
        if settings.across_layers:
            error, slope, zeros = _joint_pass(net, images, batch, settings.offset)
        else:
            error, slope, zeros = _local_pass(net, images, batch)
        lam = torch.stack([rho.detach() for rho in rhos]).double().cpu()
        lam = nn.functional.softplus(lam)
        below = lam + settings.offset
        whole = slope if settings.across_layers else slope / below - error / below.square()
        first = error if first is None else first
        rows.append((lam.float(), error.float(), zeros.float(), (error / below).sum().float()))
        if on_step is not None:
            facts = {"threshold": lam.tolist(), "error": error.tolist(), "sparsity": zeros.tolist()}
            on_step(step, settings.steps, facts)
        if step == settings.steps:
            return
        for k, (name, rho) in enumerate(zip(layers, rhos, strict=True)):
            limit = max(settings.highest_error, float(first[k]) + ROOM)
            if name not in stopped and error[k] > limit:
                stopped[name] = f"its error rose to {error[k]:.2f}"
                rho.data.copy_(last[k])
            rho.grad = None
            if name not in stopped:
                last[k] = rho.clone()
                rho.grad = (whole[k] * torch.sigmoid(rho.detach().double().cpu())).to(rho)
        optimiser.step()
        for k, rho in enumerate(rhos):
            rho.data.clamp_(low[k], high[k])


def adapted_copy(net: nn.Module, found: Adapted) -> nn.Module:
    """A copy of the network in eval mode with what adaptation found."""
    work = copy.deepcopy(net).eval()
    work.load_state_dict({**work.state_dict(), **found.state})
    return work


def objective_curve(
    layer: CSCConv2d, x: torch.Tensor, thresholds: torch.Tensor, offset: float = 0.01
) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    """The picture behind the guards: R, R/(λ + ε) and sparsity of one layer at many λ.

    Args:
        layer: A sparse layer; it is not changed.
        x: `(N, C, H, W)` its input.
        thresholds: `(M,)` values of λ above 0.
        offset: ε.

    Returns:
        Three tensors `(M,)`, means over the images.
    """
    work = copy.deepcopy(layer).eval().requires_grad_(False)
    rows = []
    for value in thresholds.tolist():
        work.rho.data.fill_(inverse_softplus(value))
        found = local_error(work, x)
        rows.append((found.error.mean(), found.error.mean() / (value + offset), found.sparsity.mean()))
    error, objective, zeros = (torch.stack(column) for column in zip(*rows, strict=True))
    return error, objective, zeros
