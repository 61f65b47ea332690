"""Training runs of sparse coding networks: the same when resumed, recorded, measured under corruption, walked by plan; and the U-Net."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
import torch

from core.lab import sparse_queue
from core.lab.sparse_evaluate import Plan, draw, evaluate
from core.lab.sparse_record import load_record, load_sparse_network, save_record
from core.lab.sparse_train import Images, Run, Schedule, augmented, first_of_each, fit, groups_of, prepared
from core.lab.sparse_unet import UnetSchedule, build_unet, damaged, fit_unet, mean_dice, scores, to_input
from core.settings.tacsc import AdaptSettings, TacscSettings
from core.tacsc.nets import build

TINY = Schedule(epochs=2, batch=16, every=2, bfloat16=False)


def pictures(n: int = 48, seed: int = 0) -> Images:
    rng = np.random.default_rng(seed)
    labels = np.arange(n) % 3
    images = rng.integers(0, 120, (n, 32, 32, 3))
    images[np.arange(n), :, :, labels] += 120
    return Images(images.astype(np.uint8), labels.astype(np.int64))


class Stop(Exception):
    pass


@pytest.mark.parametrize("model", ["resnet", "tacsc", "tacsc_all"])
def test_a_run_that_was_stopped_ends_where_an_unbroken_one_ends(model, tmp_path):
    run, data = Run(model, width=4), pictures()
    whole = fit(run, data, TINY)

    def stop(done, total, facts):
        raise Stop

    with pytest.raises(Stop):
        fit(run, data, TINY, tmp_path / "a.state", stop)
    resumed = fit(run, data, TINY, tmp_path / "a.state")
    assert whole is not None and resumed is not None
    for (name, a), b in zip(whole[0].state_dict().items(), resumed[0].state_dict().values(), strict=True):
        torch.testing.assert_close(a, b, rtol=0, atol=0, msg=name)
    drop = {"seconds"}
    assert {k: v for k, v in whole[1].items() if k not in drop} == {
        k: v for k, v in resumed[1].items() if k not in drop
    }
    assert not list(tmp_path.glob("*.part*"))


def test_lambda_is_recorded_on_the_way_and_a_fixed_one_stays():
    _, history = fit(Run("tacsc", width=4), pictures(), TINY)
    assert history["layers"] == ["conv1"]
    assert history["steps"] == [0, 2, 4, 6]
    assert (
        history["threshold"][0] == pytest.approx([0.1])
        and history["threshold"][-1] != history["threshold"][0]
    )
    assert len(history["sparsity"]) == len(history["error"]) == len(history["loss"]) == 2
    _, still = fit(Run("fixed", TacscSettings(learn=False), width=4), pictures(), TINY)
    assert {row[0] for row in still["threshold"]} == {still["threshold"][0][0]}


def test_rho_has_its_own_rate_and_no_decay():
    net = build("tacsc_all", 4)
    rest, rhos = groups_of(net, Schedule())
    assert len(rhos["params"]) == 17 and rhos["weight_decay"] == 0
    assert all(p.ndim == 0 for p in rhos["params"])
    assert len(rest["params"]) + 17 == len(list(net.parameters()))
    assert len(groups_of(build("resnet", 4), Schedule())) == 1


def test_augmentation_shifts_and_mirrors_and_nothing_else():
    image = np.random.default_rng(0).integers(0, 256, (1, 8, 8, 3), dtype=np.uint8)
    padded = torch.nn.functional.pad(prepared(image), (4, 4, 4, 4))[0]
    windows = [padded[:, y : y + 8, x : x + 8] for y in range(9) for x in range(9)]
    windows += [w.flip(2) for w in windows]
    seen = augmented(np.repeat(image, 60, 0), torch.Generator().manual_seed(0))
    places = {next(i for i, w in enumerate(windows) if torch.equal(w, x)) for x in seen}
    assert len(places) > 30 and min(places) < 81 <= max(places)


def test_the_first_images_of_each_class_are_taken():
    some = first_of_each(pictures(30), 4)
    assert np.bincount(some.labels).tolist() == [4, 4, 4]
    assert len(first_of_each(pictures(30), 0)) == 30
    with pytest.raises(ValueError, match="do not fill"):
        fit(Run(width=4), pictures(9), TINY)


def test_what_adaptation_sees_is_never_scored_and_damage_is_kept(tmp_path):
    test = Images(pictures(60).images, np.arange(60))
    plan = Plan(pool=20, scored=10, scored_noise=15, samples=(10, 20))
    a = draw(test, "gaussian_noise", 3, plan, tmp_path)
    assert len(a.pool) == 20 and len(a.scored) == 15
    order = np.random.default_rng([0, 0, 3]).permutation(60)
    assert set(a.labels) == set(order[20:35]) and not set(a.labels) & set(order[:20])
    b = draw(test, "gaussian_noise", 3, plan, tmp_path)
    assert np.array_equal(a.scored, b.scored)
    assert np.array_equal(a.scored, draw(test, "gaussian_noise", 3, plan).scored)
    with pytest.raises(ValueError, match="do not suffice"):
        draw(pictures(20), "fog", 1, plan)


def test_every_way_of_adaptation_is_measured_and_the_network_stays(tmp_path):
    net, _ = fit(Run("tacsc", width=4), pictures(), TINY)
    before = {k: v.clone() for k, v in net.state_dict().items()}
    plan = Plan(("gaussian_noise", "fog"), (1, 5), (10, 20), 20, 10, 10, bfloat16=False)
    cells = evaluate(net, pictures(60, 3), plan, AdaptSettings(steps=2), cache=tmp_path)
    assert all(torch.equal(v, before[k]) for k, v in net.state_dict().items())
    assert {c.adapt for c in cells} == {"none", "bn", "lambda", "both"}
    places = [(c.corruption, c.severity, c.adapt, c.samples) for c in cells]
    assert len(set(places)) == len(places)
    assert ("fog", 5, "both", 10) in places and ("fog", 5, "both", 20) not in places
    assert ("clean", 0, "both", 20) in places
    for c in cells:
        assert (c.threshold != cells[0].threshold) == (c.adapt in ("lambda", "both"))
    plain, _ = fit(Run("resnet", width=4), pictures(), TINY)
    kinds = {c.adapt for c in evaluate(plain, pictures(60, 3), plan)}
    assert kinds == {"none", "bn"}


def test_a_plan_is_walked_once_and_records_can_be_read(tmp_path):
    plan_file = tmp_path / "plan.txt"
    plan_file.write_text("tacsc 2 0  # first\n\nresnet 2 1\n")
    runs = sparse_queue.read_plan(plan_file, 4)
    assert [r.key for r in runs] == ["tacsc-k2-w4-s0", "resnet-w4-s1"]
    small = Plan(("gaussian_noise",), (1, 2, 3, 4, 5), (10,), 10, 10, 10)
    work = tmp_path / "work"
    arguments = (runs, TINY, pictures(), pictures(40, 2), work, small)
    assert sparse_queue.walk(*arguments) == 2
    assert sparse_queue.walk(*arguments) == 0
    record = load_record(work / "tacsc-k2-w4-s0.json")
    assert record.schedule["epochs"] == 2 and record.settings == TacscSettings()
    assert 0 <= record.mean_accuracy("gaussian_noise", "both", 10) <= 1
    assert np.isnan(record.mean_accuracy("fog"))
    again = tmp_path / "again.json"
    save_record(again, record)
    assert load_record(again) == record
    net = load_sparse_network(work / "tacsc-k2-w4-s0.safetensors")
    assert not net.training and net(prepared(pictures(4).images)).shape == (4, 3)
    assert not list(work.glob("*.state"))


def test_a_locked_run_is_left_to_the_other_process(tmp_path):
    from core.lab.tail_queue import locked

    run = sparse_queue.run_of("resnet", 2, 0, 4)
    with locked(tmp_path / "locks" / f"{run.key}.lock"):
        assert sparse_queue.walk([run], TINY, pictures(), pictures(40), tmp_path) == 0
    assert sparse_queue.state_of(tmp_path, run) == "waiting"


def test_mistakes_of_the_command_line_are_said_in_a_sentence(tmp_path, capsys):
    bad = tmp_path / "plan.txt"
    bad.write_text("tacsc two 0\n")
    assert sparse_queue.command(["queue", str(bad), "--data", str(tmp_path)]) == 2
    assert "Line 1 of plan.txt" in capsys.readouterr().err
    assert sparse_queue.command(["--data", str(tmp_path), "--work", str(tmp_path)]) == 2
    assert "cifar10.tar.xz" in capsys.readouterr().err
    assert sparse_queue.command(["status", str(tmp_path / "none")]) == 2
    with pytest.raises(FileNotFoundError, match="Make it with"):
        load_record(Path("nothing.json"))


def test_the_unet_trains_resumes_and_scores(tmp_path):
    rng = np.random.default_rng(0)
    images = rng.integers(0, 100, (8, 32, 32, 3))
    masks = np.zeros((8, 32, 32), bool)
    masks[:, 8:24, 8:24] = True
    images[masks] += 120
    x, y = to_input(images.astype(np.uint8)), torch.from_numpy(masks)
    schedule = UnetSchedule(epochs=3, batch=4, bfloat16=False)
    stages = (8, 8, 8, 8, 8, 8)

    def made():
        return build_unet(TacscSettings(), torch.Generator().manual_seed(0), stages)

    whole, broken = made(), made()
    history = fit_unet(whole, x, y, schedule, 0)

    def stop(done, total, facts):
        if done == 2:
            raise Stop

    with pytest.raises(Stop):
        fit_unet(broken, x, y, schedule, 0, tmp_path / "u.state", stop)
    broken = made()
    assert fit_unet(broken, x, y, schedule, 0, tmp_path / "u.state") == history
    for a, b in zip(whole.state_dict().values(), broken.state_dict().values(), strict=True):
        torch.testing.assert_close(a, b, rtol=0, atol=0)
    assert history["layers"] == ["conv_0.conv_0.conv"] and history["loss"][-1] < history["loss"][0]
    score = scores(whole, x)
    assert score.shape == (8, 32, 32) and 0 <= mean_dice(score, y) <= 1
    assert damaged(images.astype(np.uint8), "gaussian_noise", 1, 0).shape == x.shape
    assert mean_dice(torch.where(y, 1.0, -1.0), y) == 1
    assert not any(hasattr(m, "rho") for m in build_unet(None, torch.Generator(), stages).modules())
