"""CE and CAR trained while a visitor waits: real digits, the same start for both, progress that can be stopped, words that fit the numbers."""

from __future__ import annotations

import threading
from dataclasses import replace

import numpy as np
import pytest
import torch
from sklearn.datasets import load_digits

from core.car.metrics import recalls
from core.lab import tail_here as room
from core.lab.jobs import Runner, Stopped
from core.lab.tail_here import (
    Budget,
    Compared,
    Task,
    draw,
    key_of,
    method_here,
    network,
    order_of,
    start,
    train,
)
from core.lab.tail_here_words import difference, paying_sentence, rows, sentence
from core.lab.tail_methods import METHODS
from core.settings.car import CarSettings

TINY = Budget(epochs=3, seeds=2, largest=24, test=20, every=2)
SHORT = Task(6.0, 9)


def quiet(done, total, facts) -> None:
    pass


@pytest.fixture(scope="module")
def run() -> Compared:
    return train(method_here("car-count"), SHORT, quiet, TINY)


def test_training_and_test_images_are_real_digits_and_share_none() -> None:
    learn, test, counts = draw(Task(20.0, 3), Budget(), 0)
    assert np.array_equal(np.bincount(learn.labels), counts) and counts[0] == 100 and counts[-1] == 5
    assert np.array_equal(np.bincount(test.labels), np.full(10, 70))
    real = {tuple(x) for x in load_digits().data.astype(int)}
    seen = [{tuple(x) for x in (16 * p.images).round().int().reshape(-1, 64).tolist()} for p in (learn, test)]
    assert seen[0] <= real and seen[1] <= real
    other, same, _ = draw(Task(20.0, 3), Budget(), 1)
    assert torch.equal(same.images, test.images) and not torch.equal(other.images, learn.images)


def test_no_image_is_on_both_sides() -> None:
    # each image of scikit-learn's set is there once, so a shared one would show
    learn, test, _ = draw(Task(20.0, 3), Budget(), 0)
    a, b = ({x.numpy().tobytes() for x in p.images} for p in (learn, test))
    assert not a & b


@pytest.mark.parametrize("rarest", range(10))
def test_classes_count_up_to_the_rarest_digit_from_head_to_tail(rarest: int) -> None:
    order = order_of(Task(20.0, rarest))
    assert order[-1] == rarest and sorted(order) == list(range(10)) and order[0] == (rarest + 1) % 10
    learn, _, counts = draw(Task(20.0, rarest), Budget(), 0)
    digits = load_digits()
    known = {
        x.astype(np.float32).tobytes(): y for x, y in zip(digits.images / 16, digits.target, strict=True)
    }
    for image, label in zip(learn.images[:40], learn.labels[:40], strict=True):
        assert known[image[0].numpy().tobytes()] == order[int(label)]
    assert (np.diff(counts) <= 0).all()


def test_tasks_and_kinds_that_cannot_be_are_refused() -> None:
    with pytest.raises(ValueError, match="go from 0 to 9"):
        order_of(Task(20.0, 10))
    with pytest.raises(ValueError, match="must be 1 or more"):
        order_of(Task(0.5))
    with pytest.raises(ValueError, match="cannot be trained here"):
        method_here("focal")
    with pytest.raises(ValueError, match="cannot be above 20"):
        method_here("car-count", CarSettings(alpha=99.0))
    with pytest.raises(ValueError, match="has .* samples, and 500 are wanted"):
        draw(Task(), Budget(largest=500), 0)


def test_every_epoch_is_reported_and_every_few_are_measured(run: Compared) -> None:
    steps: list[tuple[int, int, list[int]]] = []
    train(
        method_here("car-paper"),
        SHORT,
        lambda d, t, f: steps.append((d, t, [len(r) for r in f["rows"].values()])),
        TINY,
    )
    assert steps == [(1, 3, [0, 0]), (2, 3, [1, 1]), (3, 3, [2, 2])]
    for some in run.history.values():
        assert [r["epoch"] for r in some] == [1, 2] and all(
            0 <= r[k] <= 1 for r in some for k in ("overall", "worst")
        )
        assert some[-1]["worst_class"] in run.classes and some[-1]["sigma"] > 0


def test_both_start_from_the_same_weights_and_without_car_they_are_one() -> None:
    off = train(method_here("car-count", replace(METHODS["car-count"].car, alpha=0.0)), SHORT, quiet, TINY)
    assert (
        np.array_equal(off.test["ce"], off.test["car-count"])
        and off.history["ce"] == off.history["car-count"]
    )
    assert all(
        torch.equal(a, b) for a, b in zip(network(3).parameters(), network(3).parameters(), strict=True)
    )
    assert not torch.equal(next(network(3).parameters()), next(network(4).parameters()))


def test_car_changes_something_and_the_same_wish_gives_the_same_numbers(run: Compared) -> None:
    strong = train(
        method_here("car-count", replace(METHODS["car-count"].car, alpha=10.0)), SHORT, quiet, TINY
    )
    assert np.array_equal(strong.test["ce"], run.test["ce"])  # CE does not know which CAR stands beside it
    assert not np.array_equal(strong.test["car-count"], strong.test["ce"])
    again = train(method_here("car-count"), SHORT, quiet, TINY)
    assert all(np.array_equal(again.test[k], run.test[k]) for k in run.test)


