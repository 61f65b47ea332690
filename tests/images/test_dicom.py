"""DICOM: the order of rescale, window and inversion; colour; packings; and never a word about the patient."""

from __future__ import annotations

import io
import logging
import warnings
from typing import Any

import numpy as np
import pytest

from core.images import BadImage, Picture, read, to_rgb
from tests.images.makers import PATIENT, colours, dicom, pil, rng

JPEG, JPEG_LOSSLESS, JPEG_LS, JPEG_2000 = (f"1.2.840.10008.1.2.4.{end}" for end in ("50", "70", "80", "90"))


def the(data: bytes) -> Picture:
    (picture,) = read(data, "x.dcm")
    return picture


def test_stored_values_are_rescaled_before_the_window_is_applied() -> None:
    stored = np.array([[0, 1024, 1064, 2000]], np.uint16)
    picture = the(
        dicom(stored, RescaleSlope=1, RescaleIntercept=-1024, WindowCenter=40, WindowWidth=400, Modality="CT")
    )
    assert picture.pixels.dtype == np.int16
    assert picture.pixels.tolist() == [[[-1024, 0, 40, 976]]]
    assert picture.window == (40.0, 400.0)
    assert to_rgb(picture)[0, :, 0].tolist() == [0, 102, 128, 255]  # 0 HU: (0 - 40) / 400 + 0.5 = 0.4
    assert any("Hounsfield" in note for note in picture.notes)


def test_the_window_agrees_with_pydicoms_own_within_a_level() -> None:
    from pydicom import dcmread
    from pydicom.pixels import apply_rescale, apply_windowing

    stored = rng().integers(0, 4096, (30, 40), dtype=np.uint16)
    data = dicom(
        stored,
        RescaleSlope=2,
        RescaleIntercept=-1000,
        WindowCenter=300,
        WindowWidth=1500,
        BitsStored=12,
        HighBit=11,
    )
    dataset = dcmread(io.BytesIO(data))
    theirs = apply_windowing(apply_rescale(dataset.pixel_array, dataset), dataset)
    theirs = (theirs - theirs.min()) / (theirs.max() - theirs.min()) * 255
    assert np.abs(to_rgb(the(data))[..., 0] - theirs).max() <= 1


def test_monochrome1_is_inverted_after_windowing_and_not_before() -> None:
    stored = np.array([[0, 50, 100, 1000]], np.uint16)
    options: dict[str, Any] = {"WindowCenter": 50, "WindowWidth": 100}
    plain, inverted = the(dicom(stored, **options)), the(dicom(stored, photometric="MONOCHROME1", **options))
    assert np.array_equal(plain.pixels, inverted.pixels)  # real units stay real units
    assert inverted.inverted
    assert not plain.inverted
    assert np.array_equal(to_rgb(inverted), 255 - to_rgb(plain))
    assert to_rgb(inverted)[0, :, 0].tolist()[0] == 255
    assert any("MONOCHROME1" in note for note in inverted.notes)


def test_without_a_window_the_percentiles_are_used_and_a_useless_one_is_said() -> None:
    stored = rng().integers(0, 4000, (40, 40), dtype=np.uint16)
    low, high = np.percentile(stored, (1, 99))
    for picture in (the(dicom(stored)), the(dicom(stored, WindowCenter=40, WindowWidth=0))):
        assert picture.window == pytest.approx(((low + high) / 2, high - low))
    assert any("cannot be used" in note for note in picture.notes)


def test_the_first_of_several_windows_is_taken_and_said() -> None:
    picture = the(dicom(np.zeros((2, 3), np.int16), WindowCenter=[40, -600], WindowWidth=[400, 1500]))
    assert picture.window == (40.0, 400.0)
    assert any("more than one" in note for note in picture.notes)


def test_frames_are_slices() -> None:
    stored = rng().integers(-900, 900, (4, 5, 6), dtype=np.int16)
    picture = the(dicom(stored))
    assert np.array_equal(picture.pixels, stored)
    assert any("4 frames" in note for note in picture.notes)


