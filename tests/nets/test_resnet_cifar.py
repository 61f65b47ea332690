"""Small residual networks: the published size, weights that come from a generator alone, shortcuts, and the cosine head."""

from __future__ import annotations

import pytest
import torch
import torch.nn.functional as F

from core.nets.resnet_cifar import BasicBlock, CosineHead, ResNetCifar, resnet_cifar
from core.nets.vit_small import vit_small


def net(seed: int = 0, **changes) -> ResNetCifar:
    return resnet_cifar(changes.pop("classes", 10), torch.Generator().manual_seed(seed), **changes)


def test_resnet20_has_the_published_number_of_parameters() -> None:
    assert sum(p.numel() for p in net().parameters()) == pytest.approx(0.27e6, rel=0.02)
    layers = [m for m in net().modules() if isinstance(m, torch.nn.Conv2d | torch.nn.Linear)]
    assert len(layers) == 20
    assert sum(p.numel() for p in net(depth=32).parameters()) == pytest.approx(0.46e6, rel=0.02)


@pytest.mark.parametrize("changes", [{}, {"shortcut": "B"}, {"head": "cosine"}, {"width": 5, "depth": 8}])
def test_shapes_and_gradients_reach_everything(changes: dict) -> None:
    model = net(classes=7, **changes)
    x = torch.randn(3, 3, 32, 32, generator=torch.Generator().manual_seed(1))
    logits = model(x)
    assert logits.shape == (3, 7)
    F.cross_entropy(logits, torch.tensor([0, 3, 6])).backward()
    assert all(p.grad is not None and float(p.grad.abs().max()) > 0 for p in model.parameters())
    assert model.features(x).shape == (3, 4 * changes.get("width", 16))
    assert model(torch.zeros(2, 3, 24, 20)).shape == (2, 7)


def test_weights_come_from_the_generator_alone() -> None:
    one, two, other = net(0), net(0), net(1)
    torch.manual_seed(5)
    again = net(0)
    for a, b, c in zip(one.parameters(), two.parameters(), again.parameters(), strict=True):
        assert torch.equal(a, b)
        assert torch.equal(a, c)
    assert not torch.equal(one.head.weight, other.head.weight)


def test_building_leaves_the_global_generator_as_a_function_of_nothing_that_matters() -> None:
    a = net(0, head="cosine")
    assert torch.isfinite(a.head.weight).all()  # an empty tensor was filled


def test_the_free_shortcut_keeps_every_second_pixel_and_adds_empty_channels() -> None:
    block = BasicBlock(2, 4, 2, "A").eval()
    torch.nn.init.zeros_(block.norm2.weight)  # the branch gives nothing
    x = torch.rand(1, 2, 6, 6, generator=torch.Generator().manual_seed(0))
    y = block(x)
    assert torch.equal(y[:, :2], x[:, :, ::2, ::2])
    assert torch.equal(y[:, 2:], torch.zeros(1, 2, 3, 3))


def test_cosine_logits_do_not_know_lengths() -> None:
    head = CosineHead(8, 3)
    torch.nn.init.normal_(head.weight, generator=torch.Generator().manual_seed(0))
    f = torch.randn(5, 8, generator=torch.Generator().manual_seed(1))
    out = head(f).detach()
    torch.testing.assert_close(out, head(7 * f).detach())
    assert float(out.abs().max()) <= 30.0001
    with torch.no_grad():
        head.weight.mul_(3)
    torch.testing.assert_close(out, head(f).detach())
    torch.testing.assert_close(head(head.weight[:1]).max().detach(), torch.tensor(30.0))


def test_what_is_not_known_is_refused() -> None:
    for wrong, words in (
        ({"depth": 21}, "6n"),
        ({"depth": 2}, "6n"),
        ({"head": "bald"}, "linear, cosine"),
        ({"shortcut": "C"}, "A, B"),
        ({"width": 0}, "at least one"),
    ):
        with pytest.raises(ValueError, match=words):
            net(**wrong)


def test_the_transformer_is_vit_tiny_in_width_and_depth_and_owes_nothing_to_global_state() -> None:
    pytest.importorskip("timm")
    tiny = vit_small(10, torch.Generator().manual_seed(0))
    assert sum(p.numel() for p in tiny.parameters()) == pytest.approx(5.4e6, rel=0.05)
    a, b = (vit_small(4, torch.Generator().manual_seed(3), patch=8, width=12, depth=1) for _ in range(2))
    assert all(torch.equal(p, q) for p, q in zip(a.parameters(), b.parameters(), strict=True))
    assert a(torch.zeros(2, 3, 32, 32)).shape == (2, 4)
    with pytest.raises(ValueError, match="must divide"):
        vit_small(4, torch.Generator(), patch=5)
