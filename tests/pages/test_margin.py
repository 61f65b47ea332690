"""The page of the margin as people use it: shared links, sets and scopes, m and the ball, pictures and uploads, and what stands when records lack.

Records are made up (`tests.lab.made_loss_records`), networks have drawn weights: what ships is the benchmarks' business.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from streamlit.testing.v1 import AppTest

from core.data.phantoms import draw
from core.lab import margin_record, margin_view
from core.lab.margin_train import fresh
from core.margin.penalty import fixed_point
from core.nets.weights import save_network
from pages.parts import margin_look
from pages.parts.lesson import SECTIONS, sections
from tests.lab import made_loss_records
from tests.pages.driving import PATIENCE, page, png, text


@pytest.fixture(scope="module")
def weights(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Two networks with drawn weights under shipped names."""
    folder = tmp_path_factory.mktemp("margin")
    for seed, loss in enumerate(("ce", "margin")):
        model, spec = fresh("phantom", seed)
        save_network(folder / "weights" / f"margin-phantom-{loss}.safetensors", model, spec, {})
    return folder


@pytest.fixture(autouse=True)
def recorded(monkeypatch: pytest.MonkeyPatch, weights: Path) -> None:
    for name in ("records", "table", "choices", "bridge"):
        monkeypatch.setattr(margin_record, name, getattr(made_loss_records, name))
    monkeypatch.setattr(margin_view, "ASSETS", weights)
    margin_view._network.cache_clear()
    margin_look._views.cache_clear()
    for data in ("SKIN", "POLYP", "NUCLEI"):
        monkeypatch.delenv(f"PLUMBLINE_{data}_DATA", raising=False)


def test_the_first_screen_says_how_far_the_network_can_be_believed() -> None:
    app = page("margin")
    head = app.header[0].value
    assert (
        head.startswith("Where this network says 90\u00a0%, it is right") and "with a margin of 10," in head
    )
    labels = [m.label for m in app.metric][:3]
    assert labels == ["ECE, foreground, CE → margin", "ECE, all pixels, CE → margin", "Dice, CE → margin"]
    before, after = app.metric[1].value.split(" → ")
    assert f"from {before} to {after}" in head
    assert len(app.get("plotly_chart")) >= 2 and len(app.get("vega_lite_chart")) >= 2
    said = text(app)
    assert "Nothing is promised. ECE is a measurement on these images" in said
    assert "drawn alike" in said  # the bridge's promise, with its assumption


def test_a_shared_link_brings_set_scope_losses_and_m() -> None:
    app = page(
        "margin",
        set="Polyps",
        scope="foreground",
        first="focal",
        second="label smoothing",
        m="3",
        start="wrong",
    )
    assert app.segmented_control(key="set").value == "polyp"
    assert app.header[0].value.startswith("On true polyps, where a network with focal loss says")
    assert "with label smoothing" in app.header[0].value
    assert app.slider(key="m").value == 3.0
    assert app.segmented_control(key="start").value == "wrong"
    assert "even a perfect model has an error above zero" in text(app)
    assert "the very point of label smoothing" in text(app)  # m = 3 lies below log(3/w - 2)


def test_nonsense_in_the_address_opens_with_the_defaults() -> None:
    app = page("margin", set="teapots", scope="nothing", first="hinge", m="banana")
    assert app.header[0].value.startswith("Where this network says 90\u00a0%")
    assert app.slider(key="m").value == 10.0


def test_m_moves_the_fixed_point_and_not_the_headline() -> None:
    app = page("margin")
    head = app.header[0].value
    for m in (0.0, 20.0):
        app.slider(key="m").set_value(m).run()
        assert not app.exception, app.exception
        point = fixed_point(m, 0.1, 3)
        assert f"at a distance of {point.distance:.2f} and a confidence of {point.confidence:.4f}" in text(
            app
        )
        assert app.header[0].value == head


def test_every_set_and_every_pair_of_losses_is_a_page() -> None:
    app = page("margin")
    for data in ("skin", "polyp", "nuclei", "phantom"):
        app.segmented_control(key="set").set_value(data).run()
        assert not app.exception, app.exception
    for loss in ("ECP", "CE + T"):
        app.selectbox(key="second").set_value(loss).run()
        assert not app.exception, app.exception
    app.selectbox(key="second").set_value("CE").run()
    assert app.header[0].value.endswith("Choose a second loss to compare it with.")


def test_a_loss_that_a_set_lacks_gives_way() -> None:
    app = page("margin", set="Phantoms", second="spatial smoothing")
    assert app.selectbox(key="second").value == "SVLS"
    app.segmented_control(key="set").set_value("skin").run()
    assert not app.exception, app.exception
    assert app.selectbox(key="second").value != "SVLS"


def test_every_tab_of_the_pushes_draws() -> None:
    app = page("margin", m="4")
    marks = {
        "Two distances, all losses": "of this plane nothing pushes",
        "As a surface": "Penalty of",
        "The way, step by step": "this pixel's confidence is",
        "One distance": "is drawn for a pixel on a straight border",
    }
    for label, mark in marks.items():
        app.session_state["push"] = label
        app.run()
        assert not app.exception, app.exception
        said = text(app) + "".join(c.label for c in app.segmented_control)
        assert [m for m in marks.values() if m in said] == [mark], label


