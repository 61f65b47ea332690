"""Calibration metrics: torchmetrics, MONAI, torch and a plain loop as oracles, the limits of METHODS 2.6, tables that merge, bad input."""

from __future__ import annotations

import io
import math
from itertools import pairwise

import numpy as np
import pytest
import torch
import torch.nn.functional as F
from hypothesis import given, settings
from hypothesis import strategies as st

from core.margin.pixels import bin_of, read_pixels
from core.margin.reliability import (
    METRICS,
    Reliability,
    ace,
    brier,
    classwise_ece,
    ece,
    nll,
    per_image,
    tabulate,
    tabulate_scopes,
)

seeds = st.integers(0, 2**31)
few = settings(max_examples=20, deadline=None)
both_scopes = pytest.mark.parametrize("scope", ["foreground", "all"])


def image(seed: int = 0, k: int = 4, h: int = 17, w: int = 13) -> tuple[np.ndarray, np.ndarray]:
    g = np.random.default_rng(seed)
    return g.normal(size=(k, h, w)) * 3, g.integers(0, k, (h, w))


def softmax(x: np.ndarray) -> np.ndarray:
    e = np.exp(x - x.max(0))
    return e / e.sum(0)


def calibrated(pixels: int, k: int = 4, seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    """Logits, and labels drawn from their own softmax."""
    g = np.random.default_rng(seed)
    x = g.normal(size=(k, pixels)) * 2
    return x, np.minimum((softmax(x).cumsum(0) < g.random(pixels)).sum(0), k - 1)


def same(a: Reliability, b: Reliability) -> None:
    for (name, one), other in zip(a.to_arrays().items(), b.to_arrays().values(), strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-12, atol=1e-12, err_msg=name)


# --- oracles -------------------------------------------------------------------------------------------------------


@both_scopes
@few
@given(seed=seeds)
def test_torchmetrics_agrees_on_ece(scope: str, seed: int) -> None:
    metrics = pytest.importorskip("torchmetrics.functional.classification")
    x, y = image(seed)
    theirs = metrics.multiclass_calibration_error(
        torch.from_numpy(x)[None],
        torch.from_numpy(y)[None],
        num_classes=4,
        n_bins=15,
        norm="l1",
        ignore_index=0 if scope == "foreground" else None,
    )
    assert ece(tabulate(x, y, scope=scope)) == pytest.approx(theirs.item(), abs=1e-5)


def test_monai_agrees_on_the_classwise_bins() -> None:
    calibration = pytest.importorskip(
        "monai.metrics.calibration", reason="this MONAI has no calibration bins"
    )
    x, y = image(3)
    hot = F.one_hot(torch.from_numpy(y), 4).movedim(-1, 0)[None]
    mean_p, mean_truth, count = calibration.calibration_binning(torch.from_numpy(softmax(x))[None], hot, 15)
    table = tabulate(x, y, scope="all")
    np.testing.assert_array_equal(table.class_count, count[0])
    share = torch.nan_to_num((mean_p - mean_truth).abs() * count)[0].sum(1) / y.size
    assert classwise_ece(table) == pytest.approx(share.mean().item(), abs=1e-6)
    assert classwise_ece(table, [2]) == pytest.approx(share[2].item(), abs=1e-6)


@both_scopes
def test_tables_are_a_plain_loop_over_pixels(scope: str) -> None:
    x, y = image(5)
    ignore = np.random.default_rng(1).random(y.shape) < 0.3
    table = tabulate(x, y, ignore, scope=scope)
    count, conf, right = np.zeros(15), np.zeros(15), np.zeros(15)
    of_class = np.zeros((3, 4, 15))
    squares = surprise = 0.0
    for i, j in np.argwhere(~ignore & ((y > 0) | (scope == "all"))):
        p = softmax(x[:, i, j])
        b = min(max(math.ceil(15 * p.max()) - 1, 0), 14)
        count[b] += 1
        conf[b] += p.max()
        right[b] += p.argmax() == y[i, j]
        for k in range(4):
            b = min(max(math.ceil(15 * p[k]) - 1, 0), 14)
            of_class[:, k, b] += 1, p[k], k == y[i, j]
            squares += (p[k] - (k == y[i, j])) ** 2
        surprise -= math.log(p[y[i, j]])
    np.testing.assert_array_equal(table.count, count)
    np.testing.assert_array_equal(table.correct, right)
    np.testing.assert_allclose(table.confidence, conf)
    np.testing.assert_array_equal(table.class_count, of_class[0])
    np.testing.assert_allclose(table.class_confidence, of_class[1])
    np.testing.assert_array_equal(table.class_correct, of_class[2])
    assert table.pixels == count.sum() > 50
    assert brier(table) == pytest.approx(squares / table.pixels, rel=1e-12)
    assert nll(table) == pytest.approx(surprise / table.pixels, rel=1e-12)


def test_torch_agrees_on_nll_and_sklearn_on_brier() -> None:
    from sklearn.metrics import brier_score_loss

    x, y = image(6, k=2)
    table = tabulate(x, y, scope="all")
    assert nll(table) == pytest.approx(
        F.cross_entropy(torch.from_numpy(x)[None], torch.from_numpy(y)[None]).item()
    )
    assert brier(table) == pytest.approx(2 * brier_score_loss(y.ravel(), softmax(x)[1].ravel()))


# --- limits --------------------------------------------------------------------------------------------------------


def test_a_perfectly_calibrated_set_has_an_error_that_falls_with_its_size() -> None:
    errors = []
    for pixels in (300, 30_000):
        x, y = calibrated(pixels)
        table = tabulate(x, y, scope="all")
        assert ece(table) < math.sqrt(15 / pixels)
        assert classwise_ece(table) < math.sqrt(15 / pixels)
        assert ace(x, y, scope="all") < math.sqrt(15 / pixels)
        errors.append(ece(table))
    assert errors[1] < errors[0] / 3


def test_counted_on_foreground_alone_even_a_perfectly_calibrated_set_has_an_error() -> None:
    x, y = calibrated(30_000)
    x = x + np.array([2.0, 0, 0, 0])[:, None]  # much background, as in pictures
    y = np.minimum((softmax(x).cumsum(0) < np.random.default_rng(9).random(30_000)).sum(0), 3)
    assert ece(tabulate(x, y, scope="all")) < 0.02
    assert ece(tabulate(x, y, scope="foreground")) > 0.05


@few
@given(confidence=st.floats(0.51, 1.0), seed=seeds)
def test_one_confidence_everywhere_misses_by_its_distance_from_accuracy(confidence: float, seed: int) -> None:
    y = np.random.default_rng(seed).integers(0, 2, 97)
    p = np.stack([np.full(97, 1 - confidence), np.full(97, confidence)])
    table = tabulate(p, y, scope="all", of="probabilities")
    miss = abs(confidence - y.mean())
    assert ece(table) == pytest.approx(miss, abs=1e-12)
    assert classwise_ece(table) == pytest.approx(miss, abs=1e-12)
    assert ace(p, y, scope="all", of="probabilities") == pytest.approx(miss, abs=1e-12)


def test_certain_and_right_is_perfect() -> None:
    _, y = image()
    p = np.moveaxis(np.eye(4)[y], -1, 0)
    table = tabulate(p, y, scope="all", of="probabilities")
    assert [m(table) for m in METRICS.values()] == [0, 0, 0, 0]
    assert ace(p, y, scope="all", of="probabilities") == 0
    assert table.count[14] == y.size
    assert table.overall_accuracy == table.overall_confidence == 1


def test_certain_and_wrong_is_as_wrong_as_it_gets() -> None:
    _, y = image()
    p = np.moveaxis(np.eye(4)[(y + 1) % 4], -1, 0)
    table = tabulate(p, y, scope="all", of="probabilities")
    assert (ece(table), brier(table)) == (1, 2)
    assert table.floored == y.size
    assert nll(table) == pytest.approx(-math.log(1e-12))


@both_scopes
def test_logits_scaled_without_end_err_at_the_error_rate(scope: str) -> None:
    x, y = image(2)
    table = tabulate(x * 1e6, y, scope=scope)
    counted = y > 0 if scope == "foreground" else np.ones_like(y, bool)
    wrong = (x.argmax(0) != y)[counted].mean()
    assert ece(table) == pytest.approx(wrong, abs=1e-12)
    assert math.isfinite(nll(table))


@few
@given(seed=seeds)
def test_bounds_and_invariances(seed: int) -> None:
    x, y = image(seed)
    for scope, table in tabulate_scopes(x, y).items():
        same(table, tabulate(x, y, scope=scope))
        shift = np.random.default_rng(seed).normal(size=y.shape) * 30
        turn = np.random.default_rng(seed).permutation(y.size)
        same(table, tabulate(x.reshape(4, -1)[:, turn], y.ravel()[turn], scope=scope))
        moved = tabulate(x + shift, y, scope=scope)
        assert nll(moved) == pytest.approx(nll(table), abs=1e-9)
        assert abs(table.overall_confidence - table.overall_accuracy) - 1e-12 <= ece(table) <= 1
        assert 0 <= classwise_ece(table) <= 1
        assert 0 <= brier(table) <= 2
        assert table.count.sum() == table.pixels == table.class_correct.sum()


def test_renaming_classes_changes_no_figure_over_all_pixels() -> None:
    x, y = image(4)
    order = np.array([2, 0, 3, 1])
    one, other = tabulate(x, y, scope="all"), tabulate(x[order], np.argsort(order)[y], scope="all")
    for metric in METRICS.values():
        assert metric(other) == pytest.approx(metric(one), rel=1e-12)


# --- bins ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("bins", [1, 2, 10, 15, 20])
def test_a_confidence_on_an_edge_belongs_below_it_and_zero_to_the_first_bin(bins: int) -> None:
    edges = np.arange(1, bins + 1) / bins
    np.testing.assert_array_equal(bin_of(edges, bins), np.arange(bins))
    np.testing.assert_array_equal(bin_of(edges[:-1] + 1e-9, bins), np.arange(1, bins))
    assert bin_of(np.array([0.0, 1.0]), bins).tolist() == [0, bins - 1]


@few
@given(st.lists(st.floats(0, 1), min_size=1), st.integers(1, 40))
def test_every_confidence_lies_in_its_bin(confidence: list[float], bins: int) -> None:
    c = np.array(confidence)
    b = bin_of(c, bins)
    assert ((b / bins - 1e-12 <= c) & (c <= (b + 1) / bins + 1e-12)).all()


def test_bins_speak_for_themselves() -> None:
    p = np.array([[0.38, 0.3, 0.05], [0.62, 0.7, 0.95]])
    table = tabulate(p, np.array([1, 0, 1]), scope="all", of="probabilities", bins=10)
    assert np.flatnonzero(table.count).tolist() == [6, 9]  # 0.7 closes the seventh bin
    assert table.mean_confidence[[6, 9]].tolist() == pytest.approx([0.66, 0.95])
    assert table.accuracy[[6, 9]].tolist() == [0.5, 1.0]
    assert np.isnan(table.accuracy[[0, 8]]).all()
    assert table.edges[6] == pytest.approx(0.6)


# --- class sets ----------------------------------------------------------------------------------------------------


def test_the_class_set_is_fixed_whether_or_not_a_class_occurs() -> None:
    x, y = image(7)
    y = np.minimum(y, 2)  # class 3 is nowhere
    table = tabulate(x, y, scope="all")
    each = [classwise_ece(table, [k]) for k in range(4)]
    assert classwise_ece(table) == pytest.approx(np.mean(each))
    assert classwise_ece(table, background=False) == pytest.approx(np.mean(each[1:]))
    assert classwise_ece(table, [0, 1, 3], background=False) == pytest.approx(np.mean([each[1], each[3]]))
    assert each[3] == pytest.approx(softmax(x)[3].mean())


def test_class_0_on_foreground_pixels_is_its_mean_probability() -> None:
    x, y = image(7)
    assert classwise_ece(tabulate(x, y), [0]) == pytest.approx(softmax(x)[0][y > 0].mean())


# --- ACE -----------------------------------------------------------------------------------------------------------


@both_scopes
def test_ace_is_a_plain_loop_over_sorted_groups(scope: str) -> None:
    x, y = image(8)
    counted = y > 0 if scope == "foreground" else np.ones_like(y, bool)
    errors = []
    for k in range(4):
        pairs = sorted(zip(softmax(x)[k][counted], y[counted] == k, strict=True))
        bounds = np.linspace(0, len(pairs), 8).astype(int)
        for lo, hi in pairwise(bounds):
            group = np.array(pairs[lo:hi], float)
            errors.append(abs(group[:, 0].mean() - group[:, 1].mean()))
    assert ace(x, y, scope=scope, bins=7) == pytest.approx(np.mean(errors), rel=1e-12)


@few
@given(seed=seeds)
def test_ace_does_not_depend_on_the_order_of_pixels_even_with_ties(seed: int) -> None:
    g = np.random.default_rng(seed)
    p = np.round(softmax(g.normal(size=(3, 90))), 1)
    p[0] = 1 - p[1:].sum(0)
    y, turn = g.integers(0, 3, 90), g.permutation(90)
    one = ace(np.abs(p), y, scope="all", of="probabilities")
    assert ace(np.abs(p)[:, turn], y[turn], scope="all", of="probabilities") == pytest.approx(one, abs=1e-12)


def test_ace_of_fewer_pixels_than_bins_takes_one_bin_a_pixel() -> None:
    p = np.array([[0.8, 0.3], [0.2, 0.7]])
    assert ace(p, np.array([0, 1]), scope="all", of="probabilities") == pytest.approx(0.25)


def test_ace_of_chosen_classes() -> None:
    x, y = image(8)
    each = [ace(x, y, classes=[k]) for k in range(4)]
    assert ace(x, y) == pytest.approx(np.mean(each))
    assert ace(x, y, background=False) == pytest.approx(np.mean(each[1:]))


# --- scopes, masks, types ------------------------------------------------------------------------------------------


def test_the_foreground_scope_is_ignoring_the_background() -> None:
    x, y = image(1)
    same(tabulate(x, y, scope="foreground"), tabulate(x, y, y == 0, scope="all"))
    assert ace(x, y, scope="foreground") == ace(x, y, y == 0, scope="all")


@both_scopes
def test_ignored_pixels_may_hold_anything(scope: str) -> None:
    x, y = image(1)
    ignore = np.random.default_rng(3).random(y.shape) < 0.5
    odd, bad = np.where(ignore, 255, y), np.where(ignore, np.nan, x)
    same(tabulate(bad, odd, ignore, scope), tabulate(x, y, ignore, scope))
    kept = ~ignore
    same(tabulate(x, y, ignore, scope), tabulate(x[:, kept], y[kept], scope=scope))


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16, torch.float32, torch.float64])
def test_tensors_of_any_type_are_widened_first(dtype: torch.dtype) -> None:
    x, y = image(1)
    t = torch.from_numpy(x).to(dtype).requires_grad_()
    same(tabulate(t, torch.from_numpy(y).to(torch.uint8)), tabulate(t.detach().double().numpy(), y))


