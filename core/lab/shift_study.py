"""λ as a shift detector on CIFAR-10: how well the score of `core.tacsc.shift_score` tells damaged test images from clean ones.

Test images are divided once: a reference that is never scored, clean ones, and others that are damaged. 16 images are scored together, and
single images by crops, each with a reference of its own kind. Noises and blurs, severities 1, 3 and 5. Nothing is trained and nothing is chosen
here. `python -m core.lab.shift_study` measures; `shift_record.py` reads.
"""

from __future__ import annotations

import platform
import time
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
import torch
from torch import nn

from core.data.corruptions import NOISES, corrupt_many
from core.lab.shift_record import COMMAND, POOLED, Roc, ShiftRecord, ShiftRow
from core.lab.sparse_train import prepared
from core.tacsc.shift_score import PARTS, Reference, Wishes, auroc, reference, roc, wishes, wishes_of_crops

BLURS = ("defocus_blur", "glass_blur", "motion_blur", "zoom_blur")
"""The four blurs of CIFAR-10-C's main list."""

POINTS = 60
"""Points of a recorded ROC curve at most."""

Report = Callable[[int, int, Mapping[str, Any]], None]


@dataclass(frozen=True)
class ShiftPlan:
    """What is measured.

    Attributes:
        reference: Images behind the reference of whole images; none of them is scored.
        reference_single: The first of them, whose crops are the reference of single images.
        clean: Clean images that are scored.
        damaged: Further images, damaged and scored.
        single: Images of each kind that are scored alone.
        batch: Images that are scored together.
        rounds: Ways to put the images into batches.
        crops: Crops of a single image.
        side: Their side in pixels.
        noises: Names.
        blurs: Names.
        severities: Of each.
        seed: Of the parts, the batches, the crops and the damage.
    """

    reference: int = 1000
    reference_single: int = 400
    clean: int = 640
    damaged: int = 640
    single: int = 200
    batch: int = 16
    rounds: int = 8
    crops: int = 4
    side: int = 24
    noises: tuple[str, ...] = NOISES
    blurs: tuple[str, ...] = BLURS
    severities: tuple[int, ...] = (1, 3, 5)
    seed: int = 0


def batch_scores(
    known: Reference, features: torch.Tensor, size: int, rounds: int, rng: torch.Generator
) -> torch.Tensor:
    """Scores of images put together at random.

    Args:
        known: The reference.
        features: `(N, F)`.
        size: Images of a batch; 1 gives each image's own score, once.
        rounds: How many times all images are dealt anew.
        rng: Source of the dealing.

    Returns:
        `(rounds · ⌊N/size⌋,)` float64, or `(N,)`.
    """
    if size == 1:
        return torch.tensor([known.score(f[None]) for f in features], dtype=torch.float64)
    found = []
    for _ in range(rounds):
        order = torch.randperm(len(features), generator=rng)
        found += [known.score(features[pick]) for pick in order.split(size) if len(pick) == size]
    return torch.tensor(found, dtype=torch.float64)


def thinned(shifted: torch.Tensor, clean: torch.Tensor) -> tuple[tuple[float, ...], tuple[float, ...]]:
    """ROC curve without the points inside its straight pieces, and with at most about `POINTS` of the others."""
    false, true = roc(shifted, clean)
    bend = torch.ones(len(false), dtype=torch.bool)
    a, b = torch.stack([false, true], 1).diff(dim=0).split(1, 1)
    bend[1:-1] = (a[:-1] * b[1:] - a[1:] * b[:-1]).abs()[:, 0] > 1e-12
    at = bend.nonzero()[:, 0]
    if len(at) > POINTS:
        at = at[torch.linspace(0, len(at) - 1, POINTS).round().long()]
    return tuple(false[at].tolist()), tuple(true[at].tolist())


