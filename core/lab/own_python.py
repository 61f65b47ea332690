"""The lines of Python that apply a calibration in somebody's pipeline: text that runs as it stands, beside `calibration.json` and one map.

CRC and the plug-in threshold need NumPy alone; AT, COAT and groups need this library, for the same code must prepare their inputs.
"""

from __future__ import annotations

from typing import Any

_UNITS = {
    "255": " / 255",
    "65535": " / 65535",
    "percent": " / 100",
}


def python_lines(content: dict[str, Any], method: str) -> str:
    """Code that marks one new map.

    Args:
        content: What `core.lab.own_file.calibration_of` returned.
        method: One of its methods, or "CRC by group".

    Raises:
        ValueError: The calibration has no such method.
    """
    if method == "CRC by group" and content["groups"]:
        return _with_library(content, method)
    if method not in content["methods"]:
        raise ValueError(f"The calibration has no method {method!r}; it has {', '.join(content['methods'])}.")
    rule = content["methods"][method]["tau_hat"]["rule"]
    return _with_library(content, method) if rule == "predictor" else _with_numpy(content, method)


def _with_numpy(content: dict[str, Any], method: str) -> str:
    reading = content["reading"]
    lines = [
        "import json",
        "import numpy as np",
        "",
        'known = json.load(open("calibration.json"))',
        *_scores(reading),
    ]
    if content["methods"][method]["tau_hat"]["rule"] == "plug-in":
        lines += [
            "logit = lambda q: np.log(q) - np.log1p(-q)",
            'alphas, flat = np.array(known["alpha_knots"]), np.sort(s, axis=None)[::-1].astype(float)',
            "share = np.cumsum(1 / (1 + np.exp(-flat)))",
            "knots = flat[np.minimum(np.searchsorted(share / share[-1], 1 - alphas - 1e-9), flat.size - 1)]",
            'tau_hat = np.interp(logit(known["alpha"]), logit(alphas), knots)',
        ]
    else:
        lines.append("tau_hat = 0.0  # CRC: one threshold for all")
    lines += [
        f'shift = known["methods"]["{method}"]["shift"]  # None: only the whole image keeps the promise',
        "inside = np.float32(tau_hat) - s <= np.float32(np.inf if shift is None else shift)",
        'np.save("set.npy", inside)',
    ]
    return "\n".join(lines) + "\n"


def _scores(reading: dict[str, str]) -> list[str]:
    scale, channel = reading.get("scale", "probabilities"), reading.get("channel")
    lines = ['x = np.load("map.npy").astype(float)  # your model\'s map, saved as those that were calibrated']
    if scale.startswith("logits"):
        if channel is not None and scale == "logits":
            lines.append(
                f"x = x[{channel}] - np.logaddexp.reduce(np.delete(x, {channel}, 0))  # softmax logits of that class"
            )
        elif channel is not None:
            lines.append(f"x = x[{channel}]")
        lines.append("s = np.clip(x, -15, 15).astype(np.float32)")
    else:
        pick = "" if channel is None else f"[{channel}]"
        lines.append(f"p = np.clip(x{pick}{_UNITS.get(scale, '')}, 1e-12, 1 - 1e-12)")
        lines.append("s = np.clip(np.log(p) - np.log1p(-p), -15, 15).astype(np.float32)")
    if "nan" in reading:
        lines.append("s = np.where(np.isnan(s), np.float32(-15), s)")
    return lines


def _with_library(content: dict[str, Any], method: str) -> str:
    extra = ""
    lines = [
        "import numpy as np",
        "from pathlib import Path",
        "from core.images.maps import maps_from_arrays  # Plumbline's folder on the PYTHONPATH",
        "from core.lab.own_apply import apply_own, load_own_members",
        "from core.lab.own_read import read_calibration",
        "",
    ]
    weights = content["weights"]
    if weights and weights["images_needed"]:
        extra += ', [np.load("image.npy")]'
    lines.append('known = read_calibration("calibration.json")')
    group = content["groups"]
    if method == "CRC by group" and group["column"] != "predicted area":
        extra += f', groups={{"{group["column"]}": ["{next(iter(group["shifts"]))}"]}}'
    spare = ", masks=None" if extra.startswith(", [") else ""
    extra = extra.replace(", [", ", images=[", 1)
    lines += [
        f'maps = maps_from_arrays([np.load("map.npy")]{spare}{extra}, answers=known.reading)',
        'applied = apply_own(known, maps, load_own_members(known, Path(".")))',
        "print(applied.comparison.sentence)",
        f'np.save("set.npy", applied.set_of(0, "{method}"))',
    ]
    return "\n".join(lines) + "\n"
