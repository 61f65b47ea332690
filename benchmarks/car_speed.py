"""What CAR costs: a step of CE + CAR over one of CE for a ResNet-18 at batch 128 and 32 px, its own term beside a full SVD, and its memory.

One thread, both sides in turns in this process; a turn's time is processor time, and a figure is the median of its turns. The step is forward,
loss, backward and SGD. The network keeps ImageNet's stem (stride 2 and pooling): at 32 px it is about fifteen times as cheap as the stem for small
pictures (`--stem small`), so that CAR's share is larger and the bound harder. The full SVD is the term as commonly published: the matrix in the
graph, an average over batches, `torch.linalg.svd`, the first singular value. Memory at K = 8,142 is what a process of its own grows by, from before
the module is made to the peak of three steps.
"""

from __future__ import annotations

import argparse
import statistics
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import torch
import torch.nn.functional as F
from torch import nn

from core.car.regularizer import CAR
from core.car.soft_confusion import soft_confusion
from core.car.weights import class_weights
from core.data.longtail import longtail_counts
from core.settings.car import CarSettings

BATCH, SIDE = 128, 32
MANY = 8_142
"""Classes of iNaturalist 2018."""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--turns", type=int, default=None, help="turns of each step (default 30; 6 with --quick)"
    )
    parser.add_argument(
        "--stem",
        choices=("imagenet", "small"),
        default="imagenet",
        help="first layers of the ResNet-18 (default imagenet, the cheaper)",
    )
    parser.add_argument(
        "--seed", type=int, default=0, help="draw of pictures, labels and weights (default 0)"
    )


def counts_of(classes: int) -> torch.Tensor:
    """Training counts of a long tail (imbalance 100), `(K,)`."""
    return torch.from_numpy(longtail_counts(classes, 500, 100))


def settings() -> CarSettings:
    """CAR with the memory that forgets nothing."""
    return CarSettings(memory="count", frequency="max")


def resnet(classes: int, stem: str) -> nn.Module:
    """A ResNet-18 with random weights."""
    from torchvision.models import resnet18

    model = resnet18(num_classes=classes)
    if stem == "small":
        model.conv1 = nn.Conv2d(3, 64, 3, padding=1, bias=False)
        model.maxpool = nn.Identity()
    return model.train()


def labels_of(classes: int, rng: torch.Generator) -> torch.Tensor:
    """Labels of a batch, drawn as often as the long tail says."""
    return torch.multinomial(counts_of(classes).double(), BATCH, replacement=True, generator=rng)


class SvdTerm:
    """The same term by a full SVD, for comparison: `alpha * svd(average of soft confusions * weights)[0]`, K x K in the graph.

    Args:
        counts: `(K,)`.
        given: Settings; memory is the naive one, as published.
    """

    def __init__(self, counts: torch.Tensor, given: CarSettings) -> None:
        self.weights = class_weights(counts, given.r0, given.frequency).float()
        self.given = given
        self.average = torch.zeros(len(counts), len(counts))

    def __call__(self, logits: torch.Tensor, labels: torch.Tensor) -> torch.Tensor:
        """The term of a batch."""
        now = soft_confusion(logits, labels)
        mean = self.given.beta * self.average + (1 - self.given.beta) * now
        self.average = mean.detach()
        return self.given.alpha * torch.linalg.svd(mean * self.weights)[1][0]


def in_turns(works: dict[str, Callable[[], None]], turns: int, warm: int = 2) -> dict[str, list[float]]:
    """Seconds of processor time of each work, taken in turns; the order is reversed every other turn."""
    taken: dict[str, list[float]] = {name: [] for name in works}
    for k in range(-warm, turns):
        names = list(works) if k % 2 else list(works)[::-1]
        for name in names:
            began = time.process_time()
            works[name]()
            if k >= 0:
                taken[name].append(time.process_time() - began)
    return taken


def steps(classes: int, stem: str, seed: int) -> dict[str, Callable[[], None]]:
    """A training step under CE and one under CE + CAR, on networks of their own."""
    rng = torch.Generator().manual_seed(seed)
    x, labels = torch.randn(BATCH, 3, SIDE, SIDE, generator=rng), labels_of(classes, rng)
    x = x.to(memory_format=torch.channels_last)

    def one(car: CAR | None) -> Callable[[], None]:
        model = resnet(classes, stem).to(memory_format=torch.channels_last)  # type: ignore[call-overload]
        optimiser = torch.optim.SGD(model.parameters(), 0.01, 0.9)

        def step() -> None:
            logits = model(x)
            loss = F.cross_entropy(logits, labels)
            if car is not None:
                loss = loss + car(logits, labels)
            optimiser.zero_grad()
            loss.backward()
            optimiser.step()

        return step

    return {"CE": one(None), "CE + CAR": one(CAR(counts_of(classes), settings()))}


