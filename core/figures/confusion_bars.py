"""Recall of each class from head to tail: test images solid, training images as an outline, the worst class marked and named.

Up to `MANY` classes are bars; more are dots over their rank, with a running mean and the training recall as an area.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from core.figures.confusion_look import (
    NAMED,
    WORST,
    checked_methods,
    colour_of,
    kin_of,
    line_of_method,
    recall_of,
    short,
    title_of,
    without_samples,
)
from core.figures.frame import percent
from core.figures.temperature_frame import GREY, LEGEND, finished, plotly

MANY = NAMED
"""More classes than this are drawn as dots."""

INSIDE = {"ce": "#16191D", "car-count": "#FFFFFF"}
"""Ink of numbers in bars; dark on all other colours."""


def recall_bars(
    test: Mapping[str, np.ndarray],
    classes: Sequence[str],
    *,
    train: Mapping[str, np.ndarray] | None = None,
    counts: np.ndarray | None = None,
    titles: Mapping[str, str] | None = None,
    height: int = 430,
) -> Any:
    """Recall of one or two methods.

    Args:
        test: Method -> `(K, K)` test matrix (rows predicted, columns true) or `(K,)` recalls in [0, 1] with NaN where a class has no sample.
        classes: K names, head first.
        train: The same of the training images; a method may be missing.
        counts: `(K,)` training images, written beside the names.
        titles: Method -> words on the screen instead of `confusion_look.TAIL_TITLES`.
        height: Height in pixels.

    Returns:
        A Plotly figure; `sentence_of` names the worst class with its recall on test and training images.

    Raises:
        ValueError: No method or more than two, sizes that differ, a share outside [0, 1], or no class with a sample.
    """
    go, make_subplots = plotly()

    methods = checked_methods(test, 2, "A chart of recalls")
    on_test = {m: recall_of(test[m], classes) for m in methods}
    on_train = {m: recall_of(train[m], classes) for m in methods if train and m in train}
    if all(np.isnan(r).all() for r in on_test.values()):
        raise ValueError("No class has a test sample, so there is no recall to draw.")
    figure = make_subplots()
    if len(classes) > MANY:
        figure.add_traces(dots(go, on_test, on_train, titles))
        _rank_axes(figure, len(classes), counts)
    else:
        figure.add_traces(bars(go, on_test, on_train, titles))
        x, y = bar_axes(classes, counts)
        figure.update_xaxes(x)
        figure.update_yaxes(y)
    said, sentence = words(on_test, on_train, classes, titles)
    return finished(
        figure, said, height, sentence, margin={"l": 8, "r": 8, "t": 36, "b": 8}, barmode="overlay", legend=LEGEND | {"y": 1.01},
    )  # fmt: skip


def bars(
    go: Any,
    test: Mapping[str, np.ndarray],
    train: Mapping[str, np.ndarray],
    titles: Mapping[str, str] | None,
    axis: str = "",
    legend: bool = True,
) -> list[Any]:
    """Lying bars of one or two methods: outlines, solid bars, and the mark of the worst class. Three traces a method, always.

    Args:
        go: Plotly's graph objects.
        test: Method -> `(K,)` recalls.
        train: The same of the training images.
        titles: Method -> words.
        axis: Number of the subplot's axes ("" is the first).
        legend: Whether they are named in the legend.
    """
    n = len(test)
    tall = 0.78 / n
    place = {"xaxis": f"x{axis}", "yaxis": f"y{axis}"}
    traces = []
    shared = n > 1 and len({tuple(worst_of(r)) for r in test.values()}) == 1  # one mark between the two bars
    for at, (method, recall) in enumerate(test.items()):
        k = len(recall)
        colour, title = colour_of(method), title_of(method, titles)
        offset = -0.39 + at * tall
        y = list(range(k))
        known = train.get(method)
        fit = [None] * k if known is None else _percent(known)
        worst = worst_of(recall)
        edge = [WORST if j in worst else colour for j in range(k)]
        traces += [
            go.Bar(
                x=fit, y=y, orientation="h", width=tall - 0.04, offset=offset, name=f"{title}, training" if n > 1 else "training data",
                marker={"color": "rgba(0,0,0,0)", "line": {"color": colour if n > 1 else GREY, "width": 1.8}},
                showlegend=legend and known is not None,
                hovertemplate=f"%{{y}}: %{{x}} % of training data ({title})<extra></extra>", **place,
            ),
            go.Bar(
                x=_percent(recall), y=y, orientation="h", width=tall - 0.04 if n > 1 else tall * 0.72,
                offset=offset if n > 1 else offset + tall * 0.11, name=f"{title}, test" if n > 1 else "test data",
                marker={"color": colour, "line": {"color": edge, "width": [2.5 if j in worst else 0 for j in range(k)]}},
                text=["" if np.isnan(r) else percent(float(r)).split("\u00a0")[0] for r in recall],
                textposition=["inside" if r >= 0.1 else "outside" for r in recall],
                insidetextanchor="start", insidetextfont={"color": INSIDE.get(kin_of(method), "#16191D")}, textfont={"size": 13}, textangle=0,
                constraintext="none", cliponaxis=False, showlegend=legend, **place,
                hovertemplate=f"%{{y}}: %{{x}} % of test data ({title})<extra></extra>",
            ),
            go.Scatter(
                x=[101.5] * len(worst), y=[j + (0 if shared else offset + tall / 2) for j in worst], mode="text", textposition="middle right",
                text=[_mark(title, at, n, shared)] * len(worst), textfont={"size": 13},
                hoverinfo="skip", showlegend=False, cliponaxis=False, name="worst", **place,
            ),
        ]  # fmt: skip
    return traces


def bar_axes(classes: Sequence[str], counts: np.ndarray | None) -> tuple[dict[str, Any], dict[str, Any]]:
    """Settings of the axes of lying bars, head at the top, with room for the mark at the right."""
    k = len(classes)
    names = [
        short(c, 18) + (f"  {int(counts[i]):,}" if counts is not None else "") for i, c in enumerate(classes)
    ]
    x = {
        "range": [0, 128], "tickvals": [0, 25, 50, 75, 100], "ticktext": ["0", "25", "50", "75", "100\u00a0%"], "zeroline": False, "fixedrange": True,
        "gridcolor": "rgba(138,143,150,0.25)", "title": {"text": "recall", "standoff": 4}, "tickfont": {"size": 13}, "automargin": True,
    }  # fmt: skip
    y = {
        "range": [k - 0.5, -0.5], "tickvals": list(range(k)), "ticktext": names, "showgrid": False, "zeroline": False, "fixedrange": True,
        "automargin": True, "tickfont": {"size": 13},
    }  # fmt: skip
    return x, y


def dots(
    go: Any,
    test: Mapping[str, np.ndarray],
    train: Mapping[str, np.ndarray],
    titles: Mapping[str, str] | None,
    axis: str = "",
    legend: bool = True,
) -> list[Any]:
    """Many classes: the running mean of the training recall as an area, dots of the test recall, and its running mean. Three traces a method.

    Args as in `bars`.
    """
    place = {"xaxis": f"x{axis}", "yaxis": f"y{axis}"}
    traces = []
    for method, recall in test.items():
        colour, title = colour_of(method), title_of(method, titles)
        rank = list(range(1, len(recall) + 1))
        known = train.get(method)
        red, green, blue = (int(colour[k : k + 2], 16) for k in (1, 3, 5))
        traces += [
            go.Scatter(
                x=rank, y=[None] * len(rank) if known is None else _percent(running(known)), mode="lines", fill="tozeroy",
                fillcolor=f"rgba({red},{green},{blue},0.13)", line={"color": colour, "width": 1.2}, hoverinfo="skip",
                name=f"{title}, training mean",
                showlegend=legend and known is not None, **place,
            ),
            go.Scatter(
                x=rank, y=_percent(recall), mode="markers", marker={"color": colour, "size": 5, "opacity": 0.75}, name=f"{title}, test",
                showlegend=False, hovertemplate=f"class %{{x}}: %{{y}} % of test data ({title})<extra></extra>", **place,
            ),
            go.Scatter(
                x=rank, y=_percent(running(recall)), mode="lines", line=line_of_method(method, 3), hoverinfo="skip",
                name=f"{title}, test mean", showlegend=legend, **place,
            ),
        ]  # fmt: skip
    return traces


def running(recall: np.ndarray, share: float = 0.1) -> np.ndarray:
    """Mean over neighbours in rank, a tenth of the classes wide; classes without a sample are passed over."""
    k = len(recall)
    half = max(1, round(share * k / 2))
    there = ~np.isnan(recall)
    sums = np.concatenate([[0.0], np.cumsum(np.where(there, recall, 0.0))])
    seen = np.concatenate([[0], np.cumsum(there)])
    low, high = np.maximum(np.arange(k) - half, 0), np.minimum(np.arange(k) + half + 1, k)
    number = seen[high] - seen[low]
    return np.divide(sums[high] - sums[low], number, out=np.full(k, np.nan), where=number > 0)


def worst_of(recall: np.ndarray) -> list[int]:
    """The class with the lowest recall (of a tie the rarest, which stands last), or none."""
    return [] if np.isnan(recall).all() else [int(np.flatnonzero(recall == np.nanmin(recall))[-1])]


def words(
    test: Mapping[str, np.ndarray],
    train: Mapping[str, np.ndarray],
    classes: Sequence[str],
    titles: Mapping[str, str] | None,
) -> tuple[str, str]:
    """Alt text and the sentence that names the worst class."""
    worst: list[tuple[str, str]] = []
    each: list[str] = []
    names: list[str] = []
    for method, recall in test.items():
        title = title_of(method, titles)
        low = float(np.nanmin(recall))
        lost = int((recall == low).sum())
        j = worst_of(recall)[0]
        known = train.get(method)
        fit = (
            f", {percent(float(known[j]))} on training data"
            if known is not None and not np.isnan(known[j])
            else ""
        )
        names.append(classes[j] if lost == 1 else f"one of {lost}, {classes[j]} among them")
        worst.append((title, f"{percent(low)} on test data{fit}"))
        if len(classes) <= MANY:
            rows = [f"{c} {percent(float(r))}" for c, r in zip(classes, recall, strict=True)]
            each.append(f"{title}: {', '.join(rows)}")
        else:
            thirds = np.array_split(recall, 3)
            means = [percent(float(np.nanmean(t))) if not np.isnan(t).all() else "unknown" for t in thirds]
            each.append(
                f"{title}: mean recall of the most frequent third {means[0]}, the middle {means[1]}, the rarest {means[2]}"
            )
        if known is not None and not np.isnan(known).all():
            each[-1] += f"; on training images {percent(float(np.nanmean(known)))} on average"
    first, rate = worst[0]
    if len(worst) == 1:
        sentence = f"The worst class under {first} is {names[0]}: {rate}."
    elif names[0] == names[1]:
        sentence = f"The worst class under both is {names[0]}: under {first} {rate}; under {worst[1][0]} {worst[1][1]}."
    else:
        sentence = f"The worst class under {first} is {names[0]} ({rate}), under {worst[1][0]} {names[1]} ({worst[1][1]})."
    shape = "Bars" if len(classes) <= MANY else "Dots"
    gone = without_samples(next(iter(test.values())), classes)
    said = f"{shape} of recall of {len(classes)} classes from the most to the least frequent. {'. '.join(each)}. {sentence}{gone}"
    return said, sentence


def _percent(values: np.ndarray) -> list[float | None]:
    return [None if np.isnan(v) else round(100 * float(v), 1) for v in values]


def _mark(title: str, at: int, n: int, shared: bool) -> str:
    """The mark of a method's worst class; one that all share is said once."""
    if shared:
        return "" if at else "<b>◀ worst, both</b>"
    return f"<b>◀ worst{f', {_brief(title)}' if n > 1 else ''}</b>"


