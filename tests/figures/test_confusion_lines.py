"""Recalls, spectra, bounds, memories, learning and the table as dots: what is drawn is what was given, and words carry the numbers."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from core.car.ema import presence, replay
from core.car.metrics import figures_of, recalls
from core.car.spectrum import Spectrum
from core.figures.confusion_bars import recall_bars, running
from core.figures.confusion_bound import SigmaLine, sigma_over_epochs
from core.figures.confusion_dots import dots
from core.figures.confusion_learning import learning
from core.figures.confusion_spectrum import spectrum, spectrum_mini
from core.figures.confusion_tail import TailColumn, seen_by, tail_column
from core.figures.export import to_png
from core.figures.temperature_frame import description, sentence_of
from tests.figures.made_confusion import COUNTS, NAMES, matrix_of, names_of
from tests.figures.specs import rows_of, said, spec_of

CE, CAR = matrix_of(), matrix_of(seed=1, better=0.2)
FIT = matrix_of(seed=2, better=0.6)
EPOCHS = np.array([0, 4, 9])
RUN = np.stack([matrix_of(seed=s, better=0.1 * s) for s in range(3)])
SPECTRA = [Spectrum.of(m) for m in RUN]


def line_of(spectra: list[Spectrum]) -> SigmaLine:
    bounds = [s.bound() for s in spectra]
    return SigmaLine(
        EPOCHS,
        np.array([s.sigma for s in spectra]),
        np.array([b.of_worst for b in bounds]),
        np.array([b.worst_error for b in bounds]),
    )


LINES = {"ce": line_of(SPECTRA), "car-count": line_of(SPECTRA[::-1])}
ROWS = {
    "ce": [{"epoch": e, "overall": 0.5 + 0.1 * e, "worst": 0.1 * e, "worst_class": "8"} for e in range(3)],
    "car-count": [
        {"epoch": 0, "overall": 0.4, "worst": float("nan")},
        {"epoch": 1, "overall": None, "sigma": 0.3},
    ],
}


def table(**more: Any) -> list[dict[str, Any]]:
    return [
        {"data": data, "name": name, "method": label, "seeds": [0, 1, 2] if sd else [0], "overall": 0.8 - 0.01 * i, "overall_sd": sd,
         "worst_classes": 0.3 + 0.05 * i * up, "worst_classes_sd": sd} | more
        for data, up in (("pbc", 1), ("tiny", -1))
        for i, (name, label, sd) in enumerate((("ce", "CE", 0.01), ("focal", "focal", None), ("car-count", "CAR (count EMA)", 0.02)))
    ]  # fmt: skip


def column(beta: float = 0.9, weight: float = 1.0, batches: int = 400) -> TailColumn:
    """A tail class in about one batch of eight, with errors that never vary: what a memory holds is its bias alone."""
    rng = np.random.default_rng(0)
    truth = np.array([0.4, 0.1, 0.05, 0.0, 0.0, 0.0])
    counts = np.ones((batches, 6), int)
    counts[:, 5] = rng.random(batches) < 0.125
    matrices = np.zeros((batches, 6, 6))
    matrices[:, :, 5] = truth * (counts[:, 5:] > 0)
    memories = {
        m: replay(torch.tensor(matrices), torch.tensor(counts), m, beta)[:, :, 5].numpy() for m in ("naive", "present only", "count")
    }  # fmt: skip
    return TailColumn("basophil", NAMES, truth, counts[:, 5] > 0, memories, 0.125, beta, weight, 0.7)


EVERY = {
    "bars": lambda: recall_bars({"ce": CE}, NAMES, train={"ce": FIT}, counts=COUNTS),
    "two": lambda: recall_bars({"ce": CE, "car-count": CAR}, NAMES, train={"ce": FIT}),
    "many": lambda: recall_bars({"ce": matrix_of(60)}, names_of(60), train={"ce": matrix_of(60, 1, 0.6)}, counts=np.arange(60, 0, -1)),
    "spectrum": lambda: spectrum({"ce": Spectrum.of(CE), "car-count": Spectrum.of(CAR)}),
    "sigma": lambda: sigma_over_epochs(LINES, at=4)[0].figure,
    "bound": lambda: sigma_over_epochs(LINES, at=4)[1].figure,
    "tail": lambda: tail_column(column())[0].figure,
    "tail into": lambda: tail_column(column())[1].figure,
    "learning": lambda: learning(ROWS, 10)[0].figure,
    "dots": lambda: dots(table(), set_titles={"pbc": "blood cells"})[0].figure,
}  # fmt: skip


@pytest.mark.parametrize("name", EVERY)
def test_every_chart_has_alt_text_in_sentences_and_no_background_of_its_own(name: str):
    figure = EVERY[name]()
    said = description(figure)
    assert said.endswith(".") and len(said) > 100 and "nan" not in said.lower()
    beside = name in ("sigma", "tail into")  # the sentence stands over both charts, with the other one
    assert beside or (sentence_of(figure).endswith(".") and any(c.isdigit() for c in sentence_of(figure)))
    assert figure.layout.paper_bgcolor == figure.layout.plot_bgcolor == "rgba(0,0,0,0)"
    assert not figure.layout.font.color
    assert len(figure.to_json()) < 60_000


def named(figure: Any, name: str) -> Any:
    return next(t for t in figure.data if t.name == name)


def test_bars_are_recalls_and_the_worst_is_edged_marked_and_named():
    figure = EVERY["bars"]()
    assert np.array(named(figure, "test data").x) == pytest.approx(100 * recalls(CE), abs=0.06)
    outline = named(figure, "training data")
    assert (
        np.array(outline.x) == pytest.approx(100 * recalls(FIT), abs=0.06)
        and outline.marker.color == "rgba(0,0,0,0)"
    )
    j = figures_of(CE, COUNTS).worst_class
    mark = named(figure, "worst")
    assert len(mark.y) == 1 and round(mark.y[0]) == j and "worst" in mark.text[0]
    widths = named(figure, "test data").marker.line.width
    assert widths[j] > 0 and sum(w > 0 for w in widths) == 1
    low = (
        f"{100 * recalls(CE)[j]:.0f}\u00a0% on test data, {100 * recalls(FIT)[j]:.0f}\u00a0% on training data"
    )
    assert sentence_of(figure) == f"The worst class under CE is {NAMES[j]}: {low}."
    assert figure.layout.yaxis.range == (5.5, -0.5) and figure.layout.yaxis.ticktext[0] == "neutrophil  1,700"


def test_bars_of_two_methods_lie_beside_one_another():
    figure = EVERY["two"]()
    first, second = named(figure, "CE, test"), named(figure, "CAR (count EMA), test")
    assert first.offset + first.width <= second.offset + 1e-9
    same = recall_bars({"ce": [0.9, 0.2], "car-count": [0.8, 0.3]}, ("a", "b"))
    assert sentence_of(same).startswith("The worst class under both is b: under CE 20")
    other = recall_bars({"ce": [0.9, 0.2], "car-count": [0.1, 0.3]}, ("a", "b"))
    assert "under CE is b (20\u00a0% on test data), under CAR (count EMA) a (10" in sentence_of(other)


def test_a_class_without_a_test_sample_is_never_worst():
    figure = recall_bars({"own": [0.9, float("nan"), 0.4]}, ("a", "b", "c"))
    assert named(figure, "test data").x == (90.0, None, 40.0)
    assert "is c: 40" in sentence_of(figure) and "B has no sample" in description(figure)
    ties = recall_bars({"own": [0.9, 0.0, 0.0]}, ("a", "b", "c"))
    assert "one of 2, c among them" in sentence_of(ties)


def test_a_worst_class_that_both_share_is_marked_once():
    marks = [
        t
        for t in recall_bars({"ce": [0.9, 0.2], "car-count": [0.8, 0.3]}, ("a", "b")).data
        if t.name == "worst"
    ]
    assert [t.text for t in marks] == [("<b>◀ worst, both</b>",), ("",)] and marks[0].y == (1,)
    apart = [
        t
        for t in recall_bars({"ce": [0.9, 0.2], "car-count": [0.1, 0.3]}, ("a", "b")).data
        if t.name == "worst"
    ]
    assert [t.text[0] for t in apart] == ["<b>◀ worst, CE</b>", "<b>◀ worst, CAR</b>"]
    assert apart[0].y[0] < 1 and apart[1].y[0] > 0


def test_many_classes_are_dots_with_a_running_mean():
    figure = EVERY["many"]()
    assert not [t for t in figure.data if t.type == "bar"]
    assert np.array(named(figure, "CE, test").y) == pytest.approx(100 * recalls(matrix_of(60)), abs=0.06)
    assert named(figure, "CE, training mean").fill == "tozeroy"
    assert "(60 to 1 training images)" in figure.layout.xaxis.title.text


@settings(deadline=None, max_examples=30)
@given(st.lists(st.one_of(st.floats(0, 1), st.just(float("nan"))), min_size=1, max_size=60))
def test_the_running_mean_is_a_mean_of_neighbours(values: list[float]):
    v = np.array(values)
    half = max(1, round(len(v) / 20))
    for k, got in enumerate(running(v)):
        near = v[max(0, k - half) : k + half + 1]
        near = near[~np.isnan(near)]
        assert np.isnan(got) if not len(near) else got == pytest.approx(near.mean(), abs=1e-9)


@pytest.mark.parametrize(
    ("test", "words"),
    [
        ({}, "1 to 2 methods"),
        ({"a": [1.0, 0.5], "b": [1.0, 0.5], "c": [1.0, 0.5]}, "1 to 2 methods"),
        ({"a": [0.5, 1.2]}, "share from 0 to 1"),
        ({"a": [0.5]}, "2 names"),
        ({"a": [float("nan"), float("nan")]}, "No class has"),
    ],
)
def test_recalls_that_cannot_be_are_refused(test: Any, words: str):
    with pytest.raises(ValueError, match=words):
        recall_bars(test, ("a", "b"))


def test_a_spectrum_is_that_of_numpy_s_svd_of_the_error_rates():
    figure = spectrum({"ce": Spectrum.of(CE), "car-count": Spectrum.of(CAR)}, top=4)
    rates = CE / CE.sum(0)
    np.fill_diagonal(rates, 0)
    values = np.linalg.svd(rates, compute_uv=False)
    assert np.array(named(figure, "CE").y) == pytest.approx(values[:4], abs=1e-4)
    held = 100 * values[0] ** 2 / (values**2).sum()
    assert f"the first holds {held:.0f}\u00a0% of the squares" in description(figure)
    weighted = Spectrum.of(CE, np.array([1, 1, 1, 1, 1, 2.0]))
    assert "weighted by Λ" in description(spectrum({"own": weighted}))
    assert "weighted by Λ" not in description(figure)


def test_the_miniature_is_a_line_a_method_without_title():
    chart = spectrum_mini({"ce": Spectrum.of(CE), "car-count": Spectrum.of(CAR)})
    spec = spec_of(chart)
    assert "title" not in spec and spec["height"] == 150
    rows = rows_of(spec, "value", "size", mark="line")
    assert rows[0]["size"] == pytest.approx(Spectrum.of(CE).sigma, abs=1e-4) and len(rows) == 12
    assert "under CE" in said(spec) and to_png(chart, 1, 300)[:4] == b"\x89PNG"
    with pytest.raises(ValueError, match="1 to 3"):
        spectrum_mini({})


def test_bounds_lie_over_the_truth_and_a_vacuous_one_is_said_and_hatched():
    own = LINES["ce"]
    assert (own.bound >= own.error).all() and own.sigma == pytest.approx([Spectrum.of(m).sigma for m in RUN])
    assert own.error == pytest.approx([1 - recalls(m).min() for m in RUN])
    low = SigmaLine(EPOCHS, own.sigma, np.full(3, 0.9), np.full(3, 0.2))
    high = SigmaLine(EPOCHS, own.sigma, np.full(3, 1.4), np.full(3, 0.5))
    both = sigma_over_epochs({"ce": high, "car-count": low})[1].figure
    assert "One of the bounds is 1 or more and says nothing." in sentence_of(both)
    assert "CE has a bound of 1.40 and a true error of 50" in sentence_of(both)
    assert named(both, "vacuous").fillpattern.shape == "/" and min(named(both, "vacuous").y) == 1
    assert both.layout.yaxis.type != "log"
    clear = sigma_over_epochs({"car-count": low})[1].figure
    assert "says nothing" not in sentence_of(clear) and "vacuous" not in {t.name for t in clear.data}
    huge = sigma_over_epochs(
        {"ce": SigmaLine(EPOCHS, own.sigma, np.full(3, 9.0), np.array([0.0, 0.5, 0.4]))}
    )[1].figure
    assert huge.layout.yaxis.type == "log" and "A bound of 1 or more says nothing." in sentence_of(huge)
    drawn = [t for t in huge.data if t.mode == "lines" and t.name == "CE"]
    assert len(drawn) == 2
    assert all(v > 0 for t in drawn for v in t.y)  # nothing at minus infinity


def test_lines_that_cannot_be_are_refused():
    own = LINES["ce"]
    with pytest.raises(ValueError, match="below the true error"):
        sigma_over_epochs({"ce": SigmaLine(EPOCHS, own.sigma, own.error - 0.1, own.error)})
    with pytest.raises(ValueError, match="differ in number"):
        sigma_over_epochs({"ce": SigmaLine(EPOCHS[1:], own.sigma, own.bound, own.error)})
    with pytest.raises(ValueError, match="1 to 3"):
        sigma_over_epochs({})


def test_the_naive_memory_holds_presence_times_the_truth_and_the_repaired_ones_hold_all():
    c = column()
    seen = seen_by(c)
    assert seen["naive"] == pytest.approx(c.present[200:].mean(), abs=0.03)
    assert seen["count"] == pytest.approx(1, abs=1e-6) and seen["present only"] == pytest.approx(1, abs=0.05)
    figure = tail_column(c, shown=100)[0].figure
    naive = named(figure, "naive memory")
    assert len(naive.x) == 100 and naive.x[-1] == 400
    assert np.array(naive.y) == pytest.approx(100 * c.memories["naive"].sum(1)[300:], abs=2e-3)
    assert named(figure, "true errors").y == (55.0, 55.0)
    assert named(figure, "presence × truth").y == pytest.approx((6.875, 6.875))
    assert len(named(figure, "batch has the class").x) == c.present[300:].sum()
    assert f"holds {100 * seen['naive']:.0f}\u00a0% with the naive memory" in sentence_of(figure)
    assert presence(torch.tensor([10, 1]), 4)[1] == pytest.approx(1 - (10 / 11) ** 4)


def test_lambda_adds_open_marks_and_its_ratio():
    plain, weighted = (
        tail_column(replace(column(), weight=w, head_weight=h)) for w, h in ((1.0, 1.0), (1.75, 0.7))
    )
    assert "with Λ" not in {t.name for t in plain[1].figure.data} and "Λ" not in sentence_of(plain[0].figure)
    assert "Λ weighs it 2.50 times" in sentence_of(weighted[0].figure)
    into = weighted[1].figure
    filled, hollow = named(into, "count memory"), named(into, "count, with Λ")
    assert (
        np.array(hollow.x) == pytest.approx(2.5 * np.array(filled.x), abs=3e-3)
        and hollow.marker.symbol == "circle-open"
    )
    assert into.layout.yaxis.ticktext == (
        "neutrophil",
        "eosinophil",
        "immature granu…",
    )  # no row for what never happens


def test_columns_that_cannot_be_are_refused():
    c = column(batches=4)
    for memories, words in (
        ({}, "none"),
        ({"long": c.memories["naive"]}, "long"),
        ({"naive": np.ones((3, 6))}, "4 batches"),
    ):
        with pytest.raises(ValueError, match=words):
            tail_column(TailColumn("a", NAMES, c.truth, c.present, memories, 0.1, 0.5))
    with pytest.raises(ValueError, match="true column"):
        tail_column(TailColumn("a", NAMES, c.truth[1:], c.present, c.memories, 0.1, 0.5))


def test_learning_starts_empty_and_passes_over_what_is_not_measured():
    empty = learning({"ce": [], "car-count": []}, 10)[0].figure
    assert "Nothing yet" in description(empty) and sentence_of(empty) == ""
    three = learning(ROWS, 10)
    assert [p.title for p in three] == [
        "Accuracy, %",
        "Recall of the worst class, %",
        "σ₁ of the test errors",
    ]
    lines = [{t.name: t for t in p.figure.data if t.mode == "lines"} for p in three]
    assert tuple(lines[1]["CE"].y) == pytest.approx((0, 10, 20)) and tuple(lines[1]["CE"].x) == (1, 2, 3)
    assert not len(lines[1]["CAR (count EMA)"].y or ()) and tuple(lines[2]["CAR (count EMA)"].x) == (2,)
    assert len(learning({"ce": ROWS["ce"]}, 10)) == 2  # no chart for what no row has
    assert all(p.figure.layout.xaxis.range == (1, 10) for p in three)
    assert (
        "After epoch 3 CE has 70\u00a0% of the test samples right and 20\u00a0% of the worst class (8)."
        in sentence_of(three[0].figure)
    )
    assert not sentence_of(three[1].figure)
    with pytest.raises(ValueError, match="1 to 6"):
        learning({}, 10)


def test_a_dot_a_method_a_panel_a_set_with_bars_where_a_deviation_is_known():
    panels = dots(table(), set_titles={"pbc": "blood cells"})
    assert [p.title for p in panels] == ["blood cells", "tiny"]
    figure = panels[0].figure
    points = [t for p in panels for t in p.figure.data if t.name == "CAR (count EMA)"]
    assert [(t.x[0], t.y[0]) for t in points] == [(78, 40), (78, 20)]
    assert points[0].error_y.array == (2.0,)
    assert next(t for t in figure.data if t.name == "focal").error_x.array is None
    assert sorted({round(s.y0, 6) for s in figure.layout.shapes if s.y0 == s.y1}) == [30]
    assert (
        sentence_of(figure)
        == "In mean recall of the worst classes, above CE: CAR (count EMA) in 1 of 2 sets."
    )
    assert (
        "focal 79\u00a0% and 35\u00a0%" in description(figure)
        and "one seed" in next(t for t in figure.data if t.name == "focal").text[0]
    )


def test_a_set_on_which_neither_finds_anything_is_not_counted_even_where_another_loss_does():
    rows = table()
    for r in rows:
        if r["data"] == "tiny":
            r["worst_classes"] = {"ce": 0.0, "car-count": 0.0003}.get(r["name"], 0.05)
    assert "CAR (count EMA) in 1 of 1 sets" in str(sentence_of(dots(rows)[0].figure))


@pytest.mark.parametrize(
    ("rows", "more", "words"),
    [
        ([], {}, "no row"),
        (table(), {"x": "speed"}, "An axis is"),
        (table(overall=None), {}, "lacks overall"),
        (table(), {"y": "wr"}, "lacks wr"),
    ],
)
def test_tables_that_cannot_be_are_refused(rows: Any, more: Any, words: str):
    with pytest.raises(ValueError, match=words):
        dots(rows, **more)
