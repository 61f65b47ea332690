"""The one-dimensional picture: minima are found where they are and nowhere else, the ball lies on its curve, and the runaway is named."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from core.figures.sparse_curve import dip, down
from core.figures.sparse_objective import Curve, local_minimum, objective
from core.figures.temperature_frame import description, sentence_of

LAM = np.geomspace(0.01, 10, 121)


def curve(error: np.ndarray) -> Curve:
    return Curve(LAM, error / (LAM + 0.01), error, 1 - np.exp(-2 * LAM))


SHALLOW = curve(0.05 + 0.95 * LAM**2.1 / (LAM**2.1 + 1.3))
"""A minimum near 0.27, a barrier near 1, and the fall to the right (K = 2 in METHODS 4.9)."""
ENDLESS = curve(0.25 + 0.75 * LAM / (LAM + 3))
"""No minimum: the objective falls all the way."""
WAY = np.geomspace(0.12, 0.26, 21)


def named(figure: Any, name: str) -> Any:
    return next(t for t in figure.data if t.name == name)


def test_a_minimum_is_where_the_finest_grid_has_it_and_an_endless_fall_has_none():
    found = local_minimum(LAM, SHALLOW.objective)
    inside = (LAM > 0.05) & (LAM < 0.8)
    assert found == pytest.approx(LAM[inside][SHALLOW.objective[inside].argmin()])
    assert local_minimum(LAM, ENDLESS.objective) is None
    assert local_minimum(LAM, 1 + LAM) is None  # an end is no minimum


def test_a_dip_of_dust_is_none_and_of_two_the_deeper_counts():
    y = np.array([5.0, 4.0, 3.0, 3.001, 2.0, 1.0])
    assert dip(y) is None and dip(np.array([5.0, 4.0, 3.0, 3.1, 2.0, 1.0])) == (2, 3)
    assert dip(np.array([5.0, 3.0, 4.0, 2.0, 2.5, 1.0])) == (3, 4)
    assert dip(np.full(6, 1.0)) is None


@given(st.lists(st.floats(0.1, 10), min_size=3, max_size=40))
def test_a_minimum_is_interior_and_lower_than_its_neighbours(values: list[float]):
    y = np.array(values)
    found = dip(y)
    if found is None:
        lows = [k for k in range(1, len(y) - 1) if y[k] < y[k - 1] * 0.99 and y[k] < y[k + 1] * 0.99]
        assert not lows
    else:
        k, top = found
        assert 0 < k < top < len(y) + 1 and y[k] <= min(y[k - 1], y[k + 1]) and y[top] > y[k]


def test_every_curve_passes_through_one_at_the_trained_lambda_and_minima_are_marked():
    figure = objective({2: SHALLOW, 8: ENDLESS}, 0.12, way=WAY)
    for k, c in ((2, SHALLOW), (8, ENDLESS)):
        line = named(figure, f"K = {k}")
        assert np.interp(np.log(0.12), np.log(LAM), line.y) == pytest.approx(1, abs=1e-3)
        assert np.array(line.customdata) == pytest.approx(c.objective, rel=1e-3)
    mark = named(figure, "minimum, K = 2")
    assert mark.x[0] == pytest.approx(local_minimum(LAM, SHALLOW.objective), rel=1e-3)
    assert "minimum, K = 8" not in {t.name for t in figure.data}
    assert named(figure, "K = 2").line.width > named(figure, "K = 8").line.width


def test_the_ball_rolls_on_its_curve_and_its_place_on_r_and_sparsity_moves_along():
    figure = objective({2: SHALLOW}, 0.12, way=WAY)
    assert len(figure.frames) == 21 and figure.layout.sliders[0].active == 20
    base = np.interp(np.log(0.12), np.log(LAM), SHALLOW.objective)
    for k in (0, 7, 20):
        steps, ball, place = figure.frames[k].data
        assert len(steps.x) == k + 1 and ball.x[0] == pytest.approx(WAY[k], rel=1e-4)
        assert ball.y[0] == pytest.approx(
            np.interp(np.log(WAY[k]), np.log(LAM), SHALLOW.objective) / base, rel=1e-3
        )
        assert place.y[0] == pytest.approx(
            100 * np.interp(np.log(WAY[k]), np.log(LAM), SHALLOW.error), rel=1e-3
        )
    assert figure.frames[0].data[1].marker.color != figure.frames[5].data[1].marker.color
    assert "The ball goes from 0.12 to 0.26 in 20 steps." in description(figure)
    for none in (None, []):
        still = objective({2: SHALLOW}, 0.12, way=none)
        assert not still.frames and not still.layout.sliders and "ball" not in {t.name for t in still.data}
    assert named(objective({2: SHALLOW}, 0.12, way=[50.0]), "ball").x[0] == 10.0  # never outside the curve


def test_words_say_which_way_is_down_where_the_minimum_is_and_that_infinity_is_the_lowest():
    figure = objective({2: SHALLOW, 8: ENDLESS}, 0.12)
    low, top = dip(SHALLOW.objective)
    barrier = 100 * (SHALLOW.objective[top] / SHALLOW.objective[low] - 1)
    assert f"its local minimum lies at {LAM[low]:.2f}, behind a barrier of {barrier:.1f}" in sentence_of(
        figure
    )
    assert "falls towards larger λ" in sentence_of(
        figure
    ) and "global minimum lies at infinity" in description(figure)
    texts = [a.text for a in figure.layout.annotations]
    assert any("runaway" in t for t in texts) and any(
        f"local minimum at λ = {LAM[low]:.2f}" in t for t in texts
    )
    other = objective({2: SHALLOW, 8: ENDLESS}, 0.12, chosen=8)
    assert "no local minimum on the way to 10." in sentence_of(other)
    assert any("K = 8: no local minimum" in a.text for a in other.layout.annotations)
    beyond = objective({2: SHALLOW}, 4.0)
    assert "without end: it lies beyond the barrier" in sentence_of(beyond)
    assert down(SHALLOW, 0.5) == "smaller" and down(SHALLOW, 0.12) == "larger"


def test_the_clamp_is_shaded_and_without_reach_it_is_not():
    boxes = [s for s in objective({2: SHALLOW}, 0.12, reach=4).layout.shapes if s.type == "rect"]
    assert [(b.x0, b.x1) for b in boxes] == [pytest.approx((0.03, 0.48))] * 2
    assert not [s for s in objective({2: SHALLOW}, 0.12, reach=None).layout.shapes if s.type == "rect"]


def test_a_recorded_objective_curve_of_a_layer_is_taken_as_it_is():
    wild = curve(0.05 + 0.95 * (1 - np.exp(-((LAM / 0.02) ** 2))))
    figure = objective({1: wild, 2: SHALLOW, 4: ENDLESS, 8: SHALLOW, 16: SHALLOW}, 0.12, compact=True)
    assert (
        0 < figure.layout.yaxis.range[1] < 5
        and len({(t.line.color, t.line.dash) for t in figure.data if (t.name or "").startswith("K =")}) == 5
    )
    assert len(figure.to_json()) < 100_000


@pytest.mark.parametrize(
    ("make", "words"),
    [
        (lambda: objective({}, 0.1), "no curve"),
        (lambda: objective({2: SHALLOW}, 0.1, chosen=4), "K = 4 is not among 2"),
        (lambda: objective({2: SHALLOW}, 20.0), "lies outside"),
        (lambda: objective({2: Curve(LAM[::-1], LAM, LAM, LAM)}, 0.1), "rise"),
        (lambda: objective({2: Curve(LAM, LAM[:3], LAM, LAM)}, 0.1), "shape"),
        (lambda: objective({2: Curve(LAM, LAM * np.nan, LAM, LAM)}, 0.1), "numbers"),
        (lambda: objective({2: SHALLOW}, 0.1, way=[0.1, -1.0]), "above 0"),
    ],
)
def test_curves_that_cannot_be_are_refused(make: Any, words: str):
    with pytest.raises(ValueError, match=words):
        make()
