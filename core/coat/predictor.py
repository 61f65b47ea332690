"""The threshold predictor: from an image, its score map and alpha to a threshold in logits. AT and COAT use
the same one.

It predicts a *correction of the plug-in thresholds*: their lowest knot is moved, and the steps between
knots are scaled by positive factors. So tau_hat rises with alpha by construction, an untrained predictor is
exactly the plug-in threshold, and one predictor serves every alpha without retraining. The paper (METHODS
1.5) regresses one threshold at one alpha from image and map with a ResNet-50; with a few hundred images a
small trunk beside global features is the stand-in.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise

import torch
from torch import nn

from core.coat.features import FEATURE_NAMES, PredictorInput
from core.coat.thresholds import ALPHA_KNOTS, between_knots
from core.nets.build import initialise


class ThresholdPredictor(nn.Module):
    """One member of an ensemble.

    Args:
        picture: Whether the small picture is seen; without it only the global features are.
        width: Hidden width.
        features: Number of global features; those of `FEATURE_NAMES` unless a trial brings its own.
        rng: Draws the initial weights; None leaves them as the layers were made (before weights are loaded).

    Shapes:
        forward: `PredictorInput` of N images -> `(N, A)` thresholds at `ALPHA_KNOTS`, rising along A.
    """

    def __init__(
        self,
        picture: bool = True,
        width: int = 48,
        features: int = len(FEATURE_NAMES),
        rng: torch.Generator | None = None,
    ) -> None:
        super().__init__()
        self.picture = picture
        f = features
        self.mean: torch.Tensor
        self.scale: torch.Tensor
        self.register_buffer("mean", torch.zeros(f))
        self.register_buffer("scale", torch.ones(f))
        channels = (4, 16, 32, 48)
        self.trunk = nn.Sequential(
            *(
                layer
                for a, b in pairwise(channels)
                for layer in (nn.Conv2d(a, b, 3, stride=2, padding=1), nn.GroupNorm(4, b), nn.SiLU())
            ),
            nn.AdaptiveAvgPool2d(1),
            nn.Flatten(),
        )
        self.hidden = nn.Sequential(nn.Linear(f + (channels[-1] if picture else 0), width), nn.SiLU())
        self.head = nn.Linear(width, len(ALPHA_KNOTS))
        if rng is not None:
            initialise(self, rng)
        nn.init.zeros_(self.head.weight)
        nn.init.zeros_(self.head.bias)

    def standardise(self, features: torch.Tensor) -> None:
        """Take mean and scale of the features from the images that fit the predictor, `(N, F)`."""
        self.mean.copy_(features.mean(0))
        self.scale.copy_(features.std(0).clamp(min=1e-3))

    def embed(self, given: PredictorInput) -> torch.Tensor:
        """Hidden features `(N, width)` ."""
        x = ((given.features - self.mean) / self.scale).clamp(-5, 5)
        if self.picture:
            x = torch.cat([x, self.trunk(given.picture)], 1)
        return self.hidden(x)

    def forward(self, given: PredictorInput, keep: torch.Tensor | None = None) -> torch.Tensor:
        """Thresholds at the knots. `keep` `(N, width)` multiplies the hidden features: a dropout mask drawn by the caller."""
        hidden = self.embed(given)
        change = self.head(hidden if keep is None else hidden * keep)
        steps = given.plug_in.diff(dim=1).clamp(min=1e-3) * torch.exp(change[:, 1:].clamp(-3, 3))
        first = given.plug_in[:, :1] + 2 * change[:, :1]
        return torch.cat([first, first + steps.cumsum(1)], 1)


@torch.no_grad()
def predict_knots(members: Sequence[ThresholdPredictor], given: PredictorInput) -> torch.Tensor:
    """Thresholds of an ensemble at `ALPHA_KNOTS`: the mean of its members, in eval mode, image by image.

    Args:
        members: One or more predictors.
        given: N images.

    Returns:
        `(N, A)` float32, rising along A.
    """
    rows = []
    for i in range(len(given)):
        one = given.select(torch.tensor([i]))
        rows.append(torch.stack([m.eval()(one) for m in members]).mean(0))
    return torch.cat(rows)


def predict_thresholds(
    members: Sequence[ThresholdPredictor], given: PredictorInput, alpha: float
) -> torch.Tensor:
    """tau_hat of an ensemble at one alpha, `(N,)` float32 logits."""
    return between_knots(predict_knots(members, given), alpha)
