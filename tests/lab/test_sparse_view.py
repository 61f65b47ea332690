"""What is read from recorded sparse coding runs, and what is said of it, whichever way the figures fell."""

from __future__ import annotations

import itertools
import math
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from core.data.corruptions import CORRUPTIONS, NOISES
from core.lab.sparse_phrases import goes, points, wants
from core.lab.sparse_story import phases_of
from core.lab.sparse_view import (
    Severity,
    ablation,
    by_iterations,
    by_samples,
    layer_words,
    measured,
    plane,
    severity,
    story,
    title_of,
    wanted,
)
from core.lab.sparse_words import (
    ANALOGY,
    CORRUPTION_WORDS,
    ablation_words,
    clean_words,
    headline,
    iteration_words,
    metrics,
    plane_words,
    recorded_words,
    sentences,
    story_words,
)
from tests.lab import made_sparse as made


def view(**changes: object) -> Severity:
    """One layer under fog, severity 3 costs 21 points, BN brings 60 % back and λ 16 % more."""
    return replace(severity(made.record(), "fog", made.record("resnet")), **changes)  # type: ignore[arg-type]


def accuracy(none: float, bn: float, lam: float, both: float, clean: float = 0.9) -> dict[str, np.ndarray]:
    rows = {"none": none, "bn": bn, "lambda": lam, "both": both}
    return {way: np.array([clean, *[value] * 5]) for way, value in rows.items()}


def test_layers_and_networks_have_names() -> None:
    assert layer_words("conv1") == layer_words("conv_0.conv_0.conv") == "first layer"
    assert (
        layer_words("blocks.2.conv1") == "block 3, first"
        and layer_words("blocks.7.conv2") == "block 8, second"
    )
    assert len({layer_words(n) for n in made.names_of("tacsc_all")}) == 17
    assert (
        title_of(made.record("tacsc", 4)) == "TA-CSC-18, K = 4"
        and title_of(made.record("resnet", 4)) == "ResNet-18"
    )
    assert set(CORRUPTION_WORDS) == set(CORRUPTIONS)


def test_severity_holds_lambda_and_the_four_ways() -> None:
    seen = view()
    assert seen.threshold.shape == (6, 1) and seen.names == ("first layer",)
    assert seen.threshold[:, 0] == pytest.approx(0.12 * (1.2 + 0.3 * np.arange(6)))
    lost = made.HARM * np.arange(6)
    assert seen.accuracy["none"] == pytest.approx(made.CLEAN - lost)
    assert seen.accuracy["both"] == pytest.approx(made.CLEAN - lost * (1 - made.BN - made.LAM))
    assert set(seen.beside) == {"none", "bn"} and seen.scored.tolist() == [1000] * 6
    assert seen.stopped == ((), (), (), (), (), ("first layer",))
    plain = severity(made.record("resnet"), "fog")
    assert plain.threshold.shape == (6, 0) and set(plain.accuracy) == {"none", "bn"} and not plain.beside
    with pytest.raises(ValueError, match="'rain' is not known"):
        severity(made.record(), "rain")


def test_what_was_not_measured_is_nan_and_said() -> None:
    some = made.record(corruptions=NOISES)
    assert measured(some) == NOISES and set(wanted(some)) == set(NOISES)
    seen = severity(some, "fog", made.record("resnet", corruptions=NOISES))
    assert np.isnan(seen.threshold[1:]).all() and np.isnan(seen.accuracy["both"][1:]).all()
    assert np.isfinite(seen.threshold[0]).all() and seen.scored.tolist() == [1000, 0, 0, 0, 0, 0]
    assert (
        headline(seen, 3)
        == "At severity 3 what λ the network wants is not recorded. Its accuracy there is not recorded."
    )
    assert sentences(seen, 3) == () and metrics(seen, 3)[1][1] == "–"
    assert np.isnan(severity(made.record(), "fog", samples=77).accuracy["bn"]).all()
    assert wanted(made.record("tacsc_all"))["fog"][0] == pytest.approx(np.full(17, 1.2))


def test_headline_as_sketched() -> None:
    said = headline(view(), 3)
    assert (
        said
        == "At severity 3 the network wants λ = 0.25 instead of 0.12. BN alone recovers 13 of the 21 points lost, λ adds 3.4."
    )
    assert headline(view(), 0).startswith("On clean images λ goes from 0.12 to 0.14. Nothing needs to move")
    alike = view(threshold=np.full((6, 1), 0.4))
    assert headline(alike, 3).startswith(
        "At severity 3 λ goes from 0.12 to 0.4, as on clean images. BN alone"
    )


