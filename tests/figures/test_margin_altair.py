"""Reliability diagrams and distance histograms: they show what they are given, say it in words, and refuse what does not belong together."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from core.figures.export import to_png
from core.figures.margin_distances import distance_histogram, share_beyond
from core.figures.margin_look import LOSS_TITLES, checked_losses
from core.figures.margin_maps import confidence_bar
from core.figures.margin_reliability import reliability_diagram, reliability_mini
from core.figures.palette import LOSS_COLOURS, LOSS_DASHES, LOSS_SHAPES
from core.margin.reliability import Reliability, ece, tabulate
from tests.figures.specs import layers_of, rows_of, said, spec_of, title_of

NAN = float("nan")


def table(bins: dict[int, tuple[int, float, float]], n: int = 15) -> dict[str, np.ndarray]:
    """Bin -> pixels, mean confidence, accuracy; all others empty."""
    out = {"count": np.zeros(n, int), "mean_confidence": np.full(n, NAN), "accuracy": np.full(n, NAN)}
    for b, row in bins.items():
        for key, value in zip(out, row, strict=True):
            out[key][b] = value
    return out


SURE = table({10: (100, 0.7, 0.5), 13: (200, 0.9, 0.71), 14: (700, 0.99, 0.9)})
FAIR = table({8: (50, 0.57, 0.6), 13: (150, 0.91, 0.88), 14: (800, 0.98, 0.97)})
BOTH = {"CE": SURE, "margin": FAIR}


def test_every_loss_has_a_colour_a_dash_a_shape_and_words_of_its_own():
    assert set(LOSS_COLOURS) == set(LOSS_DASHES) == set(LOSS_SHAPES) == set(LOSS_TITLES)
    for looks in (LOSS_COLOURS, LOSS_SHAPES, LOSS_TITLES):
        assert len(set(looks.values())) == len(looks)
    assert len({tuple(d) for d in LOSS_DASHES.values()}) == len(LOSS_DASHES)
    with pytest.raises(ValueError, match="ArcFace"):
        checked_losses(["CE", "ArcFace"])
    with pytest.raises(ValueError, match="none"):
        checked_losses([])


def test_bars_stand_where_the_bins_are_and_empty_bins_are_absent():
    spec = spec_of(reliability_diagram(BOTH, "all pixels, 3 images"))
    bars = rows_of(spec, "said", "right", mark="rect")
    assert len(bars) == 3 * 6  # bar, gap and strip for each of three bins of two losses
    assert {b["right"] for b in bars} == {0.5, 0.71, 0.9, 0.6, 0.88, 0.97}
    first = bars[:3]
    for b, at in zip(first, (10, 13, 14), strict=True):  # the axis begins at bin 8, the lowest filled one
        start = 8 / 15
        middle = ((at + 0.5) / 15 - start) / (1 - start)
        assert (b["x"] + b["x2"]) / 2 == pytest.approx(min(middle, 1 - (b["x2"] - b["x"]) / 2), abs=1e-4)
    widths = [b["x2"] - b["x"] for b in first]
    assert widths == sorted(widths) and widths[0] < 0.8 * widths[-1]  # wider with more pixels


def test_the_strip_shows_the_share_of_the_pixels():
    spec = spec_of(reliability_diagram(BOTH, ""))
    strip = rows_of(spec, "foot", "top")[:3]
    heights = np.array([b["top"] - b["foot"] for b in strip])
    assert heights / heights.sum() == pytest.approx([0.1, 0.2, 0.7], abs=1e-3)


def test_the_title_reads_off_where_it_says_nine_of_ten_and_the_panels_name_ece():
    spec = spec_of(reliability_diagram(BOTH, "pixels whose truth is lesion, 212 images"))
    assert "Where it says about 90 %, CE is right in 71 % of pixels, and in 88 % with margin." in title_of(
        spec
    )
    assert "Counted: pixels whose truth is lesion, 212 images." in title_of(spec)
    by_hand = 100 * (0.1 * 0.2 + 0.2 * 0.19 + 0.7 * 0.09)
    texts = {r["t"].replace("\u00a0", " ") for r in rows_of(spec, "t", mark="text")}
    assert f"ECE {by_hand:.1f} %" in texts
    assert {"CE", "margin", "right 71 %", "right 88 %"} <= texts
    assert "CE: 1,000 pixels, ECE 12.1 %" in said(spec) and "says 90 %, right 71 %" in said(spec)


def test_without_a_reading_or_a_common_bin_the_title_compares_ece():
    apart = {"CE": table({14: (10, 0.99, 0.5)}), "LS": table({7: (10, 0.5, 0.5)})}
    for chart in (reliability_diagram(BOTH, "", at=None), reliability_diagram(apart, "")):
        assert title_of(spec_of(chart)).startswith("ECE: ")
        assert not layers_of(spec_of(chart), "point")


def test_the_sentence_can_be_left_to_the_page_and_the_scope_stays():
    spec = spec_of(reliability_diagram(BOTH, "all pixels", sentence=False))
    assert "Where it says" not in title_of(spec) and spec["title"]["text"] == ["Counted: all pixels."]
    assert spec["title"]["fontWeight"] == 400
    assert "Yellow" in title_of(spec_of(reliability_diagram(BOTH, "", sentence=False)))


def test_a_table_of_the_method_room_is_taken_as_it_is():
    rng = np.random.default_rng(3)
    counted = tabulate(3 * rng.normal(size=(3, 40, 40)), rng.integers(0, 3, (40, 40)), scope="all")
    assert isinstance(counted, Reliability)
    spec = spec_of(reliability_diagram({"CE": counted}, "all pixels"))
    texts = {r["t"].replace("\u00a0", " ") for r in rows_of(spec, "t", mark="text")}
    assert f"ECE {100 * ece(counted):.1f} %" in texts
    shown = sorted({r["share"] for r in rows_of(spec, "share")})
    assert shown == pytest.approx(sorted({float(c) / 1600 for c in counted.count if c}), abs=1e-5)


def test_an_empty_panel_says_so_and_only_empty_ones_are_refused():
    spec = spec_of(reliability_diagram({"CE": SURE, "margin": table({})}, ""))
    assert "no pixel counted" in {r["t"] for r in rows_of(spec, "t", mark="text")}
    assert "margin: no pixel was counted" in said(spec)
    with pytest.raises(ValueError, match="No pixel was counted"):
        reliability_diagram({"CE": table({})}, "")


@pytest.mark.parametrize(
    ("tables", "words"),
    [
        ({}, "one to 4"),
        (dict.fromkeys(("CE", "LS", "SVLS", "focal", "ECP"), SURE), "one to 4"),
        ({"mine": SURE}, "titles"),
        ({"CE": SURE | {"count": np.ones(3)}}, "differ in number"),
        ({"CE": table({3: (5, 1.4, 0.5)})}, "confidence of CE"),
        ({"CE": table({3: (5, 0.4, NAN)})}, "accuracy of CE"),
    ],
)
def test_tables_that_cannot_be_are_refused(tables, words):
    with pytest.raises(ValueError, match=words):
        reliability_diagram(tables, "")


def test_a_person_s_own_network_has_its_own_words_and_the_axis_begins_at_zero_for_many_classes():
    low = table({2: (5, 0.17, 0.1), 13: (5, 0.9, 0.5)})
    spec = spec_of(reliability_diagram({"mine": low}, "", titles={"mine": "your network"}))
    assert "your network is right in 50 % of pixels" in title_of(spec)
    bar = rows_of(spec, "said", "right", mark="rect")[0]
    assert (bar["x"] + bar["x2"]) / 2 == pytest.approx(2.5 / 15, abs=1e-4)


def test_the_miniature_is_a_line_a_loss_without_title():
    spec = spec_of(reliability_mini(BOTH))
    assert "title" not in spec and spec["height"] == 150
    lines = layers_of(spec, "line")
    assert [part["mark"].get("color") for part in lines[1:]] == [LOSS_COLOURS["CE"], LOSS_COLOURS["margin"]]
    assert len(lines[1]["data"]["values"]) == 3
    assert "ECE" in said(spec)


EDGES = np.r_[np.arange(0, 20.1, 0.5), 20.5]


def spread(at: float, n: int = 1000) -> np.ndarray:
    return np.histogram(np.clip(np.full(n, at), 0, 20.4), EDGES)[0]


def test_distances_beyond_m_are_counted_and_said():
    counts = {"CE": spread(14.2, 750) + spread(3.2, 250), "margin": spread(8.2)}
    spec = spec_of(distance_histogram(EDGES, counts, 10.0, scope="all pixels"))
    assert "Beyond m = 10 lie 75 % of the logit distances under CE and 0 % under margin." in title_of(spec)
    assert "750" not in said(spec) and "75 % of 1,000 distances under CE, median 14.2" in said(spec)
    rule = [p for p in layers_of(spec, "rule") if p["mark"]["color"] == LOSS_COLOURS["margin"]]
    assert [r["low"] for r in rule[0]["data"]["values"]] == [10.0]
    assert "m = 10" in {r["t"] for r in rows_of(spec, "t", mark="text")}


def test_rows_do_not_run_into_one_another_and_share_a_scale():
    counts = {"CE": spread(5.2, 900) + spread(19, 100), "LS": spread(3.2), "margin": spread(8.2)}
    spec = spec_of(distance_histogram(EDGES, counts, 10.0))
    bars = rows_of(spec, "share", "base", mark="rect")
    assert len({round((b["high"] - b["base"]) / b["share"], 3) for b in bars if b["share"] > 0}) == 1
    for b in bars:
        assert b["high"] <= b["base"] + 0.75
    bases = [{b["base"] for b in bars if b["loss"] == loss} for loss in ("CE", "label smoothing", "margin")]
    assert bases == [{2.0}, {1.0}, {0.0}]


@given(m=st.floats(0, 25), seed=st.integers(0, 99))
def test_the_share_beyond_falls_with_m_and_lies_between_zero_and_one(m: float, seed: int):
    counts = np.random.default_rng(seed).integers(0, 50, len(EDGES) - 1)
    counts[0] += 1
    here, further = share_beyond(EDGES, counts, m), share_beyond(EDGES, counts, m + 0.7)
    assert 0 <= further <= here <= 1
    exact = counts[EDGES[:-1] >= np.ceil(m * 2) / 2].sum() / counts.sum()
    if m * 2 == round(m * 2) and m < 20:
        assert here == pytest.approx(exact)


def test_the_open_bin_is_beyond_whatever_m_and_nothing_is_beyond_nothing():
    assert share_beyond(EDGES, spread(40), 20.0) == 1.0
    assert np.isnan(share_beyond(EDGES, np.zeros(len(EDGES) - 1), 3.0))


@pytest.mark.parametrize(
    ("edges", "counts", "words"),
    [
        (EDGES, np.ones(3), "41 bins"),
        (EDGES[::-1], np.ones(41), "must rise"),
        (EDGES, -np.ones(41), "negative"),
        (EDGES, np.zeros(41), "no distances under CE"),
    ],
)
def test_histograms_that_cannot_be_are_refused(edges, counts, words):
    with pytest.raises(ValueError, match=words):
        distance_histogram(edges, {"CE": counts}, 10.0)


def test_m_at_the_ends_of_the_axis_is_drawn_too():
    for m in (0.0, 20.0):
        assert f"m = {m:g}" in {
            r["t"]
            for r in rows_of(spec_of(distance_histogram(EDGES, {"CE": spread(4)}, m)), "t", mark="text")
        }


@pytest.mark.parametrize("dark", [False, True])
def test_charts_can_be_saved_as_pictures(dark: bool):
    for chart in (reliability_diagram(BOTH, "all pixels"), confidence_bar()):
        assert to_png(chart, 1, 420, dark=dark).startswith(b"\x89PNG")
