"""The page of sparse coding as people use it: shared links, the severity that plays, own pictures, a live run, the tabs, missing records.

Records are made up (`tests.lab.made_sparse`), networks have drawn weights: what ships is the benchmarks' business.
"""

from __future__ import annotations

import json
import time
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from streamlit.testing.v1 import AppTest

from core.data.phantoms import draw
from core.lab import shift_record, sparse_look, sparse_medical, sparse_shelf
from core.lab.shift_record import Roc, ShiftRecord, ShiftRow
from core.lab.sparse_sweep import Sweep
from core.lab.sparse_view import severity
from core.lab.sparse_words import headline
from pages.parts import sparse_oracle, sparse_pictures, sparse_tiles, sparse_valley
from pages.parts.lesson import SECTIONS, sections
from pages.parts.sparse_chart import words_of
from tests.lab import made_sparse as made
from tests.pages.driving import PATIENCE, charts, page, png, ran, text

RUNS = (("resnet", 2), ("tacsc", 2), ("tacsc_all", 2), ("tacsc", 4))
KEY = "tacsc-k2-w4-s0"


@pytest.fixture(scope="module")
def shelf_folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A shelf of made-up records with untrained networks."""
    return made.write_made(tmp_path_factory.mktemp("sparse"), RUNS)


@pytest.fixture(autouse=True)
def recorded(monkeypatch: pytest.MonkeyPatch, shelf_folder: Path) -> None:
    records, networks, network = sparse_shelf.records, sparse_shelf.networks, sparse_shelf.network
    monkeypatch.setattr(sparse_shelf, "records", lambda: records(shelf_folder))
    monkeypatch.setattr(sparse_shelf, "networks", lambda *_: networks(shelf_folder))
    monkeypatch.setattr(sparse_look, "network", lambda key: network(key, shelf_folder))
    monkeypatch.setattr(sparse_pictures, "MOST", 12)
    monkeypatch.setattr(sparse_pictures, "LARGE_MOST", 6)
    monkeypatch.delenv("PLUMBLINE_CIFAR10_DATA", raising=False)
    monkeypatch.delenv("PLUMBLINE_POLYP_DATA", raising=False)


@pytest.fixture
def nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    """Neither records nor networks."""

    def missing(*_: object) -> Any:
        raise FileNotFoundError("No run of a sparse coding network is recorded.")

    monkeypatch.setattr(sparse_shelf, "records", missing)
    monkeypatch.setattr(sparse_shelf, "networks", lambda *_: ())
    monkeypatch.setattr(sparse_look, "network", missing)


def upload(app: AppTest, *files: tuple[str, bytes]) -> AppTest:
    app.file_uploader(key="images").set_value([(name, data, "image/png") for name, data in files])
    return ran(app)


def test_the_first_screen_computes_its_headline_and_shows_four_pictures() -> None:
    app = page("sparse")
    view = severity(made.record(), "gaussian_noise", made.record("resnet"))
    assert app.header[0].value == headline(view, 3)
    captions = [c for image in app.image for c in image.captions] if hasattr(app, "image") else []
    said = text(app) + " ".join(map(str, captions))
    assert len(app.metric) >= 3
    assert len(app.get("imgs")) >= 4 or len(app.get("image")) >= 4
    assert len(app.get("plotly_chart")) >= 1
    assert "Nothing is promised." in said and "λ = ∞" in said and "drifts upwards on clean images too" in said
    assert "ResNet" in said and "not scored" in said


def test_a_shared_link_brings_network_corruption_severity_and_lambda() -> None:
    app = page("sparse", net="TA-CSC-18all", corruption=words_of("fog"), severity="5", lam="trained λ")
    view = severity(made.record("tacsc_all"), "fog", made.record("resnet"))
    assert app.selectbox(key="net").value == "tacsc_all-k2-w4-s0"
    assert app.selectbox(key="corruption").value == "fog"
    assert app.slider(key="severity").value == 5
    assert app.segmented_control(key="lam").value == "trained"
    assert app.header[0].value == headline(view, 5)


def test_nonsense_in_the_address_opens_with_the_defaults() -> None:
    app = page(
        "sparse", net="teapot", corruption="rain of frogs", severity="banana", lam="none", picture="nowhere"
    )
    assert app.slider(key="severity").value == 3
    assert app.selectbox(key="corruption").value == "gaussian_noise"
    assert app.header[0].value == headline(
        severity(made.record(), "gaussian_noise", made.record("resnet")), 3
    )


def test_the_severity_moves_the_headline_and_runs_no_network_twice(monkeypatch: pytest.MonkeyPatch) -> None:
    app = page("sparse", severity="1")
    calls: list[str] = []
    whole = sparse_tiles.looks
    monkeypatch.setattr(sparse_tiles, "looks", lambda *a, **k: calls.append(a[2]) or whole(*a, **k))
    heads = {app.header[0].value}
    for at in (2, 4, 5):
        app.slider(key="severity").set_value(at)
        heads.add(ran(app).header[0].value)
    assert len(heads) == 4 and not calls
    app.selectbox(key="corruption").set_value("contrast")
    ran(app)
    assert set(calls) <= {"contrast"}


def test_play_goes_from_zero_to_five_and_ends_or_is_stopped_by_hand() -> None:
    app = page("sparse")
    app.button(key="sparse-play").click()
    ran(app)
    assert app.slider(key="severity").value == 0
    assert app.button(key="sparse-play").label == "Stop"
    seen = [0]
    for _ in range(6):
        app.session_state["sparse-next"] = 0.0
        ran(app)
        seen.append(app.slider(key="severity").value)
    assert seen[:6] == [0, 1, 2, 3, 4, 5] and seen[-1] == 5
    assert app.button(key="sparse-play").label == "Play"
    app.slider(key="severity").set_value(2)
    app.button(key="sparse-another").click()
    assert ran(app).slider(key="severity").value == 2
    assert app.session_state["sparse-at"] == 1
    app.button(key="sparse-play").click()
    ran(app)
    app.slider(key="severity").set_value(4)
    ran(app)
    assert app.button(key="sparse-play").label == "Play" and app.slider(key="severity").value == 4


def test_an_own_picture_goes_onto_the_first_screen() -> None:
    app = upload(page("sparse"), ("mine.png", png(draw(3).image)))
    assert app.segmented_control(key="picture").value == "yours"
    assert "mine.png" in text(app) and "crops" in text(app)
    app.number_input(key="sparse-steps").set_value(1)
    ran(app)
    app.button(key="sparse-go").click()
    ran(app)
    waited(app, "sparse")
    assert app.session_state["sparse-trained"].clean.shape == (12, 32, 32, 3)
    app.file_uploader(key="images").set_value([])
    assert "mine.png" not in text(ran(app))
    assert "sparse-trained" not in app.session_state and "sparse-crops" not in app.session_state


def test_a_bad_picture_is_a_sentence_and_a_drawn_one_stays() -> None:
    bad = {
        "broken.png": (b"\x89PNG not really", "broken.png"),
        "tiny.png": (png(np.arange(8 * 8 * 3, dtype=np.uint8).reshape(8, 8, 3)), "at least 32 pixels"),
        "flat.png": (png(np.full((64, 64, 3), 90, np.uint8)), "flat colour"),
    }
    app = page("sparse")
    for name, (data, told) in bad.items():
        upload(app, (name, data))
        assert told in text(app), name
        assert app.header[0].value and len(app.metric) >= 3


def waited(app: AppTest, name: str) -> AppTest:
    """Wait for the one runner, as the page's fragment does."""
    end = time.monotonic() + PATIENCE
    while f"{name}-ticket" in app.session_state and time.monotonic() < end:
        ran(app)
        time.sleep(0.1)
    return app