def test_probabilities_and_their_logits_agree() -> None:
    x, y = image(1)
    same(tabulate(softmax(x), y, of="probabilities"), tabulate(x, y))


def test_volumes_and_whole_float_labels_are_read() -> None:
    x, y = image(1, h=12, w=10)
    same(tabulate(x.reshape(4, 3, 4, 10), y.reshape(3, 4, 10).astype(float)), tabulate(x, y))


def test_of_equal_values_the_first_class_is_predicted() -> None:
    px = read_pixels(np.array([[1.0, 0.0], [1.0, 2.0], [0.0, 2.0]]), np.array([0, 0]))
    assert px.predicted.tolist() == [0, 1]


# --- merging and keeping -------------------------------------------------------------------------------------------


@both_scopes
def test_pooling_tables_is_tabulating_all_pixels_at_once(scope: str) -> None:
    images = [image(s) for s in range(3)]
    tables = [tabulate(x, y, scope=scope) for x, y in images]
    x = np.concatenate([x.reshape(4, -1) for x, _ in images], 1)
    y = np.concatenate([y.ravel() for _, y in images])
    same(Reliability.merge(tables), tabulate(x, y, scope=scope))
    same(Reliability.merge([Reliability.merge(tables[:2]), tables[2]]), Reliability.merge(tables[::-1]))
    nothing = tabulate(images[0][0], np.zeros_like(images[0][1]))
    assert nothing.pixels == 0
    same(Reliability.merge([*tables, nothing]), Reliability.merge(tables))


