"""How page tests drive the app: open a page with an address, run it, read its words, hand it files. A run that meets an error fails the test."""

from __future__ import annotations

import io
from pathlib import Path

import numpy as np
from PIL import Image
from streamlit.testing.v1 import AppTest

PAGES = Path(__file__).resolve().parents[2] / "pages"
PATIENCE = 180
KINDS = ("header", "subheader", "markdown", "caption", "info", "warning")


def ran(app: AppTest) -> AppTest:
    app.run()
    assert not app.exception, app.exception
    return app


def page(name: str, **address: str) -> AppTest:
    """A page after its first run, with values in the address."""
    app = AppTest.from_file(str(PAGES / f"{name}.py"), default_timeout=PATIENCE)
    for key, value in address.items():
        app.query_params[key] = value
    return ran(app)


def text(app: AppTest) -> str:
    """Everything the page says."""
    return "\n".join(str(e.value) for kind in KINDS for e in app.get(kind))


def charts(app: AppTest) -> set[str]:
    """Keys of the Plotly charts."""
    return {str(e.key) for e in app.get("plotly_chart")}


def png(array: np.ndarray) -> bytes:
    file = io.BytesIO()
    Image.fromarray(array).save(file, "PNG")
    return file.getvalue()


def dropped(app: AppTest, zone: str, *files: tuple[str, bytes]) -> AppTest:
    """The page after files were put into a zone."""
    app.file_uploader(key=zone).set_value([(name, data, "application/octet-stream") for name, data in files])
    return ran(app)


def press(app: AppTest, label: str) -> AppTest:
    """The page after a button with this label was pressed."""
    next(b for b in app.button if b.label.replace("\\", "") == label).click()
    return ran(app)
