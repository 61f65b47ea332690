"""Sources: names, parts that never cut through a group, and clear words where a data set is not what it should be."""

from __future__ import annotations

import json
from dataclasses import asdict

import numpy as np
import pytest
from PIL import Image

from core.data.folders import DataAbsent
from core.data.splits import Parts
from core.lab import sources
from core.lab.sources import DOMAINS, NAMES, domain_of, phantom_parts, source, spec_of, training_of
from core.nets.weights import ASSETS


def folder(path, names: list[str], suffix: str = "") -> None:
    for sub in ("images", "masks"):
        (path / sub).mkdir(parents=True)
    for k, name in enumerate(names):
        Image.fromarray(np.random.default_rng(k).integers(0, 255, (8, 8, 3), dtype=np.uint8)).save(
            path / "images" / f"{name}.jpg"
        )
        Image.fromarray(np.full((8, 8), 255, np.uint8)).save(path / "masks" / f"{name}{suffix}.png")


def all_of(parts: Parts) -> list[tuple[str, ...]]:
    return [parts.d1, parts.d1_val, parts.d2, parts.pool]


@pytest.mark.parametrize("name", NAMES)
def test_every_name_has_a_domain_a_network_and_a_schedule(name: str) -> None:
    assert domain_of(name) in DOMAINS
    kind = name.removeprefix(domain_of(name)).lstrip("-") or "unet"
    assert spec_of(name).kind == kind
    assert training_of(name).epochs > 0


def test_an_unknown_study_is_named_with_those_that_are_known() -> None:
    with pytest.raises(ValueError, match=r"liver.*skin-deeplab"):
        domain_of("liver")


def test_written_parts_are_disjoint_and_are_used_again() -> None:
    for name in ("phantom", "polyp"):
        parts = Parts.load(ASSETS / "splits" / f"{name}.json")
        names = [n for part in all_of(parts) for n in part]
        assert len(names) == len(set(names))
    assert asdict(phantom_parts()) == asdict(Parts.load(ASSETS / "splits" / "phantom.json"))


def test_videos_stay_whole(tmp_path) -> None:
    names = [f"{k:03d}" for k in range(17 * 3)]
    folder(tmp_path / "fire", names)
    rows = "\n".join(f"{n},train{k // 3:02d}" for k, n in enumerate(names))
    (tmp_path / "fire" / "groups.csv").write_text("name,block\n" + rows + "\n")
    parts, read = source("fire-sinet", tmp_path / "fire", splits=tmp_path)
    assert [len(p) for p in all_of(parts)] == [3 * b for b in sources.FIRE_BLOCKS]
    block = {n: k // 3 for k, n in enumerate(names)}
    seen = [{block[n] for n in part} for part in all_of(parts)]
    assert sum(map(len, seen)) == len(set().union(*seen)) == 17
    assert read(parts.pool[0])[1].all()


def test_a_lesion_gives_one_photo_to_one_part(tmp_path, monkeypatch) -> None:
    monkeypatch.setitem(sources.SIZES, "skin", (6, 2, 6, 8))
    names = [f"ISIC_{k:03d}" for k in range(60)]
    folder(tmp_path / "skin", names, "_segmentation")
    rows = "\n".join(f"L{k // 2},{n}" for k, n in enumerate(names))
    (tmp_path / "skin" / "HAM10000_metadata.csv").write_text("lesion_id,image_id\n" + rows + "\n")
    parts, _ = source("skin", tmp_path / "skin", splits=tmp_path)
    chosen = [n for part in all_of(parts) for n in part]
    assert len(chosen) == 22
    lesions = [int(n[-3:]) // 2 for n in chosen]
    assert len(set(lesions)) == len(lesions)
    again, _ = source("skin-pspnet", tmp_path / "skin", splits=tmp_path)
    assert asdict(again) == asdict(parts)


def test_what_is_missing_is_said(tmp_path) -> None:
    with pytest.raises(ValueError, match="--data"):
        source("polyp", None)
    with pytest.raises(DataAbsent, match="images' and 'masks"):
        source("polyp", tmp_path)
    folder(tmp_path / "set", ["a", "b"])
    with pytest.raises(DataAbsent, match="lacks .* images of the polyp study"):
        source("polyp", tmp_path / "set")
    with pytest.raises(DataAbsent, match=r"groups\.csv"):
        source("fire", tmp_path / "set", splits=tmp_path)
    (tmp_path / "set" / "groups.csv").write_text("name,block\na,1\nb,2\n")
    with pytest.raises(DataAbsent, match="2 videos"):
        source("fire", tmp_path / "set", splits=tmp_path)
    (tmp_path / "splits").mkdir()
    (tmp_path / "splits" / "fire.json").write_text(
        json.dumps({"d1": ["a"], "d1_val": [], "d2": ["c"], "pool": ["b"]})
    )
    with pytest.raises(DataAbsent, match="c among them"):
        source("fire", tmp_path / "set", splits=tmp_path / "splits")


@pytest.mark.data
def test_the_shared_sets_give_parts_of_the_planned_sizes(shared_data, tmp_path) -> None:
    skin, read = source("skin", shared_data / "ham10000", splits=tmp_path)
    assert tuple(map(len, all_of(skin))) == sources.SIZES["skin"]
    assert read(skin.d1[0])[0].ndim == 3
    fire, _ = source("fire", shared_data / "fire", splits=tmp_path)
    assert sum(map(len, all_of(fire))) == 500
