"""Cards of the recorded sparse coding runs: data, licence, schedule, figures, and the command that made them. Every figure comes from the records."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from pathlib import Path

from core.data.corruptions import NOISES
from core.lab.sparse_record import SparseRecord

DATA = (
    "CIFAR-10 (Krizhevsky, 2009): photos of ten kinds of things, 32 pixels, 50,000 to train and 10,000 to test. Corruptions are "
    "made from its test images by `core/data/corruptions.py`."
)
LICENCE = "Research use; published without a formal licence. No image of it is in this project."
MEANT = (
    "Showing what λ does under corruption, and comparing ways to follow it without labels. The networks are a quarter as wide as the published ones "
    "and trained briefly. Not a medical device, not validated for any use."
)


def write_cards(
    records: Mapping[str, SparseRecord], shipped: Sequence[str], out: Path, command: str
) -> list[Path]:
    """Write a card beside the records (`results/sparse/README.md`) and one beside the networks where they ship (`weights/sparse.md`).

    Args:
        records: Recorded runs by key.
        shipped: Keys of the networks that ship.
        out: Folder laid out like `assets/`.
        command: What made them.

    Returns:
        The paths written.
    """
    plan = next((r.adapt_settings for r in records.values() if r.adapt_settings), {})
    schedules = "\n".join(f"- `{key}`: {_schedule(record)}" for key, record in records.items())
    steps = ", ".join(f"{k} {v}" for k, v in plan.items() if k != "plan")
    drawn = ", ".join(
        f"{k} {v}" for k, v in plan.get("plan", {}).items() if k not in ("corruptions", "severities")
    )
    body = (
        f"**Data.** {DATA}\n\n**Licence.** {LICENCE}\n\n**Meant for.** {MEANT}\n\n**Made by.** `{command}`\n\n**Trained.**\n\n{schedules}\n\n"
        f"**Measured.** For each corruption and severity a pool of test images is drawn that adaptation alone sees; others are scored, the "
        f"same for every network ({drawn}). Adaptation: {steps}. Nothing was chosen on test images.\n\n**Figures.** Accuracy "
        "in per cent on clean test images, and under the four noises (mean over severities 1 to 5), with the smallest recorded number of "
        f"unlabelled images that is 100 or more:\n\n{_figures(records)}"
    )
    texts = {
        out
        / "results"
        / "sparse"
        / "README.md": "# Records of sparse coding networks\n\nOne JSON file a run: settings, history of training, accuracy by "
        f"corruption, severity and adaptation. No images.\n\n{body}"
    }
    if shipped:
        names = ", ".join(f"`sparse-{key}.safetensors`" for key in shipped)
        texts[out / "weights" / "sparse.md"] = (
            f"# Sparse coding networks and their ResNet, float16 kernels\n\n{names}.\n\n{body}"
        )
    for path, text in texts.items():
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
    return list(texts)


def _schedule(record: SparseRecord) -> str:
    s = record.schedule
    words = (
        f"{s.get('epochs')} epochs of {record.images:,} images, batches of {s.get('batch')}, learning rate {s.get('learning_rate')}, "
        f"width {record.width}, seed {record.seed}"
    )
    if record.model != "resnet":
        words += f", K = {record.settings.iterations}, λ {'trained from' if record.settings.learn else 'fixed at'} {record.settings.threshold}"
    return f"{words}; torch {record.versions.get('torch', 'unknown')}"


def _samples(record: SparseRecord) -> int:
    there = sorted({c.samples for c in record.cells if c.samples})
    return next((n for n in there if n >= 100), there[-1] if there else 0)


def _figures(records: Mapping[str, SparseRecord]) -> str:
    lines = ["| run | clean | noises, none | BN | λ | λ and BN |", "|---|---|---|---|---|---|"]
    for key, record in records.items():
        n = _samples(record)
        values = [record.accuracy("clean", 0)]
        for adapt in ("none", "bn", "lambda", "both"):
            values.append(sum(record.mean_accuracy(name, adapt, n) for name in NOISES) / len(NOISES))
        lines.append(
            f"| `{key}` | " + " | ".join(f"{100 * v:.1f}" if math.isfinite(v) else "–" for v in values) + " |"
        )
    return "\n".join(lines) + "\n"
