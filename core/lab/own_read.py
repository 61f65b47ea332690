"""Reading a `calibration.json` back: every field is looked at, and what is missing or impossible is named in a sentence.

`own_file.py` writes it, `own_apply.py` applies it.
"""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from core.conformal.exchangeability import STATISTICS
from core.images.maps_values import CLAMP

FORMAT, VERSION = "plumbline-calibration", 1
WEIGHTS = "predictors.safetensors"
RULES = ("constant", "plug-in", "predictor")


@dataclass(frozen=True)
class Rule:
    """How one method gets the threshold of a map.

    Attributes:
        method: Its name.
        rule: "constant" (0 for every map), "plug-in", or "predictor" (an ensemble in the weights file).
        shift: t in logits; the set is {score : tau_hat - score <= t}; +inf is the whole image.
        guarantee: The promise and its assumption in words.
    """

    method: str
    rule: str
    shift: float
    guarantee: str


@dataclass(frozen=True, eq=False)
class CalibrationFile:
    """A calibration that was read back and found in order.

    Attributes:
        alpha: Share that may be missed, on average.
        promise: "on average" or "with confidence".
        delta: Chance of a misleading calibration set; counts for "with confidence" only.
        n: Calibration images with a lesion.
        rules: Method -> `Rule`.
        group_column: Column of the groups, or None.
        group_cuts: Two numbers between which groups lie, or None.
        group_shifts: Group -> t; a group that is not named gets the whole image.
        group_guarantee: The promise by group.
        reading: How maps are to be read: question -> answer.
        statistics: `(n_all, S)` of the calibration images.
        digests: SHA-256 of each calibration image's scores.
        weights: Name of the weights file, or None.
        weights_sha256: Its digest, or None.
        pictures: Whether the predictors need images beside the maps.
    """

    alpha: float
    promise: str
    delta: float
    n: int
    rules: dict[str, Rule]
    group_column: str | None
    group_cuts: tuple[float, float] | None
    group_shifts: dict[str, float]
    group_guarantee: str
    reading: dict[str, str]
    statistics: np.ndarray = field(repr=False)
    digests: tuple[str, ...] = field(repr=False)
    weights: str | None
    weights_sha256: str | None
    pictures: bool


def read_calibration(source: str | Path | bytes | Mapping[str, Any]) -> CalibrationFile:
    """Read and validate a calibration.

    Args:
        source: A path, the file's bytes, or its parsed content.

    Raises:
        FileNotFoundError: There is no such file.
        ValueError: It is no such file, comes from a newer version, or a field is missing or impossible; the sentence names the field.
    """
    raw = _parsed(source)
    if raw.get("format") != FORMAT:
        raise ValueError(
            'This JSON is no calibration of Plumbline (its "format" is another). Give the calibration.json that was written by it.'
        )
    if not isinstance(raw.get("version"), int) or raw["version"] > VERSION:
        raise ValueError(
            f"This calibration has version {raw.get('version')!r} and this Plumbline reads up to {VERSION}. Use the newer Plumbline that wrote it."
        )
    need = _Needs(raw)
    alpha = need.number("alpha", 0, 1)
    delta = need.number("delta", 0, 1)
    promise = need.one_of("promise", ("on average", "with confidence"))
    need.one_of("unit", ("logit",))
    if need.number("clamp", 0, 1000) != CLAMP:
        raise ValueError(
            f'The calibration\'s "clamp" is {raw["clamp"]}, and scores here are clamped to {CLAMP:g}: it does not fit this version.'
        )
    rules = {}
    for method, what in need.table("methods").items():
        inner = _Needs(what, f"methods.{method}.")
        rule = _Needs(inner.table("tau_hat"), f"methods.{method}.tau_hat.").one_of("rule", RULES)
        rules[method] = Rule(method, rule, inner.shift("shift"), str(inner.field("guarantee", str)))
    if "CRC" not in rules:
        raise ValueError('The calibration\'s "methods" lack CRC. The file is damaged; write it again.')
    weights = raw.get("weights")
    if any(r.rule == "predictor" for r in rules.values()) and not isinstance(weights, dict):
        raise ValueError(
            'The calibration uses predictors, but its "weights" are missing. The file is damaged; write it again.'
        )
    if isinstance(weights, dict):
        w = _Needs(weights, "weights.")
        name = str(w.field("file", str))
        if Path(name).name != name or not name.endswith(".safetensors"):
            raise ValueError(
                f'The calibration\'s "weights.file" is {name!r}; it must be the plain name of a safetensors file beside it.'
            )
        w.field("sha256", str)
    groups = raw.get("groups")
    g = _Needs(groups, "groups.") if isinstance(groups, dict) else None
    cuts = g.raw.get("cuts") if g else None
    if cuts is not None and (
        not isinstance(cuts, list) or len(cuts) != 2 or not all(isinstance(c, int | float) for c in cuts)
    ):
        raise ValueError('The calibration\'s "groups.cuts" must be two numbers or null.')
    shifts = {
        k: _Needs({"shift": v}, f"groups.shifts.{k}.").shift("shift")
        for k, v in (g.table("shifts").items() if g else ())
    }
    images = need.field("images", list)
    statistics = [i.get("statistics") if isinstance(i, dict) else None for i in images]
    if any(
        not isinstance(s, list) or len(s) != len(STATISTICS) or not all(isinstance(v, int | float) for v in s)
        for s in statistics
    ):
        raise ValueError(
            f'Each of the calibration\'s "images" needs {len(STATISTICS)} "statistics". The file is damaged; write it again.'
        )
    reading = {str(k): str(v) for k, v in need.table("reading").items()}
    return CalibrationFile(
        alpha, promise, delta, int(need.number("n", -1, 1e12)), rules, str(g.field("column", str)) if g else None,
        (float(cuts[0]), float(cuts[1])) if cuts else None, shifts, str(g.field("guarantee", str)) if g else "", reading,
        np.array(statistics, float).reshape(-1, len(STATISTICS)), tuple(str(i.get("digest", "")) for i in images),
        str(weights["file"]) if weights else None, str(weights["sha256"]) if weights else None,
        bool(weights.get("images_needed")) if weights else False,
    )  # fmt: skip


