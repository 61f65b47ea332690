"""The losses on logit distances: every invariance of METHODS 2.6, the recorded values of 2.2 and 2.3, torch and MONAI as oracles, bad input."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import replace

import pytest
import torch
import torch.nn.functional as F
from hypothesis import given, settings
from hypothesis import strategies as st

from core.margin.losses import (
    LOSSES,
    SegmentationLoss,
    cross_entropy,
    entropy_penalty,
    focal,
    label_smoothing,
    logit_distances,
    loss_of,
    margin_loss,
    margin_penalty,
    smoothing_kernel,
    soft_dice,
    spatial_label_smoothing,
)
from core.settings import MarginSettings

seeds = st.integers(0, 2**31)
few = settings(max_examples=25, deadline=None)
EVERY = [
    *(MarginSettings(loss=name, margin=2.0) for name in LOSSES),
    MarginSettings(loss="margin", margin=2.0, hinge="squared"),
    MarginSettings(loss="ECP", entropy_over="sum"),
    MarginSettings(loss="margin", margin=2.0, dice=0.5),
]
IDS = [f"{s.loss}-{s.hinge}-{s.entropy_over}-{s.dice}" for s in EVERY]
every_loss = pytest.mark.parametrize("which", EVERY, ids=IDS)


def batch(
    seed: int = 0, n: int = 2, k: int = 4, h: int = 6, w: int = 5, spread: float = 4.0
) -> tuple[torch.Tensor, torch.Tensor]:
    g = torch.Generator().manual_seed(seed)
    logits = torch.randn(n, k, h, w, generator=g, dtype=torch.float64) * spread
    return logits, torch.randint(0, k, (n, h, w), generator=g)


def some_ignored(seed: int = 0, shape: tuple[int, ...] = (2, 6, 5)) -> torch.Tensor:
    return torch.rand(shape, generator=torch.Generator().manual_seed(seed)) < 0.4


def gradient(loss: Callable[[torch.Tensor], torch.Tensor], x: torch.Tensor) -> torch.Tensor:
    x = x.clone().requires_grad_()
    return torch.autograd.grad(loss(x), x)[0]


# --- invariances ---------------------------------------------------------------------------------------------------


@every_loss
@few
@given(seed=seeds)
def test_a_shift_of_all_logits_of_a_pixel_changes_nothing(which: MarginSettings, seed: int) -> None:
    x, y = batch(seed)
    shift = torch.randn(2, 1, 6, 5, generator=torch.Generator().manual_seed(seed), dtype=torch.float64) * 20
    loss = loss_of(which)
    assert loss(x + shift, y).item() == pytest.approx(loss(x, y).item(), abs=1e-10)


@pytest.mark.parametrize(
    "which",
    [s for s in EVERY if s.loss != "SVLS"],
    ids=[i for s, i in zip(EVERY, IDS, strict=True) if s.loss != "SVLS"],
)
def test_the_order_of_pixels_changes_nothing(which: MarginSettings) -> None:
    x, y = batch(1)
    turn = torch.randperm(30, generator=torch.Generator().manual_seed(3))
    moved = loss_of(which)(x.flatten(2)[..., turn].view_as(x), y.flatten(1)[..., turn].view_as(y))
    torch.testing.assert_close(moved, loss_of(which)(x, y))


def test_the_order_of_pixels_matters_to_neighbourhoods_but_a_mirror_does_not() -> None:
    x, y = batch(1)
    turn = torch.randperm(30, generator=torch.Generator().manual_seed(3))
    here = spatial_label_smoothing(x, y)
    torch.testing.assert_close(spatial_label_smoothing(x.flip(3), y.flip(2)), here)
    torch.testing.assert_close(spatial_label_smoothing(x.transpose(2, 3), y.transpose(1, 2)), here)
    moved = spatial_label_smoothing(x.flatten(2)[..., turn].view_as(x), y.flatten(1)[..., turn].view_as(y))
    assert abs((moved - here).item()) > 1e-3


@pytest.mark.parametrize("which", [s for s in EVERY if not s.dice], ids=[i for i in IDS if i.endswith("0.0")])
@few
@given(seed=seeds)
def test_renaming_classes_in_logits_and_labels_changes_nothing(which: MarginSettings, seed: int) -> None:
    x, y = batch(seed)
    order = torch.randperm(4, generator=torch.Generator().manual_seed(seed + 1))
    new_name = torch.argsort(order)
    torch.testing.assert_close(loss_of(which)(x[:, order], new_name[y]), loss_of(which)(x, y))


def test_renaming_foreground_classes_does_not_change_dice() -> None:
    x, y = batch(2)
    order = torch.tensor([0, 3, 1, 2])
    torch.testing.assert_close(soft_dice(x[:, order], torch.argsort(order)[y]), soft_dice(x, y))


@every_loss
def test_gradients_are_those_of_finite_differences(which: MarginSettings) -> None:
    x, y = batch(5, n=2, k=3, h=3, w=2)
    distances = logit_distances(x)
    assert (distances - 2.0).abs().min() > 1e-3  # no kink of the hinge within a finite difference
    assert distances.sort(1).values[:, 1].min() > 1e-3  # nor one of the maximum
    mask = some_ignored(1, (2, 3, 2))
    assert torch.autograd.gradcheck(lambda z: loss_of(which)(z, y), (x.requires_grad_(),))
    assert torch.autograd.gradcheck(lambda z: loss_of(which)(z, y, mask), (x,))


@pytest.mark.parametrize("hinge", ["linear", "squared"])
@few
@given(seed=seeds, margin=st.floats(0, 8))
def test_the_penalty_only_moves_logits_against_one_another(hinge: str, seed: int, margin: float) -> None:
    x, _ = batch(seed)
    g = gradient(lambda z: margin_penalty(z, margin, hinge), x)
    assert g.sum(1).abs().max() < 1e-12
    assert (g.gather(1, x.argmax(1, keepdim=True)) >= 0).all()  # descent lowers the largest logit
    assert (g.scatter(1, x.argmax(1, keepdim=True), 0.0) <= 0).all()  # and raises the far ones


@pytest.mark.parametrize("hinge", ["linear", "squared"])
@few
@given(seed=seeds, margin=st.floats(0, 8))
def test_the_penalty_and_its_slope_vanish_exactly_where_all_distances_are_within_the_margin(
    hinge: str, seed: int, margin: float
) -> None:
    x, _ = batch(seed)
    within = (logit_distances(x) <= margin).all(1)
    g = gradient(lambda z: margin_penalty(z, margin, hinge), x).abs().sum(1)
    assert (g[within] == 0).all()
    assert (g[~within] > 0).all()


@few
@given(seed=seeds, margin=st.floats(0, 20), more=st.floats(1e-3, 5))
def test_the_penalty_falls_with_the_margin_no_faster_than_one_for_one(
    seed: int, margin: float, more: float
) -> None:
    x, _ = batch(seed)
    low, high = margin_penalty(x, margin).item(), margin_penalty(x, margin + more).item()
    assert -1 - 1e-9 <= (high - low) / more <= 1e-9


# --- what equals what ----------------------------------------------------------------------------------------------


def test_distances_are_those_to_the_largest_logit() -> None:
    x, _ = batch()
    weights = torch.randn(x.shape, generator=torch.Generator().manual_seed(1), dtype=torch.float64)
    assert (
        gradient(lambda z: (weights * logit_distances(z)).sum(), x).sum(1).abs().max() < 1e-12
    )  # both ends carry gradient
    d = logit_distances(x)
    assert (d >= 0).all()
    assert (d.gather(1, x.argmax(1, keepdim=True)) == 0).all()
    assert d[1, 2, 3, 4].item() == max(x[1, :, 3, 4].tolist()) - x[1, 2, 3, 4].item()


@pytest.mark.parametrize("hinge", ["linear", "squared"])
def test_the_penalty_is_a_plain_loop_over_pixels_and_classes(hinge: str) -> None:
    x, _ = batch(7)
    mask = some_ignored(2)
    costs = []
    for n, h, w in (~mask).nonzero().tolist():
        pixel = x[n, :, h, w].tolist()
        excess = [max(0.0, max(pixel) - value - 3.0) for value in pixel]
        costs += [e if hinge == "linear" else e * e for e in excess]
    assert margin_penalty(x, 3.0, hinge, mask).item() == pytest.approx(sum(costs) / len(costs), rel=1e-12)
    assert sum(costs) > 0


def test_a_squared_hinge_has_a_flat_floor() -> None:
    x = torch.tensor([[3.0, 0.0, -2.0]], dtype=torch.float64)[..., None]  # distances 0, 3, 5
    assert (
        margin_penalty(x, 10.0, "squared").item() == 0
    )  # squared before the hinge it would cost (100 + 49 + 25)/3
    assert margin_penalty(x, 4.0, "squared").item() == pytest.approx(1 / 3)


@few
@given(seed=seeds, weight=st.floats(0.01, 0.5))
def test_no_margin_on_right_pixels_is_label_smoothing(seed: int, weight: float) -> None:
    x, _ = batch(seed)
    y = x.argmax(1)
    torch.testing.assert_close(
        margin_loss(x, y, 0.0, weight), label_smoothing(x, y, weight), rtol=0, atol=1e-12
    )


def test_no_margin_on_wrong_pixels_is_not_label_smoothing() -> None:
    x, y = batch()
    assert abs(margin_loss(x, y, 0.0, 0.1) - label_smoothing(x, y, 0.1)).item() > 0.01


@pytest.mark.parametrize("hinge", ["linear", "squared"])
@few
@given(seed=seeds)
def test_a_margin_beyond_all_distances_is_cross_entropy(hinge: str, seed: int) -> None:
    x, y = batch(seed)
    far = logit_distances(x).max().item()
    assert margin_loss(x, y, far, 0.1, hinge).item() == cross_entropy(x, y).item()
    assert margin_loss(x, y, far * 0.9, 0.1, hinge).item() > cross_entropy(x, y).item()


@few
@given(seed=seeds, share=st.floats(0, 0.5))
def test_label_smoothing_is_a_linear_penalty_on_signed_distances(seed: int, share: float) -> None:
    x, y = batch(seed)
    signed = (x.gather(1, y[:, None]) - x).mean()
    torch.testing.assert_close(
        label_smoothing(x, y, share), cross_entropy(x, y) + share * signed, rtol=0, atol=1e-12
    )


@few
@given(seed=seeds)
def test_the_summed_entropy_is_k_times_the_mean_one(seed: int) -> None:
    x, y = batch(seed)
    ce = cross_entropy(x, y)
    summed, mean = entropy_penalty(x, y, 0.1, "sum") - ce, entropy_penalty(x, y, 0.1, "mean") - ce
    torch.testing.assert_close(summed, 4 * mean, rtol=0, atol=1e-12)
    entropy = torch.distributions.Categorical(logits=x.movedim(1, -1)).entropy().mean()
    torch.testing.assert_close(summed, -0.1 * entropy, rtol=0, atol=1e-12)


@few
@given(seed=seeds, gamma=st.floats(1, 5))
def test_focal_loss_lies_between_cross_entropy_less_gamma_entropies_and_cross_entropy(
    seed: int, gamma: float
) -> None:
    x, y = batch(seed)
    entropy = torch.distributions.Categorical(logits=x.movedim(1, -1)).entropy().mean()
    ce = cross_entropy(x, y)
    assert (ce - gamma * entropy - 1e-12 <= focal(x, y, gamma)).item()
    assert (focal(x, y, gamma) < ce).item()


@few
@given(seed=seeds)
def test_the_pull_towards_uniform_is_bounded_by_mean_distances(seed: int) -> None:
    x, _ = batch(seed)
    kl = torch.logsumexp(x, 1) - x.mean(1) - math.log(4)
    mean = logit_distances(x).mean(1)
    assert (kl <= mean + 1e-12).all()
    assert (mean - math.log(4) <= kl + 1e-12).all()


def test_focal_with_gamma_0_is_cross_entropy() -> None:
    x, y = batch()
    torch.testing.assert_close(focal(x, y, 0.0), cross_entropy(x, y))


@pytest.mark.parametrize("gamma", [0.5, 1.0, 3.0])
def test_focal_loss_of_a_certain_pixel_has_a_finite_slope(gamma: float) -> None:
    x = torch.tensor([[200.0, 0.0]])[..., None]
    y = torch.zeros(1, 1, dtype=torch.long)
    g = gradient(lambda z: focal(z, y, gamma), x)
    assert torch.isfinite(g).all()
    assert g.abs().max() < 1e-6


# --- spatially varying label smoothing -----------------------------------------------------------------------------


def soft_labels(y: torch.Tensor, k: int, ignore: torch.Tensor | None = None) -> torch.Tensor:
    """What a loss aims at, read from its slope at equal logits: slope = (1/K - label)/P."""
    x = torch.zeros(y.shape[0], k, *y.shape[1:], dtype=torch.float64)
    counted = y.numel() if ignore is None else int((~ignore).sum())
    return 1 / k - counted * gradient(lambda z: spatial_label_smoothing(z, y, 1.0, ignore), x)


def test_the_kernel_has_the_recorded_weights() -> None:
    kernel = smoothing_kernel(1.0)
    assert kernel[1, 1].item() == pytest.approx(0.5, abs=1e-15)
    edges = kernel[[0, 1, 1, 2], [1, 0, 2, 1]].tolist()
    assert edges == pytest.approx([0.0778] * 4, abs=5e-5)
    assert kernel[[0, 0, 2, 2], [0, 2, 0, 2]].tolist() == pytest.approx([0.0472] * 4, abs=5e-5)
    assert kernel.sum().item() == pytest.approx(1.0, abs=1e-15)


def test_labels_of_a_constant_map_stay_hard() -> None:
    x, _ = batch()
    y = torch.full((2, 6, 5), 2)
    torch.testing.assert_close(spatial_label_smoothing(x, y), cross_entropy(x, y), rtol=0, atol=1e-12)


@few
@given(seed=seeds, holes=st.booleans())
def test_soft_labels_are_probabilities_and_follow_the_kernel(seed: int, holes: bool) -> None:
    _, y = batch(seed)
    ignore = some_ignored(seed) if holes else None
    soft = soft_labels(y, 4, ignore)
    kept = torch.ones_like(y, dtype=torch.bool) if ignore is None else ~ignore
    sums = soft.sum(1)[kept]
    torch.testing.assert_close(sums, torch.ones_like(sums), rtol=0, atol=1e-12)
    assert soft.movedim(1, -1)[kept].min() >= -1e-12
    kernel = smoothing_kernel(1.0)
    n, h, w = kept[:, 1:-1, 1:-1].nonzero()[0].tolist()  # one inner pixel by hand
    h, w = h + 1, w + 1
    weight = kernel * kept[n, h - 1 : h + 2, w - 1 : w + 2]
    hand = [
        (weight * (y[n, h - 1 : h + 2, w - 1 : w + 2] == c)).sum().item() / weight.sum().item()
        for c in range(4)
    ]
    assert soft[n, :, h, w].tolist() == pytest.approx(hand, abs=1e-12)


def test_the_border_of_the_picture_repeats_its_labels() -> None:
    y = torch.zeros(1, 3, 3, dtype=torch.long)
    y[0, 0, 1] = 1
    kernel = smoothing_kernel(1.0)
    # the corner sees itself four times (centre, two edges, a corner) and the labelled pixel twice, beside it and repeated above
    expected = (kernel[1, 2] + kernel[0, 2]).item()
    assert soft_labels(y, 2)[0, 1, 0, 0].item() == pytest.approx(expected, abs=1e-12)


# --- fixed points --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("classes", "margin", "distance", "confidence"),
    [
        (4, 0.0, math.log(37), 0.925),
        (4, 2.0, math.log(37), 0.925),
        (4, 3.61, math.log(37), 0.925),
        (4, 5.0, 5.0, 0.980),
        (4, 10.0, 10.0, 0.99986),
        (2, 1.0, math.log(19), 0.95),
    ],
)
def test_descent_on_one_pixel_ends_at_the_recorded_distance(
    classes: int, margin: float, distance: float, confidence: float
) -> None:
    y = torch.zeros(1, 1, dtype=torch.long)

    def at(d: float) -> torch.Tensor:
        x = torch.full((1, classes, 1), -d, dtype=torch.float64)
        x[:, 0] = 0
        return x

    for d, sign in (
        (distance - 0.01, -1),
        (distance + 0.01, 1),
    ):  # the loss falls before it and rises behind it
        nearby = margin_loss(at(d + 1e-4), y, margin, 0.1) - margin_loss(at(d - 1e-4), y, margin, 0.1)
        assert nearby.item() * sign > 0
    assert torch.softmax(at(distance), 1)[0, 0, 0].item() == pytest.approx(confidence, abs=5e-4)


# --- oracles -------------------------------------------------------------------------------------------------------


@few
@given(seed=seeds, share=st.floats(0, 0.5))
def test_torch_agrees_on_cross_entropy_and_label_smoothing(seed: int, share: float) -> None:
    x, y = batch(seed)
    mask = some_ignored(seed)
    torch.testing.assert_close(cross_entropy(x, y), F.cross_entropy(x, y))
    torch.testing.assert_close(label_smoothing(x, y, share), F.cross_entropy(x, y, label_smoothing=share))
    marked = torch.where(mask, -100, y)
    torch.testing.assert_close(cross_entropy(x, y, mask), F.cross_entropy(x, marked, ignore_index=-100))
    torch.testing.assert_close(
        label_smoothing(x, y, share, mask),
        F.cross_entropy(x, marked, ignore_index=-100, label_smoothing=share),
    )


@pytest.mark.parametrize("gamma", [0.5, 2.0, 3.0])
def test_monai_agrees_on_focal_loss(gamma: float) -> None:
    losses = pytest.importorskip("monai.losses")
    x, y = batch(3)
    theirs = losses.FocalLoss(use_softmax=True, to_onehot_y=True, gamma=gamma, reduction="mean")(
        x, y[:, None]
    )
    torch.testing.assert_close(
        focal(x, y, gamma), 4 * theirs.double(), rtol=1e-5, atol=1e-7
    )  # a mean over classes there


def test_monai_agrees_on_soft_dice() -> None:
    losses = pytest.importorskip("monai.losses")
    x, y = batch(3)
    theirs = losses.DiceLoss(include_background=False, to_onehot_y=True, softmax=True)(x, y[:, None])
    torch.testing.assert_close(soft_dice(x, y), theirs.double(), rtol=1e-6, atol=1e-8)


# --- masks and types -----------------------------------------------------------------------------------------------


@every_loss
def test_one_remaining_pixel_is_that_pixel_alone(which: MarginSettings) -> None:
    x, y = batch(4)
    mask = torch.ones_like(y, dtype=torch.bool)
    mask[1, 3, 2] = False
    alone = loss_of(which)(x[1:, :, 3:4, 2:3], y[1:, 3:4, 2:3])
    if (
        which.dice
    ):  # Dice is a mean over images, and the other image is left with nothing: no overlap to ask for
        which = replace(which, dice=0.0)
        alone = loss_of(which)(x[1:, :, 3:4, 2:3], y[1:, 3:4, 2:3])
    torch.testing.assert_close(loss_of(which)(x, y, mask), alone)


@every_loss
def test_ignored_pixels_count_nowhere_whatever_they_hold(which: MarginSettings) -> None:
    x, y = batch(4)
    mask = some_ignored(9)
    other = torch.where(mask[:, None], -7.0, x)
    odd = torch.where(mask, 255, y)
    loss = loss_of(which)
    torch.testing.assert_close(loss(other, odd, mask), loss(x, y, mask))
    g = gradient(lambda z: loss(z, odd, mask), x)
    assert (g.movedim(1, -1)[mask] == 0).all()
    assert (g.movedim(1, -1)[~mask].abs().sum(-1) > 0).any()


@every_loss
def test_a_mask_that_ignores_nothing_changes_nothing(which: MarginSettings) -> None:
    x, y = batch(4)
    torch.testing.assert_close(
        loss_of(which)(x, y, torch.zeros_like(y, dtype=torch.bool)), loss_of(which)(x, y)
    )


@every_loss
def test_everything_ignored_is_refused(which: MarginSettings) -> None:
    x, y = batch()
    with pytest.raises(ValueError, match="Every pixel is ignored"):
        loss_of(which)(x, y, torch.ones_like(y, dtype=torch.bool))


@every_loss
@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16])
def test_half_precision_is_widened_first(which: MarginSettings, dtype: torch.dtype) -> None:
    x, y = batch(2, spread=12.0)
    half = x.to(dtype)
    loss = loss_of(which)(half, y)
    assert loss.dtype == torch.float32
    assert loss.item() == loss_of(which)(half.float(), y).item()


@pytest.mark.parametrize("shape", [(3, 4), (2, 4, 7), (2, 4, 3, 4, 5)])
@pytest.mark.parametrize("name", [n for n in LOSSES if n != "SVLS"])
def test_pixels_may_lie_in_any_number_of_axes(name: str, shape: tuple[int, ...]) -> None:
    g = torch.Generator().manual_seed(0)
    x = torch.randn(shape, generator=g)
    y = torch.randint(0, 4, (shape[0], *shape[2:]), generator=g)
    loss = loss_of(MarginSettings(loss=name, margin=1.0))
    listed = x.movedim(1, -1).reshape(-1, 4)
    torch.testing.assert_close(loss(x, y), loss(listed, y.reshape(-1)))


# --- settings, module, memory --------------------------------------------------------------------------------------


def test_settings_choose_the_loss_and_its_numbers() -> None:
    x, y = batch(8)
    pairs = [
        (MarginSettings(loss="CE"), cross_entropy(x, y)),
        (MarginSettings(loss="LS", smoothing=0.3), label_smoothing(x, y, 0.3)),
        (MarginSettings(loss="SVLS", sigma=2.0), spatial_label_smoothing(x, y, 2.0)),
        (MarginSettings(loss="focal", gamma=1.5), focal(x, y, 1.5)),
        (
            MarginSettings(loss="ECP", entropy_weight=0.4, entropy_over="sum"),
            entropy_penalty(x, y, 0.4, "sum"),
        ),
        (
            MarginSettings(loss="margin", margin=3.0, weight=0.7, hinge="squared"),
            cross_entropy(x, y) + 0.7 * margin_penalty(x, 3.0, "squared"),
        ),
        (MarginSettings(loss="CE", dice=0.5), cross_entropy(x, y) + 0.5 * soft_dice(x, y)),
    ]
    values = []
    for chosen, expected in pairs:
        torch.testing.assert_close(loss_of(chosen)(x, y), expected)
        torch.testing.assert_close(SegmentationLoss(chosen)(x, y), expected)
        values.append(expected.item())
    assert len({round(v, 9) for v in values}) == len(values)


def test_settings_out_of_range_are_refused() -> None:
    for wrong in (dict(margin=-1.0), dict(margin=21.0), dict(loss="hinge"), dict(hinge="cubed")):
        with pytest.raises(ValueError, match="choose one of|cannot be"):
            loss_of(MarginSettings(**wrong))


def kept_bytes(loss: Callable[..., torch.Tensor], x: torch.Tensor, y: torch.Tensor) -> int:
    """Bytes of the distinct storages that the backward pass keeps, without those of the inputs."""
    kept: dict[int, int] = {}
    holding = []

    def pack(t: torch.Tensor) -> torch.Tensor:
        holding.append(t)  # so that no storage is freed and its address used again
        kept[t.untyped_storage().data_ptr()] = t.untyped_storage().nbytes()
        return t

    with torch.autograd.graph.saved_tensors_hooks(pack, lambda t: t):
        loss(x, y)
    return sum(size for at, size in kept.items() if at != x.untyped_storage().data_ptr())


def test_the_margin_keeps_at_most_two_more_tensors_of_the_size_of_the_logits() -> None:
    x, y = batch(0, n=4, k=4, h=32, w=32)
    x = x.float().requires_grad_()
    extra = kept_bytes(lambda a, b: margin_loss(a, b, 2.0), x, y) - kept_bytes(cross_entropy, x, y)
    assert 0 < extra <= 2 * x.numel() * 4 + 1024


# --- bad input -----------------------------------------------------------------------------------------------------


@every_loss
@pytest.mark.parametrize("label", [-1, 4, 255])
def test_labels_outside_the_classes_are_refused(which: MarginSettings, label: int) -> None:
    x, y = batch()
    y[1, 2, 3] = label
    with pytest.raises(ValueError, match=r"4 classes \(0 to 3\).*[Mm]ap the labels"):
        loss_of(which)(x, y)


@every_loss
def test_logits_that_are_not_numbers_are_refused(which: MarginSettings) -> None:
    x, y = batch()
    x[1, 2, 3, 4] = float("nan")
    with pytest.raises(ValueError, match="NaN"):
        loss_of(which)(x, y)


@pytest.mark.parametrize(
    "alone", [lambda x, y: soft_dice(x, y), lambda x, y: margin_penalty(x)], ids=["dice", "penalty"]
)
def test_terms_asked_for_alone_refuse_nan_too(alone: Callable[..., torch.Tensor]) -> None:
    x, y = batch()
    x[1, 2, 3, 4] = float("nan")
    with pytest.raises(ValueError, match="NaN"):
        alone(x, y)


@every_loss
def test_shapes_that_do_not_fit_are_refused_with_both_shapes(which: MarginSettings) -> None:
    x, y = batch()
    with pytest.raises(ValueError, match=r"\(2, 4, 6, 5\).*\(2, 6, 5\).*\(2, 6, 4\)"):
        loss_of(which)(x, y[..., :4])
    with pytest.raises(ValueError, match="mask must be bool"):
        loss_of(which)(x, y, torch.zeros(2, 6, 5))
    with pytest.raises(ValueError, match="mask must be bool"):
        loss_of(which)(x, y, torch.zeros(2, 5, 6, dtype=torch.bool))


def test_an_empty_batch_is_refused() -> None:
    with pytest.raises(ValueError, match="hold a pixel"):
        cross_entropy(torch.zeros(0, 3, 4, 4), torch.zeros(0, 4, 4, dtype=torch.long))


def test_words_that_do_not_exist_are_refused() -> None:
    x, y = batch()
    with pytest.raises(ValueError, match="'linear' or 'squared'"):
        margin_penalty(x, 1.0, "cubed")
    with pytest.raises(ValueError, match="'mean' or by 'sum'"):
        entropy_penalty(x, y, 0.1, "median")
    with pytest.raises(ValueError, match="cut volumes into slices"):
        spatial_label_smoothing(x[..., None], y[..., None])


@pytest.mark.parametrize("name", ["CE", "LS", "focal", "ECP", "margin"])
def test_an_ignored_pixel_that_holds_nan_poisons_no_other(name: str) -> None:
    x, y = batch(4)
    mask = some_ignored(9)
    bad = torch.where(mask[:, None], float("nan"), x)
    loss = loss_of(MarginSettings(loss=name, margin=2.0))
    torch.testing.assert_close(loss(bad, y, mask), loss(x, y, mask))
    g, clean = (gradient(lambda z: loss(z, y, mask), v).movedim(1, -1) for v in (bad, x))
    torch.testing.assert_close(g[~mask], clean[~mask])
