"""One predictor for every alpha: calibrated thresholds of a study over a grid of alphas, where their sets cross, and the ones that nest.

The grid is that of the page's slider. `core.conformal.nested` has the rule; here it meets a study, a draw and single images.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache

import torch

from core.coat.thresholds import between_knots
from core.conformal import calibrate
from core.conformal.nested import crossings, nested_thresholds
from core.conformal.words import percent
from core.data.splits import redraw
from core.lab.study import METHODS, Study, shipped_study, table_of

ALPHAS = torch.arange(2, 51) / 100
"""Every alpha of the slider, 0.02 to 0.5."""


@dataclass(frozen=True)
class Nesting:
    """A method's thresholds at every alpha of `ALPHAS`, on one draw.

    Attributes:
        method: `"CRC"`, `"plug-in"`, `"AT"` or `"COAT"`.
        shift: `(A,)` calibrated shifts; +inf where the images cannot carry the alpha.
        tau: `(N, A)` calibrated thresholds tau' of the pool, in logits.
        nested: `(N, A)` thresholds tau'' whose sets nest.
        crossing: Images whose thresholds stand the wrong way round somewhere.
        furthest: Largest tau' - tau'' of any image at any alpha, in logits.
        dearest: Largest area that nesting adds, as a mean over the pool, at any alpha.
    """

    method: str
    shift: torch.Tensor
    tau: torch.Tensor
    nested: torch.Tensor
    crossing: int
    furthest: float
    dearest: float

    def of_knots(self, knots: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        """Tau' and tau'' `(A,)` of one image from its thresholds `(K,)` at `ALPHA_KNOTS`, with this draw's shifts."""
        hat = torch.stack([between_knots(knots[None], float(a))[0] for a in ALPHAS])
        tau = (hat - self.shift)[None]
        return tau[0], nested_thresholds(tau)[0]


def nesting(study: Study, seed: int, method: str = "COAT", calibration_share: float = 0.5) -> Nesting:
    """Calibrate a method at every alpha of the grid.

    Args:
        study: The study.
        seed: The draw.
        method: One of `METHODS`.
        calibration_share: Share of the pool that calibrates.

    Raises:
        ValueError: Another method.
    """
    if method not in METHODS:
        raise ValueError(
            f"The method {method!r} has no thresholds at every alpha; choose one of {', '.join(METHODS)}."
        )
    hat = torch.stack([study.tau_hat(method, float(a)) for a in ALPHAS], 1)
    half, _ = redraw(len(study.curves), calibration_share, seed)
    found = [
        calibrate(study.curves, hat[:, k], float(a), half, method, table_of(study, method, float(a)))
        for k, a in enumerate(ALPHAS)
    ]
    shift = torch.tensor([c.shift for c in found])
    tau = hat - shift
    nested = nested_thresholds(tau)
    extra = torch.where(nested < tau, tau - nested, torch.zeros_like(tau)).nan_to_num(posinf=0.0)
    curves = study.curves
    more = [
        float((curves.area(nested[:, k]) - curves.area(tau[:, k])).mean())
        for k in range(len(ALPHAS))
        if bool(torch.isfinite(nested[:, k]).all()) and bool((extra[:, k] > 0).any())
    ]
    return Nesting(method, shift, tau, nested, crossings(tau), float(extra.max()), max(more, default=0.0))


@lru_cache(maxsize=64)
def shipped_nesting(name: str, seed: int, method: str = "COAT") -> Nesting:
    """`nesting` of a study that ships, remembered."""
    return nesting(shipped_study(name), seed, method)


def nesting_sentence(study: Study, made: dict[str, Nesting]) -> str:
    """How many images' sets cross somewhere, method by method, and what nesting costs."""
    n = len(study.curves)
    counts = [f"{made[m].crossing} under {m}" for m in made]
    listed = counts[0] if len(counts) == 1 else f"{', '.join(counts[:-1])} and {counts[-1]}"
    worst = max(made.values(), key=lambda x: x.dearest)
    cost = (
        f" At the dearest α that adds {percent(worst.dearest)} of an image on average, under {worst.method}."
        if worst.crossing
        else " In this draw that changes nothing."
    )
    low, high = float(ALPHAS[0]), float(ALPHAS[-1])
    some = "some" if any(x.crossing for x in made.values()) else "none"
    return (
        "Each predictor gives its thresholds for every α at once, and they rise with α. The shift is found for each α alone, so after it the "
        f"sets of {some} of the {n} images cross somewhere between α\u00a0=\u00a0{low:.2g} and {high:.2g}: {listed}. τ″, the lowest threshold of "
        "all larger α, nests them: a set that promises more then holds every set that promises less, and each promise is kept, for no set has "
        f"become smaller.{cost}"
    )
