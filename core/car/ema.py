"""The running confusion matrix over batches, in three ways, and what each does to a class that a batch lacks.

METHODS 3.3 and 3.4. All three move column j by C_j <- keep_j · C_j + take_j · c_j, where c_j is the batch's own column:

- `"naive"` (the paper's): keep = beta, take = 1 - beta for every class. A class that the batch lacks has c_j = 0, so its column
  fades; its expectation is P(class in batch) times the truth. Rare classes are forgotten.
- `"present only"`: the same for classes in the batch; others stay as they were.
- `"count"`: running sums of errors over running sums of samples. Written as a ratio that is updated in place, because the two
  sums underflow when a class stays away for long: n <- beta n + (1 - beta) n_batch, take = (1 - beta) n_batch / n, keep = 1 - take.

The history never carries a gradient. Bias correction divides by 1 - beta^t (t counts the updates of the column); the count memory needs
none. With beta = 0 all three are the batch alone.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch

from core.car.soft_confusion import class_counts
from core.settings.car import MEMORIES


@dataclass
class Memory:
    """State of a running matrix. Updated in place by `remember`.

    Attributes:
        columns: `(K, K)`, row j is column j of the matrix (true class first, so that a class is contiguous in memory).
        seen: `(K,)` running number of samples in a batch (count memory).
        updates: `(K,)` how often each column was updated.
    """

    columns: torch.Tensor
    seen: torch.Tensor
    updates: torch.Tensor

    @staticmethod
    def empty(classes: int, like: torch.Tensor | None = None) -> Memory:
        """A memory of nothing; dtype and device of `like`, float32 on the CPU without it."""
        like = torch.zeros(()) if like is None else like
        return Memory(like.new_zeros(classes, classes), like.new_zeros(classes), like.new_zeros(classes))

    @property
    def confusion(self) -> torch.Tensor:
        """The matrix `(K, K)`, rows predicted, columns true, before any bias correction."""
        return self.columns.T


@torch.no_grad()
def remember(
    memory: Memory, flow: torch.Tensor, labels: torch.Tensor, mode: str, beta: float
) -> torch.Tensor:
    """Add a batch to the memory, in place.

    Args:
        memory: The state.
        flow: `(B, K)` from `soft_flow`.
        labels: `(B,)` int64.
        mode: One of `MEMORIES`.
        beta: Share that is kept, in [0, 1).

    Returns:
        `(K,)`: what one sample of each class counts in the new matrix, take_j / n_j; the gradient of the matrix with respect to the
        batch is this times that of the flow. Zero for classes that the batch lacks.

    Raises:
        ValueError: The mode or beta is not allowed.
    """
    if mode not in MEMORIES:
        raise ValueError(f"The memory {mode!r} is not known; known: {', '.join(MEMORIES)}.")
    if not 0 <= beta < 1:
        raise ValueError(f"beta is {beta}; it must be at least 0 and below 1.")
    counts = class_counts(labels, len(memory.seen)).to(memory.columns.dtype)
    present = counts > 0
    if mode == "count":
        memory.seen.mul_(beta).add_(counts, alpha=1 - beta)
        take = torch.where(present, (1 - beta) * counts / memory.seen.clamp(min=1e-30), 0.0)
        keep = 1 - take
        memory.updates.add_(present)
    elif mode == "present only":
        take = present.to(counts.dtype) * (1 - beta)
        keep = 1 - take
        memory.updates.add_(present)
    else:
        take = torch.full_like(counts, 1 - beta)
        keep = torch.full_like(counts, beta)
        memory.updates.add_(1)
    if beta == 0:  # the batch alone, in every mode: nothing stays of a class that it lacks
        keep = torch.zeros_like(keep)
    each = torch.where(present, take / counts.clamp(min=1), 0.0)
    memory.columns.mul_(keep[:, None])
    memory.columns.index_add_(0, labels, flow.to(memory.columns.dtype) * each[labels, None])
    return each


def correction(memory: Memory, mode: str, beta: float) -> torch.Tensor:
    """What divides each column so that a memory that is still filling has the right size, `(K,)` in (0, 1]."""
    if mode == "count" or beta == 0:
        return torch.ones_like(memory.seen)
    return torch.where(memory.updates > 0, 1 - beta**memory.updates, 1.0)


def replay(
    matrices: torch.Tensor, counts: torch.Tensor, mode: str, beta: float, bias_correction: bool = False
) -> torch.Tensor:
    """The running matrix after each of T batches whose own matrices are known, for showing what a memory does.

    Args:
        matrices: `(T, K, K)` matrices of single batches, rows predicted, columns true.
        counts: `(T, K)` samples of each class in them.
        mode: One of `MEMORIES`.
        beta: Share that is kept.
        bias_correction: Whether the first steps are scaled up.

    Returns:
        `(T, K, K)`.
    """
    classes = matrices.shape[-1]
    memory, out = Memory.empty(classes, matrices), []
    for matrix, count in zip(matrices, counts, strict=True):
        labels = torch.repeat_interleave(torch.arange(classes, device=matrices.device), count.long())
        remember(memory, matrix.T[labels], labels, mode, beta)
        now = memory.columns
        if bias_correction:
            now = now / correction(memory, mode, beta)[:, None]
        out.append(now.T.clone())
    return torch.stack(out)


def presence(counts: torch.Tensor, batch: int) -> torch.Tensor:
    """Chance that a batch holds a class, `(K,)`: the scale at which the naive memory sees its errors.

    Args:
        counts: `(K,)` training samples of each class.
        batch: Samples in a batch, drawn with replacement.
    """
    share = counts.double() / counts.double().sum()
    return 1 - (1 - share) ** batch
