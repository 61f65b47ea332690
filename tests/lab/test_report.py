from __future__ import annotations

import html
import json
import re
from dataclasses import replace
from html.parser import HTMLParser

import pytest

from core.lab.report import html_report
from core.lab.study import TABLE, resampled
from core.lab.take_away import study_rows
from tests.lab.made_study import made_promise, made_split

HOSTILE = '<script>alert("x")</script>"><img src=x onerror=alert(1)>.png'


class Page(HTMLParser):
    """Tags, attributes and visible text of a document."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.tags: list[tuple[str, dict[str, str | None]]] = []
        self.words: list[str] = []
        self.feed(text)

    def handle_starttag(self, tag, attrs):
        self.tags.append((tag, dict(attrs)))

    def handle_startendtag(self, tag, attrs):
        self.tags.append((tag, dict(attrs)))

    def handle_data(self, data):
        self.words.append(data)

    @property
    def text(self) -> str:
        return " ".join(" ".join(self.words).replace("\u00a0", " ").split())


@pytest.fixture(scope="module")
def split():
    return made_split()


@pytest.fixture(scope="module")
def report(split):
    draws = resampled(split.study, split.alpha, split.seed, draws=20, methods=("CRC", "COAT"))
    spread = {m: found.coverage for m, found in draws.items()}
    promises = [made_promise(HOSTILE), made_promise("plain.png", mask=False)]
    return html_report(split, promises, 3, date="1 May 2031", spread=spread)


def test_the_file_asks_nobody_for_anything(report):
    page = Page(report)
    assert not {"script", "link", "iframe", "object", "embed", "base", "form"} & {tag for tag, _ in page.tags}
    for tag, attributes in page.tags:
        for name, value in attributes.items():
            assert not name.startswith("on"), (tag, name)
            if name in ("src", "href", "xlink:href", "srcset", "action"):
                assert value and value.startswith(("data:image/png;base64,", "#")), (tag, value)
    assert "@import" not in report
    assert not re.search(r"url\(\s*['\"]?(?!#)", report)


def test_a_hostile_file_name_stays_text(report):
    page = Page(report)
    assert HOSTILE.replace("\u00a0", " ") in page.text
    assert "<script" not in report
    assert not any("onerror" in attributes for _, attributes in page.tags)
    assert any(HOSTILE in (attributes.get("alt") or "") for tag, attributes in page.tags if tag == "img")


def test_a_hostile_title_and_date_stay_text(split):
    text = html_report(split, [], 3, title=HOSTILE, date=HOSTILE)
    assert "<script" not in text
    assert html.escape(HOSTILE, quote=False)[:20] in text


def test_each_image_has_its_picture_its_chart_and_its_numbers(report):
    page = Page(report)
    pictures = [a for tag, a in page.tags if tag == "img"]
    assert len(pictures) == 2
    assert all(a["alt"] and a["src"].startswith("data:image/png;base64,") for a in pictures)
    p = made_promise()
    assert f"COAT's {100 * p.coverage['COAT']:.0f} %" in pictures[0]["alt"].replace("\u00a0", " ")
    assert "not known without its mask" in pictures[1]["alt"]
    charts = [a for tag, a in page.tags if tag == "svg"]
    assert len(charts) == 2 + 4
    assert all(len(a["aria-label"]) > 60 for a in charts)


def test_the_promise_its_assumption_and_its_price_are_in_words(report, split):
    text = Page(report).text
    assert split.calibrations["CRC"].guarantee.replace("\u00a0", " ") in text
    assert "It costs area" in text
    assert "The cost." in text
    assert "no medical device" in text
    assert "1 May 2031" in text
    assert "Python 3" in text
    assert re.search(r"torch \d", text)


def test_the_table_holds_every_row_with_its_numbers(report, split):
    cells = re.findall(r"<tr[^>]*><td>([^<]*)</td>((?:<td>[^<]*</td>)+)</tr>", report)
    table = {
        name: re.findall(r"<td>([^<]*)</td>", rest)
        for name, rest in cells
        if name in TABLE and len(re.findall("<td>", rest)) == 7
    }
    assert list(table) == list(TABLE)
    for row in study_rows(split):
        assert table[row["method"]][:2] == [f"{row['coverage']:.3f}", f"{row['gap']:.3f}"]
        assert table[row["method"]][4] == f"{row['area']:.3f}"


def test_the_settings_are_json_that_can_be_read_back(report, split):
    found = re.search(r"<pre>(.*?)</pre>", report, re.DOTALL)
    settings = json.loads(html.unescape(found.group(1)))
    assert (settings["alpha"], settings["seed"], settings["model"]) == (split.alpha, 3, "made-up")
    assert [i["image"] for i in settings["images"]] == [HOSTILE, "plain.png"]
    assert settings["shift_logit"]["COAT"] == split.calibrations["COAT"].shift


def test_a_report_without_images_still_tells_of_the_study(split):
    page = Page(html_report(split, [], 3))
    assert len([1 for tag, _ in page.tags if tag == "svg"]) == 3
    assert not any(tag == "img" for tag, _ in page.tags)


def test_phantoms_are_said_to_be_drawn(split):
    study = replace(split, study=replace(split.study, name="phantom"))
    assert "they are drawn by a program, not taken of anybody" in Page(html_report(study, [], 0)).text


def test_an_answer_to_another_question_is_refused(split):
    with pytest.raises(ValueError, match="same settings"):
        html_report(split, [made_promise(alpha=0.2)], 3)
    with pytest.raises(ValueError, match=r"polyp"):
        html_report(split, [made_promise(model="polyp")], 3)
