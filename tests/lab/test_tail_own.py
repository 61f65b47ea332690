"""A person's own classifier: every format gives the same matrix, what cannot be known is asked, bad input is a sentence, figures have oracles."""

from __future__ import annotations

import io
import json
import math
import zipfile

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.metrics import confusion_matrix, f1_score, recall_score

from core.images import BadImage
from core.lab.tail_own import OwnMatrix, find_predictions, matrix_from_arrays, read_predictions, settle_matrix
from core.lab.tail_own_counts import parse_counts
from core.lab.tail_own_measure import measure_matrix, wilson
from core.lab.tail_own_report import own_confusion_report
from core.lab.tail_own_sample import COUNTS, FILE, sample_npz
from core.lab.tail_own_words import (
    bound_sentence,
    chance_sentence,
    class_rows,
    facts,
    figure_rows,
    flow_sentence,
    headline,
    left_out_sentence,
    sentences,
    survival_sentence,
)

K, N = 4, 120
RNG = np.random.default_rng(0)
LABELS = RNG.integers(0, K, N)
LOGITS = RNG.normal(0, 1, (N, K)) + 1.2 * np.eye(K)[LABELS]
SAID = LOGITS.argmax(1)
TRUTH = confusion_matrix(LABELS, SAID).T  # sklearn: rows true
NAMES = ("ash", "birch", "cedar", "oak")


def npz(**arrays: np.ndarray) -> bytes:
    out = io.BytesIO()
    np.savez(out, **arrays)
    return out.getvalue()


def npy(array: np.ndarray) -> bytes:
    out = io.BytesIO()
    np.save(out, array)
    return out.getvalue()


def csv(header: str, *rows: object) -> bytes:
    return "\n".join([header, *(",".join(map(str, r)) for r in rows)]).encode()


def packed(**files: bytes) -> bytes:
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w") as z:
        for name, data in files.items():
            z.writestr(name, data)
    return out.getvalue()


def read(*files: tuple[str, bytes], train: list[tuple[str, bytes]] | None = None, **more) -> OwnMatrix:
    return read_predictions(files, train or (), **more)


WORDS = [(NAMES[y], NAMES[p]) for y, p in zip(LABELS, SAID, strict=True)]
FORMATS = {
    "npz, logits": ("a.npz", npz(labels=LABELS, logits=LOGITS.astype(np.float32))),
    "npz, predicted": ("a.npz", npz(y_true=LABELS, y_pred=SAID)),
    "npz, one-hot": ("a.npz", npz(labels=np.eye(K, dtype=int)[LABELS], probabilities=LOGITS)),
    "npz, test_ in front": ("a.npz", npz(test_labels=LABELS, test_logits=LOGITS)),
    "csv, logits": ("a.csv", csv("label,logit_0,logit_1,logit_2,logit_3", *([y, *x] for y, x in zip(LABELS, LOGITS, strict=True)))),
    "csv, scores first and unordered": (
        "a.csv", csv("p_3,p_0,p_1,p_2,id,label", *([x[3], *x[:3], i, y] for i, (y, x) in enumerate(zip(LABELS, LOGITS, strict=True)))),
    ),
    "csv, predicted": ("a.csv", csv("label,predicted", *zip(LABELS, SAID, strict=True))),
    "csv, words": ("a.csv", csv("image,actual,prediction", *([i, *w] for i, w in enumerate(WORDS)))),
    "csv, true and another": ("a.csv", csv("truth,model", *WORDS)),
    "csv, counted": ("a.csv", csv("true,predicted,count", *((j, i, TRUTH[i, j]) for i in range(K) for j in range(K)))),
    "zip of a csv": ("a.zip", packed(**{"in/a.csv": csv("label,predicted", *zip(LABELS, SAID, strict=True))})),
    "zip of an npz": ("a.zip", packed(**{"a.npz": npz(labels=LABELS, logits=LOGITS)})),
}  # fmt: skip


