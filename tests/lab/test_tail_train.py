"""Long-tail runs from a made-up set: resuming changes nothing, every method trains, records hold what tables ask, plans are walked once."""

from __future__ import annotations

import json
from dataclasses import replace
from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest
import torch

from core.car.metrics import figures_of
from core.data.tar_images import read_set
from core.lab.tail_batches import crop_and_flip, cutmix, to_input
from core.lab.tail_classify import classify, load_classifier
from core.lab.tail_methods import METHODS, TailLoss, method_of
from core.lab.tail_queue import Job, command, is_done, locked, parser, read_plan, schedule_of, walk
from core.lab.tail_record import epochs_to_keep, gather, pack, read_run, read_runs
from core.lab.tail_schedule import VIT, Schedule, rate_at, schedule_for
from core.lab.tail_sets import SETS, tail_set
from core.lab.tail_train import score, state_epoch, train_run
from tests.lab.made_tail import QUICK, made_set

pytestmark = pytest.mark.filterwarnings("ignore:.*lr_scheduler.*")


@pytest.fixture(scope="module")
def data():
    return made_set()


@pytest.mark.parametrize("name", ["car-count", "car-cutmix", "ldam"])
def test_a_stopped_run_goes_on_to_the_same_numbers(data, tmp_path: Path, name: str) -> None:
    schedule = replace(QUICK, epochs=3)
    method = method_of(name)
    whole = train_run(data, method, 0, schedule, tmp_path / "whole")
    for _ in range(2):
        assert train_run(data, method, 0, schedule, tmp_path / "parts", stop_after=1) is None
    parts = train_run(data, method, 0, schedule, tmp_path / "parts")
    assert whole is not None
    assert parts is not None
    for key in set(whole.arrays) - {"seconds"}:
        assert np.array_equal(whole.arrays[key], parts.arrays[key]), key
    assert whole.figures == parts.figures
    weights = [(tmp_path / w / "made" / f"{name}-s0.safetensors").read_bytes() for w in ("whole", "parts")]
    assert weights[0] == weights[1]
    assert not list((tmp_path / "parts").rglob("*.state"))
    assert not list((tmp_path / "parts").rglob("*.part*"))


def test_a_seed_is_a_run_and_another_seed_another(data, tmp_path: Path) -> None:
    one, same, other = (
        train_run(data, method_of("ce"), seed, QUICK, tmp_path / name)
        for name, seed in (("a", 0), ("b", 0), ("c", 1))
    )
    assert np.array_equal(one.arrays["train_loss"], same.arrays["train_loss"])
    assert not np.array_equal(one.arrays["train_loss"], other.arrays["train_loss"])


@pytest.mark.parametrize("name", sorted(METHODS))
def test_every_method_takes_a_step_that_changes_its_network(data, name: str) -> None:
    from core.lab.tail_schedule import build_classifier, optimiser_of
    from core.lab.tail_train import train_epoch

    method = method_of(name)
    model = build_classifier(QUICK, 3, method.head, torch.Generator().manual_seed(0))
    before = model.head.weight.detach().clone()
    loss = TailLoss(method, data.counts, 2)
    value, term = train_epoch(model, optimiser_of(model, QUICK), loss, data, QUICK, 0, 0)
    assert np.isfinite(value)
    assert (term > 0) == (method.car is not None)
    assert not torch.equal(before, model.head.weight)


