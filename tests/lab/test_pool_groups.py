"""Groups of the pools: what is known without the mask and what is not, and files that say where they come from."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch

from core.conformal import CoverageCurves
from core.lab.pool_groups import (
    AREA,
    SIZE,
    area_group,
    columns_of,
    expected_area,
    stored_columns,
    write_groups,
)
from core.lab.study import shipped_study
from tests.lab.made_study import made_maps, made_study

FOLDERS = {"polyp": "kvasir_seg", "skin": "ham10000", "fire": "fire"}


def by_name(name: str):
    return {c.name: c for c in columns_of(shipped_study(name))}


@pytest.mark.parametrize(
    ("name", "known", "report_only"),
    [
        ("phantom", {AREA}, {SIZE}),
        ("polyp-pspnet", {AREA}, {"shape", SIZE}),
        ("skin-sinet", {AREA, "body site", "age", "sex"}, {"diagnosis", SIZE}),
        ("fire", {AREA, "video"}, {SIZE}),
    ],
)
def test_columns_that_only_the_truth_knows_may_not_calibrate(name: str, known: set, report_only: set) -> None:
    columns = by_name(name)
    assert {c for c, x in columns.items() if x.known} == known
    assert {c for c, x in columns.items() if not x.known} == report_only
    for c in columns.values():
        assert len(c.values) == len(shipped_study(name).curves)
        assert set(c.order) == set(c.values) and len(set(c.order)) == len(c.order)
        assert c.known or "report only" in c.why


def test_all_networks_of_a_domain_share_its_groups_but_not_its_predicted_areas() -> None:
    one, other = by_name("skin"), by_name("skin-sinet")
    assert one["age"].values == other["age"].values
    assert one[AREA].values != other[AREA].values
    assert one[SIZE].values == other[SIZE].values


def test_expected_area_is_the_mean_probability_and_never_looks_at_the_mask() -> None:
    logits, masks = made_maps(6)
    exact = CoverageCurves.from_maps(logits, masks)
    np.testing.assert_allclose(expected_area(exact), torch.sigmoid(logits).mean((1, 2)).numpy(), atol=1e-6)
    np.testing.assert_allclose(expected_area(exact.to_bins()), expected_area(exact), atol=0.004)
    blind = CoverageCurves.from_maps(logits, torch.ones_like(masks))
    np.testing.assert_array_equal(expected_area(blind), expected_area(exact))


@pytest.mark.parametrize(
    ("area", "group"),
    [
        (0.0, "under 5"),
        (0.0499, "under 5"),
        (0.05, "5 to 15"),
        (0.3, "30"),
        (1.0, "30"),
        (float("nan"), "no lesion"),
    ],
)
def test_areas_are_cut_where_it_is_written_down(area: float, group: str) -> None:
    assert area_group(area).startswith(group)


def test_a_study_without_a_file_has_the_two_columns_of_its_scores() -> None:
    assert [c.name for c in columns_of(made_study())] == [AREA, SIZE]


def test_a_file_about_other_images_is_refused(tmp_path: Path) -> None:
    (tmp_path / "scores").mkdir()
    (tmp_path / "scores" / "skin-groups.json").write_text(json.dumps({"columns": {"sex": {"a": "female"}}}))
    assert stored_columns("skin", ["a"], tmp_path) == {"sex": ("female",)}
    with pytest.raises(ValueError, match="sex of b and 0 more"):
        stored_columns("skin", ["a", "b"], tmp_path)
    study = replace(made_study(), name="skin")
    with pytest.raises(ValueError, match="made-0"):
        columns_of(study, tmp_path)


def test_groups_are_read_from_a_data_set_s_own_table(tmp_path: Path) -> None:
    for folder in ("splits", "scores", "data"):
        (tmp_path / folder).mkdir()
    (tmp_path / "splits" / "skin.json").write_text(json.dumps({"pool": ["x", "y"]}))
    table = tmp_path / "data" / "HAM10000_metadata.csv"
    head = "lesion_id,image_id,dx,dx_type,age,sex,localization\n"
    table.write_text(head + "1,x,mel,histo,80.0,male,scalp\n2,y,nv,histo,,,\n")
    written = write_groups(tmp_path, "skin", tmp_path / "data")
    columns = json.loads(written.read_text())["columns"]
    assert columns["diagnosis"] == {"x": "melanoma", "y": "naevus"}
    assert columns["age"] == {"x": "from 60 on", "y": "unknown"}
    assert columns["sex"] == {"x": "male", "y": "unknown"} and columns["body site"] == {
        "x": "scalp",
        "y": "unknown",
    }
    table.write_text(head + "1,x,mel,histo,80.0,male,scalp\n")
    with pytest.raises(ValueError, match="does not name y"):
        write_groups(tmp_path, "skin", tmp_path / "data")
    with pytest.raises(ValueError, match="phantom"):
        write_groups(tmp_path, "phantom", tmp_path / "data")


@pytest.mark.parametrize("domain", FOLDERS)
def test_the_files_that_ship_are_those_of_the_data(domain: str, shared_data: Path, tmp_path: Path) -> None:
    from core.nets.weights import ASSETS

    for folder in ("splits", "scores"):
        (tmp_path / folder).mkdir()
    (tmp_path / "splits" / f"{domain}.json").write_text((ASSETS / "splits" / f"{domain}.json").read_text())
    written = write_groups(tmp_path, domain, shared_data / FOLDERS[domain])
    assert written.read_text() == (ASSETS / "scores" / f"{domain}-groups.json").read_text()
