"""Does a picture look like those that a long-tail network was trained on? Eight figures of its colours and grain against the training images.

A softmax names a class for any picture, often with full confidence; a track record on blood cells says nothing of a holiday photo. So before
one is shown, the picture's mean colours, contrasts, grain and saturation at the network's own size are set against their distribution over the
training images (squared Mahalanobis distance). It is coarse: a picture that passes may still be foreign.
`python -m core.lab.tail_looks` measures the sets and writes `assets/tail/looks.json`; no image is kept.
"""

from __future__ import annotations

import argparse
import json
import sys
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path

import numpy as np

from core.data.folders import DataAbsent
from core.lab.sparse_train import write
from core.lab.tail_sets import SETS, tail_set
from core.lab.tail_shelf import WEIGHTS_OF
from core.nets.weights import ASSETS

USUAL = 0.995
"""Share of the training images that lies below the limit."""


@dataclass(frozen=True, eq=False)
class Looks:
    """How the training images of a set look.

    Attributes:
        mean: `(8,)` of the figures.
        precision: `(8, 8)` inverse of their covariance.
        limit: Distance that `USUAL` of the training images do not reach.
        own: Share of the set's test images above the limit.
        foreign: Other set -> share of its test images above the limit.
    """

    mean: np.ndarray
    precision: np.ndarray
    limit: float
    own: float
    foreign: dict[str, float]

    def distance(self, images: np.ndarray) -> np.ndarray:
        """`(N,)` squared Mahalanobis distance of `(N, S, S, 3)` uint8 pictures."""
        off = figures(images) - self.mean
        return np.einsum("ni,ij,nj->n", off, self.precision, off)

    def strange(self, image: np.ndarray) -> bool:
        """Whether one `(S, S, 3)` uint8 picture lies above the limit."""
        return bool(self.distance(image[None])[0] > self.limit)


def figures(images: np.ndarray) -> np.ndarray:
    """Eight figures a picture: mean of each channel, log contrast of each, log grain, saturation. `(N, S, S, 3)` uint8 -> `(N, 8)`."""
    x = images.astype(np.float64) / 255
    grey = x.mean(3)
    grain = np.abs(np.diff(grey, axis=1)).mean((1, 2)) + np.abs(np.diff(grey, axis=2)).mean((1, 2))
    spread = (x.max(3) - x.min(3)).mean((1, 2))
    return np.column_stack(
        [x.mean((1, 2)), np.log(x.std((1, 2)) + 1e-3), np.log(grain + 1e-3), np.log(spread + 1e-3)]
    )


def looks_of(train: np.ndarray, own: np.ndarray, foreign: dict[str, np.ndarray]) -> Looks:
    """Measure a set.

    Args:
        train: `(N, S, S, 3)` uint8 training images, N at least 20.
        own: Test images of the set.
        foreign: Other set -> its test images.

    Raises:
        ValueError: Too few images.
    """
    if len(train) < 20:
        raise ValueError(f"{len(train)} images are too few to say how a set looks; 20 are needed.")
    found = figures(train)
    precision = np.linalg.inv(np.cov(found.T) + 1e-6 * np.eye(found.shape[1]))
    bare = Looks(found.mean(0), precision, 0.0, 0.0, {})
    limit = float(np.quantile(bare.distance(train), USUAL))
    above = {name: float((bare.distance(x) > limit).mean()) for name, x in {"": own, **foreign}.items()}
    return Looks(bare.mean, precision, limit, above.pop(""), above)


@lru_cache(maxsize=2)
def _read(path: Path, _: int) -> dict[str, Looks]:
    raw = json.loads(path.read_text(encoding="utf-8"))
    return {
        name: Looks(np.array(r["mean"]), np.array(r["precision"]), r["limit"], r["own"], r["foreign"])
        for name, r in raw.items()
    }


def shipped_looks(data: str, folder: Path = ASSETS) -> Looks | None:
    """How the training images of a set look; None where it was not measured."""
    path = folder / "tail" / "looks.json"
    return _read(path, path.stat().st_mtime_ns).get(data) if path.is_file() else None


def strange_words(looks: Looks) -> str:
    """What is said of a picture above the limit."""
    return (
        f"This picture does not look like the training images: in colours, contrast and grain it is further from them than "
        f"{100 * USUAL:.1f}\u00a0% of them are. The network names a class all the same; how often it was right on its own kind of pictures says "
        "nothing about this one."
    )


def command(arguments: list[str] | None = None) -> int:
    """Measure the sets whose networks ship."""
    root = argparse.ArgumentParser("python -m core.lab.tail_looks", description=__doc__.split("\n")[0])
    root.add_argument("--data", type=Path, required=True, help="folder that holds the sets")
    root.add_argument("--work", type=Path, default=Path(".work/tail"), help="folder whose cache holds arrays")
    root.add_argument("--out", type=Path, default=ASSETS, help="laid out like assets/")
    given = root.parse_args(arguments)
    try:
        sets = {name: tail_set(name, given.data, given.work / "cache") for name in SETS}
    except (ValueError, DataAbsent) as error:
        print(error, file=sys.stderr)
        return 2
    rows = {}
    for name in WEIGHTS_OF:
        tests = {k: s.test.images.numpy()[:2000] for k, s in sets.items()}
        found = looks_of(sets[name].train.images.numpy(), tests.pop(name), tests)
        rows[name] = {
            "mean": [float(f"{v:.6g}") for v in found.mean], "precision": [[float(f"{v:.6g}") for v in row] for row in found.precision],
            "limit": round(found.limit, 3), "own": round(found.own, 4), "foreign": {k: round(v, 4) for k, v in found.foreign.items()},
        }  # fmt: skip
        print(f"{name}: limit {found.limit:.1f}, above it {found.own:.1%} of its own test images,", end=" ")
        print(", ".join(f"{v:.1%} of {k}" for k, v in found.foreign.items()))
    text = json.dumps(rows, indent=1) + "\n"
    write(given.out / "tail" / "looks.json", lambda part: part.write_text(text, encoding="utf-8"))
    return 0


if __name__ == "__main__":
    raise SystemExit(command())
