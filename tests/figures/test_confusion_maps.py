"""Confusion maps and the flow: they show the shares they are given, keep the diagonal apart, name streams in words, and refuse what is no matrix."""

from __future__ import annotations

import json
from itertools import pairwise
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from core.car.spectrum import Spectrum
from core.figures.confusion_flow import fitting_unit, flow
from core.figures.confusion_look import (
    TAIL_TITLES,
    head_to_tail,
    in_cell,
    kin_of,
    line_of_method,
    marker_of_method,
    reordered,
    short,
    title_of,
)
from core.figures.confusion_maps import confusion_map, difference_map, pair_maps
from core.figures.palette import TAIL_COLOURS, TAIL_DASHES, TAIL_SHAPES
from core.figures.temperature_frame import description, sentence_of
from core.lab.tail_methods import METHODS
from tests.figures.made_confusion import COUNTS, NAMES, matrix_of, names_of

CE, CAR = matrix_of(), matrix_of(seed=1, better=0.2)
MANY = matrix_of(60, n=50)
BY_HAND = np.array([[8, 3, 0], [2, 6, 5], [0, 1, 5]])


def trace(figure: Any, name: str) -> Any:
    return next(t for t in figure.data if t.name == name)


def cells_of(figure: Any, name: str = "errors") -> np.ndarray:
    return np.array([[np.nan if v is None else v for v in row] for row in trace(figure, name).z], float)


def mapped(matrix: np.ndarray, names: Any = NAMES, weights: np.ndarray | None = None, **more: Any) -> Any:
    """A map with the decomposition of its own matrix."""
    return confusion_map(matrix, names, Spectrum.of(matrix, weights), **more)


def flowing(matrix: np.ndarray, names: Any = NAMES, weights: np.ndarray | None = None, **more: Any) -> Any:
    """The flow of a matrix."""
    return flow(Spectrum.of(matrix, weights), names, **more)


EVERY = {
    "map": lambda: mapped(CE, NAMES, method="ce"),
    "many": lambda: mapped(MANY, names_of(60), method="car-count"),
    "difference": lambda: difference_map(CE, CAR, NAMES),
    "many apart": lambda: difference_map(MANY, matrix_of(60, 1, n=50), names_of(60)),
    "flow": lambda: flowing(CE, NAMES, method="ce", counts=COUNTS),
}


@pytest.mark.parametrize("name", EVERY)
def test_every_chart_has_alt_text_in_sentences_and_no_background_of_its_own(name: str):
    figure = EVERY[name]()
    said = description(figure)
    assert said.endswith(".") and len(said) > 100 and "nan" not in said
    assert sentence_of(figure).endswith(".") and any(c.isdigit() for c in sentence_of(figure))
    assert figure.layout.paper_bgcolor == figure.layout.plot_bgcolor == "rgba(0,0,0,0)"
    assert not figure.layout.font.color
    assert len(figure.to_json()) < 100_000
    assert json.loads(figure.to_json())["layout"]["meta"]["description"] == said


def test_a_cell_is_the_share_of_its_column_and_the_diagonal_stands_apart():
    figure = mapped(BY_HAND, ("a", "b", "c"))
    errors, right = cells_of(figure), cells_of(figure, "right")
    assert errors[1, 0] == 20 and errors[0, 1] == 30 and errors[1, 2] == 50 and errors[2, 0] == 0
    assert np.isnan(np.diag(errors)).all() and np.diag(right).tolist() == [80, 60, 50]
    assert np.isnan(right).sum() == 6
    assert trace(figure, "errors").zmax == 50  # the largest error, not the largest recall
    numbers = trace(figure, "numbers")
    at = {(x, y): t for x, y, t in zip(numbers.x, numbers.y, numbers.text, strict=True)}
    assert at[2, 1] == "50" and at[0, 0] == "<b>80</b>" and at[0, 2] == ""
    assert figure.layout.yaxis.range[0] > figure.layout.yaxis.range[1]  # head at the top
    assert sentence_of(figure).replace("\u00a0", " ") == "The largest error: 50 % of c samples are called b."


def test_both_maps_share_a_scale_and_the_difference_is_second_minus_first():
    one, other, apart = pair_maps(CE, CAR, NAMES, spectra=(Spectrum.of(CE), Spectrum.of(CAR)))
    a, b = cells_of(one), cells_of(other)
    assert (
        trace(one, "errors").zmax
        == trace(other, "errors").zmax
        == pytest.approx(max(np.nanmax(a), np.nanmax(b)), abs=0.06)
    )
    assert np.allclose(cells_of(apart), b - a, atol=0.11, equal_nan=True)
    gains = np.diag(cells_of(other, "right")) - np.diag(cells_of(one, "right"))
    assert np.allclose(
        np.diag(cells_of(apart, "right")), -gains, atol=0.11
    )  # turned round: blue is better everywhere
    colours = trace(apart, "errors").colorscale
    assert colours[0][1] == "#4FA3D9" and colours[-1][1] == "#E8883C"
    rises, falls = int((gains > 0.01).sum()), int((gains < -0.01).sum())
    assert (
        sentence_of(apart)
        == f"From CE to CAR (count EMA) recall rises in {rises} classes and falls in {falls} of 6."
    )
    texts = trace(apart, "numbers").text
    assert any(t.startswith("−") for t in texts) and not any("-" in t for t in texts)


