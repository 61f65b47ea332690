"""One predictor for every alpha on a shipped study: its thresholds are the page's, they nest, and the count is of images."""

from __future__ import annotations

import pytest
import torch

from core.lab.nesting import ALPHAS, nesting, nesting_sentence, shipped_nesting
from core.lab.study import shipped_study, split_study


@pytest.fixture(scope="module")
def made():
    return nesting(shipped_study("phantom"), 0)


def test_thresholds_are_those_of_the_page_at_the_same_alpha(made) -> None:
    for alpha in (0.05, 0.1, 0.3):
        k = int((ALPHAS - alpha).abs().argmin())
        split = split_study(shipped_study("phantom"), float(ALPHAS[k]), 0)
        assert torch.allclose(made.tau[:, k], split.tau("COAT"), atol=1e-5)


def test_nested_thresholds_cover_at_least_as_much_everywhere(made) -> None:
    curves = shipped_study("phantom").curves
    assert made.crossing > 0  # else this test could not fail
    assert made.crossing == int((made.nested < made.tau).any(1).sum())
    assert (made.nested.diff(dim=1) >= 0).all()
    for k in (0, 3, 8, 20):
        before, after = (curves.coverage(t[:, k])[:, 0] for t in (made.tau, made.nested))
        assert (after >= before)[curves.has_lesion].all()
    assert made.furthest == pytest.approx(float((made.tau - made.nested).max()))
    assert 0 < made.dearest < 0.05


def test_an_image_s_own_thresholds_are_those_of_its_row(made) -> None:
    knots = shipped_study("phantom").knots["COAT"][17]
    tau, nested = made.of_knots(knots)
    assert torch.allclose(tau, made.tau[17], atol=1e-5) and torch.allclose(nested, made.nested[17], atol=1e-5)


def test_one_threshold_for_all_never_crosses() -> None:
    assert shipped_nesting("polyp", 0, "CRC").crossing == 0


def test_too_few_images_for_an_alpha_are_the_whole_image_and_still_nest() -> None:
    few = nesting(shipped_study("fire"), 0, "AT", calibration_share=0.1)
    assert torch.isinf(few.tau[:, 0]).all() and not torch.isnan(few.nested).any()
    assert few.furthest >= 0


def test_the_sentence_holds_the_numbers(made) -> None:
    study = shipped_study("phantom")
    said = nesting_sentence(study, {"COAT": made})
    assert f"{made.crossing} under COAT" in said and f"{len(study.curves)} images" in said
    calm = shipped_nesting("polyp", 0, "CRC")
    assert "changes nothing" in nesting_sentence(shipped_study("polyp"), {"CRC": calm})


def test_a_method_without_thresholds_at_every_alpha_is_refused() -> None:
    with pytest.raises(ValueError, match="AA-CRC"):
        nesting(shipped_study("phantom"), 0, "AA-CRC")
