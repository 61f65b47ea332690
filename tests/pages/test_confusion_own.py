"""*Upload your own* and *Train it here* of the confusion page as people use them, without a browser."""

from __future__ import annotations

import io
import time

import numpy as np
import pytest
from streamlit.testing.v1 import AppTest

from core.lab import tail_here
from core.lab.jobs import Runner
from core.lab.tail_here import Budget

TINY = Budget(epochs=2, seeds=2, largest=20, test=10, every=1)
LABELS = np.repeat(np.arange(3), 30)
SAID = np.where(np.arange(90) % 4 == 0, 0, LABELS)


def own_part() -> None:
    from pages.parts import confusion_own

    confusion_own.show()


def train_part() -> None:
    from pages.parts import confusion_train

    confusion_train.show()


def opened() -> AppTest:
    app = AppTest.from_function(own_part, default_timeout=120).run()
    assert not app.exception, app.exception
    return app


def npz(**more: np.ndarray) -> bytes:
    out = io.BytesIO()
    np.savez(out, **({"labels": LABELS, "predicted": SAID} | more))
    return out.getvalue()


def drop(app: AppTest, *files: tuple[str, bytes], zone: str = "confusion-own") -> AppTest:
    app.file_uploader(key=zone).set_value([(name, data, "application/octet-stream") for name, data in files])
    app.run()
    assert not app.exception, app.exception
    return app


def text(app: AppTest) -> str:
    found = "\n".join(
        str(e.value) for kind in ("markdown", "caption", "info", "warning") for e in app.get(kind)
    )
    return found.replace("\\", "").replace("\u00a0", " ")


def press(app: AppTest, label: str) -> AppTest:
    next(b for b in app.button if b.label.replace("\\", "") == label).click().run()
    assert not app.exception, app.exception
    return app


def downloads(app: AppTest) -> set[str]:
    return {b.proto.label for b in app.get("download_button")}


def test_the_empty_part_says_what_to_drop_and_offers_a_sample() -> None:
    app = opened()
    assert any(b.label == "Try a sample" for b in app.button) and not app.metric
    said = text(app)
    assert (
        "Here you will read" in said and "never written to disk" in said and "which side is the truth" in said
    )


def test_the_sample_shows_the_worst_class_what_feeds_it_and_what_survives() -> None:
    app = press(opened(), "Try a sample")
    said = text(app)
    assert "worst class, “crescent”" in said and "are called “circle”" in said and "WR is 0.35" in said
    assert {m.label for m in app.metric} == {"Overall", "Worst class", "σ₁", "Bound → truth", "WR"}
    assert len(app.get("plotly_chart")) == 4
    assert all(len(c.proto.alt) > 40 for c in app.get("plotly_chart"))
    assert app.dataframe[0].value["class"].tolist()[0] == "circle" and len(app.dataframe[0].value) == 8
    assert {"Report (HTML)", "Classes (CSV)", "Flows (CSV)", "Everything (JSON)"} <= downloads(app)


def test_weights_change_sigma_and_leave_the_recalls() -> None:
    app = press(opened(), "Try a sample")
    before = {m.label: m.value for m in app.metric}
    app.button_group(key="confusion-own-weights").set_value("max").run()
    assert not app.exception
    after = {m.label: m.value for m in app.metric}
    assert after["σ₁"] != before["σ₁"] and after["Worst class"] == before["Worst class"]


def test_predictions_need_no_counts_and_counts_can_be_typed() -> None:
    app = drop(opened(), ("mine.npz", npz()))
    assert "training samples you would also see" in text(app) and not app.get("button_group")
    assert {m.label for m in app.metric} == {"Overall", "Worst class", "σ₁", "Bound → truth"}
    app.text_input(key="confusion-own-counts").set_value("5, 50, 500").run()
    assert not app.exception and list(app.dataframe[0].value["class"]) == ["class 2", "class 1", "class 0"]
    assert app.button_group(key="confusion-own-weights").value == "none"
    app.text_input(key="confusion-own-counts").set_value("5, 50").run()
    assert "2 numbers, and there are at least 3 classes" in text(app) and not app.metric
    app.text_input(key="confusion-own-counts").set_value("5, 50, many").run()
    assert "is no number" in text(app) and not app.exception


def test_training_predictions_in_a_zone_of_their_own_give_wr() -> None:
    app = drop(opened(), ("mine.npz", npz()))
    app = drop(app, ("train.npz", npz(predicted=LABELS)), zone="confusion-own-train")
    assert "WR" in {m.label for m in app.metric} and "On the training samples" in text(app)
    app = drop(app, zone="confusion-own")
    assert "There are training samples only" in text(app) and not app.metric


