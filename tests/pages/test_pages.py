"""Each page as people use it, without a browser: controls, shared links, uploads good and bad, and what is said."""

from __future__ import annotations

import importlib
import io
import zipfile

import numpy as np
import pytest
from streamlit.testing.v1 import AppTest

from core.data.phantoms import draw
from core.lab.study import shipped_study, split_study
from pages.parts.lesson import SECTIONS, sections
from tests.pages.driving import PAGES, page, png, text


def drop(
    app: AppTest, images: list[tuple[str, bytes]], masks: list[tuple[str, bytes]] | None = None
) -> AppTest:
    """Drop files on the coverage page."""
    for key, files in (("images", images), ("masks", masks or [])):
        if files:
            app.file_uploader(key=key).set_value(
                [(name, data, "application/octet-stream") for name, data in files]
            )
    app.run()
    assert not app.exception, app.exception
    return app


def test_start_shows_a_hard_image_with_its_numbers_and_the_promise() -> None:
    app = page("start")
    header = app.header[0].value
    split = split_study(shipped_study("phantom"), 0.1, 0)
    assert str(split.evaluations["CRC"].n) in header
    assert "Promised: 90" in header and "On this one CRC finds" in header
    assert "drawn alike" in text(app)
    assert "drawn, not taken" in text(app)


def test_the_first_image_on_start_is_one_that_crc_fails_and_coat_does_not() -> None:
    app = page("start")
    shown = {m.label: m.value for m in app.metric}
    crc, coat = (
        float(part.strip().rstrip("%").strip()) for part in shown["Lesion found, CRC → COAT"].split("→")
    )
    assert crc < 70
    assert coat > crc + 15


def test_next_hard_image_and_an_easy_one_change_the_headline() -> None:
    app = page("start")
    seen = [app.header[0].value]
    for label in ("Next hard image", "An easy one"):
        next(b for b in app.button if b.label == label).click().run()
        assert not app.exception
        seen.append(app.header[0].value)
    assert len(set(seen)) == 3


def test_coverage_reads_alpha_and_sample_from_the_address() -> None:
    name = shipped_study("phantom").curves.names[3]
    app = page("coverage", alpha="0.2", sample=name)
    assert app.slider(key="alpha").value == pytest.approx(0.2)
    assert app.query_params["sample"] in (name, [name])
    assert "at least 80" in text(app)


def test_moving_alpha_changes_promise_and_area() -> None:
    app = page("coverage")
    before = [m.value for m in app.metric]
    app.slider(key="alpha").set_value(0.4).run()
    assert not app.exception
    assert "at least 60" in text(app)
    assert [m.value for m in app.metric] != before


def test_the_picture_can_be_compared_by_a_handle_instead(monkeypatch) -> None:
    modes: list[str] = []
    module = importlib.import_module("pages.components.picture")
    monkeypatch.setattr(module, "_PICTURE", lambda data, key: modes.append(data["mode"]))
    app = page("coverage")
    app.button_group(key="view").set_value("compare CRC with COAT").run()
    assert not app.exception
    assert modes == ["threshold", "wipe"]


def test_an_upload_with_its_mask_is_outlined_and_its_coverage_is_known() -> None:
    phantom = draw(99)
    app = drop(
        page("coverage"),
        [("mine.png", png(phantom.image))],
        [("mine_mask.png", png(phantom.mask.astype(np.uint8) * 255))],
    )
    assert "On this image CRC finds" in app.header[0].value
    assert "Thresholds of** mine.png" in text(app)


def test_an_upload_without_a_mask_has_areas_and_no_coverage() -> None:
    app = drop(page("coverage"), [("mine.png", png(draw(99).image))])
    assert "marks" in app.header[0].value
    assert any(m.value == "? → ?" for m in app.metric)


def test_a_bad_file_is_a_sentence_and_the_good_one_goes_on() -> None:
    app = drop(page("coverage"), [("broken.png", b"\x89PNG not really"), ("good.png", png(draw(99).image))])
    assert any("broken.png" in w.value for w in app.warning)
    assert "marks" in app.header[0].value


def test_a_mask_of_another_size_is_asked_about_and_never_stretched_silently() -> None:
    phantom = draw(99)
    small = png(phantom.mask[::2, ::2].astype(np.uint8) * 255)
    app = drop(page("coverage"), [("mine.png", png(phantom.image))], [("mine.png", small)])
    assert any(m.value == "? → ?" for m in app.metric)
    box = next(c for c in app.checkbox if "scale the mask" in c.label)
    box.check().run()
    assert not app.exception
    assert "On this image CRC finds" in app.header[0].value


