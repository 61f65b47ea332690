"""What sets, classes and the choices of Λ are called on screen: in a chooser, in a chart and in a sentence."""

from __future__ import annotations

import json
from functools import lru_cache

from core.nets.weights import ASSETS

SETS = {"pbc": "Blood cells", "ham10000": "Skin lesions", "cifar10": "CIFAR-10", "tiny": "Tiny ImageNet"}
"""Sets as a chooser calls them."""

ABOUT = {
    "pbc": "Eight kinds of blood cells under the microscope, made long-tailed (100 to 1)",
    "ham10000": "Seven diagnoses of dermoscopy photos, long-tailed as they come (64 to 1), divided by lesion",
    "cifar10": "Ten kinds of things in small photos, made long-tailed (100 to 1)",
    "tiny": "Two hundred kinds of things in small photos, long-tailed (100 to 1)",
}

CLASSES = {
    "basophil": ("basophil", "basophils"),
    "eosinophil": ("eosinophil", "eosinophils"),
    "erythroblast": ("erythroblast", "erythroblasts"),
    "ig": ("immature gran.", "immature granulocytes"),
    "lymphocyte": ("lymphocyte", "lymphocytes"),
    "monocyte": ("monocyte", "monocytes"),
    "neutrophil": ("neutrophil", "neutrophils"),
    "platelet": ("platelet", "platelets"),
    "akiec": ("actinic kerat.", "actinic keratoses"),
    "bcc": ("basal cell c.", "basal cell carcinomas"),
    "bkl": ("benign kerat.", "benign keratoses"),
    "df": ("dermatofibroma", "dermatofibromas"),
    "mel": ("melanoma", "melanomas"),
    "nv": ("naevus", "naevi"),
    "vasc": ("vascular", "vascular lesions"),
    "deer": ("deer", "deer"),
}
"""Name in the files -> name in a chart, and in a sentence (many of them)."""

WEIGHT_WORDS = {"none": "no Λ", "sum": "Λ, sum", "max": "Λ, max"}
"""Λ as a switch calls it."""


@lru_cache(maxsize=1)
def _wordnet() -> dict[str, str]:
    """WordNet id -> the first word of its synset, for the classes of Tiny ImageNet; none where the list is not here."""
    path = ASSETS / "tail" / "tiny_words.json"
    return json.loads(path.read_text(encoding="utf-8")) if path.is_file() else {}


def _behind_rank(name: str) -> str:
    """What stands behind a rank (`012_n01768244` -> trilobite), or nothing."""
    rank, _, rest = name.partition("_")
    return _wordnet().get(rest, rest) if rank.isdigit() else ""


def label_of(name: str) -> str:
    """A class in a chart: a word, or what stands behind a rank."""
    return CLASSES[name][0] if name in CLASSES else _behind_rank(name) or name


def many_of(name: str) -> str:
    """A class in a sentence, in the plural."""
    if name in CLASSES:
        return CLASSES[name][1]
    rest = _behind_rank(name)
    return f"images of {rest}" if rest else f"{name}s"