def test_the_table_sorts_by_numbers_and_shows_deviations() -> None:
    table = next(
        d for d in page("margin").dataframe if "ece_fg" in d.value.columns and "Set" in d.value.columns
    )
    assert list(table.value["ece_fg"]) == pytest.approx(
        [100 * r["ece_fg"] for r in made_loss_records.table()]
    )
    app = page("margin", set="Polyps")
    first = next(d for d in app.dataframe if "ece_fg" in d.value.columns and "Set" in d.value.columns)
    assert first.value["Set"].iloc[0] == "Polyps"
    assert "m = 5 was chosen among 0, 3, 5, 10" in text(page("margin", set="Skin lesions"))


def test_a_gap_never_stands_without_area_oracle_and_whole_image() -> None:
    app = page("margin", set="Polyps")
    gap = next(d.value for d in app.dataframe if "gap" in d.value.columns)
    assert {"gap", "area", "coverage", "ece_all"} <= set(gap.columns)
    assert {"oracle", "whole image"} <= set(gap["Method"])
    assert float(gap[gap["Method"] == "whole image"]["gap"].iloc[0]) == pytest.approx(10)
    assert "As a rule yes for CRC, plug-in and COAT." in text(app)
    app.segmented_control(key="level").set_value(0.2).run()
    assert not app.exception, app.exception
    assert "at least 80\u00a0%" in text(app)


def test_phantoms_have_maps_of_both_kinds() -> None:
    app = page("margin", set="Phantoms", sample="phantom-30003")
    images = len(app.image)
    assert images >= 4  # the picture, CE, margin, CE with its temperature
    assert "closest to what it says" in text(app)
    app.segmented_control(key="map").set_value("where it is wrong").run()
    assert not app.exception, app.exception
    assert len(app.image) == images and "Hatched and outlined: wrong" in text(app)


def test_real_sets_say_how_their_pictures_are_seen(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(margin_look, "networks_there", lambda data: ("CE", "margin"))
    app = page("margin", set="Polyps")
    assert "PLUMBLINE_POLYP_DATA" in text(app) and "No real picture ships" in text(app)
    assert str(tmp_path) not in text(app)
    assert "A phantom instead" in text(app) and "closest to what it says" in text(app)


def test_a_set_without_networks_keeps_its_figures() -> None:
    app = page("margin", set="Nuclei")
    assert "are not in assets/weights, so there are no maps" in text(app)
    assert app.header[0].value.startswith("Where this network says")


def test_an_upload_with_its_mask_is_seen_under_every_loss() -> None:
    phantom = draw(99)
    app = page("margin", set="Phantoms")
    app.file_uploader(key="images").set_value([("mine.png", png(phantom.image), "image/png")])
    app.file_uploader(key="masks").set_value(
        [("mine_mask.png", png(phantom.mask.astype(np.uint8) * 255), "image/png")]
    )
    app.run()
    assert not app.exception, app.exception
    assert "closest to what it says" in text(app) and "mine" in text(app)
    assert "sample" not in app.query_params


def test_an_upload_without_a_mask_has_confidence_and_no_errors() -> None:
    app = page("margin", set="Phantoms", map="where it is wrong")
    app.file_uploader(key="images").set_value([("mine.png", png(draw(99).image), "image/png")])
    app.run()
    assert not app.exception, app.exception
    assert "Without a mask nobody knows" in text(app)
    assert "drop one beside your image" in text(app)


def test_a_picture_that_is_taken_away_takes_what_was_made_of_it_along() -> None:
    app = page("margin", set="Phantoms")
    app.file_uploader(key="images").set_value([("mine.png", png(draw(99).image), "image/png")])
    app.run()
    assert len(app.session_state["margin-views"]) == 1
    app.file_uploader(key="images").set_value([])
    app.run()
    assert not app.exception, app.exception
    assert "margin-views" not in app.session_state


def test_a_broken_file_is_a_sentence_and_the_page_stands() -> None:
    app = page("margin")
    app.file_uploader(key="images").set_value([("broken.png", b"\x89PNG not really", "image/png")])
    app.run()
    assert not app.exception, app.exception
    assert any("broken.png" in w.value for w in app.warning)
    assert app.header[0].value.startswith("Where this network says")


def test_without_records_the_valley_still_stands(monkeypatch: pytest.MonkeyPatch) -> None:
    def missing(*_: object) -> None:
        raise FileNotFoundError("The record of phantoms is not in assets/margin.")

    for name in ("records", "table", "choices", "bridge"):
        monkeypatch.setattr(margin_record, name, missing)
    app = page("margin")
    assert "nothing is recorded here to compare" in app.header[0].value
    assert any("not in assets/margin" in i.value for i in app.info)
    assert len(app.get("plotly_chart")) >= 2 and "Train it here" in text(app)
    start = page("start")
    assert "not in assets/margin" in text(start)


def test_start_has_a_living_card_of_this_page() -> None:
    app = page("start")
    assert "Can you believe 0.9?" in text(app)
    assert "grey cross-entropy, blue the margin" in text(app)
    assert "[Open Margin](/margin)" in text(app)


def test_the_lesson_has_its_sections_and_its_links_open_this_page() -> None:
    found = sections("margin")
    assert set(SECTIONS) <= set(found)
    assert found["Steps"].count("(/margin") >= 4


def test_the_header_shows_a_page_only_what_means_something_there() -> None:
    def row() -> None:
        from pages import header

        header.show(study=False, seed=False)

    bare = AppTest.from_function(row, default_timeout=PATIENCE).run()
    assert not bare.exception and not bare.selectbox and not bare.number_input and not bare.button

    def whole() -> None:
        from pages import header

        header.show()

    full = AppTest.from_function(whole, default_timeout=PATIENCE).run()
    assert len(full.selectbox) == 2 and len(full.number_input) == 1 and len(full.button) == 1
