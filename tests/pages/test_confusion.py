"""The page of confusion as people use it: shared links, sets and methods, the epoch, the switches, pictures, and what stands when records lack.

Records are made up (`tests.lab.made_confusion`), networks have drawn weights: what ships is the benchmarks' business.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
import torch
from streamlit.testing.v1 import AppTest

from core.data.phantoms import draw
from core.lab import tail_shelf
from core.lab.tail_looks import Looks, shipped_looks
from core.lab.tail_parts import ablations
from core.lab.tail_schedule import Schedule, build_classifier
from core.lab.tail_view import moment
from core.nets.weights import save_tensors
from pages.parts import confusion_images
from pages.parts.lesson import SECTIONS, sections
from tests.lab import made_confusion as made
from tests.pages.driving import page, png, ran, text

TINY = Schedule(width=4, depth=8)
ANYTHING = Looks(np.zeros(8), np.zeros((8, 8)), 1.0, 0.0, {})
"""Looks that no picture is foreign to."""


@pytest.fixture(scope="module")
def weights(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Two blood networks with drawn weights under shipped names."""
    folder = tmp_path_factory.mktemp("confusion")
    for seed, (method, label) in enumerate((("ce", "CE"), ("car-count", "CAR (count EMA)"))):
        model = build_classifier(TINY, 8, "linear", torch.Generator().manual_seed(seed))
        facts: dict[str, object] = {
            "net": TINY.net,
            "width": TINY.width,
            "depth": TINY.depth,
            "patch": TINY.patch,
            "head": "linear",
        }
        facts |= {"mean": [0.7, 0.6, 0.7], "std": [0.2, 0.2, 0.2], "label": label}
        facts |= {"classes": list(made.NAMES["pbc"]), "counts": list(made.COUNTS["pbc"])}
        save_tensors(folder / "weights" / f"tail-pbc-{method}.safetensors", model.state_dict(), facts)
    return folder


@pytest.fixture(autouse=True)
def recorded(monkeypatch: pytest.MonkeyPatch, weights: Path) -> None:
    for name in ("records", "table", "other_networks", "sets"):
        monkeypatch.setattr(tail_shelf, name, getattr(made, name))
    monkeypatch.setattr(confusion_images, "ASSETS", weights)
    monkeypatch.setattr(confusion_images, "shipped_looks", lambda data: ANYTHING)


def test_the_first_screen_says_who_pays() -> None:
    app = page("confusion")
    head = app.header[0].value
    assert head.startswith(
        "Lymphocytes pay: CE finds 100\u00a0% of them among its training images and 30\u00a0% among new ones"
    )
    assert head.endswith("CAR (count EMA), 100\u00a0% and 50\u00a0%.")
    labels = [m.label for m in app.metric][:3]
    assert labels == ["Overall, CE → CAR", "Worst two classes, CE → CAR", "σ₁, CE → CAR"]
    ce, car = (moment(made.record(m), 39) for m in ("ce", "car-count"))
    assert app.metric[2].value == f"{ce.spectrum.sigma:.2f} → {car.spectrum.sigma:.2f}"
    assert len(app.get("plotly_chart")) >= 2
    said = text(app)
    assert "Nothing is promised. Recalls are measurements" in said and "a bound is a bound" in said
    assert "rests on 60 test images of lymphocytes" in said


def test_a_shared_link_brings_set_methods_epoch_and_matrix() -> None:
    app = page(
        "confusion",
        set="Skin lesions",
        first="logit adjustment",
        second="CAR (paper)",
        epoch="10",
        matrix="difference",
    )
    assert app.segmented_control(key="set").value == "ham10000"
    assert app.select_slider(key="epoch").value == 10
    assert app.segmented_control(key="matrix").value == "difference"
    assert app.header[0].value.startswith("After 10 of 40 epochs dermatofibromas pay: logit adjustment finds")
    assert "CAR (paper)" in app.header[0].value
    tail = page("confusion", memory="count", weights="no Λ", beta="0.9")
    assert {"count", "none"} == {tail.segmented_control(key=k).value for k in ("memory", "weights")}
    assert tail.segmented_control(key="beta").value == 0.9


def test_nonsense_in_the_address_opens_with_the_defaults() -> None:
    app = page(
        "confusion",
        set="teapots",
        first="hinge",
        epoch="banana",
        matrix="nothing",
        memory="all",
        weights="heavy",
        beta="7",
    )
    assert app.header[0].value.startswith("Lymphocytes pay: CE finds 100\u00a0%")
    assert app.select_slider(key="epoch").value == 40


