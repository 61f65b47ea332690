"""The sparse coding layer: adjointness, FISTA, shrinkage, gradients, Lipschitz constants, eval mode (METHODS 4.10)."""

from __future__ import annotations

import copy
import math
from itertools import pairwise

import pytest
import torch
import torch.nn.functional as F
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import nn

from core.settings.tacsc import TacscSettings
from core.tacsc.function import Source, encode, encode_plainly, momenta, shrink, unit_atoms
from core.tacsc.geometry import geometry
from core.tacsc.hypergradient import codes_and_derivative, local_error
from core.tacsc.layer import CSCConv2d, inverse_softplus
from core.tacsc.lipschitz import fft_bound, power_iteration, start_codes
from core.tacsc.objective import collect_sizes, l1_term, relative_error, sparsity

D = torch.float64


def made(h: int = 9, k: int = 3, s: int = 1, p: int = 1, atoms: int = 6, seed: int = 0):
    rng = torch.Generator().manual_seed(seed)
    x = torch.randn(2, 2, h, h + 1, generator=rng, dtype=D)
    weight = torch.randn(atoms, 2, k, k, generator=rng, dtype=D)
    return x, weight, geometry(h, h + 1, k, s, p)


def largest(weight: torch.Tensor, where, codes: torch.Tensor) -> torch.Tensor:
    start = start_codes(codes.shape[1], *codes.shape[2:])
    return power_iteration(unit_atoms(weight), where, start, 500)[0]


