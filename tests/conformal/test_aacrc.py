"""AA-CRC as quantile regression: closed form, gradient, calibration along features, and CRC as its simplest case."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from core.conformal import CoverageCurves, calibrate, evaluate
from core.conformal.aacrc import MissIntegral, fit_aacrc


def pool(n: int = 160, seed: int = 0) -> tuple[CoverageCurves, torch.Tensor]:
    """Images whose scores are shifted by a feature that is known, and spread by one that is not."""
    rng = torch.Generator().manual_seed(seed)
    shift = torch.randn(n, generator=rng) * 2
    maps = [torch.randn(24, 24, generator=rng) * (0.5 + torch.rand(1, generator=rng)) + s for s in shift]
    masks = [torch.rand(24, 24, generator=rng) < 0.05 + 0.4 * torch.rand(1, generator=rng) for _ in range(n)]
    return CoverageCurves.from_maps(maps, masks), torch.stack([shift, torch.randn(n, generator=rng)], 1)


def test_the_closed_form_is_the_integral_of_the_miss() -> None:
    curves, _ = pool(5)
    u = torch.tensor([-1.0, 0.3, 2.0, -6.0, 5.0], dtype=torch.float64)
    total, miss = MissIntegral(curves)(u)
    steps = torch.linspace(-12, 12, 200_001)
    missed = 1 - curves.coverage(torch.zeros(5), -steps)
    for i in range(5):
        below = steps <= u[i]
        assert total[i].item() == pytest.approx(torch.trapezoid(missed[i, below], steps[below].double()).item(), abs=2e-4)
        assert miss[i].item() == pytest.approx(1 - curves.coverage(torch.zeros(5), -float(u[i]))[i, 0].item(), abs=1e-9)


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
    with_empty = fit_aacrc(CoverageCurves.merge([more, empty]), torch.cat([given, torch.full((1, 2), 99.0)]), 0.2)
    torch.testing.assert_close(with_empty.theta, fit_aacrc(more, given, 0.2).theta)
