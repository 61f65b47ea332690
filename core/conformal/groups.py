"""Group-conditional control: one shift a group, so that every group keeps its own promise.

A group must be known before the mask is: body site, age, device, predicted area. Groups of the truth itself (real lesion size) can
be reported on (`metrics.evaluate` with a subset), never calibrated on, for a new image does not tell them. The price is images: each
group needs its own n >= 1/alpha - 1, and a small group gets the whole image. Mondrian conformal prediction (Vovk, 2003) with CRC's
risk. Nothing is trained here.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import torch

from core.conformal.control import Calibration, ShiftTable, calibrate, shift_table, subset_flags
from core.conformal.curves import CoverageCurves
from core.conformal.words import promised


@dataclass(frozen=True)
class GroupCalibration:
    """A method calibrated group by group.

    Attributes:
        method: Name of the method.
        alpha: Share of a lesion that may be missed on average, in each group.
        groups: Group -> its `Calibration`, in alphabetical order.
        guarantee: The promise and its assumptions in words.
    """

    method: str
    alpha: float
    groups: dict[str, Calibration]
    guarantee: str

    def shifts(self, groups: Sequence[str]) -> torch.Tensor:
        """Each image's shift `(N,)` float32; +inf (the whole image) for a group that no calibration image belongs to."""
        known = {name: c.shift for name, c in self.groups.items()}
        return torch.tensor([known.get(str(g), math.inf) for g in groups], dtype=torch.float32)


def calibrate_groups(
    curves: CoverageCurves,
    tau_hat: torch.Tensor,
    alpha: float,
    groups: Sequence[str],
    subset: np.ndarray | torch.Tensor | None = None,
    method: str = "CRC by group",
    table: ShiftTable | None = None,
) -> GroupCalibration:
    """Calibrate each group on its own images.

    Args:
        curves: N images.
        tau_hat: `(N,)` thresholds in score units.
        alpha: Share of a lesion that may be missed on average, in (0, 1), in every group.
        groups: N group names, known without the masks.
        subset: Images that calibrate, as `(N,)` bool or indices; None takes all.
        method: Name for the result.
        table: `shift_table(curves, tau_hat)`, when it is already there.

    Raises:
        ValueError: Another number of groups than images, or no image calibrates.
    """
    if len(groups) != len(curves):
        raise ValueError(f"There are {len(curves)} images and {len(groups)} group names.")
    chosen = subset_flags(len(curves), subset)
    names = np.array([str(g) for g in groups])
    present = sorted(set(names[chosen.numpy()]))
    if not present:
        raise ValueError("No image calibrates: every group would get the whole image.")
    table = shift_table(curves, tau_hat) if table is None else table
    made = {
        g: calibrate(curves, tau_hat, alpha, chosen & torch.from_numpy(names == g), f"{method}: {g}", table)
        for g in present
    }
    return GroupCalibration(method, alpha, made, _sentence(alpha, made))


def _sentence(alpha: float, made: dict[str, Calibration]) -> str:
    small = [f"{g} ({c.n})" for g, c in made.items() if not c.feasible]
    counts = ", ".join(f"{g} ({c.n})" for g, c in made.items() if c.feasible)
    said = ""
    if counts:
        said = (
            f"If within each of these groups the calibration images and the next one are drawn alike, then on average at least {promised(alpha)} "
            f"of its lesion is inside, in every one of them: {counts}."
        )
    if small:
        said += f"{' ' if said else ''}Too few images for anything but the whole image in {', '.join(small)}."
    return said