def test_tables_of_other_classes_or_bins_do_not_merge() -> None:
    one = tabulate(*image())
    for other in (tabulate(*image(k=3)), tabulate(*image(), bins=10)):
        with pytest.raises(ValueError, match="do not merge"):
            Reliability.merge([one, other])
    with pytest.raises(ValueError, match="no table"):
        Reliability.merge([])


def test_a_table_survives_an_npz_file() -> None:
    table = tabulate(*image())
    file = io.BytesIO()
    np.savez_compressed(file, **table.to_arrays(), note=np.array([1]))
    file.seek(0)
    with np.load(file, allow_pickle=False) as arrays:
        back = Reliability.from_arrays(arrays)
    same(back, table)
    assert (back.pixels, back.bins, back.classes) == (table.pixels, 15, 4)
    assert type(back.pixels) is int and type(back.nll_sum) is float


def test_a_table_that_does_not_add_up_is_refused() -> None:
    arrays = tabulate(*image()).to_arrays()
    with pytest.raises(ValueError, match="lacks class_correct"):
        Reliability.from_arrays({k: v for k, v in arrays.items() if k != "class_correct"})
    for name in ("count", "confidence", "class_confidence"):
        with pytest.raises(ValueError, match="do not belong together"):
            Reliability.from_arrays({**arrays, name: arrays[name][..., :-1]})
    with pytest.raises(ValueError, match="do not belong together"):
        Reliability.from_arrays({**arrays, "pixels": arrays["pixels"] + 1})


