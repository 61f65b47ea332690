"""What each loss costs over cross-entropy, forward and backward, and how much it keeps for the backward pass.

Logits of 4 x 4 x 256 x 256 on one thread, all losses in turns in this process. The time of a turn is processor time, and a loss's figure is
the median of its turns over the median of CE's. Memory is what autograd keeps between forward and backward, counted by its saved-tensor hooks
(each storage once, the logits and the labels themselves left out), in MiB and in tensors of the logits' size. It says nothing about training
quality (`margin.py`).
"""

from __future__ import annotations

import argparse
import statistics
import time
from typing import Any

import torch

from benchmarks.kept import kept_bytes
from core.margin.losses import LOSSES, Loss, loss_of
from core.settings import MarginSettings

SHAPE = (4, 4, 256, 256)


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--turns", type=int, default=None, help="turns of each loss (default 60; 10 with --quick)"
    )
    parser.add_argument(
        "--margin", type=float, default=5.0, help="m of the margin loss, in logits (default 5)"
    )
    parser.add_argument("--seed", type=int, default=0, help="draw of logits and labels (default 0)")


def inputs(seed: int) -> tuple[torch.Tensor, torch.Tensor]:
    """Logits as of a trained network (the true class mostly ahead, distances of a few to twenty) and labels."""
    rng = torch.Generator().manual_seed(seed)
    n, k, h, w = SHAPE
    labels = torch.randint(0, k, (n, h, w), generator=rng)
    logits = 3 * torch.randn(SHAPE, generator=rng)
    logits.scatter_add_(1, labels[:, None], 8 * torch.rand((n, 1, h, w), generator=rng))
    return logits, labels


def kept_beside(loss: Loss, logits: torch.Tensor, labels: torch.Tensor) -> int:
    """Bytes that autograd keeps for the backward pass beside the logits and the labels."""
    x = logits.clone().requires_grad_()
    return kept_bytes(lambda: loss(x, labels), [x, labels])


def once(loss: Loss, logits: torch.Tensor, labels: torch.Tensor) -> float:
    """Seconds of processor time for one pass forward and backward."""
    x = logits.clone().requires_grad_()
    began = time.process_time()
    loss(x, labels).backward()
    return time.process_time() - began


def run(args: argparse.Namespace) -> dict[str, Any]:
    turns = args.turns or (10 if args.quick else 60)
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        logits, labels = inputs(args.seed)
        losses = {name: loss_of(MarginSettings(loss=name, margin=args.margin)) for name in LOSSES}
        losses["margin, squared"] = loss_of(MarginSettings(margin=args.margin, hinge="squared"))
        for loss in losses.values():
            once(loss, logits, labels)
        taken: dict[str, list[float]] = {name: [] for name in losses}
        for _ in range(turns):
            for name, loss in losses.items():
                taken[name].append(once(loss, logits, labels))
        kept = {name: kept_beside(loss, logits, labels) for name, loss in losses.items()}
    finally:
        torch.set_num_threads(threads)
    base = statistics.median(taken["CE"])
    one = logits.numel() * logits.element_size()
    rows = [
        {
            "loss": name,
            "ms": 1e3 * statistics.median(taken[name]),
            "ratio_ce": statistics.median(taken[name]) / base,
            "extra_mib": (kept[name] - kept["CE"]) / 2**20,
            "extra_tensors": (kept[name] - kept["CE"]) / one,
        }
        for name in losses
    ]
    by = {row["loss"]: row for row in rows}
    return {
        "rows": rows,
        "ratio_margin": by["margin"]["ratio_ce"],
        "extra_tensors_margin": by["margin"]["extra_tensors"],
        "kept_by_ce_mib": kept["CE"] / 2**20,
        "settings": {"shape": list(SHAPE), "turns": turns, "threads": 1},
    }
