"""What each loss puts on the logit distances of one pixel: valleys, slopes, the way down, and where the way ends.

What it is not: a loss. Every value and slope here comes from the functions of `core.margin.losses`, asked about pixels one by one, so that a page
draws what trains. The penalty of a loss is what it adds to cross-entropy. Fixed points: on a pixel with free logits, CE + w mean_k max(0, d_k - m)
is smallest where all non-true logits lie d* = max(m, log(K/w - (K - 1))) below the true one (K classes, METHODS 2.2); label smoothing is the
case m = 0. The margin loss: Liu and others, CVPR 2022, equation 10.

A soft Dice term belongs to no single pixel and is left out. Spatially varying label smoothing equals cross-entropy inside an area; `border=True`
looks at a pixel on a straight border with another class instead (class 1, or 0 where 1 is the truth), which changes that loss only.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

import numpy as np
import torch

from core.margin.losses import cross_entropy, loss_of
from core.settings.margin import MarginSettings


@dataclass(frozen=True, eq=False)
class Landscape:
    """A loss, or its penalty, over two logit distances of a pixel of three classes whose truth is class 0.

    Attributes:
        d1: `(G1,)` distances l_0 - l_1, in logits; below 0 the pixel is wrong.
        d2: `(G2,)` distances l_0 - l_2.
        values: `(G1, G2)`; `values[i, j]` belongs to d1[i] and d2[j].
        gradient: `(2, G1, G2)` slopes with respect to d1 and d2. Descent moves against them.
    """

    d1: np.ndarray
    d2: np.ndarray
    values: np.ndarray
    gradient: np.ndarray


@dataclass(frozen=True, eq=False)
class Profile:
    """A loss, or its penalty, along one logit distance.

    Attributes:
        distances: `(D,)` l_y - l_k, in logits.
        values: `(D,)`.
        slopes: `(D,)` derivative with respect to the distance.
    """

    distances: np.ndarray
    values: np.ndarray
    slopes: np.ndarray


@dataclass(frozen=True, eq=False)
class Path:
    """Where gradient descent takes the logits of one pixel. S steps, K classes.

    Attributes:
        logits: `(S + 1, K)`, the start first.
        confidence: `(S + 1,)` probability of the true class.
        distances: `(S + 1, K)` l_y - l_k; 0 for the true class itself.
    """

    logits: np.ndarray
    confidence: np.ndarray
    distances: np.ndarray


@dataclass(frozen=True)
class FixedPoint:
    """Where a loss is smallest for one pixel with free logits.

    Attributes:
        distance: d*, how far all non-true logits lie below the true one, in logits.
        confidence: Probability of the true class there, 1/(1 + (K - 1) e^-d*).
    """

    distance: float
    confidence: float


def landscape(
    settings: MarginSettings,
    d1: Sequence[float] | np.ndarray,
    d2: Sequence[float] | np.ndarray,
    penalty_only: bool = True,
    border: bool = False,
) -> Landscape:
    """A loss over two logit distances: logits (0, -d1, -d2), truth 0. For two classes, see `profile`.

    Args:
        settings: Which loss, and its numbers.
        d1: `(G1,)` distances to class 1, in logits.
        d2: `(G2,)` distances to class 2.
        penalty_only: True for loss minus cross-entropy, False for the whole loss.
        border: See the module.

    Raises:
        ValueError: A setting is out of range, or a distance is not finite.
    """
    a, b = np.asarray(d1, np.float64).reshape(-1), np.asarray(d2, np.float64).reshape(-1)
    one, two = np.meshgrid(a, b, indexing="ij")
    logits = torch.from_numpy(np.stack([np.zeros(one.size), -one.ravel(), -two.ravel()], 1))
    values, slopes = _each(settings, logits, 0, penalty_only, border)
    gradient = -slopes[:, 1:].T.reshape(2, *one.shape)
    return Landscape(a, b, values.reshape(one.shape), gradient)


def profile(
    settings: MarginSettings,
    distances: Sequence[float] | np.ndarray,
    classes: int = 3,
    rest: float | None = None,
    penalty_only: bool = True,
    border: bool = False,
) -> Profile:
    """A loss along one logit distance, truth 0.

    Args:
        settings: Which loss, and its numbers.
        distances: `(D,)` in logits.
        classes: K, 2 or more.
        rest: None puts all non-true logits at the distance; a number leaves all but class 1 at that distance.
        penalty_only: True for loss minus cross-entropy.
        border: See the module.

    Raises:
        ValueError: Fewer than two classes, a setting out of range, or a distance that is not finite.
    """
    d = np.asarray(distances, np.float64).reshape(-1)
    _check_classes(classes)
    logits = np.zeros((len(d), classes))
    logits[:, 1:] = -d[:, None]
    if rest is not None:
        logits[:, 2:] = -rest
    values, slopes = _each(settings, torch.from_numpy(logits), 0, penalty_only, border)
    moving = slopes[:, 1:] if rest is None else slopes[:, 1:2]
    return Profile(d, values, -moving.sum(1))


def path(
    settings: MarginSettings,
    start: Sequence[float] | np.ndarray,
    truth: int = 0,
    steps: int = 200,
    rate: float = 1.0,
    border: bool = False,
) -> Path:
    """Gradient descent on the free logits of one pixel. The loss shifts with nothing, so the mean of the logits stays.

    Args:
        settings: Which loss, and its numbers.
        start: `(K,)` logits.
        truth: True class.
        steps: Steps S, 0 or more.
        rate: Step size.
        border: See the module.

    Raises:
        ValueError: The truth is not among the classes, logits are not finite, or a setting is out of range.
    """
    x = torch.tensor(np.asarray(start, np.float64)).reshape(1, -1)
    ask, y, count = _asked(replace(settings, dice=0.0), x, truth, border)
    loss, way = loss_of(replace(settings, dice=0.0)), [x]
    for _ in range(steps):
        leaf = x.requires_grad_()
        (slope,) = torch.autograd.grad(loss(ask(leaf), y), leaf)
        x = x.detach() - rate * count * slope
        way.append(x)
    logits = torch.cat(way).detach().numpy()
    distances = logits[:, truth : truth + 1] - logits
    return Path(logits, 1 / np.exp(-distances).sum(1), distances)


def fixed_point(margin: float, weight: float, classes: int) -> FixedPoint | None:
    """Where CE + w mean_k max(0, d_k - m) is smallest: d* = max(m, log(K/w - (K - 1))).

    Args:
        margin: m in logits, 0 or more.
        weight: w, 0 or more.
        classes: K, 2 or more.

    Returns:
        None for w = 0, cross-entropy alone: the distance grows without end.

    Raises:
        ValueError: Fewer than two classes.
    """
    _check_classes(classes)
    if weight <= 0:
        return None
    odds = classes / weight - (classes - 1)
    return _point(max(float(margin), math.log(odds) if odds > 1 else 0.0), classes)


def fixed_point_of(settings: MarginSettings, classes: int) -> FixedPoint | None:
    """Where the loss of these settings is smallest for one pixel inside an area.

    Returns:
        None for CE, SVLS and focal loss, whose minimum lies at infinite distance, and for a weight of 0. For the entropy penalty with effective
        weight a (a/K where the entropy is a mean over classes) the d with d / (1 + (K - 1) e^-d) = 1/a.

    Raises:
        ValueError: Fewer than two classes.
    """
    _check_classes(classes)
    s, k = settings, classes
    if s.loss == "LS":
        return fixed_point(0.0, s.smoothing, k)
    if s.loss == "margin" and s.hinge == "linear":
        return fixed_point(s.margin, s.weight, k)
    if s.loss == "margin" and s.weight > 0:
        # slope in d: -(1 - p) + w (K - 1)/K * 2 max(0, d - m)
        pull = s.weight * (k - 1) / k * 2
        high = s.margin + 1 / pull
        return _point(_root(lambda d: pull * max(0.0, d - s.margin) - (1 - _confidence(d, k)), 0.0, high), k)
    if s.loss == "ECP" and s.entropy_weight > 0:
        a = s.entropy_weight / (k if s.entropy_over == "mean" else 1)
        # slope in d: (1 - p)(a d p - 1)
        return _point(_root(lambda d: a * d * _confidence(d, k) - 1, 0.0, k / a), k)
    return None


def _each(
    settings: MarginSettings, logits: torch.Tensor, truth: int, penalty_only: bool, border: bool
) -> tuple[np.ndarray, np.ndarray]:
    """Value `(P,)` and slope `(P, K)` of each pixel's own loss, from logits `(P, K)` float64."""
    settings = replace(settings, dice=0.0)
    loss = loss_of(settings)
    x = logits.clone().requires_grad_()
    ask, y, count = _asked(settings, x, truth, border)
    whole = (lambda z, t: loss(z, t) - cross_entropy(z, t)) if penalty_only else loss
    # pixels do not touch one another: the slope of the mean, times their number, is each pixel's own
    (slopes,) = torch.autograd.grad(whole(ask(x), y), x)
    # around a border pixel lie eight with logits 0, each worth log K whatever its label; a penalty has none of that
    around = (count - 1) * (0.0 if penalty_only else math.log(x.shape[1]))
    with torch.no_grad():
        z = ask(x)
        values = [float(whole(z[i : i + 1], y[i : i + 1])) * count - around for i in range(len(z))]
    return np.array(values), (slopes * (count * len(x))).numpy()


