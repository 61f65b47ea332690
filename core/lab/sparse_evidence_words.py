"""Sentences under the evidence of the sparse page: training, the plane, the ablations, what was trained. Computed from the arrays, as they fell."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from core.conformal.words import percent
from core.figures.frame import listed
from core.lab.sparse_names import TITLES, epochs_of, title_of
from core.lab.sparse_phrases import NOTHING, STILL, lam
from core.lab.sparse_record import SparseRecord
from core.lab.sparse_story import Plane, Story
from core.lab.tail_here_words import signed

ANALOGY = (
    "In the information bottleneck, β sets how much a representation forgets of its input to keep what the task needs; here λ sets how many codes "
    "are zero. That is an analogy supported by measurement, not a proof: sparsity is no mutual information, and nothing here estimates one."
)
"""The information-bottleneck reading, and what it is not."""

HARDLY = 0.1
"""Layers with a smaller share of zero codes are hardly sparse, and that is said."""


def story_words(view: Story) -> str:
    """What λ did in training, phase by phase."""
    start, end = view.threshold[0], view.threshold[-1]
    who = "λ" if len(end) == 1 else f"λ of {len(end)} layers (their geometric mean)"
    mean = np.exp(np.log(view.threshold).mean(1))
    parts = []
    for phase in view.phases:
        at = int(np.searchsorted(view.steps, phase.end))
        epoch = phase.end / view.per_epoch
        to = f" at {lam(mean[at])}" if phase.words == "rests" else f" to {lam(mean[at])}"
        parts.append(
            f"{phase.words}{to} until epoch {epoch:.0f}"
            if at < len(view.steps) - 1
            else f"{phase.words}{to} to the end"
        )
    said = f"{who} starts at {lam(mean[0])} and {', then '.join(parts)}."
    if len(end) > 1:
        up = int((end > start).sum())
        low, high = int(end.argmin()), int(end.argmax())
        said += (
            f" {up} of {len(end)} end above their start; the smallest is {lam(end[low])} ({view.names[low]}), the largest {lam(end[high])} "
            f"({view.names[high]})."
        )
    said += f" After {view.epochs} epochs {percent(float(view.sparsity[-1].mean()))} of the codes are zero"
    said += f" and the layers rebuild {percent(float(1 - view.error[-1].mean()))} of their inputs' energy."
    return said


def plane_words(view: Plane) -> str:
    """Where the layers went on the plane, with `ANALOGY`."""
    first, last = (float(v) for v in (view.sparsity[0].mean(), view.sparsity[-1].mean()))
    kept = float(view.kept[0].mean()), float(view.kept[-1].mean())
    more = "more" if last > first else "less"
    said = (
        f"From the first epoch to the last the layers throw {more} away ({percent(first)} of the codes are zero, then {percent(last)}) and "
        f"rebuild {percent(kept[0])}, then {percent(kept[1])} of their inputs' energy, while training accuracy goes from "
        f"{percent(float(view.accuracy[0]))} to {percent(float(view.accuracy[-1]))}."
    )
    if last < HARDLY:
        said += (
            f" Sparse coding by name: with {percent(last)} zeros this is a filter bank with a small threshold, for training keeps λ where the task "
            "wants it."
        )
    return f"{said} {ANALOGY}"


def ablation_words(rows: Sequence[Mapping[str, Any]]) -> str:
    """The four-way ablation as it fell: how much BN alone explains of the gain, for TA-CSC and for the ResNet."""
    by: dict[str, dict[str, float]] = {}
    for row in rows:
        by.setdefault(str(row["title"]), {})[str(row["adapt"])] = float(row["points"])
    parts = []
    for title, gains in by.items():
        if "both" in gains and "bn" in gains:
            whole, bn = gains["both"], gains["bn"]
            if whole < NOTHING:
                parts.append(f"{title}: adaptation gains nothing ({signed(whole)} points)")
                continue
            alone = signed(gains.get("lambda", math.nan))
            if bn >= whole:
                split = f"BN alone brings {signed(bn)}, so λ on top of it takes {bn - whole:.1f} away"
            elif bn <= 0:
                split = f"none of it by BN alone ({signed(bn)})"
            else:
                split = f"of which BN alone brings {signed(bn)} ({percent(bn / whole)})"
            parts.append(f"{title}: {whole:.1f} points, {split}; λ alone brings {alone}")
        elif "bn" in gains:
            parts.append(f"{title}: BN alone {signed(gains['bn'])} points")
    return f"Gain over no adaptation. {'. '.join(parts)}." if parts else "No way of adaptation is recorded."


def iteration_words(rows: Sequence[Mapping[str, Any]]) -> str:
    """What K does, from `sparse_view.by_iterations`."""
    parts, ways = [], set()
    for row in rows:
        moved = row["adapted"] / row["threshold"]
        if math.isfinite(moved):
            how = "stays" if abs(moved - 1) < STILL else "goes up" if moved > 1 else "goes down"
            ways.add(how)
            parts.append(
                f"with K = {row['iterations']} it {how} ({lam(row['threshold'])} → {lam(row['adapted'])})"
            )
    if not parts:
        return "What K does to adaptation is not recorded."
    if len(parts) == 1:
        return f"One K is recorded so far: {parts[0]}."
    if len(ways) == 1:
        return f"Whichever K is recorded, λ {ways.pop()}: {'; '.join(parts)}."
    said = f"Which way λ goes depends on K: {'; '.join(parts)}."
    return said + " With few steps the codes have not converged, and part of what adaptation follows is that."


def recorded_words(records: Mapping[str, SparseRecord]) -> str:
    """What was trained and how, for the evidence part."""
    one = next(iter(records.values()))
    kinds = listed(list(dict.fromkeys(TITLES[r.model] for r in records.values())))
    epochs = " or ".join(f"{e}" for e in sorted({epochs_of(r) for r in records.values()}))
    clean = ", ".join(
        f"{_bracketed(title_of(r))} {percent(value)}"
        for r in records.values()
        if math.isfinite(value := r.accuracy("clean", 0))
    )
    said = (
        f"{kinds}, width {one.width} (a quarter of the published 64), trained for {epochs} epochs on {one.images:,} images of "
        "CIFAR-10, one seed each."
    )
    return f"{said} Accuracy on clean test images: {clean}." if clean else said


def _bracketed(title: str) -> str:
    """What stands behind the first comma of a title, in brackets."""
    name, comma, more = title.partition(", ")
    return f"{name} ({more})" if comma else name
