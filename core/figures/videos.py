"""Coverage across videos: one tick for each way to halve the videos, over the spread of halves drawn frame by frame. It calibrates nothing."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from core.figures.altair_figure import Figure
from core.figures.frame import (
    INK,
    by_method,
    checked_methods,
    count,
    figure,
    layer,
    listed,
    percent,
    promised,
    quantity,
    share_axis,
    titled,
    word,
)


def videos_chart(
    by_video: Mapping[str, np.ndarray], by_frame: Mapping[str, np.ndarray], alpha: float, *, height: int = 340
) -> Figure:
    """One row a method: ticks are draws by video, the bar is the middle 90 % of draws by frame.

    Args:
        by_video: Method -> `(S,)` mean coverage of the tested frames of each draw by video, 0 to 1.
        by_frame: Method -> `(D,)` the same of each draw by frame.
        alpha: Share of a lesion that may be missed on average.
        height: Height of everything in pixels.

    Raises:
        ValueError: Other methods in one than in the other, no draws, or a value outside [0, 1].
    """
    methods = checked_methods(by_video)
    if list(by_frame) != methods:
        raise ValueError(
            f"Draws by video are of {listed(methods)} and draws by frame of {listed(list(by_frame)) if by_frame else 'nothing'}."
        )
    one = {m: np.asarray(by_video[m], float) for m in methods}
    other = {m: np.asarray(by_frame[m], float) for m in methods}
    every = np.concatenate([*one.values(), *other.values()])
    if min(map(len, (*one.values(), *other.values()))) == 0 or not ((every >= 0) & (every <= 1)).all():
        raise ValueError(
            "Coverage is a share from 0 to 1; a draw lies outside, is not a number, or there is none."
        )
    goal = 1 - alpha
    low, high = min(float(every.min()), goal), max(float(every.max()), goal)
    room = max(0.04 * (high - low), 0.01)
    step = 0.05 if high - low > 0.12 else 0.02
    ticks = [
        round(k * step, 3) for k in range(int(np.ceil((low - room) / step)), int((high + room) / step) + 1)
    ]
    axis = share_axis(
        "mean coverage of the tested frames", ticks, {f"promise {promised(alpha)}": goal}, grid=True
    )
    x = quantity(
        "coverage",
        scale={"domain": [low - room, min(high + room, 1.02)], "nice": False, "zero": False},
        axis=axis,
    )
    y = word("method", sort=methods, axis={"title": None})
    colour = by_method("color", methods)
    bars = [
        {"method": m, "coverage": np.quantile(v, 0.05), "to": np.quantile(v, 0.95)} for m, v in other.items()
    ]
    dots = [{"method": m, "coverage": c, "draw": k + 1} for m, v in one.items() for k, c in enumerate(v)]
    hover = [word("method"), quantity("coverage", title="coverage of the tested videos", format=".1%")]
    between = [
        word("method"),
        quantity("coverage", title="by frame, from", format=".1%"),
        quantity("to", title="to", format=".1%"),
    ]
    bar = {"type": "bar", "height": 24, "opacity": 0.35, "cornerRadius": 4}
    tick = {"type": "tick", "thickness": 3, "size": 30, "opacity": 0.9}
    parts = [
        layer(bars, bar, {"x": x, "x2": {"field": "to"}, "y": y, "color": colour, "tooltip": between}),
        layer([{"coverage": goal}], {"type": "rule", "color": INK, "strokeWidth": 2}, {"x": x}),
        layer(dots, tick, {"x": x, "y": y, "color": colour, "tooltip": hover}),
    ]
    sentence, said = _words(one, other, goal)
    under = "Ticks: whole videos calibrate, others are tested. Bars: the middle 90\u00a0% of halves by frame."
    return figure(parts, titled(sentence, under), said, height)


def _words(one: dict[str, np.ndarray], other: dict[str, np.ndarray], goal: float) -> tuple[str, str]:
    first = next(iter(one))
    below = int((one[first] < goal - 1e-12).sum())
    sentence = (
        f"From video to video {first} covers {percent(one[first].min())} to {percent(one[first].max())}; {below} of "
        f"{count(len(one[first]), 'draw')} {'stays' if below == 1 else 'stay'} below {promised(1 - goal)}."
    )
    each = [
        f"{m} by video {percent(v.min())} to {percent(v.max())}, by frame in the middle 90 % {percent(np.quantile(other[m], 0.05))} to "
        f"{percent(np.quantile(other[m], 0.95))}"
        for m, v in one.items()
    ]
    said = f"Tick chart of mean coverage, one row a method, with the promise of {promised(1 - goal)} as a line. {sentence} {'; '.join(each)}."
    return sentence, said
