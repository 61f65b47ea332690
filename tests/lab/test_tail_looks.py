"""Whether a picture looks like the training images: figures, limits, what ships, and what the page is told."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from core.lab.tail_looks import USUAL, figures, looks_of, shipped_looks, strange_words


def pictures(n: int, colour: tuple[int, int, int], seed: int = 0) -> np.ndarray:
    """Grained pictures around a colour."""
    rng = np.random.default_rng(seed)
    shade = rng.normal(0, 8, (n, 1, 1, 3))
    return (np.array(colour) + shade + rng.normal(0, 12, (n, 32, 32, 3))).clip(0, 255).astype(np.uint8)


def test_figures_by_hand() -> None:
    flat = np.zeros((1, 4, 4, 3), np.uint8)
    flat[..., 0] = 255
    found = figures(flat)[0]
    assert found[:3] == pytest.approx([1, 0, 0]) and found[3:7] == pytest.approx(np.log(1e-3))
    assert found[7] == pytest.approx(np.log(1.001))


def test_the_limit_is_a_quantile_and_another_kind_lies_above_it() -> None:
    train, own, other = (
        pictures(400, (200, 150, 160)),
        pictures(200, (200, 150, 160), 1),
        pictures(50, (60, 90, 60)),
    )
    found = looks_of(train, own, {"other": other})
    assert (found.distance(train) > found.limit).mean() == pytest.approx(1 - USUAL, abs=0.003)
    assert found.own < 0.05 and found.foreign == {"other": 1.0}
    assert found.strange(other[0]) and not found.strange(own[0])
    assert "99.5\u00a0% of them" in strange_words(found)
    with pytest.raises(ValueError, match="too few"):
        looks_of(train[:5], own, {})


def test_what_ships_knows_a_flat_picture_and_a_gradient_as_foreign() -> None:
    across = np.zeros((32, 32, 3), np.uint8)
    across[..., 0], across[..., 1] = np.arange(32) * 8, (np.arange(32) * 8)[:, None]
    for data in ("pbc", "ham10000"):
        looks = shipped_looks(data)
        assert looks is not None and looks.own < 0.02
        assert looks.strange(np.full((32, 32, 3), 127, np.uint8)) and looks.strange(across)
    assert shipped_looks("cifar10") is None


def test_without_a_file_nothing_is_known(tmp_path: Path) -> None:
    assert shipped_looks("pbc", tmp_path) is None
