"""What the confusion page reads from records and says of them: order of classes, who pays, the memory's bias, and the tables' verdicts."""

from __future__ import annotations

import math

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from core.car.ema import presence, replay
from core.car.spectrum import Spectrum
from core.car.weights import class_weights
from core.lab.tail_answer import (
    answer,
    answer_words,
    best_without,
    choice_words,
    chosen_car,
    motive_words,
    rival_words,
    sets_won,
    won_words,
)
from core.lab.tail_names import label_of, many_of
from core.lab.tail_view import epochs_of, head_first, lambda_of, moment, remembered, sigma_line, spectra_of
from core.lab.tail_words import (
    bound_words,
    headline,
    how_sure,
    left_out_words,
    memory_words,
    metrics,
    payers,
    seeds_words,
)
from tests.lab import made_confusion as made

LAST = made.KEPT[-1]


@pytest.mark.parametrize("data", ["pbc", "ham10000", "tiny"])
def test_classes_stand_from_the_most_to_the_least_frequent(data: str) -> None:
    run = made.record("ce", data)
    now = moment(run, LAST)
    assert (np.diff(now.counts) <= 0).all() and sorted(now.classes) == sorted(run.classes)
    for k, name in enumerate(now.classes):
        j = run.classes.index(name)
        assert now.counts[k] == run.counts[j]
        assert now.tested[k] == run.test[-1][:, j].sum()
        assert now.test[0, k] == run.test[-1][run.classes.index(now.classes[0]), j]
    assert head_first(head_first(run)).classes == now.classes


def test_a_moment_is_the_nearest_kept_epoch() -> None:
    run = made.record()
    assert [moment(run, e).epoch for e in (0, 1, 2, 7, 1000)] == [0, 0, 3, 9, LAST]
    assert moment(run, 3).train_epoch == 0 and moment(run, 19).train_epoch == 9
    assert moment(run, LAST).epochs == LAST + 1
    assert epochs_of([run, made.record("car-count")]) == made.KEPT


def test_a_record_without_matrices_says_so() -> None:
    from dataclasses import replace

    bare = replace(made.record(), epochs=np.array([], int))
    with pytest.raises(ValueError, match="keeps no confusion matrix"):
        moment(bare, 0)


def test_the_error_of_a_recall_is_that_of_a_share() -> None:
    now = moment(made.record(), LAST)
    k = len(now.classes) - 1
    n, r = now.tested[k], now.recall[k]
    assert now.error_of(k) == pytest.approx(math.sqrt(r * (1 - r) / n))
    assert now.error_of(0) > 0


def test_the_headline_names_who_pays_with_both_recalls() -> None:
    first, second = (moment(made.record(m), LAST) for m in ("ce", "car-count"))
    said = headline(first, second)
    assert said == (
        "Lymphocytes pay: CE finds 100\u00a0% of them among its training images and 30\u00a0% among new ones; "
        "CAR (count EMA), 100\u00a0% and 50\u00a0%."
    )
    assert headline(moment(made.record(), 3), second).startswith(
        "After 4 of 40 epochs lymphocytes pay: CE finds 89\u00a0%"
    )


def test_the_headline_is_honest_where_car_is_no_better() -> None:
    first = moment(made.record("ce"), LAST)
    assert headline(first, moment(made.record("car-count", lowest=0.2), LAST)).endswith("20\u00a0%: worse.")
    assert headline(first, moment(made.record("car-count", lowest=0.3), LAST)).endswith(
        "30\u00a0%: no better."
    )
    assert headline(first, first).endswith("Choose a second method to compare it with.")


def moved(worst: float) -> str:
    """A second method whose lymphocytes are all found, and whose basophils have this recall."""
    from dataclasses import replace

    run = made.record("car-count")
    test = run.test.copy()
    for name, recall in (("lymphocyte", 1.0), ("basophil", worst)):
        j = run.classes.index(name)
        test[-1][:, j] = 0
        test[-1][j, j] = round(60 * recall)
        test[-1][0 if j else 1, j] = 60 - round(60 * recall)
    return headline(moment(made.record(), LAST), moment(replace(run, test=test), LAST))


