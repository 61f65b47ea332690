"""What the threshold predictor sees of an image: a small picture with its score map, and global features of
the map.

Nothing here uses a mask. The same function serves the images that fit the predictor, the pool, and a
visitor's upload.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import torch
import torch.nn.functional as F

from core.coat.thresholds import ALPHA_KNOTS, plug_in_of_sorted
from core.images.grid import to_square

SIDE = 64
"""Side of the small picture in pixels."""

LEVELS = torch.tensor([-6.0, -4.0, -3.0, -2.0, -1.0, 0.0, 1.0, 2.0, 4.0])
"""Logits at which the area of the map is a feature."""

FEATURE_NAMES = (
    *(f"plug-in threshold at alpha {a:g}" for a in ALPHA_KNOTS.tolist()),
    *(f"log area at logit {a:g}" for a in LEVELS.tolist()),
    "log expected area",
    "highest logit",
    "99th percentile of the logits",
    "90th percentile of the logits",
    "mean entropy over expected area",
    "rim sharpness",
    "parts at logit 0",
    "parts at logit -3",
)


@dataclass(frozen=True)
class PredictorInput:
    """What is known of N images without their masks.

    Attributes:
        picture: `(N, 4, 64, 64)` float32: RGB in [-1, 1] and the score map divided by 5.
        features: `(N, len(FEATURE_NAMES))` float32, not yet standardised.
        plug_in: `(N, A)` float32, plug-in thresholds at `ALPHA_KNOTS`.
    """

    picture: torch.Tensor
    features: torch.Tensor
    plug_in: torch.Tensor

    def __len__(self) -> int:
        return len(self.features)

    def select(self, index: torch.Tensor) -> PredictorInput:
        """Some of the images."""
        return PredictorInput(self.picture[index], self.features[index], self.plug_in[index])


def _parts(inside: np.ndarray) -> float:
    from scipy import ndimage

    return float(np.log1p(ndimage.label(inside)[1]))


def map_features(scores: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
    """Global features of one score map.

    Args:
        scores: `(H, W)` float32 logits.

    Returns:
        `(len(FEATURE_NAMES),)` features and `(A,)` plug-in thresholds.
    """
    flat = scores.reshape(-1).sort(descending=True).values
    n = len(flat)
    plug = plug_in_of_sorted(flat[None], ALPHA_KNOTS)[0]
    p = torch.sigmoid(flat)
    entropy = -(p * F.logsigmoid(flat) + (1 - p) * F.logsigmoid(-flat))
    area = torch.stack([torch.log((flat >= level).sum() + 1.0) for level in LEVELS]) - np.log(n)
    dy, dx = (
        torch.gradient(scores)
        if min(scores.shape) > 1
        else (torch.zeros_like(scores), torch.zeros_like(scores))
    )
    rim = (scores.abs() < 2).float()
    sharp = ((dy.square() + dx.square()).sqrt() * rim).sum() / rim.sum().clamp(min=1) * max(scores.shape) / 64
    rest = torch.tensor(
        [
            float(torch.log(p.mean() + 1e-6)),
            float(flat[0]),
            float(flat[int(0.01 * n)]),
            float(flat[int(0.10 * n)]),
            float(entropy.sum() / p.sum().clamp(min=1e-3)),
            float(torch.log1p(sharp)),
            _parts((scores > 0).numpy()),
            _parts((scores > -3).numpy()),
        ]
    )
    return torch.cat([plug, area, rest]).float(), plug.float()


def predictor_input(images: Sequence[np.ndarray], maps: Sequence[torch.Tensor]) -> PredictorInput:
    """Prepare images for the threshold predictor.

    Args:
        images: N images `(H, W, 3)` uint8 on their grids.
        maps: N score maps `(H, W)` float32 on the same grids.

    Raises:
        ValueError: An image and its map have different sizes.
    """
    pictures, features, plugs = [], [], []
    for rgb, scores in zip(images, maps, strict=True):
        if rgb.shape[:2] != tuple(scores.shape):
            raise ValueError(
                f"The image has {rgb.shape[:2]} pixels and its score map {tuple(scores.shape)}; both must be on one grid."
            )
        square, frame = to_square(rgb, SIDE)
        small = torch.full((1, SIDE, SIDE), -3.0)
        small[0, : frame.height, : frame.width] = (
            F.adaptive_avg_pool2d(scores[None], (frame.height, frame.width))[0] / 5
        )
        pictures.append(torch.cat([square, small]))
        vector, plug = map_features(scores)
        features.append(vector)
        plugs.append(plug)
    return PredictorInput(torch.stack(pictures), torch.stack(features), torch.stack(plugs))


def lesion_quantiles(scores: torch.Tensor, mask: torch.Tensor, points: int = 256) -> torch.Tensor:
    """The scores of a lesion as evenly spaced quantiles, so that lesions of all sizes have one shape.

    Args:
        scores: `(H, W)` float32.
        mask: `(H, W)` bool.
        points: Q.

    Returns:
        `(Q,)` rising; NaN throughout when there is no lesion.
    """
    inside = scores[mask]
    if not inside.numel():
        return torch.full((points,), torch.nan)
    inside = inside.sort().values
    at = ((torch.arange(points) + 0.5) / points * len(inside)).long()
    return inside[at.clamp(max=len(inside) - 1)]
