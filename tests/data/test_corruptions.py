"""Corruptions: the table, statistics of the noises, seeds, sizes, and agreement of arrays with tensors (METHODS section 5)."""

from __future__ import annotations

import colorsys

import numpy as np
import pytest
import torch
from PIL import Image

from core.data import _corrupt_blur as blur
from core.data import _corrupt_digital as digital
from core.data._corrupt_weather import frost_texture, plasma
from core.data.corruptions import (
    CORRUPTIONS,
    LARGE,
    NOISES,
    SEVERITIES,
    SMALL,
    corrupt,
    corrupt_many,
    corrupt_tensor,
    level,
)


def picture(side: int = 32, seed: int = 0) -> np.ndarray:
    rng = np.random.default_rng(seed)
    small = rng.integers(0, 256, (6, 6, 3), dtype=np.uint8)
    return np.asarray(Image.fromarray(small).resize((side, side), Image.Resampling.BICUBIC))


def test_there_are_nineteen_with_five_levels_each():
    assert len(CORRUPTIONS) == len(set(CORRUPTIONS)) == 19
    assert set(SMALL) == set(LARGE) == set(CORRUPTIONS)
    assert all(len(t[name]) == 5 for t in (SMALL, LARGE) for name in t)
    assert level("gaussian_noise", 5) == 0.10 and level("gaussian_noise", 5, 96) == 0.38
    assert level("motion_blur", 4) == (8, 2)


@pytest.mark.parametrize("name", CORRUPTIONS)
def test_each_damages_in_its_own_size_and_the_same_for_the_same_seed(name):
    for image in (picture(), picture(64)[:48]):
        for severity in SEVERITIES:
            a = corrupt(image, name, severity, np.random.default_rng(3))
            assert a.shape == image.shape and a.dtype == np.uint8
            assert not np.array_equal(a, image)
            assert np.array_equal(a, corrupt(image, name, severity, np.random.default_rng(3)))


@pytest.mark.parametrize(
    "name", ["gaussian_noise", "impulse_noise", "gaussian_blur", "contrast", "jpeg", "pixelate", "fog"]
)
def test_a_higher_severity_is_farther_from_the_picture(name):
    images = np.stack([picture(seed=s) for s in range(20)])
    away = [np.abs(corrupt_many(images, name, s, 0).astype(int) - images).mean() for s in SEVERITIES]
    assert away == sorted(away)


def test_an_image_looks_the_same_whatever_stands_beside_it_and_no_global_state_is_used():
    images = np.stack([picture(seed=s) for s in range(4)])
    state = np.random.get_state()[1].copy()  # noqa: NPY002  the state that must stay
    whole = corrupt_many(images, "snow", 3, 7)
    assert np.array_equal(np.random.get_state()[1], state)  # noqa: NPY002
    assert np.array_equal(whole[2:], corrupt_many(images[2:], "snow", 3, 7, [2, 3]))
    assert not np.array_equal(whole, corrupt_many(images, "snow", 3, 8))


def test_truncation_darkens_noisy_images_by_half_a_grey_level():
    image = np.full((200, 200, 3), 128, np.uint8)[:32, :32]
    noisy = np.stack([corrupt(image, "gaussian_noise", 1, np.random.default_rng(s)) for s in range(200)])
    assert noisy.mean() - 128 == pytest.approx(-0.5, abs=0.06)
    assert noisy.std() == pytest.approx(0.04 * 255, rel=0.02)


def test_noises_have_their_variance():
    grey = np.full((32, 32, 3), 100, np.uint8)
    v = 100 / 255
    many = {
        n: np.stack([corrupt(grey, n, 5, np.random.default_rng(s)) for s in range(100)]) / 255 for n in NOISES
    }
    assert many["shot_noise"].std() == pytest.approx((v / 50) ** 0.5, rel=0.03)
    assert many["speckle_noise"].std() == pytest.approx(v * 0.2, rel=0.03)
    hit = (many["impulse_noise"] != v).mean()
    assert hit == pytest.approx(0.07, rel=0.05)
    assert (many["impulse_noise"] == 1).mean() == pytest.approx(0.035, rel=0.1)
    single = (many["impulse_noise"] != v).sum(-1)
    assert (single == 1).sum() > 5 * (single == 3).sum()  # values are hit, not pixels


