"""Ablation, samples, plane, shift, coverage under shift and montages of codes: the given values, the words, and holes."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from core.figures.palette import DASHES
from core.figures.sparse_ablation import ablation
from core.figures.sparse_codes import BETWEEN, montage
from core.figures.sparse_coverage import coverage_lines
from core.figures.sparse_look import AFTER, BEFORE
from core.figures.sparse_plane import plane
from core.figures.sparse_samples import samples
from core.figures.sparse_shift import shift_roc, shift_strip
from core.figures.sparse_sweep import lambda_sweep
from core.figures.temperature_frame import description, sentence_of
from core.images.display import to_display

NAN = float("nan")
GROUPS = ("four noises", "blurs", "clean")
OWN = {
    "none": [0.65, 0.72, 0.89],
    "bn": [0.78, 0.80, 0.885],
    "lambda": [0.68, NAN, 0.888],
    "both": [0.81, 0.79, 0.884],
}
RESNET = {"none": [0.60, 0.73, 0.90], "bn": [0.77, 0.81, 0.895]}
COUNTS = {"none": [0.65], "bn": [0.74, 0.78, 0.80], "lambda": [0.675, 0.68, 0.68], "both": [0.77, 0.81, 0.82]}
BY_K = {"none": [0.65, 0.66, 0.70], "bn": [0.78, 0.79, 0.80], "both": [0.81, 0.78, NAN]}
LAYERS = [f"layer {k}" for k in range(6)]
EPOCHS = list(range(1, 13))
ZEROS = 0.2 + np.linspace(0, 0.5, 12)[:, None] * np.linspace(0.2, 1, 6)
REST = 0.3 - np.linspace(0, 0.2, 12)[:, None] * np.linspace(1, 0.2, 6)
RATES = np.linspace(0, 1, 50)
CURVES = {"fog": (RATES, RATES**0.3), "gaussian noise": (RATES, RATES**0.05)}
AREAS = {"fog": 1 / 1.3, "gaussian noise": 1 / 1.05}
FAMILIES = {"fog": "weather", "gaussian noise": "noise"}
CLEAN = np.exp(np.linspace(-1, 0.7, 40))
SHIFTED = {"gaussian noise": CLEAN * 30, "fog": CLEAN * 1.2}
BEFORE_SETS = {
    "CRC": np.array([[0.9, 0.7, 0.5], [0.2, 0.18, 0.12]]),
    "COAT": np.array([[0.9, 0.8, 0.6], [0.22, 0.2, 0.16]]),
}
AFTER_SETS = {m: np.clip(v + np.array([[0.1], [0.02]]), 0, 1) for m, v in BEFORE_SETS.items()}

FACTORS = (0.5, 1.0, 2.0, 4.0)
STORED = {"clean": [0.8, 0.82, 0.7, 0.3], "severity 3": [0.5, 0.6, 0.66, 0.4]}
REFRESHED = {"clean": [0.8, 0.81, 0.72, 0.5], "severity 3": [0.68, 0.72, 0.71, 0.6]}

EVERY = {
    "sweep": lambda: lambda_sweep(
        FACTORS, STORED, REFRESHED, adapted={"clean": 2.0, "severity 3": 4.0}, lead="severity 3"
    ),
    "ablation": lambda: ablation(GROUPS, OWN, resnet=RESNET),
    "samples": lambda: samples([50, 100, 500], COUNTS, [2, 4, 8], BY_K),
    "plane": lambda: plane(
        LAYERS, EPOCHS, ZEROS, REST, accuracy=np.linspace(0.4, 0.93, 12), threshold=0.1 + ZEROS
    ),
    "roc": lambda: shift_roc(CURVES, AREAS, families=FAMILIES),
    "strip": lambda: shift_strip(CLEAN, SHIFTED, limit=2.2, families=FAMILIES, here=8.5),
    "coverage": lambda: coverage_lines(
        [0, 3, 5], BEFORE_SETS, AFTER_SETS, target=0.9, dice=([0.8, 0.7, 0.5], [0.79, 0.75, 0.65])
    ),
}


def named(figure: Any, name: str) -> Any:
    return next(t for t in figure.data if t.name == name)


@pytest.mark.parametrize("name", EVERY)
def test_every_chart_has_alt_text_in_sentences_and_no_background_of_its_own(name: str):
    figure = EVERY[name]()
    said = description(figure)
    assert said.endswith(".") and len(said) > 100 and "nan" not in said.lower()
    assert sentence_of(figure).endswith(".") and any(c.isdigit() for c in sentence_of(figure))
    assert figure.layout.paper_bgcolor == figure.layout.plot_bgcolor == "rgba(0,0,0,0)"
    assert not figure.layout.font.color and len(figure.to_json()) < 120_000


def test_the_ablation_shows_all_six_ways_and_says_how_much_bn_alone_explains():
    figure = EVERY["ablation"]()
    assert named(figure, "TA-CSC-18, BN and λ").x == pytest.approx((81, 79, 88.4))
    assert named(figure, "TA-CSC-18, λ alone").x[1] is None and named(
        figure, "ResNet-18, BN alone"
    ).x == pytest.approx((77, 81, 89.5))
    looks = {(t.marker.color, t.marker.symbol) for t in figure.data if t.mode == "markers"}
    assert len(looks) == 6 and (BEFORE, "circle-open") in looks and (AFTER, "circle") in looks
    said = sentence_of(figure).replace("\u00a0", " ")
    assert said.startswith("Four noises: TA-CSC-18 goes from 65.0 % to 78.0 % with BN alone (+13.0 points)")
    assert "λ adds +3.0 points to BN" in said and "ResNet-18 goes from 60.0 % to 77.0 % with BN alone" in said
    falls = sentence_of(ablation(GROUPS, OWN, resnet=RESNET, lead=1)).replace("\u00a0", " ")
    assert "λ adds −1.0 points" in falls and "nan" not in falls and "λ alone" not in falls
    assert "blurs: no adaptation 72.0 %, BN alone 80.0 %, λ alone unknown" in description(figure).replace(
        "\u00a0", " "
    )


def test_an_ablation_without_lambda_or_without_numbers_still_speaks():
    plain = ablation(
        ["all"], {"none": [0.6], "bn": [0.7]}, resnet=RESNET | {"none": [0.5], "bn": [0.6]}, network="fixed λ"
    )
    assert "fixed λ goes from 60.0" in sentence_of(plain) and "λ adds" not in sentence_of(plain)
    empty = ablation(["all"], {"none": [NAN], "bn": [NAN]}, resnet={"none": [NAN], "bn": [NAN]})
    assert "not measured" in sentence_of(empty) and empty.layout.xaxis.range == (0, 100)


def test_the_sweep_says_what_labels_would_have_won_and_where_adaptation_went():
    figure = EVERY["sweep"]()
    said = sentence_of(figure).replace("\u00a0", " ")
    assert "would be 2.0 times the trained λ (6.0 points above it)" in said
    assert "adaptation without labels goes to 4.0 times it (20.0 points below)" in said
    assert "BN alone brings +12.0 points" in said and "at 1.0 times the trained one, +0.0 points more" in said
    stars = [t for t in figure.data if t.marker.symbol == "star"]
    assert [tuple(t.x) for t in stars] == [(1.0, 2.0), (1.0, 1.0)] and tuple(stars[0].y) == pytest.approx(
        (82, 66)
    )
    went = [t for t in figure.data if t.name == "λ that adaptation chose"]
    assert tuple(went[1].x) == (2.0, 4.0) and tuple(went[1].y) == pytest.approx((72, 60))


def test_a_sweep_without_adaptation_or_with_unlike_panels():
    plain = lambda_sweep(FACTORS, STORED, REFRESHED, adapted={"clean": NAN})
    assert "adaptation" not in sentence_of(plain) and len(plain.data) == 6
    far = lambda_sweep(FACTORS, STORED, REFRESHED, adapted={"severity 3": 9.0})
    assert "adaptation" not in sentence_of(far) and "nan" not in description(far)
    with pytest.raises(ValueError, match="same conditions"):
        lambda_sweep(FACTORS, STORED, {"clean": REFRESHED["clean"]})
    with pytest.raises(ValueError, match="not among"):
        lambda_sweep(FACTORS, STORED, REFRESHED, lead="severity 9")
    with pytest.raises(ValueError, match="must be numbers that rise"):
        lambda_sweep((1.0, 1.0, 2.0, 4.0), STORED, REFRESHED)


def test_samples_and_k_have_a_panel_each_and_an_empty_one_is_left_out():
    figure = EVERY["samples"]()
    both = [t for t in figure.data if t.name == "BN and λ"]
    assert (
        both[0].y == pytest.approx((77, 81, 82))
        and both[1].y[:2] == pytest.approx((81, 78))
        and both[1].y[2] is None
    )
    assert named(figure, "no adaptation").y == pytest.approx((65, 65, 65))
    assert [t.showlegend for t in both] == [True, False] and figure.layout.xaxis.ticktext == (
        "50",
        "100",
        "500",
    )
    said = sentence_of(figure).replace("\u00a0", " ")
    assert (
        said
        == "Under the four noises, 50 images give 77.0 % with BN and λ; 500 give 5.0 points more. With K = 2 it is 81.0 %, with K = 4 78.0 %."
    )
    alone = samples([], {}, [2, 4, 8], BY_K, compact=True)
    assert [a.text for a in alone.layout.annotations] == ["by K, steps of FISTA"]
    less = samples([50, 100], {"none": [0.5], "bn": [0.7, 0.6]}, [], {})
    assert "10.0 points less" in sentence_of(less) and "with BN alone" in sentence_of(less)


def test_dots_of_the_plane_move_and_grow_with_accuracy():
    figure = EVERY["plane"]()
    assert len(figure.frames) == 12 and len(figure.frames[3].traces) == 6
    first, last = (figure.frames[k].data[5] for k in (0, 11))
    assert (last.x[-1], last.y[-1]) == pytest.approx((70, 26)) and len(first.x) == 1 and len(last.x) == 12
    assert last.marker.size[-1] > first.marker.size[0] and set(last.marker.size[:-1]) == {0}
    assert figure.layout.sliders[0].steps[11].label.replace("\u00a0", " ") == "12, accuracy 93 %"
    assert "λ = 0.80" in last.text[-1] and "analogy and no proof" in description(figure)
    said = sentence_of(figure).replace("\u00a0", " ")
    assert (
        said.startswith("After epoch 12 the 6 layers throw away 50.0 % of their codes and leave 18.0 %")
        and "93.0 % right" in said
    )
    early = plane(LAYERS, EPOCHS, ZEROS, REST, at=1)
    assert early.layout.sliders[0].active == 0 and "After epoch 1 " in sentence_of(early)
    single = plane(["first layer"], [1], [[NAN]], [[0.2]])
    assert not single.frames and "nothing was measured" in sentence_of(single)


def test_roc_curves_carry_their_family_s_look_and_the_words_name_the_hardest():
    figure = EVERY["roc"]()
    lines = {t.hovertemplate.split(":")[0]: t for t in figure.data if t.hovertemplate}
    assert (
        np.array(lines["fog"].y) == pytest.approx(100 * RATES**0.3, abs=0.01)
        and lines["fog"].name == "weather"
    )
    assert (
        lines["fog"].line.dash != lines["gaussian noise"].line.dash
        and lines["fog"].line.color != lines["gaussian noise"].line.color
    )
    assert "0.77 for weather and 0.95 for noise; the hardest is fog with 0.77" in sentence_of(figure)
    assert "16 images at a time" in sentence_of(figure) and "fog 0.769; gaussian noise 0.952" in description(
        figure
    )
    bare = shift_roc({"fog": CURVES["fog"]}, {"fog": NAN}, images=1)
    assert sentence_of(
        bare
    ) == "The area under the curve is not known." and "1 image at a time" in description(bare)


def test_the_strip_counts_what_lies_above_the_limit():
    figure = EVERY["strip"]()
    above = [float((v > 2.2).mean()) for v in (CLEAN, SHIFTED["gaussian noise"], SHIFTED["fog"])]
    assert figure.layout.yaxis.ticktext == tuple(
        f"{n}, {100 * a:.0f}\u00a0% above" for n, a in zip(("clean", *SHIFTED), above, strict=True)
    )
    assert [s.x0 for s in figure.layout.shapes] == [2.2, 8.5]
    noise = next(
        t for t in figure.data if t.hovertemplate and t.hovertemplate.startswith("gaussian noise: score")
    )
    assert (
        np.array(noise.x) == pytest.approx(SHIFTED["gaussian noise"], rel=1e-3)
        and max(abs(y - 1) for y in noise.y) < 0.3
    )
    assert (
        f"and {50 * (above[1] + above[2]):.1f}\u00a0% of the shifted ones. These images score 8.5, above it."
        in sentence_of(figure)
    )
    empty = shift_strip([1.0, 0.0], {"fog": []})
    assert (
        "none" in description(empty)
        and "shifted" not in sentence_of(empty)
        and len(empty.data[2].x or ()) == 0
    )


def test_coverage_has_colour_for_time_dash_for_method_and_the_target():
    figure = EVERY["coverage"]()
    line = named(figure, "COAT, after")
    assert line.y == pytest.approx((100, 90, 70)) and line.line.color == AFTER and line.line.dash == "solid"
    crc = named(figure, "CRC, before")
    assert (
        crc.y == pytest.approx((90, 70, 50))
        and crc.line.color == BEFORE
        and crc.line.dash == ",".join(f"{p}px" for p in DASHES["CRC"])
    )
    assert [s.y0 for s in figure.layout.shapes] == [90.0] and "xaxis3" in figure.layout.to_plotly_json()
    said = sentence_of(figure).replace("\u00a0", " ")
    assert (
        said
        == "Coverage at severity 5, before and after adaptation: CRC 50.0 % before and 60.0 % after; COAT 60.0 % before and 70.0 % after. "
        "On clean images: CRC 90.0 % before and 100.0 % after; COAT 90.0 % before and 100.0 % after. Promised are 90 %, for images without shift."
    )
    assert "Dice after: 79.0" in description(figure)
    alone = coverage_lines(
        [0, 5], {"CRC": np.array([[0.9, NAN], [0.2, NAN]])}, target=0.9, corruption="fog", compact=True
    )
    assert (
        "xaxis3" not in alone.layout.to_plotly_json()
        and sentence_of(alone) == "Coverage at severity 5 was not measured."
    )
    assert named(alone, "CRC, before").y[1] is None


@pytest.mark.parametrize(
    ("make", "words"),
    [
        (lambda: ablation(GROUPS, {"none": OWN["none"]}, resnet=RESNET), "bn is missing"),
        (lambda: ablation(GROUPS, OWN, resnet={"bn": RESNET["bn"]}), "none is missing"),
        (lambda: ablation(GROUPS, OWN | {"all": OWN["bn"]}, resnet=RESNET), "not all"),
        (lambda: ablation(GROUPS, OWN | {"bn": [65, 70, 80]}, resnet=RESNET), "shares from 0 to 1"),
        (lambda: ablation([], {"none": [], "bn": []}, resnet=RESNET), "needs a group"),
        (lambda: ablation(GROUPS, OWN, resnet=RESNET, lead=3), "needs a group"),
        (lambda: samples([], {}, [], {}), "neither"),
        (lambda: samples([100, 50, 500], COUNTS, [], {}), "rise"),
        (lambda: samples([50, 100], COUNTS, [], {}), "shape"),
        (lambda: plane(LAYERS, [], np.zeros((0, 6)), np.zeros((0, 6))), "at least one"),
        (lambda: plane(LAYERS, EPOCHS, ZEROS, REST, at=40), "not among"),
        (lambda: shift_roc({}, {}), "no ROC"),
        (lambda: shift_roc({"fog": (RATES, RATES[:4])}, {}), "shape"),
        (lambda: shift_strip([], SHIFTED), "clean batches"),
        (lambda: shift_strip(CLEAN, {"fog": [-1.0]}), "numbers from 0 up"),
        (lambda: coverage_lines([0, 5], BEFORE_SETS, target=0.9), "shape"),
        (lambda: coverage_lines([0, 3, 5], {"mine": BEFORE_SETS["CRC"]}, target=0.9), "mine"),
        (lambda: montage(np.zeros((4, 4))), "atoms, height, width"),
        (lambda: montage(np.zeros((0, 4, 4))), "atoms, height, width"),
        (lambda: montage(np.zeros((2, 4, 4)), order=np.array([2])), "from 0 to 1"),
    ],
)  # fmt: skip
def test_what_cannot_be_is_refused(make: Any, words: str):
    with pytest.raises(ValueError, match=words):
        make()


@given(
    st.integers(1, 20),
    st.integers(1, 7),
    st.integers(1, 7),
    st.integers(0, 5),
    st.integers(0, 2),
    st.integers(1, 3),
    st.integers(0, 99),
)
def test_every_map_stands_in_the_montage_with_its_signs(
    a: int, h: int, w: int, columns: int, gap: int, enlarge: int, seed: int
):
    rng = np.random.default_rng(seed)
    codes = np.round(rng.normal(size=(a, h, w)) * (rng.random((a, h, w)) > 0.5), 2)
    found = montage(codes, columns=columns, gap=gap, enlarge=enlarge, top=1.0)
    across = (found.picture.shape[1] + gap) // (w * enlarge + gap)
    energies = np.square(codes).sum((1, 2))
    assert sorted(found.order) == list(range(a)) and (np.diff(energies[found.order]) <= 1e-12).all()
    for k, atom in enumerate(found.order):
        y, x = (k // across) * (h * enlarge + gap), (k % across) * (w * enlarge + gap)
        cell = found.picture[y : y + h * enlarge : enlarge, x : x + w * enlarge : enlarge].astype(int)
        assert ((cell.sum(-1) > 0) == (np.abs(codes[atom]) > 1e-4)).all()
        assert (cell[..., 2] >= cell[..., 0])[codes[atom] > 0].all() and (cell[..., 0] >= cell[..., 2])[
            codes[atom] < 0
        ].all()
    if gap and across > 1:
        assert (found.picture[: h * enlarge, w * enlarge] == BETWEEN).all()
    assert np.array_equal(to_display(found.picture), found.picture)


def test_two_montages_compare_through_one_order_and_one_brightness_and_nothing_is_black():
    codes = np.zeros((4, 3, 3))
    codes[2, 0, 0], codes[1, 1, 1] = -4.0, 2.0
    first = montage(codes, most=2, columns=2)
    assert first.order.tolist() == [2, 1] and first.energy == pytest.approx([0.8, 0.2])
    assert "2 maps of codes in 1 row, of 4 atoms. 94.4\u00a0% of all codes are zero" in first.description
    second = montage(codes / 2, most=2, columns=2, order=first.order, top=first.top)
    assert (
        second.top == first.top
        and second.picture.max() < first.picture.max()
        and second.order.tolist() == [2, 1]
    )
    empty = montage(np.full((2, 3, 3), NAN))
    assert (
        set(np.unique(empty.picture)) <= {0, BETWEEN}
        and "100.0" in empty.description
        and "energy" not in empty.description
    )
