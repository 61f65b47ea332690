"""What a sparse layer does to pictures, and what a network answers: the pieces that the live run and the first screen show.

The first layer of every network here sees the picture itself, so clean, damaged, reconstructed and coded stand side by side. No λ moves here
(`sparse_here`), nothing is put into words.
"""

from __future__ import annotations

import copy
import math
from dataclasses import dataclass, field

import numpy as np
import torch
from torch import nn

from core.data.corruptions import corrupt_many
from core.lab.sparse_images import CIFAR_CLASSES, eight_bit
from core.lab.sparse_shelf import network
from core.lab.sparse_train import MEAN, STD, prepared
from core.lab.sparse_unet import mean_dice, scores, to_input
from core.tacsc.layer import CSCConv2d, inverse_softplus, sparse_layers
from core.tacsc.nets import ResNet18
from core.tacsc.objective import relative_error, sparsity

SHOWN = 8
"""Pictures whose codes and reconstructions are kept for the screen."""


@dataclass(frozen=True, eq=False)
class Look:
    """The first sparse layer on some pictures: clean -> damaged -> reconstructed -> codes. n <= SHOWN pictures.

    Attributes:
        severity: 0 (clean) to 5.
        threshold: λ of the layer.
        images: `(n, S, S, 3)` uint8, what the layer saw (damaged).
        reconstruction: `(n, S, S, 3)` uint8, Dc back in the units of a picture.
        codes: `(n, O, H', W')` float32, signed. Show them through `core.images.display.to_display`.
        sparsity: `(n,)` share of zero codes.
        error: `(n,)` R, relative and squared.
    """

    severity: int
    threshold: float
    images: np.ndarray = field(repr=False)
    reconstruction: np.ndarray = field(repr=False)
    codes: np.ndarray = field(repr=False)
    sparsity: np.ndarray = field(repr=False)
    error: np.ndarray = field(repr=False)


@dataclass(frozen=True, eq=False)
class Answers:
    """What the network says of the M held-back pictures under one way of adaptation.

    Attributes:
        adapt: `"none"`, `"bn"`, `"lambda"`, `"both"`; `"clean"` is the unchanged network on the clean pictures.
        probabilities: `(M, K)` softmax of a classifier; None for a U-Net.
        scores: `(M, S, S)` float32 logit differences of a U-Net, lesion where above 0; None for a classifier.
        right: Share of right classes, or mean Dice over pictures with a lesion, where the truth is known; else NaN.
        same: Share of pictures with the top class of `"clean"`, or mean Dice with `"clean"`'s mask: asks no truth.
    """

    adapt: str
    probabilities: np.ndarray | None = field(repr=False)
    scores: np.ndarray | None = field(repr=False)
    right: float
    same: float

    def top(self, image: int, count: int = 3, names: tuple[str, ...] = ()) -> list[tuple[str, float]]:
        """The likeliest classes of a held-back picture with their probabilities; `names` default to CIFAR-10's. Empty for a U-Net."""
        if self.probabilities is None:
            return []
        shares = self.probabilities[image]
        known = names or (
            CIFAR_CLASSES
            if len(shares) == len(CIFAR_CLASSES)
            else tuple(f"class {k}" for k in range(len(shares)))
        )
        return [(known[k], float(shares[k])) for k in np.argsort(-shares, kind="stable")[:count]]

    def mask(self, image: int) -> np.ndarray | None:
        """`(S, S)` bool of a held-back picture; None for a classifier."""
        return None if self.scores is None else self.scores[image] > 0