def _asked(
    settings: MarginSettings, logits: torch.Tensor, truth: int, border: bool
) -> tuple[Callable[[torch.Tensor], torch.Tensor], torch.Tensor, int]:
    """How pixels `(P, K)` become images, their labels, and how many pixels one image has."""
    p, k = logits.shape
    if not bool(torch.isfinite(logits).all()):
        raise ValueError("Logits and distances must be finite numbers.")
    if not 0 <= truth < k:
        raise ValueError(f"The truth is class {truth}; it must be one of 0 to {k - 1}.")
    if not (border and settings.loss == "SVLS"):
        return lambda x: x[..., None, None], torch.full((p, 1, 1), truth), 1
    y = torch.full((p, 3, 3), truth)
    y[..., 2] = 1 if truth != 1 else 0
    return lambda x: torch.nn.functional.pad(x[..., None, None], (1, 1, 1, 1)), y, 9


def _check_classes(classes: int) -> None:
    if classes < 2:
        raise ValueError(f"A pixel needs at least two classes, not {classes}.")


def _confidence(distance: float, classes: int) -> float:
    return 1 / (1 + (classes - 1) * math.exp(-distance))


def _point(distance: float, classes: int) -> FixedPoint:
    return FixedPoint(distance, _confidence(distance, classes))


def _root(rising: Callable[[float], float], low: float, high: float) -> float:
    """Where a function that is below 0 before and above 0 after crosses 0."""
    for _ in range(200):
        middle = (low + high) / 2
        if middle in (low, high):
            break
        if rising(middle) < 0:
            low = middle
        else:
            high = middle
    return high
