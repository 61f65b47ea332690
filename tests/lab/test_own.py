"""A person's own model: parts are disjoint, promises are kept, files come back as they went, and the lines of Python run."""

from __future__ import annotations

import copy
import json
import math
import runpy
from pathlib import Path

import numpy as np
import pytest
import torch

from core.conformal import calibrate
from core.conformal.words import images_needed
from core.images.maps import Maps, maps_from_arrays, read_maps
from core.lab.own import OwnStudy, Prepared, Trained, calibrate_own, prepare, study_own, train, will_train
from core.lab.own_apply import apply_own, load_own_members
from core.lab.own_file import calibration_of, weights_bytes, write_calibration
from core.lab.own_groups import AREA, columns_to_choose, groups_of
from core.lab.own_python import python_lines
from core.lab.own_read import WEIGHTS, read_calibration
from core.lab.own_report import own_report
from core.lab.own_sample import sample_zip
from core.lab.own_train import training_part
from core.lab.own_words import applied_rows, own_headline, own_rows, own_table
from core.settings import CoatSettings, OwnSettings
from tests.lab.made_study import made_maps

QUICK = {
    "AT": CoatSettings(objective="at", members=2, epochs=3),
    "COAT": CoatSettings(objective="at then coat", members=2, epochs=3),
}


def made(
    n: int = 120, empty: int = 6, groups: dict[str, list[str]] | None = None, images: bool = False
) -> Maps:
    """Own maps out of thin air: probabilities, as most people have them."""
    logits, masks = made_maps(n, 20, empty)
    pictures = (
        [np.random.default_rng(k).integers(0, 255, (20, 20, 3), dtype=np.uint8) for k in range(n)]
        if images
        else None
    )
    return maps_from_arrays(list(torch.sigmoid(logits).numpy()), list(masks.numpy()), pictures, groups=groups)


@pytest.fixture(scope="module")
def prepared() -> Prepared:
    site = ["left" if k % 3 else "right" for k in range(120)]
    return prepare(made(groups={"site": site, "age": [str(20 + k % 50) for k in range(120)]}))


@pytest.fixture(scope="module")
def trained(prepared: Prepared) -> Trained:
    return train(prepared, OwnSettings(), variants=QUICK)


@pytest.fixture(scope="module")
def own(prepared: Prepared, trained: Trained) -> OwnStudy:
    return study_own(prepared, trained, OwnSettings(), "site")


@pytest.fixture
def folder(own: OwnStudy, tmp_path: Path) -> Path:
    write_calibration(own, tmp_path)
    return tmp_path


# ---------------------------------------------------------------------------------------------- parts and promises


def test_the_parts_are_disjoint_and_make_up_everything(own: OwnStudy) -> None:
    assert own.trained is not None
    calibrating, testing = own.pool[own.split.calibrating], own.pool[own.split.testing]
    everything = np.concatenate([own.trained.training, calibrating, testing])
    assert sorted(everything) == list(range(120))
    assert len(own.trained.training) == 40


def test_another_seed_draws_calibration_anew_and_leaves_the_training_part_alone(
    prepared: Prepared, trained: Trained
) -> None:
    one, two = (study_own(prepared, trained, OwnSettings(seed=s)) for s in (0, 1))
    assert one.pool.tolist() == two.pool.tolist()
    assert one.split.calibrating.tolist() != two.split.calibrating.tolist()
    assert (
        training_part(prepared, OwnSettings(seed=0)).tolist()
        == training_part(prepared, OwnSettings(seed=9)).tolist()
    )


def test_all_methods_stand_between_oracle_and_whole_image(own: OwnStudy) -> None:
    rows = {str(r["method"]): r for r in own_table(own)}
    assert list(rows) == ["CRC", "CRC by group", "plug-in", "AT", "COAT", "oracle", "whole image"]
    assert rows["whole image"]["gap"] == pytest.approx(0.1)
    assert rows["whole image"]["area"] == 1
    assert all(float(rows["oracle"]["gap"]) <= float(rows[m]["gap"]) for m in own.methods)  # type: ignore[arg-type]