def test_a_live_run_shows_before_and_after() -> None:
    app = page("sparse", severity="4")
    app.number_input(key="sparse-steps").set_value(3)
    ran(app)
    app.button(key="sparse-go").click()
    ran(app)
    waited(app, "sparse")
    run = app.session_state["sparse-trained"]
    assert run.corruption == "gaussian_noise" and run.severity == 4 and len(run.threshold) == 4
    table = next(d.value for d in app.dataframe if "same" in d.value.columns)
    assert list(table["way"]) == [
        "on the clean picture", "damaged, none", "damaged, BN", "damaged, λ", "damaged, λ and BN",
    ]  # fmt: skip
    said = text(app)
    assert "held back" in said and "no medical device" in said
    app.slider(key="severity").set_value(1)
    assert "The controls have moved since" in text(ran(app))


def test_the_unet_adapts_on_phantoms_and_shows_masks() -> None:
    app = page("sparse", severity="2")
    app.segmented_control(key="sparse-net-here").set_value("unet-phantom-tacsc")
    app.number_input(key="sparse-steps").set_value(1)
    ran(app)
    app.button(key="sparse-go").click()
    ran(app)
    waited(app, "sparse")
    run = app.session_state["sparse-trained"]
    assert run.segments and run.clean.shape[1] == 96
    assert "White: the truth" in text(app)


def test_every_tab_of_how_lambda_moves_draws() -> None:
    app = page("sparse")
    assert {"sparse-training", "sparse-epochs"} <= charts(app)
    for label, key in (("λ by corruption", "sparse-map"), ("Sparsity and reconstruction", "sparse-plane")):
        app.session_state["sparse-evidence"] = label
        ran(app)
        assert key in charts(app), label
        if label.startswith("Sparsity"):
            assert "analogy" in text(app) and "not a proof" in text(app)
        if label == "λ by corruption":
            assert "clean images" in text(app)


