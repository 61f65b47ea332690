"""Class weights Λ of CAR: w_j = (m_j + r0)^(-1/2), divided by their mean (METHODS 3.1 and 3.4).

m_j is a class's frequency in the training set. Divided by the sum of all counts (the paper's) and with many classes it is small beside r0 in
every class, so that Λ is nearly the identity; divided by the largest count the tail gains more. Both are here.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import torch

from core.settings.car import FREQUENCIES

Counts = Sequence[int] | np.ndarray | torch.Tensor


def as_counts(counts: Counts) -> torch.Tensor:
    """Training samples of each class as `(K,)` float64.

    Raises:
        ValueError: Not a list of numbers >= 0 with at least one above 0.
    """
    values = torch.as_tensor(counts).double().cpu()
    if values.ndim != 1 or len(values) == 0:
        raise ValueError(f"Counts are one number a class, of shape (K,), not {tuple(values.shape)}.")
    if not bool(torch.isfinite(values).all()) or float(values.min()) < 0 or float(values.sum()) == 0:
        raise ValueError("Counts are numbers of training samples: none below 0, at least one above 0.")
    return values


def frequencies(counts: Counts, norm: str = "sum") -> torch.Tensor:
    """Frequency of each class, `(K,)` float64 in [0, 1].

    Args:
        counts: `(K,)` training samples.
        norm: `"sum"` divides by all samples, `"max"` by the largest class.

    Raises:
        ValueError: As in `as_counts`, or the norm is not known.
    """
    if norm not in FREQUENCIES:
        raise ValueError(f"Frequencies are divided by the 'sum' or the 'max' of the counts, not {norm!r}.")
    values = as_counts(counts)
    return values / (values.sum() if norm == "sum" else values.max())


def class_weights(
    counts: Counts, r0: float = 0.2, norm: str = "sum", mean_normalised: bool = True
) -> torch.Tensor:
    """Diagonal of Λ.

    Args:
        counts: `(K,)` training samples.
        r0: Added before the root, >= 0.
        norm: See `frequencies`.
        mean_normalised: Whether weights are divided by their mean (on in the paper's code).

    Returns:
        `(K,)` float64, at least 0.001.

    Raises:
        ValueError: As in `frequencies`, or r0 is below 0.
    """
    if not r0 >= 0:
        raise ValueError(f"r0 is {r0}; it cannot be below 0.")
    w = (frequencies(counts, norm) + r0 + 1e-12).rsqrt()
    if mean_normalised:
        w = w / w.mean()
    return w.clamp(min=1e-3)