def test_the_price_may_move_to_another_class() -> None:
    assert moved(0.4).endswith("100\u00a0% and 100\u00a0%. Its own worst: basophils, 40\u00a0%.")
    assert moved(0.1).endswith("But now basophils pay, with 10\u00a0%: the price has moved and not gone.")


def test_many_classes_pay_as_a_group() -> None:
    first, second = (moment(made.record(m, "tiny"), LAST) for m in ("ce", "car-count"))
    tail = (first.counts < 20).sum()
    assert len(payers(first)) == tail
    assert headline(first, second).startswith(f"The {tail} rarest of 200 classes pay: CE finds")
    assert [*metrics(first, second)] == ["Overall", "Tail classes", "σ₁"]


def test_classes_of_the_same_lowest_recall_all_pay() -> None:
    from dataclasses import replace

    run = made.record()
    test = run.test.copy()
    for name in ("lymphocyte", "basophil", "platelet"):
        j = run.classes.index(name)
        test[-1][:, j] = 0
        test[-1][6, j] = 60
    now = moment(replace(run, test=test), LAST)
    assert headline(now, now).startswith("Platelets, basophils and lymphocytes pay: CE finds")
    assert "0\u00a0% among new ones" in headline(now, now)


def test_nobody_pays_where_every_image_is_found() -> None:
    from dataclasses import replace

    run = made.record()
    test = np.stack([np.diag(m.sum(0)) for m in run.test])
    perfect = moment(replace(run, test=test), LAST)
    assert headline(perfect, perfect) == "Nobody pays: CE finds every test image of every class."
    assert perfect.spectrum.sigma == 0


def test_a_class_without_a_test_image_is_left_out_and_counted() -> None:
    rarest = len(made.COUNTS["pbc"]) - 1
    now = moment(made.record(no_test=(rarest,)), LAST)
    assert now.classes[rarest] == "lymphocyte" and math.isnan(now.recall[rarest])
    assert headline(now, now).startswith("Basophils pay")
    assert left_out_words(now) == (
        "1 class has no test image (lymphocytes). It is left out of the worst class and of every mean."
    )
    assert left_out_words(moment(made.record(), LAST)) == ""
    with pytest.raises(ValueError, match="lymphocyte has no test image"):
        remembered(now, rarest)
    nothing = moment(made.record(no_test=tuple(range(8))), LAST)
    with pytest.raises(ValueError, match="nobody knows who pays"):
        headline(nothing, nothing)
    assert "nothing to bound" in bound_words(nothing)


def test_how_sure_counts_images_and_seeds() -> None:
    first, second = (moment(made.record(m), LAST) for m in ("ce", "car-count"))
    said = how_sure(first, second, made.table())
    assert "rests on 60 test images of lymphocytes" in said
    assert "difference of +20.0 points is more than twice its own error" in said
    assert "CE 40.0 ± 1.0\u00a0% (3 seeds), CAR (count EMA) 55.0 ± 1.0\u00a0% (3 seeds)" in said
    close = how_sure(first, moment(made.record("car-count", lowest=0.35), LAST), ())
    assert "is no more than twice its own error" in close and "Over seeds" not in close
    early = [moment(made.record(m), made.KEPT[1]) for m in ("ce", "car-count")]
    assert "Over seeds" not in how_sure(*early, made.table())  # the table is of the last epoch


def test_the_bound_is_never_below_the_truth_and_says_when_it_is_void() -> None:
    for method in made.LOWEST:
        for epoch in made.KEPT:
            now = moment(made.record(method), epoch)
            bound = now.spectrum.bound()
            assert bound.worst_bound == pytest.approx(bound.of_worst)
            assert bound.of_worst >= bound.worst_error
            assert ("says nothing (vacuous)" in bound_words(now)) == (bound.of_worst >= 1)
    now = moment(made.record(), LAST)
    for w in ("sum", "max"):
        s = Spectrum.of(now.test, lambda_of(now.counts, w))
        rare = math.sqrt(8) * s.sigma / s.weights[int(np.argmin(now.counts))]
        head = math.sqrt(8) * s.sigma / s.weights[int(np.argmax(now.counts))]
        said = bound_words(now, w)
        assert (
            f"√K · σ₁ / w on the error of lymphocytes, the worst class, is {rare:.2f} ({head:.2f} for" in said
        )


