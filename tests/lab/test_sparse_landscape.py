"""The adaptation objective over λ: minimum, barrier and runaway, what K does to them, and what is said of it."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from core.lab.sparse_here_words import landscape_words
from core.lab.sparse_images import Pictures, upload
from core.lab.sparse_landscape import Landscape, landscape, shape_of
from core.settings.tacsc import AdaptSettings
from core.tacsc.layer import sparse_layers
from tests.lab import made_sparse as made

QUICK = AdaptSettings(steps=3)


@pytest.fixture(scope="module")
def net() -> torch.nn.Module:
    return made.network()


@pytest.fixture(scope="module")
def crops() -> Pictures:
    return upload(made.photo(), 16)


def test_shapes_of_curves() -> None:
    x = np.linspace(0, 1, 50)
    valley = (x - 0.3) ** 2 * np.where(x < 0.7, 1.0, 0.0) + np.where(x >= 0.7, 0.16 - 2 * (x - 0.7), 0.0)
    low, top, gone = shape_of(valley, 5)
    assert low is not None and top is not None and gone is not None
    assert (
        x[low] == pytest.approx(0.3, abs=0.02) and x[top] == pytest.approx(0.7, abs=0.03) and x[gone] > 0.77
    )
    assert shape_of(valley, low)[0] == low and shape_of(valley, 20)[0] == low
    assert shape_of(-x, 10) == (None, None, 10)
    assert shape_of(x, 10) == (None, None, None)
    assert shape_of(np.abs(x - 0.5), 3)[2] is None


@settings(max_examples=50, deadline=None)
@given(st.lists(st.floats(-5, 5, allow_subnormal=False), min_size=4, max_size=40), st.data())
def test_a_minimum_is_lower_than_its_barrier(values: list[float], data: st.DataObject) -> None:
    curve = np.array(values)
    begin = data.draw(st.integers(1, len(curve) - 2))
    low, top, gone = shape_of(curve, begin)
    if low is not None:
        assert top is not None and curve[low] <= curve[begin] and curve[top] >= curve[low] and top >= low
        assert gone is None or (gone > top and curve[gone] < curve[low])


def test_the_landscape_holds_the_runaway_and_what_k_does(net: torch.nn.Module, crops: Pictures) -> None:
    heard: list[int] = []
    seen = landscape(
        net, crops, (1, 2, 8), settings=QUICK, on_step=lambda done, total, facts: heard.append(done)
    )
    assert (
        heard == [1, 2, 3]
        and [c.iterations for c in seen.curves] == [1, 2, 8]
        and seen.trained_iterations == 2
    )
    assert seen.low == pytest.approx(seen.trained / 10) and seen.high == pytest.approx(10 * seen.trained)
    for c in seen.curves:
        assert c.error[-1] == pytest.approx(1, abs=1e-5) and c.sparsity[-1] == 1
        assert c.objective == pytest.approx(c.error / (seen.thresholds + QUICK.offset), rel=1e-4)
    assert seen.curves[2].error[0] < seen.curves[0].error[0]
    layer = next(iter(sparse_layers(net).values()))
    assert layer.settings.iterations == 2 and layer.threshold.item() == pytest.approx(seen.trained)
    words = landscape_words(seen)
    assert len(words) == 4 and "λ = ∞ is its global minimum" in words[0] and "K = 2 (as trained)" in words[2]
    deep = landscape(made.network("tacsc_all"), crops.first(4), (2,), "fog", 3, layer=4)
    assert deep.layer == "block 2, second" and (deep.corruption, deep.severity) == ("fog", 3)
    with pytest.raises(ValueError, match="has 1 sparse layers"):
        landscape(net, crops, layer=1)


def test_words_of_curves(net: torch.nn.Module, crops: Pictures) -> None:
    one = landscape(net, crops.first(4), (2,))
    grid = np.geomspace(0.01, 10, 40)

    def said(objective: np.ndarray, slope: int) -> str:
        begin = int(np.abs(grid - 0.1).argmin())
        curve = replace(one.curves[0], objective=objective, slope=slope)
        curve = replace(
            curve, **dict(zip(("minimum", "barrier", "runaway"), shape_of(objective, begin), strict=True))
        )
        view: Landscape = replace(one, thresholds=grid, trained=0.1, low=0.01, high=1.0, curves=(curve,))
        return landscape_words(view)[1]

    assert "rolls up without end" in said(1 / grid, -1)
    assert "rolls down towards 0" in said(grid.copy(), 1)
    bump = np.abs(np.log(grid / 0.4)) + 1
    bump = np.where(grid > 3, 3 - 2 * (grid - 3), bump)
    words = said(bump, -1)
    assert "λ wants up from 0.1 to a local minimum at 0.4" in words and "would run away" in words
    assert "the guards do not let it get there" in said(np.abs(np.log(grid / 2)), -1)
