"""A person's own score maps: every layout is read, what is unclear is asked and never guessed, and bad files are sentences."""

from __future__ import annotations

import io
import pickle

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from core.images import BadImage, Limits
from core.images.maps import Maps, maps_from_arrays, read_maps
from core.images.maps_values import CLAMP, SCALES, to_logits
from tests.images.makers import png, png_header, tiff, zipped

SIDE = (12, 15)


def npy(array: np.ndarray) -> bytes:
    out = io.BytesIO()
    np.save(out, array, allow_pickle=True)
    return out.getvalue()


def npz(**arrays: np.ndarray) -> bytes:
    out = io.BytesIO()
    np.savez(out, **arrays)
    return out.getvalue()


def nifti(array: np.ndarray) -> bytes:
    import nibabel

    return nibabel.Nifti1Image(array, np.diag([-1, -1, 1, 1])).to_bytes()


def chances(n: int = 4, seed: int = 0, shape: tuple[int, ...] = SIDE) -> np.ndarray:
    return np.random.default_rng(seed).uniform(0.01, 0.99, (n, *shape)).astype(np.float32)


def truths(n: int = 4, seed: int = 1, shape: tuple[int, ...] = SIDE) -> np.ndarray:
    return np.random.default_rng(seed).random((n, *shape)) < 0.2


def said(maps: Maps) -> str:
    return " ".join(maps.notes)


def asked(maps: Maps) -> dict[str, list[str]]:
    return {q.key: [c.value for c in q.choices] for q in maps.questions}


# ---------------------------------------------------------------------------------------------- layouts


def test_a_zip_with_folders_is_paired_by_name_with_images_and_groups() -> None:
    files: dict[str, bytes] = {"groups.csv": b"name;site\nb;left\na.png;right\n"}
    for k, name in enumerate("ab"):
        files[f"mine/probs/{name}.png"] = png((255 * chances()[k]).astype(np.uint8))
        files[f"mine/labels/{name}_mask.png"] = png(truths()[k].astype(np.uint8) * 255)
        files[f"mine/images/{name}.jpg"] = png(np.full((*SIDE, 3), 40 + k, np.uint8))
    files["mine/images/a.jpg"] = png(np.random.default_rng(0).integers(0, 255, (*SIDE, 3), dtype=np.uint8))
    maps = read_maps([("mine.zip", zipped(files))])
    assert maps.ready and maps.names == ("a", "b")
    assert maps.groups == {"site": ("right", "left")}
    assert maps.images is not None and maps.images[0].shape == (*SIDE, 3)
    assert maps.masks is not None and maps.masks[1].numpy().tolist() == truths()[1].tolist()
    assert "2 score maps, 2 masks, 2 images" in said(maps)
    assert "divided by 255" in said(maps)


def test_an_npz_of_stacks_with_names_is_taken_apart() -> None:
    maps = read_maps(
        [("all.npz", npz(probabilities=chances(), masks=truths(), names=np.array(["w", "x", "y", "z"])))]
    )
    assert maps.ready and maps.names == ("w", "x", "y", "z")
    assert maps.scores[2].dtype == torch.float32
    np.testing.assert_allclose(torch.sigmoid(maps.scores[2]).numpy(), chances()[2], rtol=1e-4)


def test_an_npz_with_one_key_an_image_and_folders_by_case_are_read_alike() -> None:
    p, m = chances(2), truths(2)
    flat = read_maps([("x.npz", npz(one_map=p[0], one_mask=m[0], two_map=p[1], two_mask=m[1]))])
    cases = {
        f"{c}/{what}.npy": npy(a[k])
        for k, c in enumerate(("one", "two"))
        for what, a in (("map", p), ("mask", m))
    }
    folders = read_maps([("x.zip", zipped(cases))])
    assert flat.names == folders.names == ("one", "two")
    assert all(torch.equal(a, b) for a, b in zip(flat.scores, folders.scores, strict=True))


def test_files_in_fields_of_their_own_need_no_folders() -> None:
    p, m = chances(2), truths(2)
    maps = read_maps(
        [("a.tif", tiff(p[0])), ("b.tif", tiff(p[1]))],
        [("a.png", png(m[0].astype(np.uint8))), ("b.png", png(m[1].astype(np.uint8)))],
        groups=("g.csv", b"name,age\na,61\n"),
    )
    assert maps.ready and maps.names == ("a", "b")
    assert maps.groups["age"] == ("61", "unknown") and "unknown" in said(maps)


