"""What one frame of the film of a training holds: traces of three panels, the layout beside or under one another, and the controls.

Not a chart of its own; `confusion_story.story` puts it together. Frames carry only what changes, so that forty of them stay light.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from core.figures import confusion_spectrum
from core.figures.confusion_bars import bar_axes, bars, dots, rank_axes
from core.figures.confusion_cells import (
    apart,
    apart_texts,
    axes,
    cells,
    largest_error,
    nested,
    numbers,
    ribbons,
    strips,
    texts_of,
)
from core.figures.confusion_given import Decomposed
from core.figures.confusion_look import APART, ERRORS_ROOT, NAMED, NUMBERED, shares_of
from core.figures.confusion_maps import color_bar
from core.figures.temperature_frame import GREY
from core.figures.temperature_needles import BUTTON

STREAMS = 3
BLOCKS = 20
"""Blocks along one side of a reduced matrix."""
VALUES = 10
"""Singular values of a frame."""

_MOVES = {
    "bar": ("x", "text", "textposition", "marker"),
    "heatmap": ("z",),
    "scatter": ("x", "y", "text"),
}


@dataclass(frozen=True)
class Shot:
    """One epoch.

    Attributes:
        matrices: Method -> `(K, K)` counts, the shown ones first.
        test: Shown method -> `(K,)` recalls.
        train: The same of the training images, where recorded.
        spectra: Method -> its matrix, decomposed.
    """

    matrices: Mapping[str, np.ndarray]
    test: Mapping[str, np.ndarray]
    train: Mapping[str, np.ndarray]
    spectra: Mapping[str, Decomposed]


@dataclass(frozen=True)
class Reel:
    """The whole film.

    Attributes:
        shots: One an epoch.
        epochs: Their numbers, from 0.
        classes: K names.
        shown: Methods in the bars and in the matrix; two mean their difference.
        titles: Method -> words.
        counts: `(K,)` training images, or None.
    """

    shots: Sequence[Shot]
    epochs: Sequence[int]
    classes: Sequence[str]
    shown: Sequence[str]
    titles: Mapping[str, str]
    counts: np.ndarray | None

    @property
    def many(self) -> bool:
        """Whether the matrix is reduced to blocks."""
        return len(self.classes) > NAMED

    @property
    def apart(self) -> bool:
        """Whether the matrix is a difference."""
        return len(self.shown) == 2

    def change(self, k: int) -> np.ndarray:
        """Second minus first, as shares."""
        first, second = (self.shots[k].matrices[m] for m in self.shown)
        return shares_of(second) - shares_of(first)

    @cached_property
    def top(self) -> float:
        """Share or difference of the strongest colour, from the last three quarters: at first a network calls everything by one name."""
        later = range(len(self.shots) // 4, len(self.shots))
        if self.apart:
            changes = [np.nan_to_num(self.change(k)) for k in later]
            return max(0.01, max(float(np.abs(blocks(c) if self.many else c).max()) for c in changes))
        own = [self.shots[k].matrices[self.shown[0]] for k in later]
        if self.many:
            return max(0.01, max(float(blocks(np.nan_to_num(shares_of(m))).max()) for m in own))
        return largest_error(own)

    @cached_property
    def most(self) -> float:
        """The largest singular value of the last three quarters; earlier ones may leave the picture."""
        return max(s.sigma for shot in self.shots[len(self.shots) // 4 :] for s in shot.spectra.values())


def blocks(shares: np.ndarray, side: int = BLOCKS) -> np.ndarray:
    """Many classes as blocks of neighbours in rank, `(side, side)`: mean over a block's true classes of what goes into another block.

    Args:
        shares: `(K, K)` shares or their differences; the diagonal is left out, so that a block's own cell holds errors inside it.
        side: Blocks, at most K.
    """
    z = np.array(shares, float)
    np.fill_diagonal(z, 0.0)
    parts = np.array_split(np.arange(len(z)), min(side, len(z)))
    rows = np.stack([z[p].sum(0) for p in parts])
    return np.stack([rows[:, p].mean(1) for p in parts], 1)


def still(go: Any, reel: Reel, k: int, spectrum: bool, domain: Mapping[str, Any]) -> list[Any]:
    """All traces of epoch k; the same number at every epoch.

    Args:
        go: Plotly's graph objects.
        reel: The film.
        k: Which of its epochs.
        spectrum: With the third panel.
        domain: Where the colour bar stands.
    """
    shot = reel.shots[k]
    draw = dots if reel.many else bars
    found = draw(go, shot.test, shot.train, reel.titles)
    for trace in _matrix(go, reel, k, domain):
        found.append(trace.update(xaxis="x2", yaxis="y2"))
    if spectrum:
        for m, s in shot.spectra.items():
            trace = confusion_spectrum.line(go, m, s.values[:VALUES], reel.titles, 9)
            found.append(
                trace.update(
                    xaxis="x3",
                    yaxis="y3",
                    showlegend=False,
                    cliponaxis=True,
                    opacity=1 if m in reel.shown else 0.55,
                )
            )
    return found


def _matrix(go: Any, reel: Reel, k: int, domain: Mapping[str, Any]) -> list[Any]:
    top = reel.top
    title = "points; blue: better" if reel.apart else "share of a true class"
    bar = color_bar(title, -100 * top if reel.apart else 0, 100 * top) | {**domain}
    if reel.many:
        return [_block_map(go, reel, k, bar)]
    few = len(reel.classes) <= NUMBERED
    if reel.apart:
        change = reel.change(k)
        return apart(go, change, top, bar) + ([numbers(go, apart_texts(change), 12)] if few else [])
    shot = reel.shots[k]
    own = shot.matrices[reel.shown[0]]
    found = cells(go, own, reel.classes, top, bar, root=True)
    if few:
        s = shot.spectra[reel.shown[0]]
        found += [
            strips(go, s),
            ribbons(go, s.flows(STREAMS), len(reel.classes)),
            numbers(go, texts_of(own), 12),
        ]
    return found


def _block_map(go: Any, reel: Reel, k: int, bar: Mapping[str, Any]) -> Any:
    shares = reel.change(k) if reel.apart else shares_of(reel.shots[k].matrices[reel.shown[0]])
    z = 100 * blocks(np.nan_to_num(shares))
    at = [round(float(p.mean()) + 1, 1) for p in np.array_split(np.arange(len(shares)), len(z))]
    span = (
        {"zmin": -100 * reel.top, "colorscale": APART}
        if reel.apart
        else {"zmin": 0, "colorscale": ERRORS_ROOT}
    )
    return go.Heatmap(
        z=nested(z), x=at, y=at, zmax=100 * reel.top, colorbar=bar, name="blocks", xgap=1, ygap=1,
        hovertemplate="true classes about rank %{x}, called about rank %{y}: %{z} %<extra></extra>", **span,
    )  # fmt: skip


def moving(go: Any, trace: Any) -> Any:
    """The parts of a trace that change from frame to frame."""
    full = trace.to_plotly_json()
    kept = {key: full[key] for key in _MOVES[trace.type] if key in full}
    if trace.type == "bar":
        kept["marker"] = {"line": kept["marker"]["line"]}
    return {"bar": go.Bar, "heatmap": go.Heatmap, "scatter": go.Scatter}[trace.type](**kept)


def panels(reel: Reel, stacked: bool, spectrum: bool) -> tuple[dict[str, Any], int, dict[str, Any]]:
    """Axes, titles and margins, the height in pixels, and where the colour bar stands.

    Args:
        reel: The film.
        stacked: Under one another.
        spectrum: With the third panel.
    """
    k = len(reel.classes)
    heights = [max(220, (26 + 12 * (len(reel.shown) - 1)) * min(k, 24)) if not reel.many else 240, 330, 170][
        : 2 + spectrum
    ]
    above, between, below = 88, 132, 96
    if stacked:
        tall = above + sum(heights) + between * (len(heights) - 1) + 60 + below
        inner, at, y = tall - above - below, float(tall - above - below), []
        for h in heights:
            y.append([(at - h) / inner, at / inner])
            at -= h + between
        x = [[0.0, 1.0]] * len(heights)
    else:
        tall = 520
        x = [[0.0, 0.31], [0.46, 0.79], [0.855, 1.0]] if spectrum else [[0.0, 0.37], [0.54, 1.0]]
        y = [[0.2, 1.0]] * len(x)
    both = rank_axes(k, reel.counts) if reel.many else bar_axes(reel.classes, reel.counts)
    sides = [
        both,
        axes(reel.classes, not reel.apart and k <= NUMBERED),
        _spectrum_axes(min(VALUES, k), reel.most),
    ]
    layout: dict[str, Any] = {
        "margin": {"l": 150, "r": 12, "t": above, "b": below if stacked else 66, "autoexpand": False}
    }
    names = ["recall, head to tail" if reel.many else "recall", _name(reel), "singular values"]
    notes = []
    for n in range(len(x)):
        end = "" if n == 0 else f"{n + 1}"
        own_x, own_y = (dict(side) | {"automargin": False} for side in sides[n])
        layout[f"xaxis{end}"] = own_x | {"domain": x[n], "anchor": f"y{end}"}
        layout[f"yaxis{end}"] = own_y | {"domain": y[n], "anchor": f"x{end}"}
        notes.append(
            {
                "text": f"<b>{names[n]}</b>", "x": x[n][0], "y": y[n][1], "xref": "paper", "yref": "paper", "xanchor": "left", "yanchor": "bottom",
                "showarrow": False, "font": {"size": 15}, "yshift": 34 if n == 1 else 4,
            }
        )  # fmt: skip
    layout["annotations"] = notes
    for axis in ("xaxis", "yaxis", "yaxis2", "xaxis3")[: 3 + spectrum]:
        layout[axis]["title"] = {"text": ""}
    return layout, tall, {"x": x[1][1], "y": y[1][1] + 4 / tall, "len": (x[1][1] - x[1][0]) * 0.48}


def _spectrum_axes(shown: int, most: float) -> tuple[dict[str, Any], dict[str, Any]]:
    """Those of the spectrum, with few ticks: the panel is narrow."""
    x, y = confusion_spectrum.axes(shown, most)
    return x | {"dtick": 3 if shown > 5 else 1, "tickangle": 0}, y


def _name(reel: Reel) -> str:
    words = [reel.titles[m] for m in reel.shown]
    return f"{words[1]} − {words[0]}" if reel.apart else words[0]


def controls(reel: Reel, here: int, stacked: bool, tall: int) -> dict[str, Any]:
    """The play button and the slider under the panels."""
    order = [f"{k}" for k in range(len(reel.epochs))]
    pace = max(120, min(450, 9000 // len(order)))
    step = {"frame": {"duration": pace, "redraw": True}, "transition": {"duration": 0}, "mode": "immediate"}
    now = step | {"frame": {"duration": 0, "redraw": True}}
    play = {"label": "▶ play", "method": "animate", "args": [order, step | {"fromcurrent": False}]}
    steps = [
        {"label": f"{e + 1}", "method": "animate", "args": [[name], now]} for e, name in zip(reel.epochs, order, strict=True)
    ]  # fmt: skip
    under = {"y": 0, "yanchor": "top"}
    return {
        "updatemenus": [
            {
                "type": "buttons", "showactive": False, "buttons": [play], "x": 0, "xanchor": "left", **under,
                "pad": {"t": 34 if stacked else 10, "b": 0, "l": 0, "r": 0}, **BUTTON,
            }
        ],
        "sliders": [
            {
                "active": here, "steps": steps, "x": 0.3 if stacked else 0.1, "len": 0.7 if stacked else 0.9, **under,
                "pad": {"t": 36 if stacked else 12, "b": 0}, "ticklen": 0, "minorticklen": 0, "font": {"size": 1, "color": "rgba(0,0,0,0)"},
                "bordercolor": GREY, "bgcolor": "rgba(138,143,150,0.35)",
                "currentvalue": {"prefix": "epoch ", "font": {"size": 15, "color": GREY}, "xanchor": "right", "offset": 2},
            }
        ],
    }  # fmt: skip