@pytest.mark.parametrize("form", FORMATS)
def test_every_layout_gives_the_same_matrix_with_rows_predicted(form: str) -> None:
    own = read(FORMATS[form])
    assert own.ready and not own.shares and own.train is None
    assert np.array_equal(own.test, TRUTH)
    assert own.counts is None and len(own.classes) == K
    assert any(f"{N} test samples of 4 classes" in n for n in own.notes)


MATRICES = {
    "npz": ("a.npz", npz(confusion=TRUTH.T)),
    "npy": ("mine.npy", (lambda o: (np.save(o, TRUTH.T), o.getvalue())[1])(io.BytesIO())),
    "bare": ("a.csv", "\n".join(",".join(map(str, r)) for r in TRUTH.T).encode()),
    "header only": ("a.csv", csv(",".join(NAMES), *TRUTH.T)),
    "names around": ("a.csv", csv(",".join(["true", *NAMES]), *([n, *r] for n, r in zip(NAMES, TRUTH.T, strict=True)))),
    "names with sides": (
        "a.csv", csv(",".join(["", *(f"pred: {n}" for n in NAMES)]), *([f"true: {n}", *r] for n, r in zip(NAMES, TRUTH.T, strict=True))),
    ),
    "numbers around": ("a.csv", csv(",0,1,2,3", *([k, *r] for k, r in enumerate(TRUTH.T)))),
    "semicolons": ("a.csv", csv(",".join(["", *NAMES]), *([n, *r] for n, r in zip(NAMES, TRUTH.T, strict=True))).replace(b",", b";")),
}  # fmt: skip


@pytest.mark.parametrize("form", MATRICES)
def test_which_side_of_a_matrix_is_the_truth_is_asked_and_never_guessed(form: str) -> None:
    asked = read(MATRICES[form])
    assert not asked.ready and asked.questions[0].key == "axis"
    assert [c.value for c in asked.questions[0].choices] == ["rows", "columns"]
    rows = read(MATRICES[form], answers={"axis": "rows"})
    columns = read(MATRICES[form], answers={"axis": "columns"})
    assert np.array_equal(rows.test, TRUTH) and np.array_equal(columns.test, TRUTH.T)
    assert rows.answers == {"axis": "rows"}
    if "name" in form or form in ("header only", "semicolons"):
        assert rows.classes == NAMES
    with pytest.raises(BadImage, match="does not fit"):
        read(MATRICES[form], answers={"axis": "up"})


def test_a_symmetric_matrix_needs_no_answer() -> None:
    own = read(("a.npz", npz(confusion=TRUTH + TRUTH.T)))
    assert own.ready and any("does not matter" in n for n in own.notes)


def test_shares_are_read_as_such_and_those_along_the_predictions_are_refused() -> None:
    shares = TRUTH / TRUTH.sum(0)
    own = read(("a.npz", npz(confusion=shares)), answers={"axis": "columns"})
    answer = measure_matrix(own)
    assert own.shares and answer.figures.recall == pytest.approx(np.diag(TRUTH) / TRUTH.sum(0))
    assert answer.figures.overall == pytest.approx(answer.figures.mean_recall)
    assert np.isnan(answer.interval).all() and "not known" in chance_sentence(answer)
    assert "Of what is called" not in flow_sentence(answer) and all(
        math.isnan(r["precision"]) for r in class_rows(answer)
    )
    per_cent = read(("a.npz", npz(confusion=100 * shares)), answers={"axis": "columns"})
    assert per_cent.shares and np.allclose(per_cent.test, shares)
    joint = read(("a.npz", npz(confusion=TRUTH / TRUTH.sum())), answers={"axis": "columns"})
    assert measure_matrix(joint).figures.overall == pytest.approx(np.trace(TRUTH) / N)
    with pytest.raises(BadImage, match="divided along the predicted"):
        read(("a.npz", npz(confusion=shares)), answers={"axis": "rows"})


