"""What pages say of losses: the headline follows the bins whichever way they fall, the answers follow the tables, one image is seen as the networks
see it.
"""

from __future__ import annotations

import re
from dataclasses import replace

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from core.lab import margin_view
from core.lab.margin_answer import (
    bridge_answer,
    bridge_promise,
    choice_sentence,
    rank_correlation,
    signed,
    table_sentences,
)
from core.lab.margin_sets import CLASSES, MARGIN_SETS, square_of
from core.lab.margin_view import look, network_name, networks_there, view_sentence
from core.lab.margin_words import (
    SETS,
    THINGS,
    believed,
    bin_near,
    figures,
    headline,
    how_sure,
    loss_words,
    title_of,
)
from core.lab.pool import draw_named
from core.margin.reliability import ece, tabulate
from core.nets.weights import save_network
from tests.lab.made_loss_records import bridge, choices, record, table


def shares(sentence: str) -> list[int]:
    return [int(n) for n in re.findall(r"(\d+)\u00a0%", sentence.split("ECE ")[0])]


def test_the_headline_reads_the_bin_that_holds_90_percent() -> None:
    ce, margin = record("CE"), record("margin")
    said = headline(ce, margin, "all")
    at = bin_near(ce.pooled("all"), margin.pooled("all"))
    assert at == 13  # of 15 bins (13/15, 14/15] holds 0.9
    one, two = (r.pooled("all") for r in (ce, margin))
    right = [round(100 * float(t.accuracy[at])) for t in (one, two)]
    assert shares(said) == [90, *right]
    assert (
        said.startswith("Where this network says 90\u00a0%, it is right") and "with a margin of 10," in said
    )
    assert "no closer" not in said
    assert f"ECE falls from {100 * ece(one):.1f}\u00a0% to {100 * ece(two):.1f}\u00a0%" in said


def test_a_margin_that_is_worse_is_said_to_be_worse() -> None:
    good, bad = record("CE", bold=1.0), record("margin", bold=3.0)
    said = headline(good, bad, "all")
    assert ": no closer." in said and "ECE rises from" in said


def test_a_bin_that_is_closer_while_the_whole_is_further_says_both() -> None:
    ce, margin = record("CE"), record("margin")
    twisted = []
    for t in margin.reliability["all"]:
        correct = t.correct.copy()
        correct[:12] = 0  # everything below 80 % is wrong: the bin at 90 % is good and the rest is not
        twisted.append(replace(t, correct=correct))
    said = headline(ce, replace(margin, reliability={**margin.reliability, "all": tuple(twisted)}), "all")
    assert "no closer" not in said and "Yet ECE rises" in said


def test_the_foreground_scope_is_named_and_its_numbers_are_its_own() -> None:
    ce, margin = record("CE"), record("margin")
    inside, every = headline(ce, margin, "foreground"), headline(ce, margin, "all")
    assert inside.startswith("On true lesions, where this network says")
    assert inside.split("of the time")[0] != every.split("of the time")[0]
    assert f"{100 * ece(ce.pooled('foreground')):.1f}" in inside


def test_the_same_loss_twice_asks_for_another() -> None:
    said = headline(record("CE"), record("CE"), "all")
    assert said.endswith("Choose a second loss to compare it with.") and "ECE" not in said


def test_without_enough_pixels_near_90_percent_the_headline_takes_all_of_them() -> None:
    few = record("CE", images=1, side=8), record("margin", images=1, side=8)
    assert bin_near(few[0].pooled("all"), few[1].pooled("all")) is None
    said = headline(*few, "all")
    assert "sure on average and right" in said
    assert "speaks of all bins at once" in how_sure(*few, "all")


def test_a_scope_without_a_pixel_is_a_clear_error() -> None:
    empty = tabulate(np.zeros((2, 4, 4)), np.zeros((4, 4), int), scope="foreground")
    one = replace(record("CE"), reliability={"foreground": (empty,), "all": (empty,)})
    with pytest.raises(ValueError, match="No pixel is in the scope"):
        headline(one, one, "foreground")
    assert np.isnan(figures(one)["ece_fg"])


def test_what_the_bin_rests_on_is_counted_over_images() -> None:
    ce = record("CE")
    found = believed(ce, "all", 13)
    assert found.pixels == int(ce.pooled("all").count[13]) and found.images <= len(ce.names)
    alike = replace(ce, reliability={"all": ce.reliability["all"][:1] * 5, "foreground": ()})
    assert believed(alike, "all", 13).error == pytest.approx(
        0.0, abs=1e-12
    )  # images that agree leave nothing to chance
    said = how_sure(ce, record("margin"), "all")
    assert f"{found.pixels:,} pixels" in said and "does not explain" in said
    twin = how_sure(ce, replace(ce, loss="LS"), "all")
    assert "might turn round" in twin


