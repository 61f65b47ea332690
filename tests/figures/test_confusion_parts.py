"""Charts of parts and settings of CAR: what is drawn is what was given, a bar is as long as its reach, and words carry the numbers."""

from __future__ import annotations

import math

import numpy as np
import pytest

from core.figures.confusion_parts import Effect, Setting, effects, setting_charts
from core.figures.temperature_frame import description

FOUND = [
    Effect("Λ", "Blood cells", 5.0, 1.0, -0.5),
    Effect("Λ", "Skin lesions", -2.0, 1.5, 0.1),
    Effect("A memory", "Blood cells", 0.5, None, 0.0),
]
ALPHA = Setting("α, weight", (0.2, 0.5, 2.0), 0.5, (0.4, 0.6, 0.5), (0.8, 0.79, 0.7), 0.35, 0.02)


def test_effects_stand_in_rows_under_their_questions_with_their_reach():
    figure = effects(FOUND)
    blood = next(t for t in figure.data if t.name == "Blood cells, worst classes")
    skin = next(t for t in figure.data if t.name == "Skin lesions, worst classes")
    assert (
        blood.x == (5.0, 0.5)
        and blood.error_x.array == (1.0, 0.0)
        and blood.marker.symbol != skin.marker.symbol
    )
    assert [a.text for a in figure.layout.annotations] == ["Λ", "A memory"]
    assert round(blood.y[0]) == round(skin.y[0]) == 0 and round(blood.y[1]) == 1
    low, high = figure.layout.xaxis.range
    assert low < -3.5 and high > 6
    said = description(figure)
    assert "Λ, Blood cells: +5.0 points of the worst classes (± 1.0), -0.5 overall" in said
    assert "A memory, Blood cells: +0.5 points of the worst classes, +0.0 overall" in said
    with pytest.raises(ValueError, match="no difference"):
        effects([])


def test_settings_share_a_scale_and_the_usual_value_is_bold():
    beta = Setting("β", (0.0, 0.5), 0.5, (0.1, 0.6), (0.8, 0.79))
    alpha, other = setting_charts([ALPHA, beta])
    assert alpha.title == "α, weight"
    assert alpha.figure.layout.yaxis.range == other.figure.layout.yaxis.range
    assert alpha.figure.layout.xaxis.ticktext == ("0.2", "<b>0.5</b>", "2")
    worst = next(t for t in alpha.figure.data if t.name == "worst classes")
    assert worst.y == pytest.approx((40, 60, 50))
    band = alpha.figure.layout.shapes[0]
    assert (band.y0, band.y1) == pytest.approx((58, 62))
    assert "worst, CE" in {t.name for t in alpha.figure.data} and "worst, CE" not in {
        t.name for t in other.figure.data
    }
    assert "0.5 gives 60.0 and 79.0\u00a0%" in description(alpha.figure) and "CE finds 35.0" in description(
        alpha.figure
    )
    assert not np.isnan(alpha.figure.layout.yaxis.range).any() and math.isnan(beta.reference)


def test_settings_that_cannot_be_are_refused():
    for wrong in (
        Setting("γ", (0.0, 1.0), 2.0, (0.1, 0.2), (0.1, 0.2)),
        Setting("γ", (0.0, 1.0), 1.0, (0.1,), (0.1, 0.2)),
    ):
        with pytest.raises(ValueError, match="usual value"):
            setting_charts([wrong])