def test_one_npy_a_field_is_a_stack_of_images() -> None:
    maps = read_maps([("maps.npy", npy(chances(3)))], [("masks.npy", npy(truths(3)))])
    assert len(maps) == 3 and maps.ready


def test_the_same_names_in_different_folders_stay_apart() -> None:
    p, m = chances(2), truths(2)
    files = {
        f"{what}s/{site}/1.npy": npy(a[k])
        for k, site in enumerate(("left", "right"))
        for what, a in (("map", p), ("mask", m))
    }
    maps = read_maps([("x.zip", zipped(files))])
    assert maps.names == ("left/1", "right/1") and maps.ready


def test_maps_without_masks_are_ready_to_be_predicted_on() -> None:
    maps = read_maps([("a.npy", npy(chances()[0])), ("b.npy", npy(chances()[1]))])
    assert maps.ready and maps.masks is None and "no masks" in said(maps)


def test_unpaired_maps_and_masks_are_named_and_left_out() -> None:
    p, m = chances(3), truths(3)
    maps = read_maps(
        [(f"{n}.npy", npy(p[k])) for k, n in enumerate("abc")],
        [("a.npy", npy(m[0])), ("b.npy", npy(m[1])), ("zebra.npy", npy(m[2]))],
    )
    assert maps.names == ("a", "b")
    assert "1 map without a mask of the same name left out: c" in said(maps) and "zebra" in said(maps)


# ---------------------------------------------------------------------------------------------- values


def test_values_that_look_like_logits_are_asked_about_and_never_squashed() -> None:
    raw = np.random.default_rng(0).normal(0, 4, (3, *SIDE)).astype(np.float32)
    open_ = maps_from_arrays(raw, truths(3))
    assert not open_.ready and not open_.scores
    assert asked(open_)["scale"][0] == "logits"
    assert "look like logits" in open_.questions[0].text
    maps = maps_from_arrays(raw, truths(3), answers={"scale": "logits"})
    np.testing.assert_array_equal(maps.scores[1].numpy(), raw[1].clip(-CLAMP, CLAMP))


def test_a_folder_called_logits_has_answered_already() -> None:
    raw = np.random.default_rng(0).normal(0, 4, (3, *SIDE))
    maps = read_maps([("x.npz", npz(logits=raw, masks=truths(3)))])
    assert maps.ready and maps.answers["scale"] == "logits" and "The name says logits" in said(maps)


@pytest.mark.parametrize(
    ("low", "high", "choices"),
    [
        (0.0, 100.0, ["percent", "255", "logits"]),
        (0.0, 254.0, ["255", "logits"]),
        (-0.04, 1.03, ["logits", "clip"]),
    ],
)
def test_every_reading_that_fits_is_offered(low: float, high: float, choices: list[str]) -> None:
    raw = chances(2)
    raw[0, 0, 0], raw[1, 0, 0] = low, high
    assert asked(maps_from_arrays(raw, truths(2)))["scale"] == choices


@pytest.mark.parametrize(("scale", "top"), [("percent", 100), ("255", 255), ("65535", 65535)])
def test_scaled_maps_mean_the_same_as_probabilities(scale: str, top: int) -> None:
    p = chances(2)
    maps = maps_from_arrays(p * top, truths(2), answers={"scale": scale})
    np.testing.assert_allclose(
        maps.scores[0].numpy(), maps_from_arrays(p, truths(2)).scores[0].numpy(), atol=1e-4
    )


def test_whole_numbers_are_scaled_by_the_range_of_their_type_and_that_is_said() -> None:
    p = chances(2)
    for dtype, top, bits in ((np.uint8, 255, "8-bit"), (np.uint16, 65535, "")):
        maps = read_maps([(f"{n}.png", png((top * p[k]).astype(dtype))) for k, n in enumerate("ab")])
        assert maps.ready and f"divided by {top:,}" in said(maps) and bits in said(maps)
        np.testing.assert_allclose(torch.sigmoid(maps.scores[1]).numpy(), p[1], atol=1 / top + 1e-6)