def test_each_frame_of_an_enhanced_file_has_its_own_slope_window_and_spacing() -> None:
    from pydicom.dataset import Dataset
    from pydicom.sequence import Sequence

    def group(slope: float) -> Dataset:
        values, item = Dataset(), Dataset()
        values.RescaleSlope, values.RescaleIntercept = slope, 0.5
        item.PixelValueTransformationSequence = Sequence([values])
        return item

    shared, measures, window = Dataset(), Dataset(), Dataset()
    measures.PixelSpacing, measures.SliceThickness = [0.5, 0.25], 3
    window.WindowCenter, window.WindowWidth = 7, 9
    shared.PixelMeasuresSequence, shared.FrameVOILUTSequence = Sequence([measures]), Sequence([window])
    stored = np.ones((2, 2, 2), np.uint16)
    picture = the(
        dicom(
            stored,
            SharedFunctionalGroupsSequence=Sequence([shared]),
            PerFrameFunctionalGroupsSequence=Sequence([group(2), group(4)]),
        )
    )
    assert picture.pixels[:, 0, 0].tolist() == [2.5, 4.5]
    assert picture.spacing == (3.0, 0.5, 0.25)
    assert picture.window == (7.0, 9.0)


def test_float_pixels_are_read() -> None:
    values = rng().random((3, 4), dtype=np.float32)
    assert np.array_equal(the(dicom(values)).pixels[0], values)


def test_colour_is_read_and_ybr_becomes_rgb() -> None:
    array = colours(8, 10)
    assert np.array_equal(the(dicom(array, photometric="RGB")).pixels[0], array)
    planar = the(
        dicom(array, photometric="RGB", PlanarConfiguration=1, PixelData=np.moveaxis(array, -1, 0).tobytes())
    )
    assert np.array_equal(planar.pixels[0], array)
    from PIL import Image

    ybr = np.asarray(Image.fromarray(array).convert("YCbCr"))
    picture = the(dicom(ybr, photometric="YBR_FULL"))
    assert np.abs(picture.pixels[0].astype(int) - array).max() <= 3
    assert any("YBR_FULL to RGB" in note for note in picture.notes)


def test_a_palette_is_looked_up() -> None:
    table = rng().integers(0, 256, (3, 256), dtype=np.uint8)
    lut: dict[str, Any] = {}
    for name, row in zip(("Red", "Green", "Blue"), table, strict=True):
        lut[f"{name}PaletteColorLookupTableDescriptor"] = [256, 0, 8]
        lut[f"{name}PaletteColorLookupTableData"] = row.tobytes()
    stored = rng().integers(0, 256, (5, 6), dtype=np.uint8)
    picture = the(dicom(stored, photometric="PALETTE COLOR", **lut))
    assert picture.kind == "rgb"
    assert np.array_equal(picture.pixels[0], table.T[stored])


def packed(values: np.ndarray, stream: bytes, syntax: str, **elements: Any) -> bytes:
    from pydicom.encaps import encapsulate

    return dicom(values, syntax=syntax, pixels=encapsulate([stream]), **elements)


def test_jpeg_and_jpeg_2000_are_unpacked() -> None:
    from PIL import Image

    array = np.full((32, 40), 90, np.uint8)
    picture = the(packed(array, pil(Image.fromarray(array), "JPEG"), JPEG))
    assert np.abs(picture.pixels[0].astype(int) - 90).max() <= 2
    assert any("Unpacked from JPEG Baseline" in note for note in picture.notes)
    noise = rng().integers(0, 256, (32, 40), dtype=np.uint8)
    stream = pil(Image.fromarray(noise), "JPEG2000", irreversible=False, no_jp2=True)
    assert np.array_equal(the(packed(noise, stream, JPEG_2000)).pixels[0], noise)


