"""One image under the shipped networks of a set: what each loss's network says, how sure it is, and where it is wrong.

What it is not: a measurement of a set (`margin_measure`), or a chart. The networks see a square of 96 x 96 pixels; what is returned is cut to the
part of it that is no padding.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import numpy as np
import torch

from core.lab.margin_record import TITLES
from core.lab.margin_sets import CLASSES, MARGIN_SETS, square_of
from core.lab.margin_train import logits_of
from core.margin.losses import logit_distances
from core.margin.pixels import SCOPES
from core.margin.reliability import Reliability, ece, tabulate
from core.nets.weights import ASSETS, load_network

SCALED = "CE + T"
"""Cross-entropy's network with its logits divided by the temperature of the record."""


@dataclass(frozen=True, eq=False)
class View:
    """One image under one network. H and W are at most 96.

    Attributes:
        loss: Short name of the loss.
        picture: `(H, W, 3)` uint8, what the network sees.
        confidence: `(H, W)` float32 in [0, 1], the largest probability of each pixel.
        predicted: `(H, W)` int64, the class of that probability.
        truth: `(H, W)` int64, or None where no mask is known.
        distance: `(H, W)` float32, how far the second largest logit lies below the largest, in logits.
        tables: Scope -> reliability table of this image; empty without a mask.
    """

    loss: str
    picture: np.ndarray
    confidence: np.ndarray
    predicted: np.ndarray
    truth: np.ndarray | None
    distance: np.ndarray
    tables: dict[str, Reliability]

    @property
    def wrong(self) -> np.ndarray | None:
        """`(H, W)` bool, True where the prediction is wrong; None without a mask."""
        return None if self.truth is None else self.predicted != self.truth

    def ece(self, scope: str) -> float | None:
        """ECE of this image; None without a mask or without a pixel in the scope."""
        table = self.tables.get(scope)
        return ece(table) if table is not None and table.pixels else None

    @property
    def sure(self) -> float:
        """Mean confidence over all pixels."""
        return float(self.confidence.mean())

    @property
    def right(self) -> float | None:
        """Share of pixels that are right; None without a mask."""
        wrong = self.wrong
        return None if wrong is None else float(1 - wrong.mean())


def network_name(data: str, loss: str) -> str:
    """Name of a shipped network: `margin-phantom-ce`. Temperature scaling has cross-entropy's."""
    return f"margin-{data}-{'ce' if loss == SCALED else loss.lower()}"


def networks_there(data: str) -> tuple[str, ...]:
    """Short names of the losses whose network of a set lies in `assets/weights`."""
    return tuple(
        loss for loss in TITLES if (ASSETS / "weights" / f"{network_name(data, loss)}.safetensors").is_file()
    )


@lru_cache(maxsize=32)
def _network(name: str) -> torch.nn.Module:
    path = ASSETS / "weights" / f"{name}.safetensors"
    if not path.is_file():
        raise FileNotFoundError(
            f"The network {name} is not in assets/weights, so there is no map of it. The recorded figures do not need it."
        )
    return load_network(path)[0]


def look(
    data: str,
    losses: Sequence[str],
    rgb: np.ndarray,
    mask: np.ndarray | None = None,
    temperatures: dict[str, float] | None = None,
) -> dict[str, View]:
    """Run the networks of some losses on one image.

    Args:
        data: The set whose networks look.
        losses: Short names of the losses.
        rgb: `(H, W, 3)` uint8 of any size.
        mask: `(H, W)` bool, the foreground; None where it is not known.
        temperatures: Loss -> what its logits are divided by; 1 where absent.

    Returns:
        Loss -> its view, in the order asked for.

    Raises:
        FileNotFoundError: A network is not here; the sentence names it.
        ValueError: The set is not known, the image is no RGB picture, or the mask has another size.
    """
    if data not in MARGIN_SETS:
        raise ValueError(f"The set {data!r} is not known; known: {', '.join(MARGIN_SETS)}.")
    if rgb.ndim != 3 or rgb.shape[2] != 3 or not rgb.size:
        raise ValueError(f"The networks look at RGB pictures (H, W, 3); this one is {rgb.shape}.")
    if mask is not None and mask.shape != rgb.shape[:2]:
        raise ValueError(
            f"The mask has {mask.shape[1]} × {mask.shape[0]} pixels and the picture {rgb.shape[1]} × {rgb.shape[0]}."
        )
    known = np.zeros(rgb.shape[:2], bool) if mask is None else mask
    image, labels, ignore = square_of(data, rgb, known)
    at = _kept(ignore)
    picture = ((image[:, *at] + 1) * 127.5).round().clamp(0, 255).byte().movedim(0, -1).numpy()
    truth = None if mask is None else labels[at]
    return {
        loss: _view(
            loss,
            _network(network_name(data, loss)),
            image,
            at,
            picture,
            truth,
            (temperatures or {}).get(loss, 1.0),
        )
        for loss in losses
    }


def _kept(ignore: torch.Tensor) -> tuple[slice, slice]:
    rows, columns = (~ignore).any(1).nonzero()[:, 0], (~ignore).any(0).nonzero()[:, 0]
    return slice(int(rows[0]), int(rows[-1]) + 1), slice(int(columns[0]), int(columns[-1]) + 1)


def _view(
    loss: str,
    model: torch.nn.Module,
    image: torch.Tensor,
    at: tuple[slice, slice],
    picture: np.ndarray,
    truth: torch.Tensor | None,
    temperature: float,
) -> View:
    logits = logits_of(model, image[None])[:, :, at[0], at[1]] / temperature
    confidence, predicted = torch.softmax(logits, 1)[0].max(0)
    second = logit_distances(logits)[0].topk(2, dim=0, largest=False).values[1]
    tables = {} if truth is None else {s: tabulate(logits[0], truth, scope=s) for s in SCOPES}
    given: Any = None if truth is None else truth.numpy()
    return View(loss, picture, confidence.numpy(), predicted.numpy(), given, second.numpy(), tables)


def view_sentence(views: dict[str, View], data: str, scope: str = "all") -> str:
    """Which network is closest to the truth about itself on this image; what is known where no mask is."""
    from core.conformal.words import percent

    if not views:
        return ""
    known = {loss: v.ece(scope) for loss, v in views.items()}
    there = {loss: e for loss, e in known.items() if e is not None}
    if not there:
        spread = [v.sure for v in views.values()]
        return (
            f"Without a mask nobody knows where the networks are wrong. On average they are {percent(min(spread))} to "
            f"{percent(max(spread))} sure of a pixel."
            if all(v.truth is None for v in views.values())
            else f"This image shows no {CLASSES[data][1]}, so nothing is counted in this scope; choose all pixels."
        )
    best, worst = min(there, key=there.__getitem__), max(there, key=there.__getitem__)
    first = f"On this image {TITLES[best]} is closest to what it says (ECE {100 * there[best]:.1f}\u00a0%)"
    if len(there) == 1:
        return first + "."
    return f"{first}, {TITLES[worst]} furthest ({100 * there[worst]:.1f}\u00a0%). One image is an anecdote; the table below is the evidence."
