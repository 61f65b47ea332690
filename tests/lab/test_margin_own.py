"""A person's own logits and probabilities: every layout and format gives the same arrays, and what cannot be known is asked or refused."""

from __future__ import annotations

import io
import zipfile

import nibabel as nib
import numpy as np
import pytest
from PIL import Image

from core.images import BadImage
from core.images.limits import Limits
from core.lab.margin_own import Own, read_values, settle, values_from_arrays
from core.lab.margin_own_files import find_values

N, K, H, W = 5, 3, 8, 6
RNG = np.random.default_rng(0)
LOGITS = RNG.normal(0, 2, (N, K, H, W))
PROBABILITIES = np.exp(LOGITS) / np.exp(LOGITS).sum(1, keepdims=True)
LABELS = RNG.integers(0, K, (N, H, W))
MAP = PROBABILITIES[:, 1]
MASKS = (LABELS == 1).astype(np.uint8)


def npz(**arrays: np.ndarray) -> bytes:
    out = io.BytesIO()
    np.savez(out, **arrays)
    return out.getvalue()


def npy(array: np.ndarray) -> bytes:
    out = io.BytesIO()
    np.save(out, array)
    return out.getvalue()


def packed(**files: bytes) -> bytes:
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w") as z:
        for name, data in files.items():
            z.writestr(name, data)
    return out.getvalue()


def gathered(own: Own) -> tuple[np.ndarray, np.ndarray]:
    """All counted pixels, as they will be measured."""
    assert own.ready, own.questions
    parts = [p for i in range(len(own)) for p in own.parts(i)]
    return np.concatenate([v for v, _ in parts], 1), np.concatenate([y for _, y in parts])


def same(own: Own, values: np.ndarray, labels: np.ndarray, tolerance: float = 1e-6) -> None:
    got, truth = gathered(own)
    assert np.array_equal(truth, labels.reshape(-1))
    assert np.allclose(got, np.moveaxis(values, 1, 0).reshape(values.shape[1], -1), atol=tolerance)


LAYOUTS = {
    "(N, K, H, W)": (LOGITS, LABELS),
    "(N, H, W, K)": (np.moveaxis(LOGITS, 1, -1), LABELS),
    "labels (N, 1, H, W)": (LOGITS, LABELS[:, None]),
    "one-hot labels": (LOGITS, np.moveaxis(np.eye(K, dtype=np.uint8)[LABELS], -1, 1)),
    "labels as floats": (LOGITS, LABELS.astype(np.float32)),
}


@pytest.mark.parametrize("layout", LAYOUTS)
def test_every_layout_of_logits_is_the_same_data(layout: str) -> None:
    values, labels = LAYOUTS[layout]
    own = values_from_arrays(values, labels, "logits")
    assert own.of == "logits" and len(own) == N and not own.rows
    same(own, LOGITS, LABELS)
    assert np.array_equal(np.stack([own.predicted(i) for i in range(N)]), LOGITS.argmax(1))


def test_one_image_of_either_layout_and_rows() -> None:
    for values in (LOGITS[0], np.moveaxis(LOGITS[0], 0, -1)):
        own = values_from_arrays(values, LABELS[0], "logits")
        assert len(own) == 1 and not own.rows
        same(own, LOGITS[:1], LABELS[:1])
    rows = np.moveaxis(LOGITS, 1, -1).reshape(-1, K)
    for values in (rows, rows.T):
        own = values_from_arrays(values, LABELS.reshape(-1), "logits")
        assert own.rows and len(own) == 1 and own.pixels == LABELS.size
        same(own, LOGITS, LABELS)


def test_one_map_of_the_foreground_becomes_two_classes() -> None:
    pair = np.stack([1 - MAP, MAP], 1)
    for values, labels in ((MAP, MASKS), (MAP[:, None], MASKS), (MAP, MASKS * 255)):
        own = values_from_arrays(values, labels)
        assert own.scale == "probabilities" and len(own.classes) == 2 and len(own) == N
        same(own, pair, MASKS)
    logit = np.log(MAP / (1 - MAP))
    own = values_from_arrays(logit, MASKS, "logits")
    same(own, np.stack([0 * logit, logit], 1), MASKS)
    assert np.array_equal(own.predicted(2), MAP[2] > 0.5)
    flat = values_from_arrays(MAP.reshape(-1), MASKS.reshape(-1))
    assert flat.rows and flat.pixels == MAP.size
    same(flat, pair, MASKS)


