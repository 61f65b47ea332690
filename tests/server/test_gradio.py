"""The embed's REST endpoint, called over the network as somebody else's program would, and its page in a browser."""

from __future__ import annotations

import re

import numpy as np
import pytest

from core import images
from core.data import phantoms

gradio_client = pytest.importorskip("gradio_client", reason="gradio_client is not installed")

LESION = 3  # the phantom that is sent


@pytest.fixture(scope="module")
def client(server, tmp_path_factory):
    """A client of the embed that keeps its downloads in a folder of the test's own."""
    folder = tmp_path_factory.mktemp("downloads")
    return gradio_client.Client(
        server.url + "/gradio/",
        verbose=False,
        download_files=str(folder),
        analytics_enabled=False,
        httpx_kwargs={"timeout": 180},
    )


@pytest.fixture(scope="module")
def files(tmp_path_factory):
    """A phantom and its mask as PNG files, and a mask of another size."""
    folder = tmp_path_factory.mktemp("files")
    drawn = phantoms.draw(LESION)
    truth = np.repeat(drawn.mask[..., None], 3, axis=2).astype(np.uint8) * 255
    content = {"image.png": drawn.image, "mask.png": truth, "half.png": np.ascontiguousarray(truth[::2, ::2])}
    for name, pixels in content.items():
        (folder / name).write_bytes(images.png_bytes(pixels))
    (folder / "letter.png").write_text("Dear Sir or Madam")
    return folder


def send(path):
    return gradio_client.handle_file(str(path))


def test_the_api_says_what_the_core_function_says(client, files):
    from core.figures.outlines import draw_outlines
    from core.lab.promise import outline

    picture, table, words, facts = client.predict(
        image=send(files / "image.png"), mask=send(files / "mask.png"), alpha=0.2, api_name="/promise"
    )
    drawn = phantoms.draw(LESION)
    direct = outline(drawn.image, drawn.mask, alpha=0.2, model="phantom", name="image.png")
    assert facts["alpha"] == 0.2 and facts["model"] == "phantom" and facts["image"] == "image.png"
    assert {"CRC", "COAT"} <= set(facts["set_area"])
    for method, tau in direct.tau.items():
        assert facts["threshold_logit"][method] == pytest.approx(tau, abs=1e-3)
        assert facts["set_area"][method] == pytest.approx(direct.area[method], abs=1e-3)
        assert facts["coverage"][method] == pytest.approx(direct.coverage[method], abs=1e-3)
        assert facts["threshold_probability"][method] == pytest.approx(1 / (1 + np.exp(-tau)), abs=1e-3)
    assert [row[0] for row in table["data"]] == list(direct.tau)
    for sentence in direct.sentences:
        assert sentence in words
    seen = images.to_rgb(images.read(picture)[0])
    sets = {m: direct.set_of(m) for m in ("CRC", "COAT")}
    assert np.array_equal(seen, draw_outlines(direct.image, direct.mask, sets))


def test_without_a_mask_nothing_is_claimed_about_the_lesion(client, files):
    _, table, _, facts = client.predict(image=send(files / "image.png"), api_name="/promise")
    assert facts["coverage"] is None
    assert {row[3] for row in table["data"]} == {"–"}


def test_without_any_file_a_drawn_picture_is_outlined_and_said_to_be_drawn(client):
    _, _, words, facts = client.predict(api_name="/promise")
    assert "drawn" in words and facts["coverage"] is not None


def test_the_polyp_model_asks_for_a_frame_instead_of_taking_a_drawing(client):
    with pytest.raises(Exception, match="colonoscopy frame"):
        client.predict(model="polyp", api_name="/promise")


def test_a_file_that_is_no_image_is_named_and_the_next_one_works(client, files):
    with pytest.raises(Exception, match=r"letter\.png"):
        client.predict(image=send(files / "letter.png"), api_name="/promise")
    assert client.predict(image=send(files / "image.png"), api_name="/promise")[3]["image"] == "image.png"


def test_a_mask_of_another_size_is_asked_about_and_never_stretched_silently(client, files):
    both = {"image": send(files / "image.png"), "mask": send(files / "half.png")}
    with pytest.raises(Exception, match=r"128.*256|256.*128"):
        client.predict(**both, api_name="/promise")
    words = client.predict(**both, resize_mask=True, api_name="/promise")[2]
    assert re.search("resiz", words, re.IGNORECASE)


def test_uploads_lie_in_the_embeds_own_folder_and_nowhere_else(client, files, server):
    client.predict(image=send(files / "image.png"), api_name="/promise")
    (folder,) = server.temp.glob("plumbline-gradio-*")
    names = [path for path in server.temp.rglob("*") if path.is_file()]
    assert any(path.name == "image.png" for path in names)
    assert all(folder in path.parents for path in names)


@pytest.mark.browser
def test_the_page_shows_an_outline_at_once_and_new_numbers_after_an_upload(server, page, files):
    page.goto(server.url + "/gradio/")
    picture = (
        page.get_by_test_id("image")
        .locator("img")
        .or_(page.locator("[aria-label*='Image'] img, .image-frame img"))
        .first
    )
    picture.wait_for()
    before = picture.get_attribute("src")
    page.locator("input[type=file]").first.set_input_files(str(files / "image.png"))
    page.wait_for_function(
        "before => [...document.querySelectorAll('img')].some(i => i.src.includes('/file=') && i.src !== before)",
        arg=before,
    )
    assert page.get_by_role("button", name="Share").count() == 0
