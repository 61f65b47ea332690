from __future__ import annotations

import numpy as np
import pytest

from core.figures.spread import resample_histogram
from tests.figures.specs import layers_of, rows_of, said, spec_of, title_of


def draws() -> dict[str, np.ndarray]:
    rng = np.random.default_rng(0)
    return {"CRC": rng.normal(0.903, 0.02, 500).clip(0, 1), "COAT": rng.normal(0.905, 0.01, 500).clip(0, 1)}


def test_the_steps_hold_every_draw_of_every_method():
    values = draws()
    spec = spec_of(resample_histogram(values, 0.1))
    steps = layers_of(spec, "line")[0]["data"]["values"]
    for m, v in values.items():
        mine = [r for r in steps if r["method"] == m]
        assert sum(r["share"] for r in mine) == pytest.approx(1, abs=1e-3)
        inside = [r["share"] for r in mine if r["low"] >= 0.9]
        first = min(r["low"] for r in mine if r["low"] >= 0.9)
        assert sum(inside) == pytest.approx((v >= first).mean(), abs=0.01)


def test_promise_means_and_the_draw_on_the_screen_are_marked():
    values = draws()
    spec = spec_of(resample_histogram(values, 0.1, {"CRC": 0.87, "COAT": 0.91, "AT": 0.5}))
    assert {"low": 0.9} in rows_of(spec, "low", mark="rule")
    at = rows_of(spec, "method", "low", mark="point")
    for m, v in values.items():
        assert any(r["method"] == m and r["low"] == pytest.approx(v.mean(), abs=1e-4) for r in at)
    assert {(r["method"], r["low"]) for r in at} >= {("CRC", 0.87), ("COAT", 0.91)}
    assert not any(r["method"] == "AT" for r in at)


def test_words_hold_the_numbers():
    values = draws()
    spec = spec_of(resample_histogram(values, 0.1, {"CRC": 0.87}))
    assert f"Over 500 redrawn halves coverage is {100 * values['CRC'].mean():.1f} % under CRC" in title_of(
        spec
    )
    kept = 100 * (values["COAT"] >= 0.9).mean()
    assert f"{kept:.0f} % under COAT reach the promise of 90 %" in said(spec)
    assert "The draw on the screen has 87.0 % under CRC." in said(spec)


@pytest.mark.parametrize("alpha", [0.02, 0.1, 0.5])
def test_one_value_for_all_draws_is_still_a_picture(alpha):
    spec = spec_of(resample_histogram({"CRC": np.ones(5), "COAT": np.ones(5)}, alpha))
    low, high = layers_of(spec, "line")[0]["encoding"]["x"]["scale"]["domain"]
    assert low < 1 - alpha < high <= 1


def test_what_is_no_coverage_is_refused():
    with pytest.raises(ValueError, match="0 to 1"):
        resample_histogram({"CRC": np.array([0.9, 1.2])}, 0.1)
    with pytest.raises(ValueError, match="0 to 1"):
        resample_histogram({"CRC": np.array([0.9, np.nan])}, 0.1)
    with pytest.raises(ValueError, match="differ in length"):
        resample_histogram({"CRC": np.ones(3), "COAT": np.ones(4)}, 0.1)