def test_only_shares_of_each_true_class_make_all_classes_count_alike() -> None:
    alike = measure_matrix(read(("a.npz", npz(confusion=TRUTH / TRUTH.sum(0))), answers={"axis": "columns"}))
    assert "of all classes on average" in headline(alike)
    for matrix in (TRUTH / TRUTH.sum(), TRUTH * 1.25):  # shares of all samples, weighted counts
        answer = measure_matrix(read(("a.npz", npz(confusion=matrix)), answers={"axis": "columns"}))
        assert answer.own.shares and not answer.own.alike
        assert answer.figures.overall == pytest.approx(np.trace(TRUTH) / N) != answer.figures.mean_recall
        assert "of all samples" in headline(answer) and "on average" not in headline(answer)
        wanted = TRUTH[0, 0] / TRUTH[0].sum()
        assert class_rows(answer)[0]["precision"] == pytest.approx(wanted)
        assert np.isnan(answer.interval).all() and "sample)" not in flow_sentence(answer)


def test_a_training_matrix_of_shares_gives_recalls_and_no_counts() -> None:
    train = TRUTH / TRUTH.sum(0)
    own = read(
        ("a.npz", npz(labels=LABELS, predicted=SAID, train_confusion=train)), answers={"axis": "columns"}
    )
    assert own.ready and own.counts is None and not own.shares
    said = " ".join(own.notes)
    assert "how many training samples there are is not known." in said
    assert (
        "no interval" not in said and "were counted" not in said and "training samples." not in own.notes[0]
    )
    answer = measure_matrix(own)
    assert answer.train_recall == pytest.approx(np.diag(train)) and np.isfinite(answer.interval).all()


def test_whole_numbers_that_sum_to_a_hundred_are_asked_about() -> None:
    matrix = np.array([[90, 20, 5], [6, 70, 15], [4, 10, 80]])
    files = ("a.npz", npz(confusion=matrix))
    own = read(files, answers={"axis": "columns"})
    assert not own.ready and own.questions[0].key == "unit"
    assert [c.value for c in own.questions[0].choices] == ["counts", "percent"]
    counted = read(files, answers={"axis": "columns", "unit": "counts"})
    assert counted.ready and not counted.shares and np.array_equal(counted.test, matrix)
    assert counted.answers == {"axis": "columns", "unit": "counts"}
    shares = read(files, answers={"axis": "columns", "unit": "percent"})
    assert shares.shares and shares.alike and np.allclose(shares.test, matrix / 100)
    assert np.isnan(measure_matrix(shares).interval).all()
    along = read(files, answers={"axis": "rows"})
    assert "predicted class" in along.questions[0].text
    with pytest.raises(BadImage, match="divided along the predicted"):
        read(files, answers={"axis": "rows", "unit": "percent"})
    with pytest.raises(BadImage, match="does not fit"):
        read(files, answers={"axis": "rows", "unit": "pounds"})


def test_train_predictions_come_in_an_npz_in_a_column_or_in_a_zone_of_their_own() -> None:
    both = read(
        ("a.npz", npz(labels=LABELS, logits=LOGITS, train_labels=LABELS[:50], train_logits=LOGITS[:50]))
    )
    split = read(
        ("a.csv", csv("split,label,predicted", *(["test", y, p] for y, p in zip(LABELS, SAID, strict=True)),
                      *(["train", y, p] for y, p in zip(LABELS[:50], SAID[:50], strict=True)))),
    )  # fmt: skip
    scores = read(
        ("a.csv", csv("part,label,p_0,p_1,p_2,p_3", *(["test", y, *x] for y, x in zip(LABELS, LOGITS, strict=True)),
                      *(["train", y, *x] for y, x in zip(LABELS[:50], LOGITS[:50], strict=True)))),
    )  # fmt: skip
    apart = read(
        ("a.csv", csv("label,predicted", *zip(LABELS, SAID, strict=True))),
        train=[("t.csv", csv("label,predicted", *zip(LABELS[:50], SAID[:50], strict=True)))],
    )
    arrays = matrix_from_arrays(LABELS, LOGITS, train=(LABELS[:50], SAID[:50]))
    wanted = confusion_matrix(LABELS[:50], SAID[:50], labels=range(K)).T
    for own in (both, split, scores, apart, arrays):
        assert np.array_equal(own.test, TRUTH) and own.train is not None and np.array_equal(own.train, wanted)
        assert own.counts is not None and np.array_equal(own.counts, wanted.sum(0))


