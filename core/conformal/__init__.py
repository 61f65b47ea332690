"""Exact conformal control of per-image coverage: curves, calibration, evaluation, and what is promised in
words.
"""

from core.conformal.control import Calibration, ShiftTable, calibrate, crc_target, shift_table
from core.conformal.curves import BIN_EDGES, CoverageCurves
from core.conformal.draws import calibrate_many
from core.conformal.metrics import (
    Evaluation,
    Resampled,
    coverage_over_draws,
    evaluate,
    resample,
    shift_for_area,
)
from core.conformal.words import images_needed

__all__ = [
    "BIN_EDGES",
    "Calibration",
    "CoverageCurves",
    "Evaluation",
    "Resampled",
    "ShiftTable",
    "calibrate",
    "calibrate_many",
    "coverage_over_draws",
    "crc_target",
    "evaluate",
    "images_needed",
    "resample",
    "shift_for_area",
    "shift_table",
]
