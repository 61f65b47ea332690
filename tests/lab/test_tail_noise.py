"""Chance in a difference of two long-tail methods: seeds, and test images."""

from __future__ import annotations

import math
from pathlib import Path

import numpy as np
import pytest

from core.lab.tail_noise import chance_words, difference, seed_noise
from core.lab.tail_shelf import table, write_shelf
from tests.lab import made_confusion as made
from tests.lab.made_confusion import finished, rows_with


def test_shared_seeds_are_compared_in_pairs_and_weighed_by_what_their_kind_varies() -> None:
    a, b = [0.50, 0.60, 0.70], [0.45, 0.50, 0.69]
    d = difference(rows_with(("car-count", a), ("car-no-weights", b)), "pbc", "car-count", "car-no-weights")
    gaps = np.subtract(a, b)
    assert d is not None and d.seeds == 3
    assert d.worst == pytest.approx(gaps.mean()) and d.noise == pytest.approx(
        math.sqrt((np.var(a, ddof=1) + np.var(b, ddof=1)) / 2) * math.sqrt(2 / 3)
    )
    assert not d.clear and difference([], "pbc", "car-count", "ce") is None


def test_one_shared_seed_is_compared_at_that_seed_and_borrows_its_noise() -> None:
    ce = [0.3, 0.3, 0.36, 0.4]
    rows = rows_with(("car-count", [0.50, 0.60, 0.70]), ("car-no-weights", [0.2]), ("ce", ce))
    whole = math.sqrt((2 * 0.1**2 + 3 * np.var(ce, ddof=1)) / 5)
    assert seed_noise(rows, "pbc") == (pytest.approx(whole), 5) and seed_noise(rows, "tiny") is None
    assert seed_noise(rows, "pbc", True) == (pytest.approx(0.1), 2)
    d = difference(rows, "pbc", "car-count", "car-no-weights")
    assert d is not None and d.worst == pytest.approx(0.3) and d.noise == pytest.approx(0.1 * math.sqrt(2))
    assert d.freedom == 2 and d.reach == pytest.approx(4.30265 * 0.1 * math.sqrt(2)) and not d.clear
    mixed = difference(rows, "pbc", "car-count", "ce")
    assert mixed is not None and mixed.seeds == 3 and mixed.freedom == 5
    assert mixed.noise == pytest.approx(math.sqrt((0.1**2 + np.var(ce, ddof=1)) / 3))


def test_a_kind_without_a_second_seed_borrows_the_noise_of_all() -> None:
    rows = rows_with(("car-count", [0.5]), ("car-no-weights", [0.2]), ("ce", [0.30, 0.31]))
    d = difference(rows, "pbc", "car-count", "car-no-weights")
    assert d is not None and d.noise == pytest.approx(math.sqrt(2) * float(np.std([0.30, 0.31], ddof=1)))
    assert d.freedom == 1 and d.clear == (12.7062 * d.noise < 0.3)


def test_the_error_from_test_images_is_what_drawing_them_anew_gives(tmp_path: Path) -> None:
    for data in ("pbc", "tiny"):
        work, out = tmp_path / data, tmp_path / f"out-{data}"
        finished(work, "ce", data=data)
        write_shelf(work, out)
        (row,) = table(out)
        run = made.record("ce", data)
        tested = run.test[-1].sum(0).astype(int)
        recall = np.diag(run.test[-1]) / tested
        who = np.argsort(recall, kind="stable")[:2] if data == "pbc" else np.flatnonzero(run.counts < 20)
        assert row["worst_classes"] == pytest.approx(recall[who].mean(), abs=1e-3)
        drawn = np.random.default_rng(0).binomial(tested[who], recall[who], (20000, len(who))) / tested[who]
        assert row["by_seed"][0]["error"] == pytest.approx(drawn.mean(1).std(), rel=0.03)


def test_what_is_more_than_chance_is_named_set_by_set() -> None:
    ce, car = rows_with(("ce", [0.30, 0.31, 0.32]), ("car-count", [0.50, 0.51, 0.52]))
    said = chance_words([ce, car])
    assert "Blood cells +20.0 (± 2.3, 3 seeds)" in said and said.endswith(" More than chance on Blood cells.")
    near = rows_with(("ce", [0.30, 0.40, 0.50]), ("car-count", [0.35, 0.41, 0.52]))
    assert chance_words(near).endswith(" No more than chance on Blood cells.")

    def once(name: str, worst: float, error: float) -> dict:
        (one,) = rows_with((name, [worst]))
        one["data"] = "tiny"
        one["by_seed"][0]["error"] = error
        return one

    tiny = [once("ce", 0.004, 0.0012), once("car-count", 0.007, 0.0016)]
    d = difference(tiny, "tiny", "car-count", "ce")
    assert d is not None and d.noise is None and d.sampling == pytest.approx(0.002)
    said = chance_words([ce, car, *tiny])
    assert "Tiny ImageNet +0.3 (± 0.4 from its test images alone, one seed)" in said
    assert said.endswith("More than chance on Blood cells. No more than chance on Tiny ImageNet.")
    clear = [once("ce", 0.004, 0.0012), once("car-count", 0.017, 0.0016)]
    assert chance_words([*near, *clear]).endswith(
        "More than chance on Tiny ImageNet. No more than chance on Blood cells."
    )
    unknown = [once("ce", 0.1, math.nan), once("car-count", 0.9, math.nan)]
    assert "Tiny ImageNet +80.0 (one seed)" in chance_words(unknown)
    assert chance_words(unknown).endswith(" One seed settles nothing on Tiny ImageNet.")
    assert chance_words([ce]) == ""
