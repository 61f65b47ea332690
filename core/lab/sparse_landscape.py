"""The adaptation objective of one layer over λ: its local minimum, the barrier behind it, the runaway to infinity, and what K does to them.

It is the picture behind the guards of `core.tacsc.adapt`. λ is not moved here.
"""

from __future__ import annotations

import copy
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
import torch
from torch import nn

from core.data.corruptions import corrupt_many
from core.images.maps_pairs import digest
from core.lab.jobs import RUNNER, Ticket
from core.lab.keys import settings_key
from core.lab.sparse_here import as_pictures, usable
from core.lab.sparse_images import Pictures
from core.lab.sparse_look import into, resolved
from core.lab.sparse_names import layer_words
from core.settings.knob import check
from core.settings.tacsc import AdaptSettings
from core.tacsc.adapt import objective_curve
from core.tacsc.hypergradient import local_error
from core.tacsc.layer import CSCConv2d, sparse_layers
from core.tacsc.objective import observe

GRID = 48
"""Values of λ on which the objective is drawn."""
LOWEST = 20.0
"""The grid begins at the trained λ over this."""
IMAGES = 16
"""Pictures that the curves are means over."""

Report = Callable[[int, int, Mapping[str, Any]], None]


@dataclass(frozen=True, eq=False)
class Curve:
    """The objective of one layer for one K over λ.

    Attributes:
        iterations: K.
        objective: `(G,)` R/(λ + ε), means over the images.
        error: `(G,)` R.
        sparsity: `(G,)` share of zero codes.
        minimum: Index of the local minimum into which λ rolls from its trained value; None where it rolls to an end of the grid.
        barrier: Index of the highest point behind the minimum, over which λ would run away; None where there is no minimum.
        runaway: First index behind the barrier where the objective is below the local minimum; without a minimum the start, where λ rolls
            up for ever; None where the grid ends first, or where λ rolls down to 0.
        slope: Sign of the objective's slope at the trained λ: −1 says "up", +1 "down", 0 rests.
    """

    iterations: int
    objective: np.ndarray = field(repr=False)
    error: np.ndarray = field(repr=False)
    sparsity: np.ndarray = field(repr=False)
    minimum: int | None
    barrier: int | None
    runaway: int | None
    slope: int


@dataclass(frozen=True, eq=False)
class Landscape:
    """The one-dimensional picture behind the guards.

    Attributes:
        key: The network.
        layer: The layer in words.
        corruption: Of the images, or `"clean"`.
        severity: 0 for clean.
        thresholds: `(G,)` λ, geometric; the last ones leave nothing of the image.
        trained: λ after training.
        trained_iterations: K of training; the other curves use the same atoms.
        low: Lower end of λ's reach.
        high: Upper end.
        curves: One a K, in the order asked.
    """

    key: str
    layer: str
    corruption: str
    severity: int
    thresholds: np.ndarray = field(repr=False)
    trained: float
    trained_iterations: int
    low: float
    high: float
    curves: tuple[Curve, ...]