def looks(
    key: str | nn.Module,
    images: np.ndarray,
    corruption: str,
    thresholds: np.ndarray | None = None,
    seed: int = 0,
) -> tuple[tuple[Look, Look], ...]:
    """The first layer at severities 0 to 5 for the first screen: milliseconds, no adaptation, no other layer runs. Cached by the page.

    Args:
        key: As in `watch`.
        images: `(n, S, S, 3)` uint8, n <= SHOWN.
        corruption: One of `CORRUPTIONS`.
        thresholds: `(6,)` λ of the first layer to show as adapted, for instance `Severity.threshold[:, 0]`; None repeats the trained one.
        seed: Of the corruption.

    Returns:
        Six pairs: at the trained λ, and at the other one.
    """
    net, segments = resolved(key)
    layers = sparse_layers(net)
    if not layers:
        raise ValueError("This network has no sparse layer, so there are no codes to look at.")
    layer = next(iter(layers.values()))
    clean = eight_bit(images)[:SHOWN]
    found = []
    for s in range(6):
        damaged = clean if s == 0 else corrupt_many(clean, corruption, s, seed)
        pair = [look_at(layer, damaged, segments, s)]
        other = math.nan if thresholds is None else float(thresholds[s])
        pair.append(look_at(layer, damaged, segments, s, other) if math.isfinite(other) else pair[0])
        found.append((pair[0], pair[1]))
    return tuple(found)


def resolved(key: str | nn.Module) -> tuple[nn.Module, bool]:
    """A network, and whether it is a U-Net.

    Raises:
        FileNotFoundError: It does not ship.
    """
    net = network(key) if isinstance(key, str) else key
    return net, not isinstance(net, ResNet18)


def into(images: np.ndarray, segments: bool) -> torch.Tensor:
    """`(N, S, S, 3)` uint8 -> what the network takes."""
    return to_input(images) if segments else prepared(images)


def back(x: torch.Tensor, segments: bool) -> np.ndarray:
    """`(N, 3, S, S)` in a network's units -> `(N, S, S, 3)` uint8, clipped."""
    x = (x + 1) * 127.5 if segments else (x * STD + MEAN) * 255
    return np.ascontiguousarray(x.clamp(0, 255).round().to(torch.uint8).permute(0, 2, 3, 1).numpy())


@torch.no_grad()
def look_at(
    layer: CSCConv2d, images: np.ndarray, segments: bool, severity: int, threshold: float | None = None
) -> Look:
    """The first layer on pictures.

    Args:
        layer: The first sparse layer of a network; it is not changed.
        images: `(n, S, S, 3)` uint8.
        segments: Whether the network is a U-Net: it decides the units.
        severity: What was done to the pictures, 0 to 5.
        threshold: λ; None takes the layer's.
    """
    work = copy.deepcopy(layer).eval()
    if threshold is not None:
        work.rho.data.fill_(inverse_softplus(threshold))
    x = into(images, segments).to(work.weight.device)
    codes = work(x)
    again = work.reconstruct(codes, x)
    return Look(
        severity,
        work.threshold.item(),
        images,
        back(again.cpu(), segments),
        codes.cpu().contiguous().numpy(),
        sparsity(codes).cpu().numpy(),
        relative_error(x, again).cpu().numpy(),
    )


@torch.no_grad()
def answers_of(
    net: nn.Module,
    images: np.ndarray,
    segments: bool,
    adapt: str,
    truth: np.ndarray | None = None,
    clean: Answers | None = None,
) -> Answers:
    """Ask a network.

    Args:
        net: In eval mode.
        images: `(M, S, S, 3)` uint8.
        segments: Whether it is a U-Net.
        adapt: How it was adapted.
        truth: `(M,)` classes or `(M, S, S)` bool masks, where they are known and still fit.
        clean: What the unchanged network says of the clean pictures; None where this is that.
    """
    if segments:
        score = scores(net, into(images, True))
        right = math.nan if truth is None else mean_dice(score, torch.from_numpy(truth))
        same = (
            1.0
            if clean is None or clean.scores is None
            else mean_dice(score, torch.from_numpy(clean.scores > 0))
        )
        return Answers(adapt, None, score.numpy(), right, same)
    device = next(net.parameters()).device
    shares = net(into(images, False).to(device)).float().softmax(1).cpu().numpy()
    said = shares.argmax(1)
    right = math.nan if truth is None else float((said == truth).mean())
    same = (
        1.0
        if clean is None or clean.probabilities is None
        else float((said == clean.probabilities.argmax(1)).mean())
    )
    return Answers(adapt, shares, None, right, same)
