"""A small made-up set and finished runs of it, for tests of the comparison of losses."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import torch

from core.lab.margin_sets import Labelled
from core.lab.margin_train import fresh, run_of
from core.nets.weights import save_network


def part(n: int, seed: int, classes: int = 2, side: int = 16, padded: bool = True) -> Labelled:
    """Blobs that a network could find: the image is bright where the label is not 0; two rows of padding."""
    rng = torch.Generator().manual_seed(seed)
    y, x = torch.meshgrid(torch.arange(side), torch.arange(side), indexing="ij")
    labels = torch.zeros(n, side, side, dtype=torch.int64)
    for i in range(n):
        a, b = torch.randint(4, side - 4, (2,), generator=rng).tolist()
        r = 2 + float(torch.rand(1, generator=rng)) * 3
        far = ((y - a) ** 2 + (x - b) ** 2).float().sqrt()
        labels[i] = (far <= r).long()
        if classes > 2:
            labels[i] += ((far <= r) & (far > r - 1)).long()
    images = 0.8 * (labels > 0).float() - 0.4 + 0.2 * torch.randn(n, side, side, generator=rng)
    ignore = torch.zeros(n, side, side, dtype=torch.bool)
    if padded:
        ignore[:, -2:] = True
        labels[:, -2:] = 0
    return Labelled(
        tuple(f"{seed}-{i}" for i in range(n)),
        images[:, None].expand(-1, 3, -1, -1).contiguous(),
        labels,
        ignore,
    )


def parts(classes: int = 2, n: int = 24) -> dict[str, Labelled]:
    """All four parts."""
    return {k: part(n, i, classes) for i, k in enumerate(("train", "val", "d2", "pool"))}


def logits(of: Labelled, classes: int, seed: int, sharp: float = 4.0) -> torch.Tensor:
    """Logits of a network that is mostly right, and as sharp as one likes."""
    rng = torch.Generator().manual_seed(seed)
    x = torch.randn((len(of), classes, *of.labels.shape[1:]), generator=rng)
    return sharp * (x.scatter_add(1, of.labels[:, None], torch.full_like(x[:, :1], 1.5)))


def finished(
    work: Path,
    data: str,
    loss: str,
    seed: int,
    sets: dict[str, Labelled],
    margin: float | None = None,
    sharp: float = 4.0,
) -> None:
    """Write the files that a finished run leaves."""
    run = run_of(data, loss, seed, margin)
    work.mkdir(parents=True, exist_ok=True)
    model, spec = fresh(data, seed)
    save_network(work / f"{run.key}.safetensors", model, spec, {"set": data})
    found = {
        k: logits(sets[k], spec.classes, seed + i, sharp).half().numpy()
        for i, k in enumerate(("val", "d2", "pool"))
    }
    np.savez(work / f"{run.key}.npz", loss=np.array([0.7, 0.2], np.float32), seconds=np.array(1.0), **found)
