"""Which classes flow into which: the top singular pair of a confusion matrix as ribbons from true classes to the classes they are called.

Streams are ranked by u_i M_ij v_j, whose sum is sigma_1 (`core.car.spectrum`); a ribbon's width is the entry M_ij.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from core.figures.confusion_given import Decomposed, Stream, is_weighted
from core.figures.confusion_look import DARK, WORST, short, stream, title_of, without_samples
from core.figures.frame import listed, percent
from core.figures.temperature_frame import GREY, finished, plotly

SLOT = 0.085
"""Least height of a class's place, as a share of the picture: a name with a line under it."""

LEFT, RIGHT_EDGE = 0.07, 0.93
"""Where ribbons begin and end; nodes stand outside of it, as wide as their entry of v or u."""


def flow(
    spectrum: Decomposed,
    classes: Sequence[str],
    *,
    method: str = "",
    counts: np.ndarray | None = None,
    top: int = 6,
    height: int = 380,
    unit: float | None = None,
) -> Any:
    """True classes on the left (bars as long as v), predicted ones on the right (u), ribbons between them for the heaviest streams.

    Args:
        spectrum: A confusion matrix, decomposed. With Λ in it widths are weighted shares; hover gives plain ones.
        classes: K names, head first.
        method: Key of the method or any words.
        counts: `(K,)` training images, named beside the true classes.
        top: Streams at most, 1 to 12.
        height: Height in pixels.
        unit: Height of a ribbon of share 1, as a part of the picture. None takes the largest that fits, `fitting_unit`; two figures whose
            widths are to be compared take the smaller of theirs.

    Returns:
        A Plotly figure; `sentence_of` names the heaviest stream in words. With no error at all it says so and is empty.

    Raises:
        ValueError: Another number of names than of classes, `top` is out of range, or the unit is too large to fit.
    """
    if not 1 <= top <= 12:
        raise ValueError(f"The flow shows 1 to 12 streams, not {top}.")
    if len(classes) != len(spectrum.u):
        raise ValueError(f"The spectrum has {len(spectrum.u)} classes, and there are {len(classes)} names.")
    go, make_subplots = plotly()

    flows = spectrum.flows(top)
    title = title_of(method)
    figure = make_subplots()
    if flows:
        fits = fitting_unit(spectrum, top)
        if unit is not None and not 0 < unit <= fits * (1 + 1e-9):
            raise ValueError(f"Ribbons of {unit:g} a share do not fit; up to {fits:g} does.")
        _draw(go, figure, spectrum, flows, classes, counts, fits if unit is None else unit)
    else:
        figure.add_annotation(
            x=0.5, y=0.5, text="No errors: nothing flows.", showarrow=False, font={"size": 16}
        )
    plain = {"visible": False, "fixedrange": True}
    figure.update_xaxes(plain | {"range": [0, 1]})
    figure.update_yaxes(plain | {"range": [1.06, 0]})
    said, sentence = _words(spectrum, flows, classes, title)
    return finished(
        figure, said, height, sentence, margin={"l": 150, "r": 150, "t": 26, "b": 6}, showlegend=False
    )


def fitting_unit(spectrum: Decomposed, top: int = 6) -> float:
    """The largest height of a ribbon of share 1 with which the heaviest `top` streams fit the picture; infinite without an error."""
    flows = spectrum.flows(top)
    sides = [_sums(flows, "true"), _sums(flows, "predicted")]
    return min(((1.0 - SLOT * len(side)) / sum(side.values()) for side in sides if side), default=np.inf)


