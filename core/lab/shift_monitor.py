"""Do new images look like the images of a study? A sparse coding layer listens: how far its λ wants to move, and how well it rebuilds them.

A conformal promise assumes that the next image is drawn like those that calibrate. A monitor is the first layer of a U-Net with sparse coding,
the mean and covariance of what it wants on clean images of a study, and clean images that are not among those, for a limit. Each image
speaks through crops (`shift_ears.py`); several images are scored together. The score is `core.tacsc.shift_score`'s: about 1 for
images like the reference. It is a warning, no test of a hypothesis, and images below the limit are not thereby like the study's.
`shift_fit.py` makes monitors; what they say in words is in `shift_words.py`.
"""

from __future__ import annotations

import io
import json
import os
import zipfile
import zlib
from collections.abc import Sequence
from dataclasses import asdict, dataclass, field
from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import nn

from core.lab.shift_ears import HEARD, View, ears_of, hear
from core.lab.sources import domain_of
from core.nets.weights import ASSETS
from core.settings.tacsc import TacscSettings
from core.tacsc.layer import CSCConv2d, sparse_layers
from core.tacsc.shift_score import Reference

COMMAND = "python -m core.lab.shift_study monitors --data DIR"
QUANTILE, GROUP_QUANTILE = 0.95, 0.99
"""Share of clean images of the study, and of groups of them, that score below the limit. A group is sure of less: higher."""
MOST = 16
"""Images that count at most: of more, a difference that means nothing would score high."""
DRAWS = 1000


def quantile_of(images: int) -> float:
    """Share of clean batches of so many images that stay below their limit."""
    return QUANTILE if images == 1 else GROUP_QUANTILE


@dataclass(frozen=True)
class Shift:
    """What a monitor says of some images taken together.

    Attributes:
        score: About 1 for images like the reference.
        limit: What `quantile_of` this number of clean images stay below.
        images: How many images.
        heard: Their mean of each of `HEARD`.
        usual: The reference's.
        away: How many standard deviations of single clean images lie between.
        alarms: Share of clean images, or groups of them, above the limit: measured on further images where that was done, else by design.
    """

    score: float
    limit: float
    images: int
    heard: tuple[float, ...]
    usual: tuple[float, ...]
    away: tuple[float, ...]
    alarms: float

    @property
    def warns(self) -> bool:
        """Whether the score lies above the limit."""
        return self.score > self.limit


@dataclass(frozen=True, eq=False)
class Monitor:
    """A layer that listens, and what it heard on clean images.

    Attributes:
        domain: Domain whose clean images are the reference, as in `core.lab.sources.DOMAINS`.
        ears: The layer, as a network.
        view: How images are looked at.
        known: The reference of the score: mean and inverse covariance of `HEARD`.
        held: `(M, 4)` the same of clean images that are not in the reference.
        facts: `network`, `reference_images`, `held_images`, `source`, `rows` (what was measured), `command`.
        limits: Limits that were asked for so far, by number of images.
    """

    domain: str
    ears: nn.Module
    view: View
    known: Reference
    held: torch.Tensor
    facts: dict[str, Any] = field(default_factory=dict, repr=False)
    limits: dict[int, float] = field(default_factory=dict, repr=False)

    def hear(self, rgb: np.ndarray) -> torch.Tensor:
        """`(4,)` float64, `HEARD` of one image.

        Args:
            rgb: `(H, W, 3)` uint8, of any size.

        Raises:
            ValueError: No RGB image, or too narrow a one.
        """
        return hear(self.ears, rgb, self.view)

    def judge(self, heard: torch.Tensor) -> Shift:
        """Score images taken together.

        Args:
            heard: `(n, 4)` from `hear`, n >= 1.

        Raises:
            ValueError: No image.
        """
        if len(heard) == 0:
            raise ValueError("A shift score takes at least one image.")
        here, usual = heard.double().mean(0), self.known.mean
        away = (here - usual) / self.held.std(0).clamp(min=1e-6)
        heard_mean, usual_mean, apart = (tuple(float(x) for x in values) for values in (here, usual, away))
        n = len(heard)
        found = [
            r["warned"]
            for r in self.facts.get("rows", ())
            if r["corruption"] == "clean" and r["images"] == min(n, MOST)
        ]
        alarms = float(found[0]) if found else 1 - quantile_of(n)
        return Shift(self.judged(heard), self.limit(n), n, heard_mean, usual_mean, apart, alarms)

    def score(self, images: Sequence[np.ndarray]) -> Shift:
        """Hear and judge images `(H, W, 3)` uint8, taken together.

        Raises:
            ValueError: As in `hear` and `judge`.
        """
        return self.judge(
            torch.stack([self.hear(rgb) for rgb in images]) if images else torch.zeros(0, len(HEARD))
        )

    def judged(self, heard: torch.Tensor) -> float:
        """The score alone of images taken together, `(n, 4)` from `hear`; a batch of more than `MOST` counts as that many."""
        n = len(heard)
        return self.known.score(heard) * min(n, MOST) / n

    def limit(self, images: int) -> float:
        """What the share `quantile_of(images)` of batches of so many clean images, none of them in the reference, stay below."""
        n = min(images, MOST, len(self.held))
        if n not in self.limits:
            self.limits[n] = self._limit(n)
        return self.limits[n]

    def _limit(self, n: int) -> float:
        if n == 1:
            means = self.held
        else:
            rng = torch.Generator().manual_seed(n)
            deals = torch.rand(DRAWS, len(self.held), generator=rng).argsort(1)[:, :n]
            means = self.held[deals].mean(1)
        away = means - self.known.mean
        scores = n * ((away @ self.known.inverse) * away).sum(1) / away.shape[1]
        return float(scores.quantile(quantile_of(n)))