def _brief(title: str) -> str:
    """A method's name in a word, for the mark."""
    return title.split(" ")[0]


def _rank_axes(figure: Any, k: int, counts: np.ndarray | None) -> None:
    x, y = rank_axes(k, counts)
    figure.update_xaxes(x)
    figure.update_yaxes(y)


def rank_axes(k: int, counts: np.ndarray | None) -> tuple[dict[str, Any], dict[str, Any]]:
    """Settings of the axes of many classes: rank from head to tail, with the training images at both ends."""
    ends = "" if counts is None else f" ({int(counts[0]):,} to {int(counts[-1]):,} training images)"
    step = max(1, round(k / 4 / 10) * 10)
    at = [1, *range(step, k + 1, step)]
    plain = {"zeroline": False, "fixedrange": True, "automargin": True, "tickfont": {"size": 13}}
    x = plain | {
        "range": [0, k + 1],
        "tickvals": at,
        "showgrid": False,
        "title": {"text": f"classes from head to tail{ends}", "standoff": 4},
    }
    y = plain | {
        "range": [-2, 102], "tickvals": [0, 25, 50, 75, 100], "ticktext": ["0", "25", "50", "75", "100\u00a0%"],
        "gridcolor": "rgba(138,143,150,0.25)", "title": {"text": "recall", "standoff": 4},
    }  # fmt: skip
    return x, y
