"""The axis of λ, its numbers and moves in words, and the ramp of depth."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from core.figures.sparse_look import depth_colours, lambda_axis
from core.figures.sparse_words import moves_words, number


@given(st.floats(1e-5, 1e5), st.floats(1e-5, 1e5))
def test_an_axis_of_lambda_has_ticks_inside_and_numbers_keep_two_digits(a: float, b: float):
    low, high = sorted((a, b))
    axis = lambda_axis((low / 1.5, high * 1.5))
    assert all(low / 1.5 <= t <= high * 1.5 for t in axis["tickvals"]) and 1 <= len(axis["tickvals"]) <= 12
    for text, value in zip(axis["ticktext"], axis["tickvals"], strict=True):
        assert float(text.replace(",", "")) == pytest.approx(value, rel=0.06)
    assert float(number(a).replace(",", "")) == pytest.approx(a, rel=0.051)


@given(st.lists(st.floats(-1, 1), min_size=2, max_size=20))
def test_moves_are_counted_by_sign(logs: list[float]):
    before = np.full(len(logs), 0.1)
    said = moves_words([f"l{k}" for k in range(len(logs))], before, before * np.exp(logs))
    up, down = sum(v > 0.005 for v in logs), sum(v < -0.005 for v in logs)
    assert (f"rises in {up} " in said) == (up > 0) and (f"falls in {down} " in said) == (down > 0)
    if up + down:
        assert f"most in l{int(np.argmax(np.abs(logs)))}" in said


def test_depth_runs_from_one_colour_to_another_and_every_layer_has_its_own():
    colours = depth_colours(17)
    assert (
        len(set(colours)) == 17
        and depth_colours(2) == [colours[0], colours[-1]]
        and len(depth_colours(1)) == 1
    )

    def light(colour: str) -> float:
        parts = [int(colour[k : k + 2], 16) / 255 for k in (1, 3, 5)]
        linear = [c / 12.92 if c <= 0.04045 else ((c + 0.055) / 1.055) ** 2.4 for c in parts]
        return float(np.dot(linear, (0.2126, 0.7152, 0.0722)))

    for colour in colours:
        assert (
            1.05 / (light(colour) + 0.05) > 2 and (light(colour) + 0.05) / 0.055 > 2.5
        )  # on white, and on the dark page
    assert all(math.isfinite(light(c)) for c in colours)
