"""Two losses trained side by side while a visitor waits: phantoms of 64 pixels, a U-Net half as wide as the recorded one, under a minute on a CPU.

It is a smaller experiment than the recorded one, and the page says how: few pictures, small ones, a thinner network, one seed. Few pictures are on
purpose: a network that can learn them by heart becomes surer than it is right, which is what the losses differ in. Both networks start from the
same weights and see the same pictures in the same order; only the loss differs. What is shown is measured on pictures that neither has seen.

It goes through the one runner (`jobs`): one training at a time, the same settings served from its cache.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Any

import numpy as np
import torch

from core.lab.jobs import RUNNER, Ticket
from core.lab.keys import settings_key
from core.lab.margin_measure import EDGES, Measured, measure
from core.lab.margin_record import TITLES
from core.lab.margin_sets import CLASSES, Labelled
from core.lab.margin_train import Schedule, fit, logits_of
from core.margin.overlap import dice
from core.margin.pixels import SCOPES
from core.margin.reliability import Reliability, ece, tabulate_scopes
from core.nets.build import Spec, best_device, build, initialise
from core.settings import MarginSettings

SIDE = 64
STAGES = (8, 8, 16, 32, 64, 8)
"""Channels of the network, half of those of the recorded one."""

TRAIN_SEED, CHECK_SEED = 910_000, 920_000
"""First seeds of the pictures; no shipped set uses them."""

DEFAULT_MARGIN = 3.0
"""m that the page offers: networks trained this briefly hardly reach distances of 10, so a margin of 10 would do nothing here."""

SHOWN = 24
"""Bins of distances that are drawn one by one; what lies beyond 12 logits is one more."""

Report = Callable[[int, int, Mapping[str, Any]], None]


@dataclass(frozen=True)
class Budget:
    """How much is spent on a run; a test spends less.

    Attributes:
        epochs: Passes over the training pictures, for each loss.
        train: Training pictures.
        check: Pictures that are measured on, every epoch and at the end.
        batch: Pictures in a step.
        learning_rate: Adam's step size in the first half; a tenth of it in the second.
        every: Epochs between two measurements.
    """

    epochs: int = 48
    train: int = 24
    check: int = 48
    batch: int = 4
    learning_rate: float = 5e-3
    every: int = 4


@dataclass(frozen=True, eq=False)
class Pair:
    """What a run leaves.

    Attributes:
        settings: Short name of each loss -> its settings, in the order in which they were trained.
        measured: Short name -> tables, distances and figures on the pictures that were left out.
        history: Short name -> rows of epoch, loss, and every few epochs ece_foreground, ece_all and dice.
        seconds: How long it took.
        budget: How much was spent.
    """

    settings: dict[str, MarginSettings]
    measured: dict[str, Measured]
    history: dict[str, tuple[dict[str, float], ...]]
    seconds: float
    budget: Budget

    def pooled(self, loss: str, scope: str) -> Reliability:
        """One loss's table over all pictures left out."""
        return Reliability.merge(self.measured[loss].tables[scope])

    def distances(self, loss: str) -> np.ndarray:
        """`(B,)` counted distances of one loss, over `edges`."""
        counts = self.measured[loss].distances.sum(0, dtype=np.float64)
        return np.append(counts[:SHOWN], counts[SHOWN:].sum())

    @property
    def edges(self) -> np.ndarray:
        """`(B + 1,)` edges of `distances` in logits; the last bin is open and drawn as wide as the others."""
        return np.append(EDGES[: SHOWN + 1], 2 * EDGES[SHOWN] - EDGES[SHOWN - 1])


@lru_cache(maxsize=4)
def pictures(first: int, count: int) -> Labelled:
    """Phantoms as a network sees them; drawn once a process.

    Args:
        first: Seed of the first.
        count: How many.
    """
    from core.data.phantoms import draw

    drawn = [draw(first + k, size=SIDE) for k in range(count)]
    images = np.stack([p.image for p in drawn]).astype(np.float32) / 127.5 - 1
    labels = torch.from_numpy(np.stack([p.mask for p in drawn])).long()
    return Labelled(
        tuple(f"drawn-{first + k}" for k in range(count)), torch.from_numpy(images).permute(0, 3, 1, 2).contiguous(), labels,
        torch.zeros_like(labels, dtype=torch.bool),
    )  # fmt: skip


def settings_here(loss: str, margin: float = DEFAULT_MARGIN) -> MarginSettings:
    """Settings of a loss for a run: defaults, with m for the margin."""
    settings = MarginSettings(loss=loss)
    return replace(settings, margin=margin) if loss == "margin" else settings


