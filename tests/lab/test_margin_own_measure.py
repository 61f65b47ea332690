"""What is measured of a person's own values: against torchmetrics and a plain loop, whatever the chunks, and a temperature that it knows."""

from __future__ import annotations

import json
import math

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torchmetrics.functional.classification import multiclass_calibration_error

from core.lab import margin_own, margin_own_measure
from core.lab.margin_own import Own, read_values, values_from_arrays
from core.lab.margin_own_measure import measure
from core.lab.margin_own_report import own_reliability_report
from core.lab.margin_own_sample import FILE, sample_npz
from core.lab.margin_own_words import (
    dice_sentence,
    facts,
    headline,
    image_rows,
    metric_rows,
    overlap_rows,
    scaling_sentence,
)

K = 3


def made(
    n: int = 8, side: int = 16, sure: float = 2.0, seed: int = 0, rows: bool = False, of: str = "logits"
) -> Own:
    """Values `sure` times as sure as the truth drawn from them, so that the best temperature is `sure`."""
    rng = np.random.default_rng(seed)
    z = rng.normal(0, 1.5, (n, K, side, side))
    p = np.exp(z) / np.exp(z).sum(1, keepdims=True)
    labels = (rng.random((n, 1, side, side)) > p.cumsum(1)).sum(1).clip(0, K - 1)
    values = sure * z
    if of == "probabilities":
        values = np.exp(values) / np.exp(values).sum(1, keepdims=True)
    if rows:
        return values_from_arrays(np.moveaxis(values, 1, -1).reshape(-1, K), labels.reshape(-1), of)
    return values_from_arrays(values, labels, of)


def figure(found: margin_own_measure.Measured, scope: str, metric: str) -> dict[str, float]:
    return next(r for r in found.whole.figures(scope) if r["metric"] == metric)


def test_pooled_and_per_image_figures_are_those_of_torchmetrics_and_a_plain_loop() -> None:
    own = made()
    found = measure(own)
    logits = torch.stack([torch.from_numpy(i.values) for i in own.items])
    labels = torch.stack([torch.from_numpy(i.labels) for i in own.items])
    p = torch.softmax(logits, 1).movedim(1, -1)
    wanted = float(multiclass_calibration_error(p.reshape(-1, K), labels.reshape(-1), K, n_bins=15))
    assert figure(found, "all", "ECE")["pooled"] == pytest.approx(wanted, abs=1e-6)
    each = [
        float(multiclass_calibration_error(p[i].reshape(-1, K), labels[i].reshape(-1), K, n_bins=15))
        for i in range(len(p))
    ]
    assert figure(found, "all", "ECE")["mean_over_images"] == pytest.approx(np.mean(each), abs=1e-6)
    assert figure(found, "all", "ECE")["sd_over_images"] == pytest.approx(np.std(each, ddof=1), abs=1e-6)
    inside = labels > 0
    fg = float(multiclass_calibration_error(p[inside], labels[inside], K, n_bins=15))
    assert figure(found, "foreground", "ECE")["pooled"] == pytest.approx(fg, abs=1e-6)
    assert figure(found, "foreground", "ECE")["pixels"] == int(inside.sum())
    hot = torch.nn.functional.one_hot(labels, K)
    assert figure(found, "all", "Brier score")["pooled"] == pytest.approx(
        float(((p - hot) ** 2).sum(-1).mean()), abs=1e-9
    )
    nll = -torch.log(p.gather(-1, labels[..., None])).mean()
    assert figure(found, "all", "NLL")["pooled"] == pytest.approx(float(nll), abs=1e-9)
    guess = logits.argmax(1)
    for c, row in enumerate(overlap_rows(found), 1):
        both = [
            2 * float(((g == c) & (y == c)).sum()) / float((g == c).sum() + (y == c).sum())
            for g, y in zip(guess, labels, strict=True)
        ]
        assert row["dice"] == pytest.approx(np.mean(both), abs=1e-6) and row["unit"] == "pixels"


@pytest.mark.parametrize("of", ["logits", "probabilities"])
@pytest.mark.parametrize("sure", [0.5, 2.0])
def test_the_temperature_that_was_built_in_is_found_and_repairs_the_other_half(of: str, sure: float) -> None:
    found = measure(made(20, 32, sure, of=of))
    s = found.scaling
    assert s is not None and s.temperature == pytest.approx(sure, rel=0.05)
    assert (s.unit, s.fitted, s.shown, len(s.names)) == ("images", 10, 10, 10)
    before, after = (
        next(r for r in part.figures("all") if r["metric"] == "ECE")["pooled"] for part in (s.before, s.after)
    )
    assert after < 0.02 < before
    assert np.array_equal(
        s.before.pooled("all").correct.sum(), s.after.pooled("all").correct.sum()
    )  # the predicted class stays


