from __future__ import annotations

import json
import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from core.figures import frame
from core.figures.altair_figure import Figure


@pytest.mark.parametrize(
    ("share", "words"),
    [(0, "0"), (0.0004, "0.1"), (0.004, "0.4"), (0.384, "38"), (0.996, "99.6"), (0.9999, "99.9"), (1, "100")],
)
def test_percent_never_rounds_a_miss_away(share, words):
    assert frame.percent(share) == f"{words}\u00a0%"


@given(st.floats(0, 1))
def test_only_the_whole_is_called_100_percent_and_only_nothing_0(share):
    text = frame.percent(share)
    assert (text == "100\u00a0%") == (share == 1)
    assert (text == "0\u00a0%") == (share == 0)


@pytest.mark.parametrize(("alpha", "words"), [(0.1, "90"), (0.025, "97.5"), (0.005, "99.5"), (0.3, "70")])
def test_a_promise_is_never_rounded_up(alpha, words):
    assert frame.promised(alpha) == f"{words}\u00a0%"


@given(st.floats(-8, 8))
def test_a_threshold_in_words_is_close_to_the_probability(tau):
    p = 1 / (1 + math.exp(-tau))
    assert float(frame.chance(tau)) == pytest.approx(p, rel=0.06)
    assert 1 - float(frame.chance(tau)) == pytest.approx(1 - p, rel=0.5)


def test_infinite_thresholds_have_words_and_a_place():
    assert frame.chance(-math.inf) == "0"
    assert frame.within(-math.inf) == -frame.LIMIT


@given(st.lists(st.floats(-20, 20), min_size=1, max_size=9))
def test_a_logit_axis_holds_every_value_and_at_least_two_ticks_inside(values):
    made = frame.logit_axis(values, "x")
    low, high = made["scale"]["domain"]
    assert all(low < frame.within(v) < high for v in values)
    ticks = made["axis"]["values"]
    assert all(low <= t <= high for t in ticks)
    assert len(ticks) >= (2 if low < 13.8 and high > -13.8 else 0)


def test_a_named_tick_pushes_its_neighbours_away():
    axis = frame.share_axis("y", named={"promise": 0.81})
    assert 0.81 in axis["values"]
    assert 0.8 not in axis["values"]
    assert "'promise'" in axis["labelExpr"]


def test_arrays_of_different_length_are_named():
    with pytest.raises(ValueError, match=r"one 2, two 3"):
        frame.same_length(one=[1, 2], two=[1, 2, 3])
    with pytest.raises(ValueError, match="nothing to draw"):
        frame.same_length(one=[])


def test_a_method_without_a_colour_is_refused():
    with pytest.raises(ValueError, match="magic"):
        frame.checked_methods(["CRC", "magic"])


def test_a_figure_hands_over_a_dictionary_of_its_own():
    rows = [
        {"x": np.float32(0.1), "n": np.int64(3), "b": np.bool_(True), "bad": float("nan"), "s": np.str_("a")}
    ]
    made = frame.figure(
        [frame.layer(rows, {"type": "point"}, {"x": frame.quantity("x")})],
        frame.titled("One point."),
        "One point.",
        200,
    )
    assert isinstance(made, Figure)
    first = made.to_dict()
    first["layer"].clear()
    again = made.to_dict()
    assert again["layer"][0]["data"]["values"] == [{"x": 0.1, "n": 3, "b": True, "bad": None, "s": "a"}]
    assert json.dumps(again)
    assert made.properties(height=99).to_dict()["height"] == 99


def test_text_takes_the_colour_of_the_page():
    look = frame.figure(
        [frame.layer([{"x": 1}], {"type": "text"}, {})], frame.titled("A", "b"), "A.", 100
    ).to_dict()["config"]
    colours = [
        look["axis"]["labelColor"],
        look["title"]["color"],
        look["title"]["subtitleColor"],
        look["text"]["color"],
        look["legend"]["labelColor"],
    ]
    assert set(colours) == {"currentColor"}
    assert look["background"] == "transparent"
    assert (
        min(
            look["axis"]["labelFontSize"],
            look["legend"]["labelFontSize"],
            look["text"]["fontSize"],
            look["title"]["subtitleFontSize"],
        )
        >= 13
    )
