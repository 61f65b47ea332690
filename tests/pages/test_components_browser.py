"""The components of our own as a person meets them in a real browser: dragging, wiping, choosing, reading, and on a phone."""

from __future__ import annotations

import os
import re
import runpy
import socket
import subprocess
import sys
import time
import urllib.error
import urllib.request
from pathlib import Path

import numpy as np
import pytest

from pages.components.codes import STEP

ROOT = Path(__file__).resolve().parent.parent.parent
APP = Path(__file__).resolve().parent / "components_app.py"


@pytest.fixture(scope="module")
def world() -> dict:
    """The arrays of the app."""
    return runpy.run_path(str(APP))


@pytest.fixture(scope="module")
def address(browser, tmp_path_factory):  # `browser` first: without one nothing need start
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    command = [sys.executable, "-m", "streamlit", "run", str(APP), f"--server.port={port}"]
    command += ["--server.headless=true", "--server.address=127.0.0.1"]
    env = {**os.environ, "PYTHONPATH": str(ROOT), "OMP_NUM_THREADS": "1"}
    log = (tmp_path_factory.mktemp("components") / "log").open("wb")
    process = subprocess.Popen(command, cwd=ROOT, env=env, stdout=log, stderr=log)
    try:
        for _ in range(600):
            try:
                urllib.request.urlopen(f"http://127.0.0.1:{port}/_stcore/health", timeout=5)
                break
            except (urllib.error.URLError, OSError):
                time.sleep(0.1)
        yield f"http://127.0.0.1:{port}"
    finally:
        process.terminate()
        process.wait(30)
        log.close()


@pytest.fixture
def shown(page, address):
    page.emulate_media(reduced_motion="reduce")
    page.goto(address)
    page.wait_for_function(LOADED)
    return page


LOADED = """[...document.querySelectorAll('*')].filter(
  (each) => each.shadowRoot?.querySelector('.frame')?.clientWidth > 50).length === 2"""


def range_of(page):
    return page.get_by_role("slider", name=re.compile("^Your threshold"))


def sentence_of(page) -> str:
    page.evaluate("() => new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(done)))")
    return page.locator(".threshold .sentence").inner_text().replace("\xa0", " ")


def shares_in(text: str) -> list[float]:
    return [float(number) for number in re.findall(r"([\d.]+) %", text)]


def check_against_python(world, name: str, text: str, tau: float) -> None:
    """The two shares of a sentence are Python's, but for rounding and for scores within one step of the threshold."""
    scores = world["MAPS"][name].astype(np.float32)
    for said, inside in zip(shares_in(text), (scores[world["MASK"]], scores.ravel()), strict=True):
        low, high = 100 * np.mean(inside >= tau), 100 * np.mean(inside >= tau - STEP)
        assert low - 0.5 <= said <= high + 0.5, text


@pytest.mark.browser
def test_it_starts_at_crcs_threshold_and_dragging_changes_the_sentence_to_pythons_numbers(shown, world):
    first = sentence_of(shown)
    assert first.startswith("At threshold 0.73: ")
    check_against_python(world, "wave", first, 1.0)
    range_of(shown).scroll_into_view_if_needed()
    box = range_of(shown).bounding_box()
    for part in (0.2, 0.45, 0.8):
        shown.mouse.move(box["x"] + box["width"] * 0.6, box["y"] + box["height"] / 2)
        shown.mouse.down()
        shown.mouse.move(box["x"] + box["width"] * part, box["y"] + box["height"] / 2, steps=5)
        shown.mouse.up()
        text = sentence_of(shown)
        assert text != first
        check_against_python(world, "wave", text, float(range_of(shown).input_value()))
        assert range_of(shown).get_attribute("aria-valuetext").replace("\xa0", " ") in text.replace(
            "At threshold ", ""
        )


@pytest.mark.browser
def test_the_persons_threshold_outlives_new_thresholds_but_not_a_new_image(shown, world):
    range_of(shown).press("ArrowLeft")
    mine = sentence_of(shown)
    check_against_python(world, "wave", mine, 0.95)
    shown.get_by_role("button", name="Another threshold for CRC").click()
    shown.locator(".wipe .caption.left", has_text="marks 100").wait_for()  # the new threshold has arrived
    assert sentence_of(shown) == mine
    shown.get_by_role("button", name="To COAT").click()
    check_against_python(world, "wave", sentence_of(shown), -1.0)
    shown.get_by_role("button", name="Back to CRC").click()
    assert (
        sentence_of(shown)
        == "At threshold 0 (the whole image): 100 % of the lesion inside, 100 % of the image marked."
    )
    range_of(shown).press("End")
    assert "whole image" not in sentence_of(shown)
    shown.get_by_role("button", name="hill").click()
    shown.get_by_text("chosen: hill").wait_for()
    shown.wait_for_function(  # a new image starts again at CRC's threshold
        "[...document.querySelectorAll('*')].some("
        "(each) => each.shadowRoot?.querySelector('.threshold .sentence')?.textContent.includes('whole'))"
    )


