"""Training under a loss: it learns, it goes on where it was stopped, it owes nothing to global state, and it keeps what is measured later."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
import torch
from torch import nn

from core.lab import margin_train as mt
from core.nets.weights import load_network
from core.settings import MarginSettings
from tests.lab.made_losses import part, parts


def small() -> nn.Module:
    model = nn.Sequential(nn.Conv2d(3, 4, 3, padding=1), nn.ReLU(), nn.Conv2d(4, 2, 1))
    for k, p in enumerate(model.parameters()):
        with torch.no_grad():
            p.copy_(0.3 * torch.randn(p.shape, generator=torch.Generator().manual_seed(k)))
    return model


QUICK = mt.Schedule(epochs=6, batch=4, learning_rate=1e-2, bfloat16=False)


@pytest.mark.parametrize("loss", ["CE", "LS", "SVLS", "focal", "ECP", "margin"])
def test_every_loss_learns_the_blobs(loss):
    model, train = small(), part(24, 0)
    rows = mt.fit(model, train, MarginSettings(loss=loss), QUICK, 0)
    assert len(rows) == 6
    assert rows[-1]["loss"] < rows[0]["loss"]
    guess = mt.logits_of(model, train.images).argmax(1)
    assert float((guess == train.labels)[~train.ignore].float().mean()) > 0.93


def test_a_stopped_run_goes_on_and_ends_where_an_unbroken_one_does(tmp_path):
    train, settings = part(24, 0), MarginSettings(margin=1.0)
    whole, broken = small(), small()
    rows = mt.fit(whole, train, settings, replace(QUICK, epochs=12), 3)

    class Stop(Exception):
        pass

    def stop(done, total, facts):
        if done == 7:
            raise Stop

    with pytest.raises(Stop):
        mt.fit(broken, train, settings, replace(QUICK, epochs=12), 3, stop, tmp_path / "x.state")
    again = small()
    more = mt.fit(again, train, settings, replace(QUICK, epochs=12), 3, state=tmp_path / "x.state")
    assert [r["loss"] for r in more] == pytest.approx([r["loss"] for r in rows], rel=1e-5)
    for a, b in zip(whole.parameters(), again.parameters(), strict=True):
        assert torch.allclose(a, b, atol=1e-6)


def test_a_state_of_other_settings_is_not_used(tmp_path):
    train = part(24, 0)
    mt.fit(small(), train, MarginSettings(loss="CE"), QUICK, 0, state=tmp_path / "x.state")
    rows = mt.fit(small(), train, MarginSettings(loss="LS"), QUICK, 0, state=tmp_path / "x.state")
    assert rows[0]["loss"] == pytest.approx(
        mt.fit(small(), train, MarginSettings(loss="LS"), QUICK, 0)[0]["loss"]
    )


def test_training_owes_nothing_to_the_global_generator():
    train = part(12, 0)
    found = []
    for k in (1, 2):
        torch.manual_seed(k)
        model, before = small(), torch.get_rng_state()
        found.append(mt.fit(model, train, MarginSettings(), QUICK, 0))
        assert torch.equal(before, torch.get_rng_state())
    assert found[0] == found[1]


def test_padding_teaches_nothing():
    train = part(12, 0)
    other = replace(train, labels=torch.where(train.ignore, 1, train.labels))
    a, b = small(), small()
    mt.fit(a, train, MarginSettings(), QUICK, 0)
    mt.fit(b, other, MarginSettings(), QUICK, 0)
    for p, q in zip(a.parameters(), b.parameters(), strict=True):
        assert torch.equal(p, q)


def test_too_few_images_are_named():
    with pytest.raises(ValueError, match="3 images"):
        mt.fit(small(), part(3, 0), MarginSettings(), QUICK, 0)


def test_a_run_keeps_weights_and_logits_of_what_it_did_not_see(tmp_path):
    run, sets = mt.run_of("polyp", "margin", 1, 5.0), parts(n=4)
    assert run.key == "polyp-margin5-s1"
    sets = {
        k: replace(
            v,
            images=v.images.repeat(1, 1, 2, 2),
            labels=v.labels.repeat(1, 2, 2),
            ignore=v.ignore.repeat(1, 2, 2),
        )
        for k, v in sets.items()
    }
    path = mt.train_run(run, sets, tmp_path, mt.Schedule(epochs=1, batch=4))
    with np.load(path) as z:
        assert z["pool"].shape == (4, 2, 32, 32)
        assert set(z.files) == {"val", "d2", "pool", "loss", "seconds"}
        kept = torch.from_numpy(z["pool"]).float()
    model, spec, facts = load_network(tmp_path / f"{run.key}.safetensors")
    assert spec.kind == "slim"
    assert facts["loss"]["margin"] == 5.0
    assert torch.allclose(mt.logits_of(model, sets["pool"].images), kept, atol=2e-2)
    assert not list(tmp_path.glob("*.state"))
    stamp = path.stat().st_mtime_ns
    assert mt.train_run(run, sets, tmp_path).stat().st_mtime_ns == stamp


def test_the_plan_holds_every_loss_of_every_set_and_no_run_twice():
    keys = [r.key for r in mt.planned()]
    assert len(set(keys)) == len(keys)
    for data in ("skin", "polyp", "nuclei"):
        assert {
            f"{data}-ce-s2",
            f"{data}-ls-s1",
            f"{data}-focal-s0",
            f"{data}-ecp-s0",
            f"{data}-margin10-s0",
        } <= set(keys)
    assert "phantom-svls-s0" in keys
