"""The ablation's anchors and its table. Fits of variants are tested in tests/lab/test_ablation.py."""

from __future__ import annotations

from benchmarks import ablation


def test_references_of_the_ablation_hold_the_anchors() -> None:
    rows = {r["variant"]: r for r in ablation.references("phantom")}
    assert list(rows) == ["CRC", "plug-in", "oracle", "whole image"]
    assert rows["whole image"]["gap_0.1"] == 0.1
    assert rows["whole image"]["area_0.1"] == 1.0
    assert rows["oracle"]["gap_0.1"] < rows["CRC"]["gap_0.1"]


def test_the_table_names_its_command_and_the_choice(tmp_path) -> None:
    path = tmp_path / "table.md"
    ablation.write(path, "polyp", ablation.references("phantom"), "COAT")
    text = path.read_text(encoding="utf-8")
    assert "--study polyp --data FOLDER-OF-THE-DATA-SET" in text
    assert "| whole image | – | 0.1000 | 1.000 |" in text
    assert "Smallest gap on D2: COAT." in text
