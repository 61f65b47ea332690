"""What a study's name means to a person: which pictures, which base network, what that network has seen, and what its promise is not about.

Words only. Where the pictures come from is `sources`' business, and which studies ship `tables`'.
"""

from __future__ import annotations

from dataclasses import dataclass

from core.lab.sources import domain_of
from core.lab.tables import STUDIES
from core.nets.build import KINDS

TITLES = {"phantom": "Phantoms", "polyp": "Polyps", "skin": "Skin lesions", "fire": "Fire"}
"""Domains in the order of the chooser."""

NETWORKS = dict(zip(KINDS, ("U-Net", "DeepLab v3+", "PSPNet", "SINet"), strict=True))
"""Base networks in the order of the chooser."""


@dataclass(frozen=True)
class Domain:
    """Words for a domain.

    Attributes:
        key: First part of a study's name.
        title: In the chooser.
        picture: One picture of it, with its article: "a colonoscopy frame".
        lesion: What the masks show.
        warning: What the network has seen, and what the promise is not about.
    """

    key: str
    title: str
    picture: str
    lesion: str
    warning: str


_MEDICAL = "On any other image its scores, and so the promise, mean nothing. It is for research and teaching only and no medical device."

DOMAINS = {
    "phantom": Domain(
        "phantom",
        TITLES["phantom"],
        "a drawn picture",
        "lesion",
        "This network has seen drawn pictures (phantoms) only. On an image of your own its scores, and so the promise, mean nothing; for "
        "real pictures choose another study.",
    ),
    "polyp": Domain(
        "polyp",
        TITLES["polyp"],
        "a colonoscopy frame",
        "polyp",
        f"This network has seen colonoscopy frames only. {_MEDICAL}",
    ),
    "skin": Domain(
        "skin",
        TITLES["skin"],
        "a dermoscopy photo",
        "skin lesion",
        f"This network has seen dermoscopy photos only, one of each lesion and none without one. {_MEDICAL}",
    ),
    "fire": Domain(
        "fire",
        TITLES["fire"],
        "a video frame of a fire",
        "fire",
        "This network has seen frames of a few fires. The promise is about further frames of the very videos that calibrate and about "
        "no other fire. It is for research and teaching only; nobody's safety may hang on it.",
    ),
}


def words_of(name: str) -> Domain:
    """Words for a study's domain. A study that is not one of ours has the phantoms' words without their warning."""
    try:
        return DOMAINS[domain_of(name)]
    except ValueError:
        return Domain(name, name, "a picture", "lesion", "")


def kind_of(name: str) -> str:
    """`"skin-deeplab"` -> `"deeplab"`, `"skin"` -> `"unet"`."""
    return name.partition("-")[2] or "unet"


def title_of(name: str) -> str:
    """A study in words: `"Skin lesions, DeepLab v3+"`."""
    return f"{TITLES[domain_of(name)]}, {NETWORKS[kind_of(name)]}"


def study_of(domain: str, kind: str) -> str:
    """The study of a domain and a base network, or the domain's first where that network is not there.

    Raises:
        ValueError: No study of the domain ships.
    """
    name = domain if kind == "unet" else f"{domain}-{kind}"
    there = [s for s in STUDIES if domain_of(s) == domain]
    if not there:
        raise ValueError(f"No study of the domain {domain!r} is here; here are {', '.join(STUDIES)}.")
    return name if name in there else there[0]


def kinds_of(domain: str) -> tuple[str, ...]:
    """Base networks that ship for a domain, in the order of the chooser."""
    there = {kind_of(s) for s in STUDIES if domain_of(s) == domain}
    return tuple(k for k in KINDS if k in there)


def domains() -> tuple[str, ...]:
    """Domains of which a study ships, in the order of the chooser."""
    there = {domain_of(s) for s in STUDIES}
    return tuple(d for d in TITLES if d in there)
