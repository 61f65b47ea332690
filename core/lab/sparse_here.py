"""Live adaptation for a visitor: pictures are damaged, λ follows them without labels step by step, and the network answers before and after.

Seconds on two cores, through the one runner (`jobs`), deterministic by seed, cached by settings. The images that adaptation saw are not
scored: the last quarter of the pictures is held back for the answers. Networks are those that ship (`sparse_shelf.network`); they are not changed.
The objective over λ is in `sparse_landscape`, the first
screen's pictures in `sparse_look`, sentences in `sparse_here_words`.
"""

from __future__ import annotations

import copy
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
import torch
from torch import nn

from core.data.corruptions import KEEPS_SHAPE, corrupt_many
from core.images.maps_pairs import digest
from core.lab.jobs import RUNNER, Ticket
from core.lab.keys import settings_key
from core.lab.sparse_images import Pictures, eight_bit
from core.lab.sparse_look import SHOWN, Answers, Look, answers_of, into, look_at, resolved
from core.lab.sparse_names import layer_words
from core.settings.knob import check
from core.settings.tacsc import AdaptSettings
from core.tacsc.adapt import adapt, adapted_copy
from core.tacsc.layer import sparse_layers
from core.tacsc.norms import refresh_norms

WAYS = ("clean", "none", "bn", "lambda", "both")
"""What is answered: the clean pictures by the network as it is, and the damaged ones under each way of adaptation."""

DEEP = 64
"""Pictures of a run at most where many layers are sparse: each step runs them all."""

Report = Callable[[int, int, Mapping[str, Any]], None]


@dataclass(frozen=True, eq=False)
class Watched:
    """What a live run leaves. N pictures, of which the first `seen` were adapted on and the M others answered. L sparse layers.

    Attributes:
        key: The network.
        segments: Whether it is a U-Net.
        names: L names of the layers in words.
        corruption: Name, or `"clean"`.
        severity: 1 to 5; 0 for clean.
        settings: Of adaptation; all four ways are answered whatever it says.
        seed: Of the corruption.
        seen: Pictures that adaptation saw.
        clean: `(N, S, S, 3)` uint8.
        damaged: `(N, S, S, 3)` uint8.
        masks: `(M, S, S)` bool of the held-back pictures, or None.
        labels: `(M,)` of the held-back pictures, or None.
        before: The first layer at the trained λ, held-back pictures first.
        after: The same at the adapted λ.
        untouched: The first layer on the clean pictures at the trained λ.
        threshold: `(steps + 1, L)` λ.
        error: `(steps + 1, L)` mean R.
        sparsity: `(steps + 1, L)` mean share of zero codes.
        objective: `(steps + 1,)` Σ R/(λ + ε).
        stopped: Layer in words -> why a guard stopped it.
        answers: Way -> what the network says; `"clean"`, `"none"`, `"bn"`, `"lambda"`, `"both"`.
        seconds: How long it took.
    """

    key: str
    segments: bool
    names: tuple[str, ...]
    corruption: str
    severity: int
    settings: AdaptSettings
    seed: int
    seen: int
    clean: np.ndarray = field(repr=False)
    damaged: np.ndarray = field(repr=False)
    masks: np.ndarray | None = field(repr=False)
    labels: np.ndarray | None = field(repr=False)
    before: Look
    after: Look
    untouched: Look
    threshold: np.ndarray = field(repr=False)
    error: np.ndarray = field(repr=False)
    sparsity: np.ndarray = field(repr=False)
    objective: np.ndarray = field(repr=False)
    stopped: Mapping[str, str]
    answers: Mapping[str, Answers] = field(repr=False)
    seconds: float


