"""Own data as people use it, without a browser: drop, answer what is asked, read the promise, train, take it away."""

from __future__ import annotations

import io
import time
import zipfile
from pathlib import Path

import numpy as np
import pytest
import torch
from streamlit.testing.v1 import AppTest

from core.settings import CoatSettings
from pages.parts.lesson import SECTIONS, sections
from tests.lab.made_study import made_maps
from tests.pages.driving import press, text

PAGE = Path(__file__).resolve().parents[2] / "pages" / "own_data.py"
QUICK = {
    m: CoatSettings(objective=o, members=2, epochs=2) for m, o in (("AT", "at"), ("COAT", "at then coat"))
}


def opened() -> AppTest:
    app = AppTest.from_file(str(PAGE), default_timeout=180)
    app.session_state["own-variants"] = QUICK
    app.run()
    assert not app.exception, app.exception
    return app


def npz(n: int = 30, logits: bool = False, **more: np.ndarray) -> bytes:
    raw, masks = made_maps(n, 16, 2)
    out = io.BytesIO()
    np.savez(
        out, maps=raw.numpy() if logits else torch.sigmoid(raw).numpy(), **{"masks": masks.numpy(), **more}
    )
    return out.getvalue()


def drop(app: AppTest, *files: tuple[str, bytes], zone: str = "own-maps") -> AppTest:
    app.file_uploader(key=zone).set_value([(name, data, "application/octet-stream") for name, data in files])
    app.run()
    assert not app.exception, app.exception
    return app


def test_the_empty_page_says_what_to_drop_and_offers_a_sample() -> None:
    app = opened()
    assert [h.value for h in app.subheader][:3] == ["1 · Drop", "2 · Check", "3 · Promise"]
    assert "bring its score maps with masks" in app.header[0].value
    assert any(b.label == "Try a sample" for b in app.button)
    assert "Here you will read" in text(app)


def test_maps_with_masks_give_a_headline_a_promise_and_its_price() -> None:
    app = drop(opened(), ("mine.npz", npz()))
    assert "Promised: 90" in app.header[0].value and "CRC finds" in app.header[0].value
    said = text(app)
    assert "drawn alike" in said and "The price is area" in said and "2 masks empty" in said
    assert {"Coverage", "Set area", "Gap"} <= {m.label for m in app.metric}
    rows = app.dataframe[0].value
    assert list(rows["method"]) == ["CRC", "plug-in", "oracle", "whole image"]


def test_alpha_and_the_kind_of_promise_change_promise_and_area() -> None:
    app = drop(opened(), ("mine.npz", npz()))
    before = [m.value for m in app.metric]
    app.slider(key="alpha").set_value(0.4).run()
    assert not app.exception
    assert "Promised: 60" in app.header[0].value and [m.value for m in app.metric] != before
    app.button_group(key="own-promise").set_value("with confidence").run()
    assert not app.exception and "with a probability of at least 90" in text(app)


def test_too_few_images_are_told_how_many_more() -> None:
    app = drop(opened(), ("mine.npz", npz(10)))
    assert "too few to promise 90" in app.header[0].value and "bring" in app.header[0].value


def test_one_question_at_a_time_with_its_fixes_as_buttons() -> None:
    labels = np.random.default_rng(0).integers(0, 3, (30, 16, 16)).astype(np.uint8)
    app = drop(opened(), ("mine.npz", npz(logits=True, masks=labels)))
    assert "look like logits" in app.info[0].value and len(app.info) == 1
    assert "bring its score maps" in app.header[0].value
    app = press(app, "They are logits")
    assert "Which of them is the lesion" in app.info[0].value and len(app.info) == 1
    app = press(app, "Only 2")
    assert "Promised" in app.header[0].value
    app = press(app, "Ask me again")
    assert "Which of them is the lesion" in app.info[0].value


def test_bad_files_are_sentences_and_the_good_ones_go_on() -> None:
    app = drop(opened(), ("notes.png", b"\x89PNG nothing"), ("mine.npz", npz()))
    assert any("notes" in w.value for w in app.warning)
    assert "Promised" in app.header[0].value
    app = drop(opened(), ("evil.zip", _zip({"../a.npy": b"x"})))
    assert any("climbs out" in w.value for w in app.warning) and not app.metric


