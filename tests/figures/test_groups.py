from __future__ import annotations

import pytest

from core.figures.groups import group_chart
from tests.figures.specs import layers_of, said, spec_of, title_of


def rows(by_group: bool = True):
    table = [("small", 0.7, 0.92, 9), ("large", 0.95, 0.91, 40)]
    found = []
    for group, one, own, n in table:
        for method, less in (("CRC", 0.0), ("COAT", 0.02)):
            found.append(
                {
                    "group": group,
                    "method": method,
                    "by_group": False,
                    "coverage": one - less,
                    "area": 0.2,
                    "testing": n,
                }
            )
            if by_group:
                found.append(
                    {
                        "group": group,
                        "method": method,
                        "by_group": True,
                        "coverage": own - less,
                        "area": 0.3,
                        "testing": n,
                    }
                )
    return found


def test_hollow_is_one_shift_for_all_and_filled_one_a_group_with_a_line_between():
    spec = spec_of(group_chart(rows(), 0.1, "size"))
    hollow, filled = layers_of(spec, "point")
    assert (hollow["mark"]["filled"], filled["mark"]["filled"]) == (False, True)
    assert [r["coverage"] for r in hollow["data"]["values"]] == [0.7, 0.68, 0.95, 0.93]
    ties = layers_of(spec, "rule")[1]["data"]["values"]
    assert {(r["group"], r["method"]): (r["from"], r["to"]) for r in ties}[("small", "CRC")] == (0.7, 0.92)
    assert len(ties) == 4


def test_a_report_alone_has_no_filled_marks_and_no_lines():
    spec = spec_of(group_chart(rows(False), 0.1, "size"))
    assert len(layers_of(spec, "point")) == 1 and len(layers_of(spec, "rule")) == 1
    assert "One shift for all." in title_of(spec)


def test_words_name_the_worst_group_and_every_number():
    spec = spec_of(group_chart(rows(), 0.1, "size"))
    assert "the worst group by size has 70 % (small)" in title_of(spec)
    assert "with one shift a group, 91 % (large)" in title_of(spec)
    assert "small, 9 test images: 70 % for 20 % of the image under CRC" in said(spec)
    assert "90 %" in said(spec)


def test_the_chart_grows_with_its_groups_in_their_order():
    more = [r | {"group": f"{r['group']} {k}"} for k in range(3) for r in rows()]
    assert (
        spec_of(group_chart(more, 0.1, "size"))["height"]
        > spec_of(group_chart(rows(), 0.1, "size"))["height"]
    )
    assert layers_of(spec_of(group_chart(more, 0.1, "size")), "point")[0]["encoding"]["y"]["sort"][:2] == [
        "small 0",
        "large 0",
    ]


@pytest.mark.parametrize("change", [{"coverage": 1.2}, {"area": -0.1}, {"method": "guess"}])
def test_what_cannot_be_drawn_is_refused(change):
    with pytest.raises(ValueError, match=r"shares|guess"):
        group_chart([rows()[0] | change], 0.1, "size")
    with pytest.raises(ValueError, match="no group"):
        group_chart([], 0.1, "size")
