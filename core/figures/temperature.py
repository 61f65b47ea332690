"""The gap over T and alpha as a heat map, with the regions where T cannot work hatched and named.

Colour is the gap as a multiple of CRC's at the same alpha (gaps grow with alpha, and the colour would show nothing else); the number in a
cell is the gap in points. Set area is in the hover text of every cell, for a gap can be bought with area. No number is computed here.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from core.figures.frame import listed, percent
from core.figures.temperature_frame import finished, log_axis, plotly

SCALE = [[0.0, "#4FA3D9"], [0.5, "#F4F4F0"], [1.0, "#EFAF2E"]]
"""Blue where COAT lies closer to the promise than CRC, orange where CRC does; dark text is legible on all of it."""

HATCH = {"fgcolor": "#8a8f96", "bgcolor": "rgba(138,143,150,0.16)", "size": 9, "solidity": 0.25}

DARK = "#16191D"

SPAN = 0.4
"""Multiples of CRC's gap from 1 - SPAN to 1 + SPAN have colours of their own."""


@dataclass(frozen=True)
class Cells:
    """Figures of temperatures, in columns.

    Attributes:
        temperature: `(V,)` rising T; empty for a predictor whose T falls.
        gap: `(V, A)`.
        coverage: `(V, A)`.
        area: `(V, A)`.
    """

    temperature: tuple[float, ...]
    gap: np.ndarray
    coverage: np.ndarray
    area: np.ndarray


@dataclass(frozen=True)
class Regions:
    """Where T cannot work, for each alpha.

    Attributes:
        silent_below: `(A,)` T below which the gradient is gone in most images.
        unreachable_above: `(A,)` T above which no threshold reaches 1 - alpha; +inf where every T can.
    """

    silent_below: np.ndarray
    unreachable_above: np.ndarray


def heat_map(
    alphas: Sequence[float],
    fixed: Cells,
    falling: Cells,
    crc: np.ndarray,
    span: tuple[float, float],
    here: tuple[float, float],
    regions: Regions,
    *,
    falling_names: Sequence[str] = ("T falls",),
    unit: str = "logit",
    run: Cells | None = None,
    run_falls: bool = False,
    height: int = 400,
) -> Any:
    """Draw the map.

    Args:
        alphas: `(A,)` rising shares that may be missed: the rows.
        fixed: Temperatures that stay; may be empty.
        falling: Predictors whose T falls, each in a column of its own at the right.
        crc: `(A,)` CRC's gap.
        span: Smallest and largest T of the axis.
        here: T and alpha of the current point.
        regions: Where T cannot work.
        falling_names: What stands under the columns of the falling T.
        unit: `"logit"` or `"probability"`.
        run: One temperature trained on the page, drawn as dots of the same colours.
        run_falls: Whether the run's T fell: its dots stand in a column of their own.
        height: Height in pixels.

    Returns:
        A Plotly figure; `temperature_frame.description` is its alt text.

    Raises:
        ValueError: Shapes differ.
    """
    go, make_subplots = plotly()

    rows = len(alphas)
    for cells in (fixed, falling):
        if cells.gap.shape[1:] != (rows,):
            raise ValueError(f"The map has {rows} rows and a column has {cells.gap.shape[1:]}.")
    names = [*falling_names, *(["this run"] if run is not None and run_falls else [])]
    extra = len(names)
    figure = make_subplots(
        cols=2, shared_yaxes=True, column_widths=[1 - 0.12 * extra, 0.12 * extra], horizontal_spacing=0.02
    )
    if fixed.temperature:
        figure.add_trace(_cells(go, fixed, _edges(fixed.temperature), alphas, crc), 1, 1)
    figure.add_trace(_cells(go, falling, np.arange(len(falling_names) + 1) - 0.5, alphas, crc), 1, 2)
    figure.add_trace(_numbers(go, falling, range(len(falling_names))), 1, 2)
    _hatched(figure, go, alphas, span, regions)
    figure.add_trace(_numbers(go, fixed, fixed.temperature), 1, 1)
    if run is not None:
        at = [float(len(falling_names))] * rows if run_falls else list(run.temperature) * rows
        figure.add_trace(_dots(go, run, at, alphas, crc), 1, 2 if run_falls else 1)
    for colour, width in (("#FFFFFF", 6), (DARK, 2.5)):
        line = {"width": width, "color": colour}
        ring = {"symbol": "circle-open", "size": 27, "color": colour, "line": line}
        point = {"x": [here[0]], "y": [float(_row(here[1], alphas))], "hoverinfo": "skip"}
        figure.add_trace(go.Scatter(mode="markers", marker=ring, **point), 1, 1)
    bar = {
        "orientation": "h", "thickness": 10, "len": 0.62, "x": 0, "xanchor": "left", "y": 1.02, "yanchor": "bottom", "outlinewidth": 0,
        "tickvals": [1 - SPAN, 1, 1 + SPAN], "ticktext": [f"{1 - SPAN:.1f} × CRC's gap", "the same", f"{1 + SPAN:.1f} ×"],
        "ticklabelposition": "outside top", "tickfont": {"size": 13},
    }  # fmt: skip
    unit_words = "T in logits" if unit == "logit" else "T in probabilities"
    plain = {"showgrid": False, "zeroline": False, "fixedrange": True}
    figure.update_xaxes(log_axis(span, unit_words), row=1, col=1)
    own = {"tickvals": list(range(extra)), "ticktext": names, "range": [-0.5, extra - 0.5]}
    figure.update_xaxes(plain | own, row=1, col=2)
    own = {"range": [-0.5, rows - 0.5], "tickvals": list(range(rows)), "ticktext": [f"{a:g}" for a in alphas]}
    figure.update_yaxes(plain | own)
    title = {"text": "α, share that may be missed", "standoff": 10}
    figure.update_yaxes({"title": title, "automargin": True}, row=1, col=1)
    axis = {"colorscale": SCALE, "cmin": 1 - SPAN, "cmax": 1 + SPAN, "colorbar": bar}
    said = _words(alphas, fixed, falling, crc, here, regions, falling_names, unit_words)
    return finished(
        figure, said, height, coloraxis=axis, margin={"l": 62, "r": 0, "t": 42, "b": 44}, showlegend=False
    )