def test_npz_names_are_tolerant_and_classes_and_names_are_kept() -> None:
    own = read_values(
        [
            (
                "a.npz",
                npz(
                    probs=PROBABILITIES,
                    target=LABELS,
                    names=np.array(list("vwxyz")),
                    classes=np.array(["bg", "cell", "rim"]),
                ),
            )
        ]
    )
    assert own.classes == ("bg", "cell", "rim") and [i.name for i in own.items] == list("vwxyz")
    assert own.scale == "probabilities" and not own.questions
    same(own, PROBABILITIES, LABELS)
    unnamed = read_values([("b.npz", npz(arr_0=PROBABILITIES, arr_1=LABELS))])
    same(unnamed, PROBABILITIES, LABELS)
    assert any("arr_0 was taken as what the model said" in n for n in unnamed.notes)


def test_ignore_leaves_pixels_out_and_several_files_go_together() -> None:
    ignore = np.zeros(LABELS.shape, bool)
    ignore[:, :2] = True
    own = read_values(
        [
            ("a.npz", npz(logits=LOGITS[:2], labels=LABELS[:2], ignore=ignore[:2])),
            ("b.npz", npz(logits=LOGITS[2:], labels=LABELS[2:])),
        ]
    )
    assert len(own) == N and own.pixels == LABELS.size - 2 * 2 * W
    _, truth = gathered(own)
    assert np.array_equal(truth, np.concatenate([LABELS[:2, 2:].reshape(-1), LABELS[2:].reshape(-1)]))


def test_arrays_and_label_pictures_are_paired_by_name_in_a_zip_or_loose() -> None:
    picture = io.BytesIO()
    Image.fromarray(LABELS[1].astype(np.uint8)).save(picture, "PNG")
    files = {
        "probs/one.npy": npy(PROBABILITIES[0]),
        "probs/two.npy": npy(PROBABILITIES[1]),
        "probs/alone.npy": npy(PROBABILITIES[2]),
        "labels/one.npy": npy(LABELS[0]),
        "labels/two.png": picture.getvalue(),
    }
    own = read_values([("all.zip", packed(**files))])
    same(own, PROBABILITIES[:2], LABELS[:2])
    assert [i.name for i in own.items] == ["one", "two"] and any("alone" in n for n in own.notes)
    apart = read_values([("whatever.npy", npy(LOGITS))], [("truth.npy", npy(LABELS))], {"scale": "logits"})
    same(apart, LOGITS, LABELS)


def nifti(array: np.ndarray, spacing: tuple[float, float, float] = (1, 1, 1), flip: bool = False) -> bytes:
    affine = np.diag([*spacing, 1.0])
    if flip:
        array, affine[0, 0] = array[::-1], -spacing[0]
        affine[0, 3] = spacing[0] * (array.shape[0] - 1)
    return nib.Nifti1Image(np.ascontiguousarray(array), affine).to_bytes()


def test_a_nifti_with_classes_along_its_fourth_axis_meets_labels_of_another_orientation() -> None:
    volume = np.moveaxis(PROBABILITIES, 1, -1).astype(np.float32)  # (X, Y, Z, K)
    own = read_values(
        [
            ("case1_prob.nii", nifti(volume, (2, 1, 3))),
            ("case1_label.nii", nifti(LABELS.astype(np.uint8), (2, 1, 3), flip=True)),
        ]
    )
    assert len(own) == 1 and len(own.classes) == K and not own.rows
    got, truth = gathered(own)
    wanted = {
        (round(float(p[0]), 5), int(y))
        for p, y in zip(np.moveaxis(PROBABILITIES, 1, -1).reshape(-1, K), LABELS.reshape(-1), strict=True)
    }
    assert {(round(float(a), 5), int(y)) for a, y in zip(got[0], truth, strict=True)} == wanted
    assert own.items[0].spacing == (3.0, 1.0, 2.0)


