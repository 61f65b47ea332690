"""Fixed parts and redrawn halves: disjoint, repeatable, twins together, and no image on both sides."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from core.data.splits import (
    Parts,
    content_hash,
    find_twins,
    make_parts,
    redraw,
    refuse_shared,
    thumbnail_code,
)


def names(n: int) -> list[str]:
    return [f"img{i:03d}" for i in range(n)]


@given(n=st.integers(2, 300), share=st.floats(0.0, 1.0), seed=st.integers(0, 9999))
def test_the_halves_are_the_pool_divided_in_two(n, share, seed):
    calibration, test = redraw(n, share, seed)
    assert sorted([*calibration, *test]) == list(range(n))
    assert len(calibration) >= 1
    assert len(test) >= 1
    assert abs(len(calibration) - share * n) <= 1
    assert list(calibration) == sorted(calibration)
    again = redraw(n, share, seed)
    assert calibration.tolist() == again[0].tolist()


def test_another_seed_draws_other_halves_and_every_image_gets_its_turn():
    drawn = np.array([np.isin(np.arange(40), redraw(40, 0.5, seed)[0]) for seed in range(200)])
    assert len({tuple(row) for row in drawn}) == 200
    assert (np.abs(drawn.mean(0) - 0.5) < 0.15).all()


def test_redrawing_leaves_the_global_seed_alone():
    np.random.seed(1)  # noqa: NPY002
    before = np.random.get_state()[1].copy()  # noqa: NPY002
    redraw(50, 0.5, 3)
    assert (np.random.get_state()[1] == before).all()  # noqa: NPY002


def test_a_pool_of_one_cannot_be_divided():
    with pytest.raises(ValueError, match="at least 2"):
        redraw(1, 0.5, 0)


@settings(deadline=None)
@given(data=st.data(), seed=st.integers(0, 99))
def test_parts_are_disjoint_as_large_as_asked_and_keep_twins_together(data, seed):
    n = data.draw(st.integers(8, 60))
    sizes = tuple(data.draw(st.integers(0, n // 4)) for _ in range(4))
    twins = [("img000", "img001"), ("img004", "img005", "img007")]
    parts = make_parts(names(n), sizes, np.random.default_rng(seed), twins)
    groups = [parts.d1, parts.d1_val, parts.d2, parts.pool]
    everyone = [name for group in groups for name in group]
    assert len(everyone) == len(set(everyone))
    assert set(everyone) <= set(names(n))
    for group, size in zip(groups, sizes, strict=True):
        assert size - 4 <= len(group) <= size + 2
        assert list(group) == sorted(group)
    for group in twins:
        assert len({k for k, part in enumerate(groups) for name in group if name in part}) <= 1
        assert sum(name in everyone for name in group) in (0, len(group))
    assert parts == make_parts(names(n)[::-1], sizes, np.random.default_rng(seed), twins)


def test_without_twins_the_sizes_are_exact():
    parts = make_parts(names(100), (40, 10, 20, 30), np.random.default_rng(0))
    assert [len(p) for p in (parts.d1, parts.d1_val, parts.d2, parts.pool)] == [40, 10, 20, 30]
    assert parts != make_parts(names(100), (40, 10, 20, 30), np.random.default_rng(1))


def test_asking_for_more_than_there_is_is_refused():
    with pytest.raises(ValueError, match=r"ask for 12 images and there are 10"):
        make_parts(names(10), (3, 3, 3, 3), np.random.default_rng(0))


def test_parts_survive_the_file(tmp_path):
    parts = make_parts(names(30), (10, 5, 5, 10), np.random.default_rng(0), [("img003", "img009")])
    parts.save(tmp_path / "parts.json")
    assert Parts.load(tmp_path / "parts.json") == parts
    assert parts.twins == (("img003", "img009"),)


def picture(seed: int, side: int = 40) -> np.ndarray:
    """A smooth random picture."""
    coarse = np.random.default_rng(seed).integers(0, 256, (5, 5, 3))
    return np.kron(coarse, np.ones((side // 5, side // 5, 1))).astype(np.uint8)


def test_near_duplicates_are_found_and_others_are_not():
    rng = np.random.default_rng(0)
    pictures = [picture(i) for i in range(6)]
    noisy = np.clip(pictures[2].astype(int) + rng.integers(-6, 7, pictures[2].shape), 0, 255).astype(np.uint8)
    darker = (pictures[4] * 0.8).astype(np.uint8)
    again = np.clip(noisy.astype(int) + rng.integers(-6, 7, noisy.shape), 0, 255).astype(np.uint8)
    every = [*pictures, noisy, darker, again]
    codes = np.stack([thumbnail_code(p) for p in every])
    assert find_twins([f"p{i}" for i in range(9)], codes) == (("p2", "p6", "p8"), ("p4", "p7"))
    assert find_twins([f"p{i}" for i in range(6)], codes[:6]) == ()


def test_a_thumbnail_is_a_unit_vector_without_brightness():
    code = thumbnail_code(picture(0))
    assert code.shape == (768,)
    assert np.linalg.norm(code) == pytest.approx(1, abs=1e-5)
    assert code.mean() == pytest.approx(0, abs=1e-6)
    assert np.isfinite(thumbnail_code(np.full((9, 9, 3), 128, np.uint8))).all()


def test_the_same_pixels_have_the_same_hash_and_others_another():
    a = picture(0)
    assert content_hash(a) == content_hash(a.copy())
    assert content_hash(a) == content_hash(np.asfortranarray(a))
    changed = a.copy()
    changed[3, 4, 1] ^= 1
    assert content_hash(changed) != content_hash(a)
    assert content_hash(a.reshape(20, 80, 3)) != content_hash(a)
    assert content_hash(a.astype(np.uint16)) != content_hash(a)


def test_the_same_image_in_two_splits_is_refused_by_content_not_by_name():
    first = {"a.png": "h1", "b.png": "h2"}
    refuse_shared(first, {"a.png": "h3"})
    with pytest.raises(
        ValueError, match=r"1 image\(s\) are in both D2 and pool \(b\.png and copy of b\.png\)"
    ):
        refuse_shared(first, {"copy of b.png": "h2", "c.png": "h4"}, "D2", "pool")