def test_whole_numbers_whose_range_is_not_plain_are_asked_about() -> None:
    small = (100 * chances(2)).astype(np.uint8)
    assert "percent" in asked(maps_from_arrays(small, truths(2)))["scale"]
    dim = (200 * chances(2)).astype(np.uint16)
    assert {"255", "65535"} <= set(asked(maps_from_arrays(dim, truths(2)))["scale"])


def test_an_answer_that_the_values_contradict_is_refused() -> None:
    with pytest.raises(BadImage, match="hold values from"):
        maps_from_arrays(10 * chances(2), truths(2), answers={"scale": "probabilities"})
    with pytest.raises(BadImage, match="look like probabilities already"):
        maps_from_arrays(chances(2), truths(2), answers={"scale": "255"})
    with pytest.raises(BadImage, match="choose one of"):
        maps_from_arrays(chances(2), truths(2), answers={"scale": "furlongs"})


def test_maps_of_different_types_are_refused() -> None:
    with pytest.raises(BadImage, match="different types"):
        maps_from_arrays([chances()[0], (255 * chances()[1]).astype(np.uint8)], truths(2))


def test_missing_values_are_asked_about() -> None:
    raw = chances(3)
    raw[1, 3, 3] = np.nan
    assert asked(maps_from_arrays(raw, truths(3)))["nan"] == ["background", "drop"]
    assert maps_from_arrays(raw, truths(3), answers={"nan": "background"}).scores[1][3, 3] == -CLAMP
    assert len(maps_from_arrays(raw, truths(3), answers={"nan": "drop"})) == 2


def test_certain_pixels_are_clamped_and_counted() -> None:
    raw = chances(2)
    raw[0, :2, 0] = 0
    raw[1, 0, :3] = 1
    maps = maps_from_arrays(raw, truths(2))
    assert float(maps.scores[0].min()) == -CLAMP and float(maps.scores[1].max()) == CLAMP
    assert "5 of 360 pixels lay beyond" in said(maps)


def test_yes_and_no_are_named_as_what_they_are() -> None:
    assert "yes and no" in said(maps_from_arrays(truths(2), truths(2)))
    assert "yes and no" in said(maps_from_arrays(255 * truths(2).astype(np.uint8), truths(2)))


def test_constant_maps_are_named() -> None:
    raw = chances(3)
    raw[2] = 0.4
    assert "1 map the same everywhere, so they tell nothing: 0002" in said(maps_from_arrays(raw, truths(3)))


@settings(max_examples=60, deadline=None)
@given(hnp.arrays(np.float32, (4, 5), elements=st.floats(0, 1, width=32)))
def test_probabilities_become_logits_in_order_and_come_back(p: np.ndarray) -> None:
    logits, clamped = to_logits(p, "probabilities")
    assert logits.dtype == np.float32 and np.abs(logits).max() <= CLAMP
    order = np.argsort(p, axis=None, kind="stable")
    assert (np.diff(logits.reshape(-1)[order]) >= 0).all()
    np.testing.assert_allclose(1 / (1 + np.exp(-logits.astype(float))), p, atol=4e-7)
    assert clamped == int(((p < 3.0589e-7) | (p > 1 - 3.0589e-7)).sum())


def test_all_scales_are_known_to_the_converter() -> None:
    for scale in SCALES:
        assert to_logits(np.array([[0.0, 1.0]]), scale)[0].shape == (1, 2)


# ---------------------------------------------------------------------------------------------- classes and volumes


@pytest.mark.parametrize("last", [False, True])
def test_class_maps_ask_for_the_channel_and_either_end_may_hold_it(last: bool) -> None:
    p = np.random.default_rng(0).dirichlet([1, 1, 1], size=(2, *SIDE))
    raw = p if last else np.moveaxis(p, -1, 1)
    assert asked(maps_from_arrays(raw, truths(2))) == {"channel": ["1", "2", "0"]}
    maps = maps_from_arrays(raw, truths(2), answers={"channel": "2"})
    np.testing.assert_allclose(torch.sigmoid(maps.scores[1]).numpy(), p[1, ..., 2], atol=1e-6)


