"""The study of shift: nothing that is scored is in the reference, AUROC is that of plain counting, the record comes back, the command line."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from core.lab import shift_command, shift_study
from core.lab.shift_record import load_shift, save_shift
from core.lab.shift_study import ShiftPlan, batch_scores, study, thinned
from core.settings.tacsc import TacscSettings
from core.tacsc.nets import build
from core.tacsc.shift_score import auroc, reference
from tests.lab.made_shift import picture

PLAN = ShiftPlan(48, 24, 32, 32, 8, 4, 2, 2, 16, ("gaussian_noise",), ("gaussian_blur",), (1, 5))


@pytest.fixture(scope="module")
def net() -> torch.nn.Module:
    made = build("tacsc", 4, 3, TacscSettings(), rng=torch.Generator().manual_seed(0)).train()
    made(torch.randn(4, 3, 32, 32, generator=torch.Generator().manual_seed(1)))
    return made.eval()


@pytest.fixture(scope="module")
def images() -> np.ndarray:
    return np.stack([picture(s, 2, 32) for s in range(120)])


@pytest.fixture(scope="module")
def record(net: torch.nn.Module, images: np.ndarray):
    steps: list[tuple[int, int]] = []
    found = study(net, images, PLAN, "made-up", lambda d, t, f: steps.append((d, t)))
    assert steps == [(k, 4) for k in range(1, 5)]
    return found


def test_noise_is_noticed_and_every_cell_is_there(record) -> None:
    assert record.auroc("gaussian_noise", 5, 4) > 0.9
    assert len(record.rows) == 4 * 2 * 3 + 2 * 2 * 2 * 3  # cells, and both families pooled at both severities
    assert record.auroc("noises", 5, 4) == pytest.approx(record.auroc("gaussian_noise", 5, 4))
    assert record.mean_auroc(("gaussian_noise", "gaussian_blur"), 1, 4) == pytest.approx(
        (record.auroc("gaussian_noise", 1, 4) + record.auroc("gaussian_blur", 1, 4)) / 2
    )
    assert np.isnan(record.auroc("fog", 1)) and record.curve("fog", 1) is None


def test_the_area_under_a_recorded_curve_is_its_auroc(record) -> None:
    for n in (PLAN.batch, 1):
        for severity in (1, 5):
            curve = record.curve("gaussian_blur", severity, n)
            area = np.trapezoid(curve.detected, curve.false_alarms)
            wanted = record.auroc("gaussian_blur", severity, n)
            assert area == pytest.approx(wanted, abs=0.02)


def test_no_scored_image_is_in_the_reference_and_damage_meets_others_than_the_clean(
    net: torch.nn.Module, images: np.ndarray, monkeypatch: pytest.MonkeyPatch
) -> None:
    seen: list[set[bytes]] = []
    plain = shift_study.prepared
    monkeypatch.setattr(
        shift_study, "prepared", lambda x: (seen.append({i.tobytes() for i in x}), plain(x))[1]
    )
    monkeypatch.setattr(shift_study, "corrupt_many", lambda x, *_: x)
    study(net, images, PLAN)
    base, clean, *damaged = seen
    assert len(base) == 48 and not base & clean
    assert all(not d & (base | clean) for d in damaged)


def test_batches_are_dealt_without_repeats_and_one_image_is_scored_once() -> None:
    rng = torch.Generator().manual_seed(0)
    features = torch.randn(50, 2, generator=rng, dtype=torch.float64)
    known = reference(features)
    assert len(batch_scores(known, features, 16, 3, rng)) == 9
    single = batch_scores(known, features, 1, 3, rng)
    assert len(single) == 50 and float(single.mean()) == pytest.approx(
        0.98, abs=0.1
    )  # trace over F, n − 1 in the covariance


def test_a_thinned_curve_keeps_its_corners() -> None:
    rng = torch.Generator().manual_seed(0)
    far, near = torch.randn(300, generator=rng) + 1, torch.randn(300, generator=rng)
    false, true = thinned(far, near)
    assert (
        len(false) <= shift_study.POINTS and (false[0], true[0]) == (0, 0) and (false[-1], true[-1]) == (1, 1)
    )
    assert np.trapezoid(true, false) == pytest.approx(auroc(far, near), abs=0.01)
    few = thinned(torch.tensor([2.0, 3.0]), torch.tensor([0.0, 1.0]))
    assert few == ((0.0, 0.0, 1.0), (0.0, 1.0, 1.0))


def test_the_record_comes_back_from_its_file(record, tmp_path) -> None:
    save_shift(record, tmp_path)
    back = load_shift(tmp_path)
    assert (
        back.network == "made-up" and len(back.rows) == len(record.rows) and len(back.roc) == len(record.roc)
    )
    assert back.auroc("gaussian_noise", 5, 4) == pytest.approx(record.auroc("gaussian_noise", 5, 4), rel=1e-4)
    assert back.reference["clean"] == 32 and "shift_study" in back.command
    (tmp_path / "results" / "sparse" / "shift.json").write_text('{"rows": 3}')
    with pytest.raises(ValueError, match="no study of shift"):
        load_shift(tmp_path)


def test_too_few_images_are_a_sentence(net: torch.nn.Module, images: np.ndarray) -> None:
    with pytest.raises(ValueError, match="take 112 together"):
        study(net, images[:100], PLAN)


def test_the_command_line_asks_for_what_it_needs(capsys: pytest.CaptureFixture[str], tmp_path) -> None:
    assert shift_command.command(["cifar"]) == 2
    assert "--data" in capsys.readouterr().err
    assert shift_command.command(["cifar", "--data", str(tmp_path), "--out", str(tmp_path)]) == 2
    assert shift_command.command(["phantoms", "--out", str(tmp_path), "--work", str(tmp_path)]) == 2
    assert "monitor" in capsys.readouterr().err
