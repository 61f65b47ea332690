"""The reader as a whole: what a file is, what it is called, and that one bad file stops nobody."""

from __future__ import annotations

import threading
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from core.images import BadImage, Limits, Picture, read, read_many
from core.images.errors import tidy_name
from tests.images.makers import PATIENT, colours, dicom, nifti, png, rng, tiff, zipped

EVERY_KIND = {
    "a.png": lambda: png(colours()),
    "a.tif": lambda: tiff(rng().integers(0, 60000, (9, 11), dtype=np.uint16)),
    "a.dcm": lambda: dicom(rng().integers(0, 4000, (2, 9, 11), dtype=np.int16)),
    "a.nii": lambda: nifti(rng().integers(0, 90, (4, 5, 6), dtype=np.int16)),
    "a.nii.gz": lambda: nifti(rng().random((4, 5, 6), dtype=np.float32), packed=True),
    "a.zip": lambda: zipped({"x.png": png(colours())}),
}


def the(data: bytes, name: str = "file.png", **options: object) -> Picture:
    pictures = read(data, name, **options)  # type: ignore[arg-type]
    assert len(pictures) == 1
    return pictures[0]


@pytest.mark.parametrize("name", EVERY_KIND)
def test_every_kind_is_read_whatever_its_name_says(name: str) -> None:
    data = EVERY_KIND[name]()
    right = read(data, name)[0]
    wrong = read(data, "wrongly.jpg")[0]
    assert np.array_equal(right.pixels, wrong.pixels, equal_nan=right.pixels.dtype.kind == "f")
    assert right.digest == wrong.digest
    assert not any("name ends in" in note for note in right.notes)


def test_a_wrong_ending_is_noted_and_a_missing_one_is_not() -> None:
    data = png(colours())
    assert "The name ends in .jpg" in the(data, "photo.jpg").notes[0]
    assert "PNG" in the(data, "photo.jpg").notes[0]
    assert the(data, "photo").notes == ()
    assert the(data, "photo.PNG").notes == ()


@pytest.mark.parametrize(
    ("data", "words"),
    [
        (b"", "empty"),
        (b"%PDF-1.7 and so on", "a PDF"),
        (b"name,age\nA,1\n" * 9, "plain text"),
        (bytes(400), "zeros"),
        (b"\x00\x00\x00\x18ftypheic" + bytes(40), "HEIC"),
        (b"<!DOCTYPE html><html></html>", "a web page"),
        (b"\x93NUMPY\x01\x00" + bytes(90), "NumPy"),
        (b"\x9a\x8b\x7c\x6d\x5e\x4f\x3a\x2b", "9A 8B 7C 6D 5E 4F 3A 2B"),
        (b"\x1f\x8b\x08\x00" + bytes(60), "gzip file that holds no NIfTI"),
    ],
)
def test_a_file_of_another_kind_is_named_with_what_was_found(data: bytes, words: str) -> None:
    with pytest.raises(BadImage) as caught:
        read(data, "thing.png")
    assert "thing.png" in str(caught.value)
    assert words in str(caught.value)


def test_a_bad_file_says_so_and_the_others_of_the_upload_go_on() -> None:
    good = png(colours())
    pictures, sentences = read_many(
        [("one.png", good), ("two.png", good[:60]), ("three.txt", b"hello"), ("four.png", good)]
    )
    assert [picture.name for picture in pictures] == ["one.png", "four.png"]
    assert len(sentences) == 2
    assert "two.png" in sentences[0]
    assert "cut short" in sentences[0]
    assert "three.txt" in sentences[1]


def test_a_path_is_read_and_a_missing_one_or_a_folder_is_named(tmp_path: Path) -> None:
    file = tmp_path / "deep" / "scan.png"
    file.parent.mkdir()
    file.write_bytes(png(colours()))
    assert read(file)[0].name == "scan.png"
    assert read(file, "nicer.png")[0].name == "nicer.png"
    with pytest.raises(BadImage, match="no such file") as caught:
        read(tmp_path / "gone.png")
    assert str(tmp_path) not in str(caught.value)
    with pytest.raises(BadImage, match="is a folder"):
        read(file.parent)


def test_names_lose_folders_and_control_characters_and_stay_short() -> None:
    assert tidy_name("/home/somebody/scan.png") == "scan.png"
    assert tidy_name("C:\\Users\\somebody\\scan.png") == "scan.png"
    assert "\n" not in tidy_name("a\nb<script>.png")
    assert "<" not in tidy_name("a<script>.png")
    assert len(tidy_name("x" * 500 + ".png")) <= 80
    assert tidy_name("x" * 500 + ".png").endswith(".png")
    assert tidy_name(None) == tidy_name("") == "the file"