def test_a_split_with_other_words_is_not_used() -> None:
    own = read(
        (
            "a.csv",
            csv(
                "split,label,predicted",
                *([f"fold {i % 3}", y, p] for i, (y, p) in enumerate(zip(LABELS, SAID, strict=True))),
            ),
        )
    )
    assert np.array_equal(own.test, TRUTH) and any("other words than train and test" in n for n in own.notes)
    with pytest.raises(BadImage, match="All predictions are of the training samples"):
        read(
            (
                "a.csv",
                csv("split,label,predicted", *(["train", y, p] for y, p in zip(LABELS, SAID, strict=True))),
            )
        )


def test_counts_come_typed_in_a_file_or_in_the_npz_and_order_classes_from_head_to_tail() -> None:
    counts = np.array([5, 500, 50, 5000])
    table = ("n.csv", csv("class,count", *zip(NAMES, counts, strict=True)))
    words = ("a.csv", csv("label,predicted", *WORDS))
    owns = [
        read(("a.npz", npz(labels=LABELS, logits=LOGITS, counts=counts, classes=np.array(NAMES)))),
        read(words, table),
        read(
            ("a.npz", npz(labels=LABELS, logits=LOGITS)),
            classes=NAMES,
            counts=parse_counts("5, 500; 50\n5000"),
        ),
    ]
    for own in owns:
        answer = measure_matrix(own)
        assert own.counts is not None and np.array_equal(own.counts, counts) and own.classes == NAMES
        assert answer.classes == ("oak", "birch", "cedar", "ash")
        order = [3, 1, 2, 0]
        assert np.array_equal(answer.test, TRUTH[np.ix_(order, order)])
    assert parse_counts(" \n ") is None
    with pytest.raises(BadImage, match="many.* is no number"):
        parse_counts("5, many, 3")


@pytest.mark.parametrize(
    ("counts", "said"),
    [
        ([1, 2, 3], "3 numbers, and there are 4 classes"),
        ([1, 2, -3, 4], "-3 for class 2"),
        ([1, 2.5, 3, 4], "2.5 for class 1"),
        ([0, 0, 0, 0], "all 0"),
        ([1, np.nan, 2, 3], "lack a number for class 1"),
    ],
)
def test_counts_that_cannot_be_are_refused(counts: list[float], said: str) -> None:
    with pytest.raises(BadImage, match=said):
        matrix_from_arrays(LABELS, LOGITS, counts=counts)


def test_counts_alone_or_for_some_classes_are_refused() -> None:
    table = ("n.csv", csv("class,count", ("ash", 5), ("oak", 9)))
    with pytest.raises(BadImage, match="no predictions"):
        read(table)
    with pytest.raises(BadImage, match="no count for birch, cedar"):
        read(("a.csv", csv("label,predicted", *WORDS)), table)


# bad input -------------------------------------------------------------------


def test_labels_out_of_range_are_asked_about_with_every_fix_that_fits() -> None:
    raised = npz(labels=LABELS + 1, logits=LOGITS)
    asked = read(("a.npz", raised))
    assert (
        asked.questions[0].key == "labels" and "outside the 4 classes (0 to 3): 4" in asked.questions[0].text
    )
    assert [c.value for c in asked.questions[0].choices] == ["shift", "leave out"]
    assert np.array_equal(read(("a.npz", raised), answers={"labels": "shift"}).test, TRUTH)
    odd = LABELS.copy()
    odd[[3, 7]] = -1, 9
    one = read(("a.npz", npz(labels=odd, logits=LOGITS)))
    assert [c.value for c in one.questions[0].choices] == ["leave out"] and "-1, 9" in one.questions[0].text
    left = read(("a.npz", npz(labels=odd, logits=LOGITS)), answers={"labels": "leave out"})
    keep = np.delete(np.arange(N), [3, 7])
    assert np.array_equal(left.test, confusion_matrix(LABELS[keep], SAID[keep]).T)
    with pytest.raises(BadImage, match="Every label"):
        read(("a.npz", npz(labels=LABELS + 40, logits=LOGITS)), answers={"labels": "leave out"})