def _edges(temperatures: Sequence[float]) -> np.ndarray:
    """Edges of columns on a logarithmic axis: halfway between neighbours, and as far outside the outermost."""
    log = np.log(np.asarray(temperatures, float))
    if len(log) == 1:
        return np.exp([log[0] - 0.35, log[0] + 0.35])
    middle = (log[1:] + log[:-1]) / 2
    return np.exp([2 * log[0] - middle[0], *middle, 2 * log[-1] - middle[-1]])


def _row(alpha: float | np.ndarray, alphas: Sequence[float]) -> np.ndarray:
    """Where an alpha lies among the rows, between them too."""
    return np.interp(np.log(alpha), np.log(np.asarray(alphas)), np.arange(len(alphas)))


def _hover(cells: Cells, crc: np.ndarray) -> np.ndarray:
    crc_too = np.broadcast_to(crc, cells.gap.shape)
    return np.stack([100 * cells.gap, 100 * cells.coverage, 100 * cells.area, 100 * crc_too], -1).transpose(
        1, 0, 2
    )


_TELLS = (
    "gap %{customdata[0]:.1f} points (CRC %{customdata[3]:.1f})<br>coverage %{customdata[1]:.1f} %<br>"
    "marked area %{customdata[2]:.1f} %<extra></extra>"
)


def _cells(go: Any, cells: Cells, edges: np.ndarray, alphas: Sequence[float], crc: np.ndarray) -> Any:
    return go.Heatmap(
        x=edges,
        y=np.arange(len(alphas) + 1) - 0.5,
        z=(cells.gap / np.maximum(crc, 1e-9)).T,
        customdata=_hover(cells, crc),
        hovertemplate=_TELLS,
        coloraxis="coloraxis",
        xgap=1,
        ygap=1,
    )


def _numbers(go: Any, cells: Cells, at: Sequence[float]) -> Any:
    """The gaps in points, in the middle of their cells (a heat map's own text is off the middle on a logarithmic axis)."""
    columns, rows = cells.gap.shape
    return go.Scatter(
        x=np.repeat(np.asarray(at, float), rows),
        y=np.tile(np.arange(rows), columns),
        mode="text",
        text=[_short(100 * g) for g in cells.gap.ravel()],
        textfont={"color": DARK, "size": 13},
        hoverinfo="skip",
    )


