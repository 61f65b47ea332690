"""Every file that pydicom ships with itself gives pixels or one clear sentence, and no word about its patient."""

from __future__ import annotations

import io
import logging
import socket
import warnings
from pathlib import Path

import numpy as np
import pytest

from core.images import BadImage, read, to_rgb

pydicom = pytest.importorskip("pydicom")
# Listed from the folder, not through get_testdata_files: that one would go and download what is missing.
FILES = sorted(
    path
    for folder in ("test_files", "charset_files", "palettes")
    for path in (Path(pydicom.__file__).parent / "data" / folder).rglob("*")
    if path.is_file() and path.suffix not in (".py", ".pyc")
)
PERSONAL = (
    "PatientName", "PatientID", "PatientBirthDate", "PatientAddress", "OtherPatientIDs", "ReferringPhysicianName",
    "PerformingPhysicianName", "OperatorsName", "InstitutionName", "AccessionNumber", "StudyDate", "StudyInstanceUID",
)  # fmt: skip


@pytest.fixture(autouse=True)
def _no_network(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*args: object, **kwargs: object) -> None:
        raise AssertionError("a file was asked for over the network")

    monkeypatch.setattr(socket.socket, "connect", refuse)
    monkeypatch.setattr(socket, "create_connection", refuse)


def personal_values(data: bytes) -> set[str]:
    """What the header says of people, at least four characters long, as an unrestricted pydicom reads it."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            dataset = pydicom.dcmread(io.BytesIO(data), force=True, stop_before_pixels=True)
            found = {str(dataset.get(keyword, "")) for keyword in PERSONAL}
        except Exception:  # what pydicom cannot parse holds no value to look for
            return set()
    parts = {part for value in found for part in (value, *value.replace("^", " ").split())}
    return {part for part in parts if len(part) >= 4}


def test_there_are_files_to_read() -> None:
    assert len(FILES) > 150


@pytest.mark.parametrize("path", FILES, ids=lambda path: f"{path.parent.name}-{path.name}")
def test_pixels_or_a_sentence(path: Path, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.DEBUG)
    data = path.read_bytes()
    secret = personal_values(data)
    said: list[str] = []
    with warnings.catch_warnings(record=True) as warned:
        warnings.simplefilter("always")
        try:
            pictures = read(data, "upload.dcm")
        except BadImage as error:
            said.append(str(error))
        else:
            for picture in pictures:
                assert picture.pixels.size
                assert to_rgb(picture).shape == (*picture.shape, 3)
                said += picture.notes
    assert all(10 < len(text) <= 400 for text in said)
    said += [str(entry.message) for entry in warned] + [caplog.text]
    assert not [value for value in secret for text in said if value in text]


def pixels_of(name: str) -> np.ndarray:
    path = next((path for path in FILES if path.name == name), None)
    if path is None:
        pytest.skip(f"{name} does not ship with this pydicom")
    return read(path)[0].pixels


def test_the_same_scan_is_the_same_in_every_lossless_packing() -> None:
    plain = pixels_of("MR_small.dcm")
    for name in (
        "MR_small_RLE",
        "MR_small_bigendian",
        "MR_small_implicit",
        "MR_small_jp2klossless",
        "MR_small_expb",
    ):
        assert np.array_equal(pixels_of(f"{name}.dcm"), plain), name


def test_a_known_scan_has_its_known_values() -> None:
    path = next(path for path in FILES if path.name == "CT_small.dcm")
    picture = read(path)[0]
    stored = pydicom.dcmread(path).pixel_array
    assert np.array_equal(picture.pixels[0], stored.astype(int) - 1024)
    assert picture.spacing == (5.0, 0.661468, 0.661468)
