"""A study on the shelf as it was made: its pool's score table and the thresholds of every method, read from `assets/`.

No network runs here and nothing is calibrated (`study.py` does that). Which studies ship is seen from the files that are there; none is read
before it is asked for.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path

import numpy as np
import torch

from core.coat.thresholds import between_knots, oracle_thresholds
from core.conformal import CoverageCurves
from core.nets.weights import ASSETS
from core.settings import CoverageSettings, knobs

METHODS = ("CRC", "plug-in", "AT", "COAT")
"""Methods whose thresholds are there before an image calibrates. All of them carry a promise."""

ROWS = (*METHODS, "oracle", "whole image")
"""The methods, and the two rows that put a gap into its place: all that needs no calibration image for its thresholds."""

PROMISED = ("CRC", "AA-CRC", "plug-in", "AT", "COAT")
"""Methods that carry a promise, in the order in which they are shown. AA-CRC sets its thresholds on a part of the calibration images."""

NO_SHIFT = "AA-CRC, no shift"
"""AA-CRC as it stands when all calibration images set it: a row of the table that promises nothing for the next image."""

TABLE = ("CRC", "AA-CRC", NO_SHIFT, "plug-in", "AT", "COAT", "oracle", "whole image")
"""Rows of every table of gaps on one draw."""


def complete(folder: Path, name: str) -> bool:
    """Whether a folder laid out like `assets/` holds all that a study needs: score table, thresholds, facts, both sets of weights."""
    scores = [folder / "scores" / f"{name}{end}" for end in (".npz", "-thresholds.npz", ".json")]
    weights = [folder / "weights" / f"{name}{end}.safetensors" for end in ("", "-thresholds")]
    return all(f.exists() for f in (*scores, *weights))


STUDIES = tuple(name for name in knobs(CoverageSettings)["model"].choices if complete(ASSETS, name))
"""Studies that ship, in the order of the settings table. One that is still to be made is left out."""


@dataclass(frozen=True)
class Study:
    """A data set's pool with a base model's scores on it.

    Attributes:
        name: Domain, or domain and base network: `"phantom"`, `"polyp"`, `"skin-sinet"`.
        curves: Score table of the pool, N images, binned.
        knots: Method -> `(N, A)` thresholds at `ALPHA_KNOTS`, for plug-in, AT and COAT.
        facts: What the cards say in numbers: sizes of the parts, Dice, command.
    """

    name: str
    curves: CoverageCurves
    knots: dict[str, torch.Tensor]
    facts: dict[str, object]

    def tau_hat(self, method: str, alpha: float) -> torch.Tensor:
        """Per-image thresholds of a method at one alpha, `(N,)` logits. CRC's constant is 0; the whole image needs none either.

        Raises:
            KeyError: The method is not one of `ROWS`.
        """
        if method in ("CRC", "whole image"):
            return torch.zeros(len(self.curves))
        if method == "oracle":
            return oracle_thresholds(self.curves, alpha).nan_to_num(nan=1e6)
        return between_knots(self.knots[method], alpha)


def load_study(folder: Path, name: str) -> Study:
    """Read a study from a folder laid out like `assets/`.

    Raises:
        FileNotFoundError: A table is missing; the message says how to make it.
    """
    table = folder / "scores" / f"{name}.npz"
    if not table.exists():
        raise FileNotFoundError(
            f"The score table {table.name} is missing. Make it with: python -m core study {name}"
        )
    with np.load(folder / "scores" / f"{name}-thresholds.npz", allow_pickle=False) as z:
        knots = {
            method: torch.from_numpy(z[method].astype(np.float32)) for method in METHODS if method != "CRC"
        }
    facts = json.loads((folder / "scores" / f"{name}.json").read_text())
    return Study(name, CoverageCurves.load(table), knots, facts)


@lru_cache(maxsize=16)
def shipped_study(name: str) -> Study:
    """The study that ships under a name, read once a process."""
    return load_study(ASSETS, name)