def test_the_half_that_is_shown_had_no_say() -> None:
    own = made(6, 12)
    found = measure(own, seed=3)
    s = found.scaling
    assert s is not None
    shown = [i for i, item in enumerate(own.items) if item.name in s.names]
    poisoned = values_from_arrays(
        np.stack([i.values for i in own.items]), np.stack([(i.labels + (k in shown)) % K for k, i in enumerate(own.items)]), "logits"
    )  # fmt: skip
    again = measure(poisoned, seed=3).scaling
    assert again is not None and again.temperature == s.temperature and again.names == s.names
    assert again.before.pooled("all").correct.sum() != s.before.pooled("all").correct.sum()
    other = measure(own, seed=4).scaling
    assert other is not None and other.names != s.names
    whole = found.whole.tables["all"]
    assert [s.before.tables["all"][k].nll_sum for k in range(3)] == pytest.approx(
        [whole[i].nll_sum for i in shown]
    )


@pytest.mark.parametrize(("own", "unit"), [(made(4, 16, rows=True), "rows"), (made(1, 24), "pixels")])
def test_rows_and_a_single_image_are_halved_themselves(own: Own, unit: str) -> None:
    found = measure(own)
    s = found.scaling
    assert (
        s is not None and s.unit == unit and s.fitted + s.shown == own.pixels and abs(s.fitted - s.shown) <= 1
    )
    assert s.before.pooled("all").pixels == s.after.pooled("all").pixels == s.shown
    assert s.temperature == pytest.approx(2, rel=0.35)
    assert (found.summary is None) == (unit == "rows")
    assert ("Neighbouring pixels" in scaling_sentence(found, "all")) == (unit == "pixels")
    assert f"{own.pixels:,} {'rows' if unit == 'rows' else 'pixels'}" in headline(found, "all")


@settings(max_examples=8, deadline=None)
@given(chunk=st.integers(3, 500), seed=st.integers(0, 5))
def test_no_figure_depends_on_how_much_is_looked_at_at_a_time(chunk: int, seed: int) -> None:
    own = made(2, 8, seed=seed)
    whole = metric_rows(measure(own))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(margin_own, "CHUNK", chunk)
        parts = metric_rows(measure(own))
    for one, two in zip(whole, parts, strict=True):
        assert one["metric"] == two["metric"] and one["pooled"] == pytest.approx(
            two["pooled"], nan_ok=True, rel=1e-9
        )


def test_where_there_are_too_many_pixels_ace_is_drawn_and_said(monkeypatch: pytest.MonkeyPatch) -> None:
    own = made(4, 32)
    exact = measure(own)
    monkeypatch.setattr(margin_own_measure, "SAMPLE", 3 * 2000)
    drawn = measure(own)
    assert not exact.notes and "drawn pixels" in drawn.notes[0]
    assert figure(drawn, "all", "ACE")["pooled"] == pytest.approx(
        figure(exact, "all", "ACE")["pooled"], abs=0.03
    )
    assert figure(drawn, "all", "ACE")["pooled"] != figure(exact, "all", "ACE")["pooled"]
    assert figure(drawn, "all", "ECE") == figure(exact, "all", "ECE")


def test_empty_masks_are_counted_and_an_empty_foreground_has_no_figures() -> None:
    labels = np.zeros((4, 8, 8), int)
    labels[1, 2:5, 2:5] = labels[2, 2:5, 2:5] = 1
    logits = np.full((4, 8, 8), -3.0)
    logits[1, 2:5, 2:5] = logits[3, 0:2, 0:2] = 3.0
    found = measure(values_from_arrays(logits, labels, "logits"))
    row = overlap_rows(found)[0]
    assert (row["both_empty"], row["missed"], row["invented"]) == (1, 1, 1)
    assert row["dice"] == pytest.approx(1 / 3) and row["hd95"] == 0.0
    assert "missed altogether once and invented once" in dice_sentence(found)
    assert (
        figure(found, "foreground", "ECE")["images"] == 2
        and figure(found, "foreground", "ECE")["images_without"] == 2
    )
    nothing = measure(values_from_arrays(logits, np.zeros_like(labels), "logits"))
    assert math.isnan(figure(nothing, "foreground", "ECE")["pooled"])
    assert "Count all of them" in headline(nothing, "foreground")
    assert "no pixels whose truth is not class 0" in scaling_sentence(nothing, "foreground")
    assert json.loads(json.dumps(facts(nothing), allow_nan=False))["metrics"]
    assert "<figure>" not in own_reliability_report(nothing, "foreground")


