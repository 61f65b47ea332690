"""Maps of confidence and errors: brighter is surer, ignored pixels are grey, errors are marked, and the words hold the numbers."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from core.figures.margin_maps import SURER, confidence_bar, confidence_map, error_map, maps_words
from tests.figures.specs import rows_of, said, spec_of

SIDE = 8
PLAIN = np.full((SIDE, SIDE), 0.95)


def lightness(rgb: np.ndarray) -> np.ndarray:
    """Relative luminance of sRGB colours."""
    c = np.asarray(rgb, float) / 255
    linear = np.where(c <= 0.04045, c / 12.92, ((c + 0.055) / 1.055) ** 2.4)
    return linear @ np.array([0.2126, 0.7152, 0.0722])


def test_the_scale_rises_in_lightness_all_the_way():
    row = confidence_map(np.linspace(0.5, 1, 200)[None].repeat(2, 0), scale="linear", side=1)[0]
    assert (np.diff(lightness(row)) >= -1e-9).all()
    stops = lightness(np.array([[int(c[i : i + 2], 16) for i in (1, 3, 5)] for c in SURER]))
    # steps of lightness as the eye takes them are alike within a factor of two
    steps = np.diff(116 * np.cbrt(stops) - 16)
    assert steps.min() > 0 and steps.max() < 2.2 * steps.min()


@given(st.floats(0.5, 0.9999), st.floats(0.5, 0.9999), st.sampled_from(["doubt", "linear"]))
def test_surer_is_never_darker(a: float, b: float, scale: str):
    low, high = sorted((a, b))
    one, two = confidence_map(np.array([[low, high]]), scale=scale, side=1)[0]
    assert lightness(two) >= lightness(one) - 1e-9


def test_doubt_tells_99_from_9999_and_linear_does_not():
    pair = np.array([[0.99, 0.9999]])
    doubt, linear = (
        np.abs(np.diff(confidence_map(pair, scale=s, side=1).astype(int), axis=1)).max()
        for s in ("doubt", "linear")
    )
    assert doubt > 60 and linear < 10


def test_maps_are_enlarged_without_smoothing_and_ignored_pixels_are_grey():
    p, ignore = PLAIN.copy(), np.zeros((SIDE, SIDE), bool)
    ignore[:, 6:] = True
    drawn = confidence_map(p, ignore=ignore, side=40)
    assert drawn.shape == (40, 40, 3) and drawn.dtype == np.uint8
    assert len(np.unique(drawn.reshape(-1, 3), axis=0)) == 2
    assert (drawn[:, 30:] == (138, 143, 150)).all()


def test_the_truth_is_a_white_line_with_a_dark_edge():
    truth = np.zeros((SIDE, SIDE), int)
    truth[2:6, 2:6] = 1
    bare, lined = confidence_map(PLAIN, side=160), confidence_map(PLAIN, truth=truth, side=160)
    changed = (bare != lined).any(-1)
    assert (lined[changed] == 255).all(-1).any() and (lined[changed].mean(-1) < 0.5 * bare[0, 0].mean()).any()
    assert not changed[:20, :20].any()


def test_sure_errors_are_hatched_and_outlined_and_unsure_ones_dotted():
    truth = np.zeros((SIDE, SIDE), int)
    predicted, p = truth.copy(), PLAIN.copy()
    predicted[:4, :4] = 1
    p[:2, :4] = 0.6
    rgb = np.full((SIDE, SIDE, 3), 120, np.uint8)
    drawn = error_map(rgb, predicted, truth, p, side=320)
    right, unsure, certain = drawn[200:, 200:], drawn[:80, :160], drawn[80:160, :160]
    assert len(np.unique(right.reshape(-1, 3), axis=0)) == 1  # nothing where it is right
    dark = [(part.max(-1) == 20).mean() for part in (unsure, certain)]
    assert (
        0.04 < dark[0] < 0.12 < dark[1] < 0.3
    )  # dots and a hatching are different textures, not only colours
    assert (certain == (0x7A, 0x2E, 0x00)).all(-1).any() and not (unsure == (0x7A, 0x2E, 0x00)).all(-1).any()
    ignore = np.ones((SIDE, SIDE), bool)
    assert (
        len(np.unique(error_map(rgb, predicted, truth, p, ignore=ignore, side=64).reshape(-1, 3), axis=0))
        == 1
    )


def test_the_words_count():
    truth = np.zeros((10, 10), int)
    predicted, p = truth.copy(), np.full((10, 10), 0.95)
    predicted[0] = 1  # ten errors, six of them sure
    p[0, :4] = 0.6
    text = maps_words(predicted, truth, p).replace("\u00a0", " ")
    assert text == (
        "Wrong in 10 % of 100 pixels. At least 90 % sure in 96 % of them, and right there 94 % of the time; it was that sure of 60 % of its errors."
    )
    ignore = np.zeros((10, 10), bool)
    ignore[0] = True
    assert "Wrong in 0 % of 90 pixels" in maps_words(predicted, truth, p, ignore=ignore).replace(
        "\u00a0", " "
    )
    assert maps_words(predicted, truth, p, ignore=np.ones((10, 10), bool)) == "No pixel is counted."


def test_what_does_not_belong_together_is_refused():
    with pytest.raises(ValueError, match="truth has size"):
        confidence_map(PLAIN, truth=np.zeros((3, 3), int))
    with pytest.raises(ValueError, match="predicted has size"):
        error_map(
            np.zeros((SIDE, SIDE, 3), np.uint8), np.zeros((3, 3), int), np.zeros((SIDE, SIDE), int), PLAIN
        )
    for bad in (1.2, -0.1, np.nan):
        with pytest.raises(ValueError, match="outside 0 to 1"):
            confidence_map(np.full((2, 2), bad))
    with pytest.raises(ValueError, match="'doubt' or 'linear'"):
        confidence_map(PLAIN, scale="log")


@pytest.mark.parametrize(("scale", "classes"), [("doubt", 2), ("doubt", 3), ("linear", 3)])
def test_the_bar_has_the_map_s_own_colours(scale: str, classes: int):
    spec = spec_of(confidence_bar(scale=scale, classes=classes))
    rows = rows_of(spec, "c")
    for p, row in ((1 / classes, rows[0]), (1.0, rows[-1])):
        r, g, b = confidence_map(np.array([[p]]), scale=scale, classes=classes, side=1)[0, 0]
        assert row["c"] == f"#{r:02x}{g:02x}{b:02x}"
    ticks = spec["layer"][0]["encoding"]["x"]["axis"]["values"]
    low, high = spec["layer"][0]["encoding"]["x"]["scale"]["domain"]
    assert all(low <= t <= high for t in ticks) and len(ticks) >= 4
    assert f"from {100 / classes:.0f} %" in said(spec)
