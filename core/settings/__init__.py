"""One table for every knob: its default, range, unit and help text.

Each method has a frozen dataclass here (or, for a generator of data, beside the generator). Both user
interfaces build their controls from these tables and the command line builds its flags from them, so that a
default is written in one place only. This room knows no widget and no method.
"""

from core.settings.car import CarSettings
from core.settings.conformal import CoatSettings, CoverageSettings, OwnSettings, SweepSettings
from core.settings.knob import Knob, check, knob, knobs
from core.settings.margin import MarginSettings
from core.settings.tacsc import AdaptSettings, TacscSettings

__all__ = [
    "AdaptSettings",
    "CarSettings",
    "CoatSettings",
    "CoverageSettings",
    "Knob",
    "MarginSettings",
    "OwnSettings",
    "SweepSettings",
    "TacscSettings",
    "check",
    "knob",
    "knobs",
]
