"""Which pictures the sparse page works on: drawn ones, a visitor's own cut into crops, or photos of a folder that this server knows.

It reads nothing itself: `uploads` reads files, `core.lab.sparse_images` cuts and draws. A visitor's crops live in the visitor's session only.
"""

from __future__ import annotations

import logging
import os
import uuid
from collections import OrderedDict
from collections.abc import Hashable
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path

import numpy as np
import streamlit as st

from core.data.folders import DataAbsent
from core.lab import sparse_images
from core.lab.sparse_images import LARGE_SIDE, MOST, SIDE, Pictures
from pages.components.gallery import gallery
from pages.parts import shelf, uploads, waiting
from pages.parts.sparse_chart import put

SOURCES = {"drawn": "Drawn", "yours": "Yours", "photos": "From a folder"}
"""Where pictures come from, as the chooser calls them."""
PHOTOS = {SIDE: "cifar10", LARGE_SIDE: "polyp"}
"""Side of a picture -> the set whose folder is looked for."""
LARGE_MOST = 32
"""Pictures of a U-Net's live run."""
KEPT = 6
OWN_RUN = "sparse-own-run"
"""Whether the last live run was on the visitor's own pictures."""


@dataclass(frozen=True, eq=False)
class Chosen:
    """Pictures of one size, and what they are to a cache.

    Attributes:
        pictures: What the networks see.
        key: What makes them the same.
        owner: Something of the visitor's session for their own pictures; empty for pictures that everybody may see.
    """

    pictures: Pictures
    key: Hashable
    owner: str = ""


@dataclass(frozen=True, eq=False)
class Mine:
    """A visitor's picture.

    Attributes:
        rgb: `(H, W, 3)` uint8.
        name: Its file's name.
        key: Digest, slice and window.
    """

    rgb: np.ndarray
    name: str
    key: Hashable


def folder_of(side: int) -> Path | None:
    """Folder of photos of this size on this server, from its environment variable."""
    found = os.environ.get(shelf.DATA_FOLDER.format(PHOTOS[side].upper()))
    return Path(found) if found else None


def sources(side: int = SIDE) -> list[str]:
    """Sources that are offered: a folder only where this server knows one."""
    return [s for s in SOURCES if s != "photos" or folder_of(side) is not None]


def drop_here(seed: int) -> Mine | None:
    """Drop zone, gallery and slice of a visitor's own pictures.

    The first picture that is dropped goes onto the first screen; one that cannot be cut into crops (too small, or without any contrast) is said
    here, and drawn ones stay.
    """
    mine = uploads.drop_here(masks=False)
    seen = st.session_state.setdefault("sparse-dropped", set())
    ids = {u.id for u in mine}
    if ids - seen:
        put("picture", "yours")
    st.session_state["sparse-dropped"] = ids
    if not mine:
        _forget()
        st.caption(
            "No photo ships with Plumbline: the pictures above are drawn. Drop one of your own, of any kind and at least 32 pixels high and "
            "wide. Its crops are what λ follows: one image alone is one draw and no statistics."
        )
        return None
    upload = _choose(mine)
    try:
        what = uploads.choose_slice(upload)
    except ValueError as problem:
        st.warning(str(problem), icon=":material/broken_image:")
        return None
    for note in what.notes:
        st.caption(note)
    mine_now = Mine(what.rgb, upload.picture.name, what.key)
    _, problem = chosen("yours", mine_now, seed)
    if problem:
        st.warning(problem, icon=":material/broken_image:")
    return mine_now


def _forget() -> None:
    """Let go of everything that was made of pictures that are no longer there."""
    for memory in ("sparse-crops", "sparse-looks"):
        st.session_state.pop(memory, None)
    if st.session_state.pop(OWN_RUN, False):
        waiting.leave("sparse")
        st.session_state.pop("sparse-trained", None)


def _choose(mine: list[uploads.Upload]) -> uploads.Upload:
    if len(mine) == 1:
        return mine[0]
    items = [
        {"id": u.id, "image": uploads.thumbnail_of(u), "caption": u.picture.name, "badge": None} for u in mine
    ]
    here = str(st.session_state.get("sparse-image", ""))
    picked = gallery(items, here, key="sparse-gallery", label="Your pictures", height=170)
    st.session_state["sparse-image"] = picked
    return next((u for u in mine if u.id == picked), mine[0])


@lru_cache(maxsize=8)
def _drawn(seed: int, side: int) -> Pictures:
    return sparse_images.phantoms(MOST if side == SIDE else LARGE_MOST, seed, side)


def few_drawn(seed: int, side: int = SIDE) -> Chosen:
    """Drawn pictures."""
    return Chosen(_drawn(seed, side), ("drawn", seed, side))


def chosen(source: str, mine: Mine | None, seed: int, side: int = SIDE) -> tuple[Chosen, str]:
    """The pictures of a source and, where they cannot be had, drawn ones with the reason.

    Args:
        source: One of `SOURCES`.
        mine: The visitor's picture, or None.
        seed: Of the draw, of the crops.
        side: 32 for classifiers, 96 for U-Nets.
    """
    try:
        if source == "yours":
            if mine is None:
                return few_drawn(
                    seed, side
                ), "Drop a picture of your own below; until then, a drawn one stands here."
            return _cut(mine, seed, side), ""
        if source == "photos":
            return _photos(seed, side), ""
    except (ValueError, DataAbsent) as problem:
        return few_drawn(seed, side), str(problem)
    return few_drawn(seed, side), ""


def _cut(mine: Mine, seed: int, side: int) -> Chosen:
    """Crops of the visitor's picture, kept in the session."""
    kept: OrderedDict[Hashable, Chosen] = st.session_state.setdefault("sparse-crops", OrderedDict())
    key = ("yours", mine.key, seed, side)
    if key not in kept:
        count = MOST if side == SIDE else LARGE_MOST
        owner = st.session_state.setdefault("session-id", uuid.uuid4().hex)
        kept[key] = Chosen(sparse_images.upload(mine.rgb, count, seed, mine.name, side), key, owner)
        while len(kept) > KEPT:
            kept.popitem(last=False)
    return kept[key]


def _photos(seed: int, side: int) -> Chosen:
    folder = folder_of(side)
    if folder is None:
        variable = shelf.DATA_FOLDER.format(PHOTOS[side].upper())
        raise DataAbsent(f"This server knows no folder of photos; whoever runs it can set {variable}.")
    return Chosen(_read(folder, seed, side), ("photos", str(folder), seed, side))


@lru_cache(maxsize=4)
def _read(folder: Path, seed: int, side: int) -> Pictures:
    try:
        return (
            sparse_images.cifar(folder, MOST, seed)
            if side == SIDE
            else sparse_images.polyps(folder, LARGE_MOST, seed)
        )
    except DataAbsent:
        raise
    except (OSError, ValueError) as problem:
        logging.getLogger("plumbline").exception("The folder of photos cannot be read.")
        raise DataAbsent(
            f"The photos of this server's folder cannot be read ({type(problem).__name__})."
        ) from problem
