"""AA-CRC as quantile regression: closed form, gradient, calibration along features, and CRC as its simplest case."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
import torch

from core.conformal import CoverageCurves, calibrate, evaluate
from core.conformal.aacrc import MissIntegral, fit_aacrc, with_intercept


def pool(n: int = 160, seed: int = 0, side: int = 24) -> tuple[CoverageCurves, torch.Tensor]:
    """Images whose scores are shifted by a feature that is known, and spread by one that is not."""
    rng = torch.Generator().manual_seed(seed)
    shift = torch.randn(n, generator=rng) * 2
    maps = [torch.randn(side, side, generator=rng) * (0.5 + torch.rand(1, generator=rng)) + s for s in shift]
    masks = [
        torch.rand(side, side, generator=rng) < 0.05 + 0.4 * torch.rand(1, generator=rng) for _ in range(n)
    ]
    return CoverageCurves.from_maps(maps, masks), torch.stack([shift, torch.randn(n, generator=rng)], 1)


def test_the_closed_form_is_the_integral_of_the_miss() -> None:
    curves, _ = pool(5)
    u = torch.tensor([-1.0, 0.3, 2.0, -6.0, 5.0], dtype=torch.float64)
    total, miss = MissIntegral(curves)(u)
    steps = torch.linspace(-12, 12, 200_001)
    missed = 1 - curves.coverage(torch.zeros(5), -steps)
    for i in range(5):
        below = steps <= u[i]
        assert total[i].item() == pytest.approx(
            torch.trapezoid(missed[i, below], steps[below].double()).item(), abs=2e-4
        )
        assert miss[i].item() == pytest.approx(
            1 - curves.coverage(torch.zeros(5), -float(u[i]))[i, 0].item(), abs=1e-9
        )


def test_the_smoothed_integral_is_the_average_and_its_slopes_are_right() -> None:
    curves, _ = pool(5)
    integral, h = MissIntegral(curves), 0.3
    u = torch.tensor([-1.0, 0.3, 2.0, -0.5, 1.0], dtype=torch.float64)
    near = torch.linspace(-h, h, 4001, dtype=torch.float64)
    average = torch.trapezoid(torch.stack([integral(u + d)[0] for d in near]), near, dim=0) / (2 * h)
    value, slope, bend = integral.smooth(u, h)
    torch.testing.assert_close(value, average, atol=1e-6, rtol=0)
    assert (value >= integral(u)[0] - 1e-12).all() and (value <= integral(u)[0] + h / 4).all()
    step = 1e-4
    up, down = integral.smooth(u + step, h), integral.smooth(u - step, h)
    torch.testing.assert_close(slope, (up[0] - down[0]) / (2 * step), atol=1e-5, rtol=0)
    torch.testing.assert_close(bend, (up[1] - down[1]) / (2 * step), atol=2e-2, rtol=0.1)


def test_far_from_zero_nothing_cancels() -> None:
    curves, features = pool(40)
    far = CoverageCurves.from_maps([torch.full((4, 4), 0.0)], [torch.ones(4, 4, dtype=torch.bool)])
    u = torch.tensor([1e-3], dtype=torch.float64)
    assert MissIntegral(far)(u)[0].item() == pytest.approx(1e-3)
    moved = CoverageCurves(
        curves.names,
        replace(curves.lesion, value=curves.lesion.value + 4096),
        curves.pixels,
        curves.lesion_size,
        curves.size,
    )
    here, there = (fit_aacrc(c, features, 0.1).tau_hat(features) for c in (curves, moved))
    torch.testing.assert_close(there - 4096, here, atol=2e-3, rtol=0)


@pytest.mark.parametrize("alpha", [0.1, 0.25])
def test_the_optimum_is_that_of_a_linear_program(alpha: float) -> None:
    """Scikit-learn's QuantileRegressor solves the same problem as a linear program (HiGHS)."""
    from sklearn.linear_model import QuantileRegressor

    curves, features = pool(60, 3, side=8)
    fit = fit_aacrc(curves, features, alpha, ridge=0.0)
    image = curves.lesion.image_of().long()
    weight = 1 / curves.lesion_size[image].double()
    program = QuantileRegressor(quantile=fit.level, alpha=0.0, solver="highs")
    program.fit(features[image].numpy(), curves.lesion.value.double().numpy(), sample_weight=weight.numpy())
    best = torch.tensor([*program.coef_, program.intercept_], dtype=torch.float64)
    integral, phi = MissIntegral(curves), with_intercept(features.double())
    ours, least = (
        float((integral(phi @ theta)[0] - fit.level * (phi @ theta)).mean()) for theta in (fit.theta, best)
    )
    assert least - 1e-9 <= ours <= least + 1e-5
    torch.testing.assert_close(fit.tau_hat(features).double(), phi @ best, atol=0.02, rtol=0)


