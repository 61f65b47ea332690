"""A visitor's own images: dropped, read, paired with masks, sliced and windowed. Nothing leaves the
visitor's session.

It reads through `core.images` and decides nothing about pixels itself. Bad files become sentences; the good
ones go on.
"""

from __future__ import annotations

import re
import time
import uuid
from collections import OrderedDict
from dataclasses import dataclass, field
from pathlib import PurePath
from typing import Any

import numpy as np
import streamlit as st

from core.images import BadImage, MaskSizeMismatch, Picture, read_many, read_mask, to_rgb
from core.lab.promise import Scored, score
from pages.parts.shelf import RUNNER

KEPT = 24
MASK_ENDINGS = re.compile(r"[-_ .](mask|segmentation|seg|label|labels|gt|truth)$", re.IGNORECASE)


@dataclass(eq=False)
class Upload:
    """One picture of a visitor, with its mask file when there is one.

    Attributes:
        id: Stable name in the gallery.
        picture: What was read.
        mask_file: `(name, bytes)` of its mask, or None.
        notes: What was done to both, in words.
    """

    id: str
    picture: Picture
    mask_file: tuple[str, bytes] | None = None
    notes: list[str] = field(default_factory=list)


@dataclass(eq=False)
class Chosen:
    """The slice of an upload that is on the screen.

    Attributes:
        rgb: `(H, W, 3)` uint8.
        mask: `(H, W)` bool or None.
        notes: What was done, in words.
        key: What makes the network's answer the same: digest, slice, window.
    """

    rgb: np.ndarray
    mask: np.ndarray | None
    notes: list[str]
    key: tuple[Any, ...]


def stem(name: str) -> str:
    """Name without folders, ending and a mask's suffix, in small letters: what pairs a mask with its image."""
    base = PurePath(name).name.lower()
    for ending in (".nii.gz", ".nii"):
        base = base.removesuffix(ending)
    base = base.rsplit(".", 1)[0] if "." in base else base
    return MASK_ENDINGS.sub("", base)


def drop_here() -> list[Upload]:
    """The two drop zones. Returns the uploads in order; problems are shown as sentences."""
    left, right = st.columns([2, 1], gap="medium")
    with left:
        images = st.file_uploader(
            "Drop images here",
            accept_multiple_files=True,
            key="images",
            help="PNG, JPEG, TIFF, DICOM, NIfTI, or a zip of them. Several at once are welcome.",
        )
    with right:
        masks = st.file_uploader(
            "Masks, if you have them",
            accept_multiple_files=True,
            key="masks",
            help="One mask for an image, of the same size and name (a suffix such as _mask is fine). 0 is background.",
        )
    st.caption(
        "Files stay in this server's memory while your page is open, are never written to disk, logged or shown to anyone else, and "
        "no patient field of a DICOM is read out. Whoever runs this server could still reach its memory: use de-identified images."
    )
    pictures, problems = _read([(f.name, f.file_id, f) for f in images or []])
    for problem in problems:
        st.warning(problem, icon=":material/broken_image:")
    return _pair(pictures, [(f.name, f.getvalue()) for f in masks or []])


def _read(files: list[tuple[str, str, Any]]) -> tuple[list[Picture], list[str]]:
    """Read what is new; remember by the upload's id in this session."""
    known: dict[str, tuple[list[Picture], list[str]]] = st.session_state.setdefault("read-uploads", {})
    for gone in set(known) - {file_id for _, file_id, _ in files}:
        del known[gone]
    for name, file_id, file in files:
        if file_id not in known:
            known[file_id] = read_many([(name, file.getvalue())])
    found = [known[file_id] for _, file_id, _ in files]
    return [p for pictures, _ in found for p in pictures], [s for _, problems in found for s in problems]


def _pair(pictures: list[Picture], masks: list[tuple[str, bytes]]) -> list[Upload]:
    by_stem = {stem(name): (name, data) for name, data in masks}
    if len(pictures) == 1 and len(masks) == 1:
        by_stem = {stem(pictures[0].name): masks[0]}
    uploads, used = [], set()
    for k, picture in enumerate(pictures):
        key = stem(picture.name)
        mask = by_stem.get(key)
        if mask:
            used.add(key)
        uploads.append(Upload(f"upload-{k}-{picture.digest[:8]}", picture, mask, list(picture.notes)))
    for key, (name, _) in by_stem.items():
        if key not in used and pictures:
            st.warning(
                f"The mask {name} has no image of the same name here. Rename it like its image, or drop one image and one mask."
            )
    return uploads