def test_it_learns() -> None:
    long = train(method_here("car-count"), SHORT, quiet, replace(TINY, epochs=12, seeds=1, largest=60))
    assert all(f.overall > 0.6 for key in long.methods for f in long.figures(key))
    assert recalls(long.learned("ce"))[0] > 0.9


def test_matrices_hold_all_test_images_and_the_last_row_is_their_mean(run: Compared) -> None:
    for key in run.methods:
        assert run.test[key].shape == (2, 10, 10) and run.pooled(key).sum() == 2 * 10 * TINY.test
        assert np.array_equal(run.learned(key).sum(0), 2 * run.counts)
        assert run.history[key][-1]["overall"] == pytest.approx(
            np.mean([f.overall for f in run.figures(key)])
        )
        assert run.history[key][-1]["worst"] == pytest.approx(np.mean([f.worst for f in run.figures(key)]))


# words -----------------------------------------------------------------------


def fallen(worst: tuple[int, ...], n: int = 100) -> np.ndarray:
    """Matrices of seeds whose class 9 has so many of n right, and all others all."""
    out = []
    for hits in worst:
        m = n * np.eye(10, dtype=int)
        m[9, 9], m[4, 9] = hits, n - hits
        out.append(m)
    return np.stack(out)


def made(ce: tuple[int, ...], car: tuple[int, ...]) -> Compared:
    budget = Budget(seeds=len(ce))
    methods = {"ce": METHODS["ce"], "car-count": METHODS["car-count"]}
    test = {"ce": fallen(ce), "car-count": fallen(car)}
    counts = np.array([50, 40, 30, 20, 15, 10, 8, 6, 4, 2])
    full = {k: np.stack([np.diag(counts)] * len(ce)) for k in methods}
    return Compared(
        Task(), budget, methods, tuple("0123456789"), counts, test, full, {"ce": (), "car-count": ()}, 1.0
    )


def test_a_clear_gain_a_clear_loss_chance_and_a_tie_are_called_so() -> None:
    up = made((50, 51, 49), (70, 72, 69))
    assert difference(up, "worst") == pytest.approx((20.333, 0.333, 3), abs=1e-3)
    assert (
        "more than chance" in sentence(up)
        and "is +20.3 ± 0.3" in sentence(up)
        and "ahead in 3 of 3" in sentence(up)
        and "rises by 2.0" in sentence(up)
    )
    down = sentence(made((70, 72, 69), (50, 51, 49)))
    assert (
        "is −20.3 ± 0.3" in down
        and "ahead in 0 of 3" in down
        and "more than chance" in down
        and "falls by 2.0" in down
    )
    noisy = sentence(made((20, 80, 50), (70, 30, 60)))
    assert "within what chance between seeds does" in noisy
    assert "do not differ" in sentence(made((50, 60), (50, 60))) and "stays the same" in sentence(
        made((50, 60), (50, 60))
    )
    assert "from one seed" in sentence(made((50,), (60,))) and "means over 1 seed." in sentence(
        made((50,), (60,))
    )


def test_who_pays_is_named_with_what_it_is_called() -> None:
    said = paying_sentence(made((50, 60), (50, 60))).replace("\u00a0", " ")
    assert (
        said
        == "Under CE the 9 pays: 2 training images, of which it knows 100 %, and 55 % of new ones, most often called a 4."
    )
    table = rows(made((50, 60), (60, 80)))
    worst = next(r for r in table if r["figure"] == "recall of the worst digit")
    assert (
        worst["ce"] == pytest.approx(0.55)
        and worst["difference"] == pytest.approx(15)
        and worst["ahead"] == "2 of 2"
    )


# the runner ------------------------------------------------------------------


def test_keys_tell_apart_what_differs() -> None:
    base = key_of(method_here("car-count"), Task(), Budget())
    assert base == key_of(method_here("car-count"), Task(20.0, 9), Budget())
    others = {
        key_of(method_here("car-paper"), Task(), Budget()),
        key_of(method_here("car-count", CarSettings(alpha=1.0)), Task(), Budget()),
        key_of(method_here("car-count"), Task(rarest=3), Budget()),
        key_of(method_here("car-count"), Task(), Budget(seeds=2)),
    }
    assert len(others) == 4 and base not in others


def test_equal_wishes_share_one_training_and_it_stops_when_nobody_waits(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    runner, calls, going, free = Runner(), [], threading.Event(), threading.Event()

    def slow(method, task, on_step, budget):
        calls.append(method.name)
        going.set()
        assert free.wait(20)
        on_step(1, 2, {"rows": {}})
        return "done"

    monkeypatch.setattr(room, "RUNNER", runner)
    monkeypatch.setattr(room, "train", slow)
    first, second = (start(method_here("car-count"), SHORT, TINY) for _ in range(2))
    free.set()
    assert first.result(20) == second.result(20) == "done" and calls == ["car-count"]
    going.clear()
    free.clear()
    third = start(method_here("car-paper"), SHORT, TINY)
    assert going.wait(20)
    third.leave()
    free.set()
    with pytest.raises(Stopped):
        third.result(20)