def landscape(
    key: str | nn.Module,
    pictures: Pictures | np.ndarray,
    iterations: tuple[int, ...] = (1, 2, 4, 8),
    corruption: str = "clean",
    severity: int = 0,
    settings: AdaptSettings | None = None,
    seed: int = 0,
    layer: int = 0,
    on_step: Report | None = None,
) -> Landscape:
    """R/(λ + ε) of one layer over λ for several K, with the local minimum and the runaway.

    Args:
        key: As in `watch`.
        pictures: As in `watch`; the first `IMAGES` are used.
        iterations: Values of K.
        corruption: As in `watch`.
        severity: As in `watch`.
        settings: For ε and the reach.
        seed: Of the corruption.
        layer: Which sparse layer, from 0 in order of depth; its input is taken at the trained λ of those before it.
        on_step: `(done, total, facts)` after each K.

    Raises:
        ValueError: As in `watch`, or there is no such layer.
    """
    settings = settings or AdaptSettings()
    check(settings)
    net, segments = resolved(key)
    layers = list(sparse_layers(net).items())
    if not 0 <= layer < len(layers):
        raise ValueError(
            f"The network has {len(layers)} sparse layers, counted from 0; there is none with the number {layer}."
        )
    images = usable(as_pictures(pictures), segments)[:IMAGES]
    at = 0 if corruption == "clean" else severity
    damaged = images if at == 0 else corrupt_many(images, corruption, at, seed)
    name, one = layers[layer]
    x = _input_of(net, layer, into(damaged, segments))
    trained = one.threshold.item()
    top = float(one.geometry(x).analysis(x, one.atoms()).abs().max())
    thresholds = np.geomspace(trained / LOWEST, max(1.1 * top, 3 * trained), GRID)
    curves = []
    for k, many in enumerate(iterations):
        work = copy.deepcopy(one)
        work.settings = replace(one.settings, iterations=many)
        check(work.settings)
        curves.append(_curve(work, x, thresholds, settings.offset))
        if on_step is not None:
            on_step(k + 1, len(iterations), {"iterations": many})
    return Landscape(
        key=key if isinstance(key, str) else type(net).__name__,
        layer=layer_words(name),
        corruption=corruption,
        severity=at,
        thresholds=thresholds,
        trained=trained,
        trained_iterations=one.settings.iterations,
        low=trained / settings.reach,
        high=trained * settings.reach,
        curves=tuple(curves),
    )


@torch.no_grad()
def _input_of(net: nn.Module, layer: int, x: torch.Tensor) -> torch.Tensor:
    """What a sparse layer sees of images; hooks sit on a copy."""
    if layer == 0:
        return x
    with observe(work := copy.deepcopy(net)) as seen:
        work(x)
    return seen[layer].x


def _curve(layer: CSCConv2d, x: torch.Tensor, thresholds: np.ndarray, offset: float) -> Curve:
    error, objective, zeros = (
        t.double().numpy() for t in objective_curve(layer, x, torch.from_numpy(thresholds), offset)
    )
    here, lam = local_error(layer, x), layer.threshold.item() + offset
    pull = float(here.slope.double().mean()) / lam - float(here.error.double().mean()) / lam**2
    minimum, barrier, runaway = shape_of(objective, int(np.abs(np.log(thresholds / (lam - offset))).argmin()))
    return Curve(
        layer.settings.iterations, objective, error, zeros, minimum, barrier, runaway, int(np.sign(pull))
    )


def shape_of(objective: np.ndarray, start: int) -> tuple[int | None, int | None, int | None]:
    """Local minimum, barrier and runaway of a curve, as in `Curve`.

    Args:
        objective: `(G,)`.
        start: Index from which λ rolls downhill.
    """
    last = len(objective) - 1
    i = start
    way = 1 if i == 0 or (i < last and objective[i + 1] < objective[i - 1]) else -1
    while 0 <= i + way <= last and objective[i + way] < objective[i]:
        i += way
    if i == last:
        return None, None, start
    if i == 0:
        return None, None, None
    top = i
    while top < last and objective[top + 1] >= objective[top]:
        top += 1
    beyond = np.flatnonzero(objective[top:] < objective[i])
    return i, top, int(top + beyond[0]) if len(beyond) else None


def start_landscape(
    key: str,
    pictures: Pictures,
    iterations: tuple[int, ...] = (1, 2, 4, 8),
    corruption: str = "clean",
    severity: int = 0,
    settings: AdaptSettings | None = None,
    seed: int = 0,
    layer: int = 0,
    owner: str = "",
) -> Ticket:
    """`landscape` through the one runner; `ticket.result()` is a `Landscape`."""
    settings = settings or AdaptSettings()
    parts = (key, digest(pictures.images), iterations, corruption, severity, settings, seed, layer, owner)
    return RUNNER.submit(
        settings_key("sparse.landscape", *parts),
        lambda on_step: landscape(
            key, pictures, iterations, corruption, severity, settings, seed, layer, on_step
        ),
    )