def test_a_nifti_of_one_map_is_one_volume_and_a_slice_is_a_picture() -> None:
    own = read_values([("p.nii", nifti(MAP.astype(np.float32)))], [("t.nii", nifti(MASKS))])
    assert len(own) == 1 and own.items[0].labels.ndim == 3 and own.items[0].binary
    flat = read_values(
        [("p.nii", nifti(MAP[:1].transpose(1, 2, 0).astype(np.float32)))],
        [("t.nii", nifti(MASKS[:1].transpose(1, 2, 0)))],
    )
    assert flat.items[0].labels.ndim == 2 and len(flat.items[0].spacing or ()) == 2
    with pytest.raises(BadImage, match="fourth axis alone"):
        read_values([("p.nii", nifti(np.zeros((2, 2, 2, 2, 3), np.float32)))])


def test_a_csv_reads_whatever_its_delimiter_header_and_order() -> None:
    p, y = PROBABILITIES[0].reshape(K, -1).T, LABELS[0].reshape(-1)

    def table(mark: str, head: str, cells: list[str]) -> bytes:
        return (head + "\n" + "\n".join(cells) + "\n").encode()

    comma = table(
        ",",
        "id,label,p_0,p_1,p_2",
        [f"{i},{c},{a:.9f},{b:.9f},{d:.9f}" for i, ((a, b, d), c) in enumerate(zip(p, y, strict=True))],
    )
    german = table(
        ";",
        "prob_2;prob_0;prob_1;Klasse;y",
        [f"{d:.9f};{a:.9f};{b:.9f};x;{c}".replace(".", ",") for (a, b, d), c in zip(p, y, strict=True)],
    )
    tab = "\n".join(f"{c}\t{a:.9f}\t{b:.9f}\t{d:.9f}" for (a, b, d), c in zip(p, y, strict=True)).encode()
    for data in (comma, german, tab):
        own = read_values([("t.csv", data)])
        assert own.rows and own.scale == "probabilities"
        same(own, PROBABILITIES[:1], LABELS[:1], 1e-7)
    words = table(
        ",",
        "p_cat,p_dog,p_owl,truth",
        [f"{a:.9f},{b:.9f},{d:.9f},{('cat', 'dog', 'owl')[c]}" for (a, b, d), c in zip(p, y, strict=True)],
    )
    own = read_values([("t.csv", words)])
    assert own.classes == ("cat", "dog", "owl")
    same(own, PROBABILITIES[:1], LABELS[:1], 1e-7)


def test_a_csv_of_one_score_asks_which_word_it_is_about_and_rows_go_together_by_image() -> None:
    lines = [
        "image,diagnosis_id,score,class",
        *(f"case{i % 2},{i},{0.1 * i:.1f},{'bad' if i > 4 else 'fine'}" for i in range(10)),
    ]
    data = "\n".join(lines).encode()
    own = read_values([("t.csv", data)])
    assert own.questions[0].key == "positive" and [c.value for c in own.questions[0].choices] == [
        "bad",
        "fine",
    ]
    own = read_values([("t.csv", data)], answers={"positive": "bad"})
    assert [i.name for i in own.items] == ["case0", "case1"] and own.rows
    _, truth = gathered(own)
    assert truth.tolist() == [0, 0, 0, 1, 1, 0, 0, 1, 1, 1]
    two = b"true_class,target,score\n1,0,0.2\n0,1,0.4\n"
    assert read_values([("t.csv", two)]).questions[0].key == "label"
    same_ = read_values([("t.csv", two)], answers={"label": "target"})
    assert gathered(same_)[1].tolist() == [0, 1]


@pytest.mark.parametrize(
    ("data", "says"),
    [
        (b"", "is empty"),
        (b"a\n1\n", "at least two are needed"),
        (b"p_0,p_1\n0.5,0.5\n", "no column of labels"),
        (b"label,name\n1,a\n", "no column of scores"),
        (b"label,p_0,p_1\n1,0.5,x\n", "holds “x” in the column p_1"),
        (b"label,p_0,p_1\n1,0.5\n", "has 2 cells"),
        (b"label,p_0,p_0\n1,0.5,1\n", "two columns called p_0"),
        (b"label,p_cat,p_dog\nowl,0.5,0.5\n", "“owl”"),
        (b"label,p_0,p_1\n", "no row under them"),
        (b"label,score\na,0.1\nb,0.2\nc,0.3\n", "two classes"),
    ],
)
def test_a_csv_that_lacks_something_says_what(data: bytes, says: str) -> None:
    with pytest.raises(BadImage) as caught:
        read_values([("t.csv", data)])
    assert says in str(caught.value) and "\n" not in str(caught.value)


