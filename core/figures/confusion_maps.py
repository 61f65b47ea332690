"""Confusion matrices as maps: one method, another, and their difference on shared colours; rows predicted, columns true, head to tail.

Colour is the share of a true class's samples. Errors are the subject, so the diagonal (recall) stands apart in blue and does not stretch the
scale of errors.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from core.figures.confusion_cells import (
    apart,
    apart_texts,
    axes,
    cells,
    largest_error,
    numbers,
    off_diagonal,
    ribbons,
    strips,
    texts_of,
)
from core.figures.confusion_given import Decomposed
from core.figures.confusion_look import (
    NAMED,
    NUMBERED,
    checked_matrix,
    rank_axis,
    recall_of,
    shares_of,
    stream,
    title_of,
    without_samples,
)
from core.figures.frame import listed, percent
from core.figures.temperature_frame import finished, plotly


def confusion_map(
    matrix: np.ndarray,
    classes: Sequence[str],
    spectrum: Decomposed | None = None,
    *,
    method: str = "",
    top: float | None = None,
    streams: int = 3,
    height: int = 430,
) -> Any:
    """One confusion matrix, with the heaviest streams of the top singular pair as ribbons from a true to a predicted class.

    Up to twelve classes have numbers in their cells and names; more are drawn as a plain map whose axes are ranks from head to tail.

    Args:
        matrix: `(K, K)` counts (or rates), rows predicted, columns true, diagonal included. Columns are divided by their sums.
        classes: K names in the same order, head first.
        spectrum: The same matrix, decomposed; without it no ribbons are drawn.
        method: Key of the method (see `palette.TAIL_COLOURS`) or any words, for the alt text and the sentence.
        top: Error rate of the darkest colour; the largest error in this matrix when None. Give both maps of a pair the same (`pair_maps` does).
        streams: Ribbons at most; 0 draws none. None are drawn beyond twelve classes.
        height: Height in pixels.

    Returns:
        A Plotly figure; `temperature_frame.description` is its alt text, `sentence_of` the sentence over it.

    Raises:
        ValueError: Not square, negative, no number, or as many names as classes are missing.
    """
    go, make_subplots = plotly()

    counted = checked_matrix(matrix, classes)
    k = len(classes)
    most = largest_error([counted]) if top is None else top
    flows = spectrum.flows(streams) if spectrum is not None and streams > 0 and k <= NUMBERED else ()
    figure = make_subplots()
    for trace in cells(go, counted, classes, most, color_bar("share of a true class", 0, 100 * most)):
        figure.add_trace(trace)
    if flows and spectrum is not None:
        figure.add_traces([strips(go, spectrum), ribbons(go, flows, k)])
    if k <= NUMBERED:
        figure.add_trace(numbers(go, texts_of(counted)))
    x, y = axes(classes, bool(flows))
    figure.update_xaxes(x)
    figure.update_yaxes(y)
    title = title_of(method)
    _name(figure, _brief(title))
    said, sentence = _words(counted, classes, title, spectrum)
    return finished(figure, said, height, sentence, margin=room_of(classes), showlegend=False)


def difference_map(
    first: np.ndarray,
    second: np.ndarray,
    classes: Sequence[str],
    *,
    methods: tuple[str, str] = ("ce", "car-count"),
    top: float | None = None,
    height: int = 430,
) -> Any:
    """Second minus first, in points of the true class's samples. Blue is where the second is better: fewer errors, or more right on the diagonal.

    Args:
        first: `(K, K)` as in `confusion_map`.
        second: The same of the other method.
        classes: K names.
        methods: Keys (or words) of the two.
        top: Difference of the strongest colour; the largest one when None.
        height: Height in pixels.

    Raises:
        ValueError: As in `confusion_map`, or the two differ in size.
    """
    go, make_subplots = plotly()

    a, b = checked_matrix(first, classes), checked_matrix(second, classes)
    change = shares_of(b) - shares_of(a)
    there = ~np.isnan(change)
    seen = np.abs(change if len(classes) <= NUMBERED else off_diagonal(change))
    most = max(float(np.nanmax(seen)) if there.any() else 0.0, 0.01) if top is None else top
    figure = make_subplots()
    for trace in apart(go, change, most, color_bar("points; blue: better", -100 * most, 100 * most)):
        figure.add_trace(trace)
    if len(classes) <= NUMBERED:
        figure.add_trace(numbers(go, apart_texts(change)))
    x, y = axes(classes, False)
    figure.update_xaxes(x)
    figure.update_yaxes(y)
    names = title_of(methods[0]), title_of(methods[1])
    _name(figure, " − ".join(_brief(n) for n in reversed(names)))
    said, sentence = _change_words(a, b, change, classes, names)
    return finished(figure, said, height, sentence, margin=room_of(classes), showlegend=False)


def pair_maps(
    first: np.ndarray,
    second: np.ndarray,
    classes: Sequence[str],
    *,
    spectra: tuple[Decomposed, Decomposed] | None = None,
    methods: tuple[str, str] = ("ce", "car-count"),
    streams: int = 3,
    height: int = 430,
) -> tuple[Any, Any, Any]:
    """Both maps on one scale, and their difference: three figures for three columns of a page (or for a switch).

    Args and errors as in `confusion_map` and `difference_map`.
    """
    a, b = checked_matrix(first, classes), checked_matrix(second, classes)
    top = largest_error([a, b])
    one, other = (
        confusion_map(m, classes, s, method=name, top=top, streams=streams, height=height)
        for m, name, s in zip((a, b), methods, spectra or (None, None), strict=True)
    )
    return one, other, difference_map(a, b, classes, methods=methods, height=height)


def room_of(classes: Sequence[str]) -> dict[str, Any]:
    """Margins that fit the names: fixed, because a colour bar would push them about."""
    longest = max(len(t) for t in rank_axis(classes)["ticktext"])
    below = 48 + (5 * min(longest, 12) if len(classes) <= NAMED else 0)
    return {"l": 34 + 6.6 * longest, "r": 14, "t": 66, "b": below, "autoexpand": False}


def color_bar(title: str, low: float, high: float) -> dict[str, Any]:
    """A lying colour bar over the right half of a map, its ends in percent or points."""
    ticks = [0.999 * low, (low + high) / 2, 0.999 * high]
    unit = "\u00a0%" if low >= 0 else ""
    return {
        "orientation": "h", "thickness": 9, "len": 0.5, "x": 1, "xanchor": "right", "y": 1.01, "yanchor": "bottom", "outlinewidth": 0,
        "tickvals": ticks, "ticktext": [f"{t:.0f}{unit}" if low >= 0 else f"{t:+.0f}".replace("-", "−").replace("+0", "0") for t in ticks],
        "ticklabelposition": "outside top", "tickfont": {"size": 13}, "title": {"text": title, "side": "top", "font": {"size": 13}}, "xpad": 0,
    }  # fmt: skip


def _brief(title: str) -> str:
    """A method's name without what stands in brackets: all that fits over a narrow map."""
    return title.partition(" (")[0]


