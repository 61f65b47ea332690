"""The study of thirteen, the kind of promise and the further questions, as people choose them: by link, by chooser, by tab."""

from __future__ import annotations

import importlib
import json
from pathlib import Path

import numpy as np
import pytest
from PIL import Image
from streamlit.testing.v1 import AppTest

from core.lab.domains import title_of
from core.lab.study import STUDIES, shipped_study, split_study

PAGES = Path(__file__).resolve().parents[2] / "pages"
VARIABLES = ("PLUMBLINE_POLYP_DATA", "PLUMBLINE_SKIN_DATA", "PLUMBLINE_FIRE_DATA")


@pytest.fixture(autouse=True)
def no_pictures(monkeypatch) -> None:
    for name in VARIABLES:
        monkeypatch.delenv(name, raising=False)


def page(name: str, **address: str) -> AppTest:
    app = AppTest.from_file(str(PAGES / f"{name}.py"), default_timeout=180)
    for key, value in address.items():
        app.query_params[key] = value
    app.run()
    assert not app.exception, app.exception
    return app


def text(app: AppTest) -> str:
    kinds = ("header", "subheader", "markdown", "caption", "info", "warning")
    return "\n".join(str(e.value) for kind in kinds for e in app.get(kind)).replace("\u00a0", " ")


def model_in_address(app: AppTest) -> str:
    value = app.query_params["model"]
    return value[0] if isinstance(value, list) else value


def test_a_link_to_a_study_and_an_alpha_opens_just_that() -> None:
    app = page("coverage", model="skin-sinet", alpha="0.2")
    assert app.slider(key="alpha").value == pytest.approx(0.2)
    said = text(app)
    assert "Skin lesions, SINet" in said and "dermoscopy photos only" in said and "no medical device" in said
    assert "PLUMBLINE_SKIN_DATA" in said and "_segmentation" in said
    n = split_study(shipped_study("skin-sinet"), 0.2, 0).calibrations["CRC"].n
    assert f"If these {n} images" in said and "at least 80 %" in said


@pytest.mark.parametrize(
    "name", [s for s in STUDIES if s in ("polyp-deeplab", "skin-deeplab", "fire-pspnet")]
)
def test_every_kind_of_study_has_a_page_and_its_own_warning(name: str) -> None:
    app = page("coverage", model=name)
    words = {
        "polyp": "colonoscopy frames only",
        "skin": "dermoscopy photos only",
        "fire": "the very videos that calibrate",
    }
    assert words[name.split("-")[0]] in text(app)
    assert title_of(name) in text(app)


def test_the_header_has_two_choosers_and_the_address_one_word() -> None:
    app = page("shell", model="polyp-sinet")
    assert (app.selectbox(key="domain").value, app.selectbox(key="network").value) == ("polyp", "sinet")
    app.selectbox(key="domain").set_value("skin").run()
    assert not app.exception and model_in_address(app) == "skin-sinet"
    app.selectbox(key="network").set_value("deeplab").run()
    assert model_in_address(app) == "skin-deeplab" and app.session_state["model"] == "skin-deeplab"
    app.selectbox(key="domain").set_value("phantom").run()
    assert model_in_address(app) == "phantom" and app.selectbox(key="network").value == "unet"
    assert app.selectbox(key="network").disabled
    app.selectbox(key="domain").set_value("fire").run()
    assert model_in_address(app) == "fire"


def test_an_address_without_a_study_is_left_alone_and_an_unknown_study_is_said() -> None:
    app = page("shell")
    assert "model" not in app.query_params and app.selectbox(key="domain").value == "phantom"
    app = page("coverage", model="liver")
    assert any("liver" in t.value for t in app.toast)
    assert "On this image CRC" in app.header[0].value


def test_a_way_back_in_the_address_goes_back() -> None:
    app = page("shell", model="polyp")
    app.selectbox(key="network").set_value("pspnet").run()
    app.query_params["model"] = "polyp"
    app.run()
    assert app.selectbox(key="network").value == "unet"