def test_lambda_is_that_of_the_library() -> None:
    counts = np.array(made.COUNTS["pbc"])
    assert lambda_of(counts, "none").tolist() == [1.0] * 8
    assert lambda_of(counts, "max", 0.1) == pytest.approx(class_weights(counts, 0.1, "max").numpy())
    with pytest.raises(ValueError, match="not known; known: none, sum, max"):
        lambda_of(counts, "median")


@settings(max_examples=8, deadline=None)
@given(column=st.integers(0, 7), beta=st.sampled_from([0.0, 0.5, 0.9]))
def test_the_naive_memory_forgets_as_often_as_the_closed_form_says(column: int, beta: float) -> None:
    now = moment(made.record(), LAST)
    seen = remembered(now, column, beta)
    share = now.counts[column] / now.counts.sum()
    assert seen.presence == pytest.approx(1 - (1 - share) ** 128)
    assert seen.expected("naive") == pytest.approx(seen.presence * seen.error)
    alone = seen.presence if beta == 0 else 1.0
    assert (
        seen.expected("count")
        == seen.expected("present only")
        == pytest.approx(alone * (1 - now.recall[column]))
    )
    # each batch is one draw: the mean over 200 of them lies within five of its standard errors, which beta makes larger
    for memory in ("naive", "count"):
        wide = 5 * math.sqrt((1 + beta) / (1 - beta) * 0.25 / (200 * max(share * 128, 0.05)))
        assert abs(seen.settled(memory) - seen.expected(memory)) < wide + 0.02


def test_of_a_rare_class_the_naive_memory_holds_less_and_the_others_all_of_it() -> None:
    now = moment(made.record(), LAST)
    column = int(np.argmin(now.counts))
    seen = remembered(now, column, steps=6000)
    assert seen.error - seen.expected("naive") > 0.25  # far more than what these batches vary by
    assert seen.settled("naive") == pytest.approx(seen.expected("naive"), abs=0.06)
    for memory in ("count", "present only"):
        assert seen.settled(memory) == pytest.approx(seen.error, abs=0.06)
    alone = remembered(now, column, beta=0.0, steps=6000)
    for memory in ("naive", "count", "present only"):
        assert alone.forgets(memory) and alone.settled(memory) == pytest.approx(
            alone.expected("naive"), abs=0.06
        )
        assert alone.scale(memory) == pytest.approx(alone.presence / alone.presence_head)
    assert (
        "a matrix without memory (β = 0) counts no error"
        in memory_words(alone, "basophil", "count", "none")[0]
    )


def test_what_is_held_is_the_librarys_own_replay() -> None:
    now = moment(made.record(), LAST)
    seen = remembered(now, 7, 0.5, steps=60)
    matrices, counts = torch.zeros(60, 8, 8), torch.zeros(60, 8, dtype=torch.int64)
    counts[:, 7] = torch.from_numpy(seen.seen)
    first = next(t for t in range(60) if seen.seen[t])
    matrices[first, :, 7] = torch.from_numpy(seen.held["naive"][first] / 0.5).float()
    held = replay(matrices[: first + 1], counts[: first + 1], "naive", 0.5)[-1, :, 7]
    assert held.numpy() == pytest.approx(seen.held["naive"][first])
    absent = next(t for t in range(first + 1, 60) if not seen.seen[t])
    assert seen.held["naive"][absent] == pytest.approx(seen.held["naive"][absent - 1] / 2)
    for memory in ("present only", "count"):
        assert seen.held[memory][absent] == pytest.approx(seen.held[memory][absent - 1])
    assert seen.truth[7] == 0 and seen.error == pytest.approx(1 - now.recall[7])


