"""AA-CRC on a study: the linear threshold of `core.conformal.aacrc` on a small embedding, with the shift that gives it CRC's promise.

The embedding is what AT's network says of an image: its thresholds at four levels of alpha. That network was trained on D2 to regress
the threshold that would have been right, so AA-CRC uses the same data as AT and COAT do (METHODS 1.8 trains an embedding of its own in
the same way; E = 4 as in the comparison of COAT's authors). AA-CRC needs a second fit, on calibration images. What they have set they
cannot promise about, so half of them sets the threshold and the other half finds the shift. Nothing here trains a network.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import torch

from core.coat.thresholds import between_knots
from core.conformal import Calibration, calibrate
from core.conformal.aacrc import AdaptiveFit, fit_aacrc
from core.conformal.control import subset_flags
from core.conformal.words import guarantee_sentence, images_needed, percent
from core.data.splits import redraw
from core.lab.study import Study

EMBEDDING = (0.05, 0.1, 0.2, 0.4)
"""Levels of alpha at which AT's thresholds are the embedding."""


@dataclass(frozen=True)
class Adaptive:
    """AA-CRC on one draw.

    Attributes:
        tau_hat: `(N,)` float32 thresholds of all pool images, in logits, before the shift.
        calibration: Its shift and what it promises; 0 and no promise for a new image when it was not shifted.
        fit: The linear threshold.
    """

    tau_hat: torch.Tensor
    calibration: Calibration
    fit: AdaptiveFit


def embedding(knots_at: torch.Tensor) -> torch.Tensor:
    """AT's thresholds at `EMBEDDING`. `(N, A)` thresholds at `ALPHA_KNOTS` -> `(N, 4)` logits."""
    return torch.stack([between_knots(knots_at, a) for a in EMBEDDING], 1)


def aacrc(study: Study, alpha: float, calibrating: np.ndarray, seed: int, shifted: bool = True) -> Adaptive:
    """Fit and calibrate AA-CRC.

    Args:
        study: The study.
        alpha: Share that may be missed on average, in (0, 1).
        calibrating: Calibration images, `(N,)` bool or indices.
        seed: Draws which half of them sets the threshold; unused without a shift.
        shifted: Half of the calibration images sets the threshold, the others find the exact shift, and CRC's guarantee holds. Without it,
            all of them set the threshold, and the level is right for these images only.

    Returns:
        An `Adaptive`. With too few images to fit, its set is the whole image, as everywhere.

    Raises:
        ValueError: alpha outside (0, 1).
    """
    if not 0.0 < alpha < 1.0:
        raise ValueError(f"alpha is {alpha}; it must lie strictly between 0 and 1.")
    index = subset_flags(len(study.curves), calibrating).nonzero()[:, 0].numpy()
    fitting, shifting = index, index
    if shifted:
        first, second = halves(len(index), seed)
        fitting, shifting = index[first], index[second]
    features = embedding(study.knots["AT"])
    n = int(study.curves.has_lesion[fitting].sum())
    name = "AA-CRC" if shifted else "AA-CRC, no shift"
    if alpha * n <= 1 - alpha:  # alpha' would not be positive
        return _whole_image(study, alpha, n, name, fitting)
    fit = fit_aacrc(study.curves, features, alpha, fitting)
    tau_hat = fit.tau_hat(features)
    if shifted:
        found = calibrate(study.curves, tau_hat, alpha, shifting, name)
        words = f"{found.guarantee} Its rule was set by {n} other calibration images."
        return Adaptive(tau_hat, Calibration(**{**vars(found), "guarantee": words}), fit)
    covered = study.curves.coverage(tau_hat)[fitting, 0]
    reached = float(covered[study.curves.has_lesion[fitting]].mean())
    n_empty = len(fitting) - n
    words = (
        f"On the {n} images that set it, {percent(reached)} of a lesion is inside on average. For the next image this is no promise: "
        "it comes close only as the number of images grows."
    )
    return Adaptive(tau_hat, Calibration(name, alpha, 0.0, n, n_empty, True, reached, words), fit)


def halves(n: int, seed: int) -> tuple[np.ndarray, np.ndarray]:
    """Two halves, drawn apart from the draw of calibration and test with the same seed."""
    own = int(np.random.default_rng([seed, 1]).integers(2**31))
    return redraw(n, 0.5, own) if n >= 2 else (np.arange(n), np.arange(0))


def _whole_image(study: Study, alpha: float, n: int, name: str, fitting: np.ndarray) -> Adaptive:
    """What remains where the images cannot carry alpha: no rule, and an infinite shift."""
    words = guarantee_sentence(alpha, n)
    if n >= images_needed(alpha):  # exactly as many as CRC needs; AA-CRC needs one more to set its rule
        words = f"{n} images are one too few to set AA-CRC's rule at this level: the only honest set is the whole image."
    fit = AdaptiveFit(torch.zeros(len(EMBEDDING) + 1, dtype=torch.float64), alpha, 0.0, n, float("nan"))
    calibration = Calibration(name, alpha, float("inf"), n, len(fitting) - n, False, 1.0, words)
    return Adaptive(torch.zeros(len(study.curves)), calibration, fit)
