from __future__ import annotations

import csv
import io
import json
import math

import numpy as np
import pytest
from PIL import Image

from core.figures.palette import COLOURS, rgb_of
from core.lab.study import METHODS, PROMISED, TABLE
from core.lab.take_away import (
    chart_rows,
    image_rows,
    outlines_png,
    pool_rows,
    probability,
    promise_settings,
    set_png,
    study_rows,
    to_csv,
    trade_lines,
)
from tests.lab.made_study import made_promise, made_split


def read_csv(data: bytes) -> list[dict[str, str]]:
    return list(csv.DictReader(io.StringIO(data.decode())))


def test_settings_of_an_image_are_json_even_when_the_set_is_the_whole_image():
    p = made_promise()
    p.tau["CRC"] = -math.inf
    facts = json.loads(json.dumps(promise_settings(p, 4), allow_nan=False))
    assert facts["threshold_logit"]["CRC"] is None
    assert facts["threshold_probability"]["CRC"] == 0
    assert facts["threshold_logit"]["COAT"] == -1.5
    assert (facts["seed"], facts["alpha"], facts["grid"]) == (4, 0.1, [24, 24])
    assert facts["coverage"] == p.coverage


def test_probability_is_the_logistic_function():
    assert probability(0.0) == 0.5
    assert probability(-math.inf) == 0
    assert probability(3.0) == pytest.approx(1 - probability(-3.0))


def test_the_set_of_a_method_comes_home_pixel_for_pixel():
    p = made_promise()
    picture = np.asarray(Image.open(io.BytesIO(set_png(p, "COAT"))).convert("L"))
    assert (picture > 127).tolist() == p.set_of("COAT").tolist()
    assert set(np.unique(picture)) == {0, 255}


def test_outlines_of_only_the_methods_asked_for():
    def colours(data: bytes) -> set[tuple[int, ...]]:
        return {tuple(c) for c in np.asarray(Image.open(io.BytesIO(data)).convert("RGB")).reshape(-1, 3)}

    both, one = colours(outlines_png(made_promise())), colours(outlines_png(made_promise(), ("CRC",)))
    assert {rgb_of("CRC"), rgb_of("COAT")} <= both
    assert rgb_of("CRC") in one
    assert rgb_of("COAT") not in one


def test_one_row_for_each_image_and_method_with_the_miss_beside_the_coverage():
    rows = image_rows([made_promise("a.png"), made_promise("b.png", mask=False)])
    assert [(r["image"], r["method"]) for r in rows] == [(n, m) for n in ("a.png", "b.png") for m in METHODS]
    for r in rows[:4]:
        assert r["coverage"] + r["false_negative_rate"] == pytest.approx(1)
    assert all(r["coverage"] == "" for r in rows[4:])


def test_the_table_of_methods_never_lacks_its_anchors():
    rows = study_rows(made_split())
    assert [r["method"] for r in rows] == list(TABLE)
    whole = rows[-1]
    assert (whole["area"], whole["coverage"]) == (1.0, 1.0)
    assert whole["gap"] == pytest.approx(0.1)
    assert math.isnan(whole["gap_at_crc_area"]) and rows[0]["gap_at_crc_area"] == pytest.approx(
        rows[0]["gap"]
    )


def test_charts_get_every_row_that_has_a_colour_and_a_line_for_every_promise():
    split = made_split()
    assert [r["method"] for r in chart_rows(split)] == [m for m in TABLE if m in COLOURS]
    assert list(trade_lines(split)) == [m for m in TABLE if m in PROMISED]


def test_every_pool_image_has_a_row_and_test_rows_average_to_the_table():
    split = made_split()
    rows = pool_rows(split)
    assert [r["image"] for r in rows] == list(split.study.curves.names)
    tested = [r for r in rows if r["part"] == "test"]
    assert len(tested) == len(split.testing)
    for m in PROMISED:
        mine = [r[f"coverage_{m}"] for r in tested if not math.isnan(r[f"coverage_{m}"])]
        assert np.mean(mine) == pytest.approx(split.evaluations[m].coverage)
    assert all(math.isnan(r["coverage_CRC"]) for r in rows if r["lesion_area"] == 0)


@pytest.mark.parametrize("name", ["=1+1", "+1", "-1", "@x", "\t=1", "\r=1"])
def test_a_file_name_cannot_become_a_formula(name):
    (row,) = read_csv(to_csv([{"image": name, "x": -1.5}]))
    assert row["image"].startswith("'")
    assert row["x"] == "-1.5"


def test_csv_keeps_commas_quotes_line_breaks_and_nan():
    (row,) = read_csv(
        to_csv([{"image": 'a,"b"\nc', "n": 3, "x": 0.123456789, "y": float("nan"), "z": np.float32(2)}])
    )
    assert row == {"image": 'a,"b"\nc', "n": "3", "x": "0.123457", "y": "nan", "z": "2"}


def test_the_whole_table_of_images_survives_the_round_trip():
    rows = image_rows([made_promise("=cmd|' /C calc'!A0.png")])
    back = read_csv(to_csv(rows))
    assert [r["method"] for r in back] == list(METHODS)
    assert all(r["image"].startswith("'=") for r in back)