def test_a_run_holds_what_tables_and_pages_ask(data, tmp_path: Path) -> None:
    told: list[dict] = []
    record = train_run(
        data,
        method_of("car-paper"),
        0,
        QUICK,
        tmp_path,
        lambda done, total, now: told.append({"done": done, **now}),
    )
    assert [t["done"] for t in told] == [1, 2]
    a = record.arrays
    assert a["test"].shape == a["val"].shape == (2, 3, 3)
    assert a["test"].dtype == np.uint8  # eight test images a class
    assert a["train_epochs"].tolist() == [0, 1]
    assert a["train"].shape == (2, 3, 3)
    assert (a["test"].sum(1) == 8).all()  # columns are true classes
    assert a["train"][-1].sum(0).tolist() == data.counts.tolist()
    assert a["singular"].shape == (2, 3)
    assert a["term"].min() > 0
    again = read_run(tmp_path / "made" / "car-paper-s0.json")
    f = again.figures
    want = figures_of(a["test"][-1], data.counts)
    assert f["test"]["overall"] == pytest.approx(want.overall)
    assert f["test"]["worst_classes"] == pytest.approx(want.worst_classes)
    assert f["sigma1"] == pytest.approx(float(a["singular"][-1, 0]), rel=1e-5)
    assert f["worst_error"] <= f["bound"] + 1e-9
    text = (tmp_path / "made" / "car-paper-s0.json").read_text()
    json.loads(text, parse_constant=lambda c: pytest.fail(f"{c} is no JSON"))
    assert str(tmp_path) not in text


def test_a_finished_run_is_read_and_one_of_other_settings_is_refused(data, tmp_path: Path) -> None:
    first = train_run(data, method_of("ce"), 0, QUICK, tmp_path)
    steps: list[int] = []
    second = train_run(data, method_of("ce"), 0, QUICK, tmp_path, lambda d, t, n: steps.append(d))
    assert steps == []
    assert first.figures == second.figures
    with pytest.raises(ValueError, match="another schedule"):
        train_run(data, method_of("ce"), 0, replace(QUICK, epochs=3), tmp_path)


def test_the_state_of_other_settings_is_not_gone_on_from(data, tmp_path: Path) -> None:
    train_run(data, method_of("ce"), 0, QUICK, tmp_path, stop_after=1)
    state = tmp_path / "made" / "ce-s0.state"
    assert state_epoch(state, "another key") == 0
    assert state_epoch(tmp_path / "none", "key") == 0
    record = train_run(data, method_of("ce"), 0, replace(QUICK, learning_rate=0.01), tmp_path)
    assert len(record.arrays["test"]) == 2


def test_a_network_that_goes_astray_is_said_in_words(data, tmp_path: Path) -> None:
    wild = replace(QUICK, learning_rate=1e12)
    for name in ("ce", "car-count"):
        with pytest.raises(ValueError, match="learning rate"):
            train_run(data, method_of(name), 0, wild, tmp_path)


def test_scores_are_those_of_a_plain_loop_and_leave_the_network_alone(data) -> None:
    from core.lab.tail_schedule import build_classifier

    model = build_classifier(QUICK, 3, "linear", torch.Generator().manual_seed(0))
    model.train()
    model(to_input(data.train.images[:16], data.mean, data.std))
    before = {k: v.clone() for k, v in model.state_dict().items()}
    matrix, loss = score(model, data.test, data, QUICK, batch=5)
    assert all(torch.equal(v, before[k]) for k, v in model.state_dict().items())
    model.eval()
    want, total = np.zeros((3, 3), int), 0.0
    for image, label in zip(data.test.images, data.test.labels, strict=True):
        with torch.no_grad():
            logits = model(to_input(image[None], data.mean, data.std))
        want[int(logits.argmax()), int(label)] += 1
        total += float(torch.nn.functional.cross_entropy(logits, label[None])) / len(data.test)
    assert np.array_equal(matrix, want)
    assert loss == pytest.approx(total, rel=1e-4)


def test_the_transformer_trains_and_goes_on_too(data, tmp_path: Path) -> None:
    pytest.importorskip("timm")
    schedule = replace(VIT, width=12, depth=1, patch=8, epochs=2, batch=16, bfloat16=False)
    whole = train_run(data, method_of("car-count"), 0, schedule, tmp_path / "a")
    train_run(data, method_of("car-count"), 0, schedule, tmp_path / "b", stop_after=1)
    parts = train_run(data, method_of("car-count"), 0, schedule, tmp_path / "b")
    assert np.array_equal(whole.arrays["train_loss"], parts.arrays["train_loss"])
    with pytest.raises(ValueError, match="cosine head"):
        train_run(data, method_of("ldam"), 0, schedule, tmp_path)


