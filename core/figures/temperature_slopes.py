"""Why T can be too sharp and too soft: the size of the gradient and the ceiling of soft coverage, against T.

Arrays in, charts out; `core.coat.softness` has the mathematics.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from core.figures.frame import percent, promised
from core.figures.palette import COLOURS
from core.figures.temperature_frame import GREY, LEGEND, finished, log_axis, plotly


def gradient(
    temperatures: Sequence[float],
    slope: np.ndarray,
    study: np.ndarray,
    here: float,
    silent_below: float,
    *,
    unit: str = "logit",
    height: int = 380,
) -> Any:
    """How large the gradient is against T, beside its bound 1/(4T).

    Args:
        temperatures: `(S,)` rising T.
        slope: `(S,)` |d soft / d tau| of the image at its threshold.
        study: `(S,)` mean over the study's images, where a fit starts.
        here: Current T.
        silent_below: T below which the gradient is gone in most images.
        unit: `"logit"` or `"probability"`.
        height: Height in pixels.
    """
    go, _ = plotly()

    t = np.asarray(temperatures, float)
    bound = 1 / (4 * t)
    floor = float(bound.min()) / 30
    figure = go.Figure()
    for name, values, look in (
        ("the most it can be, 1/(4T)", bound, {"color": GREY, "width": 2, "dash": "dash"}),
        ("mean of all images, where training starts", study, {"color": COLOURS["COAT"], "width": 3}),
        ("this image", slope, {"color": COLOURS["AA-CRC"], "width": 3, "dash": "6px,3px"}),
    ):
        figure.add_trace(
            go.Scatter(
                x=t,
                y=np.maximum(values, floor),
                mode="lines",
                line=look,
                name=name,
                hovertemplate="T = %{x:g}: %{y:.3g}<extra></extra>",
            )
        )
    if silent_below > t[0]:
        figure.add_vrect(x0=t[0], x1=silent_below, fillcolor="rgba(138,143,150,0.18)", line={"width": 0})
        figure.add_annotation(
            x=np.log10(np.sqrt(t[0] * silent_below)),
            y=0.03,
            yref="paper",
            yanchor="bottom",
            showarrow=False,
            text="gone in<br>most images",
        )
    figure.add_vline(x=here, line={"color": GREY, "width": 1.5})
    figure.update_xaxes(log_axis((t[0], t[-1]), "T in logits" if unit == "logit" else "T in probabilities"))
    figure.update_yaxes(
        {
            "type": "log",
            "title": {"text": "size of the gradient"},
            "fixedrange": True,
            "dtick": 1,
            "gridcolor": "rgba(138,143,150,0.25)",
        }
    )
    at = int(np.argmin(np.abs(np.log(t) - np.log(here))))
    heard = percent(float(study[at] / bound[at]))
    sentence = f"At T = {t[at]:g} the mean gradient has {heard} of the size it could have."
    said = (
        f"Line chart of the size of the gradient against T, both axes logarithmic. {sentence} For this image it has "
        f"{percent(float(slope[at] / bound[at]))}. Below T = {silent_below:.2g} it is gone in most images."
    )
    return finished(
        figure,
        said,
        height,
        sentence,
        margin={"l": 0, "r": 0, "t": 64, "b": 0},
        legend=LEGEND | {"y": 1.02},
    )


def ceilings(
    temperatures: Sequence[float],
    ceiling: np.ndarray,
    best: np.ndarray,
    here: float,
    alpha: float,
    *,
    unit: str,
    height: int = 380,
) -> Any:
    """The highest soft coverage that any threshold gives, against T, with the target.

    Args:
        temperatures: `(S,)` rising T.
        ceiling: `(S,)` highest soft coverage of any image.
        best: `(S,)` highest soft coverage of this image.
        here: Current T.
        alpha: Share that may be missed.
        unit: `"logit"` or `"probability"`.
        height: Height in pixels.
    """
    go, _ = plotly()

    t = np.asarray(temperatures, float)
    figure = go.Figure()
    for name, values, look in (
        (
            "the ceiling of all images, σ(1/T)" if unit == "probability" else "any image: no ceiling",
            ceiling,
            {"color": GREY, "width": 3},
        ),
        ("this image", best, {"color": COLOURS["AA-CRC"], "width": 3, "dash": "6px,3px"}),
    ):
        figure.add_trace(
            go.Scatter(
                x=t,
                y=100 * values,
                mode="lines",
                line=look,
                name=name,
                hovertemplate="T = %{x:g}: %{y:.1f} %<extra></extra>",
            )
        )
    figure.add_hline(
        y=100 * (1 - alpha),
        line={"color": GREY, "width": 1.5, "dash": "dot"},
        annotation_text=f"promised {promised(alpha)}",
        annotation_position="bottom left",
    )
    out = np.flatnonzero(ceiling < 1 - alpha)
    if len(out):
        figure.add_vrect(x0=t[out[0]], x1=t[-1], fillcolor="rgba(138,143,150,0.18)", line={"width": 0})
        figure.add_annotation(
            x=np.log10(np.sqrt(t[out[0]] * t[-1])),
            y=0.03,
            yref="paper",
            yanchor="bottom",
            showarrow=False,
            text="out of<br>reach",
        )
    figure.add_vline(x=here, line={"color": GREY, "width": 1.5})
    figure.update_xaxes(log_axis((t[0], t[-1]), "T in logits" if unit == "logit" else "T in probabilities"))
    figure.update_yaxes(
        {
            "title": {"text": "highest soft coverage, in %"},
            "range": [45, 102],
            "fixedrange": True,
            "gridcolor": "rgba(138,143,150,0.25)",
        }
    )
    if unit == "logit":
        sentence = "In logits no T has a ceiling: a threshold can always go lower."
    elif len(out):
        sentence = f"In probabilities no threshold reaches {promised(alpha)} above T = {1 / np.log((1 - alpha) / alpha):.2f}."
    else:
        sentence = f"In probabilities every T shown here can reach {promised(alpha)}."
    low = np.flatnonzero(best < 1 - alpha)
    own = (
        f" This image cannot reach the target from T = {t[low[0]]:g} on."
        if len(low)
        else " This image can reach it at every T shown."
    )
    said = f"Line chart of the highest soft coverage that any threshold gives, against T. {sentence}{own}"
    return finished(
        figure,
        said,
        height,
        sentence,
        margin={"l": 0, "r": 0, "t": 64, "b": 0},
        legend=LEGEND | {"y": 1.02},
    )
