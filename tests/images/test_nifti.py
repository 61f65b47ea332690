"""NIfTI: one canonical orientation, the way back, units, and what a broken header gets to hear."""

from __future__ import annotations

import io
import itertools

import numpy as np
import pytest

from core.images import BadImage, Picture, read, to_native, to_rgb
from tests.images.makers import nifti, rng

nib = pytest.importorskip("nibabel")
ORIENTATIONS = [
    "".join(ends[axis] for ends, axis in zip(signs, order, strict=True))
    for order in itertools.permutations(range(3))
    for signs in itertools.product(*[[("R", "A", "S"), ("L", "P", "I")]] * 3)
]


def the(data: bytes, name: str = "x.nii") -> Picture:
    (picture,) = read(data, name)
    return picture


def test_there_are_48_orientations() -> None:
    assert len(set(ORIENTATIONS)) == 48


@pytest.mark.parametrize("codes", ORIENTATIONS)
def test_any_orientation_becomes_canonical_and_goes_back(codes: str) -> None:
    """The same body, stored in any of 48 ways, gives the same picture; a mask returns to the file's own voxels."""
    body = nib.Nifti1Image(
        rng(1).integers(-900, 900, (3, 4, 5), dtype=np.int16), np.diag([2.0, 3.0, 4.0, 1.0])
    )  # R, A, S
    turn = nib.orientations.ornt_transform(
        nib.io_orientation(body.affine), nib.orientations.axcodes2ornt(codes)
    )
    stored = body.as_reoriented(turn)
    assert nib.aff2axcodes(stored.affine) == tuple(codes)
    values = np.asarray(stored.dataobj)
    picture = the(nifti(values, stored.affine))
    right_front_foot = np.asarray(body.dataobj)
    expected = right_front_foot[::-1, ::-1, :].transpose(
        2, 1, 0
    )  # S: foot to head, H: front to back, W: right to left
    assert np.array_equal(picture.pixels, expected)
    assert picture.spacing == pytest.approx((4.0, 3.0, 2.0))
    assert picture.way_back is not None
    assert "".join(picture.way_back.codes) == codes
    assert np.allclose(picture.way_back.affine, stored.affine)
    assert np.array_equal(to_native(picture.pixels, picture.way_back), values)
    mask = np.zeros(picture.pixels.shape, bool)
    mask[tuple(np.argwhere(picture.pixels == expected.max())[0])] = True
    assert values[to_native(mask, picture.way_back)].tolist() == [expected.max()]
    assert any(codes in note for note in picture.notes)


def test_an_oblique_volume_goes_to_the_nearest_axes() -> None:
    angle = np.deg2rad(20)
    affine = np.eye(4)
    affine[:2, :2] = [[np.cos(angle), -np.sin(angle)], [np.sin(angle), np.cos(angle)]]
    values = rng().integers(0, 9, (3, 4, 5), dtype=np.int16)
    picture = the(nifti(values, affine))
    assert picture.pixels.shape == (5, 4, 3)
    assert picture.spacing == pytest.approx((1, 1, 1))
    assert picture.way_back is not None
    assert np.array_equal(to_native(picture.pixels, picture.way_back), values)


def test_colour_planes_go_back_and_a_wrong_shape_is_refused() -> None:
    picture = the(nifti(np.zeros((3, 4, 5), np.int16)))
    assert picture.way_back is not None
    assert to_native(np.zeros((5, 4, 3, 3)), picture.way_back).shape == (3, 4, 5, 3)
    with pytest.raises(ValueError, match="the file is"):
        to_native(np.zeros((5, 3, 4)), picture.way_back)
    with pytest.raises(ValueError, match="whole volume"):
        to_native(np.zeros((5, 3)), picture.way_back)


@pytest.mark.parametrize("kind", [np.uint8, np.int16, np.uint16, np.float32, np.float64, np.int32])
@pytest.mark.parametrize("packed", [False, True])
@pytest.mark.parametrize("second", [False, True])
def test_values_agree_with_nibabel(kind: type, packed: bool, second: bool) -> None:
    values = (rng().random((3, 4, 5)) * 200).astype(kind)
    picture = the(nifti(values, packed=packed, second=second))
    assert picture.way_back is not None
    assert np.allclose(to_native(picture.pixels, picture.way_back), values, rtol=1e-6)


