"""What the Plotly charts of T share: the axis of T, the look on light and dark pages, methods' lines, and the alt text they carry.

Backgrounds are transparent and text takes the page's own colour (pages show these charts with `theme="streamlit"`). A figure's alt text
lies in its `meta` and is read with `description`. No chart is drawn here.
"""

from __future__ import annotations

import contextlib
import math
from collections.abc import Sequence
from typing import Any

from core.figures.palette import COLOURS, DASHES

GREY = "#8a8f96"
"""Lines that belong to no method; legible on white and on black."""


LEGEND = {
    "orientation": "h",
    "x": 0,
    "y": 1.14,
    "yanchor": "bottom",
    "font": {"size": 14},
    "title": {"text": ""},
}
"""A legend above the chart, in one row."""


def plotly() -> tuple[Any, Any]:
    """Plotly's `graph_objects` and `make_subplots`, loaded when the first chart is drawn.

    Plotly looks at pandas wherever it finds it among the loaded modules, even half loaded by another visitor's thread; importing it
    first waits until it is whole.
    """
    with contextlib.suppress(ImportError):
        import pandas  # noqa: F401
    import plotly.graph_objects as go
    from plotly.subplots import make_subplots

    return go, make_subplots


def dash_of(method: str) -> str:
    """A method's dash in Plotly's words."""
    pattern = DASHES[method]
    return "solid" if pattern == [1, 0] else ",".join(f"{p}px" for p in pattern)


def line_of(method: str, width: float = 2.5) -> dict[str, Any]:
    """Colour, dash and width of a method's line."""
    return {"color": COLOURS[method], "dash": dash_of(method), "width": width}


def log_axis(values: Sequence[float], title: str, shown: Sequence[float] | None = None) -> dict[str, Any]:
    """A logarithmic axis of T.

    Args:
        values: T that it must hold; its ends are the smallest and the largest.
        title: Title.
        shown: T that have a tick; a choice of round ones when absent.
    """
    low, high = min(values), max(values)
    round_ones = (0.001, 0.002, 0.005, 0.01, 0.02, 0.05, 0.1, 0.25, 0.5, 1.0, 2.0, 4.0, 8.0, 16.0)
    ticks = [t for t in (round_ones if shown is None else shown) if low * 0.999 <= t <= high * 1.001]
    return {
        "type": "log",
        "range": [math.log10(low), math.log10(high)],
        "tickvals": ticks,
        "ticktext": [f"{t:g}" for t in ticks],
        "title": {"text": title, "standoff": 6},
        "showgrid": False,
        "zeroline": False,
        "fixedrange": True,
        "tickangle": 0,
    }


def finished(figure: Any, said: str, height: int, sentence: str = "", **layout: Any) -> Any:
    """Give a figure its common look, its height, its alt text and the sentence that stands over it.

    The sentence is not drawn: Plotly's titles never wrap, a page's own text does.
    """
    figure.update_layout(
        height=height,
        meta={"description": said, "sentence": sentence},
        paper_bgcolor="rgba(0,0,0,0)",
        plot_bgcolor="rgba(0,0,0,0)",
        dragmode=False,
        hoverlabel={"align": "left"},
        **layout,
    )
    return figure


def description(figure: Any) -> str:
    """A figure's alt text."""
    return str(figure.layout.meta["description"])


def sentence_of(figure: Any) -> str:
    """The sentence that stands over a figure; "" where there is none."""
    return str(figure.layout.meta["sentence"])