@pytest.mark.browser
def test_wiping_by_keyboard_and_by_pointer(shown, world):
    handle = shown.get_by_role("slider", name="Wipe between CRC on the left and COAT on the right")
    assert handle.get_attribute("aria-valuenow") == "50"
    handle.press("ArrowRight")
    handle.press("ArrowRight")
    shown.wait_for_function("(each) => each.ariaValueNow === '54'", arg=handle.element_handle())
    handle.press("Home")
    shown.wait_for_function("(each) => each.ariaValueNow === '0'", arg=handle.element_handle())
    box = shown.locator(".wipe .frame").bounding_box()
    shown.locator(".wipe .frame").click(position={"x": box["width"] * 0.25, "y": box["height"] / 3})
    shown.wait_for_function("(each) => each.ariaValueNow === '25'", arg=handle.element_handle())
    for side, tau in (("left", 1.0), ("right", -1.0)):
        check_against_python(
            world, "wave", shown.locator(f".wipe .caption.{side}").inner_text().replace("\xa0", " "), tau
        )


BLUE_COLUMNS = """(canvas) => {
  const { width, height } = canvas
  const row = canvas.getContext('2d').getImageData(0, Math.floor(height * 0.06), width, 1).data
  const found = []
  for (let x = 0; x < 0.95 * width; x += 1) { // at the right edge the outline follows the picture's own
    const [red, green, blue] = row.slice(4 * x, 4 * x + 3)
    if (red < 12 && Math.abs(green - 114) < 12 && Math.abs(blue - 178) < 12) found.push((x + 0.5) / width)
  }
  return found
}"""


@pytest.mark.browser
def test_an_outline_runs_between_pixels_where_the_scores_cross_and_its_chip_hides_it(shown):
    shown.get_by_role("button", name="Python takes the ramp").click()
    shown.get_by_text("chosen: ramp").wait_for()
    shown.wait_for_function(LOADED)
    canvas = shown.locator(".threshold canvas.image")
    # (40 - 50) / 10 is COAT's -1, and a pixel's middle is at + 0.5: the line's middle lies at 40.5 of 100 columns.
    there = "found.length && Math.abs(100 * found.reduce((a, b) => a + b) / found.length - 40.5) < 0.3"
    shown.wait_for_function(
        f"(canvas) => {{ const found = ({BLUE_COLUMNS})(canvas); return {there} }}",
        arg=canvas.element_handle(),
    )
    chip = shown.locator(".threshold .chips button", has_text="COAT")
    assert chip.get_attribute("aria-pressed") == "true"
    chip.click()
    assert chip.get_attribute("aria-pressed") == "false"
    sentence_of(shown)  # waits for the next frame
    assert canvas.evaluate(BLUE_COLUMNS) == []


@pytest.mark.browser
def test_gallery_click_reruns_the_app_and_python_may_choose_too(shown):
    strip = shown.get_by_role("toolbar", name="Test images")
    pressed = strip.locator("button[aria-pressed=true]")
    assert pressed.get_attribute("data-id") == "wave"
    strip.get_by_role("button", name="hill").click()
    shown.get_by_text("chosen: hill").wait_for()
    assert pressed.get_attribute("data-id") == "hill"
    shown.get_by_role("button", name="Python takes the ramp").click()
    shown.get_by_text("chosen: ramp").wait_for()
    strip.locator("button[aria-pressed=true][data-id=ramp]").wait_for()
    strip.get_by_role("button", name="ramp").press("ArrowLeft")
    shown.keyboard.press("Home")
    assert pressed.get_attribute("data-id") == "ramp", "arrows move, they do not choose"
    shown.keyboard.press("Enter")
    shown.get_by_text("chosen: wave").wait_for()
    assert pressed.get_attribute("data-id") == "wave"


@pytest.mark.browser
@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_axe_finds_nothing_serious(page, address, scheme):
    axe = pytest.importorskip("axe_playwright_python.sync_playwright", reason="axe is not installed").Axe()
    page.emulate_media(color_scheme=scheme, reduced_motion="reduce")
    page.goto(address)
    page.wait_for_function(LOADED)
    ours = [
        (each["id"], node["target"])
        for each in axe.run(page).response["violations"]
        if each["impact"] in ("serious", "critical")
        for node in each["nodes"]
        if any(
            isinstance(part, list) for part in node["target"]
        )  # a list: inside a shadow root, where only ours live
    ]
    assert ours == []


@pytest.mark.browser
def test_on_a_phone_nothing_is_wider_than_the_screen(page, address):
    page.set_viewport_size({"width": 420, "height": 900})
    page.goto(address)
    page.wait_for_function(LOADED)
    assert page.evaluate("document.documentElement.scrollWidth") <= 420
    picture, curve = (
        page.locator(".threshold .stage").bounding_box(),
        page.locator(".threshold .side").bounding_box(),
    )
    assert curve["y"] >= picture["y"] + picture["height"]
    assert picture["width"] > 300
