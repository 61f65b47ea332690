from __future__ import annotations

import numpy as np
import pytest

from core.figures.nested import KINDS, nested_chart
from tests.figures.specs import layers_of, said, spec_of, title_of

ALPHAS = np.array([0.05, 0.1, 0.2, 0.3])
TAU = np.array([-1.0, -2.0, -1.5, 0.0])
NESTED = np.array([-2.0, -2.0, -1.5, 0.0])


def test_both_lines_hold_their_thresholds():
    line = layers_of(spec_of(nested_chart(ALPHAS, TAU, NESTED, 0.1)), "line")[0]
    for kind, values in zip(KINDS, (TAU, NESTED), strict=True):
        assert [r["threshold"] for r in line["data"]["values"] if r["kind"] == kind] == values.tolist()


def test_words_say_where_sets_cross_and_where_they_do_not():
    spec = spec_of(nested_chart(ALPHAS, TAU, NESTED, 0.1))
    assert (
        "sets cross: nesting lowers its threshold at 1 of 4 values of α, most at α = 0.05, from 0.27 to 0.12"
        in title_of(spec)
    )
    assert "At alpha = 0.1 they are 0.12 and 0.12" in said(spec)
    assert "nest as they are" in title_of(spec_of(nested_chart(ALPHAS, NESTED, NESTED, 0.1, method="AT")))


def test_the_whole_image_is_drawn_at_the_edge():
    low = np.array([-np.inf, -2.0, -1.5, 0.0])
    line = layers_of(spec_of(nested_chart(ALPHAS, low, low, 0.1)), "line")[0]
    assert line["data"]["values"][0]["threshold"] == -15.5 and line["data"]["values"][0]["own"] == "0"


@pytest.mark.parametrize(
    ("alphas", "tau", "nested"),
    [
        (ALPHAS[::-1], TAU, NESTED),
        (ALPHAS, NESTED, TAU),
        (ALPHAS[:3], TAU, NESTED),
        (ALPHAS, TAU * np.nan, NESTED),
    ],
)
def test_what_does_not_nest_is_refused(alphas, tau, nested):
    with pytest.raises(ValueError, match=r"rise|length"):
        nested_chart(alphas, tau, nested, 0.1)