def test_the_objective_is_measured_once_and_k_only_reads_it(monkeypatch: pytest.MonkeyPatch) -> None:
    app = page("sparse", severity="2")
    app.session_state["sparse-evidence"] = "The objective over λ"
    ran(app)
    assert "sparse-objective" not in charts(app)
    app.button(key="sparse-valley-go").click()
    ran(app)
    waited(app, "sparse-valley")
    assert app.select_slider(key="sparse-k").value == 2
    monkeypatch.setattr(
        sparse_valley, "start_landscape", lambda *a, **k: pytest.fail("It was measured again.")
    )
    for k in (1, 8):
        app.select_slider(key="sparse-k").set_value(k)
        assert "sparse-objective" in charts(ran(app))
    app.toggle(key="sparse-guard").set_value(False)
    app.segmented_control(key="sparse-rate").set_value("large")
    ran(app)
    app.button(key="sparse-valley-go").click()
    ran(app)


def test_a_ball_without_guards_runs_away_and_a_guarded_one_does_not() -> None:
    lam = np.geomspace(0.01, 50, 80)
    ones = np.ones_like(lam)
    steep = sparse_valley.Curve(lam, 1 / (lam + 0.01), ones, ones)
    held = sparse_valley.roll(steep, 0.1, 0.4, (0.01, 1.0))
    free = sparse_valley.roll(steep, 0.1, 0.4, None)
    assert held[0] == pytest.approx(0.1) and held.max() <= 1.0 + 1e-9 and held[-1] == pytest.approx(1.0)
    assert free[-1] > 10 and (np.diff(free) > 0).all()
    bowl = sparse_valley.Curve(lam, np.log(lam / 0.3) ** 2, ones, ones)
    assert sparse_valley.roll(bowl, 0.1, 0.05, None)[-1] == pytest.approx(0.3, rel=0.1)


def shift_of() -> ShiftRecord:
    names = ("gaussian_noise", "defocus_blur")
    rows = [ShiftRow(c, s, n, "both", 0.9 + 0.01 * s) for c in names for s in (1, 3, 5) for n in (16, 1)]
    curves = [Roc(r.corruption, r.severity, r.images, "both", (0.0, 0.1, 1.0), (0.0, 0.9, 1.0)) for r in rows]
    return ShiftRecord(KEY, tuple(rows), tuple(curves), {"images": 1000}, {}, "made up", {}, 1.0)


def medical() -> dict[str, Any]:
    cells = []
    for kind, ways in (("plain", ("none", "bn")), ("tacsc", ("none", "bn", "lambda", "both"))):
        for s in range(6):
            for way in ways:
                up = 0.0 if way == "none" else 0.02 * s
                figures = {m: [0.9 - 0.05 * s + up, 0.1, 0.1, 0.3] for m in ("CRC", "plug-in", "COAT")}
                cells.append(
                    {"set": "phantom", "kind": kind, "corruption": "gaussian_noise" if s else "clean", "severity": s, "adapt": way}
                    | {"samples": 0 if way == "none" else 50, "scored": 100, "dice": 0.8 - 0.05 * s + up}
                    | {"threshold": 0.1 if kind == "tacsc" else None, "error": None, "sparsity": None, "stopped": []}
                    | {"figures": {"0.1": figures}}
                )  # fmt: skip
    return {"networks": [], "cells": cells, "command": "made up", "versions": {}, "settings": {}}


