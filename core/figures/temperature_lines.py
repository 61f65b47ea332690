"""Lines against T: gap, coverage and area of the study at one alpha.

Methods that know no T are dashed level lines in their own colours. A gap never stands without set area: both are panels of one figure,
and *oracle* and *whole image* are named beside the gap.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from core.figures.frame import listed, percent
from core.figures.palette import COLOURS
from core.figures.temperature_frame import GREY, LEGEND, finished, line_of, log_axis, plotly

SPARSE = {"logit": (0.05, 0.25, 1.0, 4.0, 16.0), "probability": (0.005, 0.02, 0.1, 0.5)}
"""Few ticks: the panels are narrow on a phone."""

PANELS = ("gap, in points", "coverage", "marked area")


def lines(
    temperatures: Sequence[float],
    coat: np.ndarray,
    references: Mapping[str, np.ndarray],
    falling: tuple[str, np.ndarray],
    span: tuple[float, float],
    here: float,
    alpha: float,
    *,
    unit: str = "logit",
    run: tuple[float, np.ndarray] | None = None,
    height: int = 380,
) -> Any:
    """Gap, coverage and area along T at one alpha.

    Args:
        temperatures: `(V,)` rising T that were recorded; may be empty.
        coat: `(3, V)` gap, coverage and area of COAT there.
        references: CRC, plug-in, AT, oracle and whole image -> `(3,)`.
        falling: Name and `(3,)` figures of the predictor whose T falls.
        span: Smallest and largest T of the axis.
        here: Current T.
        alpha: Share that may be missed.
        unit: `"logit"` or `"probability"`.
        run: T and `(3,)` figures of COAT trained on the page.
        height: Height in pixels.

    Raises:
        ValueError: *oracle* or *whole image* is missing.
    """
    go, make_subplots = plotly()

    missing = [a for a in ("oracle", "whole image") if a not in references]
    if missing:
        raise ValueError(
            f"A gap is never shown without oracle and whole image beside it; {listed(missing)} is missing."
        )
    figure = make_subplots(cols=3, horizontal_spacing=0.07, subplot_titles=PANELS)
    for k in range(3):
        for name, values in references.items():
            if k and name in ("oracle", "whole image"):
                continue  # in these panels they would push everything else together; the table has them
            figure.add_trace(
                go.Scatter(
                    x=list(span), y=[100 * float(values[k])] * 2, mode="lines", line=line_of(name), name=name, legendgroup=name,
                    showlegend=k == 0, hovertemplate=f"{name} %{{y:.1f}}<extra></extra>",
                ), 1, k + 1,
            )  # fmt: skip
        figure.add_trace(
            go.Scatter(
                x=list(span), y=[100 * float(falling[1][k])] * 2, mode="lines", line={"color": COLOURS["COAT"], "width": 2, "dash": "dot"},
                name=f"COAT, {falling[0]}", legendgroup="falling", showlegend=k == 0, hovertemplate="COAT %{y:.1f}<extra></extra>",
            ), 1, k + 1,
        )  # fmt: skip
        if len(temperatures):
            figure.add_trace(
                go.Scatter(
                    x=list(temperatures), y=(100 * coat[k]).tolist(), mode="lines+markers", line=line_of("COAT", 3), marker={"size": 9},
                    name="COAT, T stays", legendgroup="COAT", showlegend=k == 0, hovertemplate="T = %{x:g}: %{y:.1f}<extra></extra>",
                ), 1, k + 1,
            )  # fmt: skip
        if run is not None:
            mark = {
                "symbol": "diamond",
                "size": 14,
                "color": COLOURS["COAT"],
                "line": {"width": 2, "color": GREY},
            }
            figure.add_trace(
                go.Scatter(
                    x=[run[0]], y=[100 * float(run[1][k])], mode="markers", marker=mark, name="this run", legendgroup="run",
                    showlegend=k == 0, hovertemplate="this run %{y:.1f}<extra></extra>",
                ), 1, k + 1,
            )  # fmt: skip
        figure.add_vline(x=here, line={"color": GREY, "width": 1.5}, row=1, col=k + 1)
        figure.update_xaxes(
            log_axis(span, f"T in {'logits' if unit == 'logit' else 'probabilities'}", SPARSE[unit]),
            row=1,
            col=k + 1,
        )
    figure.add_hline(y=100 * (1 - alpha), line={"color": GREY, "width": 1, "dash": "dot"}, row=1, col=2)
    figure.update_yaxes({"fixedrange": True, "zeroline": False, "gridcolor": "rgba(138,143,150,0.25)"})
    figure.update_yaxes({"rangemode": "tozero"}, row=1, col=1)
    figure.update_yaxes({"rangemode": "tozero"}, row=1, col=3)
    figure.update_yaxes(_around_target(alpha, coat, references, falling[1]), row=1, col=2)
    said = _lines_words(temperatures, coat, references, falling, alpha)
    return finished(
        figure, said, height, legend=LEGEND, margin={"l": 0, "r": 0, "t": 92, "b": 0}, hovermode="closest"
    )


def _around_target(
    alpha: float, coat: np.ndarray, references: Mapping[str, np.ndarray], falling: np.ndarray
) -> dict[str, Any]:
    """A range around the promise wide enough for all; not so narrow that a tenth of a point looks like a fall."""
    values = [
        falling[1],
        *coat[1],
        *(v[1] for k, v in references.items() if k not in ("oracle", "whole image")),
    ]
    reach = max(0.03, *(abs(float(v) - (1 - alpha)) * 1.3 for v in values))
    return {"range": [100 * (1 - alpha - reach), 100 * min(1.0, 1 - alpha + reach)]}


def _lines_words(
    temperatures: Sequence[float],
    coat: np.ndarray,
    references: Mapping[str, np.ndarray],
    falling: tuple[str, np.ndarray],
    alpha: float,
) -> str:
    def tells(name: str, v: np.ndarray) -> str:
        return f"{name} misses by {100 * v[0]:.1f} points, covers {percent(float(v[1]))} and marks {percent(float(v[2]))}"

    each = [tells(f"COAT at T = {t:g}", coat[:, i]) for i, t in enumerate(temperatures)]
    each += [tells(f"COAT, {falling[0]},", falling[1])]
    each += [tells(name, values) for name, values in references.items()]
    return (
        f"Three line charts against T at alpha = {alpha:g}: gap, coverage and marked area. {'; '.join(each)}."
    )
