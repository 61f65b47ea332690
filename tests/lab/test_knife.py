"""One image under a soft threshold: shares, sentences, and the arrays that are drawn."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from core.coat.softness import soft_mask
from core.conformal import CoverageCurves
from core.lab.knife import (
    Beside,
    along,
    blade,
    headline,
    histogram,
    in_words,
    knife,
    lesion_of_map,
    lesion_of_pool,
    shading,
    small_mask,
)
from tests.lab.made_study import made_maps


def a_map(seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(seed)
    mask = np.zeros((20, 30), bool)
    mask[5:12, 6:20] = True
    return (rng.normal(0, 2, mask.shape) + 3 * mask - 1).astype(np.float32), mask


@given(st.integers(0, 1000), st.floats(-5, 5), st.sampled_from(["logit", "probability"]))
@settings(deadline=None, max_examples=40)
def test_a_map_and_its_exact_table_say_the_same(seed: int, tau: float, unit: str) -> None:
    logits, mask = a_map(seed)
    curves = CoverageCurves.from_maps([torch.from_numpy(logits)], [torch.from_numpy(mask)])
    one, two = lesion_of_map(logits, mask), lesion_of_pool(curves, 0)
    assert one.known and two.known
    for ask in (lambda x: x.soft(tau, 0.7, unit), lambda x: x.slope(tau, 0.7, unit), lambda x: x.hard(tau)):
        assert ask(one) == pytest.approx(ask(two), abs=1e-9)
    assert one.hard(tau) == pytest.approx((logits[mask] >= np.float32(tau)).mean())


def test_a_binned_table_is_off_by_no_more_than_its_bins() -> None:
    logits, mask = a_map()
    curves = CoverageCurves.from_maps([torch.from_numpy(logits)], [torch.from_numpy(mask)]).to_bins()
    exact, binned = lesion_of_map(logits, mask), lesion_of_pool(curves, 0)
    assert binned.soft(0.0, 1.0) == pytest.approx(exact.soft(0.0, 1.0), abs=0.25 / 40)


def test_without_a_mask_the_share_is_what_images_drawn_from_the_models_own_probabilities_have() -> None:
    logits, _ = a_map()
    lesion = lesion_of_map(logits, None)
    assert not lesion.known
    assert lesion_of_map(logits, np.zeros(logits.shape, bool)).known is False
    rng, p = np.random.default_rng(1), 1 / (1 + np.exp(-logits))
    soft = soft_mask(torch.from_numpy(logits), 0.3, 1.0).numpy()
    hits, hard, size = 0.0, 0.0, 0
    for _ in range(800):
        drawn = rng.random(p.shape) < p
        hits, hard, size = hits + soft[drawn].sum(), hard + (logits[drawn] >= 0.3).sum(), size + drawn.sum()
    assert lesion.soft(0.3, 1.0) == pytest.approx(hits / size, abs=0.01)
    assert lesion.hard(0.3) == pytest.approx(hard / size, abs=0.01)


def test_an_empty_image_of_the_pool_is_asked_for_the_models_belief() -> None:
    logits, masks = made_maps(6, empty=2)
    curves = CoverageCurves.from_maps(logits, masks).to_bins()
    assert lesion_of_pool(curves, 0).known
    empty = lesion_of_pool(curves, 5)
    assert not empty.known
    assert float(empty.weight.sum()) == pytest.approx(1)


def test_the_knife_knows_its_numbers() -> None:
    logits, mask = a_map()
    lesion = lesion_of_map(logits, mask)
    k = knife(lesion, -0.5, 2.0, "logit", 0.1)
    assert (k.soft, k.hard) == (lesion.soft(-0.5, 2.0), lesion.hard(-0.5))
    assert k.best == 1.0
    assert 0 < k.speaking <= 1
    t = (8.0, 1.0, 1e-4)
    soft = along(lesion, -0.5, t, "logit")["soft"]
    assert abs(soft[2] - k.hard) < 1e-3 < abs(soft[0] - k.hard)
    in_p = knife(lesion, -0.5, 0.6, "probability", 0.1)
    assert in_p.best == pytest.approx(
        max(lesion.soft(tau, 0.6, "probability") for tau in (-40.0, -10.0, 0.0, 3.0))
    )
    assert knife(lesion, -np.inf, 1.0, "logit", 0.1).soft == 1.0  # an infeasible calibration marks everything


def test_the_headline_has_this_images_numbers_and_names_what_cannot_be_reached() -> None:
    lesion = lesion_of_map(*a_map())
    k = knife(lesion, -0.5, 2.0, "logit", 0.1)
    said = headline(k, Beside(2.0, (0.0712, 0.12), (0.0984, 0.1)), "polyp")
    assert "T\u00a0=\u00a02 this polyp counts as" in said
    assert (
        "There COAT misses by 7.1\u00a0points for 12\u00a0% area, CRC by 9.8 for 10\u00a0%." in said
    )  # a gap never without area
    assert " At T\u00a0=\u00a04 COAT misses" in headline(k, Beside(4.0, (0.07, 0.1), (0.1, 0.1)))
    assert "No COAT was trained near this T." in headline(k, None)
    out = knife(lesion, -0.5, 0.7, "probability", 0.1)
    assert "no threshold can count 90\u00a0%" in headline(out, None) and "81\u00a0%" in headline(out, None)
    assert "never arrives" in in_words(out)
    blind = lesion_of_map(a_map()[0], None)
    assert "the model itself expects" in headline(knife(blind, 0.0, 1.0, "logit", 0.1), None)


def test_too_sharp_a_knife_says_that_nothing_is_left_to_learn_from() -> None:
    lesion = lesion_of_map(*a_map())
    assert "nothing to learn from" in in_words(knife(lesion, -0.5, 1e-4, "logit", 0.1))
    assert "gradient can hear" in in_words(knife(lesion, -0.5, 4.0, "logit", 0.1))


def test_the_shading_is_the_soft_mask_made_small() -> None:
    logits, mask = a_map()
    big = np.kron(logits, np.ones((8, 8), np.float32))
    stack = shading(big, 0.2, (4.0, 0.01), "logit", side=30)
    assert stack.shape == (2, 20, 30) and stack.dtype == np.uint8
    want = 100 / (1 + np.exp(-(logits - 0.2) / 4.0))
    assert np.abs(stack[0] - want).max() <= 0.51
    assert ((stack[1] > 50) == (logits > 0.2)).mean() > 0.99
    assert (small_mask(np.kron(mask, np.ones((8, 8), bool)), side=30) == mask).all()
    assert shading(logits, 0.2, (1.0,), "logit").shape == (1, 20, 30)  # small maps stay as they are


def test_the_blade_and_the_histogram_belong_to_the_lesion() -> None:
    lesion = lesion_of_map(*a_map())
    edges, share = histogram(lesion)
    assert share.sum() == pytest.approx(1)
    assert len(edges) == len(share) + 1
    grid = np.array([-3.0, 0.2, 3.0])
    curve = blade(grid, 0.2, (1.0,), "logit")[0]
    assert curve[1] == pytest.approx(0.5)
    assert (np.diff(curve) > 0).all()