def test_labels_from_one_without_scores_are_noticed() -> None:
    own = read(("a.npz", npz(labels=LABELS + 1, predicted=SAID + 1)))
    assert np.array_equal(own.test, TRUTH) and own.classes[0] == "class 1"
    assert any("numbered from 1" in n for n in own.notes)


def test_nan_logits_are_asked_about_with_the_first_sample() -> None:
    broken = LOGITS.copy()
    broken[[5, 9], 1] = np.nan
    raw = ("a.npz", npz(labels=LABELS, logits=broken))
    asked = read(raw)
    assert asked.questions[0].key == "nan"
    assert "2 of 120 samples" in asked.questions[0].text and "first of sample 6" in asked.questions[0].text
    own = read(raw, answers={"nan": "leave out"})
    keep = np.delete(np.arange(N), [5, 9])
    assert np.array_equal(own.test, confusion_matrix(LABELS[keep], SAID[keep]).T)
    with pytest.raises(BadImage, match="No sample"):
        read(("a.npz", npz(labels=LABELS, logits=np.full((N, K), np.nan))))


def test_ties_take_the_first_class_and_are_counted() -> None:
    flat = LOGITS.copy()
    flat[:3] = 0
    own = matrix_from_arrays(LABELS, flat)
    assert any("at 3 samples two classes share" in n for n in own.notes)


def test_a_class_without_a_sample_is_left_out_of_the_worst_class_and_counted() -> None:
    keep = LABELS != 2
    own = matrix_from_arrays(LABELS[keep], LOGITS[keep])
    answer = measure_matrix(own)
    assert own.test.shape == (4, 4) and any("1 class without a test sample: class 2" in n for n in own.notes)
    assert answer.figures.left_out == 1 and np.isnan(answer.figures.recall[2]) and answer.worst != 2
    wanted = recall_score(LABELS[keep], SAID[keep], labels=[0, 1, 3], average=None)
    assert answer.figures.mean_recall == pytest.approx(wanted.mean())
    assert answer.figures.worst == pytest.approx(wanted.min())
    assert "left out" in left_out_sentence(answer)
    assert math.isnan(class_rows(answer)[2]["recall"]) and json.dumps(facts(answer), allow_nan=False)
    assert "no sample" in own_confusion_report(answer)


