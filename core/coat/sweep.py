"""The list of temperatures that COAT is fitted at, the fit of one of them, and the choice among them on D2.

The paper's ablation holds T fixed and repeats the fit (METHODS 1.5); beside it stand a T that falls while COAT learns, and the shipped
predictor. Budget and all else are the shipped settings, but every variant starts from nothing: with a warm start from AT a bad T would
hide behind it. The choice sees out-of-fold gaps on D2 and nothing of the pool. Nothing here reads a file or calibrates.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import torch

from core.coat.features import PredictorInput
from core.coat.fit import Fitted, OnStep, fit, shifted_gap
from core.settings import CoatSettings

SHIPPED = "shipped"
"""Name of the shipped predictor among the variants."""

ALPHAS = (0.05, 0.1, 0.2, 0.3)
"""Levels of the out-of-fold gap, the same as in the fit's own."""


@dataclass(frozen=True)
class Variant:
    """One way to set the temperature.

    Attributes:
        unit: `"logit"` or `"probability"`: what T divides.
        start: T of the first epochs.
        end: T of the last epochs.
    """

    unit: str
    start: float
    end: float

    @property
    def falls(self) -> bool:
        """Whether T falls while COAT learns."""
        return self.start != self.end

    @property
    def name(self) -> str:
        """Its key in files: `"logit 0.25"`, `"probability 0.05"`, or `"logit 6 to 1"` where T falls."""
        span = f"{self.start:g}" if self.start == self.end else f"{self.start:g} to {self.end:g}"
        return f"{self.unit} {span}"


def fixed(unit: str, temperature: float) -> Variant:
    """A temperature that stays."""
    return Variant(unit, temperature, temperature)


VARIANTS = (
    *(fixed("logit", t) for t in (1.0, 0.25, 4.0)),
    fixed("probability", 0.05),
    *(fixed("logit", t) for t in (2.0, 0.5, 8.0)),
    Variant("logit", 6.0, 1.0),
    *(fixed("probability", t) for t in (0.02, 0.1, 0.25)),
)
"""The fixed grid and one T that falls, the coarse steps first: a recording that is stopped early has still seen the whole range."""


TEMPERATURES = {
    "logit": (0.05, 0.07, 0.1, 0.15, 0.25, 0.35, 0.5, 0.7, 1.0, 1.4, 2.0, 2.8, 4.0, 5.6, 8.0, 11.0, 16.0),
    "probability": (0.005, 0.007, 0.01, 0.014, 0.02, 0.03, 0.05, 0.07, 0.1, 0.15, 0.25, 0.35, 0.5, 0.7, 1.0),
}
"""Where the slider of T stops, in each unit; the fixed grid is among them."""


def settings_of(variant: Variant, base: CoatSettings) -> CoatSettings:
    """The shipped settings with another temperature and unit, and COAT from the first epoch on."""
    return replace(
        base,
        objective="coat",
        unit=variant.unit,
        temperature_start=variant.start,
        temperature_end=variant.end,
    )


def fit_variant(
    variant: Variant,
    given: PredictorInput,
    quantiles: torch.Tensor,
    base: CoatSettings,
    seed: int = 0,
    on_step: OnStep | None = None,
) -> Fitted:
    """Fit COAT at one temperature.

    Args:
        variant: The temperature.
        given: D2 without its masks.
        quantiles: `(N, Q)` lesion scores of D2; NaN rows have no lesion.
        base: Everything but temperature and unit.
        seed: As in `core.coat.fit.fit`; the shipped predictor has 0.
        on_step: `(done, total, facts)` after each epoch; it may raise to stop.

    Raises:
        ValueError: As in `core.coat.fit.fit`.
    """
    return fit(given, quantiles, settings_of(variant, base), seed, on_step=on_step)


def out_of_fold_gaps(
    fitted: Fitted, quantiles: torch.Tensor, alphas: Sequence[float] = ALPHAS
) -> dict[float, float]:
    """Gap of the out-of-fold thresholds at each level, after one common shift a level.

    Args:
        fitted: A fit on these images.
        quantiles: `(N, Q)` as given to the fit; rows of NaN are left out, as there.
        alphas: Levels.
    """
    there = ~torch.isnan(quantiles).any(1)
    return {a: shifted_gap(quantiles[there], fitted.out_of_fold, (a,)) for a in alphas}


def choose(gaps: Mapping[str, float]) -> str:
    """Name of the variant with the smallest out-of-fold gap on D2; the first of equals.

    Raises:
        ValueError: There is none.
    """
    if not gaps:
        raise ValueError("No temperature has been recorded, so none can be chosen.")
    return min(gaps, key=lambda name: gaps[name])


def thinned(history: Sequence[Mapping[str, float]], points: int = 20) -> tuple[dict[str, float], ...]:
    """A fit's history as the mean over members at up to `points` epochs: epoch, temperature, loss and gap.

    An epoch that some members no longer ran is the mean of those that did.
    """
    epochs = sorted({row["epoch"] for row in history})
    if not epochs:
        return ()
    at = torch.linspace(0, len(epochs) - 1, min(points, len(epochs))).round().long().unique().tolist()
    rows = []
    for epoch in (epochs[i] for i in at):
        here = [row for row in history if row["epoch"] == epoch]
        mean = {key: sum(row[key] for row in here) / len(here) for key in ("temperature", "loss", "gap")}
        rows.append({"epoch": epoch, **{key: round(value, 5) for key, value in mean.items()}})
    return tuple(rows)
