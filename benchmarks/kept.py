"""How much autograd keeps between forward and backward; shared by the benchmarks of speed. It measures no time."""

from __future__ import annotations

from collections.abc import Callable

import torch


def kept_bytes(work: Callable[[], object], left_out: list[torch.Tensor]) -> int:
    """Bytes of the storages that autograd keeps for the backward pass of some work, each counted once.

    Args:
        work: Builds a graph, and returns what holds it.
        left_out: Tensors whose storages do not count, such as parameters.
    """
    own = {t.untyped_storage().data_ptr() for t in left_out}
    seen: dict[int, int] = {}
    alive: list[torch.Tensor] = []  # a storage that is freed could lend its address to another

    def keep(t: torch.Tensor) -> torch.Tensor:
        storage = t.untyped_storage()
        alive.append(t)
        if storage.data_ptr() not in own:
            seen[storage.data_ptr()] = storage.nbytes()
        return t

    with torch.autograd.graph.saved_tensors_hooks(keep, lambda t: t):
        work()
    return sum(seen.values())
