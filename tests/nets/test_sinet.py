"""SINet and the other base networks: shapes, what attention does, that both branches learn, and weights small enough to ship."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from core.nets.build import KINDS, Spec, build, initialise
from core.nets.predict import predict
from core.nets.sinet import PartialDecoder, ReceptiveField, SearchAttention, SINet, two_logits
from core.nets.train import TrainSettings, fit_segmenter
from core.nets.weights import load_network, save_network

SPECS = {
    "unet": Spec(),
    "deeplab": Spec("deeplab", decoder=(64,), side=128),
    "pspnet": Spec("pspnet", decoder=(128,), side=128),
    "sinet": Spec("sinet", decoder=(24, 24), side=128),
}


def small() -> SINet:
    return initialise(SINet(8, 8, (1, 1, 1, 1)), torch.Generator().manual_seed(0))  # type: ignore[return-value]


@pytest.mark.parametrize("size", [(64, 64), (96, 64), (70, 51), (32, 32)])
def test_both_maps_have_the_size_of_the_image(size: tuple[int, int]) -> None:
    model, x = small(), torch.randn(2, 3, *size, generator=torch.Generator().manual_seed(1))
    fine, coarse = model(x)
    assert fine.shape == coarse.shape == (2, 2, *size)
    assert model.eval()(x).shape == (2, 2, *size)


def test_two_logits_differ_by_the_one_they_were_made_of() -> None:
    logit = torch.randn(2, 1, 3, 3)
    both = two_logits(logit)
    torch.testing.assert_close(both[:, 1:] - both[:, :1], logit)
    torch.testing.assert_close(torch.softmax(both, 1)[:, 1:], torch.sigmoid(logit))


def test_attention_keeps_features_where_the_map_points_and_fades_them_far_away() -> None:
    probability = torch.zeros(1, 1, 80, 80)
    probability[..., 10:14, 10:14] = 1.0
    seen = SearchAttention()(probability, torch.ones(1, 3, 80, 80))
    assert (seen[..., 10:14, 10:14] == 1).all()
    assert 0 < seen[0, 0, 18, 18] < 1  # near by, through the blur
    assert seen[0, 0, 70, 70] < 1e-3
    assert (seen >= 0).all() and (seen <= 1).all()


def test_the_blur_is_a_gaussian_of_unit_sum_and_is_not_trained() -> None:
    attention = SearchAttention()
    assert float(attention.kernel.sum()) == pytest.approx(1, abs=1e-5)
    assert not list(attention.parameters())
    torch.testing.assert_close(attention.kernel, attention.kernel.flip(2).transpose(2, 3))


def test_a_constant_map_does_not_divide_by_nought() -> None:
    seen = SearchAttention(5, 1.0)(torch.zeros(1, 1, 3, 3), torch.ones(1, 2, 3, 3))
    assert torch.isfinite(seen).all()


def test_receptive_fields_reach_further_than_a_pixel_and_keep_the_size() -> None:
    module = ReceptiveField(2, 4).eval()
    x = torch.zeros(1, 2, 41, 41, requires_grad=True)
    y = module(x + 0.1)
    assert y.shape == (1, 4, 41, 41)
    (slope,) = torch.autograd.grad(y[0, :, 20, 20].sum(), x)
    assert slope[0, :, 20, 11].abs().sum() > 0  # 3 + 7 - 1 and the joining 3 x 3: ten pixels away and more
    assert slope[0, :, 0, 0].abs().sum() == 0


def test_the_low_level_joins_the_search_decoder_only() -> None:
    maps = [torch.randn(1, 4, s, s) for s in (3, 6, 12)]
    assert PartialDecoder(4, low=False)(*maps).shape == (1, 1, 12, 12)
    assert PartialDecoder(4, low=True)(*maps, torch.randn(1, 4, 12, 12)).shape == (1, 1, 12, 12)


def test_every_parameter_of_both_branches_gets_a_gradient() -> None:
    model = small()
    fine, coarse = model(torch.randn(2, 3, 64, 64, generator=torch.Generator().manual_seed(2)))
    (fine[:, 1].square().mean() + coarse[:, 1].square().mean()).backward()
    without = [name for name, p in model.named_parameters() if p.grad is None]
    assert not without


def test_it_learns_a_disc_in_noise() -> None:
    rng = torch.Generator().manual_seed(0)
    y, x = torch.meshgrid(torch.arange(48), torch.arange(48), indexing="ij")
    centre = torch.randint(14, 34, (24, 2), generator=rng)
    masks = ((y - centre[:, 0, None, None]) ** 2 + (x - centre[:, 1, None, None]) ** 2) < 81
    images = torch.randn(24, 3, 48, 48, generator=rng) * 0.2 + masks[:, None] * 0.8 - 0.4
    settings = TrainSettings(epochs=60, batch=8, bfloat16=False, average=0.8)
    facts = fit_segmenter(small(), images[:16], masks[:16], images[16:], masks[16:], settings, 0)
    assert facts["dice"] > 0.7


@pytest.mark.parametrize("kind", KINDS)
def test_every_kind_gives_two_logits_and_ships_under_ten_megabytes(kind: str, tmp_path) -> None:
    spec = SPECS[kind]
    model = build(spec)
    save_network(tmp_path / "w.safetensors", model, spec, {})
    assert (tmp_path / "w.safetensors").stat().st_size < 10_000_000
    again, found, _ = load_network(tmp_path / "w.safetensors")
    assert found == spec
    rgb = np.random.default_rng(0).integers(0, 255, (90, 120, 3), dtype=np.uint8)
    scores = predict(again, rgb, spec.side)
    assert scores.shape == (90, 120) and torch.isfinite(scores).all()