def test_the_standard_error_is_about_that_of_redrawn_images() -> None:
    ce = record("CE", images=40)
    rng = np.random.default_rng(0)
    count = np.array([t.count[13] for t in ce.reliability["all"]])
    right = np.array([t.correct[13] for t in ce.reliability["all"]])
    draws = [rng.integers(0, 40, 40) for _ in range(2000)]
    spread = np.std([right[d].sum() / count[d].sum() for d in draws])
    assert believed(ce, "all", 13).error == pytest.approx(spread, rel=0.1)


def test_every_loss_and_every_set_has_words() -> None:
    for loss in margin_view.TITLES:
        assert loss_words(record(loss)) and title_of(record(loss))
    assert loss_words(record("margin")) == "a margin of 10" and title_of(record("margin")) == "margin, m = 10"
    assert set(SETS) == set(THINGS) == set(MARGIN_SETS)


def test_the_bridge_answers_whichever_way_the_table_falls() -> None:
    yes, no, other = (bridge_answer(bridge(slope=s), 0.1) for s in (1.0, 0.0, -1.0))
    assert yes[0] == "**As a rule yes for CRC, plug-in and COAT.**"
    assert no[0] == "**Not reliably for CRC, plug-in and COAT.**"
    assert other[0] == "**Rather the other way round for CRC, plug-in and COAT.**"
    assert "ρ = +1.0, +1.0" in yes[1] and "on 2 of 2" in yes[1] and "set area" in yes[1]
    assert "ρ = −1.0, −1.0" in other[1] and "on 0 of 2" in other[1]
    assert bridge_answer((), 0.1) == [] and bridge_answer(bridge(), 0.33) == []


def test_an_order_without_a_gain_over_cross_entropy_is_no_yes() -> None:
    def row(r: dict) -> dict:
        if r["method"] in ("oracle", "whole image"):
            return r
        bad = {
            "focal": (0.5, 0.3),
            "LS": (0.4, 0.11),
        }  # two losses are badly calibrated and have the larger gaps
        ece_all, gap = bad.get(r["loss"], (r["ece_all"], 0.1 + 1e-5 * r["ece_all"]))
        return {**r, "ece_all": ece_all, "gap": gap}

    said = bridge_answer([row(r) for r in bridge(slope=1.0)], 0.1)
    assert said[0].startswith("**A bad calibration costs a little, a good one gains nothing for CRC")


def test_methods_that_disagree_are_told_apart() -> None:
    rows = [r if r["method"] != "COAT" else {**r, "gap": 0.2 - r["gap"]} for r in bridge()]
    assert (
        bridge_answer(rows, 0.1)[0]
        == "**As a rule yes for CRC and plug-in; rather the other way round for COAT.**"
    )


def test_temperature_scaling_is_measured_where_there_are_two_classes() -> None:
    rows = [dict(r) for r in bridge()]
    ce = {(r["data"], r["method"], r["alpha"]): r["gap"] for r in rows if r["loss"] == "CE"}
    for r in rows:
        if r["loss"] == "CE + T":
            r["gap"] = ce[r["data"], r["method"], r["alpha"]] - (0.02 if r["method"] == "plug-in" else 0.0)
    said = bridge_answer(rows, 0.1)[-1]
    assert "moves CRC's gap by 0.0 points" in said and "by −2.0" in said
    nuclei = [{**r, "data": "nuclei"} for r in rows]
    assert not any("Temperature scaling" in s for s in bridge_answer(nuclei, 0.1))


def test_a_promise_comes_with_its_assumption() -> None:
    assert "drawn alike" in bridge_promise(0.1) and "at least 90\u00a0%" in bridge_promise(0.1)


@given(st.lists(st.tuples(st.floats(-5, 5), st.floats(-5, 5)), min_size=3, max_size=9))
@settings(max_examples=60, deadline=None)
def test_rank_correlation_is_scipys(pairs: list[tuple[float, float]]) -> None:
    from scipy.stats import spearmanr

    x, y = zip(*pairs, strict=True)
    ours = rank_correlation(x, y)
    if len(set(x)) == 1 or len(set(y)) == 1:
        assert np.isnan(ours)
    else:
        assert ours == pytest.approx(spearmanr(x, y).statistic, abs=1e-9)


def test_the_table_says_which_loss_is_lowest_and_names_scaling_apart() -> None:
    said = table_sentences(table())
    assert "margin on skin lesions (7.9\u00a0%" in said[0]
    assert "temperature scaling still lower" in said[0]
    assert said[2].startswith("**Cross-entropy → margin.**") and "Dice 80.0\u00a0% →" in said[2]
    assert table_sentences(()) == []


def test_how_m_was_chosen_is_said_with_what_was_tried() -> None:
    assert choice_sentence(choices()).startswith("On skin lesions m = 5 was chosen among 0, 3, 5, 10")
    assert choice_sentence(()) == ""


