"""Single images of a study's pool: their numbers and curves from the score table, and their pictures where they can be had.

Phantoms are drawn again from their names; real images are read from a folder that the user names, for none ships. No network
runs here (`promise.py` does that).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import torch

from core.conformal import BIN_EDGES
from core.lab.study import PROMISED, Split, Study


@dataclass(frozen=True)
class ImageNumbers:
    """What a split says of one pool image from its score table alone: enough for a headline, no pixels.

    Attributes:
        alpha: Share that may be missed, on average.
        tau: Method -> effective threshold in logits.
        area: Method -> share of the image in the set.
        coverage: Method -> share of the lesion in the set; None without a lesion.
    """

    alpha: float
    tau: dict[str, float]
    area: dict[str, float]
    coverage: dict[str, float] | None


def numbers_of(split: Split, i: int) -> ImageNumbers:
    """The numbers of pool image i under every method."""
    methods = [m for m in PROMISED if m in split.calibrations]
    coverage = {m: float(split.coverage(m)[i]) for m in methods}
    return ImageNumbers(
        split.alpha,
        {m: float(split.tau(m)[i]) for m in methods},
        {m: float(split.area(m)[i]) for m in methods},
        coverage if bool(split.study.curves.has_lesion[i]) else None,
    )


Painter = Callable[[str], tuple[np.ndarray, np.ndarray]]
"""Name of a pool image -> its picture `(H, W, 3)` uint8 and its mask `(H, W)` bool."""


def painter(study: Study | str, folder: Path | None = None) -> Painter | None:
    """How to see the pool's images: phantoms are drawn again, real sets are read from a folder; None when there is no way.

    Args:
        study: The study or its name.
        folder: Where the user keeps the data set, for real ones.
    """
    study_name = study if isinstance(study, str) else study.name
    if study_name == "phantom":
        return draw_named
    if folder is None:
        return None
    from core.data.folders import DataAbsent, list_pairs

    try:
        pairs = {p.name: p for p in list_pairs(folder, mask_suffix(study_name))}
    except DataAbsent:
        return None
    return lambda name: pairs[name].read() if name in pairs else _absent(name, folder)


def mask_suffix(name: str) -> str:
    """What a mask's file name has behind its image's in a study's data set."""
    return "_segmentation" if name.split("-")[0] == "skin" else ""


def _absent(name: str, folder: Path) -> tuple[np.ndarray, np.ndarray]:
    raise FileNotFoundError(f"The folder {folder} does not hold the image {name} of this study.")


def draw_named(name: str) -> tuple[np.ndarray, np.ndarray]:
    """Draw the phantom of a name such as `phantom-30012` or, without a lesion, `empty-39001`."""
    from core.data.phantoms import draw

    kind, seed = name.rsplit("-", 1)
    phantom = draw(int(seed), lesion=kind != "empty")
    return phantom.image, phantom.mask


def curve_of_pool_image(
    study: Study, i: int, marks: tuple[float, ...] = (), points: int = 240
) -> tuple[np.ndarray, ...]:
    """What the score table knows of one image.

    Args:
        study: The study.
        i: Index in the pool.
        marks: Thresholds that the curve must hold exactly.
        points: Evenly spaced thresholds from -15 to 15.

    Returns:
        Rising thresholds `(S,)` in logits, coverage `(S,)` (NaN without lesion), area `(S,)`, bin edges `(B + 1,)`, lesion
        pixels `(B,)` and other pixels `(B,)` in bins of 1/40 logit.
    """
    one = study.curves.select([i])
    grid = (
        torch.cat([torch.linspace(-15, 15, points), torch.tensor([m for m in marks if np.isfinite(m)])])
        .sort()
        .values
    )
    coverage, area = (
        one.coverage(torch.zeros(1), -grid)[0].numpy(),
        one.area(torch.zeros(1), -grid)[0].numpy(),
    )
    edges = np.append(BIN_EDGES.numpy(), BIN_EDGES[-1] + 0.025)
    lesion = _counts(one.lesion.value, one.lesion.count, edges)
    rest = np.maximum(_counts(one.pixels.value, one.pixels.count, edges) - lesion, 0)
    return grid.numpy(), coverage, area, edges, lesion, rest


def _counts(value: torch.Tensor, count: torch.Tensor | None, edges: np.ndarray) -> np.ndarray:
    weights = None if count is None else count.numpy()
    return np.histogram(value.numpy(), edges, weights=weights)[0]
