"""The tables of knobs: complete, readable, and refused outside their ranges."""

from __future__ import annotations

from dataclasses import dataclass, fields, replace

import pytest

from core.settings import (
    AdaptSettings,
    CarSettings,
    CoatSettings,
    CoverageSettings,
    Knob,
    MarginSettings,
    OwnSettings,
    SweepSettings,
    TacscSettings,
    check,
    knob,
    knobs,
)

CLASSES = [
    CoverageSettings,
    CoatSettings,
    SweepSettings,
    OwnSettings,
    MarginSettings,
    CarSettings,
    TacscSettings,
    AdaptSettings,
]


@dataclass(frozen=True)
class Example:
    width: float = knob(3.0, 1.0, 9.0, 0.5, unit="pixels", help="How wide.")
    colour_of_line: str = knob("red", choices=("red", "blue"), help="Which colour.")
    free: int = knob(7, help="No range.")
    hidden: int = 5


def test_a_table_holds_what_was_declared_in_order():
    table = knobs(Example)
    assert list(table) == ["width", "colour_of_line", "free"]
    assert table["width"] == Knob("width", 3.0, 1.0, 9.0, 0.5, "pixels", "How wide.", (), False, "width")
    assert table["colour_of_line"].label == "colour of line"
    assert table["colour_of_line"].choices == ("red", "blue")
    assert knobs(Example(width=4.0)) == table


@pytest.mark.parametrize("settings", CLASSES)
def test_every_setting_has_a_knob_a_help_text_and_a_default_inside_its_range(settings):
    table = knobs(settings)
    assert list(table) == [f.name for f in fields(settings)]
    check(settings())
    for k in table.values():
        assert k.help.endswith("."), k.name
        assert k.label
        assert k.choices or (k.low is not None and k.high is not None and k.low < k.high), k.name
        assert not (k.log and k.low == 0), k.name


@pytest.mark.parametrize("settings", CLASSES)
def test_the_ends_of_a_range_are_allowed_and_what_lies_beyond_is_not(settings):
    for name, k in knobs(settings).items():
        if k.choices:
            for choice in k.choices:
                check(replace(settings(), **{name: choice}))
            with pytest.raises(ValueError, match="choose one of"):
                check(replace(settings(), **{name: "something else"}))
            continue
        check(replace(settings(), **{name: k.low}))
        check(replace(settings(), **{name: k.high}))
        with pytest.raises(ValueError, match="cannot be below"):
            check(replace(settings(), **{name: k.low - 1e-6}))
        with pytest.raises(ValueError, match="cannot be above"):
            check(replace(settings(), **{name: k.high + 1}))


def test_a_refusal_names_the_setting_its_value_and_the_unit():
    with pytest.raises(ValueError, match=r"width is 12\.0; it cannot be above 9\.0 pixels\."):
        check(Example(width=12.0))
    with pytest.raises(ValueError, match=r"colour of line is 'green'; choose one of red, blue\."):
        check(Example(colour_of_line="green"))
    with pytest.raises(ValueError):
        check(Example(width=float("nan")))


def test_at_and_coat_share_every_setting_but_the_objective():
    at, coat = CoatSettings(objective="at"), CoatSettings()
    assert [f.name for f in fields(at) if getattr(at, f.name) != getattr(coat, f.name)] == ["objective"]