def _name(figure: Any, title: str) -> None:
    if title:
        figure.add_annotation(
            x=0, xref="paper", y=1, yref="paper", xanchor="left", yanchor="bottom", yshift=34, text=f"<b>{title}</b>", showarrow=False,
            font={"size": 15}, align="left",
        )  # fmt: skip


def worst_errors(counted: np.ndarray, classes: Sequence[str], top: int) -> list[tuple[str, str, float]]:
    """True class, class that it is called, and share, of the largest errors."""
    z = np.nan_to_num(off_diagonal(shares_of(counted)))
    found = []
    for at in np.argsort(-z, axis=None, kind="stable")[:top]:
        i, j = divmod(int(at), len(z))
        if z[i, j] > 0:
            found.append((classes[j], classes[i], float(z[i, j])))
    return found


def _words(
    counted: np.ndarray, classes: Sequence[str], title: str, drawn: Decomposed | None
) -> tuple[str, str]:
    recall = recall_of(counted, classes)
    under = f" under {title}" if title else ""
    errors = worst_errors(counted, classes, 5)
    sentence = f"No image is called by another name{under}."
    if errors:
        true, called, share = errors[0]
        sentence = f"The largest error{under}: {stream(share, true, called)}."
    each = [stream(s, t, c) for t, c, s in errors]
    k = len(classes)
    rows = [f"{c} {percent(float(r))}" for c, r in zip(classes, recall, strict=True)]
    diagonal = (
        f"Recall from head to tail: {', '.join(rows)}."
        if k <= 24
        else f"Mean recall is {percent(float(np.nanmean(recall)))}."
    )
    largest = f" The largest errors: {listed(each)}." if each else " There are no errors."
    said = (
        f"Confusion matrix{under} of {k} classes, rows predicted, columns true. {diagonal}{largest}"
        + ("" if drawn is None else f" The largest singular value is {drawn.sigma:.2f}.")
        + without_samples(recall, classes)
    )
    return said, sentence


def _change_words(
    a: np.ndarray, b: np.ndarray, change: np.ndarray, classes: Sequence[str], names: tuple[str, str]
) -> tuple[str, str]:
    gains = np.diag(change)
    there = np.flatnonzero(~np.isnan(gains))
    if not len(there):
        empty = "The two matrices have no class with samples in both."
        return empty, empty
    best, worst = (int(there[f(gains[there])]) for f in (np.argmax, np.argmin))
    up, down = int((gains[there] > 0).sum()), int((gains[there] < 0).sum())
    sentence = (
        f"From {names[0]} to {names[1]} recall rises in {up} classes and falls in {down} of {len(there)}."
    )
    before, after = recall_of(a, classes), recall_of(b, classes)

    def told(j: int) -> str:
        return f"{classes[j]} from {percent(float(before[j]))} to {percent(float(after[j]))}"

    errors = np.nan_to_num(off_diagonal(change))
    i, j = divmod(int(np.argmin(errors)), len(errors))
    m, n = divmod(int(np.argmax(errors)), len(errors))
    said = (
        f"Difference of two confusion matrices, {names[1]} minus {names[0]}, in points; blue is better under {names[1]}. {sentence} Recall moves "
        f"most upwards in {told(best)}, and least or downwards in {told(worst)}. The stream that shrinks most is {classes[j]} called {classes[i]} "
        f"({100 * errors[i, j]:+.0f} points), the one that grows most is {classes[n]} called {classes[m]} ({100 * errors[m, n]:+.0f} points)."
    )
    return said, sentence
