"""Long-tailed subsets: the counts of the literature, repeatable draws, and parts that do not divide what belongs together."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from core.data.longtail import hold_out, longtail_counts, make_longtail, subsample


def test_the_counts_of_cifar_are_those_of_the_literature() -> None:
    hundred = longtail_counts(100, 500, 100)
    assert hundred.sum() == 10847
    assert (hundred[0], hundred[-1]) == (500, 5)
    ten = longtail_counts(10, 5000, 100)
    assert ten.sum() == 12406
    assert (ten[0], ten[-1]) == (5000, 50)


@given(k=st.integers(1, 50), largest=st.integers(1, 2000), imbalance=st.floats(1, 500))
def test_counts_fall_and_end_where_they_should(k: int, largest: int, imbalance: float) -> None:
    counts = longtail_counts(k, largest, imbalance)
    assert len(counts) == k
    assert counts[0] == largest
    assert (np.diff(counts) <= 0).all()
    assert counts.min() >= 1
    if k > 1:
        assert abs(counts[-1] - max(largest / imbalance, 1)) <= 1


def test_a_draw_is_repeatable_and_has_the_wanted_counts() -> None:
    labels = np.repeat(np.arange(4), 50)
    drawn = [make_longtail(labels, 10, np.random.default_rng(s)) for s in (0, 0, 1)]
    assert drawn[0].tolist() == drawn[1].tolist()
    assert drawn[0].tolist() != drawn[2].tolist()
    assert np.bincount(labels[drawn[0]]).tolist() == longtail_counts(4, 50, 10).tolist()
    assert len(np.unique(drawn[0])) == len(drawn[0])


def test_classes_may_be_ordered_and_the_largest_count_is_what_they_allow() -> None:
    labels = np.repeat(np.arange(3), [5, 100, 20])
    chosen = make_longtail(labels, 25, np.random.default_rng(0), order=[1, 2, 0])
    assert np.bincount(labels[chosen]).tolist() == [4, 100, 20]
    with pytest.raises(ValueError, match="each of the 3 classes once"):
        make_longtail(labels, 25, np.random.default_rng(0), order=[1, 1, 0])


def test_what_is_not_there_cannot_be_drawn() -> None:
    with pytest.raises(ValueError, match="Class 1 has 2 samples, and 3 are wanted"):
        subsample(np.array([0, 0, 0, 1, 1]), [3, 3], np.random.default_rng(0))
    for wrong in ((0, 5, 2), (3, 0, 2), (3, 5, 0.5)):
        with pytest.raises(ValueError, match="long tail needs"):
            longtail_counts(*wrong)


@settings(max_examples=50, deadline=None)
@given(
    seed=st.integers(0, 1000),
    sizes=st.lists(st.integers(2, 40), min_size=1, max_size=5),
    share=st.floats(0.05, 0.9),
)
def test_every_class_is_on_both_sides_and_no_group_is(seed: int, sizes: list[int], share: float) -> None:
    rng = np.random.default_rng(seed)
    labels = np.repeat(np.arange(len(sizes)), sizes)
    groups = labels * 1000 + rng.integers(0, 7, len(labels))
    for group in (None, groups):
        stay, out = hold_out(labels, share, np.random.default_rng(seed), group)
        assert sorted([*stay, *out]) == list(range(len(labels)))
        assert set(labels[stay]) == set(range(len(sizes)))
        if group is None:
            assert set(labels[out]) == set(range(len(sizes)))
            for k, n in enumerate(sizes):
                assert abs((labels[out] == k).sum() - share * n) <= 1
        else:
            assert not set(group[stay]) & set(group[out])
        again = hold_out(labels, share, np.random.default_rng(seed), group)
        assert stay.tolist() == again[0].tolist()


def test_a_class_of_one_group_stays_whole() -> None:
    stay, out = hold_out(np.array([0, 0, 1, 1]), 0.5, np.random.default_rng(0), np.array([0, 0, 1, 2]))
    assert stay.tolist()[:2] == [0, 1]
    assert len(out) == 1


def test_shares_and_groups_that_make_no_sense_are_refused() -> None:
    with pytest.raises(ValueError, match="between 0 and 1"):
        hold_out(np.array([0, 1]), 1.0, np.random.default_rng(0))
    with pytest.raises(ValueError, match="Group 7 has samples of more than one class"):
        hold_out(np.array([0, 1]), 0.5, np.random.default_rng(0), np.array([7, 7]))
