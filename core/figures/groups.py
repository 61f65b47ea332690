"""Does every group get its share? Coverage of each group of images under one shift for all and under one shift a group.

Numbers come from whoever calibrated; small groups come marked. A gap is not drawn here, so no anchors are needed; area is told in the alt text.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from core.figures.altair_figure import Figure
from core.figures.frame import (
    INK,
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
    share_axis,
    titled,
    word,
)

ROW, HEAD = 54, 150
"""Pixels of one group, and of everything that is not a group."""


def group_chart(
    rows: Sequence[Mapping[str, Any]], alpha: float, groups: str, *, height: int | None = None
) -> Figure:
    """One row a group; hollow marks are one shift for all, filled ones one shift a group.

    Args:
        rows: In the order of the groups, with `group`, `method` (a name of `palette`), `by_group` (bool), `coverage` and `area` (0 to 1) and
            `testing` (images).
        alpha: Share of a lesion that may be missed on average.
        groups: What the groups are, such as "body site".
        height: Height of everything in pixels; grows with the groups when None.

    Raises:
        ValueError: No rows, an unknown method, or a share outside [0, 1].
    """
    if not rows:
        raise ValueError("There is no group to draw.")
    methods = checked_methods(dict.fromkeys(str(r["method"]) for r in rows))
    if not all(0 <= r["coverage"] <= 1 and 0 <= r["area"] <= 1 for r in rows):
        raise ValueError("Coverage and area are shares from 0 to 1.")
    order = list(dict.fromkeys(str(r["group"]) for r in rows))
    both = {bool(r["by_group"]) for r in rows}
    sentence, said = _words(rows, order, methods, alpha, groups)
    goal = 1 - alpha
    low = min(0.95 * min(float(r["coverage"]) for r in rows), goal - 0.1)
    x_axis = share_axis(
        "mean share of the lesion inside", named={f"promise {promised(alpha)}": goal}, grid=True
    )
    x = quantity(
        "coverage", scale={"domain": [max(low, 0.0), 1.01], "nice": False, "zero": False}, axis=x_axis
    )
    y = word("group", sort=order, axis={"title": None, "grid": True, "labelLimit": 170})
    offset = word("method", sort=methods, scale={"domain": methods, "paddingOuter": 0.6})
    look = {"shape": by_method("shape", methods), "color": by_method("color", methods, legend())}
    hover = [
        word("group"),
        word("name", title="method"),
        quantity("coverage", title="lesion inside", format=".1%"),
        quantity("area", title="image marked", format=".1%"),
        quantity("testing", title="test images"),
    ]
    data = [dict(r) | {"name": f"{r['method']}{' by group' if r['by_group'] else ''}"} for r in rows]
    parts: list[Part] = [
        layer([{"coverage": goal}], {"type": "rule", "color": INK, "strokeWidth": 1.5}, {"x": x})
    ]
    if len(both) == 2:
        ties = {
            "x": quantity("from", scale=x["scale"], axis=x["axis"]),
            "x2": {"field": "to"},
            "y": y,
            "yOffset": offset,
        }
        line = {"type": "rule", "strokeWidth": 1.5, "opacity": 0.7}
        parts.append(layer(_ties(data), line, ties | {"color": look["color"]}))
    for by_group in sorted(both):
        mark = {"type": "point", "filled": by_group, "size": 130, "opacity": 1, "strokeWidth": 2.5}
        some = [r for r in data if bool(r["by_group"]) == by_group]
        parts.append(layer(some, mark, {"x": x, "y": y, "yOffset": offset, **look, "tooltip": hover}))
    under = (
        "Hollow: one shift for all. Filled: one shift a group." if len(both) == 2 else "One shift for all."
    )
    return figure(parts, titled(sentence, under), said, height or HEAD + ROW * len(order))


def _ties(data: Sequence[Part]) -> list[Part]:
    """A line from the hollow mark to the filled one, for each group and method that has both."""
    at: dict[tuple[str, str], dict[bool, float]] = {}
    for r in data:
        at.setdefault((r["group"], r["method"]), {})[bool(r["by_group"])] = float(r["coverage"])
    return [
        {"group": g, "method": m, "from": v[False], "to": v[True]} for (g, m), v in at.items() if len(v) == 2
    ]


def _words(
    rows: Sequence[Mapping[str, Any]], order: list[str], methods: list[str], alpha: float, groups: str
) -> tuple[str, str]:
    first = methods[0]

    def lowest(by_group: bool) -> str:
        some = [r for r in rows if r["method"] == first and bool(r["by_group"]) == by_group]
        worst = min(some, key=lambda r: float(r["coverage"]))
        return f"{percent(float(worst['coverage']))} ({worst['group']})"

    sentence = f"Under {first} and one shift for all, the worst group by {groups} has {lowest(False)} of its lesion inside"
    if any(r["by_group"] for r in rows):
        sentence += f"; with one shift a group, {lowest(True)}"
    each = []
    for g in order:
        told = [
            f"{percent(float(r['coverage']))} for {percent(float(r['area']))} of the image under {r['method']}"
            f"{' by group' if r['by_group'] else ''}"
            for r in rows
            if r["group"] == g
        ]
        images = next(int(r["testing"]) for r in rows if r["group"] == g)
        each.append(f"{g}, {count(images, 'test image')}: {listed(told)}")
    said = (
        f"Dot chart of coverage by {groups}, the promise is {promised(alpha)}. {sentence}. {'; '.join(each)}."
    )
    return sentence + ".", said
