"""Charts as files: SVG and PNG from Altair, without a browser and without a network.

A chart made for a page fills its container; here it gets a width. SVG text keeps the colour of the text around it, so that one SVG
inlined in a report is right in light and in dark; a PNG has to choose.
"""

from __future__ import annotations

import html
import json
import re
from typing import Any

import altair as alt

LIGHT, DARK = ("#16191D", "#FFFFFF"), ("#F1F4F7", "#0C0F13")
"""Ink and paper of exported pictures."""


def to_svg(chart: alt.LayerChart, width: int = 720, height: int | None = None) -> bytes:
    """The chart as a self-contained SVG document with its alt text, UTF-8.

    Args:
        chart: A chart of this package.
        width: Width of everything in pixels.
        height: Height of everything in pixels; the chart's own when None.
    """
    import vl_convert

    spec = sized(chart, width, height)
    svg = vl_convert.vegalite_to_svg(spec, allowed_base_urls=[])
    said = html.escape(str(spec.get("description", "")), quote=True)
    return re.sub(r"<svg\b", lambda _: f'<svg role="img" aria-label="{said}"', svg, count=1).encode()


def to_png(
    chart: alt.LayerChart, scale: float = 2, width: int = 720, height: int | None = None, dark: bool = False
) -> bytes:
    """The chart as PNG on paper of one colour, for slides.

    Args:
        chart: A chart of this package.
        scale: Pixels of the picture for each pixel of the chart.
        width: Width of everything in pixels before scaling.
        height: Height of everything in pixels before scaling; the chart's own when None.
        dark: Light ink on dark paper.
    """
    import vl_convert

    ink, paper = DARK if dark else LIGHT
    spec = json.loads(json.dumps(sized(chart, width, height)).replace('"currentColor"', json.dumps(ink)))
    spec["background"] = paper
    return bytes(vl_convert.vegalite_to_png(spec, scale=scale, allowed_base_urls=[]))


def sized(chart: alt.LayerChart, width: int, height: int | None = None) -> dict[str, Any]:
    """The chart as a Vega-Lite dictionary that needs no container and no clicks.

    Args:
        chart: A chart of this package.
        width: Width in pixels.
        height: Height in pixels; the chart's own when None.
    """
    spec: dict[str, Any] = chart.to_dict()
    spec.pop("params", None)
    spec["width"] = width
    if height is not None:
        spec["height"] = height
    spec.setdefault("autosize", {"type": "fit", "contains": "padding"})
    return spec