def test_the_shift_is_that_of_the_plain_calibration(own: OwnStudy) -> None:
    curves = own.prepared.curves.select(own.pool[own.split.calibrating])
    assert own.split.calibrations["CRC"].shift == calibrate(curves, torch.zeros(len(curves)), 0.1).shift


def test_every_method_keeps_its_promise_over_draws(prepared: Prepared, trained: Trained) -> None:
    draws = [study_own(prepared, trained, OwnSettings(seed=s, alpha=0.2)) for s in range(40)]
    for m in draws[0].methods:
        covered = np.array([d.split.evaluations[m].coverage for d in draws])
        assert covered.mean() >= 0.8 - 3 * covered.std(ddof=1) / math.sqrt(40), m


def test_with_confidence_marks_more(prepared: Prepared) -> None:
    average, sure = (
        study_own(prepared, None, OwnSettings(promise=p)).split for p in ("on average", "with confidence")
    )
    assert sure.calibrations["CRC"].shift > average.calibrations["CRC"].shift
    assert "with a probability of at least 90" in sure.calibrations["CRC"].guarantee


def test_too_few_images_give_the_whole_image_and_say_how_many_more() -> None:
    own = calibrate_own(made(12, 0), OwnSettings(alpha=0.1))
    assert math.isinf(own.split.calibrations["CRC"].shift)
    assert own.split.evaluations["CRC"].area == 1
    assert (
        own_headline(own)
        == f"6 calibration images are too few to promise 90\u00a0%: mark the whole image, or bring {images_needed(0.1) - 6} more."
    )
    assert "whole image" in own.sentences[0]


def test_at_and_coat_wait_for_a_hundred_images_with_a_lesion(prepared: Prepared) -> None:
    few = prepare(made(100, 1))
    assert not will_train(few, OwnSettings()) and will_train(prepared, OwnSettings())
    assert not will_train(prepared, OwnSettings(train="never"))
    assert "trained from 100 images with a lesion on; here are 99" in " ".join(
        study_own(few, None, OwnSettings()).sentences
    )


def test_images_are_seen_by_the_predictors_and_maps_stand_in_for_them() -> None:
    with_images = train(prepare(made(30, 0, images=True)), OwnSettings(training_share=0.5), variants=QUICK)
    without = train(prepare(made(30, 0)), OwnSettings(training_share=0.5), variants=QUICK)
    assert with_images.pictures and not without.pictures
    assert not torch.equal(with_images.knots["COAT"], without.knots["COAT"])


def test_a_training_can_be_stopped_and_says_what_it_does(prepared: Prepared) -> None:
    stages: list[str] = []

    def step(done: int, total: int, facts: dict[str, object]) -> None:
        stages.append(str(facts["stage"]))
        if stages[-1] == "Training COAT":
            raise InterruptedError

    with pytest.raises(InterruptedError):
        train(prepared, OwnSettings(), step, QUICK)
    assert list(dict.fromkeys(stages)) == ["Preparing the predictors' inputs", "Training AT", "Training COAT"]


def test_what_cannot_be_calibrated_is_a_sentence() -> None:
    logits, masks = made_maps(4, 12, 0)
    p = list(torch.sigmoid(logits).numpy())
    with pytest.raises(ValueError, match="bring a mask for each map"):
        prepare(maps_from_arrays(p))
    with pytest.raises(ValueError, match="0 of 4 masks show a lesion"):
        prepare(maps_from_arrays(p, [np.zeros((12, 12), bool)] * 4))
    with pytest.raises(ValueError, match="look like logits"):
        prepare(maps_from_arrays(list(logits.numpy()), list(masks.numpy())))
    with pytest.raises(ValueError, match="There is no column 'shoe size'"):
        study_own(prepare(made(20, 0)), None, OwnSettings(), "shoe size")


def test_large_sets_are_binned_on_the_safe_side(monkeypatch: pytest.MonkeyPatch) -> None:
    maps = made(40, 0)
    exact = study_own(prepare(maps), None, OwnSettings())
    monkeypatch.setattr("core.lab.own_prepare.EXACT_PIXELS", 100)
    binned = study_own(prepare(maps), None, OwnSettings())
    assert "binned" in binned.prepared.notes[0]
    difference = binned.split.calibrations["CRC"].shift - exact.split.calibrations["CRC"].shift
    assert 0 <= difference <= 1 / 40 + 1e-5


