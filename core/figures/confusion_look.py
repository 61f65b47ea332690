"""What the charts of the confusion page share: methods' words and looks, checks of matrices, names that fit, and the colours of cells.

No chart is drawn here. Methods go by the keys of `core.lab.tail_methods.METHODS`, maybe with changed settings behind an `@`; any other words are
allowed and look like a classifier of one's own. Matrices have rows predicted, columns true, and classes from head to tail.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np

from core.figures.frame import listed, percent
from core.figures.palette import ABLATION_SHAPES, TAIL_COLOURS, TAIL_DASHES, TAIL_SHAPES

TAIL_TITLES = {
    "ce": "CE",
    "balanced": "class-balanced",
    "focal": "focal",
    "ldam": "LDAM-DRW",
    "adjusted": "logit adjustment",
    "car-paper": "CAR (paper)",
    "car-count": "CAR (count EMA)",
    "car-present": "CAR (present-only EMA)",
    "car-naive-max": "CAR (naive EMA, max frequencies)",
    "car-count-sum": "CAR (count EMA, sum frequencies)",
    "car-no-weights": "CAR without Λ",
    "car-no-ema": "CAR without EMA",
    "car-gate": "CAR, gate with gradient",
    "ce-cutmix": "CE + CutMix",
    "car-cutmix": "CAR (count EMA) + CutMix",
    "car-adjusted": "CAR (count EMA) + logit adjustment",
    "own": "your classifier",
}
"""Words of each method on the screen."""

NUMBERED = 12
"""Up to so many classes a matrix has numbers in its cells."""

NAMED = 24
"""Up to so many classes have names; beyond, axes are ranks from head to tail."""

DARK = "#16191D"
"""Ink on cells: their colours are light on every page, so their ink is dark on every page."""

WORST = "#D55E00"
"""Edge of what is worst, and errors."""

_ERRORS = ("#F8F7F3", "#FBE3CC", "#F6C093", "#EE9B58", "#E0762B")
_RIGHT = ("#EEF5FA", "#D2E6F2", "#AED3E8", "#86BEDC")
_APART = ("#4FA3D9", "#A9D0EA", "#F4F4F0", "#F6C093", "#E8883C")


def scale(colours: Sequence[str], power: float = 1.0) -> list[list[Any]]:
    """A colour scale in even steps of a share's root; power 2 spreads small shares, 1 is plain."""
    last = len(colours) - 1
    return [[round((k / last) ** power, 5), c] for k, c in enumerate(colours)]


ERRORS = scale(_ERRORS)
"""From no error to the largest one."""

ERRORS_ROOT = scale(_ERRORS, 2.0)
"""The same in steps of the root, for many classes with small shares each."""

RIGHT = scale(_RIGHT)
"""The diagonal, from recall 0 to 1."""

APART = scale(_APART)
"""Differences: blue where the second is better, orange where it is worse."""


def head_to_tail(counts: Sequence[int] | np.ndarray) -> np.ndarray:
    """Order of classes from the most to the least frequent, `(K,)` indices; ties keep their order.

    Args:
        counts: `(K,)` training images of each class.
    """
    return np.argsort(-np.asarray(counts, float), kind="stable")


def reordered(matrices: np.ndarray, order: np.ndarray) -> np.ndarray:
    """Matrices `(..., K, K)` with rows and columns in another order, e.g. that of `head_to_tail`."""
    return np.asarray(matrices)[..., order[:, None], order[None, :]]


def title_of(method: str, titles: Mapping[str, str] | None = None) -> str:
    """A method in words: those given, those of `TAIL_TITLES`, with changed settings behind a comma, or the key itself."""
    if titles and method in titles:
        return titles[method]
    base, _, changes = method.partition("@")
    if base not in TAIL_TITLES:
        return method
    return TAIL_TITLES[base] + (f", {changes.replace('=', ' ').replace(',', ', ')}" if changes else "")


def kin_of(method: str) -> str:
    """The key of `palette.TAIL_COLOURS` whose look a method has."""
    base = method.partition("@")[0]
    if base in TAIL_COLOURS:
        return base
    if base.startswith("car-"):
        return "car-count"
    return "ce" if base.startswith("ce") else "own"


def colour_of(method: str) -> str:
    """A method's colour."""
    return TAIL_COLOURS[kin_of(method)]


def pattern_of(method: str) -> list[int]:
    """A method's dash in pixels: its own, `[1, 0]` (solid) for a classifier of one's own, short dashes for ablations."""
    return TAIL_DASHES.get(method, [1, 0] if kin_of(method) == "own" else [3, 3])