@pytest.mark.parametrize(
    ("rows", "says"),
    [
        (
            accuracy(0.70, 0.66, 0.71, 0.72),
            "BN alone loses 4 points more than the 20 points already lost, λ adds 6.",
        ),
        (accuracy(0.70, 0.85, 0.71, 0.80), "BN alone recovers 15 of the 20 points lost, λ takes away 5."),
        (accuracy(0.70, 0.92, 0.71, 0.921), "BN alone recovers all of the 20 points lost, λ adds nothing."),
        (
            accuracy(0.70, 0.80, 0.71, 0.812),
            "BN alone recovers 10 of the 20 points lost, λ adds nothing that can be told from chance (+1.2).",
        ),
        (accuracy(0.70, 0.701, 0.72, 0.75), "BN alone recovers nothing of the 20 points lost, λ adds 4.9."),
        (
            accuracy(0.898, 0.85, 0.9, 0.84),
            "Nothing is lost there: accuracy is 90\u00a0%, on clean images 90\u00a0%. Adaptation costs 5.8 points.",
        ),
        (
            accuracy(0.91, 0.91, 0.91, 0.911),
            "Nothing is lost there: accuracy is 91\u00a0%, on clean images 90\u00a0%.",
        ),
        (
            accuracy(0.70, math.nan, 0.71, math.nan),
            "Lost: 20 points of accuracy; what adaptation recovers is not recorded.",
        ),
    ],
)
def test_headline_whichever_way_it_fell(rows: dict[str, np.ndarray], says: str) -> None:
    assert headline(view(accuracy=rows), 3).endswith(f"0.12. {says}")


def test_lambda_goes_down_stays_or_moves_in_many_layers() -> None:
    one = np.array([0.12])
    assert wants(one, np.array([0.05])) == "the network wants λ = 0.05 instead of 0.12"
    assert wants(one, np.array([0.121])) == "the network keeps λ = 0.12"
    many = np.full(17, 0.1)
    assert (
        wants(many, 2 * many)
        == "the network's 17 layers want 2 times their λ (the first layer 0.2 instead of 0.1)"
    )
    assert "keep their λ on the whole" in wants(many, 1.01 * many)
    assert "has no λ" in wants(np.zeros(0), np.zeros(0))
    assert goes(one, np.array([0.121])) == "λ stays at 0.12" and "no λ" in goes(np.zeros(0), np.zeros(0))
    assert (
        goes(many, 2 * many)
        == "λ of 17 layers goes to 2 times its trained value (first layer: from 0.1 to 0.2)"
    )
    assert "on the whole" in goes(many, 1.01 * many) and "not recorded" in goes(one, np.array([math.nan]))
    assert points(0.0104) == points(-0.01) == "1 point" and points(0.2) == "20 points"
    assert headline(severity(made.record("resnet"), "fog"), 2).startswith(
        "At severity 2 the network has no λ to move. BN alone"
    )


def test_sentences_put_the_resnet_and_the_guards_beside_it() -> None:
    said = " ".join(sentences(view(), 5))
    assert "A plain ResNet-18 of the same width goes from 55\u00a0% to 76\u00a0% with BN alone" in said
    assert "ends 5.6 points above that" in said and "λ alone gains 5.6 points" in said
    assert "A guard stopped 1 of 1 layers (first layer)" in said
    assert "The images that adaptation saw are not scored." in said and "±1.6 points" in said
    level = view(accuracy=accuracy(0.55, 0.76, 0.55, 0.761))
    assert "ends level with it" in " ".join(
        sentences(level, 5)
    ) and "λ alone changes next to nothing" in " ".join(sentences(level, 5))
    below = view(accuracy=accuracy(0.55, 0.7, 0.5, 0.7))
    assert "ends 6 points below" in " ".join(sentences(below, 5)) and "λ alone costs 5 points" in " ".join(
        sentences(below, 5)
    )
    assert "ResNet" not in " ".join(sentences(view(beside={}), 5))
    assert "ResNet" not in " ".join(sentences(view(), 0))


def test_a_move_that_clean_images_make_too_is_no_sign_of_damage() -> None:
    same = view(threshold=np.full((6, 1), 0.4))
    assert "On clean images λ ends at practically the same place (0.4)" in " ".join(sentences(same, 3))
    assert "practically the same" not in " ".join(sentences(same, 0)) + " ".join(sentences(view(), 3))


def test_clean_images_pull_lambda_too() -> None:
    assert "λ goes from 0.12 to 0.14" in clean_words(view()) and "pulls λ up whether or not" in clean_words(
        view()
    )
    assert "leaves accuracy as it is" in clean_words(view())
    down = view(
        threshold=np.full((6, 1), 0.05), accuracy=accuracy(0.7, 0.7, 0.7, 0.7) | {"lambda": np.full(6, 0.8)}
    )
    assert "pulls λ down" in clean_words(down) and "costs 10 points of accuracy" in clean_words(down)
    assert "not recorded" in clean_words(view(threshold=np.full((6, 1), np.nan)))
    assert "has no λ" in clean_words(severity(made.record("resnet"), "fog"))