def test_a_trained_network_can_be_asked_about_a_picture(data, tmp_path: Path) -> None:
    record = train_run(data, method_of("ldam"), 0, QUICK, tmp_path)
    classifier = load_classifier(tmp_path / "made" / "ldam-s0.safetensors")
    assert classifier.classes == ("red", "green", "rust")
    logits = classify(classifier, list(data.test.images.numpy()))
    assert logits.shape == (24, 3)
    matrix = np.zeros((3, 3), int)
    np.add.at(matrix, (logits.argmax(1), data.test.labels.numpy()), 1)
    assert np.abs(matrix - record.arrays["test"][-1].astype(int)).sum() <= 2  # weights are stored in float16


def test_crops_and_flips_move_pixels_and_invent_none() -> None:
    images = torch.arange(1, 8 * 8 * 3 + 1, dtype=torch.uint8).reshape(1, 8, 8, 3).repeat(64, 1, 1, 1)
    moved = crop_and_flip(images, torch.Generator().manual_seed(0), pad=2)
    assert moved.shape == images.shape
    same = crop_and_flip(images, torch.Generator().manual_seed(0), pad=2)
    assert torch.equal(moved, same)
    whole = images[0]
    framed = torch.zeros(12, 12, 3, dtype=torch.uint8)
    framed[2:10, 2:10] = whole
    windows = [framed[t : t + 8, left : left + 8] for t in range(5) for left in range(5)]
    windows += [w.flip(1) for w in windows]
    found = {next(i for i, w in enumerate(windows) if torch.equal(m, w)) for m in moved}
    assert len(found) > 20  # and every one was found among the allowed windows
    still = crop_and_flip(images, torch.Generator().manual_seed(1), pad=0)
    assert {torch.equal(m, whole) for m in still} == {True, False}


def test_cutmix_pastes_the_share_that_it_says() -> None:
    x = torch.arange(6.0)[:, None, None, None].expand(6, 3, 16, 16)
    labels = torch.arange(6)
    shares = []
    for seed in range(30):
        mixed, pasted, own = cutmix(x, labels, torch.Generator().manual_seed(seed))
        shares.append(own)
        own_pixels = (mixed == x).float().mean((1, 2, 3))
        foreign = pasted != labels
        torch.testing.assert_close(own_pixels[foreign], torch.full_like(own_pixels[foreign], own))
        if own < 1:
            values = mixed[foreign]
            assert ((values == x[foreign]) | (values == pasted[foreign, None, None, None])).all()
    assert sum(s == 1.0 for s in shares) > 5
    assert min(shares) < 0.7


def test_cutmix_loss_is_the_mixture_and_car_takes_the_larger_part(data) -> None:
    loss = TailLoss(method_of("ce-cutmix"), data.counts, 2)
    logits = torch.randn(4, 3, generator=torch.Generator().manual_seed(0))
    a, b = torch.tensor([0, 1, 2, 0]), torch.tensor([1, 1, 0, 2])
    ce = torch.nn.functional.cross_entropy
    torch.testing.assert_close(loss(logits, a, 0, b, 0.3)[0], 0.3 * ce(logits, a) + 0.7 * ce(logits, b))
    for own, labels in ((0.3, b), (0.7, a)):
        mixed = TailLoss(method_of("car-cutmix"), data.counts, 2)
        plain = TailLoss(method_of("car-count"), data.counts, 2)
        assert mixed(logits, a, 0, b, own)[1] == plain(logits, labels, 0)[1]


