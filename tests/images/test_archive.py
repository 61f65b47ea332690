"""Zips: their files are read; bombs, nests, dangerous names, passwords and crowds are refused unopened."""

from __future__ import annotations

import io
import struct
import tracemalloc
import zipfile

import numpy as np
import pytest

from core.images import BadImage, Limits, read, read_many
from core.images.archive import open_zip
from core.images.limits import Budget
from tests.images.makers import colours, dicom, nifti, png, zipped

GOOD = png(colours())


def refused(data: bytes, words: str, limits: Limits | None = None) -> None:
    """Refused as a whole, also where good files are in it, and before any file has been unpacked."""
    with pytest.raises(BadImage, match=words) as caught:
        read(data, "pack.zip", limits or Limits())
    assert "pack.zip" in str(caught.value)
    with pytest.raises(BadImage):
        next(iter(open_zip(data, "pack.zip", Budget(limits or Limits()))))


def test_files_of_every_kind_are_read_with_both_names() -> None:
    data = zipped(
        {
            "a.png": GOOD,
            "scans/b.dcm": dicom(np.ones((3, 4), np.uint16)),
            "scans/c.nii.gz": nifti(np.ones((2, 3, 4), np.int16), packed=True),
        }
    )
    assert [picture.name for picture in read(data, "pack.zip")] == [
        "pack.zip/a.png",
        "pack.zip/scans/b.dcm",
        "pack.zip/scans/c.nii.gz",
    ]


def test_folders_and_system_files_are_passed_over() -> None:
    data = zipped(
        {
            "x/": b"",
            "x/a.png": GOOD,
            "__MACOSX/x/._a.png": b"junk",
            ".DS_Store": b"junk",
            "x/Thumbs.db": b"junk",
        }
    )
    pictures, sentences = read_many([("pack.zip", data)])
    assert [picture.name for picture in pictures] == ["pack.zip/x/a.png"]
    assert sentences == []


def test_a_bad_file_in_it_is_named_and_the_others_go_on() -> None:
    data = zipped({"a.png": GOOD, "b.txt": b"hello there", "c.png": GOOD[:50], "d.png": GOOD})
    pictures, sentences = read_many([("pack.zip", data), ("e.png", GOOD)])
    assert [picture.name for picture in pictures] == ["pack.zip/a.png", "pack.zip/d.png", "e.png"]
    assert len(sentences) == 2
    assert "pack.zip/b.txt" in sentences[0]
    assert "pack.zip/c.png" in sentences[1]
    assert any("2 of the 4 files" in note for note in read(data, "pack.zip")[0].notes)


def test_a_file_with_a_wrong_checksum_is_named_and_the_others_go_on() -> None:
    data = bytearray(zipped({"a.png": GOOD, "b.png": GOOD}, zipfile.ZIP_STORED))
    data[data.index(b"IDAT") + 9] ^= 0xFF
    pictures, sentences = read_many([("pack.zip", bytes(data))])
    assert [picture.name for picture in pictures] == ["pack.zip/b.png"]
    assert "pack.zip/a.png is damaged inside its zip" in sentences[0]


def test_nothing_readable_or_nothing_at_all_is_said() -> None:
    with pytest.raises(BadImage, match=r"None of the 1 files in pack\.zip could be read"):
        read(zipped({"a.txt": b"hello"}), "pack.zip")
    with pytest.raises(BadImage, match="without any file"):
        read(zipped({}), "pack.zip")
    assert "without any file" in read_many([("pack.zip", zipped({}))])[1][0]


@pytest.mark.parametrize("name", ["../evil.png", "a/../../evil.png", "..\\evil.png"])
def test_names_that_climb_out_are_refused(name: str) -> None:
    refused(zipped({"a.png": GOOD, name: GOOD}), "climbs out")


