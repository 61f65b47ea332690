"""What the losses put on logit distances: the same numbers as the losses, slopes by finite differences, and the recorded fixed points."""

from __future__ import annotations

import math

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from core.margin.losses import LOSSES, cross_entropy, loss_of, smoothing_kernel
from core.margin.penalty import FixedPoint, fixed_point, fixed_point_of, landscape, path, profile
from core.settings import MarginSettings

few = settings(max_examples=15, deadline=None)
EVERY = [
    *(MarginSettings(loss=name, margin=3.0) for name in LOSSES),
    MarginSettings(loss="margin", margin=3.0, hinge="squared"),
    MarginSettings(loss="ECP", entropy_over="sum"),
]
every_loss = pytest.mark.parametrize(
    "which", EVERY, ids=[f"{s.loss}-{s.hinge}-{s.entropy_over}" for s in EVERY]
)
GRID = np.array([-2.3, 0.4, 2.1, 5.7])
OTHER = np.array([-1.2, 1.7, 4.4, 7.9, 9.3])


def one_pixel(which: MarginSettings, logits: list[float], penalty_only: bool = False) -> float:
    x = torch.tensor(logits, dtype=torch.float64).reshape(1, -1, 1, 1)
    y = torch.zeros(1, 1, 1, dtype=torch.long)
    value = loss_of(which)(x, y)
    return (value - cross_entropy(x, y) if penalty_only else value).item()


# --- landscapes and profiles ---------------------------------------------------------------------------------------


@every_loss
@pytest.mark.parametrize("penalty_only", [True, False])
def test_a_landscape_holds_the_loss_of_each_pixel_alone(which: MarginSettings, penalty_only: bool) -> None:
    got = landscape(which, GRID, OTHER, penalty_only)
    assert got.values.shape == (4, 5)
    assert got.gradient.shape == (2, 4, 5)
    for i, a in enumerate(GRID):
        for j, b in enumerate(OTHER):
            assert got.values[i, j] == pytest.approx(one_pixel(which, [0, -a, -b], penalty_only), abs=1e-14)


@every_loss
@pytest.mark.parametrize("border", [False, True])
@pytest.mark.parametrize("penalty_only", [True, False])
def test_slopes_are_finite_differences(which: MarginSettings, border: bool, penalty_only: bool) -> None:
    step = 1e-5
    got = landscape(which, GRID, OTHER, penalty_only, border)
    along = [
        landscape(which, GRID + s, OTHER + t, penalty_only, border).values
        for s, t in ((step, 0), (-step, 0), (0, step), (0, -step))
    ]
    np.testing.assert_allclose(got.gradient[0], (along[0] - along[1]) / (2 * step), atol=1e-8)
    np.testing.assert_allclose(got.gradient[1], (along[2] - along[3]) / (2 * step), atol=1e-8)


def test_cross_entropy_adds_nothing_to_itself() -> None:
    got = landscape(MarginSettings(loss="CE"), GRID, OTHER)
    assert (got.values == 0).all() and (got.gradient == 0).all()
    whole = landscape(MarginSettings(loss="CE"), GRID, OTHER, penalty_only=False)
    np.testing.assert_allclose(whole.values, np.log(1 + np.exp(-GRID)[:, None] + np.exp(-OTHER)), rtol=1e-12)


@few
@given(st.floats(0, 12))
def test_the_valley_is_flat_up_to_the_margin_and_its_sides_have_a_third_of_the_weight(margin: float) -> None:
    d = np.linspace(0, 14, 8) + 0.003
    got = landscape(MarginSettings(margin=margin, weight=0.3), d, d)
    np.testing.assert_allclose(
        got.values, 0.1 * (np.maximum(d - margin, 0)[:, None] + np.maximum(d - margin, 0)), atol=1e-12
    )
    inside = d < margin
    assert (got.values[np.ix_(inside, inside)] == 0).all()
    assert (got.gradient[:, inside][:, :, inside] == 0).all()
    np.testing.assert_allclose(
        got.gradient[0], np.broadcast_to(0.1 * (d > margin)[:, None], (8, 8)), atol=1e-12
    )


def test_every_other_penalty_pulls_a_right_pixel_towards_equal_logits() -> None:
    d = np.linspace(0.5, 12, 9)
    for which in EVERY:
        if which.loss in ("LS", "focal", "ECP"):
            assert (profile(which, d).slopes > 0).all(), which.loss
    assert (profile(MarginSettings(margin=12.5), d).slopes == 0).all()


@every_loss
@pytest.mark.parametrize("classes", [2, 3, 5])
def test_a_profile_is_a_line_through_pixels(which: MarginSettings, classes: int) -> None:
    together, alone = profile(which, GRID, classes), profile(which, GRID, classes, rest=1.5)
    for i, d in enumerate(GRID):
        assert together.values[i] == pytest.approx(
            one_pixel(which, [0] + [-d] * (classes - 1), True), abs=1e-14
        )
        assert alone.values[i] == pytest.approx(
            one_pixel(which, [0, -d] + [-1.5] * (classes - 2), True), abs=1e-14
        )
    step = 1e-5
    for rest, got in ((None, together), (1.5, alone)):
        up, down = (profile(which, GRID + s, classes, rest).values for s in (step, -step))
        np.testing.assert_allclose(got.slopes, (up - down) / (2 * step), atol=1e-8)


