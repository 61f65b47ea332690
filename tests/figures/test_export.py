from __future__ import annotations

import io
import re
import xml.etree.ElementTree as ET

import numpy as np
import pytest
from PIL import Image

from core.figures.export import to_png, to_svg
from core.figures.strip import strip_chart

NAMES = ['<script>alert("x")</script>', "b & c"]


def chart(picked: str | None = None):
    return strip_chart(
        NAMES, ["test", "test"], {"CRC": np.array([0.4, 1.0]), "COAT": np.array([0.9, 0.9])}, 0.1, picked
    )


def test_an_svg_is_720_wide_and_asks_nobody_for_anything():
    svg = to_svg(chart()).decode()
    assert svg.startswith("<svg")
    root = ET.fromstring(svg)
    assert float(root.attrib["width"]) == pytest.approx(720, abs=1)
    outside = [a for a in re.findall(r'(?:href|src)\s*=\s*"([^"]*)"', svg) if not a.startswith("#")]
    assert outside == []
    assert "@import" not in svg
    assert "url(http" not in svg


def test_an_svg_says_what_it_shows_and_takes_the_page_s_ink():
    made = chart()
    root = ET.fromstring(to_svg(made).decode())
    assert root.attrib["role"] == "img"
    assert root.attrib["aria-label"] == made.to_dict()["description"]
    assert "currentColor" in to_svg(made).decode()


def test_a_hostile_name_stays_text():
    assert b"<script" not in to_svg(chart(NAMES[0]))


def test_a_png_has_the_size_asked_for_and_its_own_paper():
    light = Image.open(io.BytesIO(to_png(chart(), scale=1, width=500))).convert("RGB")
    dark = Image.open(io.BytesIO(to_png(chart(), scale=2, width=500, dark=True))).convert("RGB")
    assert light.width == pytest.approx(500, abs=2)
    assert dark.width == pytest.approx(1000, abs=4)
    assert light.getpixel((2, light.height - 2)) == (255, 255, 255)
    assert max(dark.getpixel((2, dark.height - 2))) < 40


def test_a_dark_png_has_light_ink():
    dark = np.asarray(Image.open(io.BytesIO(to_png(chart(), dark=True))).convert("L"))
    assert (dark > 200).mean() > 0.005