BAD = {
    "missing truth": (("a.csv", csv("id,predicted", *enumerate(SAID))), "no column of true labels.*id, predicted"),
    "missing scores": (("a.csv", csv("label,name", *((y, f"x{y}.png") for y in LABELS))), "no column of scores"),
    "no label": (("a.csv", csv("p_0,p_1,p_2", *LOGITS[:9, :3])), "no column of labels"),
    "npz without truth": (("a.npz", npz(logits=LOGITS)), "Needed are .labels."),
    "lengths": (("a.npz", npz(labels=LABELS[:9], logits=LOGITS)), "9 true labels and 120 predictions"),
    "fractions": (("a.npz", npz(labels=LABELS + 0.5, logits=LOGITS)), "numbers such as"),
    "volume": (("a.npz", npz(labels=LABELS, logits=LOGITS[None])), "one row a sample"),
    "picture": (("a.csv", b"\x89PNG\r\n\x1a\n\x00\x00"), "holds no text"),
    "pickle": (("a.pkl", b"\x80\x04abc"), "pickle"),
    "objects": (("a.npz", npz(labels=LABELS, logits=np.array([None, 1], object))), "pickle"),
    "empty": (("a.csv", b""), "is empty"),
    "text": (("a.txt", b"hello"), "neither CSV nor NPZ"),
    "not square": (("a.npz", npz(confusion=TRUTH[:3])), "square"),
    "negative": (("a.npz", npz(confusion=TRUTH - 5 * np.eye(4, k=1, dtype=int) - 20)), r"below 0 \(-.*row 1 \(0\), column \d"),
    "nan in matrix": (("a.csv", csv("ash,oak", (3, ""), (1, 2))), r"no number in row 1 \(ash\), column 2 \(oak\)"),
    "zeros": (("a.npz", npz(confusion=np.zeros((3, 3)))), "nothing but zeros"),
    "one class": (("a.npz", npz(labels=np.zeros(5, int), predicted=np.zeros(5, int))), "only one class"),
    "too many": (("a.npz", npz(labels=np.array([0, 5000]), predicted=np.array([0, 1]))), "5,001 classes; at most 1,000.*Spectrum.of"),
    "mixed": (
        ("a.csv", csv("label,predicted", *((NAMES[y], p) for y, p in zip(LABELS, SAID, strict=True)))),
        "labels of a.csv are words such as .*predictions of a.csv are numbers",
    ),
    "no sample": (("a.npz", npz(labels=np.zeros(0, int), predicted=np.zeros(0, int))), "No label"),
    "one loose array": (("scores.npy", npy(LOGITS)), "scores.npy holds one half .*labels=…, logits=…"),
    "huge label": (("a.npz", npz(labels=np.array([0, 1, 1e300]), predicted=np.array([0, 1, 1]))), "the number 1e\\+300, which is no class"),
    "orders differ": (("a.csv", csv("x,ash,oak", ("oak", 1, 2), ("ash", 3, 4))), "different orders"),
    "negative weight": (("a.csv", csv("true,predicted,count", (0, 1, -2), (1, 1, 3))), "below 0"),
}  # fmt: skip


@pytest.mark.parametrize("case", BAD)
def test_bad_input_is_one_sentence_that_says_what_and_where(case: str) -> None:
    file, said = BAD[case]
    with pytest.raises(BadImage, match=f"(?s){said}") as caught:
        read(file)
    assert len(str(caught.value)) <= 400


def test_two_columns_without_names_are_asked_about() -> None:
    raw = "\n".join(f"{y},{p}" for y, p in zip(LABELS, SAID, strict=True)).encode()
    asked = read(("a.csv", raw))
    assert asked.questions[0].key == "label"
    assert np.array_equal(read(("a.csv", raw), answers={"label": "column 1"}).test, TRUTH)
    assert np.array_equal(read(("a.csv", raw), answers={"label": "column 2"}).test, TRUTH.T)


def test_a_broken_file_does_not_take_the_others_with_it() -> None:
    own = read(("bad.txt", b"x"), FORMATS["npz, logits"])
    assert own.ready and len(own.problems) == 1 and "bad.txt" in own.problems[0]


def test_one_score_is_that_of_class_one_of_two() -> None:
    p = 1 / (1 + np.exp(-LOGITS[:, 0]))
    two = (LABELS == 0).astype(int)
    wanted = confusion_matrix(two, p > 0.5).T
    assert np.array_equal(matrix_from_arrays(two, p).test, wanted)
    assert np.array_equal(matrix_from_arrays(two, LOGITS[:, 0]).test, wanted)
    assert np.array_equal(read(("a.csv", csv("label,score", *zip(two, p, strict=True)))).test, wanted)
    with pytest.raises(BadImage, match="neither a logit nor a probability"):
        matrix_from_arrays(two, 50 * p)


# measuring -------------------------------------------------------------------


