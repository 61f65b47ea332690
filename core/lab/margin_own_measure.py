"""Everything that can be measured of a person's own probabilities: reliability, overlap, and what one temperature would do.

Figures come pooled (every counted pixel counts the same) and as means over images, in two scopes. The temperature is fitted on one half of the
images by NLL over all pixels and shown on the other half, which had no say in it; where there is one image or rows alone, on halves of these.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from core.lab.margin_own import Own
from core.margin.adaptive import ace
from core.margin.overlap import Overlap, OverlapSummary, overlap, summarise
from core.margin.pixels import FLOOR, SCOPES
from core.margin.reliability import METRICS, Reliability, tabulate_scopes
from core.margin.temperature import HIGHEST, LOWEST, fit_temperature

OnStep = Callable[[int, int, Mapping[str, Any]], None]

SAMPLE = 8_000_000
"""Most values (pixels times classes) that ACE sorts and that a temperature is fitted on; of more, so many are drawn."""

MOST_SURFACES = 32
"""Overlap is measured up to so many classes."""

Tables = dict[str, tuple[Reliability, ...]]


@dataclass(frozen=True, eq=False)
class Part:
    """Some images (or halves of rows) with one reading of their numbers.

    Attributes:
        tables: Scope -> one table an image.
        ace: Scope -> ACE over all counted pixels; NaN where there is none.
        ace_image: Scope -> `(N,)` ACE of each image; NaN where no pixel is in the scope.
    """

    tables: Tables
    ace: dict[str, float]
    ace_image: dict[str, np.ndarray]

    def pooled(self, scope: str) -> Reliability:
        """All images in one table; its `pixels` is 0 where the scope is empty."""
        return Reliability.merge(self.tables[scope])

    def figures(self, scope: str) -> list[dict[str, Any]]:
        """One row a metric: pooled, mean and deviation over images, and the counts behind them. NaN where the scope is empty."""
        every = self.pooled(scope)
        empty = np.array([t.pixels == 0 for t in self.tables[scope]])
        rows = []
        for name, title in TITLES.items():
            if name == "ace":
                pooled, each = self.ace[scope], self.ace_image[scope]
            else:
                pooled = METRICS[name](every) if every.pixels else np.nan
                each = np.array([METRICS[name](t) if t.pixels else np.nan for t in self.tables[scope]])
            there = each[~empty]
            rows.append(
                {
                    "scope": scope,
                    "metric": title,
                    "pooled": float(pooled),
                    "mean_over_images": float(there.mean()) if len(there) else np.nan,
                    "sd_over_images": float(there.std(ddof=1)) if len(there) > 1 else np.nan,
                    "images": len(there),
                    "images_without": int(empty.sum()),
                    "pixels": every.pixels,
                }
            )
        return rows


TITLES = {"ece": "ECE", "cece": "classwise ECE", "ace": "ACE", "brier": "Brier score", "nll": "NLL"}
"""Metrics in order, with their names on the screen."""


@dataclass(frozen=True, eq=False)
class Scaling:
    """What one temperature does.

    Attributes:
        temperature: T, by which logits are divided.
        unit: What was halved: "images", "rows" or "pixels".
        fitted: How many of them T was fitted on.
        shown: How many the figures are about.
        names: Names of the images that are shown; empty where rows or pixels were halved.
        before: The half that is shown, as it is.
        after: The same with logits divided by T.
    """

    temperature: float
    unit: str
    fitted: int
    shown: int
    names: tuple[str, ...]
    before: Part
    after: Part

    @property
    def at_end(self) -> bool:
        """Whether T ran into an end of its range, so that no temperature is best."""
        return self.temperature <= LOWEST or self.temperature >= HIGHEST


@dataclass(frozen=True, eq=False)
class Measured:
    """What a person gets.

    Attributes:
        own: What was measured.
        seed: Of the halves, and of pixels that are drawn where there are too many.
        whole: All images.
        overlaps: Overlap of each image, or empty where there are no maps.
        scaling: What a temperature does, or None.
        why_not: Why there is no temperature; "" where there is one.
        notes: What had to be cut short, in sentences.
    """

    own: Own
    seed: int
    whole: Part
    overlaps: tuple[Overlap, ...] = field(repr=False)
    scaling: Scaling | None
    why_not: str
    notes: tuple[str, ...]

    @property
    def summary(self) -> OverlapSummary | None:
        """Overlap over all images, or None where there are no maps."""
        return summarise(self.overlaps) if self.overlaps else None


def measure(own: Own, seed: int = 0, on_step: OnStep | None = None) -> Measured:
    """Measure what is settled.

    Args:
        own: From `core.lab.margin_own`, with no question open.
        seed: Of the halves.
        on_step: `(done, total, facts)`; facts name the stage. It may raise to stop.

    Raises:
        ValueError: A question is open.
    """
    if not own.ready:
        raise ValueError("A question about the files is open. Answer it first.")
    step = on_step or (lambda done, total, facts: None)
    n = len(own)
    total = 3 * n + 2
    notes: list[str] = []
    many = max(_count(own, range(n), scope) for scope in SCOPES)
    if many > _most(own):
        notes.append(
            f"ACE and the fit of T saw about {_most(own):,} drawn pixels where there were more (up to {many:,}). All other figures count every pixel."
        )
    whole = _part(
        own, [(i, None) for i in range(n)], seed, None, lambda k: step(k, total, {"stage": "Counting"})
    )
    overlaps: list[Overlap] = []
    if own.rows or own.items[0].labels.ndim not in (2, 3):
        pass
    elif len(own.classes) > MOST_SURFACES:
        notes.append(
            f"Dice and surface distances are measured up to {MOST_SURFACES} classes; here are {len(own.classes)}."
        )
    else:
        for i, item in enumerate(own.items):
            overlaps.append(
                overlap(own.predicted(i), item.labels, len(own.classes), item.spacing, item.ignore)
            )
            step(n + i + 1, total, {"stage": "Measuring overlap and surface distances"})
    scaling, why_not = _scaled(
        own, seed, lambda k: step(2 * n + k, total, {"stage": "Fitting a temperature"})
    )
    return Measured(own, seed, whole, tuple(overlaps), scaling, why_not, tuple(notes))


Pick = tuple[int, np.ndarray | None]
"""An image, and which of its counted pixels are taken: `(P,)` bool, or None for all."""


def _scaled(own: Own, seed: int, step: Callable[[int], None]) -> tuple[Scaling | None, str]:
    rng = np.random.default_rng(seed)
    n = len(own)
    fit: list[Pick]
    show: list[Pick]
    if n > 1:
        order = rng.permutation(n)
        half = np.sort(order[: n // 2]), np.sort(order[n // 2 :])
        fit, show = [(int(i), None) for i in half[0]], [(int(i), None) for i in half[1]]
        unit, sizes = "images", (len(fit), len(show))
    else:
        if own.pixels < 2:
            return None, "One pixel cannot be halved, so no temperature was fitted."
        chosen = rng.permutation(own.pixels) < own.pixels // 2
        fit, show = [(0, chosen)], [(0, ~chosen)]
        unit, sizes = ("rows" if own.rows else "pixels"), (int(chosen.sum()), int((~chosen).sum()))
    x, y = _gathered(own, fit, "all", rng)
    if not len(y):
        return None, "Every pixel of the half that a temperature would be fitted on is left out."
    t = fit_temperature((x if own.of == "logits" else _log(x))[None], y[None])
    before = _part(own, show, seed, None, lambda k: step(k))
    after = _part(own, show, seed, t, lambda k: step(len(show) + k))
    names = tuple(own.items[i].name for i, _ in show) if n > 1 else ()
    return Scaling(t, unit, *sizes, names, before, after), ""


def _part(
    own: Own, picks: Sequence[Pick], seed: int, temperature: float | None, step: Callable[[int], None]
) -> Part:
    tables: dict[str, list[Reliability]] = {s: [] for s in SCOPES}
    each: dict[str, list[float]] = {s: [] for s in SCOPES}
    of = "logits" if temperature is not None else own.of
    for k, pick in enumerate(picks):
        found = [tabulate_scopes(_divided(own, x, temperature), y, of=of) for x, y in _parts(own, pick)]
        nothing = tabulate_scopes(np.zeros((len(own.classes), 0)), np.zeros(0, np.int64))
        for s in SCOPES:
            tables[s].append(Reliability.merge([nothing[s], *(f[s] for f in found)]))
            each[s].append(_ace(own, [pick], s, seed, temperature))
        step(k + 1)
    pooled = {s: _ace(own, picks, s, seed, temperature) for s in SCOPES}
    return Part({s: tuple(t) for s, t in tables.items()}, pooled, {s: np.array(e) for s, e in each.items()})


def _ace(own: Own, picks: Sequence[Pick], scope: str, seed: int, temperature: float | None) -> float:
    x, y = _gathered(own, picks, scope, np.random.default_rng(seed))
    if not len(y):
        return float("nan")
    return ace(
        _divided(own, x, temperature), y, scope="all", of="logits" if temperature is not None else own.of
    )


def _divided(own: Own, x: np.ndarray, temperature: float | None) -> np.ndarray:
    if temperature is None:
        return x
    return (x if own.of == "logits" else _log(x)) / temperature


def _log(p: np.ndarray) -> np.ndarray:
    return np.log(np.maximum(p, FLOOR))


def _parts(own: Own, pick: Pick) -> Iterator[tuple[np.ndarray, np.ndarray]]:
    index, chosen = pick
    at = 0
    for x, y in own.parts(index):
        if chosen is not None:
            inside = chosen[at : at + len(y)]
            at += len(y)
            x, y = x[:, inside], y[inside]
        yield x, y


def _most(own: Own) -> int:
    """Pixels that `SAMPLE` allows."""
    return SAMPLE // len(own.classes)


def _count(own: Own, indices: Sequence[int] | range, scope: str) -> int:
    total = 0
    for i in indices:
        item = own.items[i]
        y = item.labels if item.ignore is None else item.labels[~item.ignore]
        total += int(np.count_nonzero(y)) if scope == "foreground" else y.size
    return total


def _gathered(
    own: Own, picks: Sequence[Pick], scope: str, rng: np.random.Generator
) -> tuple[np.ndarray, np.ndarray]:
    """Pixels of a scope side by side, `(K, P)` and `(P,)`, at most about `SAMPLE` of them."""
    share = _most(own) / max(_count(own, [i for i, _ in picks], scope), 1)
    xs, ys = [np.zeros((len(own.classes), 0))], [np.zeros(0, np.int64)]
    for pick in picks:
        for x, y in _parts(own, pick):
            keep = y != 0 if scope == "foreground" else np.ones(len(y), bool)
            if share < 1:
                keep &= rng.random(len(y)) < share
            xs.append(x[:, keep])
            ys.append(y[keep])
    return np.concatenate(xs, 1), np.concatenate(ys)
