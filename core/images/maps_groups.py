"""A CSV of groups: the first column names the map, each other column is a group that is known without the mask."""

from __future__ import annotations

import csv
import io

from core.images.errors import BadImage, tidy_name
from core.images.maps_names import case_of, listed


def columns_of(
    table: tuple[str, bytes], names: dict[str, str], notes: list[str]
) -> dict[str, dict[str, str]]:
    """Read the table.

    Args:
        table: (name, bytes) of the CSV: commas, semicolons or tabs; UTF-8 or Latin-1.
        names: Key -> name of each map.
        notes: Gets a sentence on maps that the table does not name.

    Returns:
        Column -> key of a map -> value.

    Raises:
        BadImage: It is no such table, or names no map.
    """
    name, data = table
    shown = tidy_name(name)
    try:
        text = data.decode("utf-8-sig")
    except UnicodeDecodeError:
        text = data.decode("latin-1")
    mark = max(",;\t", key=text.split("\n", 1)[0].count)
    try:
        rows = [
            row for row in csv.reader(io.StringIO(text), delimiter=mark) if any(cell.strip() for cell in row)
        ]
    except csv.Error:
        rows = []
    if len(rows) < 2 or len(rows[0]) < 2:
        raise BadImage(
            f"{shown} is no table of groups: its first line must name the columns, the first column names the map and each other one is a group."
        )
    head = [cell.strip() for cell in rows[0]]
    by_name: dict[str, list[str]] = {}
    for row in rows[1:]:
        cells = [*(cell.strip() for cell in row), *[""] * (len(head) - len(row))]
        by_name[case_of(row[0].strip())[1].lower()] = cells
    last = {k: n.lower().rsplit("/", 1)[-1] for k, n in names.items()}
    known = {k: by_name[n] for k, n in last.items() if n in by_name}
    missing = [names[k] for k in names if k not in known]
    if not known:
        first = rows[1][0].strip()[:40]
        raise BadImage(
            f"No name in the first column of {shown} is the name of a map (the first is “{first}”)."
        )
    if missing:
        notes.append(
            f"{shown} says nothing of {len(missing)} of {len(names)} maps ({listed(missing)}); their group is “unknown”."
        )
    return {c: {k: known[k][j] or "unknown" for k in known} for j, c in enumerate(head) if j > 0 and c}
