"""Cards of what the study of shift leaves: data, licence, figures, and the command that made it. Every figure comes from the files beside."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from core.lab.domains import TITLES
from core.lab.shift_coverage import damaged as damaged_pictures
from core.lab.shift_coverage import damages, under_shift
from core.lab.shift_damage import COMMAND as PHANTOMS_COMMAND
from core.lab.shift_damage import FIRST_SEED, STUDY
from core.lab.shift_monitor import GROUP_QUANTILE, MOST, QUANTILE, Monitor, load_monitor
from core.lab.shift_record import ShiftRecord
from core.lab.study import load_study, split_study

_LIMITS = "A low score is no proof that images are like the reference. It is a warning and no test. Not a medical device, not validated for any use."
LICENCES = {
    "phantom": "Drawn by this project; as the project.",
    "polyp": "Made from Kvasir-SEG (Jha and others, 2020), research and education. No image of it is in this project.",
    "skin": "Made from HAM10000 (Tschandl and others, 2018), CC BY-NC 4.0, non-commercial; what is derived "
    "follows these terms. No image of it is in this project.",
    "fire": "Made from video frames of fires; the terms of the fire study hold. No image of it is in this project.",
}


def _write(path: Path, *paragraphs: str) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("\n\n".join(paragraphs), encoding="utf-8")
    return path


def _table(rows: Sequence[Sequence[str]]) -> str:
    first, *rest = rows
    return "\n".join("| " + " | ".join(r) + " |" for r in (first, ["---"] * len(first), *rest)) + "\n"


def study_card(record: ShiftRecord, out: Path) -> Path:
    """Card of `results/sparse/shift.json`."""
    plan, c = record.plan, record.reference
    severities = plan["severities"]
    rows = [["images", "corruption", *(f"severity {s}" for s in severities)]]
    for n in (plan["batch"], 1):
        for name in (*plan["noises"], *plan["blurs"]):
            rows.append([str(n), name, *(f"{record.auroc(name, s, n):.3f}" for s in severities)])
    return _write(
        out / "results" / "sparse" / "shift.md",
        "# shift.json: λ as a shift detector on CIFAR-10",
        "AUROC and ROC curves of the shift score (`core/tacsc/shift_score.py`), no images.",
        f"**Data.** CIFAR-10's test images (Krizhevsky, 2009; research use): {c['images']:,} clean ones as reference, never scored, "
        f"{c['clean']:,} clean ones that are scored and {c['damaged']:,} others that are damaged; of each kind {c['single']} also alone, "
        f"by {plan['crops']} crops of {plan['side']} pixels. Corruptions by `core/data/corruptions.py`. No image is in this project.",
        f"**Network.** `{record.network}`, as it was trained. Nothing was trained or chosen here.",
        f"**Made by.** `{record.command}` (torch {record.versions['torch']}, {record.seconds:.0f} s)",
        f"**Limits.** {_LIMITS}",
        "**Figures.** AUROC of λ's pull and the error together:",
        _table(rows),
    )


def monitor_card(monitor: Monitor, out: Path) -> Path:
    """Card of a monitor."""
    facts, v = monitor.facts, monitor.view
    rows: list[list[str]] = [["images", "corruption", "severity", "AUROC", "above the limit"]]
    found: Sequence[Mapping[str, Any]] = facts.get("rows", ())
    for r in sorted(found, key=lambda r: -r["images"]):
        score = "–" if r["auroc"] is None else f"{r['auroc']:.3f}"
        rows.append(
            [str(r["images"]), r["corruption"], str(r["severity"]), score, f"{100 * r['warned']:.0f} %"]
        )
    return _write(
        out / "scores" / f"shift-{monitor.domain}.md",
        f"# shift-{monitor.domain}.npz: does an image look like those of the study *{TITLES[monitor.domain]}*?",
        f"The first layer of `{facts.get('network')}`, mean and covariance of what it wants on {facts.get('reference_images')} clean images of "
        f"{facts.get('source')}, and the same of {facts.get('held_images')} others. No images.",
        f"**Looks at.** {v.count} crops of {v.crop} pixels of an image scaled to a long side of {v.side}: λ's pull and the reconstruction error. "
        f"The limit is what {round(100 * QUANTILE)} of 100 clean images stay below, or {round(100 * GROUP_QUANTILE)} of 100 groups of up to {MOST}.",
        f"**Licence.** {LICENCES[monitor.domain]}",
        f"**Made by.** `{facts.get('command')}`",
        f"**Limits.** {_LIMITS}",
        f"**Figures.** On {facts.get('measured_images', 0)} images that neither reference nor limit has seen, clean and damaged:",
        _table(rows),
    )


def damaged_card(out: Path, shelf: Path) -> Path:
    """Card of the damaged phantoms.

    Args:
        out: Folder laid out like `assets/` that holds them.
        shelf: The same with the phantom study in it.
    """
    split = split_study(load_study(shelf, STUDY), 0.1, 0)
    monitor = load_monitor(STUDY, out)
    rows = [["corruption", "severity", "CRC covers", "COAT covers", "groups warned of"]]
    count = 0
    for name in damages(out):
        u = under_shift(split, damaged_pictures(name, out), monitor)
        count = u.single.shape[1]
        for k, s in enumerate(u.severities):
            if s or len(rows) == 1:
                shares = (u.mean_coverage["CRC"][k], u.mean_coverage["COAT"][k], u.warned[1][k])
                rows.append([name if s else "clean", str(s), *(f"{100 * float(x):.0f} %" for x in shares)])
    return _write(
        out / "scores" / f"{STUDY}-damaged.md",
        f"# {STUDY}-damaged.npz and {STUDY}-damaged-thresholds.npz: a promise under damage",
        f"Score tables (bins of 1/20 logit), COAT's thresholds and what the monitor hears for {count} phantoms that no study uses (seeds from "
        f"{FIRST_SEED:,}), clean and damaged. No images.",
        f"**Made by.** `{PHANTOMS_COMMAND}`, with the phantom study's own base network and predictors.",
        f"**Licence.** {LICENCES[STUDY]}",
        "**Limits.** Thresholds are calibrated on clean phantoms, so no coverage under damage is promised by anyone. Drawn pictures say "
        "nothing about real ones.",
        f"**Figures.** α = 0.1, draw 0, groups of {MOST}:",
        _table(rows),
    )
