from __future__ import annotations

import itertools

import pytest

from core.figures.trade import gap_against_area
from tests.figures.specs import layers_of, rows_of, said, spec_of, title_of

TABLE = {
    "CRC": (0.241, 0.142),
    "COAT": (0.267, 0.107),
    "AT": (0.273, 0.110),
    "oracle": (0.16, 0.004),
    "whole image": (1.0, 0.1),
}


def test_every_method_and_both_anchors_stand_at_their_numbers():
    spec = spec_of(gap_against_area(TABLE, alpha=0.1))
    points = layers_of(spec, "point")[0]["data"]["values"]
    assert {r["method"]: (r["drawn"], r["gap"]) for r in points} == TABLE
    assert {r["method"] for r in rows_of(spec, "label_at", mark="text")} == set(TABLE)


@pytest.mark.parametrize("absent", ["oracle", "whole image"])
def test_no_gap_without_its_anchors(absent):
    with pytest.raises(ValueError, match=absent):
        gap_against_area({m: v for m, v in TABLE.items() if m != absent})


def test_rows_of_the_table_of_methods_are_taken_too():
    rows = [{"method": m, "area": a, "gap": g, "coverage": 0.9} for m, (a, g) in TABLE.items()]
    assert spec_of(gap_against_area(rows))["layer"] == spec_of(gap_against_area(TABLE))["layer"]


def test_words_hold_the_numbers():
    spec = spec_of(gap_against_area(TABLE, alpha=0.1))
    assert "CRC misses by 14.2 points for 24 % of the image and COAT by 10.7 points for 27 %." in title_of(
        spec
    )
    assert "whole image misses by 10.0 points and marks 100 % of the image" in said(spec)
    assert "alpha = 0.1" in said(spec)


def test_labels_keep_their_distance():
    near = {"CRC": (0.25, 0.11), "COAT": (0.25, 0.11), "AT": (0.25, 0.111), "plug-in": (0.26, 0.109)}
    spec = spec_of(gap_against_area(near | {a: TABLE[a] for a in ("oracle", "whole image")}))
    heights = sorted(r["label_at"] for r in rows_of(spec, "label_at", mark="text") if r["align"] == "left")
    assert min(b - a for a, b in itertools.pairwise(heights)) > 0.005


def test_an_empty_set_can_still_be_drawn_and_a_share_beyond_one_cannot():
    spec = spec_of(gap_against_area(TABLE | {"plug-in": (0.0, 0.9)}))
    assert min(r["drawn"] for r in rows_of(spec, "drawn")) > 0
    with pytest.raises(ValueError, match="CRC"):
        gap_against_area(TABLE | {"CRC": (24.1, 0.142)})


CURVES = {"CRC": ([0.05, 0.24, 1.0], [0.6, 0.142, 0.1]), "COAT": ([0.05, 0.267, 1.0], [0.5, 0.107, 0.1])}


def test_a_line_stands_behind_each_mark_in_the_method_s_own_colour_and_says_that_it_promises_nothing():
    spec = spec_of(gap_against_area(TABLE, alpha=0.1, curves=CURVES))
    line = layers_of(spec, "line")[0]
    assert spec["layer"].index(line) == 0
    rows = [(r["drawn"], r["gap"]) for r in line["data"]["values"] if r["method"] == "COAT"]
    assert rows == list(zip(*CURVES["COAT"], strict=True))
    points = layers_of(spec, "point")[0]
    assert line["encoding"]["color"]["scale"] == points["encoding"]["color"]["scale"]
    assert "Only the marks carry a promise." in title_of(spec) and "without any promise" in said(spec)
    assert not layers_of(spec_of(gap_against_area(TABLE)), "line")


@pytest.mark.parametrize(
    ("curves", "words"),
    [
        ({"AA-CRC": ([0.1], [0.1])}, "no mark"),
        ({"CRC": ([0.1, 0.2], [0.1])}, "differ"),
        ({"CRC": ([0.1], [1.4])}, "from 0 to 1"),
    ],
)
def test_a_line_that_cannot_be_is_refused(curves, words):
    with pytest.raises(ValueError, match=words):
        gap_against_area(TABLE, curves=curves)