def test_which_side_is_the_truth_is_asked_and_can_be_taken_back() -> None:
    app = drop(opened(), ("m.csv", b",ash,oak\nash,8,2\noak,5,15\n"))
    assert len(app.info) == 1 and "Where are the true classes" in app.info[0].value and not app.metric
    app = press(app, "Rows are true, columns are predicted (scikit-learn's way)")
    assert next(m for m in app.metric if m.label == "Worst class").value.startswith("75")
    app = press(app, "Ask me again")
    assert not app.metric
    app = press(app, "Columns are true, rows are predicted")
    assert next(m for m in app.metric if m.label == "Worst class").value.startswith("62")


def test_bad_files_are_sentences_and_nothing_breaks_without_an_error_or_a_sample() -> None:
    app = drop(opened(), ("m.csv", b"id,predicted\n1,2\n"))
    assert any("no column of true labels" in w.value for w in app.warning) and not app.metric
    app = drop(opened(), ("mine.npz", npz(predicted=LABELS)))
    assert "no error" in text(app) and "Flows (CSV)" not in downloads(app)
    app = drop(
        opened(),
        ("mine.npz", npz(classes=np.array(["a", "b", "c", "d"]), logits=np.eye(4)[SAID], predicted=SAID)),
    )
    assert not app.exception
    keep = LABELS != 1
    out = io.BytesIO()
    np.savez(out, labels=LABELS[keep], logits=np.eye(3)[SAID[keep]])
    app = drop(opened(), ("mine.npz", out.getvalue()))
    assert "1 class without a test sample" in text(app) and app.metric


def test_names_that_strangers_chose_are_never_run_as_markdown_and_files_can_be_forgotten() -> None:
    evil = np.array(["![x](evil)", "<b>b</b>", "$c$"])
    app = drop(opened(), ("mine.npz", npz(logits=np.eye(3)[SAID], classes=evil)))
    raw = "\n".join(str(m.value) for m in app.markdown)
    assert "![x](evil)" not in raw and "<b>" not in raw
    app = press(opened(), "Try a sample")
    app = press(app, "Forget my 1 file")
    assert not app.metric and "Here you will read" in text(app)


# train it here -----------------------------------------------------------------


@pytest.fixture
def page(monkeypatch: pytest.MonkeyPatch) -> AppTest:
    monkeypatch.setattr(tail_here, "RUNNER", Runner())
    app = AppTest.from_function(train_part, default_timeout=120)
    app.session_state["confusion-budget"] = TINY
    app.run()
    assert not app.exception, app.exception
    return app


def wait(app: AppTest) -> AppTest:
    end = time.monotonic() + 60
    while "confusion-ticket" in app.session_state and time.monotonic() < end:
        time.sleep(0.2)
        app.run()
        assert not app.exception, app.exception
    return app


def test_a_run_ends_with_a_sentence_from_its_numbers_and_its_maps(page: AppTest) -> None:
    assert "8 × 8 pixels" in text(page) and not page.get("plotly_chart")
    app = wait(press(page, "Train both"))
    said = text(app)
    assert "The worst digit is right" in said and "means over 2 seeds" in said and "Under CE the" in said
    assert len(app.get("plotly_chart")) == 5 and len(app.dataframe[0].value) == 4
    for view in ("CE", "CAR"):
        app.button_group(key="confusion-here-view").set_value(view).run()
        assert not app.exception and len(app.get("plotly_chart")) == 5
    app.selectbox(key="confusion-here-rarest").set_value(3).run()
    assert "controls have moved" in text(app)


def test_stopping_keeps_nothing_and_says_so(page: AppTest, monkeypatch: pytest.MonkeyPatch) -> None:
    def slow(method, task, on_step, budget):
        for k in range(600):
            time.sleep(0.05)
            on_step(k, 600, {"rows": {"ce": (), "car-count": ()}})

    monkeypatch.setattr(tail_here, "train", slow)
    app = press(page, "Train both")
    app = press(app, "Stop")
    assert "was stopped" in text(app) and "confusion-ticket" not in app.session_state


def test_a_failure_is_a_sentence_for_the_visitor_and_a_traceback_in_the_log(
    page: AppTest, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    def broken(method, task, on_step, budget):
        raise RuntimeError("secret detail")

    monkeypatch.setattr(tail_here, "train", broken)
    app = wait(press(page, "Train both"))
    assert "ended with an error" in text(app) and "secret detail" not in text(app)
    assert "secret detail" in caplog.text