def test_every_tab_of_what_it_brings_draws(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    path = tmp_path / "medical.json"
    path.write_text(json.dumps(medical()))
    monkeypatch.setattr(shift_record, "load_shift", shift_of)
    monkeypatch.setattr(sparse_medical, "record_path", lambda folder=None: path)
    app = page("sparse")
    table = next(d.value for d in app.dataframe if "lambda" in d.value.columns)
    assert len(table) == len(RUNS) and table["network"].iloc[0] == "ResNet-18"
    assert np.isnan(table["lambda"].astype(float).iloc[0]) and table["bn"].notna().all()
    app.segmented_control(key="sparse-under").set_value("clean")
    ran(app)
    assert "sparse-ablation" in charts(app)
    tabs = {
        "Images and K": "sparse-samples",
        "λ as a shift detector": "sparse-roc",
        "A promise under shift": "sparse-coverage",
    }
    for label, key in tabs.items():
        app.session_state["sparse-gain"] = label
        assert key in charts(ran(app)), label
    assert "no promise on damaged ones" in text(app)
    ways = next(d.value for d in app.dataframe if "dice" in d.value.columns)
    assert list(ways["way"]) == ["none", "BN", "none", "BN", "λ", "λ and BN"]


def test_the_oracle_stands_beside_what_adaptation_chose(monkeypatch: pytest.MonkeyPatch) -> None:
    app = page("sparse")
    app.session_state["sparse-gain"] = "The best λ there was"
    assert "No sweep over λ is recorded for TA-CSC-18." in text(ran(app))
    factors, line = (0.5, 1.0, 2.0, 4.0), (0.5, 0.6, 0.7, 0.4)
    held = {
        (name, s): Sweep(KEY, name, s, factors, line, line, 1000, 100)
        for name, s in [("clean", 0), ("gaussian_noise", 1), ("gaussian_noise", 3), ("fog", 5)]
    }
    monkeypatch.setattr(sparse_oracle, "sweeps", lambda key: held if key == KEY else {})
    assert "sparse-oracle-chart" in charts(ran(app))
    said = text(app)
    assert "An oracle, not a method" in said and "Severity 3: had labels chosen" in said
    app.selectbox(key="sparse-oracle").set_value("fog")
    assert "Severity 5: had labels chosen" in text(ran(app))


def test_a_picture_that_cannot_be_cut_is_said_at_the_drop_zone_and_nothing_adapts_to_it() -> None:
    app = upload(page("sparse"), ("tiny.png", png(np.full((4, 4, 3), 90, np.uint8))))
    assert any("The image has 4 × 4 pixels" in w.value for w in app.warning)
    go = next(b for b in app.button if b.key == "sparse-go")
    assert go.disabled and "cannot be used" in text(app)
    app.segmented_control(key="picture").set_value("drawn")
    assert not next(b for b in ran(app).button if b.key == "sparse-go").disabled


def test_studies_that_are_not_recorded_are_sentences(monkeypatch: pytest.MonkeyPatch) -> None:
    def missing(*_: object) -> Any:
        raise FileNotFoundError("The study is missing. Make it with: python")

    monkeypatch.setattr(shift_record, "load_shift", missing)
    monkeypatch.setattr(sparse_medical, "rows", missing)
    app = page("sparse")
    for label in ("λ as a shift detector", "A promise under shift"):
        app.session_state["sparse-gain"] = label
        assert "The study is missing." in text(ran(app))


def test_without_the_resnet_no_gain_is_drawn(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sparse_shelf, "records", lambda: {KEY: made.record()})
    app = page("sparse")
    assert "A gain is never shown without them" in text(app)
    assert app.header[0].value


def test_without_records_the_first_layer_is_still_there(monkeypatch: pytest.MonkeyPatch) -> None:
    def missing(*_: object) -> Any:
        raise FileNotFoundError("No run of a sparse coding network is recorded.")

    monkeypatch.setattr(sparse_shelf, "records", missing)
    app = page("sparse")
    assert app.header[0].value.startswith("Nothing is recorded")
    assert "No run of a sparse coding network is recorded." in text(app)


def test_without_records_and_networks_the_damage_is_shown(nothing: None) -> None:
    app = page("sparse")
    assert app.header[0].value.startswith("Nothing is recorded")
    said = text(app)
    assert "Until then only the damage can be shown." in said and "nothing can adapt here" in said
    app.session_state["sparse-evidence"] = "The objective over λ"
    ran(app)
    upload(app, ("mine.png", png(draw(3).image)))
    assert "mine.png" in text(app)


def test_a_folder_of_photos_that_is_empty_is_a_sentence(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("PLUMBLINE_CIFAR10_DATA", str(tmp_path))
    app = page("sparse")
    app.segmented_control(key="picture").set_value("photos")
    ran(app)
    assert any("cifar10" in i.value or "photos" in i.value for i in app.info)
    assert len(app.metric) >= 3


def test_start_has_a_living_card_of_this_page(monkeypatch: pytest.MonkeyPatch) -> None:
    app = page("start")
    said = text(app)
    assert "How much should a layer throw away?" in said and "[Open Sparse](/sparse)" in said
    assert "λ that adaptation finds" in said

    def missing(*_: object) -> Any:
        raise FileNotFoundError("No run of a sparse coding network is recorded.")

    monkeypatch.setattr(sparse_shelf, "records", missing)
    bare = text(page("start"))
    assert "No run of a sparse coding network is recorded." in bare and "[Open Sparse](/sparse)" in bare


def test_the_lesson_has_its_sections_and_its_links_open_this_page() -> None:
    found = sections("sparse")
    assert set(SECTIONS) <= set(found)
    assert found["Steps"].count("(/sparse?") >= 4
    for corruption in ("gaussian_noise", "fog"):
        assert f"corruption={words_of(corruption).replace(' ', '+')}" in found["Steps"]
