"""The benchmarks of CAR: verdicts by the validation part, order, epochs that fit, the SVD's term as an oracle, memory. No time is asserted."""

from __future__ import annotations

import argparse
from pathlib import Path

import pytest
import torch

from benchmarks import car, car_retrain, car_speed
from benchmarks.car import ablation_rows, plain_row, verdict
from benchmarks.car_retrain import SEED, epochs_that_fit, retrain, row, same_order, wanted, words
from benchmarks.car_speed import (
    MANY,
    SvdTerm,
    counts_of,
    in_turns,
    labels_of,
    memory_mib,
    settings,
    steps,
    terms,
)
from core.car.regularizer import CAR
from core.lab.tail_answer import sets_won
from core.lab.tail_methods import method_of
from tests.lab.made_tail import QUICK, made_set


def record(name: str, data: str = "pbc", seeds: int = 3, **changes: float) -> dict:
    keys = ("overall", "mean_recall", "head", "medium", "tail", "worst", "worst_classes", "worst_ten", "macro_f1", "wr", "sigma1", "bound",
            "val_overall", "val_mean_recall", "val_worst_classes")  # fmt: skip
    base = dict.fromkeys(keys, 0.5) | changes
    base |= {"worst_classes_train": 0.9, "network": "resnet", "classes": 8}
    known = {"by_seed": {s: {k: base[k] for k in ("overall", "worst_classes")} for s in range(seeds)}}
    return {"data": data, "name": name, "method": method_of(name).label, "seeds": list(range(seeds))} | base | known | {
        f"{k}_sd": 0.01 if seeds > 1 else None for k in (*keys, "worst_classes_train")
    }  # fmt: skip


ROWS = [
    record("ce"),
    record("car-paper", worst_classes=0.9, val_worst_classes=0.4),
    record("car-count", worst_classes=0.6, val_worst_classes=0.7, sigma1=0.4),
    record("car-naive-max", seeds=1, worst_classes=0.55),
    record("ce", "tiny"),
    record("car-count", "tiny", worst_classes=0.6, overall=0.49),
]


@pytest.fixture
def recorded(monkeypatch: pytest.MonkeyPatch) -> list[dict]:
    for module in (car, car_retrain):
        monkeypatch.setattr(module, "table", lambda *_: tuple(ROWS))
    monkeypatch.setattr(car, "other_networks", lambda *_: tuple(r | {"network": "vit"} for r in ROWS[:1]))
    return ROWS


def given(**changes) -> argparse.Namespace:
    base = dict(retrain=None, methods="ce,car", minutes=1.0, data=None, work=None, quick=False)
    return argparse.Namespace(**(base | changes))


def test_the_set_is_won_by_what_validation_chose_and_not_by_what_tests_best(recorded: list[dict]) -> None:
    found = car.run(given())
    first = next(v for v in found["verdicts"] if v["data"] == "pbc")
    assert first["chosen"] == "CAR (count EMA)" and first["won"]
    assert first["worst_classes_gain"] == pytest.approx(10) and first["sigma1_gain"] == pytest.approx(-0.1)
    assert found["sets_won"] == 1 and found["sets_compared"] == 2  # tiny loses a whole point overall
    worse = [*ROWS[:2], record("car-count", worst_classes=0.4, val_worst_classes=0.7)]
    assert not verdict(worse, "pbc", sets_won(worse)["pbc"])["won"]


def test_ablations_say_what_is_recorded_and_how_much_the_seeds_spread(recorded: list[dict]) -> None:
    found = ablation_rows(ROWS)
    memory = next(r for r in found if "forgets nothing" in r["question"])
    assert memory["data"] == "pbc" and memory["worst_classes_gain"] == pytest.approx(5)
    assert memory["seeds"] == 1 and memory["standard_error"] == pytest.approx(100 * 0.01 * 2**0.5)  # borrowed
    assert {r["data"] for r in found} == {"pbc"}


def test_rows_have_the_keys_that_were_promised_and_print(
    recorded: list[dict], capsys: pytest.CaptureFixture[str]
) -> None:
    keys = {"data", "method", "overall", "tail", "worst", "worst_classes", "wr", "sigma1"}
    assert keys <= set(plain_row(ROWS[0])) and {f"{k}_sd" for k in keys - {"data", "method"}} <= set(
        plain_row(ROWS[0])
    )
    car.show_result(car.run(given()))
    said = capsys.readouterr().out
    assert "60.0 ± 1.0" in said and "sets_won" in said and "forgets nothing" in said
    assert (
        "cifar10, seeds of 3: CE 0, CAR (paper) 0" in said
        and "pbc, seeds of 3: logit adjustment 0" in said
        and "Another network" in said
    )


