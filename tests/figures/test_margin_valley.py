"""Valleys and paths: they show the planes and ways they are given, point where descent goes, and name what is flat and where a ball rests."""

from __future__ import annotations

import base64
import io
import json
from typing import Any

import numpy as np
import pytest
from PIL import Image

from core.figures.margin_ground import FLAT, Ground, has_floor
from core.figures.margin_paths import Roll, paths
from core.figures.margin_picture import picture
from core.figures.margin_valley import surface, valley, valleys
from core.figures.palette import LOSS_COLOURS
from core.figures.temperature_frame import description, sentence_of
from core.margin.penalty import fixed_point_of, landscape, path
from core.settings import MarginSettings

AXIS = np.linspace(-4, 16, 41)


def ground(loss: str, m: float = 10.0, axis: np.ndarray = AXIS) -> Ground:
    """A plane as the page makes it."""
    s = MarginSettings(loss=loss, margin=m)
    land, rest = landscape(s, axis, axis), fixed_point_of(s, 3)
    g1, g2 = (g.T for g in land.gradient)
    push = np.stack([-(2 * g1 + g2), -(g1 + 2 * g2)])
    return Ground(
        loss,
        axis,
        land.values.T,
        push,
        m if loss == "margin" else None,
        rest and rest.distance,
        rest and rest.confidence,
    )


GROUNDS = {loss: ground(loss) for loss in ("CE", "LS", "focal", "ECP", "margin")}
AT = np.unique(np.round(np.r_[0, np.geomspace(1, 400, 30)]).astype(int))
START = (0.0, 3.0, -1.5)
WAYS = {loss: path(MarginSettings(loss=loss), START, steps=400) for loss in GROUNDS}
ROLLS = {loss: Roll(w.distances[AT][:, 1:], w.confidence[AT]) for loss, w in WAYS.items()}


def both() -> Any:
    return paths(ROLLS, AT, ground=GROUNDS["margin"])


def alone() -> Any:
    return paths(ROLLS, AT, ground=GROUNDS["margin"], beside=False, height=330)


