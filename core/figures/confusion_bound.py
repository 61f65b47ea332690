"""sigma_1 over the epochs, and what it bounds: sqrt(K) sigma_1 / w beside the true error of the worst class.

A bound of 1 or more says nothing; that region is hatched and named (METHODS 3.5).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from core.figures.confusion_given import Panel
from core.figures.confusion_look import checked_methods, colour_of, line_of_method, marker_of_method, title_of
from core.figures.frame import listed, percent
from core.figures.temperature_frame import GREY, LEGEND, finished, plotly

LOG_FROM = 3.0
"""Where a bound is larger, the axis is logarithmic."""


@dataclass(frozen=True)
class SigmaLine:
    """One method's run.

    Attributes:
        epochs: `(E,)` rising, from 0.
        sigma: `(E,)` largest singular value of the (weighted) matrix of test errors.
        bound: `(E,)` upper limit of the worst class's error, `Spectrum.bound().of_worst`.
        error: `(E,)` true error of the worst class, `worst_error`; NaN where unknown.
    """

    epochs: np.ndarray
    sigma: np.ndarray
    bound: np.ndarray
    error: np.ndarray


def sigma_over_epochs(
    lines: Mapping[str, SigmaLine],
    *,
    titles: Mapping[str, str] | None = None,
    at: int | None = None,
    height: int = 320,
) -> tuple[Panel, Panel]:
    """sigma_1 of each method; and its bound (thin) over the worst class's true error (thick).

    Args:
        lines: Method -> its run; one to three.
        titles: Method -> words instead of `confusion_look.TAIL_TITLES`.
        at: Epoch that a thin upright line marks.
        height: Height in pixels of each.

    Returns:
        Two Plotly figures; the second one's `sentence_of` gives bound and truth of the last epoch, and says when the bound is vacuous.

    Raises:
        ValueError: No method, more than three, lengths that differ, or a bound below the truth.
    """
    go, make_subplots = plotly()

    methods = _checked(lines)
    left, right = make_subplots(), make_subplots()
    most = max(float(np.nanmax(np.r_[x.bound, 0.0])) for x in lines.values())
    errors = np.concatenate([x.error for x in lines.values()])
    above = errors[errors > 0]
    low = float(np.nanmin(above)) if len(above) else 0.1
    log = most > LOG_FROM
    top = most * (1.7 if log else 1.22)
    last = max(float(x.epochs[-1]) for x in lines.values()) + 1
    first = min(float(x.epochs[0]) for x in lines.values()) + 1
    if most >= 1:
        _hatch(go, right, first, last, max(top, 1.25))
    for m in methods:
        own, title = lines[m], title_of(m, titles)
        error = np.where(own.error > 0, own.error, low / 2) if log else own.error
        left.add_trace(_line(go, m, title, own.epochs, own.sigma, f"{title}, epoch %{{x}}: σ₁ = %{{y:.3f}}"))
        bound = _line(go, m, title, own.epochs, own.bound, f"{title}, epoch %{{x}}: bound %{{y:.2f}}")
        right.add_trace(
            bound.update(showlegend=False, line={"color": colour_of(m), "width": 1.6, "dash": "dot"})
        )
        truth = _line(go, m, title, own.epochs, error, f"{title}, epoch %{{x}}: worst error %{{y:.2f}}")
        right.add_trace(truth.update(line={"color": colour_of(m), "width": 3, "dash": "solid"}))
        for figure, y in ((left, own.sigma), (right, error)):
            figure.add_trace(
                go.Scatter(
                    x=[int(own.epochs[-1]) + 1], y=_short(y[-1:]), mode="markers", marker=marker_of_method(m, 11), hoverinfo="skip",
                    showlegend=False, cliponaxis=False, name=title,
                )
            )  # fmt: skip
    for name, line in (("bound", {"dash": "dot", "width": 1.6}), ("true error", {"width": 3})):
        right.add_trace(go.Scatter(x=[None], y=[None], mode="lines", line=line | {"color": GREY}, name=name))
    plain = {"zeroline": False, "fixedrange": True, "automargin": True, "tickfont": {"size": 13}}
    epochs = {
        "range": [first, max(last, first + 1)],
        "title": {"text": "epoch", "standoff": 4},
        "showgrid": False,
        "tickformat": "d",
        "nticks": 6,
    }
    for figure in (left, right):
        figure.update_xaxes(plain | epochs)
        if at is not None:
            figure.add_vline(x=at + 1, line={"color": GREY, "width": 1.5}, layer="below")
    grid = plain | {"gridcolor": "rgba(138,143,150,0.25)", "nticks": 5}
    left.update_yaxes(grid | {"rangemode": "tozero"})
    scale = (
        {"type": "log", "range": [np.log10(low / 2.2), np.log10(top)], "tickvals": [0.1, 0.2, 0.5, 1, 2, 5, 10, 20, 50, 100]}
        if log
        else {"range": [0, max(top, 1.25)]}
    )  # fmt: skip
    right.update_yaxes(grid | scale)
    alike: dict[str, Any] = {"margin": {"l": 8, "r": 12, "t": 8, "b": 8}, "legend": LEGEND | {"y": 1.02}}
    sizes, said, sentence = _words(lines, titles)
    return (
        Panel("σ₁, the largest singular value", finished(left, sizes, height, **alike)),
        Panel("Worst class: what σ₁ allows, and the truth", finished(right, said, height, sentence, **alike)),
    )


def _line(go: Any, method: str, title: str, epochs: np.ndarray, values: np.ndarray, hover: str) -> Any:
    return go.Scatter(
        x=[int(e) + 1 for e in epochs], y=_short(values), mode="lines", line=line_of_method(method, 3), name=title,
        hovertemplate=f"{hover}<extra></extra>",
    )  # fmt: skip


def _checked(lines: Mapping[str, SigmaLine]) -> list[str]:
    methods = checked_methods(lines, 3, "A chart of σ₁ over epochs")
    for m in methods:
        x = lines[m]
        sizes = {len(x.epochs), len(x.sigma), len(x.bound), len(x.error)}
        if len(sizes) != 1 or 0 in sizes:
            raise ValueError(
                f"The epochs of {title_of(m)} and their values differ in number, or there is none."
            )
        if (np.asarray(x.bound) < np.asarray(x.error) - 1e-6).any():
            raise ValueError(f"A bound of {title_of(m)} lies below the true error; one of the two is wrong.")
    return methods


def _hatch(go: Any, figure: Any, first: float, last: float, top: float) -> None:
    """The region where a bound says nothing, hatched and named."""
    look = {"shape": "/", "fgcolor": GREY, "bgcolor": "rgba(138,143,150,0.10)", "size": 9, "solidity": 0.2}
    figure.add_trace(
        go.Scatter(
            x=[first, last, last, first], y=[1, 1, top, top], mode="lines", fill="toself", fillcolor="rgba(0,0,0,0)", fillpattern=look,
            line={"width": 0, "color": GREY}, hoverinfo="text", hoveron="fills", text="a bound of 1 or more says nothing",
            showlegend=False, name="vacuous",
        )
    )  # fmt: skip
    figure.add_annotation(
        x=1, xref="x domain", xanchor="right", y=1, yref="y domain", yanchor="top", text="from 1 upwards a bound says nothing", showarrow=False,
        bgcolor="rgba(236,240,244,0.92)", font={"color": "#16191D", "size": 13}, borderpad=2,
    )  # fmt: skip


def _short(values: np.ndarray) -> list[float | None]:
    return [None if np.isnan(v) else round(float(v), 4) for v in np.asarray(values, float)]


def _words(lines: Mapping[str, SigmaLine], titles: Mapping[str, str] | None) -> tuple[str, str, str]:
    ends, told, vacuous = [], [], []
    for m, x in lines.items():
        title = title_of(m, titles)
        truth = percent(float(x.error[-1]))
        ends.append(f"{title} has a bound of {x.bound[-1]:.2f} and a true error of {truth}")
        low, high = float(np.nanmin(x.sigma)), float(np.nanmax(x.sigma))
        told.append(f"{title}: from {x.sigma[0]:.2f} to {x.sigma[-1]:.2f}, between {low:.2f} and {high:.2f}")
        vacuous.append(bool(x.bound[-1] >= 1))
    note = (
        " A bound of 1 or more says nothing." if all(vacuous) else " One of the bounds is 1 or more and says nothing." if any(vacuous) else ""
    )  # fmt: skip
    epoch = int(max(x.epochs[-1] for x in lines.values())) + 1
    sentence = f"After epoch {epoch}, for the worst class, {listed(ends)}.{note}"
    sizes = f"Lines over epochs, the largest singular value: {'. '.join(told)}."
    return sizes, f"Lines over epochs, the worst class's error and its bound. {sentence}", sentence
