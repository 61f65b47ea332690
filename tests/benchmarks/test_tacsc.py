"""The benchmarks of TA-CSC: gains from made-up runs, runs that are missing, SDNet's layer as an oracle, bytes counted once. No time is asserted."""

from __future__ import annotations

import argparse
import math
from dataclasses import replace
from pathlib import Path

import pytest
import torch

from benchmarks import BENCHMARKS, tacsc, tacsc_speed
from benchmarks.__main__ import main
from benchmarks.kept import kept_bytes
from benchmarks.tacsc_plain import AutogradLayer, SDNetLayer, replaced
from benchmarks.tacsc_speed import NETS, ratios, rows_of, trained
from core.lab.sparse_record import save_record
from core.lab.sparse_shelf import folder_of
from core.settings.tacsc import TacscSettings
from core.tacsc.function import encode_plainly
from core.tacsc.layer import CSCConv2d
from core.tacsc.lipschitz import power_iteration, start_codes
from core.tacsc.nets import build
from tests.lab import made_sparse as made

HARM = 100 * made.HARM * 3  # points lost on average over severities 1 to 5


@pytest.fixture(scope="module")
def shelf(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return made.write_made(tmp_path_factory.mktemp("shelf"), networks=False)


def found(folder: Path) -> dict:
    return tacsc.run(argparse.Namespace(folder=folder, quick=False))


def test_gains_are_those_that_the_records_were_made_with(shelf: Path) -> None:
    result = found(shelf)
    both = (made.BN + made.LAM) * HARM
    assert result["gaussian_gain_points"] == pytest.approx(both, abs=0.02)
    assert result["gaussian_gain_over_bn_points"] == pytest.approx(made.LAM * HARM, abs=0.02)
    assert result["gaussian_lambda_points"] == pytest.approx(made.LAM * HARM, abs=0.02)
    assert result["gaussian_bn_points"] == pytest.approx(made.BN * HARM, abs=0.02)
    assert result["missing"] == []
    row = next(r for r in result["adaptation"] if r["model"] == "TA-CSC-18" and r["corruption"] == "noises")
    assert row["bn_share"] == pytest.approx(made.BN / (made.BN + made.LAM), abs=1e-3)
    assert row["none"] == pytest.approx(made.CLEAN - HARM / 100, abs=1e-3)
    resnet = next(r for r in result["adaptation"] if r["model"] == "ResNet-18")
    assert "lambda" not in resnet and resnet["bn_share"] is None


def test_what_adaptation_breaks_shows_as_a_loss(tmp_path: Path) -> None:
    for model in ("resnet", "tacsc"):
        lam = -0.3 if model == "tacsc" else made.LAM
        save_record(folder_of(tmp_path) / f"{made.made_run(model).key}.json", made.record(model, lam=lam))
    result = found(tmp_path)
    assert result["gaussian_gain_over_bn_points"] == pytest.approx(-0.3 * HARM, abs=0.02)


def test_the_longest_pair_that_was_trained_alike_counts(tmp_path: Path) -> None:
    for seed, epochs, models in (
        (0, 8, ("resnet", "tacsc")),
        (1, 16, ("resnet", "tacsc")),
        (2, 32, ("tacsc",)),
    ):
        for model in models:
            record = made.record(model, bn=0.5 if seed else made.BN)
            record = replace(record, seed=seed, schedule=record.schedule | {"epochs": epochs})
            save_record(folder_of(tmp_path) / f"{model}-w4-s{seed}.json", record)
    result = found(tmp_path)
    assert result["gaussian_gain_epochs"] == 16
    assert result["gaussian_gain_points"] == pytest.approx((0.5 + made.LAM) * HARM, abs=0.02)
    assert result["gaussian_bn_points"] == pytest.approx(0.5 * HARM, abs=0.02)
    assert [r["epochs"] for r in result["training"]] == [8, 16]
    assert result["training"][0]["gain"] == pytest.approx((made.BN + made.LAM) * HARM, abs=0.02)
    assert len(result["iterations"]) == 1
    titles = [r["model"] for r in result["clean"]]
    assert (
        "TA-CSC-18, seed 1, 16 epochs" in titles and "TA-CSC-18" in titles and len(set(titles)) == len(titles)
    )


def test_rows_have_the_keys_that_were_promised_and_every_ablation_is_there(shelf: Path) -> None:
    result = found(shelf)
    assert {"model", "corruption", "adapt", "accuracy", "iterations", "samples"} <= set(result["rows"][0])
    assert [r["iterations"] for r in result["iterations"]] == [2, 4, 8]
    first = [r for r in result["samples"] if r["model"] == "TA-CSC-18"]
    assert [r["samples"] for r in first] == [50, 100, 500]
    assert first[0]["both"] < first[1]["both"] < first[2]["both"] and first[0]["bn"] < first[0]["both"]
    clean = {r["model"]: r for r in result["clean"]}
    assert {"ResNet-18", "fixed λ", "TA-CSC-18", "TA-CSC-18all"} <= set(clean)
    assert clean["fixed λ"]["points_to_resnet"] == pytest.approx(0)


def test_runs_that_are_not_there_are_named_and_the_rest_stands(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    made.write_made(tmp_path, (("tacsc", 2),), networks=False)
    run = made.made_run("fixed")
    save_record(folder_of(tmp_path) / f"{run.key}.json", made.record("fixed", corruptions=("fog",)))
    result = found(tmp_path)
    assert math.isnan(result["gaussian_gain_points"]) and math.isfinite(result["gaussian_lambda_points"])
    said = " ".join(result["missing"])
    assert "ResNet-18 is not recorded" in said and "TA-CSC-18 with K = 8 is not recorded" in said
    assert "fixed-k2-w4-s0 is not measured in full under gaussian_noise" in said
    assert "TA-CSC-18 with K = 2" not in said
    assert main(["tacsc", "--folder", str(tmp_path)]) == 0
    printed = capsys.readouterr().out
    assert "not recorded" in printed and "gaussian_gain_points" in printed
    assert main(["tacsc", "--folder", str(tmp_path / "nothing")]) == 1
    assert "No run of a sparse coding network is recorded" in capsys.readouterr().err


def test_accuracies_are_printed_in_per_cent(shelf: Path, capsys: pytest.CaptureFixture[str]) -> None:
    tacsc.show_result(found(shelf))
    printed = capsys.readouterr().out
    assert f"{100 * made.CLEAN:g}" in printed and "K of TA-CSC-18" in printed
    assert tacsc.percent({"none": 0.5, "threshold": 0.1, "both": None}) == {
        "none": 50,
        "threshold": 0.1,
        "both": None,
    }


def sparse_layer(stride: int = 1) -> tuple[CSCConv2d, torch.Tensor]:
    rng = torch.Generator().manual_seed(3)
    layer = CSCConv2d(3, 6, 3, stride, 1, TacscSettings(non_negative=True), rng)
    return layer, torch.randn(2, 3, 9, 9, generator=rng)


@pytest.mark.parametrize("stride", [1, 2])
def test_sdnets_layer_gives_our_positive_codes_at_its_step(stride: int) -> None:
    layer, x = sparse_layer(stride)
    sdnet = SDNetLayer(layer)
    sdnet(x)  # says which size the power iteration works on
    sdnet.update_step()
    where = layer.geometry(x)
    codes = sdnet(x)
    expected = encode_plainly(
        x, layer.weight, torch.tensor(layer.settings.threshold), sdnet.step, where, 2, True
    )
    torch.testing.assert_close(codes, expected)
    assert 0.05 < float((codes == 0).float().mean()) < 0.95
    assert torch.allclose(sdnet.weight.flatten(1).norm(dim=1), torch.ones(6))
    top, _ = power_iteration(layer.atoms(), where, start_codes(*codes.shape[1:]), 400)
    assert sdnet.step == pytest.approx(0.9 / float(top), rel=0.05)
    assert sdnet.error is not None
    left = x - where.synthesis(codes, sdnet.weight)
    assert float(sdnet.error.detach()) == pytest.approx(float(left.detach().square().sum()), rel=1e-5)


def test_a_network_with_other_layers_is_the_same_network() -> None:
    x = torch.randn(4, 3, 16, 16, generator=torch.Generator().manual_seed(1))
    ours = build("tacsc_all", 4)
    plain = replaced(build("tacsc_all", 4), AutogradLayer)
    torch.testing.assert_close(plain(x), ours(x))
    other = replaced(build("tacsc_all", 4), SDNetLayer)
    assert sum(isinstance(m, SDNetLayer) for m in other.modules()) == 17
    assert other(x).shape == (4, 10)


def test_each_storage_is_counted_once_and_parameters_are_not() -> None:
    weight = torch.randn(8, 5, requires_grad=True)
    x = torch.randn(3, 5, requires_grad=True)

    def work() -> torch.Tensor:
        return ((x @ weight.T) * (x.view(-1).view(3, 5) @ weight.T)).sum()

    assert kept_bytes(work, [weight]) == 4 * (15 + 2 * 24)
    assert kept_bytes(work, []) == 4 * (15 + 2 * 24 + 40)


def test_every_network_takes_a_step_and_ours_keeps_less_than_plain_autograd() -> None:
    rng = torch.Generator().manual_seed(0)
    x, y = torch.randn(8, 3, 32, 32, generator=rng), torch.randint(0, 10, (8,), generator=rng)
    kept = {}
    for name in NETS:
        one = trained(name, 4, TacscSettings(), 0)
        before = one.net.conv1.weight.detach().clone()
        one.step(x, y)
        assert not torch.equal(before, one.net.conv1.weight)
        kept[name] = kept_bytes(lambda one=one: one.loss(x, y), list(one.net.parameters()))
    base = kept["ResNet-18"]
    assert kept["TA-CSC-18all"] < 1.5 * base
    assert kept["TA-CSC-18all, plain autograd"] > 3 * base and kept["SDNet-18all, plain"] > 3 * base
    assert base < kept["TA-CSC-18"] < 1.3 * base


def test_figures_are_medians_over_medians() -> None:
    taken = {name: [float(k + 1), float(k + 1), 100.0] for k, name in enumerate(NETS)}
    kept = {name: (k + 1) * 2**20 for k, name in enumerate(NETS)}
    figures = ratios(taken, kept)
    assert figures["ratio_time_all"] == figures["ratio_bytes_all"] == 3
    assert figures["ratio_time_first"] == figures["ratio_bytes_first"] == 2
    row = rows_of(taken, kept)[1]
    assert row["step_ms"] == 2000 and row["saved_mib"] == 2 and row["ratio_time"] == 2


def test_both_are_on_the_register() -> None:
    assert BENCHMARKS["tacsc"] == tacsc.__name__ and BENCHMARKS["tacsc_speed"] == tacsc_speed.__name__
    assert BENCHMARKS["shift"] == "benchmarks.shift"
