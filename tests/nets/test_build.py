"""Base networks by name, their binary score, and the device line."""

from __future__ import annotations

import pytest
import torch

from core.nets.build import CLAMP, SPECS, Spec, best_device, binary_score, build, device_line

TINY = Spec(decoder=(8, 8), side=32)


def test_a_network_gives_two_logits_on_the_grid_of_its_square():
    pytest.importorskip("segmentation_models_pytorch")
    model = build(TINY).eval()
    with torch.no_grad():
        logits = model(torch.zeros(1, 3, 32, 32))
    assert logits.shape == (1, 2, 32, 32)
    assert torch.isfinite(logits).all()


def test_building_asks_no_network_for_weights_and_fits_its_own_state():
    pytest.importorskip("segmentation_models_pytorch")
    first, second = build(TINY), build(Spec(**TINY.to_dict()))
    second.load_state_dict(first.state_dict())
    x = torch.randn(1, 3, 32, 32, generator=torch.Generator().manual_seed(0))
    with torch.no_grad():
        assert torch.equal(first.eval()(x), second.eval()(x))


@pytest.mark.parametrize("name", sorted(SPECS))
def test_the_shipped_kinds_take_their_own_square(name):
    spec = SPECS[name]
    assert spec.classes == 2
    assert spec.side % 2 ** len(spec.decoder) == 0


def test_the_slim_network_keeps_its_last_layer_in_float32_and_takes_sides_that_16_does_not_divide():
    model = build(Spec("slim", "", (4, 4, 8, 8, 8, 4), 96, 3)).eval()
    with torch.no_grad(), torch.autocast("cpu", torch.bfloat16):
        logits = model(torch.zeros(1, 3, 40, 56))
    assert logits.shape == (1, 3, 40, 56)
    assert logits.dtype == torch.float32
    with pytest.raises(ValueError, match="six channel counts"):
        build(Spec("slim", "", (4, 4), 96, 2))


def test_an_unknown_kind_is_refused():
    with pytest.raises(ValueError, match="'vnet' is not known"):
        build(Spec(kind="vnet"))


def test_the_score_is_the_difference_of_the_logits_and_the_logit_of_the_probability():
    logits = torch.randn(2, 2, 3, 4, generator=torch.Generator().manual_seed(0)) * 3
    score = binary_score(logits)
    assert score.shape == (2, 3, 4)
    torch.testing.assert_close(torch.sigmoid(score), torch.softmax(logits, 1)[:, 1])
    torch.testing.assert_close(binary_score(logits + 5), score)


def test_the_score_is_clamped_and_float32():
    logits = torch.zeros(1, 2, 1, 2, dtype=torch.bfloat16)
    logits[0, 1, 0, 0], logits[0, 0, 0, 1] = 400, 400
    score = binary_score(logits)
    assert score.dtype == torch.float32
    assert score.flatten().tolist() == [CLAMP, -CLAMP] == [15.0, -15.0]


@pytest.mark.parametrize("shape", [(1, 3, 4, 4), (2, 4, 4), (1, 1, 4, 4)])
def test_a_score_of_other_than_two_logits_is_refused(shape):
    with pytest.raises(ValueError, match=r"\(N, 2, H, W\)"):
        binary_score(torch.zeros(*shape))


def test_the_device_line_names_the_device():
    kind = best_device().type
    assert device_line().startswith("CPU" if kind == "cpu" else "GPU")