def test_metrics_say_what_bn_alone_explains() -> None:
    (_, lam, told), (_, after, before), (_, share, _) = metrics(view(), 3)
    assert (lam, after, share) == ("0.25", "85\u00a0%", "79\u00a0%") and "0.12" in told and "69" in before
    assert metrics(view(accuracy=accuracy(0.7, 0.6, 0.7, 0.65)), 3)[2][1] == "–"
    assert metrics(view(accuracy=accuracy(0.7, 0.6, 0.7, 0.75)), 3)[2][1] == "0\u00a0%"
    assert metrics(severity(made.record("tacsc_all"), "fog"), 1)[0][0] == "adapted λ of the first layer"
    assert metrics(view(accuracy=accuracy(0.7, 0.8, 0.7, 0.78)), 3)[2][1] == "all"


def test_training_is_read_with_its_phases() -> None:
    seen = story(made.record("tacsc_all"))
    assert seen.threshold.shape == (25, 17) and seen.sparsity.shape == (made.EPOCHS, 17)
    assert (seen.per_epoch, seen.epochs, seen.steps[-1]) == (
        made.PER_EPOCH,
        made.EPOCHS,
        made.EPOCHS * made.PER_EPOCH,
    )
    assert [p.words for p in seen.phases] == ["rises", "falls", "rests"]
    assert (
        seen.phases[0].end == 80
        and 120 <= seen.phases[1].end <= 140
        and seen.phases[-1].end == seen.steps[-1]
    )
    assert [p.words for p in story(made.record("fixed")).phases] == ["rests"]
    said = story_words(seen)
    assert "17 layers" in said and "rises to" in said and "then falls to" in said and "to the end" in said
    assert story_words(story(made.record())).startswith("λ starts at 0.1 and rises to 0.3")
    with pytest.raises(ValueError, match="ResNet-18 has no sparse layer"):
        story(made.record("resnet"))


@settings(max_examples=40, deadline=None)
@given(st.lists(st.floats(0.01, 3.0), min_size=2, max_size=30))
def test_phases_cover_training_without_a_gap(lam: list[float]) -> None:
    steps = np.arange(len(lam)) * 10
    found = phases_of(steps, np.array(lam)[:, None])
    assert 1 <= len(found) <= 3 and found[0].start == 0 and found[-1].end == steps[-1]
    for a, b in itertools.pairwise(found):
        assert a.end == b.start and a.words != b.words
    for p in found:
        if p.words != "rests":
            change = lam[p.end // 10] - lam[p.start // 10]
            assert (change > 0) == (p.words == "rises")


def test_the_plane_ends_where_training_ends() -> None:
    seen, whole = plane(made.record()), story(made.record())
    assert seen.epochs.tolist() == list(range(1, made.EPOCHS + 1))
    assert seen.threshold[-1] == pytest.approx(whole.threshold[-1]) and seen.kept == pytest.approx(
        1 - whole.error
    )
    said = plane_words(seen)
    assert said.endswith(ANALOGY) and "not a proof" in said and "throw more away" in said


def test_ablations_as_rows_and_as_they_fell() -> None:
    runs = {"a": made.record(), "b": made.record("resnet"), "c": made.record("tacsc", 4)}
    rows = ablation(runs)
    assert [(r["key"], r["adapt"]) for r in rows][:5] == [
        ("a", "none"),
        ("a", "bn"),
        ("a", "lambda"),
        ("a", "both"),
        ("b", "none"),
    ]
    both = next(r for r in rows if r["key"] == "a" and r["adapt"] == "both")
    assert both["points"] == pytest.approx(100 * 3 * made.HARM * (made.BN + made.LAM))
    said = ablation_words(rows)
    assert "TA-CSC-18: 16.0 points, of which BN alone brings +12.6 (79\u00a0%); λ alone brings +3.4" in said
    assert "ResNet-18: BN alone +12.6 points" in said
    harmed = {"a": made.record(bn=-0.2, lam=-0.1)}
    assert "TA-CSC-18: adaptation gains nothing (−6.3 points)" in ablation_words(ablation(harmed))
    assert ablation(
        {"a": made.record(corruptions=NOISES[:2])}, "noises"
    ) == () and "No way" in ablation_words(())
    samples = by_samples(made.record())
    assert [(r["adapt"], r["samples"]) for r in samples][:4] == [
        ("none", 0),
        ("bn", 50),
        ("bn", 100),
        ("bn", 500),
    ]
    k = by_iterations(runs)
    assert [r["iterations"] for r in k] == [2, 4] and k[0]["adapted"] / k[0]["threshold"] == pytest.approx(
        2.1
    )
    assert "with K = 2 it goes up (0.12 → 0.25)" in iteration_words(k)
    assert iteration_words(k).startswith("Whichever K is recorded, λ goes up")
    assert iteration_words([k[0], k[1] | {"adapted": 0.01}]).startswith("Which way λ goes depends on K")
    assert "goes down" in iteration_words([k[0] | {"adapted": 0.01}]) and "not recorded" in iteration_words(
        []
    )
    assert "TA-CSC-18 (K = 4) 90\u00a0%" in recorded_words(runs)
