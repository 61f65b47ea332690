"""CE and CAR learning side by side: overall accuracy and the worst class's recall against epochs, while they run and afterwards."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

from core.figures.confusion_given import Panel
from core.figures.confusion_look import checked_methods, line_of_method, marker_of_method, title_of
from core.figures.frame import listed, percent
from core.figures.temperature_frame import LEGEND, finished, plotly

PANELS = {"overall": "Accuracy, %", "worst": "Recall of the worst class, %", "sigma": "σ₁ of the test errors"}


def learning(
    rows: Mapping[str, Sequence[Mapping[str, Any]]],
    epochs: int,
    *,
    titles: Mapping[str, str] | None = None,
    height: int = 260,
) -> tuple[Panel, ...]:
    """Accuracy, recall of the worst class, and sigma_1 where a row has it.

    Args:
        rows: Method -> rows so far with `epoch` (0 first), `overall`, `worst` (0 to 1), and where known `worst_class` (a name) and `sigma`. A row
            may lack a value, or hold NaN or None: the line bridges to the next that has it. Empty lists are fine.
        epochs: Epochs of a run: the length of the axis.
        titles: Method -> words instead of `confusion_look.TAIL_TITLES`.
        height: Height in pixels of each.

    Returns:
        Plotly figures with alt text; the first one's sentence says where each method stands (empty before the first row).

    Raises:
        ValueError: No method.
    """
    go, make_subplots = plotly()

    methods = checked_methods(rows, 6, "A chart of learning")
    known = {m: {key: _known(rows[m], key) for key in PANELS} for m in methods}
    shown = [key for key in PANELS if key != "sigma" or any(known[m][key] for m in methods)]
    ends = [t for t in (_last(title_of(m, titles), rows[m], known[m]) for m in methods) if t]
    sentence = f"{'. '.join(ends)}." if ends else ""
    plain = {"fixedrange": True, "zeroline": False, "automargin": True, "tickfont": {"size": 13}}
    found: list[Panel] = []
    for key in shown:
        figure = make_subplots()
        for m in methods:
            figure.add_traces(_curve(go, m, key, title_of(m, titles), rows[m], known[m][key]))
        figure.update_xaxes(
            plain | {"range": [1, max(epochs, 2)], "title": {"text": "epoch", "standoff": 4}, "showgrid": False, "tickformat": "d", "nticks": 6}
        )  # fmt: skip
        figure.update_yaxes(
            plain | {"gridcolor": "rgba(138,143,150,0.25)", "nticks": 5, "rangemode": "tozero"}
        )
        if key != "sigma":
            figure.update_yaxes({"range": [0, 102]})
        said = (
            f"Lines against epochs under {listed([title_of(m, titles) for m in methods])}: {PANELS[key].removesuffix(', %').lower()}. "
            f"{sentence or 'Nothing yet.'}"
        )
        own = "" if found else sentence
        done = finished(
            figure, said, height, own, margin={"l": 8, "r": 12, "t": 8, "b": 8}, legend=LEGEND | {"y": 1.02}
        )
        found.append(Panel(PANELS[key], done))
    return tuple(found)


def _curve(
    go: Any,
    method: str,
    key: str,
    title: str,
    rows: Sequence[Mapping[str, Any]],
    known: Sequence[tuple[int, float]],
) -> list[Any]:
    """A line, and a mark at its end that stands for the method in the legend."""
    scale = 1.0 if key == "sigma" else 100.0
    x: list[Any] = [e + 1 for e, _ in known]
    y: list[Any] = [round(scale * v, 4) for _, v in known]
    names = _classes(rows, x) if key == "worst" else [""] * len(x)
    return [
        go.Scatter(
            x=x, y=y, mode="lines", line=line_of_method(method, 3), showlegend=False, customdata=names, name=title,
            hovertemplate=f"{title}, epoch %{{x}}: %{{y:.3g}} %{{customdata}}<extra></extra>",
        ),
        go.Scatter(
            x=x[-1:] or [None], y=y[-1:] or [None], mode="lines+markers", line=line_of_method(method, 3), marker=marker_of_method(method, 12),
            hoverinfo="skip", cliponaxis=False, name=title,
        ),
    ]  # fmt: skip


def _known(rows: Sequence[Mapping[str, Any]], key: str) -> list[tuple[int, float]]:
    """Epoch and value where there is one."""
    pairs = [(int(r["epoch"]), r.get(key)) for r in rows]
    return [(e, float(v)) for e, v in pairs if v is not None and math.isfinite(float(v))]


def _classes(rows: Sequence[Mapping[str, Any]], epochs: Sequence[int]) -> list[str]:
    """Name of the worst class at each epoch, where a row has it."""
    names = {int(r["epoch"]) + 1: str(r.get("worst_class") or "") for r in rows}
    return [f"({names[e]})" if names.get(e) else "" for e in epochs]


def _last(title: str, rows: Sequence[Mapping[str, Any]], known: Mapping[str, list[tuple[int, float]]]) -> str:
    ends = {key: found[-1][1] for key, found in known.items() if found}
    if not ends:
        return ""
    parts = [f"{percent(ends['overall'])} of the test samples right"] if "overall" in ends else []
    if "worst" in ends:
        name = _classes(rows, [known["worst"][-1][0] + 1])[0]
        parts.append(f"{percent(ends['worst'])} of the worst class{f' {name}' if name else ''}")
    parts += [f"σ₁ at {ends['sigma']:.2f}"] if "sigma" in ends else []
    return f"After epoch {max(found[-1][0] for found in known.values() if found) + 1} {title} has {listed(parts)}"