def test_a_model_that_is_always_right_and_one_that_says_nothing_run_into_the_ends() -> None:
    labels = np.random.default_rng(0).integers(0, 2, (6, 8, 8))
    right = measure(values_from_arrays(np.where(labels, 2.0, -2.0), labels, "logits"))
    assert (
        right.scaling is not None and right.scaling.at_end and "never wrong" in scaling_sentence(right, "all")
    )
    noise = np.random.default_rng(1).normal(0, 3, labels.shape)
    noise = np.where(labels, -np.abs(noise), np.abs(noise))
    wrong = measure(values_from_arrays(noise, labels, "logits"))
    assert (
        wrong.scaling is not None
        and wrong.scaling.at_end
        and "say nothing about the truth" in scaling_sentence(wrong, "all")
    )


def test_the_headline_says_which_side_and_the_temperature_what_it_does() -> None:
    bold, shy = measure(made(8, 24, 2.0)), measure(made(8, 24, 0.5))
    assert "surer than it is right" in headline(bold, "all") and "less sure than it is right" in headline(
        shy, "all"
    )
    assert "(softer)" in scaling_sentence(bold, "all") and "(sharper)" in scaling_sentence(shy, "all")
    assert "falls from" in scaling_sentence(bold, "all") and "seed 0" in scaling_sentence(bold, "all")


def test_the_report_is_self_contained_and_escapes_what_strangers_wrote() -> None:
    own = values_from_arrays(
        np.random.default_rng(0).normal(0, 2, (4, 2, 8, 8)), np.random.default_rng(1).integers(0, 2, (4, 8, 8)), "logits",
        names=[f"<script>{k}" for k in range(4)], classes=("plain", "<b>bold</b>"),
    )  # fmt: skip
    found = measure(own)
    page = own_reliability_report(found, date="2026-01-01")
    assert "<script" not in page and "<b>bold" not in page and "&lt;b&gt;bold" in page
    assert (
        page.count("<figure>") == 2
        and "http-equiv" in page
        and "src=" not in page
        and 'href="http' not in page
    )
    assert headline(found, "all") in page.replace("\xa0", "\xa0")
    for row in found.whole.figures("foreground"):
        assert f"{row['pooled']:.4f}" in page


def test_rows_and_json_hold_every_figure() -> None:
    found = measure(made(4, 12))
    rows = metric_rows(found)
    assert len(rows) == 3 * 2 * 5 and {r["metric"] for r in rows} == {
        "ECE",
        "classwise ECE",
        "ACE",
        "Brier score",
        "NLL",
    }
    assert len(image_rows(found)) == 4 and all(0 <= r["dice"] <= 1 for r in image_rows(found))
    kept = json.loads(json.dumps(facts(found), allow_nan=False))
    assert kept["temperature"]["value"] == found.scaling.temperature and kept["settings"]["bins"] == 15
    bins = kept["reliability"]["whole"]["all"]
    gaps = [
        n * abs(c - a)
        for n, c, a in zip(bins["count"], bins["mean_confidence"], bins["accuracy"], strict=True)
        if n
    ]
    assert sum(gaps) / sum(bins["count"]) == pytest.approx(rows[5]["pooled"])


def test_it_can_be_stopped_and_an_open_question_is_refused() -> None:
    class Enough(Exception):
        pass

    def stop(done: int, total: int, facts: object) -> None:
        assert done <= total
        if done >= 3:
            raise Enough

    with pytest.raises(Enough):
        measure(made(3, 8), on_step=stop)
    seen: list[tuple[int, int]] = []
    measure(made(3, 8), on_step=lambda done, total, facts: seen.append((done, total)))
    assert seen == sorted(seen) and seen[-1][0] <= seen[-1][1]
    with pytest.raises(ValueError, match="open"):
        measure(
            values_from_arrays(np.random.default_rng(0).normal(0, 2, (2, 3, 4, 4)), np.zeros((2, 4, 4), int))
        )


def test_the_sample_reads_without_a_question_and_shows_what_a_temperature_is_for() -> None:
    own = read_values([(FILE, sample_npz(6))])
    assert own.ready and own.of == "logits" and own.classes == ("background", "lesion") and len(own) == 6
    found = measure(own)
    assert (
        found.scaling is not None
        and found.summary is not None
        and figure(found, "foreground", "ECE")["pixels"] > 0
    )
    assert sample_npz(6) is sample_npz(6)