# ---------------------------------------------------------------------------------------------- groups and a division of one's own


def test_each_group_is_calibrated_on_its_own_images(own: OwnStudy) -> None:
    assert own.grouped is not None
    mine = [i for i in own.split.calibrating if own.grouped.values[i] == "right"]
    curves = own.split.study.curves.select(mine)
    assert (
        own.grouped.calibration.groups["right"].shift == calibrate(curves, torch.zeros(len(mine)), 0.1).shift
    )
    assert {r["group"] for r in own.grouped.rows} == {"left", "right"}
    assert sum(int(str(r["test_images"])) for r in own.grouped.rows) == own.split.evaluations["CRC"].n


def test_numbers_and_predicted_area_are_cut_into_thirds_without_looking_at_masks(prepared: Prepared) -> None:
    assert columns_to_choose(prepared.maps) == (AREA, "site", "age")
    for column in (AREA, "age"):
        values, cuts = groups_of(prepared.maps, prepared.statistics, column, np.arange(120))
        assert cuts is not None and cuts[0] < cuts[1]
        counts = [values.count(v) for v in sorted(set(values))]
        assert len(counts) == 3 and min(counts) >= 30
    again, _ = groups_of(prepared.maps, prepared.statistics, AREA, np.arange(3), cuts=(0.0, 2.0))
    assert len(set(again)) == 1


def test_a_column_part_is_the_persons_own_division_and_is_checked() -> None:
    parts = ["calibration"] * 25 + ["test"] * 15
    own = calibrate_own(made(40, 0, {"part": parts}))
    assert own.split.calibrating.tolist() == list(range(25)) and own.split.testing.tolist() == list(
        range(25, 40)
    )
    assert own.comparison is not None and own.comparison.n_new == 15
    assert own.comparison.sentence in own.sentences
    assert "part" not in columns_to_choose(own.prepared.maps)
    assert calibrate_own(made(40, 0)).comparison is None


# ---------------------------------------------------------------------------------------------- files


def test_a_calibration_comes_back_as_it_went(own: OwnStudy, folder: Path) -> None:
    found = read_calibration(folder / "calibration.json")
    assert {m: r.shift for m, r in found.rules.items()} == {
        m: c.shift for m, c in own.split.calibrations.items()
    }
    assert (found.alpha, found.promise, found.n) == (0.1, "on average", own.split.calibrations["CRC"].n)
    assert found.group_column == "site" and set(found.group_shifts) == {"left", "right"}
    assert found.statistics.shape == (40, 6) and len(set(found.digests)) == 40
    assert found.reading == {"scale": "probabilities"}


def test_no_name_of_an_image_is_in_the_calibration(own: OwnStudy) -> None:
    content, _ = calibration_of(own)
    assert not any(f'"{name}"' in json.dumps(content) for name in own.prepared.maps.names)


def test_the_predictors_come_back_with_the_thresholds_that_were_calibrated(
    own: OwnStudy, folder: Path
) -> None:
    found = read_calibration(folder / "calibration.json")
    applied = apply_own(found, own.prepared.maps, load_own_members(found, folder))
    for m in own.methods:
        np.testing.assert_allclose(
            applied.tau_hat[m][own.pool], own.split.tau_hat(m).numpy(), atol=1e-5, err_msg=m
        )
        np.testing.assert_allclose(applied.area[m][own.pool], own.split.area(m), atol=1e-6, err_msg=m)


def test_an_image_that_calibrated_counts_in_no_coverage_when_it_comes_again(
    own: OwnStudy, folder: Path
) -> None:
    found = read_calibration(folder / "calibration.json")
    applied = apply_own(found, own.prepared.maps)
    assert applied.coverage is not None
    known = own.pool[own.split.calibrating]
    assert np.isnan(applied.coverage["CRC"][known]).all()
    tested = own.pool[own.split.testing]
    np.testing.assert_allclose(applied.coverage["CRC"][tested], own.split.coverage("CRC")[own.split.testing])
    assert any("helped to calibrate" in s for s in applied.sentences)
    assert any("AT, COAT left out" in s for s in applied.sentences)
    assert len(applied_rows(applied)) == 120


