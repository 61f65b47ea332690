"""Cards of the comparison of losses: one for the networks of a set, one for its record. Every figure comes from the record itself."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from core.lab.cards import DATA
from core.lab.margin_record import COMMAND, TITLES, read_tables, table
from core.lab.margin_sets import CLASSES, NUCLEI_SIDE, SIDE

NUCLEI = (
    "Data Science Bowl 2018, BBBC038 (Caicedo and others, 2019): 664 microscopy images, all nuclei of an image joined in one mask; the class "
    "rim was derived here.",
    "CC0. No image of it is in this project.",
    "Microscopy of nuclei at about the scale of its training images. Not a medical device, not validated for any use.",
)


def write_cards(out: Path) -> list[Path]:
    """Write the cards of every recorded set.

    Args:
        out: Folder laid out like `assets/`.

    Returns:
        The paths written.

    Raises:
        FileNotFoundError: Nothing is recorded.
    """
    rows, schedule = table(out), read_tables(out)["schedule"]
    written = []
    for name in dict.fromkeys(r["data"] for r in rows):
        mine = [r for r in rows if r["data"] == name]
        data, licence, use = NUCLEI if name == "nuclei" else DATA[name]
        shared = (
            f"**Data.** {data} Parts: `assets/splits/{name}.json`; the first 300 images of D1 train, its validation part chooses m and "
            f"temperatures, the pool is measured.\n\n**Licence.** {licence}\n\n**Meant for.** Comparing losses. {use}\n\n"
            f"**Made by.** `{COMMAND}`\n"
        )
        scale = (
            f"cut from the centre at a long side of {NUCLEI_SIDE} pixels"
            if name == "nuclei"
            else "the whole picture, padded"
        )
        networks = (
            f"# margin-{name}-*.safetensors: one network a loss\n\nA slim U-Net (MONAI's BasicUNet, {_millions(out, name)} million numbers, float16 "
            f"kernels), {SIDE} × {SIDE} pixels, {scale}; classes: {', '.join(CLASSES[name])}. Trained from scratch with seed 0, Adam at "
            f"{schedule['learning_rate']:g} and a tenth of it in the second half, batches of {schedule['batch']}, "
            f"{16 if name == 'phantom' else schedule['epochs']} epochs, no augmentation, the last epoch kept. Same schedule for every loss; the "
            f"loss's numbers are in each file's header.\n\n{shared}\n**Figures.** On the pool, mean over seeds where there are several:\n\n"
            f"{_figures(mine)}"
        )
        record = (
            f"# {name}.npz: what each loss's network says of the pool\n\nFor seed 0 and every image: reliability tables (15 bins, both scopes) "
            f"and histograms of logit distances, and Dice. No pixels and no logits. Images cannot be rebuilt from it.\n\n{shared}\n"
            f"**Figures.** As in the networks' card, `assets/weights/margin-{name}.md`.\n"
        )
        for folder, stem, text in (("weights", f"margin-{name}", networks), ("margin", name, record)):
            path = out / folder / f"{stem}.md"
            path.write_text(text, encoding="utf-8")
            written.append(path)
    return written


def _millions(out: Path, name: str) -> str:
    from core.nets.weights import load_network

    model, _, _ = load_network(next((out / "weights").glob(f"margin-{name}-*.safetensors")))
    return f"{sum(p.numel() for p in model.parameters()) / 1e6:.1f}"


def _figures(rows: list[dict[str, Any]]) -> str:
    lines = [
        "| loss | seeds | Dice | HD95, px | ECE, foreground | ECE, all pixels |",
        "|---|---|---|---|---|---|",
    ]
    for r in rows:
        title = TITLES[r["loss"]] + (f", m = {r['margin']:g}" if r["margin"] is not None else "")
        lines.append(
            f"| {title} | {r['seeds']} | {r['dice']:.3f} | {r['hd95']:.1f} | {r['ece_fg']:.4f} | {r['ece_all']:.4f} |"
        )
    return "\n".join(lines) + "\n"
