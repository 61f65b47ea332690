"""Making a monitor from a trained U-Net and a study's clean images, and measuring what it notices.

Reference and limit come from images of D2, which trained neither the base network nor the U-Net; what is measured is measured on the pool. The
fire study's parts are whole videos and its promise is about further frames of the videos in the pool, so there all three come from the pool.
A set without a U-Net of its own takes the polyps' first layer, with its own clean images as reference.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import nn

from core.data.splits import Parts
from core.images.grid import to_grid
from core.lab.shift_damage import DAMAGES, damaged_image
from core.lab.shift_ears import View, ears_of, hear
from core.lab.shift_monitor import COMMAND, MOST, Monitor
from core.lab.shift_study import batch_scores
from core.lab.sources import Reader, domain_of, source
from core.tacsc.shift_score import auroc, reference

SEVERITIES = (1, 3, 5)
LISTENS = {"phantom": "sparse-unet-phantom-tacsc", "polyp": "sparse-unet-polyp-tacsc"}
"""Domain -> U-Net whose first layer listens; the others take the polyps'."""

FOLDERS = {"polyp": "kvasir_seg", "skin": "ham10000", "fire": "fire"}
"""Folder of each real set inside a folder that holds them all."""

ROUNDS = 8
Report = Callable[[int, int, Mapping[str, Any]], None]


def listener_of(domain: str) -> str:
    """Name of the U-Net whose first layer listens for a domain."""
    return LISTENS.get(domain, LISTENS["polyp"])


def reader_of(domain: str, data: Path | None) -> tuple[Parts, Reader]:
    """Parts and reader of a domain's study.

    Args:
        domain: One of `core.lab.sources.DOMAINS`.
        data: Folder that holds the real sets' folders (`FOLDERS`); unused for phantoms.

    Raises:
        DataAbsent, ValueError: As in `core.lab.sources.source`.
    """
    return source(domain, None if data is None or domain == "phantom" else data / FOLDERS[domain])


def divided(domain: str, parts: Parts, measured: int = 120, seed: int = 0) -> tuple[list[str], list[str], list[str]]:  # fmt: skip
    """Names of the images of the reference, of the limit, and of the measurement; no name is in two of them.

    Args:
        domain: The domain.
        parts: Of its study.
        measured: Pool images that are measured on, at most.
        seed: Of the draw.
    """
    rng = np.random.default_rng(seed)
    names = list(parts.pool if domain == "fire" else parts.d2)
    order = [names[i] for i in rng.permutation(len(names))]
    if domain == "fire":
        third = len(order) // 3
        return order[:third], order[third : 2 * third], order[2 * third : 2 * third + measured]
    half = len(order) // 2
    pool = [parts.pool[i] for i in rng.permutation(len(parts.pool))]
    return order[:half], order[half:], pool[:measured]


def fit_monitor(
    domain: str,
    net: nn.Module,
    base: Iterable[np.ndarray],
    held: Iterable[np.ndarray],
    view: View | None = None,
    facts: Mapping[str, Any] | None = None,
) -> Monitor:
    """Listen to clean images.

    Args:
        domain: Their domain.
        net: A network whose first sparse layer takes images in [-1, 1].
        base: Images of the reference, `(H, W, 3)` uint8, two or more.
        held: Images of the limit, two or more.
        view: How they are looked at.
        facts: What the monitor's file says besides.

    Raises:
        ValueError: Too few images, or one of them cannot be heard.
    """
    view, ears = view or View(), ears_of(net)
    known, calm = (torch.stack([hear(ears, rgb, view) for rgb in images]) for images in (base, held))
    if len(calm) < 2:
        raise ValueError("A limit needs at least two clean images that are not in the reference.")
    counts = {"reference_images": len(known), "held_images": len(calm)}
    return Monitor(domain, ears, view, reference(known), calm, {**(facts or {}), **counts})


def measure(
    monitor: Monitor,
    images: Sequence[np.ndarray],
    damages: Sequence[str] = DAMAGES,
    severities: Sequence[int] = SEVERITIES,
    on_step: Report | None = None,
) -> list[dict[str, Any]]:
    """What a monitor notices.

    Args:
        monitor: The monitor.
        images: Clean images that it does not know, `MOST` or more.
        damages: Corruptions.
        severities: Of each.
        on_step: `(done, total, facts)` after each of them; facts are the rows. It may raise to stop.

    Returns:
        Rows: `corruption` (`"clean"` too), `severity` (0 for clean), `images` (1 or `MOST`), `auroc` against clean ones (None for them),
        `warned`: share of scores above the limit.
    """
    sizes = (1, MOST)

    def scores(heard: torch.Tensor) -> dict[int, torch.Tensor]:
        rng = torch.Generator().manual_seed(0)
        return {n: batch_scores(monitor.known, heard, n, ROUNDS, rng) for n in sizes}

    def warned(values: torch.Tensor, n: int) -> float:
        return float((values > monitor.limit(n)).double().mean())

    calm = scores(torch.stack([monitor.hear(rgb) for rgb in images]))
    rows: list[dict[str, Any]] = [
        {"corruption": "clean", "severity": 0, "images": n, "auroc": None, "warned": warned(calm[n], n)} for n in sizes
    ]  # fmt: skip
    cells = [(c, s) for c in damages for s in severities]
    for done, (name, severity) in enumerate(cells, 1):
        heard = [monitor.hear(damaged_image(rgb, name, severity, k)) for k, rgb in enumerate(images)]
        far = scores(torch.stack(heard))
        new = [
            {
                "corruption": name,
                "severity": severity,
                "images": n,
                "auroc": auroc(far[n], calm[n]),
                "warned": warned(far[n], n),
            }
            for n in sizes
        ]
        rows += new
        if on_step is not None:
            facts = {"corruption": name, "severity": severity}
            on_step(done, len(cells), facts | {f"auroc_{r['images']}": r["auroc"] for r in new})
    return rows


def make_monitor(
    domain: str,
    net: nn.Module,
    data: Path | None,
    view: View | None = None,
    measured: int = 120,
    on_step: Report | None = None,
) -> Monitor:
    """A monitor of one domain with what it was measured to notice in its facts.

    Args:
        domain: One of `core.lab.sources.DOMAINS`.
        net: The U-Net whose first layer listens.
        data: Folder of the real sets.
        view: How images are looked at.
        measured: Pool images that are measured on.
        on_step: As in `measure`.

    Raises:
        DataAbsent: The images are not there.
    """
    parts, read = reader_of(domain_of(domain), data)
    base, held, pool = divided(domain, parts, measured)
    facts = {
        "network": listener_of(domain),
        "source": "the pool" if domain == "fire" else "D2",
        "command": COMMAND,
    }
    made = fit_monitor(domain, net, (read(n)[0] for n in base), (read(n)[0] for n in held), view, facts)
    rows = measure(made, [to_grid(read(n)[0]) for n in pool], on_step=on_step)
    return replace(made, limits={}, facts={**made.facts, "measured_images": len(pool), "rows": rows})