def test_new_maps_of_another_kind_are_noticed_and_like_ones_prove_nothing(
    own: OwnStudy, folder: Path
) -> None:
    found = read_calibration(folder / "calibration.json")
    logits, _ = made_maps(60, 20, 0)
    other = apply_own(found, maps_from_arrays(list(torch.sigmoid(logits + 3).numpy()), answers=found.reading))
    assert other.comparison.differs and other.coverage is None
    assert any("left out" in s and "site" in s for s in other.sentences)


def test_a_group_that_never_calibrated_gets_the_whole_image(folder: Path) -> None:
    found = read_calibration(folder / "calibration.json")
    applied = apply_own(found, made(6, 0, {"site": ["left"] * 5 + ["elsewhere"]}))
    assert applied.area["CRC by group"][5] == 1 > applied.area["CRC by group"][0]
    assert any("elsewhere" in s for s in applied.sentences)


def test_calibrating_on_the_test_images_too_rests_on_more_of_them(own: OwnStudy) -> None:
    half, _ = calibration_of(own)
    full, _ = calibration_of(own, everything=True)
    assert full["n"] > half["n"] and len(full["images"]) == len(own.pool)


BROKEN = {
    "another format": (lambda c: c.update(format="x"), "no calibration of Plumbline"),
    "a newer version": (lambda c: c.update(version=99), "version 99"),
    "no alpha": (lambda c: c.pop("alpha"), '"alpha"'),
    "an impossible alpha": (lambda c: c.update(alpha=1.5), "between 0 and 1"),
    "a shift in words": (lambda c: c["methods"]["CRC"].update(shift="low"), '"methods.CRC.shift"'),
    "an unknown rule": (
        lambda c: c["methods"]["CRC"]["tau_hat"].update(rule="guess"),
        "must be one of constant",
    ),
    "no CRC": (lambda c: c["methods"].pop("CRC"), "lack CRC"),
    "no weights": (lambda c: c.update(weights=None), '"weights" are missing'),
    "weights elsewhere": (lambda c: c["weights"].update(file="../../evil.safetensors"), "plain name"),
    "bad cuts": (lambda c: c["groups"].update(cuts=[1]), "groups.cuts"),
    "bad statistics": (lambda c: c["images"][0].update(statistics=[1, 2]), '"statistics"'),
    "another unit": (lambda c: c.update(unit="probability"), '"unit"'),
    "another clamp": (lambda c: c.update(clamp=30), '"clamp"'),
}


@pytest.mark.parametrize("what", BROKEN)
def test_a_broken_calibration_is_refused_in_a_sentence_that_names_the_field(what: str, own: OwnStudy) -> None:
    change, words = BROKEN[what]
    content = copy.deepcopy(json.loads(json.dumps(calibration_of(own)[0])))
    change(content)
    with pytest.raises(ValueError, match=words.replace(".", r"\.")):
        read_calibration(content)


def test_what_is_no_calibration_at_all_is_refused(folder: Path) -> None:
    for data, words in (
        (b"{not json", "no readable JSON"),
        (b"[1]", "not an object"),
        (b"\xff\xfe", "no readable JSON"),
    ):
        with pytest.raises(ValueError, match=words):
            read_calibration(data)
    with pytest.raises(FileNotFoundError, match="python -m core calibrate"):
        read_calibration(folder / "absent.json")


def test_weights_that_are_missing_or_of_another_calibration_are_refused(folder: Path) -> None:
    found = read_calibration(folder / "calibration.json")
    (folder / WEIGHTS).write_bytes((folder / WEIGHTS).read_bytes() + b" ")
    with pytest.raises(ValueError, match="digest is another"):
        load_own_members(found, folder)
    (folder / WEIGHTS).unlink()
    with pytest.raises(FileNotFoundError, match="Copy both files"):
        load_own_members(found, folder)


def test_without_training_there_are_no_weights(prepared: Prepared) -> None:
    assert weights_bytes(study_own(prepared, None, OwnSettings())) is None


# ---------------------------------------------------------------------------------------------- lines of Python, report, CSV, sample


