"""`python -m core losses`: trains what is missing, shares a folder with another process, records."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from core.lab import cli_losses
from core.lab.cli import main
from core.lab.margin_train import run_of
from tests.lab.made_losses import finished, parts


@pytest.fixture
def trained(tmp_path, monkeypatch):
    """Training leaves finished files at once; what was asked for is listed."""
    sets, asked = parts(n=12), []
    monkeypatch.setattr(cli_losses, "load_set", lambda name, data, work: sets)

    def train_run(run, given, work, schedule):
        asked.append((run.key, schedule.epochs))
        finished(
            work,
            run.data,
            run.loss.loss,
            run.seed,
            sets,
            run.loss.margin if run.loss.loss == "margin" else None,
        )

    monkeypatch.setattr(cli_losses, "train_run", train_run)
    return sets, asked, tmp_path / "work"


def test_everything_is_trained_once_and_the_chosen_margin_gets_its_further_seeds(trained):
    _, asked, work = trained
    cli_losses.train_all(("polyp",), None, work, lambda line: None)
    keys = [k for k, _ in asked]
    assert len(set(keys)) == len(keys) == 4 * 3 + 4 + 2
    assert sum(k.startswith("polyp-margin") and k.endswith("-s1") for k in keys) == 1
    asked.clear()
    cli_losses.train_all(("polyp",), None, work, lambda line: None)
    assert asked == []
    assert not list(work.glob("*.lock"))


def test_phantoms_get_fewer_epochs_and_every_loss(trained):
    _, asked, work = trained
    cli_losses.train_all(("phantom",), None, work, lambda line: None)
    assert {k for k, _ in asked} == {
        f"phantom-{k}-s0" for k in ("ce", "ls", "svls", "focal", "ecp", "margin3")
    }
    assert {e for _, e in asked} == {cli_losses.PHANTOM_EPOCHS}


def test_a_run_that_another_process_trains_is_left_to_it_and_a_dead_ones_is_taken_over(trained):
    _, asked, work = trained
    work.mkdir()
    (work / f"{run_of('polyp', 'CE', 0).key}.lock").write_text(str(os.getppid()))
    (work / f"{run_of('polyp', 'LS', 0).key}.lock").write_text("999999999")
    cli_losses.train_all(("polyp",), None, work, lambda line: None)
    keys = {k for k, _ in asked}
    assert "polyp-ce-s0" not in keys
    assert "polyp-ls-s0" in keys


def test_an_unknown_set_is_one_sentence(capsys):
    assert main(["losses", "--sets", "cats"]) == 2
    assert "cats" in capsys.readouterr().err


def test_real_sets_without_a_folder_are_asked_for(capsys, tmp_path: Path):
    assert main(["losses", "--sets", "polyp", "--work", str(tmp_path)]) == 2
    assert "--data" in capsys.readouterr().err