def test_many_classes_are_a_plain_map_of_ranks():
    figure = mapped(MANY, names_of(60))
    assert {t.name for t in figure.data} == {"errors", "right"}
    z = np.asarray(trace(figure, "errors").z)
    assert z.shape == (60, 60) and z.dtype == np.uint8 and (np.diag(z) == 0).all()
    assert abs(z.astype(float) / 100 - np.where(np.eye(60), 0, MANY / 50)).max() <= 0.0051
    assert figure.layout.xaxis.tickvals[0] == 1 and trace(figure, "errors").x[0] == 1
    steps = [p for p, _ in trace(figure, "errors").colorscale]
    assert steps == pytest.approx([(k / 4) ** 2 for k in range(5)])


def test_thirteen_classes_have_names_and_no_numbers():
    figure = mapped(matrix_of(13), names_of(13))
    assert figure.layout.yaxis.ticktext[0] == "class 1" and "numbers" not in {t.name for t in figure.data}


def test_ribbons_run_from_below_the_true_class_to_the_left_of_the_predicted_one():
    figure = mapped(BY_HAND, ("a", "b", "c"), streams=1)
    x, y = np.array(trace(figure, "streams").x[:-1], float), np.array(trace(figure, "streams").y[:-1], float)
    j, i = 2, 1  # half of c is called b
    foot = x[y == y.max()]
    assert foot.mean() == pytest.approx(j + 0.38) and y.max() > 2.5 - 0.1
    assert y[x == x.min()] == pytest.approx(i - 0.38) and x.min() == -0.5
    assert not [
        t for t in mapped(BY_HAND, ("a", "b", "c"), streams=0).data if t.name in ("streams", "top pair")
    ]


def test_strips_are_as_long_as_u_and_v():
    s = Spectrum.of(CE)
    found = trace(mapped(CE, NAMES), "top pair")
    x, y = np.array(found.x, float), np.array(found.y, float)
    deep = [np.nanmax(y[np.abs(x - j) < 0.31]) - (6 - 0.42) for j in range(6) if s.v[j] > 0.01]
    assert deep == pytest.approx([0.9 * v for v in s.v if v > 0.01], abs=2e-3)
    wide = [-0.58 - np.nanmin(x[np.abs(y - i) < 0.31]) for i in range(6) if s.u[i] > 0.01]
    assert wide == pytest.approx([0.9 * u for u in s.u if u > 0.01], abs=2e-3)


def test_a_class_without_a_sample_is_left_out_and_named():
    gap = CE.copy()
    gap[:, 3] = 0
    figure = mapped(gap, NAMES)
    assert np.isnan(cells_of(figure)[:, 3]).all()
    assert "Platelet has no sample and cannot be worst." in description(figure)
    assert "nan" not in description(difference_map(gap, CAR, NAMES))


@pytest.mark.parametrize(
    ("matrix", "names", "words"),
    [
        (np.ones((2, 3)), NAMES[:2], "square"),
        (-np.ones((2, 2)), NAMES[:2], "other entries"),
        (np.full((2, 2), np.nan), NAMES[:2], "other entries"),
        (np.ones((2, 2)), NAMES, "6 names"),
    ],
)
def test_what_is_no_matrix_is_refused(matrix: np.ndarray, names: Any, words: str):
    with pytest.raises(ValueError, match=words):
        confusion_map(matrix, names)


def test_a_flow_of_other_classes_is_refused():
    with pytest.raises(ValueError, match="6 classes, and there are 2 names"):
        flowing(CE, NAMES[:2])


def test_a_map_without_its_decomposition_has_no_ribbons_and_says_nothing_of_it():
    bare = confusion_map(CE, NAMES)
    assert not {"top pair", "streams"} & {t.name for t in bare.data}
    assert "singular value" not in description(bare) and "singular value is" in description(mapped(CE))


def ribbons(figure: Any) -> list[Any]:
    return [t for t in figure.data if t.fill == "toself"]


def test_ribbons_of_the_flow_are_as_wide_as_their_shares_and_the_heaviest_is_named():
    figure = flowing(CE, NAMES, method="ce", top=4)
    flows = Spectrum.of(CE).flows(4)
    found = {t.text: t for t in ribbons(figure)}
    wide = []
    for f in flows:
        t = found[f"{100 * f.rate:.0f}\u00a0% of {NAMES[f.true]} samples are called {NAMES[f.predicted]}"]
        y = np.array(t.y)
        n = len(y) // 2
        assert np.ptp(y[n:][::-1] - y[:n]) < 2e-4  # one width from end to end
        wide.append((y[-1] - y[0]) / f.weighted)
    assert np.allclose(wide, wide[0], atol=2e-3)
    f = flows[0]
    part = f.weighted * Spectrum.of(CE).u[f.predicted] * Spectrum.of(CE).v[f.true] / Spectrum.of(CE).sigma
    if len({g.predicted for g in flows}) > 1:
        assert f"It alone makes {100 * part:.0f}\u00a0% of" in sentence_of(figure)
    names = {a.text for a in figure.layout.annotations}
    assert all(
        any(f"<b>{short(NAMES[k], 18)}</b>" in t for t in names) for f in flows for k in (f.true, f.predicted)
    )


