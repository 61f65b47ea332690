"""Dice, HD95 and ASD: plain loops and MONAI's own Dice as oracles, symmetric cases, and what an empty mask costs."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from core.margin.overlap import Overlap, asd, dice, hd95, overlap, summarise

few = settings(max_examples=15, deadline=None)


def blobs(seed: int, k: int = 3, side: int = 24) -> np.ndarray:
    """Labels 0 .. K-1 in blocks of pixels."""
    g = np.random.default_rng(seed)
    return np.kron(g.integers(0, k, (side // 4, side // 4)), np.ones((4, 4), int))


def square(row: int, column: int, size: int = 8, side: int = 32) -> np.ndarray:
    labels = np.zeros((side, side), int)
    labels[row : row + size, column : column + size] = 1
    return labels


def edge(mask: np.ndarray) -> np.ndarray:
    """Pixels of a mask with one of four neighbours outside, the frame counting as outside."""
    padded = np.pad(mask, 1)
    inner = padded[:-2, 1:-1] & padded[2:, 1:-1] & padded[1:-1, :-2] & padded[1:-1, 2:]
    return np.argwhere(mask & ~inner)


def directed(a: np.ndarray, b: np.ndarray, spacing: tuple[float, float] = (1, 1)) -> np.ndarray:
    scale = np.array(spacing)
    return np.array([np.sqrt((((edge(b) - p) * scale) ** 2).sum(1)).min() for p in edge(a)])


# --- oracles -------------------------------------------------------------------------------------------------------


@few
@given(st.integers(0, 2**31))
def test_dice_is_twice_the_overlap_over_the_sizes(seed: int) -> None:
    a, b = blobs(seed), blobs(seed + 1)
    expected = [2 * ((a == c) & (b == c)).sum() / ((a == c).sum() + (b == c).sum()) for c in (1, 2)]
    np.testing.assert_allclose(dice(a, b, 3), expected, rtol=1e-6)


@few
@given(st.integers(0, 2**31), st.sampled_from([(1.0, 1.0), (0.5, 2.0)]))
def test_distances_are_a_plain_loop_over_edges(seed: int, spacing: tuple[float, float]) -> None:
    a, b = blobs(seed), blobs(seed + 1)
    for c in (1, 2):
        one, other = directed(a == c, b == c, spacing), directed(b == c, a == c, spacing)
        far = max(np.quantile(one, 0.95), np.quantile(other, 0.95))
        assert hd95(a, b, [c], spacing)[0] == pytest.approx(far, rel=1e-5)
        assert asd(a, b, [c], spacing)[0] == pytest.approx(np.r_[one, other].mean(), rel=1e-5)


def test_monai_agrees_on_dice_of_one_hot_maps() -> None:
    metrics = pytest.importorskip("monai.metrics")
    a, b = torch.from_numpy(blobs(0, 4)), torch.from_numpy(blobs(1, 4))
    hot = [torch.nn.functional.one_hot(m, 4).movedim(-1, 0)[None].float() for m in (a, b)]
    theirs = metrics.DiceMetric(include_background=False, reduction="none")(*hot)
    np.testing.assert_allclose(dice(a, b, 4), theirs[0].numpy(), rtol=1e-6)


# --- symmetric and known cases -------------------------------------------------------------------------------------


@few
@given(st.integers(0, 2**31))
def test_prediction_and_truth_may_be_swapped(seed: int) -> None:
    one, other = overlap(blobs(seed), blobs(seed + 1), 4), overlap(blobs(seed + 1), blobs(seed), 4)
    for name in ("dice", "hd95", "asd"):
        np.testing.assert_allclose(getattr(one, name), getattr(other, name), rtol=1e-6)
    np.testing.assert_array_equal(one.missed, other.invented)


def test_the_same_map_is_perfect() -> None:
    got = overlap(blobs(0), blobs(0), 3)
    assert got.classes == (1, 2)
    assert (got.dice == 1).all() and (got.hd95 == 0).all() and (got.asd == 0).all()
    assert not (got.both_empty | got.missed | got.invented).any()


def test_a_shifted_square_is_off_by_its_shift() -> None:
    a, b = square(4, 4), square(4, 7)
    assert dice(a, b, 2)[0] == pytest.approx(5 / 8)
    assert hd95(a, b, 2)[0] == 3
    assert hd95(a, b, 2, spacing=(1.0, 0.5))[0] == 1.5
    assert hd95(a, b, 2, spacing=(9.0, 1.0))[0] == 3  # rows do not matter here
    assert 0 < asd(a, b, 2)[0] < 3


def test_volumes_have_distances_between_slices() -> None:
    a, b = np.zeros((10, 16, 16), int), np.zeros((10, 16, 16), int)
    a[2:5, 4:10, 4:10], b[4:7, 4:10, 4:10] = 1, 1
    assert dice(a, b, 2)[0] == pytest.approx(1 / 3)
    assert hd95(a, b, 2)[0] == 2
    assert hd95(a, b, 2, spacing=(5.0, 1.0, 1.0))[0] > 5


# --- empties -------------------------------------------------------------------------------------------------------


@pytest.fixture
def cases() -> Overlap:
    """Class 1 in both, 2 only in the truth, 3 only in the prediction, 4 in neither."""
    a, b = square(4, 4), square(4, 5)
    b[20:24, 20:24], a[26:30, 4:8] = 2, 3
    return overlap(a, b, 5)


def test_empty_masks_cost_what_the_table_says(cases: Overlap) -> None:
    assert cases.both_empty.tolist() == [False, False, False, True]
    assert cases.missed.tolist() == [False, True, False, False]
    assert cases.invented.tolist() == [False, False, True, False]
    assert np.isnan(cases.dice).tolist() == [False, False, False, True]
    assert cases.dice[[1, 2]].tolist() == [0, 0]
    for distance in (cases.hd95, cases.asd):
        assert np.isnan(distance).tolist() == [False, True, True, False]
        assert distance[3] == 0
        assert distance[0] > 0


def test_the_single_functions_share_the_policy(cases: Overlap) -> None:
    a, b = square(4, 4), square(4, 5)
    b[20:24, 20:24], a[26:30, 4:8] = 2, 3
    np.testing.assert_array_equal(dice(a, b, 5), cases.dice)
    np.testing.assert_array_equal(hd95(a, b, 5), cases.hd95)
    np.testing.assert_array_equal(asd(a, b, 5), cases.asd)


def test_means_leave_out_and_count(cases: Overlap) -> None:
    perfect = overlap(square(4, 4), square(4, 4), 5)
    got = summarise([cases, perfect])
    assert got.images == 2
    assert got.dice[0] == pytest.approx((cases.dice[0] + 1) / 2)
    assert got.dice[[1, 2]].tolist() == [0, 0]  # the miss and the invention alone have a Dice
    assert np.isnan(got.dice[3])
    assert got.both_empty.tolist() == [0, 1, 1, 2]
    assert got.missed.tolist() == [0, 1, 0, 0]
    assert got.invented.tolist() == [0, 0, 1, 0]
    assert got.hd95.tolist() == [cases.hd95[0] / 2, 0, 0, 0]
    assert got.mean_dice == pytest.approx(got.dice[:3].mean())
    assert got.mean_hd95 == pytest.approx(got.hd95.mean())


def test_when_no_image_has_a_value_there_is_none() -> None:
    empty = np.zeros((8, 8), int)
    assert np.isnan(summarise([overlap(empty, empty, 2)]).mean_dice)
    assert np.isnan(summarise([overlap(empty, square(0, 0, 4, 8), 2)]).mean_hd95)


def test_a_full_mask_has_its_edge_at_the_frame() -> None:
    full = np.ones((12, 12), int)
    assert hd95(full, full, 2)[0] == 0
    assert hd95(full, square(0, 0, 12, 12), 2)[0] == 0
    assert hd95(full, square(3, 3, 6, 12), 2)[0] > 2


def test_ignored_pixels_belong_to_no_mask() -> None:
    a, b = square(4, 4), square(4, 4)
    a[20:30, 20:30] = 1
    ignore = np.zeros_like(a, bool)
    ignore[18:, 18:] = True
    odd = np.where(ignore, 255, b)
    assert dice(a, b, 2)[0] < 1
    got = overlap(a, odd, 2, ignore=ignore)
    assert (got.dice[0], got.hd95[0]) == (1, 0)
    assert overlap(a, odd, 2, ignore=np.ones_like(ignore)).both_empty.all()


# --- bad input -----------------------------------------------------------------------------------------------------


def test_bad_input_is_refused() -> None:
    a = square(4, 4)
    with pytest.raises(
        ValueError, match=r"Label 3 of the prediction at pixel \(0, 0\) is outside the 3 classes"
    ):
        overlap(np.full_like(a, 3), a, 3)
    with pytest.raises(ValueError, match="Label -1 of the truth"):
        overlap(a, -a, 2)
    with pytest.raises(ValueError, match="must have one shape"):
        overlap(a, a[:-1], 2)
    with pytest.raises(ValueError, match="must have one shape"):
        dice(a[0], a[0], 2)
    with pytest.raises(ValueError, match="class of the largest logit first"):
        overlap(a * 0.3, a, 2)
    with pytest.raises(ValueError, match="mask must be bool"):
        overlap(a, a, 2, ignore=a)
    with pytest.raises(ValueError, match="2 lengths above 0"):
        hd95(a, a, 2, spacing=(1.0,))
    with pytest.raises(ValueError, match="2 lengths above 0"):
        asd(a, a, 2, spacing=(1.0, 0.0))
    with pytest.raises(ValueError, match="no class to measure"):
        dice(a * 0, a * 0, 1)
    with pytest.raises(ValueError, match="the same classes"):
        summarise([overlap(a, a, 2), overlap(a, a, 3)])
    with pytest.raises(ValueError, match="at least one image"):
        summarise([])
