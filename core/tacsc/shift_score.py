"""How far λ and the reconstruction error want to move on unlabelled images, as a score for "these are not like the training images".

For each image and sparse layer: the pull on λ, 1 − d log R/d log(λ + ε), which is 0 where the objective of adaptation rests
and above 0 where λ wants up; and log R. Both come from one forward pass (`hypergradient.py`). A reference holds their mean
and covariance over clean images that the score is not tested on; the score of n images is the squared Mahalanobis distance
of their mean, times n, over the number of features: about 1 for images like the reference. It is a warning, no test of a
hypothesis: images of one batch need not be independent.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import nn

from core.tacsc.hypergradient import LocalError, local_error
from core.tacsc.inputs import crops
from core.tacsc.layer import CSCConv2d, sparse_layers

OFFSET = 0.01
PARTS = ("lambda", "error", "both")


@dataclass(frozen=True)
class Wishes:
    """What the layers want on each image.

    Attributes:
        names: Names of the sparse layers.
        pull: `(N, layers)` 1 − d log R/d log(λ + ε).
        log_error: `(N, layers)` log R.
    """

    names: tuple[str, ...]
    pull: torch.Tensor
    log_error: torch.Tensor

    def features(self, part: str = "both") -> torch.Tensor:
        """`(N, F)`: pulls, log errors, or both side by side.

        Raises:
            ValueError: The part is not one of `PARTS`.
        """
        if part not in PARTS:
            raise ValueError(f"The score looks at one of {', '.join(PARTS)}, not at {part!r}.")
        chosen = {"lambda": [self.pull], "error": [self.log_error], "both": [self.pull, self.log_error]}
        return torch.cat(chosen[part], 1)


@torch.no_grad()
def wishes(net: nn.Module, images: torch.Tensor, batch: int = 100) -> Wishes:
    """Ask a network, in eval mode on a forward pass, what its layers want on each image.

    Args:
        net: A network with sparse layers; hooks sit on it while this runs.
        images: `(N, C, H, W)`, prepared as in training.
        batch: Images at a time.

    Raises:
        ValueError: No sparse layer, no image, or values that are no numbers.
    """
    layers = sparse_layers(net)
    if not layers:
        raise ValueError("This network has no sparse layer, so no λ can want to move.")
    if len(images) == 0 or not bool(torch.isfinite(images).all()):
        raise ValueError("The shift score takes at least one image, and every value must be a number.")
    net.eval()
    found: dict[str, list[LocalError]] = {name: [] for name in layers}
    name_of = {id(layer): name for name, layer in layers.items()}

    def listen(layer: CSCConv2d, inputs: tuple[torch.Tensor]) -> None:
        found[name_of[id(layer)]].append(local_error(layer, inputs[0]))

    handles = [layer.register_forward_pre_hook(listen) for layer in layers.values()]
    try:
        for i in range(0, len(images), batch):
            net(images[i : i + batch])
    finally:
        for handle in handles:
            handle.remove()
    pulls, errors = [], []
    for name, layer in layers.items():
        error = torch.cat([f.error for f in found[name]]).double().clamp(min=1e-10)
        slope = torch.cat([f.slope for f in found[name]]).double()
        pulls.append(1 - slope * (layer.threshold.double() + OFFSET) / error)
        errors.append(error.log())
    return Wishes(tuple(layers), torch.stack(pulls, 1).cpu(), torch.stack(errors, 1).cpu())


def wishes_of_crops(
    net: nn.Module, images: torch.Tensor, count: int, side: int, rng: torch.Generator, batch: int = 128
) -> Wishes:
    """As `wishes`, but each image speaks through the mean over some of its crops; for single images.

    Args:
        net: A network with sparse layers.
        images: `(N, C, H, W)`.
        count: Crops of each image.
        side: Their side.
        rng: Source of the places.
        batch: Crops at a time.
    """
    cut = torch.cat([crops(image, count, side, rng) for image in images])
    each = wishes(net, cut, batch)
    shape = (len(images), count, len(each.names))
    return Wishes(each.names, each.pull.reshape(shape).mean(1), each.log_error.reshape(shape).mean(1))


@dataclass(frozen=True)
class Reference:
    """Clean images, summed up.

    Attributes:
        mean: `(F,)` mean of the features.
        inverse: `(F, F)` inverse of their covariance.
        images: Images behind it.
    """

    mean: torch.Tensor
    inverse: torch.Tensor
    images: int

    def score(self, features: torch.Tensor) -> float:
        """Score of the images `(n, F)` taken together, about 1 for images like the reference."""
        away = features.double().mean(0) - self.mean
        return float(len(features) * (away @ self.inverse @ away) / len(away))


def reference(features: torch.Tensor, ridge: float = 0.05) -> Reference:
    """Mean and covariance of clean images.

    Args:
        features: `(N, F)` from `Wishes.features`, N >= 2.
        ridge: Share of each feature's own variance in the covariance, so that it can be inverted.

    Raises:
        ValueError: Fewer than two images.
    """
    n = len(features)
    if n < 2:
        raise ValueError(f"A reference needs at least two clean images, not {n}; some hundred are better.")
    centred = features.double() - features.double().mean(0)
    covariance = centred.T @ centred / (n - 1)
    own = torch.diag(covariance.diagonal().clamp(min=1e-12))
    return Reference(features.double().mean(0), torch.linalg.inv((1 - ridge) * covariance + ridge * own), n)


def auroc(shifted: torch.Tensor, clean: torch.Tensor) -> float:
    """Chance that a shifted score lies above a clean one, ties counted half; scores `(A,)` and `(B,)`.

    Raises:
        ValueError: One side is empty.
    """
    if len(shifted) == 0 or len(clean) == 0:
        raise ValueError("A ROC needs scores of both kinds.")
    a, b = shifted.double()[:, None], clean.double()[None]
    return float(((a > b).double() + 0.5 * (a == b).double()).mean())


def roc(shifted: torch.Tensor, clean: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
    """False-alarm rate and detection rate at every threshold, both rising from 0 to 1."""
    limits = torch.cat([shifted, clean]).double().unique().flip(0)
    ends = torch.tensor([torch.inf], dtype=torch.float64)
    limits = torch.cat([ends, limits])
    false = (clean.double()[None] >= limits[:, None]).double().mean(1)
    true = (shifted.double()[None] >= limits[:, None]).double().mean(1)
    return false, true