@settings(deadline=None, max_examples=15)
@given(st.integers(2, 40), st.integers(0, 1000), st.integers(1, 12))
def test_the_flow_fits_its_picture_and_ribbons_of_a_class_do_not_overlap(k: int, seed: int, top: int):
    figure = flowing(matrix_of(k, seed, n=30), names_of(k), top=top)
    ends: dict[int, list[tuple[float, float]]] = {0: [], -1: []}
    for t in ribbons(figure):
        y, n = np.array(t.y), len(t.y) // 2
        assert y.min() >= 0 and y.max() <= 1.06
        ends[0].append((y[0], y[-1]))
        ends[-1].append((y[n - 1], y[n]))
    for side in ends.values():
        spans = sorted(side)
        assert all(a[1] <= b[0] + 3e-4 for a, b in pairwise(spans))


def test_weights_widen_the_tail_s_ribbons_and_no_error_is_an_empty_picture():
    w = np.array([0.5, 0.5, 0.5, 0.5, 0.5, 3.0])
    assert "weighted by Λ" in description(flowing(CE, NAMES, w))
    assert Spectrum.of(CE, w).flows(1)[0].true == 5
    empty = flowing(np.eye(3), ("a", "b", "c"))
    assert not ribbons(empty) and "no errors" in sentence_of(empty)
    with pytest.raises(ValueError, match="1 to 12"):
        flowing(CE, NAMES, top=0)


def test_two_flows_whose_widths_are_compared_share_a_unit():
    heavy, light = Spectrum.of(CE), Spectrum.of(CAR)
    unit = min(fitting_unit(heavy), fitting_unit(light))
    for s in (heavy, light):
        figure = flow(s, NAMES, unit=unit)
        found = {t.text: t for t in ribbons(figure)}
        for f in s.flows(6):
            t = found[f"{100 * f.rate:.0f}\u00a0% of {NAMES[f.true]} samples are called {NAMES[f.predicted]}"]
            assert t.y[-1] - t.y[0] == pytest.approx(unit * f.weighted, abs=3e-4)
    with pytest.raises(ValueError, match="do not fit"):
        flow(heavy, NAMES, unit=1.01 * fitting_unit(heavy))
    assert np.isinf(fitting_unit(Spectrum.of(np.eye(6))))


def test_when_all_streams_end_in_one_class_the_sentence_says_so():
    drain = np.diag([9.0, 5, 4]) + np.array([[0, 5, 6], [0, 0, 0], [0, 0, 0]])
    assert "end in a" in sentence_of(flowing(drain, ("a", "b", "c")))


def test_every_method_has_words_and_a_look():
    assert set(TAIL_COLOURS) == set(TAIL_DASHES) == set(TAIL_SHAPES)
    assert {m.name: m.label for m in METHODS.values()} == {k: TAIL_TITLES[k] for k in METHODS}
    assert TAIL_COLOURS["ce"] == "#8a8f96" and TAIL_COLOURS["car-count"] == "#0072B2"
    main = [k for k in TAIL_COLOURS if k != "own"]
    for looks in (TAIL_COLOURS, TAIL_SHAPES):
        assert len({looks[k] for k in main}) == len(main)
    assert len({tuple(TAIL_DASHES[k]) for k in main}) == len(main)
    assert title_of("car-count@beta=0.9,r0=0.05") == "CAR (count EMA), beta 0.9, r0 0.05"
    assert title_of("ce", {"ce": "plain"}) == "plain" and title_of("my network") == "my network"
    for ablation in ("car-no-ema", "car-count@beta=0.9", "ce-cutmix"):
        assert (
            marker_of_method(ablation)["symbol"].endswith("-open")
            and line_of_method(ablation)["dash"] == "3px,3px"
        )
    assert kin_of("my network") == "own" and line_of_method("my network")["dash"] == "solid"


def test_order_and_names_that_fit():
    assert head_to_tail([3, 9, 3, 1]).tolist() == [1, 0, 2, 3]
    order = np.array([2, 0, 1])
    again = reordered(np.stack([BY_HAND, BY_HAND]), order)
    assert again.shape == (2, 3, 3) and again[1, 0, 1] == BY_HAND[2, 0]
    assert (
        short("immature granulocyte", 12) == "immature gr…" and len(short("immature granulocyte", 12)) <= 12
    )
    assert [in_cell(v) for v in (0.0, 0.004, 0.006, 0.5, float("nan"))] == ["", "<1", "1", "50", ""]
