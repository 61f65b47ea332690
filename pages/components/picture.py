"""The picture with its outlines: a free threshold that moves in the browser, or a handle that wipes between two methods.

What it is not: a judge. Thresholds come from the caller; coverage and area are counted in the browser from the same scores.
Two components share the work: one carries the pixels and is sent once an image, the other the thresholds and is sent at every
change, so that a moved alpha slider costs a few kilobytes. Both are Streamlit components v2 with inline text.
"""

from __future__ import annotations

import base64
import hashlib
import threading
from collections import OrderedDict
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Literal

import numpy as np
import streamlit as st

from core.figures.palette import COLOURS, DASHES
from core.images import png_bytes, to_display
from pages.components.codes import LIMIT, encode_scores, encode_threshold, to_base64

HERE = Path(__file__).resolve().parent
MODES = ("threshold", "wipe")
KEPT = 32  # images whose encoded pixels are remembered by this server


def text_of(*files: str) -> str:
    """The text of files beside this one, joined; functions of one file are then seen by the next."""
    return "\n".join((HERE / file).read_text(encoding="utf-8") for file in files)


_PIXELS = st.components.v2.component(
    "plumbline_pixels", html="<span hidden>\n</span>", js=text_of("pixels.js")
)
_PICTURE = st.components.v2.component(
    "plumbline_picture",
    html=text_of("picture.html"),
    css=text_of("picture.css"),
    js=text_of("words.js", "field.js", "paint.js", "curve.js", "chips.js", "wipe.js", "picture.js"),
)

_kept: OrderedDict[str, dict[str, Any]] = OrderedDict()
_lock = threading.Lock()


def picture(
    image: np.ndarray,
    logits: np.ndarray,
    taus: Mapping[str, float],
    *,
    mask: np.ndarray | None = None,
    alpha: float = 0.1,
    mode: Literal["threshold", "wipe"] = "threshold",
    wipe: tuple[str, str] = ("CRC", "COAT"),
    oracle: float | None = None,
    alt: str = "",
    height: int = 460,
    key: str,
) -> None:
    """Show an image with the outlines of its sets, and let a person move a threshold over it or wipe between two methods.

    The free threshold and the wipe handle live in the browser: moving them runs nothing here and tells Python nothing. Both stay
    where the person left them while the image stays the same, and start again on a new image. A threshold that was never moved,
    or was snapped back, follows its method when alpha changes.

    Args:
        image: `(H, W, 3)` uint8, or anything that `core.images.to_display` takes, on the grid of the scores.
        logits: `(H, W)` float scores.
        taus: Method -> effective threshold in logits; -inf marks the whole image. Names of `core.figures.palette`. CRC and COAT
            (or, without them, the first two) are outlined at first, the others at a click.
        mask: `(H, W)` bool truth, or None. All False: an image without lesion; area is shown and coverage is not.
        alpha: Share of a lesion that may be missed; 1 - alpha is the target line.
        mode: "threshold" (range control, curve at the right) or "wipe" (a handle between two methods).
        wipe: Methods on the left and on the right of the handle.
        oracle: The threshold that exactly reaches the target on this image, in logits; marked on the curve.
        alt: What the image shows, for people who do not see it.
        height: Height of the whole component in pixels when it is wide (700 px and more). Stacked it is taller; it never depends
            on the data.
        key: Unique name on the page.

    Raises:
        ValueError: Sizes that differ, an unknown mode or method, or NaN.
    """
    if mode not in MODES:
        raise ValueError(f"The mode {mode!r} is not known; choose one of {', '.join(MODES)}.")
    if mode == "wipe" and (missing := [name for name in wipe if name not in taus]):
        raise ValueError(
            f"The picture cannot wipe to {missing[0]!r}: its threshold is not among {', '.join(taus)}."
        )
    pixels = encode_pixels(image, logits, mask)
    marks = [encode_mark(name, tau) for name, tau in taus.items()]
    data = {
        "digest": pixels["digest"],
        "mode": mode,
        "marks": marks,
        "oracle": encode_mark("oracle", oracle) if oracle is not None else None,
        "wipe": list(wipe),
        "alpha": float(alpha),
        "alt": alt,
        "height": int(height),
        "key": key,
    }
    with st.container(gap=None):
        _PIXELS(data=pixels, key=f"{key}-pixels")
        _PICTURE(data=data, key=key)


def encode_mark(name: str, tau: float) -> dict[str, Any]:
    """A method's threshold for the browser: name, colour, dash, code, and a finite logit (JSON knows no infinity)."""
    if name not in COLOURS:
        raise ValueError(f"The method {name!r} has no colour; choose from {', '.join(COLOURS)}.")
    return {
        "name": name,
        "colour": COLOURS[name],
        "dash": [] if name == "COAT" else DASHES[name],
        "code": encode_threshold(tau),
        "logit": float(np.clip(tau, -LIMIT, LIMIT)),
    }


def encode_pixels(image: np.ndarray, logits: np.ndarray, mask: np.ndarray | None) -> dict[str, Any]:
    """What the browser needs of an image once: the picture as a data URL, scores as codes, the truth as bits.

    Args:
        image: What `core.images.to_display` takes, `(H, W)` or `(H, W, 3)`.
        logits: `(H, W)` float.
        mask: `(H, W)` bool, or None.

    Raises:
        ValueError: Sizes that differ, or NaN among the scores.
    """
    image, logits = np.ascontiguousarray(image), np.ascontiguousarray(logits)
    truth = None if mask is None else np.ascontiguousarray(mask, bool)
    for what, array in (("logit map", logits), ("mask", truth)):
        if array is not None and array.shape != image.shape[:2]:
            raise ValueError(
                f"The {what} has size {array.shape} and the picture {image.shape[:2]}; bring both to one grid."
            )
    digest = _digest(image, logits, truth)
    with _lock:
        if digest in _kept:
            _kept.move_to_end(digest)
            return _kept[digest]
    codes = encode_scores(logits)
    shown = base64.b64encode(png_bytes(to_display(image))).decode("ascii")
    made = {
        "digest": digest,
        "width": int(image.shape[1]),
        "height": int(image.shape[0]),
        "image": f"data:image/png;base64,{shown}",
        "codes": to_base64(codes),
        "mask": None if truth is None else to_base64(np.packbits(truth)),
    }
    with _lock:
        _kept[digest] = made
        while len(_kept) > KEPT:
            _kept.popitem(last=False)
    return made


def _digest(*arrays: np.ndarray | None) -> str:
    """A name for exactly these arrays."""
    state = hashlib.sha256()
    for array in arrays:
        state.update(b"none" if array is None else f"{array.shape} {array.dtype.str}".encode())
        if array is not None:
            state.update(array.data)
    return state.hexdigest()