def test_the_epoch_moves_the_headline() -> None:
    app, heads = page("confusion"), []
    for epoch in (1, 10, 40):
        app.select_slider(key="epoch").set_value(epoch)
        heads.append(ran(app).header[0].value)
    assert len(set(heads)) == len(heads)


def test_every_set_pair_and_switch_is_a_page() -> None:
    app = page("confusion")
    for data in ("ham10000", "tiny"):
        app.segmented_control(key="set").set_value(data)
        ran(app)
    app.selectbox(key="second").set_value("adjusted")
    assert "logit adjustment" in ran(app).header[0].value
    app.selectbox(key="second").set_value("ce")
    assert ran(app).header[0].value.endswith("Choose a second method to compare it with.")
    app.segmented_control(key="matrix").set_value("second")
    ran(app)


def test_a_set_with_other_epochs_takes_the_nearest(monkeypatch: pytest.MonkeyPatch) -> None:
    from dataclasses import replace

    def records(data: str, folder: object = None) -> dict[str, tail_shelf.TailRecord]:
        found = made.records(data)
        if data == "ham10000":
            found = {
                k: replace(r, epochs=np.array([0, 5, 7, 12, 15]), singular=r.singular[:16])
                for k, r in found.items()
            }
        return found

    monkeypatch.setattr(tail_shelf, "records", records)
    app = page("confusion", epoch="10")
    app.segmented_control(key="set").set_value("ham10000")
    ran(app)
    assert app.select_slider(key="epoch").value == 8
    assert app.header[0].value.startswith("After 8 of 16 epochs")


def test_every_tab_of_the_evidence_draws() -> None:
    app = page("confusion")
    drawn: dict[str, set[str]] = {}
    for label in (
        "Which classes flow into which",
        "The spectrum",
        "σ₁, its bound, the truth",
        "Play it over epochs",
        "Side by side",
    ):
        app.session_state["confusion-evidence"] = label
        ran(app)
        charts = {c.proto.spec for c in app.get("plotly_chart")}
        assert all(charts - others for others in drawn.values()), label  # each tab brings a chart of its own
        drawn[label] = charts
        if label.startswith("σ₁"):
            assert "(vacuous)" in text(app) or "the bound √K · σ₁" in text(app)
            app.segmented_control(key="bound").set_value("max")
            assert "√K · σ₁ / w" in text(ran(app))


def test_memory_and_lambda_are_switches_with_numbers() -> None:
    app = page("confusion")
    said = text(app)
    assert "holds lymphocytes with a chance of 28\u00a0%" in said
    assert "settles at 28\u00a0% of the truth" in said
    app.segmented_control(key="memory").set_value("count")
    app.segmented_control(key="weights").set_value("max")
    assert "It settles at the truth, 70\u00a0%" in text(ran(app))
    app.selectbox(key="class").set_value("neutrophil")
    assert "holds neutrophils with a chance of 100\u00a0%" in text(ran(app))
    grid = next(d.value for d in app.dataframe if "Λ, max" in d.value.columns)
    assert grid["no Λ"].tolist() == [1.0, 1.0, 1.0]


def test_the_table_sorts_by_numbers_and_marks_what_validation_chose() -> None:
    app = page("confusion", set="Skin lesions")
    table = next(d.value for d in app.dataframe if "worst_classes" in d.value.columns)
    assert table["Set"].iloc[0] == "Skin lesions"
    chosen = table[table["Chosen"] == "chosen"]
    assert sorted(chosen["Set"]) == ["Blood cells", "Skin lesions", "Tiny ImageNet"]
    mine = [r for r in made.table() if r["data"] == "ham10000"]
    assert list(table["worst_classes"])[: len(mine)] == pytest.approx(
        [100 * r["worst_classes"] for r in mine]
    )
    said = text(app)
    assert "On 2 of 3 recorded sets" in said and "not on Skin lesions" in said
    memory = ablations(made.table())[0].sets["pbc"]
    assert memory.reach is not None and f"± {100 * memory.reach:.1f}, one seed" in said
    assert "Λ, weights of classes" in said
    assert "Skin lesions, logit adjustment 55.0 against" in said and "(CAR behind)" in said
    assert "of what is learned)" in said and "points in training and" in said
    assert "α, weight of the regularizer" in said and "At 2 CAR is no better than CE" in said
    assert "ViT-Tiny" in said and not any("@" in m or "alpha" in m for m in table["Method"])
    assert "was chosen on the validation part" in said


