"""The plane of two logit distances: its heights, its flat floor and the arrows that say where a loss pushes. For the valley and the paths.

What it is not: a chart, or the mathematics (`core.margin.penalty` has it). Three classes: the two axes are the distances of the true class's
logit to each of the other two; negative means that another class is ahead.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from core.figures.frame import percent
from core.figures.margin_look import LOSS_TITLES, checked_losses, exact
from core.figures.temperature_frame import GREY

INK = "#16191D"
"""Ink on the map: its colours are light on every page, so its ink is dark on every page."""

HEIGHTS = [[0.0, "#F7FAFC"], [0.2, "#DCEBF5"], [0.45, "#B3D5E9"], [0.7, "#8BBFDD"], [1.0, "#5AA3CC"]]
"""From the floor up: a blue that darkens evenly and never so far that dark arrows vanish on it."""

ARROWS = 11
"""Arrows along one side."""

FLAT = 1e-3
"""Pushes below this share of the strongest one, and heights below this share of the highest, count as none."""


@dataclass(frozen=True)
class Ground:
    """One loss's penalty over two logit distances.

    Attributes:
        loss: Short key of the loss.
        axis: `(A,)` rising distances in logits, the same for both; 41 to 81 points are plenty.
        penalty: `(A, A)` what the loss adds to cross-entropy; rows are the second distance, columns the first.
        push: `(2, A, A)` how one step of descent moves the first and the second distance (the true class's logit belongs to both, so with
            slopes g1 and g2 these are -(2 g1 + g2) and -(g1 + 2 g2)); None draws no arrows. Only direction and relative size are drawn.
        margin: m for the margin loss, None for others.
        fixed: d*, where descent comes to rest on a perfectly fitted pixel (both distances alike, METHODS 2.2); None where there is no such
            point (cross-entropy), or it is not known.
        confidence: Confidence at d*, 0 to 1, or None.
    """

    loss: str
    axis: np.ndarray
    penalty: np.ndarray
    push: np.ndarray | None = None
    margin: float | None = None
    fixed: float | None = None
    confidence: float | None = None

    @property
    def title(self) -> str:
        """The loss in words, with m."""
        return LOSS_TITLES[self.loss] + ("" if self.margin is None else f", m = {self.margin:g}")

    @property
    def heights(self) -> np.ndarray:
        """`(A, A)` the penalty above its lowest point; numerical dust is nothing."""
        up = np.asarray(self.penalty, float) - float(np.min(self.penalty))
        return np.where(up < 1e-12, 0.0, up)

    @property
    def flat_share(self) -> float:
        """Share of the plane where nothing pushes; NaN without a push."""
        if self.push is None:
            return float("nan")
        size = np.hypot(*np.asarray(self.push, float))
        return float((size <= FLAT * max(float(size.max()), 1e-12)).mean())


def checked_ground(ground: Ground) -> Ground:
    """The plane, if its parts belong together.

    Raises:
        ValueError: Shapes differ, the axis does not rise, a number is not finite, or the loss is unknown.
    """
    checked_losses([ground.loss], "The valley")
    a = len(ground.axis)
    if np.shape(ground.penalty) != (a, a) or (ground.push is not None and np.shape(ground.push) != (2, a, a)):
        raise ValueError(
            f"An axis of {a} distances needs a penalty of ({a}, {a}) and a push of (2, {a}, {a}); they are "
            f"{np.shape(ground.penalty)} and {None if ground.push is None else np.shape(ground.push)}."
        )
    if a < 2 or not (np.diff(np.asarray(ground.axis, float)) > 0).all():
        raise ValueError("The distances of the valley's axis must rise, and there must be two at least.")
    parts = [ground.axis, ground.penalty, *([] if ground.push is None else [ground.push])]
    if not all(np.isfinite(np.asarray(p, float)).all() for p in parts):
        raise ValueError("The valley holds values that are not finite; give a plane without NaN.")
    return ground


def heat(go: Any, ground: Ground, top: float | None = None, bar: bool = False, at: float = 1.02) -> list[Any]:
    """The map of heights with thin height lines, and the outline of the flat floor where there is one.

    Args:
        go: Plotly's graph objects.
        ground: The plane.
        top: Height of the darkest colour; the plane's own highest point when None.
        bar: Draw the colour bar.
        at: Where the colour bar stands, as a share of the figure's width.
    """
    z = ground.heights
    highest = float(z.max()) if top is None else top
    scale = {
        "title": {"text": "penalty", "side": "right"},
        "thickness": 12,
        "x": at,
        "xpad": 4,
        "tickformat": ".2~g",
        "nticks": 5,
    }
    axis = [round(float(v), 3) for v in ground.axis]
    traces = [
        go.Contour(
            x=axis, y=axis, z=np.round(z, 5), colorscale=HEIGHTS, zmin=0, zmax=max(highest, 1e-9), showscale=bar, colorbar=scale,
            contours={"coloring": "heatmap", "start": highest / 8, "end": highest, "size": max(highest, 1e-9) / 8, "showlines": True},
            line={"color": "rgba(22,25,29,0.22)", "width": 1}, name="", showlegend=False,
            hovertemplate="distances %{x:.1f} and %{y:.1f}: penalty %{z:.3f}<extra></extra>",
        )
    ]  # fmt: skip
    if has_floor(ground):
        level = FLAT * float(z.max())
        traces.append(
            go.Contour(
                x=axis, y=axis, z=np.round(z, 5), contours={"start": level, "end": level, "size": 1, "coloring": "none"}, showscale=False,
                hoverinfo="skip", showlegend=False, line={"color": INK, "width": 2, "dash": "dot", "smoothing": 0},
            )
        )  # fmt: skip
    return traces


def has_floor(ground: Ground) -> bool:
    """Whether there is a flat floor with a border: a patch of no height that does not fill the plane."""
    z = ground.heights
    if float(z.max()) <= 1e-9:
        return False
    share = float((z <= FLAT * float(z.max())).mean())
    return 0.01 < share < 0.999


def arrows(go: Any, ground: Ground, per_side: int = ARROWS, size: float = 8) -> list[Any]:
    """Arrows where the loss pushes, dots where it does not. The plane must be drawn with equal axes.

    Args:
        go: Plotly's graph objects.
        ground: The plane.
        per_side: Arrows along one side.
        size: Size of an arrow's head in pixels.
    """
    if ground.push is None:
        return []
    push = np.asarray(ground.push, float)
    a = len(ground.axis)
    at = np.unique(np.linspace(a / (2 * per_side), a - 1 - a / (2 * per_side), per_side).round().astype(int))
    axis = np.asarray(ground.axis, float)
    x, y = np.meshgrid(axis[at], axis[at])
    dx, dy = (p[np.ix_(at, at)] for p in push)
    length, most = np.hypot(dx, dy), max(float(np.hypot(*push).max()), 1e-12)
    still = length <= FLAT * most
    room = 0.8 * (axis[-1] - axis[0]) / per_side
    # the root keeps weak pushes visible
    long = np.where(still, 0.0, room * np.sqrt(length / most)) / np.maximum(length, 1e-12)
    tip_x, tip_y = x + long * dx, y + long * dy
    moving = ~still
    traces = []
    if moving.any():
        gone = np.full(int(moving.sum()), None)
        pairs = [np.stack([s[moving], t[moving], gone], 1).ravel() for s, t in ((x, tip_x), (y, tip_y))]
        line_x, line_y = ([None if v is None else round(float(v), 3) for v in p] for p in pairs)
        common = {"hoverinfo": "skip", "showlegend": False}
        traces = [
            go.Scatter(x=line_x, y=line_y, mode="lines", line={"color": INK, "width": 1.4}, opacity=0.75, **common),
            go.Scatter(
                x=np.round(tip_x[moving], 3), y=np.round(tip_y[moving], 3), mode="markers", opacity=0.75,
                marker={
                    "symbol": "arrow", "size": size, "color": INK, "angleref": "up",
                    "angle": np.round(np.degrees(np.arctan2(dx[moving], dy[moving])), 1), "line": {"width": 0},
                }, **common,
            ),
        ]  # fmt: skip
    if still.any():
        dots = {"symbol": "circle", "size": 3.5, "color": INK}
        traces.append(
            go.Scatter(
                x=np.round(x[still], 3), y=np.round(y[still], 3), mode="markers", marker=dots, opacity=0.45,
                hoverinfo="skip", showlegend=False,
            )
        )  # fmt: skip
    return traces


def resting(go: Any, ground: Ground, size: float = 17) -> list[Any]:
    """The fixed point as a star on the diagonal; nothing where it is unknown or off the plane."""
    if not _on_plane(ground):
        return []
    return [
        go.Scatter(
            x=[ground.fixed], y=[ground.fixed], mode="markers", showlegend=False, cliponaxis=False, hoverinfo="text",
            marker={"symbol": "star", "size": size, "color": "#F0E442", "line": {"color": INK, "width": 1.5}},
            text=[" ".join(_rest_words(ground))],
        )
    ]  # fmt: skip


def resting_name(ground: Ground) -> list[dict[str, Any]]:
    """The words beside the star, as annotations."""
    if not _on_plane(ground) or ground.fixed is None:
        return []
    low = ground.fixed < (ground.axis[0] + ground.axis[-1]) / 2
    side = ("left", "bottom", 8, 8) if low else ("right", "top", -10, -12)
    first, *more = _rest_words(ground)
    return [label(ground.fixed, ground.fixed, "<br>".join([f"<b>{first}</b>", *more]), *side)]


def label(
    x: float, y: float, text: str, xanchor: str, yanchor: str, xshift: int, yshift: int
) -> dict[str, Any]:
    """Words on the map, on a pale ground of their own."""
    return {
        "x": x, "y": y, "text": text, "showarrow": False, "xanchor": xanchor, "yanchor": yanchor, "xshift": xshift, "yshift": yshift,
        "align": "left", "font": {"color": INK, "size": 14}, "bgcolor": "rgba(247,250,252,0.82)", "borderpad": 2,
    }  # fmt: skip


def _on_plane(ground: Ground) -> bool:
    return ground.fixed is not None and bool(ground.axis[0] <= ground.fixed <= ground.axis[-1])


def _rest_words(ground: Ground) -> list[str]:
    sure = [] if ground.confidence is None else [f"confidence {exact(ground.confidence)}"]
    return ["at rest, with CE", f"d* = {ground.fixed:.2f}", *sure]


def starting(go: Any, start: tuple[float, float]) -> Any:
    """The start of a roll as a ring; `label` names it."""
    return go.Scatter(
        x=[start[0]], y=[start[1]], mode="markers", hoverinfo="text", text=["start"], showlegend=False, cliponaxis=False,
        marker={"symbol": "circle-open", "size": 15, "color": INK, "line": {"width": 2.5}},
    )  # fmt: skip


def square(figure: Any, ground: Ground, row: int = 1, col: int = 1, n: int = 1, titles: bool = True) -> None:
    """Equal axes for a panel; `n` is its number among the figure's panels."""
    low, high = float(ground.axis[0]), float(ground.axis[-1])
    common = {
        "range": [low, high],
        "zeroline": False,
        "showgrid": False,
        "fixedrange": True,
        "constrain": "domain",
        "dtick": 5,
        "ticks": "",
    }
    first = {"title": {"text": "first distance, in logits", "standoff": 4}} if titles else {}
    second = {"title": {"text": "second distance", "standoff": 4}} if titles else {}
    figure.update_xaxes({**common, **first}, row=row, col=col)
    figure.update_yaxes(
        {**common, **second, "scaleanchor": f"x{n if n > 1 else ''}", "constraintoward": "top"},
        row=row,
        col=col,
    )
    if low < 0:
        for way in ({"x": 0.0}, {"y": 0.0}):
            (figure.add_vline if "x" in way else figure.add_hline)(
                **way, line={"color": GREY, "width": 1}, row=row, col=col
            )


def ground_words(ground: Ground) -> str:
    """The plane for people who do not see it."""
    z = ground.heights
    said = (
        f"Penalty of {ground.title} over two logit distances from {ground.axis[0]:g} to {ground.axis[-1]:g}. "
    )
    if float(z.max()) <= 1e-9:
        said += "It is zero everywhere: nothing but cross-entropy pulls. "
    else:
        said += f"It rises from its lowest point by up to {z.max():.3g}. "
    still = ground.flat_share
    if np.isfinite(still) and float(z.max()) > 1e-9:
        said += (
            "Nowhere is it flat: it pushes at every point. "
            if still < 0.005
            else f"On {percent(still)} of the plane {'nothing' if has_floor(ground) else 'next to nothing'} pushes. "
        )
    if ground.fixed is not None:
        sure = "" if ground.confidence is None else f" at a confidence of {exact(ground.confidence)}"
        said += f"Together with cross-entropy, descent comes to rest where both distances are {ground.fixed:.2f}{sure}."
    else:
        said += "Together with cross-entropy there is no point of rest."
    return said
