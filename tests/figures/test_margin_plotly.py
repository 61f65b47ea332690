"""Profiles, the bridge and learning curves: they show the arrays they are given, say them in words, and look right on light and dark pages."""

from __future__ import annotations

import json
from typing import Any

import numpy as np
import pytest

from core.figures.margin_bridge import dots, rank_correlation
from core.figures.margin_learning import learning
from core.figures.margin_look import exact, line_of_loss, marker_of_loss
from core.figures.margin_profile import profile
from core.figures.temperature_frame import description, sentence_of
from core.margin.penalty import profile as along
from core.settings import MarginSettings

AXIS = np.linspace(-4, 16, 41)


def bridge_rows(**more: Any) -> list[dict[str, Any]]:
    rows = []
    for i, loss in enumerate(("CE", "LS", "focal", "margin")):
        for method, gap, area in (
            ("CRC", 0.14 - 0.01 * i, 0.2),
            ("COAT", 0.1 + 0.01 * i, 0.3),
            ("oracle", 0.01, 0.12),
            ("whole image", 0.1, 1.0),
        ):
            rows.append(
                {"data": "skin", "loss": loss, "method": method, "alpha": 0.1, "gap": gap, "area": area, "ece_all": 0.08 - 0.01 * i,
                 "ece_fg": 0.2, "gap_sd": 0.004, "ece_all_sd": float("nan")} | more
            )  # fmt: skip
    return rows


CURVES = {
    "CE": [{"epoch": e, "loss": 1 / (1 + e), "ece": 0.1 - 0.01 * e, "dice": 0.5 + 0.1 * e} for e in range(3)],
    "margin": [{"epoch": 0, "loss": 0.7}, {"epoch": 1, "loss": 0.5, "ece": None, "dice": float("nan")}],
}


def profiles(m: float | None = 10.0) -> Any:
    d = np.linspace(-4, 20, 97)
    found = {x: along(MarginSettings(loss=x), d, 3) for x in ("LS", "ECP", "margin")}
    return profile(
        d,
        {x: p.values for x, p in found.items()},
        {x: p.slopes for x, p in found.items()},
        m,
        fixed={"LS": 3.33},
    )


EVERY = {
    "profile": profiles,
    "dots": lambda: dots(bridge_rows()),
    "learning": lambda: learning(CURVES, 10),
}


@pytest.mark.parametrize("name", EVERY)
def test_every_chart_has_alt_text_in_sentences_and_no_background_of_its_own(name: str):
    figure = EVERY[name]()
    said = description(figure)
    assert said.endswith(".") and len(said) > 60 and "nan" not in said.lower().replace("nano", "")
    assert figure.layout.paper_bgcolor == figure.layout.plot_bgcolor == "rgba(0,0,0,0)"
    assert not figure.layout.font.color  # text takes the page's colour
    assert len(json.dumps(json.loads(figure.to_json()))) < 400_000


def traces(figure: Any, kind: str) -> list[Any]:
    return [t for t in figure.data if t.type == kind]


def test_the_profile_shades_the_floor_marks_the_rest_and_says_who_pulls_there():
    figure = profiles()
    lines = [t for t in traces(figure, "scatter") if t.name == "label smoothing" and t.mode == "lines"]
    assert np.allclose(
        np.diff(lines[0].y) / np.diff(lines[0].x), 0.2 / 3, atol=1e-3
    )  # a (K - 1)/K with a = 0.1, both distances at once
    assert np.allclose(lines[1].y, 0.2 / 3, atol=1e-4)
    boxes = [s for s in figure.layout.shapes if s.type == "rect"]
    assert [(b.x0, b.x1) for b in boxes] == [(0, 10.0)] * 2
    assert (
        sentence_of(figure)
        == "Closer than m = 10 the margin does not pull; label smoothing and entropy penalty do."
    )
    rest = [t for t in traces(figure, "scatter") if t.mode == "markers"]
    assert [t.x for t in rest] == [(3.33,)]
    assert "margin rises to 0.667 and pulls with 0 at 5" in description(figure)
    assert not [s for s in profiles(None).layout.shapes if s.type == "rect"]
    with pytest.raises(ValueError, match="same losses"):
        profile(AXIS, {"LS": AXIS}, {"CE": AXIS})
    with pytest.raises(ValueError, match="97|41 distances"):
        profile(AXIS, {"LS": AXIS}, {"LS": AXIS[1:]})


