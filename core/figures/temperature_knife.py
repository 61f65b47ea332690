"""The soft threshold of one image, still at T and played from fog to knife: over its picture, or over its scores where no picture is here.

Two needles under it say how much of the lesion counts as inside (soft) and how much is inside (hard); the dotted line is the promise. The
shading, the curves and the shares come in as arrays.
"""

from __future__ import annotations

import base64
import io
from typing import Any

import numpy as np
from PIL import Image

from core.figures.temperature_frame import GREY, finished, line_of, plotly
from core.figures.temperature_needles import (
    MARGIN,
    SOFT,
    Needles,
    add_needles,
    checked,
    in_words,
    play,
    stage,
)

FOG = [[0.0, "rgba(0,114,178,0)"], [0.5, "rgba(28,140,205,0.45)"], [1.0, "rgba(64,172,236,0.9)"]]
"""From not inside to inside: a blue that grows over the grey picture."""


def knife_on_picture(
    rgb: np.ndarray,
    shading: np.ndarray,
    shading_here: np.ndarray,
    needles: Needles,
    mask: np.ndarray | None = None,
    *,
    name: str = "this image",
    height: int = 430,
) -> Any:
    """The soft mask over the grey picture.

    Args:
        rgb: `(H, W, 3)` uint8 picture.
        shading: `(S, h, w)` uint8, 0 to 100: how much each pixel counts as inside, in the order of the needles' T.
        shading_here: `(h, w)` uint8 at the current T.
        needles: The shares.
        mask: `(h, w)` bool truth, drawn as a thin white line, or None.
        name: What the image is called, for the alt text.
        height: Height in pixels.

    Raises:
        ValueError: The shading has another number of frames than the needles.
    """
    go, _ = plotly()

    checked(shading, needles)
    h, w = shading_here.shape
    figure = stage(height, 22)
    figure.add_layout_image(
        source=_grey(rgb),
        xref="x",
        yref="y",
        x=-0.5,
        y=-0.5,
        sizex=w,
        sizey=h,
        sizing="stretch",
        layer="below",
    )

    def fog(z: np.ndarray) -> Any:
        return go.Heatmap(
            z=z,
            zmin=0,
            zmax=100,
            colorscale=FOG,
            showscale=False,
            hovertemplate="counts as %{z} % inside<extra></extra>",
        )

    figure.add_trace(fog(shading_here), 1, 1)
    add_needles(go, figure, needles)
    if mask is not None and mask.any():
        for colour, width in (("rgba(0,0,0,0.65)", 4.5), ("#FFFFFF", 2)):
            figure.add_trace(
                go.Contour(
                    z=mask.astype(np.uint8), contours={"start": 0.5, "end": 0.5, "size": 1, "coloring": "none"}, showscale=False,
                    line={"color": colour, "width": width, "smoothing": 1}, hoverinfo="skip",
                ), 1, 1,
            )  # fmt: skip
    figure.update_xaxes({"visible": False, "range": [-0.5, w - 0.5], "constrain": "domain"}, row=1, col=1)
    figure.update_yaxes(
        {"visible": False, "range": [h - 0.5, -0.5], "scaleanchor": "x", "constrain": "domain"}, row=1, col=1
    )
    play(go, figure, needles, [fog(z) for z in shading])
    said = f"The picture of {name} with its soft mask as blue shading{' and its true outline in white' if mask is not None else ''}. "
    return finished(figure, said + in_words(needles), height, margin=MARGIN, showlegend=False)


def knife_on_scores(
    edges: np.ndarray,
    lesion: np.ndarray,
    grid: np.ndarray,
    curves: np.ndarray,
    curve_here: np.ndarray,
    tau: float,
    needles: Needles,
    *,
    method: str = "COAT",
    name: str = "this image",
    height: int = 430,
) -> Any:
    """The soft threshold over the histogram of a lesion's scores.

    Args:
        edges: `(B + 1,)` rising edges in logits.
        lesion: `(B,)` share of the lesion in each bin.
        grid: `(G,)` scores in logits.
        curves: `(S, G)` how much a pixel of that score counts as inside, in the order of the needles' T.
        curve_here: `(G,)` at the current T.
        tau: The threshold in logits.
        needles: The shares.
        method: Whose threshold it is; its line has that method's look.
        name: What the image is called, for the alt text.
        height: Height in pixels.

    Raises:
        ValueError: There are other numbers of curves than of needles.
    """
    go, _ = plotly()

    checked(curves, needles)
    figure = stage(height, 80)
    middle, top = (edges[1:] + edges[:-1]) / 2, max(float(lesion.max()), 1e-6)
    used = np.flatnonzero(lesion > 0)
    low, high = float(edges[used[0]]) - 1, float(edges[used[-1] + 1]) + 1

    def blade(values: np.ndarray) -> Any:
        return go.Scatter(
            x=grid,
            y=100 * values,
            mode="lines",
            line={"color": SOFT, "width": 4},
            hovertemplate="counts as %{y:.0f} % inside<extra></extra>",
        )

    figure.add_trace(blade(curve_here), 1, 1)
    add_needles(go, figure, needles)
    figure.add_trace(
        go.Bar(
            x=middle, y=95 * lesion / top, width=np.diff(edges), marker={"color": GREY, "opacity": 0.65, "line": {"width": 0}},
            customdata=100 * lesion, hovertemplate="%{customdata:.1f} % of the lesion<extra></extra>",
        ), 1, 1,
    )  # fmt: skip
    if np.isfinite(tau):
        figure.add_vline(x=float(tau), line=line_of(method), row=1, col=1)
    chances = (1e-6, 1e-4, 0.01, 0.1, 0.5, 0.9, 0.99, 0.9999, 1 - 1e-6)
    where = [float(np.log(p / (1 - p))) for p in chances]
    figure.update_xaxes(
        {
            "range": [min(low, tau - 1) if np.isfinite(tau) else low, max(high, tau + 1) if np.isfinite(tau) else high], "tickvals": where,
            "ticktext": ["10⁻⁶", "10⁻⁴", "0.01", "0.1", "0.5", "0.9", "0.99", "0.9999", "1 − 10⁻⁶"], "showgrid": False, "zeroline": False,
            "title": {"text": "score, as a probability", "standoff": 4}, "fixedrange": True,
        }, row=1, col=1,
    )  # fmt: skip
    figure.update_yaxes(
        {
            "range": [-2, 104],
            "ticksuffix": " %",
            "title": {"text": "counts as inside"},
            "fixedrange": True,
            "zeroline": False,
            "showgrid": False,
        },
        row=1,
        col=1,
    )
    play(go, figure, needles, [blade(c) for c in curves])
    said = f"Histogram of the lesion's scores of {name}, grey, with the soft threshold over it as a blue curve from 0 to 100 %. "
    return finished(
        figure,
        said + in_words(needles),
        height,
        margin=MARGIN,
        showlegend=False,
        bargap=0,
    )


def _grey(rgb: np.ndarray) -> str:
    """A picture as a grey data URL, long side at most 512."""
    picture = Image.fromarray(rgb).convert("L")
    picture.thumbnail((512, 512))
    file = io.BytesIO()
    picture.convert("RGB").save(file, "PNG")
    return "data:image/png;base64," + base64.b64encode(file.getvalue()).decode("ascii")
