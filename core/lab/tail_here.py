"""Cross-entropy and CAR trained side by side while a visitor waits: scikit-learn's digits made long-tailed, well under a minute on two cores.

The images are real (8 × 8 pixels, from the UCI set of handwritten digits, as scikit-learn ships them) and the task is small: a network of two
convolutions. Small also means noisy: the rarest digit has a handful of training images, so several seeds run at once, each with its own draw of
training images, and what is said counts how many of them agree. Both networks of a seed start from the same weights and see the same images
in the same order; only the loss differs.

It goes through the one runner (`jobs`): one training at a time, the same settings served from its cache.
"""

from __future__ import annotations

import math
import time
from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Any

import numpy as np
import torch
from torch import nn

from core.car.metrics import Figures, confusion, figures_of
from core.car.spectrum import Spectrum
from core.data.longtail import longtail_counts, subsample
from core.lab.jobs import RUNNER, Ticket
from core.lab.keys import settings_key
from core.lab.tail_methods import METHODS, Method, TailLoss
from core.settings.car import CarSettings
from core.settings.knob import check

DIGITS = 10
DRAW = 2024
"""Seed of the test part, the same for every run."""

WIDTH = 16
"""Channels of the first convolution."""

OFFERED = ("car-count", "car-paper", "car-present", "car-naive-max", "car-no-weights", "car-no-ema")
"""Kinds of CAR that can be trained beside cross-entropy."""

Report = Callable[[int, int, Mapping[str, Any]], None]


@dataclass(frozen=True)
class Task:
    """A long tail of digits.

    Attributes:
        imbalance: Training images of the most frequent digit over those of the rarest, 1 or more.
        rarest: The digit with fewest images; the others get more and more in the order in which they count down to it.
    """

    imbalance: float = 20.0
    rarest: int = 9


@dataclass(frozen=True)
class Budget:
    """How much is spent on a run; a test spends less.

    Attributes:
        epochs: Passes over the training images.
        seeds: Networks of each kind.
        largest: Training images of the most frequent digit.
        test: Test images of each digit.
        batch: Images in a step.
        learning_rate: Of SGD with momentum, falling as a cosine.
        every: Epochs between two looks at the test images.
    """

    epochs: int = 40
    seeds: int = 4
    largest: int = 100
    test: int = 70
    batch: int = 32
    learning_rate: float = 0.05
    every: int = 2


@dataclass(frozen=True, eq=False)
class Compared:
    """What a run leaves. Classes are from head to tail.

    Attributes:
        task: The long tail.
        budget: How much was spent.
        methods: Key -> method, cross-entropy first.
        classes: Digits as words, head first.
        counts: `(K,)` training images of each.
        test: Key -> `(S, K, K)` test matrices at the end, one a seed; rows predicted, columns true.
        train: Key -> the same of the training images.
        history: Key -> rows of epoch, overall, worst, worst_class and sigma, means over seeds.
        seconds: How long it took.
    """

    task: Task
    budget: Budget
    methods: dict[str, Method]
    classes: tuple[str, ...]
    counts: np.ndarray
    test: dict[str, np.ndarray]
    train: dict[str, np.ndarray]
    history: dict[str, tuple[dict[str, Any], ...]]
    seconds: float

    def figures(self, key: str) -> list[Figures]:
        """Figures of each seed on the test images."""
        return [figures_of(m, self.counts) for m in self.test[key]]

    def pooled(self, key: str) -> np.ndarray:
        """`(K, K)` test matrices of all seeds together."""
        return np.asarray(self.test[key].sum(0))

    def spectrum(self, key: str) -> Spectrum:
        """The same, decomposed."""
        return Spectrum.of(self.pooled(key))

    def learned(self, key: str) -> np.ndarray:
        """`(K, K)` the same of the training images."""
        return np.asarray(self.train[key].sum(0))


@lru_cache(maxsize=1)
def _digits() -> tuple[torch.Tensor, np.ndarray]:
    """All images `(N, 1, 8, 8)` in [0, 1] and their digits `(N,)`."""
    from sklearn.datasets import load_digits

    read = load_digits()
    return torch.from_numpy((read.images / 16).astype(np.float32))[:, None], read.target.astype(np.int64)


def order_of(task: Task) -> np.ndarray:
    """Digits from the most frequent to the rarest, `(10,)`: they count up to the rarest one and go round.

    Raises:
        ValueError: The digit or the imbalance is out of range.
    """
    if not 0 <= task.rarest < DIGITS:
        raise ValueError(f"The rarest digit is {task.rarest}; digits go from 0 to 9.")
    if not task.imbalance >= 1:
        raise ValueError(f"The imbalance is {task.imbalance}; it must be 1 or more.")
    return (np.arange(DIGITS) + task.rarest + 1) % DIGITS


@dataclass(frozen=True, eq=False)
class Part:
    """Images `(N, 1, 8, 8)` and their classes from head to tail `(N,)`."""

    images: torch.Tensor
    labels: torch.Tensor


def draw(task: Task, budget: Budget, seed: int) -> tuple[Part, Part, np.ndarray]:
    """Training part of a seed, the test part (the same for all), and the training counts.

    Args:
        task: The long tail.
        budget: Largest class and test images.
        seed: Of the training draw.

    Raises:
        ValueError: There are too few images for that.
    """
    images, digits = _digits()
    every = np.arange(len(digits))
    order = order_of(task)
    rank = np.argsort(order)
    labels = rank[digits]
    test = subsample(labels, [budget.test] * DIGITS, np.random.default_rng(DRAW))
    rest = np.setdiff1d(every, test)
    counts = longtail_counts(DIGITS, budget.largest, task.imbalance)
    train = rest[subsample(labels[rest], counts, np.random.default_rng(1_000 + seed))]
    parts = [Part(images[torch.from_numpy(i)], torch.from_numpy(labels[i])) for i in (train, test)]
    return parts[0], parts[1], counts