def test_a_dot_a_loss_with_bars_where_a_deviation_is_known_and_both_anchors_as_lines():
    figure = dots(bridge_rows())
    assert [a.text for a in figure.layout.annotations] == ["CRC", "COAT"]  # the plug-in has no rows
    points = [t for t in traces(figure, "scatter") if t.name == "margin"]
    assert [(round(t.x[0], 6), round(t.y[0], 6)) for t in points] == [(5, 11), (5, 20), (5, 13), (5, 30)]
    assert points[0].error_y.array == (0.4,) and points[0].error_x.array is None
    assert points[0].marker.symbol == marker_of_loss("margin")["symbol"]
    levels = sorted({round(s.y0, 6) for s in figure.layout.shapes})
    assert levels == [1, 10, 12, 100] and len(figure.layout.shapes) == 8
    assert "with the gap is +1.0 for CRC and -1.0 for COAT" in sentence_of(figure)
    assert "with the area" not in sentence_of(figure)  # all areas alike: no link to tell
    assert "margin ECE 5.0\u00a0%, gap 11.0 points, area 20\u00a0%" in description(figure)


@pytest.mark.parametrize(
    ("rows", "more", "words"),
    [
        ([r for r in bridge_rows() if r["method"] != "oracle"], {}, "oracle is missing"),
        (bridge_rows() + bridge_rows(alpha=0.2), {}, "one level alpha"),
        (bridge_rows() + bridge_rows(data="polyp"), {}, "one data set"),
        (bridge_rows(), {"methods": ("AT",)}, "no row of AT"),
        (bridge_rows(), {"ece": "gap"}, "'ece_all' or 'ece_fg'"),
        (bridge_rows(loss="hinge"), {}, "needs losses"),
    ],
)
def test_bridges_that_cannot_be_are_refused(rows: Any, more: Any, words: str):
    with pytest.raises(ValueError, match=words):
        dots(rows, **more)


def test_rank_correlation_is_spearman_s():
    from scipy.stats import spearmanr

    rng = np.random.default_rng(5)
    for _ in range(20):
        a, b = rng.integers(0, 6, 7), rng.integers(0, 6, 7)
        assert rank_correlation(a, b) == pytest.approx(spearmanr(a, b).statistic)
    assert np.isnan(rank_correlation([1, 2], [1, 2])) and np.isnan(rank_correlation([1, 1, 1], [1, 2, 3]))


def test_learning_starts_empty_and_passes_over_what_is_not_measured():
    assert "Nothing yet" in description(learning({"CE": [], "margin": []}, 10))
    figure = learning(CURVES, 10)
    lines = {(t.name, t.xaxis): t for t in figure.data if t.mode == "lines"}
    assert tuple(lines["CE", "x2"].y) == pytest.approx((10, 9, 8)) and tuple(lines["CE", "x2"].x) == (1, 2, 3)
    assert len(lines["margin", "x2"].y or ()) == 0 and len(lines["margin", "x"].y) == 2
    assert lines["margin", "x"].line.dash == line_of_loss("margin")["dash"] != lines["CE", "x"].line.dash
    assert figure.layout.xaxis.range == (1, 10)
    assert (
        "After epoch 3 CE has a training loss of 0.333, an ECE of 8.0\u00a0% and a Dice of 70.0\u00a0%"
        in description(figure)
    )
    assert "After epoch 2 margin has a training loss of 0.5." in description(figure)
    with pytest.raises(ValueError, match="needs losses"):
        learning({}, 10)


@pytest.mark.parametrize(
    ("p", "text"),
    [(0.5, "50"), (0.925, "92.5"), (0.9996, "99.96"), (0.99986, "99.98"), (0.9999092, "99.99"), (1.0, "100")],
)
def test_a_confidence_is_never_rounded_up_to_certainty(p: float, text: str):
    assert exact(p) == text + "\u00a0%"
