"""Toy images for the tests of conformal control: pools with ties and tiny lesions, and small sets for Hypothesis."""

from __future__ import annotations

import math
from dataclasses import dataclass
from types import SimpleNamespace

import hypothesis.strategies as st
import numpy as np
import pytest
import torch

from core.conformal import CoverageCurves


@dataclass(frozen=True)
class Pool:
    """Maps `(H, W)` float32 and masks `(H, W)` bool of some images, and their exact curves."""

    maps: list[torch.Tensor]
    masks: list[torch.Tensor]
    curves: CoverageCurves


def make_pool(n: int, seed: int, side: int = 12, ties: bool = True, empty: int = 0) -> Pool:
    """A pool whose images differ in difficulty; a third of the lesions has 1 to 3 pixels; with `ties` scores lie 1/4 apart."""
    rng = np.random.default_rng(seed)
    maps, masks = [], []
    for i in range(n + empty):
        m = int(rng.integers(1, 4)) if rng.random() < 1 / 3 else int(rng.integers(4, side * side // 2))
        mask = np.zeros(side * side, bool)
        mask[rng.permutation(side * side)[: 0 if i >= n else m]] = True
        easy = rng.normal(0, 2.0)
        score = np.where(mask, 2 + easy, -4 + 0.3 * easy) + rng.normal(0, rng.uniform(0.3, 2.5), side * side)
        if ties:
            score = np.round(4 * score) / 4
        maps.append(torch.tensor(np.clip(score, -15, 15), dtype=torch.float32).reshape(side, side))
        masks.append(torch.tensor(mask).reshape(side, side))
    return Pool(maps, masks, CoverageCurves.from_maps(maps, masks))


def oracle(pool: Pool, alpha: float) -> torch.Tensor:
    """The largest threshold of each image with coverage >= 1 - alpha: the k-th largest lesion score. 0 without a lesion."""
    found = []
    for score, mask in zip(pool.maps, pool.masks, strict=True):
        inside = score[mask].sort(descending=True).values
        k = math.ceil((1 - alpha) * len(inside) - 1e-9)
        found.append(float(inside[k - 1]) if len(inside) else 0.0)
    return torch.tensor(found)


def plug_in(pool: Pool, alpha: float) -> torch.Tensor:
    """The threshold at which the set holds a share 1 - alpha of the probability in the image."""
    found = []
    for score in pool.maps:
        inside = score.flatten().sort(descending=True).values
        share = torch.sigmoid(inside.double()).cumsum(0)
        found.append(float(inside[int(torch.searchsorted(share, (1 - alpha) * share[-1]))]))
    return torch.tensor(found)


def predictors(pool: Pool, alpha: float, seed: int = 0) -> dict[str, torch.Tensor]:
    """Thresholds as the four methods give them: one for all, plug-in, a noisy oracle (AT), a smooth function of the map (COAT)."""
    rng = torch.Generator().manual_seed(seed)
    top = torch.stack([m.flatten().topk(5).values.mean() for m in pool.maps])
    return {
        "CRC": torch.zeros(len(pool.maps)),
        "plug-in": plug_in(pool, alpha),
        "AT": oracle(pool, alpha) + 0.7 * torch.randn(len(pool.maps), generator=rng),
        "COAT": 1.3 * torch.tanh(top / 3) - 0.37,
    }


@pytest.fixture(scope="session")
def toy() -> SimpleNamespace:
    """The functions above."""
    return SimpleNamespace(make_pool=make_pool, oracle=oracle, plug_in=plug_in, predictors=predictors)


@st.composite
def _pools(draw: st.DrawFn, with_empty: bool = True, ties: bool = True) -> tuple[Pool, torch.Tensor]:
    """One to eight small images and a threshold for each. With `ties`, all numbers are multiples of 1/8, so that float32 is exact."""
    if ties:
        number = st.integers(-120, 120).map(lambda k: k / 8)
    else:
        number = st.floats(-15, 15, width=32, allow_subnormal=False)
    n = draw(st.integers(1, 8))
    maps, masks = [], []
    for _ in range(n):
        m = draw(st.integers(0 if with_empty else 1, 6))
        rest = draw(st.integers(0 if m else 1, 5))
        maps.append(
            torch.tensor(draw(st.lists(number, min_size=m + rest, max_size=m + rest)), dtype=torch.float32)[
                None
            ]
        )
        masks.append(torch.tensor([True] * m + [False] * rest)[None])
    tau = torch.tensor(draw(st.lists(number, min_size=n, max_size=n)), dtype=torch.float32)
    return Pool(maps, masks, CoverageCurves.from_maps(maps, masks)), tau


@pytest.fixture(scope="session")
def pools():
    """The Hypothesis strategy `pools(with_empty=True, ties=True)` of (Pool, thresholds)."""
    return _pools