def test_slope_and_intercept_give_real_units() -> None:
    data = nifti(np.arange(24, dtype=np.int16).reshape(2, 3, 4), slope=(0.5, -3.0))
    picture = the(data)
    assert picture.way_back is not None
    theirs = nib.Nifti1Image.from_bytes(data).get_fdata()
    assert np.allclose(to_native(picture.pixels, picture.way_back), theirs)
    assert theirs.max() == 8.5
    assert any("value × 0.5 − 3" in note for note in picture.notes)


def test_the_first_of_several_volumes_is_taken_with_a_note() -> None:
    values = rng().integers(0, 99, (3, 4, 5, 7), dtype=np.int16)
    for packed in (False, True):
        picture = the(nifti(values, packed=packed))
        assert picture.way_back is not None
        assert np.array_equal(to_native(picture.pixels, picture.way_back), values[..., 0])
        assert any("7 volumes" in note for note in picture.notes)


def test_a_plane_is_a_volume_of_one_slice() -> None:
    assert the(nifti(np.ones((3, 4), np.int16))).pixels.shape == (1, 4, 3)


def test_constant_and_nan_volumes_can_still_be_shown() -> None:
    constant = the(nifti(np.full((3, 4, 5), 7, np.int16)))
    assert any("Every value is the same (7)" in note for note in constant.notes)
    assert to_rgb(constant).shape == (4, 3, 3)
    values = np.ones((3, 4, 5), np.float32)
    values[0] = np.nan
    some = the(nifti(values))
    assert any("20 of 60 values are missing" in note for note in some.notes)
    nothing = the(nifti(np.full((3, 4, 5), np.nan, np.float32)))
    assert any("nothing to see" in note for note in nothing.notes)
    assert to_rgb(nothing).dtype == np.uint8


def test_rgb_voxels_are_colours() -> None:
    kind = np.dtype([("R", "u1"), ("G", "u1"), ("B", "u1")])
    values = np.zeros((2, 3, 4), kind)
    values["G"] = 77
    picture = the(nifti(values))
    assert picture.kind == "rgb"
    assert picture.pixels.shape == (4, 3, 2, 3)
    assert (picture.pixels == [0, 77, 0]).all()


def test_units_are_turned_to_millimetres_or_assumed_aloud() -> None:
    values, affine = np.zeros((2, 3, 4), np.int16), np.diag([500.0, 500, 800, 1])
    assert the(nifti(values, affine, units="micron")).spacing == pytest.approx((0.8, 0.5, 0.5))
    unknown = the(nifti(values, affine, units="unknown"))
    assert unknown.spacing == pytest.approx((800, 500, 500))
    assert any("millimetres were assumed" in note for note in unknown.notes)


def test_a_file_that_does_not_say_how_it_lies_is_warned_about() -> None:
    picture = the(nifti(np.zeros((2, 3, 4), np.int16), codes=0))
    assert any("does not say how it lies" in note for note in picture.notes)


def test_a_damaged_affine_is_said_and_the_voxels_are_read() -> None:
    values = rng().integers(0, 9, (2, 3, 4), dtype=np.int16)
    picture = the(nifti(values, srow_x=[np.nan, 0, 0, 0]))
    assert any("damaged" in note for note in picture.notes)
    assert picture.spacing is None
    assert picture.way_back is not None
    assert np.array_equal(to_native(picture.pixels, picture.way_back), values)


def test_complex_voxels_are_refused_with_a_way_out() -> None:
    with pytest.raises(BadImage, match="magnitude"):
        read(nifti(np.zeros((2, 3, 4), np.complex64)), "x.nii")


def test_truncated_files_say_how_much_is_missing() -> None:
    data = nifti(np.zeros((20, 30, 40), np.int16))
    with pytest.raises(
        BadImage, match=r"x\.nii is cut short: its header promises 47\.2 KB, but only 4\.9 KB"
    ):
        read(data[:5000], "x.nii")
    packed = nifti(rng().integers(0, 999, (20, 30, 40), dtype=np.int16), packed=True)
    with pytest.raises(BadImage, match="cut short"):
        read(packed[:5000], "x.nii.gz")


def test_a_header_whose_pixels_are_elsewhere_is_explained() -> None:
    data = bytearray(nifti(np.zeros((2, 3, 4), np.int16)))
    data[344:348] = b"ni1\x00"
    with pytest.raises(BadImage, match="pixels are in another file"):
        read(bytes(data), "x.hdr")


def test_gzip_in_several_pieces_is_read() -> None:
    import gzip

    data = nifti(rng().integers(0, 999, (2, 3, 4), dtype=np.int16))
    out = io.BytesIO(gzip.compress(data[:380]) + gzip.compress(data[380:]))
    assert np.array_equal(the(out.getvalue()).pixels, the(data).pixels)
