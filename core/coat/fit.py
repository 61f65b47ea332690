"""Fitting an ensemble of threshold predictors on D2, and nothing else.

Each member leaves out its own fold of D2; the fold decides when that member stops, by the gap of its
thresholds after the one common shift that makes mean coverage right, averaged over alpha. The out-of-fold
thresholds of all members together are an honest preview on D2, and every choice between variants is made on
them. The base network is not touched: only its score maps come in.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import torch

from core.coat.features import PredictorInput
from core.coat.objectives import at_loss, coat_loss, temperature_at
from core.coat.predictor import ThresholdPredictor
from core.coat.thresholds import ALPHA_KNOTS, between_knots
from core.settings import CoatSettings, check

OnStep = Callable[[int, int, dict[str, float]], None]


@dataclass(frozen=True)
class Fitted:
    """A fitted ensemble.

    Attributes:
        members: The predictors, in eval mode.
        out_of_fold: `(N, A)` thresholds of each D2 image by the member that did not see it.
        gap: Mean out-of-fold gap over alpha, after one common shift a level.
        history: One row an epoch and member: member, epoch, temperature, loss, gap.
        settings: What it was fitted with.
    """

    members: tuple[ThresholdPredictor, ...]
    out_of_fold: torch.Tensor
    gap: float
    history: tuple[dict[str, float], ...]
    settings: CoatSettings


def hard_coverage(quantiles: torch.Tensor, tau: torch.Tensor) -> torch.Tensor:
    """Share of each lesion's quantiles `(N, Q)` (rising) at or above `(N, S)` thresholds; gives `(N, S)`."""
    q = quantiles.shape[1]
    return 1 - torch.searchsorted(quantiles.contiguous(), tau.contiguous(), right=False).float() / q


ALPHAS = (0.05, 0.1, 0.2, 0.3)
"""Levels at which a predictor for every alpha is judged."""


def levels_of(settings: CoatSettings) -> tuple[float, ...]:
    """Levels at which a fit is judged: `ALPHAS`, or the one level that it was fitted at."""
    return ALPHAS if settings.low_alpha < settings.high_alpha else (settings.low_alpha,)


def shifted_gap(quantiles: torch.Tensor, knots: torch.Tensor, alphas: Sequence[float] = ALPHAS) -> float:
    """Mean gap over alphas after the common shift at which mean coverage is 1 - alpha.

    Args:
        quantiles: `(N, Q)` lesion scores, rising, no NaN.
        knots: `(N, A)` thresholds at `ALPHA_KNOTS`.
        alphas: Levels that count.
    """
    gaps = []
    for alpha in alphas:
        tau = between_knots(knots, alpha)
        low, high = -40.0, 40.0
        for _ in range(30):
            t = (low + high) / 2
            if float(hard_coverage(quantiles, tau[:, None] - t).mean()) >= 1 - alpha:
                high = t
            else:
                low = t
        gaps.append(float((hard_coverage(quantiles, tau[:, None] - high) - (1 - alpha)).abs().mean()))
    return sum(gaps) / len(gaps)


def _oracle(quantiles: torch.Tensor, alpha: torch.Tensor) -> torch.Tensor:
    q = quantiles.shape[1]
    k = torch.ceil((1 - alpha) * q - 1e-6).clamp(1, q).long()
    return quantiles.gather(1, (q - k)[:, None])[:, 0]