# --- per image -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", sorted(METRICS))
def test_images_without_foreground_are_left_out_and_counted(name: str) -> None:
    tables = [tabulate(x, y * (s != 1)) for s, (x, y) in enumerate(image(s) for s in range(4))]
    metric = METRICS[name]
    got = per_image(tables, metric)
    each = [metric(tables[i]) for i in (0, 2, 3)]
    assert (got.n, got.n_empty) == (3, 1)
    assert got.values[[0, 2, 3]].tolist() == each
    assert np.isnan(got.values[1])
    assert got.mean == pytest.approx(np.mean(each))
    assert got.sd == pytest.approx(np.std(each, ddof=1))


def test_per_image_is_not_pooled() -> None:
    small, large = tabulate(*image(0, h=3, w=3)), tabulate(*image(1, h=50, w=50))
    pooled, mean = ece(Reliability.merge([small, large])), per_image([small, large]).mean
    assert abs(pooled - ece(large)) < 0.02
    assert abs(pooled - mean) > 0.02
    assert math.isnan(per_image([small]).sd)


def test_when_everything_is_empty_a_sentence_says_so() -> None:
    x, y = image()
    empty = tabulate(x, np.zeros_like(y))
    for ask in (
        *(lambda m=m: m(empty) for m in METRICS.values()),
        lambda: per_image([empty, empty]),
        lambda: per_image([]),
        lambda: ace(x, np.zeros_like(y)),
        lambda: empty.overall_accuracy,
    ):
        with pytest.raises(ValueError, match="No pixel is in the scope.*Bring an image with foreground"):
            ask()
    assert np.isnan(empty.accuracy).all()
    assert tabulate(x, y, np.ones_like(y, bool), scope="all").pixels == 0