def test_binned_and_exact_integrals_agree_within_a_bin() -> None:
    curves, _ = pool(8)
    u = torch.linspace(-2, 2, 8, dtype=torch.float64)
    exact, binned = MissIntegral(curves)(u)[0], MissIntegral(curves.to_bins())(u)[0]
    assert ((binned - exact) >= -1e-9).all()  # lesion scores were rounded down: more is missed
    assert ((binned - exact) <= 1 / 40 + 1e-9).all()


def test_without_features_it_is_a_constant_that_misses_alpha_prime_of_the_calibration_images() -> None:
    curves, features = pool()
    fit = fit_aacrc(curves, features[:, :0], 0.1)
    tau = fit.tau_hat(features[:, :0])
    assert tau.unique().numel() == 1
    missed = 1 - evaluate(curves, tau, 0.0, 0.1).coverage
    assert missed == pytest.approx(fit.level, abs=2e-3)
    crc = calibrate(curves, torch.zeros(len(curves)), 0.1)
    assert float(tau[0]) == pytest.approx(-crc.shift, abs=0.05)


def test_risk_is_balanced_along_every_feature() -> None:
    curves, features = pool()
    fit = fit_aacrc(curves, features, 0.1, ridge=0.0)
    miss = 1 - curves.coverage(fit.tau_hat(features))[:, 0]
    standard = (features - features.mean(0)) / features.std(0)
    for k in range(2):
        assert float(((miss - fit.level) * standard[:, k]).mean()) == pytest.approx(0, abs=3e-3)
    assert fit.imbalance < 3e-3


def test_for_a_new_image_its_worst_miss_stands_in_the_sum() -> None:
    """The full conformal form: sum (miss - alpha) Phi + (1 - alpha) Phi_new = 0; with the mean features it is the split form."""
    curves, features = pool()
    new = torch.tensor([1.5, -0.5])
    fit = fit_aacrc(curves, features, 0.1, ridge=0.0, new=new)
    miss = 1 - curves.coverage(fit.tau_hat(features))[:, 0]
    phi = with_intercept(features.double())
    balance = ((miss - 0.1)[:, None] * phi).sum(0) + 0.9 * with_intercept(new.double()[None])[0]
    assert (balance.abs() / len(curves) < 3e-3).all()
    split, mean = (fit_aacrc(curves, features, 0.1, new=v).theta for v in (None, features.mean(0)))
    torch.testing.assert_close(split, mean, atol=1e-4, rtol=0)
    assert (fit.theta - split).abs().max() > 1e-3


