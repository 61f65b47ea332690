"""The sweep over λ: where it looks, what it leaves alone, its record, and that a stopped measurement goes on where it was."""

from __future__ import annotations

import math
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch

from core.lab import sparse_queue, sparse_sweep
from core.lab.sparse_evaluate import Plan, evaluate
from core.lab.sparse_record import load_record, save_record
from core.lab.sparse_sweep import Sweep, load_sweeps, moved, save_sweeps, scaled, sweep, sweeps
from core.settings.tacsc import AdaptSettings
from core.tacsc.layer import sparse_layers
from tests.lab import made_sparse as made

PLAN = Plan(("gaussian_noise",), (1, 2), (10,), 20, 12, 12, bfloat16=False)
FEW = AdaptSettings(steps=2)
LINE = Sweep("k", "fog", 3, (0.5, 1.0, 2.0, 4.0), (0.5, 0.6, 0.8, 0.8), (0.7, 0.9, 0.9, 0.1), 100, 50)


def test_lambda_is_multiplied_and_the_network_stays() -> None:
    net = made.network("tacsc_all")
    before = {k: v.clone() for k, v in net.state_dict().items()}
    found = sweep(net, made.pictures(60), "gaussian_noise", 3, key="made", plan=PLAN, factors=(0.5, 1.0, 1e6))
    assert all(torch.equal(v, before[k]) for k, v in net.state_dict().items())
    assert (found.scored, found.samples, found.factors) == (12, 10, (0.5, 1.0, 1e6))
    drawn = sparse_sweep.draw(made.pictures(60), "gaussian_noise", 3, PLAN)
    x = sparse_sweep.prepared(drawn.scored)
    assert found.at(1.0) == pytest.approx(sparse_sweep.score(net, x, drawn.labels, PLAN))
    doubled = sparse_layers(scaled(net, 2.0)).values()
    for a, b in zip(doubled, sparse_layers(net).values(), strict=True):
        assert a.threshold.item() == pytest.approx(2 * b.threshold.item(), rel=1e-5)


def test_a_threshold_that_kills_every_code_leaves_chance() -> None:
    net = made.network("tacsc")
    drawn = sparse_sweep.draw(made.pictures(60), "clean", 0, PLAN)
    found = sweep(net, made.pictures(60), "clean", 0, plan=PLAN, factors=(1e6, 1e7))
    answer = scaled(net, 1e6)(sparse_sweep.prepared(drawn.scored)).argmax(1)
    assert len(answer.unique()) == 1
    assert found.stored[0] == found.stored[1] == np.mean(drawn.labels == answer[0].item())


def test_the_best_is_the_nearest_of_equals_and_between_points_lies_a_line() -> None:
    assert LINE.best() == (2.0, 0.8) and LINE.best(refreshed=True) == (1.0, 0.9)
    assert LINE.at(2**0.5) == pytest.approx(0.7) and LINE.at(4.0, refreshed=True) == pytest.approx(0.1)
    assert math.isnan(LINE.at(8.0)) and math.isnan(LINE.at(0.1))


def test_bad_multiples_and_networks_are_refused() -> None:
    for factors in ((), (0.0, 1.0), (1.0, 1.0)):
        with pytest.raises(ValueError, match="must be above 0 and rise"):
            sweep(made.network(), made.pictures(60), "clean", 0, plan=PLAN, factors=factors)
    with pytest.raises(ValueError, match="no sparse layer"):
        sweep(made.network("resnet"), made.pictures(60), "clean", 0, plan=PLAN)


def test_where_adaptation_went_is_a_multiple() -> None:
    assert moved(made.record("tacsc_all"), "fog", 3) == pytest.approx(1.2 + 0.9)
    assert math.isnan(moved(made.record("tacsc", corruptions=("fog",)), "snow", 1))
    assert math.isnan(moved(made.record("resnet"), "fog", 3))


