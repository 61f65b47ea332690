"""Temperature scaling: the minimum is one, it is found, and nothing but confidence changes."""

from __future__ import annotations

import numpy as np
import pytest
import torch
import torch.nn.functional as F
from hypothesis import given, settings
from hypothesis import strategies as st

from core.margin.reliability import ece, nll, tabulate
from core.margin.temperature import HIGHEST, LOWEST, fit_temperature, nll_at, scaled

few = settings(max_examples=20, deadline=None)


def calibrated(seed: int = 0, n: int = 3, k: int = 3, side: int = 40) -> tuple[np.ndarray, np.ndarray]:
    """Logits `(N, K, H, W)`, and labels drawn from their own softmax: the best T is about 1."""
    g = np.random.default_rng(seed)
    x = g.normal(size=(n, k, side, side)) * 2
    p = np.exp(x) / np.exp(x).sum(1, keepdims=True)
    return x, np.minimum((p.cumsum(1) < g.random((n, 1, side, side))).sum(1), k - 1)


@pytest.mark.parametrize("factor", [0.3, 1.0, 4.0])
def test_the_factor_by_which_logits_are_too_bold_is_found(factor: float) -> None:
    x, y = calibrated()
    assert fit_temperature(x * factor, y) == pytest.approx(factor, rel=0.05)


@few
@given(st.integers(0, 2**31), st.floats(0.2, 5))
def test_scaling_the_logits_scales_the_temperature(seed: int, factor: float) -> None:
    x, y = calibrated(seed, n=1, side=12)
    assert fit_temperature(x * factor, y) == pytest.approx(factor * fit_temperature(x, y), rel=1e-8)


@few
@given(st.integers(0, 2**31))
def test_no_other_temperature_is_better(seed: int) -> None:
    x, y = calibrated(seed, n=1, side=12)
    best = fit_temperature(x, y)
    low = nll_at(x, y, best)
    for factor in (0.01, 0.5, 0.99, 1.01, 2.0, 100.0):
        assert nll_at(x, y, best * factor) > low


def test_scipy_agrees() -> None:
    from scipy.optimize import minimize_scalar

    x, y = calibrated(4)
    there = minimize_scalar(
        lambda t: nll_at(2 * x, y, float(np.exp(t))),
        bounds=(-3, 3),
        method="bounded",
        options=dict(xatol=1e-9),
    )
    assert fit_temperature(2 * x, y) == pytest.approx(float(np.exp(there.x)), rel=1e-5)


def test_nll_is_torch_cross_entropy_and_that_of_the_table() -> None:
    x, y = calibrated(2)
    torch_says = F.cross_entropy(torch.from_numpy(x) / 1.7, torch.from_numpy(y)).item()
    assert nll_at(x, y, 1.7) == pytest.approx(torch_says, rel=1e-10)
    assert nll(tabulate(x[0] / 1.7, y[0], scope="all")) == pytest.approx(nll_at(x[:1], y[:1], 1.7), rel=1e-12)


def test_the_negative_log_likelihood_is_convex_in_one_over_t() -> None:
    x, y = calibrated(3, n=1)
    b = np.linspace(0.05, 4, 60)
    curve = np.array([nll_at(x, y, 1 / v) for v in b])
    assert (np.diff(curve, 2) > 0).all()


def test_it_repairs_confidence_and_leaves_the_prediction() -> None:
    x, y = calibrated(5)
    bold = torch.from_numpy(3 * x)
    mended = scaled(bold, fit_temperature(bold, y))
    assert (mended.argmax(1) == bold.argmax(1)).all()
    before, after = (ece(tabulate(z.movedim(1, 0), np.asarray(y), scope="all")) for z in (bold, mended))
    assert after < before / 5


def test_tensors_arrays_and_the_order_of_images_give_the_same() -> None:
    x, y = calibrated(6)
    best = fit_temperature(x, y)
    assert fit_temperature(torch.from_numpy(x), torch.from_numpy(y)) == best
    assert fit_temperature(x, y) == best
    assert fit_temperature(x[::-1], y[::-1]) == pytest.approx(best, rel=1e-10)


def test_ignored_pixels_and_other_scopes_are_left_out() -> None:
    x, y = calibrated(7)
    ignore = np.random.default_rng(0).random(y.shape) < 0.5
    bad, odd = np.where(ignore[:, None], np.nan, x), np.where(ignore, 255, y)
    kept = np.moveaxis(x, 1, 0)[:, ~ignore].T, y[~ignore]
    assert fit_temperature(bad, odd, ignore) == pytest.approx(fit_temperature(*kept), rel=1e-10)
    assert fit_temperature(x, y, scope="foreground") == pytest.approx(
        fit_temperature(x, y, y == 0), rel=1e-10
    )
    assert abs(fit_temperature(x, y, scope="foreground") - fit_temperature(x, y)) > 1e-3


def test_logits_that_are_always_right_or_say_nothing_end_at_an_end() -> None:
    x, _ = calibrated(8)
    assert fit_temperature(x, x.argmax(1)) == LOWEST
    assert fit_temperature(x, x.argmin(1)) == HIGHEST
    assert fit_temperature(np.zeros((1, 3, 4, 4)), np.zeros((1, 4, 4), int)) == 1.0


def test_one_wrong_pixel_among_certain_ones_has_a_finite_temperature() -> None:
    x = np.zeros((1, 2, 1, 100))
    x[:, 1] = 50.0
    x[..., 0] = [[0.0], [10.0]]
    y = np.ones((1, 1, 100), int)
    y[0, 0, 0] = 0
    best = fit_temperature(x, y)  # the slope of NLL underflows at first: where 99 * 50 e^(-50/T) is about 10
    assert best == pytest.approx(50 / np.log(495), rel=0.1)
    assert nll_at(x, y, best) < min(nll_at(x, y, best * 0.99), nll_at(x, y, best * 1.01))


def test_scaling_divides_in_float32_at_least() -> None:
    half = torch.tensor([8.0, -4.0], dtype=torch.float16)
    assert scaled(half, 2.0).dtype == torch.float32
    assert scaled(half.double(), 2.0).tolist() == [4.0, -2.0]


@pytest.mark.parametrize("temperature", [0.0, -1.0, float("nan")])
def test_a_temperature_not_above_0_is_refused(temperature: float) -> None:
    x, y = calibrated(n=1, side=4)
    for ask in (lambda: scaled(torch.from_numpy(x), temperature), lambda: nll_at(x, y, temperature)):
        with pytest.raises(ValueError, match="must be above 0"):
            ask()


def test_bad_input_is_refused() -> None:
    x, y = calibrated(n=1, side=4)
    with pytest.raises(ValueError, match="No pixel is in the scope"):
        fit_temperature(x, np.zeros_like(y), scope="foreground")
    with pytest.raises(ValueError, match="outside the 3 classes"):
        fit_temperature(x, y + 3)
    with pytest.raises(ValueError, match="'foreground'"):
        fit_temperature(x, y, scope="lesion")
    with pytest.raises(ValueError, match="need labels of shape"):
        fit_temperature(x, y[..., :2])
    x[0, 1, 2, 3] = np.inf
    with pytest.raises(ValueError, match="NaN or infinity at 1 of 16 pixels"):
        fit_temperature(x, y)