def test_logits_of_a_softmax_become_the_logit_of_their_class() -> None:
    raw = np.random.default_rng(0).normal(0, 2, (2, 3, *SIDE))
    p = np.exp(raw) / np.exp(raw).sum(1, keepdims=True)
    one = maps_from_arrays(raw, truths(2), answers={"channel": "1", "scale": "logits"})
    np.testing.assert_allclose(torch.sigmoid(one.scores[0]).numpy(), p[0, 1], atol=1e-6)
    each = maps_from_arrays(raw, truths(2), answers={"channel": "1", "scale": "logits, one a channel"})
    np.testing.assert_allclose(each.scores[0].numpy(), raw[0, 1], rtol=1e-6)


def test_two_channel_logits_are_their_difference() -> None:
    raw = np.random.default_rng(0).normal(0, 2, (2, 2, *SIDE))
    maps = maps_from_arrays(raw, truths(2), answers={"channel": "1", "scale": "logits"})
    np.testing.assert_allclose(maps.scores[0].numpy(), raw[0, 1] - raw[0, 0], atol=1e-5)


def test_volumes_are_one_image_or_slices_as_the_person_says() -> None:
    p, m = chances(2, shape=(6, 7, 5)), truths(2, shape=(6, 7, 5))
    files = {
        f"{what}s/case{k}.nii": nifti(a[k].astype(kind))
        for k in range(2)
        for what, a, kind in (("map", p, np.float32), ("mask", m, np.uint8))
    }
    data = [("vol.zip", zipped(files))]
    assert asked(read_maps(data)) == {"volume": ["whole", "slices"]}
    whole = read_maps(data, answers={"volume": "whole"})
    assert len(whole) == 2 and whole.scores[0].numel() == 6 * 7 * 5
    assert whole.masks is not None and int(whole.masks[0].sum()) == int(m[0].sum())
    slices = read_maps(data, answers={"volume": "slices"})
    assert len(slices) == 10 and slices.names[0] == "case0 slice 0"
    assert "Slices of one patient are alike" in said(slices)


def test_a_coloured_heat_map_cannot_be_turned_back() -> None:
    colour = np.random.default_rng(0).integers(0, 255, (*SIDE, 3), dtype=np.uint8)
    with pytest.raises(BadImage, match="colours cannot be turned back"):
        read_maps([("a.png", png(colour))], [("a.png", png(truths()[0].astype(np.uint8)))])
    grey = np.repeat((255 * chances()[0]).astype(np.uint8)[..., None], 3, axis=2)
    assert read_maps([("a.png", png(grey))]).scores[0].shape == SIDE


# ---------------------------------------------------------------------------------------------- masks


@pytest.mark.parametrize("values", [(0, 1), (0, 255), (0, 7)])
def test_masks_of_two_values_need_no_question(values: tuple[int, int]) -> None:
    raw = np.where(truths(2), values[1], values[0]).astype(np.uint8)
    maps = maps_from_arrays(chances(2), raw)
    assert maps.masks is not None and maps.masks[0].numpy().tolist() == truths(2)[0].tolist()


def test_masks_of_several_labels_ask_for_the_lesion() -> None:
    raw = np.random.default_rng(0).integers(0, 3, (2, *SIDE)).astype(np.uint8)
    assert asked(maps_from_arrays(chances(2), raw)) == {"foreground": ["any", "1", "2"]}
    only = maps_from_arrays(chances(2), raw, answers={"foreground": "2"})
    assert only.masks is not None and only.masks[1].numpy().tolist() == (raw[1] == 2).tolist()
    every = maps_from_arrays(chances(2), raw, answers={"foreground": "any"})
    assert every.masks is not None and every.masks[1].numpy().tolist() == (raw[1] > 0).tolist()


def test_one_mapping_serves_all_masks_even_one_that_lacks_the_background() -> None:
    raw = np.ones((2, *SIDE), np.uint8)
    raw[0, :3] = 0
    raw[1, :3] = 2
    maps = maps_from_arrays(chances(2), raw, answers={"foreground": "1"})
    assert maps.masks is not None and bool(maps.masks[1][5, 5]) and not bool(maps.masks[1][0, 0])


def test_empty_and_full_masks_are_counted() -> None:
    raw = truths(3)
    raw[0], raw[1] = False, True
    maps = maps_from_arrays(chances(3), raw)
    assert "1 mask empty" in said(maps) and "1 mask full" in said(maps)
    assert maps.with_lesion == 2


