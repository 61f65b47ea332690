"""The state of a run: what comes back is what was kept, for optimisers with and without moments; another run's state is refused."""

from __future__ import annotations

import pytest
import torch
from torch import nn

from core.nets.state import load_state, save_state


def net(seed: int) -> nn.Module:
    model = nn.Sequential(nn.Linear(4, 3), nn.BatchNorm1d(3), nn.Linear(3, 2))
    for k, p in enumerate(model.parameters()):
        with torch.no_grad():
            p.copy_(torch.randn(p.shape, generator=torch.Generator().manual_seed(seed + k)))
    return model


MAKERS = {
    "adam": lambda m: torch.optim.Adam(m.parameters(), 1e-2),
    "fused adam": lambda m: torch.optim.Adam(m.parameters(), 1e-2, fused=True),
    "sgd with momentum": lambda m: torch.optim.SGD(m.parameters(), 1e-2, 0.9, nesterov=True),
    "plain sgd": lambda m: torch.optim.SGD(m.parameters(), 1e-2),
}


def step(model: nn.Module, optimiser: torch.optim.Optimizer, seed: int) -> None:
    x = torch.randn(8, 4, generator=torch.Generator().manual_seed(seed))
    optimiser.zero_grad()
    model(x).square().sum().backward()
    optimiser.step()


@pytest.mark.parametrize("maker", MAKERS)
def test_a_run_that_was_put_back_goes_on_as_one_that_never_stopped(tmp_path, maker):
    whole, other = net(0), net(100)
    a, b = MAKERS[maker](whole), MAKERS[maker](other)
    for k in range(3):
        step(whole, a, k)
    save_state(tmp_path / "x.state", whole, a, "mine", {"rows": [1.5, 2.5]})
    assert load_state(tmp_path / "x.state", other, b, "mine") == {"rows": [1.5, 2.5]}
    for k in range(3, 6):
        step(whole, a, k)
        step(other, b, k)
    for (name, p), q in zip(whole.state_dict().items(), other.state_dict().values(), strict=True):
        assert torch.equal(p, q), name
    assert [p.name for p in tmp_path.iterdir()] == ["x.state"]


def test_another_runs_state_changes_nothing(tmp_path):
    first, second = net(0), net(5)
    save_state(tmp_path / "x.state", first, MAKERS["adam"](first), "mine", {})
    before = {k: v.clone() for k, v in second.state_dict().items()}
    assert load_state(tmp_path / "x.state", second, MAKERS["adam"](second), "yours") is None
    assert load_state(tmp_path / "y.state", second, MAKERS["adam"](second), "mine") is None
    assert all(torch.equal(v, before[k]) for k, v in second.state_dict().items())
