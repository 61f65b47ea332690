"""Features, predictor and fit: what is promised by construction, and that nothing but the predictor is trained."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
import torch
from torch import nn

from core.coat.features import FEATURE_NAMES, PredictorInput, lesion_quantiles, map_features, predictor_input
from core.coat.fit import fit, hard_coverage, shifted_gap
from core.coat.members import load_members, save_members
from core.coat.predictor import ThresholdPredictor, predict_knots, predict_thresholds
from core.coat.thresholds import ALPHA_KNOTS
from core.conformal import CoverageCurves, calibrate
from core.nets.predict import predict
from core.settings import CoatSettings

QUICK = CoatSettings(epochs=4, members=2, batch=8)


def toy(
    n: int = 24, seed: int = 0, side: int = 40
) -> tuple[PredictorInput, torch.Tensor, list[torch.Tensor], list[torch.Tensor]]:
    """Blurred discs whose score is shifted by something that the picture's brightness tells."""
    rng = np.random.default_rng(seed)
    images, maps, masks = [], [], []
    y, x = np.mgrid[:side, :side]
    for _ in range(n):
        r, shift = rng.uniform(5, 12), rng.uniform(-3, 3)
        distance = np.hypot(y - side / 2, x - side / 2)
        scores = (r - distance) * 0.8 + shift + rng.normal(0, 0.3, (side, side))
        images.append(np.full((side, side, 3), int(128 + 30 * shift), np.uint8))
        maps.append(torch.from_numpy(scores.clip(-15, 15)).float())
        masks.append(torch.from_numpy(distance < r))
    quantiles = torch.stack([lesion_quantiles(s, m) for s, m in zip(maps, masks, strict=True)])
    return predictor_input(images, maps), quantiles, maps, masks


