"""Soft confusion of a batch: how much of each sample flows to each wrong class, and the matrix of class means.

METHODS 3.1 and 3.2. For a sample q of class y: c_q[i] = sigmoid(f_i - f_y + gamma) · p_i for i != y, and 0 at y, with p the
softmax of f / T over all K classes (or over the K - 1 others). Column j of the matrix is the mean of c_q over the samples of class j.
Rows are predicted (competing) classes, columns true ones, here and everywhere in this room.

Not here: the memory over batches (`ema.py`), weights (`weights.py`), and the count of hard errors (`metrics.confusion`).
"""

from __future__ import annotations

import torch

from core.settings.car import COMPETITORS


def soft_flow(
    logits: torch.Tensor,
    labels: torch.Tensor,
    gamma: float = 0.0,
    temperature: float = 1.0,
    competitors: str = "all",
    detach_gate: bool = True,
) -> torch.Tensor:
    """What flows from each sample to each wrong class.

    Args:
        logits: `(B, K)`; half precision is computed in float32.
        labels: `(B,)` int64 in [0, K).
        gamma: Margin of the gate in logits; a competitor counts as soon as it comes within gamma of the true class.
        temperature: T > 0, divides the logits in the softmax.
        competitors: `"all"` or `"others"`, the classes in the softmax.
        detach_gate: True makes the gate a constant for the gradient.

    Returns:
        `(B, K)` in [0, 1], float32 (or float64), zero at the true class. With `"all"` a row sums to at most 1 - p_y.

    Raises:
        ValueError: Shapes do not fit, a label is outside [0, K), or a setting is not known.
    """
    check_batch(logits, labels)
    if competitors not in COMPETITORS:
        raise ValueError(f"The softmax runs over 'all' or 'others', not {competitors!r}.")
    if not temperature > 0:
        raise ValueError(f"The temperature of the softmax is {temperature}; it must be above 0.")
    with torch.autocast(logits.device.type, enabled=False):
        f = logits if logits.dtype == torch.float64 else logits.float()
        truth = labels[:, None]
        scaled = f / temperature
        if competitors == "others":
            scaled = scaled.scatter(1, truth, -torch.inf)
            if f.shape[1] == 1:  # the only class has no competitor
                return f * 0
        lead = f - f.gather(1, truth)
        if detach_gate:
            lead = lead.detach()
        share = torch.softmax(scaled, 1)
        return (torch.sigmoid(lead + gamma) * share).scatter(1, truth, 0.0)


def soft_confusion(
    logits: torch.Tensor,
    labels: torch.Tensor,
    gamma: float = 0.0,
    temperature: float = 1.0,
    competitors: str = "all",
    detach_gate: bool = True,
) -> torch.Tensor:
    """The matrix of one batch. Arguments and errors as in `soft_flow`.

    Returns:
        `(K, K)`, rows predicted, columns true; zero diagonal, entries in [0, 1], column sums at most 1. The column of a class that
        the batch lacks is zero.
    """
    flow = soft_flow(logits, labels, gamma, temperature, competitors, detach_gate)
    classes = flow.shape[1]
    counts = class_counts(labels, classes).to(flow.dtype)
    sums = flow.new_zeros(classes, classes).index_add(0, labels, flow)
    return (sums / counts.clamp(min=1)[:, None]).T


def class_counts(labels: torch.Tensor, classes: int) -> torch.Tensor:
    """Samples of each class, `(K,)` int64."""
    return torch.zeros(classes, dtype=torch.int64, device=labels.device).index_add(
        0, labels, torch.ones_like(labels)
    )


def check_batch(logits: torch.Tensor, labels: torch.Tensor) -> None:
    """Refuse a batch whose shapes or labels do not fit.

    Raises:
        ValueError: Says what does not fit, and where.
    """
    if logits.ndim != 2 or labels.ndim != 1 or len(logits) != len(labels):
        raise ValueError(
            f"Logits of shape (B, K) and labels of shape (B,) are needed, not {tuple(logits.shape)} and {tuple(labels.shape)}."
        )
    if logits.shape[1] < 1:
        raise ValueError("The logits have no class: their second dimension is 0.")
    if labels.dtype != torch.int64:
        raise ValueError(f"Labels are whole numbers of type int64, not {labels.dtype}; use labels.long().")
    classes = logits.shape[1]
    if len(labels) and (int(labels.min()) < 0 or int(labels.max()) >= classes):
        wrong = int(((labels < 0) | (labels >= classes)).nonzero()[0, 0])
        raise ValueError(
            f"Label {int(labels[wrong])} of sample {wrong} is outside 0..{classes - 1}, and the logits have {classes} classes. "
            "Number the classes from 0, or give the network more outputs."
        )
