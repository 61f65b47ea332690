"""Group-conditional control: each group is its own CRC, small and unknown groups get the whole image, and promises hold by group."""

from __future__ import annotations

import math

import numpy as np
import pytest
import torch

from core.conformal import CoverageCurves, calibrate, evaluate
from core.conformal.groups import calibrate_groups


def pool(n: int = 200, seed: int = 0) -> tuple[CoverageCurves, list[str]]:
    """Two kinds of images; the network is shy on one of them."""
    rng = torch.Generator().manual_seed(seed)
    groups = ["flat" if k % 4 == 0 else "raised" for k in range(n)]
    maps = [torch.randn(14, 14, generator=rng) - 2.5 * (g == "flat") for g in groups]
    return CoverageCurves.from_maps(maps, [torch.rand(14, 14, generator=rng) < 0.3 for _ in groups]), groups


def test_each_group_is_calibrated_as_if_it_were_alone() -> None:
    curves, groups = pool()
    tau = torch.randn(200, generator=torch.Generator().manual_seed(1))
    found = calibrate_groups(curves, tau, 0.1, groups)
    for name in ("flat", "raised"):
        index = [k for k, g in enumerate(groups) if g == name]
        alone = calibrate(curves.select(index), tau[index], 0.1)
        assert found.groups[name].shift == alone.shift
        assert found.groups[name].n == len(index)
    assert found.shifts(groups).unique().numel() == 2


def test_one_group_is_plain_crc() -> None:
    curves, _ = pool()
    found = calibrate_groups(curves, torch.zeros(200), 0.1, ["all"] * 200)
    assert found.groups["all"].shift == calibrate(curves, torch.zeros(200), 0.1).shift


def test_a_group_that_crc_fails_on_average_is_served_and_the_promise_holds_in_each() -> None:
    covered: dict[str, list[float]] = {"flat": [], "raised": [], "flat under CRC": []}
    for seed in range(30):
        curves, groups = pool(seed=seed)
        rng = np.random.default_rng(seed).permutation(200)
        half = np.zeros(200, bool)
        half[rng[:100]] = True
        names, zero = np.array(groups), torch.zeros(200)
        shifts = calibrate_groups(curves, zero, 0.1, groups, half).shifts(groups)
        for g in ("flat", "raised"):
            covered[g].append(evaluate(curves, zero, shifts, 0.1, ~half & (names == g)).coverage)
        crc = calibrate(curves, zero, 0.1, half).shift
        covered["flat under CRC"].append(evaluate(curves, zero, crc, 0.1, ~half & (names == "flat")).coverage)
    for g in ("flat", "raised"):
        assert np.mean(covered[g]) >= 0.9 - 3 * np.std(covered[g], ddof=1) / np.sqrt(30)
    assert np.mean(covered["flat under CRC"]) < 0.8


def test_small_and_unknown_groups_get_the_whole_image_and_it_is_said() -> None:
    curves, groups = pool()
    groups[0] = "rare"
    found = calibrate_groups(curves, torch.zeros(200), 0.1, groups)
    assert math.isinf(found.groups["rare"].shift)
    assert "Too few images for anything but the whole image in rare (1)" in found.guarantee
    assert "raised (150)" in found.guarantee
    assert torch.isinf(found.shifts(["never seen"])).all()
    assert evaluate(curves, torch.zeros(200), found.shifts(["never seen"] * 200), 0.1).area == 1


def test_a_wrong_number_of_groups_and_an_empty_calibration_set_are_refused() -> None:
    curves, groups = pool()
    with pytest.raises(ValueError, match="group names"):
        calibrate_groups(curves, torch.zeros(200), 0.1, groups[:-1])
    with pytest.raises(ValueError, match="No image calibrates"):
        calibrate_groups(curves, torch.zeros(200), 0.1, groups, np.zeros(200, bool))