# --- bad input -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("label", [-1, 4, 255])
def test_labels_outside_the_classes_are_refused_with_their_place(label: int) -> None:
    x, y = image()
    y[5, 7] = label
    with pytest.raises(
        ValueError, match=rf"Label {label} at pixel \(5, 7\) is outside the 4 classes.*`ignore`"
    ):
        tabulate(x, y)


@pytest.mark.parametrize("value", [float("nan"), float("inf"), float("-inf")])
def test_values_that_are_not_finite_are_refused_with_their_place(value: float) -> None:
    x, y = image()
    y[5, 7] = 0  # outside the scope, and still worth a word
    x[2, 5, 7] = value
    ignore = np.zeros_like(y, bool)
    ignore[0, :5] = True  # the place is the image's own
    with pytest.raises(ValueError, match=r"NaN or infinity at 1 pixel, the first at pixel \(5, 7\)"):
        tabulate(x, y, ignore)


def test_probabilities_that_are_none_are_refused() -> None:
    x, y = image()
    with pytest.raises(ValueError, match=r"lie in \[0, 1\].*say so: of='logits'"):
        tabulate(x, y, of="probabilities")
    p = softmax(x)
    p[:, 2, 3] *= 0.9
    with pytest.raises(ValueError, match=r"at pixel \(2, 3\) they sum to 0.9, and 1 pixel in all"):
        tabulate(p, y, of="probabilities")
    p = softmax(x)
    p[1, 2, 3] = np.nan
    with pytest.raises(ValueError, match=r"The probabilities hold NaN"):
        tabulate(p, y, of="probabilities")
    with pytest.raises(ValueError, match="never|'logits' or 'probabilities'"):
        tabulate(p, y, of="odds")


