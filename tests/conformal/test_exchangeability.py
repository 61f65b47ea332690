"""The check for "drawn alike": valid where the two sets are alike, awake where they are not, honest where it cannot tell."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from core.conformal.exchangeability import STATISTICS, compare, holm, least_p, map_statistics


def statistics(n: int, rng: np.random.Generator, shift: float = 0.0) -> np.ndarray:
    """Correlated statistics of n images; `shift` moves one of them."""
    common = rng.normal(size=(n, 1))
    out = 0.7 * common + rng.normal(size=(n, len(STATISTICS)))
    out[:, 2] += shift
    return out


def test_where_both_sets_are_alike_it_raises_a_false_alarm_no_more_often_than_its_level() -> None:
    rng = np.random.default_rng(1)
    alarms = np.mean([compare(statistics(30, rng), statistics(20, rng), 0.1).differs for _ in range(250)])
    assert alarms <= 0.1 + 3 * np.sqrt(0.1 * 0.9 / 250)


def test_its_p_values_are_about_uniform_where_one_statistic_is_compared() -> None:
    rng = np.random.default_rng(2)
    p = [
        compare(rng.normal(size=(60, 1)), rng.normal(size=(50, 1)), names=("one",)).p_value
        for _ in range(250)
    ]
    for level in (0.05, 0.2, 0.5):
        assert np.mean(np.array(p) <= level) <= level + 3 * np.sqrt(level * (1 - level) / 250)
        assert np.mean(np.array(p) <= level) >= 0.5 * level


def test_a_shift_is_found_and_named() -> None:
    rng = np.random.default_rng(3)
    found = compare(statistics(60, rng), statistics(60, rng, shift=1.5))
    assert found.differs
    assert found.statistic == "uncertainty"
    assert "uncertainty differs" in found.sentence and "the promise assumes" in found.sentence


def test_no_difference_is_no_proof_and_a_single_image_tells_nothing() -> None:
    rng = np.random.default_rng(4)
    assert "no proof" in compare(statistics(60, rng), statistics(40, rng)).sentence
    alone = compare(statistics(60, rng), statistics(1, rng, shift=50.0))
    assert not alone.differs
    assert "too few to tell" in alone.sentence


@given(st.lists(st.floats(0, 1), min_size=1, max_size=12))
def test_holm_never_lowers_a_p_value_keeps_the_order_and_lies_under_bonferroni(raw: list[float]) -> None:
    p = np.array(raw)
    corrected = holm(p)
    assert (corrected >= p).all() and (corrected <= np.minimum(1, len(p) * p) + 1e-12).all()
    order = np.argsort(p, kind="stable")
    assert (np.diff(corrected[order]) >= 0).all()


@settings(max_examples=20, deadline=None)
@given(st.integers(0, 10_000), st.integers(2, 30), st.integers(2, 30))
def test_neither_the_order_of_the_images_nor_a_rising_scale_changes_the_answer(
    seed: int, n: int, m: int
) -> None:
    rng = np.random.default_rng(seed)
    a, b = statistics(n, rng), statistics(m, rng)
    plain = compare(a, b).p_value
    assert compare(rng.permutation(a), rng.permutation(b)).p_value == pytest.approx(plain)
    assert compare(np.exp(a), np.exp(b)).p_value == pytest.approx(plain)
    assert compare(b, a).p_value == pytest.approx(plain)


def test_the_smallest_p_value_is_the_one_that_complete_separation_gives() -> None:
    a, b = np.arange(5.0)[:, None], 10 + np.arange(4.0)[:, None]
    assert compare(a, b, names=("one",)).p_value == pytest.approx(least_p(5, 4))


def test_statistics_of_a_map_by_hand() -> None:
    scores = torch.full((10, 10), -15.0)
    scores[:2, :5] = 0.0
    found = dict(zip(STATISTICS, map_statistics(scores), strict=True))
    assert found["expected area"] == pytest.approx(0.05, abs=1e-6)
    assert found["highest logit"] == 0
    assert found["area above probability 0.5"] == found["area above logit −3"] == 0.1
    assert found["uncertainty"] == pytest.approx(0.1 * np.log(2), abs=1e-5)


def test_sets_that_cannot_be_compared_are_refused() -> None:
    good = np.zeros((3, len(STATISTICS)))
    with pytest.raises(ValueError, match="at least one image"):
        compare(good, good[:0])
    with pytest.raises(ValueError, match="finite"):
        compare(good, good * np.nan)
    with pytest.raises(ValueError, match="statistics"):
        compare(good, good[:, :2])
