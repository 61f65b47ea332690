"""The cells of the coverage benchmark on small made-up studies: what is counted, what is skipped, what is recorded. No network runs."""

from __future__ import annotations

import argparse
import json
import math
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch

from benchmarks import coverage, coverage_cells, coverage_record, coverage_retrain
from benchmarks.__main__ import main, parser_of
from benchmarks.coverage_cells import CELLS, Cell, compact, measure_all, measure_cell, paired_se, summarise
from core.conformal.metrics import draw_halves
from core.lab.study import Study
from core.settings import CoatSettings
from tests.lab.made_study import made_study

ROW_KEYS = [
    "method", "domain", "model", "alpha", "coverage", "coverage_se", "gap", "gap_sd", "gap_at_crc_area", "area",
    "stretch", "shortfall", "worst_5pct",
]  # fmt: skip
METHODS = ["CRC", "AA-CRC", "AA-CRC, no shift", "plug-in", "AT", "COAT", "oracle", "whole image"]


@pytest.fixture(scope="module")
def cell() -> Cell:
    return measure_cell(made_study("polyp"), 0.2, splits=6, draws=40)


def load(name: str) -> Study:
    if name in ("skin", "fire-sinet"):
        raise FileNotFoundError(f"The score table {name}.npz is missing.")
    return made_study(name)


def test_a_cell_has_every_row_with_the_keys_that_are_laid_down(cell: Cell) -> None:
    assert [r["method"] for r in cell.rows] == METHODS
    for row in cell.rows:
        assert list(row) == ROW_KEYS
        assert (row["domain"], row["model"], row["alpha"]) == ("kvasir_seg", "unet", 0.2)
    whole, oracle = cell.row("whole image"), cell.row("oracle")
    assert whole["gap"] == pytest.approx(0.2)
    assert whole["area"] == 1.0
    assert oracle["gap"] < cell.gap("COAT")
    assert math.isnan(whole["gap_at_crc_area"])


def test_at_its_own_area_crc_has_the_same_gap_on_the_whole_pool(cell: Cell) -> None:
    study = made_study("polyp")
    area = cell.row("CRC")["area"]
    at = coverage_cells.gap_at_area(study.curves, study.tau_hat("CRC", 0.2), 0.2, area)
    assert cell.row("CRC")["gap_at_crc_area"] == pytest.approx(at)
    assert at == pytest.approx(cell.gap("CRC"), abs=0.05)


def test_the_paired_standard_error_is_zero_for_equal_methods_and_as_by_hand_for_others() -> None:
    study, alpha = made_study("polyp"), 0.2
    halves = draw_halves(len(study.curves), 0.5, 5, 0)
    one, two = study.tau_hat("AT", alpha), study.tau_hat("COAT", alpha)
    shifts = np.linspace(-0.2, 0.4, 5, dtype=np.float32)
    assert paired_se(study.curves, alpha, halves, (one, shifts), (one, shifts)) == 0.0
    found = paired_se(study.curves, alpha, halves, (one, shifts), (two, shifts))
    means = []
    for i in range(len(study.curves)):
        if not bool(study.curves.has_lesion[i]):
            continue
        each = []
        for k in range(5):
            if not halves[k, i]:
                misses = [
                    abs(float(study.curves.coverage(tau, float(shifts[k]))[i, 0]) - 0.8) for tau in (one, two)
                ]
                each.append(misses[0] - misses[1])
        if each:
            means.append(np.mean(each))
    assert found == pytest.approx(np.std(means, ddof=1) / math.sqrt(len(means)))


def test_cells_whose_assets_are_missing_are_named_and_counted() -> None:
    said: list[str] = []
    wanted = [c for c in CELLS if c[0] in ("skin", "fire") and c[1] in ("unet", "sinet")]
    found = measure_all(load, wanted, splits=3, draws=10, say=said.append)
    assert set(found) == {c for c in wanted if (c[0], c[1]) not in (("skin", "unet"), ("fire", "sinet"))}
    assert len(said) == 2
    assert "skin is left out" in said[0]
    summed = summarise(found, len(wanted))
    assert (summed["cells"], summed["cells_missing"]) == (4, 4)


def made_cell(
    coat: float, at: float, crc: float, plug_in: float = 0.5, aacrc: float = 0.5, se: float = 0.01
) -> Cell:
    gaps = {
        "CRC": crc,
        "AA-CRC": aacrc,
        "plug-in": plug_in,
        "AT": at,
        "COAT": coat,
        "oracle": 0.0,
        "whole image": 0.1,
    }
    rows = [{"method": m, "gap": g, "area": 0.2 if m == "COAT" else 0.25} for m, g in gaps.items()]
    return Cell(rows, ["COAT"] if coat > 0.4 else [], se)


