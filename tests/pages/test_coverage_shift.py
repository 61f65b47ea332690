"""Shift on the coverage page: a warning beside an upload that looks different, a quiet line beside one that does not, and the damaged phantoms."""

from __future__ import annotations

import importlib
from pathlib import Path

import numpy as np
import pytest
from streamlit.testing.v1 import AppTest

from core.data.phantoms import draw
from core.lab import shift_coverage, shift_damage, shift_monitor
from core.lab.shift_damage import make_damaged
from core.lab.shift_ears import View
from core.lab.shift_fit import fit_monitor
from core.lab.shift_monitor import save_monitor
from tests.lab.made_shift import listener
from tests.pages.test_pages import drop, page, png, text

VIEW = View(side=64, crop=32, count=4)


@pytest.fixture(scope="module")
def shelf(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with a monitor of phantoms and two severities of one corruption."""
    folder = tmp_path_factory.mktemp("shelf")
    base, held = ([draw(s).image for s in range(start, start + 16)] for start in (70_000, 71_000))
    rows = [
        {"corruption": c, "severity": s, "images": n, "auroc": a, "warned": 0.1}
        for n in (1, 16)
        for c, s, a in (("clean", 0, None), ("gaussian_noise", 3, 0.9), ("jpeg", 3, 0.6))
    ]
    facts = {"network": "made-up", "source": "D2", "command": "none", "measured_images": 16, "rows": rows}
    save_monitor(fit_monitor("phantom", listener(), base, held, VIEW, facts), folder)
    make_damaged(None, folder, ("gaussian_noise",), (0, 1, 3), 3)
    return folder


@pytest.fixture
def shelved(shelf: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The page reads this folder instead of what ships."""
    part = importlib.import_module("pages.parts.coverage_shift")
    shift_damage.frames.cache_clear()
    part._seen.cache_clear()
    for name in ("load_monitor", "there_is"):
        kept = getattr(shift_monitor, name)
        monkeypatch.setattr(part, name, lambda study, _f=kept: _f(study, shelf))
    for name in ("damaged", "damages", "recorded"):
        kept = getattr(shift_coverage, name)
        monkeypatch.setattr(part, name, lambda *given, _f=kept: _f(*given, folder=shelf))
    yield shelf
    shift_damage.frames.cache_clear()
    part._seen.cache_clear()


def warnings(app: AppTest) -> str:
    return "\n".join(str(w.value) for w in app.warning)


def test_an_upload_unlike_the_study_is_warned_of_beside_the_promise(shelved: Path) -> None:
    noise = np.random.default_rng(0).integers(0, 255, (128, 128, 3)).astype(np.uint8)
    app = drop(page("coverage"), [("odd.png", png(noise))])
    said = warnings(app)
    assert (
        "does not look like the images of this study" in said
        and "no test" in said
        and "calibrate anew" in said
    )
    assert "90" in said


def test_an_upload_like_the_study_gets_a_quiet_line(shelved: Path) -> None:
    app = drop(page("coverage"), [("mine.png", png(draw(72_001).image))])
    assert "does not look like" not in warnings(app)
    assert "Shift score of this image" in text(app) and "no proof" in text(app)


def test_several_uploads_are_also_judged_together(shelved: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    sizes: list[int] = []
    plain = shift_monitor.Monitor.judge
    monkeypatch.setattr(
        shift_monitor.Monitor, "judge", lambda self, heard: (sizes.append(len(heard)), plain(self, heard))[1]
    )
    drop(page("coverage"), [(f"m{k}.png", png(draw(72_010 + k).image)) for k in range(3)])
    assert sizes[-2:] == [1, 3]


def test_a_narrow_upload_is_a_sentence(shelved: Path) -> None:
    app = drop(page("coverage"), [("strip.png", png(np.zeros((12, 600, 3), np.uint8)))])
    assert "too narrow" in text(app)


def test_pictures_of_the_pool_get_no_word_about_shift(shelved: Path) -> None:
    app = page("coverage")
    assert "Shift score of this" not in text(app) and "does not look like" not in warnings(app)


def test_the_test_images_are_corrupted_and_coverage_and_score_are_said(shelved: Path) -> None:
    app = page("coverage")
    assert not app.select_slider  # nothing is computed before it is asked for
    app.toggle(key="shift-on").set_value(True).run()
    assert not app.exception, app.exception
    assert "Gaussian noise, severity 3: CRC covers" in text(app)
    labels = {m.label: m.value for m in app.metric}
    assert "Shift score of 16 pictures" in labels and "→" in labels["Set area, CRC → COAT"]
    assert "Picture 1 of 3" in text(app) or "Measured on 16 clean images" in text(app)
    app.select_slider(key="shift-severity").set_value(0).run()
    assert not app.exception and "Clean pictures: CRC covers" in text(app)
    next(b for b in app.button if b.label == "Another picture").click().run()
    assert not app.exception


def test_without_a_record_the_page_says_how_it_is_made(monkeypatch: pytest.MonkeyPatch) -> None:
    part = importlib.import_module("pages.parts.coverage_shift")
    monkeypatch.setattr(part, "recorded", lambda: False)
    monkeypatch.setattr(part, "there_is", lambda study: False)
    app = drop(page("coverage"), [("mine.png", png(draw(99).image))])
    assert any("shift_study phantoms" in i.value for i in app.info)
    assert "Shift score of this" not in text(app)