def _short(points: float) -> str:
    """A gap in points that fits into a cell."""
    return f"{points:.1f}" if points < 9.95 else f"{points:.0f}"


def _dots(go: Any, run: Cells, at: list[float], alphas: Sequence[float], crc: np.ndarray) -> Any:
    return go.Scatter(
        x=at,
        y=list(range(len(alphas))),
        mode="markers+text",
        text=[_short(100 * g) for g in run.gap[0]],
        textfont={"color": DARK, "size": 11},
        marker={
            "symbol": "diamond",
            "size": 28,
            "color": (run.gap[0] / np.maximum(crc, 1e-9)).tolist(),
            "coloraxis": "coloraxis",
            "line": {"width": 1.5, "color": DARK},
        },
        customdata=_hover(run, crc)[:, 0],
        hovertemplate="this run<br>" + _TELLS,
    )


def _hatched(
    figure: Any, go: Any, alphas: Sequence[float], span: tuple[float, float], regions: Regions
) -> None:
    """Hatch the regions where T cannot work and name them."""
    y = np.concatenate([[-0.5], np.arange(len(alphas)), [len(alphas) - 0.5]])

    def ends(values: np.ndarray) -> np.ndarray:
        return np.clip(np.concatenate([values[:1], values, values[-1:]]), *span)

    lowest, highest = (np.full(len(y), t) for t in span)
    for low, high, sign, name, side in (
        (lowest, ends(regions.silent_below), "\\", "gradient<br>gone", "left"),
        (ends(regions.unreachable_above), highest, "/", "out of<br>reach", "right"),
    ):
        width = np.log(high / low)
        inside = width > 1e-6
        if not inside.any():
            continue
        x = np.concatenate([low[inside], high[inside][::-1]])
        line = {"color": "#6b7178", "width": 1.5, "dash": "dot"}
        region = go.Scatter(
            x=x, y=np.concatenate([y[inside], y[inside][::-1]]), mode="lines", line=line, fill="toself", fillcolor="rgba(0,0,0,0)",
            fillpattern={"shape": sign, **HATCH}, hoverinfo="text", hoveron="fills", text=name.replace("<br>", " "),
        )  # fmt: skip
        figure.add_trace(region, 1, 1)
        if width.max() > 0.12 * np.log(span[1] / span[0]):
            widest = np.flatnonzero(width > 0.75 * width.max())
            where = {
                "x": float(np.log10(span[0] if side == "left" else span[1])),
                "y": float(y[widest].mean()),
            }
            look = {"bgcolor": "rgba(236,240,244,0.92)", "font": {"color": DARK, "size": 13}, "align": side}
            figure.add_annotation(
                where | look, text=name, showarrow=False, xanchor=side, borderpad=2, row=1, col=1
            )


def _words(
    alphas: Sequence[float],
    fixed: Cells,
    falling: Cells,
    crc: np.ndarray,
    here: tuple[float, float],
    regions: Regions,
    falling_names: Sequence[str],
    unit: str,
) -> str:
    row = int(np.argmin(np.abs(np.asarray(alphas) - here[1])))
    each = [
        f"at T = {t:g} {100 * g:.1f} points for {percent(a)} of the image"
        for t, g, a in zip(fixed.temperature, fixed.gap[:, row], fixed.area[:, row], strict=True)
    ]
    each += [
        f"where T falls ({name.replace('<br>', ' ')}) {100 * g:.1f} points for {percent(float(a))}"
        for name, g, a in zip(falling_names, falling.gap[:, row], falling.area[:, row], strict=True)
    ]
    silent = float(regions.silent_below[row])
    top = float(regions.unreachable_above[row])
    end = f" Above T = {top:.2f} the target is out of reach." if np.isfinite(top) else ""
    return (
        f"Heat map of the gap over {unit} and alpha, coloured by its multiple of CRC's gap. The current point is T = {here[0]:g}, alpha = "
        f"{here[1]:g}. In the row of alpha = {alphas[row]:g}, CRC's gap is {100 * float(crc[row]):.1f} points and COAT's is {listed(each)}. Below "
        f"T = {silent:.2g} the gradient is gone in most images.{end}"
    )
