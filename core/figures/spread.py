"""Coverage is itself random: the test coverage of each method over many redrawn calibration and test halves, around the promise."""

from __future__ import annotations

import numpy as np

from core.figures.altair_figure import Figure
from core.figures.frame import (
    INK,
    PERCENT,
    Part,
    by_method,
    checked_methods,
    count,
    figure,
    layer,
    legend,
    listed,
    percent,
    promised,
    quantity,
    same_length,
    titled,
    word,
)
from core.figures.palette import COLOURS, DASHES, SHAPES


def resample_histogram(
    coverage: dict[str, np.ndarray], alpha: float, shown: dict[str, float] | None = None, *, height: int = 400
) -> Figure:
    """Histograms of mean test coverage over redrawn halves, one step line a method, with the promise, the means and the split on the screen.

    Args:
        coverage: Method -> `(S,)` mean test coverage of each draw, 0 to 1.
        alpha: Share of a lesion that may be missed on average.
        shown: Method -> coverage of the split on the screen.
        height: Height of everything in pixels.

    Raises:
        ValueError: An unknown method, no draws, draws of different number, or a value outside [0, 1].
    """
    methods = checked_methods(coverage)
    values = {m: np.asarray(v, float) for m, v in coverage.items()}
    draws = same_length(**values)
    joined = np.concatenate(list(values.values()))
    if not ((joined >= 0) & (joined <= 1)).all():
        raise ValueError("Coverage is a share from 0 to 1; a draw lies outside or is not a number.")
    here = {m: float(s) for m, s in (shown or {}).items() if m in values}
    goal = 1 - alpha
    low, high = min(joined.min(), goal, *here.values()), max(joined.max(), goal, *here.values())
    room = max(0.03 * (high - low), 0.004)
    low, high = max(0.0, low - room), min(1.0, high + room)
    edges = np.linspace(low, high, 37)
    rows, tallest = [], 0.0
    for m, v in values.items():
        share = np.histogram(v, edges)[0] / draws
        tallest = max(tallest, float(share.max()))
        rows += [
            {"method": m, "low": edges[k], "high": edges[k + 1], "share": share[k], "zero": 0.0}
            for k in range(len(share))
        ]
        rows.append({"method": m, "low": edges[-1], "high": edges[-1], "share": 0.0, "zero": 0.0})
    sentence, said = _words(values, goal, here)

    x = {"scale": {"domain": [low, high], "nice": False}, "axis": _axis(low, high, goal)}
    y = {
        "scale": {"domain": [0, 1.12 * tallest], "nice": False},
        "axis": {"title": "share of the draws", "labelExpr": PERCENT, "tickCount": 4},
    }
    line_key = legend(symbolType="stroke", symbolStrokeWidth=3) | {"symbolSize": 500}
    colour, dash = by_method("color", methods, line_key), by_method("strokeDash", methods, line_key)
    where, tall = quantity("low", **x), quantity("share", **y)
    area = {"type": "area", "interpolate": "step-after", "opacity": 0.16}
    line = {"type": "line", "interpolate": "step-after", "strokeWidth": 2.5}
    parts = [
        layer(rows, area, {"x": where, "y": {**tall, "stack": None}, "color": colour}),
        layer(rows, line, {"x": where, "y": tall, "color": colour, "strokeDash": dash}),
        layer([{"low": goal}], {"type": "rule", "color": INK, "strokeWidth": 2.5}, {"x": where}),
    ]
    for k, (m, v) in enumerate(values.items()):
        mean = [{"method": m, "low": v.mean(), "share": (1.04 + 0.05 * k) * tallest, "zero": 0.0}]
        rule = {
            "type": "rule",
            "color": COLOURS[m],
            "strokeWidth": 2,
            "strokeDash": DASHES[m],
            "opacity": 0.9,
        }
        parts.append(layer(mean, rule, {"x": where, "y": quantity("zero", **y), "y2": {"field": "share"}}))
        hover = [word("method"), quantity("low", title="mean over the draws", format=".2%")]
        top = {
            "type": "point",
            "filled": True,
            "shape": SHAPES[m],
            "size": 110,
            "color": COLOURS[m],
            "opacity": 1,
        }
        parts.append(layer(mean, top, {"x": where, "y": tall, "tooltip": hover}))
    parts += _on_screen(here, x, y, tallest)
    under = "Marks above: the means." + (" Rings below: the draw on the screen." if here else "")
    return figure(parts, titled(sentence, under), said, height)


def _on_screen(here: dict[str, float], x: Part, y: Part, tallest: float) -> list[Part]:
    parts = []
    for m, at in here.items():
        row = [{"method": m, "low": at, "share": 0.035 * tallest}]
        hover = [word("method"), quantity("low", title="draw on the screen", format=".2%")]
        place = {"x": quantity("low", **x), "y": quantity("share", **y)}
        dot = {
            "type": "point",
            "filled": True,
            "shape": SHAPES[m],
            "size": 130,
            "color": COLOURS[m],
            "opacity": 1,
        }
        ring = {
            "type": "point",
            "filled": False,
            "shape": SHAPES[m],
            "size": 300,
            "color": INK,
            "strokeWidth": 2,
            "opacity": 1,
        }
        parts += [layer(row, ring, place), layer(row, dot, {**place, "tooltip": hover})]
    return parts


def _axis(low: float, high: float, goal: float) -> Part:
    step = next(s for s in (0.002, 0.005, 0.01, 0.02, 0.05, 0.1, 0.2) if (high - low) / s <= 9 or s == 0.2)
    ticks = [round(k * step, 6) for k in range(int(np.ceil(low / step - 1e-9)), int(high / step + 1e-9) + 1)]
    kept = [t for t in ticks if abs(t - goal) > 0.15 * (high - low)]
    own = round(goal, 6)
    label = f"datum.value === {own!r} ? 'promise {promised(1 - goal)}' : {PERCENT}"
    bold = {"condition": {"test": f"datum.value === {own!r}", "value": 700}, "value": 400}
    return {
        "title": "mean coverage of the test images of one draw", "values": sorted([*kept, own]), "labelExpr": label, "labelFontWeight": bold,
        "labelOverlap": False, "grid": False, "labelFlush": False,
    }  # fmt: skip


def _words(values: dict[str, np.ndarray], goal: float, here: dict[str, float]) -> tuple[str, str]:
    draws = len(next(iter(values.values())))
    mean = listed([f"{100 * v.mean():.1f}\u00a0% under {m}" for m, v in values.items()])
    redrawn = "1 redrawn half" if draws == 1 else f"{draws:,} redrawn halves"
    sentence = f"Over {redrawn} coverage is {mean}; single draws differ."
    kept = listed([f"{percent((v >= goal - 1e-12).mean())} under {m}" for m, v in values.items()])
    spread = listed([f"{100 * v.std():.1f} points under {m}" for m, v in values.items()])
    said = (
        f"Histogram of mean test coverage over {count(draws, 'draw')} of the calibration images. The mean is {mean}, the standard deviation "
        f"{spread}. Of the draws, {kept} reach the promise of {promised(1 - goal)}."
    )
    if here:
        said += (
            " The draw on the screen has "
            + listed([f"{100 * v:.1f}\u00a0% under {m}" for m, v in here.items()])
            + "."
        )
    return sentence, said
