"""What tests share: a real server in a process of its own, a real browser, and the shared data where there is any."""

from __future__ import annotations

import os
import shutil
import signal
import socket
import subprocess
import sys
import time
import urllib.error
import urllib.request
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent
BROWSERS = (
    "chromium",
    "chromium-browser",
    "google-chrome",
    "google-chrome-stable",
    "/Applications/Google Chrome.app/Contents/MacOS/Google Chrome",
)
PATIENCE = 180.0  # seconds after which a wait counts as a hang; no measure of speed


@dataclass
class Server:
    """A running server: `url` without a slash at the end, `temp` its own temporary folder, `log` what it printed."""

    url: str
    temp: Path
    log: Path
    process: subprocess.Popen[bytes]

    def get(self, path: str) -> bytes:
        """What the server answers to a plain request."""
        with urllib.request.urlopen(self.url + path, timeout=PATIENCE) as answer:
            return answer.read()

    def stop(self) -> None:
        """Ask it to end, as a person does with Ctrl-C, and wait until it has."""
        if self.process.poll() is None:
            self.process.send_signal(signal.SIGINT)
            try:
                self.process.wait(30)
            except subprocess.TimeoutExpired:
                self.process.kill()
                self.process.wait()


def free_port() -> int:
    """A port that nobody listens on now."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def start_server(folder: Path, *flags: str) -> Server:
    """Start ``streamlit run app.py`` as a person would, and wait until it answers. No page has been asked for yet."""
    temp = folder / "temp"
    temp.mkdir()
    log = folder / "server.log"
    port = free_port()
    command = [sys.executable, "-m", "streamlit", "run", str(ROOT / "app.py")]
    command += [f"--server.port={port}", "--server.headless=true", "--server.address=127.0.0.1", *flags]
    with log.open("wb") as out:
        process = subprocess.Popen(
            command,
            cwd=ROOT,
            stdout=out,
            stderr=subprocess.STDOUT,
            stdin=subprocess.DEVNULL,
            env={**os.environ, "TMPDIR": str(temp), "OMP_NUM_THREADS": "1"},
        )
    server = Server(f"http://127.0.0.1:{port}", temp, log, process)
    end = time.monotonic() + PATIENCE
    while time.monotonic() < end:
        if process.poll() is not None:
            raise RuntimeError(f"The server ended at once:\n{log.read_text()}")
        try:
            with urllib.request.urlopen(f"{server.url}/_stcore/health", timeout=5):
                return server
        except (urllib.error.URLError, OSError):
            time.sleep(0.1)
    server.stop()
    raise RuntimeError(f"The server did not answer:\n{log.read_text()}")


@pytest.fixture(scope="session")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    """One server that many tests visit."""
    running = start_server(tmp_path_factory.mktemp("server"))
    yield running
    running.stop()


@pytest.fixture
def fresh_server(tmp_path: Path) -> Iterator[Server]:
    """A server of this test's own, which nobody has visited."""
    running = start_server(tmp_path)
    yield running
    running.stop()


@pytest.fixture(scope="session")
def browser():
    """The system's chromium, driven by playwright; skips with a reason where there is none."""
    playwright = pytest.importorskip("playwright.sync_api", reason="playwright is not installed")
    path = next((found for name in BROWSERS if (found := shutil.which(name))), None)
    if path is None:
        pytest.skip("no chromium on this machine; `make test` says how to install it")
    quiet = ["--disable-gpu", "--disable-quic", "--no-first-run", "--disable-background-networking"]
    quiet += ["--disable-component-update", "--disable-sync"]
    if hasattr(os, "geteuid") and os.geteuid() == 0:
        quiet.append("--no-sandbox")  # chromium refuses its sandbox to root
    with playwright.sync_playwright() as player:
        running = player.chromium.launch(executable_path=path, args=quiet)
        yield running
        running.close()


@pytest.fixture
def page(browser):
    """An empty tab, 1280 × 720, that asks nobody but our own server for anything."""
    context = browser.new_context(viewport={"width": 1280, "height": 720})
    tab = context.new_page()
    tab.set_default_timeout(PATIENCE * 1000)
    yield tab
    context.close()


@pytest.fixture(scope="session")
def shared_data() -> Path:
    """The folder of real data beside the checkout; skips with a reason where there is none."""
    folder = Path(os.environ.get("PLUMBLINE_DATA", ROOT.parent / "shared" / "data"))
    if not folder.is_dir():
        pytest.skip(f"no shared data at {folder}")
    return folder