def fit(
    given: PredictorInput,
    quantiles: torch.Tensor,
    settings: CoatSettings,
    seed: int,
    picture: bool = True,
    start: Sequence[ThresholdPredictor] | None = None,
    on_step: OnStep | None = None,
) -> Fitted:
    """Fit an ensemble.

    Args:
        given: D2 without its masks.
        quantiles: `(N, Q)` from `lesion_quantiles`; rows of NaN (no lesion) are dropped.
        settings: Objective, temperatures, budget.
        seed: Folds, initial weights, order and alphas all come from it.
        picture: Whether members see the small picture.
        start: Members to start from (a warm start), as many as `settings.members`; each must have left out the same folds.
        on_step: `(done, total, facts)` after each epoch. It may raise to stop the fit.

    Raises:
        ValueError: Fewer than 10 images with a lesion, or settings out of range.
    """
    check(settings)
    there = ~torch.isnan(quantiles).any(1)
    given, quantiles = given.select(there.nonzero()[:, 0]), quantiles[there]
    n = len(given)
    if n < 10:
        raise ValueError(
            f"{n} images with a lesion are too few to fit thresholds; bring at least 10 (about 100 for it to help)."
        )
    folds = torch.randperm(n, generator=torch.Generator().manual_seed(seed)) % settings.members
    members, history = [], []
    out = torch.zeros(n, len(ALPHA_KNOTS))
    total = settings.members * settings.epochs
    for k in range(settings.members):
        train, held = (folds != k).nonzero()[:, 0], (folds == k).nonzero()[:, 0]
        model = ThresholdPredictor(
            picture, features=given.features.shape[1], rng=torch.Generator().manual_seed(seed * 1009 + k)
        )
        model.standardise(given.features[train])
        if start is not None:
            model.load_state_dict(start[k].state_dict())
        best, best_gap, since = {a: b.clone() for a, b in model.state_dict().items()}, float("inf"), 0
        optimiser = torch.optim.AdamW(
            model.parameters(), settings.learning_rate, weight_decay=settings.weight_decay
        )
        rng = torch.Generator().manual_seed(seed * 7919 + k)
        cooled = max(1, int(0.7 * settings.epochs))
        for epoch in range(settings.epochs):
            t = temperature_at(
                min(epoch, cooled - 1), cooled, settings.temperature_start, settings.temperature_end
            )
            at = settings.objective == "at" or (
                settings.objective == "at then coat" and epoch < settings.epochs // 2
            )
            loss = _epoch(model, optimiser, given, quantiles, train, settings, None if at else t, rng)
            model.eval()
            with torch.no_grad():
                held_knots = model(given.select(held))
            gap = shifted_gap(quantiles[held], held_knots, levels_of(settings))
            history.append(
                {"member": float(k), "epoch": float(epoch), "temperature": t, "loss": loss, "gap": gap}
            )
            if gap < best_gap - 1e-4:
                best, best_gap, since = {a: b.clone() for a, b in model.state_dict().items()}, gap, 0
            elif epoch >= cooled:  # patience counts from the end of the annealing, which is never cut short
                since += 1
            if on_step is not None:
                on_step(k * settings.epochs + epoch + 1, total, history[-1])
            if since >= settings.patience:
                break
        model.load_state_dict(best)
        model.eval()
        with torch.no_grad():
            out[held] = model(given.select(held))
        members.append(model)
    gap = shifted_gap(quantiles, out, levels_of(settings))
    return Fitted(tuple(members), out, gap, tuple(history), settings)


def _epoch(
    model: ThresholdPredictor,
    optimiser: torch.optim.Optimizer,
    given: PredictorInput,
    quantiles: torch.Tensor,
    train: torch.Tensor,
    settings: CoatSettings,
    temperature: float | None,
    rng: torch.Generator,
) -> float:
    """One pass; a temperature of None is AT's objective."""
    model.train()
    order = train[torch.randperm(len(train), generator=rng)]
    losses = []
    low, high = torch.logit(torch.tensor([settings.low_alpha, settings.high_alpha])).tolist()
    for b in range(0, len(order), settings.batch):
        pick = order[b : b + settings.batch]
        one = given.select(pick)
        if bool(torch.rand(1, generator=rng) < 0.5):
            one = PredictorInput(one.picture.flip(3), one.features, one.plug_in)
        if bool(torch.rand(1, generator=rng) < 0.5):
            one = PredictorInput(one.picture.flip(2), one.features, one.plug_in)
        alpha = torch.sigmoid(torch.rand(len(pick), generator=rng) * (high - low) + low)
        keep = (torch.rand(len(pick), model.head.in_features, generator=rng) >= settings.dropout) / (
            1 - settings.dropout
        )
        tau = between_knots(model(one, keep), alpha)
        if temperature is None:
            loss = at_loss(tau, _oracle(quantiles[pick], alpha))
        elif settings.unit == "probability":
            loss = coat_loss(
                torch.sigmoid(quantiles[pick]), torch.sigmoid(tau), alpha, temperature, settings.miss
            )
        else:
            loss = coat_loss(quantiles[pick], tau, alpha, temperature, settings.miss)
        optimiser.zero_grad()
        loss.backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimiser.step()
        losses.append(loss.item())
    return sum(losses) / len(losses)
