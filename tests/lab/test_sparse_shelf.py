"""The shelf of recorded sparse coding runs: written from a working folder, read back, and what is not there is said."""

from __future__ import annotations

import json
import math
from pathlib import Path

import pytest
import torch

from core.data.corruptions import CORRUPTIONS, NOISES
from core.lab.sparse_queue import state_of
from core.lab.sparse_record import load_record
from core.lab.sparse_shelf import (
    PLAN,
    accuracy_of,
    folder_of,
    keys,
    network,
    networks,
    planned,
    record_of,
    records,
    table,
    write_shelf,
)
from core.lab.sparse_train import prepared
from core.tacsc.layer import sparse_layers
from tests.lab import made_sparse as made


@pytest.fixture(scope="module")
def shelf(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return made.write_made(tmp_path_factory.mktemp("shelf"))


def test_a_working_folder_becomes_a_shelf(tmp_path: Path) -> None:
    work = made.write_work(tmp_path / "work", (made.made_run(), made.made_run("resnet")))
    out = tmp_path / "out"
    written = write_shelf(work, out)
    assert {p.relative_to(out).as_posix() for p in written} == {
        "results/sparse/resnet-w4-s0.json",
        "results/sparse/tacsc-k2-w4-s0.json",
        "results/sparse/README.md",
        "weights/sparse-resnet-w4-s0.safetensors",
        "weights/sparse-tacsc-k2-w4-s0.safetensors",
        "weights/sparse.md",
    }
    assert records(out)["tacsc-k2-w4-s0"] == load_record(work / "tacsc-k2-w4-s0.json")
    net, x = network("tacsc-k2-w4-s0", out), prepared(made.pictures(4).images)
    assert not net.training and not any(p.requires_grad for p in net.parameters())
    assert torch.equal(net(x), network("tacsc-k2-w4-s0", out)(x)) and net(x).shape == (4, 3)
    card = (out / "weights" / "sparse.md").read_text(encoding="utf-8")
    found = records(out)["tacsc-k2-w4-s0"]
    assert f"{100 * found.accuracy('clean', 0):.1f}" in card and "python -m core sparse" in card
    assert "No image of it is in this project" in card and str(tmp_path) not in card
    assert not list(out.rglob("*.part*"))


def test_a_run_without_figures_or_weights_is_handled(tmp_path: Path) -> None:
    work = made.write_work(tmp_path / "work")
    path = work / "tacsc-k2-w4-s0.json"
    raw = json.loads(path.read_text())
    (work / "fixed-k2-w4-s0.json").write_text(json.dumps(raw | {"model": "fixed", "cells": []}))
    (work / "tacsc-k2-w4-s0.safetensors").unlink()
    assert state_of(work, made.made_run("fixed")) == "trained"
    assert [p.name for p in write_shelf(work, tmp_path / "out")] == ["tacsc-k2-w4-s0.json", "README.md"]
    assert networks(tmp_path / "out") == ()
    path.unlink()
    with pytest.raises(FileNotFoundError, match="No finished run in work"):
        write_shelf(work, tmp_path / "other")
    assert not (tmp_path / "other").exists()


def test_what_is_recorded_is_listed_in_the_order_of_the_plan(shelf: Path, tmp_path: Path) -> None:
    assert [r.key for r in planned(4)] == [made.made_run(m, k).key for m, k in PLAN]
    assert set(keys(shelf)) == {r.key for r in planned(4)} and len(keys(shelf)) == 6
    (folder_of(shelf) / "shift.json").write_text("{}")
    (folder_of(shelf) / "medical.json").write_text("{}")
    assert len(records(shelf)) == 6 and networks(shelf)[-1] == "unet-phantom-tacsc"
    wide = made.write_made(tmp_path, networks=False, width=16)
    assert list(keys(wide)) == [r.key for r in planned()]
    assert record_of("tacsc", 4, folder=wide).settings.iterations == 4
    assert record_of("resnet", 8, folder=wide).model == "resnet"


def test_what_is_missing_is_said_with_the_command(shelf: Path, tmp_path: Path) -> None:
    assert keys(tmp_path) == () and networks(tmp_path) == ()
    for ask in (
        lambda: records(tmp_path),
        lambda: record_of("tacsc", folder=tmp_path),
        lambda: table(tmp_path),
    ):
        with pytest.raises(FileNotFoundError, match="python -m core sparse"):
            ask()
    with pytest.raises(
        FileNotFoundError, match="tacsc-k16-w16-s0 is not recorded; recorded are .*resnet-w4-s0"
    ):
        record_of("tacsc", 16, folder=shelf)
    with pytest.raises(
        FileNotFoundError, match=r"no network nothing\. Here are: fixed-k2-w4-s0, .*python -m core sparse"
    ):
        network("nothing", shelf)
    (tmp_path / "weights").mkdir()
    (tmp_path / "weights" / "sparse-bad.safetensors").write_bytes(b"nothing of the kind")
    with pytest.raises(ValueError, match="no readable safetensors"):
        network("bad", tmp_path)


def test_a_unet_is_a_network_of_the_shelf(shelf: Path) -> None:
    net = network("unet-phantom-tacsc", shelf)
    assert list(sparse_layers(net)) == ["conv_0.conv_0.conv"] and not net.training
    assert net(torch.zeros(1, 3, 32, 32)).shape == (1, 2, 32, 32)


def test_the_table_holds_means_over_severities(shelf: Path) -> None:
    rows = table(shelf)
    kinds = {(r["model"], r["iterations"]) for r in rows}
    assert kinds == {("resnet", 0), ("fixed", 2), ("tacsc", 2), ("tacsc", 4), ("tacsc", 8), ("tacsc_all", 2)}
    assert {r["corruption"] for r in rows} == {"clean", "noises", "all", *CORRUPTIONS}

    def one(corruption: str, adapt: str, samples: int = 100, model: str = "tacsc") -> float:
        found = [
            r["accuracy"] for r in rows
            if (r["model"], r["corruption"], r["adapt"], r["samples"]) == (model, corruption, adapt, 0 if adapt == "none" else samples)
            and r["iterations"] in (0, 2)
        ]  # fmt: skip
        assert len(found) == 1
        return found[0]

    assert one("clean", "none") == pytest.approx(0.9)
    assert one("fog", "none") == pytest.approx(0.9 - 3 * made.HARM)
    assert one("noises", "both", 500) == pytest.approx(0.9 - 3 * made.HARM * (1 - made.BN - made.LAM) + 0.01)
    assert one("all", "bn", model="resnet") == pytest.approx(0.9 - 3 * made.HARM * (1 - made.BN))
    assert {r["adapt"] for r in rows if r["model"] == "resnet"} == {"none", "bn"}
    assert {r["corruption"] for r in rows if r["samples"] == 500} == {"clean", "noises", *NOISES}


def test_a_mean_with_a_hole_is_no_mean() -> None:
    some = made.record(corruptions=NOISES[:3])
    assert math.isnan(accuracy_of(some, "noises")) and math.isnan(accuracy_of(some, "all"))
    assert math.isfinite(accuracy_of(some, NOISES[0], "both"))
