"""What sparse coding layers cost in training: a step of TA-CSC-18all and of TA-CSC-18 over one of ResNet-18, in time and in bytes kept for backward.

Pictures of 32 px in batches of 128, width 32, float32, one thread. A step is forward, cross-entropy (with the ℓ1 term where there are sparse
layers), backward and SGD. All networks take their steps in turns in this process; a step's time is processor time, and a figure is the median of its
turns, so that other work on the machine burdens all alike. Bytes are what autograd keeps between forward and backward, counted by its saved-tensor
hooks: each storage once, parameters left out. Beside them stand SDNet's published layer, in all layers and in the
first, and our own, both in plain autograd (`tacsc_plain.py`). It says nothing about accuracy (`tacsc.py`).
"""

from __future__ import annotations

import argparse
import statistics
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import torch
import torch.nn.functional as F
from torch import nn

from benchmarks.car_speed import in_turns
from benchmarks.kept import kept_bytes
from benchmarks.tacsc_plain import AutogradLayer, SDNetLayer, replaced
from core.settings.tacsc import TacscSettings
from core.tacsc.layer import CSCConv2d
from core.tacsc.nets import ResNet18, build
from core.tacsc.objective import collect_sizes, l1_term

SIDE, CLASSES = 32, 10
NETS: dict[str, tuple[str, Callable[[CSCConv2d], nn.Module] | None]] = {
    "ResNet-18": ("resnet", None),
    "TA-CSC-18": ("tacsc", None),
    "TA-CSC-18all": ("tacsc_all", None),
    "TA-CSC-18all, plain autograd": ("tacsc_all", AutogradLayer),
    "SDNet-18, plain": ("tacsc", SDNetLayer),
    "SDNet-18all, plain": ("tacsc_all", SDNetLayer),
}
"""Name in the table -> network of `core.tacsc.nets`, and what takes the place of its sparse layers."""

SHORT = {
    "all": "TA-CSC-18all",
    "first": "TA-CSC-18",
    "plain_all": "TA-CSC-18all, plain autograd",
    "sdnet_all": "SDNet-18all, plain",
    "sdnet_first": "SDNet-18, plain",
}
"""Name in a figure -> name in the table."""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--turns", type=int, default=None, help="steps of each network (default 9; 3 with --quick)"
    )
    parser.add_argument("--width", type=int, default=32, help="channels of the first stage (default 32)")
    parser.add_argument(
        "--batch", type=int, default=None, help="pictures in a step (default 128; 32 with --quick)"
    )
    parser.add_argument("--iterations", type=int, default=2, help="K of our sparse layers (default 2)")
    parser.add_argument(
        "--seed", type=int, default=0, help="draw of pictures, labels and weights (default 0)"
    )


@dataclass(frozen=True)
class Trained:
    """A network with what a step of its training needs.

    Attributes:
        net: In training mode, channels last in memory.
        loss: `(images, labels)` -> loss, a tensor without dimensions.
        before: What the training loop does before each forward.
        optimiser: SGD with momentum and weight decay.
    """

    net: ResNet18
    loss: Callable[[torch.Tensor, torch.Tensor], torch.Tensor]
    before: Callable[[], None]
    optimiser: torch.optim.Optimizer

    def step(self, images: torch.Tensor, labels: torch.Tensor) -> None:
        """One step of training."""
        self.before()
        loss = self.loss(images, labels)
        self.optimiser.zero_grad()
        loss.backward()
        self.optimiser.step()


def trained(name: str, width: int, settings: TacscSettings, seed: int) -> Trained:
    """One of `NETS`, ready to be trained.

    Args:
        name: A key of `NETS`.
        width: Channels of the first stage.
        settings: Of the sparse layers.
        seed: Of the weights.
    """
    model, other = NETS[name]
    net = build(model, width, CLASSES, settings, rng=torch.Generator().manual_seed(seed))
    if other is not None:
        replaced(net, other)
    net = net.to(memory_format=torch.channels_last).train()  # type: ignore[call-overload]
    sdnets = [m for m in net.modules() if isinstance(m, SDNetLayer)]

    def loss(images: torch.Tensor, labels: torch.Tensor) -> torch.Tensor:
        with collect_sizes(net) as sizes:
            logits = net(images)
        return F.cross_entropy(logits, labels) + settings.l1_weight * l1_term(sizes)

    def before() -> None:
        for layer in sdnets:
            layer.update_step()

    return Trained(net, loss, before, torch.optim.SGD(net.parameters(), 0.01, 0.9, weight_decay=5e-4))


def run(args: argparse.Namespace) -> dict[str, Any]:
    turns = args.turns or (3 if args.quick else 9)
    batch = args.batch or (32 if args.quick else 128)
    settings = TacscSettings(iterations=args.iterations)
    rng = torch.Generator().manual_seed(args.seed)
    images = torch.randn(batch, 3, SIDE, SIDE, generator=rng).to(memory_format=torch.channels_last)
    labels = torch.randint(0, CLASSES, (batch,), generator=rng)
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        made = {name: trained(name, args.width, settings, args.seed) for name in NETS}
        taken = in_turns({name: one_step(m, images, labels) for name, m in made.items()}, turns, warm=1)
        kept = {
            name: kept_bytes(lambda m=m: m.loss(images, labels), list(m.net.parameters()))  # type: ignore[misc]
            for name, m in made.items()
        }
    finally:
        torch.set_num_threads(threads)
    return {"rows": rows_of(taken, kept), **ratios(taken, kept)} | {
        "settings": {"turns": turns, "batch": batch, "side": SIDE, "threads": 1, "settings": vars(settings)}
    }


def one_step(m: Trained, images: torch.Tensor, labels: torch.Tensor) -> Callable[[], None]:
    """A step on these pictures as a work without arguments."""
    return lambda: m.step(images, labels)


def rows_of(taken: dict[str, list[float]], kept: dict[str, int]) -> list[dict[str, Any]]:
    """A row for each network; times in ms, with the spread of the turns, and both ratios to ResNet-18."""
    return [
        {
            "model": name,
            "step_ms": 1e3 * statistics.median(times),
            "fastest_ms": 1e3 * min(times),
            "saved_mib": kept[name] / 2**20,
            "ratio_time": statistics.median(times) / statistics.median(taken["ResNet-18"]),
            "ratio_bytes": kept[name] / kept["ResNet-18"],
        }
        for name, times in taken.items()
    ]


def ratios(taken: dict[str, list[float]], kept: dict[str, int]) -> dict[str, float]:
    """The figures that sum it up: medians over medians and, as a check on a busy machine, the median of the ratios turn by turn."""
    figures = {}
    base = taken["ResNet-18"]
    for short, name in SHORT.items():
        figures[f"ratio_time_{short}"] = statistics.median(taken[name]) / statistics.median(base)
        pairs = [a / b for a, b in zip(taken[name], base, strict=True)]
        figures[f"ratio_time_{short}_pairs"] = statistics.median(pairs)
        figures[f"ratio_bytes_{short}"] = kept[name] / kept["ResNet-18"]
    return figures