def test_probabilities_in_half_precision_or_eight_bits_pass() -> None:
    x, y = image()
    exact = ece(tabulate(x, y))
    for rounded in (softmax(x).astype(np.float16), np.round(softmax(x) * 255) / 255):
        assert ece(tabulate(rounded, y, of="probabilities")) == pytest.approx(exact, abs=0.05)


def test_shapes_that_do_not_fit_are_refused() -> None:
    x, y = image()
    with pytest.raises(ValueError, match=r"need labels of shape \(17, 13\); these are \(17, 12\)"):
        tabulate(x, y[:, :12])
    for many in (x[None], np.stack([x, x])):
        with pytest.raises(ValueError, match="one image at a time"):
            tabulate(many, y)
    with pytest.raises(ValueError, match=r"stack \(1 - p, p\)"):
        tabulate(x[:1], y)
    with pytest.raises(ValueError, match=r"mask must be bool of shape \(17, 13\)"):
        tabulate(x, y, np.zeros_like(y))
    with pytest.raises(ValueError, match="must be whole"):
        tabulate(x, y + 0.5)


def test_words_and_numbers_that_do_not_exist_are_refused() -> None:
    x, y = image()
    with pytest.raises(ValueError, match="'foreground'.*'all'"):
        tabulate(x, y, scope="lesion")
    with pytest.raises(ValueError, match="at least one bin"):
        tabulate(x, y, bins=0)
    for classes in ([4], [-1], []):
        with pytest.raises(ValueError, match="must be some of 0 to 3"):
            classwise_ece(tabulate(x, y), classes)
