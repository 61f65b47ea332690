"""From one image's logits or probabilities, with its labels, to checked pixels in float64; and which bin a confidence falls in.

What it is not: a metric; `core.margin.reliability` counts what comes from here. Bin membership is that of Guo and others (*On calibration of
modern neural networks*, 2017), (lo, hi], written as clamp(ceil(B c) - 1, 0, B - 1) so that a confidence of exactly 0 has a bin too.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch

BINS = 15
SCOPES = ("foreground", "all")
FLOOR = 1e-12
"""Smallest probability of the true class that enters a logarithm, where probabilities are given: below it NLL would be infinite."""
ROUNDING = 0.01
"""How far from one the probabilities of a pixel may sum: half precision and 8-bit maps round, other sums are a mistake."""


EMPTY = (
    "No pixel is in the scope: no image has a counted pixel there (in the scope 'foreground', one whose truth is not class 0). "
    "Bring an image with foreground, or take the scope 'all'."
)
"""What a figure of nothing answers."""


@dataclass(frozen=True, eq=False)
class Pixels:
    """The counted pixels of an image.

    Attributes:
        probability: `(K, P)` float64 in [0, 1].
        target: `(P,)` int64, the true class.
        predicted: `(P,)` int64, the class of the largest value; the first of equals.
        log_likelihood: `(P,)` float64, log p of the true class.
        floored: `(P,)` bool, where p of the true class was raised to `FLOOR` for the logarithm.
    """

    probability: np.ndarray
    target: np.ndarray
    predicted: np.ndarray
    log_likelihood: np.ndarray
    floored: np.ndarray

    def within(self, scope: str) -> Pixels:
        """Those of a scope: "foreground" keeps pixels whose truth is not class 0, as the paper counts; "all" keeps every one.

        Raises:
            ValueError: Another word.
        """
        if scope not in SCOPES:
            raise ValueError(f"The scope is {scope!r}; choose 'foreground' (truth other than 0) or 'all'.")
        if scope == "all":
            return self
        k = np.flatnonzero(self.target)
        return Pixels(
            np.take(self.probability, k, axis=1),
            self.target[k],
            self.predicted[k],
            self.log_likelihood[k],
            self.floored[k],
        )


def bin_of(confidence: np.ndarray, bins: int = BINS) -> np.ndarray:
    """Index of the bin (lo, hi] that holds a confidence, in 0 .. bins - 1; 0 itself falls in the first.

    Args:
        confidence: Any shape, in [0, 1].
        bins: Number of equal bins, 1 or more.
    """
    index = np.ceil(np.asarray(confidence) * bins).astype(np.int64)
    index -= 1
    return np.clip(index, 0, bins - 1, out=index)


def read_pixels(values: Any, target: Any, ignore: Any = None, of: str = "logits") -> Pixels:
    """Check one image and turn it into pixels.

    Args:
        values: `(K, *)` logits or probabilities, array or tensor of any floating type.
        target: `(*)` labels 0 .. K-1; pixels under `ignore` may hold anything.
        ignore: `(*)` bool, True leaves a pixel out; None counts all.
        of: What the values are: "logits" or "probabilities". Never guessed.

    Returns:
        Pixels of the image in reading order, without the ignored ones; there may be none.

    Raises:
        ValueError: Shapes do not fit, a label is outside the classes, values are not finite, or probabilities lie outside [0, 1] or do not
            sum to one. The sentence names the first such pixel.
    """
    x, y, where = flat(values, target, ignore)
    shape = np.shape(target)
    if of not in ("logits", "probabilities"):
        raise ValueError(f"Values are 'logits' or 'probabilities', not {of!r}.")
    bad = np.flatnonzero(~np.isfinite(x).all(0))
    if len(bad):
        raise ValueError(
            f"The {of} hold NaN or infinity at {_count(bad)}, the first at pixel {_place(where[bad[0]], shape)}. "
            "Find out what made them, or leave these pixels out with `ignore`."
        )
    pixel = np.arange(x.shape[1])
    if of == "logits":
        top = x.max(0) if x.size else np.zeros(0)
        p = np.exp(x - top)
        total = p.sum(0)
        p /= total
        likelihood = x[y, pixel] - top - np.log(total)
        floored = np.zeros(len(y), bool)
    else:
        _check_probabilities(x, where, shape)
        p = np.clip(x, 0.0, 1.0)
        of_truth = p[y, pixel]
        floored = of_truth < FLOOR
        likelihood = np.log(np.maximum(of_truth, FLOOR))
    return Pixels(p, y, _largest(x), likelihood, floored)


def flat(values: Any, target: Any, ignore: Any = None) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Flatten one image, `(K, *)` and `(*)`, without ignored pixels, and check shapes and labels.

    Returns:
        Values `(K, P)` float64, labels `(P,)` int64, and `(P,)` where each pixel lies in the flattened image.

    Raises:
        ValueError: As in `read_pixels`, except for what concerns the values themselves.
    """
    x, y = as_array(values), as_array(target)
    one = " Give one image at a time, without a batch axis." if x.ndim == y.ndim + 2 else ""
    if x.ndim < 2 or x.shape[0] < 2:
        raise ValueError(
            f"An image needs K >= 2 values a pixel, shape (K, *); this has {x.shape}."
            + (one or " One map p of the foreground becomes two: stack (1 - p, p).")
        )
    if y.shape != x.shape[1:]:
        raise ValueError(f"Values {x.shape} need labels of shape {x.shape[1:]}; these are {y.shape}.{one}")
    k = x.shape[0]
    x, y = x.reshape(k, -1), y.reshape(-1)
    where = np.arange(y.size)
    if ignore is not None:
        out = as_array(ignore)
        if out.dtype != bool or out.shape != np.shape(values)[1:]:
            raise ValueError(
                f"The ignore mask must be bool of shape {np.shape(values)[1:]}; it is {out.dtype} of {out.shape}."
            )
        where = np.flatnonzero(~out.reshape(-1))
        x, y = np.take(x, where, axis=1), y[where]
    labels = y.astype(np.int64) if not np.issubdtype(y.dtype, np.floating) else _whole(y)
    wrong = np.flatnonzero((labels < 0) | (labels >= k))
    if len(wrong):
        raise ValueError(
            f"Label {labels[wrong[0]]} at pixel {_place(where[wrong[0]], np.shape(target))} is outside the {k} classes "
            f"(0 to {k - 1}), as at {_count(wrong)} in all. Map the labels, or leave these pixels out with `ignore`."
        )
    return x.astype(np.float64, copy=False), labels, where


