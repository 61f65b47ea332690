"""Training a base network: tiny networks learn, a resumed run is the uninterrupted one bit for bit, and nothing global is touched."""

from __future__ import annotations

from dataclasses import replace

import pytest
import torch
from torch import nn

from core.nets.train import TrainSettings, augment, fit_segmenter, score, segmentation_loss

SETTINGS = TrainSettings(epochs=12, batch=4, learning_rate=2e-2, average=0.9, bfloat16=False)


def tiny(seed: int = 0) -> nn.Module:
    """A network with normalisation, so that buffers have to be resumed too."""
    with torch.random.fork_rng():
        torch.manual_seed(seed)
        return nn.Sequential(nn.Conv2d(3, 6, 3, padding=1), nn.BatchNorm2d(6), nn.ReLU(), nn.Conv2d(6, 2, 1))


def data(n: int, seed: int = 0) -> tuple[torch.Tensor, torch.Tensor]:
    """Bright squares on dark noise."""
    rng = torch.Generator().manual_seed(seed)
    images = torch.rand(n, 3, 16, 16, generator=rng) * 0.6 - 0.9
    masks = torch.zeros(n, 16, 16, dtype=torch.bool)
    for i in range(n):
        y, x = (int(v) for v in torch.randint(1, 8, (2,), generator=rng))
        masks[i, y : y + 6, x : x + 6] = True
    images[masks[:, None].expand_as(images)] += 1.2
    return images, masks


def fit(model: nn.Module, settings: TrainSettings = SETTINGS, seed: int = 3, **more) -> dict[str, float]:
    return fit_segmenter(model, *data(10), *data(4, 1), settings, seed, **more)


def states_equal(a: nn.Module, b: nn.Module) -> bool:
    return all(torch.equal(x, b.state_dict()[k]) for k, x in a.state_dict().items())


@pytest.fixture(scope="module")
def whole() -> tuple[nn.Module, dict[str, float]]:
    model = tiny()
    return model, fit(model)


def test_a_tiny_network_learns(whole):
    model, facts = whole
    before = score(tiny(), *data(4, 1))
    after = score(model, *data(4, 1))
    assert after["entropy"] < 0.6 * before["entropy"]
    assert after["dice"] > 0.8
    assert facts["entropy"] == pytest.approx(after["entropy"])
    assert facts["dice"] == pytest.approx(after["dice"])
    assert not model.training


@pytest.mark.parametrize("bfloat16", [False, True])
@pytest.mark.parametrize("stop_after", [1, 7])
def test_a_resumed_run_equals_an_uninterrupted_one_bit_for_bit(tmp_path, stop_after, bfloat16):
    settings = replace(SETTINGS, bfloat16=bfloat16, dice=0.5)
    straight = tiny()
    wanted = fit(straight, settings)

    class Stop(Exception):
        pass

    def on_step(done, total, facts):
        if done == stop_after:
            raise Stop

    state = tmp_path / "state.safetensors"
    with pytest.raises(Stop):
        fit(tiny(), settings, state=state, on_step=on_step)
    resumed = tiny(seed=99)  # other weights: all of them must come from the state
    seen = []
    facts = fit(resumed, settings, state=state, on_step=lambda done, total, now: seen.append(done))
    assert seen == list(range(stop_after + 1, 13))
    assert facts == wanted
    assert states_equal(resumed, straight)
    again = tiny(seed=98)
    assert fit(again, settings, state=state) == wanted  # a finished run only reads its result
    assert states_equal(again, straight)


def test_the_same_seed_gives_the_same_network_and_another_seed_another(whole):
    again, other = tiny(), tiny()
    assert fit(again) == whole[1]
    assert states_equal(again, whole[0])
    fit(other, seed=4)
    assert not states_equal(other, whole[0])


def test_training_leaves_the_global_seed_alone():
    before = torch.get_rng_state()
    fit(tiny(), replace(SETTINGS, epochs=1))
    assert torch.equal(torch.get_rng_state(), before)


@pytest.mark.parametrize("change", ["settings", "seed"])
def test_a_state_of_another_run_is_not_continued(tmp_path, whole, change):
    state = tmp_path / "state.safetensors"
    if change == "settings":
        fit(tiny(), replace(SETTINGS, epochs=2), state=state)
    else:
        fit(tiny(), seed=4, state=state)
    fresh = tiny()
    assert fit(fresh, state=state) == whole[1]
    assert states_equal(fresh, whole[0])


def test_stopping_by_the_clock_keeps_what_was_learned_so_far(tmp_path):
    """Stopped before the first look at the validation part: the averaged weights of that moment, not the untrained ones."""
    model = tiny()
    facts = fit(model, minutes=0.0, state=tmp_path / "state.safetensors")
    assert facts["epoch"] == 0
    assert not states_equal(model, tiny())
    assert facts["entropy"] == pytest.approx(score(model, *data(4, 1))["entropy"])
    straight, resumed = tiny(), tiny(seed=5)
    assert fit(resumed, state=tmp_path / "state.safetensors") == fit(straight)
    assert states_equal(resumed, straight)


def test_fewer_images_than_a_batch_are_refused():
    with pytest.raises(ValueError, match="10 images"):
        fit(tiny(), replace(SETTINGS, batch=11))


def test_progress_is_told_after_each_epoch():
    seen = []
    fit(
        tiny(),
        replace(SETTINGS, epochs=3),
        on_step=lambda done, total, facts: seen.append((done, total, set(facts))),
    )
    assert [s[:2] for s in seen] == [(1, 3), (2, 3), (3, 3)]
    assert {"loss", "epoch"} <= seen[0][2]
    assert {"dice", "entropy"} <= seen[2][2]


def test_augmentation_moves_image_and_mask_together():
    images, masks = data(24)
    moved, truth = augment(images, masks, torch.Generator().manual_seed(0))
    assert moved.shape == images.shape
    assert truth.dtype == torch.bool
    assert moved.abs().max() <= 1
    for i in range(24):
        if truth[i].sum() >= 9:
            inside = moved[i].mean(0)[truth[i]].mean()
            beside = moved[i].mean(0)[~truth[i] & (moved[i] != 0).all(0)].mean()
            assert inside > beside + 0.2
    assert 0.5 < truth.sum() / masks.sum() < 2
    same_seed = augment(images, masks, torch.Generator().manual_seed(0))
    assert torch.equal(same_seed[0], moved)
    assert not torch.equal(augment(images, masks, torch.Generator().manual_seed(1))[0], moved)


def test_the_loss_is_cross_entropy_and_the_dice_term_rewards_overlap():
    masks = data(2)[1]
    right = torch.stack([-8.0 * masks.float() + 4, 8.0 * masks.float() - 4], 1)
    assert segmentation_loss(right, masks) == pytest.approx(
        nn.functional.cross_entropy(right, masks.long()).item()
    )
    assert segmentation_loss(right, masks, dice=1.0) < segmentation_loss(right, masks) + 0.02
    assert segmentation_loss(-right, masks, dice=1.0) > segmentation_loss(-right, masks) + 0.9


def test_the_score_leaves_empty_masks_out_of_dice():
    images, masks = data(3)
    masks[0] = False
    model = tiny().eval()
    both, one = score(model, images, masks), score(model, images[1:], masks[1:])
    assert both["dice"] == pytest.approx(one["dice"])
    assert both["entropy"] != pytest.approx(one["entropy"])