def _parsed(source: str | Path | bytes | Mapping[str, Any]) -> dict[str, Any]:
    if isinstance(source, Mapping):
        return dict(source)
    if isinstance(source, bytes):
        data = source
    else:
        path = Path(source)
        if not path.is_file():
            raise FileNotFoundError(
                f"There is no calibration at {path.name}. Make one with: python -m core calibrate MAPS.zip --out DIR"
            )
        data = path.read_bytes()
    try:
        raw = json.loads(data)
    except (ValueError, RecursionError):
        raise ValueError(
            "The calibration is no readable JSON. It was perhaps cut short; copy or write it again."
        ) from None
    if not isinstance(raw, dict):
        raise ValueError(
            "The calibration is JSON, but not an object with fields. Give the calibration.json that Plumbline wrote."
        )
    return raw


class _Needs:
    """Looks fields up and says in a sentence which one is missing or impossible."""

    def __init__(self, raw: Any, where: str = "") -> None:
        self.raw: dict[str, Any] = raw if isinstance(raw, dict) else {}
        self.where = where

    def field(self, name: str, kind: type) -> Any:
        if not isinstance(self.raw.get(name), kind):
            found = "is missing" if name not in self.raw else f"is {str(self.raw[name])[:40]!r}"
            raise ValueError(
                f'The calibration\'s "{self.where}{name}" {found}. The file is damaged; write it again.'
            )
        return self.raw[name]

    def number(self, name: str, low: float, high: float) -> float:
        value = self.raw.get(name)
        if isinstance(value, bool) or not isinstance(value, int | float) or not low < value < high:
            raise ValueError(
                f'The calibration\'s "{self.where}{name}" is {value!r}; it must be a number between {low:g} and {high:g}.'
            )
        return float(value)

    def shift(self, name: str) -> float:
        if name in self.raw and self.raw[name] is None:
            return math.inf
        return self.number(name, -1e6, 1e6)

    def one_of(self, name: str, choices: tuple[str, ...]) -> str:
        if self.raw.get(name) not in choices:
            raise ValueError(
                f'The calibration\'s "{self.where}{name}" is {self.raw.get(name)!r}; it must be one of {", ".join(choices)}.'
            )
        return str(self.raw[name])

    def table(self, name: str) -> dict[str, Any]:
        return dict(self.field(name, dict))
