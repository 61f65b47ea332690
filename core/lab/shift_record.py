"""What a study of λ as a shift detector leaves: AUROC by corruption and severity, and ROC curves, as one JSON file.

The page and the benchmark read `assets/results/sparse/shift.json` here; `shift_study.py` measures. Scores are those of `core.tacsc.shift_score`.
"""

from __future__ import annotations

import json
import math
import os
from collections.abc import Iterable
from dataclasses import asdict, dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any

from core.nets.weights import ASSETS

COMMAND = "python -m core.lab.shift_study cifar --data DIR --work DIR"
POOLED = ("noises", "blurs")
"""Families whose scores are also pooled into one ROC curve."""


@dataclass(frozen=True)
class ShiftRow:
    """How well damaged images are told from clean ones.

    Attributes:
        corruption: Name of a corruption; `"noises"` or `"blurs"` where the scores of a family are pooled.
        severity: 1 to 5.
        images: Images that are scored together: 16, or 1 by crops.
        part: What the score looks at: `"lambda"`, `"error"` or `"both"`.
        auroc: Chance that damaged images score above clean ones.
    """

    corruption: str
    severity: int
    images: int
    part: str
    auroc: float


@dataclass(frozen=True)
class Roc:
    """One ROC curve: the keys of a `ShiftRow`, and both rates, rising from 0 to 1."""

    corruption: str
    severity: int
    images: int
    part: str
    false_alarms: tuple[float, ...]
    detected: tuple[float, ...]


@dataclass(frozen=True)
class ShiftRecord:
    """The study.

    Attributes:
        network: Key of the run whose network listened.
        rows: One for each corruption, severity, number of images and part.
        roc: Curves of `both`, for each corruption and pooled.
        reference: Counts: `images` behind the reference, `clean` and `damaged` images that were scored, `single` ones scored by crops; and
            `clean_scores`, mean and 95th percentile of clean scores by `"16"` and `"1"`.
        plan: As plain values.
        command: What made it.
        versions: Of Python and the libraries that matter.
        seconds: How long it took.
    """

    network: str
    rows: tuple[ShiftRow, ...]
    roc: tuple[Roc, ...]
    reference: dict[str, Any]
    plan: dict[str, Any]
    command: str
    versions: dict[str, str]
    seconds: float

    def auroc(self, corruption: str, severity: int, images: int = 16, part: str = "both") -> float:
        """AUROC of one row, NaN where it was not measured."""
        for r in self.rows:
            if (r.corruption, r.severity, r.images, r.part) == (corruption, severity, images, part):
                return r.auroc
        return math.nan

    def mean_auroc(
        self, corruptions: Iterable[str], severity: int, images: int = 16, part: str = "both"
    ) -> float:
        """Mean over corruptions, NaN where one is missing."""
        found = [self.auroc(c, severity, images, part) for c in corruptions]
        return sum(found) / len(found)

    def curve(self, corruption: str, severity: int, images: int = 16, part: str = "both") -> Roc | None:
        """One ROC curve, None where there is none."""
        for r in self.roc:
            if (r.corruption, r.severity, r.images, r.part) == (corruption, severity, images, part):
                return r
        return None


def write_json(path: Path, value: Any) -> None:
    """Write plain values as JSON, atomically, numbers with five digits.

    Raises:
        ValueError: A number is NaN or infinite.
    """

    def short(v: Any) -> Any:
        if isinstance(v, float):
            return float(f"{v:.5g}")
        if isinstance(v, dict):
            return {k: short(x) for k, x in v.items()}
        return [short(x) for x in v] if isinstance(v, list | tuple) else v

    path.parent.mkdir(parents=True, exist_ok=True)
    part = path.with_name(f"{path.name}.{os.getpid()}.part")
    part.write_text(
        json.dumps(short(value), ensure_ascii=False, separators=(",", ":"), allow_nan=False) + "\n"
    )
    os.replace(part, path)


def save_shift(record: ShiftRecord, folder: Path = ASSETS) -> Path:
    """Write a record where it is read from. Returns the file."""
    path = folder / "results" / "sparse" / "shift.json"
    write_json(path, asdict(record))
    return path


def load_shift(folder: Path = ASSETS) -> ShiftRecord:
    """Read the recorded study, once as long as the file stays as it is.

    Raises:
        FileNotFoundError: It is not there; says how it is made.
        ValueError: The file is no such record.
    """
    path = folder / "results" / "sparse" / "shift.json"
    if not path.exists():
        raise FileNotFoundError(f"The study of shift, {path.name}, is missing. Make it with: {COMMAND}")
    return _read(path, path.stat().st_mtime_ns)


def _curve(raw: dict[str, Any]) -> Roc:
    raw["false_alarms"], raw["detected"] = tuple(raw["false_alarms"]), tuple(raw["detected"])
    return Roc(**raw)


@lru_cache(maxsize=4)
def _read(path: Path, _: int) -> ShiftRecord:
    try:
        raw = json.loads(path.read_text(encoding="utf-8"))
        rows = tuple(ShiftRow(**r) for r in raw.pop("rows"))
        curves = tuple(_curve(r) for r in raw.pop("roc"))
        return ShiftRecord(rows=rows, roc=curves, **raw)
    except (json.JSONDecodeError, TypeError, KeyError) as error:
        raise ValueError(f"{path.name} is no study of shift ({error}).") from error
