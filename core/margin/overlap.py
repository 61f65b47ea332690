"""Overlap and surface distance of label maps, class by class: Dice, HD95 and ASD, through MONAI.

What it is not: a measure of probabilities. What is measured where a mask is empty, for one class in one image:

| prediction | truth | Dice | HD95 and ASD |
|---|---|---|---|
| empty | empty | NaN, counted in `both_empty` | 0, counted in `both_empty` |
| empty | not empty | 0, counted in `missed` | NaN, counted in `missed` |
| not empty | empty | 0, counted in `invented` | NaN, counted in `invented` |

So a miss or an invented object costs Dice and is never the best distance. HD95 is the larger of the two directed 95th percentiles of surface
distances; ASD is the mean over both surfaces. Distances are in pixels unless a spacing is given.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch

from core.margin.pixels import as_array


@dataclass(frozen=True, eq=False)
class Overlap:
    """Figures of one image, C classes.

    Attributes:
        classes: The classes measured.
        dice: `(C,)` in [0, 1]; NaN where both masks are empty.
        hd95: `(C,)` in units of the spacing; NaN where exactly one mask is empty, 0 where both are.
        asd: `(C,)` the same for the average surface distance.
        both_empty: `(C,)` bool.
        missed: `(C,)` bool, the truth has the class and the prediction does not.
        invented: `(C,)` bool, the prediction has the class and the truth does not.
    """

    classes: tuple[int, ...]
    dice: np.ndarray
    hd95: np.ndarray
    asd: np.ndarray
    both_empty: np.ndarray
    missed: np.ndarray
    invented: np.ndarray


@dataclass(frozen=True, eq=False)
class OverlapSummary:
    """Means over images, C classes. NaN where no image has a value.

    Attributes:
        classes: The classes measured.
        images: Images in all.
        dice: `(C,)` mean over the images that have a Dice.
        hd95: `(C,)` mean over the images that have a distance (those where both masks are empty have 0).
        asd: `(C,)` the same for the average surface distance.
        both_empty: `(C,)` images in which both masks are empty.
        missed: `(C,)` images in which only the prediction is empty.
        invented: `(C,)` images in which only the truth is empty.
    """

    classes: tuple[int, ...]
    images: int
    dice: np.ndarray
    hd95: np.ndarray
    asd: np.ndarray
    both_empty: np.ndarray
    missed: np.ndarray
    invented: np.ndarray

    @property
    def mean_dice(self) -> float:
        """Plain mean over the classes that have a value; NaN when none has."""
        return float(_mean(self.dice[None])[0])

    @property
    def mean_hd95(self) -> float:
        """Plain mean over the classes that have a value; NaN when none has."""
        return float(_mean(self.hd95[None])[0])


def overlap(
    prediction: Any,
    target: Any,
    classes: int | Sequence[int],
    spacing: Sequence[float] | None = None,
    ignore: Any = None,
) -> Overlap:
    """Measure one image.

    Args:
        prediction: `(*)` labels, two- or three-dimensional.
        target: `(*)` labels.
        classes: K for classes 1 .. K-1 (labels must then be 0 .. K-1), or the classes to measure.
        spacing: Size of a pixel along each axis, in the unit the distances shall have; None gives pixels.
        ignore: `(*)` bool; such pixels belong to no mask.

    Raises:
        ValueError: Shapes or the spacing do not fit, labels are not whole, or a label is outside the classes.
    """
    a, b, chosen = _masks(prediction, target, classes, ignore)
    has_a, has_b = a.flatten(1).any(1).numpy(), b.flatten(1).any(1).numpy()
    hd95 = _surface("hd95", a, b, has_a, has_b, spacing)
    asd = _surface("asd", a, b, has_a, has_b, spacing)
    return Overlap(chosen, _dice(a, b), hd95, asd, ~has_a & ~has_b, ~has_a & has_b, has_a & ~has_b)


def dice(prediction: Any, target: Any, classes: int | Sequence[int], ignore: Any = None) -> np.ndarray:
    """Dice of each class, `(C,)`; NaN where both masks are empty, 0 where one is. Arguments and errors as in `overlap`."""
    a, b, _ = _masks(prediction, target, classes, ignore)
    return _dice(a, b)


def hd95(
    prediction: Any,
    target: Any,
    classes: int | Sequence[int],
    spacing: Sequence[float] | None = None,
    ignore: Any = None,
) -> np.ndarray:
    """95th percentile Hausdorff distance of each class, `(C,)`; NaN where exactly one mask is empty, 0 where both are. As `overlap`."""
    a, b, _ = _masks(prediction, target, classes, ignore)
    return _surface("hd95", a, b, a.flatten(1).any(1).numpy(), b.flatten(1).any(1).numpy(), spacing)


def asd(
    prediction: Any,
    target: Any,
    classes: int | Sequence[int],
    spacing: Sequence[float] | None = None,
    ignore: Any = None,
) -> np.ndarray:
    """Average symmetric surface distance of each class, `(C,)`; NaN where exactly one mask is empty, 0 where both are. As `overlap`."""
    a, b, _ = _masks(prediction, target, classes, ignore)
    return _surface("asd", a, b, a.flatten(1).any(1).numpy(), b.flatten(1).any(1).numpy(), spacing)


def summarise(images: Sequence[Overlap]) -> OverlapSummary:
    """Means over images with the counts of what was left out.

    Raises:
        ValueError: No image, or images measured on different classes.
    """
    if not images or any(i.classes != images[0].classes for i in images):
        raise ValueError("Means need at least one image, and all images measured on the same classes.")
    return OverlapSummary(
        classes=images[0].classes,
        images=len(images),
        **{n: _mean(np.stack([getattr(i, n) for i in images], 1)) for n in ("dice", "hd95", "asd")},
        **{n: np.sum([getattr(i, n) for i in images], axis=0) for n in ("both_empty", "missed", "invented")},
    )


def _mean(values: np.ndarray) -> np.ndarray:
    """Mean along axis 1 of what is not NaN; NaN where nothing is."""
    there = ~np.isnan(values)
    n = there.sum(1)
    total = np.where(there, values, 0.0).sum(1)
    return np.divide(total, n, out=np.full(len(n), np.nan), where=n > 0)


def _masks(
    prediction: Any, target: Any, classes: int | Sequence[int], ignore: Any
) -> tuple[torch.Tensor, torch.Tensor, tuple[int, ...]]:
    """One mask a class of both maps, `(C, *)` bool."""
    a, b = as_array(prediction), as_array(target)
    if a.shape != b.shape or a.ndim not in (2, 3) or a.size == 0:
        raise ValueError(
            f"Prediction {a.shape} and truth {b.shape} must have one shape, (H, W) or (D, H, W), and hold a pixel."
        )
    for name, labels in (("prediction", a), ("truth", b)):
        if np.issubdtype(labels.dtype, np.floating) and not bool((labels == np.rint(labels)).all()):
            raise ValueError(
                f"The {name} must hold class numbers; these are fractions or NaN. Take the class of the largest logit first."
            )
    counted = np.ones(a.shape, bool)
    if ignore is not None:
        out = as_array(ignore)
        if out.dtype != bool or out.shape != a.shape:
            raise ValueError(
                f"The ignore mask must be bool of shape {a.shape}; it is {out.dtype} of {out.shape}."
            )
        counted = ~out
    if isinstance(classes, int | np.integer):
        chosen = tuple(range(1, int(classes)))
        for name, labels in (("prediction", a), ("truth", b)):
            wrong = np.argwhere(counted & ((labels < 0) | (labels >= classes)))
            if len(wrong):
                raise ValueError(
                    f"Label {labels[tuple(wrong[0])]} of the {name} at pixel {tuple(wrong[0].tolist())} is outside the {classes} classes "
                    f"(0 to {classes - 1}). Map the labels, or leave these pixels out with `ignore`."
                )
    else:
        chosen = tuple(int(c) for c in classes)
    if not chosen:
        raise ValueError("There is no class to measure: class 0 is background and does not count.")
    of_class = np.array(chosen).reshape(-1, *[1] * a.ndim)
    return torch.from_numpy((a == of_class) & counted), torch.from_numpy((b == of_class) & counted), chosen


def _dice(a: torch.Tensor, b: torch.Tensor) -> np.ndarray:
    from monai.metrics.meandice import compute_dice

    pair = compute_dice(a[None].float(), b[None].float(), include_background=True, ignore_empty=False)
    values = pair[0].double().numpy().copy()
    values[~(a.flatten(1).any(1) | b.flatten(1).any(1)).numpy()] = np.nan
    return values


def _surface(
    what: str,
    a: torch.Tensor,
    b: torch.Tensor,
    has_a: np.ndarray,
    has_b: np.ndarray,
    spacing: Sequence[float] | None,
) -> np.ndarray:
    if spacing is not None and (len(spacing) != a.ndim - 1 or not all(s > 0 for s in spacing)):
        raise ValueError(
            f"The spacing needs {a.ndim - 1} lengths above 0, one for each axis; it is {tuple(spacing)}."
        )
    values = np.where(has_a == has_b, 0.0, np.nan)
    both = np.flatnonzero(has_a & has_b)
    if not len(both):
        return values
    from monai.metrics import compute_average_surface_distance, compute_hausdorff_distance

    pair = dict(include_background=True, spacing=None if spacing is None else list(spacing))
    one, other = a[both][None].float(), b[both][None].float()
    if what == "hd95":
        found = compute_hausdorff_distance(one, other, percentile=95.0, **pair)
    else:
        found = compute_average_surface_distance(one, other, symmetric=True, **pair)
    values[both] = found[0].double().numpy()
    return values