def test_names_carry_settings_and_nonsense_is_refused() -> None:
    changed = method_of("car-count@beta=0.9,r0=0.05,weighted=False")
    assert changed.car is not None
    assert (changed.car.beta, changed.car.r0, changed.car.weighted) == (0.9, 0.05, False)
    assert changed.car.memory == "count"
    assert "beta 0.9" in changed.label
    for wrong, words in (
        ("bert", "not known"),
        ("ce@beta=1", "no regularizer"),
        ("car-count@size=1", "no setting 'size'"),
        ("car-count@beta=much", "needs a number"),
        ("car-count@beta=2", "cannot be above"),
    ):
        with pytest.raises(ValueError, match=words):
            method_of(wrong)


def test_the_step_size_rises_and_falls_to_zero() -> None:
    schedule = Schedule(learning_rate=1.0, warmup=0.1)
    rates = [rate_at(s, 100, schedule) for s in range(101)]
    assert rates[9] == max(rates) == 1.0
    assert rates[0] == pytest.approx(0.1)
    assert rates[100] == pytest.approx(0.0)
    assert all(a >= b for a, b in pairwise(rates[9:]))


def test_runs_are_gathered_over_seeds_and_packed(data, tmp_path: Path) -> None:
    for seed in (0, 1):
        train_run(data, method_of("ce"), seed, QUICK, tmp_path)
    train_run(data, method_of("car-paper"), 0, QUICK, tmp_path)
    runs = read_runs(tmp_path)
    assert [(r.method, r.seed) for r in runs] == [("car-paper", 0), ("ce", 0), ("ce", 1)]
    rows = {row["name"]: row for row in gather(runs)}
    ce = [r.figures["test"]["overall"] for r in runs if r.method == "ce"]
    assert rows["ce"]["overall"] == pytest.approx(np.mean(ce))
    assert rows["ce"]["overall_sd"] == pytest.approx(np.std(ce, ddof=1))
    assert rows["car-paper"]["method"] == "CAR (paper)"
    assert rows["car-paper"]["wr_sd"] is None
    assert rows["ce"]["val_overall"] == pytest.approx(
        np.mean([r.figures["val"]["overall"] for r in runs if r.method == "ce"])
    )
    with np.load(pack(runs, tmp_path / "out" / "made.npz", frames=2)) as packed:
        assert packed["ce-s1/epochs"].tolist() == [0, 1]
        assert np.array_equal(packed["ce-s1/test"], runs[2].arrays["test"])
        assert packed["car-paper-s0/singular"].shape == (2, 3)
    assert epochs_to_keep(40, 5).tolist() == [0, 10, 20, 29, 39]
    assert epochs_to_keep(1, 5).tolist() == [0]
    (tmp_path / "made" / "bad-s0.json").write_text("{}")
    with pytest.raises(ValueError, match="bad-s0.json is no record"):
        read_runs(tmp_path)


def test_a_plan_is_walked_once_and_a_locked_run_is_left_to_its_holder(data, tmp_path: Path) -> None:
    jobs = [Job("made", "ce", 0), Job("made", "car-count", 0)]
    with locked(tmp_path / "locks" / "made-ce-s0.lock") as mine:
        assert mine
        with locked(tmp_path / "locks" / "made-ce-s0.lock") as other:
            assert not other
        assert walk(jobs, tmp_path, tmp_path, lambda _: QUICK, sets={"made": data}) == 1
    assert not is_done(tmp_path, jobs[0])
    assert is_done(tmp_path, jobs[1])
    assert walk(jobs, tmp_path, tmp_path, lambda _: QUICK, sets={"made": data}) == 1
    assert walk(jobs, tmp_path, tmp_path, lambda _: QUICK, sets={"made": data}) == 0
    assert (
        walk([Job("made", "focal", 0)], tmp_path, tmp_path, lambda _: QUICK, minutes=-1, sets={"made": data})
        == 0
    )