@pytest.mark.parametrize("name", ["/etc/evil.png", "C:/evil.png", "\\\\server\\evil.png"])
def test_absolute_names_are_refused(name: str) -> None:
    refused(zipped({"a.png": GOOD, name: GOOD}), "absolute")


def test_a_zip_in_a_zip_is_refused_by_name_and_by_content() -> None:
    inner = zipped({"a.png": GOOD})
    refused(zipped({"a.png": GOOD, "inner.zip": inner}), r"another archive.*at most one level")
    refused(zipped({"a.png": GOOD, "innocent.png": inner}), r"another archive.*innocent\.png")
    refused(zipped({"a.png": GOOD, "inner.tar.gz": b"x"}), "another archive")


def test_a_document_that_happens_to_be_a_zip_only_fails_itself() -> None:
    pictures, sentences = read_many(
        [("pack.zip", zipped({"a.png": GOOD, "table.xlsx": zipped({"x": b"1"})}))]
    )
    assert len(pictures) == len(sentences) == 1
    assert "table.xlsx" in sentences[0]


def test_an_encrypted_zip_is_refused() -> None:
    data = bytearray(zipped({"a.png": GOOD}))
    data[6] |= 1  # in the file's own header
    data[data.index(b"PK\x01\x02") + 8] |= 1  # in the table of contents
    refused(bytes(data), "encrypted")


@pytest.mark.parametrize("method", [zipfile.ZIP_BZIP2, zipfile.ZIP_LZMA])
def test_packings_that_cannot_be_unpacked_piecewise_are_refused(method: int) -> None:
    refused(zipped({"a.png": GOOD}, method), "ordinary zip")


def test_a_zip_bomb_is_refused_from_its_table_of_contents() -> None:
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w", zipfile.ZIP_DEFLATED, compresslevel=1) as archive:
        for i in range(4):
            archive.writestr(f"{i}.png", bytes(16 * 2**20))
    data = out.getvalue()
    assert len(data) < 500_000
    tracemalloc.start()
    refused(
        data,
        r"would unpack to 64\.0 MB; at most 60\.0 MB.*limit on unpacked bytes",
        Limits(unpacked_bytes=60 * 2**20),
    )
    refused(data, "limit on bytes", Limits(file_bytes=15 * 2**20))
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 8 * 2**20


def test_a_table_of_contents_that_lies_about_sizes_yields_no_more_than_it_states() -> None:
    data = bytearray(zipped({"a.png": bytes(8 * 2**20), "b.png": GOOD}))
    for place in (22, data.index(b"PK\x01\x02") + 24):  # the unpacked size, in both tables
        data[place : place + 4] = struct.pack("<I", 100)
    pictures, sentences = read_many([("pack.zip", bytes(data))], Limits(unpacked_bytes=2**20))
    assert [picture.name for picture in pictures] == ["pack.zip/b.png"]
    assert "pack.zip/a.png" in sentences[0]


def test_too_many_files_are_refused_with_the_limit() -> None:
    many = {f"{i}.png": GOOD for i in range(6)}
    refused(zipped(many), r"holds 6 files.*at most 5 \(limit on files\)", Limits(files=5))
    assert len(read(zipped(many), "pack.zip", Limits(files=6))) == 6


def test_a_crowded_table_of_contents_is_refused_before_it_is_parsed(monkeypatch: pytest.MonkeyPatch) -> None:
    def parse(*args: object, **kwargs: object) -> None:
        raise AssertionError("the table of contents was parsed")

    data = zipped({f"{i}": b"" for i in range(3000)})
    monkeypatch.setattr(zipfile, "ZipFile", parse)
    with pytest.raises(BadImage, match="limit on files"):
        read(data, "pack.zip")


def test_a_truncated_zip_is_named() -> None:
    data = zipped({"a.png": GOOD, "b.png": GOOD})
    with pytest.raises(BadImage, match=r"pack\.zip begins like a zip.*damaged or was cut short"):
        read(data[:-40], "pack.zip")
