"""What a control needs to know of one setting, and the table of a settings class.

A knob is declared once, in the settings class of its method; both user interfaces build their controls from it and the command line its
flags. This module knows no widget and no method.
"""

from __future__ import annotations

from dataclasses import dataclass, field, fields
from typing import Any


@dataclass(frozen=True)
class Knob:
    """What a control needs to know of one setting.

    Attributes:
        name: Field name in the settings class.
        default: Value before anybody touches it.
        low: Smallest allowed value, or None where there is no range.
        high: Largest allowed value, or None.
        step: Step of a slider, or None.
        unit: Unit in words, "" for a pure number.
        help: One or two sentences for the person who moves it.
        choices: Allowed values of a choice; empty for numbers.
        log: True when the control should move on a logarithmic scale.
        label: What the control is called on the screen.
    """

    name: str
    default: Any
    low: float | None
    high: float | None
    step: float | None
    unit: str
    help: str
    choices: tuple[Any, ...] = ()
    log: bool = False
    label: str = ""


def knob(
    default: Any,
    low: float | None = None,
    high: float | None = None,
    step: float | None = None,
    unit: str = "",
    help: str = "",
    choices: tuple[Any, ...] = (),
    log: bool = False,
    label: str = "",
) -> Any:
    """Declare one field of a settings dataclass, with everything a control needs. See `Knob`."""
    return field(
        default=default,
        metadata={
            "knob": dict(
                low=low, high=high, step=step, unit=unit, help=help, choices=choices, log=log, label=label
            )
        },
    )


def knobs(settings: type | Any) -> dict[str, Knob]:
    """Read the table of a settings class.

    Args:
        settings: A dataclass (or an instance of one) whose fields were declared with `knob`.

    Returns:
        Field name -> `Knob`, in the order of declaration.
    """
    table = {}
    for f in fields(settings):
        if "knob" in f.metadata:
            facts = dict(f.metadata["knob"])
            facts["label"] = facts["label"] or f.name.replace("_", " ")
            table[f.name] = Knob(name=f.name, default=f.default, **facts)
    return table


def check(settings: Any) -> None:
    """Refuse settings outside their ranges.

    Raises:
        ValueError: Names the setting, its value and the allowed range or choices.
    """
    for name, k in knobs(settings).items():
        value = getattr(settings, name)
        if k.choices and value not in k.choices:
            raise ValueError(f"{k.label} is {value!r}; choose one of {', '.join(map(str, k.choices))}.")
        if k.low is not None and not (k.low <= value):
            raise ValueError(
                f"{k.label} is {value}; it cannot be below {k.low}{' ' + k.unit if k.unit else ''}."
            )
        if k.high is not None and not (value <= k.high):
            raise ValueError(
                f"{k.label} is {value}; it cannot be above {k.high}{' ' + k.unit if k.unit else ''}."
            )