@pytest.mark.parametrize("alpha", [0.1, 0.13])
@pytest.mark.parametrize("method", ["CRC", "plug-in", "AT", "COAT", "CRC by group"])
def test_the_lines_of_python_run_and_mark_what_was_calibrated(
    method: str,
    alpha: float,
    prepared: Prepared,
    trained: Trained,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    own = study_own(prepared, trained, OwnSettings(alpha=alpha), AREA)
    write_calibration(own, tmp_path)
    k = int(own.split.testing[3])
    i = int(own.pool[k])
    np.save(tmp_path / "map.npy", torch.sigmoid(prepared.maps.scores[i].double()).numpy())
    (tmp_path / "apply.py").write_text(python_lines(calibration_of(own)[0], method), encoding="utf-8")
    monkeypatch.chdir(tmp_path)
    runpy.run_path("apply.py")
    marked = float(np.load(tmp_path / "set.npy").mean())
    if method == "CRC by group":
        found = read_calibration(tmp_path / "calibration.json")
        wanted = apply_own(found, prepared.maps).area[method][i]
    else:
        wanted = own.split.area(method)[k]
    assert marked == pytest.approx(wanted, abs=1 / 400)


@pytest.mark.parametrize(
    "reading",
    [
        {"scale": "logits"},
        {"scale": "255"},
        {"scale": "logits", "channel": "1"},
        {"scale": "probabilities", "channel": "0", "nan": "background"},
    ],
)
def test_the_lines_read_a_map_as_the_calibration_did(
    reading: dict[str, str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    logits, masks = made_maps(40, 12, 0)
    raw = (
        logits.numpy()
        if "logits" in reading["scale"]
        else torch.sigmoid(logits).numpy() * (255 if reading["scale"] == "255" else 1)
    )
    if reading.get("channel") == "1":
        raw = np.stack([np.zeros_like(raw), raw], 1)
    elif "channel" in reading:
        raw = np.stack([raw, 1 - raw], 1)
        raw[3, 0, 0, 0] = np.nan
    own = calibrate_own(maps_from_arrays(list(raw), list(masks.numpy()), answers=reading))
    write_calibration(own, tmp_path)
    np.save(tmp_path / "map.npy", raw[3])
    (tmp_path / "apply.py").write_text(python_lines(calibration_of(own)[0], "CRC"), encoding="utf-8")
    monkeypatch.chdir(tmp_path)
    runpy.run_path("apply.py")
    assert float(np.load("set.npy").mean()) == pytest.approx(own.split.area("CRC")[3], abs=1 / 144)


def test_the_lines_of_a_method_that_is_not_there_are_refused(prepared: Prepared) -> None:
    with pytest.raises(ValueError, match="it has CRC, plug-in"):
        python_lines(calibration_of(study_own(prepared, None, OwnSettings()))[0], "COAT")


def test_the_report_says_it_all_and_runs_nothing(own: OwnStudy) -> None:
    text = own_report(own, "2030-01-02")
    assert own.split.calibrations["CRC"].guarantee in text and "drawn alike" in text
    assert "whole image" in text and "oracle" in text and "set area" in text
    assert "no medical device" in text and "By group: site" in text and "load_own_members" in text
    assert (
        text.count('role="img"') >= 2
        and "<script" not in text
        and "http://" not in text.replace("http://www.w3.org", "")
    )


def test_names_that_strangers_chose_are_escaped_in_the_report() -> None:
    maps = made(30, 0, {"<b>x</b>": ["<i>" if k % 2 else "y" for k in range(30)]})
    text = own_report(calibrate_own(maps, column="<b>x</b>"))
    assert "<b>x</b>" not in text and "&lt;b&gt;" in text and "<i>" not in text


def test_the_csv_names_each_images_part_and_leaves_training_images_without_figures(own: OwnStudy) -> None:
    rows = own_rows(own)
    parts = [r["part"] for r in rows]
    assert (parts.count("training"), parts.count("calibration"), parts.count("test")) == (40, 40, 40)
    for row in rows:
        assert (row["part"] == "training") == math.isnan(float(str(row["area_CRC"])))


def test_the_sample_is_read_without_a_question() -> None:
    maps = read_maps([("sample.zip", sample_zip(count=24, size=64))])
    assert maps.ready and len(maps) == 24 and maps.with_lesion == 23
    assert maps.images is not None and set(maps.groups) == {"focus", "glare"}
