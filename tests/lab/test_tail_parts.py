"""Parts and settings of CAR in figures and words: pairs over shared seeds, noise from the seed alone, verdicts both ways, and another network."""

from __future__ import annotations

import json
import math
from pathlib import Path

import numpy as np
import pytest

from core.lab.tail_parts import (
    ablation_words,
    ablations,
    network_words,
    sensitivities,
    sensitivity_words,
)
from core.lab.tail_record import read_runs
from core.lab.tail_shelf import other_networks, table, write_shelf
from tests.lab import made_confusion as made
from tests.lab.made_confusion import finished, rows_with


def test_ablations_say_which_way_they_fell() -> None:
    up = rows_with(("car-count", [0.50, 0.51, 0.52]), ("car-no-weights", [0.40, 0.41, 0.43]))
    (one,) = ablations(up)
    assert one.question == "Λ, weights of classes" and ablation_words(one).endswith("It helps.")
    assert "Blood cells +9.7 (41.3 → 51.0\u00a0%, ± 2.9, 3 seeds)" in ablation_words(one)
    down = rows_with(("car-count", [0.40, 0.41, 0.43]), ("car-no-weights", [0.50, 0.51, 0.52]))
    assert ablation_words(ablations(down)[0]).endswith("It harms.") and "−9.7" in ablation_words(
        ablations(down)[0]
    )
    level = rows_with(("car-count", [0.40, 0.44, 0.43]), ("car-no-weights", [0.41, 0.43, 0.43]))
    assert ablation_words(ablations(level)[0]).endswith("No more than another seed would make.")
    once = rows_with(("car-count", [0.4]), ("car-no-weights", [0.5]))
    assert ablation_words(ablations(once)[0]).endswith("One seed settles nothing.")
    assert "one seed)" in ablation_words(ablations(once)[0])


def test_one_clear_answer_among_many_questions_is_no_more_than_one_would_expect() -> None:
    rows = rows_with(("car-count", [0.50, 0.51, 0.52]), ("car-no-weights", [0.455, 0.465, 0.495]))
    (one,) = ablations(rows)
    d = one.sets["pbc"]
    assert d.clear and not d.clear_among(9)
    assert ablation_words(one).endswith("It helps.")
    assert ablation_words(one, 9).endswith("Clear by itself, but not as one of 9 such questions.")


def test_what_car_stands_beside_is_told_where_it_lies_below_ce() -> None:
    rows = rows_with(("ce", [0.4, 0.41]), ("ce-cutmix", [0.1, 0.11]), ("car-cutmix", [0.45, 0.46]))
    (one,) = ablations(rows)
    assert one.plain == {"pbc": pytest.approx(0.405)}
    assert ablation_words(one).endswith("Without CAR it lies below CE alone on Blood cells (40\u00a0%).")
    rows[1]["by_seed"] = {s: {"worst_classes": 0.42, "overall": 0.8} for s in (0, 1)}
    assert "below CE alone" not in ablation_words(ablations(rows)[0])


def test_settings_stand_beside_their_usual_value_at_one_seed() -> None:
    found = sensitivities(made.table())
    assert [(s.field, s.values, s.usual) for s in found] == [
        ("alpha", (0.2, 0.5, 2.0), 0.5),
        ("beta", (0.5, 0.9), 0.5),
    ]
    alpha = found[0]
    assert alpha.worst == pytest.approx((0.45, 0.54, 0.39)) and alpha.reference == pytest.approx(0.39)
    said = sensitivity_words(alpha)
    assert "from 39.0\u00a0% (at 2) to 54.0\u00a0% (at 0.5); the usual value is 0.5" in said
    assert (
        "At 2 CAR is no better than CE" in said
        and "often lie apart (" in said
        and "α (1 − β)" in sensitivity_words(found[1])
    )
    assert "CAR stays above CE throughout" in sensitivity_words(found[1])
    alone = [made.row("pbc", "car-count", 0.5, seeds=1), made.row("pbc", "car-count@r0=0.05", 0.4, seeds=1)]
    (r0,) = sensitivities(alone)
    assert math.isnan(r0.reference) and sensitivity_words(r0).endswith("One seed settles nothing.")
    assert sensitivities([made.row("pbc", "car-count@r0=0.05", 0.4)]) == ()  # nothing to stand beside
    assert sensitivities([*alone, made.row("pbc", "car-count@r0=0.05,beta=0.9", 0.4)])[0].values == (
        0.05,
        0.2,
    )


