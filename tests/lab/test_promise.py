"""One image, one promise: numbers that agree with the sets, refusals in words, and the same answer every time."""

from __future__ import annotations

import json

import numpy as np
import pytest
import torch

from core.conformal.words import percent
from core.data.phantoms import draw
from core.lab.promise import models, outline, promise, score
from core.lab.study import PROMISED, STUDIES, shipped_study, split_study
from core.lab.take_away import promise_settings
from core.lab.words import average_sentence, coverage_headline, false_alarm_sentence, start_headline
from core.nets.weights import shipped_network


@pytest.fixture(scope="module")
def phantom():
    return draw(4242)


@pytest.fixture(scope="module")
def scored(phantom):
    return score(phantom.image, "phantom", "one.png")


def test_areas_and_coverages_are_those_of_the_sets(phantom, scored) -> None:
    p = promise(scored, phantom.mask, alpha=0.1)
    assert p.coverage is not None
    assert tuple(p.tau) == PROMISED
    for method in PROMISED:
        inside = p.set_of(method)
        assert p.area[method] == pytest.approx(inside.mean(), abs=1e-3)  # thresholds are shown in float64
        assert p.coverage[method] == pytest.approx(inside[phantom.mask].mean(), abs=2e-3)
    assert p.oracle_tau is not None
    assert (p.logits[phantom.mask] >= p.oracle_tau).mean() >= 0.9


def test_thresholds_are_those_of_the_study(scored) -> None:
    p, split = promise(scored, alpha=0.1, seed=3), split_study(shipped_study("phantom"), 0.1, 3)
    assert p.tau["CRC"] == pytest.approx(float(split.tau("CRC")[0]))
    assert p.tau["COAT"] == pytest.approx(p.tau_hat["COAT"] - split.calibrations["COAT"].shift)
    assert p.sentences[0] == split.calibrations["CRC"].guarantee
    assert p.tau["AA-CRC"] == pytest.approx(p.tau_hat["AA-CRC"] - split.calibrations["AA-CRC"].shift)


def test_with_confidence_every_threshold_falls_and_the_sentence_says_how_sure(scored) -> None:
    usual, sure = promise(scored, alpha=0.1), promise(scored, alpha=0.1, delta=0.1)
    assert all(sure.tau[m] < usual.tau[m] for m in PROMISED)
    assert "probability of at least 90" in sure.sentences[0]


def test_a_pool_image_gets_the_threshold_that_its_table_holds() -> None:
    study = shipped_study("phantom")
    name = study.curves.names[7]
    p = promise(score(draw(int(name.rsplit("-", 1)[1])).image, "phantom", name), alpha=0.1)
    for method in ("plug-in", "AT", "COAT"):
        assert p.tau_hat[method] == pytest.approx(float(study.tau_hat(method, 0.1)[7]), abs=0.02)
    assert p.tau["AA-CRC"] == pytest.approx(float(split_study(study, 0.1, 0).tau("AA-CRC")[7]), abs=0.02)


def test_a_larger_alpha_never_marks_more_under_crc(scored) -> None:
    areas = [promise(scored, alpha=a).area["CRC"] for a in (0.05, 0.1, 0.2, 0.4)]
    assert areas == sorted(areas, reverse=True)


def test_the_answer_is_the_same_every_time_and_the_network_is_left_alone(phantom) -> None:
    network = shipped_network("phantom")[0]
    before = {k: v.clone() for k, v in network.state_dict().items()}
    one, two = (outline(phantom.image, phantom.mask) for _ in range(2))
    assert one.tau == two.tau and np.array_equal(one.logits, two.logits)
    assert all(torch.equal(v, before[k]) for k, v in network.state_dict().items())
    assert not any(p.requires_grad for p in network.parameters())


def test_an_empty_mask_is_not_a_coverage_of_nought(phantom) -> None:
    p = outline(phantom.image, np.zeros(phantom.mask.shape, bool))
    assert p.coverage is None and p.oracle_tau is None
    assert any("no lesion" in note for note in p.notes)


@pytest.mark.parametrize("shape", [(90, 160, 3), (1300, 700, 3), (1, 1, 3), (33, 512, 3)])
def test_any_shape_of_image_comes_back_on_its_own_grid(shape: tuple[int, int, int]) -> None:
    rgb = np.random.default_rng(0).integers(0, 255, shape, dtype=np.uint8)
    p = outline(rgb)
    assert max(p.logits.shape) == min(512, max(shape[:2]))
    assert p.image.shape == (*p.logits.shape, 3)
    assert np.isfinite(p.logits).all()
    assert abs(p.logits.shape[0] / p.logits.shape[1] - shape[0] / shape[1]) < 0.02 * shape[0] / shape[1]


@pytest.mark.parametrize(
    ("model", "words"),
    [
        ("polyp-sinet", "colonoscopy"),
        ("skin", "dermoscopy"),
        ("fire-pspnet", "the very videos that calibrate"),
        ("phantom", "drawn"),
    ],
)
def test_every_model_says_what_it_does_not_know(phantom, model: str, words: str) -> None:
    assert models() == STUDIES
    said = outline(phantom.image, model=model).notes
    assert any(words in note for note in said)
    assert model == "phantom" or any("no medical device" in n or "safety" in n for n in said)


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"alpha": 0.0}, "strictly between 0 and 1"),
        ({"alpha": 1.0}, "strictly between 0 and 1"),
        ({"model": "liver"}, "phantom, polyp"),
        ({"mask": np.ones((10, 10), bool)}, "same picture"),
    ],
)
def test_what_cannot_be_done_is_said_in_a_sentence(phantom, change: dict, words: str) -> None:
    with pytest.raises(ValueError, match=words):
        outline(phantom.image, change.pop("mask", None), **change)


def test_grey_or_float_arrays_are_refused() -> None:
    with pytest.raises(ValueError, match="uint8"):
        score(np.zeros((8, 8), np.uint8))
    with pytest.raises(ValueError, match="uint8"):
        score(np.zeros((8, 8, 3), np.float32))


def test_settings_are_plain_json(phantom, scored) -> None:
    facts = promise_settings(promise(scored, phantom.mask), seed=3)
    assert json.loads(json.dumps(facts, allow_nan=False))["alpha"] == 0.1


def test_headlines_hold_the_numbers(phantom, scored) -> None:
    split = split_study(shipped_study("phantom"), 0.1, 0)
    p = promise(scored, phantom.mask, alpha=0.1)
    assert p.coverage is not None
    for text in (start_headline(split, p), coverage_headline(p)):
        assert percent(p.coverage["COAT"]) in text
    blind = promise(scored, alpha=0.1)
    assert percent(blind.area["COAT"]) in coverage_headline(blind)
    assert f"{100 * split.evaluations['COAT'].gap:.0f}" in average_sentence(split)
    assert "false alarm" in (false_alarm_sentence(split) or "")
