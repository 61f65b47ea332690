"""Two losses trained while a visitor waits: the same start for both, progress that can be stopped, results shared by equal wishes."""

from __future__ import annotations

import threading
from dataclasses import replace

import numpy as np
import pytest
import torch

from core.lab import margin_here as room
from core.lab.jobs import Runner, Stopped
from core.lab.margin_here import Budget, key_of, pictures, quick, sentences, settings_here, start, train
from core.margin.losses import logit_distances
from core.margin.reliability import Reliability, ece, tabulate

TINY = Budget(epochs=3, train=8, check=5, batch=4, every=2)


def quiet(done, total, facts) -> None:
    pass


@pytest.fixture(scope="module")
def run() -> room.Pair:
    return train(settings_here("CE"), settings_here("margin", 2.0), quiet, TINY)


def test_training_and_check_pictures_differ_and_belong_to_nobody_else() -> None:
    learn, check = pictures(room.TRAIN_SEED, 4), pictures(room.CHECK_SEED, 4)
    assert not set(learn.names) & set(check.names)
    assert learn.images.shape == (4, 3, room.SIDE, room.SIDE) and float(learn.images.abs().max()) <= 1
    assert set(learn.labels.unique().tolist()) == {0, 1}
    assert pictures(room.TRAIN_SEED, 4) is learn


def test_every_epoch_is_reported_and_every_few_are_measured(run: room.Pair) -> None:
    steps: list[tuple[int, int, str, int]] = []
    train(
        settings_here("LS"),
        settings_here("focal"),
        lambda d, t, f: steps.append((d, t, f["loss"], sum(map(len, f["rows"].values())))),
        TINY,
    )
    assert steps == [(k + 1, 6, "LS" if k < 3 else "focal", k + 1) for k in range(6)]
    for rows in run.history.values():
        assert [r["epoch"] for r in rows] == [0, 1, 2]
        assert ["dice" in r for r in rows] == [False, True, True]
        assert all(0 <= rows[-1][k] <= 1 for k in ("ece_all", "ece_foreground", "dice"))


def test_both_networks_start_from_the_same_weights_and_see_the_same_pictures() -> None:
    # with m beyond every distance the margin loss is cross-entropy, so both runs must be one but for rounding; another loss is not
    pair = train(settings_here("CE"), settings_here("margin", 20.0), quiet, TINY)
    ce, margin = ([r["loss"] for r in pair.history[x]] for x in ("CE", "margin"))
    assert ce == pytest.approx(margin, rel=3e-3)
    other = train(settings_here("LS"), settings_here("margin", 20.0), quiet, TINY)
    assert [r["loss"] for r in other.history["margin"]] == margin
    assert other.history["LS"][0]["loss"] != pytest.approx(ce[0], rel=1e-2)


def test_a_tie_is_called_one(run: room.Pair) -> None:
    even = replace(run, measured=dict.fromkeys(run.settings, run.measured["CE"]))
    first, _, last = sentences(even, "all")
    assert "both are equally far" in first and last == "Dice is the same."


def test_what_is_drawn_is_what_was_measured(run: room.Pair) -> None:
    check = pictures(room.CHECK_SEED, TINY.check)
    for loss in run.settings:
        assert run.pooled(loss, "all").pixels == check.labels.numel()
        assert run.pooled(loss, "foreground").pixels == int((check.labels > 0).sum())
        assert run.distances(loss).sum() == check.labels.numel()  # two classes: one distance a pixel
        assert len(run.edges) == len(run.distances(loss)) + 1 and np.isfinite(run.edges).all()
        assert run.history[loss][-1]["ece_all"] == pytest.approx(ece(run.pooled(loss, "all")))
        assert run.history[loss][-1]["ece_foreground"] == pytest.approx(ece(run.pooled(loss, "foreground")))


def test_quick_figures_are_those_of_single_images() -> None:
    check = pictures(room.CHECK_SEED, 3)
    logits = torch.randn(3, 2, room.SIDE, room.SIDE, generator=torch.Generator().manual_seed(0))
    found = quick(logits, check)
    for scope in ("all", "foreground"):
        pooled = Reliability.merge(
            [tabulate(x, y, scope=scope) for x, y in zip(logits, check.labels, strict=True)]
        )
        assert found[f"ece_{scope}"] == pytest.approx(ece(pooled))
    guess = logits.argmax(1)
    both = [
        2 * int(((g == 1) & (y == 1)).sum()) / int((g == 1).sum() + (y == 1).sum())
        for g, y in zip(guess, check.labels, strict=True)
        if y.any()
    ]
    assert found["dice"] == pytest.approx(np.mean(both)) and len(both) == int(
        check.labels.flatten(1).any(1).sum()
    )
    assert float(logit_distances(logits).max()) > 0


def test_the_sentence_names_the_better_one_whichever_it_is(run: room.Pair) -> None:
    for scope in ("all", "foreground"):
        errors = {loss: round(100 * ece(run.pooled(loss, scope)), 1) for loss in run.settings}
        said = sentences(run, scope)[0]
        assert all(f"{e:.1f}\u00a0%" in said for e in errors.values())
        if len(set(errors.values())) > 1:
            better = min(errors, key=errors.__getitem__)
            assert f"{'a margin of 2' if better == 'margin' else 'CE'} can be believed more" in said


def test_the_same_loss_twice_is_refused() -> None:
    with pytest.raises(ValueError, match="Choose two"):
        train(settings_here("CE"), settings_here("CE"), quiet, TINY)


def test_equal_wishes_are_one_job_and_a_stopped_one_leaves_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(room, "RUNNER", Runner())
    entered, go_on = threading.Event(), threading.Event()
    real = room.fit

    def slow(*args, **named):
        entered.set()
        assert go_on.wait(60)
        return real(*args, **named)

    monkeypatch.setattr(room, "fit", slow)
    wish = settings_here("CE"), settings_here("LS")
    one, two = start(*wish, TINY), start(*wish, TINY)
    other = start(settings_here("CE"), settings_here("ECP"), TINY)
    assert entered.wait(60)
    assert other.state().place == 1
    one.leave()
    with pytest.raises(Stopped):
        one.result()
    other.leave()
    go_on.set()
    run = two.result(120)  # the second person still gets it
    assert start(*wish, TINY).result(0) is run
    entered.clear()
    go_on.clear()
    alone = start(settings_here("CE"), settings_here("ECP"), TINY)
    assert entered.wait(60)
    alone.leave()
    go_on.set()
    again = start(settings_here("CE"), settings_here("ECP"), TINY)
    assert list(again.result(120).settings) == ["CE", "ECP"]


def test_the_key_knows_losses_their_order_m_and_the_budget() -> None:
    keys = {
        key_of(settings_here(a, m), settings_here(b, m), budget)
        for a, b in (("CE", "margin"), ("margin", "CE"), ("LS", "margin"))
        for m in (2.0, 3.0)
        for budget in (TINY, Budget())
    }
    assert len(keys) == 12
    assert key_of(settings_here("CE", 2.0), settings_here("LS", 2.0), TINY) == key_of(
        settings_here("CE", 3.0), settings_here("LS", 3.0), TINY
    )