@settings(max_examples=40, deadline=None)
@given(st.integers(2, 7), st.integers(0, 10_000))
def test_figures_are_those_of_sklearn_and_numpy_and_the_bound_holds(k: int, seed: int) -> None:
    rng = np.random.default_rng(seed)
    labels = np.concatenate([np.arange(k), rng.integers(0, k, 40)])
    said = np.where(rng.random(len(labels)) < 0.6, labels, rng.integers(0, k, len(labels)))
    said[:k] = np.arange(k)  # every class is a prediction, so that macro F1 has no gap
    answer = measure_matrix(matrix_from_arrays(labels, predicted=said, counts=np.arange(k, 0, -1)), "max")
    each = recall_score(labels, said, average=None)
    assert answer.figures.recall == pytest.approx(each)
    assert answer.figures.macro_f1 == pytest.approx(f1_score(labels, said, average="macro"))
    rates = confusion_matrix(labels, said, normalize="true").T
    np.fill_diagonal(rates, 0)
    assert answer.plain.sigma == pytest.approx(np.linalg.norm(rates, 2), abs=1e-12)
    assert answer.bound.worst_error <= answer.bound.worst_bound + 1e-12
    lost = answer.test[:, answer.worst]
    assert sum(s.share for s in answer.lost) == pytest.approx(1 - answer.figures.worst)
    assert sum(s.samples for s in answer.lost) == lost.sum() - lost[answer.worst]
    assert [s.share for s in answer.lost] == sorted((s.share for s in answer.lost), reverse=True)


def test_the_interval_is_wilsons() -> None:
    # Newcombe 1998, table I: 81 of 263 and 15 of 148
    assert wilson(81, 263) == pytest.approx((0.2553, 0.3662), abs=5e-5)
    assert wilson(15, 148) == pytest.approx((0.0624, 0.1605), abs=5e-5)
    assert wilson(0, 20)[0] == 0 and wilson(20, 20)[1] == 1


def test_the_sample_shows_a_tail_that_is_known_by_heart_and_lost() -> None:
    own = read((FILE, sample_npz()))
    answer = measure_matrix(own)
    assert own.ready and own.train is not None and tuple(own.counts) == COUNTS
    assert answer.figures.tail < 0.6 < answer.figures.head and answer.survival is not None
    assert answer.survival.wr == pytest.approx(answer.figures.worst / answer.train_recall[answer.worst])
    said = "\n".join(sentences(answer))
    for words in (
        f"“{answer.classes[answer.worst]}”",
        "WR is",
        "says nothing",
        "was chosen after looking",
        "are called “circle”",
    ):
        assert words in said
    assert "it looks better" not in said


def test_weights_change_the_spectrum_and_not_the_recalls_and_need_counts() -> None:
    own = read((FILE, sample_npz()))
    plain, heavy = measure_matrix(own), measure_matrix(own, "max")
    assert np.array_equal(plain.figures.recall, heavy.figures.recall)
    assert (
        heavy.spectrum.sigma != pytest.approx(plain.spectrum.sigma) and heavy.plain.sigma == plain.plain.sigma
    )
    assert ("σ₁ with Λ" in {n for n, _, _ in figure_rows(heavy)}) and "/ w" in bound_sentence(heavy)
    with pytest.raises(ValueError, match="need the number of training samples"):
        measure_matrix(matrix_from_arrays(LABELS, LOGITS), "sum")
    with pytest.raises(ValueError, match="true classes"):
        measure_matrix(read(MATRICES["npz"]))


def test_no_error_at_all_has_no_spectrum_and_breaks_nothing() -> None:
    answer = measure_matrix(matrix_from_arrays(LABELS, predicted=LABELS))
    assert answer.perfect and "no error" in headline(answer) and not flow_sentence(answer)
    assert not bound_sentence(answer) and json.dumps(facts(answer), allow_nan=False)
    assert "no error" in own_confusion_report(answer)


def test_a_class_never_learned_has_no_wr() -> None:
    said = np.where(LABELS == 1, 0, LABELS)
    answer = measure_matrix(matrix_from_arrays(LABELS, predicted=said, train=(LABELS, said)))
    assert (
        answer.classes[answer.worst] == "class 1"
        and math.isnan(answer.survival.wr)
        and "not learned at all" in survival_sentence(answer)
    )
    assert "Nothing at all is called" in flow_sentence(answer)


