"""The page of T and α as people use it: shared links, both units, a sharp and a soft knife, uploads, and training with a stop."""

from __future__ import annotations

import io
import time
from pathlib import Path

import numpy as np
import pytest
from PIL import Image
from streamlit.testing.v1 import AppTest

from core.coat.sweep import TEMPERATURES
from core.data.phantoms import draw
from core.lab import temperatures
from core.lab.study import shipped_study
from core.lab.temperatures import load
from core.lab.train_here import Budget, Trained
from pages.parts.lesson import SECTIONS, sections

PAGE = Path(__file__).resolve().parents[2] / "pages" / "sweep.py"
PATIENCE = 180


def page(**address: str) -> AppTest:
    """The page after its first run, with values in the address. Fails on any error that it met."""
    app = AppTest.from_file(str(PAGE), default_timeout=PATIENCE)
    for key, value in address.items():
        if key in ("model", "seed"):  # the header reads these, and it is not on a page alone
            app.session_state[key] = int(value) if key == "seed" else value
        else:
            app.query_params[key] = value
    app.run()
    assert not app.exception, app.exception
    return app


def text(app: AppTest) -> str:
    return "\n".join(
        str(e.value) for kind in ("header", "markdown", "caption", "info", "warning") for e in app.get(kind)
    )


def charts(app: AppTest) -> list:
    return app.get("plotly_chart")


def png(array: np.ndarray) -> bytes:
    file = io.BytesIO()
    Image.fromarray(array).save(file, "PNG")
    return file.getvalue()


def test_the_first_screen_says_what_counts_and_what_is_inside() -> None:
    app = page()
    head = app.header[0].value
    assert head.startswith("At T\u00a0=\u00a01 this lesion counts as") and "in truth" in head
    labels = [m.label for m in app.metric]
    assert labels == ["Soft → hard share, this image", "Gap, CRC → COAT", "Set area, CRC → COAT"]
    soft, hard = app.metric[0].value.split(" → ")
    assert soft in head and hard in head
    assert len(charts(app)) == 6  # knife, map, lines, gradient, ceiling, and how the fit went
    assert "drawn alike" in text(app)


def test_a_shared_link_brings_temperature_unit_level_image_and_threshold() -> None:
    name = shipped_study("phantom").curves.names[5]
    app = page(T="0.05", alpha="0.2", around="CRC", sample=name)
    assert app.select_slider(key="T").value == 0.05
    assert "T\u00a0=\u00a00.05" in app.header[0].value
    assert "Along the row of α = 0.2" in [s.value for s in app.subheader]
    assert app.query_params["sample"] in (name, [name])
    in_p = page(unit="probability", Tp="0.7")
    assert in_p.select_slider(key="Tp").value == 0.7
    assert "no threshold can count 90\u00a0% as inside: the ceiling is 81\u00a0%" in in_p.header[0].value
    assert "asks for the impossible" in text(in_p)


def test_as_the_knife_gets_sharper_soft_becomes_hard() -> None:
    differences, app = [], page(T="16")
    for t in (16.0, 1.0, 0.05):
        app.select_slider(key="T").set_value(t).run()
        soft, hard = (float(v.strip().rstrip("%").strip()) for v in app.metric[0].value.split("→"))
        differences.append(abs(soft - hard))
    assert differences[0] > differences[1] > differences[2]
    assert differences[2] < 3


def test_every_stop_of_the_slider_is_there_and_its_ends_are_pages() -> None:
    app = page()
    assert app.select_slider(key="T").options == [f"{t:g}" for t in TEMPERATURES["logit"]]
    app.segmented_control(key="unit").set_value("probability").run()
    assert app.select_slider(key="Tp").options == [f"{t:g}" for t in TEMPERATURES["probability"]]
    for t in (TEMPERATURES["probability"][0], TEMPERATURES["probability"][-1]):
        app.select_slider(key="Tp").set_value(t).run()
        assert not app.exception
        assert f"T\u00a0=\u00a0{t:g}" in app.header[0].value


def test_the_table_never_shows_a_gap_without_area_oracle_and_whole_image() -> None:
    table = page().dataframe[0].value
    assert {"method", "gap", "area", "coverage"} <= set(table.columns)
    methods = list(table["method"])
    assert methods[-2:] == ["oracle", "whole image"]
    assert float(table[table["method"] == "whole image"]["gap"].iloc[0]) == 0.1


