"""One image, one promise: what the page, the Gradio page, its API and the command line all call.

`score` is the expensive half (base network and threshold predictors, once an image); `promise` is the cheap
half (every alpha, every seed). `outline` is both. Nothing here draws or saves.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import lru_cache

import numpy as np
import torch

from core.coat.features import predictor_input
from core.coat.members import load_members
from core.coat.predictor import ThresholdPredictor, predict_knots
from core.coat.thresholds import between_knots
from core.conformal.words import percent, promised
from core.images.grid import mask_to_grid, to_grid
from core.lab.adaptive import embedding
from core.lab.domains import words_of
from core.lab.sources import domain_of
from core.lab.study import METHODS, PROMISED, STUDIES, controlled, shipped_study
from core.nets.build import Spec
from core.nets.predict import predict
from core.nets.weights import ASSETS, shipped_network


def models() -> tuple[str, ...]:
    """Names of the base models that ship with the project."""
    return STUDIES


@lru_cache(maxsize=16)
def shipped_members(name: str) -> dict[str, tuple[ThresholdPredictor, ...]]:
    """The fitted threshold predictors of a study: `{"AT": members, "COAT": members}`, in eval mode."""
    return load_members(ASSETS / "weights" / f"{name}-thresholds.safetensors")


@dataclass(frozen=True)
class Scored:
    """An image after the networks have seen it; every question about thresholds is cheap from here.

    Attributes:
        name: What the person calls it.
        model: Base model.
        image: `(H, W, 3)` uint8 on the image's grid (long side at most 512).
        logits: `(H, W)` float32 scores of the foreground.
        knots: Method -> `(A,)` thresholds at `ALPHA_KNOTS`, for plug-in, AT and COAT.
    """

    name: str
    model: str
    image: np.ndarray = field(repr=False)
    logits: np.ndarray = field(repr=False)
    knots: dict[str, torch.Tensor] = field(repr=False)


def score(rgb: np.ndarray, model: str = "phantom", name: str = "image") -> Scored:
    """Run the networks on one image.

    Args:
        rgb: `(H, W, 3)` uint8.
        model: One of `models()`.
        name: What the person calls it.

    Raises:
        ValueError: Not an RGB uint8 array, or an unknown model.
    """
    if model not in STUDIES:
        raise ValueError(f"The model {model!r} is not known; choose one of {', '.join(STUDIES)}.")
    if rgb.dtype != np.uint8 or rgb.ndim != 3 or rgb.shape[2] != 3:
        raise ValueError(
            f"The image must be (H, W, 3) uint8, not {rgb.shape} {rgb.dtype}; core.images.to_rgb makes one."
        )
    network, spec, _ = shipped_network(model)
    assert isinstance(spec, Spec)
    image = to_grid(rgb)
    logits = predict(network, image, spec.side)
    given = predictor_input([image], [logits])
    knots = {method: predict_knots(members, given)[0] for method, members in shipped_members(model).items()}
    return Scored(name, model, image, logits.numpy(), {"plug-in": given.plug_in[0], **knots})


@dataclass(frozen=True)
class Promise:
    """Where each method puts the threshold of one image, what that costs and what it promises.

    Attributes:
        alpha: Share of a lesion that may be missed, on average.
        model: Base model.
        name: What the person calls the image.
        tau: Method -> effective threshold in logits (CRC, AA-CRC, plug-in, AT, COAT); -inf is the whole image.
        tau_hat: Method -> predicted threshold before the conformal shift, in logits; CRC has none but the constant 0.
        area: Method -> share of the image in the set, 0..1.
        coverage: Method -> share of the lesion in the set; None without a mask or without a lesion in it.
        oracle_tau: Largest threshold with coverage >= 1 - alpha; None without a lesion.
        logits: `(H, W)` float32 on the image's grid.
        image: `(H, W, 3)` uint8 on that grid.
        mask: `(H, W)` bool on that grid, or None.
        sentences: What is promised, what it assumes, what it costs, with the numbers.
        notes: What else a reader must know.
    """

    alpha: float
    model: str
    name: str
    tau: dict[str, float]
    tau_hat: dict[str, float]
    area: dict[str, float]
    coverage: dict[str, float] | None
    oracle_tau: float | None
    logits: np.ndarray = field(repr=False)
    image: np.ndarray = field(repr=False)
    mask: np.ndarray | None = field(repr=False)
    sentences: tuple[str, ...]
    notes: tuple[str, ...]

    def set_of(self, method: str) -> np.ndarray:
        """The set of a method, `(H, W)` bool: scores at or above its threshold."""
        return self.logits >= self.tau[method]


def promise(
    scored: Scored,
    mask: np.ndarray | None = None,
    *,
    alpha: float = 0.1,
    seed: int = 0,
    calibration_share: float = 0.5,
    delta: float | None = None,
) -> Promise:
    """Calibrate and apply every method to a scored image.

    Args:
        scored: From `score`.
        mask: `(H, W)` bool truth, of the original image's size or of the grid's; None when there is none.
        alpha: Share of a lesion that may be missed, on average, in (0, 1).
        seed: Draw of the calibration images from the study's pool.
        calibration_share: Share of the pool that calibrates.
        delta: Chance that the calibration images mislead, for a promise with confidence; None promises on average.

    Raises:
        ValueError: alpha out of range, or a mask whose size is neither the image's nor the grid's.
    """
    study = shipped_study(scored.model)
    done = controlled(study, float(alpha), int(seed), float(calibration_share), delta)
    made = done.calibrations
    shifts = {m: made[m].shift for m in PROMISED}
    tau_hat = {
        m: 0.0 if m == "CRC" else float(between_knots(scored.knots[m][None], alpha)[0]) for m in METHODS
    }
    tau_hat["AA-CRC"] = float(done.adaptive["AA-CRC"].fit.tau_hat(embedding(scored.knots["AT"][None]))[0])
    tau_hat = {m: tau_hat[m] for m in PROMISED}
    tau = {m: tau_hat[m] - shifts[m] for m in PROMISED}
    inside = {m: (np.float32(tau_hat[m]) - scored.logits) <= np.float32(shifts[m]) for m in PROMISED}
    area = {m: float(s.mean()) for m, s in inside.items()}
    notes = []
    if domain_of(scored.model) != "phantom" or scored.name not in study.curves.names:
        notes.append(words_of(scored.model).warning)
    coverage, oracle = None, None
    if mask is not None:
        mask = mask_to_grid(mask)
        if mask.shape != scored.logits.shape:
            raise ValueError(
                f"The mask has {mask.shape[0]} × {mask.shape[1]} pixels on its grid and the image {scored.logits.shape[0]} × "
                f"{scored.logits.shape[1]}. They must show the same picture."
            )
        m = int(mask.sum())
        if m:
            coverage = {k: float(s[mask].mean()) for k, s in inside.items()}
            kth = int(np.ceil((1 - alpha) * m - 1e-9))
            oracle = float(np.sort(scored.logits[mask])[m - max(kth, 1)])
        else:
            notes.append(
                "The mask shows no lesion: nothing can be missed here, and everything that is marked is a false alarm."
            )
    sentences = (made["CRC"].guarantee, *_costs(area, coverage, alpha))
    return Promise(
        alpha, scored.model, scored.name, tau, tau_hat, area, coverage, oracle,
        scored.logits, scored.image, mask, sentences, tuple(notes),
    )  # fmt: skip


def times_the_area(ratio: float) -> str:
    """How much more or less is marked, in words."""
    if abs(ratio - 1) < 0.05:
        return "the same area"
    return f"{ratio:.1f}\u00a0×\u00a0the area"


def _costs(area: dict[str, float], coverage: dict[str, float] | None, alpha: float) -> list[str]:
    crc, coat = area["CRC"], area["COAT"]
    if crc > 0:
        cost = f"On this image CRC marks {percent(crc)} of the pixels and COAT {percent(coat)}, {times_the_area(coat / crc)}."
    else:
        cost = f"On this image CRC marks nothing and COAT {percent(coat)} of the pixels."
    said = [cost]
    if coverage is not None:
        said.append(
            f"Inside are {percent(coverage['CRC'])} of this lesion under CRC and {percent(coverage['COAT'])} under COAT; "
            f"{promised(alpha)} is what both promise on average."
        )
    return said


def outline(
    rgb: np.ndarray,
    mask: np.ndarray | None = None,
    *,
    alpha: float = 0.1,
    model: str = "phantom",
    seed: int = 0,
    name: str = "image",
) -> Promise:
    """Mark a lesion so that on average a chosen share of it is inside, with CRC's one threshold and with COAT's own for this image.

    The base network scores every pixel; CRC calibrates one threshold for all images, COAT predicts one for this image and
    calibrates a common shift. Both promise the same on average; what differs is how evenly single images are served and
    how much of each is marked. Calibration images are drawn from the pool of the model's study, on which the promise rests.

    Args:
        rgb: Image `(H, W, 3)` uint8, RGB.
        mask: Optional truth `(H, W)` bool, of the same size; with it the share of the lesion inside is reported.
        alpha: Share of the lesion that may be missed, on average, 0.02 to 0.5. Smaller promises more and marks more.
        model: `"phantom"` for drawn pictures, `"polyp"` for colonoscopy frames, `"skin"` for dermoscopy photos, `"fire"` for video frames of
            fires; the last three with `-deeplab`, `-pspnet` or `-sinet` behind them for another base network than U-Net. Research and
            teaching only, no medical device.
        seed: Draw of the calibration images, 0 to 9999.
        name: What to call the image in the answer.

    Returns:
        A `Promise`: thresholds in logits, areas as shares of the image, coverage of the lesion when the mask is given, and the promise in
        words with its assumption.

    Raises:
        ValueError: alpha or model out of range, or a mask of another size.
    """
    if not 0.0 < alpha < 1.0:
        raise ValueError(f"alpha is {alpha}; it must lie strictly between 0 and 1.")
    return promise(score(rgb, model, name), mask, alpha=alpha, seed=seed)