def test_the_report_is_one_file_and_escapes_what_strangers_wrote() -> None:
    evil = ("<script>alert(1)</script>", "a & b", "c", "d")
    own = matrix_from_arrays(LABELS, LOGITS, classes=evil, counts=[4, 3, 2, 1])
    html = own_confusion_report(measure_matrix(own, "sum"), "2026-11-30")
    assert "<script" not in html and "&lt;script&gt;" in html and "a &amp; b" in html
    assert "://" not in html and "2026-11-30" in html and 'class="own"' in html
    wide = matrix_from_arrays(np.arange(60), predicted=np.roll(np.arange(60), 1))
    assert 'class="own"' not in own_confusion_report(measure_matrix(wide))


def test_an_upload_is_unpacked_once_and_settled_again_at_every_answer() -> None:
    found = find_predictions([MATRICES["npz"]])
    assert settle_matrix(found).questions and settle_matrix(found, {"axis": "rows"}).ready


HALF = N // 2
FIRST = ("first.npz", npz(labels=LABELS[:HALF], logits=LOGITS[:HALF]))
SECOND = ("second.npz", npz(labels=LABELS[HALF:], logits=LOGITS[HALF:]))


def test_several_files_are_parts_of_one_classifier_only_when_the_person_says_so() -> None:
    waiting = read(FIRST, SECOND)
    (question,) = waiting.questions
    assert not waiting.ready and question.key == "files"
    assert f"first.npz ({HALF} samples, scores of 4 classes)" in question.text
    assert [c.value for c in question.choices] == ["together", "first.npz", "second.npz"]
    together = read(FIRST, SECOND, answers={"files": "together"})
    assert np.array_equal(together.test, TRUTH) and together.answers == {"files": "together"}
    alone = read(FIRST, SECOND, answers={"files": "second.npz"})
    assert np.array_equal(alone.test, confusion_matrix(LABELS[HALF:], SAID[HALF:], labels=range(K)).T)
    with pytest.raises(BadImage, match=r"'third.npz' does not fit here"):
        read(FIRST, SECOND, answers={"files": "third.npz"})


def test_files_that_cannot_be_one_classifier_s_are_named_and_one_is_chosen() -> None:
    three = ("three.npz", npz(labels=np.arange(9) % 3, logits=np.eye(3)[np.arange(9) % 3]))
    square = ("square.npz", npz(confusion=TRUTH))
    worded = ("words.csv", csv("label,predicted", *WORDS))
    for other, why, holds in (
        (three, "differ in their number of classes", "three.npz (9 samples, scores of 3 classes)"),
        (square, "one is a confusion matrix", "square.npz (a matrix of 4 classes)"),
        (worded, "some labels are words", f"words.csv ({N} samples)"),
    ):
        (question,) = read(FIRST, other).questions
        assert why in question.text and holds in question.text
        assert [c.value for c in question.choices] == ["first.npz", other[0]]
        assert read(FIRST, other, answers={"files": "first.npz"}).test.sum() == HALF
    many = [(f"{k}.npz", FIRST[1]) for k in range(9)]
    pooled = read(*many)
    assert pooled.ready and any(n.startswith("9 files were taken as parts of one") for n in pooled.notes)
    with pytest.raises(BadImage, match=r"9 files hold predictions of test samples, and they differ"):
        read(*many[:8], three)


def test_a_file_that_others_make_too_few_classes_for_is_told_whose_classes_they_are() -> None:
    few = ("few.npz", npz(labels=np.arange(9) % 3, logits=np.eye(3)[np.arange(9) % 3]))
    whole = ("whole.csv", csv("label,predicted", *zip(LABELS, SAID, strict=True)))
    (question,) = read(few, whole, answers={"files": "together"}).questions
    assert (
        question.key == "labels" and "whole.csv has labels outside the 3 classes of few.npz" in question.text
    )
    with pytest.raises(BadImage, match=r"few.npz has 3, whole.npz has 4.* need the same classes"):
        read(("whole.npz", npz(labels=LABELS, logits=LOGITS)), train=[few])