def test_a_real_study_without_pictures_is_swept_from_its_scores(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("PLUMBLINE_POLYP_DATA", raising=False)
    app = page(model="polyp")
    assert "this polyp counts as" in app.header[0].value
    images = app.selectbox(key="sweep-list-polyp")
    images.select_index(3).run()
    assert not app.exception
    chosen = app.query_params["sample"]
    chosen = chosen if isinstance(chosen, str) else chosen[0]
    assert app.selectbox(key="sweep-list-polyp").value.startswith(chosen)


def test_a_study_without_a_recording_still_works_and_says_how_to_make_one(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr(temperatures, "ASSETS", tmp_path)
    load.cache_clear()
    try:
        app = page()
        assert "python -m core temperatures phantom" in text(app)
        assert "No COAT was trained near this T." in app.header[0].value
        assert len(charts(app)) == 5  # no fit to tell of
    finally:
        load.cache_clear()


def upload(app: AppTest, mask: bool) -> AppTest:
    phantom = draw(77)
    app.file_uploader(key="images").set_value([("mine.png", png(phantom.image), "image/png")])
    if mask:
        app.file_uploader(key="masks").set_value(
            [("mine_mask.png", png(phantom.mask.astype(np.uint8) * 255), "image/png")]
        )
    app.run()
    assert not app.exception, app.exception
    return app


def test_an_upload_with_its_mask_is_swept_too() -> None:
    app = upload(page(), mask=True)
    assert "in truth" in app.header[0].value
    assert "sample" not in app.query_params
    assert "drawn pictures (phantoms) only" in text(app)


def test_an_upload_without_a_mask_gets_the_models_expectation() -> None:
    app = upload(page(), mask=False)
    assert "the model itself expects" in app.header[0].value
    assert "every pixel counts with its own probability" in text(app)


def test_a_broken_upload_is_a_sentence_and_the_page_goes_on() -> None:
    app = page()
    app.file_uploader(key="images").set_value([("broken.png", b"not a picture", "image/png")])
    app.run()
    assert not app.exception
    assert any("broken.png" in w.value for w in app.warning)
    assert app.header[0].value.startswith("At T")


def until_done(app: AppTest) -> AppTest:
    end = time.monotonic() + PATIENCE
    while "sweep-ticket" in app.session_state and time.monotonic() < end:
        time.sleep(0.2)
        app.run()
        assert not app.exception, app.exception
    return app


def test_training_here_puts_its_rows_into_the_table_and_says_its_budget_is_reduced() -> None:
    app = AppTest.from_file(str(PAGE), default_timeout=PATIENCE)
    app.session_state["sweep-budget"] = Budget(epochs=2, members=2, images=30)
    app.query_params["T"] = "2"
    app.run()
    app.button(key="train").click().run()
    assert not app.exception, app.exception
    until_done(app)
    assert isinstance(app.session_state["sweep-trained"], Trained)
    methods = list(app.dataframe[0].value["method"])
    assert "COAT, this run (reduced budget)" in methods and "AT, this run (reduced budget)" in methods
    assert methods[-2:] == ["oracle", "whole image"]
    assert "This run, reduced budget:" in text(app) and "T = 2 in logits, 30 images of D2" in text(app)
    assert len(charts(app)) == 7


def test_a_run_can_be_stopped() -> None:
    app = AppTest.from_file(str(PAGE), default_timeout=PATIENCE)
    app.session_state["sweep-budget"] = Budget(epochs=300, members=10)
    app.run()
    app.button(key="train").click().run()
    ticket = app.session_state["sweep-ticket"]
    assert not app.button(key="stop").disabled
    app.button(key="stop").click().run()
    assert not app.exception
    assert ticket.state().status == "stopped"
    assert "sweep-ticket" not in app.session_state
    assert "nothing of it was kept" in text(app)


def test_the_lesson_has_its_sections_and_its_links_open_this_page() -> None:
    found = sections("sweep")
    assert set(SECTIONS) <= set(found)
    assert found["Steps"].count("(/sweep?") >= 4