def test_a_run_that_fails_does_not_end_the_walk(
    data, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    jobs = [Job("made", "ce", 0), Job("made", "focal", 0)]
    walk(jobs[:1], tmp_path, tmp_path, lambda _: QUICK, sets={"made": data})
    (tmp_path / "made" / "ce-s0.json").rename(tmp_path / "made" / "gone.txt")
    assert (
        walk(jobs, tmp_path, tmp_path, lambda _: replace(QUICK, learning_rate=1e12), sets={"made": data}) == 0
    )
    assert "made ce 0 failed" in caplog.text
    assert "made focal 0 failed" in caplog.text


def test_flags_change_the_schedule_of_a_set() -> None:
    given = parser().parse_args(["--epochs", "3", "--no-bfloat16"])
    assert schedule_of(given, "cifar10") == replace(schedule_for("cifar10"), epochs=3, bfloat16=False)
    assert schedule_for("cifar10").epochs < schedule_for("pbc").epochs == schedule_for("of my own").epochs
    assert schedule_for("pbc", "vit").net == "vit"


def test_plans_are_read_and_a_wrong_line_is_named(tmp_path: Path) -> None:
    plan = tmp_path / "plan.txt"
    plan.write_text("# first\npbc ce 0\n\ntiny car-count@beta=0.9 2  # later\n")
    assert read_plan(plan) == [Job("pbc", "ce", 0), Job("tiny", "car-count@beta=0.9", 2)]
    for line, words in (
        ("pbc ce", "SET METHOD SEED"),
        ("mnist ce 0", "'mnist' is not known"),
        ("pbc ce zero", "zero"),
    ):
        plan.write_text(f"pbc ce 0\n{line}\n")
        with pytest.raises(ValueError, match=rf"Line 2 of plan.txt: .*{words}"):
            read_plan(plan)


def test_the_command_line_answers_in_one_sentence(tmp_path: Path, capsys: pytest.CaptureFixture) -> None:
    assert command(["--set", "pbc", "--method", "ce"]) == 2
    assert "--data" in capsys.readouterr().err
    assert command(["--set", "pbc", "--method", "ce", "--data", str(tmp_path), "--work", str(tmp_path)]) == 2
    assert "No data set at" in capsys.readouterr().err
    assert command(["queue", "--data", str(tmp_path)]) == 2
    assert "Give a plan" in capsys.readouterr().err
    plan = tmp_path / "plan.txt"
    plan.write_text("pbc ce 0\n")
    assert command(["status", str(plan), "--work", str(tmp_path)]) == 0
    assert "0 of 1" in capsys.readouterr().out
    assert command(["--method", "ce", "--data", str(tmp_path)]) == 2
    assert "--set" in capsys.readouterr().err


def test_no_image_is_on_two_sides(data) -> None:
    parts = [{p.numpy().tobytes() for p in part.images} for part in (data.train, data.val, data.test)]
    assert not parts[0] & parts[1]
    assert not parts[0] & parts[2]
    assert not parts[1] & parts[2]
    assert set(data.val.labels.tolist()) == {0, 1, 2}
    assert data.counts.tolist() == [34, 17, 5]
    with pytest.raises(ValueError, match="not known"):
        tail_set("mnist", Path("."))


@pytest.mark.data
def test_real_sets_are_divided_as_they_say(shared_data: Path, tmp_path: Path) -> None:
    assert SETS == ("ham10000", "pbc", "cifar10", "tiny")
    blood = tail_set("pbc", shared_data, tmp_path)
    read = read_set("pbc", shared_data, tmp_path)  # from the cache that was just made
    assert (len(read), len(read.classes)) == (14962, 8)
    assert np.bincount(read.labels).max() / np.bincount(read.labels).min() == pytest.approx(2.75, abs=0.05)
    assert torch.bincount(blood.test.labels).tolist() == [250] * 8
    whole = blood.counts + np.bincount(blood.val.labels, minlength=8)
    assert whole.max() == 2000
    assert whole.min() == 20