def test_a_volume_has_a_slice_slider_and_a_window() -> None:
    import nibabel

    volume = np.random.default_rng(0).normal(0, 200, (40, 50, 6)).astype(np.int16)
    data = nibabel.Nifti1Image(volume, np.eye(4)).to_bytes()
    app = drop(page("coverage"), [("scan.nii", data)])
    labels = [s.label for s in app.slider]
    assert "Slice" in labels and any("Window" in label for label in labels)
    before = app.header[0].value
    next(s for s in app.slider if s.label == "Slice").set_value(0).run()
    assert not app.exception and before


def test_the_polyp_model_shows_its_scores_where_its_pictures_are_not(monkeypatch) -> None:
    monkeypatch.delenv("PLUMBLINE_POLYP_DATA", raising=False)
    app = AppTest.from_file(str(PAGES / "coverage.py"), default_timeout=180)
    app.session_state["model"] = "polyp"
    app.run()
    assert not app.exception
    assert "no medical device" in text(app)
    assert "PLUMBLINE_POLYP_DATA" in text(app)


def test_a_file_name_is_shown_as_it_is_and_never_run_as_markdown() -> None:
    app = drop(page("coverage"), [("![x](evil) `b`_c_.png", png(draw(99).image))])
    shown = next(line for line in text(app).split("\n") if "Thresholds of" in line)
    assert r"\!\[x\]\(evil\)" in shown and r"\_c\_" in shown


@pytest.mark.parametrize("name", ["start", "coverage"])
def test_every_page_has_its_lesson_formula_and_code(name: str) -> None:
    assert set(SECTIONS) <= set(sections(name))
    labels = [e.label for e in page(name).expander]
    assert any(label.startswith("Lesson:") for label in labels)
    assert "Show the formula" in labels and "Show the code" in labels


def test_a_mask_that_comes_later_leaves_the_own_image_on_the_screen() -> None:
    phantom = draw(99)
    app = drop(page("coverage"), [("mine.png", png(phantom.image))])
    assert "Thresholds of** mine.png" in text(app)
    app = drop(app, [], [("mine_mask.png", png(phantom.mask.astype(np.uint8) * 255))])
    assert "Thresholds of** mine.png" in text(app)
    assert "On this image CRC finds" in app.header[0].value


def test_a_second_upload_is_shown_when_it_comes() -> None:
    one, two = ("one.png", png(draw(99).image)), ("two.png", png(draw(98).image))
    app = drop(page("coverage"), [one])
    app = drop(app, [one, two])
    assert "Thresholds of** two.png" in text(app)


def test_what_is_taken_home_holds_every_upload_that_was_seen_with_its_mask(monkeypatch) -> None:
    taken: list[list[tuple[str, bool]]] = []
    module = importlib.import_module("pages.parts.take_home")
    monkeypatch.setattr(
        module,
        "show",
        lambda split, shown, mine: taken.append([(p.name, p.coverage is not None) for p in mine]),
    )
    one, two = draw(99), draw(98)
    mask = ("one_mask.png", png(one.mask.astype(np.uint8) * 255))
    app = drop(page("coverage"), [("one.png", png(one.image))], [mask])
    drop(app, [("one.png", png(one.image)), ("two.png", png(two.image))])
    assert taken[-1] == [("two.png", False), ("one.png", True)]


def test_a_mask_in_the_same_zip_is_a_mask_and_not_an_image() -> None:
    phantom, file = draw(99), io.BytesIO()
    with zipfile.ZipFile(file, "w") as z:
        z.writestr("images/case.png", png(phantom.image))
        z.writestr("masks/case.png", png(phantom.mask.astype(np.uint8) * 255))
    app = drop(page("coverage"), [("cases.zip", file.getvalue())])
    assert "On this image CRC finds" in app.header[0].value
    assert "masks/case.png" not in text(app)


def test_the_drawn_model_warns_on_an_image_of_ones_own() -> None:
    assert "drawn pictures" not in "".join(i.value for i in page("coverage").info)
    app = drop(page("coverage"), [("mine.png", png(draw(99).image))])
    assert any("has seen drawn pictures" in i.value for i in app.info)


def test_start_follows_the_study_only_where_its_pictures_are(monkeypatch) -> None:
    monkeypatch.delenv("PLUMBLINE_POLYP_DATA", raising=False)
    app = AppTest.from_file(str(PAGES / "start.py"), default_timeout=180)
    app.session_state["model"] = "polyp"
    app.run()
    assert not app.exception
    assert "pictures of the study *Polyps, U-Net* do not ship" in text(app)
