"""The benchmark of the shift score: means are those of the rows, what is missing is not made up, and a new measurement is set beside the record."""

from __future__ import annotations

import argparse
import math
from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pytest
import torch

from benchmarks import shift
from core.lab import sparse_queue, sparse_shelf
from core.lab.shift_record import ShiftRecord, ShiftRow
from core.settings.tacsc import TacscSettings
from core.tacsc.nets import build

PLAN = {
    "noises": ("gaussian_noise", "shot_noise"),
    "blurs": ("glass_blur",),
    "severities": (1, 3),
    "batch": 16,
}


def record(**changes: float) -> ShiftRecord:
    """A made-up study: 0.8 at severity 1, 0.9 at 3, single images 0.1 lower, λ alone 0.05 lower, blurs 0.2 lower."""
    rows = [
        ShiftRow(
            c,
            s,
            n,
            part,
            changes.get(
                c, (0.8 if s == 1 else 0.9) - 0.1 * (n == 1) - 0.05 * (part == "lambda") - 0.2 * ("blur" in c)
            ),
        )
        for c in (*PLAN["noises"], *PLAN["blurs"])
        for s in (1, 3)
        for n in (16, 1)
        for part in ("lambda", "error", "both")
    ]
    facts = {"images": 10, "clean": 5, "damaged": 5, "single": 2, "clean_scores": {}}
    return ShiftRecord("tacsc-k2-w16-s0", tuple(rows), (), facts, dict(PLAN), "made up", {"torch": "0"}, 1.0)


def given(**changes) -> argparse.Namespace:
    return argparse.Namespace(
        **(dict(retrain=False, data=None, work=None, minutes=1.0, quick=False) | changes)
    )


def test_figures_are_means_over_noises_and_blurs_apart(monkeypatch: pytest.MonkeyPatch, capsys) -> None:
    monkeypatch.setattr(shift, "load_shift", lambda: record(shot_noise=0.7))
    found = shift.run(given())
    assert found["auroc_s1"] == pytest.approx((0.8 + 0.7) / 2)
    assert found["auroc_s3"] == pytest.approx((0.9 + 0.7) / 2)
    assert found["auroc_one_s3"] == pytest.approx((0.8 + 0.7) / 2)
    assert found["auroc_blur_s3"] == pytest.approx(0.7)
    assert found["auroc_s3_lambda"] == pytest.approx((0.85 + 0.7) / 2)
    assert math.isnan(found["auroc_s5"])  # not measured, and not made up
    assert len(found["rows"]) == 3 * 2 * 2
    assert {"corruption", "severity", "images", "auroc"} <= set(found["rows"][0])
    shift.show_result(found)
    assert "glass_blur" in capsys.readouterr().out


def test_a_missing_record_says_how_it_is_made(tmp_path) -> None:
    from core.lab.shift_record import load_shift

    with pytest.raises(FileNotFoundError, match="shift_study"):
        load_shift(tmp_path)


def test_measured_anew_it_says_whether_it_agrees(monkeypatch: pytest.MonkeyPatch, tmp_path) -> None:
    net = build("tacsc", 4, 3, TacscSettings(), rng=torch.Generator().manual_seed(0)).train()
    net(torch.randn(4, 3, 32, 32, generator=torch.Generator().manual_seed(1)))
    images = np.random.default_rng(0).integers(0, 255, (240, 32, 32, 3)).astype(np.uint8)
    plan = replace(shift.plan_of(1, True), noises=PLAN["noises"], rounds=1, crops=2)
    assert plan.seed == shift.SEED and plan.blurs == ()
    monkeypatch.setattr(shift, "plan_of", lambda *_: plan)
    monkeypatch.setattr(sparse_shelf, "network", lambda key: net.eval())
    monkeypatch.setattr(sparse_queue, "read_cifar", lambda *_: (None, SimpleNamespace(images=images)))
    monkeypatch.setattr(shift, "load_shift", lambda: record(gaussian_noise=5.0))
    found = shift.run(given(data=tmp_path, quick=True))
    assert found["agrees"] is False and found["largest_difference"] > 1
    assert found["auroc_s3_recorded"] == pytest.approx((5.0 + 0.9) / 2)
    assert found["settings"]["new_seed"] == shift.SEED
    here = found["auroc_s3"]
    monkeypatch.setattr(shift, "load_shift", lambda: record(gaussian_noise=here, shot_noise=here))
    monkeypatch.setattr(shift, "COMPARED", ("auroc_s3",))
    assert shift.run(given(data=tmp_path, quick=True))["agrees"] is True


def test_the_time_sets_the_number_of_images_within_bounds() -> None:
    assert [shift.plan_of(m, False).clean for m in (0.1, 10, 1000)] == [48, 400, 640]
    assert shift.plan_of(1000, True).clean == 48 and shift.plan_of(10, False).severities == (1, 3, 5)