def watch(
    key: str | nn.Module,
    pictures: Pictures | np.ndarray,
    corruption: str,
    severity: int,
    settings: AdaptSettings | None = None,
    seed: int = 0,
    on_step: Report | None = None,
) -> Watched:
    """Damage pictures, let λ follow, and ask the network before and after. Runs in the calling thread: pages use `start`.

    Args:
        key: A shipped network (`tacsc-k2-w16-s0`, `unet-phantom-tacsc`), or a network itself. 32-pixel pictures go to a classifier, others to a U-Net
            (side a multiple of 16).
        pictures: From `sparse_images`, or `(N, S, S, 3)` uint8; N >= 3. Where many layers are sparse the first `DEEP` are used.
        corruption: One of `core.data.corruptions.CORRUPTIONS`, or `"clean"`, which damages nothing.
        severity: 1 to 5; ignored for clean.
        settings: Of adaptation. All four ways are answered whatever `what` says.
        seed: Of the corruption.
        on_step: `(done, total, facts)` at each step on λ and after each answer; facts hold `threshold`, `error` and `sparsity`, a row of L
            numbers for each step so far. It may raise to stop.

    Raises:
        ValueError: Too few or unusable pictures, no sparse layer, or a setting out of range.
        FileNotFoundError: The network does not ship.
    """
    began = time.perf_counter()
    settings = settings or AdaptSettings()
    check(settings)
    net, segments = resolved(key)
    layers = sparse_layers(net)
    given = as_pictures(pictures)
    if len(layers) > 1 and len(given.images) > DEEP:
        given = given.first(DEEP)
    clean = usable(given, segments)
    held = max(1, len(clean) // 4)
    seen = len(clean) - held
    at = 0 if corruption == "clean" else severity
    damaged = clean if at == 0 else corrupt_many(clean, corruption, at, seed)
    total = settings.steps + 1 + len(WAYS)
    trace: dict[str, list[list[float]]] = {"threshold": [], "error": [], "sparsity": []}

    def tell(step: int, _: int, facts: Mapping[str, Any]) -> None:
        for name, rows in trace.items():
            rows.append(list(facts[name]))
        if on_step is not None:
            on_step(step + 1, total, {name: tuple(rows) for name, rows in trace.items()})

    x = into(damaged[:seen], segments).to(next(net.parameters()).device)
    found = adapt(net, x, replace(settings, what="lambda"), tell)
    moved = adapted_copy(net, found)
    truth = _truth(given, seen, segments, corruption)
    answers: dict[str, Answers] = {}
    for way in WAYS:
        now = _network_of(way, net, moved, x, settings)
        images = (clean if way == "clean" else damaged)[seen:]
        answers[way] = answers_of(now, images, segments, way, truth, answers.get("clean"))
        if on_step is not None:
            on_step(
                settings.steps + 1 + len(answers), total, {name: tuple(rows) for name, rows in trace.items()}
            )
    order = np.r_[seen : len(clean), 0:seen][:SHOWN]
    first = next(iter(layers.values()))
    words = dict(zip(found.names, map(layer_words, found.names), strict=True))
    return Watched(
        key=key if isinstance(key, str) else type(net).__name__,
        segments=segments,
        names=tuple(words.values()),
        corruption=corruption,
        severity=at,
        settings=settings,
        seed=seed,
        seen=seen,
        clean=clean,
        damaged=damaged,
        masks=None if given.masks is None else given.masks[seen:],
        labels=None if given.labels is None else given.labels[seen:],
        before=look_at(first, damaged[order], segments, at),
        after=look_at(first, damaged[order], segments, at, float(found.threshold[-1, 0])),
        untouched=look_at(first, clean[order], segments, 0),
        threshold=found.threshold.numpy(),
        error=found.error.numpy(),
        sparsity=found.sparsity.numpy(),
        objective=found.objective.numpy(),
        stopped={words[name]: why for name, why in found.stopped.items()},
        answers=answers,
        seconds=time.perf_counter() - began,
    )


def _network_of(
    way: str, net: nn.Module, moved: nn.Module, x: torch.Tensor, settings: AdaptSettings
) -> nn.Module:
    """The network of one way of adaptation. Statistics are refreshed after λ."""
    if way in ("clean", "none"):
        return net
    if way == "lambda":
        return moved
    work = copy.deepcopy(net if way == "bn" else moved)
    refresh_norms(work, x, settings.prior)
    return work


def as_pictures(pictures: Pictures | np.ndarray) -> Pictures:
    """Bare arrays as pictures of no name."""
    return (
        pictures
        if isinstance(pictures, Pictures)
        else Pictures("given", pictures, "Pictures that were given.")
    )


def usable(pictures: Pictures, segments: bool) -> np.ndarray:
    """The images of a live run, `(N, S, S, 3)` uint8.

    Raises:
        ValueError: Too few, of a size that the network cannot take, or nothing in them.
    """
    images = eight_bit(pictures.images)
    if images.ndim != 4:
        raise ValueError(
            f"Pictures come as (N, S, S, 3), not as {images.shape}. Cut one image into crops with `crops_of`."
        )
    if len(images) < 3:
        raise ValueError(
            f"{len(images)} picture{'' if len(images) == 1 else 's'} cannot be adapted on: one draw is no statistics, and one picture is held "
            "back for the answer. Cut crops of an image with `crops_of`, or bring at least 3."
        )
    height, width = images.shape[1:3]
    if segments and (height % 16 or width % 16):
        raise ValueError(
            f"The U-Net takes sides that are multiples of 16; these pictures have {width} × {height} pixels."
        )
    if min(height, width) < 16:
        raise ValueError(
            f"Pictures of {width} × {height} pixels are too small for this network; 16 is the least, 32 what it was made for."
        )
    return images


def _truth(pictures: Pictures, seen: int, segments: bool, corruption: str) -> np.ndarray | None:
    """Classes or masks of the held-back pictures; None where they are not known or no longer fit the damaged picture."""
    if not segments:
        return None if pictures.labels is None else pictures.labels[seen:]
    fits = corruption == "clean" or corruption in KEEPS_SHAPE
    return pictures.masks[seen:] if pictures.masks is not None and fits else None


def start(
    key: str,
    pictures: Pictures,
    corruption: str,
    severity: int,
    settings: AdaptSettings | None = None,
    seed: int = 0,
    owner: str = "",
) -> Ticket:
    """Ask the one runner for a live run, or join those who wait for the same one; `ticket.result()` is a `Watched`.

    Args:
        key: A shipped network.
        pictures: From `sparse_images`.
        corruption: As in `watch`.
        severity: As in `watch`.
        settings: As in `watch`.
        seed: Of the corruption.
        owner: Something of the visitor's session for their own images, so that nobody else is served from their results; empty for drawn pictures.
    """
    settings = settings or AdaptSettings()
    name = settings_key("sparse.watch", key, _digest(pictures), corruption, severity, settings, seed, owner)
    return RUNNER.submit(
        name, lambda on_step: watch(key, pictures, corruption, severity, settings, seed, on_step)
    )


def _digest(pictures: Pictures) -> str:
    """What makes two sets of pictures the same: images and truth."""
    parts = [a for a in (pictures.images, pictures.masks, pictures.labels) if a is not None]
    return " ".join(digest(a) for a in parts)
