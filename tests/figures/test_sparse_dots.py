"""λ as dots and lines: what is drawn is what was given, frames hold the right states, words carry the numbers, holes stay holes."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from core.figures.sparse_dots import lambda_dots, lambda_severities, lambda_steps
from core.figures.sparse_look import AFTER, BEFORE, depth_colours
from core.figures.sparse_severity import lambda_map, lambda_severity
from core.figures.sparse_training import epoch_lines, lambda_training
from core.figures.sparse_words import number
from core.figures.temperature_frame import description, sentence_of

NAN = float("nan")
LAYERS = ("first layer", "block 1, first", "block 1, second")
MANY = [f"layer {k}" for k in range(17)]
START = np.array([0.12, 0.05, 0.2])
END = np.array([0.31, 0.05, 0.15])
WAY = np.exp(np.linspace(0, 1, 21)[:, None] * np.log(END / START) + np.log(START))
LEVELS = np.stack([START * (END / START) ** (s / 5) for s in range(6)])
TIMES = np.arange(0, 2341, 20)
STORY = np.exp(np.outer(TIMES / 2340, np.log(END / START)) + np.log(START))
PHASES = (("high rate", 0, 800), ("settle", 800, 2340))
ZEROS = np.linspace(0.2, 0.7, 21)[:, None] * np.ones(3)


def named(figure: Any, name: str) -> Any:
    return next(t for t in figure.data if t.name == name)


EVERY = {
    "dots": lambda: lambda_dots(LAYERS, START, END),
    "before": lambda: lambda_dots(LAYERS, START),
    "steps": lambda: lambda_steps(LAYERS, WAY, sparsity=ZEROS, error=1 - ZEROS),
    "severities": lambda: lambda_severities(LAYERS, START, LEVELS, range(6), corruption="fog"),
    "training": lambda: lambda_training(LAYERS, TIMES, STORY, phases=PHASES, per_epoch=390),
    "epochs": lambda: epoch_lines(LAYERS, ZEROS, 1 - ZEROS, accuracy=np.linspace(0.3, 0.9, 21)),
    "lines": lambda: lambda_severity(LAYERS, range(6), {"fog": LEVELS, "snow": LEVELS * 1.1}, trained=START),
    "map": lambda: lambda_map(["fog", "snow"], range(6), LEVELS[:, :2].T, trained=0.1, layer="first layer"),
}


@pytest.mark.parametrize("name", EVERY)
def test_every_chart_has_alt_text_in_sentences_and_no_background_of_its_own(name: str):
    figure = EVERY[name]()
    said = description(figure)
    assert said.endswith(".") and len(said) > 100 and "nan" not in said.lower()
    assert sentence_of(figure).endswith(".") and any(c.isdigit() for c in sentence_of(figure))
    assert figure.layout.paper_bgcolor == figure.layout.plot_bgcolor == "rgba(0,0,0,0)"
    assert not figure.layout.font.color and figure.layout.height >= 100
    assert len(figure.to_json()) < 120_000


def test_dots_stand_where_lambda_is_before_open_and_orange_after_filled_and_blue():
    figure = EVERY["dots"]()
    before, after = named(figure, "after training"), named(figure, "after adaptation")
    assert (
        before.x == pytest.approx(START)
        and before.marker.symbol == "circle-open"
        and before.marker.color == BEFORE
    )
    assert after.x == pytest.approx(END) and after.marker.symbol == "circle" and after.marker.color == AFTER
    assert figure.layout.yaxis.ticktext == LAYERS and figure.layout.yaxis.range == (
        2.5,
        -0.5,
    )  # the first on top
    assert "rises in 1 and falls in 1 of 3 layers, most in first layer: from 0.12 to 0.31." in sentence_of(
        figure
    )
    assert "first layer 0.12 to 0.31; block 1, first 0.050; block 1, second 0.20 to 0.15." in description(
        figure
    )


def test_the_reach_of_the_clamp_is_shaded_row_by_row_and_may_widen_the_axis():
    band = named(lambda_dots(LAYERS, START, END, whole=True, reach=4), "within reach")
    for k, lam in enumerate(START):
        assert band.x[3 * k : 3 * k + 2] == pytest.approx((lam / 4, lam * 4)) and band.x[3 * k + 2] is None
    near = lambda_dots(LAYERS, START, END, reach=100)
    low, high = (10**v for v in near.layout.xaxis.range)
    assert low > START.min() / 2 and high < END.max() * 2
    assert min(v for v in named(near, "within reach").x if v) == pytest.approx(low)
    assert "within reach" not in {t.name for t in lambda_dots(LAYERS, START, END, reach=None).data}


def test_a_stopped_layer_says_so_and_why():
    figure = lambda_dots(LAYERS, START, END, stopped={"block 1, first": "its error rose to 0.61"})
    words = named(figure, "stopped")
    assert [t.strip() for t in words.text] == ["", "stopped", ""] and [s > 0 for s in words.marker.size] == [
        False,
        True,
        False,
    ]
    assert "its error rose to 0.61" in named(figure, "after adaptation").text[1]
    assert sentence_of(figure).endswith("The guard stopped block 1, first (its error rose to 0.61).")
    with pytest.raises(ValueError, match="block 9"):
        lambda_dots(LAYERS, START, END, stopped={"block 9": ""})


def test_steps_play_from_before_to_after_with_sparsity_and_error_beside():
    figure = EVERY["steps"]()
    assert len(figure.frames) == 21 and figure.layout.sliders[0].active == 20
    first, last = (figure.frames[k].data[1] for k in (0, 20))
    assert first.x == pytest.approx(START, rel=1e-3) and last.x == pytest.approx(END, rel=1e-3)
    assert [figure.data[i].name for i in figure.frames[0].traces] == [
        "moves",
        "after adaptation",
        "stopped",
        "now",
    ]
    assert named(figure, "sparsity").y[-1] == pytest.approx(70) and named(figure, "error").line.dash == "dash"
    assert figure.frames[10].data[3].y == pytest.approx((45, 55)) and figure.frames[10].data[3].x == (10, 10)
    assert "sparsity goes from 20.0" in description(figure) and "In 20 steps λ" in sentence_of(figure)
    few = lambda_steps(LAYERS, WAY, frames=5, sparsity=np.full((21, 3), NAN))
    assert [s.label for s in few.layout.sliders[0].steps] == ["0", "5", "10", "15", "20"]
    assert "sparsity" not in {t.name for t in few.data}


def test_one_row_of_steps_and_one_layer_are_fine():
    still = lambda_steps(LAYERS, WAY[:1])
    assert (
        not still.frames
        and not still.layout.sliders
        and "λ stays where it was in all 3 layers" in sentence_of(still)
    )
    assert sentence_of(lambda_dots(["first layer"], [0.12], [0.31])) == "λ rises from 0.12 to 0.31."
    assert sentence_of(lambda_dots(["first layer"], [0.3], [0.3])) == "λ stays at 0.30."
    assert "falls from 0.31 to 0.12" in sentence_of(lambda_steps(["a"], [[0.31], [0.2], [0.12]]))


def test_severities_have_a_frame_each_and_holes_stay_holes():
    holed = LEVELS.copy()
    holed[2] = NAN
    zeros = [0.4, 0.5, NAN, 0.6, 0.6, 0.7]
    stopped = {4: ["first layer"]}
    figure = lambda_severities(
        LAYERS, START, holed, range(6), corruption="fog", at=2, stopped=stopped, sparsity=zeros
    )
    assert len(figure.frames) == 6 and figure.layout.sliders[0].active == 2
    assert figure.frames[2].data[1].x == (None,) * 3 and figure.frames[5].data[1].x == pytest.approx(
        END, rel=1e-3
    )
    assert "On fog of severity 2 λ was not measured after adaptation." in sentence_of(figure)
    assert "stopped" in figure.frames[4].data[2].text[0] and not figure.frames[3].data[2].text[0]
    assert named(figure, "sparsity").y[2] is None
    clean = lambda_severities(LAYERS, START, LEVELS, range(6), at=0)
    assert sentence_of(clean).startswith("On clean images λ stays")
    with pytest.raises(ValueError, match="not among"):
        lambda_severities(LAYERS, START, LEVELS, range(6), at=9)


def test_panels_lie_under_one_another_on_a_narrow_screen_and_a_given_height_holds():
    wide, narrow = EVERY["steps"](), lambda_steps(LAYERS, WAY, sparsity=ZEROS, compact=True)
    assert wide.layout.xaxis2.domain[0] > wide.layout.xaxis.domain[1]
    assert narrow.layout.xaxis2.domain == narrow.layout.xaxis.domain == (0, 1)
    assert narrow.layout.yaxis2.domain[1] < narrow.layout.yaxis.domain[0]
    low = lambda_severities(MANY, np.full(17, 0.1), np.full((6, 17), 0.2), range(6), height=340)
    assert low.layout.height == 340 and named(low, "after adaptation").marker.size < 12


@pytest.mark.parametrize(
    ("make", "words"),
    [
        (lambda: lambda_dots([], []), "at least one sparse layer"),
        (lambda: lambda_dots(["a", "a"], [1, 1]), "same name"),
        (lambda: lambda_dots(LAYERS, START[:2]), "shape"),
        (lambda: lambda_dots(LAYERS, [0.1, 0.0, 0.1]), "above 0"),
        (lambda: lambda_dots(LAYERS, [0.1, NAN, 0.1]), "above 0"),
        (lambda: lambda_dots(LAYERS, START, [0.1, -1.0, NAN]), "above 0"),
        (lambda: lambda_steps(LAYERS, np.zeros((0, 3))), "no row"),
        (lambda: lambda_steps(LAYERS, WAY, sparsity=ZEROS[:3]), "shape"),
        (lambda: lambda_severities(LAYERS, START, LEVELS, [0, 1, 1, 2, 3, 4]), "rise"),
        (lambda: lambda_training(LAYERS, TIMES[::-1], STORY), "rise"),
        (lambda: lambda_training(LAYERS, [], np.zeros((0, 3))), "at least one"),
        (lambda: epoch_lines(LAYERS, ZEROS + 1, ZEROS), "shares from 0 to 1"),
        (lambda: epoch_lines(LAYERS, ZEROS, ZEROS[:4]), "shape"),
        (lambda: lambda_severity(LAYERS, range(6), {}), "no corruption"),
        (lambda: lambda_severity(LAYERS, range(6), {"fog": LEVELS}, relative=True), "need the trained"),
        (lambda: lambda_map(["fog"], range(6), np.full((1, 6), NAN), trained=0.1, layer="a"), "no adapted"),
        (lambda: lambda_map(["fog"], range(6), LEVELS[:, :1].T, trained=0.1, layer="a", families=[]), "families"),
    ],
)  # fmt: skip
def test_what_cannot_be_is_refused(make: Any, words: str):
    with pytest.raises(ValueError, match=words):
        make()


def test_training_is_played_from_the_first_step_to_the_last_with_its_phases():
    figure = EVERY["training"]()
    assert len(figure.frames) == 36
    start, end = figure.frames[0].data, figure.frames[-1].data
    assert len(start) == 4 and start[0].x == (0.0,) and start[3].y == pytest.approx(START)
    assert (
        end[3].y == pytest.approx(END, rel=1e-3) and len(end[0].x) == 36 and end[0].x[-1] == pytest.approx(6)
    )
    assert [figure.data[i].line.color for i in figure.frames[0].traces[:3]] == depth_colours(3)
    assert [(s.x0, s.x1) for s in figure.layout.shapes] == [
        (0, pytest.approx(800 / 390)),
        (pytest.approx(800 / 390), 6),
    ]
    assert [a.text for a in figure.layout.annotations] == ["high rate", "settle"]
    assert figure.layout.xaxis.title.text == "epoch" and "Over 6 epochs λ" in sentence_of(figure)
    means = [number(float(np.exp(np.log(STORY[k]).mean()))) for k in (0, 40, -1)]
    assert f"high rate from {means[0]} to {means[1]}; settle from {means[1]} to {means[2]}" in description(
        figure
    )


def test_many_layers_have_a_bar_of_depth_few_have_names_and_one_moment_does_not_play():
    long = np.exp(np.random.default_rng(0).normal(0, 0.3, (235, 17))) * 0.1
    figure = lambda_training(MANY, np.arange(235) * 20, long, compact=True)
    assert (
        named(figure, "depth").marker.colorbar.ticktext == ("first", "last") and not figure.layout.showlegend
    )
    assert len(figure.to_json()) < 400_000
    assert EVERY["training"]().layout.showlegend
    one = lambda_training(LAYERS, [0], STORY[:1])
    assert not one.frames and not one.layout.sliders and "starts with λ" in sentence_of(one)


def test_epochs_start_empty_and_show_percent():
    empty = epoch_lines(LAYERS, np.zeros((0, 3)), np.zeros((0, 3)))
    assert "Nothing yet." in description(empty) and sentence_of(empty) == ""
    figure = EVERY["epochs"]()
    lines = [t for t in figure.data if t.name == "first layer"]
    assert lines[0].y[-1] == pytest.approx(70) and lines[1].y[-1] == pytest.approx(30)
    assert named(figure, "accuracy").y[-1] == pytest.approx(90)
    assert "After epoch 21: first layer 70.0" in sentence_of(figure) and "90.0" in sentence_of(figure)
    stacked = epoch_lines(LAYERS, ZEROS, ZEROS, compact=True)
    assert stacked.layout.yaxis2.domain[1] < stacked.layout.yaxis.domain[0]


def test_lines_morph_over_corruptions_or_grow_over_severities():
    figure = EVERY["lines"]()
    assert [s.label for s in figure.layout.sliders[0].steps] == ["fog", "snow"]
    assert figure.frames[1].data[0].y == pytest.approx(LEVELS[:, 0] * 1.1, rel=1e-3)
    assert (
        named(figure, "after training").y == pytest.approx(START)
        and figure.layout.xaxis.ticktext[0] == "trained"
    )
    grow = lambda_severity(LAYERS, range(6), {"fog": LEVELS}, trained=START, relative=True)
    assert [len(f.data[0].x) for f in grow.frames] == [1, 2, 3, 4, 5, 6] and grow.layout.sliders[
        0
    ].active == 5
    assert grow.data[0].y[-1] == pytest.approx(0.31 / 0.12, rel=1e-3)
    assert "From severity 0 to 5 of fog λ rises in 1 and falls in 1 of 3 layers" in sentence_of(grow)
    holed = LEVELS.copy()
    holed[1:] = NAN
    assert "fewer than two severities" in sentence_of(lambda_severity(LAYERS, range(6), {"fog": holed}))


def test_the_map_holds_the_ratio_to_the_trained_lambda_and_the_number():
    table = np.array([[0.1, 0.2], [0.05, NAN]])
    figure = lambda_map(
        ["fog", "jpeg"], [1, 5], table, trained=0.1, layer="first layer", families=["weather", "digital"]
    )
    heat = figure.data[0]
    assert [list(row) for row in heat.z] == [[0, 1], [-1, None]] and heat.zmin == -heat.zmax
    assert [list(row) for row in heat.text] == [["0.10", "0.20"], ["0.050", ""]]
    assert [s.y0 for s in figure.layout.shapes] == [0.5]
    assert sentence_of(figure) == (
        "In the first layer adaptation moves λ from 0.10 to between 0.050 (jpeg, severity 1) and 0.20 (fog, severity 5)."
    )
    assert "jpeg 0.050, unknown" in description(figure)
