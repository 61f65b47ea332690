"""Groups of a study's pool: columns that are known before the mask is, by which a promise can be made group by group, and columns that only the
truth knows, which may be reported on and never calibrated on.

Predicted area comes from the score table itself (the area that the base network expects), true lesion size too; the rest is read once from a data
set's own tables by `write_groups` and ships as `assets/scores/{domain}-groups.json`. Nothing is calibrated here (`group_report.py`).
"""

from __future__ import annotations

import csv
import itertools
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np
import torch

from core.conformal import CoverageCurves
from core.lab.tables import Study
from core.nets.weights import ASSETS

AREA_CUTS = (0.05, 0.15, 0.3)
"""Where predicted area and true size are cut, as shares of the image. Fixed beforehand, the same for every study."""

AGE_CUTS = (40, 60)
UNKNOWN = "unknown"
AREA, SIZE = "predicted area", "true lesion size"


@dataclass(frozen=True)
class Column:
    """One way to group a pool.

    Attributes:
        name: What it is called on the screen.
        known: Whether it is known before the mask is; only then may it calibrate.
        values: N group names, one for each pool image.
        order: Group names in the order in which they are shown.
        why: One sentence: where it comes from, and for a column that only the truth knows, why it cannot calibrate.
    """

    name: str
    known: bool
    values: tuple[str, ...]
    order: tuple[str, ...]
    why: str


_WHY = {
    "body site": "Where on the body the photo was taken. It is known with the photo.",
    "age": "The person's age in years. It is known with the photo.",
    "sex": "The person's sex as the data set records it. It is known with the photo.",
    "diagnosis": "What the lesion turned out to be. A new image does not tell, so no promise can be made by it; this is a report only.",
    "shape": "Flat polyps are harder to see; the data set lists them. A new image does not tell, so no promise can be made by it; this is a "
    "report only.",
    "video": "The video that a frame comes from. It is known with the frame, and another video is in no group at all.",
}
_KNOWN = ("body site", "age", "sex", "video")
_DIAGNOSES = {
    "akiec": "actinic keratosis",
    "bcc": "basal cell carcinoma",
    "bkl": "benign keratosis",
    "df": "dermatofibroma",
    "mel": "melanoma",
    "nv": "naevus",
    "vasc": "vascular lesion",
}


def columns_of(study: Study, folder: Path | None = None) -> tuple[Column, ...]:
    """All columns of a study's pool, those that may calibrate first.

    Args:
        study: The study.
        folder: Folder laid out like `assets/`; the project's when None.
    """
    curves = study.curves
    true_size = np.where(curves.lesion_size > 0, (curves.lesion_size / curves.size).numpy(), np.nan)
    found = [
        _by_area(
            AREA,
            expected_area(curves),
            True,
            "The share of the image that the base network expects to be lesion, no mask needed.",
        )
    ]
    for name, values in stored_columns(study.name.split("-")[0], curves.names, folder).items():
        found.append(Column(name, name in _KNOWN, values, _ordered(values), _WHY[name]))
    why = "Only the mask tells the true size, so no promise can be made by it; this is a report only."
    found.append(_by_area(SIZE, true_size, False, why))
    return tuple(sorted(found, key=lambda c: not c.known))


def expected_area(curves: CoverageCurves) -> np.ndarray:
    """Mean probability over each image's pixels, `(N,)`: the area that the base network itself expects. No mask is used."""
    p = torch.sigmoid(curves.pixels.value.double())
    p = p if curves.pixels.count is None else p * curves.pixels.count
    total = torch.zeros(len(curves), dtype=torch.float64).index_add_(0, curves.pixels.image_of().long(), p)
    return (total / curves.size).numpy()


def area_group(area: float) -> str:
    """The group of one image by its predicted area (or true size), as a share of the image; no lesion where it is NaN."""
    return "no lesion" if np.isnan(area) else _AREA_NAMES[int(np.searchsorted(AREA_CUTS, area, side="right"))]


def _area_names() -> tuple[str, ...]:
    cuts = [f"{100 * c:.0f}" for c in AREA_CUTS]
    between = [f"{a} to {b}\u00a0%" for a, b in itertools.pairwise(cuts)]
    return (f"under {cuts[0]}\u00a0%", *between, f"{cuts[-1]}\u00a0% and more")


_AREA_NAMES = _area_names()


def _by_area(name: str, areas: np.ndarray, known: bool, why: str) -> Column:
    values = tuple(area_group(float(a)) for a in areas)
    return Column(name, known, values, tuple(g for g in (*_AREA_NAMES, "no lesion") if g in values), why)


