"""A finished Altair chart that costs nothing to hand over: its parts are plain Vega-Lite dictionaries, checked by tests and not at every slider move.

Altair checks every chart against its schema each time it is written out, rows of data included; with 300 images that takes longer than all the
calibration behind the picture. A `Figure` is an ordinary layered chart in all else: pages show it with `st.altair_chart`, and `.properties(...)`
works. No chart is defined here.
"""

from __future__ import annotations

import json
from typing import Any

import altair as alt
from altair.utils.schemapi import SchemaBase


class Figure(alt.LayerChart):
    """A layered chart made of dictionaries.

    Args:
        **spec: Top-level properties of a Vega-Lite specification with `layer`, all JSON-able.
    """

    def __init__(self, **spec: Any) -> None:
        SchemaBase.__init__(self, **spec)

    def to_dict(self, validate: bool = False, **more: Any) -> dict[str, Any]:
        """The specification as a dictionary of its own; `validate=True` checks it against the schema (slow)."""
        parts = {k: v for k, v in self._kwds.items() if v is not alt.Undefined}
        if validate or more or any(isinstance(v, SchemaBase) for v in parts.values()):
            done: dict[str, Any] = super().to_dict(validate=validate, **more)
            return done
        return {"$schema": alt.SCHEMA_URL} | json.loads(json.dumps(parts))
