"""The film of a training: every frame holds its epoch's recalls, matrix and spectrum, and the whole stays light."""

from __future__ import annotations

from functools import cache
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from core.car.metrics import recalls
from core.car.spectrum import Spectrum
from core.figures.confusion_film import blocks
from core.figures.confusion_story import Film, story
from core.figures.temperature_frame import description, sentence_of
from tests.figures.made_confusion import COUNTS, NAMES, matrix_of, names_of

EPOCHS = np.array([0, 3, 7, 11])


@cache
def film(k: int = 6, seed: int = 0, frames: int = 4) -> Film:
    epochs = EPOCHS if frames == 4 else np.arange(frames)
    test = np.stack([matrix_of(k, seed + e, 0.02 * e, 50) for e in range(frames)])
    test[0] = 0
    test[0, 0] = 50  # at first everything is called the head
    return Film(epochs, test, epochs[1:3], np.stack([matrix_of(k, seed, 0.3), matrix_of(k, seed, 0.6)]))


RUNS = {"ce": film(), "car-count": film(seed=9)}


def told(runs: Any, names: Any, show: str, **more: Any) -> Any:
    """The film with the decompositions of its own matrices."""
    spectra = {m: [Spectrum.of(x) for x in r.test] for m, r in runs.items()}
    return story(runs, names, show, spectra, **more)


@cache
def shown(show: str = "ce", stacked: bool = False) -> Any:
    return told(RUNS, NAMES, show, counts=COUNTS, stacked=stacked)


def at(figure: Any, name: str) -> int:
    return next(i for i, t in enumerate(figure.data) if t.name == name)


def test_frames_hold_recall_matrix_and_spectrum_of_their_epochs():
    figure = shown()
    assert [f.name for f in figure.frames] == ["0", "1", "2", "3"]
    assert all(len(f.data) == len(figure.data) for f in figure.frames)
    for k, frame in enumerate(figure.frames):
        matrix = RUNS["ce"].test[k]
        assert np.array(frame.data[at(figure, "test data")].x) == pytest.approx(
            100 * recalls(matrix), abs=0.06
        )
        z = np.array(
            [[np.nan if v is None else v for v in row] for row in frame.data[at(figure, "errors")].z], float
        )
        share = 100 * matrix / matrix.sum(0)
        np.fill_diagonal(share, np.nan)
        assert np.allclose(z, share, atol=0.06, equal_nan=True)
        lines = [i for i, t in enumerate(figure.data) if t.xaxis == "x3"]
        assert np.array(frame.data[lines[0]].y) == pytest.approx(Spectrum.of(matrix).values, abs=1e-4)
        assert np.array(frame.data[lines[1]].y) == pytest.approx(
            Spectrum.of(RUNS["car-count"].test[k]).values, abs=1e-4
        )
        mark = frame.data[at(figure, "worst")]
        assert round(mark.y[0]) == int(np.flatnonzero(recalls(matrix) == np.nanmin(recalls(matrix)))[-1])


def test_the_still_is_the_last_epoch_or_the_one_asked_for_and_training_is_the_last_recorded():
    figure = shown()
    last = figure.frames[-1].data[at(figure, "test data")].x
    assert figure.data[at(figure, "test data")].x == last and figure.layout.sliders[0].active == 3
    fits = [f.data[at(figure, "training data")].x for f in figure.frames]
    assert fits[0] == fits[1] and fits[2] == fits[3]
    assert np.array(fits[3]) == pytest.approx(100 * recalls(RUNS["ce"].train[1]), abs=0.06)
    early = told(RUNS, NAMES, "ce", at=2)
    assert early.layout.sliders[0].active == 1 and sentence_of(early).startswith(
        "After epoch 4: the worst class under CE is"
    )
    assert [s.label for s in figure.layout.sliders[0].steps] == ["1", "4", "8", "12"]
    assert figure.layout.updatemenus[0].buttons[0].args[0] == ("0", "1", "2", "3")


def test_the_scale_stays_through_the_film():
    figure = shown()
    errors = figure.data[at(figure, "errors")]
    later = [RUNS["ce"].test[k] / RUNS["ce"].test[k].sum(0) for k in (1, 2, 3)]
    assert errors.zmax == pytest.approx(100 * max(m[~np.eye(6, dtype=bool)].max() for m in later))
    assert all(
        f.data[at(figure, "errors")].zmax is None and f.data[at(figure, "errors")].colorscale is None
        for f in figure.frames
    )


def test_a_difference_shows_both_methods_bars_and_second_minus_first():
    figure = shown("difference")
    assert {"CE, test", "CAR (count EMA), test"} <= {t.name for t in figure.data}
    first, second = (RUNS[m].test[2] / RUNS[m].test[2].sum(0) for m in RUNS)
    z = np.array(
        [[np.nan if v is None else v for v in row] for row in figure.frames[2].data[at(figure, "errors")].z],
        float,
    )
    want = 100 * (second - first)
    np.fill_diagonal(want, np.nan)
    assert np.allclose(z, want, atol=0.06, equal_nan=True)
    assert "streams" not in {t.name for t in figure.data}
    assert any("CAR (count EMA) − CE" in (a.text or "") for a in figure.layout.annotations)


