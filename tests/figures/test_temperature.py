"""The charts of T: they show what they are given, name what cannot work, say it in words, and look right on light and dark pages."""

from __future__ import annotations

import json
import math
from typing import Any

import numpy as np
import pytest

from core.figures.palette import COLOURS
from core.figures.temperature import SPAN, Cells, Regions, heat_map
from core.figures.temperature_fit import history
from core.figures.temperature_frame import dash_of, description
from core.figures.temperature_knife import knife_on_picture, knife_on_scores
from core.figures.temperature_lines import lines
from core.figures.temperature_needles import Needles
from core.figures.temperature_slopes import ceilings, gradient

ALPHAS = (0.05, 0.1, 0.3)
CRC = np.array([0.05, 0.1, 0.2])


def cells(temperatures: tuple[float, ...], columns: int | None = None) -> Cells:
    n = len(temperatures) if columns is None else columns
    gap = 0.01 * (1 + np.arange(n * 3)).reshape(n, 3)
    return Cells(temperatures, gap, 1 - gap, 2 * gap)


def a_map(**more: Any):
    regions = Regions(np.array([0.3, 0.2, 0.1]), np.array([0.34, 0.46, 1.18]))
    asked = {
        "fixed": cells((0.25, 0.5, 1.0)),
        "falling": cells((), 1),
        "crc": CRC,
        "span": (0.05, 16.0),
        "here": (0.5, 0.1),
    }
    return heat_map(ALPHAS, **{**asked, "regions": regions, **more})


def traces(figure, kind: str) -> list[Any]:
    return [t for t in figure.data if t.type == kind]


def everything(name: str):
    shading = np.stack([np.full((4, 5), v, np.uint8) for v in (50, 80, 100)])
    needles = Needles((8.0, 1.0, 0.1), (0.5, 0.7, 0.9), 1.0, 0.7, 0.92, 0.1)
    rgb = np.full((40, 50, 3), 90, np.uint8)
    grid = np.linspace(-15, 15, 31)
    t = (0.1, 1.0, 10.0)
    refs = {m: np.array([0.1, 0.9, 0.2]) for m in ("CRC", "plug-in", "AT", "oracle", "whole image")}
    rows = {"AT": [{"member": 0.0, "epoch": 0.0, "loss": 0.5, "gap": 0.1}], "COAT": []}
    return {
        "map": lambda: a_map(),
        "picture": lambda: knife_on_picture(rgb, shading, shading[1], needles, np.eye(4, 5) > 0),
        "scores": lambda: knife_on_scores(
            np.linspace(-5, 5, 11),
            np.full(10, 0.1),
            grid,
            np.tile(grid / 30 + 0.5, (3, 1)),
            grid / 30 + 0.5,
            -1.0,
            needles,
        ),
        "lines": lambda: lines(
            t, np.full((3, 3), 0.2), refs, ("T falls", np.array([0.1, 0.9, 0.2])), (0.05, 16), 1.0, 0.1
        ),
        "gradient": lambda: gradient(t, np.array([0.1, 0.05, 0.01]), np.array([0.2, 0.1, 0.02]), 1.0, 0.3),
        "ceilings": lambda: ceilings(
            t, np.array([1.0, 0.73, 0.52]), np.array([0.99, 0.7, 0.5]), 1.0, 0.1, unit="probability"
        ),
        "history": lambda: history(rows, 10),
    }[name]()


ALL = ["map", "picture", "scores", "lines", "gradient", "ceilings", "history"]


@pytest.mark.parametrize("name", ALL)
def test_every_chart_has_alt_text_in_sentences_and_no_background_of_its_own(name: str) -> None:
    figure = everything(name)
    said = description(figure)
    assert said.endswith(".") and len(said) > 60
    assert "nan" not in said
    assert figure.layout.paper_bgcolor == figure.layout.plot_bgcolor == "rgba(0,0,0,0)"
    assert not figure.layout.font.color  # text takes the page's colour
    json.loads(figure.to_json())


def test_the_map_colours_by_the_multiple_of_crcs_gap_and_writes_points() -> None:
    figure = a_map()
    heat = traces(figure, "heatmap")[0]
    assert np.allclose(heat.z, (cells((0.25, 0.5, 1.0)).gap / CRC).T)
    assert figure.layout.coloraxis.cmin == 1 - SPAN and figure.layout.coloraxis.cmax == 1 + SPAN
    texts = [t for t in traces(figure, "scatter") if t.mode == "text"]
    written = {(float(x), float(y)): text for t in texts for x, y, text in zip(t.x, t.y, t.text, strict=True)}
    assert written[(0.5, 1.0)] == "5.0"  # gap 0.05 at the second column and row
    assert "marked area" in heat.hovertemplate  # a gap never without area
    assert "5.0 points for 10" in description(figure)
    assert heat.x[0] < 0.25 < heat.x[1] < 0.5 < heat.x[2] < 1 < heat.x[3]


