"""*Upload your own* and *Train it here* of the margin page as people use them, without a browser."""

from __future__ import annotations

import io
import time

import numpy as np
import pytest
from streamlit.testing.v1 import AppTest

from core.lab import margin_here
from core.lab.jobs import Runner
from core.lab.margin_here import Budget
from tests.pages.driving import press, text

TINY = Budget(epochs=2, train=8, check=4, batch=4, every=1)


def own_part() -> None:
    from pages.parts import margin_own

    margin_own.show()


def train_part() -> None:
    from pages.parts import margin_train

    margin_train.show()


def opened() -> AppTest:
    app = AppTest.from_function(own_part, default_timeout=120).run()
    assert not app.exception, app.exception
    return app


def npz(sure: float = 2.0, **more: np.ndarray) -> bytes:
    rng = np.random.default_rng(0)
    z = rng.normal(0, 1.5, (6, 2, 12, 12))
    p = np.exp(z[:, 1]) / np.exp(z).sum(1)
    out = io.BytesIO()
    np.savez(out, **({"logits": sure * z, "labels": (rng.random(p.shape) < p).astype(np.uint8)} | more))
    return out.getvalue()


def drop(app: AppTest, *files: tuple[str, bytes], zone: str = "margin-own") -> AppTest:
    app.file_uploader(key=zone).set_value([(name, data, "application/octet-stream") for name, data in files])
    app.run()
    assert not app.exception, app.exception
    return app


def test_the_empty_part_says_what_to_drop_and_offers_a_sample() -> None:
    app = opened()
    assert any(b.label == "Try a sample" for b in app.button)
    said = text(app)
    assert "Here you will read" in said and "never written to disk" in said and "NIfTI" in said
    assert not app.metric


def test_logits_with_labels_give_diagrams_metrics_a_temperature_and_downloads() -> None:
    app = drop(opened(), ("mine.npz", npz()))
    said = text(app)
    assert "surer than it is right" in said and "With T =" in said and "6 images" in said
    assert {"ECE", "Sure → right", "Brier score", "NLL"} == {m.label for m in app.metric}
    assert len(app.get("vega_lite_chart")) == 2
    assert len(app.dataframe[0].value) == 30 and list(app.dataframe[1].value["class"]) == ["class 1"]
    labels = {b.proto.label for b in app.get("download_button")}
    assert {"Report (HTML)", "Figures (CSV)", "Everything (JSON)", "Diagram (PNG)", "Diagram (SVG)"} <= labels


def test_scope_and_seed_change_what_is_said() -> None:
    app = drop(opened(), ("mine.npz", npz()))
    before, said = [m.value for m in app.metric], text(app)
    app.button_group(key="margin-own-scope").set_value("foreground").run()
    assert not app.exception and [m.value for m in app.metric] != before
    assert "even a perfectly calibrated" in text(app)
    app.number_input(key="margin-own-seed").set_value(5).run()
    assert not app.exception and "seed 5" in text(app) and "seed 0" in said


def test_one_question_at_a_time_with_its_fixes_as_buttons_and_a_way_back() -> None:
    labels = np.random.default_rng(0).integers(0, 2, (6, 12, 12))
    labels[:, 0] = 255
    raw = io.BytesIO()
    np.savez(raw, probabilities=np.random.default_rng(1).normal(0, 3, (6, 2, 12, 12)), labels=labels)
    app = drop(opened(), ("mine.npz", raw.getvalue()))
    assert len(app.info) == 1 and "255" in app.info[0].value and not app.metric
    app = press(app, next(b.label for b in app.button if "255" in b.label))
    assert len(app.info) == 1 and "called probabilities" in app.info[0].value
    app = press(app, "They are logits")
    assert not app.info and app.metric
    app = press(app, "Ask me again")
    assert "called probabilities" in app.info[0].value and not app.metric


def test_bad_files_are_sentences_and_an_empty_foreground_is_said() -> None:
    app = drop(opened(), ("notes.npz", b"PK\x03\x04nothing"))
    assert any("notes" in w.value for w in app.warning) and not app.metric
    app = drop(opened(), ("mine.npz", npz(labels=np.zeros((6, 12, 12), np.uint8))))
    assert "is empty and only all pixels" in text(app).replace("\\", "")
    app.button_group(key="margin-own-scope").set_value("foreground").run()
    assert not app.exception and not app.metric and "Count all of them" in text(app)


def test_names_that_strangers_chose_are_never_run_as_markdown_and_files_can_be_forgotten() -> None:
    raw = npz(
        names=np.array([f"![x](evil{k})" for k in range(6)]),
        classes=np.array(["![a](b)", "c"]),
        labels=np.zeros((6, 12, 12), np.uint8),
    )
    app = drop(opened(), ("![x](mine).npz", raw))
    assert "![x](" not in text(app) and "![a](" not in text(app)
    app.file_uploader(key="margin-own").set_value([])
    app.run()
    assert not app.exception and not app.metric and "Here you will read" in text(app)


def test_the_sample_is_a_click_away(monkeypatch: pytest.MonkeyPatch) -> None:
    data = npz()
    monkeypatch.setattr("pages.parts.margin_own_drop.sample_npz", lambda: data)
    app = press(opened(), "Try a sample")
    assert "surer than it is right" in text(app)
    app = press(app, "Forget my 1 file")
    assert "Here you will read" in text(app)


def training(monkeypatch: pytest.MonkeyPatch, spend: Budget = TINY) -> AppTest:
    monkeypatch.setattr(margin_here, "RUNNER", Runner())
    app = AppTest.from_function(train_part, default_timeout=120)
    app.session_state["margin-budget"] = spend
    app.run()
    assert not app.exception, app.exception
    return app


def test_two_losses_are_trained_and_compared(monkeypatch: pytest.MonkeyPatch) -> None:
    app = training(monkeypatch)
    assert "smaller experiment" in text(app)
    app = press(app, "Train both")
    end = time.monotonic() + 120
    while "margin-trained" not in app.session_state and time.monotonic() < end:
        time.sleep(0.5)
        app.run()
        assert not app.exception, app.exception
    said = text(app)
    assert "Dice is" in said and "4 drawn pictures" in said and "margin, m = 3" in said
    assert len(app.get("vega_lite_chart")) == 2 and len(app.get("plotly_chart")) == 1
    app.number_input(key="margin-here-m").set_value(5.0).run()
    assert not app.exception and "controls have moved" in text(app)


def test_the_training_can_be_stopped_and_the_same_loss_twice_cannot_be_trained(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    app = press(training(monkeypatch, Budget(epochs=400)), "Train both")
    app = press(app, "Stop")
    assert "was stopped" in text(app) and "margin-trained" not in app.session_state
    app.selectbox(key="margin-here-second").set_value("CE").run()
    assert "two different losses" in text(app)
    assert next(b for b in app.button if b.label == "Train both").disabled