def network(seed: int) -> nn.Module:
    """Two convolutions and two linear layers, about 40,000 numbers, drawn from the seed."""
    rng = torch.Generator().manual_seed(seed)
    model = nn.Sequential(
        nn.Conv2d(1, WIDTH, 3, padding=1), nn.ReLU(), nn.Conv2d(WIDTH, 2 * WIDTH, 3, padding=1), nn.ReLU(), nn.MaxPool2d(2), nn.Flatten(),
        nn.Linear(2 * WIDTH * 16, 64), nn.ReLU(), nn.Linear(64, DIGITS),
    )  # fmt: skip
    for layer in model:
        if isinstance(layer, (nn.Conv2d, nn.Linear)):
            nn.init.kaiming_normal_(layer.weight, nonlinearity="relu", generator=rng)
            nn.init.zeros_(layer.bias)  # type: ignore[arg-type]
    return model


@dataclass(eq=False)
class _Runner:
    """One network while it learns."""

    model: nn.Module
    loss: TailLoss
    optimiser: torch.optim.Optimizer
    train: Part

    def epoch(self, k: int, budget: Budget, seed: int) -> None:
        rng = torch.Generator().manual_seed(seed * 100_003 + k)
        order = torch.randperm(len(self.train.labels), generator=rng)
        steps = max(len(order) // budget.batch, 1)
        for b in range(steps):
            pick = order[b * budget.batch : (b + 1) * budget.batch]
            share = (k * steps + b) / (budget.epochs * steps)
            for group in self.optimiser.param_groups:
                group["lr"] = budget.learning_rate * 0.5 * (1 + math.cos(math.pi * share))
            value, _ = self.loss(self.model(self.train.images[pick]), self.train.labels[pick], k)
            self.optimiser.zero_grad()
            value.backward()
            self.optimiser.step()

    @torch.no_grad()
    def matrix(self, part: Part) -> np.ndarray:
        return confusion(part.labels, self.model(part.images).argmax(1), DIGITS)


def method_here(name: str, settings: CarSettings | None = None) -> Method:
    """A kind of CAR with settings of one's own.

    Raises:
        ValueError: The kind is not offered, or a setting is out of range.
    """
    if name not in OFFERED:
        raise ValueError(f"{name!r} cannot be trained here; offered: {', '.join(OFFERED)}.")
    if settings is not None:
        check(settings)
    return METHODS[name] if settings is None else replace(METHODS[name], car=settings)


def train(method: Method, task: Task, on_step: Report, budget: Budget | None = None) -> Compared:
    """Train cross-entropy and a kind of CAR, several networks of each, epoch by epoch side by side.

    Args:
        method: From `method_here`.
        task: The long tail.
        on_step: `(done, total, facts)` after each epoch of all networks; facts hold `rows`, the history so far. It may raise to stop.
        budget: How much is spent; the page's when None.

    Raises:
        ValueError: The task or the budget is not allowed.
    """
    began = time.perf_counter()
    spend = budget or Budget()
    methods = {"ce": METHODS["ce"], method.name: method}
    test: Part | None = None
    pairs: dict[str, list[_Runner]] = {key: [] for key in methods}
    counts = np.zeros(0)
    for seed in range(spend.seeds):
        learn, test, counts = draw(task, spend, seed)
        for key, one in methods.items():
            model = network(seed)
            optimiser = torch.optim.SGD(
                model.parameters(), spend.learning_rate, 0.9, weight_decay=5e-4, nesterov=True
            )
            pairs[key].append(_Runner(model, TailLoss(one, counts, spend.epochs), optimiser, learn))
    assert test is not None
    classes = tuple(str(d) for d in order_of(task))
    rows: dict[str, list[dict[str, Any]]] = {key: [] for key in methods}
    for k in range(spend.epochs):
        for key, some in pairs.items():
            for seed, runner in enumerate(some):
                runner.epoch(k, spend, seed)
            if (k + 1) % spend.every == 0 or k + 1 == spend.epochs:
                rows[key].append({"epoch": k} | _row([r.matrix(test) for r in some], counts, classes))
        on_step(k + 1, spend.epochs, {"rows": {key: tuple(r) for key, r in rows.items()}})
    return Compared(
        task, spend, methods, classes, counts,
        {key: np.stack([r.matrix(test) for r in some]) for key, some in pairs.items()},
        {key: np.stack([r.matrix(r.train) for r in some]) for key, some in pairs.items()},
        {key: tuple(r) for key, r in rows.items()}, time.perf_counter() - began,
    )  # fmt: skip


def _row(matrices: list[np.ndarray], counts: np.ndarray, classes: tuple[str, ...]) -> dict[str, Any]:
    """Means over the seeds; the worst class is the one that is worst most often."""
    figures = [figures_of(m, counts) for m in matrices]
    worst = Counter(f.worst_class for f in figures).most_common(1)[0][0]
    return {
        "overall": float(np.mean([f.overall for f in figures])),
        "worst": float(np.mean([f.worst for f in figures])),
        "worst_class": classes[worst],
        "sigma": float(np.mean([Spectrum.of(m).sigma for m in matrices])),
    }


def key_of(method: Method, task: Task, budget: Budget) -> str:
    """What makes two runs the same."""
    return settings_key("tail.train-here", method, task, budget)


def start(method: Method, task: Task, budget: Budget | None = None) -> Ticket:
    """Ask for a run, or join those who already wait for the same one."""
    spend = budget or Budget()
    return RUNNER.submit(key_of(method, task, spend), lambda on_step: train(method, task, on_step, spend))