def test_regions_are_hatched_named_and_end_where_they_should() -> None:
    figure = a_map(span=(0.05, 2.0))
    areas = [t for t in traces(figure, "scatter") if t.fill == "toself"]
    assert {a.text for a in areas} == {"gradient gone", "out of reach"}
    assert all(a.fillpattern.shape in ("/", "\\") for a in areas)
    silent = next(a for a in areas if a.text == "gradient gone")
    reach = next(a for a in areas if a.text == "out of reach")
    at = {
        float(y): x
        for x, y in zip(silent.x[len(silent.x) // 2 :], silent.y[len(silent.y) // 2 :], strict=True)
    }
    assert at[0.0] == pytest.approx(0.3) and at[2.0] == pytest.approx(0.1)
    low = {
        float(y): x for x, y in zip(reach.x[: len(reach.x) // 2], reach.y[: len(reach.y) // 2], strict=True)
    }
    assert low[1.0] == pytest.approx(0.46)
    assert {a.text for a in figure.layout.annotations} == {"gradient<br>gone", "out of<br>reach"}
    none = a_map(regions=Regions(np.full(3, 0.01), np.full(3, np.inf)))
    assert not [t for t in traces(none, "scatter") if t.fill == "toself"]


def test_a_run_is_drawn_in_the_colours_of_the_map_at_its_own_temperature_or_in_a_column_of_its_own() -> None:
    run = cells((2.0,))
    dots = next(t for t in a_map(run=run).data if t.type == "scatter" and t.marker.symbol == "diamond")
    assert list(dots.x) == [2.0] * 3
    assert np.allclose(dots.marker.color, run.gap[0] / CRC)
    assert dots.marker.coloraxis == "coloraxis"
    falling = a_map(run=run, run_falls=True)
    assert list(falling.layout.xaxis2.ticktext) == ["T falls", "this run"]


def test_a_map_without_recorded_temperatures_still_has_the_falling_column_and_the_point() -> None:
    figure = a_map(fixed=cells(()))
    assert len(traces(figure, "heatmap")) == 1
    rings = [t for t in traces(figure, "scatter") if t.marker.symbol == "circle-open"]
    assert len(rings) == 2 and rings[0].x == (0.5,)


def test_columns_of_another_height_are_refused() -> None:
    with pytest.raises(ValueError, match="3 rows"):
        a_map(fixed=Cells((1.0,), np.zeros((1, 2)), np.zeros((1, 2)), np.zeros((1, 2))))


def test_lines_refuse_a_gap_without_oracle_and_whole_image() -> None:
    with pytest.raises(ValueError, match="oracle and whole image"):
        lines((1.0,), np.zeros((3, 1)), {"CRC": np.zeros(3)}, ("T falls", np.zeros(3)), (0.1, 2), 1.0, 0.1)


def test_reference_lines_have_their_methods_colours_and_dashes() -> None:
    figure = everything("lines")
    for method in ("CRC", "plug-in", "AT"):
        line = next(t for t in figure.data if t.name == method).line
        assert (line.color, line.dash) == (COLOURS[method], dash_of(method))
    assert len({dash_of(m) for m in ("CRC", "plug-in", "AT", "COAT")}) == 4  # not by colour alone
    assert "whole image misses by 10.0 points" in description(figure)


def test_the_play_button_goes_from_fog_to_knife_and_back_to_the_still() -> None:
    for name in ("picture", "scores"):
        figure = everything(name)
        assert [f.layout.title.text for f in figure.frames] == ["T = 8", "T = 1", "T = 0.1", "T = 1"]
        order, step = figure.layout.updatemenus[0].buttons[0].args
        assert list(order) == [f.name for f in figure.frames] and order[-1] == "still"
        assert step["frame"]["redraw"] is True
        needles = [f.data[1].x[0] for f in figure.frames]
        assert needles == pytest.approx([50, 70, 90, 70])
        assert all(tuple(f.traces) == (0, 1) for f in figure.frames)
    assert (np.array(everything("picture").frames[0].data[0].z) == 50).all()


def test_frames_that_do_not_belong_together_are_refused() -> None:
    needles = Needles((8.0, 1.0), (0.5, 0.7), 1.0, 0.7, 0.9, 0.1)
    with pytest.raises(ValueError, match="belong together"):
        knife_on_picture(
            np.zeros((4, 4, 3), np.uint8), np.zeros((3, 4, 4), np.uint8), np.zeros((4, 4), np.uint8), needles
        )


def test_without_a_mask_the_needles_say_that_they_are_expectations() -> None:
    needles = Needles((8.0, 1.0, 0.1), (0.5, 0.7, 0.9), 1.0, 0.7, 0.92, 0.1, known=False)
    shading = np.zeros((3, 4, 5), np.uint8)
    figure = knife_on_picture(np.zeros((4, 5, 3), np.uint8), shading, shading[0], needles)
    assert "expected" in figure.data[1].text[0]
    assert "model itself expects" in description(figure)
    assert not traces(figure, "contour")


def test_the_ceiling_names_the_highest_temperature() -> None:
    figure = everything("ceilings")
    assert f"T = {1 / math.log(9):.2f}" in description(figure)
    free = ceilings((0.1, 1.0), np.ones(2), np.ones(2), 1.0, 0.1, unit="logit")
    assert "no T has a ceiling" in description(free)


def test_the_gradient_chart_compares_with_the_bound() -> None:
    figure = everything("gradient")
    bound = next(t for t in figure.data if "1/(4T)" in t.name)
    assert np.allclose(bound.y, [2.5, 0.25, 0.025])
    assert "40\u00a0% of the size" in description(figure)


def test_the_history_draws_one_line_a_member_and_starts_empty() -> None:
    rows = [
        {"member": float(m), "epoch": float(e), "loss": 1.0 / (1 + e), "gap": 0.1}
        for m in range(2)
        for e in range(3)
    ]
    figure = history({"AT": rows, "COAT": rows[:3]}, 5)
    assert len(figure.data) == 2 * (2 + 1)
    widths = {(t.name, t.line.width) for t in figure.data}
    assert ("COAT", 3.5) in widths and ("AT", 1.5) in widths  # the latest line is thick
    assert "Nothing yet" in description(history({"AT": (), "COAT": ()}, 5))
