"""CAR as one module that any training loop adds in two lines.

    car = CAR(counts, settings)                 # counts: training samples of each class
    loss = cross_entropy(logits, labels) + car(logits, labels)

METHODS 3.1 to 3.5: alpha · sigma_max(C diag(w)), C the running soft confusion matrix. Only the batch's share of C carries a gradient.
The gradient of sigma with respect to C is u (w v)', so the term is written as sum over samples of u · c_q times what a sample of its
class counts: value and gradient are those of the full matrix, and autograd never sees a K × K tensor. One K × K buffer is kept, which
makes K = 8,142 possible (265 MB in float32).

It is no loss of its own, and it knows one process: with several, each has its own matrix.
"""

from __future__ import annotations

import torch
from torch import nn

from core.car.ema import Memory, correction, remember
from core.car.soft_confusion import soft_flow
from core.car.spectral_norm import even, top_pair
from core.car.weights import Counts, class_weights
from core.settings.car import CarSettings
from core.settings.knob import check

COLD = 30
"""Steps of power iteration at the first batch, which has nothing to go on from."""


class CAR(nn.Module):
    """The confusion-aware spectral regularizer. Its buffers are saved with `state_dict` and follow `.to(device)`.

    In eval mode it gives the value that this batch would have and remembers nothing.

    Args:
        counts: `(K,)` training samples of each class.
        settings: See `CarSettings`; None takes the paper's.

    Attributes:
        columns: `(K, K)` running matrix, true class first; see `confusion`.
        weights: `(K,)` diagonal of Λ (ones where `weighted` is False).
        sigma: Largest singular value at the last batch, by power iteration.
        v: `(K,)` its right vector (true classes).
        u: `(K,)` its left vector (predicted classes).

    Raises:
        ValueError: Counts or settings are not allowed.
    """

    columns: torch.Tensor
    seen: torch.Tensor
    updates: torch.Tensor
    weights: torch.Tensor
    sigma: torch.Tensor
    u: torch.Tensor
    v: torch.Tensor
    batches: torch.Tensor

    def __init__(self, counts: Counts, settings: CarSettings | None = None) -> None:
        super().__init__()
        self.settings = settings or CarSettings()
        check(self.settings)
        w = class_weights(counts, self.settings.r0, self.settings.frequency).float()
        self.classes = len(w)
        empty = Memory.empty(self.classes)
        self.register_buffer("columns", empty.columns)
        self.register_buffer("seen", empty.seen)
        self.register_buffer("updates", empty.updates)
        self.register_buffer("weights", w if self.settings.weighted else torch.ones_like(w))
        self.register_buffer("sigma", torch.zeros(()))
        self.register_buffer("u", torch.zeros(self.classes))
        self.register_buffer("v", even(self.classes, w))
        self.register_buffer("batches", torch.zeros((), dtype=torch.int64))

    @property
    def confusion(self) -> torch.Tensor:
        """The running matrix `(K, K)`, rows predicted, columns true, bias-corrected where the settings say so; without Λ."""
        s = self.settings
        columns = self.columns
        if s.bias_correction:
            columns = columns / correction(self._memory(), s.memory, s.beta)[:, None]
        return columns.T

    def _memory(self) -> Memory:
        return Memory(self.columns, self.seen, self.updates)

    def forward(self, logits: torch.Tensor, labels: torch.Tensor) -> torch.Tensor:
        """The term to add to the loss.

        Args:
            logits: `(B, K)`, any floating type; autocast is switched off inside.
            labels: `(B,)` int64 in [0, K).

        Returns:
            alpha · sigma, a scalar of the buffers' type. With alpha = 0 it is a zero without gradient.

        Raises:
            ValueError: Shapes or labels do not fit, K is another, or the logits hold NaN; then nothing has been remembered.
        """
        s = self.settings
        if logits.ndim == 2 and logits.shape[1] != self.classes:
            raise ValueError(
                f"The logits have {logits.shape[1]} classes, and this regularizer was made for {self.classes} counts."
            )
        flow = soft_flow(logits, labels, s.gamma, s.temperature, s.competitors, s.detach_gate)
        flow = flow.to(self.columns.dtype)
        bad = flow.detach().isnan().any(1)
        if bool(bad.any()):
            first = int(bad.nonzero()[0, 0])
            raise ValueError(
                f"The logits of {int(bad.sum())} of {len(bad)} samples are no numbers (first: sample {first}). The step was not "
                "remembered. A smaller learning rate or clipped gradients usually help."
            )
        with torch.no_grad():
            memory = self._memory()
            if not self.training:
                memory = Memory(*(x.clone() for x in (self.columns, self.seen, self.updates)))
            each = remember(memory, flow.detach(), labels, s.memory, s.beta)
            scale = self.weights
            if s.bias_correction:
                scale = scale / correction(memory, s.memory, s.beta)
            steps = s.steps if int(self.batches) else max(s.steps, COLD)
            sigma, u, v = top_pair(memory.columns, scale, self.v, steps)
            if self.training:
                self.sigma.copy_(sigma)
                self.u.copy_(u)
                self.v.copy_(v)
                self.batches.add_(1)
        if s.alpha == 0:
            return sigma * 0
        with torch.autocast(logits.device.type, enabled=False):
            linear = ((flow @ u) * (each * scale * v)[labels]).sum()
        return s.alpha * (sigma + (linear - linear.detach()))

    def extra_repr(self) -> str:
        """Classes and settings, for `print`."""
        return f"classes={self.classes}, {self.settings}"