def test_memory_and_lambda_in_words_and_numbers() -> None:
    now = moment(made.record(), LAST)
    seen = remembered(now, 7)
    p = presence(torch.tensor(now.counts), 128).numpy()
    w = class_weights(now.counts, norm="max").numpy()
    assert seen.scale("naive", "none") == pytest.approx(p[7] / p[0])
    assert seen.scale("naive", "max") == pytest.approx(p[7] / p[0] * w[7] / w[0])
    assert seen.scale("count", "max") == pytest.approx(w[7] / w[0])
    naive = memory_words(seen, "lymphocyte", "naive", "sum")
    assert "holds lymphocytes with a chance of 28\u00a0%" in naive[0] and "does not make up" in naive[1]
    count = memory_words(seen, "lymphocyte", "count", "max")
    assert "settles at the truth, 70\u00a0%" in count[0] and "count more than their errors" in count[1]
    assert (
        "Without Λ, CAR sees 100\u00a0% of their errors"
        in memory_words(seen, "lymphocyte", "present only", "none")[1]
    )


def test_names_of_classes() -> None:
    assert (label_of("ig"), many_of("ig")) == ("immature gran.", "immature granulocytes")
    assert (label_of("007_n01000049"), many_of("007_n01000049")) == ("n01000049", "images of n01000049")
    assert (label_of("001_n01768244"), many_of("001_n01768244")) == ("trilobite", "images of trilobite")
    assert (label_of("frog"), many_of("frog"), many_of("deer")) == ("frog", "frogs", "deer")


def test_the_validation_part_chooses_and_the_test_images_do_not() -> None:
    rows = [
        made.row("pbc", "ce", 0.4, val=0.4),
        made.row("pbc", "car-paper", 0.9, val=0.45),
        made.row("pbc", "car-count", 0.1, val=0.5),
        made.row("pbc", "car-gate", 0.1, val=0.9, overall=0.79),  # costs a point overall
        made.row("pbc", "car-cutmix", 0.1, val=0.95),  # is not CAR alone
        made.row("pbc", "car-no-ema", 0.1, val=0.97, seeds=1),  # an ablation of one seed
    ]
    chosen = chosen_car(rows, "pbc")
    assert chosen is not None and chosen["name"] == "car-count"
    assert chosen_car(rows, "tiny") is None and choice_words(rows, "tiny") == ""
    only = chosen_car([rows[0], rows[3]], "pbc")
    assert only is not None and only["name"] == "car-gate"
    assert "costs more than half a point" in choice_words([rows[0], rows[3]], "pbc")
    assert sets_won(rows) == {"pbc": False}
    assert "worst classes have a mean recall of 50\u00a0%, CE's 40\u00a0%" in choice_words(rows, "pbc")


def test_sets_won_and_lost_are_named() -> None:
    assert sets_won(made.table()) == {"pbc": True, "ham10000": False, "tiny": True}
    said = won_words(made.table())
    assert said.startswith("On 2 of 3 recorded sets") and said.endswith("not on Skin lesions.")
    assert "(Blood cells, 3 seeds; Tiny ImageNet, 3 seeds)" in said
    assert won_words([made.row("pbc", "ce", 0.4)]) == ""
    none = [made.row("tiny", "ce", 0.0), made.row("tiny", "car-paper", 0.0)]
    assert "On Tiny ImageNet neither finds a single one" in won_words(none) and "neither" not in said


def test_the_best_loss_without_car_stands_beside_it_and_ce_and_mixing_do_not_count() -> None:
    rows = [*made.table(), made.row("pbc", "ce-cutmix", 0.9)]
    assert best_without(rows, "pbc")["name"] == "adjusted" and best_without(rows, "cifar10") is None
    said = rival_words(rows)
    assert "Blood cells, logit adjustment 55.0 against 55.0\u00a0% (level)" in said
    assert "Skin lesions, logit adjustment 55.0 against 39.0\u00a0% (CAR behind)" in said
    assert said.startswith("**On 1 of 3 recorded sets a loss without CAR finds more")
    ahead = rival_words([made.row("pbc", "car-count", 0.5), made.row("pbc", "adjusted", 0.4)])
    assert ahead.startswith("**On the one set where another loss is recorded no loss without CAR finds more")
    assert rival_words([made.row("pbc", "ce", 0.4)]) == ""


