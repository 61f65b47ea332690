"""Cards: what a shipped file is, what it was made from, how it does, and the command that made it. Written
with the file.

One Markdown file beside each weights file and score table. Every figure in it was measured when it was
written.
"""

from __future__ import annotations

from pathlib import Path

from core.conformal.words import promised
from core.lab.sources import domain_of
from core.lab.study import METHODS, Study, load_study, resampled

KINDS = {
    "unet": "U-Net with a {} encoder",
    "deeplab": "DeepLab v3+ with a {} encoder",
    "pspnet": "PSPNet with a {} encoder",
    "sinet": "SINet, narrow",
}

DATA = {
    "skin": (
        "HAM10000 (Tschandl and others, 2018): one dermoscopy photo of each of 1,600 lesions, 200 × 150 as used here.",
        "CC BY-NC 4.0, non-commercial; the weights and tables derived from it follow these terms. No image of it is in this project.",
        "Dermoscopy photos with one lesion. Not a medical device, not validated for any clinical use.",
    ),
    "fire": (
        "Video frames of fires (Muhammad and others, 2022), 17 videos of about 30 frames.",
        "No licence is stated by its owners; research only, and so are the weights and tables derived from it. No frame of it is in this "
        "project.",
        "Frames of these videos. The pool is re-split by frame, so the promise is about further frames of the same videos, not about other "
        "fires.",
    ),
    "polyp": (
        "Kvasir-SEG (Jha and others, 2020): 1,000 colonoscopy frames with a polyp each, 256 × 256 as used here.",
        "Research and education only, as its owners state (the same images are CC BY 4.0 in HyperKvasir). The weights and tables "
        "derived from it follow these terms. No image of it is in this project.",
        "Colonoscopy frames with a polyp. It has seen no other kind of image and no frame without a polyp, so it finds polyps everywhere. "
        "Not a medical device, not validated for any clinical use.",
    ),
    "phantom": (
        "Phantoms of `core/data/phantoms.py`: drawn endoscopy-like pictures with exactly known lesions.",
        "Made by this project; Apache License 2.0.",
        "Phantoms only. It says nothing about real images.",
    ),
}

SPLIT = (
    "| part | images | used for |\n|---|---|---|\n"
    "| D1 | {d1} | training the base network |\n| D1, validation | {d1_val} | deciding when its training stops |\n"
    "| D2 | {d2} | threshold predictors and every choice between their variants |\n"
    "| pool | {pool} | calibration and test, redrawn by a seed |\n\n"
    "The names are in `assets/splits/{domain}.json`; near-duplicates are kept in one part; the pool's content hashes are in "
    "`assets/scores/{study}.json`."
)


def write_cards(out: Path, name: str) -> list[Path]:
    """Write the three cards of a study from its files.

    Args:
        out: Folder laid out like `assets/`, with the study in it.
        name: The study.

    Returns:
        The paths written.
    """
    study = load_study(out, name)
    data, licence, use = DATA[domain_of(name)]
    command = f"python -m core study {name}" + (
        "" if domain_of(name) == "phantom" else " --data FOLDER-OF-THE-DATA-SET"
    )
    facts = study.facts
    sizes, training = dict(facts["sizes"]), dict(facts["training"])  # type: ignore[call-overload]
    best = dict(facts["validation"])  # type: ignore[call-overload]
    shared = (
        f"**Data.** {data}\n\n**Licence.** {licence}\n\n**Meant for.** {use}\n\n**Made by.** `{command}`\n\n"
        f"**Split.**\n\n{SPLIT.format(**sizes, study=name, domain=domain_of(name))}\n"
    )
    network = (
        f"# {name}.safetensors: base network\n\n{KINDS[str(facts.get('kind', 'unet'))].format(facts['encoder'])}, {facts['side']} px, "
        "two logits, float16 kernels; trained from scratch "
        f"with cross-entropy, seeded flips, turns, zooms and colour changes, {training['epochs']} epochs, AdamW, averaged weights; kept: "
        f"epoch {int(best['epoch']) + 1}, chosen by cross-entropy on the validation part.\n\n{shared}\n"
        f"**Figures.** Dice at probability 0.5: {best['dice']:.3f} on the validation part, {facts['pool_dice']:.3f} on the pool.\n"
    )
    gaps = dict(facts["out_of_fold_gap"])  # type: ignore[call-overload]
    predictors = (
        f"# {name}-thresholds.safetensors: threshold predictors of AT and COAT\n\nTwo ensembles with the same inputs (small picture, score map, "
        "global features of the map), trunk, size and budget; each member left out its own fold of D2. They predict a correction of the plug-in "
        f"thresholds at ten levels of α. Settings are in the file's header.\n\n{shared}\n"
        "**Figures.** Out-of-fold gap on D2 after one common shift, mean over α = 0.05, 0.1, 0.2, 0.3: "
        f"AT {gaps['AT']:.4f}, COAT {gaps['COAT']:.4f}. On the pool:\n\n"
        f"{_figures(out, name)}"
    )
    table = (
        f"# {name}.npz, {name}-thresholds.npz, {name}.json: score table of the pool\n\n"
        "Per image: histograms of lesion scores (rounded down) and of all scores (rounded up) in bins of 1/40 logit; thresholds of plug-in, "
        "AT and COAT at ten levels of α; global features of the score map; facts. No pixels. Images cannot be rebuilt from it.\n\n"
        f"{shared}\n**Figures.** 1,000 re-splits of the pool into halves:\n\n{_figures(out, name)}"
    )
    written = []
    for folder, stem, text in (
        ("weights", name, network),
        ("weights", f"{name}-thresholds", predictors),
        ("scores", name, table),
    ):
        path = out / folder / f"{stem}.md"
        path.write_text(text, encoding="utf-8")
        written.append(path)
    return written


def _figures(out: Path, name: str) -> str:
    study = load_study(out, name)
    lines = ["| α | method | coverage | gap | set area |", "|---|---|---|---|---|"]
    for alpha in (0.1, 0.2):
        found = resampled(study, alpha, 0, 1000)
        for method in METHODS:
            r = found[method]
            lines.append(
                f"| {alpha} | {method} | {r.coverage.mean():.3f} | {r.gap.mean():.3f} ± {r.gap.std():.3f} | {r.area.mean():.3f} |"
            )
        lines.append(f"| {alpha} | whole image | 1.000 | {alpha:.3f} | 1.000 |")
        lines.append(
            f"| {alpha} | oracle | {promised(alpha)} and a pixel | about 0 | {_oracle_area(study, alpha):.3f} |"
        )
    return "\n".join(lines) + "\n"


def _oracle_area(study: Study, alpha: float) -> float:
    return float(study.curves.area(study.tau_hat("oracle", alpha))[study.curves.has_lesion].mean())