def terms(classes: int, seed: int) -> dict[str, Callable[[], None]]:
    """The term alone, forward and backward to the logits: CAR's and by a full SVD."""
    rng = torch.Generator().manual_seed(seed)
    logits = torch.randn(BATCH, classes, generator=rng)
    labels = labels_of(classes, rng)
    makers: dict[str, Any] = {
        "CAR's term": CAR(counts_of(classes), settings()),
        "term by full SVD": SvdTerm(counts_of(classes), settings()),
    }

    def one(term: Any) -> Callable[[], None]:
        def work() -> None:
            x = logits.clone().requires_grad_()
            term(x, labels).backward()

        return work

    return {name: one(term) for name, term in makers.items()}


def grown_mib(classes: int) -> float:
    """MiB by which this process grows from before CAR is made to the peak of three steps of its term. Call it in a fresh process.

    Args:
        classes: K. Three steps with 100 classes come first, so that what the library loads once is not counted.
    """
    _three_steps(100)
    before = memory_mib("VmRSS")
    _three_steps(classes)
    return memory_mib("VmHWM") - before


def _three_steps(classes: int) -> None:
    rng = torch.Generator().manual_seed(0)
    logits, labels = torch.randn(BATCH, classes, generator=rng), labels_of(classes, rng)
    car = CAR(counts_of(classes), settings())
    for _ in range(3):
        x = logits.clone().requires_grad_()
        car(x, labels).backward()


def memory_mib(what: str) -> float:
    """Memory of this process in MiB: now (`VmRSS`) or at its peak (`VmHWM`); where the system has no /proc, its peak so far.

    The peak that `getrusage` gives is that of the parent where a process was started from a larger one, so it comes second.
    """
    status = Path("/proc/self/status")
    if status.exists():
        line = next(row for row in status.read_text().splitlines() if row.startswith(f"{what}:"))
        return float(line.split()[1]) / 1024
    import resource

    return float(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss) / (
        2**20 if sys.platform == "darwin" else 2**10
    )


def _memory_row(classes: int) -> dict[str, Any]:
    from concurrent.futures import ProcessPoolExecutor
    from multiprocessing import get_context

    with ProcessPoolExecutor(1, get_context("spawn")) as pool:
        grown = pool.submit(grown_mib, classes).result()
    return {
        "classes": classes,
        "tool": "memory of CAR's term",
        "mib": grown,
        "matrix_mib": 4 * classes**2 / 2**20,
    }


def run(args: argparse.Namespace) -> dict[str, Any]:
    turns = args.turns or (6 if args.quick else 30)
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    torch.manual_seed(args.seed)  # weights of the networks, whose values do not matter
    rows: list[dict[str, Any]] = []
    figures: dict[str, float] = {}
    try:
        for classes in (100, 1000):
            print(f"Steps at {classes:,} classes, {turns} turns each …", file=sys.stderr, flush=True)
            taken = in_turns(steps(classes, args.stem, args.seed), turns)
            middle = {name: statistics.median(t) for name, t in taken.items()}
            pairs = [b / a for a, b in zip(taken["CE"], taken["CE + CAR"], strict=True)]
            figures[f"ratio_step_k{classes}"] = middle["CE + CAR"] / middle["CE"]
            figures[f"ratio_step_k{classes}_pairs"] = statistics.median(pairs)
            rows += [
                {"classes": classes, "tool": f"step, {name}", "ms": 1e3 * t} for name, t in middle.items()
            ]
            own = in_turns({"CAR's term": terms(classes, args.seed)["CAR's term"]}, 10 * turns, 5)
            rows.append(
                {"classes": classes, "tool": "CAR's term", "ms": 1e3 * statistics.median(own["CAR's term"])}
            )
            figures[f"term_over_step_k{classes}"] = rows[-1]["ms"] / (1e3 * middle["CE"])
        print("The term beside a full SVD …", file=sys.stderr, flush=True)
        taken = in_turns(terms(1000, args.seed), max(turns // 3, 3), 1)
        middle = {name: statistics.median(t) for name, t in taken.items()}
        rows.append({"classes": 1000, "tool": "term by full SVD", "ms": 1e3 * middle["term by full SVD"]})
        figures["ratio_svd_k1000"] = middle["term by full SVD"] / middle["CAR's term"]
    finally:
        torch.set_num_threads(threads)
    print(f"Memory at {MANY:,} classes …", file=sys.stderr, flush=True)
    memory = _memory_row(MANY)
    return {
        "rows": [*rows, memory],
        **figures,
        "mib_k8142": memory["mib"],
        "settings": {"turns": turns, "batch": BATCH, "side": SIDE, "threads": 1, "stem": args.stem},
    }