def study(
    net: nn.Module,
    images: np.ndarray,
    plan: ShiftPlan | None = None,
    network: str = "",
    on_step: Report | None = None,
    command: str = COMMAND,
) -> ShiftRecord:
    """Measure how well a network's sparse layers notice damage.

    Args:
        net: A trained network with sparse layers, in eval mode; it is not changed.
        images: Clean test images `(N, S, S, 3)` uint8.
        plan: What is measured.
        network: Its name in the record.
        on_step: `(done, total, facts)` after each corruption and severity; facts hold their AUROC. It may raise to stop.
        command: What the record says made it.

    Raises:
        ValueError: Too few test images.
    """
    plan, began = plan or ShiftPlan(), time.monotonic()
    need = plan.reference + plan.clean + plan.damaged
    if len(images) < need:
        raise ValueError(
            f"{len(images)} test images do not suffice: reference, clean and damaged ones take {need} together."
        )
    order = np.random.default_rng(plan.seed).permutation(len(images))[:need]
    base, clean, damaged = np.split(order, [plan.reference, plan.reference + plan.clean])
    listen = _Ears(net, plan)
    known = {n: {p: reference(w.features(p)) for p in PARTS} for n, w in listen(images[base], True).items()}
    calm = _scores(listen(images[clean]), known, plan)
    cells = [(c, s) for c in (*plan.noises, *plan.blurs) for s in plan.severities]
    far: dict[tuple[str, int], dict[tuple[int, str], torch.Tensor]] = {}
    rows: list[ShiftRow] = []
    curves: list[Roc] = []

    def add(name: str, severity: int, scores: Mapping[tuple[int, str], torch.Tensor]) -> None:
        for (n, part), values in scores.items():
            rows.append(ShiftRow(name, severity, n, part, auroc(values, calm[n, part])))
            if part == "both":
                curves.append(Roc(name, severity, n, part, *thinned(values, calm[n, part])))

    for k, (name, severity) in enumerate(cells):
        bad = corrupt_many(images[damaged], name, severity, plan.seed, damaged.tolist())
        far[name, severity] = _scores(listen(bad), known, plan)
        add(name, severity, far[name, severity])
        if on_step is not None:
            found = {f"{r.part}_{r.images}": r.auroc for r in rows[-len(calm) :] if r.part == "both"}
            on_step(k + 1, len(cells), {"corruption": name, "severity": severity} | found)
    for family, names in zip(POOLED, (plan.noises, plan.blurs), strict=True):
        for severity in plan.severities if names else ():
            add(family, severity, {key: torch.cat([far[c, severity][key] for c in names]) for key in calm})
    facts = {"images": plan.reference, "clean": plan.clean, "damaged": plan.damaged, "single": plan.single}
    quiet = {
        str(n): {"mean": float(v.mean()), "high": float(v.quantile(0.95))}
        for (n, part), v in calm.items()
        if part == "both"
    }
    versions = {"python": platform.python_version(), "torch": torch.__version__, "numpy": np.__version__}
    return ShiftRecord(
        network, tuple(rows), tuple(curves), facts | {"clean_scores": quiet}, asdict(plan), command, versions,
        time.monotonic() - began,
    )  # fmt: skip


class _Ears:
    """Wishes on whole images and, of the first ones, on crops."""

    def __init__(self, net: nn.Module, plan: ShiftPlan) -> None:
        self.net, self.plan = net.eval(), plan
        self.device = next(net.parameters()).device

    def __call__(self, images: np.ndarray, base: bool = False) -> dict[int, Wishes]:
        x, plan = prepared(images).to(self.device), self.plan
        count = plan.reference_single if base else plan.single
        rng = torch.Generator().manual_seed(plan.seed)
        return {
            plan.batch: wishes(self.net, x),
            1: wishes_of_crops(self.net, x[:count], plan.crops, plan.side, rng),
        }


def _scores(
    heard: Mapping[int, Wishes], known: Mapping[int, Mapping[str, Reference]], plan: ShiftPlan
) -> dict[tuple[int, str], torch.Tensor]:
    """Number of images and part -> scores."""
    return {
        (n, part): batch_scores(
            known[n][part], w.features(part), n, plan.rounds, torch.Generator().manual_seed(plan.seed)
        )
        for n, w in heard.items()
        for part in PARTS
    }


if __name__ == "__main__":
    from core.lab.shift_command import command

    raise SystemExit(command())
