"""Coverage against severity: every point and the promise are drawn, the severity on the screen is marked, and the words are those of the numbers."""

from __future__ import annotations

import numpy as np
import pytest

from core.figures.shift_coverage import coverage_under_shift
from tests.figures.specs import layers_of, said, spec_of, title_of

COVERAGE = {"CRC": np.array([0.91, 0.7, 0.42]), "COAT": np.array([0.9, 0.8, 0.55])}
AREA = {"CRC": np.array([0.3, 0.2, 0.1]), "COAT": np.array([0.31, 0.25, 0.15])}


def test_every_method_has_a_point_a_severity_and_the_chosen_one_is_marked():
    spec = spec_of(coverage_under_shift([0, 3, 5], COVERAGE, AREA, 0.1, 3, "JPEG compression"))
    points = layers_of(spec, "point")[0]["data"]["values"]
    assert [r["coverage"] for r in points if r["method"] == "CRC"] == [0.91, 0.7, 0.42]
    assert {r["severity"] for r in points if r["here"]} == {3} and len(points) == 6
    rules = [r for part in layers_of(spec, "rule") for r in part["data"]["values"]]
    assert {"coverage": 0.9} in rules and {"severity": 3} in rules


def test_the_lowest_point_is_inside_the_axis():
    spec = spec_of(coverage_under_shift([0, 3, 5], COVERAGE, AREA, 0.1, 3, "JPEG compression"))
    axis = layers_of(spec, "point")[0]["encoding"]["y"]["scale"]["domain"]
    assert axis[0] < 0.42 and axis[1] > 1


def test_words_say_what_is_left_of_the_promise():
    spec = spec_of(coverage_under_shift([0, 3, 5], COVERAGE, AREA, 0.1, 3, "JPEG compression"))
    assert (
        "Under JPEG compression of severity 3 coverage is CRC 70 % and COAT 80 %; promised were 90 %."
        in title_of(spec)
    )
    assert "CRC 91 % at 0, 70 % at 3, 42 % at 5" in said(spec)
    assert "On clean pictures" in title_of(
        spec_of(coverage_under_shift([0, 3, 5], COVERAGE, AREA, 0.1, 0, "JPEG"))
    )


@pytest.mark.parametrize(
    ("severities", "coverage", "at"),
    [
        ([0, 3], COVERAGE, 3),
        ([0, 3, 5], COVERAGE, 2),
        ([0, 3, 5], COVERAGE | {"CRC": np.array([1.4, 0, 0])}, 3),
    ],
)
def test_what_cannot_be_drawn_is_refused(severities, coverage, at):
    with pytest.raises(ValueError, match=r"differ in length|share from 0 to 1"):
        coverage_under_shift(severities, coverage, AREA, 0.1, at, "JPEG compression")
