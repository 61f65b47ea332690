"""Variants of the predictor: the same folds, a choice on D2 alone, encoder features that owe nothing to the pool."""

from __future__ import annotations

import json
from dataclasses import replace

import numpy as np
import pytest
import torch
from torch import nn

from core.coat.features import PredictorInput, predictor_input
from core.coat.thresholds import oracle_thresholds
from core.lab.ablation import Trial, components, encoder_features, gap_by_fold, on_pool, run_trials
from core.lab.gathered import Gathered, quantiles_of
from core.settings import CoatSettings
from tests.lab.made_study import made_maps, made_study

QUICK = CoatSettings(epochs=3, members=2, batch=8)


def inputs() -> Gathered:
    logits, _ = made_maps()
    given = predictor_input([np.zeros((*m.shape, 3), np.uint8) for m in logits], list(logits))
    return Gathered(given, quantiles_of(made_study().curves), given)


def test_rows_are_kept_and_not_fitted_again(tmp_path) -> None:
    trials = (Trial("first", QUICK), Trial("no picture", QUICK, picture=False))
    keep, said = tmp_path / "rows.json", []
    rows = run_trials(made_study(), inputs(), None, trials, keep=keep, say=said.append)
    assert (
        [r["variant"] for r in rows]
        == ["first", "no picture"]
        == [r["variant"] for r in json.loads(keep.read_text())]
    )
    assert rows[0]["gap_d2"] != rows[1]["gap_d2"]
    again = run_trials(made_study(), inputs(), None, trials, keep=keep, say=said.append)
    assert again == rows and len(said) == 2


def test_the_gap_of_perfect_thresholds_is_nearly_nothing_and_constant_ones_are_worse() -> None:
    from core.coat.fit import fit
    from core.coat.thresholds import ALPHA_KNOTS

    study, given = made_study(), inputs()
    fitted = fit(given.d2, given.quantiles, QUICK, 0)
    there = study.curves.has_lesion
    perfect = torch.stack([oracle_thresholds(study.curves, float(a)) for a in ALPHA_KNOTS], 1)[there]
    assert gap_by_fold(replace(fitted, out_of_fold=perfect), given.quantiles, 0) < 0.03
    assert gap_by_fold(replace(fitted, out_of_fold=torch.zeros_like(perfect)), given.quantiles, 0) > 0.05


def test_the_pool_is_asked_at_each_level() -> None:
    study = made_study()
    assert set(on_pool(study, study.knots["AT"], draws=5)) == {"gap_0.1", "area_0.1", "gap_0.2", "area_0.2"}


def test_principal_components_come_from_the_fitting_images_alone() -> None:
    rng = torch.Generator().manual_seed(0)
    fitting, other = torch.randn(30, 12, generator=rng), torch.randn(9, 12, generator=rng)
    mine, theirs = components(fitting, other, 4)
    assert mine.shape == (30, 4) and theirs.shape == (9, 4)
    torch.testing.assert_close(mine.T @ mine, torch.diag((mine * mine).sum(0)), atol=1e-3, rtol=0)
    assert torch.equal(components(fitting, other * 5, 4)[0], mine)


class _Net(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.layer = nn.Conv2d(3, 6, 3, stride=4, padding=1)

    def encoder(self, x: torch.Tensor) -> list[torch.Tensor]:
        return [x, self.layer(x)]


def test_encoder_features_leave_the_padding_out() -> None:
    wide = np.full((16, 32, 3), 90, np.uint8)
    rows = encoder_features(_Net(), iter([wide]), 32)
    padded = _Net()
    assert rows.shape == (1, 6) and torch.isfinite(rows).all()
    inner = encoder_features(padded, iter([wide]), 32)
    tall = encoder_features(padded, iter([np.full((32, 32, 3), 90, np.uint8)]), 32)
    torch.testing.assert_close(inner, tall, atol=0.05, rtol=0.2)


def test_a_network_without_encoder_is_refused() -> None:
    with pytest.raises(ValueError, match="no encoder"):
        encoder_features(nn.Conv2d(3, 2, 1), iter([]), 32)


def test_more_features_than_the_usual_ones_can_be_fitted() -> None:
    from core.coat.fit import fit
    from core.coat.predictor import predict_knots

    given = inputs()
    more = PredictorInput(
        given.d2.picture,
        torch.cat(
            [given.d2.features, torch.randn(len(given.d2), 3, generator=torch.Generator().manual_seed(0))], 1
        ),
        given.d2.plug_in,
    )
    fitted = fit(more, given.quantiles, QUICK, 0)
    assert predict_knots(fitted.members, more).shape[0] == len(more)