def _ordered(values: Sequence[str]) -> tuple[str, ...]:
    """Groups by name, the unknown last; ages and sizes start with a word that keeps them in order."""
    rank = {"under": 0, "from": 2}
    return tuple(sorted(set(values), key=lambda v: (v == UNKNOWN, rank.get(v.split(" ")[0], 1), v)))


def stored_columns(
    domain: str, names: Sequence[str], folder: Path | None = None
) -> dict[str, tuple[str, ...]]:
    """The columns that were read from a data set's own tables: name -> a group for each image; none where no file ships.

    Raises:
        ValueError: The file is about other images.
    """
    return _stored(domain, tuple(names), folder or ASSETS)


@lru_cache(maxsize=32)
def _stored(domain: str, names: tuple[str, ...], folder: Path) -> dict[str, tuple[str, ...]]:
    path = folder / "scores" / f"{domain}-groups.json"
    if not path.exists():
        return {}
    columns: dict[str, dict[str, str]] = json.loads(path.read_text(encoding="utf-8"))["columns"]
    for column, groups in columns.items():
        missing = [n for n in names if n not in groups]
        if missing:
            raise ValueError(
                f"{path.name} says nothing of the {column} of {missing[0]} and {len(missing) - 1} more images."
            )
    return {column: tuple(groups[n] for n in names) for column, groups in columns.items()}


def write_groups(out: Path, domain: str, data: Path) -> Path:
    """Read a data set's own tables and write the groups of the pool's images.

    Args:
        out: Folder laid out like `assets/`; its `splits/` says which images are the pool.
        domain: `"polyp"` (`sessile.txt`), `"skin"` (`HAM10000_metadata.csv`) or `"fire"` (`groups.csv`).
        data: Folder of the data set.

    Returns:
        The file that was written.

    Raises:
        ValueError: Another domain, or a pool image that the table does not name.
        FileNotFoundError: The table is not there.
    """
    readers = {"polyp": _polyp, "skin": _skin, "fire": _fire}
    if domain not in readers:
        raise ValueError(f"The domain {domain!r} has no table of groups; {', '.join(readers)} have one.")
    pool = json.loads((out / "splits" / f"{domain}.json").read_text(encoding="utf-8"))["pool"]
    source, columns = readers[domain](data, pool)
    facts: dict[str, Any] = {"domain": domain, "source": source, "columns": columns}
    path = out / "scores" / f"{domain}-groups.json"
    path.write_text(json.dumps(facts, indent=0, ensure_ascii=False) + "\n", encoding="utf-8")
    return path


def _polyp(data: Path, pool: Sequence[str]) -> tuple[str, dict[str, dict[str, str]]]:
    flat = set((data / "sessile.txt").read_text(encoding="utf-8").split())
    return "sessile.txt of Kvasir-SEG (Jha and others, 2020)", {
        "shape": {n: "flat" if n in flat else "not listed as flat" for n in pool}
    }


def _skin(data: Path, pool: Sequence[str]) -> tuple[str, dict[str, dict[str, str]]]:
    rows = _rows(data / "HAM10000_metadata.csv", "image_id", pool)
    columns = {
        "body site": {n: r["localization"] or UNKNOWN for n, r in rows.items()},
        "age": {n: _age(r["age"]) for n, r in rows.items()},
        "sex": {n: r["sex"] or UNKNOWN for n, r in rows.items()},
        "diagnosis": {n: _DIAGNOSES.get(r["dx"], r["dx"]) for n, r in rows.items()},
    }
    return "HAM10000_metadata.csv of HAM10000 (Tschandl and others, 2018), CC BY-NC 4.0", columns


def _fire(data: Path, pool: Sequence[str]) -> tuple[str, dict[str, dict[str, str]]]:
    rows = _rows(data / "groups.csv", "name", pool)
    return "groups.csv of the fire videos (Muhammad and others, 2022)", {
        "video": {n: f"video {r['block'].removeprefix('train')}" for n, r in rows.items()}
    }


def _age(years: str) -> str:
    if not years:
        return UNKNOWN
    low, high = AGE_CUTS
    return (
        f"under {low}"
        if float(years) < low
        else (f"{low} to {high - 1}" if float(years) < high else f"from {high} on")
    )


def _rows(path: Path, key: str, pool: Sequence[str]) -> dict[str, Mapping[str, str]]:
    with path.open(newline="", encoding="utf-8") as file:
        rows = {row[key]: row for row in csv.DictReader(file)}
    missing = [n for n in pool if n not in rows]
    if missing:
        raise ValueError(
            f"{path.name} does not name {missing[0]} and {len(missing) - 1} more images of the pool."
        )
    return {n: rows[n] for n in pool}
