"""Fixed parts of a data set (D1, D2, pool) and the redrawn halves of the pool.

D1 trains the base network, D2 the threshold predictor and every choice, the pool is calibrated and tested
on. The parts are written down in a JSON file beside the weights; a seed only re-draws calibration and test
from the pool. Near-duplicate images (same scene, nearly the same frame) stay in one part, so that no image
has a twin on the other side of a promise.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

import numpy as np


@dataclass(frozen=True)
class Parts:
    """Names of the images in each fixed part.

    Attributes:
        d1: Trains the base network.
        d1_val: Part of D1's budget that decides when its training stops.
        d2: Trains the threshold predictor and decides every choice.
        pool: Calibration and test are drawn from here.
        twins: Groups of near-duplicates that were kept together.
    """

    d1: tuple[str, ...]
    d1_val: tuple[str, ...]
    d2: tuple[str, ...]
    pool: tuple[str, ...]
    twins: tuple[tuple[str, ...], ...] = ()

    def save(self, path: str | Path) -> None:
        """Write the parts as JSON."""
        Path(path).write_text(json.dumps(asdict(self), indent=0) + "\n")

    @staticmethod
    def load(path: str | Path) -> Parts:
        """Read parts written by `save`."""
        raw = json.loads(Path(path).read_text())
        twins = tuple(tuple(group) for group in raw.pop("twins", []))
        return Parts(**{key: tuple(value) for key, value in raw.items()}, twins=twins)


def thumbnail_code(rgb: np.ndarray, side: int = 16) -> np.ndarray:
    """A small, brightness-free code of an image, for finding near-duplicates.

    Args:
        rgb: `(H, W, 3)` uint8.
        side: Side of the thumbnail in pixels.

    Returns:
        `(side * side * 3,)` float32 with zero mean and unit norm; the dot product of two codes is their correlation.
    """
    from PIL import Image

    small = np.asarray(Image.fromarray(rgb).resize((side, side), Image.Resampling.BOX), np.float32).ravel()
    small -= small.mean()
    return small / max(float(np.linalg.norm(small)), 1e-6)


def find_twins(
    names: Sequence[str], codes: np.ndarray, threshold: float = 0.995
) -> tuple[tuple[str, ...], ...]:
    """Group images whose thumbnails correlate above a threshold.

    Args:
        names: N names.
        codes: `(N, D)` from `thumbnail_code`.
        threshold: Correlation from which two images are twins, in (0, 1].

    Returns:
        Groups of two or more names (connected components), sorted.
    """
    from scipy.sparse.csgraph import connected_components

    _, label = connected_components(codes @ codes.T >= threshold, directed=False)
    groups: dict[int, list[str]] = {}
    for name, number in zip(names, label, strict=True):
        groups.setdefault(int(number), []).append(name)
    return tuple(sorted(tuple(sorted(g)) for g in groups.values() if len(g) > 1))


def make_parts(
    names: Sequence[str],
    sizes: tuple[int, int, int, int],
    rng: np.random.Generator,
    twins: Sequence[Sequence[str]] = (),
) -> Parts:
    """Draw the fixed parts.

    Args:
        names: All images.
        sizes: Wanted sizes of d1, d1_val, d2, pool. Twins may shift a boundary by a few images.
        rng: The draw.
        twins: Groups that stay together.

    Raises:
        ValueError: More images are asked for than there are.
    """
    if sum(sizes) > len(names):
        raise ValueError(f"The parts ask for {sum(sizes)} images and there are {len(names)}.")
    group_of = {name: tuple(group) for group in twins for name in group}
    groups = sorted({group_of.get(name, (name,)) for name in names})
    order = [groups[i] for i in rng.permutation(len(groups))]
    parts: list[list[str]] = [[], [], [], []]
    k = 0
    for group in order:
        while k < 3 and len(parts[k]) >= sizes[k]:
            k += 1
        if k == 3 and len(parts[3]) >= sizes[3]:
            break
        parts[k].extend(group)
    d1, d1_val, d2, pool = (tuple(sorted(p)) for p in parts)
    return Parts(d1, d1_val, d2, pool, tuple(tuple(g) for g in twins))


def redraw(n: int, calibration_share: float, seed: int) -> tuple[np.ndarray, np.ndarray]:
    """Draw calibration and test from a pool.

    Args:
        n: Size of the pool.
        calibration_share: Share of the pool that calibrates, in (0, 1).
        seed: The draw; the same seed always gives the same halves.

    Returns:
        Sorted indices of the calibration and of the test images; neither is empty for n >= 2.

    Raises:
        ValueError: n < 2.
    """
    if n < 2:
        raise ValueError(
            f"A pool of {n} image(s) cannot be divided into calibration and test; bring at least 2."
        )
    order = np.random.default_rng(seed).permutation(n)
    cut = min(max(int(round(calibration_share * n)), 1), n - 1)
    return np.sort(order[:cut]), np.sort(order[cut:])


def content_hash(rgb: np.ndarray) -> str:
    """SHA-256 of an image's shape and pixels: the same image under two names has the same hash."""
    head = f"{rgb.dtype}{rgb.shape}".encode()
    return hashlib.sha256(head + np.ascontiguousarray(rgb).tobytes()).hexdigest()


def refuse_shared(
    first: dict[str, str], second: dict[str, str], a: str = "calibration", b: str = "test"
) -> None:
    """Refuse two sets that share an image.

    Args:
        first: Name -> content hash of one set.
        second: The same for the other.
        a: What the first set is called.
        b: What the second set is called.

    Raises:
        ValueError: Names the shared images.
    """
    by_hash = {value: name for name, value in first.items()}
    shared = [(by_hash[h], name) for name, h in second.items() if h in by_hash]
    if shared:
        some = "; ".join(f"{x} and {y}" for x, y in shared[:3])
        raise ValueError(
            f"{len(shared)} image(s) are in both {a} and {b} ({some}). A promise cannot be tested on images that made "
            "it: remove them from one of the two."
        )