def choose_slice(upload: Upload) -> Chosen:
    """Slice and window controls of one upload, and what they give."""
    picture, k, window = upload.picture, 0, None
    notes = list(upload.notes)
    slices = len(picture.pixels)
    if slices > 1:
        k = st.slider(
            "Slice", 0, slices - 1, slices // 2, key=f"slice-{upload.id}", help="Slices are numbered from 0."
        )
    if picture.kind == "grey" and picture.window is not None:
        window = _window(upload, picture)
    rgb = to_rgb(picture, k, window)
    mask = None
    if upload.mask_file is not None:
        mask = _mask(upload, rgb.shape[:2], k, notes)
    return Chosen(rgb, mask, notes, (picture.digest, k, window))


def _window(upload: Upload, picture: Picture) -> tuple[float, float]:
    centre, width = picture.window or (0.0, 1.0)
    finite = (
        picture.pixels[np.isfinite(picture.pixels)] if picture.pixels.dtype.kind == "f" else picture.pixels
    )
    low, high = (float(finite.min()), float(finite.max())) if finite.size else (0.0, 1.0)
    if high <= low:
        return centre, width
    start = (max(low, centre - width / 2), min(high, centre + width / 2))
    if start[0] >= start[1]:
        start = (low, high)
    a, b = st.slider(
        "Window: darkest and brightest value",
        low,
        high,
        start,
        key=f"window-{upload.id}",
        help="Values below are black, values above white. The network sees what you see.",
    )
    return ((a + b) / 2, max(b - a, 1e-6))


def _mask(upload: Upload, shape: tuple[int, int], k: int, notes: list[str]) -> np.ndarray | None:
    assert upload.mask_file is not None
    name, data = upload.mask_file
    try:
        mask = read_mask(
            data, name, shape=shape, slice_index=k, resize=bool(st.session_state.get(f"resize-{upload.id}"))
        )
    except MaskSizeMismatch as problem:
        st.warning(str(problem), icon=":material/aspect_ratio:")
        st.checkbox(
            "They show the same picture: scale the mask to the image (nearest pixel)",
            key=f"resize-{upload.id}",
        )
        return None
    except BadImage as problem:
        st.warning(str(problem), icon=":material/broken_image:")
        return None
    notes += mask.notes
    return mask.array


def scored(chosen: Chosen, model: str, name: str) -> Scored:
    """The networks' answer, from this session's memory or through the one runner, with its place in the queue shown."""
    memory: OrderedDict[tuple[Any, ...], Scored] = st.session_state.setdefault(
        "scored-uploads", OrderedDict()
    )
    key = (model, *chosen.key)
    if key not in memory:
        session = st.session_state.setdefault("session-id", uuid.uuid4().hex)
        ticket = RUNNER.submit((session, key), lambda on_step: score(chosen.rgb, model, name))
        try:
            with (
                st.spinner("Scoring the image …")
                if not ticket.state().place
                else st.status("Waiting for the network …") as box
            ):
                while (state := ticket.state()).status in ("waiting", "running"):
                    if state.place and box is not None:
                        box.update(label=f"Place {state.place} in the queue …")
                    time.sleep(0.03)
            memory[key] = ticket.result()
        finally:
            ticket.leave()
        while len(memory) > KEPT:
            memory.popitem(last=False)
    return memory[key]


def thumbnail_of(upload: Upload) -> np.ndarray:
    """The middle slice at its default window, for the gallery."""
    return to_rgb(upload.picture, len(upload.picture.pixels) // 2)


def remembered(mine: list[Upload], model: str) -> list[Scored]:
    """What this session has scored of the uploads that are still here, under one model, newest last."""
    digests = {u.picture.digest for u in mine}
    memory: OrderedDict[tuple[Any, ...], Scored] = st.session_state.get("scored-uploads", OrderedDict())
    return [s for key, s in memory.items() if key[0] == model and key[1] in digests]