def test_a_set_on_which_one_method_is_recorded_is_a_page(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tail_shelf, "records", lambda data: {"ce": made.record("ce", data)})
    monkeypatch.setattr(tail_shelf, "table", lambda: (made.row("pbc", "ce", 0.4, seeds=1),))
    monkeypatch.setattr(tail_shelf, "sets", lambda: ("pbc",))
    app = page("confusion")
    assert app.header[0].value.endswith("Choose a second method to compare it with.")
    table = next(d.value for d in app.dataframe if "worst_classes" in d.value.columns)
    assert len(table) == 1 and "Which part of CAR matters" not in text(app)


def test_a_class_without_a_test_image_is_counted_on_the_page(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(
        tail_shelf, "records", lambda data: {m: made.record(m, data, no_test=(7,)) for m in made.LOWEST}
    )
    app = page("confusion")
    assert app.header[0].value.startswith("Basophils pay")
    assert "1 class has no test image (lymphocytes)" in text(app)
    assert "lymphocyte" not in app.selectbox(key="class").options


def upload(app: AppTest, *files: tuple[str, bytes]) -> AppTest:
    app.file_uploader(key="images").set_value([(name, data, "image/png") for name, data in files])
    return ran(app)


def test_a_picture_is_classified_by_both_networks_with_what_they_confuse() -> None:
    app = page("confusion")
    assert "no medical device" in text(app)
    upload(app, ("cell.png", png(draw(3).image)))
    said = text(app)
    assert "**CE** says" in said and "**CAR (count EMA)** says" in said
    assert "within those of the training images" in said
    assert "test images that it called so" in said or "It called no test image so" in said
    shares = [d.value for d in app.dataframe if "share" in d.value.columns]
    assert len(shares) == 2 and all(0 < s["share"].sum() <= 1 + 1e-6 for s in shares)
    assert app.image
    assert len(app.session_state["confusion-answers"]) == 1
    upload(app)
    assert "confusion-answers" not in app.session_state


def test_a_picture_of_another_kind_has_no_track_record(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(confusion_images, "shipped_looks", shipped_looks)
    said = text(upload(page("confusion"), ("photo.png", png(draw(3).image))))
    assert "does not look like the training images" in said and "**CE** says" in said
    assert "test images that it called so" not in said and "It called no test image so" not in said


def test_a_broken_picture_is_a_sentence_and_the_other_goes_on() -> None:
    app = upload(page("confusion"), ("broken.png", b"\x89PNG not really"), ("cell.png", png(draw(4).image)))
    assert any("broken.png" in w.value for w in app.warning)
    assert "**CE** says" in text(app)
    assert app.header[0].value.startswith("Lymphocytes pay")


def test_without_weights_the_figures_stand() -> None:
    app = page("confusion", ask="Skin lesions")
    assert "The networks of skin lesions are not in assets/weights" in text(app)
    assert app.header[0].value.startswith("Lymphocytes pay")


def test_without_records_the_rest_still_stands(monkeypatch: pytest.MonkeyPatch) -> None:
    def missing(*_: object) -> None:
        raise FileNotFoundError("The set is not recorded (pbc.npz).")

    for name in ("records", "table"):
        monkeypatch.setattr(tail_shelf, name, missing)
    monkeypatch.setattr(tail_shelf, "sets", lambda: ())
    app = page("confusion")
    assert app.header[0].value.startswith("Nothing is recorded of Blood cells here")
    assert any("not recorded" in i.value for i in app.info)
    assert {"Your own classifier", "Train it here"} <= {s.value for s in app.subheader}
    upload(app, ("cell.png", png(draw(3).image)))
    assert "No confusion matrix of it is recorded here" in text(app)


def test_start_has_a_living_card_of_this_page(monkeypatch: pytest.MonkeyPatch) -> None:
    app = page("start")
    assert "Who pays for the accuracy?" in text(app)
    assert "grey cross-entropy, blue CAR. Lymphocytes pay: CE finds" in text(app)
    assert "[Open Confusion](/confusion)" in text(app)

    def missing(*_: object) -> None:
        raise FileNotFoundError("The set is not recorded (pbc.npz).")

    monkeypatch.setattr(tail_shelf, "records", missing)
    bare = text(page("start"))
    assert "The set is not recorded (pbc.npz)." in bare and "[Open Confusion](/confusion)" in bare


def test_the_lesson_has_its_sections_and_its_links_open_this_page() -> None:
    found = sections("confusion")
    assert set(SECTIONS) <= set(found)
    assert found["Steps"].count("(/confusion?") >= 4
