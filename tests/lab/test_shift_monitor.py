"""Monitors: the score is 1 on images like the reference, the limit holds on clean ones, files come back, bad input is answered, words are true."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch
from PIL import Image

from core.lab.shift_ears import grain, hear
from core.lab.shift_fit import divided, fit_monitor, measure
from core.lab.shift_monitor import MOST, Monitor, Shift, load_monitor, path_of, save_monitor, there_is
from core.lab.shift_words import advice, measured, quiet, reason, score_text, warning
from core.lab.sources import phantom_parts
from tests.lab.made_shift import VIEW, listener, monitor, picture


@pytest.fixture(scope="module")
def made() -> Monitor:
    return monitor()


def test_clean_pictures_score_about_one_and_noisy_ones_far_above_the_limit(made: Monitor) -> None:
    clean = [made.score([picture(s)]).score for s in range(200, 240)]
    assert 0.4 < float(np.mean(clean)) < 2
    assert np.mean([s > made.limit(1) for s in clean]) < 0.3
    noisy = made.score([picture(s, 40) for s in range(300, 316)])
    assert noisy.warns and noisy.images == 16 and noisy.score > 3 * noisy.limit
    assert made.score([picture(s) for s in range(400, 416)]).score < noisy.score / 5


def test_more_pictures_say_more_and_beyond_sixteen_no_more(made: Monitor) -> None:
    heard = torch.stack([made.hear(picture(s, 12)) for s in range(32)])
    one = made.judge(heard.mean(0)[None]).score
    assert made.judge(heard[:1].mean(0).repeat(4, 1)).score == pytest.approx(4 * made.judge(heard[:1]).score)
    assert made.judge(heard).score == pytest.approx(MOST * one)  # 32 count as 16
    assert made.limit(32) == made.limit(MOST)


def test_the_limit_is_kept_by_ninety_five_of_a_hundred_that_made_it(made: Monitor) -> None:
    scores = [made.judged(h[None]) for h in made.held]
    assert np.mean([s <= made.limit(1) for s in scores]) == pytest.approx(0.95, abs=0.026)


def test_an_image_always_gives_the_same_answer_and_the_network_stays(made: Monitor) -> None:
    image = picture(7, 5)
    before = {k: v.clone() for k, v in made.ears.state_dict().items()}
    torch.testing.assert_close(made.hear(image), made.hear(image.copy()), rtol=0, atol=0)
    assert all(torch.equal(v, before[k]) for k, v in made.ears.state_dict().items())


def test_a_file_comes_back_as_it_went(made: Monitor, tmp_path: Path) -> None:
    path = save_monitor(made, tmp_path)
    assert path == path_of("phantom", tmp_path) and there_is("phantom", tmp_path)
    back = load_monitor("phantom", tmp_path)
    image = picture(5, 20)
    torch.testing.assert_close(back.hear(image), made.hear(image))
    assert back.score([image]).score == pytest.approx(made.score([image]).score, rel=1e-5)
    assert back.limit(1) == pytest.approx(made.limit(1), rel=1e-4)
    assert back.facts == made.facts and back.view == made.view
    assert load_monitor("phantom", tmp_path) is back  # read once


def test_a_missing_or_damaged_file_is_a_sentence(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError, match="shift_study monitors"):
        load_monitor("polyp-sinet", tmp_path)
    path = path_of("skin", tmp_path)
    path.parent.mkdir(parents=True)
    path.write_bytes(b"PK\x03\x04 not a table")
    with pytest.raises(ValueError, match="no monitor"):
        load_monitor("skin", tmp_path)
    assert not there_is("fire", tmp_path)


@pytest.mark.parametrize("shape", [(48, 48), (48, 48, 4), (3, 48, 48)])
def test_what_is_no_picture_is_refused(made: Monitor, shape: tuple[int, ...]) -> None:
    with pytest.raises(ValueError, match="must be"):
        made.hear(np.zeros(shape, np.uint8))


def test_narrow_flat_and_no_pictures_are_answered(made: Monitor) -> None:
    with pytest.raises(ValueError, match="too narrow"):
        made.hear(np.zeros((10, 400, 3), np.uint8))
    flat = made.score([np.full((60, 60, 3), 127, np.uint8)])
    assert np.isfinite(flat.score)
    with pytest.raises(ValueError, match="at least one image"):
        made.score([])
    assert np.isfinite(made.score([picture(1, side=20)]).score)  # smaller than a crop


def test_a_network_without_a_sparse_layer_cannot_listen() -> None:
    with pytest.raises(ValueError, match="no sparse layer"):
        fit_monitor(
            "phantom", torch.nn.Sequential(torch.nn.Conv2d(3, 4, 3)), [picture(0)] * 2, [picture(1)] * 2
        )
    with pytest.raises(ValueError, match="two clean images"):
        fit_monitor("phantom", listener(), [picture(0), picture(1)], [picture(2)], VIEW)


def test_reference_limit_and_measurement_share_no_image() -> None:
    parts = phantom_parts()
    for domain, where in (("phantom", set(parts.d2)), ("fire", set(parts.pool))):
        base, held, seen = divided(domain, parts, 60)
        assert not set(base) & set(held) and not (set(base) | set(held)) & set(seen)
        assert set(base) | set(held) <= where and set(seen) <= set(parts.pool) and len(seen) == 60


def test_what_is_measured_rises_with_the_damage(made: Monitor) -> None:
    images = [picture(s) for s in range(500, 532)]
    heard: list[int] = []
    rows = measure(made, images, ("gaussian_noise",), (1, 5), lambda d, t, f: heard.append(d))
    assert heard == [1, 2]
    table = {(r["severity"], r["images"]): r for r in rows}
    assert table[0, 1]["auroc"] is None and table[5, 16]["auroc"] > 0.95
    assert table[5, 1]["auroc"] >= table[1, 1]["auroc"] - 0.05
    assert table[5, 16]["warned"] >= table[0, 16]["warned"]


USUAL = (0.37, -2.4, 0.8, float(np.log(0.04)))
LOUD = Shift(14.2, 2.6, 1, (0.4, -2.3, 0.7, float(np.log(0.12))), USUAL, (0.3, 0.2, -2, 5.0), 0.12)


def test_a_warning_says_score_limit_reason_and_that_it_is_no_test() -> None:
    said = warning(LOUD, "polyp-sinet", 0.1)
    assert "**This image does not look like" in said and "14" in said and "2.6" in said
    assert "worse" in said and "12\u00a0%" in said and "4\u00a0%" in said
    assert (
        "90\u00a0%" in said
        and "no test" in said
        and "12 of 100 clean images" in said
        and "colonoscopy" in said
    )
    many = warning(replace(LOUD, images=12), "polyp", 0.1)
    assert (
        "Your 12 images, taken together, do not" in many
        and "99 of 100 groups of 12" in many
        and "12 of 100 clean groups" in many
    )
    assert "calibrate anew" in advice()


def test_the_reason_is_what_lies_farthest_away() -> None:
    assert "noise" in reason(LOUD)
    assert "blur" in reason(replace(LOUD, away=(0.0, 0.0, 0.5, -3.0)))
    whole = reason(replace(LOUD, away=(-4.0, 1.0, 0.5, -3.0)))
    assert "lighter, darker or flatter" in whole and "0.37" in whole and "0.40" in whole


def test_grain_has_no_mean_one_deviation_and_no_large_shapes() -> None:
    rng = torch.Generator().manual_seed(0)
    noise = torch.randn(2, 3, 40, 40, generator=rng)
    slope = torch.linspace(-20, 20, 40)[None, None, None].expand(2, 3, 40, 40)
    found = grain(noise + slope)
    assert (
        torch.allclose(found.flatten(1).std(1), torch.ones(2), atol=1e-4) and float(found.mean().abs()) < 1e-5
    )
    inner = slice(3, -3)
    plain = grain(noise)[..., inner, inner].flatten()
    assert float(torch.corrcoef(torch.stack([found[..., inner, inner].flatten(), plain]))[0, 1]) > 0.99
    assert float(grain(torch.full((1, 3, 20, 20), 0.4)).abs().max()) == pytest.approx(0, abs=1e-3)


def test_a_quiet_score_promises_nothing() -> None:
    said = quiet(replace(LOUD, score=0.84))
    assert "0.84" in said and "no proof" in said
    assert score_text(1300.0) == "1,300" and score_text(12.4) == "12"


def test_what_was_measured_is_said_with_its_figures(made: Monitor) -> None:
    said = measured(made)
    assert "0.90" in said and "0.60" in said and "5\u00a0%" in said and "made-up" in said
    assert "not measured" in measured(replace(made, facts={}))


def test_hearing_scales_every_picture_to_one_size() -> None:
    ears, image = listener(), picture(3, side=96)
    small = np.asarray(Image.fromarray(image).resize((48, 48), Image.Resampling.BILINEAR))
    torch.testing.assert_close(hear(ears, image, VIEW), hear(ears, small, VIEW))


def test_many_people_may_listen_at_once(made: Monitor) -> None:
    images = [picture(s, 10) for s in range(8)]
    alone = torch.stack([made.hear(i) for i in images])
    with ThreadPoolExecutor(4) as pool:
        together = torch.stack(list(pool.map(made.hear, images * 4)))
    torch.testing.assert_close(together, alone.repeat(4, 1))
    assert not any(m._forward_pre_hooks for m in made.ears.modules())


def test_false_alarms_are_the_measured_ones_where_they_were_measured(made: Monitor) -> None:
    heard = made.held[:16]
    assert made.judge(heard[:1]).alarms == made.judge(heard).alarms == pytest.approx(0.05)  # from its rows
    assert made.judge(heard[:5]).alarms == pytest.approx(0.01)  # groups of five were not measured
    assert replace(made, facts={}).judge(heard[:1]).alarms == pytest.approx(0.05)
