"""Class weights: the ratios of METHODS 3.4, normalisation, and refusals."""

from __future__ import annotations

import pytest
import torch

from core.car.weights import class_weights, frequencies
from core.data.longtail import longtail_counts


def test_the_tail_gains_as_little_or_as_much_as_the_notes_say() -> None:
    counts = longtail_counts(100, 500, 100)
    for r0, norm, ratio in ((0.2, "sum", 1.108), (0.5, "sum", 1.045), (0.2, "max", 2.39)):
        w = class_weights(counts, r0, norm)
        assert (w[-1] / w[0]).item() == pytest.approx(ratio, abs=2e-3)


def test_weights_have_mean_one_and_follow_the_formula() -> None:
    w = class_weights([10, 30, 60], 0.1)
    assert w.mean().item() == pytest.approx(1.0)
    raw = class_weights([10, 30, 60], 0.1, mean_normalised=False)
    torch.testing.assert_close(raw, (torch.tensor([0.1, 0.3, 0.6], dtype=torch.float64) + 0.1) ** -0.5)
    torch.testing.assert_close(w, raw / raw.mean())


def test_a_class_that_was_never_seen_has_a_finite_weight_and_none_is_too_small() -> None:
    w = class_weights([5, 0], r0=0.0)
    assert bool(torch.isfinite(w).all())
    assert w[0].item() == pytest.approx(1e-3)


def test_frequencies_are_shares() -> None:
    assert frequencies([1, 3]).tolist() == [0.25, 0.75]
    assert frequencies([1, 4], "max").tolist() == [0.25, 1.0]


def test_what_are_no_counts_is_refused() -> None:
    for counts in ([], [[1, 2]], [0, 0], [-1, 2], [float("nan"), 1]):
        with pytest.raises(ValueError, match="Counts"):
            class_weights(counts)
    with pytest.raises(ValueError, match="'sum' or the 'max'"):
        frequencies([1, 2], "mean")
    with pytest.raises(ValueError, match="r0"):
        class_weights([1, 2], -0.1)