def test_the_same_picture_has_the_same_digest_in_another_format_and_another_name() -> None:
    array = colours()
    first, second = the(png(array), "a.png"), the(tiff(array, photometric="rgb"), "b.tif")
    assert first.digest == second.digest
    changed = array.copy()
    changed[3, 4, 1] ^= 1
    assert the(png(changed)).digest != first.digest
    assert the(png(np.ascontiguousarray(array.reshape(17, 12, 3)))).digest != first.digest


def test_pixels_cannot_be_changed_by_those_who_share_them() -> None:
    picture = the(png(colours()))
    with pytest.raises(ValueError, match="read-only"):
        picture.pixels[0, 0, 0, 0] = 1


def test_the_upload_as_a_whole_has_limits() -> None:
    good = png(colours())
    pictures, sentences = read_many([(f"{i}.png", good) for i in range(5)], Limits(files=3))
    assert len(pictures) == 3
    assert len(sentences) == 2
    assert "limit on files" in sentences[0]
    pictures, sentences = read_many(
        [(f"{i}.png", good) for i in range(5)], Limits(unpacked_bytes=2 * 12 * 17 * 3)
    )
    assert len(pictures) == 2
    assert all("limit on unpacked bytes" in sentence for sentence in sentences)


def test_a_file_that_failed_gives_back_what_it_had_claimed() -> None:
    good = png(colours())
    pictures, _ = read_many([("bad.png", good[:-30]), ("good.png", good)], Limits(unpacked_bytes=12 * 17 * 3))
    assert [picture.name for picture in pictures] == ["good.png"]


def test_many_people_may_read_at_once() -> None:
    files = {name: make() for name, make in EVERY_KIND.items()}
    expected = {name: read(data, name)[0].digest for name, data in files.items()}
    wrong: list[str] = []

    def work() -> None:
        for name, data in files.items():
            try:
                if read(data, name)[0].digest != expected[name]:
                    wrong.append(name)
            except Exception as error:
                wrong.append(f"{name}: {error!r}")

    threads = [threading.Thread(target=work) for _ in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert wrong == []


def test_no_global_switch_of_pillow_is_touched() -> None:
    from PIL import Image, ImageFile

    before = Image.MAX_IMAGE_PIXELS, ImageFile.LOAD_TRUNCATED_IMAGES
    for name, make in EVERY_KIND.items():
        read(make(), name)
    assert before == (Image.MAX_IMAGE_PIXELS, ImageFile.LOAD_TRUNCATED_IMAGES)


STARTS = [
    b"\x89PNG\r\n\x1a\n", b"\xff\xd8\xff\xe0", b"II*\x00\x08\x00\x00\x00", b"MM\x00*\x00\x00\x00\x08", b"GIF89a", b"PK\x03\x04",
    b"PK\x05\x06", b"\x1f\x8b\x08", b"RIFF\x00\x01\x00\x00WEBP",
    b"BM\x00\x00\x00\x00\x00\x00\x00\x00\x36\x00\x00\x00\x28\x00\x00\x00",
    bytes(128) + b"DICM", b"\x08\x00\x05\x00CS\x0a\x00", b"\x5c\x01\x00\x00" + bytes(340) + b"n+1\x00",
    b"\x1c\x02\x00\x00n+2\x00\x0d\x0a\x1a\x0a", b"",
]  # fmt: skip


def only_pictures_or_a_sentence(data: bytes, name: str) -> None:
    pictures, sentences = read_many([(name, data)], Limits(pixels=10**6, unpacked_bytes=2**24, slices=50))
    assert pictures or sentences
    assert all(picture.pixels.size for picture in pictures)
    for text in [*sentences, *(note for picture in pictures for note in picture.notes)]:
        assert 0 < len(text) <= 400
        assert not any(value in text for value in PATIENT.values())


@given(start=st.sampled_from(STARTS), rest=st.binary(max_size=700))
@settings(max_examples=100, deadline=None)
def test_random_bytes_never_raise_anything_but_bad_image(start: bytes, rest: bytes) -> None:
    only_pictures_or_a_sentence(start + rest, "random.bin")


@given(name=st.sampled_from(sorted(EVERY_KIND)), cut=st.floats(0, 1), data=st.data())
@settings(max_examples=100, deadline=None)
def test_cut_and_damaged_files_never_raise_anything_but_bad_image(
    name: str, cut: float, data: st.DataObject
) -> None:
    whole = bytearray(MADE[name])
    for _ in range(data.draw(st.integers(0, 4))):
        place = data.draw(st.integers(0, len(whole) - 1))
        whole[place] = data.draw(st.integers(0, 255))
    only_pictures_or_a_sentence(
        bytes(whole[: int(cut * len(whole))] if data.draw(st.booleans()) else whole), name
    )


MADE = {name: make() for name, make in EVERY_KIND.items()}
