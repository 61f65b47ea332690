from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from core.figures.strip import strip_chart, thresholds_chart
from tests.figures.specs import layers_of, rows_of, said, spec_of, title_of

NAMES = ["a", "b", "c", "d", "e"]
PARTS = ["test", "calibration", "test", "test", "calibration"]
COVERAGE = {"CRC": np.array([1.0, 0.5, 0.3, np.nan, 0.9]), "COAT": np.array([0.9, 0.8, 0.85, np.nan, 0.95])}


def test_every_image_with_a_lesion_is_there_once_a_method_in_the_order_of_crc():
    spec = spec_of(strip_chart(NAMES, PARTS, COVERAGE, 0.1))
    dots = next(part for part in spec["layer"] if part.get("name") == "dots")
    rows = dots["data"]["values"]
    assert [r["image"] for r in sorted(rows, key=lambda r: r["rank"])] == ["c", "b", "e", "a"]
    for r in rows:
        i = NAMES.index(r["image"])
        assert (r["CRC"], r["COAT"], r["part"]) == (COVERAGE["CRC"][i], COVERAGE["COAT"][i], PARTS[i])
    assert dots["transform"] == [{"fold": ["CRC", "COAT"], "as": ["method", "coverage"]}]


def test_the_promise_is_a_line_and_a_named_tick():
    spec = spec_of(strip_chart(NAMES, PARTS, COVERAGE, 0.2))
    assert rows_of(spec, "coverage", mark="rule")[-1]["coverage"] == 0.8
    dots = next(part for part in spec["layer"] if part.get("name") == "dots")
    assert 0.8 in dots["encoding"]["y"]["axis"]["values"]
    assert "promise 80" in dots["encoding"]["y"]["axis"]["labelExpr"]


def test_title_and_alt_text_say_the_numbers_of_the_test_images():
    spec = spec_of(strip_chart(NAMES, PARTS, COVERAGE, 0.1, area={"CRC": 0.24, "COAT": 0.26}))
    assert (
        "1 of 2 test images lies over 20 points below the 90 % promise under CRC, 0 under COAT."
        in title_of(spec)
    )
    assert "The price: CRC marks 24 % of a test image and COAT 26 %." in title_of(spec)
    assert "The mean share of the lesion inside is 65 % under CRC and 88 % under COAT" in said(spec)
    assert "1 image without a lesion is left out." in said(spec)


def test_a_click_selects_by_name():
    spec = spec_of(strip_chart(NAMES, PARTS, COVERAGE, 0.1))
    (param,) = spec["params"]
    assert param["name"] == "picked"
    assert param["select"]["fields"] == ["image"]
    assert param["views"] == ["dots"]


def test_the_picked_image_is_drawn_again_and_nothing_else_is():
    plain = spec_of(strip_chart(NAMES, PARTS, COVERAGE, 0.1))
    spec = spec_of(strip_chart(NAMES, PARTS, COVERAGE, 0.1, "b"))
    extra = spec["layer"][len(plain["layer"]) :]
    assert extra
    assert {r["image"] for part in extra for r in part["data"]["values"]} == {"b"}
    assert spec_of(strip_chart(NAMES, PARTS, COVERAGE, 0.1, "nobody"))["layer"] == plain["layer"]


def test_only_test_images_when_asked():
    spec = spec_of(strip_chart(NAMES, PARTS, COVERAGE, 0.1, show="test"))
    assert {r["image"] for r in rows_of(spec, "rank")} == {"a", "c"}


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"names": ["a"]}, "differ in length"),
        ({"parts": ["train"] * 5}, "train"),
        ({"show": "some"}, "some"),
        ({"coverage": {"CRC": COVERAGE["CRC"]}}, "alone"),
        ({"coverage": {"CRC": COVERAGE["CRC"], "magic": COVERAGE["CRC"]}}, "magic"),
        ({"coverage": {m: np.full(5, np.nan) for m in ("CRC", "COAT")}}, "lesion"),
    ],
)
def test_what_cannot_be_drawn_is_refused_in_words(change, words):
    given_ = {"names": NAMES, "parts": PARTS, "coverage": COVERAGE, "alpha": 0.1} | change
    with pytest.raises(ValueError, match=words):
        strip_chart(**given_)


@settings(max_examples=20, deadline=None)
@given(st.lists(st.tuples(st.floats(0, 1), st.floats(0, 1)), min_size=1, max_size=40), st.floats(0.02, 0.5))
def test_ranks_follow_crc_whatever_the_numbers(pairs, alpha):
    crc, coat = np.array(pairs).T
    names = [f"i{k}" for k in range(len(crc))]
    spec = strip_chart(names, ["test"] * len(crc), {"CRC": crc, "COAT": coat}, alpha).to_dict()
    rows = sorted(
        next(p for p in spec["layer"] if p.get("name") == "dots")["data"]["values"], key=lambda r: r["rank"]
    )
    assert [r["rank"] for r in rows] == list(range(1, len(crc) + 1))
    assert sorted(r["image"] for r in rows) == sorted(names)
    assert (np.diff([r["CRC"] for r in rows]) >= 0).all()


TAU = np.array([-1.0, -4.0, -2.0, -3.0, -np.inf])
SHARE = np.array([0.1, 0.02, 0.3, 0.0, 0.05])


def test_thresholds_stand_in_the_order_of_the_strip_over_the_one_line():
    spec = spec_of(thresholds_chart(NAMES, TAU, -2.2, SHARE, "b", crc_coverage=COVERAGE["CRC"], parts=PARTS))
    dots = next(part for part in spec["layer"] if part.get("name") == "dots")
    rows = sorted(dots["data"]["values"], key=lambda r: r["rank"])
    assert [r["image"] for r in rows] == ["c", "b", "e", "a"]
    assert [r["threshold"] for r in rows] == [-2.0, -4.0, -15.5, -1.0]
    assert [r["lesion"] for r in rows] == [0.3, 0.02, 0.05, 0.1]
    line = layers_of(spec, "rule")[0]
    assert line["data"]["values"] == [{"threshold": -2.2}]
    assert line["mark"]["color"] == "#E69F00"
    assert dots["mark"]["color"] == "#0072B2"
    assert spec["params"][0]["name"] == "picked"


def test_thresholds_are_told_as_probabilities():
    spec = spec_of(thresholds_chart(NAMES, TAU, -2.2, SHARE, parts=PARTS))
    assert "from 0 to 0.27; CRC takes 0.1 for every image." in title_of(spec)
    assert "2 lie below it and mark more than CRC does, 2 lie above it and mark less." in said(spec)
    assert "1 image without a lesion is left out." in said(spec)


def test_an_unpromisable_crc_is_the_whole_image():
    assert "CRC takes the whole image" in title_of(spec_of(thresholds_chart(NAMES, TAU, -np.inf, SHARE)))


def test_a_threshold_that_is_no_number_is_refused():
    with pytest.raises(ValueError, match="NaN"):
        thresholds_chart(NAMES, TAU, float("nan"), SHARE)
    with pytest.raises(ValueError, match="differ in length"):
        thresholds_chart(NAMES, TAU[:2], -2.2, SHARE)


def test_a_miniature_has_no_words_but_its_alt_text():
    spec = spec_of(strip_chart(NAMES, PARTS, COVERAGE, 0.1, height=190))
    dots = next(part for part in spec["layer"] if part.get("name") == "dots")
    assert "title" not in spec
    assert dots["encoding"]["color"]["legend"] is None
    assert dots["encoding"]["x"]["axis"]["title"] is None
    assert said(spec) == said(spec_of(strip_chart(NAMES, PARTS, COVERAGE, 0.1)))