def test_one_seed_and_missing_methods_are_said_and_not_guessed(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    few = (
        record("ce", seeds=1),
        record("car-paper", seeds=1, worst_classes=0.7),
        record("focal", "tiny", seeds=1),
    )
    monkeypatch.setattr(car, "table", lambda *_: few)
    monkeypatch.setattr(car, "other_networks", lambda *_: ())
    found = car.run(given())
    assert found["sets_compared"] == 1 and found["verdicts"][0]["rival"] is None
    assert found["ablations"] == [] and found["sensitivity"] == [] and found["other_networks"] == []
    assert "pbc, seeds of 3: CE 1, CAR (paper) 1, CAR (count EMA) 0, logit adjustment 0" in found["lacking"]
    car.show_result(found)
    assert " ± " not in capsys.readouterr().out.split("The CAR that")[0]


def test_a_rival_without_car_is_named(recorded: list[dict]) -> None:
    rows = [*ROWS, record("adjusted", worst_classes=0.65)]
    found = verdict(rows, "pbc", True)
    assert found["rival"] == "logit adjustment" and found["over_rival"] == pytest.approx(-5)


def test_car_means_the_chosen_one_and_unknown_names_are_refused(recorded: list[dict]) -> None:
    assert [m.name for m in wanted("CE, car", ROWS, "pbc")] == ["ce", "car-count"]
    assert [m.name for m in wanted("car-paper", ROWS, "pbc")] == ["car-paper"]
    with pytest.raises(SystemExit, match="not known"):
        wanted("ce,carr", ROWS, "pbc")
    with pytest.raises(FileNotFoundError, match="no row for focal on pbc"):
        wanted("ce,focal", ROWS, "pbc")
    with pytest.raises(FileNotFoundError, match="no CAR on cifar10"):
        wanted("car", ROWS, "cifar10")


def test_folder_names_of_the_sets_are_understood() -> None:
    parser = argparse.ArgumentParser()
    car.add_arguments(parser)
    for name, key in (
        ("pbc_blood64", "pbc"),
        ("tiny_imagenet200_lt32", "tiny"),
        ("cifar10", "cifar10"),
        ("ham10000", "ham10000"),
    ):
        asked = parser.parse_args(["--retrain", name]).retrain
        assert car.ALIASES.get(asked, asked) == key


def test_epochs_are_cut_to_the_time_and_never_below_two() -> None:
    assert epochs_that_fit(40, 1000, 10) == 40
    assert epochs_that_fit(40, 100, 10) == 8
    assert epochs_that_fit(40, 1, 10) == 2
    assert same_order([{"name": "a", "x": 1, "x_table": 5}, {"name": "b", "x": 2, "x_table": 9}], "x")
    assert same_order([{"name": "a", "x": 0, "x_table": 5}, {"name": "b", "x": 0, "x_table": 9}], "x") is None
    assert "no order" in words(None) and "does not agree" in words(False)
    assert (
        same_order([{"name": "a", "x": 3, "x_table": 5}, {"name": "b", "x": 2, "x_table": 9}], "x") is False
    )


def test_a_pair_is_trained_anew_and_set_beside_the_table(
    recorded: list[dict], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr(car_retrain, "tail_set", lambda *_: made_set())
    monkeypatch.setattr(car_retrain, "schedule_for", lambda *_: QUICK)
    monkeypatch.setattr(
        car_retrain, "row_of", lambda rows, data, name: next(r for r in ROWS if r["name"] == name)
    )
    found = retrain(given(data=tmp_path), "pbc")
    assert [r["name"] for r in found["rows"]] == ["ce", "car-count"] and found["settings"]["new_seed"] == SEED
    assert found["cut"] == "nothing" and found["said"]
    assert found["rows"][1]["worst_classes_table"] == 0.6
    ce, car = (r["worst_classes"] for r in found["rows"])
    assert found["agrees"] is (None if ce == car else ce < car)  # the table has CAR ahead
    quick = retrain(given(data=tmp_path, quick=True), "pbc")
    assert quick["cut"] == "1 of 2 epochs"
    again = row(made_set(), method_of("ce"), QUICK, ROWS)
    assert again["overall"] == pytest.approx(found["rows"][0]["overall"])  # seeded


def test_the_term_by_full_svd_is_the_same_term() -> None:
    rng = torch.Generator().manual_seed(0)
    labels = labels_of(30, rng)
    given_settings = settings().__class__(memory="naive", frequency="max", steps=60)
    ours, theirs = CAR(counts_of(30), given_settings), SvdTerm(counts_of(30), given_settings)
    for _ in range(3):
        logits = torch.randn(128, 30, generator=rng)
        a, b = logits.clone().requires_grad_(), logits.clone().requires_grad_()
        x, y = ours(a, labels), theirs(b, labels)
        x.backward()
        y.backward()
        assert float(x.detach()) == pytest.approx(float(y.detach()), rel=1e-4)
        assert torch.allclose(a.grad, b.grad, atol=1e-6)


def test_turns_are_taken_in_turns_and_warm_ones_are_not_counted() -> None:
    seen: list[str] = []
    taken = in_turns({"a": lambda: seen.append("a"), "b": lambda: seen.append("b")}, 3, 2)
    assert {k: len(v) for k, v in taken.items()} == {"a": 3, "b": 3}
    assert len(seen) == 10 and "".join(seen[:4]) in ("baab", "abba")


def test_works_run_at_other_sizes(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(car_speed, "BATCH", 8)
    for work in (*steps(12, "imagenet", 0).values(), *terms(12, 0).values()):
        work()
    assert memory_mib("VmHWM") >= memory_mib("VmRSS") > 0
    assert counts_of(MANY).shape == (MANY,) and int(counts_of(100)[0]) == 500
