"""The recorded comparison of losses: measuring, choosing m, writing and reading, on made-up runs."""

from __future__ import annotations

import json

import numpy as np
import pytest
import torch

from core.lab import margin_record as mr
from core.lab import margin_write as mw
from core.lab.margin_bridge import bridge, foreground_score
from core.lab.margin_cards import write_cards
from core.lab.margin_measure import EDGES, measure
from core.margin.reliability import Reliability, ece
from tests.lab.made_losses import finished, logits, part, parts


def test_figures_agree_with_a_plain_loop():
    of = part(6, 0, 3)
    x = logits(of, 3, 1)
    found = measure(x, of)
    p, keep = torch.softmax(x, 1), ~of.ignore
    confidence, guess = p.max(1)
    right = (guess == of.labels)[keep].numpy()
    c = confidence[keep].double().numpy()
    at = np.clip(np.ceil(15 * c) - 1, 0, 14).astype(int)
    plain = sum(
        abs(c[at == b].mean() - right[at == b].mean()) * (at == b).mean()
        for b in range(15)
        if (at == b).any()
    )
    assert found.figures["ece_all"] == pytest.approx(plain, abs=1e-6)
    assert found.figures["ece_all"] == pytest.approx(ece(Reliability.merge(found.tables["all"])))
    assert found.distances.sum() == 2 * int(keep.sum())
    assert found.distances_right.sum() == 2 * int(right.sum())
    assert found.distances.shape == (6, len(EDGES) - 1)
    assert measure(x, of, distances=False).figures["dice"] == pytest.approx(found.figures["dice"], abs=1e-6)
    with pytest.raises(ValueError, match="maps of logits"):
        measure(x[:3], of)


def test_the_margin_is_the_one_of_lowest_foreground_error_among_those_of_good_dice():
    rows = [
        {"margin": 3.0, "dice": 0.80, "ece_fg": 0.05},
        {"margin": 5.0, "dice": 0.797, "ece_fg": 0.04},
        {"margin": 10.0, "dice": 0.70, "ece_fg": 0.01},
    ]
    assert mw.chosen_margin(rows) == 5.0
    assert mw.chosen_margin(rows[:1]) == 3.0


def test_the_score_of_three_classes_is_the_logit_of_not_background():
    x = torch.randn(2, 3, 4, 4, generator=torch.Generator().manual_seed(0))
    p = torch.softmax(x, 1)[:, 0]
    assert torch.allclose(foreground_score(x), torch.logit(1 - p), atol=1e-4)
    two = torch.tensor([[[[-40.0]], [[40.0]]]])
    assert float(foreground_score(two)) == 15.0


def test_the_bridge_keeps_its_promise_and_shows_what_a_gap_can_be_cheated_with():
    d2, pool = part(40, 2), part(60, 3)
    rows = bridge(logits(d2, 2, 0), d2, logits(pool, 2, 1), pool, draws=60, levels=(0.2,))
    by = {r["method"]: r for r in rows}
    assert set(by) == {"CRC", "plug-in", "COAT", "oracle", "whole image"}
    for method in ("CRC", "plug-in", "COAT"):
        assert by[method]["coverage"] >= 0.8 - 0.02
        assert by["oracle"]["gap"] < by[method]["gap"]
    assert by["whole image"]["gap"] == 0.2
    assert by["whole image"]["area"] == 1.0
    assert by["oracle"]["area"] < 1


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    """A record of made-up runs: sharp CE, softer rivals."""
    folder = tmp_path_factory.mktemp("losses")
    sets = parts(n=20)
    with pytest.MonkeyPatch.context() as m:
        m.setattr(mw, "load_set", lambda name, data, work: sets)
        for seed in (0, 1, 2):
            finished(folder / "work", "polyp", "CE", seed, sets, sharp=8.0)
            finished(folder / "work", "polyp", "LS", seed, sets, sharp=2.0)
            finished(folder / "work", "polyp", "margin", seed, sets, 3.0, sharp=1.0)
        finished(folder / "work", "polyp", "margin", 0, sets, 10.0, sharp=8.0)
        said = []
        mw.write(None, folder / "work", folder / "out", said.append, ("polyp",), draws=20)
        mw.write(
            None, folder / "work", folder / "out", said.append, ("polyp",), draws=20
        )  # again: nothing doubles
    return folder / "out", sets, said


def test_tables_are_means_over_seeds_with_their_deviation(made):
    out, _, said = made
    rows = mr.table(out)
    assert [r["loss"] for r in rows] == ["CE", "LS", "margin", "CE + T"]
    raw = json.loads((out / "results" / "margin.json").read_text())
    ce = [r["ece_all"] for r in raw["seeds"] if r["loss"] == "CE"]
    assert len(ce) == 3
    row = rows[0]
    assert row["ece_all"] == pytest.approx(np.mean(ce))
    assert row["ece_all_sd"] == pytest.approx(np.std(ce, ddof=1))
    assert row["margin"] is None
    scaled = rows[3]
    assert scaled["temperature"] > 1
    assert scaled["nll_all"] < row["nll_all"]
    assert scaled["dice"] == pytest.approx(row["dice"])
    assert any("focal" in line and "left out" in line for line in said)
    assert [c["chosen"] for c in mr.choices(out)] == [
        c["margin"] == rows[2]["margin"] for c in mr.choices(out)
    ]


def test_records_come_back_as_they_were_measured(made):
    out, sets, _ = made
    found = mr.records("polyp", out)
    assert list(found) == ["CE", "LS", "margin", "CE + T"]
    one = found["CE"]
    assert one.names == sets["pool"].names
    assert found["CE + T"].temperature > 1
    row = next(
        r
        for r in json.loads((out / "results" / "margin.json").read_text())["seeds"]
        if r["loss"] == "CE" and r["seed"] == 0
    )
    assert ece(one.pooled("all")) == pytest.approx(row["ece_all"], abs=1e-4)
    assert ece(one.pooled("foreground")) == pytest.approx(row["ece_fg"], abs=1e-4)
    assert np.nanmean(one.dice) == pytest.approx(row["dice"], abs=1e-4)
    assert (out / "weights" / "margin-polyp-ce.safetensors").exists()


def test_the_bridge_table_carries_area_and_calibration_beside_each_gap(made):
    rows = mr.bridge(made[0])
    assert {r["method"] for r in rows} == {"CRC", "plug-in", "COAT", "oracle", "whole image"}
    assert all({"gap", "area", "coverage", "ece_fg", "ece_all", "gap_sd"} <= set(r) for r in rows)


def test_cards_carry_data_licence_command_and_the_records_figures(made):
    written = {p.name: p.read_text() for p in write_cards(made[0])}
    assert set(written) == {"margin-polyp.md", "polyp.md"}
    card = written["margin-polyp.md"]
    ce = next(r for r in mr.table(made[0]) if r["loss"] == "CE")
    for part_of in (
        "Kvasir-SEG",
        "Licence",
        "python -m core losses",
        f"{ce['ece_fg']:.4f}",
        "CE + temperature",
        "| 3 |",
    ):
        assert part_of in card


def test_a_missing_record_names_the_command(tmp_path):
    for ask in (
        lambda: mr.table(tmp_path),
        lambda: mr.bridge(tmp_path),
        lambda: mr.choices(tmp_path),
        lambda: mr.records("polyp", tmp_path),
    ):
        with pytest.raises(FileNotFoundError, match="python -m core losses"):
            ask()
