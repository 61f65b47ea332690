"""One image under a soft threshold: what it counts as inside at temperature T, what really is inside, and the sentences about it.

An image is its lesion's scores with weights that sum to 1: from its mask, from the study's score table where no picture is here, or,
for an upload without a mask, all pixels weighted with their probabilities, which is the coverage that the model itself expects (the
plug-in's view). Nothing here runs a network.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import torch
import torch.nn.functional as F

from core.coat.softness import ceiling, soft_mask, unreachable
from core.conformal import CoverageCurves
from core.conformal.words import percent, promised


@dataclass(frozen=True)
class Lesion:
    """Scores of one lesion.

    Attributes:
        value: `(P,)` float32 logits.
        weight: `(P,)` float64, summing to 1.
        known: False where no mask says what the lesion is and the weights are the model's own probabilities.
    """

    value: torch.Tensor
    weight: torch.Tensor
    known: bool

    def hard(self, tau: float) -> float:
        """Share at or above a threshold in logits."""
        return round(float(self.weight[self.value >= np.float32(tau)].sum()), 12)

    def soft(self, tau: float, temperature: float, unit: str = "logit") -> float:
        """Share that a knife of temperature T counts as inside."""
        return round(float((self.weight * soft_mask(self.value, tau, temperature, unit)).sum()), 12)

    def slope(self, tau: float, temperature: float, unit: str = "logit") -> float:
        """How fast the soft share falls as the threshold rises, in the unit of T; at most 1/(4T)."""
        inside = soft_mask(self.value, tau, temperature, unit).double()
        return float((self.weight * inside * (1 - inside)).sum()) / temperature

    def best(self, temperature: float, unit: str = "logit") -> float:
        """The highest soft share that any threshold gives: in probabilities that of the threshold 0, in logits 1."""
        return 1.0 if unit == "logit" else self.soft(-torch.inf, temperature, unit)


def lesion_of_map(logits: np.ndarray, mask: np.ndarray | None) -> Lesion:
    """The lesion in a score map `(H, W)`; without a mask, or without a lesion in it, what the model believes it to be."""
    value = torch.from_numpy(np.ascontiguousarray(logits, dtype=np.float32)).reshape(-1)
    if mask is not None and mask.any():
        value = value[torch.from_numpy(np.ascontiguousarray(mask)).reshape(-1)]
        return Lesion(value, torch.full((len(value),), 1.0 / len(value), dtype=torch.float64), True)
    p = torch.sigmoid(value.double())
    return Lesion(value, p / p.sum(), False)


def lesion_of_pool(curves: CoverageCurves, i: int) -> Lesion:
    """The lesion of pool image i as its score table knows it (scores rounded down by 1/40 logit at most); the model's belief where it has none."""
    one = curves.select([i])
    ragged, known = (one.lesion, True) if bool(one.has_lesion[0]) else (one.pixels, False)
    count = torch.ones(len(ragged.value)) if ragged.count is None else ragged.count
    weight = count.double() * (1.0 if known else torch.sigmoid(ragged.value.double()))
    return Lesion(ragged.value, weight / weight.sum(), known)


@dataclass(frozen=True)
class Knife:
    """One image at one threshold and temperature.

    Attributes:
        alpha: Share that may be missed.
        unit: What T divides.
        temperature: T.
        tau: The threshold in logits.
        soft: Share that counts as inside.
        hard: Share that is inside; as T falls, `soft` becomes it.
        slope: |d soft / d tau| in the unit of T.
        best: The highest soft share of this image at any threshold.
        known: Whether a mask says what the lesion is.
    """

    alpha: float
    unit: str
    temperature: float
    tau: float
    soft: float
    hard: float
    slope: float
    best: float
    known: bool

    @property
    def speaking(self) -> float:
        """Share of the lesion that moves with the threshold: the slope over 1/(4T)."""
        return 4 * self.temperature * self.slope


def knife(lesion: Lesion, tau: float, temperature: float, unit: str, alpha: float) -> Knife:
    """Lay a knife of temperature T at a threshold."""
    return Knife(
        alpha,
        unit,
        temperature,
        tau,
        lesion.soft(tau, temperature, unit),
        lesion.hard(tau),
        lesion.slope(tau, temperature, unit),
        lesion.best(temperature, unit),
        lesion.known,
    )


def along(lesion: Lesion, tau: float, temperatures: Sequence[float], unit: str) -> dict[str, np.ndarray]:
    """Soft share, slope and best soft share of one image at many temperatures, `(S,)` each."""
    return {
        "soft": np.array([lesion.soft(tau, t, unit) for t in temperatures]),
        "slope": np.array([lesion.slope(tau, t, unit) for t in temperatures]),
        "best": np.array([lesion.best(t, unit) for t in temperatures]),
    }


