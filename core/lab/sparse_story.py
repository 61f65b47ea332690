"""Training of recorded sparse coding networks as arrays: λ of every layer, its phases, and the plane of sparsity against reconstruction."""

from __future__ import annotations

import itertools
from dataclasses import dataclass

import numpy as np

from core.lab.sparse_names import key_of, layer_words, title_of
from core.lab.sparse_record import SparseRecord

REST = 0.05
"""λ is said to rest where its logarithm, averaged over the layers, stays this close to its end: within 5 per cent."""


@dataclass(frozen=True)
class Phase:
    """A stretch of training in which λ does one thing.

    Attributes:
        start: First step.
        end: Last step.
        words: "rises", "falls" or "rests".
    """

    start: int
    end: int
    words: str


@dataclass(frozen=True, eq=False)
class Story:
    """Training of one network. T records of λ, E epochs, L sparse layers in order of depth.

    Attributes:
        key: The run.
        title: What the screen calls it.
        names: L names of the layers in words.
        steps: `(T,)` steps of SGD at which λ was recorded, the last one after training.
        epochs: E.
        per_epoch: Steps of an epoch.
        threshold: `(T, L)` λ.
        phases: What the layers' mean log λ does, at most three stretches, from `steps[0]` to `steps[-1]`.
        sparsity: `(E, L)` share of zero codes after each epoch, on 200 training images.
        error: `(E, L)` relative reconstruction error R.
        size: `(E, L)` mean absolute code.
        loss: `(E,)` training loss.
        accuracy: `(E,)` accuracy on the augmented training images of the epoch.
        test_accuracy: Accuracy on clean test images at the end; NaN where it was not measured.
    """

    key: str
    title: str
    names: tuple[str, ...]
    steps: np.ndarray
    epochs: int
    per_epoch: int
    threshold: np.ndarray
    phases: tuple[Phase, ...]
    sparsity: np.ndarray
    error: np.ndarray
    size: np.ndarray
    loss: np.ndarray
    accuracy: np.ndarray
    test_accuracy: float


def story(record: SparseRecord) -> Story:
    """Training of one recorded network.

    Raises:
        ValueError: It has no sparse layer, or its record keeps no history.
    """
    h = record.history
    threshold = _history(record)
    epochs, steps = len(h["loss"]), np.asarray(h["steps"])
    shape = (epochs, threshold.shape[1])
    return Story(
        key=key_of(record),
        title=title_of(record),
        names=tuple(map(layer_words, h["layers"])),
        steps=steps,
        epochs=epochs,
        per_epoch=max(1, round(int(steps[-1]) / max(1, epochs))),
        threshold=threshold,
        phases=phases_of(steps, threshold),
        sparsity=np.asarray(h["sparsity"], float).reshape(shape),
        error=np.asarray(h["error"], float).reshape(shape),
        size=np.asarray(h["size"], float).reshape(shape),
        loss=np.asarray(h["loss"], float),
        accuracy=np.asarray(h["train_accuracy"], float),
        test_accuracy=record.accuracy("clean", 0),
    )


@dataclass(frozen=True, eq=False)
class Plane:
    """Sparsity against reconstruction over training, the picture of the information-bottleneck reading. E epochs, L layers.

    Attributes:
        key: The run.
        names: L names of the layers in words.
        epochs: `(E,)` from 1.
        sparsity: `(E, L)` share of zero codes: how much is thrown away.
        kept: `(E, L)` 1 − R: share of the input's energy that the codes still explain; below 0 where the reconstruction is worse than none.
        threshold: `(E, L)` λ at the end of each epoch, the counterpart of β.
        accuracy: `(E,)` training accuracy.
    """

    key: str
    names: tuple[str, ...]
    epochs: np.ndarray
    sparsity: np.ndarray
    kept: np.ndarray
    threshold: np.ndarray
    accuracy: np.ndarray


def plane(record: SparseRecord) -> Plane:
    """The plane of one recorded network.

    Raises:
        ValueError: It has no sparse layer, or its record keeps no history.
    """
    seen = story(record)
    ends = (np.arange(seen.epochs) + 1) * seen.per_epoch
    at = np.clip(np.searchsorted(seen.steps, ends), 0, len(seen.steps) - 1)
    return Plane(
        seen.key,
        seen.names,
        np.arange(seen.epochs) + 1,
        seen.sparsity,
        1 - seen.error,
        seen.threshold[at],
        seen.accuracy,
    )


def _history(record: SparseRecord) -> np.ndarray:
    """`(T, L)` λ of a record that has a history of it."""
    if not record.history.get("layers") or not record.history.get("steps"):
        raise ValueError(f"{title_of(record)} has no sparse layer whose λ was recorded in training.")
    return np.asarray(record.history["threshold"], float)


def phases_of(steps: np.ndarray, threshold: np.ndarray) -> tuple[Phase, ...]:
    """Stretches of training by what λ does: it rests from where the layers' mean log λ stays within `REST` of its end, and turns once at most before.

    Args:
        steps: `(T,)`.
        threshold: `(T, L)` λ above 0.
    """
    m = np.log(threshold).mean(1)
    away = np.flatnonzero(np.abs(m - m[-1]) > REST)
    settled = int(away[-1]) + 1 if len(away) else 0
    if settled == 0:
        return (Phase(int(steps[0]), int(steps[-1]), "rests"),)
    moving = m[: settled + 1]
    turn = max(
        (int(moving.argmax()), int(moving.argmin())),
        key=lambda t: min(abs(moving[t] - moving[0]), abs(moving[t] - moving[-1])),
    )
    turned = min(abs(moving[turn] - moving[0]), abs(moving[turn] - moving[-1])) > REST
    marks = [0, turn, settled] if turned else [0, settled]
    found = [
        Phase(int(steps[a]), int(steps[b]), "rises" if m[b] > m[a] else "falls")
        for a, b in itertools.pairwise(marks)
    ]
    if settled < len(steps) - 1:
        found.append(Phase(int(steps[settled]), int(steps[-1]), "rests"))
    return tuple(found)
