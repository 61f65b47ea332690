"""Labelled lines at the methods' thresholds, for charts whose horizontal axis is the threshold."""

from __future__ import annotations

from core.figures.frame import INK, Part, layer, quantity, word
from core.figures.palette import COLOURS, DASHES


def right_end(at: list[Part], low: float, high: float) -> float:
    """Where an axis from `low` must end so that every label fits to the right of its line.

    Args:
        at: Rows with `threshold` (logits) and `label`.
        low: Start of the axis in logits.
        high: End of the axis without labels.
    """
    return max([high, *(low + (r["threshold"] - low) / max(1.0 - _room(r), 0.3) for r in at)])


def placed_labels(at: list[Part], span: tuple[float, float]) -> tuple[list[Part], int]:
    """Put the labels of marks into rows so that none runs into another; no line crosses a label.

    Args:
        at: Rows with `threshold` (logits) and `label`.
        span: Lowest and highest logit of the axis.

    Returns:
        The rows, by rising threshold, with `level` (0 is the top row), and the number of levels.
    """
    low, high = span
    ends: list[float] = []
    placed: list[Part] = []
    for row in sorted(at, key=lambda r: r["threshold"]):
        x = (row["threshold"] - low) / max(high - low, 1e-6)
        level = next((k for k in range(len(ends)) if all(x >= e for e in ends[k:])), len(ends))
        ends[level:] = [x + _room(row)]
        placed.append(row | {"level": level})
    return placed, 1 + max((r["level"] for r in placed), default=-1)


def _room(row: Part) -> float:
    """Width of a label as a share of a chart of half a page."""
    return 0.021 * len(row["label"]) + 0.03


def mark_layers(row: Part, x: Part, y: Part) -> list[Part]:
    """The line of one method from `floor` to `top`, and its label at `top`.

    Args:
        row: With `method`, `threshold`, `label`, `floor` and `top`.
        x: Scale and axis of the threshold.
        y: Scale and axis upwards.
    """
    line = {
        "type": "rule",
        "color": COLOURS[row["method"]],
        "strokeWidth": 2.5,
        "strokeDash": DASHES[row["method"]],
    }
    text = {"type": "text", "align": "left", "baseline": "middle", "dx": 6}
    where = quantity("threshold", **x)
    return [
        layer([row], line, {"x": where, "y": quantity("floor", **y), "y2": {"field": "top"}}),
        layer(
            [row],
            text | {"fontWeight": 600, "color": INK},
            {"x": where, "y": quantity("top", **y), "text": word("label")},
        ),
    ]
