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


def rgb_of(name: str) -> tuple[int, int, int]:
    """The colour of a method as three numbers from 0 to 255."""
    value = COLOURS[name].lstrip("#")
    return int(value[0:2], 16), int(value[2:4], 16), int(value[4:6], 16)
