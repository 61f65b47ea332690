"""Colours, dashes and shapes that mean the same everywhere (Okabe and Ito's colour-blind safe set)."""

from __future__ import annotations

COLOURS = {
    "CRC": "#E69F00",
    "COAT": "#0072B2",
    "AT": "#56B4E9",
    "plug-in": "#009E73",
    "AA-CRC": "#CC79A7",
    "oracle": "#999999",
    "whole image": "#666666",
}
DASHES = {
    "CRC": [8, 4],
    "COAT": [1, 0],
    "AT": [2, 2],
    "plug-in": [10, 3, 2, 3],
    "AA-CRC": [4, 2],
    "oracle": [3, 3],
    "whole image": [12, 6],
}
SHAPES = {
    "CRC": "square",
    "COAT": "circle",
    "AT": "triangle-up",
    "plug-in": "diamond",
    "AA-CRC": "cross",
    "oracle": "stroke",
    "whole image": "triangle-down",
}

LOSS_COLOURS = {
    "CE": "#8a8f96",
    "LS": "#CC79A7",
    "SVLS": "#56B4E9",
    "focal": "#009E73",
    "ECP": "#D55E00",
    "margin": "#0072B2",
    "CE + T": "#5f656d",
}
"""Losses of the margin page; legible on white and on black."""
LOSS_DASHES = {
    "CE": [8, 4],
    "LS": [4, 2],
    "SVLS": [2, 2],
    "focal": [10, 3, 2, 3],
    "ECP": [12, 3, 2, 3, 2, 3],
    "margin": [1, 0],
    "CE + T": [3, 5],
}
LOSS_SHAPES = {
    "CE": "square",
    "LS": "cross",
    "SVLS": "triangle-up",
    "focal": "diamond",
    "ECP": "triangle-down",
    "margin": "circle",
    "CE + T": "triangle-right",
}

TAIL_COLOURS = {
    "ce": "#8a8f96",
    "balanced": "#CC79A7",
    "focal": "#009E73",
    "ldam": "#D55E00",
    "adjusted": "#E69F00",
    "car-paper": "#56B4E9",
    "car-count": "#0072B2",
    "own": "#E69F00",
}
"""Methods of the confusion page by the keys of `core.lab.tail_methods`; ablations look like what they start from, with an open marker."""
TAIL_DASHES = {
    "ce": [8, 4],
    "balanced": [4, 2],
    "focal": [10, 3, 2, 3],
    "ldam": [12, 3, 2, 3, 2, 3],
    "adjusted": [2, 2],
    "car-paper": [14, 4],
    "car-count": [1, 0],
    "own": [1, 0],
}
TAIL_SHAPES = {
    "ce": "square",
    "balanced": "cross",
    "focal": "diamond",
    "ldam": "triangle-down",
    "adjusted": "triangle-right",
    "car-paper": "triangle-up",
    "car-count": "circle",
    "own": "circle",
}

ABLATION_SHAPES = {
    "car-present": "diamond",
    "car-naive-max": "square",
    "car-count-sum": "triangle-up",
    "car-no-weights": "cross",
    "car-no-ema": "x",
    "car-gate": "star",
    "car-cutmix": "hexagon",
    "car-adjusted": "triangle-right",
}
"""Open markers of what starts from CAR; its colour is CAR's."""


def rgb_of(name: str) -> tuple[int, int, int]:
    """The colour of a method as three numbers from 0 to 255."""
    value = COLOURS[name].lstrip("#")
    return int(value[0:2], 16), int(value[2:4], 16), int(value[4:6], 16)