def path_of(domain: str, folder: Path = ASSETS) -> Path:
    """Where a domain's monitor lies in a folder laid out like `assets/`."""
    return folder / "scores" / f"shift-{domain}.npz"


def save_monitor(monitor: Monitor, folder: Path = ASSETS) -> Path:
    """Write a monitor, atomically. Returns the file."""
    layer = next(iter(sparse_layers(monitor.ears).values()))
    facts = {
        "domain": monitor.domain,
        "settings": asdict(layer.settings),
        "padding": layer.padding,
        "view": asdict(monitor.view),
        "images": monitor.known.images,
        "facts": monitor.facts,
    }
    memory = io.BytesIO()
    np.savez_compressed(
        memory,
        weight=layer.weight.detach().cpu().numpy(),
        rho=layer.rho.detach().cpu().numpy(),
        lipschitz=layer.lipschitz.cpu().numpy(),
        mean=monitor.known.mean.numpy(),
        inverse=monitor.known.inverse.numpy(),
        held=monitor.held.numpy().astype(np.float32),
        facts=np.array(json.dumps(facts, ensure_ascii=False)),
    )
    path = path_of(monitor.domain, folder)
    path.parent.mkdir(parents=True, exist_ok=True)
    part = path.with_suffix(".part")
    part.write_bytes(memory.getvalue())
    os.replace(part, path)
    return path


def load_monitor(study: str, folder: Path = ASSETS) -> Monitor:
    """The monitor of a study's domain, read once as long as the file stays as it is.

    Args:
        study: A study or a domain, such as `"polyp-sinet"` or `"polyp"`.
        folder: Laid out like `assets/`.

    Raises:
        FileNotFoundError: There is none; says how it is made.
        ValueError: The file is damaged, or the study is not known.
    """
    path = path_of(domain_of(study), folder)
    if not path.exists():
        raise FileNotFoundError(f"The monitor {path.name} is missing. Make it with: {COMMAND}")
    return _read(path, path.stat().st_mtime_ns)


@lru_cache(maxsize=8)
def _read(path: Path, _: int) -> Monitor:
    try:
        with np.load(path, allow_pickle=False) as z:
            facts = json.loads(str(z["facts"]))
            raw = {key: torch.from_numpy(z[key]) for key in z.files if key != "facts"}
        weight = raw["weight"]
        layer = CSCConv2d(
            weight.shape[1], weight.shape[0], weight.shape[2], 1, facts["padding"], TacscSettings(**facts["settings"])
        )  # fmt: skip
        layer.weight.data.copy_(weight)
        layer.rho.data.copy_(raw["rho"])
        layer.lipschitz = raw["lipschitz"].clone()
        layer.eigencode = torch.zeros(1)  # L is known: a forward pass iterates where this is empty
        known = Reference(raw["mean"], raw["inverse"], int(facts["images"]))
        return Monitor(
            facts["domain"],
            ears_of(nn.Sequential(layer.requires_grad_(False))),
            View(**facts["view"]),
            known,
            raw["held"].double(),
            facts["facts"],
        )
    except (KeyError, TypeError, EOFError, ValueError, zipfile.BadZipFile, zlib.error) as error:
        raise ValueError(f"{path.name} is no monitor ({error}).") from error


def there_is(study: str, folder: Path = ASSETS) -> bool:
    """Whether a monitor ships for a study's domain."""
    return path_of(domain_of(study), folder).exists()
