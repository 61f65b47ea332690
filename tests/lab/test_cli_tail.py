"""`confusion` and `tail` from the shell, with files as people have them."""

from __future__ import annotations

import argparse
import csv
import json
from pathlib import Path

import numpy as np
import pytest

from core.lab import cli_tail, tail_queue
from core.lab.cli_tail import add_confusion, add_tail, confusion, planned, planned_others, tail
from core.lab.tail_methods import method_of
from core.lab.tail_own_sample import CLASSES, sample_npz
from core.lab.tail_queue import Job
from core.lab.tail_shelf import SETS, table
from tests.lab.made_tail import QUICK, made_set


def main(*words: str) -> None:
    root = argparse.ArgumentParser()
    commands = root.add_subparsers(dest="command")
    add_confusion(commands)
    add_tail(commands)
    args = root.parse_args(list(words))
    {"confusion": confusion, "tail": tail}[args.command](args)


@pytest.fixture
def sample(tmp_path: Path) -> Path:
    path = tmp_path / "mine.npz"
    path.write_bytes(sample_npz())
    return path


def test_everything_is_written_and_said(sample: Path, capsys: pytest.CaptureFixture[str]) -> None:
    out = sample.parent / "out"
    main("confusion", str(sample), "--weights", "max", "--out", str(out))
    said = capsys.readouterr().out
    assert {p.name for p in out.iterdir()} == {"classes.csv", "flows.csv", "confusion.json", "report.html"}
    kept = json.loads((out / "confusion.json").read_text(encoding="utf-8"))
    assert kept["classes"] == list(CLASSES) and kept["settings"]["weights"] == "max"
    rows = list(csv.DictReader((out / "classes.csv").open(encoding="utf-8")))
    worst = min(rows, key=lambda r: float(r["recall"]))
    assert worst["class"] == kept["worst_class"] and f"“{worst['class']}”" in said
    assert "WR" in said and "σ₁ with Λ" in said and "report.html are in" in said
    assert kept["worst_class"] in (out / "report.html").read_text(encoding="utf-8")


def test_which_side_is_the_truth_ends_the_command_with_the_flag_that_says_it(tmp_path: Path) -> None:
    (tmp_path / "m.csv").write_text(",ash,oak\nash,8,2\noak,5,15\n")
    with pytest.raises(ValueError, match=r"--truth rows .* --truth columns"):
        main("confusion", str(tmp_path / "m.csv"), "--out", str(tmp_path / "a"))
    assert not (tmp_path / "a").exists()
    worst = {}
    for side in ("rows", "columns"):
        main("confusion", str(tmp_path / "m.csv"), "--truth", side, "--out", str(tmp_path / side))
        worst[side] = json.loads((tmp_path / side / "confusion.json").read_text(encoding="utf-8"))["figures"][
            "worst class"
        ]
    assert worst == pytest.approx({"rows": 15 / 20, "columns": 8 / 13})


def test_counts_train_and_classes_come_from_flags_and_files(tmp_path: Path) -> None:
    rng = np.random.default_rng(0)
    y = rng.integers(0, 3, 60)
    said = np.where(rng.random(60) < 0.7, y, 0)
    for name in ("test", "train"):
        np.savez(tmp_path / f"{name}.npz", labels=y, predicted=said if name == "test" else y)
    (tmp_path / "n.csv").write_text("class,count\na,5\nb,50\nc,500\n")
    words = ("--train", str(tmp_path / "train.npz"), "--classes", "a, b, c")
    found = []
    for counts in (str(tmp_path / "n.csv"), "5,50,500"):
        main(
            "confusion", str(tmp_path / "test.npz"), *words, "--counts", counts, "--out", str(tmp_path / "o")
        )
        found.append(json.loads((tmp_path / "o" / "confusion.json").read_text(encoding="utf-8")))
    keys = ("classes", "counts", "figures", "sentences", "per_class")
    assert [found[0][k] for k in keys] == [found[1][k] for k in keys]
    assert found[0]["classes"] == ["c", "b", "a"] and found[0]["counts"] == [500, 50, 5]
    assert found[0]["figures"]["WR"] == pytest.approx(found[0]["figures"]["worst class"])


