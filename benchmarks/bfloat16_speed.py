"""What a training step in bfloat16 costs over one in float32 on this processor, by autocast alone and with float32 sums (`core.nets.mixed`).

The long tails' network (14 layers, batch of 128 pictures of 32 px, one thread, forward and backward), all three in turns in this process; a
figure is the median of its turns' processor time. How far logits and gradients lie from autocast's stands beside it: the roundings are the same,
the order of the sums is not. It says nothing about training quality.
"""

from __future__ import annotations

import argparse
import statistics
import time
from collections.abc import Callable
from contextlib import AbstractContextManager, ExitStack, nullcontext
from typing import Any

import torch
import torch.nn.functional as F
from torch import nn

from core.lab.tail_schedule import schedule_for
from core.nets.mixed import Float32Kernels, imitates_bfloat16
from core.nets.resnet_cifar import resnet_cifar

CLASSES = 10


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--turns", type=int, default=None, help="turns of each way (default 5; 1 with --quick)"
    )
    parser.add_argument("--batch", type=int, default=None, help="pictures (default 128; 16 with --quick)")


def _autocast() -> AbstractContextManager[Any]:
    return torch.autocast("cpu", torch.bfloat16)


def _rounded() -> AbstractContextManager[Any]:
    stack = ExitStack()
    stack.enter_context(_autocast())
    stack.enter_context(Float32Kernels())
    return stack


WAYS: dict[str, Callable[[], AbstractContextManager[Any]]] = {
    "float32": nullcontext,
    "autocast": _autocast,
    "float32 sums": _rounded,
}


def once(
    net: nn.Module, x: torch.Tensor, y: torch.Tensor, way: Callable[[], AbstractContextManager[Any]]
) -> tuple[float, torch.Tensor, torch.Tensor]:
    """Seconds of processor time for one pass forward and backward, the logits, and all gradients in a row."""
    net.zero_grad()
    began = time.process_time()
    with way():
        logits = net(x)
    F.cross_entropy(logits.float(), y).backward()
    taken = time.process_time() - began
    gradients = torch.cat([p.grad.flatten() for p in net.parameters() if p.grad is not None])
    return taken, logits.detach().float(), gradients


def run(args: argparse.Namespace) -> dict[str, Any]:
    turns, batch = args.turns or (1 if args.quick else 5), args.batch or (16 if args.quick else 128)
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        rng = torch.Generator().manual_seed(0)
        schedule = schedule_for("cifar10")
        net = resnet_cifar(CLASSES, rng, schedule.width, schedule.depth, "linear")
        net = net.to(memory_format=torch.channels_last)  # type: ignore[call-overload]
        x = torch.randn(batch, 3, 32, 32, generator=rng).to(memory_format=torch.channels_last)
        y = torch.randint(0, CLASSES, (batch,), generator=rng)
        taken: dict[str, list[float]] = {name: [] for name in WAYS}
        last: dict[str, tuple[torch.Tensor, torch.Tensor]] = {}
        for turn in range(turns + 1):
            for name, way in WAYS.items():
                seconds, logits, gradients = once(net, x, y, way)
                last[name] = logits, gradients
                if turn:  # the first one warms up
                    taken[name].append(seconds)
    finally:
        torch.set_num_threads(threads)
    middle = {name: statistics.median(times) for name, times in taken.items()}
    rows = [
        {
            "way": name,
            "ms": 1e3 * middle[name],
            "ratio_float32": middle[name] / middle["float32"],
            "logits_apart": apart(last[name][0], last["autocast"][0]),
            "gradients_apart": apart(last[name][1], last["autocast"][1]),
        }
        for name in WAYS
    ]
    return {
        "rows": rows,
        "imitates_bfloat16": imitates_bfloat16("cpu"),
        "ratio_autocast": middle["autocast"] / middle["float32"],
        "ratio_float32_sums": middle["float32 sums"] / middle["float32"],
        "settings": {"turns": turns, "batch": batch, "threads": 1},
    }


def apart(ours: torch.Tensor, theirs: torch.Tensor) -> float:
    """Norm of the difference over the norm of `theirs`."""
    return float((ours - theirs).norm() / theirs.norm())