@pytest.mark.parametrize(("syntax", "package"), [(JPEG_LOSSLESS, "python-gdcm"), (JPEG_LS, "pyjpegls")])
def test_a_packing_without_decoder_names_the_missing_package(
    syntax: str, package: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    from pydicom.pixels import get_decoder

    monkeypatch.setattr(get_decoder(syntax), "_available", {})  # whatever happens to be installed here
    data = packed(np.zeros((8, 8), np.uint8), b"\xff\xd8" + bytes(60), syntax)
    with pytest.raises(BadImage, match=f"decoder is not installed.*{package}"):
        read(data, "x.dcm")


def test_a_video_packing_has_no_decoder_and_says_so() -> None:
    with pytest.raises(BadImage, match="no decoder"):
        read(packed(np.zeros((8, 8), np.uint8), bytes(60), "1.2.840.10008.1.2.4.102"), "x.dcm")


def test_a_packed_frame_that_is_larger_than_its_header_says_is_refused() -> None:
    from PIL import Image

    large = pil(Image.new("L", (3000, 2000)), "JPEG")
    with pytest.raises(BadImage, match=r"40 × 32 pixels.*3,000 × 2,000"):
        read(packed(np.zeros((32, 40), np.uint8), large, JPEG), "x.dcm")


def test_a_file_without_pixels_says_what_it_is() -> None:
    data = dicom(np.zeros((2, 2), np.uint8), PixelData=None, SOPClassUID="1.2.840.10008.5.1.4.1.1.481.3")
    with pytest.raises(BadImage, match="without pixels \\(RT Structure Set Storage\\)"):
        read(data, "x.dcm")


def test_fewer_pixels_than_promised_is_said() -> None:
    data = dicom(np.zeros((40, 50), np.int16), Rows=400)
    with pytest.raises(BadImage, match="do not agree with its header"):
        read(data, "x.dcm")


def test_spacing_is_taken_from_the_patients_plane_only() -> None:
    plane = np.zeros((2, 3), np.int16)
    assert the(dicom(plane, PixelSpacing=[0.7, 0.6], SliceThickness=2.5)).spacing == (2.5, 0.7, 0.6)
    assert the(dicom(plane, PixelSpacing=[0.7, 0.6], SpacingBetweenSlices=2, SliceThickness=2.5)).spacing == (
        2.0,
        0.7,
        0.6,
    )
    detector = the(dicom(plane, ImagerPixelSpacing=[0.1, 0.1]))
    assert detector.spacing is None
    assert any("at the detector only" in note for note in detector.notes)
    film = the(
        dicom(
            np.zeros((3, 2, 2), np.uint8),
            PixelSpacing=[1, 1],
            SliceThickness=4,
            FrameIncrementPointer=0x00181063,
        )
    )
    assert film.spacing is not None
    assert np.isnan(film.spacing[0])  # frames in time


def test_a_file_without_preamble_is_recognised() -> None:
    stored = rng().integers(0, 4000, (5, 6), dtype=np.uint16)
    assert np.array_equal(the(dicom(stored, preamble=False)).pixels[0], stored)


def test_text_burned_into_the_picture_is_warned_about() -> None:
    assert any("burned" in n for n in the(dicom(np.zeros((2, 2), np.uint8), BurnedInAnnotation="YES")).notes)


def everything_said(picture: Picture) -> str:
    return " ".join((picture.name, picture.kind, picture.format, repr(picture), *picture.notes))


def test_no_patient_field_is_kept_shown_or_logged(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.DEBUG)
    values = np.zeros((4, 5), np.uint16)
    said = []
    with warnings.catch_warnings(record=True) as warned:
        warnings.simplefilter("always")
        said.append(everything_said(the(dicom(values, photometric="MONOCHROME1", BurnedInAnnotation="YES"))))
        good = dicom(values)
        assert PATIENT["PatientName"].encode() in good
        for broken in (
            good[:-30],
            dicom(values, Rows=400),
            dicom(values, PixelData=None),
            dicom(values, photometric="Zweifel^Amalie"),
        ):
            with pytest.raises(BadImage) as caught:
                read(broken, "x.dcm")
            said.append(str(caught.value))
            assert caught.value.__cause__ is None
            assert caught.value.__suppress_context__ or caught.value.__context__ is None
    said += [str(entry.message) for entry in warned] + [caplog.text]
    for value in PATIENT.values():
        for part in value.split("^"):
            assert not any(part in text for text in said), part


def test_a_damaged_header_is_not_quoted_in_a_warning(caplog: pytest.LogCaptureFixture) -> None:
    """A length that swallows its neighbours makes pydicom warn with the swallowed text: names, dates, all of it."""
    data = bytearray(dicom(np.zeros((4, 5), np.uint16)))
    place = data.index(b"\x02\x00\x02\x00UI")
    data[place + 6 : place + 8] = (700).to_bytes(2, "little")
    place = data.index(b"\x08\x00\x16\x00UI")
    data[place + 6 : place + 8] = (500).to_bytes(2, "little")
    with warnings.catch_warnings(record=True) as warned:
        warnings.simplefilter("always")
        with pytest.raises(BadImage):
            read(bytes(data), "x.dcm")
    text = caplog.text + " ".join(str(entry.message) for entry in warned)
    assert "Zweifel" not in text
    assert PATIENT["PatientID"] not in text