def train(
    first: MarginSettings,
    second: MarginSettings,
    on_step: Report,
    budget: Budget | None = None,
    seed: int = 0,
) -> Pair:
    """Train two networks, one under each loss.

    Args:
        first: The loss that is trained first.
        second: The other one.
        on_step: `(done, total, facts)` after each epoch; facts hold the loss (its short name) and, as `rows`, the history of each loss so far. It
            may raise to stop.
        budget: How much is spent; the page's when None.
        seed: Of weights, order and flips.

    Raises:
        ValueError: Both losses are the same.
    """
    if first.loss == second.loss:
        raise ValueError("Both losses are the same, so there is nothing to compare. Choose two.")
    began = time.perf_counter()
    spend = budget or Budget()
    learn, check = pictures(TRAIN_SEED, spend.train), pictures(CHECK_SEED, spend.check)
    # float32 throughout: bfloat16 is several times as slow on processors that only imitate it
    schedule = Schedule(spend.epochs, spend.batch, spend.learning_rate, bfloat16=False)
    rows: dict[str, list[dict[str, float]]] = {s.loss: [] for s in (first, second)}
    measured = {}
    for k, settings in enumerate((first, second)):
        model = initialise(
            build(Spec("slim", "", STAGES, SIDE, len(CLASSES["phantom"]))),
            torch.Generator().manual_seed(seed),
        )
        model.to(best_device())
        model.to(memory_format=torch.channels_last)

        def report(
            done: int,
            _: int,
            facts: Mapping[str, Any],
            s: MarginSettings = settings,
            k: int = k,
            model: Any = model,
        ) -> None:
            row = {"epoch": float(facts["epoch"]), "loss": float(facts["loss"])}
            if done % spend.every == 0 or done == spend.epochs:
                row |= quick(logits_of(model, check.images), check)
                model.train()  # measuring put it into eval mode
            rows[s.loss].append(row)
            live = {name: tuple(r) for name, r in rows.items()}
            on_step(k * spend.epochs + done, 2 * spend.epochs, {"loss": s.loss, "rows": live})

        fit(model, learn, settings, schedule, seed, report)
        measured[settings.loss] = measure(logits_of(model, check.images), check, distances=False)
    return Pair(
        {s.loss: s for s in (first, second)}, measured, {name: tuple(r) for name, r in rows.items()}, time.perf_counter() - began, spend
    )  # fmt: skip


def quick(logits: torch.Tensor, part: Labelled) -> dict[str, float]:
    """ECE in both scopes, pooled, and mean Dice: what the curves show.

    Args:
        logits: `(N, K, S, S)`.
        part: The pictures.
    """
    tables: dict[str, list[Reliability]] = {s: [] for s in SCOPES}
    overlaps = []
    for x, y in zip(logits.numpy(), part.labels.numpy(), strict=True):
        for scope, table in tabulate_scopes(x, y).items():
            tables[scope].append(table)
        overlaps.append(dice(x.argmax(0), y, len(x)))
    every = np.array(overlaps)
    there = every[~np.isnan(every)]
    found = {"dice": float(there.mean()) if len(there) else math.nan}
    return found | {f"ece_{s}": ece(Reliability.merge(t)) for s, t in tables.items()}


def key_of(first: MarginSettings, second: MarginSettings, budget: Budget) -> str:
    """What makes two runs the same."""
    return settings_key("margin.train-here", first, second, budget)


def start(first: MarginSettings, second: MarginSettings, budget: Budget | None = None) -> Ticket:
    """Ask for a run, or join those who already wait for the same one."""
    spend = budget or Budget()
    return RUNNER.submit(key_of(first, second, spend), lambda on_step: train(first, second, on_step, spend))


def words(settings: MarginSettings) -> str:
    """A loss on the screen, with m for the margin."""
    return f"margin, m = {settings.margin:g}" if settings.loss == "margin" else TITLES[settings.loss]


def told(settings: MarginSettings) -> str:
    """A loss in a sentence."""
    if settings.loss == "margin":
        return f"a margin of {settings.margin:g}"
    return "focal loss" if settings.loss == "focal" else TITLES[settings.loss]


def sentences(run: Pair, scope: str) -> tuple[str, str, str]:
    """What came out, whichever way it fell: which of the two can be believed more, how sure and how right both are, and their Dice."""
    one, two = run.settings
    errors = {loss: ece(run.pooled(loss, scope)) for loss in (one, two)}
    words_of = {loss: told(s) for loss, s in run.settings.items()}
    where = "foreground pixels" if scope == "foreground" else "all pixels"
    gap = 100 * (errors[one] - errors[two])
    by = {loss: _percent(e) for loss, e in errors.items()}
    if abs(gap) < 0.05:
        first = f"On {where} both are equally far from what they say: ECE is {by[one]}."
    else:
        better, worse = (two, one) if gap > 0 else (one, two)
        first = f"On {where} {words_of[better]} can be believed more: ECE is {by[better]}, and {by[worse]} under {words_of[worse]}."
    sure = {loss: run.pooled(loss, scope) for loss in (one, two)}
    second = " ".join(
        f"Under {words_of[x]} the network is {_percent(sure[x].overall_confidence)} sure on average and right "
        f"{_percent(sure[x].overall_accuracy)} of the time."
        for x in (one, two)
    )
    overlap = {loss: run.measured[loss].figures["dice"] for loss in (one, two)}
    if abs(overlap[two] - overlap[one]) < 0.0005:
        return first, second, "Dice is the same."
    return (
        first,
        second,
        f"Dice is {_percent(overlap[one])} under {words_of[one]} and {_percent(overlap[two])} under {words_of[two]}.",
    )


def _percent(share: float) -> str:
    return f"{100 * share:.1f}\u00a0%"
