"""The segmentation study of sparse coding: who sees which image, what stays calibrated, what is recorded, and going on after a stop."""

from __future__ import annotations

import json
from dataclasses import replace

import numpy as np
import pytest
import torch

from core.conformal import CoverageCurves, calibrate, evaluate
from core.data.corruptions import KEEPS_SHAPE, NOISES
from core.lab import sparse_medical, sparse_medical_make, sparse_medical_measure, sparse_medical_run
from core.lab.margin_bridge import COAT, ROWS
from core.lab.margin_sets import Labelled
from core.lab.sparse_medical import CORRUPTED, curve, load_unet, name_of, networks, rows, valley
from core.lab.sparse_medical_cards import write_cards
from core.lab.sparse_medical_make import Clock, OutOfTime, measure_network, train_network
from core.lab.sparse_medical_measure import (
    Plan,
    chosen_of,
    divide_d2,
    followed,
    measure_place,
    pixels,
    promise,
    some,
)
from core.lab.sparse_unet import UnetSchedule, build_unet, read_unet, save_unet, scores, turned
from core.settings.tacsc import AdaptSettings, TacscSettings
from core.tacsc.layer import sparse_layers

SMALL = (4, 4, 4, 4, 4, 4)
PLAN = Plan(("gaussian_noise",), (1, 5), samples=6, draws=3)
MOVE = AdaptSettings(steps=3)


def part(n: int, seed: int, side: int = 32) -> Labelled:
    """Bright squares on a dark, grainy ground; the first image has none."""
    rng = np.random.default_rng(seed)
    images, labels = rng.normal(-0.4, 0.15, (n, 3, side, side)), np.zeros((n, side, side), np.int64)
    for i in range(1, n):
        y, x = rng.integers(2, side - 16, 2)
        labels[i, y : y + 12, x : x + 12] = 1
    images += 0.9 * labels[:, None]
    grey = torch.from_numpy(np.clip(images, -1, 1)).float()
    grey = ((grey + 1) * 127.5).round() / 127.5 - 1
    names = tuple(f"{seed}-{i}" for i in range(n))
    return Labelled(names, grey, torch.from_numpy(labels), torch.zeros(n, side, side, dtype=torch.bool))


@pytest.fixture(scope="module")
def parts():
    return {"train": part(16, 0), "val": part(6, 1), "d2": part(20, 2), "pool": part(40, 3)}


@pytest.fixture(scope="module")
def nets():
    made = {}
    for kind, settings in (("plain", None), ("tacsc", TacscSettings())):
        net = build_unet(settings, torch.Generator().manual_seed(0), SMALL).eval()
        net(torch.zeros(1, 3, 32, 32))
        made[kind] = net.requires_grad_(False)
    return made


