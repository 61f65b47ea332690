"""Latency: from a moved α slider to the coverage page's data, and from `streamlit run` to the first page.

The data of a move is everything that `pages/coverage.py` asks of `core.lab`: all methods calibrated and
evaluated on the phantom study, the promise of one uploaded image, the table, the thresholds, the hardest
images, and CRC and COAT over 1,000 draws. Files to take away are made when asked for and not counted. Every
move goes to an α that was not asked for before, so that no cache answers. The first page is the start page
in a real browser, from an empty process to its picture, after one warm-up start.
"""

from __future__ import annotations

import argparse
import os
import shutil
import socket
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import numpy as np

ROOT = Path(__file__).resolve().parents[1]


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Flags of this benchmark."""
    parser.add_argument("--moves", type=int, default=40, help="slider moves")
    parser.add_argument("--skip-first-page", action="store_true", help="measure only the slider")


def move_times(moves: int) -> dict[str, list[float]]:
    """Milliseconds of each move: the page's data, and of it the split and the draws."""
    from core.data.phantoms import draw
    from core.lab.promise import promise, score
    from core.lab.study import hardest, shipped_study, split_study, spread
    from core.lab.take_away import study_rows

    upload = draw(777)
    scored = score(upload.image, "phantom", "upload")
    study = shipped_study("phantom")
    alphas = np.random.default_rng(0).permutation(np.linspace(0.02, 0.5, moves + 3))
    times: dict[str, list[float]] = {
        "coverage, data of a moved α": [],
        "of it: split": [],
        "of it: draws": [],
    }
    for k, alpha in enumerate(float(a) for a in alphas):
        began = time.perf_counter()
        split = split_study(study, alpha, 0)
        after_split = time.perf_counter()
        promise(scored, upload.mask, alpha=alpha)
        hardest(split)
        study_rows(split)
        before_draws = time.perf_counter()
        spread(study, alpha)
        ended = time.perf_counter()
        if k >= 3:  # the first moves fill caches that a running server has filled
            for row, span in zip(
                times, (ended - began, after_split - began, ended - before_draws), strict=True
            ):
                times[row].append(1000 * span)
    return times


def page_times(moves: int) -> list[float]:
    """Milliseconds of a whole rerun of the coverage page's script, charts and all, without a browser."""
    from streamlit.testing.v1 import AppTest

    app = AppTest.from_file(str(ROOT / "pages" / "coverage.py"), default_timeout=120).run()
    times = []
    for alpha in np.linspace(0.03, 0.45, moves):
        slider = app.slider(key="alpha").set_value(round(float(alpha), 2))
        began = time.perf_counter()
        slider.run()
        times.append(1000 * (time.perf_counter() - began))
    return times[2:]


def first_page(chromium: str) -> float:
    """Seconds from the start of the process to the picture of the start page."""
    from playwright.sync_api import sync_playwright

    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    url = f"http://127.0.0.1:{port}"
    with sync_playwright() as p:
        browser = p.chromium.launch(
            executable_path=chromium,
            args=["--no-sandbox", "--disable-gpu", "--disable-background-networking"],
        )
        page = browser.new_page(viewport={"width": 1280, "height": 720})
        began = time.perf_counter()
        command = [sys.executable, "-m", "streamlit", "run", str(ROOT / "app.py"), f"--server.port={port}"]
        server = subprocess.Popen(
            [*command, "--server.headless=true", "--server.address=127.0.0.1"],
            cwd=ROOT,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            env=os.environ.copy(),
        )
        try:
            while True:
                try:
                    socket.create_connection(("127.0.0.1", port), 0.2).close()
                    break
                except OSError:
                    time.sleep(0.02)
            page.goto(url)
            page.locator("canvas").first.wait_for(timeout=120_000)
            return time.perf_counter() - began
        finally:
            server.terminate()
            server.wait()
            browser.close()


def run(args: argparse.Namespace) -> dict[str, Any]:
    """Measure and print."""
    moves = 15 if args.quick else args.moves
    times = move_times(moves)
    times["coverage, whole rerun with charts"] = page_times(min(moves, 12))
    rows = [
        {"page": name, "p50_ms": float(np.median(t)), "p95_ms": float(np.quantile(t, 0.95))}
        for name, t in times.items()
    ]
    chromium = shutil.which("chromium") or shutil.which("chromium-browser")
    seconds = None
    if chromium and not args.skip_first_page and not args.quick:
        first_page(chromium)  # warms the disk
        seconds = first_page(chromium)
    return {
        "settings": {"moves": moves, "pool": 312, "draws": 1000},
        "rows": rows,
        "p50_ms": rows[0]["p50_ms"],
        "p95_ms": rows[0]["p95_ms"],
        "first_page_s": seconds,
    }