def test_panels_stand_beside_or_under_one_another():
    beside, under = shown().layout, shown("ce", True).layout
    assert (
        beside.xaxis.domain[1] < beside.xaxis2.domain[0] < beside.xaxis2.domain[1] < beside.xaxis3.domain[0]
    )
    assert (
        under.xaxis.domain == under.xaxis2.domain == (0, 1)
        and under.yaxis.domain[0] > under.yaxis2.domain[1] > under.yaxis3.domain[1]
    )
    assert under.yaxis3.domain[0] >= 0 and under.height > 2 * beside.height
    two = told(RUNS, NAMES, "ce", spectrum=False)
    assert "xaxis3" not in two.layout.to_plotly_json() and len(two.frames[0].data) == len(two.data)


def test_alt_text_and_look():
    for show in ("ce", "difference"):
        figure = shown(show)
        said = description(figure)
        assert said.startswith("Film of 4 epochs, 1 to 12") and said.endswith(".") and "nan" not in said
        assert figure.layout.paper_bgcolor == "rgba(0,0,0,0)" and not figure.layout.font.color
    s = [Spectrum.of(RUNS["ce"].test[k]).sigma for k in (0, -1)]
    assert (
        f"from 0 to {100 * recalls(RUNS['ce'].test[-1]).min():.0f}\u00a0% and the largest singular value from {s[0]:.2f} to {s[1]:.2f}"
        in description(shown())
    )


@pytest.mark.parametrize(("k", "frames", "show"), [(10, 40, "ce"), (200, 14, "difference")])
def test_the_film_stays_below_a_megabyte(k: int, frames: int, show: str):
    runs = {"ce": film(k, 0, frames)} | ({"car-count": film(k, 5, frames)} if show == "difference" else {})
    assert len(told(runs, names_of(k), show).to_json()) < 500_000


def test_many_classes_are_blocks_and_dots():
    figure = told({"ce": film(60)}, names_of(60), "ce")
    z = np.array(figure.frames[2].data[at(figure, "blocks")].z, float)
    share = film(60).test[2] / film(60).test[2].sum(0)
    assert z.shape == (20, 20)
    want = np.array(
        [
            [
                sum(share[i, j] for i in range(3 * a, 3 * a + 3) for j in range(3 * b, 3 * b + 3) if i != j)
                / 3
                for b in range(20)
            ]
            for a in range(20)
        ]
    )
    assert np.allclose(z, 100 * want, atol=0.06)
    assert not [t for t in figure.data if t.type == "bar"]


@settings(deadline=None, max_examples=30)
@given(st.integers(1, 70), st.integers(1, 30), st.integers(0, 99))
def test_blocks_keep_the_mean_error(k: int, side: int, seed: int):
    rates = np.random.default_rng(seed).random((k, k)) / k
    sizes = [len(p) for p in np.array_split(np.arange(k), min(side, k))]
    found = blocks(rates, side)
    assert found.shape == (len(sizes),) * 2
    assert (found.sum(0) * sizes).sum() == pytest.approx(rates.sum() - np.trace(rates))


def test_runs_of_other_epochs_share_no_spectrum_panel_and_no_difference():
    other = {"ce": film(), "car-count": film(frames=5)}
    assert len([t for t in told(other, NAMES, "ce").data if t.xaxis == "x3"]) == 1
    with pytest.raises(ValueError, match="same epochs"):
        told(other, NAMES, "difference")


@pytest.mark.parametrize(
    ("runs", "names", "show", "words"),
    [
        ({}, NAMES, "ce", "1 to 2"),
        ({"ce": film()}, NAMES, "car-count", "not 'car-count'"),
        ({"ce": film()}, NAMES, "difference", "two runs"),
        ({"ce": film()}, NAMES[1:], "ce", "5 names"),
        ({"ce": Film(EPOCHS[1:], film().test, EPOCHS[:0], film().train[:0])}, NAMES, "ce", "3 epochs"),
        ({"ce": Film(EPOCHS, 0 * film().test, EPOCHS[:0], film().train[:0])}, NAMES, "ce", "no test sample"),
    ],
)
def test_films_that_cannot_be_are_refused(runs: Any, names: Any, show: str, words: str):
    with pytest.raises(ValueError, match=words):
        told(runs, names, show)


def test_a_film_needs_a_spectrum_for_each_matrix():
    with pytest.raises(ValueError, match="4 matrices and 1 spectra"):
        story({"ce": film()}, NAMES, "ce", {"ce": [Spectrum.of(film().test[0])]})


def test_a_run_without_training_matrices_has_no_outlines():
    bare = Film(EPOCHS, film().test, EPOCHS[:0], film().train[:0])
    outline = told({"ce": bare}, NAMES, "ce")
    assert (
        all(v is None for v in outline.data[at(outline, "training data")].x)
        and outline.data[at(outline, "training data")].showlegend is False
    )
