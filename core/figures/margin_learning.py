"""Two losses learning side by side: training loss, and ECE and Dice on images left out, against epochs, while they run and afterwards."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

from core.figures.frame import listed
from core.figures.margin_look import LOSS_TITLES, checked_losses, line_of_loss, marker_of_loss
from core.figures.temperature_frame import LEGEND, finished, plotly

PANELS = {"loss": "training loss", "ece": "ECE, %", "dice": "Dice, %"}


def learning(rows: Mapping[str, Sequence[Mapping[str, float]]], epochs: int, *, height: int = 300) -> Any:
    """Three panels: loss, validation ECE, validation Dice.

    Args:
        rows: Loss -> rows so far with `epoch` (0 first), `loss`, `ece` and `dice` (0 to 1). A row may lack `ece` and `dice`, or hold NaN or
            None there: the line then bridges to the next one that has them. Empty lists are fine.
        epochs: Epochs of a run: the length of the axis.
        height: Height in pixels.

    Returns:
        A Plotly figure with alt text.

    Raises:
        ValueError: No loss, or an unknown one.
    """
    go, make_subplots = plotly()

    losses = checked_losses(rows, "A chart of learning")
    figure = make_subplots(cols=3, horizontal_spacing=0.08, subplot_titles=list(PANELS.values()))
    for loss in losses:
        for col, key in enumerate(PANELS, 1):
            known = _known(rows[loss], key)
            scale = 1.0 if key == "loss" else 100.0
            x: list[Any] = [e + 1 for e, _ in known]
            y: list[Any] = [round(scale * v, 5) for _, v in known]
            common = {"legendgroup": loss, "name": LOSS_TITLES[loss]}
            figure.add_trace(
                go.Scatter(
                    x=x, y=y, mode="lines", line=line_of_loss(loss, 3), showlegend=False,
                    hovertemplate=f"{LOSS_TITLES[loss]}, epoch %{{x}}: %{{y:.3g}}<extra></extra>", **common,
                ), 1, col,
            )  # fmt: skip
            figure.add_trace(
                go.Scatter(
                    x=x[-1:] or [None], y=y[-1:] or [None], mode="lines+markers", line=line_of_loss(loss, 3), marker=marker_of_loss(loss, 12),
                    hoverinfo="skip", showlegend=col == 1, cliponaxis=False, **common,
                ), 1, col,
            )  # fmt: skip
    figure.update_xaxes(
        {
            "range": [1, max(epochs, 2)], "title": {"text": "epoch", "standoff": 4}, "fixedrange": True, "showgrid": False, "zeroline": False,
            "automargin": True, "tickformat": "d", "nticks": 6,
        }
    )  # fmt: skip
    grid = {
        "fixedrange": True,
        "gridcolor": "rgba(138,143,150,0.25)",
        "rangemode": "tozero",
        "zeroline": False,
    }
    figure.update_yaxes({**grid, "automargin": True, "nticks": 5})
    told = [t for t in (_last(x, rows[x]) for x in losses) if t]
    said = (
        f"Three line charts against epochs under {listed([LOSS_TITLES[x] for x in losses])}: training loss, and ECE and Dice on images left "
        f"out. {'. '.join(told) if told else 'Nothing yet'}."
    )
    return finished(
        figure,
        said,
        height,
        margin={"l": 36, "r": 10, "t": 66, "b": 44},
        legend=LEGEND | {"y": 1.13},
    )


def _known(rows: Sequence[Mapping[str, Any]], key: str) -> list[tuple[int, float]]:
    """Epoch and value where there is one."""
    pairs = [(int(r["epoch"]), r.get(key)) for r in rows]
    return [(e, float(v)) for e, v in pairs if v is not None and math.isfinite(float(v))]


def _last(loss: str, rows: Sequence[Mapping[str, Any]]) -> str:
    ends = {key: known[-1][1] for key in PANELS if (known := _known(rows, key))}
    if not ends:
        return ""
    parts = [f"a training loss of {ends['loss']:.3g}"] if "loss" in ends else []
    parts += [f"an ECE of {100 * ends['ece']:.1f}\u00a0%"] if "ece" in ends else []
    parts += [f"a Dice of {100 * ends['dice']:.1f}\u00a0%"] if "dice" in ends else []
    return f"After epoch {int(rows[-1]['epoch']) + 1} {LOSS_TITLES[loss]} has {listed(parts)}"
