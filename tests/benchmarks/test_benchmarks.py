"""What benchmarks print and write: the shape of the JSON, the table, and clear refusals. No time is asserted."""

from __future__ import annotations

import json
import math
from pathlib import Path

import numpy as np
import pytest

from benchmarks import BENCHMARKS
from benchmarks.__main__ import COMMON, main, plain
from benchmarks.table import cell, summary, table

COMMON_KEYS = {"name", "device", "versions", "settings", "rows", "seconds"}


@pytest.fixture
def small(monkeypatch) -> str:
    """Register a benchmark that measures nothing, as a module of its own would."""
    import sys
    import types

    module = types.ModuleType("benchmarks.small")
    module.__doc__ = "A benchmark for the tests.\n\nMore words."
    module.add_arguments = lambda parser: parser.add_argument(
        "--data", type=Path, default=Path("some") / "folder"
    )
    module.run = lambda args: {
        "rows": [
            {"method": "CRC", "gap": np.float64(0.1), "area": math.nan},
            {"method": "COAT", "gap": 0.25},
        ],
        "gap_ratio": 2.5,
        "settings": {"draws": 3},
    }
    monkeypatch.setitem(sys.modules, "benchmarks.small", module)
    monkeypatch.setitem(BENCHMARKS, "small", "benchmarks.small")
    return "small"


def test_a_benchmark_prints_a_table_and_writes_the_common_keys(small, tmp_path, capsys):
    assert main([small, "--quick", "--json", str(tmp_path / "out.json")]) == 0
    printed = capsys.readouterr().out
    for part in ("method", "CRC", "COAT", "0.25", "gap_ratio", "2.5"):
        assert part in printed
    assert [p.name for p in tmp_path.iterdir()] == ["out.json"]
    found = json.loads((tmp_path / "out.json").read_text())
    assert set(found) == COMMON_KEYS | {"gap_ratio"}
    assert set(COMMON) == COMMON_KEYS
    assert found["name"] == "small"
    assert found["settings"] == {"data": "folder", "quick": True, "draws": 3}
    assert found["rows"][0] == {"method": "CRC", "gap": 0.1, "area": None}
    assert {"python", "torch", "numpy"} <= set(found["versions"])
    assert isinstance(found["device"], str)
    assert found["device"]
    assert found["seconds"] >= 0


def test_the_figures_hold_no_path_of_the_machine(small, tmp_path):
    main([small, "--data", str(tmp_path / "kvasir_seg"), "--json", str(tmp_path / "out.json")])
    text = (tmp_path / "out.json").read_text()
    assert "kvasir_seg" in text
    assert str(tmp_path) not in text


def test_an_unknown_name_lists_the_known_ones(capsys):
    assert main(["coverag"]) == 2
    message = capsys.readouterr().err
    assert "'coverag'" in message
    assert "control_speed" in message
    assert main([]) == 2
    assert main(["--help"]) == 0
    assert "control_speed" in capsys.readouterr().out


def test_a_folder_for_the_json_that_does_not_exist_is_told_before_the_work(small, tmp_path, capsys):
    with pytest.raises(SystemExit):
        main([small, "--json", str(tmp_path / "none" / "out.json")])
    assert "does not exist" in capsys.readouterr().err


def test_a_missing_module_is_named(monkeypatch, capsys):
    monkeypatch.setitem(BENCHMARKS, "gone", "benchmarks.gone")
    assert main(["gone"]) == 1
    assert "'benchmarks.gone'" in capsys.readouterr().err


def test_absent_data_is_told_in_one_sentence(small, monkeypatch, capsys):
    import sys

    def run(args):
        raise FileNotFoundError("No data set at x: give the folder with --data.")

    monkeypatch.setattr(sys.modules["benchmarks.small"], "run", run)
    assert main([small]) == 1
    assert "No data set at x" in capsys.readouterr().err


def test_control_speed_measures_both_tools_and_the_sort(tmp_path):
    pytest.importorskip("mapie", reason="mapie, the peer of this benchmark, is not installed")
    small_run = ["--maps", "30", "--side", "16", "--sort-maps", "6", "--sort-side", "24", "--quick"]
    assert main(["control_speed", *small_run, "--json", str(tmp_path / "c.json")]) == 0
    found = json.loads((tmp_path / "c.json").read_text())
    ratios = ("ratio_time", "ratio_memory", "ratio_sort", "threshold_difference")
    assert set(found) >= COMMON_KEYS | set(ratios)
    for name in ratios:
        assert isinstance(found[name], float), name
    rows = {row["tool"]: row for row in found["rows"]}
    for tool in ("Plumbline", "MAPIE"):
        assert {"tool", "seconds", "peak_mib", "threshold"} <= set(rows[tool])
        assert 0 < rows[tool]["threshold"] < 1
    assert "mapie" in found["versions"]
    # the same threshold, up to MAPIE's grid; it takes the largest grid point below ours
    assert -1e-6 <= found["threshold_difference"] <= found["grid_step"] + 1e-6


def test_the_maps_look_like_those_of_a_network_on_polyps():
    from benchmarks.control_speed import make_maps

    logits, masks = make_maps(60, 48, 0)
    share = masks.mean((1, 2))
    assert 0.01 < share.min() < 0.06
    assert 0.25 < share.max() <= 0.42
    assert np.abs(logits).max() <= 15
    assert logits[masks].mean() > logits[~masks].mean() + 2
    assert np.array_equal(make_maps(60, 48, 0)[0], logits)


def test_every_registered_benchmark_that_is_here_offers_its_two_functions():
    import importlib
    import importlib.util

    here = [module for module in BENCHMARKS.values() if importlib.util.find_spec(module)]
    assert "benchmarks.control_speed" in here
    for name in here:
        module = importlib.import_module(name)
        assert callable(module.add_arguments)
        assert callable(module.run)
        assert module.__doc__


def test_a_table_lines_up_words_on_the_left_and_numbers_on_the_right():
    lines = table(
        [{"tool": "ours", "ms": 1.5}, {"tool": "a longer name", "ms": 120.0, "note": None}]
    ).splitlines()
    assert lines[0] == "tool            ms  note"
    assert lines[2].startswith("ours           1.5")
    assert lines[3].startswith("a longer name  120")
    assert table([]) == ""
    assert summary({"a": 1, "long": 0.12345}) == "a     1\nlong  0.1235"


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (None, "–"),
        (math.nan, "–"),
        (math.inf, "∞"),
        (True, "yes"),
        (12345.0, "12345"),
        (0.00012, "0.00012"),
        ([1, 2.0], "1, 2"),
    ],
)
def test_a_cell_is_short(value, text):
    assert cell(value) == text


def test_json_holds_plain_values_only():
    assert plain({"a": np.arange(2), "b": np.float32(1.5), "c": (math.inf, 2)}) == {
        "a": [0, 1],
        "b": 1.5,
        "c": [None, 2],
    }
