"""A calibration applied to new score maps: thresholds, sets, areas, coverage where masks came along, and whether the maps look alike.

`own_read.py` reads the calibration. Nothing is calibrated here; a map that helped to calibrate is named and counts in no coverage.
"""

from __future__ import annotations

import hashlib
import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
import torch

from core.coat.predictor import ThresholdPredictor, predict_knots
from core.coat.thresholds import ALPHA_KNOTS, between_knots, plug_in_of_sorted
from core.conformal.exchangeability import Comparison, compare, map_statistics
from core.images.maps import Maps
from core.images.maps_names import listed
from core.lab.own_groups import AREA, METHOD, groups_of
from core.lab.own_read import CalibrationFile
from core.lab.own_train import inputs_of


@dataclass(frozen=True, eq=False)
class Applied:
    """What a calibration says of new maps.

    Attributes:
        maps: The new maps.
        tau_hat: Method -> `(N,)` thresholds before the shift, logits.
        shift: Method -> `(N,)` shifts; +inf is the whole image.
        area: Method -> `(N,)` share of the image in the set.
        coverage: Method -> `(N,)` share of the lesion in the set, NaN without a lesion or for an image that helped to calibrate; None without masks.
        groups: Group of each map, or None.
        comparison: Whether the new maps look like the calibration maps.
        sentences: Promise, check, and what else a reader must know.
    """

    maps: Maps = field(repr=False)
    tau_hat: dict[str, np.ndarray] = field(repr=False)
    shift: dict[str, np.ndarray] = field(repr=False)
    area: dict[str, np.ndarray] = field(repr=False)
    coverage: dict[str, np.ndarray] | None = field(repr=False)
    groups: tuple[str, ...] | None = field(repr=False)
    comparison: Comparison
    sentences: tuple[str, ...]

    def set_of(self, i: int, method: str) -> np.ndarray:
        """The set of map i under a method, `(H, W)` bool."""
        return _inside(self.maps.scores[i], self.tau_hat[method][i], self.shift[method][i])


def _inside(score: torch.Tensor, tau_hat: float, shift: float) -> np.ndarray:
    """{score : tau_hat - score <= shift} in float32, the expression of the calibration."""
    out: np.ndarray = (np.float32(tau_hat) - score.numpy()) <= np.float32(shift)
    return out


def load_own_members(calibration: CalibrationFile, folder: Path) -> dict[str, tuple[ThresholdPredictor, ...]]:
    """AT and COAT from the folder of `calibration.json`; empty where the calibration has none.

    Raises:
        FileNotFoundError: The weights file is not there.
        ValueError: It is not the one that was calibrated.
    """
    from core.coat.members import load_members

    if calibration.weights is None:
        return {}
    path = folder / calibration.weights
    if not path.is_file():
        raise FileNotFoundError(
            f"The calibration needs {calibration.weights}, and it is not beside it. Copy both files into one folder."
        )
    if hashlib.sha256(path.read_bytes()).hexdigest() != calibration.weights_sha256:
        raise ValueError(
            f"{calibration.weights} is not the file that was calibrated (its digest is another). Copy both files from one calibration."
        )
    return load_members(path)


def apply_own(
    calibration: CalibrationFile,
    maps: Maps,
    members: Mapping[str, tuple[ThresholdPredictor, ...]] | None = None,
) -> Applied:
    """Thresholds and sets of new maps under every method of a calibration.

    Args:
        calibration: From `read_calibration`.
        maps: New maps, read as `calibration.reading` says, no question open.
        members: AT and COAT from `load_own_members`; without them only the other methods are applied.

    Raises:
        ValueError: A question about the maps is open, or the predictors need images that are not there.
    """
    if not maps.ready:
        raise ValueError(
            f"The maps are not ready: {maps.questions[0].text if maps.questions else 'none is left.'}"
        )
    n, alpha = len(maps), calibration.alpha
    tau: dict[str, torch.Tensor] = {}
    skipped = []
    given = None
    for method, rule in calibration.rules.items():
        if rule.rule == "constant":
            tau[method] = torch.zeros(n)
        elif rule.rule == "plug-in":
            knots = [
                plug_in_of_sorted(s.reshape(1, -1).sort(descending=True).values, ALPHA_KNOTS)[0]
                for s in maps.scores
            ]
            tau[method] = between_knots(torch.stack(knots).float(), alpha)
        elif members and method in members:
            given = given if given is not None else inputs_of(maps, pictures=calibration.pictures)
            tau[method] = between_knots(predict_knots(members[method], given), alpha)
        else:
            skipped.append(method)
    shift = {m: np.full(n, calibration.rules[m].shift, np.float32) for m in tau}
    statistics = np.stack([map_statistics(s) for s in maps.scores])
    notes = [f"{', '.join(skipped)} left out: their weights were not loaded."] if skipped else []
    groups = _groups(calibration, maps, statistics, notes)
    if groups is not None:
        tau = {"CRC": tau["CRC"], METHOD: torch.zeros(n)} | tau
        shift[METHOD] = np.array([calibration.group_shifts.get(g, math.inf) for g in groups], np.float32)
    tau_hat = {m: t.numpy() for m, t in tau.items()}
    known = set(calibration.digests)
    seen = [i for i, d in enumerate(maps.digests) if d in known]
    area = {
        m: np.array([_inside(s, t[i], shift[m][i]).mean() for i, s in enumerate(maps.scores)])
        for m, t in tau_hat.items()
    }
    coverage = None
    if maps.masks is not None:
        coverage = {
            m: np.array([
                math.nan if i in seen or not bool(mask.any()) else _inside(s, t[i], shift[m][i])[mask.numpy()].mean()
                for i, (s, mask) in enumerate(zip(maps.scores, maps.masks, strict=True))
            ])
            for m, t in tau_hat.items()
        }  # fmt: skip
    fresh = [i for i in range(n) if i not in seen] or list(range(n))
    comparison = compare(calibration.statistics, statistics[fresh])
    said = [calibration.rules["CRC"].guarantee, comparison.sentence]
    if seen:
        said.append(
            f"{len(seen)} of these maps helped to calibrate ({listed([maps.names[i] for i in seen])}); "
            "no promise is about them, and they count in no coverage."
        )
    return Applied(maps, tau_hat, shift, area, coverage, groups, comparison, (*said, *notes))


def _groups(
    calibration: CalibrationFile, maps: Maps, statistics: np.ndarray, notes: list[str]
) -> tuple[str, ...] | None:
    column = calibration.group_column
    if column is None:
        return None
    if column != AREA and column not in maps.groups:
        notes.append(
            f"CRC by group needs the column {column!r} in a CSV of the new maps; without it that method is left out."
        )
        return None
    try:
        groups = groups_of(maps, statistics, column, np.arange(len(maps)), calibration.group_cuts)[0]
    except ValueError:
        notes.append(
            f"The column {column!r} holds words where the calibration had numbers; CRC by group is left out."
        )
        return None
    strange = sorted({g for g in groups if g not in calibration.group_shifts})
    if strange:
        notes.append(
            f"No calibration image belongs to the group {listed(strange)}: such a map gets the whole image under CRC by group."
        )
    notes.append(calibration.group_guarantee)
    return groups