def test_the_summary_counts_what_it_says() -> None:
    found = {
        CELLS[0]: made_cell(0.10, 0.11, 0.20),  # lowest
        CELLS[1]: made_cell(0.115, 0.11, 0.20),  # above AT, within one standard error
        CELLS[2]: made_cell(0.13, 0.11, 0.12),  # above all
        CELLS[3]: made_cell(0.10, 0.11, 0.20, plug_in=0.09),  # lowest but for the plug-in threshold
        CELLS[4]: made_cell(0.45, 0.50, 0.90),  # lowest, and under-covered
    }
    summed = summarise(found)
    assert summed["cells"] == 5
    assert summed["cells_missing"] == 19
    assert summed["cells_below_crc"] == 4
    assert summed["cells_not_above_at"] == 4
    assert summed["cells_lowest"] == 2
    assert summed["cells_lowest_without_plug_in"] == 3
    assert summed["gap_ratio"] == pytest.approx(np.mean([0.5, 0.575, 13 / 12, 0.5, 0.5]))
    assert summed["area_ratio"] == pytest.approx(0.8)
    assert summed["cells_under_covered"] == 1
    assert summed["under_covered"] == ["polyp,pspnet,0.1: COAT"]
    lines = compact(found)
    assert [line["lowest"] for line in lines] == [True, False, False, False, True]
    assert lines[0]["gap/CRC"] == 0.5


def test_a_shift_too_small_is_found_to_under_cover(monkeypatch) -> None:
    real = coverage_cells.coverage_over_draws
    monkeypatch.setattr(coverage_cells, "coverage_over_draws", lambda *a: real(*a) - 0.2)
    assert "COAT" in measure_cell(made_study("polyp"), 0.2, splits=2, draws=40).under_covered


@pytest.fixture
def small(monkeypatch):
    """The whole benchmark on made-up studies, fire with its videos."""
    names = {"video": tuple(f"video {k % 4}" for k in range(40))}
    monkeypatch.setattr(coverage, "shipped_study", load)
    monkeypatch.setattr("core.lab.pool_groups.stored_columns", lambda domain, names_: names)
    monkeypatch.setattr(coverage, "DRAWS", 20)
    monkeypatch.setattr(coverage, "CELLS", FEW)


FEW = tuple(
    (d, k, 0.2) for d, k in (("polyp", "unet"), ("polyp", "sinet"), ("skin", "unet"), ("fire", "deeplab"))
)


def test_all_prints_a_line_a_cell_and_writes_nothing_unless_asked(
    small, tmp_path, monkeypatch, capsys
) -> None:
    monkeypatch.setattr(coverage, "ASSETS", tmp_path)
    (tmp_path / "results").mkdir()
    assert main(["coverage", "--all", "--splits", "3", "--json", str(tmp_path / "out.json")]) == 0
    printed = capsys.readouterr().out
    assert "skin is left out" in printed
    assert "Fire across videos, outside the counts" in printed
    assert "cells_under_covered" in printed
    assert not list((tmp_path / "results").iterdir())
    found = json.loads((tmp_path / "out.json").read_text())
    assert found["cells"] == 3
    assert found["cells_missing"] == 1
    assert len(found["rows"]) == 3 * len(METHODS)
    assert [r["method"] for r in found["by_video"]] == ["CRC", "plug-in", "AT", "COAT"]
    assert {r["model"] for r in found["by_video"]} == {"deeplab"}


def test_the_record_is_a_card_and_the_same_every_time(small, tmp_path, monkeypatch) -> None:
    monkeypatch.setattr(coverage, "ASSETS", tmp_path)
    (tmp_path / "results").mkdir()
    texts = []
    for _ in range(2):
        assert main(["coverage", "--all", "--splits", "3", "--record"]) == 0
        texts.append([(tmp_path / "results" / f"coverage-all.{end}").read_text() for end in ("json", "md")])
    assert texts[0] == texts[1]
    found, card = json.loads(texts[0][0]), texts[0][1]
    assert found["command"] == "python -m benchmarks coverage --all --record"
    assert not {"seconds", "device"} & set(found)
    assert str(tmp_path) not in "".join(texts[0])
    assert "What this table does not show" in card
    assert "cells missing, because their assets are not there: 1" in card
    for word in (*METHODS, "paired standard error", "further frames of the same videos"):
        assert word in card


def test_a_record_is_refused_for_a_part_of_the_table() -> None:
    with pytest.raises(SystemExit, match="belongs to --all"):
        main(["coverage", "--record"])