def test_questions_are_answered_by_flags_and_bad_words_are_sentences(tmp_path: Path) -> None:
    y = np.array([0, 1, 2, 7])
    np.savez(tmp_path / "m.npz", labels=y, logits=np.eye(4)[[0, 0, 2, 3]])
    with pytest.raises(ValueError, match='--answer labels="leave out"'):
        main("confusion", str(tmp_path / "m.npz"), "--out", str(tmp_path / "o"))
    with pytest.raises(ValueError, match="QUESTION=CHOICE"):
        main("confusion", str(tmp_path / "m.npz"), "--answer", "labels", "--out", str(tmp_path / "o"))
    main("confusion", str(tmp_path / "m.npz"), "--answer", "labels=leave out", "--out", str(tmp_path / "o"))
    assert json.loads((tmp_path / "o" / "confusion.json").read_text(encoding="utf-8"))["left_out"] == 1
    with pytest.raises(FileNotFoundError, match=r"no file or folder lost\.csv"):
        main("confusion", str(tmp_path / "lost.csv"), "--out", str(tmp_path / "o"))
    (tmp_path / "empty").mkdir()
    with pytest.raises(ValueError, match="holds no csv"):
        main("confusion", str(tmp_path / "empty"), "--out", str(tmp_path / "o"))


# tail --------------------------------------------------------------------------


def test_the_plan_holds_what_was_promised_once_each() -> None:
    jobs = planned()
    assert len(set(jobs)) == len(jobs) and all(method_of(j.method).name == j.method for j in jobs)
    for name in SETS:
        for method in ("ce", "adjusted", "car-paper", "car-count"):
            assert {j.seed for j in jobs if (j.set, j.method) == (name, method)} == {0, 1, 2}
        assert {j.method for j in jobs if j.set == name} >= {"focal", "ldam", "balanced"}
    extra = {j.method for j in jobs if j.set == "pbc"}
    assert {
        "car-no-weights",
        "car-no-ema",
        "car-cutmix",
        "car-count@beta=0.9",
        "car-count@r0=0.05",
        "car-count@gamma=1",
    } <= extra
    assert jobs[0] == Job("pbc", "ce", 0) and Job("ham10000", "car-count@alpha=0.2", 0) in jobs
    assert planned_others() == [Job("pbc", "ce", 0), Job("pbc", "car-count", 0)]


def test_it_trains_what_is_missing_records_it_and_says_what_is_left(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    made = made_set()
    monkeypatch.setattr(tail_queue, "tail_set", lambda *_: made.__class__(**{**made.__dict__, "name": "pbc"}))
    monkeypatch.setattr("core.lab.tail_schedule.schedule_for", lambda *_: QUICK)
    plan = tmp_path / "plan.txt"
    plan.write_text("pbc ce 0\npbc car-count 0\ntiny ce 0\n")
    words = (
        "tail",
        "--work",
        str(tmp_path / "w"),
        "--out",
        str(tmp_path / "o"),
        "--plan",
        str(plan),
        "--sets",
        "pbc",
    )
    main(*words, "--status")
    assert "0 of 2 runs are finished" in capsys.readouterr().out
    with pytest.raises(ValueError, match="--data"):
        main(*words)
    with pytest.raises(FileNotFoundError, match="No finished run"):
        main(*words, "--record-only")
    main(*words, "--data", str(tmp_path), "--train-only")
    assert "2 runs finished here; 0 of 2" in capsys.readouterr().out and not (tmp_path / "o").exists()
    main(*words, "--record-only")
    assert "Written: car.json" in capsys.readouterr().out
    assert [r["name"] for r in table(tmp_path / "o")] == ["ce", "car-count"]
    main(*words, "--data", str(tmp_path))
    assert "0 runs finished here" in capsys.readouterr().out


def test_unknown_sets_and_plans_are_refused(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="Unknown sets: mnist"):
        main("tail", "--sets", "pbc,mnist")
    with pytest.raises(FileNotFoundError, match="no plan"):
        main("tail", "--plan", str(tmp_path / "no.txt"), "--status")
    assert cli_tail.ABLATED in SETS
