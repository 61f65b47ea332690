"""What each loss takes for one logit distance, and how hard it pushes: penalty and slope against the distance, the valley's floor shaded."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from core.figures.frame import listed
from core.figures.margin_look import LOSS_TITLES, checked_losses, line_of_loss, marker_of_loss
from core.figures.temperature_frame import GREY, LEGEND, finished, plotly

FLOOR = "rgba(0,114,178,0.13)"
"""The floor has the margin's blue."""


def profile(
    distance: np.ndarray,
    penalty: Mapping[str, np.ndarray],
    slope: Mapping[str, np.ndarray],
    margin: float | None = None,
    *,
    fixed: Mapping[str, float] | None = None,
    height: int = 430,
) -> Any:
    """Two panels over each other, the same distance under both.

    Args:
        distance: `(D,)` rising distances in logits.
        penalty: Loss -> `(D,)` what it adds to cross-entropy; drawn from its own lowest value up.
        slope: Loss -> `(D,)` derivative of the penalty by the distance; the same losses.
        margin: m in logits; the floor from 0 to m is shaded and named. None shades nothing.
        fixed: Loss -> d*, a marker on its slope curve: there cross-entropy pulls just as hard the other way.
        height: Height in pixels.

    Returns:
        A Plotly figure.

    Raises:
        ValueError: Losses or lengths differ, or an unknown loss.
    """
    go, make_subplots = plotly()

    d, up, down = _checked(distance, penalty, slope)
    losses = list(up)
    figure = make_subplots(
        rows=2,
        shared_xaxes=True,
        vertical_spacing=0.13,
        subplot_titles=("penalty, from its lowest point up", "slope: how hard it pulls the distance down"),
    )
    for loss in losses:
        for row, values in ((1, up[loss]), (2, down[loss])):
            figure.add_trace(
                go.Scatter(
                    x=np.round(d, 3), y=np.round(values, 5), mode="lines", line=line_of_loss(loss, 3 if loss == "margin" else 2.5),
                    name=LOSS_TITLES[loss], legendgroup=loss, showlegend=row == 1,
                    hovertemplate=f"{LOSS_TITLES[loss]} at %{{x:.1f}}: %{{y:.3f}}<extra></extra>",
                ), row, 1,
            )  # fmt: skip
    rests = {x: float(v) for x, v in (fixed or {}).items() if x in losses and d[0] <= v <= d[-1]}
    for loss, at in rests.items():
        look = marker_of_loss(loss, 13) | {"line": {"color": GREY, "width": 1.5}}
        figure.add_trace(
            go.Scatter(
                x=[at], y=[float(np.interp(at, d, down[loss]))], mode="markers", marker=look, legendgroup=loss, showlegend=False,
                hovertemplate=f"{LOSS_TITLES[loss]}: at rest with cross-entropy, d* = {at:.2f}<extra></extra>",
            ), 2, 1,
        )  # fmt: skip
    if margin is not None and margin > 0:
        for row in (1, 2):
            figure.add_vrect(
                x0=0, x1=margin, fillcolor=FLOOR, line={"width": 0}, layer="below", row=row, col=1
            )
            figure.add_vline(x=margin, line={"color": GREY, "width": 1.5, "dash": "dot"}, row=row, col=1)
        where = {
            "x": margin / 2,
            "y": 1,
            "yref": "y domain",
            "yanchor": "top",
            "xanchor": "center",
            "showarrow": False,
        }
        figure.add_annotation(
            {**where, "text": f"the margin's flat floor, up to m = {margin:g}"}, row=1, col=1
        )
    axis = {
        "fixedrange": True,
        "zeroline": False,
        "showgrid": False,
        "range": [float(d[0]), float(d[-1])],
        "automargin": True,
    }
    figure.update_xaxes(axis)
    figure.update_xaxes({"title": {"text": "logit distance", "standoff": 4}}, row=2, col=1)
    figure.update_yaxes(
        {
            "fixedrange": True, "gridcolor": "rgba(138,143,150,0.25)", "zeroline": True, "zerolinecolor": "rgba(138,143,150,0.6)", "nticks": 5,
            "automargin": True,
        }
    )  # fmt: skip
    return finished(
        figure, _words(d, up, down, margin, rests), height, _sentence(d, up, down, margin), margin={"l": 46, "r": 8, "t": 58, "b": 44},
        legend=LEGEND | {"y": 1.09}, hovermode="closest",
    )  # fmt: skip


def _checked(
    distance: np.ndarray, penalty: Mapping[str, np.ndarray], slope: Mapping[str, np.ndarray]
) -> tuple[np.ndarray, dict[str, np.ndarray], dict[str, np.ndarray]]:
    losses = checked_losses(penalty, "A chart of penalties")
    if set(slope) != set(losses):
        raise ValueError(
            f"Penalties of {listed(losses)} need slopes of the same losses; they are of {listed(list(slope)) or 'none'}."
        )
    d = np.asarray(distance, float)
    for x in losses:
        if len(penalty[x]) != len(d) or len(slope[x]) != len(d):
            raise ValueError(
                f"There are {len(d)} distances, and {x} has {len(penalty[x])} penalties and {len(slope[x])} slopes."
            )
    if len(d) < 2 or not (np.diff(d) > 0).all():
        raise ValueError("The distances of a profile must rise, and there must be two at least.")
    up = {x: np.asarray(penalty[x], float) - float(np.min(penalty[x])) for x in losses}
    return d, up, {x: np.asarray(slope[x], float) for x in losses}


def _flat(d: np.ndarray, down: np.ndarray, end: float) -> bool:
    """No slope anywhere between 0 and an end."""
    inside = (d >= 0) & (d < end - 1e-9)
    return bool(inside.any() and np.abs(down[inside]).max() <= 1e-6)


def _sentence(
    d: np.ndarray, up: Mapping[str, np.ndarray], down: Mapping[str, np.ndarray], margin: float | None
) -> str:
    """What the margin does not do, and the others do."""
    if margin is None or margin <= 0 or "margin" not in up or not _flat(d, down["margin"], margin):
        return ""
    some = [LOSS_TITLES[x] for x in up if x != "margin" and not _flat(d, down[x], margin)]
    if not some:
        return f"Closer than m = {margin:g} the margin does not pull."
    verb = "does" if len(some) == 1 else "do"
    return f"Closer than m = {margin:g} the margin does not pull; {listed(some)} {verb}."


def _words(
    d: np.ndarray,
    up: Mapping[str, np.ndarray],
    down: Mapping[str, np.ndarray],
    margin: float | None,
    rests: Mapping[str, float],
) -> str:
    at = float(d[-1]) if margin is None else float(np.clip((margin or d[-1]) / 2, d[0], d[-1]))
    each = [
        f"{LOSS_TITLES[x]} rises to {up[x][-1]:.3g} and pulls with {float(np.interp(at, d, down[x])) + 0.0:.3g} at {at:g}"
        for x in up
    ]
    said = f"Two line charts against one logit distance from {d[0]:g} to {d[-1]:g}: penalty and slope. {'; '.join(each)}."
    if margin is not None and margin > 0:
        said += f" The floor from 0 to m = {margin:g} is shaded."
    if rests:
        said += " Points of rest: " + listed([f"{LOSS_TITLES[x]} {v:.2f}" for x, v in rests.items()]) + "."
    return said
