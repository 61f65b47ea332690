"""The benchmarks of AA-CRC's speed and of one predictor for every alpha, on tiny inputs. No time is asserted."""

from __future__ import annotations

import json
from dataclasses import replace

import pytest
import torch

from benchmarks.__main__ import measure
from core.settings import CoatSettings


def test_aacrc_speed_compares_both_on_the_same_images_and_prints_its_settings(tmp_path) -> None:
    pytest.importorskip("mapie.risk_control.adaptive_conformal_risk_control")
    out = tmp_path / "out.json"
    sizes = ["--images", "40", "--tests", "4", "--side", "8", "--alpha", "0.2", "--test-epochs", "1"]
    measure("aacrc_speed", [*sizes, "--json", str(out)])
    found = json.loads(out.read_text())
    assert {"ratio_time", "coverage_difference", "coverage_se"} <= set(found)
    assert {"learning_rate", "fit_epochs", "batch_size", "test_epochs"} <= set(found["settings"]["mapie"])
    for row in found["rows"]:
        assert {"tool", "seconds", "coverage"} <= set(row)
        assert 0.4 < row["coverage"] <= 1
    tools = {r["tool"]: r["coverage"] for r in found["rows"]}
    split = next(v for k, v in tools.items() if "split" in k)
    theirs = next(v for k, v in tools.items() if k.startswith("MAPIE"))
    assert found["coverage_difference"] == pytest.approx(split - theirs)


@pytest.fixture(scope="module")
def rows() -> list[dict[str, float]]:
    from benchmarks.any_alpha import compare
    from core.lab.gathered import Gathered
    from core.lab.phantom_inputs import shipped_inputs
    from core.lab.study import shipped_study

    d2, quantiles, pool = shipped_inputs()
    settings = replace(CoatSettings(objective="at then coat"), epochs=2, members=2)
    return compare(
        shipped_study("phantom"), Gathered(d2, quantiles, pool), settings, 0, 10, False, lambda _: None
    )


def test_one_predictor_and_five_are_measured_at_every_alpha(rows) -> None:
    assert [r["alpha"] for r in rows] == [0.05, 0.1, 0.15, 0.2, 0.3]
    for row in rows:
        assert {"alpha", "gap_one", "gap_single"} <= set(row)
        assert 0 < row["gap_one"] < 0.4
        assert 0 < row["gap_single"] < 0.4
        assert row["gap_one"] != row["gap_single"]


def test_the_shipped_predictor_rises_with_alpha_before_the_shift() -> None:
    from benchmarks.any_alpha import crossing
    from core.lab.study import shipped_study

    found = crossing(shipped_study("phantom"))
    assert found["crossing_before_shift"] == 0
    assert 0 <= found["crossing_after_shift"] <= found["images"]


def test_the_made_up_images_tell_their_shift_by_a_feature() -> None:
    from benchmarks.aacrc_speed import made

    maps, masks, features = made(50, 8, 0)
    assert maps.shape == masks.shape == (50, 8, 8)
    assert float(maps.min()) > 0
    assert float(maps.max()) < 1
    together = torch.corrcoef(torch.stack([maps.mean((1, 2)), features[:, 0]]))[0, 1]
    assert float(together) > 0.9
