"""A strip or grid of thumbnails that are buttons.

What it is not: a reader of files. It is handed arrays, makes thumbnails of them once, and returns which one is chosen.
"""

from __future__ import annotations

import base64
import hashlib
import threading
from collections import OrderedDict
from collections.abc import Sequence
from typing import Any

import numpy as np
import streamlit as st
from PIL import Image

from core.images import png_bytes, to_display
from pages.components.picture import text_of

SIDE = 128  # pixels of a thumbnail
KEPT = 512  # thumbnails remembered by this server, about 25 kB each

_GALLERY = st.components.v2.component(
    "plumbline_gallery",
    html="""<div class="strip" role="toolbar">
</div>""",
    css=text_of("gallery.css"),
    js=text_of("gallery.js"),
)

_kept: OrderedDict[str, str] = OrderedDict()
_lock = threading.Lock()


def gallery(
    items: Sequence[dict[str, Any]],
    selected: str,
    *,
    key: str,
    label: str,
    height: int | None = None,
) -> str:
    """Show thumbnails and return the id of the chosen one.

    Two hands may choose: the person, by a click, and Python, through `selected` (a link, another control, a new upload).
    The later act wins. A click carries a mark of its own, and only a mark not seen before counts as a click; `selected` counts
    only when it differs from the `selected` of the run before. So it may stay at its first value for ever (the click holds),
    it may be fed back what this function returned (nothing changes), and it may jump elsewhere at any time (the jump holds,
    and the old click does not come back). If both change in one run the click wins. What is remembered lives in
    `st.session_state` under `key + "-memory"` and survives a visit to another page.

    Args:
        items: Each `{"id": str, "image": what core.images.to_display takes, "caption": str, "badge": str or None}`.
        selected: Id that Python wants chosen; one that is not among the items counts as the first item's.
        key: Unique name on the page.
        label: What the gallery is, for people who do not see it, such as "Sample images".
        height: Height in pixels; a longer gallery scrolls inside it. None: as high as it needs. On a narrow screen the gallery
            is one row that scrolls sideways.

    Returns:
        The chosen id; "" when there are no items.

    Raises:
        ValueError: Two items share an id.
    """
    ids = [str(item["id"]) for item in items]
    if len(set(ids)) != len(ids):
        raise ValueError("Two thumbnails share an id; each needs its own.")
    memory = st.session_state.setdefault(
        f"{key}-memory", {"given": selected, "chosen": selected, "mark": None}
    )
    click = (st.session_state.get(key) or {}).get("click")
    settle(memory, selected, click, ids)
    shown = [
        {
            "id": str(item["id"]),
            "caption": str(item.get("caption", "")),
            "badge": item.get("badge") or "",
            "image": thumbnail(item["image"]),
        }
        for item in items
    ]
    data = {
        "label": label,
        "selected": memory["chosen"],
        "mark": memory["mark"],
        "height": height,
        "items": shown,
    }
    _GALLERY(data=data, key=key, on_click_change=lambda: None)
    return str(memory["chosen"])


def settle(memory: dict[str, Any], selected: str, click: dict[str, Any] | None, ids: Sequence[str]) -> None:
    """Decide who chose last, the person or Python, and write it into `memory` (`given`, `chosen`, `mark`).

    Args:
        memory: What the last run left.
        selected: What Python asks for in this run.
        click: `{"id", "mark"}` of the last click, or None.
        ids: Ids that can be chosen.
    """
    if selected != memory["given"]:
        memory["given"] = memory["chosen"] = selected
    if click and click.get("mark") != memory["mark"]:
        memory["mark"] = click["mark"]
        if click.get("id") in ids:
            memory["chosen"] = click["id"]
    if memory["chosen"] not in ids:
        memory["chosen"] = selected if selected in ids else (ids[0] if ids else "")


def thumbnail(image: np.ndarray) -> str:
    """The middle square of an image at `SIDE` pixels, as a data URL; made once for each image.

    Args:
        image: What `core.images.to_display` takes.
    """
    array = np.ascontiguousarray(image)
    digest = hashlib.sha256(f"{array.shape} {array.dtype.str}".encode() + array.tobytes()).hexdigest()
    with _lock:
        if digest in _kept:
            _kept.move_to_end(digest)
            return _kept[digest]
    rgb = to_display(array)
    height, width = rgb.shape[:2]
    side = min(height, width)
    top, left = (height - side) // 2, (width - side) // 2
    square = Image.fromarray(rgb[top : top + side, left : left + side]).resize(
        (SIDE, SIDE), Image.Resampling.LANCZOS
    )
    made = "data:image/png;base64," + base64.b64encode(png_bytes(np.asarray(square))).decode("ascii")
    with _lock:
        _kept[digest] = made
        while len(_kept) > KEPT:
            _kept.popitem(last=False)
    return made