def test_a_change_has_its_sign_and_nothing_is_minus_zero() -> None:
    assert [signed(v) for v in (0.04, -0.04, 1.26, -1.26)] == ["0.0", "0.0", "+1.3", "−1.3"]


@pytest.fixture
def networks(tmp_path, monkeypatch):
    """Networks with drawn weights under the names of phantoms' CE and margin, and of nuclei's CE, in a folder of their own."""
    from core.lab.margin_train import fresh

    for seed, name in enumerate(("margin-phantom-ce", "margin-phantom-margin", "margin-nuclei-ce")):
        model, spec = fresh(name.split("-")[1], seed)
        save_network(tmp_path / "weights" / f"{name}.safetensors", model, spec, {"seed": seed})
    monkeypatch.setattr(margin_view, "ASSETS", tmp_path)
    margin_view._network.cache_clear()
    yield tmp_path
    margin_view._network.cache_clear()


def test_networks_that_ship_are_found_and_scaling_uses_that_of_cross_entropy(networks) -> None:
    assert networks_there("phantom") == ("CE", "margin", "CE + T")
    assert networks_there("skin") == ()
    assert network_name("skin", "CE + T") == network_name("skin", "CE") == "margin-skin-ce"


def test_one_image_is_seen_as_its_network_sees_it(networks) -> None:
    rgb, mask = draw_named("phantom-30003")
    views = look("phantom", ("CE", "margin", "CE + T"), rgb, mask, {"CE + T": 2.0})
    image, labels, ignore = square_of("phantom", rgb, mask)
    model = margin_view._network("margin-phantom-ce")
    with torch.no_grad():
        logits = model(image[None])[0]
    ce = views["CE"]
    assert not ignore.any()
    assert ce.confidence == pytest.approx(logits.softmax(0).amax(0).numpy(), abs=1e-6)
    assert (ce.truth == labels.numpy()).all()
    assert (ce.wrong == (logits.argmax(0) != labels).numpy()).all()
    top = logits.topk(2, 0).values
    assert ce.distance == pytest.approx((top[0] - top[1]).numpy(), abs=1e-6)
    assert ce.ece("all") == pytest.approx(ece(tabulate(logits, labels, scope="all")))
    assert ce.ece("foreground") == pytest.approx(ece(tabulate(logits, labels)))
    scaled = views["CE + T"]
    assert scaled.confidence == pytest.approx((logits / 2).softmax(0).amax(0).numpy(), abs=1e-6)
    assert (scaled.predicted == ce.predicted).all()
    assert "closest to what it says" in view_sentence(views, "phantom")


def test_without_a_mask_nothing_is_said_of_errors(networks) -> None:
    rgb, _ = draw_named("phantom-30003")
    view = look("phantom", ("CE",), rgb)["CE"]
    assert view.truth is None and view.wrong is None and view.right is None and view.ece("all") is None
    assert "Without a mask" in view_sentence({"CE": view}, "phantom")


def test_an_image_without_a_lesion_has_no_foreground_and_says_so(networks) -> None:
    rgb, mask = draw_named("empty-39001")
    views = look("phantom", ("CE",), rgb, mask)
    assert views["CE"].ece("foreground") is None and views["CE"].ece("all") is not None
    assert "shows no lesion" in view_sentence(views, "phantom", "foreground")


def test_padding_is_cut_and_nuclei_have_rims(networks) -> None:
    rgb = np.random.default_rng(0).integers(0, 255, (60, 160, 3), dtype=np.uint8)
    mask = np.zeros((60, 160), bool)
    mask[10:50, 60:110] = True
    view = look("nuclei", ("CE",), rgb, mask)["CE"]
    assert view.picture.shape == (60, 96, 3) == (*view.confidence.shape, 3)
    assert set(np.unique(view.truth)) == {0, 1, 2} and len(CLASSES["nuclei"]) == 3
    wide = look("phantom", ("CE",), rgb)["CE"]
    assert wide.picture.shape == (36, 96, 3)


@pytest.mark.parametrize(
    ("data", "rgb", "mask", "words"),
    [
        ("fire", np.zeros((8, 8, 3), np.uint8), None, "set 'fire' is not known"),
        ("phantom", np.zeros((8, 8), np.uint8), None, "RGB pictures"),
        ("phantom", np.zeros((8, 8, 3), np.uint8), np.zeros((4, 4), bool), "The mask has 4 × 4 pixels"),
    ],
)
def test_what_cannot_be_looked_at_is_a_sentence(networks, data, rgb, mask, words) -> None:
    with pytest.raises(ValueError, match=words):
        look(data, ("CE",), rgb, mask)


def test_a_network_that_is_not_here_is_named(networks) -> None:
    with pytest.raises(FileNotFoundError, match="margin-phantom-focal"):
        look("phantom", ("focal",), np.zeros((8, 8, 3), np.uint8))
