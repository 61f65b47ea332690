"""The components of our own, Python's side: what is sent to the browser, who chooses in a gallery, and what is refused."""

from __future__ import annotations

import json
import runpy
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from pages.components.codes import LIMIT, NOTHING, STEP, TOP, encode_scores, encode_threshold
from pages.components.gallery import settle, thumbnail
from pages.components.picture import encode_mark, encode_pixels

APP = Path(__file__).resolve().parent / "components_app.py"
SCORES = hnp.arrays(
    np.float32, hnp.array_shapes(min_dims=2, max_dims=2, max_side=9), elements=st.floats(-20, 20, width=32)
)


@pytest.fixture(scope="module")
def world() -> dict:
    """The arrays of the app."""
    return runpy.run_path(str(APP))


@given(SCORES, st.floats(-20, 20))
def test_the_browsers_set_holds_pythons_set_and_at_most_one_step_more(logits, tau):
    clamped = np.clip(logits.astype(np.float64), -LIMIT, LIMIT)
    shown = encode_scores(logits).astype(int) >= encode_threshold(tau)
    exact = clamped >= tau
    assert not (exact & ~shown).any()
    assert (clamped[shown] > tau - 1.001 * STEP).all()


@given(SCORES)
def test_a_threshold_that_is_a_score_itself_keeps_that_pixel(logits):
    for tau in np.clip(logits.ravel(), -LIMIT, LIMIT)[:5]:
        assert (
            encode_scores(logits)[np.clip(logits, -LIMIT, LIMIT) >= tau] >= encode_threshold(float(tau))
        ).all()


def test_ends_of_the_scale():
    codes = encode_scores(np.array([[-np.inf, -15.0, 15.0, np.inf]]))
    assert codes.tolist() == [[0, 0, TOP, TOP]]
    assert encode_threshold(-np.inf) == 0 and (codes >= encode_threshold(-np.inf)).all()
    assert encode_threshold(np.inf) == NOTHING and not (codes >= encode_threshold(np.inf)).any()
    assert encode_threshold(15.0) == TOP


def test_nan_is_refused_with_a_sentence():
    with pytest.raises(ValueError, match="NaN"):
        encode_scores(np.array([[0.0, np.nan]]))
    with pytest.raises(ValueError, match="NaN"):
        encode_threshold(float("nan"))


def test_an_infinite_threshold_travels_as_json_that_a_browser_can_read():
    for tau in (-np.inf, np.inf):
        assert "Infinity" not in json.dumps(encode_mark("CRC", tau))
    with pytest.raises(ValueError, match="has no colour"):
        encode_mark("guess", 0.0)


def test_pixels_are_named_by_what_they_hold(world):
    logits = world["MAPS"]["wave"]
    first = encode_pixels(world["IMAGE"], logits, world["MASK"])
    assert (
        encode_pixels(world["IMAGE"].copy(), logits.copy(), world["MASK"].copy())["digest"] == first["digest"]
    )
    assert encode_pixels(world["IMAGE"], logits + 1, world["MASK"])["digest"] != first["digest"]
    assert encode_pixels(world["IMAGE"], logits, None)["digest"] != first["digest"]
    with pytest.raises(ValueError, match=r"mask has size \(80, 99\) and the picture \(80, 100\)"):
        encode_pixels(world["IMAGE"], logits, world["MASK"][:, 1:])


def test_a_thumbnail_is_a_small_picture_of_any_array():
    for array in (
        np.zeros((40, 300), bool),
        np.full((30, 20), 40000, np.uint16),
        np.zeros((9, 9, 3), np.uint8),
    ):
        assert thumbnail(array).startswith("data:image/png;base64,")
        assert len(thumbnail(array)) < 3000


def test_the_later_of_click_and_python_chooses():
    ids = ["a", "b", "c"]
    memory = {"given": "a", "chosen": "a", "mark": None}

    def after(selected, click=None, ids=ids):
        settle(memory, selected, click, ids)
        return memory["chosen"]

    assert after("a") == "a"
    assert after("a", {"id": "b", "mark": "1"}) == "b"
    assert after("a", {"id": "b", "mark": "1"}) == "b", (
        "Python that says the same again does not undo the click"
    )
    assert after("b", {"id": "b", "mark": "1"}) == "b", "nor does feeding back what was returned"
    assert after("c", {"id": "b", "mark": "1"}) == "c", "a new wish of Python's wins over an old click"
    assert after("c", {"id": "a", "mark": "2"}) == "a", "and a new click over an old wish"
    assert after("c", None, ["c", "d"]) == "c", "what is gone gives way to Python's wish"
    assert after("nowhere", None, ["d"]) == "d"
    assert after("nowhere", None, []) == ""


def test_pictures_and_gallery_also_run_without_a_browser():
    from streamlit.testing.v1 import AppTest

    app = AppTest.from_file(APP, default_timeout=60).run()
    assert not app.exception
    app.button[0].click().run()
    assert not app.exception
    assert any("ramp" in each.value for each in app.markdown)


@pytest.mark.parametrize("wrong", [{"mode": "slide"}, {"mode": "wipe", "wipe": ("CRC", "AT")}])
def test_an_unknown_mode_or_method_is_named(world, wrong):
    from pages.components import picture

    with pytest.raises(ValueError, match="slide|AT"):
        picture(world["IMAGE"], world["MAPS"]["wave"], world["TAUS"], key="wrong", **wrong)
