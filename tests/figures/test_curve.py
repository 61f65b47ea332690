from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from core.figures.curve import coverage_curve, curve_arrays, score_histogram
from tests.figures.specs import layers_of, rows_of, said, spec_of, title_of

MARKS = {"CRC": 0.5, "COAT": -1.5, "plug-in": -1.0, "oracle": -0.8}


def maps(seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(seed)
    mask = rng.random((12, 15)) < 0.3
    return (rng.normal(0, 2, mask.shape) + 2 * mask).astype(np.float32), mask


@settings(max_examples=25, deadline=None)
@given(st.integers(0, 1000), st.floats(-3, 3))
def test_the_counted_curve_agrees_with_the_sets_themselves(seed, tau):
    logits, mask = maps(seed)
    t, coverage, area = curve_arrays(logits, mask, {"CRC": tau}, points=30)
    for k in (0, 7, int(np.flatnonzero(np.isclose(t, tau))[0]), len(t) - 1):
        inside = logits >= np.float32(t[k])
        assert area[k] == pytest.approx(inside.mean())
        assert coverage[k] == pytest.approx(inside[mask].mean())


def test_without_a_lesion_there_is_no_coverage():
    logits, mask = maps()
    assert curve_arrays(logits, None, {})[1] is None
    assert curve_arrays(logits, np.zeros_like(mask), {})[1] is None


def test_each_mark_stands_at_its_threshold_with_its_numbers():
    logits, mask = maps()
    t, c, a = curve_arrays(logits, mask, MARKS)
    spec = spec_of(coverage_curve(t, c, a, MARKS, 0.1))
    for m, tau in MARKS.items():
        rows = [r for r in rows_of(spec, "method", "share", mark="point") if r["method"] == m]
        assert {r["threshold"] for r in rows} == {tau}
        assert sorted(r["share"] for r in rows) == pytest.approx(
            sorted([(logits >= tau)[mask].mean(), (logits >= tau).mean()]), abs=1e-4
        )
    assert {r["label"].split()[0] for r in rows_of(spec, "label", mark="text")} == set(MARKS)
    assert f"COAT's 0.18 holds {100 * (logits >= -1.5)[mask].mean():.0f} % of the lesion" in title_of(spec)
    assert "oracle's 0.31" in said(spec)


def test_labels_of_equal_thresholds_do_not_lie_on_one_another():
    logits, mask = maps()
    same = dict.fromkeys(("CRC", "COAT", "AT", "plug-in"), -0.5)
    spec = spec_of(coverage_curve(*curve_arrays(logits, mask, same), same, 0.1))
    heights = [r["top"] for r in rows_of(spec, "label", mark="text")]
    assert len(set(heights)) == 4
    assert min(heights) > 1


def test_without_a_mask_only_the_area_is_told():
    logits, _ = maps()
    spec = spec_of(coverage_curve(*curve_arrays(logits, None, MARKS), {"CRC": 0.5, "COAT": -1.5}, 0.1))
    assert "lesion" not in title_of(spec)
    assert {r["what"] for r in rows_of(spec, "what")} == {"image marked"}


def test_the_whole_image_holds_everything():
    logits, mask = maps()
    marks = {"CRC": -math.inf, "COAT": -1.0}
    spec = spec_of(coverage_curve(*curve_arrays(logits, mask, marks), marks, 0.1))
    assert (
        "CRC's threshold 0 (whole image) holds 100 % of this lesion and marks 100 % of the image"
        in title_of(spec)
    )


def test_curves_that_make_no_sense_are_refused():
    t, c, a = np.array([0.0, 1.0]), np.array([1.0, 0.5]), np.array([0.5, 0.2])
    with pytest.raises(ValueError, match="rise"):
        coverage_curve(t[::-1], c, a, {"CRC": 0}, 0.1)
    with pytest.raises(ValueError, match="differ in length"):
        coverage_curve(t, c[:1], a, {"CRC": 0}, 0.1)
    with pytest.raises(ValueError, match="NaN"):
        coverage_curve(t, c, a, {"CRC": math.nan}, 0.1)
    with pytest.raises(ValueError, match="magic"):
        coverage_curve(t, c, a, {"magic": 0.0}, 0.1)


def test_a_histogram_keeps_every_pixel_and_names_the_shares_above_the_marks():
    edges = np.linspace(-15, 15, 1201)
    lesion, background = np.zeros(1200, int), np.zeros(1200, int)
    lesion[[500, 600, 640, 700]] = [1, 2, 3, 4]
    background[[100, 300, 610]] = [50, 40, 10]
    spec = spec_of(score_histogram(edges, lesion, background, {"CRC": 1.0, "COAT": -0.5}))
    bars = layers_of(spec, "bar")[0]["data"]["values"]
    for kind, sign in (("lesion", 1), ("background", -1)):
        assert sum(r["share"] for r in bars if r["what"] == kind) == pytest.approx(sign, abs=1e-3)
    assert len(bars) <= 2 * 61
    assert "70 % lie at or above the threshold of CRC and 90 % above that of COAT" in title_of(spec)
    assert "10 lesion pixels" in said(spec)
    assert "100 background pixels" in said(spec)


def test_an_image_without_lesion_tells_of_its_background():
    spec = spec_of(score_histogram(np.arange(5.0), np.zeros(4), np.ones(4), {"CRC": 2.0, "COAT": 1.0}))
    assert (
        "Of this image's pixels, 50 % lie at or above the threshold of CRC and 75 % above that of COAT"
        in title_of(spec)
    )


def test_a_threshold_inside_a_wide_bin_is_told_as_about():
    spec = spec_of(score_histogram(np.arange(5.0), np.ones(4), np.ones(4), {"CRC": 2.5, "COAT": 1.0}))
    assert (
        "Of this lesion's pixels, about 38 % lie at or above the threshold of CRC and 75 % above"
        in title_of(spec)
    )


def test_coverage_of_an_image_without_lesion_is_as_good_as_none():
    logits, _ = maps()
    t, _, a = curve_arrays(logits, None, MARKS)
    spec = spec_of(coverage_curve(t, np.full(len(t), np.nan), a, MARKS, 0.1))
    assert spec["layer"] == spec_of(coverage_curve(t, None, a, MARKS, 0.1))["layer"]


def test_histograms_that_make_no_sense_are_refused():
    with pytest.raises(ValueError, match="differ in length"):
        score_histogram(np.arange(4.0), np.ones(4), np.ones(4), {"CRC": 0.0})
    with pytest.raises(ValueError, match="at least one pixel"):
        score_histogram(np.arange(4.0), np.zeros(3), np.zeros(3), {"CRC": 0.0})
    with pytest.raises(ValueError, match="rising edges"):
        score_histogram(np.array([0.0, 2.0, 1.0]), np.ones(2), np.ones(2), {"CRC": 0.0})