def _zip(files: dict[str, bytes]) -> bytes:
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w") as z:
        for name, data in files.items():
            z.writestr(name, data)
    return out.getvalue()


def test_maps_without_masks_are_told_what_is_missing() -> None:
    out = io.BytesIO()
    np.savez(out, maps=torch.sigmoid(made_maps(12, 16, 0)[0]).numpy())
    app = drop(opened(), ("mine.npz", out.getvalue()))
    assert any("bring a mask for each map" in w.value for w in app.warning)


def test_groups_get_a_promise_of_their_own() -> None:
    app = drop(opened(), ("mine.npz", npz(60)))
    app = drop(
        app,
        ("g.csv", ("name,site\n" + "".join(f"{k:04d},{'ab'[k % 2]}\n" for k in range(60))).encode()),
        zone="own-groups",
    )
    app.selectbox(key="own-group").set_value("site").run()
    assert not app.exception
    assert "CRC by group" in list(app.dataframe[0].value["method"])
    assert list(app.dataframe[1].value["group"]) == ["a", "b"]
    assert "in every one of them" in text(app)


def test_from_a_hundred_images_on_at_and_coat_can_be_trained() -> None:
    app = drop(opened(), ("mine.npz", npz(110)))
    assert "enough (from 100 on) to train" in text(app)
    app = press(app, "Train AT and COAT on my images")
    end = time.monotonic() + 120
    while "COAT" not in app.header[0].value and time.monotonic() < end:
        time.sleep(1)
        app.run()
        assert not app.exception, app.exception
    assert list(app.dataframe[0].value["method"]) == ["CRC", "plug-in", "AT", "COAT", "oracle", "whole image"]
    assert "AT and COAT were trained on 37 of your 110 images" in text(app)
    assert any("safetensors" in b.proto.label for b in app.get("download_button"))


def test_the_training_can_be_stopped_and_nothing_is_lost() -> None:
    app = drop(opened(), ("mine.npz", npz(110)))
    app.session_state["own-variants"] = {"COAT": CoatSettings(epochs=400, patience=400)}
    app = press(app, "Train AT and COAT on my images")
    app = press(app, "Stop")
    assert "The training was stopped" in text(app) and "Promised" in app.header[0].value
    assert any(b.label == "Train AT and COAT on my images" for b in app.button)


def test_a_file_that_is_taken_out_of_its_field_is_gone() -> None:
    app = drop(opened(), ("mine.npz", npz()))
    app.file_uploader(key="own-maps").set_value([])
    app.run()
    assert not app.exception
    assert "bring its score maps" in app.header[0].value and not app.metric


def test_names_that_strangers_chose_are_never_run_as_markdown() -> None:
    raw, masks = made_maps(30, 16, 0)
    names = np.array([f"![x](evil{k})" for k in range(30)])
    out = io.BytesIO()
    np.savez(out, maps=torch.sigmoid(raw).numpy(), masks=masks.numpy(), names=names)
    app = drop(opened(), ("mine.npz", out.getvalue()))
    assert not any("![x](evil" in str(m.value) for m in app.markdown)


def test_the_page_has_its_lesson_formula_code_and_lines_of_python() -> None:
    assert set(SECTIONS) <= set(sections("own_data"))
    app = drop(opened(), ("mine.npz", npz()))
    labels = [e.label for e in app.expander]
    assert any(label.startswith("Lesson:") for label in labels)
    assert {"Show the formula", "Show the code", "Ten lines of Python that apply it in your pipeline"} <= set(
        labels
    )
    assert any("calibration.json" in c.value for c in app.code)


def test_the_sample_is_a_click_away(monkeypatch: pytest.MonkeyPatch) -> None:
    from core.lab import own_sample

    small = own_sample.sample_zip(count=22, size=64)
    monkeypatch.setattr("pages.parts.own_check.sample_zip", lambda: small)
    app = press(opened(), "Try a sample")
    assert "Promised" in app.header[0].value
    app = press(app, "Forget my 1 file")
    assert "bring its score maps" in app.header[0].value
