"""Live adaptation: pictures that can and cannot be used, what a run leaves, the objective over λ, and what is said of both."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import pytest
import torch

from core.data.folders import DataAbsent
from core.lab import sparse_look
from core.lab.jobs import Stopped
from core.lab.sparse_here import DEEP, WAYS, start, watch
from core.lab.sparse_here_words import watched_words
from core.lab.sparse_images import Pictures, cifar, crops_of, phantoms, polyps, upload
from core.lab.sparse_look import back, into, looks
from core.settings.tacsc import AdaptSettings
from core.tacsc.adapt import adapt
from core.tacsc.layer import sparse_layers
from tests.lab import made_sparse as made

QUICK = AdaptSettings(steps=3)


@pytest.fixture(scope="module")
def net() -> torch.nn.Module:
    return made.network()


@pytest.fixture(scope="module")
def crops() -> Pictures:
    return upload(made.photo(), 16)


# pictures ----------------------------------------------------------------------


def test_crops_are_parts_of_the_image_and_the_same_again() -> None:
    rgb = made.photo()
    cut = crops_of(rgb, 6, np.random.default_rng(3))
    assert cut.shape == (6, 32, 32, 3) and cut.dtype == np.uint8
    windows = np.lib.stride_tricks.sliding_window_view(rgb, (32, 32), (0, 1)).transpose(0, 1, 3, 4, 2)
    for k, one in enumerate(cut):
        assert (windows == (one[:, ::-1] if k % 2 else one)).all((2, 3, 4)).any()
    assert np.array_equal(cut, crops_of(rgb.astype(np.float64), 6, np.random.default_rng(3)))
    assert not np.array_equal(cut, crops_of(rgb, 6, np.random.default_rng(4)))


@pytest.mark.parametrize(
    ("rgb", "says"),
    [
        (made.photo(31, 80), "80 × 31 pixels, and crops have 32 × 32"),
        (made.photo(2, 2), "at least 32 pixels"),
        (np.full((50, 50, 3), 7, np.uint8), "one flat colour"),
        (
            np.where(np.arange(50)[:, None, None] == 3, np.nan, made.photo(50, 50)),
            "50 pixels hold values that are no numbers",
        ),
        (made.photo(50, 50) * 2.0, "must lie in 0 to 255"),
        (made.photo(50, 50).astype(np.int32), "Images in 8 bits are wanted, not in int32"),
        (made.photo(50, 50)[..., 0], "Images in colour"),
    ],
)
def test_what_cannot_be_cut_is_refused_in_a_sentence(rgb: np.ndarray, says: str) -> None:
    for cut in (lambda: crops_of(rgb, 8, np.random.default_rng(0)), lambda: upload(rgb, 8)):
        with pytest.raises(ValueError, match=says):
            cut()


def test_an_upload_is_scaled_down_and_says_that_crops_are_no_images() -> None:
    big = upload(made.photo(300, 400), 8, name="scan.png")
    assert big.whole is not None and big.whole.shape == (96, 128, 3)
    assert big.words.startswith(
        "scan.png, scaled to 128 × 96, as 8 crops of 32 × 32 pixels: one image alone is one draw"
    )
    thin = upload(made.photo(40, 500), 8)
    assert thin.whole is not None and min(thin.whole.shape[:2]) == 32
    small = upload(made.photo(33, 33), 50)
    assert "nearly the same" in small.words and "scaled" not in small.words
    assert upload(made.photo(300, 400), 4, side=96).images.shape == (4, 96, 96, 3)
    with pytest.raises(ValueError, match="between 2 and 100"):
        upload(made.photo(), 1)


def test_drawn_pictures_and_folders_that_are_not_there(tmp_path) -> None:
    few = phantoms(3, 1, 32)
    assert few.images.shape == (3, 32, 32, 3) and few.masks is not None and few.masks.any((1, 2)).all()
    assert np.array_equal(few.images, phantoms(3, 1, 32).images) and not np.array_equal(
        few.images, phantoms(3, 2, 32).images
    )
    assert len(few.first(2).images) == 2 and len(few.first(2).masks) == 2  # type: ignore[arg-type]
    with pytest.raises(DataAbsent, match=r"cifar10\.tar\.xz"):
        cifar(tmp_path)
    with pytest.raises(DataAbsent, match="images"):
        polyps(tmp_path)


# a live run --------------------------------------------------------------------


def test_a_run_follows_the_damage_and_answers_before_and_after(net: torch.nn.Module, crops: Pictures) -> None:
    before = {k: v.clone() for k, v in net.state_dict().items()}
    heard: list[tuple[int, int]] = []
    run = watch(
        net, crops, "gaussian_noise", 3, QUICK, 1, lambda done, total, facts: heard.append((done, total))
    )
    assert all(torch.equal(v, before[k]) for k, v in net.state_dict().items())
    assert heard == [(k, 9) for k in range(1, 10)]
    assert (run.seen, len(run.clean), len(run.damaged)) == (12, 16, 16) and run.names == ("first layer",)
    oracle = adapt(net, into(run.damaged[:12], False), replace(QUICK, what="lambda"))
    assert run.threshold == pytest.approx(oracle.threshold.numpy()) and run.objective == pytest.approx(
        oracle.objective.numpy()
    )
    assert set(run.answers) == set(WAYS) and run.answers["clean"].same == 1
    for answer in run.answers.values():
        assert answer.probabilities is not None and answer.probabilities.shape == (4, 10)
        assert answer.probabilities.sum(1) == pytest.approx(1) and math.isnan(answer.right)
    (name, share), *_ = run.answers["none"].top(0)
    assert (
        share == pytest.approx(run.answers["none"].probabilities[0].max())
        and name in sparse_look.CIFAR_CLASSES
    )  # type: ignore[index]
    assert run.answers["none"].mask(0) is None
    again = watch(net, crops, "gaussian_noise", 3, QUICK, 1)
    assert np.array_equal(again.damaged, run.damaged) and np.array_equal(again.threshold, run.threshold)
    assert np.array_equal(again.answers["both"].probabilities, run.answers["both"].probabilities)  # type: ignore[arg-type]


def test_looks_hold_what_the_layer_saw_and_made_of_it(net: torch.nn.Module, crops: Pictures) -> None:
    run = watch(net, crops, "fog", 5, QUICK)
    assert np.array_equal(run.before.images, run.damaged[np.r_[12:16, 0:4]]) and np.array_equal(
        run.untouched.images, run.clean[np.r_[12:16, 0:4]]
    )
    assert run.before.codes.shape == (8, 4, 32, 32) and run.before.threshold == pytest.approx(
        run.threshold[0, 0]
    )
    assert run.after.threshold == pytest.approx(run.threshold[-1, 0])
    assert run.before.sparsity == pytest.approx((run.before.codes == 0).reshape(8, -1).mean(1))
    layer = next(iter(sparse_layers(net).values()))
    again = layer.reconstruct(torch.from_numpy(run.before.codes), into(run.before.images, False))
    assert np.array_equal(back(again, False), run.before.reconstruction)
    x = into(run.before.images, False)
    assert run.before.error == pytest.approx(
        ((x - again) ** 2).flatten(1).sum(1).numpy() / (x**2).flatten(1).sum(1).numpy(), rel=1e-4
    )
    for segments in (False, True):
        assert np.array_equal(back(into(run.clean, segments), segments), run.clean)


def test_six_severities_for_the_first_screen(net: torch.nn.Module, crops: Pictures) -> None:
    lam = np.array([0.1, 0.2, np.nan, 0.4, 0.5, 0.6])
    six = looks(net, crops.images[:2], "gaussian_noise", lam, 3)
    assert [a.severity for a, _ in six] == list(range(6)) and np.array_equal(
        six[0][0].images, crops.images[:2]
    )
    assert [b.threshold for _, b in six] == pytest.approx([0.1, 0.2, six[2][0].threshold, 0.4, 0.5, 0.6])
    for a, b in six:
        assert np.array_equal(a.images, b.images)
        assert (b.sparsity >= a.sparsity - 1e-6).all() if b.threshold >= a.threshold else True
    with pytest.raises(ValueError, match="no sparse layer"):
        looks(made.network("resnet"), crops.images[:1], "fog")


def test_clean_pictures_classes_and_many_layers(crops: Pictures) -> None:
    deep = made.network("tacsc_all")
    many = replace(crops, images=np.tile(crops.images, (5, 1, 1, 1)), labels=np.zeros(80, np.int64))
    run = watch(deep, many, "clean", 4, AdaptSettings(steps=1))
    assert run.severity == 0 and np.array_equal(run.clean, run.damaged) and len(run.clean) == DEEP
    assert run.threshold.shape == (2, 17) and len(run.names) == 17
    said = run.answers["clean"].probabilities
    assert said is not None and run.answers["none"].right == pytest.approx(
        float((said.argmax(1) == 0).mean())
    )
    words = " ".join(watched_words(run))
    assert (
        words.startswith("On clean pictures λ of 17 layers goes to")
        and "Nothing was damaged, and still" in words
    )
    assert "Right classes on the 16 pictures held back" in words and "ten kinds" not in words


def test_a_unet_answers_with_masks() -> None:
    unet, drawn = made.unet(), phantoms(8, 0, 32)
    run = watch(unet, drawn, "speckle_noise", 2, QUICK)
    assert run.segments and run.masks is not None and run.masks.shape == (2, 32, 32)
    answer = run.answers["both"]
    assert answer.scores is not None and answer.scores.shape == (2, 32, 32) and 0 <= answer.right <= 1
    assert answer.top(0) == [] and np.array_equal(answer.mask(1), answer.scores[1] > 0)
    assert any("Dice with the true masks on the 2 pictures held back" in s for s in watched_words(run))
    moved = watch(unet, drawn, "elastic", 2, QUICK)
    assert (
        math.isnan(moved.answers["none"].right) and math.isfinite(moved.answers["none"].same)
    ) or not moved.answers["clean"].scores.any()  # type: ignore[union-attr]
    assert any("Elastic warp moves pixels" in s for s in watched_words(moved))
    with pytest.raises(ValueError, match="multiples of 16"):
        watch(unet, made.photo(40, 40)[None].repeat(4, 0), "fog", 1)


def test_what_cannot_be_adapted_on_is_said(
    net: torch.nn.Module, crops: Pictures, monkeypatch: pytest.MonkeyPatch, tmp_path
) -> None:
    with pytest.raises(ValueError, match="1 picture cannot be adapted on.*Cut crops"):
        watch(net, crops.images[:1], "fog", 1)
    with pytest.raises(ValueError, match=r"come as \(N, S, S, 3\)"):
        watch(net, made.photo(), "fog", 1)
    with pytest.raises(ValueError, match="too small"):
        watch(net, crops.images[:, :8, :8], "fog", 1)
    with pytest.raises(ValueError, match="flat colour"):
        watch(net, np.full((4, 32, 32, 3), 9, np.uint8), "clean", 0)
    with pytest.raises(ValueError, match="no numbers"):
        watch(net, np.full((4, 32, 32, 3), np.nan), "fog", 1)
    with pytest.raises(ValueError, match="no sparse layer"):
        watch(made.network("resnet"), crops, "fog", 1)
    with pytest.raises(ValueError, match="not known"):
        watch(net, crops, "rain", 1)
    with pytest.raises(FileNotFoundError, match="python -m core sparse"):
        watch("no-such-network", crops, "fog", 1)


def test_the_runner_shares_equal_runs_and_keeps_visitors_apart(
    net: torch.nn.Module, crops: Pictures, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sparse_look, "network", lambda key: net)
    first = start("tacsc-k2", crops, "fog", 2, QUICK)
    other = start("tacsc-k2", replace(crops, words="said otherwise"), "fog", 2, QUICK)
    assert other.key == first.key and first.result(60) is other.result(60)
    keys = {
        start("tacsc-k2", crops, "fog", 2, QUICK, owner="somebody").key,
        start("tacsc-k2", crops, "fog", 3, QUICK).key,
        start("tacsc-k2", crops.first(15), "fog", 2, QUICK).key,
    }
    assert len(keys | {first.key}) == 4


def test_a_run_can_be_stopped(net: torch.nn.Module, crops: Pictures) -> None:
    def stop(done: int, total: int, facts: object) -> None:
        if done == 2:
            raise Stopped

    with pytest.raises(Stopped):
        watch(net, crops, "fog", 2, QUICK, 0, stop)


def test_words_name_guards(net: torch.nn.Module, crops: Pictures) -> None:
    run = watch(net, crops, "gaussian_noise", 3, QUICK)
    said = watched_words(run)
    assert said[0].startswith("On Gaussian noise at severity 3 λ goes from ")
    assert "In 3 steps on 12 pictures without labels" in said[1] and "ten kinds of things" in said[-1]
    assert "still moving when the 3 steps ended" in said[2]
    rests = replace(run, threshold=np.array([[0.1], [0.2], [0.21], [0.211]]))
    assert (
        "still moving" not in " ".join(watched_words(rests)) and "wants λ = 0.21" in watched_words(rests)[0]
    )
    held = replace(run, stopped={f"layer {k}": "its error rose to 0.61" for k in range(5)})
    words = " ".join(watched_words(held))
    assert (
        "A guard stopped λ of the layer 0: its error rose to 0.61." in words
        and "Guards stopped 2 more layers" in words
    )
