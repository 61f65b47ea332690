"""A CSV as columns of numbers and words. Tolerant to delimiter (comma, semicolon, tab), decimal commas and a missing header.

What the columns mean is told in `margin_own_columns`.
"""

from __future__ import annotations

import csv
import io
from array import array
from collections.abc import Iterator
from dataclasses import dataclass, field

import numpy as np

from core.images.errors import BadImage, tidy_name
from core.images.limits import Budget

MOST_BYTES = 64 * 1024**2
MOST_ROWS = 1_000_000
MOST_COLUMNS = 1_024


@dataclass(frozen=True, eq=False)
class Table:
    """A CSV as it was found.

    Attributes:
        name: The file's name.
        columns: Names of the columns; "column 1" and so on where there is no header.
        numbers: Column -> `(R,)` float64, NaN where a cell is empty or no number.
        words: Column -> R cells, for columns that are not numbers throughout.
        header: Whether the first line named the columns.
        first_line: Line of the first row of numbers, for sentences.
    """

    name: str
    columns: tuple[str, ...]
    numbers: dict[str, np.ndarray] = field(repr=False)
    words: dict[str, list[str]] = field(repr=False)
    header: bool
    first_line: int


def read_table(name: str, data: bytes, budget: Budget) -> Table:
    """Read a CSV.

    Args:
        name: The file's name.
        data: The whole file, UTF-8 or Latin-1.
        budget: Limits of this upload.

    Raises:
        BadImage: It is too large, holds no table, or its rows differ in length.
    """
    shown = tidy_name(name)
    if len(data) > MOST_BYTES:
        raise BadImage(
            f"{shown} has {len(data) / 1024**2:.0f} MB; a CSV may have {MOST_BYTES // 1024**2} (limit on bytes). Save the arrays as NPZ instead."
        )
    budget.spent += len(data)
    try:
        text = data.decode("utf-8-sig")
    except UnicodeDecodeError:
        text = data.decode("latin-1")
    if "\x00" in text[:1000]:
        raise BadImage(f"{shown} is called CSV, but it holds no text. Save the table as CSV again.")
    lines = text.splitlines()
    start = next((k for k, line in enumerate(lines) if line.strip()), len(lines))
    if start >= len(lines):
        raise BadImage(f"{shown} is empty. Write one row a sample: its label and one column a class.")
    mark = max(",;\t", key=lines[start].count)
    comma = mark != "," and any("," in line for line in lines[start : start + 20])
    try:
        return _table(shown, "\n".join(lines[start:]), mark, comma, start)
    except csv.Error as problem:
        raise BadImage(f"{shown} cannot be read as a CSV ({problem}). Save the table again.") from None


def _table(shown: str, text: str, mark: str, comma: bool, start: int) -> Table:
    reader = csv.reader(io.StringIO(text), delimiter=mark, skipinitialspace=True)
    first = [cell.strip() for cell in next(reader)]
    if not 2 <= len(first) <= MOST_COLUMNS:
        raise BadImage(
            f"{shown} has {len(first)} column{'s' if len(first) > 1 else ''}; at least two are needed, a label and a score, and at most "
            f"{MOST_COLUMNS:,} are read. Columns are divided by comma, semicolon or tab."
        )
    header = any(np.isnan(_number(cell, comma)) and cell for cell in first)
    columns = first if header else [f"column {k + 1}" for k in range(len(first))]
    columns = [c or f"column {k + 1}" for k, c in enumerate(columns)]
    if len(set(columns)) != len(columns):
        twice = next(c for c in columns if columns.count(c) > 1)
        raise BadImage(f"{shown} has two columns called {twice[:40]}. Give each its own name.")
    numbers = [array("d") for _ in columns]
    words: list[list[str] | None] = [None] * len(columns)
    count = 0
    rows: Iterator[list[str]] = reader if header else _chained(first, reader)
    for line in rows:
        if not any(cell.strip() for cell in line):
            continue
        if len(line) != len(columns):
            raise BadImage(
                f"Line {start + reader.line_num} of {shown} has {len(line)} cells and the first line {len(columns)}. Every row needs one "
                f"cell a column."
            )
        if count >= MOST_ROWS:
            raise BadImage(
                f"{shown} has more than {MOST_ROWS:,} rows (limit on rows). Save the arrays as NPZ instead, or send a part of them."
            )
        for k, cell in enumerate(line):
            value = _number(cell, comma)
            kept = words[k]
            if (
                kept is None
                and value != value
                and cell.strip()
                and cell.strip().lower() not in ("nan", "na", "null", "none")
            ):
                kept = words[k] = [f"{v:.12g}" if v == v else "" for v in numbers[k]]
            if kept is not None:
                kept.append(cell.strip())
            numbers[k].append(value)
        count += 1
    if not count:
        raise BadImage(f"{shown} names its columns and has no row under them. Write one row a sample.")
    return Table(
        shown, tuple(columns), {c: np.frombuffer(v, np.float64) for c, v in zip(columns, numbers, strict=True)},
        {c: w for c, w in zip(columns, words, strict=True) if w is not None}, header, start + 1 + header,
    )  # fmt: skip


def _chained(first: list[str], rest: Iterator[list[str]]) -> Iterator[list[str]]:
    yield first
    yield from rest


def _number(cell: str, comma: bool) -> float:
    try:
        return float(cell.strip().replace(",", ".") if comma else cell)
    except ValueError:
        return float("nan")
