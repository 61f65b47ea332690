"""The spectrum of errors: singular values of confusion matrices side by side, and as a miniature for a card."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from core.figures.altair_figure import Figure
from core.figures.confusion_given import Decomposed, is_weighted
from core.figures.confusion_look import (
    checked_methods,
    colour_of,
    line_of_method,
    marker_of_method,
    pattern_of,
    title_of,
)
from core.figures.frame import figure as chart
from core.figures.frame import layer, listed, percent, quantity
from core.figures.temperature_frame import LEGEND, finished, plotly


def spectrum(
    spectra: Mapping[str, Decomposed],
    *,
    top: int = 20,
    titles: Mapping[str, str] | None = None,
    height: int = 320,
) -> Any:
    """Singular values of one or more methods, largest first, with the share that the top pair holds.

    Args:
        spectra: Method -> its matrix of test errors, decomposed.
        top: Values at most.
        titles: Method -> words instead of `confusion_look.TAIL_TITLES`.
        height: Height in pixels.

    Returns:
        A Plotly figure; `sentence_of` compares sigma_1.

    Raises:
        ValueError: No method.
    """
    go, make_subplots = plotly()

    methods = checked_methods(spectra, 16, "A spectrum")
    figure = make_subplots()
    for m in methods:
        figure.add_trace(line(go, m, spectra[m].values[:top], titles, 9 if len(methods) > 2 else 12))
    most = max(s.sigma for s in spectra.values())
    x, y = axes(min(top, max(len(s.values) for s in spectra.values())), most)
    figure.update_xaxes(x)
    figure.update_yaxes(y)
    said, sentence = _words(spectra, titles)
    return finished(
        figure, said, height, sentence, margin={"l": 8, "r": 8, "t": 36, "b": 8}, legend=LEGEND | {"y": 1.01}
    )


def line(go: Any, method: str, values: np.ndarray, titles: Mapping[str, str] | None, size: float = 11) -> Any:
    """One method's singular values as a line with markers."""
    title = title_of(method, titles)
    return go.Scatter(
        x=list(range(1, len(values) + 1)), y=[round(float(v), 4) for v in values], mode="lines+markers", line=line_of_method(method, 2.5),
        marker=marker_of_method(method, size), name=title, cliponaxis=False, hovertemplate=f"{title}, value %{{x}}: %{{y:.3f}}<extra></extra>",
    )  # fmt: skip


def axes(shown: int, most: float) -> tuple[dict[str, Any], dict[str, Any]]:
    """Settings of the axes of a spectrum."""
    plain = {"zeroline": False, "fixedrange": True, "automargin": True, "tickfont": {"size": 13}}
    x = plain | {
        "range": [0.6, shown + 0.4], "dtick": 1 if shown <= 10 else 5, "tick0": 1 if shown <= 10 else 0, "showgrid": False,
        "title": {"text": "singular value, by size", "standoff": 4},
    }  # fmt: skip
    y = plain | {"range": [0, 1.12 * max(most, 0.01)], "nticks": 5, "gridcolor": "rgba(138,143,150,0.25)"}
    return x, y


def _words(spectra: Mapping[str, Decomposed], titles: Mapping[str, str] | None) -> tuple[str, str]:
    firsts = [f"{s.sigma:.2f} under {title_of(m, titles)}" for m, s in spectra.items()]
    sentence = f"The largest singular value is {listed(firsts)}."
    each = []
    for m, s in spectra.items():
        held = "" if np.isnan(s.share) else f", the first holds {percent(s.share)} of the squares"
        each.append(f"{title_of(m, titles)}: {', '.join(f'{v:.2f}' for v in s.values[:5])}{held}")
    weighted = any(is_weighted(s) for s in spectra.values())
    of = "error rates, weighted by Λ" if weighted else "error rates"
    return (
        f"Singular values of the {of}, largest first, the first five: {'. '.join(each)}. {sentence}",
        sentence,
    )


def spectrum_mini(
    spectra: Mapping[str, Decomposed], *, titles: Mapping[str, str] | None = None, height: int = 150
) -> Figure:
    """Singular values as a miniature for a card: one line a method, no title.

    Args:
        spectra: As in `spectrum`; one to three methods.
        titles: Method -> words.
        height: Height in pixels.

    Returns:
        An Altair chart for `st.altair_chart`.

    Raises:
        ValueError: As in `spectrum`.
    """
    methods = checked_methods(spectra, 3, "A miniature of a spectrum")
    parts = []
    place = {
        "x": quantity("value", scale={"nice": False}, axis={"title": "singular value, by size", "grid": False, "tickMinStep": 1, "format": "d"}),
        "y": quantity("size", scale={"zero": True}, axis={"title": None, "tickCount": 3}),
    }  # fmt: skip
    for m in methods:
        rows = [{"value": k + 1, "size": round(float(v), 5)} for k, v in enumerate(spectra[m].values[:10])]
        stroke = {"type": "line", "color": colour_of(m), "strokeWidth": 2.5, "strokeDash": pattern_of(m)}
        dot = {
            "type": "point",
            "filled": True,
            "color": colour_of(m),
            "shape": marker_of_method(m)["symbol"].removesuffix("-open"),
            "size": 60,
            "opacity": 1,
        }
        parts += [layer(rows, stroke, place), layer(rows, dot, place)]
    return chart(parts, None, _words(spectra, titles)[0], height)
