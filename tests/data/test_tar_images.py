"""Labelled pictures from archives and from HAM10000's folder, all made up here; a real archive is read in `tests/lab/test_tail_train.py`."""

from __future__ import annotations

import io
import tarfile
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from core.data.folders import DataAbsent
from core.data.tar_images import cached, read_archive, read_diagnoses, read_set, small_square


def png(colour: tuple[int, int, int], size: tuple[int, int] = (32, 32)) -> bytes:
    held = io.BytesIO()
    Image.new("RGB", size, colour).save(held, "PNG")
    return held.getvalue()


def archive(path: Path, files: dict[str, bytes]) -> Path:
    with tarfile.open(path, "w:xz") as tar:
        for name, content in files.items():
            info = tarfile.TarInfo(name)
            info.size = len(content)
            tar.addfile(info, io.BytesIO(content))
    return path


FILES = {
    "./test/dog/9.png": png((3, 0, 0)),
    "./train/dog/1.png": png((2, 0, 0)),
    "./train/cat/2.png": png((1, 0, 0)),
    "./train/cat/10.png": png((0, 0, 0)),
    "./train/cat/.hidden.png": b"no picture",
    "./readme.txt": b"words",
}


def test_folders_are_classes_and_train_and_test_are_kept_apart(tmp_path: Path) -> None:
    read = read_archive(archive(tmp_path / "a.tar.xz", FILES))
    assert read.classes == ("cat", "dog")
    assert len(read) == 4
    assert read.images.shape == (4, 32, 32, 3)
    assert read.images.dtype == np.uint8
    assert read.labels.tolist() == [
        1,
        0,
        0,
        1,
    ]  # ordered by name: test/dog, train/cat/10, train/cat/2, train/dog
    assert read.test.tolist() == [True, False, False, False]
    assert read.images[:, 0, 0, 0].tolist() == [3, 0, 1, 2]
    assert len(set(read.groups)) == 4


def test_an_archive_without_parts_is_all_training(tmp_path: Path) -> None:
    read = read_archive(
        archive(tmp_path / "a.tar.xz", {"./b/1.jpg": png((9, 9, 9), (64, 64)), "a/1.png": png((0, 0, 0))})
    )
    assert read.classes == ("a", "b")
    assert not read.test.any()
    assert read.images[1, 5, 5].tolist() == [9, 9, 9]


def test_a_picture_is_cut_to_its_middle_square() -> None:
    wide = np.zeros((40, 80, 3), np.uint8)
    wide[:, 20:60] = 200
    small = small_square(wide, 32)
    assert small.shape == (32, 32, 3)
    assert (small == 200).all()
    tall = np.swapaxes(wide, 0, 1).copy()
    assert (small_square(Image.fromarray(tall), 32) == 200).all()
    fits = np.random.default_rng(0).integers(0, 255, (32, 32, 3)).astype(np.uint8)
    assert np.array_equal(small_square(fits, 32), fits)
    halves = np.kron(fits, np.ones((2, 2, 1))).astype(np.uint8)
    assert np.array_equal(small_square(halves, 32), fits)
    assert small_square(Image.new("L", (8, 6), 77), 32).tolist()[0][0] == [77, 77, 77]


def test_what_is_missing_or_broken_is_said(tmp_path: Path) -> None:
    with pytest.raises(DataAbsent, match="--data"):
        read_archive(tmp_path / "no.tar.xz")
    with pytest.raises(DataAbsent, match="--data"):
        read_set("pbc", tmp_path)
    with pytest.raises(ValueError, match="not known"):
        read_set("mnist", tmp_path)
    whole = archive(tmp_path / "a.tar.xz", FILES).read_bytes()
    for name, content in {"cut.tar.xz": whole[: len(whole) // 2], "text.tar.xz": b"hello"}.items():
        (tmp_path / name).write_bytes(content)
        with pytest.raises(ValueError, match=f"{name} is no readable archive"):
            read_archive(tmp_path / name)
    with pytest.raises(ValueError, match=r"x/1.png in b.tar.xz is no readable picture"):
        read_archive(archive(tmp_path / "b.tar.xz", {"x/1.png": b"nonsense"}))
    with pytest.raises(ValueError, match="no pictures in folders"):
        read_archive(archive(tmp_path / "c.tar.xz", {"1.png": png((0, 0, 0))}))


def test_a_file_that_is_too_large_is_not_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("core.data.tar_images.MEMBER_LIMIT", 10)
    with pytest.raises(ValueError, match="up to 10 are read"):
        read_archive(archive(tmp_path / "a.tar.xz", FILES))


def test_a_cache_is_used_until_its_source_changes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    source, work = archive(tmp_path / "a.tar.xz", FILES), tmp_path / "work"
    first = cached(source, work)
    with monkeypatch.context() as patch:
        patch.setattr("core.data.tar_images.read_archive", None)  # whoever reads again fails
        second = cached(source, work)
    for name in ("images", "labels", "groups", "test"):
        assert np.array_equal(getattr(first, name), getattr(second, name))
    assert first.classes == second.classes
    archive(source, {"x/1.png": png((1, 1, 1))})
    assert cached(source, work).classes == ("x",)
    assert [p.suffix for p in work.iterdir()] == [".npz"]


def skin(folder: Path, rows: list[tuple[str, str, str]], header: str = "lesion_id,image_id,dx") -> Path:
    (folder / "images").mkdir(parents=True)
    (folder / "HAM10000_metadata.csv").write_text("\n".join([header, *(",".join(r) for r in rows)]) + "\n")
    for _, name, _ in rows:
        Image.new("RGB", (40, 30), (5, 5, 5)).save(folder / "images" / f"{name}.jpg")
    return folder


def test_lesions_are_groups_and_diagnoses_classes(tmp_path: Path) -> None:
    folder = skin(tmp_path / "ham10000", [("L1", "b", "nv"), ("L2", "a", "mel"), ("L1", "c", "nv")])
    (folder / "images" / "z.jpg").write_bytes(png((0, 0, 0)))  # a photo that the table does not know
    read = read_set("ham10000", tmp_path)
    assert [read.classes[i] for i in read.labels] == ["mel", "nv", "nv"]
    assert read.groups.tolist() == [1, 0, 0]
    assert len(read.classes) == 7


def test_a_table_that_does_not_fit_is_said(tmp_path: Path) -> None:
    with pytest.raises(DataAbsent, match="HAM10000_metadata.csv"):
        read_diagnoses(tmp_path)
    with pytest.raises(ValueError, match="lacks the column dx"):
        read_diagnoses(skin(tmp_path / "a", [("L1", "b", "nv")], "lesion_id,image_id,diagnosis"))
    with pytest.raises(ValueError, match="wart"):
        read_diagnoses(skin(tmp_path / "b", [("L1", "b", "wart")]))
    (tmp_path / "c" / "images").mkdir(parents=True)
    (tmp_path / "c" / "HAM10000_metadata.csv").write_text("lesion_id,image_id,dx\n")
    with pytest.raises(DataAbsent, match="none of the photos"):
        read_diagnoses(tmp_path / "c")