def test_logits_that_are_called_probabilities_are_asked_about_and_never_squashed() -> None:
    own = read_values([("a.npz", npz(probabilities=LOGITS, labels=LABELS))])
    assert (
        not own.items and own.questions[0].key == "scale" and "called probabilities" in own.questions[0].text
    )
    assert "logits" in [c.value for c in own.questions[0].choices]
    same(
        read_values([("a.npz", npz(probabilities=LOGITS, labels=LABELS))], answers={"scale": "logits"}),
        LOGITS,
        LABELS,
    )
    other = read_values([("a.npz", npz(logits=PROBABILITIES, labels=LABELS))])
    assert "called logits" in other.questions[0].text
    unsaid = values_from_arrays(LOGITS, LABELS)
    assert unsaid.questions[0].key == "scale"
    with pytest.raises(BadImage, match="Are they logits"):
        values_from_arrays(LOGITS, LABELS, answers={"scale": "probabilities"})
    with pytest.raises(BadImage, match="choose one of"):
        values_from_arrays(LOGITS, LABELS, answers={"scale": "furlongs"})


def test_sums_that_are_not_one_are_asked_about() -> None:
    odd = PROBABILITIES * np.linspace(0.5, 0.9, W)
    own = values_from_arrays(odd, LABELS)
    assert own.questions[0].key == "scale" and "sum to 1" in own.questions[0].text
    same(values_from_arrays(odd, LABELS, answers={"scale": "normalise"}), PROBABILITIES, LABELS)
    with pytest.raises(BadImage, match="not to 1"):
        values_from_arrays(odd, LABELS, answers={"scale": "probabilities"})
    percent = values_from_arrays(100 * PROBABILITIES, LABELS)
    assert "percent" in [c.value for c in percent.questions[0].choices]
    same(values_from_arrays(100 * PROBABILITIES, LABELS, answers={"scale": "percent"}), PROBABILITIES, LABELS)
    over = MAP + 0.05 * (MAP.max() == MAP)
    assert "clip" in [c.value for c in values_from_arrays(over * 1.0 / MAP.max(), MASKS).questions[0].choices]


def test_eight_bit_maps_are_asked_about_and_divided() -> None:
    bytes_ = np.rint(255 * MAP).astype(np.uint8)
    own = values_from_arrays(bytes_, MASKS)
    assert "255" in [c.value for c in own.questions[0].choices] and "logits" not in [
        c.value for c in own.questions[0].choices
    ]
    done = values_from_arrays(bytes_, MASKS, answers={"scale": "255"})
    same(done, np.stack([1 - bytes_ / 255, bytes_ / 255], 1), MASKS)
    assert np.array_equal(done.predicted(0), bytes_[0] > 127)
    hard = values_from_arrays(MASKS, MASKS)
    assert hard.ready and any("a decision, not a probability" in n for n in hard.notes)
    with pytest.raises(BadImage, match="neither probabilities nor logits"):
        values_from_arrays(np.full((N, K, H, W), 7, np.uint8), LABELS)


def test_labels_outside_the_classes_are_asked_about() -> None:
    ringed = LABELS.copy()
    ringed[:, 0] = 255
    own = values_from_arrays(LOGITS, ringed, "logits")
    assert own.questions[0].key == "labels" and "255" in own.questions[0].text
    left = values_from_arrays(LOGITS, ringed, "logits", answers={"labels": "ignore"})
    assert left.pixels == N * (H - 1) * W
    assert np.array_equal(gathered(left)[1], LABELS[:, 1:].reshape(-1))
    shifted = values_from_arrays(LOGITS, LABELS + 1, "logits", answers={"labels": "shift"})
    same(shifted, LOGITS, LABELS)
    lacking = values_from_arrays(PROBABILITIES[:, 1:], LABELS)
    assert "background" in [c.value for c in lacking.questions[0].choices]
    same(
        values_from_arrays(
            PROBABILITIES[:, 1:], LABELS, answers={"labels": "background", "scale": "probabilities"}
        ),
        PROBABILITIES,
        LABELS,
        1e-5,
    )
    many = values_from_arrays(MAP, LABELS)
    assert {"any", "only 1", "only 2", "ignore"} == {c.value for c in many.questions[0].choices}
    assert np.array_equal(
        gathered(values_from_arrays(MAP, LABELS, answers={"labels": "only 2"}))[1], (LABELS == 2).reshape(-1)
    )
    with pytest.raises(BadImage, match="none of them is one of"):
        values_from_arrays(LOGITS, LABELS - 9, "logits")
    with pytest.raises(BadImage, match="fractions"):
        values_from_arrays(LOGITS, LABELS + 0.5, "logits")