def test_a_profile_through_a_landscape() -> None:
    which = MarginSettings(loss="LS")
    surface, line = landscape(which, GRID, OTHER), profile(which, GRID, rest=OTHER[2])
    np.testing.assert_allclose(line.values, surface.values[:, 2], atol=1e-14)
    np.testing.assert_allclose(line.slopes, surface.gradient[0, :, 2], atol=1e-14)


def test_label_smoothing_is_linear_in_every_distance() -> None:
    got = landscape(MarginSettings(loss="LS", smoothing=0.3), GRID, OTHER)
    np.testing.assert_allclose(got.values, 0.1 * (GRID[:, None] + OTHER), atol=1e-12)
    np.testing.assert_allclose(got.gradient, 0.1, atol=1e-12)


def test_spatial_smoothing_is_cross_entropy_inside_and_label_smoothing_towards_the_neighbour_at_a_border() -> (
    None
):
    which = MarginSettings(loss="SVLS")
    np.testing.assert_allclose(landscape(which, GRID, OTHER).values, 0, atol=1e-12)
    kernel = smoothing_kernel(1.0)
    share = kernel[:, 2].sum().item()
    assert share == pytest.approx(0.0778 + 2 * 0.0472, abs=2e-4)
    at = landscape(which, GRID, OTHER, border=True)
    np.testing.assert_allclose(at.values, np.broadcast_to(share * GRID[:, None], at.values.shape), atol=1e-12)
    whole = landscape(which, GRID, OTHER, penalty_only=False, border=True)
    ce = landscape(which, GRID, OTHER, penalty_only=False)
    np.testing.assert_allclose(whole.values - ce.values, at.values, atol=1e-12)


@pytest.mark.parametrize("name", [n for n in LOSSES if n != "SVLS"])
def test_a_border_changes_no_other_loss(name: str) -> None:
    which = MarginSettings(loss=name, margin=3.0)
    np.testing.assert_array_equal(
        landscape(which, GRID, GRID, border=True).values, landscape(which, GRID, GRID).values
    )


def test_a_dice_term_is_left_out() -> None:
    one, other = MarginSettings(loss="LS", dice=1.0), MarginSettings(loss="LS")
    np.testing.assert_array_equal(
        landscape(one, GRID, OTHER, False).values, landscape(other, GRID, OTHER, False).values
    )
    np.testing.assert_array_equal(
        path(one, [0, 1, 2], steps=3).logits, path(other, [0, 1, 2], steps=3).logits
    )


# --- paths ---------------------------------------------------------------------------------------------------------


@every_loss
def test_a_path_is_descent_on_the_whole_loss(which: MarginSettings) -> None:
    got = path(which, [0.3, 2.4, -1.0], truth=0, steps=3, rate=0.5)  # no distance at the kink
    x = np.array([0.3, 2.4, -1.0])
    for row in got.logits:
        np.testing.assert_allclose(row, x, atol=1e-7)
        p = np.exp(x) / np.exp(x).sum()
        assert got.confidence[(got.logits == row).all(1)][0] == pytest.approx(p[0], abs=1e-7)
        h = 1e-6
        slope = [
            (one_pixel(which, list(x + h * e)) - one_pixel(which, list(x - h * e))) / (2 * h)
            for e in np.eye(3)
        ]
        x = x - 0.5 * np.array(slope)


@every_loss
@pytest.mark.parametrize("border", [False, True])
def test_paths_keep_the_mean_of_the_logits_and_repeat_themselves(which: MarginSettings, border: bool) -> None:
    got = path(which, [0.0, 2.0, -1.0], truth=2, steps=30, rate=1.0, border=border)
    assert got.logits.shape == (31, 3)
    assert got.confidence.shape == (31,)
    np.testing.assert_allclose(got.logits.mean(1), 1 / 3, atol=1e-12)
    np.testing.assert_array_equal(got.logits, path(which, [0.0, 2.0, -1.0], 2, 30, 1.0, border).logits)
    np.testing.assert_array_equal(got.distances[:, 2], 0)
    np.testing.assert_allclose(got.distances[:, 0], got.logits[:, 2] - got.logits[:, 0])
    assert got.confidence[-1] > got.confidence[0]


@pytest.mark.parametrize("border", [False, True])
def test_a_step_follows_the_slopes_of_the_landscape(border: bool) -> None:
    which = MarginSettings(loss="SVLS")
    slopes = landscape(which, [1.2], [-0.7], penalty_only=False, border=border).gradient.ravel()
    step = np.diff(path(which, [0.0, -1.2, 0.7], steps=1, rate=0.5, border=border).logits, axis=0)[0]
    np.testing.assert_allclose(step[1:], 0.5 * slopes, atol=1e-12)


def test_a_path_with_no_step_is_its_start() -> None:
    got = path(MarginSettings(), [0, 0, 0], steps=0)
    assert got.logits.tolist() == [[0, 0, 0]]
    assert got.confidence.tolist() == pytest.approx([1 / 3])


