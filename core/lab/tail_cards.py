"""Cards of the recorded long-tail runs: data, licence, split, figures, and the command that made them. Every figure comes from the record."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from core.lab.tail_record import RunRecord, gather

SOURCES = {
    "pbc": (
        "PBC (Acevedo and others, 2020): photos of single blood cells of eight types; a long tail was made by leaving images out.",
        "CC BY 4.0. No image of it is in this project.",
    ),
    "ham10000": (
        "HAM10000 (Tschandl and others, 2018): dermoscopy photos with seven diagnoses, long-tailed as it is; divided by lesion.",
        "CC BY-NC 4.0, non-commercial; the weights and tables derived from it follow these terms. No image of it is in this project.",
    ),
    "cifar10": (
        "CIFAR-10 (Krizhevsky, 2009), made long-tailed by leaving images out.",
        "Research. No image of it is in this project.",
    ),
    "tiny": (
        "Tiny ImageNet (Stanford CS231n, from ImageNet): 200 classes, long-tailed.",
        "Non-commercial research. No image of it is in this project.",
    ),
}
"""Data and licence of each set."""


def write_cards(runs: Sequence[RunRecord], out: Path, command: str) -> list[Path]:
    """Write a card beside the record of each set, and one beside its networks where they ship.

    Args:
        runs: Finished runs.
        out: Folder laid out like `assets/`.
        command: What made them.

    Returns:
        The paths written.
    """
    rows, written = gather(runs), []
    for name in dict.fromkeys(r.set for r in runs):
        data, licence = SOURCES[name]
        mine = [r for r in runs if r.set == name]
        one = mine[0]
        schedule: dict[str, Any] = dict(one.facts.get("schedule", {}))
        trained = ", ".join(f"{k} {v}" for k, v in schedule.items())
        body = (
            f"**Data.** {data} Classes from head to tail: {_classes(one)}.\n\n**Licence.** {licence}\n\n**Meant for.** Comparing ways to train on "
            f"long tails. At 32 pixels a network sees little. Not a medical device, not validated for any use.\n\n**Made by.** `{command}`\n\n"
            f"**Schedule.** {trained}.\n\n{_twins(mine)}**Figures.** On the test images, last epoch, mean over seeds:\n\n"
            f"{_figures([r for r in rows if r['data'] == name])}"
        )
        texts = {
            "tail": f"# {name}.npz: confusion matrices by epoch, seed 0\n\nCounts, rows predicted, columns true. No images.\n\n{body}"
        }
        if list((out / "weights").glob(f"tail-{name}-*.safetensors")):
            texts["weights"] = (
                f"# tail-{name}-*.safetensors: classifiers of seed 0, float16 kernels\n\n{body}"
            )
        for folder, text in texts.items():
            path = out / folder / (f"{name}.md" if folder == "tail" else f"tail-{name}.md")
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text, encoding="utf-8")
            written.append(path)
    return written


def _twins(runs: Sequence[RunRecord]) -> str:
    """How many test pictures also train, pixel for pixel; empty where none does or nobody counted."""
    images = [r.facts.get("images") or {} for r in runs]
    twins = max((int(i.get("twins", 0)) for i in images), default=0)
    if not twins:
        return ""
    test = max(int(i.get("test", 0)) for i in images)
    return f"**Twins.** {twins} of {test} test pictures also train, pixel for pixel under another name; the sets were published so.\n\n"


def _classes(run: RunRecord) -> str:
    pairs = sorted(zip(run.facts["counts"], run.facts["classes"], strict=True), reverse=True)
    some = [f"{c} ({n})" for n, c in pairs]
    return ", ".join(some if len(some) <= 12 else [*some[:3], "…", *some[-3:]])


def _figures(rows: Sequence[dict[str, Any]]) -> str:
    lines = ["| method | seeds | overall | worst class | worst classes | σ₁ |", "|---|---|---|---|---|---|"]
    for r in rows:
        lines.append(
            f"| {r['method']} | {len(r['seeds'])} | {r['overall']:.3f} | {r['worst']:.3f} | {r['worst_classes']:.3f} | {r['sigma1']:.3f} |"
        )
    return "\n".join(lines) + "\n"