def _draw(
    go: Any,
    figure: Any,
    s: Decomposed,
    flows: Sequence[Stream],
    classes: Sequence[str],
    counts: np.ndarray | None,
    unit: float,
) -> None:
    sides = [_sums(flows, "true"), _sums(flows, "predicted")]
    left, right = (_places(side, unit) for side in sides)
    out, into = (
        {j: y - unit * sides[0][j] / 2 for j, y in left.items()},
        {i: y - unit * sides[1][i] / 2 for i, y in right.items()},
    )
    ordered = sorted(flows, key=lambda f: (f.true, f.predicted))
    tops: dict[tuple[int, int], list[float]] = {}
    for f in ordered:
        tops[f.true, f.predicted] = [out[f.true]]
        out[f.true] += unit * f.weighted
    for f in sorted(flows, key=lambda f: (f.predicted, f.true)):
        tops[f.true, f.predicted].append(into[f.predicted])
        into[f.predicted] += unit * f.weighted
    most = max(f.in_pair for f in flows)
    for f in reversed(flows):
        y0, y1 = tops[f.true, f.predicted]
        strength = 0.3 + 0.5 * f.in_pair / most if most > 0 else 0.5
        figure.add_trace(
            _ribbon(
                go, y0, y1, unit * f.weighted, strength, stream(f.rate, classes[f.true], classes[f.predicted])
            )
        )
        figure.add_annotation(
            x=LEFT + 0.015, y=y0 + unit * f.weighted / 2, text=percent(f.rate), showarrow=False, xanchor="left", font={"size": 13, "color": DARK},
            bgcolor="rgba(236,240,244,0.85)", borderpad=1,
        )  # fmt: skip
    for side, places, vector, sign in ((0, left, s.v, -1), (1, right, s.u, 1)):
        edge = RIGHT_EDGE if side else LEFT
        for k, y in places.items():
            half, wide = unit * sides[side][k] / 2, 0.008 + 0.055 * float(vector[k])
            x0, x1 = sorted((edge, edge + sign * wide))
            figure.add_shape(
                type="rect", x0=x0, x1=x1, y0=y - half, y1=y + half, fillcolor=GREY, line={"width": 0}
            )
            under = f"<br>{int(counts[k]):,} in training" if counts is not None and not side else ""
            figure.add_annotation(
                x=0 if not side else 1, y=y, text=f"<b>{short(classes[k], 18)}</b>{under}", showarrow=False, align="left" if side else "right",
                xanchor="left" if side else "right", font={"size": 14}, xshift=4 * sign,
            )  # fmt: skip
    for x, words, anchor in ((0, "true class", "right"), (1, "is called", "left")):
        figure.add_annotation(
            x=x,
            y=0,
            text=words,
            showarrow=False,
            xanchor=anchor,
            yanchor="bottom",
            font={"size": 13},
            yshift=4,
        )


def _sums(flows: Sequence[Stream], side: str) -> dict[int, float]:
    """Weighted sum of the streams of each class on one side, head first."""
    found: dict[int, float] = {}
    for f in sorted(flows, key=lambda f: int(getattr(f, side))):
        k = int(getattr(f, side))
        found[k] = found.get(k, 0.0) + f.weighted
    return found


def _places(side: dict[int, float], unit: float) -> dict[int, float]:
    """Middle of each class's place from the top downwards; the whole side is centred."""
    room = (1.0 - SLOT * len(side) - unit * sum(side.values())) / (len(side) + 1)
    at, places = 0.03, {}
    for k, width in side.items():
        at += room
        tall = SLOT + unit * width
        places[k] = at + tall / 2
        at += tall
    return places


def _ribbon(go: Any, y0: float, y1: float, width: float, strength: float, words: str) -> Any:
    """A band of constant height that turns softly from one side to the other."""
    t = np.linspace(0, 1, 21)
    x = LEFT + (RIGHT_EDGE - LEFT) * t
    middle = y0 + (y1 - y0) * t**2 * (3 - 2 * t)
    red, green, blue = (int(WORST[k : k + 2], 16) for k in (1, 3, 5))
    colour = f"rgba({red},{green},{blue},{strength:.2f})"
    return go.Scatter(
        x=np.round([*x, *x[::-1]], 4).tolist(), y=np.round([*middle, *(middle[::-1] + width)], 4).tolist(), mode="lines", fill="toself",
        fillcolor=colour, line={"width": 0, "color": colour}, hoverinfo="text", hoveron="fills", text=words, name=words, showlegend=False,
    )  # fmt: skip


def _words(s: Decomposed, flows: Sequence[Stream], classes: Sequence[str], title: str) -> tuple[str, str]:
    under = f" under {title}" if title else ""
    gone = without_samples(s.recall, classes)
    if not flows:
        empty = f"There are no errors{under}, so no class flows into another.{gone}"
        return empty, f"There are no errors{under}, so no class flows into another."
    each = [stream(f.rate, classes[f.true], classes[f.predicted]) for f in flows]
    f = flows[0]
    part = percent(float(s.u[f.predicted]) * f.weighted * float(s.v[f.true]) / s.sigma)
    first = f"The heaviest stream{under}: {each[0].rstrip('.')}. It alone makes {part} of the largest singular value."
    if len(flows) > 1 and len({f.predicted for f in flows}) == 1:
        first = f"All heavy streams{under} end in {classes[f.predicted]}; the first: {each[0]}."
    lost, gains = int(np.argmax(s.v)), int(np.argmax(s.u))
    measure = " Widths are weighted by Λ." if is_weighted(s) else ""
    said = (
        f"Ribbons from true classes to the classes they are called{under}, {len(flows)} streams, the heaviest of the top singular pair: "
        f"{listed(each)}.{measure} The pair loses most from {classes[lost]} (v = {s.v[lost]:.2f}) and gives most to {classes[gains]} "
        f"(u = {s.u[gains]:.2f}); the largest singular value is {s.sigma:.2f}, which holds {percent(s.share)} of the squared error rates.{gone}"
    )
    return said, first
