"""The reliability diagrams of a person's own probabilities: as they are, and before and after one temperature. Tables in, charts out."""

from __future__ import annotations

from typing import TYPE_CHECKING

from core.lab.margin_own_measure import Measured
from core.lab.margin_own_words import scope_words, things

if TYPE_CHECKING:
    from core.figures.altair_figure import Figure


def own_diagram(found: Measured, scope: str) -> Figure:
    """The diagram of everything that was brought.

    Raises:
        ValueError: No pixel is in the scope.
    """
    from core.figures.margin_reliability import reliability_diagram

    table = found.whole.pooled(scope)
    words = f"{scope_words(found, scope)}, {things(found, table.pixels)}"
    titles = {"own": "your model"}
    return reliability_diagram({"own": table}, words, titles=titles, sentence=not found.own.rows)


def scaling_diagram(found: Measured, scope: str) -> Figure:
    """The half that did not choose T, before and after.

    Raises:
        ValueError: There is no temperature, or no pixel in the scope.
    """
    from core.figures.margin_reliability import reliability_diagram

    s = found.scaling
    if s is None:
        raise ValueError(found.why_not)
    tables = {"before": s.before.pooled(scope), "after": s.after.pooled(scope)}
    words = f"{scope_words(found, scope)}, the {s.shown:,} {s.unit} that had no say in T"
    titles = {"before": "as it is", "after": f"T = {s.temperature:.3g}"}
    return reliability_diagram(tables, words, titles=titles, sentence=False)