def test_another_network_is_told_beside_the_table_s() -> None:
    (said,) = network_words(made.table(), made.other_networks())
    assert (
        "ViT-Tiny" in said
        and "from 20.0\u00a0% under CE to 30.0\u00a0% under CAR (count EMA) (+10.0 points)" in said
    )
    assert "the same way" in said and said.endswith("One seed each.")
    assert (
        "the other way"
        in network_words(
            [made.row("pbc", "ce", 0.5), made.row("pbc", "car-count", 0.4)], made.other_networks()
        )[0]
    )
    assert network_words(made.table(), ()) == []


def test_where_neither_learns_the_classes_nothing_is_compared() -> None:
    pair = [made.row("pbc", name, 0.0, seeds=1) | {"network": "vit"} for name in ("ce", "car-count")]
    (said,) = network_words(made.table(), pair)
    assert "neither learns these classes, so nothing is compared" in said
    assert "the same way" not in said and "the other way" not in said


def test_another_network_is_recorded_apart_and_two_schedules_are_refused(tmp_path: Path) -> None:
    work, out = tmp_path / "work", tmp_path / "out"
    for method in ("ce", "car-count"):
        finished(work, method)
        finished(work / "vit", method, net="vit")
    write_shelf(work, out)
    assert [r["network"] for r in table(out)] == ["resnet", "resnet"]
    assert [(r["name"], r["network"]) for r in other_networks(out)] == [("ce", "vit"), ("car-count", "vit")]
    ce = table(out)[0]
    run = made.record("ce")
    last, learned = (np.diag(m) / m.sum(0) for m in (run.test[-1], run.train[-1]))
    who = np.argsort(last, kind="stable")[:2]
    assert ce["worst_classes"] == pytest.approx(last[who].mean(), abs=1e-3)
    assert ce["worst_classes_train"] == pytest.approx(learned[who].mean(), abs=1e-3)
    assert ce["by_seed"][0]["overall"] == pytest.approx(ce["overall"]) and ce["classes"] == 8
    finished(work, "car-count", 1, epochs=15)
    with pytest.raises(
        ValueError, match="two ways: car-count-s0 with epochs 40 and car-count-s1 with epochs 15"
    ):
        write_shelf(work, out)


def test_runs_ship_with_the_table_and_give_it_again(tmp_path: Path) -> None:
    work, out = tmp_path / "work", tmp_path / "out"
    for method in ("ce", "car-count"):
        finished(work, method)
        finished(work / "vit", method, net="vit")
    write_shelf(work, out)
    first = (out / "results" / "car.json").read_bytes()
    shipped, made_here = read_runs(out / "tail" / "runs"), read_runs(work)
    assert len(shipped) == 2 and len(read_runs(out / "tail" / "runs" / "vit")) == 2
    for a, b in zip(shipped, made_here, strict=True):
        assert a.facts == b.facts and a.arrays.keys() == b.arrays.keys()
        for key in a.arrays:
            np.testing.assert_array_equal(
                a.arrays[key], b.arrays[key][-1:] if key == "val" else b.arrays[key]
            )
    (out / "results" / "car.json").unlink()
    for folder in (out, tmp_path / "other"):  # in place, and as a working folder that goes on
        write_shelf(out / "tail" / "runs", folder)
        assert (folder / "results" / "car.json").read_bytes() == first
    packed = [np.load(f / "tail" / "pbc.npz") for f in (out, tmp_path / "other")]
    assert all(np.array_equal(packed[0][k], packed[1][k]) for k in packed[0].files)


def test_a_record_without_other_networks_has_none(tmp_path: Path) -> None:
    finished(tmp_path / "work", "ce")
    write_shelf(tmp_path / "work", tmp_path / "out")
    path = tmp_path / "out" / "results" / "car.json"
    whole = json.loads(path.read_text())
    del whole["other_networks"]
    path.write_text(json.dumps(whole))
    assert other_networks(tmp_path / "out") == ()
