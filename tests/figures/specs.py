"""What tests ask of a chart: its rows, its words, its validity."""

from __future__ import annotations

from typing import Any

import altair as alt


def spec_of(chart: alt.LayerChart) -> dict[str, Any]:
    """The chart as a dictionary that Vega-Lite's own schema accepts."""
    return chart.to_dict(validate=True)


def rows_of(spec: dict[str, Any], *fields: str, mark: str | None = None) -> list[dict[str, Any]]:
    """Rows of the layers that have all these fields (and this mark)."""
    found = []
    for part in spec["layer"]:
        rows = part["data"]["values"]
        if rows and all(f in rows[0] for f in fields) and mark in (None, part["mark"]["type"]):
            found += rows
    return found


def layers_of(spec: dict[str, Any], mark: str) -> list[dict[str, Any]]:
    """Layers with a mark."""
    return [part for part in spec["layer"] if part["mark"]["type"] == mark]


def title_of(spec: dict[str, Any]) -> str:
    """Title and subtitle in one line."""
    return " ".join([*spec["title"]["text"], *spec["title"].get("subtitle", [])]).replace("\u00a0", " ")


def said(spec: dict[str, Any]) -> str:
    """The alt text with ordinary spaces."""
    return spec["description"].replace("\u00a0", " ")
