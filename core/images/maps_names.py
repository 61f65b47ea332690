"""What a file's path says of it: its role (map, mask or image), its case, and its unit; and the words for lists and numbers.

Only names are looked at, never contents.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from pathlib import PurePath

from core.images.pairs import bare_stem

_WORDS = {
    "map": r"maps?|prob|probs|probability|probabilities|logits?|scores?|pred|preds|predictions?|softmax|heatmaps?",
    "mask": r"masks?|labels?|labelstr|truth|gt|ground[-_ ]?truth|seg|segmentations?|annotations?|targets?",
    "image": r"images?|imgs?|pictures?|frames?|inputs?",
}
_FOLDER = {role: re.compile(rf"^({words})$", re.IGNORECASE) for role, words in _WORDS.items()}
_ENDING = {role: re.compile(rf"[-_ .]({words})$", re.IGNORECASE) for role, words in _WORDS.items()}


def role_of(path: str) -> str:
    """Role by folder, by the whole stem, or by the end of the name; "" when the path does not say."""
    stem = bare_stem(path)
    for role in ("mask", "map", "image"):
        if any(_FOLDER[role].match(part) for part in PurePath(path).parts[:-1]):
            return role
    for role in ("mask", "map", "image"):
        if _FOLDER[role].match(stem) or _ENDING[role].search(stem):
            return role
    return ""


def case_of(path: str) -> tuple[str, str]:
    """(key, name) of a file: its folders and stem, both without words that name a role."""
    pure = PurePath(path)
    folders = [p for p in pure.parts[:-1] if not any(w.match(p) for w in _FOLDER.values())]
    stem = pure.name
    for ending in (".nii.gz", ".gz"):
        if stem.lower().endswith(ending):
            stem = stem[: -len(ending)]
    stem = stem.rsplit(".", 1)[0] if "." in stem else stem
    for word in _ENDING.values():
        stem = word.sub("", stem)
    if any(w.match(stem) for w in _FOLDER.values()) and folders:  # case1/map.png
        stem = folders.pop()
    return "/".join([*(f.lower() for f in folders), stem.lower()]), stem


def unit_of(path: str) -> str:
    """The unit that a map's path names: "logits", "probabilities" or ""."""
    words = [*PurePath(path).parts[:-1], bare_stem(path)]
    for word in words:
        if re.search(r"(^|[-_ .])logits?$", word, re.IGNORECASE):
            return "logits"
        if re.search(r"(^|[-_ .])(prob|probs|probability|probabilities|softmax)$", word, re.IGNORECASE):
            return "probabilities"
    return ""


def listed(names: Iterable[str], most: int = 4) -> str:
    """A few names, and how many more there are."""
    names = list(names)
    more = f" and {len(names) - most} more" if len(names) > most else ""
    return ", ".join(names[:most]) + more


def counted(n: int, what: str) -> str:
    """A number with its noun: "1 mask", "2 masks"."""
    return f"{n:,} {what}{'' if n == 1 else 's'}"