@given(st.integers(7, 13), st.integers(7, 13), st.sampled_from([1, 3, 5, 7]), st.integers(1, 3))
@settings(deadline=None, max_examples=40)
def test_synthesis_is_the_adjoint_of_analysis_for_odd_and_even_sizes_and_every_stride(h, w, k, s):
    where = geometry(h, w, k, s, k // 2)
    rng = torch.Generator().manual_seed(h * 100 + w)
    weight = torch.randn(5, 3, k, k, generator=rng, dtype=D)
    x = torch.randn(2, 3, h, w, generator=rng, dtype=D)
    c = where.analysis(x, weight)
    z = torch.randn(c.shape, generator=rng, dtype=D)
    back = where.synthesis(z, weight)
    assert back.shape == x.shape
    assert float(((c * z).sum() - (x * back).sum()).abs()) < 1e-11


def test_output_padding_is_the_recorded_one_where_sdnets_rule_is_wrong():
    assert geometry(31, 31, 3, 2, 1).output_padding == (0, 0)
    assert geometry(32, 32, 3, 2, 1).output_padding == (1, 1)
    assert geometry(224, 224, 7, 2, 3).output_padding == (1, 1)


@pytest.mark.parametrize("positive", [False, True])
@pytest.mark.parametrize("k", [1, 2, 3, 5])
@pytest.mark.parametrize("stride", [1, 2])
def test_codes_and_gradients_are_those_of_plain_autograd(k, stride, positive):
    x, weight, where = made(7, s=stride)
    lam, step = torch.tensor(0.2, dtype=D, requires_grad=True), torch.tensor(0.2, dtype=D)
    x.requires_grad_(), weight.requires_grad_()
    codes, size = encode(x, weight, lam, step, where, k, positive, True)
    plain = encode_plainly(x, weight, lam, step, where, k, positive)
    torch.testing.assert_close(codes, plain)
    assert 0.05 < float((plain == 0).double().mean()) < 0.98
    pull = torch.randn(plain.shape, generator=torch.Generator().manual_seed(9), dtype=D)
    ours = torch.autograd.grad((codes * pull).sum() + 3 * size, (x, weight, lam))
    theirs = torch.autograd.grad((plain * pull).sum() + 3 * plain.abs().mean(), (x, weight, lam))
    torch.testing.assert_close(ours, theirs)


@pytest.mark.parametrize("positive", [False, True])
@pytest.mark.parametrize("k", [1, 2, 4])
def test_gradcheck(k, positive):
    x, weight, where = made(4, s=2, atoms=3)
    lam, step = torch.tensor(0.2, dtype=D, requires_grad=True), torch.tensor(0.2, dtype=D)
    x.requires_grad_(), weight.requires_grad_()
    assert torch.autograd.gradcheck(lambda *a: encode(*a, step, where, k, positive, True), (x, weight, lam))


def test_a_source_changes_what_is_kept_and_no_value():
    x, weight, where = made()
    step = torch.tensor(0.2, dtype=D)
    kept = []
    for k in (2, 3):
        found = []
        for again in (False, True):
            raw, w = x.clone().requires_grad_(), weight.clone().requires_grad_()
            lam = torch.tensor(0.2, dtype=D, requires_grad=True)
            source = Source(raw, lambda t: t * 2 + 1) if again else None
            with torch.autograd.graph.saved_tensors_hooks(
                lambda t: (kept.append(t.shape), t)[1], lambda t: t
            ):
                codes, _ = encode(raw * 2 + 1, w, lam, step, where, k, source=source)
            found.append((codes, *torch.autograd.grad(codes.square().sum(), (raw, w, lam))))
        for a, b in zip(*found, strict=True):
            torch.testing.assert_close(a, b)


@pytest.mark.parametrize(("stride", "atoms"), [(1, 4), (2, 4), (1, 24)])
@pytest.mark.parametrize("k", [2, 4])
def test_kept_residuals_change_no_value_and_cost_bytes_where_the_image_is_not_small(k, stride, atoms):
    x, weight, where = made(8, s=stride, atoms=atoms)
    step = torch.tensor(0.2, dtype=D)
    found, counts = [], []
    for keep in (False, True):
        one, w = x.clone().requires_grad_(), weight.clone().requires_grad_()
        lam = torch.tensor(0.2, dtype=D, requires_grad=True)
        kept = []
        with torch.autograd.graph.saved_tensors_hooks(
            lambda t, kept=kept: (kept.append(t), t)[1], lambda t: t
        ):
            codes, size = encode(one, w, lam, step, where, k, False, True, keep=keep)
        counts.append(sum(t.shape == x.shape for t in kept))
        found.append((codes, *torch.autograd.grad(codes.square().sum() + size, (one, w, lam))))
    for a, b in zip(*found, strict=True):
        torch.testing.assert_close(a, b)
    small = atoms == 24  # twelve times as many codes as values in the image: residuals are kept anyway
    assert counts == [1 + (k - 1) * small, k]


def test_little_is_kept_for_the_backward_pass():
    x, weight, where = made(12, atoms=8)
    x.requires_grad_(), weight.requires_grad_()
    lam, step = torch.tensor(0.2, dtype=D, requires_grad=True), torch.tensor(0.2, dtype=D)

    def kept(function) -> int:
        sizes: dict[int, int] = {}
        hold = []

        def pack(t):
            hold.append(t)
            sizes[t.untyped_storage().data_ptr()] = t.untyped_storage().nbytes()
            return t

        with torch.autograd.graph.saved_tensors_hooks(pack, lambda t: t):
            function(x, weight, lam, step, where, 2)
        return sum(sizes.values())

    codes = encode_plainly(x, weight, lam, step, where, 2)
    ours, plain = kept(encode), kept(encode_plainly)
    assert ours <= 8 * (x.numel() + weight.numel() + 2 * codes.numel() + 4)
    assert plain > 2 * ours


def test_the_first_iterate_is_a_shrunk_analysis_and_k2_is_ista():
    x, weight, where = made()
    atoms, step, lam = unit_atoms(weight), 0.2, torch.tensor(0.3, dtype=D)
    first = encode_plainly(x, weight, lam, step, where, 1)
    torch.testing.assert_close(first, shrink(where.analysis(x, atoms) * step, 0.3 * step))
    ista = first + step * where.analysis(x - where.synthesis(first, atoms), atoms)
    torch.testing.assert_close(encode_plainly(x, weight, lam, step, where, 2), shrink(ista, 0.3 * step))
    assert momenta(2) == [0.0]
    assert momenta(3)[1] == pytest.approx(0.28175352, abs=1e-6)


def objective(x, codes, atoms, where, lam) -> float:
    return float(0.5 * (x - where.synthesis(codes, atoms)).square().sum() + lam * codes.abs().sum())


def test_the_objective_falls_with_a_step_up_to_one_over_l_and_not_with_2_2():
    x, weight, where = made()
    atoms, lam = unit_atoms(weight), 0.001
    top = float(largest(weight, where, where.analysis(x, atoms)))

    def ista(factor: float, rounds: int = 100) -> list[float]:
        step, t = factor / top, torch.zeros_like(where.analysis(x, atoms))
        values = [objective(x, t, atoms, where, lam)]
        for _ in range(rounds):
            t = shrink(t + step * where.analysis(x - where.synthesis(t, atoms), atoms), lam * step)
            values.append(objective(x, t, atoms, where, lam))
        return values

    good, bad = ista(1.0), ista(2.2)
    assert all(b <= a + 1e-9 for a, b in pairwise(good))
    assert any(b > a + 1e-6 for a, b in pairwise(bad))


def test_fista_comes_to_where_a_long_ista_comes_and_is_there_earlier():
    x, weight, where = made(5)
    atoms = unit_atoms(weight)
    lam = torch.tensor(0.1, dtype=D)
    step = 1 / largest(weight, where, where.analysis(x, atoms))
    t = torch.zeros_like(where.analysis(x, atoms))
    values = {}
    for k in range(1, 4001):
        t = shrink(t + step * where.analysis(x - where.synthesis(t, atoms), atoms), lam * step)
        values[k] = objective(x, t, atoms, where, 0.1) if k in (40, 4000) else 0
    fast = objective(x, encode_plainly(x, weight, lam, step, where, 40), atoms, where, 0.1)
    assert fast < values[40]
    slow = encode_plainly(x, weight, lam, step, where, 1500)
    assert objective(x, slow, atoms, where, 0.1) == pytest.approx(values[4000], rel=1e-3)


def test_a_large_threshold_empties_the_code_and_none_at_all_reconstructs():
    x, weight, where = made(7, atoms=24)
    atoms = unit_atoms(weight)
    step = 1 / largest(weight, where, where.analysis(x, atoms))
    limit = where.analysis(x, atoms).abs().max()
    empty = encode_plainly(x, weight, limit, step, where, 5)
    assert bool((empty == 0).all())
    assert relative_error(x, where.synthesis(empty, atoms)).tolist() == pytest.approx([1, 1])
    assert bool((sparsity(empty) == 1).all())
    full = encode_plainly(x, weight, torch.zeros((), dtype=D), step, where, 2000)
    assert float(relative_error(x, where.synthesis(full, atoms)).max()) < 1e-3


def test_sparsity_and_error_rise_with_the_threshold_at_convergence():
    x, weight, where = made(7, atoms=12)
    atoms = unit_atoms(weight)
    step = 1 / largest(weight, where, where.analysis(x, atoms))
    rows = []
    for lam in (0.01, 0.1, 0.4, 1.0, 2.0):
        t = encode_plainly(x, weight, torch.tensor(lam, dtype=D), step, where, 1500)
        rows.append((float(sparsity(t).mean()), float(relative_error(x, where.synthesis(t, atoms)).mean())))
    assert rows == sorted(rows)
    assert [r[1] for r in rows] == sorted(r[1] for r in rows)


@pytest.mark.parametrize("positive", [False, True])
@pytest.mark.parametrize("k", [1, 2, 4, 8])
def test_the_hypergradient_is_autograd_and_finite_differences(k, positive):
    x, weight, where = made(6)
    step, lam = torch.tensor(0.2, dtype=D), torch.tensor(0.15, dtype=D, requires_grad=True)
    pull = torch.randn(where.analysis(x, weight).shape, generator=torch.Generator().manual_seed(4), dtype=D)
    codes, _ = encode(x, weight, lam, step, where, k, positive)
    (slope,) = torch.autograd.grad((codes * pull).sum(), lam)
    t, d = codes_and_derivative(x, unit_atoms(weight), lam.detach(), step, where, k, positive)
    torch.testing.assert_close(t, codes.detach())
    assert float((d * pull).sum()) == pytest.approx(float(slope), abs=1e-9)
    e = 1e-6
    ends = [encode_plainly(x, weight, lam.detach() + h, step, where, k, positive) for h in (e, -e)]
    assert float(((ends[0] - ends[1]) * pull).sum() / (2 * e)) == pytest.approx(float(slope), rel=1e-5)


def test_the_hypergradient_tends_to_the_implicit_one():
    # a 1×1 kernel with O < C makes each pixel a small lasso of its own
    rng = torch.Generator().manual_seed(2)
    a = torch.randn(12, 20, generator=rng, dtype=D)
    a = a / a.norm(dim=1, keepdim=True)
    x = torch.randn(1, 20, 1, 1, generator=rng, dtype=D)
    where = geometry(1, 1, 1, 1, 0)
    step = 1 / torch.linalg.matrix_norm(a, 2) ** 2
    t, d = codes_and_derivative(x, a[:, :, None, None], torch.tensor(0.3, dtype=D), step, where, 4000)
    t, d = t.flatten(), d.flatten()
    on = t != 0
    assert 2 < int(on.sum()) < 12
    implicit = -torch.linalg.solve(a[on] @ a[on].T, t[on].sign())
    torch.testing.assert_close(d[on], implicit, atol=1e-7, rtol=1e-6)
    assert bool((d[~on] == 0).all())


def test_the_slope_of_the_error_is_the_one_of_finite_differences():
    layer = CSCConv2d(2, 6, 3, 1, 1, TacscSettings(iterations=3)).double()
    x, *_ = made(8)
    layer(x)
    layer.eval()
    found = local_error(layer, x)
    e = 1e-6
    ends = []
    for h in (e, -e):
        other = copy.deepcopy(layer)
        other.rho.data.fill_(inverse_softplus(layer.threshold.item() + h))
        ends.append(relative_error(x, other.reconstruct(other(x), x)))
    torch.testing.assert_close(found.slope, ((ends[0] - ends[1]) / (2 * e)).detach(), rtol=1e-4, atol=1e-6)
    torch.testing.assert_close(found.error, (ends[0] / 2 + ends[1] / 2).detach(), rtol=1e-5, atol=1e-9)


@pytest.mark.parametrize(("channels", "atoms", "stride"), [(3, 16, 1), (8, 8, 1), (8, 16, 2)])
def test_power_iteration_lies_between_any_rayleigh_quotient_and_the_fft_bound(channels, atoms, stride):
    rng = torch.Generator().manual_seed(1)
    weight = unit_atoms(torch.randn(atoms, channels, 3, 3, generator=rng, dtype=D))
    where = geometry(12, 12, 3, stride, 1)
    shape = where.analysis(torch.zeros(1, channels, 12, 12, dtype=D), weight).shape
    size, vector = power_iteration(weight, where, start_codes(*shape[1:]), 300)
    assert float(size) <= fft_bound(weight, 12, 12) * (1 + 1e-9)
    for _ in range(10):
        v = torch.randn(shape, generator=rng, dtype=D)
        assert float(where.synthesis(v, weight).square().sum() / v.square().sum()) <= float(size) * (1 + 1e-6)
    assert float(vector.norm()) == pytest.approx(1)
    # the dense operator, built column by column
    columns = where.synthesis(torch.eye(shape[1:].numel(), dtype=D).reshape(-1, *shape[1:]), weight).flatten(
        1
    )
    assert float(size) == pytest.approx(float(torch.linalg.matrix_norm(columns, 2) ** 2), rel=1e-3)


def test_training_moves_l_with_the_weights_and_eval_moves_nothing():
    layer = CSCConv2d(3, 8, 3, 1, 1, generator=torch.Generator().manual_seed(0))
    x = torch.randn(2, 3, 16, 16, generator=torch.Generator().manual_seed(1))
    layer(x)
    first = layer.lipschitz.clone()
    layer.weight.data.add_(torch.randn(layer.weight.shape, generator=torch.Generator().manual_seed(2)))
    for _ in range(100):
        layer(x)
    assert not torch.equal(first, layer.lipschitz)
    assert float(layer.lipschitz) == pytest.approx(
        float(power_iteration(layer.atoms(), layer.geometry(x), start_codes(8, 16, 16), 500)[0]), rel=5e-3
    )
    layer.eval()
    before = copy.deepcopy(layer.state_dict())
    a, b = layer(x), layer(x[:1])
    torch.testing.assert_close(a[:1], b)
    layer(torch.randn(1, 3, 9, 20))
    assert all(torch.equal(v, before[k]) for k, v in layer.state_dict().items())
    assert torch.equal(layer(x), a)


def test_atoms_have_unit_norm_after_every_step_whatever_decay_does():
    layer = CSCConv2d(3, 8, 3, 1, 1)
    optimiser = torch.optim.SGD(layer.parameters(), 1.0, weight_decay=0.3)
    for _ in range(5):
        optimiser.zero_grad()
        layer(torch.randn(2, 3, 8, 8)).square().sum().backward()
        optimiser.step()
        torch.testing.assert_close(layer.atoms().flatten(1).norm(dim=1), torch.ones(8))


@given(st.floats(1e-6, 50))
def test_softplus_and_its_inverse(value):
    rho = torch.tensor(inverse_softplus(value), dtype=D)
    assert float(F.softplus(rho)) == pytest.approx(value, rel=1e-9)


def test_a_gradient_of_zero_leaves_lambda_where_it_is():
    layer = CSCConv2d(3, 8, 3, 1, 1)
    optimiser = torch.optim.SGD([layer.rho], 0.5, momentum=0.9)
    start = float(layer.threshold.detach())
    for _ in range(10):
        layer.rho.grad = torch.zeros(())
        optimiser.step()
    assert float(layer.threshold.detach()) == start == pytest.approx(0.1)


def test_the_l1_term_is_the_mean_absolute_code_and_pushes_lambda_up():
    layer = CSCConv2d(3, 8, 3, 1, 1).double()
    net = nn.Sequential(layer)
    x = torch.randn(2, 3, 8, 8, dtype=D)
    with collect_sizes(net) as sizes:
        codes = net(x)
    term = l1_term(sizes)
    assert float(term.detach()) == pytest.approx(float(codes.detach().abs().mean()))
    (slope,) = torch.autograd.grad(term, layer.rho)
    assert float(slope) < 0  # descent moves against it
    assert layer.sizes is None and l1_term([]) == 0.0


def test_in_place_of_a_convolution():
    conv = nn.Conv2d(3, 8, 3, 2, 1, bias=False)
    layer = CSCConv2d.like(conv)
    x = torch.randn(2, 3, 15, 16)
    assert layer(x).shape == conv(x).shape
    assert torch.equal(layer.weight, conv.weight)
    with pytest.raises(ValueError, match="groups"):
        CSCConv2d.like(nn.Conv2d(4, 8, 3, groups=2))


def test_a_saved_layer_is_the_same_layer():
    layer, other = CSCConv2d(3, 8, 3, 1, 1), CSCConv2d(3, 8, 3, 1, 1)
    x = torch.randn(2, 3, 8, 8)
    layer(x)
    other.load_state_dict(layer.state_dict())
    torch.testing.assert_close(other.eval()(x), layer.eval()(x), rtol=0, atol=0)
    assert copy.deepcopy(other) is not None


@pytest.mark.parametrize("bad", [(1, 3, 2, 8), (1, 4, 8, 8), (3, 8, 8)])
def test_images_that_do_not_fit_are_refused_in_words(bad):
    with pytest.raises(ValueError, match=r"smaller than|shape"):
        CSCConv2d(3, 8, 5, 1, 1)(torch.zeros(bad))


def test_settings_that_make_no_sense_are_refused():
    with pytest.raises(ValueError, match="K, steps"):
        CSCConv2d(3, 8, 3, settings=TacscSettings(iterations=0))
    with pytest.raises(ValueError, match="above 0"):
        inverse_softplus(0.0)
    assert math.isclose(TacscSettings().threshold, 0.1)


def test_under_autocast_codes_are_in_bfloat16_and_the_step_stays_in_float32():
    layer = CSCConv2d(3, 8, 3, 1, 1)
    x = torch.randn(2, 3, 16, 16)
    exact = layer(x).detach()
    layer.eval()
    with torch.autocast("cpu", torch.bfloat16):
        rough = layer(x)
    assert rough.dtype == torch.bfloat16 and layer.lipschitz.dtype == torch.float32
    torch.testing.assert_close(rough.float(), exact, atol=0.05, rtol=0.05)
    rough.float().sum().backward()
    assert layer.rho.grad is not None and bool(torch.isfinite(layer.rho.grad))
