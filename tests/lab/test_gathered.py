"""What fits need of a study: quantiles from curves, and inputs that are scored once."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as some

from core.coat.features import PredictorInput, lesion_quantiles
from core.conformal import CoverageCurves
from core.lab import gathered as module
from core.lab.gathered import gathered, quantiles_of


@given(
    some.integers(0, 2**31),
    some.lists(some.sampled_from([0.0, 0.002, 0.05, 0.5, 1.0]), min_size=1, max_size=4),
)
def test_quantiles_from_curves_are_those_from_pixels(seed: int, shares: list[float]) -> None:
    rng = torch.Generator().manual_seed(seed)
    maps = [torch.randn(15, 22, generator=rng) for _ in shares]
    masks = [torch.rand(15, 22, generator=rng) < share for share in shares]
    curves = CoverageCurves.from_maps(maps, masks)
    wanted = torch.stack([lesion_quantiles(s, m) for s, m in zip(maps, masks, strict=True)])
    assert torch.equal(quantiles_of(curves).nan_to_num(99.0), wanted.nan_to_num(99.0))
    rounded = quantiles_of(curves.to_bins())
    off = (wanted - rounded).nan_to_num(0.0)
    assert off.min() >= 0 and off.max() <= 0.025 + 1e-6  # bins round lesion scores down


def test_a_study_is_scored_once_and_then_read_from_the_working_folder(tmp_path: Path, monkeypatch) -> None:
    calls = []

    def gather(part, read, model, side):
        calls.append(len(part))
        n = 3
        made = PredictorInput(torch.rand(n, 4, 8, 8), torch.rand(n, 5), torch.rand(n, 10))
        return made, torch.rand(n, 16), None, {}

    monkeypatch.setattr(module, "gather", gather)
    first = gathered("phantom", None, tmp_path)
    again = gathered("phantom", None, tmp_path)
    assert len(calls) == 2  # D2 and the pool, once
    assert torch.equal(first.d2.picture, again.d2.picture) and torch.equal(first.quantiles, again.quantiles)
    assert torch.equal(first.pool.plug_in, again.pool.plug_in)
    assert not list(tmp_path.glob("*.part"))


def test_an_unknown_study_is_named() -> None:
    with pytest.raises(ValueError, match="not known"):
        gathered("liver", None)
