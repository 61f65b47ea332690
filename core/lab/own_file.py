"""`calibration.json`: what a calibration decided, so that it can be applied to new maps elsewhere; made and written.

It holds numbers, never names or pictures of the calibration images: of each only a digest of its scores (to find it again among new
ones) and the statistics that the exchangeability check needs. AT and COAT live in a safetensors file beside it. `own_read.py` reads
it back and `own_apply.py` applies it.
"""

from __future__ import annotations

import hashlib
import json
import math
import tomllib
from dataclasses import asdict
from pathlib import Path
from typing import Any

import numpy as np
import torch

from core.coat.thresholds import ALPHA_KNOTS
from core.conformal.exchangeability import STATISTICS
from core.conformal.groups import calibrate_groups
from core.images.maps_values import CLAMP
from core.lab.own import OwnStudy, calibrations_on
from core.lab.own_groups import METHOD
from core.lab.own_read import FORMAT, VERSION, WEIGHTS


def calibration_of(own: OwnStudy, everything: bool = False) -> tuple[dict[str, Any], bytes | None]:
    """The file's content and the weights beside it.

    Args:
        own: A calibrated study of a person's own.
        everything: Calibrate on the test images too: the promise rests on more images, and no figure was measured for exactly that shift.

    Returns:
        JSON-able values, and the safetensors bytes of AT and COAT or None.
    """
    split, maps, settings = own.split, own.prepared.maps, own.settings
    chosen = np.arange(len(own.pool)) if everything else split.calibrating
    made = calibrations_on(split.study, settings, chosen)
    weights = weights_bytes(own)
    groups = None
    if own.grouped is not None:
        zero = torch.zeros(len(own.pool))
        by = calibrate_groups(split.study.curves, zero, split.alpha, own.grouped.values, chosen, METHOD)
        groups = {
            "column": own.grouped.column,
            "cuts": own.grouped.cuts,
            "shifts": {g: _finite(c.shift) for g, c in by.groups.items()},
            "images": {g: c.n for g, c in by.groups.items()},
            "guarantee": by.guarantee,
        }
    reading = {k: v for k, v in maps.answers.items() if k not in ("twins", "size", "images")}
    content = {
        "format": FORMAT,
        "version": VERSION,
        "library": {"plumbline": library_version(), "torch": str(torch.__version__), "numpy": np.__version__},
        "alpha": split.alpha,
        "promise": settings.promise,
        "delta": settings.delta,
        "unit": "logit",
        "clamp": CLAMP,
        "rule": "a pixel is marked when tau_hat - score <= shift, in 32-bit floats; a shift of null marks the whole image",
        "reading": reading,
        "n": made["CRC"].n,
        "n_empty": made["CRC"].n_empty,
        "calibrated_on": "all images but those that trained"
        if everything
        else "the calibration images; the others were tested",
        "alpha_knots": [round(float(a), 6) for a in ALPHA_KNOTS],
        "methods": {
            m: {
                "tau_hat": {"rule": {"CRC": "constant", "plug-in": "plug-in"}.get(m, "predictor")},
                "shift": _finite(c.shift),
                "guarantee": c.guarantee,
            }
            for m, c in made.items()
        },
        "weights": None
        if weights is None
        else {
            "file": WEIGHTS,
            "sha256": hashlib.sha256(weights).hexdigest(),
            "images_needed": bool(own.trained and own.trained.pictures),
        },
        "groups": groups,
        "statistics": list(STATISTICS),
        "images": [
            {
                "digest": maps.digests[own.pool[i]],
                "statistics": [round(float(v), 6) for v in own.prepared.statistics[own.pool[i]]],
            }
            for i in chosen
        ],
        "settings": asdict(settings),
        "warning": "Plumbline is no medical device. The promise holds for images drawn like those that calibrated it, and for no others.",
    }
    return content, weights


def _finite(x: float) -> float | None:
    return float(x) if math.isfinite(x) else None


def library_version() -> str:
    """The version in `pyproject.toml`, or "unknown" where the file is not there."""
    try:
        with (Path(__file__).resolve().parents[2] / "pyproject.toml").open("rb") as f:
            return str(tomllib.load(f)["project"]["version"])
    except (OSError, KeyError, tomllib.TOMLDecodeError):
        return "unknown"


def weights_bytes(own: OwnStudy) -> bytes | None:
    """AT and COAT as `core.coat.members.load_members` reads them; None where nothing was trained."""
    from safetensors.torch import save

    if own.trained is None:
        return None
    tensors = {
        f"{method}.{k}.{key}": (v.half() if v.is_floating_point() and v.ndim >= 2 else v).contiguous()
        for method, members in own.trained.members.items()
        for k, member in enumerate(members)
        for key, v in member.state_dict().items()
    }
    first = next(iter(own.trained.members.values()))
    facts = {
        "members": len(first),
        "picture": first[0].picture,
        "settings": {m: asdict(s) for m, s in own.trained.settings.items()},
        "base": "own",
    }
    return save(tensors, metadata={"facts": json.dumps(facts)})


def write_calibration(own: OwnStudy, folder: Path, everything: bool = False) -> Path:
    """Write `calibration.json`, and the weights beside it where there are some; returns the path of the first."""
    content, weights = calibration_of(own, everything)
    folder.mkdir(parents=True, exist_ok=True)
    if weights is not None:
        (folder / WEIGHTS).write_bytes(weights)
    path = folder / "calibration.json"
    path.write_text(json.dumps(content, indent=1, allow_nan=False) + "\n", encoding="utf-8")
    return path
