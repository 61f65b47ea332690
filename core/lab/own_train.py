"""AT and COAT trained on a part of a person's own images (D2), with the settings of the shipped predictors.

Both get the same inputs, trunk, ensemble size and budget (`core.coat.fit`). D2 is a fixed draw that no seed of calibration and test
moves, so a new draw costs no training. Where no images were brought, the score map stands in as a grey picture.
"""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
import torch

from core.coat.features import PredictorInput, lesion_quantiles, predictor_input
from core.coat.fit import Fitted, fit
from core.coat.predictor import ThresholdPredictor, predict_knots
from core.images.maps import Maps
from core.lab.own_groups import part_column
from core.lab.own_prepare import OnStep, Prepared
from core.settings import CoatSettings, OwnSettings

ENOUGH_TO_TRAIN = 100
"""Images with a lesion from which on AT and COAT are trained."""


@dataclass(frozen=True, eq=False)
class Trained:
    """AT and COAT of a person's own.

    Attributes:
        training: Indices of the images that trained them (D2).
        members: Method -> ensemble, with the weights that the file will hold (float16 matrices).
        knots: Method -> `(N, A)` thresholds of all images at `ALPHA_KNOTS`.
        gaps: Method -> out-of-fold gap on D2.
        history: Method -> one row an epoch and member.
        settings: Method -> what it was fitted with.
        pictures: Whether images of the person's own were seen; else the score map stood in as a grey picture.
    """

    training: np.ndarray
    members: dict[str, tuple[ThresholdPredictor, ...]] = field(repr=False)
    knots: dict[str, torch.Tensor] = field(repr=False)
    gaps: dict[str, float]
    history: dict[str, tuple[dict[str, float], ...]] = field(repr=False)
    settings: dict[str, CoatSettings]
    pictures: bool


def inputs_of(maps: Maps, on_step: OnStep | None = None, pictures: bool | None = None) -> PredictorInput:
    """What the predictors see of each image; without images, the score map is the picture, in grey.

    Args:
        maps: N images.
        on_step: `(done, total)` after each image.
        pictures: False uses no images even where there are some; None uses them where there are.

    Raises:
        ValueError: Images are wanted and are not there.
    """
    wanted = maps.images is not None if pictures is None else pictures
    if wanted and maps.images is None:
        raise ValueError(
            "This predictor was trained with images beside the maps. Bring the images of the new maps too."
        )
    found = []
    for i, score in enumerate(maps.scores):
        picture = maps.images[i] if wanted and maps.images is not None else grey_of(score)
        found.append(predictor_input([picture], [score]))
        if on_step:
            on_step(i + 1, len(maps), {"stage": "Preparing the predictors' inputs"})
    return PredictorInput(
        *(torch.cat([getattr(g, f) for g in found]) for f in ("picture", "features", "plug_in"))
    )


def grey_of(score: torch.Tensor) -> np.ndarray:
    """A score map as a grey picture `(H, W, 3)` uint8: its probabilities from black to white."""
    grey = (255 * torch.sigmoid(score)).round().to(torch.uint8).numpy()
    return np.repeat(grey[..., None], 3, axis=2)


def will_train(prepared: Prepared, settings: OwnSettings) -> bool:
    """Whether AT and COAT are trained: asked for, and enough images with a lesion."""
    return settings.train != "never" and prepared.with_lesion >= ENOUGH_TO_TRAIN


def training_part(prepared: Prepared, settings: OwnSettings) -> np.ndarray:
    """Indices of D2: a fixed draw, or what a column *part* calls training; never test images of such a column."""
    parts = part_column(prepared.maps)
    n = len(prepared.maps)
    open_to = np.arange(n)
    if parts is not None:
        named = np.flatnonzero(parts == "training")
        if len(named):
            return named
        open_to = np.flatnonzero(parts == "calibration")
    order = np.random.default_rng(0).permutation(open_to)
    return np.sort(order[: round(settings.training_share * len(open_to))])


def train(
    prepared: Prepared,
    settings: OwnSettings,
    on_step: OnStep | None = None,
    variants: dict[str, CoatSettings] | None = None,
) -> Trained:
    """Fit AT and COAT on D2 of the person's own images, with the settings of the shipped predictors.

    Args:
        prepared: All images.
        settings: `training_share`.
        on_step: `(done, total, facts)`; facts hold `stage`, and `loss` and `gap` while it learns. It may raise to stop.
        variants: Method -> settings; those of the shipped predictors when None.

    Raises:
        ValueError: D2 has too few images with a lesion.
    """
    from core.lab.make import VARIANTS

    maps, chosen = prepared.maps, VARIANTS if variants is None else variants
    assert maps.masks is not None
    training = training_part(prepared, settings)
    given = inputs_of(maps, on_step)
    quantiles = torch.stack([lesion_quantiles(maps.scores[i], maps.masks[i]) for i in training])
    total = sum(s.members * s.epochs for s in chosen.values())
    before = 0
    made: dict[str, Fitted] = {}
    for method, how in chosen.items():

        def step(
            done: int, _: int, facts: dict[str, float], start: int = before, method: str = method
        ) -> None:
            if on_step:
                on_step(start + done, total, {"stage": f"Training {method}"} | facts)

        made[method] = fit(given.select(torch.as_tensor(training)), quantiles, how, 0, on_step=step)
        before += how.members * how.epochs
    members = {m: tuple(_as_stored(one) for one in f.members) for m, f in made.items()}
    return Trained(
        training, members, {m: predict_knots(k, given) for m, k in members.items()}, {m: f.gap for m, f in made.items()},
        {m: f.history for m, f in made.items()}, dict(chosen), maps.images is not None,
    )  # fmt: skip


def _as_stored(member: ThresholdPredictor) -> ThresholdPredictor:
    """The member with the weights that its file will hold, so that a new image meets what was calibrated."""
    state = {
        k: v.half().float() if v.is_floating_point() and v.ndim >= 2 else v
        for k, v in member.state_dict().items()
    }
    member.load_state_dict(state)
    return member.requires_grad_(False).eval()
