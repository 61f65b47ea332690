"""Training as a film: recall of each class, the confusion matrix with its top pair, and the spectrum, epoch by epoch.

Plotly frames with a play button and a slider, all in the browser. Beyond 24 classes the matrix is reduced to blocks of classes.
What a frame holds is in `confusion_film`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from core.figures.confusion_bars import words as bar_words
from core.figures.confusion_film import Reel, Shot, controls, moving, panels, still
from core.figures.confusion_given import Decomposed
from core.figures.confusion_look import checked_matrix, checked_methods, recall_of, title_of
from core.figures.temperature_frame import LEGEND, finished, plotly

DIFFERENCE = "difference"
"""What `show` is called for second minus first."""


@dataclass(frozen=True)
class Film:
    """What one run left behind (a `core.lab.tail_shelf.TailRecord` fits too: only these attributes are read).

    Attributes:
        epochs: `(E,)` rising, from 0.
        test: `(E, K, K)` counts, rows predicted, columns true.
        train_epochs: `(F,)` epochs with a training matrix; may be empty.
        train: `(F, K, K)`.
    """

    epochs: np.ndarray
    test: np.ndarray
    train_epochs: np.ndarray
    train: np.ndarray


def story(
    runs: Mapping[str, Any],
    classes: Sequence[str],
    show: str,
    spectra: Mapping[str, Sequence[Decomposed]],
    *,
    counts: np.ndarray | None = None,
    titles: Mapping[str, str] | None = None,
    stacked: bool = False,
    spectrum: bool = True,
    at: int | None = None,
    height: int = 0,
) -> Any:
    """The film.

    Args:
        runs: Method -> `Film` or record, one or two, classes in head-to-tail order in all of them.
        classes: K names in that order.
        show: Key of the run to show, or `"difference"` (second minus first; needs two runs with the same epochs).
        spectra: Method -> the test matrix of each of its epochs, decomposed.
        counts: `(K,)` training images, written beside the names.
        titles: Method -> words instead of `confusion_look.TAIL_TITLES`.
        stacked: Panels under one another, for narrow screens (about 420 px); else beside one another (needs about 900 px).
        spectrum: Draw the third panel.
        at: Epoch of the still; the last when None.
        height: Height in pixels; 0 takes what the panels need (beside 470, stacked about 1,000).

    Returns:
        A Plotly figure below 1 MB; `sentence_of` gives the worst class at the still's epoch.

    Raises:
        ValueError: No run or more than two, `show` is not among them, sizes or epochs that differ, or no test image.
    """
    go, _ = plotly()

    methods = checked_methods(runs, 2, "The film of a training")
    _check(runs, methods, classes, show, spectra)
    shown = methods if show == DIFFERENCE else [show]
    beside = [m for m in methods if m in shown or np.array_equal(runs[m].epochs, runs[show].epochs)]
    epochs = [int(e) for e in runs[shown[0]].epochs]
    reel = Reel(
        shots=[_shot(runs, shown, beside, spectra, classes, k) for k in range(len(epochs))],
        epochs=epochs,
        classes=list(classes),
        shown=shown,
        titles={m: title_of(m, titles) for m in methods},
        counts=None if counts is None else np.asarray(counts),
    )
    here = len(epochs) - 1 if at is None else int(np.abs(np.array(epochs) - at).argmin())
    figure = go.Figure()
    layout, tall, domain = panels(reel, stacked, spectrum)
    for trace in still(go, reel, here, spectrum, domain):
        figure.add_trace(trace)
    figure.frames = [
        go.Frame(
            name=f"{k}",
            traces=list(range(len(figure.data))),
            data=[moving(go, t) for t in still(go, reel, k, spectrum, domain)],
        )
        for k in range(len(epochs))
    ]
    said, sentence = _words(reel, here)
    return finished(
        figure, said, height or tall, sentence, barmode="overlay", legend=LEGEND | {"y": 1.0, "yref": "container", "yanchor": "top"},
        **controls(reel, here, stacked, height or tall), **layout,
    )  # fmt: skip


def _check(
    runs: Mapping[str, Any],
    methods: Sequence[str],
    classes: Sequence[str],
    show: str,
    spectra: Mapping[str, Sequence[Decomposed]],
) -> None:
    if show != DIFFERENCE and show not in methods:
        raise ValueError(f"The film shows {' or '.join(methods)} or the difference, not {show!r}.")
    if show == DIFFERENCE and (len(methods) != 2 or not np.array_equal(*(runs[m].epochs for m in methods))):
        raise ValueError("A difference needs two runs with the same epochs.")
    for m in methods:
        test = np.asarray(runs[m].test)
        if test.ndim != 3 or len(test) != len(runs[m].epochs) or len(test) == 0:
            raise ValueError(
                f"{title_of(m)} has {len(runs[m].epochs)} epochs and matrices of shape {test.shape}."
            )
        if len(spectra.get(m, ())) != len(test):
            raise ValueError(f"{title_of(m)} has {len(test)} matrices and {len(spectra.get(m, ()))} spectra.")
        for matrix in test[[0, -1]]:
            checked_matrix(matrix, classes)
        if not test[-1].sum():
            raise ValueError(f"{title_of(m)} has no test sample, so there is nothing to play.")


def _shot(
    runs: Mapping[str, Any],
    shown: Sequence[str],
    beside: Sequence[str],
    spectra: Mapping[str, Sequence[Decomposed]],
    classes: Sequence[str],
    k: int,
) -> Shot:
    """One epoch: test matrices of the shown runs, their recalls, and the training recalls last recorded."""
    epoch = int(runs[shown[0]].epochs[k])
    fit = {}
    for m in shown:
        known = np.asarray(runs[m].train_epochs)
        if len(known):
            at = max(int(np.searchsorted(known, epoch, side="right")) - 1, 0)
            fit[m] = recall_of(runs[m].train[at], classes)
    matrices = {m: np.asarray(runs[m].test[k], float) for m in beside}
    recall = {m: recall_of(matrices[m], classes) for m in shown}
    return Shot(matrices, recall, fit, {m: spectra[m][k] for m in beside})


def _words(reel: Reel, here: int) -> tuple[str, str]:
    shot = reel.shots[here]
    alt, sentence = bar_words(shot.test, shot.train, reel.classes, reel.titles)
    ends = []
    for m in reel.shown:
        first, last = (float(np.nanmin(s.test[m])) for s in (reel.shots[0], reel.shots[-1]))
        sigma = [s.spectra[m].sigma for s in (reel.shots[0], reel.shots[-1])]
        ends.append(
            f"under {reel.titles[m]} the worst recall goes from {100 * first:.0f} to {100 * last:.0f}\u00a0% and the largest singular value from "
            f"{sigma[0]:.2f} to {sigma[1]:.2f}"
        )
    said = (
        f"Film of {len(reel.epochs)} epochs, {reel.epochs[0] + 1} to {reel.epochs[-1] + 1}, of recall, confusion matrix and singular values: "
        f"{'; '.join(ends)}. At epoch {reel.epochs[here] + 1}: {alt}"
    )
    return said, f"After epoch {reel.epochs[here] + 1}: {sentence[0].lower()}{sentence[1:]}"
