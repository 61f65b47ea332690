"""What single parts and settings of CAR do to the worst classes: differences with their noise, one row a question; and one small chart a setting.

Points are shares times 100. Nothing is computed here but positions; who compares says what chance alone would do.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from core.figures.confusion_given import Panel
from core.figures.confusion_look import line_of_method, marker_of_method
from core.figures.frame import listed
from core.figures.temperature_frame import GREY, LEGEND, finished, plotly

SHAPES = ("circle", "square", "diamond", "triangle-up")
"""Shapes of sets, in the order in which they come."""

BLUE, BAND = "#0072B2", "rgba(138,143,150,0.22)"


@dataclass(frozen=True)
class Effect:
    """One difference.

    Attributes:
        question: What is switched on.
        data: The set in words.
        points: What it does to the worst classes, in points.
        reach: How far another seed would often move it, in points; None where it is not known.
        overall: What it does to overall accuracy, in points.
    """

    question: str
    data: str
    points: float
    reach: float | None
    overall: float


def effects(found: Sequence[Effect], *, height: int = 0) -> Any:
    """Differences as dots, one row a question, its words above the row, so that it fits a narrow screen.

    Args:
        found: Differences, in the order of their questions; several sets of one question are neighbours.
        height: Height in pixels; 0 takes what the rows need.

    Returns:
        A Plotly figure. Filled: the worst classes, with its reach. Hollow: overall accuracy.

    Raises:
        ValueError: None at all.
    """
    if not found:
        raise ValueError("There is no difference to draw.")
    go, make_subplots = plotly()

    questions = list(dict.fromkeys(e.question for e in found))
    sets = list(dict.fromkeys(e.data for e in found))
    figure = make_subplots()
    for at, data in enumerate(sets):
        shape = SHAPES[at % len(SHAPES)]
        mine = [e for e in found if e.data == data]
        up = 0.0 if len(sets) == 1 else 0.36 * (at / (len(sets) - 1) - 0.5)
        y = [questions.index(e.question) + 0.16 + up for e in mine]
        bars = [0.0 if e.reach is None else e.reach for e in mine]
        figure.add_trace(
            go.Scatter(
                x=[round(e.overall, 3) for e in mine], y=y, mode="markers", name=f"{data}, overall accuracy", cliponaxis=False,
                marker={"symbol": f"{shape}-open", "size": 11, "color": GREY, "line": {"width": 2}},
                hovertemplate="%{x:+.1f} points overall<extra></extra>",
            )
        )  # fmt: skip
        figure.add_trace(
            go.Scatter(
                x=[round(e.points, 3) for e in mine], y=y, mode="markers", name=f"{data}, worst classes", cliponaxis=False,
                marker={"symbol": shape, "size": 13, "color": BLUE}, hovertemplate="%{x:+.1f} points of the worst classes<extra></extra>",
                error_x={"type": "data", "array": bars, "color": BLUE, "thickness": 1.8, "width": 4} if any(bars) else None,
            )
        )  # fmt: skip
    for k, question in enumerate(questions):  # a line of zero a row, clear of the words above it
        figure.add_shape(
            type="line",
            x0=0,
            x1=0,
            y0=k - 0.08,
            y1=k + 0.42,
            line={"color": GREY, "width": 1.6},
            layer="below",
        )
        figure.add_annotation(
            x=0, xref="paper", xanchor="left", y=k - 0.26, text=question, showarrow=False, font={"size": 14}, align="left",
        )  # fmt: skip
    ends = [v for e in found for v in (e.overall, e.points - (e.reach or 0), e.points + (e.reach or 0), 0.0)]
    room = 0.06 * (max(ends) - min(ends)) + 0.3
    figure.update_xaxes(
        range=[min(ends) - room, max(ends) + room], title={"text": "points, with minus without", "standoff": 4}, zeroline=False, fixedrange=True,
        gridcolor="rgba(138,143,150,0.18)", tickfont={"size": 13}, nticks=6,
    )  # fmt: skip
    figure.update_yaxes(
        range=[len(questions) - 0.4, -0.6],
        showticklabels=False,
        showgrid=False,
        zeroline=False,
        fixedrange=True,
    )
    each = [
        f"{e.question}, {e.data}: {e.points:+.1f} points of the worst classes"
        + ("" if e.reach is None else f" (± {e.reach:.1f})")
        + f", {e.overall:+.1f} overall"
        for e in found
    ]
    said = f"Dots, one row a question, with minus without. {'; '.join(each)}."
    return finished(
        figure, said, height or 90 + 70 * len(questions), margin={"l": 12, "r": 12, "t": 8, "b": 8},
        legend=LEGEND | {"y": 1.01, "font": {"size": 13}},
    )  # fmt: skip


@dataclass(frozen=True)
class Setting:
    """One setting that was moved while the others stayed.

    Attributes:
        label: Its name.
        values: Its values, rising.
        usual: The one that all other runs have.
        worst: The worst classes' mean recall at each, in [0, 1].
        overall: Overall accuracy at each.
        reference: The worst classes' mean recall without the regularizer; NaN draws none.
        reach: How far two seeds of one setting would often lie apart, in [0, 1]; None draws none.
    """

    label: str
    values: Sequence[float]
    usual: float
    worst: Sequence[float]
    overall: Sequence[float]
    reference: float = math.nan
    reach: float | None = None


def setting_charts(found: Sequence[Setting], *, height: int = 220) -> tuple[Panel, ...]:
    """One small chart a setting, all on one scale: values stand at even steps, the usual one is bold.

    Args:
        found: Settings.
        height: Height in pixels of each.

    Returns:
        Plotly figures without a legend: blue circles are the worst classes, grey squares overall accuracy, the dotted line is CE. A grey
        band is twice the noise around the usual value's recall: what chance alone would often do.

    Raises:
        ValueError: A setting whose usual value or whose lengths are amiss.
    """
    for one in found:
        if one.usual not in one.values or not len(one.values) == len(one.worst) == len(one.overall):
            raise ValueError(
                f"{one.label} needs a recall for each value, and its usual value {one.usual:g} among them."
            )
    shown = [
        v for s in found for v in (*s.worst, *s.overall, *([] if math.isnan(s.reference) else [s.reference]))
    ]
    span = [100 * min(shown, default=0) - 3, 100 * max(shown, default=1) + 3]
    return tuple(Panel(s.label, _setting(s, span, height)) for s in found)


def _setting(one: Setting, span: Sequence[float], height: int) -> Any:
    go, make_subplots = plotly()

    figure = make_subplots()
    at = list(range(len(one.values)))
    here = list(one.values).index(one.usual)
    lines: Mapping[str, tuple[Sequence[float], str]] = {
        "overall": (one.overall, "ce"),
        "worst classes": (one.worst, "car-count"),
    }
    for name, (values, look) in lines.items():
        figure.add_trace(
            go.Scatter(
                x=at, y=[round(100 * v, 2) for v in values], mode="lines+markers", name=name, line=line_of_method(look, 2.5), cliponaxis=False,
                marker=marker_of_method(look, 11), hovertemplate=f"{name} %{{y:.1f}} %<extra></extra>",
            )
        )  # fmt: skip
    if not math.isnan(one.reference):
        figure.add_trace(
            go.Scatter(
                x=[-0.3, len(at) - 0.7], y=[round(100 * one.reference, 2)] * 2, mode="lines", name="worst, CE", hoverinfo="skip",
                line={"color": GREY, "width": 1.6, "dash": "dot"},
            )
        )  # fmt: skip
    if one.reach is not None:
        middle = one.worst[here]
        figure.add_hrect(
            y0=100 * (middle - one.reach), y1=100 * (middle + one.reach), fillcolor=BAND, line={"width": 0}, layer="below"
        )  # fmt: skip
    names = [f"<b>{v:g}</b>" if v == one.usual else f"{v:g}" for v in one.values]
    plain = {"fixedrange": True, "zeroline": False, "automargin": True, "tickfont": {"size": 13}}
    figure.update_xaxes(
        plain | {"tickvals": at, "ticktext": names, "range": [-0.3, len(at) - 0.7], "showgrid": False}
    )
    figure.update_yaxes(
        plain
        | {"range": list(span), "ticksuffix": "\u00a0%", "nticks": 5, "gridcolor": "rgba(138,143,150,0.25)"}
    )
    each = [
        f"{v:g} gives {100 * w:.1f} and {100 * o:.1f}\u00a0%"
        for v, w, o in zip(one.values, one.worst, one.overall, strict=True)
    ]
    ce = (
        ""
        if math.isnan(one.reference)
        else f" CE finds {100 * one.reference:.1f}\u00a0% of the worst classes."
    )
    said = f"Lines over values of {one.label}, recall of the worst classes and overall accuracy: {listed(each)}; usual is {one.usual:g}.{ce}"
    return finished(
        figure, said, height, margin={"l": 8, "r": 12, "t": 8, "b": 8}, showlegend=False
    )  # fmt: skip