@pytest.fixture(autouse=True, scope="module")
def small_coat():
    """COAT's predictor with fewer epochs than the study's."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(sparse_medical_measure, "COAT", replace(COAT, members=2, epochs=3))
        yield


@pytest.fixture(scope="module")
def made(nets, parts, small_coat):
    """Promises of both networks on clean images."""
    fitting, _ = divide_d2(parts["d2"], 6)
    return {kind: promise(net, fitting, parts["pool"], PLAN) for kind, net in nets.items()}


@pytest.fixture
def quick(monkeypatch, parts):
    """The whole study on tiny parts and a tiny network."""
    monkeypatch.setattr(sparse_medical_run, "load_set", lambda name, data, work: parts)

    def build(settings, rng):
        return build_unet(settings, rng, SMALL)

    def save(path, net, settings, facts):
        save_unet(path, net, settings, facts, SMALL)

    monkeypatch.setattr(sparse_medical_make, "build_unet", build)
    monkeypatch.setattr(sparse_medical_make, "save_unet", save)


def test_corruptions_of_the_study_keep_masks_in_place():
    assert set(NOISES) < set(CORRUPTED) <= set(KEEPS_SHAPE)
    assert Plan().places[0] == ("clean", 0) and len(Plan().places) == 1 + 5 * len(CORRUPTED)


def test_d2_is_divided_once_and_no_image_has_two_parts(parts):
    fitting, followers = divide_d2(parts["d2"], 6)
    assert len(fitting) == 14 and len(followers) == 6
    assert set(fitting.names) | set(followers.names) == set(parts["d2"].names)
    assert divide_d2(parts["d2"], 6)[1].names == followers.names
    at = parts["d2"].names.index(followers.names[0])
    assert torch.equal(followers.images[0], parts["d2"].images[at])
    for bad in (1, 11):
        with pytest.raises(ValueError, match="will not do"):
            divide_d2(parts["d2"], bad)


def test_some_of_the_pool_are_chosen_once(parts):
    few = chosen_of(parts["pool"], 10)
    assert len(set(few.names)) == 10 and set(few.names) < set(parts["pool"].names)
    assert chosen_of(parts["pool"], 10).names == few.names
    assert chosen_of(parts["pool"], 99).names == parts["pool"].names


def test_pixels_come_back_as_they_were(parts):
    u8 = pixels(parts["pool"])
    assert u8.dtype == np.uint8 and u8.shape == (40, 32, 32, 3)
    back = torch.from_numpy(u8).permute(0, 3, 1, 2).float() / 127.5 - 1
    torch.testing.assert_close(back, parts["pool"].images, rtol=0, atol=1e-6)


def test_every_way_of_following_changes_what_it_should_and_the_network_stays(nets, parts):
    x = parts["d2"].images
    for kind, wanted in (("plain", ["none", "bn"]), ("tacsc", ["none", "bn", "lambda", "both"])):
        net = nets[kind]
        before = {k: v.clone() for k, v in net.state_dict().items()}
        ways = followed(net, x, MOVE)
        assert list(ways) == wanted and ways["none"][0] is net
        assert all(torch.equal(v, before[k]) for k, v in net.state_dict().items())
        for way, (now, found) in ways.items():
            moved = {k for k, v in now.state_dict().items() if not torch.equal(v, before[k])}
            moved = {k.rsplit(".", 1)[1] for k in moved} - {"num_batches_tracked"}
            expected = {"none": set(), "bn": {"running_mean", "running_var"}, "lambda": {"rho"}}
            assert moved == expected.get(way, {"running_mean", "running_var", "rho"})
            assert (found is not None) == (way in ("lambda", "both"))


def test_clean_and_unadapted_is_the_split_evaluation(nets, parts, made):
    """Against the one-draw route of core.conformal: same halves, same shift, same figures."""
    made = replace(made["tacsc"], halves=made["tacsc"].halves[:1])
    made = replace(made, shift={k: v[:1] for k, v in made.shift.items()})
    score = scores(nets["tacsc"], parts["pool"].images)
    found = made.measured(score)
    assert set(found) == {"0.1", "0.2"} and all(set(m) == set(ROWS) for m in found.values())
    curves = CoverageCurves.from_maps(score, parts["pool"].labels > 0)
    calibrating = made.halves[0]
    for alpha in (0.1, 0.2):
        zero = torch.zeros(len(curves))
        shift = calibrate(curves, zero, alpha, calibrating).shift
        wanted = evaluate(curves, zero, shift, alpha, ~calibrating)
        coverage, spread, gap, area = found[f"{alpha:g}"]["CRC"]
        assert [coverage, gap, area] == pytest.approx([wanted.coverage, wanted.gap, wanted.area], abs=1e-5)
        assert spread == 0
        assert found[f"{alpha:g}"]["whole image"] == [1, 0, alpha, 1]
        assert found[f"{alpha:g}"]["oracle"][0] >= 1 - alpha - 1e-5


def test_damage_meets_the_shift_that_was_calibrated_before_it(nets, parts, made):
    made, followers = made["plain"], divide_d2(parts["d2"], 6)[1]
    score = scores(nets["plain"], parts["pool"].images)
    clean, lower = made.measured(score)["0.1"]["CRC"], made.measured(score - 0.5)["0.1"]["CRC"]
    assert lower[0] < clean[0] and lower[3] < clean[3]
    with pytest.raises(ValueError, match="do not fit"):
        made.measured(score[1:])
    kept = {k: v.copy() for k, v in made.shift.items()}
    cells = measure_place(nets["plain"], made, followers, "contrast", 5, MOVE)
    assert [c["adapt"] for c in cells] == ["none", "bn"]
    assert all(np.array_equal(v, kept[k]) for k, v in made.shift.items())
    assert [c["samples"] for c in cells] == [0, 6] and {c["scored"] for c in cells} == {39}
    assert all(c["threshold"] is None and c["stopped"] == [] for c in cells)


def test_lambda_is_recorded_before_and_after(nets, parts, made):
    followers = divide_d2(parts["d2"], 6)[1]
    cells = {
        c["adapt"]: c
        for c in measure_place(nets["tacsc"], made["tacsc"], followers, "gaussian_noise", 5, MOVE)
    }
    start = next(iter(sparse_layers(nets["tacsc"]).values())).threshold.item()
    assert cells["none"]["threshold"] == cells["bn"]["threshold"] == pytest.approx(start, abs=1e-5)
    assert cells["both"]["threshold"] == cells["lambda"]["threshold"] != cells["none"]["threshold"]
    assert 0 < cells["none"]["error"] < 1 and 0 <= cells["none"]["sparsity"] <= 1


def test_the_study_ships_records_and_goes_on(quick, tmp_path):
    work, out = tmp_path / "work", tmp_path / "assets"
    lines: list[str] = []
    arguments = {"sets": ("phantom",), "epochs": 2, "plan": PLAN, "settings": MOVE, "say": lines.append}
    with pytest.raises(FileNotFoundError, match="Make it with"):
        rows(out)
    with pytest.raises(FileNotFoundError, match="Make it with"):
        load_unet(name_of("phantom", "tacsc"), out)
    with pytest.raises(ValueError, match="nothing to record"):
        sparse_medical_run.make(None, work, out, record_only=True, **arguments)
    assert not sparse_medical_run.make(None, work, out, minutes=0, **arguments)
    assert sparse_medical_run.make(None, work, out, **arguments)
    assert not list(tmp_path.rglob("*.part*")) and not list(work.glob("*.state"))
    for kind, ways in (("plain", 2), ("tacsc", 4)):
        name = name_of("phantom", kind)
        net = load_unet(name, out)
        assert not net.training and len(sparse_layers(net)) == (kind == "tacsc")
        mine = [r for r in rows(out) if r["kind"] == kind]
        places = {(r["corruption"], r["severity"], r["adapt"], r["alpha"], r["method"]) for r in mine}
        assert len(places) == len(mine) == 3 * ways * 2 * len(ROWS)
        assert networks(out)[name]["parts"] == {
            "train": 16,
            "val": 6,
            "coat": 14,
            "adaptation": 6,
            "pool": 40,
        }
    history = networks(out)[name_of("phantom", "tacsc")]["history"]
    assert (
        len(history["threshold"]) == len(history["steps"])
        and history["threshold"][0] != history["threshold"][-1]
    )
    land = networks(out)[name_of("phantom", "tacsc")]["objective"]
    assert [row["severity"] for row in land] == [0, 1, 2, 3, 4, 5]
    for row in land:
        r, lam = np.array(row["error"]), np.array(row["threshold"])
        assert (
            np.allclose(row["objective"], r / (lam + MOVE.offset), rtol=1e-3)
            and row["sparsity"][-1] > row["sparsity"][0]
        )
    assert "objective" not in networks(out)[name_of("phantom", "plain")]
    line = curve("phantom", "COAT", "gaussian_noise", adapt="both", folder=out)
    assert line["severity"].tolist() == [0, 1, 2, 3, 4, 5]
    assert np.isfinite(line["coverage"][[0, 1, 5]]).all() and np.isnan(line["coverage"][[2, 3, 4]]).all()
    mean = curve("phantom", "COAT", "noises", adapt="both", folder=out)
    assert mean["dice"][1] == line["dice"][1]
    card = (out / "weights" / "sparse-unet-phantom.md").read_text()
    assert "Local minimum of R/(λ + ε)" in card
    assert "Licence" in card and "0.100 to" in card and "TA-CSC" in card
    record = (out / "results" / "sparse" / "medical.json").read_text()
    assert str(tmp_path) not in record and "python -m core.lab.sparse_medical" in record
    cells = work / "sparse-unet-phantom-plain.cells.json"
    stamp, made = cells.stat().st_mtime_ns, len(lines)
    assert sparse_medical_run.make(None, work, out, **arguments)
    assert cells.stat().st_mtime_ns == stamp and not any("epoch" in line for line in lines[made:])
    raw = json.loads(record)
    raw["networks"][0]["set"] = "polyp"
    raw["cells"] = [c | {"set": "polyp"} for c in raw["cells"] if c["kind"] == raw["networks"][0]["kind"]]
    raw["networks"] = raw["networks"][:1]
    sparse_medical_make.write_json(sparse_medical.record_path(out), raw)
    assert sparse_medical_run.make(None, work, out, record_only=True, **arguments)
    assert {n["set"] for n in networks(out).values()} == {"phantom", "polyp"} and len(networks(out)) == 3
    assert len(write_cards(out)) == 3
    with pytest.raises(ValueError, match="another schedule"):
        sparse_medical_run.make(None, work, out, **{**arguments, "epochs": 3})


def test_measuring_goes_on_where_it_was_stopped(quick, parts, tmp_path):
    class Twice(Clock):
        asked = 0

        def left(self):
            self.asked += 1
            if self.asked > 3:
                raise OutOfTime
            return None

    schedule = UnetSchedule(epochs=1, bfloat16=False)
    train_network("phantom", "plain", parts, tmp_path, schedule, Clock(None), lambda line: None)
    given = ("phantom", "plain", parts, tmp_path, PLAN, MOVE)
    with pytest.raises(OutOfTime):
        measure_network(*given, Twice(None), lambda line: None)
    broken = json.loads((tmp_path / "sparse-unet-phantom-plain.cells.json").read_text())["cells"]
    assert {(c["corruption"], c["severity"]) for c in broken} == {("clean", 0), ("gaussian_noise", 1)}
    lines: list[str] = []
    resumed = measure_network(*given, Clock(None), lines.append)
    assert len(lines) == 1
    (tmp_path / "sparse-unet-phantom-plain.cells.json").unlink()
    whole = measure_network(*given, Clock(None), lines.append)
    assert whole == resumed
    (tmp_path / "sparse-unet-phantom-plain.cells.json").unlink()
    some_cells = measure_network(*given, Clock(None), lines.append, [("gaussian_noise", 5)])["cells"]
    assert {(c["corruption"], c["severity"]) for c in some_cells} == {("gaussian_noise", 5)}


def test_a_network_comes_back_as_it_was_measured(nets, tmp_path):
    x = torch.rand(2, 3, 32, 32, generator=torch.Generator().manual_seed(1)) * 2 - 1
    for kind, settings in (("plain", None), ("tacsc", TacscSettings(iterations=4))):
        net = build_unet(settings, torch.Generator().manual_seed(3), SMALL).eval()
        net(x)
        save_unet(tmp_path / "a.safetensors", net, settings, {"set": "phantom", "kind": kind}, SMALL)
        again, facts = read_unet(tmp_path / "a.safetensors")
        assert facts["kind"] == kind and not any(p.requires_grad for p in again.parameters())
        torch.testing.assert_close(again(x), net(x), rtol=0.02, atol=0.02)
        first, second = again(x), again(x)
        assert torch.equal(first, second)


def test_mistakes_are_said_in_a_sentence(tmp_path, capsys):
    assert sparse_medical_run.command(["--sets", "lung", "--work", str(tmp_path)]) == 2
    assert "--sets takes some of" in capsys.readouterr().err
    assert sparse_medical_run.command(["--sets", "polyp", "--work", str(tmp_path)]) == 2
    assert "--data" in capsys.readouterr().err
    with pytest.raises(ValueError, match="no U-Net"):
        name_of("lung", "plain")
    path = sparse_medical.record_path(tmp_path)
    path.parent.mkdir(parents=True)
    path.write_text("[]")
    with pytest.raises(ValueError, match="no record"):
        rows(tmp_path)


def test_a_valley_is_the_first_local_minimum():
    assert valley([3.0, 2.0, 2.5, 1.0, 2.0]) == 1
    assert valley([3.0, 2.0, 1.0]) is None and valley([]) is None and valley([1.0, 2.0, 3.0]) is None


def test_turned_images_take_their_masks_along():
    x = torch.arange(2 * 3 * 16.0).reshape(2, 3, 4, 4).repeat(60, 1, 1, 1)
    y = (x[:, 0] % 5) == 0
    image, mask = turned(x, y, torch.Generator().manual_seed(0))
    assert torch.equal(mask, (image[:, 0] % 5) == 0)
    assert len({tuple(a.flatten().tolist()) for a in image[::2]}) == 8
    assert torch.equal(image.flatten(2).sort(2).values, x.flatten(2).sort(2).values)


def test_some_images_of_a_part(parts):
    two = some(parts["pool"], np.array([3, 1]))
    assert two.names == ("3-3", "3-1") and torch.equal(two.labels[0], parts["pool"].labels[3])