def test_nan_is_asked_about_and_left_out() -> None:
    holed = LOGITS.copy()
    holed[1, 2, 3, 4] = np.nan
    holed[1, 0, 0, 0] = np.inf
    own = values_from_arrays(holed, LABELS, "logits")
    ask = own.questions[0]
    assert ask.key == "nan" and "2 of 240 pixels" in ask.text and "(0, 0)" in ask.text
    assert values_from_arrays(holed, LABELS, "logits", answers={"nan": "ignore"}).pixels == LABELS.size - 2
    dropped = values_from_arrays(holed, LABELS, "logits", answers={"nan": "drop"})
    same(dropped, np.delete(LOGITS, 1, 0), np.delete(LABELS, 1, 0))
    with pytest.raises(BadImage, match="finite number"):
        values_from_arrays(np.full_like(LOGITS, np.nan), LABELS, "logits")
    missing = LABELS.astype(float)
    missing[0, 0, 0] = np.nan
    assert "NaN" in values_from_arrays(LOGITS, missing, "logits").questions[0].text


@pytest.mark.parametrize(
    ("files", "says"),
    [
        ([("a.npz", npz(logits=LOGITS))], "no labels"),
        ([("a.npz", npz(logits=LOGITS, labels=LABELS[:, :4]))], "do not belong together"),
        ([("a.npz", npz(logits=LOGITS, labels=LABELS.transpose(0, 2, 1)))], "turned by 90"),
        ([("a.npz", npz(x=LOGITS, y2=LOGITS))], "none of them is called logits"),
        ([("a.npz", npz(logits=LOGITS, labels=LABELS, names=np.array(["x"])))], "1 names and 5 images"),
        ([("a.npz", npz(logits=np.array([{}], dtype=object), labels=LABELS))], "nothing is unpickled"),
        ([("a.pkl", b"\x80\x04whatever")], "pickle"),
        ([("a.npz", b"PK\x03\x04broken")], "cannot be read"),
        ([("a.npz", packed(**{"../logits.npy": npy(LOGITS)}))], "climbs out"),
        ([("a.npy", npy(LOGITS)[:200])], "cut short"),
        ([("a.png", b"nothing at all")], "a.png"),
        ([], "No values were found"),
    ],
)  # fmt: skip
def test_what_cannot_be_measured_is_one_sentence(files: list[tuple[str, bytes]], says: str) -> None:
    with pytest.raises(BadImage) as caught:
        read_values(files)
    assert says in str(caught.value) and len(str(caught.value)) <= 400 and "\n" not in str(caught.value)


def test_limits_hold_before_anything_is_unpacked() -> None:
    with pytest.raises(BadImage, match="limit on"):
        find_values([("a.npz", npz(logits=LOGITS, labels=LABELS))], limits=Limits(unpacked_bytes=1000))
    with pytest.raises(BadImage, match="limit on files"):
        find_values([("a.zip", packed(**{f"{k}.npy": npy(MAP) for k in range(9)}))], limits=Limits(files=2))


def test_a_bad_file_among_good_ones_is_a_sentence_and_the_others_go_on() -> None:
    own = read_values(
        [
            ("notes.npy", b"\x93NUMPYnothing"),
            ("a.npz", npz(logits=LOGITS, labels=LABELS)),
            ("b.npz", npz(logits=LOGITS)),
        ]
    )
    assert own.ready and len(own) == N and len(own.problems) == 2
    assert "notes.npy" in own.problems[0] and "b.npz" in own.problems[1]


def test_class_names_must_fit_and_an_empty_foreground_is_said() -> None:
    found = find_values([("a.npz", npz(logits=LOGITS, labels=LABELS))])
    assert settle(found, classes=("a", "b", "c")).classes == ("a", "b", "c")
    with pytest.raises(BadImage, match="3 classes"):
        settle(found, classes=("a", "b"))
    own = values_from_arrays(LOGITS, np.zeros_like(LABELS), "logits")
    assert own.ready and any("scope “foreground” is empty" in n for n in own.notes)
