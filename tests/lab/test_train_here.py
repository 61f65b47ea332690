"""Training while a visitor waits: honest settings, progress that can be stopped, results shared by equal wishes."""

from __future__ import annotations

import threading

import numpy as np
import pytest
import torch

from core.coat.thresholds import ALPHA_KNOTS
from core.lab import train_here as room
from core.lab.jobs import Runner, Stopped
from core.lab.phantom_inputs import shipped_inputs
from core.lab.study import shipped_study
from core.lab.train_here import Budget, key_of, settings_here, start, study_here, train
from core.nets.weights import ASSETS

TINY = Budget(epochs=2, members=2, images=40)


def test_at_and_coat_get_the_same_budget_and_the_visitors_temperature() -> None:
    at, coat = settings_here(0.05, "probability", "squared", False)
    shared = (
        "epochs",
        "members",
        "batch",
        "learning_rate",
        "weight_decay",
        "dropout",
        "patience",
        "low_alpha",
        "high_alpha",
    )
    assert [getattr(at, k) for k in shared] == [getattr(coat, k) for k in shared]
    assert (at.objective, coat.objective) == ("at", "coat")
    assert (coat.unit, coat.miss, coat.temperature_start, coat.temperature_end) == (
        "probability",
        "squared",
        0.05,
        0.05,
    )
    _, falling = settings_here(8.0, "logit", "absolute", True)
    assert (falling.temperature_start, falling.temperature_end) == (
        20.0,
        8.0,
    )  # four times as much, but no more than allowed


def test_the_inputs_that_ship_are_small_and_belong_to_the_study() -> None:
    d2, quantiles, pool = shipped_inputs()
    study = shipped_study("phantom")
    assert (ASSETS / "scores/phantom-inputs.safetensors").stat().st_size < 1_000_000
    assert len(d2) == len(quantiles) == study.facts["sizes"]["d2"]
    assert len(pool) == len(study.curves)
    assert torch.allclose(pool.plug_in, study.knots["plug-in"])
    assert d2.picture.shape[2:] == (1, 1)  # no picture ships


def test_a_small_run_reports_every_epoch_and_gives_thresholds_that_rise() -> None:
    at, coat = settings_here(1.0, "logit", "absolute", False, TINY)
    steps: list[tuple[int, int, str]] = []
    rows: list[int] = []

    def on_step(done, total, facts):
        steps.append((done, total, facts["method"]))
        rows.append(sum(len(r) for r in facts["rows"].values()))

    run = train(coat, at, on_step, TINY.images)
    assert [s[:2] for s in steps] == [(k + 1, 8) for k in range(8)]
    assert [s[2] for s in steps] == ["AT"] * 4 + ["COAT"] * 4
    assert rows == list(range(1, 9))
    assert run.images == 40
    for method in ("AT", "COAT"):
        assert run.knots[method].shape == (len(study_here().curves), len(ALPHA_KNOTS))
        assert (run.knots[method].diff(dim=1) >= 0).all()
        assert len(run.history[method]) == 4
    figures = run.figures(study_here(), (0.1, 0.3), draws=2)
    gap, coverage, area = figures["COAT"]
    assert np.all((gap > 0) & (gap < 0.5)) and np.all((area > 0) & (area < 1))
    assert coverage == pytest.approx([0.9, 0.7], abs=0.06)  # the shift is exact whatever was learned


def test_equal_wishes_are_one_job_and_a_stopped_one_leaves_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    runner = Runner()
    monkeypatch.setattr(room, "RUNNER", runner)
    entered, go_on = threading.Event(), threading.Event()
    real = room.fit

    def slow(*args, **named):
        entered.set()
        assert go_on.wait(60)
        return real(*args, **named)

    monkeypatch.setattr(room, "fit", slow)
    one = start(1.0, "logit", "absolute", False, TINY)
    two = start(1.0, "logit", "absolute", False, TINY)
    other = start(2.0, "logit", "absolute", False, TINY)
    assert entered.wait(60)
    assert other.state().place == 1
    one.leave()
    with pytest.raises(Stopped):
        one.result()
    other.leave()
    go_on.set()
    run = two.result(60)  # the second person still gets it
    assert start(1.0, "logit", "absolute", False, TINY).result(0) is run
    entered.clear()
    go_on.clear()
    alone = start(2.0, "logit", "absolute", False, TINY)
    assert entered.wait(60)
    alone.leave()
    go_on.set()
    again = start(2.0, "logit", "absolute", False, TINY)
    assert again.result(60).settings.temperature_end == 2.0


def test_the_key_knows_temperature_and_budget() -> None:
    keys = {
        key_of(settings_here(t, unit, miss, falls, b)[1], b)
        for t in (0.5, 1.0)
        for unit in ("logit", "probability")
        for miss in ("absolute", "squared")
        for falls in (False, True)
        for b in (TINY, Budget(epochs=2, members=2))
    }
    assert len(keys) == 32