@pytest.mark.parametrize("name", NOISES)
def test_tensors_and_arrays_agree_in_distribution(name):
    image = picture()
    a = np.stack([corrupt(image, name, 4, np.random.default_rng(s)) for s in range(300)]) / 255
    x = torch.from_numpy(image.copy()).permute(2, 0, 1)[None].float().div(255).expand(300, -1, -1, -1)
    b = corrupt_tensor(x, name, 4, torch.Generator().manual_seed(0)).permute(0, 2, 3, 1).numpy()
    assert np.allclose(b * 255, np.round(b * 255), atol=1e-3)
    assert a.mean() == pytest.approx(b.mean(), abs=2e-3)
    assert (a - image / 255).std() == pytest.approx((b - image / 255).std(), rel=0.02)


def test_colours_turn_as_in_the_standard_library():
    x = np.random.default_rng(0).random((5, 5, 3))
    for p, q in zip(x.reshape(-1, 3), digital.to_hsv(x).reshape(-1, 3), strict=True):
        assert q == pytest.approx(colorsys.rgb_to_hsv(*p))
    assert digital.from_hsv(digital.to_hsv(x)) == pytest.approx(x)


def test_blurs_keep_the_mean_of_a_flat_image_and_shift_nothing():
    flat = np.full((32, 32, 3), 0.4)
    rng = np.random.default_rng(0)
    for y in (
        blur.defocus_blur(flat, 1.5, 0.1),
        blur.motion(flat, 9, 2.5, 20),
        blur.zoom_blur(flat, np.arange(1, 1.26, 0.01)),
        blur.smooth(flat, 1),
    ):
        assert y == pytest.approx(flat)
    assert blur.glass_blur(flat, 0.4, 1, 2, rng) == pytest.approx(flat, abs=1 / 255)
    assert blur.disk(3, 0.1).sum() == pytest.approx(1)


def test_motion_leaves_a_one_sided_trail_of_a_half_gaussian():
    x = np.zeros((21, 21))
    x[10, 10] = 1
    y = blur.motion(x, 6, 2, 0)
    line = y[10]
    assert y.sum() == pytest.approx(1) and np.flatnonzero(y.sum(1)).tolist() == [10]
    assert line[:11].sum() == pytest.approx(1) or line[10:].sum() == pytest.approx(1)
    assert sorted(line, reverse=True)[1] / line.max() == pytest.approx(np.exp(-1 / 8))


def test_glass_is_the_walk_of_the_original():
    x = np.random.default_rng(0).random((12, 12, 3))
    start = np.floor(blur.smooth(x, 0.4) * 255)
    shift = np.random.default_rng(5).integers(-1, 1, size=(10, 10, 2))
    walked = start.copy()
    for i, h in enumerate(range(11, 1, -1)):
        for j, w in enumerate(range(11, 1, -1)):
            walked[h, w] = walked[h + shift[i, j, 1], w + shift[i, j, 0]]
    got = blur.glass_blur(x, 0.4, 1, 1, np.random.default_rng(5))
    assert got == pytest.approx(blur.smooth(walked / 255, 0.4))


def test_elastic_without_force_is_the_picture():
    x = picture() / 255
    assert digital.elastic(x, 0, 0, 0, np.random.default_rng(0)) == pytest.approx(x, abs=1e-9)


def test_textures_are_drawn_and_stay_the_same():
    a, b = frost_texture(0, 64), frost_texture(1, 64)
    assert a.shape == (64, 64, 3) and a.min() >= 0 and a.max() <= 1 and a.std() > 0.05
    assert np.array_equal(a, frost_texture(0, 64)) and not np.array_equal(a, b)
    cloud = plasma(32, 2.0, np.random.default_rng(0))
    assert cloud.min() == 0 and cloud.max() == 1


def test_what_is_no_picture_or_no_corruption_is_refused_in_words():
    rng = np.random.default_rng(0)
    with pytest.raises(ValueError, match="uint8"):
        corrupt(picture() / 255, "fog", 1, rng)
    with pytest.raises(ValueError, match="not known"):
        corrupt(picture(), "rain", 1, rng)
    with pytest.raises(ValueError, match="1 to 5"):
        corrupt(picture(), "fog", 6, rng)
    with pytest.raises(ValueError, match="no noise"):
        corrupt_tensor(torch.zeros(1, 3, 4, 4), "fog", 1, torch.Generator())