def test_a_record_is_read_back_and_a_broken_one_said(tmp_path: Path) -> None:
    path = tmp_path / "results" / "sparse" / "sweep.json"
    assert load_sweeps(path) == () and sweeps("k", tmp_path) == {}
    save_sweeps(path, [LINE, replace(LINE, key="other")])
    assert load_sweeps(path)[0] == LINE and sweeps("k", tmp_path) == {("fog", 3): LINE}
    path.write_text("[3]")
    with pytest.raises(ValueError, match="holds no sweep"):
        load_sweeps(path)


def test_the_command_sweeps_what_is_missing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    sparse_queue.train_run(made.made_run(), made.TINY, made.pictures(), tmp_path)
    sparse_queue.measure_run(made.made_run(), made.pictures(60, 2), tmp_path, PLAN, FEW)
    monkeypatch.setattr(sparse_sweep, "FACTORS", (0.5, 1.0, 2.0))
    monkeypatch.setattr(sparse_queue, "read_cifar", lambda *_: (made.pictures(), made.pictures(520)))
    monkeypatch.setattr(sparse_sweep, "PLACES", (("clean", 0), ("gaussian_noise", 1)))
    arguments = ["tacsc-k2-w4-s0", "--data", str(tmp_path), "--work", str(tmp_path), "--scored", "10"]
    assert sparse_sweep.command(arguments) == 0
    assert capsys.readouterr().out.count("best at") == 2
    assert sparse_sweep.command(arguments) == 0 and not capsys.readouterr().out
    assert len(load_sweeps(tmp_path / "sweep.json")) == 2
    written = sparse_sweep.load_sweeps(
        next(p for p in sparse_shelf_of(tmp_path) if p.name == sparse_sweep.FILE)
    )
    assert written == load_sweeps(tmp_path / "sweep.json")
    assert sparse_sweep.command(["absent", *arguments[1:]]) == 2


def sparse_shelf_of(work: Path) -> list[Path]:
    from core.lab.sparse_shelf import write_shelf

    return write_shelf(work, work / "out")


def test_a_measurement_that_was_stopped_goes_on(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    work, run, test = tmp_path, made.made_run(), made.pictures(60, 2)
    sparse_queue.train_run(run, made.TINY, made.pictures(), work)
    sparse_queue.measure_run(run, test, work, PLAN, FEW)
    whole = load_record(work / f"{run.key}.json")

    class Stop(Exception):
        pass

    def stop(done: int, *_: object) -> None:
        if done == 2:
            raise Stop

    monkeypatch.setattr(sparse_queue, "report", stop)
    with pytest.raises(Stop):
        sparse_queue.measure_run(run, test, work, PLAN, FEW)
    part = load_record(work / f"{run.key}.cells")
    assert {(c.corruption, c.severity) for c in part.cells} == {("clean", 0), ("gaussian_noise", 1)}
    told: list[int] = []
    monkeypatch.setattr(sparse_queue, "report", lambda done, *_: told.append(done))
    sparse_queue.measure_run(run, test, work, PLAN, FEW)
    assert told == [3] and not list(work.glob("*.cells"))
    assert load_record(work / f"{run.key}.json") == whole

    save_record(work / f"{run.key}.cells", replace(part, cells=part.cells[:1]))
    told.clear()
    sparse_queue.measure_run(run, test, work, PLAN, AdaptSettings(steps=1))
    assert told == [1, 2, 3], "other settings begin anew"


def test_known_cells_are_kept_as_they_are() -> None:
    net, test = made.network(), made.pictures(60, 2)
    seen: list[int] = []
    cells = evaluate(net, test, PLAN, AdaptSettings(steps=1), keep=lambda c: seen.append(len(c)))
    assert seen == [4, 8, 12]
    marked = tuple(replace(c, accuracy=0.5) for c in cells[:4])
    assert evaluate(net, test, PLAN, AdaptSettings(steps=1), known=marked)[:4] == marked