def test_a_mask_of_another_size_is_asked_about_and_never_stretched_silently() -> None:
    masks = [truths()[0], np.kron(truths()[1], np.ones((2, 2), bool))]
    assert asked(maps_from_arrays(chances(2), masks)) == {"size": ["resize", "drop"]}
    scaled = maps_from_arrays(chances(2), masks, answers={"size": "resize"})
    assert scaled.masks is not None and scaled.masks[1].numpy().tolist() == truths()[1].tolist()
    assert "scaled to the size of their maps" in said(scaled)
    assert len(maps_from_arrays(chances(2), masks, answers={"size": "drop"})) == 1


def test_images_of_other_proportions_are_asked_about_and_larger_ones_are_scaled_with_a_note() -> None:
    big = [np.random.default_rng(k).integers(0, 255, (24, 30, 3), dtype=np.uint8) for k in range(2)]
    maps = maps_from_arrays(chances(2), truths(2), big)
    assert (
        maps.images is not None and maps.images[0].shape == (*SIDE, 3) and "images were scaled" in said(maps)
    )
    odd = [big[0], big[1][:, :9]]
    assert asked(maps_from_arrays(chances(2), truths(2), odd)) == {"images": ["ignore", "scale"]}
    assert maps_from_arrays(chances(2), truths(2), odd, answers={"images": "ignore"}).images is None


def test_the_same_image_twice_is_found_by_its_content_and_asked_about() -> None:
    raw = chances(4)
    raw[3] = raw[1]
    open_ = maps_from_arrays(raw, truths(4))
    assert asked(open_) == {"twins": ["drop"]} and "0001 = 0003" in open_.questions[0].text
    assert maps_from_arrays(raw, truths(4), answers={"twins": "drop"}).names == ("0000", "0001", "0002")


# ---------------------------------------------------------------------------------------------- bad files


def test_pickled_arrays_are_refused_and_the_other_files_go_on() -> None:
    evil = np.array([{"a": 1}], dtype=object)
    maps = read_maps([("bad.npy", npy(evil)), ("good.npy", npy(chances()[0]))])
    assert maps.names == ("good",) and "pickle" in maps.problems[0]
    with pytest.raises(BadImage, match="No score map was found"):
        read_maps([("bad.pkl", pickle.dumps([1]))])


def test_a_cut_file_is_named_and_the_others_go_on() -> None:
    maps = read_maps(
        [
            ("cut.npy", npy(chances()[0])[:-40]),
            ("good.npy", npy(chances()[0])),
            ("no.png", b"\x89PNG\r\n\x1a\n???"),
        ]
    )
    assert maps.names == ("good",)
    assert "cut short" in maps.problems[0] and "no.png" in maps.problems[1]


def test_bombs_climbing_names_and_too_many_files_are_refused_before_anything_is_unpacked() -> None:
    small = Limits(files=5, pixels=1000, unpacked_bytes=10_000)
    for data, words in (
        (zipped({"../maps/a.npy": npy(chances()[0])}), "climbs out"),
        (zipped({f"maps/{k}.npy": b"x" for k in range(9)}), "at most 5"),
        (zipped({"maps/a.npy": npy(np.zeros((300, 300)))}), "unpack"),
        (zipped({"maps/a.png": png_header(5000, 5000)}), "pixels"),
        (zipped({"in.zip": zipped({"a": b"x"})}), "another archive"),
    ):
        with pytest.raises(BadImage, match=words):
            read_maps([("x.zip", data)], limits=small)


def test_an_npy_header_that_promises_too_much_is_refused_unread() -> None:
    data = bytearray(npy(np.zeros((4, 4), np.float32)))
    data = bytes(data).replace(b"(4, 4)", b"(99999, 99999)", 1).replace(b" " * 8 + b"\n", b"\n", 1)
    with pytest.raises(BadImage, match="at most"):
        read_maps([("huge.npy", data)])


def test_a_table_that_names_no_map_is_a_sentence() -> None:
    maps = read_maps([("a.npy", npy(chances()[0]))], groups=("g.csv", b"name,site\nzzz,left\n"))
    assert "is the name of a map" in maps.problems[0] and maps.groups == {}


def test_nothing_that_fits_together_is_a_sentence() -> None:
    with pytest.raises(BadImage, match="No mask has the name of a map"):
        read_maps([("a.npy", npy(chances()[0]))], [("b.npy", npy(truths()[0]))])
    with pytest.raises(BadImage, match="give one for each map"):
        maps_from_arrays(chances(3), truths(2))