def test_paths_end_at_the_fixed_point() -> None:
    for which in (MarginSettings(loss="LS"), MarginSettings(margin=1.0), MarginSettings(margin=4.0)):
        end = fixed_point_of(which, 3)
        got = path(which, [0.0, 1.0, -1.0], steps=500, rate=2.0)
        assert end is not None
        assert got.distances[-1, 1:].tolist() == pytest.approx([end.distance] * 2, abs=0.1)
        assert got.confidence[-1] == pytest.approx(end.confidence, abs=0.01)
    far = path(MarginSettings(loss="CE"), [0.0, 1.0, -1.0], steps=500, rate=2.0)
    assert far.distances[-1, 1] > 5
    assert (np.diff(far.confidence) > 0).all()


# --- fixed points --------------------------------------------------------------------------------------------------


def test_recorded_fixed_points() -> None:
    below = fixed_point(0.0, 0.1, 4)
    assert below is not None
    assert (below.distance, below.confidence) == (pytest.approx(3.61, abs=2e-3), pytest.approx(0.925))
    assert fixed_point(2.0, 0.1, 4) == fixed_point(3.6, 0.1, 4) == below
    assert fixed_point(5.0, 0.1, 4) == FixedPoint(5.0, pytest.approx(0.980, abs=5e-4))
    assert fixed_point(10.0, 0.1, 4) == FixedPoint(10.0, pytest.approx(0.99986, abs=5e-6))
    assert fixed_point(0.0, 0.1, 2) == FixedPoint(pytest.approx(math.log(19)), pytest.approx(0.95))


@pytest.mark.parametrize("classes", [2, 3, 4, 10])
@pytest.mark.parametrize(
    "which",
    [
        MarginSettings(loss="LS"),
        MarginSettings(loss="LS", smoothing=0.5),
        MarginSettings(margin=0.0),
        MarginSettings(margin=6.0),
        MarginSettings(margin=2.0, weight=1.0),
        MarginSettings(margin=2.0, hinge="squared"),
        MarginSettings(margin=6.0, hinge="squared", weight=0.9),
        MarginSettings(loss="ECP"),
        MarginSettings(loss="ECP", entropy_over="sum", entropy_weight=0.3),
    ],
    ids=lambda s: f"{s.loss}-{s.margin}-{s.hinge}-{s.weight}-{s.smoothing}-{s.entropy_over}",
)
def test_the_loss_falls_up_to_its_fixed_point_and_rises_behind(which: MarginSettings, classes: int) -> None:
    end = fixed_point_of(which, classes)
    assert end is not None
    assert end.confidence == pytest.approx(1 / (1 + (classes - 1) * math.exp(-end.distance)))
    near = np.array([-0.02, -0.01, 0.01, 0.02]) + end.distance
    if end.distance < 30:  # beyond, slopes are smaller than rounding
        slopes = profile(which, near, classes, penalty_only=False).slopes
        assert (slopes[:2] < 0).all()
        assert (slopes[2:] > 0).all()


def test_the_entropy_penalty_rests_where_distance_times_confidence_is_one_over_its_weight() -> None:
    for classes, over, weight in ((4, "sum", 0.1), (4, "mean", 0.1), (3, "mean", 1.0)):
        end = fixed_point_of(MarginSettings(loss="ECP", entropy_over=over, entropy_weight=weight), classes)
        effective = weight / (classes if over == "mean" else 1)
        assert end is not None
        assert end.distance * end.confidence == pytest.approx(1 / effective, rel=1e-12)


@pytest.mark.parametrize(
    "which",
    [
        *(MarginSettings(loss=name) for name in ("CE", "SVLS", "focal")),
        *(MarginSettings(weight=0.0), MarginSettings(weight=0.0, hinge="squared")),
        *(MarginSettings(loss="LS", smoothing=0.0), MarginSettings(loss="ECP", entropy_weight=0.0)),
    ],
    ids=lambda s: f"{s.loss}-{s.hinge}",
)
def test_losses_without_a_fixed_point_fall_for_ever(which: MarginSettings) -> None:
    assert fixed_point_of(which, 3) is None
    assert (profile(which, np.linspace(0, 9, 10), penalty_only=False).slopes < 0).all()


# --- bad input -----------------------------------------------------------------------------------------------------


def test_bad_input_is_refused() -> None:
    good = MarginSettings()
    with pytest.raises(ValueError, match="at least two classes"):
        fixed_point(1.0, 0.1, 1)
    with pytest.raises(ValueError, match="at least two classes"):
        profile(good, GRID, classes=1)
    with pytest.raises(ValueError, match="must be one of 0 to 2"):
        path(good, [0, 1, 2], truth=3)
    with pytest.raises(ValueError, match="finite"):
        path(good, [0, 1, float("nan")])
    with pytest.raises(ValueError, match="finite"):
        landscape(good, [0, float("inf")], GRID)
    with pytest.raises(ValueError, match="cannot be above"):
        landscape(MarginSettings(margin=99.0), GRID, GRID)
