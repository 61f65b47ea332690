"""λ of every layer as dots on one axis: before adaptation open and orange, after it filled and blue; still, by step, and by severity."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from core.figures.frame import listed
from core.figures.sparse_look import (
    checked_lambda,
    checked_layers,
    checked_shape,
    chosen_frames,
    rising,
)
from core.figures.sparse_rows import Film, draw
from core.figures.sparse_words import moved, moves_words, number, rate


def lambda_dots(
    layers: Sequence[str],
    before: np.ndarray,
    after: np.ndarray | None = None,
    *,
    reach: float | None = 10.0,
    whole: bool = False,
    stopped: Mapping[str, str] | None = None,
    compact: bool = False,
    height: int = 0,
) -> Any:
    """λ before and after adaptation, one row a layer, the first layer on top.

    Args:
        layers: L names in words, in order of depth, e.g. `"first layer"`, `"block 1, first"`.
        before: `(L,)` λ after training, > 0.
        after: `(L,)` λ after adaptation; NaN where a layer has none; None draws only what training left.
        reach: How many times larger or smaller λ may become; its span is shaded in every row. None shades nothing.
        whole: Widen the axis to the whole reach; else it holds the dots, and the shade runs to its edges.
        stopped: Name of a layer (as in `layers`) -> why a guard stopped it; its dot stands in a square, with the word "stopped".
        compact: For about 420 px.
        height: Height in pixels; 0 follows the number of layers.

    Returns:
        A Plotly figure; `temperature_frame.description` has the alt text, `sentence_of` the sentence over it.

    Raises:
        ValueError: No layer, unlike lengths, or a λ that is not above 0.
    """
    names = checked_layers(layers)
    start = checked_lambda(before, (len(names),), "λ before")
    look: dict[str, Any] = {"reach": reach, "whole": whole, "compact": compact, "height": height}
    if after is None:
        low, high = int(start.argmin()), int(start.argmax())
        sentence = f"Training left λ at {number(start[0])}."
        if len(names) > 1:
            sentence = f"Training left λ between {number(start[low])} ({names[low]}) and {number(start[high])} ({names[high]})."
        each = "; ".join(f"{n} {number(v)}" for n, v in zip(names, start, strict=True))
        said = f"Dots on a logarithmic axis of λ, one row a layer. After training: {each}.{_reach(reach)}"
        return draw(Film(names, start), said, sentence, **look)
    end = checked_lambda(after, (len(names),), "λ after", holes=True)
    film = Film(names, start, [end], [_stopped(names, stopped)], [""])
    sentence = f"{moves_words(names, start, end)}.{_ended(film.stopped[0])}"
    said = f"Dots on a logarithmic axis of λ, one row a layer, joined before and after adaptation. {_each(film, end)}.{_reach(reach)} {sentence}"
    return draw(film, said, sentence, **look)


def lambda_steps(
    layers: Sequence[str],
    threshold: np.ndarray,
    *,
    sparsity: np.ndarray | None = None,
    error: np.ndarray | None = None,
    reach: float | None = 10.0,
    whole: bool = False,
    stopped: Mapping[str, str] | None = None,
    frames: int = 48,
    compact: bool = False,
    height: int = 0,
) -> Any:
    """The same moving step by step of an adaptation; the still shows the last step.

    Args:
        layers: As in `lambda_dots`.
        threshold: `(S + 1, L)` λ before the first and after each step (`Adapted.threshold`); one row is fine: nothing adapted.
        sparsity: `(S + 1, L)` shares of zero codes; their mean over layers is a thin line in a panel of its own. None or all NaN draws none.
        error: `(S + 1, L)` relative reconstruction errors R, likewise.
        reach: As in `lambda_dots`.
        whole: As in `lambda_dots`.
        stopped: As in `lambda_dots`; marked in the last frame.
        frames: Frames at most, chosen evenly.
        compact: As in `lambda_dots`.
        height: As in `lambda_dots`.

    Returns:
        A Plotly figure with a play button and a slider (none of both for one row).

    Raises:
        ValueError: As in `lambda_dots`, or no row.
    """
    names = checked_layers(layers)
    lam = checked_lambda(threshold, (None, len(names)), "λ by step")
    if len(lam) == 0:
        raise ValueError("λ by step has no row; give λ before the first step at least.")
    if len(lam) == 1:
        return lambda_dots(
            names, lam[0], lam[0], reach=reach, whole=whole, stopped=stopped, compact=compact, height=height
        )
    at = chosen_frames(len(lam), frames)
    lines = _lines({"sparsity": sparsity, "error": error}, len(lam), len(names))
    ended = _stopped(names, stopped)
    film = Film(
        names, lam[0], [lam[i] for i in at], [{}] * (len(at) - 1) + [ended], [f"{i}" for i in at], "step ", len(at) - 1, "step",
        np.arange(len(lam), dtype=float), lines, pace=max(40, min(160, 4000 // len(at))),
    )  # fmt: skip
    steps = f"{len(lam) - 1} step{'s' if len(lam) > 2 else ''}"
    sentence = f"In {steps} {moves_words(names, lam[0], lam[-1])}.{_ended(ended)}"
    said = (
        f"Animated dots on a logarithmic axis of λ, one row a layer, over {steps} of adaptation. {_each(film, lam[-1])}.{_reach(reach)}"
        f"{_line_words(lines)} {sentence}"
    )
    return draw(film, said, sentence, reach=reach, whole=whole, compact=compact, height=height)


def lambda_severities(
    layers: Sequence[str],
    trained: np.ndarray,
    adapted: np.ndarray,
    severities: Sequence[int],
    *,
    corruption: str = "",
    sparsity: np.ndarray | None = None,
    error: np.ndarray | None = None,
    at: int | None = None,
    reach: float | None = 10.0,
    whole: bool = False,
    stopped: Mapping[int, Sequence[str]] | None = None,
    compact: bool = False,
    height: int = 0,
) -> Any:
    """The same moving over severities 0 (clean) to 5 of one corruption.

    Args:
        layers: As in `lambda_dots`.
        trained: `(L,)` λ after training.
        adapted: `(R, L)` λ after adaptation at each severity; rows of NaN were not measured.
        severities: R rising severities, e.g. 0 to 5.
        corruption: Its name in words, for the sentence.
        sparsity: `(R, L)` or `(R,)` shares of zero codes, drawn as a thin line; None draws none.
        error: `(R, L)` or `(R,)` relative reconstruction errors, likewise.
        at: Severity of the still; the last when None.
        reach: As in `lambda_dots`.
        whole: As in `lambda_dots`.
        stopped: Severity -> names of the layers that a guard stopped there.
        compact: As in `lambda_dots`.
        height: As in `lambda_dots`.

    Returns:
        A Plotly figure with a play button and a slider.

    Raises:
        ValueError: As in `lambda_dots`, or `at` is not among the severities.
    """
    names = checked_layers(layers)
    start = checked_lambda(trained, (len(names),), "λ after training")
    levels = [int(s) for s in rising(severities, "severities")]
    lam = checked_lambda(adapted, (len(levels), len(names)), "λ by severity", holes=True)
    if at is not None and at not in levels:
        raise ValueError(f"Severity {at} is not among {', '.join(map(str, levels))}.")
    here = len(levels) - 1 if at is None else levels.index(at)
    lines = _lines({"sparsity": sparsity, "error": error}, len(levels), len(names))
    ended = [_stopped(names, dict.fromkeys((stopped or {}).get(s, ()), "")) for s in levels]
    film = Film(
        names, start, list(lam), ended, [f"{s}" for s in levels], "severity ", here, "severity", np.array(levels, float), lines, 700, 450
    )  # fmt: skip
    under = f"{corruption} of severity {levels[here]}" if levels[here] else "clean images"
    if not corruption and levels[here]:
        under = f"severity {levels[here]}"
    sentence = f"On {under} {moves_words(names, start, lam[here])}.{_ended(ended[here])}"
    said = (
        f"Animated dots on a logarithmic axis of λ, one row a layer, over severities {levels[0]} to {levels[-1]}"
        f"{f' of {corruption}' if corruption else ''}. At {levels[here]}: {_each(film, lam[here])}.{_reach(reach)}{_line_words(lines)} {sentence}"
    )
    return draw(film, said, sentence, reach=reach, whole=whole, compact=compact, height=height)


def _stopped(names: Sequence[str], stopped: Mapping[str, str] | None) -> dict[str, str]:
    unknown = [n for n in stopped or {} if n not in names]
    if unknown:
        raise ValueError(f"A stopped layer is not among the layers: {listed(unknown)}.")
    return dict(stopped or {})


def _ended(stopped: Mapping[str, str]) -> str:
    if not stopped:
        return ""
    named = [f"{name} ({why})" if why else name for name, why in stopped.items()]
    told = listed(named) if len(named) <= 3 else f"{len(named)} layers"
    return f" The guard stopped {told}."


def _each(film: Film, after: np.ndarray) -> str:
    return "; ".join(f"{n} {moved(a, b)}" for n, a, b in zip(film.layers, film.before, after, strict=True))


def _reach(reach: float | None) -> str:
    return "" if reach is None else f" A guard keeps λ between 1/{reach:g} and {reach:g} times its value."


def _lines(given: Mapping[str, Any], count: int, layers: int) -> dict[str, np.ndarray]:
    """Means over layers of what is there."""
    found = {}
    for key, values in given.items():
        if values is None:
            continue
        array = np.asarray(values, np.float64)
        if array.ndim == 1:
            array = checked_shape(array, (count,), key)[:, None]
        else:
            array = checked_shape(array, (count, layers), key)
        known = ~np.isnan(array)
        if known.any():
            total = np.where(known, array, 0).sum(1)
            found[key] = np.divide(total, known.sum(1), out=np.full(count, np.nan), where=known.any(1))
    return found


def _line_words(lines: Mapping[str, np.ndarray]) -> str:
    told = []
    for key, values in lines.items():
        known = values[np.isfinite(values)]
        told.append(f"{key} goes from {rate(known[0])} to {rate(known[-1])}")
    return f" Mean {listed(told)}." if told else ""
