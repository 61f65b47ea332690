"""The spectrum of a confusion matrix: numpy as oracle, a matrix whose flow is known, the bound beside the truth, and bad matrices."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from core.car import spectrum as room
from core.car.soft_confusion import soft_confusion
from core.car.spectrum import Spectrum, error_rates


def counts(k: int = 6, seed: int = 0) -> np.ndarray:
    rng = np.random.default_rng(seed)
    return rng.integers(0, 20, (k, k)) + np.diag(rng.integers(50, 90, k))


def test_values_and_vectors_are_those_of_svd() -> None:
    matrix, w = counts(), np.linspace(0.5, 2, 6)
    s = Spectrum.of(matrix, w)
    m = error_rates(matrix) * w
    np.testing.assert_allclose(s.values, np.linalg.svd(m, compute_uv=False))
    np.testing.assert_allclose(m @ s.v, s.sigma * s.u)
    np.testing.assert_allclose(m.T @ s.u, s.sigma * s.v)
    assert s.u.min() >= 0
    assert s.v.min() >= 0
    assert s.classes == 6
    assert s.share == pytest.approx(s.sigma**2 / (m**2).sum())
    assert s.u @ m @ s.v == pytest.approx(s.sigma)


@settings(max_examples=60, deadline=None)
@given(seed=st.integers(0, 10**6), k=st.integers(1, 7), empty=st.floats(0, 1))
def test_the_pair_is_non_negative_and_on_top_even_where_blocks_fall_apart(
    seed: int, k: int, empty: float
) -> None:
    rng = np.random.default_rng(seed)
    matrix = rng.integers(0, 9, (k, k)) * (rng.random((k, k)) >= empty)
    s = Spectrum.of(matrix)
    assert s.u.min() >= 0
    assert s.v.min() >= 0
    assert s.u @ (s.rates * s.weights) @ s.v == pytest.approx(s.sigma, abs=1e-9)
    bound = s.bound()
    there = ~np.isnan(bound.error)
    assert (bound.error[there] <= bound.per_class[there] + 1e-9).all()
    assert sum(f.weighted * s.u[f.predicted] * s.v[f.true] for f in s.flows(k * k)) == pytest.approx(
        s.sigma, abs=1e-9
    )


def test_it_says_which_class_flows_into_which() -> None:
    matrix = np.diag([95.0, 94, 96, 40])
    matrix[0, 3] = 60  # class 3 is called 0
    matrix[1, 0], matrix[2, 1], matrix[0, 2] = 5, 6, 4
    s = Spectrum.of(matrix)
    first = s.flows(1)[0]
    assert (first.true, first.predicted) == (3, 0)
    assert first.rate == pytest.approx(0.6)
    assert first.in_pair == pytest.approx(0.6, abs=0.01)
    assert s.v.argmax() == 3
    assert s.u.argmax() == 0
    assert s.pair.shape == (4, 4)
    assert s.pair[0, 3] == pytest.approx(first.in_pair)
    assert all(f.rate > 0 for f in s.flows(16))


def test_weights_turn_the_top_pair_to_the_class_that_they_favour() -> None:
    matrix = np.array([[70, 0, 0], [30, 80, 25], [0, 20, 75]])
    assert Spectrum.of(matrix).v.argmax() == 0
    assert Spectrum.of(matrix, np.array([0.2, 0.2, 4.0])).v.argmax() == 2


def test_the_bound_is_given_as_it_is_even_where_it_says_nothing() -> None:
    s = Spectrum.of(counts())
    b = s.bound()
    np.testing.assert_allclose(b.per_class, np.sqrt(6) * s.sigma)
    assert b.worst_error == pytest.approx((1 - s.recall).max())
    assert b.worst_error <= b.worst_bound
    assert b.vacuous == (b.worst_bound >= 1)
    tight = Spectrum.of(np.diag([99, 99, 99]) + np.roll(np.eye(3), 1, 0)).bound()
    assert not tight.vacuous
    assert tight.worst_error == pytest.approx(0.01)
    silent = Spectrum.of(np.zeros((2, 2))).bound()
    assert silent.vacuous
    assert np.isnan(silent.worst_error)
    assert silent.worst == -1
    assert np.isinf(Spectrum.of(counts(), np.array([0.0, 1, 1, 1, 1, 1])).bound().worst_bound)


def test_with_weights_each_class_has_its_own_bound_and_the_worst_one_s_is_named() -> None:
    weights = np.array([0.5, 0.8, 1.0, 1.1, 1.4, 2.0])
    b = (s := Spectrum.of(counts(), weights)).bound()
    assert b.worst == int(np.nanargmax(1 - s.recall))
    assert b.of_worst == pytest.approx(np.sqrt(6) * s.sigma / weights[b.worst])
    assert b.worst_bound == pytest.approx(np.sqrt(6) * s.sigma / 0.5)
    assert b.worst_error <= b.of_worst and b.vacuous == (b.of_worst >= 1)


def test_no_errors_have_no_direction() -> None:
    s = Spectrum.of(np.diag([3, 4]))
    assert s.sigma == 0
    assert s.flows() == ()
    assert s.u.tolist() == [0, 0]
    assert np.isnan(s.share)
    assert s.bound().worst_bound == 0
    assert Spectrum.of(np.array([[5]])).sigma == 0


def test_a_class_without_samples_has_an_empty_column() -> None:
    matrix = counts()
    matrix[:, 2] = 0
    s = Spectrum.of(matrix)
    assert np.isnan(s.recall[2])
    assert s.v[2] == pytest.approx(0)
    assert (s.rates[:, 2] == 0).all()


def test_soft_confusion_is_taken_as_it_is() -> None:
    rng = torch.Generator().manual_seed(0)
    soft = soft_confusion(torch.randn(40, 4, generator=rng), torch.randint(4, (40,), generator=rng))
    s = Spectrum.of_rates(soft, torch.ones(4))
    assert s.sigma == pytest.approx(float(torch.linalg.matrix_norm(soft.double(), 2)))
    np.testing.assert_allclose(s.recall, 1 - soft.double().sum(0).numpy())


def test_many_classes_give_the_top_pair_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    matrix, w = counts(30), np.linspace(0.5, 2, 30)
    whole = Spectrum.of(matrix, w)
    monkeypatch.setattr(room, "FULL", 10)
    top = Spectrum.of(matrix, w)
    assert len(top.values) == 1
    assert top.sigma == pytest.approx(whole.sigma, rel=1e-9)
    np.testing.assert_allclose(top.v, whole.v, atol=1e-6)
    np.testing.assert_allclose(top.u, whole.u, atol=1e-6)


def test_tensors_are_as_good_as_arrays() -> None:
    assert Spectrum.of(torch.from_numpy(counts())).sigma == Spectrum.of(counts()).sigma


@pytest.mark.parametrize(
    ("matrix", "words"),
    [
        (np.zeros((2, 3)), "square"),
        (np.zeros((0, 0)), "square"),
        (np.zeros(4), "square"),
        (np.array([[1, np.nan], [0, 1]]), "no number in row 0, column 1"),
        (np.array([[1, 0], [-2, 1]]), r"-2.0 in row 1, column 0"),
        (np.array([["a", "b"], ["c", "d"]]), "numbers"),
    ],
)
def test_what_is_no_confusion_matrix_is_refused_in_words(matrix: np.ndarray, words: str) -> None:
    for of in (Spectrum.of, Spectrum.of_rates):
        with pytest.raises(ValueError, match=words):
            of(matrix)


def test_weights_that_do_not_fit_are_refused() -> None:
    for wrong in (np.ones(5), -np.ones(6), np.full(6, np.nan)):
        with pytest.raises(ValueError, match="6 numbers"):
            Spectrum.of(counts(), wrong)
