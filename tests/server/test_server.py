"""The one server as people meet it: shared links, the header, and what it never does with their files."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
import urllib.request
from pathlib import Path
from urllib.parse import parse_qs, urlsplit

import pytest

api = pytest.importorskip("playwright.sync_api", reason="playwright is not installed")

ROOT = Path(__file__).resolve().parent.parent.parent
PATIENCE = 180_000  # milliseconds after which a wait counts as a hang


def alpha_becomes(page, value: float) -> None:
    """Wait until the page's α slider shows a value; fails when it never does."""
    slider = page.get_by_role("slider", name=re.compile("^α")).first
    api.expect(slider).to_have_value(f"{value:g}", timeout=PATIENCE)


def seed_becomes(page, value: str) -> None:
    """Wait until the header shows a seed; fails when it never does."""
    api.expect(page.get_by_role("spinbutton", name="Seed")).to_have_value(value, timeout=PATIENCE)


@pytest.mark.browser
def test_a_fresh_servers_very_first_visit_may_be_a_shared_link(fresh_server, page):
    link = "/coverage?alpha=0.2&seed=7&model=phantom&sample=phantom-30003"
    page.goto(fresh_server.url + link)
    alpha_becomes(page, 0.2)
    seed_becomes(page, "7")
    names = page.get_by_test_id("stSidebarNavLink").all_inner_texts()
    assert ["Start" in names[0], "Coverage" in names[1]] == [True, True]
    assert page.get_by_test_id("stSidebarNavLink").nth(1).get_attribute("aria-current") == "page"
    assert urlsplit(page.url).path == "/coverage"
    assert parse_qs(urlsplit(page.url).query)["alpha"] == ["0.2"]
    api.expect(page.get_by_text("Thresholds of phantom-30003")).to_be_visible(timeout=PATIENCE)
    assert parse_qs(urlsplit(page.url).query)["sample"] == ["phantom-30003"]
    api.expect(page.get_by_text("at least 80")).to_be_visible(timeout=PATIENCE)


@pytest.mark.browser
def test_an_address_with_nonsense_in_it_opens_with_the_defaults(server, page):
    page.goto(server.url + "/coverage?alpha=banana&seed=-3&model=everything")
    alpha_becomes(page, 0.1)
    seed_becomes(page, "0")
    page.wait_for_function("!window.location.search.includes('banana')")
    assert page.get_by_test_id("stException").count() == 0


@pytest.mark.browser
def test_resample_goes_to_the_next_seed_and_puts_it_into_the_address(server, page):
    page.goto(server.url + "/coverage?seed=41")
    page.get_by_role("button", name="Resample").click()
    page.wait_for_function("new URLSearchParams(window.location.search).get('seed') === '42'")
    seed_becomes(page, "42")


@pytest.mark.browser
def test_after_the_last_seed_comes_the_first_again(server, page):
    page.goto(server.url + "/coverage?seed=9999")
    page.get_by_role("button", name="Resample").click()
    page.wait_for_function("!window.location.search.includes('9999')")
    seed_becomes(page, "0")


@pytest.mark.browser
@pytest.mark.parametrize(
    "secure", [True, False], ids=["on this computer", "on a classroom's plain http address"]
)
def test_copy_link_puts_the_address_of_this_view_on_the_clipboard(server, page, secure):
    if secure:
        page.context.grant_permissions(["clipboard-read", "clipboard-write"])
    else:  # what a browser offers on http://192.168…: no clipboard API at all
        page.add_init_script(
            "Object.defineProperty(navigator, 'clipboard', { value: undefined });"
            "document.addEventListener('copy', () => { window.copied = document.activeElement.value })"
        )
    page.goto(server.url + "/coverage?alpha=0.3&seed=5")
    page.get_by_role("button", name="Copy link").click()
    page.get_by_role("button", name="Link copied").wait_for()
    copied = page.evaluate("navigator.clipboard.readText()" if secure else "window.copied")
    assert copied == page.url
    assert "alpha=0.3" in copied and "seed=5" in copied


@pytest.mark.browser
def test_the_seed_and_the_model_stay_when_the_page_changes(server, page):
    page.goto(server.url + "/coverage?seed=12")
    seed_becomes(page, "12")
    page.get_by_role("link", name="Start").click()
    page.wait_for_function("window.location.pathname === '/'")
    page.wait_for_function("window.location.search.includes('seed=12')")
    seed_becomes(page, "12")


@pytest.mark.browser
def test_no_page_asks_another_server_for_anything(server, page):
    asked = []
    page.on("request", lambda request: asked.append(request.url))
    for path, sign in (("/", "Resample"), ("/coverage", "Resample"), ("/gradio/", "Outline it")):
        page.goto(server.url + path)
        page.get_by_role("button", name=sign).wait_for()
        page.wait_for_load_state("load")
    strangers = [url for url in asked if not url.startswith((server.url, "data:", "blob:", "ws"))]
    assert len(asked) > 10
    assert strangers == []


@pytest.mark.browser
def test_the_device_is_told_once_it_is_known(server, page):
    page.goto(server.url + "/")
    said = json.loads(server.get("/about/device"))["device"]
    assert re.search("CPU|GPU", said)
    page.get_by_text(said, exact=True).wait_for()


def test_the_address_without_its_last_slash_leads_to_the_embed(server):
    with urllib.request.urlopen(server.url + "/gradio?__theme=dark", timeout=180) as answer:
        assert answer.url == server.url + "/gradio/?__theme=dark"
        assert b"gradio" in answer.read().lower()


def probe(name: str, folder: Path) -> dict:
    """Run one of the programs beside this file in a process of its own, and read the JSON on its last line."""
    done = subprocess.run(
        [sys.executable, str(Path(__file__).with_name(name))],
        cwd=ROOT,
        capture_output=True,
        text=True,
        timeout=300,
        env={
            **os.environ,
            "PYTHONPATH": f"{ROOT}{os.pathsep}{os.environ.get('PYTHONPATH', '')}",
            "TMPDIR": str(folder),
        },
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout.splitlines()[-1])


def test_an_upload_up_to_the_limit_never_touches_the_disk(tmp_path):
    found = probe("probe_upload.py", tmp_path)
    assert found["status"] == 204
    assert found["bytes"] == found["sent"] > 150 * 1024 * 1024
    assert found["temporary_files"] == 0
    assert found["temporary_files_without_our_setting"] >= 1  # the probe would have seen one


def test_the_folder_of_the_embed_is_private_and_gone_after_the_server(fresh_server):
    fresh_server.get("/gradio/")
    (folder,) = fresh_server.temp.glob("plumbline-gradio-*")
    if os.name == "posix":
        assert folder.stat().st_mode & 0o077 == 0
    (folder / "left.txt").write_text("what an upload would leave")
    fresh_server.stop()
    assert not folder.exists()


def test_telemetry_is_off(server):
    assert json.loads(server.get("/gradio/config"))["analytics_enabled"] is False
    streamlit = (ROOT / ".streamlit" / "config.toml").read_text()
    assert "gatherUsageStats = false" in streamlit


def test_the_server_listens_on_this_computer_only_unless_told_otherwise():
    import tomllib

    config = tomllib.loads((ROOT / ".streamlit" / "config.toml").read_text())
    assert config["server"]["address"] == "127.0.0.1"
    assert config["server"]["maxUploadSize"] == 200
