"""How fits of AT and COAT go, while they run and afterwards: loss and out-of-fold gap against epochs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from core.figures.frame import listed
from core.figures.temperature_frame import finished, line_of, plotly


def history(rows: Mapping[str, Sequence[Mapping[str, float]]], epochs: int, *, height: int = 300) -> Any:
    """How fits of AT and COAT go: loss and out-of-fold gap against epochs, one line a member, the latest one thick.

    Args:
        rows: Method -> rows of member, epoch, loss and gap, so far. A panel for each method's loss and one for the gap.
        epochs: Epochs of a member: the length of the axis.
        height: Height in pixels.
    """
    go, make_subplots = plotly()

    names = [*(f"loss of {method}" for method in rows), "gap on images left out"]
    end = len(names)
    figure = make_subplots(cols=end, horizontal_spacing=0.08, subplot_titles=names)
    last = [m for m in rows if rows[m]][-1:] or [""]
    for own, (method, all_rows) in enumerate(rows.items(), 1):
        members = sorted({r["member"] for r in all_rows})
        for member in members:
            mine = [r for r in all_rows if r["member"] == member]
            newest = method == last[0] and member == members[-1]
            look = line_of(method, 3.5 if newest else 1.5)
            x = [r["epoch"] + 1 for r in mine]
            for col, key, scale in ((own, "loss", 1.0), (end, "gap", 100.0)):
                y = [scale * r[key] for r in mine]
                trace = go.Scatter(
                    x=x,
                    y=y,
                    mode="lines",
                    line=look,
                    name=method,
                    opacity=1 if newest else 0.65,
                    showlegend=False,
                )
                trace.hovertemplate = f"{method}, predictor {int(member) + 1}: %{{y:.3g}}<extra></extra>"
                figure.add_trace(trace, 1, col)
    figure.update_xaxes(
        {
            "range": [1, max(epochs, 2)],
            "title": {"text": "epoch", "standoff": 4},
            "fixedrange": True,
            "showgrid": False,
        }
    )
    figure.update_yaxes({"rangemode": "tozero", "fixedrange": True, "gridcolor": "rgba(138,143,150,0.25)"})
    figure.update_yaxes({"rangemode": "normal"}, row=1, col=end)
    ends = [
        f"{m} has a gap of {100 * rows[m][-1]['gap']:.1f} points on the images left out"
        for m in rows
        if rows[m]
    ]
    told = listed(ends) if ends else "Nothing yet"
    said = f"Line charts against epochs, one line a predictor: the loss of {listed(list(rows))}, and the gap. {told}."
    return finished(figure, said, height, margin={"l": 0, "r": 0, "t": 34, "b": 0})