def choose_classes(k: int, classes: Sequence[int] | None, background: bool) -> list[int]:
    """A fixed set of classes: those given, or all K; without class 0 where `background` is False. ValueError when there is no such class."""
    chosen = [c for c in (range(k) if classes is None else classes) if background or c != 0]
    if not chosen or any(not 0 <= c < k for c in chosen):
        raise ValueError(f"Classes {list(chosen)} must be some of 0 to {k - 1}.")
    return chosen


def as_array(values: Any) -> np.ndarray:
    """An array of what may be a tensor on any device and of any type."""
    if isinstance(values, torch.Tensor):
        values = values.detach().cpu()
        return (values.float() if values.dtype == torch.bfloat16 else values).numpy()
    return np.asarray(values)


def _largest(values: np.ndarray) -> np.ndarray:
    """The first of the largest along axis 0; `argmax` is slow along the far axis of so flat an array."""
    best, index = values[0].copy(), np.zeros(values.shape[1], np.int64)
    for k in range(1, len(values)):
        index[values[k] > best] = k
        np.maximum(best, values[k], out=best)
    return index


def _whole(labels: np.ndarray) -> np.ndarray:
    if not bool((labels == np.rint(labels)).all()):
        raise ValueError("Labels are class numbers, so they must be whole; these hold fractions or NaN.")
    return labels.astype(np.int64)


def _check_probabilities(p: np.ndarray, where: np.ndarray, shape: tuple[int, ...]) -> None:
    outside = np.flatnonzero((p < -1e-6).any(0) | (p > 1 + 1e-6).any(0))
    if len(outside):
        first = outside[0]
        raise ValueError(
            f"Probabilities lie in [0, 1]; pixel {_place(where[first], shape)} has {_numbers(p[:, first])}. "
            "If these are logits, say so: of='logits'."
        )
    total = p.sum(0)
    off = np.flatnonzero(np.abs(total - 1) > ROUNDING)
    if len(off):
        first = off[0]
        raise ValueError(
            f"The probabilities of a pixel must sum to 1; at pixel {_place(where[first], shape)} they sum to "
            f"{total[first]:.4g}, and {_count(off)} in all are off by more than {ROUNDING}. Bring softmax outputs, the "
            "logits with of='logits', or for one foreground map the pair (1 - p, p)."
        )


def _place(index: int, shape: tuple[int, ...]) -> str:
    return "(" + ", ".join(str(int(i)) for i in np.unravel_index(index, shape)) + ")"


def _count(found: np.ndarray) -> str:
    return "1 pixel" if len(found) == 1 else f"{len(found)} pixels"


def _numbers(values: np.ndarray) -> str:
    shown = ", ".join(f"{v:.4g}" for v in values[:4])
    return f"({shown}{', …' if len(values) > 4 else ''})"