def test_features_have_names_are_finite_and_do_not_depend_on_where_things_are() -> None:
    scores = torch.randn(30, 50, generator=torch.Generator().manual_seed(0)) * 4
    vector, plug = map_features(scores)
    assert vector.shape == (len(FEATURE_NAMES),) and plug.shape == (len(ALPHA_KNOTS),)
    assert torch.isfinite(vector).all()
    torch.testing.assert_close(vector, map_features(scores.flip(0))[0], rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize(
    "scores", [torch.full((8, 8), -15.0), torch.full((8, 8), 15.0), torch.zeros(1, 1), torch.zeros(1, 7)]
)
def test_constant_and_tiny_maps_have_finite_features(scores: torch.Tensor) -> None:
    assert torch.isfinite(map_features(scores)[0]).all()


def test_an_image_and_a_map_on_different_grids_are_refused() -> None:
    with pytest.raises(ValueError, match="one grid"):
        predictor_input([np.zeros((8, 8, 3), np.uint8)], [torch.zeros(8, 9)])


def test_an_untrained_predictor_is_the_plug_in_threshold() -> None:
    given = toy(4)[0]
    knots = predict_knots([ThresholdPredictor(rng=torch.Generator().manual_seed(0))], given)
    expected = given.plug_in[:, :1] + torch.cat(
        [torch.zeros(4, 1), given.plug_in.diff(dim=1).clamp(min=1e-3).cumsum(1)], 1
    )
    torch.testing.assert_close(knots, expected)


def test_thresholds_rise_with_alpha_whatever_the_weights_are() -> None:
    given = toy(4)[0]
    for seed in range(5):
        model = ThresholdPredictor(rng=torch.Generator().manual_seed(seed))
        with torch.no_grad():
            model.head.weight.normal_(0, 3, generator=torch.Generator().manual_seed(seed))
        assert (predict_knots([model], given).diff(dim=1) > 0).all()


def test_a_threshold_does_not_depend_on_the_other_images_of_the_batch() -> None:
    given, quantiles, _, _ = toy()
    members = fit(given, quantiles, QUICK, 0).members
    together, alone = predict_knots(members, given), predict_knots(members, given.select(torch.tensor([3])))
    assert torch.equal(together[3:4], alone)


def test_a_fit_is_repeatable_and_owes_nothing_to_the_global_generator() -> None:
    given, quantiles, _, _ = toy()
    first = fit(given, quantiles, QUICK, 1)
    torch.rand(7)  # moves the global generator
    assert torch.equal(first.out_of_fold, fit(given, quantiles, QUICK, 1).out_of_fold)
    assert not torch.equal(first.out_of_fold, fit(given, quantiles, QUICK, 2).out_of_fold)


@pytest.mark.parametrize(
    "settings",
    [
        CoatSettings(objective="coat"),
        CoatSettings(objective="at"),
        CoatSettings(objective="at then coat"),
        CoatSettings(unit="probability", temperature_start=0.25, temperature_end=0.25),
    ],
)
def test_fitting_helps_where_the_picture_tells_what_the_plug_in_cannot_know(settings: CoatSettings) -> None:
    given, quantiles, _, _ = toy(60)
    fitted = fit(given, quantiles, replace(settings, epochs=40, members=2, batch=16), 0)
    assert fitted.gap < shifted_gap(quantiles, torch.zeros_like(given.plug_in))  # one constant for all: CRC
    assert len(fitted.members) == 2 and not any(m.training for m in fitted.members)


def test_at_then_coat_is_at_until_half_of_the_epochs_are_spent() -> None:
    given, quantiles, _, _ = toy()

    def losses(objective: str) -> list[float]:
        settings = replace(QUICK, objective=objective, members=2, temperature_start=1.0)
        return [row["loss"] for row in fit(given, quantiles, settings, 0).history if row["member"] == 0]

    both, at = losses("at then coat"), losses("at")
    assert both[:2] == at[:2]
    assert both[2:] != at[2:]


def test_a_predictor_of_one_level_is_judged_at_that_level() -> None:
    given, quantiles, _, _ = toy()
    one = fit(given, quantiles, replace(QUICK, low_alpha=0.1, high_alpha=0.1), 0)
    assert one.gap == pytest.approx(shifted_gap(quantiles, one.out_of_fold, (0.1,)))
    assert fit(given, quantiles, QUICK, 0).gap == pytest.approx(
        shifted_gap(quantiles, fit(given, quantiles, QUICK, 0).out_of_fold)
    )


def test_steps_are_reported_and_a_raised_stop_ends_the_fit() -> None:
    given, quantiles, _, _ = toy()
    seen: list[tuple[int, int]] = []

    def stop(done: int, total: int, facts: dict[str, float]) -> None:
        seen.append((done, total))
        assert {"loss", "gap", "temperature"} <= set(facts)
        if done == 3:
            raise InterruptedError

    with pytest.raises(InterruptedError):
        fit(given, quantiles, QUICK, 0, on_step=stop)
    assert seen == [(1, 8), (2, 8), (3, 8)]


def test_images_without_lesion_are_dropped_and_too_few_images_are_refused() -> None:
    given, quantiles, _, _ = toy(12)
    quantiles[0] = torch.nan
    assert len(fit(given, quantiles, QUICK, 0).out_of_fold) == 11
    quantiles[:4] = torch.nan
    with pytest.raises(ValueError, match="at least 10"):
        fit(given, quantiles, QUICK, 0)


def test_the_base_network_is_not_touched_by_scoring_and_fitting() -> None:
    rng = torch.Generator().manual_seed(0)
    base = nn.Sequential(nn.Conv2d(3, 4, 3, padding=1), nn.BatchNorm2d(4), nn.ReLU(), nn.Conv2d(4, 2, 1))
    base.train()  # predict must put it into eval mode by itself
    before = {k: v.clone() for k, v in base.state_dict().items()}
    images = [torch.randint(0, 255, (32, 32, 3), generator=rng, dtype=torch.uint8).numpy() for _ in range(12)]
    maps = [predict(base, image, 32) for image in images]
    masks = [torch.rand(32, 32, generator=rng) < 0.3 for _ in images]
    quantiles = torch.stack([lesion_quantiles(s, m) for s, m in zip(maps, masks, strict=True)])
    fit(predictor_input(images, maps), quantiles, QUICK, 0)
    assert not base.training
    for key, value in base.state_dict().items():
        assert torch.equal(value, before[key]), key


def test_a_constant_predictor_is_crc_with_the_same_sets() -> None:
    _, _, maps, masks = toy()
    c = CoverageCurves.from_maps(maps, masks)
    crc, constant = calibrate(c, torch.zeros(len(c)), 0.1), torch.full((len(c),), 1.75)
    coat = calibrate(c, constant, 0.1, method="COAT")
    assert coat.shift == pytest.approx(crc.shift + 1.75, abs=1e-5)
    torch.testing.assert_close(c.area(constant, coat.shift), c.area(torch.zeros(len(c)), crc.shift))


def test_members_survive_the_disk_in_half_precision(tmp_path) -> None:
    given, quantiles, _, _ = toy()
    fitted = {"AT": fit(given, quantiles, QUICK, 0), "COAT": fit(given, quantiles, QUICK, 1)}
    save_members(tmp_path / "m.safetensors", fitted, {"base": "toy"})
    back = load_members(tmp_path / "m.safetensors")
    assert set(back) == {"AT", "COAT"} and len(back["COAT"]) == 2
    for method, members in back.items():
        wanted = predict_thresholds(fitted[method].members, given, 0.1)
        torch.testing.assert_close(predict_thresholds(members, given, 0.1), wanted, atol=0.05, rtol=0.02)


def test_hard_coverage_counts_quantiles_at_or_above() -> None:
    q = torch.tensor([[0.0, 1.0, 1.0, 3.0]])
    assert hard_coverage(q, torch.tensor([[-1.0, 0.0, 0.5, 1.0, 2.0, 3.5]])).tolist() == [
        [1.0, 1.0, 0.75, 0.75, 0.25, 0.0]
    ]


def test_lesion_quantiles_rise_and_have_one_shape_for_all_sizes() -> None:
    scores = torch.randn(20, 20, generator=torch.Generator().manual_seed(0))
    for m in (1, 3, 300):
        mask = torch.zeros(400, dtype=torch.bool)
        mask[:m] = True
        q = lesion_quantiles(scores, mask.reshape(20, 20), 64)
        assert q.shape == (64,) and (q.diff() >= 0).all()
        assert q.min() >= scores.reshape(-1)[:m].min() and q.max() <= scores.reshape(-1)[:m].max()
    assert torch.isnan(lesion_quantiles(scores, torch.zeros(20, 20, dtype=torch.bool))).all()
