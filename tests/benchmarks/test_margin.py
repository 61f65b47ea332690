"""The benchmarks of losses: verdicts, order, memory that is counted right. No time is asserted."""

from __future__ import annotations

import pytest
import torch

from benchmarks.loss_speed import inputs, kept_beside
from benchmarks.margin import correlations, verdict
from benchmarks.margin_retrain import order


def rows(**changes):
    base = {
        k: {"loss": k, "margin": None, "ece_fg": 0.10, "ece_all": 0.03, "dice": 0.80}
        for k in ("CE", "LS", "focal", "ECP")
    }
    base["margin"] = {"loss": "margin", "margin": 5.0, "ece_fg": 0.08, "ece_all": 0.02, "dice": 0.80}
    base["CE + T"] = {"loss": "CE + T", "margin": None, "ece_fg": 0.01, "ece_all": 0.01, "dice": 0.80}
    for loss, values in changes.items():
        base[loss].update(values)
    return list(base.values())


def test_the_margin_wins_only_with_all_three_conditions():
    assert verdict(rows())["won"]  # temperature scaling is a second step and does not count
    assert not verdict(rows(LS={"ece_fg": 0.05}))["won"]
    assert not verdict(rows(margin={"ece_all": 0.5}))["won"]
    assert not verdict(rows(CE={"dice": 0.81}))["won"]
    assert verdict(rows(CE={"dice": 0.804}))["won"]
    assert not verdict(rows()[:3])["won"]


def test_rank_correlation_finds_the_sign():
    data = [
        {
            "data": "skin",
            "method": "CRC",
            "alpha": 0.1,
            "ece_fg": e,
            "ece_all": -e,
            "gap": 2 * e,
            "area": 1 - e,
        }
        for e in (0.1, 0.2, 0.3)
    ]
    found = correlations(data)
    assert len(found) == 1
    assert found[0]["ece_fg~gap"] == pytest.approx(1)
    assert found[0]["ece_all~gap"] == pytest.approx(-1)
    assert found[0]["ece_fg~area"] == pytest.approx(-1)


def test_order_is_from_low_to_high():
    assert order([{"loss": "a", "e": 2.0}, {"loss": "b", "e": 1.0}], "e") == ["b", "a"]


def test_kept_memory_counts_each_storage_once_and_not_the_logits():
    logits, labels = inputs(0)
    one = logits.numel() * 4
    assert kept_beside(lambda x, y: (x * 2).exp().sum(), logits, labels) == one  # exp keeps its result
    assert kept_beside(lambda x, y: (x * x).sum(), logits, labels) == 0
    assert kept_beside(lambda x, y: (lambda e: (e * e).sum())(x.exp()), logits, labels) == one


def test_the_margin_keeps_at_most_two_tensors_more_than_ce():
    from core.margin.losses import cross_entropy, margin_loss

    logits, labels = inputs(0)
    extra = kept_beside(lambda x, y: margin_loss(x, y, 5.0), logits, labels) - kept_beside(
        cross_entropy, logits, labels
    )
    assert 0 < extra <= 2 * logits.numel() * 4


def test_the_logits_look_like_a_trained_networks():
    logits, labels = inputs(0)
    assert 0.6 < float((logits.argmax(1) == labels).float().mean()) < 0.99
    far = logits.amax(1, keepdim=True) - logits
    assert 0.2 < float((far > 5).float().mean()) < 0.9
    assert torch.equal(inputs(3)[0], inputs(3)[0])
