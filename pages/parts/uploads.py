"""A visitor's own images: dropped, read, paired with masks, sliced and windowed. Nothing leaves the
visitor's session.

It reads through `core.images` and decides nothing about pixels itself. Bad files become sentences; the good
ones go on.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np
import streamlit as st

from core.images import BadImage, MaskSizeMismatch, Picture, pair_masks, read_many, read_mask, to_rgb
from core.images.pairs import mask_of_picture, mask_stem
from core.lab.promise import Scored, score
from pages.parts.queued import forget_answers, through_runner


@dataclass(eq=False)
class Upload:
    """One picture of a visitor, with its mask file when there is one.

    Attributes:
        id: Stable name in the gallery.
        picture: What was read.
        mask_file: Its mask as `(name, bytes)`, or as a picture that came with it, or None.
        notes: What was done to both, in words.
    """

    id: str
    picture: Picture
    mask_file: tuple[str, bytes] | Picture | None = None
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


def drop_here(masks: bool = True) -> list[Upload]:
    """The drop zones, for masks too where they mean something. Returns the uploads in order, those from before a visit to another page among them."""
    left, right = st.columns([2, 1], gap="medium") if masks else (st.container(), st.container())
    with left:
        _zone(
            "images",
            "Drop images here",
            "PNG, JPEG, TIFF, DICOM, NIfTI, or a zip of them, up to 80 million pixels each.",
        )
    if masks:
        with right:
            _zone(
                "masks",
                "Masks, if you have them",
                "One mask for an image, of the same size and name (a suffix such as _mask is fine). 0 is background.",
            )
    st.caption(
        "Files stay in this server's memory while this browser tab is open, are never written to disk, logged or shown to "
        "anyone else, and no patient field of a DICOM is read out. Whoever runs this server could still reach its memory: use "
        "de-identified images."
    )
    kept = _kept("images")
    if set(kept) - _in_zone("images"):
        st.button(
            f"Forget my {len(kept)} file{'s' if len(kept) > 1 else ''}",
            on_click=_forget,
            icon=":material/delete:",
        )
    pictures, problems = _read(kept)
    for problem in problems:
        st.warning(problem, icon=":material/broken_image:")
    return _pair(pictures, list(_kept("masks").values()))


def _zone(key: str, label: str, help: str) -> None:
    st.file_uploader(label, accept_multiple_files=True, key=key, help=help, on_change=_changed, args=(key,))
    st.session_state[f"{key}-in-zone"] = {f.file_id for f in st.session_state.get(key) or []}


def _kept(key: str) -> dict[str, tuple[str, bytes]]:
    """Files of this session, `{upload id: (name, bytes)}`: a drop zone forgets its files when another page is visited."""
    kept: dict[str, tuple[str, bytes]] = st.session_state.setdefault(f"{key}-kept", {})
    return kept


def _in_zone(key: str) -> set[str]:
    return set(st.session_state.get(f"{key}-in-zone", ()))


def _changed(key: str) -> None:
    """Files came or went in a drop zone: keep the new ones, drop those that were taken out of it."""
    now = {f.file_id: (f.name, f.getvalue()) for f in st.session_state.get(key) or []}
    kept = _kept(key)
    gone = _in_zone(key) - set(now)
    for file in gone:
        kept.pop(file, None)
    if gone:
        forget_answers()
    kept.update(now)


def _forget() -> None:
    for key in ("images", "masks"):
        _kept(key).clear()
    for memory in ("read-uploads", "seen-uploads"):
        st.session_state.pop(memory, None)
    forget_answers()


def _read(files: dict[str, tuple[str, bytes]]) -> tuple[list[Picture], list[str]]:
    """Read what is new; remember by the upload's id in this session."""
    known: dict[str, tuple[list[Picture], list[str]]] = st.session_state.setdefault("read-uploads", {})
    for gone in set(known) - set(files):
        del known[gone]
    for file_id, (name, data) in files.items():
        if file_id not in known:
            known[file_id] = read_many([(name, data)])
    found = [known[file_id] for file_id in files]
    return [p for pictures, _ in found for p in pictures], [s for _, problems in found for s in problems]


def _pair(pictures: list[Picture], masks: list[tuple[str, bytes]]) -> list[Upload]:
    """Uploads with their masks: from the mask zone, or found beside the image (in a zip, say) by name."""
    by_stem = {mask_stem(name): (name, data) for name, data in masks}
    pairs = pair_masks(pictures)
    if len(pairs) == 1 and len(masks) == 1:
        by_stem = {mask_stem(pairs[0][0].name): masks[0]}
    uploads, used = [], set()
    for k, (picture, beside) in enumerate(pairs):
        key = mask_stem(picture.name)
        mask = by_stem.get(key, beside)
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
    resize = bool(st.session_state.get(f"resize-{upload.id}"))
    try:
        if isinstance(upload.mask_file, Picture):
            mask = mask_of_picture(upload.mask_file, shape, k, resize)
        else:
            name, data = upload.mask_file
            mask = read_mask(data, name, shape=shape, slice_index=k, resize=resize)
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
    key = (model, *chosen.key)
    return through_runner(
        "scored-uploads", key, lambda: score(chosen.rgb, model, name), "Scoring the image …"
    )


def thumbnail_of(upload: Upload) -> np.ndarray:
    """The middle slice at its default window, for the gallery."""
    return to_rgb(upload.picture, len(upload.picture.pixels) // 2)


def remember(upload_id: str, answer: Scored, mask: np.ndarray | None) -> None:
    """Keep what was last seen of an upload, for the files that are taken away."""
    st.session_state.setdefault("seen-uploads", {})[upload_id] = (answer, mask)


def remembered(mine: list[Upload], model: str) -> list[tuple[Scored, np.ndarray | None]]:
    """What was last seen, with masks, of some uploads under one model, in their order."""
    seen = st.session_state.get("seen-uploads", {})
    return [seen[u.id] for u in mine if u.id in seen and seen[u.id][0].model == model]


def answer_of(upload_id: str, model: str) -> Scored | None:
    """What the networks of one study last said of an upload; None where they have not seen it."""
    seen = st.session_state.get("seen-uploads", {}).get(upload_id)
    return seen[0] if seen and seen[0].model == model else None