def test_mapie_run_to_convergence_finds_the_same_thresholds() -> None:
    """MAPIE's `ConditionalExpectedRiskController` is the full conformal form; its own training loop, given more epochs than by default.

    It follows the same exact slope by Adam, but keeps the epoch whose objective, integrated from 0 by the trapezoidal rule with 100 nodes, is least.
    For a miss, which rises from 0 to at most 1, that rule is wrong by half a step at most, u/198 = 0.003 here, and its recall is a sigmoid of
    slope 1000: nearly flat directions of the objective are left undecided to that extent. Hence the bounds below.
    """
    controllers = pytest.importorskip("mapie.risk_control.adaptive_conformal_risk_control")
    rng = torch.Generator().manual_seed(3)
    features = torch.randn(24, 2, generator=rng)
    maps = [0.5 + 0.3 * torch.rand(8, 8, generator=rng) + 0.08 * f[0] for f in features]
    masks = [torch.rand(8, 8, generator=rng) < 0.1 + 0.4 * torch.rand(1, generator=rng) for _ in maps]
    curves = CoverageCurves.from_maps(maps, masks)
    scores, truth = torch.stack(maps).numpy(), torch.stack(masks).numpy().astype(float)
    chosen = np.arange(22)
    mapie = controllers.ConditionalExpectedRiskController(
        predict_function=lambda x, parameter=None: scores[x],
        feature_map=lambda x: features[np.atleast_1d(x)].numpy(),
        target_level=0.2,
        risk="recall",
        learning_rate=0.03,
    )
    # MAPIE draws from both global generators; both are put back
    kept = np.random.get_state()  # noqa: NPY002
    try:
        with torch.random.fork_rng():
            torch.manual_seed(0)
            np.random.seed(0)  # noqa: NPY002
            mapie.conformalize(chosen, truth[:22], n_epochs=40)
            mapie.learning_rate = 0.003
            mapie.predict(np.arange(22, 24), n_epochs=40)
    finally:
        np.random.set_state(kept)  # noqa: NPY002
    for k, theirs in zip((22, 23), mapie.best_predict_params_, strict=True):
        fit = fit_aacrc(curves, features, 0.2, chosen, ridge=0.0, new=features[k])
        assert float(fit.tau_hat(features[k : k + 1])) == pytest.approx(theirs, abs=0.005)


def test_a_feature_that_tells_the_shift_closes_the_gap() -> None:
    curves, features = pool()
    half = np.arange(len(curves)) % 2 == 0
    fit = fit_aacrc(curves, features, 0.1, half)
    adaptive = evaluate(curves, fit.tau_hat(features), 0.0, 0.1, ~half)
    crc = calibrate(curves, torch.zeros(len(curves)), 0.1, half)
    constant = evaluate(curves, torch.zeros(len(curves)), crc.shift, 0.1, ~half)
    assert adaptive.gap < 0.6 * constant.gap


def test_a_shift_from_images_it_did_not_see_restores_the_promise() -> None:
    covered = []
    for seed in range(30):
        curves, features = pool(120, seed)
        third = np.arange(120) % 3
        fit = fit_aacrc(curves, features, 0.1, third == 0)
        tau = fit.tau_hat(features)
        shift = calibrate(curves, tau, 0.1, third == 1, "AA-CRC").shift
        covered.append(evaluate(curves, tau, shift, 0.1, third == 2).coverage)
    assert np.mean(covered) >= 0.9 - 3 * np.std(covered, ddof=1) / np.sqrt(30)


def test_the_scale_of_a_feature_does_not_matter() -> None:
    curves, features = pool()
    one, other = (fit_aacrc(curves, features * k + 5, 0.2).tau_hat(features * k + 5) for k in (1.0, 1000.0))
    torch.testing.assert_close(one, other, atol=2e-3, rtol=1e-3)


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (lambda f: f[:-1], "features of shape"),
        (lambda f: f * torch.nan, "finite"),
    ],
)
def test_bad_features_are_refused(change, words: str) -> None:
    curves, features = pool(20)
    with pytest.raises(ValueError, match=words):
        fit_aacrc(curves, change(features), 0.1)


def test_too_few_images_are_refused_and_those_without_lesion_do_not_count() -> None:
    curves, features = pool(9)
    with pytest.raises(ValueError, match="must be positive"):
        fit_aacrc(curves, features, 0.1)
    more, given = pool(30)
    empty = CoverageCurves.from_maps([torch.zeros(4, 4)], [torch.zeros(4, 4, dtype=torch.bool)])
    with_empty = fit_aacrc(
        CoverageCurves.merge([more, empty]), torch.cat([given, torch.full((1, 2), 99.0)]), 0.2
    )
    torch.testing.assert_close(with_empty.theta, fit_aacrc(more, given, 0.2).theta)