def test_the_promise_with_confidence_changes_sentence_table_and_thresholds() -> None:
    app = page("coverage", model="polyp")
    before = (app.header[0].value, text(app), [m.value for m in app.metric])
    app.button_group(key="promise").set_value("with confidence").run()
    assert not app.exception
    assert "probability of at least 90 %" in text(app) and "probability of at least 90 %" not in before[1]
    assert "The promise is about draws" in text(app)
    assert [m.value for m in app.metric] != before[2]
    app.number_input(key="delta").set_value(0.05).run()
    assert "probability of at least 95 %" in text(app)


def test_a_link_to_a_promise_with_confidence_holds_it() -> None:
    app = page("coverage", promise="with confidence", delta="0.2")
    assert app.number_input(key="delta").value == pytest.approx(0.2)
    assert "probability of at least 80 %" in text(app)


def test_the_table_says_that_aa_crc_promises_with_a_shift_only() -> None:
    app = page("coverage", model="fire-sinet")
    assert "promises nothing for the next one" in text(app)
    tables = [d.value for d in app.dataframe]
    table = next(t for t in tables if "gap_at_crc_area" in t.columns)
    assert list(table["method"])[:3] == ["CRC", "AA-CRC", "AA-CRC, no shift"]
    assert list(table["method"])[-2:] == ["oracle", "whole image"]


def test_groups_are_reported_under_one_shift_and_promised_to_under_one_a_group() -> None:
    app = page("coverage", model="skin")
    assert "to none of them" in text(app)
    chooser = app.selectbox(key="group-column-skin")
    chooser.set_value("body site").run()
    app.button_group(key="group-control").set_value("one shift a group").run()
    assert not app.exception
    said = text(app)
    assert "within each of these groups" in said and "only be given the whole image" in said
    table = next(d.value for d in app.dataframe if "group" in d.value.columns)
    assert {"CRC", "CRC by group", "COAT", "COAT by group", "oracle", "whole image"} <= set(table["method"])
    assert "CRC by group (whole image)" in set(table["method"])
    app.selectbox(key="group-column-skin").set_value("diagnosis").run()
    assert not app.exception
    assert any("cannot calibrate" in i.value for i in app.info)
    assert "to none of them" in text(app)


def test_one_predictor_for_every_alpha_is_a_tab_and_counts_the_crossings() -> None:
    app = page("coverage", **{"model": "phantom"})
    assert "One predictor" in [t.label for t in app.tabs][1]
    app.session_state["questions-2"] = "One predictor for every α"
    app.run()
    assert not app.exception
    assert "sets of some of the 312 images cross" in text(app)


def test_another_video_is_a_question_for_fire_only() -> None:
    assert not any("video" in t.label for t in page("coverage").tabs)
    app = page("coverage", model="fire")
    assert any("video" in t.label for t in app.tabs)
    app.session_state["questions-3"] = "Another video?"
    app.run()
    assert not app.exception
    assert "needs more videos than there are" in text(app) and "outside the promise" in text(app)


def test_pictures_are_seen_where_the_variable_of_the_domain_points(monkeypatch, tmp_path) -> None:
    split = split_study(shipped_study("skin-pspnet"), 0.1, 0)
    name = split.study.curves.names[int(split.testing[0])]
    for folder, file, size in (
        ("images", f"{name}.jpg", (60, 45)),
        ("masks", f"{name}_segmentation.png", (60, 45)),
    ):
        (tmp_path / folder).mkdir()
        shade = np.full(size[::-1], 120, np.uint8)
        shade[10:30, 10:40] = 255
        Image.fromarray(shade).save(tmp_path / folder / file)
    monkeypatch.setenv("PLUMBLINE_SKIN_DATA", str(tmp_path))
    app = page("coverage", model="skin-pspnet", sample=name)
    assert f"Thresholds of** {name}".replace("_", r"\_") in text(app)
    assert "PLUMBLINE_SKIN_DATA" not in text(app)


def test_a_report_of_a_real_study_is_made_and_warns(monkeypatch) -> None:
    module = importlib.import_module("pages.parts.take_home")
    split = split_study(shipped_study("fire-deeplab"), 0.1, 0, delta=0.1)
    report = module._report(split, []).decode()
    assert "no other fire" in report and "with a confidence of" in report
    assert "AA-CRC, no shift" in report and json.dumps("delta") in report.replace("&#34;", '"')