def test_the_motive_is_told_as_it_was_measured() -> None:
    rows = list(made.table())
    said = motive_words(rows, "pbc")
    assert (
        "CE finds 90\u00a0% of its worst two classes among its training images and 40\u00a0% among new ones"
        in said
    )
    assert "(lost on the way: 56\u00a0% of what is learned)" in said
    assert "CAR (count EMA) finds 90\u00a0% in training and 55\u00a0% on new images" in said
    assert said.endswith("Its difference is +0.0 points in training and +15.0 points on new images.")
    assert "of the tail classes among" in motive_words(rows, "tiny")
    unlearned = [r | {"worst_classes_train": 0.0, "worst_classes": 0.0} for r in rows]
    assert "nothing of them is learned" in motive_words(unlearned, "pbc")
    assert "difference" not in motive_words(unlearned, "pbc")
    kept = [r | {"worst_classes_train": 0.8, "worst_classes": 0.8} for r in rows]
    assert "lost on the way" not in motive_words(kept, "pbc")
    assert motive_words(rows, "cifar10") == ""


def test_what_all_seeds_come_to_stands_under_one_seed() -> None:
    first, second = (moment(made.record(m), LAST) for m in ("ce", "car-count"))
    rows = [
        made.row("pbc", m, w) | {"sigma1": s, "by_seed": {0: {}, 1: {}, 2: {}}}
        for m, w, s in (("ce", 0.4, 0.9), ("car-count", 0.55, 0.8))
    ]
    _, worst, sigma = seeds_words(first, second, rows)
    assert worst == "3 seeds: 40.0 → 55.0\u00a0%" and sigma == "3 seeds: 0.90 → 0.80"
    one = [r | {"seeds": [0], "by_seed": {0: {}}} for r in rows]
    unlike = [rows[0], rows[1] | {"seeds": [0, 1], "by_seed": {0: {}, 1: {}}}]
    early = moment(made.record("ce"), 0)
    assert seeds_words(first, second, one) == seeds_words(first, second, unlike) == ("", "", "")
    assert seeds_words(early, second, rows) == seeds_words(first, first, rows) == ("", "", "")


def test_spectra_and_the_line_of_sigma_are_those_of_the_kept_epochs() -> None:
    run = made.record("ce", "ham10000")
    found, line = spectra_of(run, "max"), sigma_line(run, "max")
    w = class_weights(np.sort(run.counts)[::-1].copy(), 0.2, "max").numpy()
    assert len(found) == len(run.epochs)
    assert line.sigma == pytest.approx([s.sigma for s in found])
    for k, s in enumerate(found):
        assert s.sigma == pytest.approx(Spectrum.of(head_first(run).test[k], w).sigma)
        assert line.error[k] == pytest.approx(1 - moment(run, int(run.epochs[k])).figures.worst)
    assert (line.bound >= line.error).all() and not (spectra_of(run)[0].weights != 1).any()


def test_an_answer_says_what_it_is_worth() -> None:
    run = made.record()
    now = moment(run, LAST)
    logits = np.zeros(8, np.float32)
    logits[run.classes.index("monocyte")] = 3
    said = answer("CE", run.classes, run.counts, logits, now)
    assert said.classes == now.classes and said.classes[said.said] == "monocyte"
    assert said.shares.sum() == pytest.approx(1) and said.shares[said.said] == pytest.approx(
        np.exp(3) / (np.exp(3) + 7)
    )
    k = said.said
    words = answer_words(said)
    assert f"Of {now.test[k].sum()} test images that it called so" in words
    assert "Of 60 that are monocytes it found" in words and "platelets" in words
    bare = answer_words(answer("CE", run.classes, run.counts, logits, None))
    assert "No confusion matrix of it is recorded" in bare
    with pytest.raises(ValueError, match="no numbers"):
        answer("CE", run.classes, run.counts, logits * np.nan, now)
