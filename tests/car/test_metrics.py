"""Figures of a confusion matrix: scikit-learn and torchmetrics as oracles, groups, classes without samples, WR, and refusals."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from core.car.metrics import confusion, figures_of, groups_of, predictions_of, recalls, survival
from core.data.longtail import longtail_counts


def decisions(n: int = 400, k: int = 5, seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(seed)
    true = rng.integers(k, size=n)
    return true, np.where(rng.random(n) < 0.6, true, rng.integers(k, size=n))


def test_counts_are_those_of_sklearn_and_torchmetrics() -> None:
    sklearn = pytest.importorskip("sklearn.metrics")
    functional = pytest.importorskip("torchmetrics.functional")
    true, said = decisions()
    ours = confusion(true, said, 6)  # class 5 never occurs
    assert np.array_equal(ours, sklearn.confusion_matrix(true, said, labels=range(6)).T)
    theirs = functional.confusion_matrix(
        torch.from_numpy(said), torch.from_numpy(true), task="multiclass", num_classes=6
    )
    assert np.array_equal(ours, theirs.numpy().T)


def test_figures_are_those_of_sklearn() -> None:
    sklearn = pytest.importorskip("sklearn.metrics")
    true, said = decisions()
    f = figures_of(confusion(true, said, 5), [50, 40, 30, 20, 10])
    assert f.overall == pytest.approx(sklearn.accuracy_score(true, said))
    assert f.mean_recall == pytest.approx(sklearn.balanced_accuracy_score(true, said))
    assert f.macro_f1 == pytest.approx(sklearn.f1_score(true, said, average="macro"))
    each = sklearn.recall_score(true, said, average=None)
    np.testing.assert_allclose(f.recall, each)
    assert f.worst == pytest.approx(each.min())
    assert f.worst_class == each.argmin()
    assert f.worst_classes == pytest.approx(np.sort(each)[:2].mean())
    assert f.head == pytest.approx(each[:2].mean())
    assert f.tail == pytest.approx(each[3:].mean())
    assert f.medium == pytest.approx(each[2])


def test_a_class_without_a_sample_is_left_out_and_counted() -> None:
    matrix = np.array([[8, 0, 1], [2, 0, 0], [0, 0, 3]])
    f = figures_of(matrix, [30, 20, 10])
    assert f.left_out == 1
    assert np.isnan(f.recall[1])
    assert f.worst == pytest.approx(0.75)
    assert f.worst_class == 2
    assert f.mean_recall == pytest.approx((0.8 + 0.75) / 2)
    assert f.worst_classes == pytest.approx((0.8 + 0.75) / 2)
    assert np.isnan(f.medium)
    assert f.macro_f1 == pytest.approx((2 * 8 / 19 + 2 * 3 / 7) / 2)


def test_nothing_at_all_gives_no_figures_and_no_error() -> None:
    f = figures_of(np.zeros((3, 3)), [3, 2, 1])
    assert f.left_out == 3
    assert f.worst_class == -1
    assert all(np.isnan([f.overall, f.worst, f.worst_classes, f.macro_f1, f.head]))
    assert np.isnan(survival(np.zeros((2, 2)), np.eye(2)).wr)


def test_the_groups_of_cifar100_lt_are_those_of_the_notes() -> None:
    g = groups_of(longtail_counts(100, 500, 100))
    assert (len(g.head), len(g.medium), len(g.tail)) == (35, 35, 30)
    assert g.head.max() < g.medium.min() < g.tail.min()


@given(st.lists(st.integers(0, 400), min_size=1, max_size=14).filter(any))
@settings(max_examples=60, deadline=None)
def test_every_class_is_in_one_group(counts: list[int]) -> None:
    g = groups_of(counts)
    assert sorted([*g.head, *g.medium, *g.tail]) == list(range(len(counts)))
    if len(g.tail) and len(g.head):
        assert min(counts[i] for i in g.head) >= max(counts[i] for i in g.tail)


def test_many_classes_count_their_tail_and_few_their_worst_two() -> None:
    k = 12
    counts = [500] * 6 + [50] * 3 + [5] * 3
    matrix = np.diag([10] * 9 + [1, 2, 3]) + np.eye(k, k, -1) * 0
    matrix[0, 9:] = [9, 8, 7]
    f = figures_of(matrix, counts)
    assert f.worst_classes == f.tail == pytest.approx(0.2)
    assert f.worst == pytest.approx(0.1)
    assert f.worst_ten == pytest.approx((0.1 + 0.2 + 0.3 + 7) / 10)


def test_wr_is_one_class_test_over_train() -> None:
    test = np.array([[9, 5], [1, 5]])
    train = np.array([[6, 0], [4, 8]])
    s = survival(test, train)
    assert s.class_index == 1
    assert s.wr == pytest.approx(0.5)
    assert s.ratio_of_minima == pytest.approx(0.5 / 0.6)
    assert np.isnan(survival(np.eye(2), np.array([[0, 0], [1, 1]])).wr)
    with pytest.raises(ValueError, match="2 and 3 classes"):
        survival(np.eye(2), np.eye(3))


def test_recalls_are_column_shares() -> None:
    np.testing.assert_allclose(recalls(np.array([[3, 2], [1, 2]])), [0.75, 0.5])


def test_logits_become_decisions_unless_they_are_no_numbers() -> None:
    logits = torch.tensor([[0.0, 1.0], [2.0, -torch.inf]])
    assert predictions_of(logits).tolist() == [1, 0]
    assert predictions_of(logits.numpy()).tolist() == [1, 0]
    sick = logits.clone()
    sick[1, 0] = torch.nan
    with pytest.raises(ValueError, match="1 of 2 samples .* row 1"):
        predictions_of(sick)
    with pytest.raises(ValueError, match="shape"):
        predictions_of(np.zeros(4))


def test_labels_that_do_not_fit_are_named() -> None:
    with pytest.raises(ValueError, match=r"True label 3 of sample 1 is outside 0\.\.2"):
        confusion([0, 3], [0, 1], 3)
    with pytest.raises(ValueError, match="Predicted label -1 of sample 0"):
        confusion([0, 1], [-1, 1], 3)
    with pytest.raises(ValueError, match="2 true and 3 predicted"):
        confusion([0, 1], [0, 1, 2], 3)
    with pytest.raises(ValueError, match=r"entry 1 is 0\.5"):
        confusion([0, 1], [0.0, 0.5], 3)
    with pytest.raises(ValueError, match="entry 0 is nan"):
        confusion([float("nan"), 1], [0, 1], 3)
    with pytest.raises(ValueError, match="whole numbers"):
        confusion(np.array(["cat"]), [0], 3)
    with pytest.raises(ValueError, match="shape"):
        confusion([[0], [1]], [0, 1], 3)
    assert confusion(np.array([1.0, 0.0]), [1, 1], 2).tolist() == [[0, 0], [1, 1]]


def test_matrices_that_do_not_fit_are_refused() -> None:
    with pytest.raises(ValueError, match="there are 3 classes"):
        figures_of(np.eye(2), [1, 1, 1])
    for wrong in (np.array([[1, -1], [0, 1]]), np.array([[1, np.nan], [0, 1]])):
        with pytest.raises(ValueError, match="none below 0"):
            figures_of(wrong, [1, 1])
