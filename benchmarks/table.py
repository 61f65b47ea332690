"""Rows of figures as a table that a person can read on a terminal. It measures nothing."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any


def cell(value: Any) -> str:
    """One value as text: four significant digits for a fraction, a dash for what is missing or not a number."""
    if value is None or (isinstance(value, float) and math.isnan(value)):
        return "–"
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, float):
        if math.isinf(value):
            return "∞" if value > 0 else "-∞"
        if value == int(value) and abs(value) >= 1e4:
            return f"{value:.0f}"
        return f"{value:.4g}"
    if isinstance(value, (list, tuple)):
        return ", ".join(cell(v) for v in value)
    return str(value)


def table(rows: Sequence[Mapping[str, Any]]) -> str:
    """Lay out rows under the union of their keys; numbers stand on the right, words on the left.

    Args:
        rows: Flat objects. Keys that a row lacks show as a dash.

    Returns:
        Lines joined by newlines, "" for no rows.
    """
    if not rows:
        return ""
    keys = list(dict.fromkeys(key for row in rows for key in row))
    texts = [[cell(row.get(key)) for key in keys] for row in rows]
    widths = [max(len(key), *(len(line[k]) for line in texts)) for k, key in enumerate(keys)]
    words = [any(isinstance(row.get(key), str) for row in rows) for key in keys]

    def line(parts: Sequence[str]) -> str:
        fitted = (p.ljust(w) if left else p.rjust(w) for p, w, left in zip(parts, widths, words, strict=True))
        return "  ".join(fitted).rstrip()

    return "\n".join([line(keys), line(["─" * w for w in widths]), *(line(t) for t in texts)])


def show(rows: Sequence[Mapping[str, Any]], leave_out: Sequence[str] = ()) -> None:
    """Print rows as a table without some of their columns."""
    print(table([{key: value for key, value in row.items() if key not in leave_out} for row in rows]))


def summary(facts: Mapping[str, Any]) -> str:
    """Single figures, one a line, names padded to one width."""
    width = max((len(key) for key in facts), default=0)
    return "\n".join(f"{key.ljust(width)}  {cell(value)}" for key, value in facts.items())
