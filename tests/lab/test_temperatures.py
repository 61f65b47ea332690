"""The recording of temperatures: resumable, small, read back; and gap, coverage and area after exact calibration."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch

from core.coat.features import FEATURE_NAMES, PredictorInput
from core.coat.sweep import SHIPPED, VARIANTS, Variant, fixed
from core.coat.thresholds import ALPHA_KNOTS, between_knots, plug_in_thresholds
from core.conformal import CoverageCurves, calibrate, evaluate
from core.data.splits import redraw
from core.lab import temperatures as room
from core.lab.gathered import Gathered, quantiles_of
from core.lab.study import Study, shipped_study
from core.lab.temperature_grid import gradients, grid, table
from core.lab.temperatures import load, load_temperatures, record
from core.settings import CoatSettings
from tests.lab.made_study import made_maps, made_study

TINY = CoatSettings(epochs=2, members=2)
SOME = (fixed("logit", 1.0), fixed("probability", 0.05))


def made_inputs(study: Study) -> Gathered:
    """Inputs whose pool belongs to the made-up study and whose D2 is the same images again."""
    rng = torch.Generator().manual_seed(2)
    n = len(study.curves)
    features = torch.randn(n, len(FEATURE_NAMES), generator=rng)
    picture = torch.randn(n, 4, 64, 64, generator=rng)
    given = PredictorInput(picture, features, plug_in_thresholds(study.curves, ALPHA_KNOTS))
    return Gathered(given, quantiles_of(study.curves, 64), given)


@pytest.fixture
def study(monkeypatch: pytest.MonkeyPatch) -> Study:
    made = made_study()
    made = replace(made, facts={"out_of_fold_gap": {"COAT": 0.5}, "thresholds": {"COAT": vars(TINY)}})
    monkeypatch.setattr(room, "gathered", lambda *_: made_inputs(made))
    return made


def lines_of(
    out: Path, work: Path, variants: tuple[Variant, ...] = SOME, base: CoatSettings = TINY
) -> list[str]:
    said: list[str] = []
    record("made-up", None, work, out, said.append, variants, base)
    return said


def test_a_recording_is_read_back_with_the_shipped_predictor_beside_it(study: Study, tmp_path: Path) -> None:
    lines_of(tmp_path / "out", tmp_path / "work")
    found = load_temperatures(tmp_path / "out", study)
    assert list(found.variants) == ["logit 1", "probability 0.05", SHIPPED]
    assert found.fixed("logit") == {"logit 1": 1.0}
    assert found.fixed("probability") == {"probability 0.05": 0.05}
    assert found.knots["logit 1"].shape == (len(study.curves), len(ALPHA_KNOTS))
    assert (found.knots["logit 1"].diff(dim=1) >= 0).all()
    assert torch.equal(found.knots[SHIPPED], study.knots["COAT"])
    assert found.gaps[SHIPPED] == 0.5
    assert found.chosen == min(found.gaps, key=found.gaps.__getitem__)
    assert found.chosen_among(["probability 0.05", "nowhere"]) == "probability 0.05"
    assert found.chosen_among([]) is None
    facts = found.facts["probability 0.05"]
    assert facts["epochs"] == [2, 2]
    assert set(facts["gaps"]) == {"0.05", "0.1", "0.2", "0.3"}
    assert len(facts["history"]) == 2
    assert "9 of 11" in found.note and "python -m core temperatures made-up" in found.note
    text = (tmp_path / "out/scores/made-up-temperatures.json").read_text()
    assert str(tmp_path) not in text
    assert json.loads(text)["settings"]["members"] == 2


def test_a_stopped_run_goes_on_and_finished_variants_are_not_fitted_again(
    study: Study, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    fits: list[str] = []
    real = room.fit_variant

    def counting(variant: Variant, *more, **named):
        if len(fits) == 1 and variant.name == "probability 0.05" and not stopped:
            stopped.append(True)
            raise KeyboardInterrupt
        fits.append(variant.name)
        return real(variant, *more, **named)

    stopped: list[bool] = []
    monkeypatch.setattr(room, "fit_variant", counting)
    out, work = tmp_path / "out", tmp_path / "work"
    with pytest.raises(KeyboardInterrupt):
        lines_of(out, work)
    assert list(load_temperatures(out, study).fixed("logit")) == ["logit 1"]  # what is finished is there
    lines_of(out, work)
    assert fits == ["logit 1", "probability 0.05"]
    before = load_temperatures(out, study).knots["logit 1"]
    lines_of(out, work)
    assert len(fits) == 2
    assert torch.equal(load_temperatures(out, study).knots["logit 1"], before)
    lines_of(out, work, base=replace(TINY, epochs=3))  # other settings: fitted anew
    assert len(fits) == 4


def test_inputs_that_changed_are_noticed(
    study: Study, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    lines_of(tmp_path / "out", tmp_path / "work", SOME[:1])
    inputs = made_inputs(study)
    other = Gathered(inputs.d2, inputs.quantiles + 1, inputs.pool)
    monkeypatch.setattr(room, "gathered", lambda *_: other)
    fits: list[str] = []
    real = room.fit_variant
    monkeypatch.setattr(room, "fit_variant", lambda v, *a, **k: (fits.append(v.name), real(v, *a, **k))[1])
    lines_of(tmp_path / "out", tmp_path / "work", SOME[:1])
    assert fits == ["logit 1"]


def test_a_study_without_a_recording_still_has_its_shipped_predictor(study: Study, tmp_path: Path) -> None:
    found = load_temperatures(tmp_path, study)
    assert list(found.variants) == [SHIPPED]
    assert found.fixed("logit") == {}
    assert found.note.startswith("No temperature of this study has been recorded yet.")
    figures = grid(found, study, (0.1, 0.3), draws=3)
    assert figures.names == (SHIPPED,)
    rows = table(found, figures, 0.1, None)
    assert [r["method"] for r in rows][-2:] == ["oracle", "whole image"]


def test_a_recording_for_another_pool_is_refused(study: Study, tmp_path: Path) -> None:
    lines_of(tmp_path, tmp_path / "work", SOME[:1])
    logits, masks = made_maps(10)
    other = replace(study, curves=CoverageCurves.from_maps(logits, masks))
    with pytest.raises(ValueError, match="for 40 images and its pool has 10"):
        load_temperatures(tmp_path, other)


def test_a_recording_with_another_budget_says_so(study: Study, tmp_path: Path) -> None:
    lines_of(tmp_path, tmp_path / "work", SOME[:1])
    assert "another budget" not in load_temperatures(tmp_path, study).note
    richer = replace(study, facts=study.facts | {"thresholds": {"COAT": vars(replace(TINY, epochs=60))}})
    assert "another budget" in load_temperatures(tmp_path, richer).note


def test_the_grid_is_what_calibrating_each_draw_by_hand_gives(study: Study, tmp_path: Path) -> None:
    lines_of(tmp_path, tmp_path / "work")
    found = load_temperatures(tmp_path, study)
    figures = grid(found, study, (0.1, 0.3), seed=4, draws=3)
    by_hand = []
    for k in range(3):
        half, test = redraw(len(study.curves), 0.5, 4 + k)
        tau = between_knots(found.knots["probability 0.05"], 0.3)
        shift = calibrate(study.curves, tau, 0.3, half).shift
        e = evaluate(study.curves, tau, shift, 0.3, test)
        by_hand.append((e.gap, e.coverage, e.area))
    assert figures.figures("probability 0.05")[:, 1] == pytest.approx(np.mean(by_hand, 0))
    assert figures.gap.shape == (3, 2)
    assert figures.reference["whole image"][:, 1] == pytest.approx([0.3, 1, 1])
    gap, coverage, _ = figures.reference["oracle"][:, 0]
    assert gap < figures.gap[:, 0].min()
    assert coverage >= 0.9
    rows = {r["method"]: r for r in table(found, figures, 0.1, "logit 1")}
    assert rows["CRC"]["gap"] == figures.reference["CRC"][0, 0]
    assert any("chosen on D2" in m for m in rows)
    assert sum("T = 1" in m for m in rows) == 1


def test_gradients_lie_below_their_bound() -> None:
    found = gradients(made_study(), 0.1, "logit")
    assert (found.slope <= 1 / (4 * np.array(found.temperatures))).all()
    assert (found.slope > 0).all()


@pytest.mark.parametrize("name", ["phantom", "polyp", "fire"])
def test_what_ships_is_whole_and_belongs_to_its_study(name: str) -> None:
    study, found = shipped_study(name), load(name)
    for knots in found.knots.values():
        assert knots.shape == (len(study.curves), len(ALPHA_KNOTS))
        assert torch.isfinite(knots).all()
        assert (knots.diff(dim=1) >= 0).all()
    if not found.note:
        assert set(found.variants) == {v.name for v in VARIANTS} | {SHIPPED}
    assert "another budget" not in found.note
