"""Cards of the study of sparse coding in segmentation: one for the networks of a set, one for the record. Every figure comes from the record."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from core.lab.cards import DATA
from core.lab.domains import TITLES
from core.lab.sparse_medical import (
    CORRUPTED,
    KINDS,
    curve,
    name_of,
    networks,
    read_record,
    record_path,
    valley,
)
from core.lab.sparse_unet import STAGES

ADAPTS = {"none": "as trained", "bn": "BN", "lambda": "λ", "both": "both"}
"""Ways of adaptation in words."""

KIND_TITLES = {"plain": "plain", "tacsc": "TA-CSC first layer"}
"""Networks in words."""


def write_cards(out: Path) -> list[Path]:
    """Write the cards of every recorded set, and the record's.

    Args:
        out: Folder laid out like `assets/`.

    Returns:
        The paths written.

    Raises:
        FileNotFoundError: Nothing is recorded.
    """
    record, found = read_record(out), networks(out)
    texts: dict[Path, str] = {}
    for data in dict.fromkeys(n["set"] for n in found.values()):
        mine = {n["kind"]: n for n in found.values() if n["set"] == data}
        texts[out / "weights" / f"sparse-unet-{data}.md"] = _networks_card(out, data, mine, record)
    texts[record_path(out).with_suffix(".md")] = _record_card(out, found, record)
    for path, text in texts.items():
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
    return list(texts)


def _networks_card(out: Path, data: str, mine: dict[str, dict[str, Any]], record: dict[str, Any]) -> str:
    about, licence, use = DATA[data]
    one = next(iter(mine.values()))
    schedule = one["schedule"]
    figures = "\n".join(
        f"| {KIND_TITLES[kind]} | {n['val_dice']:.3f} | {curve(data, 'CRC', 'noises', kind, folder=out)['dice'][0]:.3f} | {_path_of_lambda(n)} |"
        for kind, n in mine.items()
    )
    return (
        f"# sparse-unet-{data}-*.safetensors: U-Nets with a plain and with a sparse first layer\n\nMONAI's BasicUNet with channels "
        f"{', '.join(map(str, STAGES))}, batch normalisation, 96 × 96 pixels in [-1, 1], two logits, float16 kernels. `plain`: a convolution first. "
        "`tacsc`: convolutional sparse coding first (K = 2, λ trained from 0.1), no ReLU behind it. Trained from scratch with cross-entropy, seed "
        f"{one['seed']}, AdamW at {schedule['learning_rate']:g} with a cosine (ρ at {schedule['threshold_rate']:g}, without decay), batches of "
        f"{schedule['batch']}, {schedule['epochs']} epochs, seeded flips and quarter turns, the last epoch kept.\n\n"
        f"{_shared(about, licence, use, record)}{_split(data, one)}\n"
        "**Figures.** Dice at probability 0.5, on clean images:\n\n| first layer | validation part | pool | λ in training |\n|---|---|---|---|\n"
        f"{figures}\n\n{_valleys(mine['tacsc']) if 'tacsc' in mine else ''}"
        f"Mean over the four noises, clean and severity 1, 3, 5, α = 0.1:\n\n{_table(out, data, tuple(mine))}"
    )


def _record_card(out: Path, found: dict[str, dict[str, Any]], record: dict[str, Any]) -> str:
    plan = record["settings"]["plan"]
    sets = list(dict.fromkeys(n["set"] for n in found.values()))
    data = " ".join(DATA[s][0] for s in sets)
    licence = " ".join(f"{TITLES[s]}: {DATA[s][1]}" for s in sets)
    splits = "\n".join(_split(s, next(n for n in found.values() if n["set"] == s)) for s in sets)
    tables = "\n".join(
        f"{TITLES[s]}:\n\n{_table(out, s, tuple(k for k in KINDS if name_of(s, k) in found))}" for s in sets
    )
    return (
        "# medical.json: sparse coding in segmentation under corruption\n\nFor each network, corruption and severity, and each way of following the "
        "damaged images: Dice, λ with error and sparsity of the sparse layer, and coverage, gap and set area of CRC, plug-in, COAT, oracle and "
        f"whole image at α = {', '.join(f'{a:g}' for a in plan['levels'])}; λ on the way through training. No pixels.\n\n"
        f"Corruptions: {', '.join(CORRUPTED)}, severities 1 to 5 of ImageNet-C's table with lengths scaled to 96 pixels. Thresholds are "
        f"calibrated on clean halves of the pool ({plan['draws']} draws) with the network as trained, and never again; the other half is tested, "
        f"damaged. Adaptation sees {plan['samples']} damaged images of D2 without labels; none of them is scored.\n\n"
        f"{_shared(data, licence, 'Seeing what becomes of a promise under damage.', record)}{splits}\n"
        "**Figures.** Mean over the four noises, clean and severity 1, 3, 5, α = 0.1. Coverage without set area says little: it also "
        f"rises where the set floods the image.\n\n{tables}"
    )


def _shared(data: str, licence: str, use: str, record: dict[str, Any]) -> str:
    versions = ", ".join(f"{k} {v}" for k, v in record["versions"].items())
    return (
        f"**Data.** {data}\n\n**Licence.** {licence}\n\n**Meant for.** {use} Not a medical device, not validated for any use.\n\n"
        f"**Made by.** `{record['command']}` ({versions}; {record['device']})\n\n"
    )


def _split(data: str, network: dict[str, Any]) -> str:
    n = network["parts"]
    return (
        f"**Split, {TITLES[data].lower()}** (names in `assets/splits/{data}.json`).\n\n| part | images | used for |\n|---|---|---|\n"
        f"| D1, the first | {n['train']} | training |\n| D1, validation | {n['val']} | a figure, no choice |\n"
        f"| D2 | {n['coat']} | COAT's predictor |\n| D2, the rest | {n['adaptation']} | adaptation, without labels |\n"
        f"| pool, drawn with seed 0 | {n['pool']} | calibration and test, redrawn by a seed |\n"
    )


def _path_of_lambda(network: dict[str, Any]) -> str:
    steps = network["history"]["threshold"]
    return f"{steps[0][0]:.3f} to {steps[-1][0]:.3f}" if steps else "none"


def _valleys(network: dict[str, Any]) -> str:
    """Where the objective of adaptation has its local minimum, in a sentence."""
    words = []
    for row in network.get("objective", []):
        at = valley(row["objective"])
        place = "none" if at is None else f"λ = {row['threshold'][at]:.2f}"
        words.append(f"{'clean' if row['severity'] == 0 else row['severity']}: {place}")
    return (
        f"Local minimum of R/(λ + ε), clean and by severity of Gaussian noise: {', '.join(words)}.\n\n"
        if words
        else ""
    )


def _table(out: Path, data: str, kinds: tuple[str, ...]) -> str:
    lines = [
        "| first layer | adaptation | Dice | CRC: coverage | CRC: set area | COAT: coverage | COAT: set area | λ |",
        "|---|---|---|---|---|---|---|---|",
    ]
    for kind in kinds:
        for adapt in ADAPTS if kind == "tacsc" else ("none", "bn"):
            crc, coat = (curve(data, m, "noises", kind, adapt, folder=out) for m in ("CRC", "COAT"))
            at = (0, 1, 3, 5)
            columns = (crc["dice"], *(m[k] for m in (crc, coat) for k in ("coverage", "area")))
            cells = [" ".join(f"{v[s]:.3f}" for s in at) for v in columns]
            lam = " ".join(f"{crc['threshold'][s]:.3f}" for s in at) if kind == "tacsc" else "none"
            lines.append(f"| {KIND_TITLES[kind]} | {ADAPTS[adapt]} | {' | '.join(cells)} | {lam} |")
    return "\n".join(lines) + "\n"