EVERY = {
    "valley": lambda: valley(GROUNDS["margin"], start=(-3, 1.5)),
    "valleys": lambda: valleys(list(GROUNDS.values())),
    "surface": lambda: surface(GROUNDS["margin"], start=(-3, 1.5)),
    "paths": both,
    "one panel": alone,
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


def test_the_valley_shows_heights_floor_rest_and_start_and_its_title_has_m():
    figure = valley(GROUNDS["margin"], start=(-3, 1.5))
    heat = traces(figure, "contour")[0]
    assert np.allclose(heat.z, GROUNDS["margin"].penalty - GROUNDS["margin"].penalty.min(), atol=1e-5)
    assert heat.z[list(AXIS).index(0.0)][list(AXIS).index(16.0)] == pytest.approx(0.1 * 6 / 3, abs=1e-5)
    assert figure.layout.title.text == "Penalty of margin, m = 10"
    star = next(t for t in traces(figure, "scatter") if t.marker.symbol == "star")
    assert star.x == star.y == (10.0,)
    assert "flat floor" in " ".join(a.text for a in figure.layout.annotations)
    assert sentence_of(figure).startswith("Closer than m = 10 is fine")
    assert "99.99\u00a0%" in sentence_of(figure)
    ring = next(t for t in traces(figure, "scatter") if t.marker.symbol == "circle-open")
    assert (ring.x[0], ring.y[0]) == (-3, 1.5)


def test_rows_are_the_second_distance():
    z = np.add.outer(np.arange(3.0), np.zeros(3))  # grows with the second distance only
    figure = valley(Ground("LS", np.arange(3.0), z, np.stack([np.zeros((3, 3)), -np.ones((3, 3))])))
    assert traces(figure, "contour")[0].z[2][0] == 2.0
    heads = next(t for t in traces(figure, "scatter") if t.marker.symbol == "arrow")
    assert np.allclose(np.abs(heads.marker.angle), 180)  # straight down


def test_arrows_point_the_way_a_step_of_descent_goes():
    """Against the loss itself: one small step from the plane's points, without the formula of the two slopes."""
    figure = valley(GROUNDS["margin"])
    heads = next(t for t in traces(figure, "scatter") if t.marker.symbol == "arrow")
    s = MarginSettings(loss="margin", margin=10.0)
    line = next(t for t in traces(figure, "scatter") if t.mode == "lines")
    for i in range(0, len(heads.x), 7):
        d1, d2 = line.x[3 * i], line.y[3 * i]
        both, ce = (
            path(x, (0.0, -d1, -d2), steps=1, rate=1e-3).distances[1, 1:]
            for x in (s, MarginSettings(loss="CE"))
        )
        dx, dy = both - ce
        assert heads.marker.angle[i] == pytest.approx(np.degrees(np.arctan2(dx, dy)), abs=0.2)


def test_dots_instead_of_arrows_where_nothing_pushes():
    figure = valley(GROUNDS["CE"])
    assert not [t for t in traces(figure, "scatter") if t.marker.symbol == "arrow"]
    still = next(t for t in traces(figure, "scatter") if t.marker.symbol == "circle")
    assert len(still.x) == 121
    assert "adds nothing to cross-entropy" in sentence_of(figure)
    assert "no point of rest" in description(figure)


@pytest.mark.parametrize(("m", "floor"), [(0.0, False), (5.0, True), (10.0, True), (20.0, False)])
def test_the_floor_follows_m(m: float, floor: bool):
    g = ground("margin", m)
    assert has_floor(g) is floor
    assert len(traces(valley(g), "contour")) == 1 + floor
    share = (g.penalty <= FLAT * max(g.penalty.max(), 1e-12)).mean()
    assert g.flat_share == pytest.approx(share, abs=0.06)


def test_only_the_margin_has_a_floor():
    assert [x for x, g in GROUNDS.items() if has_floor(g)] == ["margin"]
    assert sentence_of(valleys(list(GROUNDS.values()))).startswith("Only margin, m = 10 has a flat floor")
    assert sentence_of(valleys([GROUNDS["LS"], GROUNDS["ECP"]])).startswith("What each loss adds")


def test_small_multiples_share_a_scale_only_when_asked():
    for shared, tops in ((True, {1}), (False, {4, 5})):
        figure = valleys([GROUNDS[x] for x in ("LS", "focal", "ECP", "margin")], shared=shared)
        heats = [t for t in traces(figure, "contour") if t.colorscale]
        assert len({round(t.zmax, 6) for t in heats}) in tops
        assert {a.text.split("<br>")[0] for a in figure.layout.annotations} >= {
            "label smoothing",
            "margin, m = 10",
        }


def test_the_surface_has_the_valley_s_heights_and_marks_lie_on_it():
    figure = surface(GROUNDS["margin"], start=(0.0, 16.0))
    top = GROUNDS["margin"].penalty.max()
    start = next(t for t in traces(figure, "scatter3d") if t.x == (0.0,))
    assert start.z[0] == pytest.approx(0.2 + 0.05 * top, abs=1e-4)
    assert np.max(traces(figure, "surface")[0].z) == pytest.approx(top, abs=1e-5)


@pytest.mark.parametrize(
    ("bad", "words"),
    [
        ({"penalty": np.zeros((3, 3))}, r"needs a penalty of \(41, 41\)"),
        ({"push": np.zeros((41, 41))}, "a push of"),
        ({"axis": AXIS[::-1]}, "must rise"),
        ({"penalty": np.full((41, 41), np.nan)}, "not finite"),
        ({"loss": "hinge"}, "needs losses"),
    ],
)
def test_planes_that_cannot_be_are_refused(bad: dict[str, Any], words: str):
    asked = {"loss": "LS", "axis": AXIS, "penalty": GROUNDS["LS"].penalty, "push": GROUNDS["LS"].push}
    for draw in (valley, surface, lambda g: valleys([g])):
        with pytest.raises(ValueError, match=words):
            draw(Ground(**{**asked, **bad}))
    with pytest.raises(ValueError, match="one to six"):
        valleys([])


def test_the_picture_under_the_paths_is_light_and_pale_where_the_floor_is():
    found = picture(GROUNDS["margin"])
    data = base64.b64decode(found["source"].split(",")[1])
    assert len(data) < 60_000
    rgb = np.asarray(Image.open(io.BytesIO(data)).convert("RGB"), float)
    side = len(rgb)

    def at(d1: float, d2: float) -> np.ndarray:
        return rgb[round((16 - d2) / 20 * (side - 1)), round((d1 + 4) / 20 * (side - 1))]

    assert at(2, 3).min() > 240 and at(15.5, 15.5).mean() < at(2, 3).mean() - 50
    assert np.allclose(at(2, 15), at(15, 2), atol=25)
    assert (found["x"], found["y"], found["sizex"]) == (-4.0, 16.0, 20.0)


def test_balls_start_at_the_start_and_end_at_the_end_and_play_goes_through_all_frames():
    figure = both()
    first, last = figure.frames[0], figure.frames[-1]
    for k, (loss, roll) in enumerate(ROLLS.items()):
        assert (first.data[k].x[-1], first.data[k].y[-1]) == (-3.0, 1.5)
        assert (last.data[k].x[-1], last.data[k].y[-1]) == pytest.approx(tuple(roll.distances[-1]), abs=0.006)
        assert last.data[k].marker.color == LOSS_COLOURS[loss]
    shown = [figure.data[i] for i in last.traces]
    assert [t.x[-1] for t in shown] == [t.x[-1] for t in last.data]  # the still is the end
    order, step = figure.layout.updatemenus[0].buttons[0].args
    assert (
        list(order) == [f.name for f in figure.frames] and len(order) == len(AT) and not step["fromcurrent"]
    )
    slider = figure.layout.sliders[0]
    assert [s.label for s in slider.steps] == [f"{a:,}" for a in AT] and slider.active == len(AT) - 1
    assert [s.args[0][0] for s in slider.steps] == list(order)


def test_confidence_stands_in_nines_beside_the_plane():
    figure = both()
    needle = figure.data[figure.frames[-1].traces[-1]]
    expected = [-np.log10(1 - r.confidence[-1]) for r in ROLLS.values()]
    assert np.allclose(needle.y, expected, atol=1e-3)
    assert needle.x[0] == 401 and figure.layout.xaxis2.type == "log"
    assert "93.3\u00a0% under label smoothing" in sentence_of(figure)
    one = alone()
    assert len(one.frames[0].data) == len(ROLLS) and "xaxis2" not in one.layout.to_plotly_json()


def test_frames_are_thinned_and_the_animation_is_light():
    steps = np.arange(2000)
    way = Roll(np.stack([np.linspace(0, 9, 2000)] * 2, 1), np.linspace(0.4, 0.999, 2000))
    figure = paths(dict.fromkeys(ROLLS, way), steps, ground=GROUNDS["margin"], frames=500)
    assert len(figure.frames) == 60
    assert len(both().to_json()) < 300_000


@pytest.mark.parametrize(
    ("rolls", "steps", "words"),
    [
        ({}, [0, 1], "needs losses"),
        ({"CE": Roll(np.zeros((3, 2)), np.ones(3))}, [0, 1], "2 steps need"),
        ({"CE": Roll(np.zeros((1, 2)), np.ones(1))}, [0], "two steps at least"),
        ({"CE": Roll(np.zeros((2, 2)), np.ones(2))}, [1, 0], "must rise"),
        ({"CE": Roll(np.full((2, 2), np.nan), np.ones(2))}, [0, 1], "smaller steps"),
        (
            {"CE": Roll(np.zeros((2, 2)), np.ones(2)), "LS": Roll(np.ones((2, 2)), np.ones(2))},
            [0, 1],
            "same start",
        ),
    ],
)
def test_paths_that_cannot_be_are_refused(rolls: Any, steps: Any, words: str):
    with pytest.raises(ValueError, match=words):
        paths(rolls, steps)