def line_of_method(method: str, width: float = 2.5) -> dict[str, Any]:
    """Colour, dash and width of a method's line in Plotly."""
    pattern = pattern_of(method)
    dash = "solid" if pattern == [1, 0] else ",".join(f"{p}px" for p in pattern)
    return {"color": colour_of(method), "dash": dash, "width": width}


def marker_of_method(method: str, size: float = 12) -> dict[str, Any]:
    """Colour, shape and size of a method's marker in Plotly; open for an ablation or changed settings."""
    shape = ABLATION_SHAPES.get(method, TAIL_SHAPES[kin_of(method)])
    is_open = method not in TAIL_COLOURS and kin_of(method) != "own"
    edge = {"width": 2, "color": colour_of(method)} if is_open else {"width": 0}
    return {
        "color": colour_of(method),
        "symbol": shape + ("-open" if is_open else ""),
        "size": size,
        "line": edge,
    }


def checked_methods(methods: Iterable[str], most: int, thing: str) -> list[str]:
    """Methods as a list.

    Args:
        methods: Keys or words.
        most: So many at most.
        thing: What needs them, for the message.

    Raises:
        ValueError: None at all, or too many.
    """
    names = list(methods)
    if not 1 <= len(names) <= most:
        raise ValueError(f"{thing} takes 1 to {most} methods, not {len(names)}.")
    return names


def checked_matrix(matrix: Any, classes: Sequence[str]) -> np.ndarray:
    """A confusion matrix `(K, K)` in float64, with as many names.

    Raises:
        ValueError: Not square, negative, not numbers, or another number of names.
    """
    counted = np.asarray(matrix, np.float64)
    if counted.ndim != 2 or len(set(counted.shape)) != 1:
        raise ValueError(f"A confusion matrix is square; the one to draw has the shape {counted.shape}.")
    if not np.isfinite(counted).all() or (counted < 0).any():
        raise ValueError(
            "A confusion matrix holds counts that are not below 0; the one to draw has other entries."
        )
    if len(classes) != len(counted):
        raise ValueError(f"The matrix has {len(counted)} classes, and there are {len(classes)} names.")
    return counted


def shares_of(matrix: np.ndarray) -> np.ndarray:
    """Each column divided by its sum, `(K, K)`, diagonal included; NaN in the column of a class without a sample."""
    counted = np.asarray(matrix, np.float64)
    total = counted.sum(0)
    return np.divide(counted, total, out=np.full_like(counted, np.nan), where=total > 0)


def recall_of(given: Any, classes: Sequence[str]) -> np.ndarray:
    """Recalls `(K,)` of a matrix, or the recalls themselves.

    Raises:
        ValueError: Neither of the two, a share outside [0, 1], or another number of names.
    """
    array = np.asarray(given, np.float64)
    if array.ndim == 2:
        return np.diag(shares_of(checked_matrix(array, classes))).copy()
    if array.shape != (len(classes),):
        raise ValueError(f"There are {len(classes)} names and recalls of shape {array.shape}.")
    if not ((array >= 0) & (array <= 1 + 1e-9) | np.isnan(array)).all():
        raise ValueError("A recall is a share from 0 to 1, or NaN for a class without a sample.")
    return array


def short(name: str, most: int = 15) -> str:
    """A class's name that fits beside a row."""
    return name if len(name) <= most else f"{name[: most - 1].rstrip(' ,(')}…"


def in_cell(share: float) -> str:
    """A share in percent that fits a cell: nothing for none, `<1` for a little."""
    if math.isnan(share) or share <= 0:
        return ""
    return "<1" if share < 0.005 else f"{100 * share:.0f}"


def stream(share: float, true: str, called: str) -> str:
    """A stream of errors in words."""
    return f"{percent(share)} of {true} samples are called {called}"


def without_samples(recall: np.ndarray, classes: Sequence[str]) -> str:
    """A sentence that names the classes without a sample; empty where all have one."""
    gone = [classes[int(k)] for k in np.flatnonzero(np.isnan(recall))]
    if not gone:
        return ""
    named = listed(gone) if len(gone) <= 3 else f"{len(gone)} classes"
    return (
        f" {named[0].upper()}{named[1:]} {'has' if len(gone) == 1 else 'have'} no sample and cannot be worst."
    )


def rank_axis(classes: Sequence[str]) -> dict[str, Any]:
    """Ticks of an axis of classes: names, or ranks where there are many."""
    k = len(classes)
    if k <= NAMED:
        return {"tickvals": list(range(k)), "ticktext": [short(c) for c in classes]}
    step = max(1, round(k / 4 / 10) * 10)
    at = [0, *range(step - 1, k, step)]
    return {"tickvals": [i + 1 for i in at], "ticktext": [f"{i + 1}" for i in at]}