def points(share: float) -> str:
    """A gap in points: 0.0923 is `9.2 points`."""
    return f"{100 * share:.1f}\u00a0points"


@dataclass(frozen=True)
class Beside:
    """What the study says of COAT trained at a recorded T, beside CRC.

    Attributes:
        temperature: The recorded T.
        coat: COAT's gap and set area.
        crc: CRC's.
    """

    temperature: float
    coat: tuple[float, float]
    crc: tuple[float, float]


def headline(k: Knife, trained: Beside | None, thing: str = "lesion") -> str:
    """The sentence of the page: this image at this T, and what the whole study says of COAT trained there. Short enough for two lines.

    Args:
        k: The image.
        trained: The recorded T nearest to it, or None where nothing near is recorded.
        thing: What the masks show.
    """
    at = f"T\u00a0=\u00a0{k.temperature:g}"
    if unreachable(k.temperature, k.alpha, k.unit):
        top = percent(ceiling(k.temperature, k.unit))
        first = f"At {at} no threshold can count {promised(k.alpha)} as inside: the ceiling is {top}."
    elif k.known:
        first = f"At {at} this {thing} counts as {percent(k.soft)} inside; in truth {percent(k.hard)} is."
    else:
        first = f"At {at} {percent(k.soft)} counts as inside; the model itself expects {percent(k.hard)}."
    if trained is None:
        return f"{first} No COAT was trained near this T."
    t, (gap, area), (crc_gap, crc_area) = trained.temperature, trained.coat, trained.crc
    there = "There" if abs(t - k.temperature) < 1e-9 else f"At T\u00a0=\u00a0{t:g}"
    return f"{first} {there} COAT misses by {points(gap)} for {percent(area)} area, CRC by {100 * crc_gap:.1f} for {percent(crc_area)}."


def in_words(k: Knife) -> str:
    """What fog and knife mean for this image, in two sentences."""
    share = percent(k.speaking)
    difference = points(abs(k.soft - k.hard))
    if k.unit == "probability" and k.best < 1 - k.alpha:
        return (
            f"Even the lowest threshold counts only {percent(k.best)} of this lesion as inside, so training at this T pushes the threshold down "
            "and never arrives."
        )
    first = f"Soft and hard count differ by {difference}, and training sees the soft one only. "
    if k.speaking < 0.01:
        return (
            first
            + f"Only {share} of the lesion still moves when the threshold moves: too sharp a knife leaves nothing to learn from."
        )
    return (
        first + f"{share} of the lesion moves when the threshold moves; that is what the gradient can hear."
    )


def shading(
    logits: np.ndarray, tau: float, temperatures: Sequence[float], unit: str, side: int = 112
) -> np.ndarray:
    """The soft mask at many temperatures, small enough to send all of them to a browser.

    Args:
        logits: `(H, W)` scores.
        tau: Threshold in logits.
        temperatures: `(S,)`.
        unit: What T divides.
        side: Long side of the result; scores are averaged first, so that a sharp knife stays sharp.

    Returns:
        `(S, h, w)` uint8, 0 to 100.
    """
    small = _small(torch.from_numpy(np.ascontiguousarray(logits)).float(), side)
    return np.stack([(100 * soft_mask(small, tau, t, unit)).round().byte().numpy() for t in temperatures])


def small_mask(mask: np.ndarray, side: int = 112) -> np.ndarray:
    """A mask on the grid of `shading`, `(h, w)` bool."""
    inside: np.ndarray = (_small(torch.from_numpy(np.ascontiguousarray(mask)).float(), side) >= 0.5).numpy()
    return inside


def _small(values: torch.Tensor, side: int) -> torch.Tensor:
    h, w = values.shape
    if max(h, w) <= side:
        return values
    k = side / max(h, w)
    return F.adaptive_avg_pool2d(values[None], (max(1, round(h * k)), max(1, round(w * k))))[0]


def blade(grid: np.ndarray, tau: float, temperatures: Sequence[float], unit: str) -> np.ndarray:
    """How much a pixel of each score counts as inside: `(G,)` logits -> `(S, G)` in [0, 1]."""
    at = torch.from_numpy(np.ascontiguousarray(grid)).float()
    return np.stack([soft_mask(at, tau, t, unit).numpy() for t in temperatures])


def histogram(lesion: Lesion, width: float = 0.5) -> tuple[np.ndarray, np.ndarray]:
    """Edges `(B + 1,)` in logits and shares `(B,)` of a lesion's scores."""
    edges = np.arange(-15.0, 15.0 + 2 * width, width)
    return edges, np.histogram(lesion.value.clamp(-15, 15).numpy(), edges, weights=lesion.weight.numpy())[0]