@pytest.mark.parametrize("text", ["polyp,unet", "polyp,unet,0.3", "heart,unet,0.1", "polyp,unet,x"])
def test_a_cell_that_is_none_is_refused(text: str, capsys) -> None:
    with pytest.raises(SystemExit):
        parser_of("coverage")[0].parse_args(["--cell", text])
    assert "is no cell" in capsys.readouterr().err


def test_one_cell_from_the_table_shows_all_its_methods(small, capsys) -> None:
    assert main(["coverage", "--cell", "polyp,sinet,0.2", "--splits", "3"]) == 0
    assert "sinet" in capsys.readouterr().out


def test_the_clock_cuts_members_first_and_epochs_last() -> None:
    settings = {"AT": CoatSettings(objective="at"), "COAT": CoatSettings()}
    full = 2 * 5 * 60
    assert coverage_retrain.within(settings, 1.0, full) == (settings, "")
    fewer, words = coverage_retrain.within(settings, 1.0, 2 * 3 * 60)
    assert {(s.members, s.epochs) for s in fewer.values()} == {(3, 60)}
    assert words == "3 members instead of 5"
    least, words = coverage_retrain.within(settings, 1.0, 120)
    assert {(s.members, s.epochs) for s in least.values()} == {(2, 30)}
    assert "30 epochs instead of 60" in words


def test_data_are_found_where_they_are_given_or_the_person_is_told(tmp_path: Path, monkeypatch) -> None:
    folder = tmp_path / "kvasir_seg"
    folder.mkdir()
    assert coverage_retrain.data_folder("polyp", folder) == folder
    assert coverage_retrain.data_folder("polyp", tmp_path) == folder
    monkeypatch.setattr(coverage_retrain, "SHARED", tmp_path)
    assert coverage_retrain.data_folder("polyp", None) == folder
    with pytest.raises(FileNotFoundError, match="--data DIR"):
        coverage_retrain.data_folder("fire", None)
    with pytest.raises(FileNotFoundError, match="no folder of fire"):
        coverage_retrain.data_folder("fire", tmp_path / "none")


def test_predictors_that_are_fitted_anew_are_compared_with_the_table() -> None:
    """The phantom study ships its inputs without pictures; a few epochs are enough to see the comparison."""
    from core.lab.phantom_inputs import shipped_inputs
    from core.lab.study import shipped_study

    study = shipped_study("phantom")
    d2, quantiles, pool = shipped_inputs()
    settings = {
        m: replace(CoatSettings(objective=o), epochs=1, members=2)
        for m, o in (("AT", "at"), ("COAT", "at then coat"))
    }
    args = argparse.Namespace(cell=("phantom", "unet", 0.2), share=0.5, splits=4, seed=0)
    found = coverage_retrain.compare(study, d2, quantiles, pool, settings, args)
    assert [(r["method"], r["made"]) for r in found["rows"]] == [
        ("CRC", "table"),
        ("AT", "table"),
        ("AT", "retrained"),
        ("COAT", "table"),
        ("COAT", "retrained"),
    ]
    assert found["gap_table"] != found["gap_retrained"]
    assert found["agrees"] == (abs(found["gap_table"] - found["gap_retrained"]) <= found["gap_sd"])
    assert 0 < found["gap_retrained"] < 0.3


def test_the_recorded_table_is_what_the_shipped_scores_give() -> None:
    """One cell of the committed table, computed again."""
    from core.lab.study import shipped_study

    path = coverage.ASSETS / "results" / f"{coverage_record.NAME}.json"
    if not path.exists():
        pytest.skip("coverage-all.json has not been recorded yet")
    recorded = json.loads(path.read_text())
    assert recorded["cells"] == 24
    again = measure_cell(shipped_study("fire-sinet"), 0.2, recorded["settings"]["splits"], 50)
    rows = {
        r["method"]: r
        for r in recorded["rows"]
        if (r["domain"], r["model"], r["alpha"]) == ("fire", "sinet", 0.2)
    }
    for method in ("CRC", "AA-CRC", "plug-in", "AT", "COAT", "oracle"):
        for key in ("gap", "area", "coverage", "gap_at_crc_area"):
            assert again.row(method)[key] == pytest.approx(rows[method][key], abs=1e-4), (method, key)


def test_thresholds_of_a_binned_copy_serve_exact_curves() -> None:
    study = made_study("polyp")
    assert coverage_cells.binned(study) is study
    exact = replace(study, curves=replace(study.curves, binned=False))
    assert coverage_cells.binned(exact).curves.binned
    assert torch.equal(coverage_cells.binned(exact).knots["AT"], study.knots["AT"])
